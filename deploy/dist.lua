-- dist.lua VERSION DATE DEB ROOT OUT - what a release consists of, out of the Debian package's files and the libraries
-- they are linked with: `make dist` calls it. The same tree gives the same bytes, whenever and wherever it is built on
-- one version of Debian: times are the version's date, names are sorted, owners are root.
--
--   kubelua_VERSION_ARCH.deb                 the package, as it is
--   kubelua-VERSION-linux-ARCH.tar.gz        the program with its libraries and their loader: no glibc of the machine
--   kubelua-VERSION-linux-ARCH.oci.tar       an image: an OCI layout, which docker load takes, too
--   kubelua-VERSION.tgz                      the Helm chart
--   kubelua-VERSION-linux-ARCH.spdx.json     what is in there (SPDX 2.3)
--   SHA256SUMS

local version, date, deb, root, out = table.unpack(arg)
assert(out, "usage: lua5.4 deploy/dist.lua VERSION DATE DEB ROOT OUT")
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

local work = sh "mktemp -d"
local arch = sh "dpkg --print-architecture"
local name = ("kubelua-%s-linux-%s"):format(version, arch)
local binary = root .. "/usr/bin/kubelua"
sh("rm -rf %s && mkdir -p %s", out, out)
out = sh("cd %s && pwd", out)

-- ---------------------------------------------------------------- libraries

