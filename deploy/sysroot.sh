#!/bin/sh
# deploy/sysroot.sh ARCH - prints a directory with the libraries and headers that kubelua needs for another
# architecture: Debian's packages of .ci/deps and their dependencies, unpacked. The machine's own packages,
# their lists and apt's sources do not change. The directory is kept (KUBELUA_CACHE, by default
# ~/.cache/kubelua) until the machine's libraries change.
#
# Its var/lib/dpkg is a database of dpkg: `dpkg-query --admindir` tells which package has a file, by its whole
# path.
set -eu

arch=${1:?usage: sysroot.sh ARCH}
cd "$(dirname "$0")/.."
cache=${KUBELUA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kubelua}
packages=$(sed -n 's/^[[:space:]]*build \(.*-dev\)$/\1/p' .ci/deps)
# shellcheck disable=SC2086  # a list of words on purpose
state=$({ cat deploy/sysroot.sh; dpkg-query -W $packages; } | cksum | cut -d" " -f1)
sysroot=$cache/sysroot-$arch-$state

mkdir -p "$cache"
exec 9>"$cache/sysroot.lock"
flock 9
if [ -d "$sysroot" ]; then echo "$sysroot"; exit 0; fi
echo "kubelua: unpacking Debian's packages for $arch into $sysroot, once" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/new/var/lib/dpkg/info"
: >"$work/status"        # nothing is installed there, so whatever is needed is fetched
sources() {
	apt-get indextargets --format "deb [arch=$arch] \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
		'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u
}
sources >"$work/sources.list"
[ -s "$work/sources.list" ] || {
	echo "kubelua: apt knows no package of Debian; run apt-get update" >&2
	exit 1
}
fetch() {
	apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures::="$arch" \
		-o APT::Sandbox::User="$(id -un)" \
		-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" \
		-o Dir::Cache::archives="$work/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@" >&2
}
fetch update
# shellcheck disable=SC2086
fetch -y --no-install-recommends --download-only install $packages

dpkg=$work/new/var/lib/dpkg
echo "$arch" >"$dpkg/arch"
echo 1 >"$dpkg/info/format"
for deb in "$work"/archives/*.deb; do
	dpkg-deb -x "$deb" "$work/new"
	dpkg-deb -e "$deb" "$work/control"
	name=$(dpkg-deb -f "$deb" Package)
	case $(dpkg-deb -f "$deb" Multi-Arch) in same) name=$name:$arch ;; esac
	for kind in symbols shlibs; do
		[ ! -f "$work/control/$kind" ] || mv "$work/control/$kind" "$dpkg/info/$name.$kind"
	done
	dpkg-deb --fsys-tarfile "$deb" | tar -t | sed "s|^\.|$sysroot|; s|/\$||" >"$dpkg/info/$name.list"
	{ sed '/^Package:/a Status: install ok installed' "$work/control/control"; echo; } >>"$dpkg/status"
	rm -rf "$work/control"
done
# Links to /lib/... are links of the machine that they were made for.
find "$work/new" -type l -lname '/*' | while read -r link; do
	ln -sf "$sysroot$(readlink "$link")" "$link"
done
mv "$work/new" "$sysroot"
echo "$sysroot"
