#!/bin/sh
# deploy/release.sh [--do] - releases the version of core/base/version.h: checks that everything agrees, makes
# the files of a release (make dist), and lists each step that needs the network or a key. With --do it takes
# these steps, with REGISTRY (ghcr.io/you) for image and chart, GITHUB_REPOSITORY for the files, and
# LUAROCKS_API_KEY if luarocks has no key yet. On a commit with the version's tag it takes the remaining
# steps; .github/workflows/release.yaml does that.
set -eu

cd "$(dirname "$0")/.."
do=
case ${1:-} in
--do) do=yes ;;
"") ;;
*) echo "usage: deploy/release.sh [--do]" >&2; exit 2 ;;
esac

version=$(sed -n 's|.*KL_VERSION "\(.*\)".*|\1|p' core/base/version.h)
date=$(sed -n 's|.*KL_VERSION_DATE "\(.*\)".*|\1|p' core/base/version.h)
bad=0
agree() { # WHAT WORD FILE
	grep -q -- "$2" "$3" && return 0
	echo "release: $3 does not say $2 ($1)" >&2
	bad=1
}
agree "the newest version with its date" "^## $version - $date" CHANGELOG.md
agree "the chart's version" "^version: $version" deploy/chart/Chart.yaml
agree "the image that the chart takes" "^appVersion: \"\{0,1\}$version" deploy/chart/Chart.yaml
rockspec=deploy/kubelua-$version-1.rockspec
[ -f "$rockspec" ] || { echo "release: there is no $rockspec" >&2; bad=1; }
[ -z "$(git status --porcelain 2>/dev/null)" ] || { echo "release: something is not committed" >&2; bad=1; }
tagged=$(git rev-parse -q --verify "v$version^{commit}" || true)
if [ -n "$tagged" ] && [ "$tagged" != "$(git rev-parse HEAD)" ]; then
	echo "release: the tag v$version is there already, on another commit" >&2
	bad=1
fi
if [ $bad != 0 ]; then
	[ -z "$do" ] || exit 1
	echo "release: $version cannot be released yet; the steps would be:" >&2
fi

step() {
	echo "+ $*"
	[ -z "$do" ] || "$@"
}
# Names of images have only lower-case letters; owners on GitHub may have others.
registry=$(echo "${REGISTRY:-registry}" | tr '[:upper:]' '[:lower:]')
repository=${GITHUB_REPOSITORY:-OWNER/kubelua}
if [ -n "$do" ] && { [ -z "${REGISTRY:-}" ] || [ -z "${GITHUB_REPOSITORY:-}" ]; }; then
	echo "release: set REGISTRY and GITHUB_REPOSITORY" >&2
	exit 2
fi
# The uploaded rockspec names the repository; the checkout's own one names the checkout.
published_rockspec() {
	mkdir -p build/rock
	from="url = \"git+https://github.com/$repository.git\", tag = \"v$version\""
	sed "s|^source = .*|source = { $from }|" "$1" >"$2"
}
# The newest section of the changelog.
notes() { mkdir -p build && awk '/^## / { n++ } n == 1' CHANGELOG.md >"$1"; }
luarocks_upload() { luarocks upload ${LUAROCKS_API_KEY:+--api-key="$LUAROCKS_API_KEY"} "$1"; }

step make dist
if [ -z "$tagged" ]; then
	step git tag -s "v$version" -m "kubelua $version"
	step git push origin "v$version"
fi
step skopeo copy --all "oci-archive:build/dist/kubelua-$version-linux.oci.tar" \
	"docker://$registry/kubelua:$version"
step helm push "build/dist/kubelua-$version.tgz" "oci://$registry/charts"
step notes build/notes.md
step gh release create "v$version" --repo "$repository" --title "kubelua $version" \
	--notes-file build/notes.md build/dist/*
step published_rockspec "$rockspec" "build/rock/kubelua-$version-1.rockspec"
step luarocks_upload "build/rock/kubelua-$version-1.rockspec"
[ -n "$do" ] || echo "release: nothing of this was done; --do does it" >&2