-- Those that the program needs: { name, path } of each, and the loader, by the name that the program has for it.
local function closure()
  local list, loader = {}, nil
  for line in (sh("LC_ALL=C ldd %s", binary) .. "\n"):gmatch "%s*([^\n]+)\n" do
    local lib, path = line:match "^(%S+) => (/%S+)"
    if lib then
      list[#list + 1] = { name = lib, path = path }
    elseif line:find "^/" then
      loader = line:match "^%S+"
    elseif not line:find "^linux%-vdso" then
      error("a library is missing here: " .. line, 0)
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list, assert(loader, "the program has no loader: is it static?")
end

local libraries, loader = closure()

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

local function tarball()
  local top = ("%s/%s"):format(work, name)
  sh("mkdir -p %s/bin %s/lib/kubelua %s/share/doc/kubelua && cp -R %s/usr/share/man \z
    %s/usr/share/bash-completion %s/usr/share/fish %s/share/", top, top, top, root, root, root, top)
  sh("mkdir -p %s/share/zsh/site-functions && cp %s/usr/share/zsh/vendor-completions/_kubelua \z
    %s/share/zsh/site-functions/", top, root, top)
  sh("cp LICENSE NOTICE CHANGELOG.md %s/share/doc/kubelua/", top)
  sh("cp %s %s/lib/kubelua/kubelua && cp -L %s %s/lib/kubelua/ld.so", binary, top, loader, top)
  for _, lib in ipairs(libraries) do sh("cp -L %s %s/lib/kubelua/%s", lib.path, top, lib.name) end
  write(top .. "/bin/kubelua", START)
  sh("chmod -R u=rwX,go=rX %s && chmod 755 %s/bin/kubelua", top, top)
  tar(work, ("%s/%s.tar"):format(work, name), name)
  sh("gzip -9nc %s > %s", ("%s/%s.tar"):format(work, name), ("%s/%s.tar.gz"):format(out, name))
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

local function root_filesystem(dir)
  sh("mkdir -p %s/usr/bin %s/etc/ssl/certs %s/tmp", dir, dir, dir)
  sh("cp %s %s/usr/bin/kubelua", binary, dir)
  for _, lib in ipairs(libraries) do
    sh("install -D -m 644 \"$(readlink -f %s)\" %s%s", lib.path, dir, lib.path)
  end
  sh("install -D -m 755 \"$(readlink -f %s)\" %s%s", loader, dir, loader)
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

local function image()
  local dir, layout = work .. "/root", work .. "/layout"
  root_filesystem(dir)
  sh("mkdir -p %s/blobs/sha256", layout)
  tar(dir, work .. "/layer.tar", ".")
  local diff = sha256(work .. "/layer.tar")
  sh("gzip -9n %s", work .. "/layer.tar")
  local layer = blob(layout, work .. "/layer.tar.gz", "application/vnd.oci.image.layer.v1.tar+gzip")
  write(work .. "/config", json {
    architecture = arch, os = "linux", created = stamp,
    config = { User = "65532:65532", Entrypoint = { "/usr/bin/kubelua" }, Env = { "PATH=/usr/bin" },
      WorkingDir = "/", Labels = { ["org.opencontainers.image.title"] = "kubelua",
        ["org.opencontainers.image.version"] = version,
        ["org.opencontainers.image.licenses"] = "Apache-2.0" } },
    rootfs = { type = "layers", diff_ids = { "sha256:" .. diff } },
    history = { { created = stamp, created_by = "deploy/dist.lua" } },
  })
  local config = blob(layout, work .. "/config", "application/vnd.oci.image.config.v1+json")
  write(work .. "/manifest", json { schemaVersion = 2,
    mediaType = "application/vnd.oci.image.manifest.v1+json", config = config, layers = { layer } })
  local manifest = blob(layout, work .. "/manifest", "application/vnd.oci.image.manifest.v1+json")
  manifest.platform = { architecture = arch, os = "linux" }
  manifest.annotations = { ["org.opencontainers.image.ref.name"] = version,
    ["io.containerd.image.name"] = "docker.io/library/kubelua:" .. version }
  write(layout .. "/index.json", json { schemaVersion = 2, manifests = { manifest } })
  write(layout .. "/oci-layout", '{"imageLayoutVersion":"1.0.0"}')
  local function path_of(b) return "blobs/sha256/" .. b.digest:match ":(.*)" end
  -- What docker's older versions look for.
  write(layout .. "/manifest.json", json { { Config = path_of(config), RepoTags = { "kubelua:" .. version },
    Layers = { path_of(layer) } } })
  sh("chmod -R u=rwX,go=rX %s", layout)
  tar(layout, ("%s/%s.oci.tar"):format(out, name), ".")
end

-- ---------------------------------------------------------------- the chart, and what is in all this

local function chart()
  sh("mkdir -p %s/chart && cp -R deploy/chart %s/chart/kubelua && chmod -R u=rwX,go=rX %s/chart",
    work, work, work)
  tar(work .. "/chart", work .. "/chart.tar", "kubelua")
  sh("gzip -9nc %s > %s", work .. "/chart.tar", ("%s/kubelua-%s.tgz"):format(out, version))
end

-- Debian's packages that the libraries are of: name -> version. A path may be known by what it was before /usr.
local function packages()
  local found = {}
  for _, lib in ipairs { { path = loader }, table.unpack(libraries) } do
    local real = sh("readlink -f %s", lib.path)
    local owner = sh("dpkg -S %s 2>/dev/null || dpkg -S %s 2>/dev/null || true", real,
      (real:gsub("^/usr", "")))
    local package = owner:match "^([%w.+-]+)"
    if not package then error("no package has " .. real, 0) end
    found[package] = sh("dpkg-query -W -f '${Version}' %s", package .. ":" .. arch)
  end
  return found
end

local function bill_of_materials()
  local list, relations, names, found = {}, {}, {}, packages()
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
      ("pkg:deb/debian/%s@%s?arch=%s&distro=bookworm"):format(package, escaped, arch))
    relations[#relations + 1] = { spdxElementId = "SPDXRef-kubelua", relationshipType = "DEPENDS_ON",
      relatedSpdxElement = "SPDXRef-" .. id }
  end
  write(("%s/%s.spdx.json"):format(out, name), json {
    spdxVersion = "SPDX-2.3", dataLicense = "CC0-1.0", SPDXID = "SPDXRef-DOCUMENT", name = name,
    documentNamespace = ("https://spdx.org/spdxdocs/%s-%s"):format(name, sha256(binary):sub(1, 16)),
    creationInfo = { created = stamp, creators = { "Tool: kubelua-dist" } },
    packages = list, relationships = relations,
  } .. "\n")
end

sh("cp %s %s/", deb, out)
tarball()
image()
chart()
bill_of_materials()
sh("cd %s && sha256sum -- * > %s && mv %s SHA256SUMS", out, work .. "/sums", work .. "/sums")
sh("rm -rf %s", work)
print(sh("cd %s && ls -l | awk 'NR > 1 { printf \"%%10d  %%s\\n\", $5, $9 }'", out))
