#!/bin/sh
# deploy/debian/build.sh PREFIXED-ROOT OUT-DIR ARCH - makes a Debian package of the files that `make install
# DESTDIR=PREFIXED-ROOT PREFIX=/usr` installed there.
# `make deb` calls it. Dependencies are what the binaries are linked with, as dpkg knows it.
set -eu

root=$(cd "${1:?usage: build.sh ROOT OUT ARCH}" && pwd)
out=${2:?usage: build.sh ROOT OUT ARCH}
here=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's|.*KL_VERSION "\(.*\)".*|\1|p' "$here/core/base/version.h" | sed 's/-/~/')
arch=${3:?usage: build.sh ROOT OUT ARCH}
triplet=$(dpkg-architecture "-a$arch" -qDEB_HOST_GNU_TYPE 2>/dev/null)
mkdir -p "$out"
out=$(cd "$out" && pwd)

find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions" # where Debian's zsh looks
doc=$root/usr/share/doc/kubelua
install -d "$doc/examples" "$root/DEBIAN"
gzip -9nc "$here/CHANGELOG.md" >"$doc/changelog.gz"
install -m 644 "$here"/README.md "$here"/docs/*.md "$doc/"
install -m 644 "$here/controllers/hello.lua" "$doc/examples/"
install -m 644 "$here/spec/programs/embed.c" "$doc/examples/"
{
	echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
	echo "Upstream-Name: kubelua"
	echo
	echo "Files: *"
	echo "Copyright: The kubelua authors"
	echo "License: Apache-2.0"
	echo " On Debian systems the text of this license is in /usr/share/common-licenses/Apache-2.0."
	echo " ."
	sed 's/^$/./; s/^/ /' "$here/NOTICE"
} >"$doc/copyright"
# The build's id is removed: it is a hash of debug data, which contains the directory of the build.
module=$root/usr/lib/lua/5.4/kubelua/core.so
"$triplet-strip" --strip-unneeded -R .note.gnu.build-id "$root/usr/bin/kubelua" "$module"
"$triplet-strip" --strip-debug "$root/usr/lib/libkubelua.a"

# dpkg-shlibdeps wants a source package around it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: kubelua\n\nPackage: kubelua\nArchitecture: any\n' >"$work/debian/control"
where=
if [ "$arch" != "$(dpkg --print-architecture)" ]; then
	sysroot=$("$here/deploy/sysroot.sh" "$arch")
	where="--admindir=$sysroot/var/lib/dpkg -l$sysroot/lib/$triplet -l$sysroot/usr/lib/$triplet"
fi
# shellcheck disable=SC2086  # a list of options on purpose
depends=$(cd "$work" &&
	DEB_HOST_ARCH=$arch dpkg-shlibdeps $where -O "$root/usr/bin/kubelua" "$module" 2>"$work/said" |
	sed -n 's/^shlibs:Depends=//p') ||
	{ cat "$work/said" >&2; exit 1; }
[ -n "$depends" ] || {
	echo "kubelua: dpkg-shlibdeps found no dependency, but there must be some" >&2
	cat "$work/said" >&2
	exit 1
}
size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ n += int(($1 + 1023) / 1024) } END { print n }')

cat >"$root/DEBIAN/control" <<END
Package: kubelua
Version: $version
Architecture: $arch
Maintainer: The kubelua authors <kubelua@localhost>
Section: admin
Priority: optional
Depends: $depends, ca-certificates
Recommends: lua5.4
Installed-Size: $size
Description: Kubernetes controllers in Lua, on a runtime in C
 Runs reconcile functions written in Lua 5.4 on caches, queue, leader election
 and a client of its own; scripts are reloaded while they run. With the module
 for stock Lua 5.4 (require "kubelua") and the library for C programs.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -type d -exec chmod 755 {} +
# xz makes a third less of it in twenty times the time.
dpkg-deb --root-owner-group -Zzstd -z9 --build "$root" "$out/kubelua_${version}_$arch.deb" >&2
echo "$out/kubelua_${version}_$arch.deb"
