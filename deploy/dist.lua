-- dist.lua VERSION DATE OUT ARCH=DIR... - what a release consists of, out of the files of Debian packages and
-- the libraries that they are linked with: `make dist` calls it. DIR has the package and its files (root) for
-- ARCH, one of Debian's words. The same tree gives the same bytes, whenever and wherever it is packed on one
-- version of Debian: times are the version's date, names are sorted, owners are root.
--
--   kubelua_VERSION_ARCH.deb                 the package, as it is
--   kubelua-VERSION-linux-ARCH.tar.gz        the program with its libraries and their loader; it does not use
--                                            the machine's glibc
--   kubelua-VERSION-linux-ARCH.oci.tar       an image: an OCI layout, which docker load takes, too
--   kubelua-VERSION-linux-ARCH.spdx.json     what is in there (SPDX 2.3)
--   kubelua-VERSION-linux.oci.tar            the images of all architectures under one name, for a registry
--   kubelua-VERSION.tgz                      the Helm chart
--   SHA256SUMS

local version, date, out = table.unpack(arg)
assert(arg[4], "usage: lua5.4 deploy/dist.lua VERSION DATE OUT ARCH=DIR...")
local stamp = date .. "T00:00:00Z"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

-- The output of a shell command, whose failure is ours.
local function sh(fmt, ...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = quote(tostring(word)) end
  local pipe = assert(io.popen("set -e; " .. fmt:format(table.unpack(words))))
  local text = pipe:read "a"
  if not pipe:close() then error("failed: " .. fmt:format(table.unpack(words)), 0) end
  return (text:gsub("\n$", ""))
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function size_of(path) return math.tointeger(tonumber(sh("stat -c %%s %s", path))) end
local function sha256(path) return (sh("sha256sum %s", path):match "^%x+") end

-- Members in order, without what differs from build to build.
local function tar(dir, file, what)
  sh("tar --sort=name --mtime=%s --owner=0 --group=0 --numeric-owner --format=gnu -C %s -cf %s %s", stamp,
    dir, file, what)
end

-- The best level takes three times as long for half a percent. Specs ask for the quickest.
local LEVEL = os.getenv "GZIP_LEVEL" or 6
local function gzip(from, to) sh("gzip -%snc %s > %s", LEVEL, from, to) end

local work = sh "mktemp -d"
sh("rm -rf %s && mkdir -p %s", out, out)
out = sh("cd %s && pwd", out)
local machine = sh "dpkg --print-architecture"

-- ---------------------------------------------------------------- an architecture and its libraries

-- What the program needs: a list of { name, path }, and the loader by the name that the program has for it.
-- It is read out of the files, for the machine cannot load those of another architecture.
local function closure(target)
  local list, seen = {}, {}
  local function needs(path)
    for name in sh("readelf -dW %s", path):gmatch "%(NEEDED%)[^%[]*%[([^%]]+)%]" do
      if not seen[name] then
        seen[name] = true
        local found = sh("for d in /lib /usr/lib; do f=%s$d/%s/%s; if [ -e $f ]; then echo $f; break; fi; \z
          done", target.sysroot, target.triplet, name)
        if found ~= "" then
          list[#list + 1] = { name = name, path = found }
          needs(found)
        elseif not target.loader:find("/" .. name, 1, true) then
          error(("%s needs %s, which is missing here"):format(path, name), 0)
        end
      end
    end
  end
  needs(target.binary)
  -- The program loads libcurl when it first needs it; the module for stock Lua is linked with it.
  needs(target.root .. "/usr/lib/lua/5.4/kubelua/core.so")
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local function target_of(word)
  local t = {}
  t.arch, t.dir = word:match "^(%w+)=(.+)$"
  t.name = ("kubelua-%s-linux-%s"):format(version, t.arch)
  t.root = t.dir .. "/root"
  t.binary = t.root .. "/usr/bin/kubelua"
  t.triplet = sh("dpkg-architecture -a%s -qDEB_HOST_GNU_TYPE 2>/dev/null", t.arch)
  t.sysroot = t.arch == machine and "" or sh("deploy/sysroot.sh %s", t.arch)
  t.loader = sh("readelf -lW %s", t.binary):match "interpreter: (/[^%]]+)"
  assert(t.loader, "the program has no loader: is it static?")
  t.work = work .. "/" .. t.arch
  sh("mkdir %s", t.work)
  t.libraries = closure(t)
  return t
end

-- ---------------------------------------------------------------- the tarball

local START = [=[
#!/bin/sh
# kubelua with libraries of its own, C's included: it runs on any Linux of this architecture.
self=$0
case $self in */*) ;; *) self=$(command -v -- "$self") ;; esac
file=$self
while [ -L "$file" ]; do
	link=$(readlink "$file")
	case $link in /*) file=$link ;; *) file=${file%/*}/$link ;; esac
done
dir=$(cd "${file%/*}/../lib/kubelua" && pwd) || exit 1
export KUBELUA_SELF="${dir%/lib/kubelua}/bin/kubelua"
exec "$dir/ld.so" --library-path "$dir" --argv0 kubelua "$dir/kubelua" "$@"
]=]

local function tarball(t)
  local top, root = ("%s/%s"):format(t.work, t.name), t.root
  sh("mkdir -p %s/bin %s/lib/kubelua %s/share/doc/kubelua && cp -R %s/usr/share/man \z
    %s/usr/share/bash-completion %s/usr/share/fish %s/share/", top, top, top, root, root, root, top)
  sh("mkdir -p %s/share/zsh/site-functions && cp %s/usr/share/zsh/vendor-completions/_kubelua \z
    %s/share/zsh/site-functions/", top, root, top)
  sh("cp LICENSE NOTICE CHANGELOG.md %s/share/doc/kubelua/", top)
  sh("cp %s %s/lib/kubelua/kubelua && cp -L %s%s %s/lib/kubelua/ld.so", t.binary, top, t.sysroot, t.loader,
    top)
  for _, lib in ipairs(t.libraries) do sh("cp -L %s %s/lib/kubelua/%s", lib.path, top, lib.name) end
  write(top .. "/bin/kubelua", START)
  sh("chmod -R u=rwX,go=rX %s && chmod 755 %s/bin/kubelua", top, top)
  tar(t.work, top .. ".tar", t.name)
  gzip(top .. ".tar", ("%s/%s.tar.gz"):format(out, t.name))
end

-- ---------------------------------------------------------------- the image

local function json(x)
  if type(x) == "string" then return '"' .. x:gsub('[\\"]', "\\%0"):gsub("\n", "\\n") .. '"' end
  if type(x) ~= "table" then return tostring(x) end
  local parts = {}
  if #x > 0 then
    for i, v in ipairs(x) do parts[i] = json(v) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local keys = {}
  for k in pairs(x) do keys[#keys + 1] = k end
  table.sort(keys)
  for i, k in ipairs(keys) do parts[i] = json(k) .. ":" .. json(x[k]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function root_filesystem(t, dir)
  sh("mkdir -p %s/usr/bin %s/etc/ssl/certs %s/tmp %s/usr/lib/%s", dir, dir, dir, dir, t.triplet)
  sh("cp %s %s/usr/bin/kubelua", t.binary, dir)
  for _, lib in ipairs(t.libraries) do
    sh("install -m 644 %s %s/usr/lib/%s/%s", lib.path, dir, t.triplet, lib.name)
  end
  sh("install -D -m 755 %s%s %s%s", t.sysroot, t.loader, dir, t.loader)
  sh("cp /etc/ssl/certs/ca-certificates.crt %s/etc/ssl/certs/", dir)
  write(dir .. "/etc/passwd", "root:x:0:0:root:/:/nologin\nkubelua:x:65532:65532:kubelua:/:/nologin\n")
  write(dir .. "/etc/group", "root:x:0:\nkubelua:x:65532:\n")
  write(dir .. "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
  sh("chmod -R u=rwX,go=rX %s && chmod 1777 %s/tmp && chmod 755 %s/usr/bin/kubelua", dir, dir, dir)
end

-- A blob of the layout out of a file; what descriptors say of it.
local function blob(layout, path, media)
  local digest, size = sha256(path), size_of(path)
  sh("mv %s %s/blobs/sha256/%s", path, layout, digest)
  return { mediaType = media, digest = "sha256:" .. digest, size = size }
end

-- A layout with these manifests under one name, as a file. `docker` is what docker's older versions look for.
local function archive(layout, manifests, file, docker)
  for _, manifest in ipairs(manifests) do
    manifest.annotations = { ["org.opencontainers.image.ref.name"] = version,
      ["io.containerd.image.name"] = "docker.io/library/kubelua:" .. version }
  end
  write(layout .. "/index.json", json { schemaVersion = 2, manifests = manifests })
  write(layout .. "/oci-layout", '{"imageLayoutVersion":"1.0.0"}')
  if docker then write(layout .. "/manifest.json", json { docker }) end
  sh("chmod -R u=rwX,go=rX %s", layout)
  tar(layout, ("%s/%s.oci.tar"):format(out, file), ".")
end

local function image(t)
  local dir, layout = t.work .. "/root", t.work .. "/layout"
  root_filesystem(t, dir)
  sh("mkdir -p %s/blobs/sha256", layout)
  tar(dir, t.work .. "/layer.tar", ".")
  local diff = sha256(t.work .. "/layer.tar")
  gzip(t.work .. "/layer.tar", t.work .. "/layer.tar.gz")
  local layer = blob(layout, t.work .. "/layer.tar.gz", "application/vnd.oci.image.layer.v1.tar+gzip")
  write(t.work .. "/config", json {
    architecture = t.arch, os = "linux", created = stamp,
    config = { User = "65532:65532", Entrypoint = { "/usr/bin/kubelua" }, Env = { "PATH=/usr/bin" },
      WorkingDir = "/", Labels = { ["org.opencontainers.image.title"] = "kubelua",
        ["org.opencontainers.image.version"] = version,
        ["org.opencontainers.image.licenses"] = "Apache-2.0" } },
    rootfs = { type = "layers", diff_ids = { "sha256:" .. diff } },
    history = { { created = stamp, created_by = "deploy/dist.lua" } },
  })
  local config = blob(layout, t.work .. "/config", "application/vnd.oci.image.config.v1+json")
  write(t.work .. "/manifest", json { schemaVersion = 2,
    mediaType = "application/vnd.oci.image.manifest.v1+json", config = config, layers = { layer } })
  t.manifest = blob(layout, t.work .. "/manifest", "application/vnd.oci.image.manifest.v1+json")
  t.manifest.platform = { architecture = t.arch, os = "linux" }
  local function path_of(b) return "blobs/sha256/" .. b.digest:match ":(.*)" end
  archive(layout, { t.manifest }, t.name, { Config = path_of(config), RepoTags = { "kubelua:" .. version },
    Layers = { path_of(layer) } })
end

-- One name for all architectures: an index of the images.
local function index(targets)
  local layout, manifests = work .. "/layout", {}
  sh("mkdir -p %s/blobs/sha256", layout)
  for i, t in ipairs(targets) do
    sh("cp %s/layout/blobs/sha256/* %s/blobs/sha256/", t.work, layout)
    local m = t.manifest
    manifests[i] = { mediaType = m.mediaType, digest = m.digest, size = m.size, platform = m.platform }
  end
  write(work .. "/index", json { schemaVersion = 2, mediaType = "application/vnd.oci.image.index.v1+json",
    manifests = manifests })
  local all = blob(layout, work .. "/index", "application/vnd.oci.image.index.v1+json")
  archive(layout, { all }, ("kubelua-%s-linux"):format(version))
end

-- ---------------------------------------------------------------- the chart, and what is in all this

local function chart()
  sh("mkdir -p %s/chart && cp -R deploy/chart %s/chart/kubelua && chmod -R u=rwX,go=rX %s/chart",
    work, work, work)
  tar(work .. "/chart", work .. "/chart.tar", "kubelua")
  gzip(work .. "/chart.tar", ("%s/kubelua-%s.tgz"):format(out, version))
end

-- Debian's packages that the libraries are of: name -> version. dpkg may know a path by what it was before
-- /usr.
local function packages(t)
  local dpkg = "dpkg-query"
  if t.sysroot ~= "" then dpkg = dpkg .. " --admindir " .. quote(t.sysroot .. "/var/lib/dpkg") end
  local reals, words, owner, found = {}, {}, {}, {}
  for i, path in ipairs { t.sysroot .. t.loader, table.unpack(t.libraries) } do
    reals[i] = sh("readlink -f %s", path.path or path)
    words[#words + 1] = quote(reals[i])
    words[#words + 1] = quote((reals[i]:gsub("^/usr", "")))
  end
  local list = table.concat(words, " "):gsub("%%", "%%%%")
  local said = sh(dpkg .. " -S " .. list .. " 2>/dev/null || true")
  for package, path in said:gmatch "([%w.+-]+):[^\n]- (/[^\n]+)" do
    owner[path] = package
  end
  for _, real in ipairs(reals) do
    local package = owner[real] or owner[(real:gsub("^/usr", ""))]
    if not package then error("no package has " .. real, 0) end
    found[package] = found[package] or sh(dpkg .. " -W -f '${Version}' %s", package .. ":" .. t.arch)
  end
  return found
end

local function bill_of_materials(t)
  local list, relations, names, found = {}, {}, {}, packages(t)
  for package in pairs(found) do names[#names + 1] = package end
  table.sort(names)
  local function add(id, package, of, license, locator)
    list[#list + 1] = { SPDXID = "SPDXRef-" .. id, name = package, versionInfo = of,
      downloadLocation = "NOASSERTION", filesAnalyzed = false,
      licenseConcluded = "NOASSERTION", licenseDeclared = license,
      copyrightText = "NOASSERTION", externalRefs = { { referenceCategory = "PACKAGE-MANAGER",
        referenceType = "purl", referenceLocator = locator } } }
  end
  add("kubelua", "kubelua", version, "Apache-2.0", "pkg:generic/kubelua@" .. version)
  relations[1] = { spdxElementId = "SPDXRef-DOCUMENT", relationshipType = "DESCRIBES",
    relatedSpdxElement = "SPDXRef-kubelua" }
  for _, package in ipairs(names) do
    local id = "deb-" .. package:gsub("[^%w.-]", "-")
    local escaped = found[package]:gsub("[:+~]", function(c) return ("%%%02X"):format(c:byte()) end)
    add(id, package, found[package], "NOASSERTION",
      ("pkg:deb/debian/%s@%s?arch=%s&distro=bookworm"):format(package, escaped, t.arch))
    relations[#relations + 1] = { spdxElementId = "SPDXRef-kubelua", relationshipType = "DEPENDS_ON",
      relatedSpdxElement = "SPDXRef-" .. id }
  end
  write(("%s/%s.spdx.json"):format(out, t.name), json {
    spdxVersion = "SPDX-2.3", dataLicense = "CC0-1.0", SPDXID = "SPDXRef-DOCUMENT", name = t.name,
    documentNamespace = ("https://spdx.org/spdxdocs/%s-%s"):format(t.name, sha256(t.binary):sub(1, 16)),
    creationInfo = { created = stamp, creators = { "Tool: kubelua-dist" } },
    packages = list, relationships = relations,
  } .. "\n")
end

local targets = {}
for i = 4, #arg do
  local t = target_of(arg[i])
  sh("cp " .. quote(t.dir):gsub("%%", "%%%%") .. "/kubelua_*.deb %s/", out)
  tarball(t)
  image(t)
  bill_of_materials(t)
  targets[#targets + 1] = t
end
index(targets)
chart()
sh("cd %s && sha256sum -- * > %s && mv %s SHA256SUMS", out, work .. "/sums", work .. "/sums")
sh("rm -rf %s", work)
print(sh("cd %s && ls -l | awk 'NR > 1 { printf \"%%10d  %%s\\n\", $5, $9 }'", out))
