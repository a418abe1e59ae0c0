#!/bin/sh
# client.sh --server URL --workers W --mode sync|burst --events M [--rate R] [--strip] [--control URL]
# [--ca F]
# kubelua as one of the peers: an informer on all pods, a queue, W workers that run pods.lua; prints one line
# of JSON
# (README.md). bin/client alone is the same with a reconciler written in C.
here=$(dirname "$0")
exec "$here/bin/client" --lua "$here/pods.lua" "$@"
