#!/bin/sh
# client.sh --server URL --workers W --mode sync|burst --events M [--rate R] [--strip] [--control URL] [--ca F]
# kubelua as one of the peers: an informer on all pods, a queue, W workers; prints one line of JSON (README.md).
exec "$(dirname "$0")/bin/client" "$@"
