--- dist_spec.lua - what `make dist` makes: the same bytes each time, a tarball that needs no library of the machine, an
--- image without a shell whose program runs as nobody in particular, a chart whose values are checked.
-- not in check, asan, tsan: it packs the release build, which runs in every other spec

if (os.getenv "KL_VARIANT" or "release") ~= "release" then return end

local json = require "dkjson"
local kube = require "kubelua"
local process = require "support.process"

local function sh(fmt, ...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = process.quote(word) end
  local out, code = process.run(fmt:format(table.unpack(words)))
  assert.equal(0, code, out)
  return out
end

local DIST = "build/dist/"
local version = process.read "core/base/version.h":match 'KL_VERSION "([^"]+)"'
local arch = sh "dpkg --print-architecture":match "%S+"
local name = ("kubelua-%s-linux-%s"):format(version, arch)

local function make() return sh "env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory dist" end

local function unpacked(file)
  local dir = process.tmpname ".unpacked"
  sh("mkdir -p %s && tar -xf %s -C %s", dir, file, dir)
  return dir
end

describe("make dist", function()
  local sums, layout, config, root, archive
  setup(function()
    make()
    sums = process.read(DIST .. "SHA256SUMS")
    layout = unpacked(DIST .. name .. ".oci.tar")
    local function blob(digest) return layout .. "/blobs/sha256/" .. digest:match ":(%x+)$" end
    local index = json.decode(process.read(layout .. "/index.json"))
    local manifest = json.decode(process.read(blob(index.manifests[1].digest)))
    config = json.decode(process.read(blob(manifest.config.digest)))
    archive = blob(manifest.layers[1].digest)
    root = unpacked(archive)
  end)

  it("makes the same bytes again", function()
    sh "find build/deb controllers docs -exec touch {} +"
    make()
    assert.equal(sums, process.read(DIST .. "SHA256SUMS"))
    assert.equal(5, select(2, sums:gsub("\n", "\n")))
    assert.equal("", (sh("cd %s && sha256sum --quiet -c SHA256SUMS", DIST)))
  end)

  it("has a tarball whose program needs no library of the machine", function()
    local dir = unpacked(DIST .. name .. ".tar.gz") .. "/" .. name
    assert.matches("^kubelua %d", sh("env -i %s/bin/kubelua --version", dir))
    local used = sh("%s/lib/kubelua/ld.so --library-path %s/lib/kubelua --list %s/lib/kubelua/kubelua", dir, dir, dir)
    for line in used:gmatch "[^\n]+" do
      local path = line:match "=> (%S+)"
      if path then assert.equal(dir:match "[^/]+$", path:match("/(kubelua%-[^/]+)/lib/kubelua/"), line) end
    end
    -- By a link on the way, in a project of its own; a script in a process of its own, too.
    local project = process.tmpname ".project"
    sh("mkdir -p %s && ln -s $(realpath %s)/bin/kubelua %s/kubelua", project, dir, project)
    process.write(project .. "/apart.lua", [[
      return require "kubelua".controller { name = "apart", resource = "v1/ConfigMap", isolate = true,
        reconcile = function(o, ctx) ctx:patch(o, function(d) d.data.seen = "yes" end) end }]])
    local run = process.spawn { "env", "-i", "PATH=/usr/bin:/bin", project .. "/kubelua", "dev", project .. "/apart.lua",
      "--control", "off", "--write-kubeconfig", project .. "/kc" }
    run:wait_for_log(30, "controller is running")
    process.write(project .. "/map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    sh("%s/kubelua apply --kubeconfig %s/kc -f %s/map.yaml", project, project, project)
    run:wait_for_log(30, 'wrote controller=apart key=default/a verb=patch')
    run:stop(30)
  end)

  it("has an image of less than 40 MB, whose program runs as 65532 and finds no shell", function()
    assert.equal("65532:65532", config.config.User)
    assert.same({ "/usr/bin/kubelua" }, config.config.Entrypoint)
    assert.is_true(tonumber((sh("stat -c %%s %s", archive))) < 40e6)
    assert.is_true(tonumber(sh("du -sk %s", root):match "%d+") < 40000)
    for line in sh("cd %s && sha256sum blobs/sha256/*", layout):gmatch "[^\n]+" do
      assert.equal(line:match "^%x+", line:match "/(%x+)$")
    end
    assert.equal(config.rootfs.diff_ids[1], "sha256:" .. sh("gzip -dc %s | sha256sum", archive):match "%x+")
    assert.equal("", (sh("find %s -name sh -o -name bash -o -name busybox", root)))
    local out, code = process.run(("unshare -r chroot %s /usr/bin/kubelua --version"):format(process.quote(root)))
    if code ~= 0 then out, code = process.run(("chroot %s /usr/bin/kubelua --version"):format(process.quote(root))) end
    assert.equal(0, code, out)
    assert.matches("^kubelua " .. version:gsub("%p", "%%%0"), out)
  end)

  it("says what is in there", function()
    local bill = json.decode(process.read(DIST .. name .. ".spdx.json"))
    assert.equal("SPDX-2.3", bill.spdxVersion)
    local have = {}
    for _, p in ipairs(bill.packages) do have[p.name] = p.versionInfo end
    assert.equal(version, have.kubelua)
    local depends = sh("dpkg-deb -f %s%s Depends", DIST, ("kubelua_%s_%s.deb"):format(version, arch))
    for package in (", " .. depends):gmatch ", ([^%s,]+)" do
      if package ~= "ca-certificates" then assert.is_string(have[package], package) end
    end
    assert.equal(#bill.packages, #bill.relationships)
  end)

  it("has the chart, with a schema for each of its values", function()
    local chart = unpacked(DIST .. "kubelua-" .. version .. ".tgz") .. "/kubelua"
    local schema = json.decode(process.read(chart .. "/values.schema.json"))
    local function check(values, s, where)
      for key, value in pairs(values) do
        local known = s.properties and s.properties[key]
        assert.truthy(known, where .. key .. " has no rule in values.schema.json")
        if type(value) ~= "string" and kube.is_view(value) and known.properties then
          check(value, known, where .. key .. ".")
        end
      end
    end
    check(kube.yaml(process.read(chart .. "/values.yaml"), "values.yaml")[1], schema, "")
    for key in pairs(schema.properties) do
      assert.truthy(key == "global" or process.read(chart .. "/values.yaml"):find("\n" .. key .. ":", 1, true), key)
    end
    assert.is_string(process.read(chart .. "/templates/NOTES.txt"))
  end)
end)

describe("deploy/release.sh", function()
  it("says what it would do, without the network", function()
    local out, code = process.run "deploy/release.sh"
    assert.equal(0, code, out)
    for _, said in ipairs { "+ make dist", "+ git tag -s v" .. version, "+ skopeo copy oci-archive:", "+ helm push",
      "+ gh release create", "nothing of this was done" } do
      assert.truthy(out:find(said, 1, true), said .. " is not in\n" .. out)
    end
    assert.is_nil(out:find("luarocks: ", 1, true))
    out, code = process.run "deploy/release.sh --now"
    assert.equal(2, code, out)
  end)

  it("does nothing as long as something does not agree", function()
    if not process.read "CHANGELOG.md":find("## " .. version .. " - unreleased", 1, true) then return end
    local out, code = process.run "env -u REGISTRY -u GITHUB_REPOSITORY deploy/release.sh --do"
    assert.equal(1, code, out)
    assert.matches("CHANGELOG.md does not say", out)
    assert.is_nil(out:find("+ make dist", 1, true))
  end)
end)
