-- dist_spec.lua - `make dist` for amd64 and arm64: the same bytes each time, tarballs that need no library of
-- the machine, images without a shell whose program runs as an unprivileged user, and a chart with checked
-- values. The suite builds only for the machine's architecture; `make soak` also cross-compiles for the other
-- one, and runs the result under qemu.
-- not in check, asan, tsan: it packs the release build, which runs in every other spec

if (os.getenv "KL_VARIANT" or "release") ~= "release" then return end

local json = require "dkjson"
local kube = require "kubelua"
local process = require "support.process"
local sizes = require "support.sizes"

local function sh(fmt, ...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = process.quote(word) end
  local out, code = process.run(fmt:format(table.unpack(words)))
  assert.equal(0, code, out)
  return out
end

local DIST = "build/dist/"
local version = process.read "core/base/version.h":match 'KL_VERSION "([^"]+)"'
local machine = sh "dpkg --print-architecture":match "%S+"
local ARCHS = sizes.of { short = 1, long = 2 } == 2 and { "amd64", "arm64" } or { machine }
local function name_of(arch) return ("kubelua-%s-linux-%s"):format(version, arch) end

local function make()
  return sh("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS GZIP_LEVEL=1 make --no-print-directory dist \z
    DIST_ARCHS=%s",
    table.concat(ARCHS, " "))
end

local function unpacked(file)
  local dir = process.tmpname ".unpacked"
  sh("mkdir -p %s && tar -xf %s -C %s", dir, file, dir)
  return dir
end

-- The emulators of other architectures.
local QEMU = { amd64 = "qemu-x86_64", arm64 = "qemu-aarch64" }
-- The output of the command `fmt` in its own root directory.
local function in_root(root, fmt, ...)
  local said, code
  for _, change in ipairs { "unshare -r chroot", "chroot" } do
    said, code = process.run(("%s %s "):format(change, process.quote(root)) .. fmt:format(...))
    if code == 0 then break end
  end
  assert.equal(0, code, said)
  return said
end

local function words_for(arch, ...)
  local words = { ... }
  if arch ~= machine then table.insert(words, 1, QEMU[arch]) end
  return words
end

local function ran(words)
  for i, word in ipairs(words) do words[i] = process.quote(word) end
  local out, code = process.run(table.concat(words, " "))
  assert.equal(0, code, out)
  return out
end

-- An image in an OCI layout: its unpacked files, and its configuration.
local function image_of(layout, manifest_digest)
  local function blob(digest) return layout .. "/blobs/sha256/" .. digest:match ":(%x+)$" end
  local manifest = json.decode(process.read(blob(manifest_digest)))
  local layer = blob(manifest.layers[1].digest)
  return { config = json.decode(process.read(blob(manifest.config.digest))), layer = layer,
    root = unpacked(layer) }
end

describe("make dist", function()
  local sums
  local tarballs = {}             -- arch -> where it is unpacked
  setup(function()
    make()
    sums = process.read(DIST .. "SHA256SUMS")
    for _, arch in ipairs(ARCHS) do
      tarballs[arch] = unpacked(DIST .. name_of(arch) .. ".tar.gz") .. "/" .. name_of(arch)
    end
  end)

  it("packs the same bytes again, whatever the files' times", function()
    local packed = {}
    for i, arch in ipairs(ARCHS) do
      packed[i] = arch == machine and "build/deb" or ("build/%s/deb"):format(arch)
    end
    -- Not what the program is made of: it would be linked anew while other specs run it.
    sh("find " .. table.concat(packed, " ") .. " controllers/hello.lua docs -exec touch {} +")
    make()
    assert.equal(sums, process.read(DIST .. "SHA256SUMS"))
    -- The chart, the image of all architectures, and four files of each.
    assert.equal(2 + 4 * #ARCHS, select(2, sums:gsub("\n", "\n")))
    assert.equal("", (sh("cd %s && sha256sum --quiet -c SHA256SUMS", DIST)))
  end)

  -- Only some files, since all of them take minutes: each has messages or asserts, which could contain a
  -- path.
  it("compiles to the same bytes in another directory", function()
    local dir = process.tmpname ".elsewhere"
    local objects = { "core/base/log.o", "core/value/json.o", "bindings/state/state.o" }
    sh("mkdir -p %s/build && cp -R Makefile .ci deploy core bindings lua %s && cp build/config.mk %s/build/",
      dir, dir, dir)
    for _, object in ipairs(objects) do
      sh("cd %s && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS CCACHE_DISABLE=1 make --no-print-directory \z
        build/obj/%s",
        dir, object)
      sh("objcopy -g build/obj/%s %s/here.o && objcopy -g %s/build/obj/%s %s/there.o && cmp %s/here.o \z
        %s/there.o", object,
        dir, dir, object, dir, dir, dir)
    end
  end)

  it("has a tarball whose program needs no library of the machine", function()
    for _, arch in ipairs(ARCHS) do
      local lib = tarballs[arch] .. "/lib/kubelua"
      local used = ran(words_for(arch, lib .. "/ld.so", "--library-path", lib, "--list", lib .. "/kubelua"))
      local n = 0
      for line in used:gmatch "[^\n]+" do
        local path = line:match "=> (%S+)"
        if path then
          n = n + 1
          assert.equal(lib, path:match "^(.*)/", line)
        end
      end
      assert.is_true(n > 10, used)
    end
    local dir = tarballs[machine]
    assert.matches("^kubelua %d", sh("env -i %s/bin/kubelua --version", dir))
    -- Through a symbolic link, in its own project; also a script in its own process.
    local project = process.tmpname ".project"
    sh("mkdir -p %s && ln -s $(realpath %s)/bin/kubelua %s/kubelua", project, dir, project)
    process.write(project .. "/apart.lua", [[
      return require "kubelua".controller { name = "apart", resource = "v1/ConfigMap", isolate = true,
        reconcile = function(o, ctx) ctx:patch(o, function(d) d.data.seen = "yes" end) end }]])
    local run = process.spawn { "env", "-i", "PATH=/usr/bin:/bin", project .. "/kubelua", "dev",
      project .. "/apart.lua",
      "--control", "off", "--write-kubeconfig", project .. "/kc" }
    run:wait_for_log(30, "controller is running")
    process.write(project .. "/map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    sh("%s/kubelua apply --kubeconfig %s/kc -f %s/map.yaml", project, project, project)
    run:wait_for_log(30, 'wrote controller=apart key=default/a verb=patch')
    run:stop(30)
  end)

  it("has programs that print, check, test and serve", function()
    for _, arch in ipairs(ARCHS) do
      local lib = tarballs[arch] .. "/lib/kubelua"
      local function kubelua(...)
        return words_for(arch, lib .. "/ld.so", "--library-path", lib, "--argv0", "kubelua",
          lib .. "/kubelua", ...)
      end
      assert.matches("^kubelua " .. version:gsub("%p", "%%%0"), ran(kubelua("version")))
      assert.matches("^controller hello\n", ran(kubelua("check", "controllers/hello.lua")))
      assert.matches("passed, 0 failed", ran(kubelua("test", "examples/secret-copy")))
      local kubeconfig, map = process.tmpname ".kubeconfig", process.tmpname ".yaml"
      process.write(map, "{apiVersion: v1, kind: ConfigMap, metadata: {name: hello-" .. arch .. "}}")
      local server = process.spawn(kubelua("apiserver", "--listen", "127.0.0.1:0", "--write-kubeconfig",
        kubeconfig))
      server:wait_for_log(60, "serving http")
      ran(kubelua("apply", "--kubeconfig", kubeconfig, "-f", map))
      assert.matches("hello%-" .. arch, ran(kubelua("get", "cm", "--kubeconfig", kubeconfig)))
      assert.equal(0, server:stop(60))
    end
  end)

  it("has images of less than 40 MB, whose program runs as 65532 and finds no shell", function()
    local all = unpacked(DIST .. "kubelua-" .. version .. "-linux.oci.tar")
    local index = json.decode(process.read(all .. "/index.json"))
    assert.equal(1, #index.manifests)
    local platforms = json.decode(process.read(all .. "/blobs/sha256/"
      .. index.manifests[1].digest:match ":(%x+)$"))
    assert.equal(#ARCHS, #platforms.manifests)
    for i, arch in ipairs(ARCHS) do
      local one = unpacked(DIST .. name_of(arch) .. ".oci.tar")
      for _, layout in ipairs { all, one } do
        for line in sh("cd %s && sha256sum blobs/sha256/*", layout):gmatch "[^\n]+" do
          assert.equal(line:match "^%x+", line:match "/(%x+)$")
        end
      end
      local manifest = json.decode(process.read(one .. "/index.json")).manifests[1]
      assert.same({ architecture = arch, os = "linux" }, manifest.platform)
      assert.same(manifest.platform, platforms.manifests[i].platform)
      assert.equal(manifest.digest, platforms.manifests[i].digest)
      local image = image_of(all, manifest.digest)
      assert.equal(arch, image.config.architecture)
      assert.equal("65532:65532", image.config.config.User)
      assert.same({ "/usr/bin/kubelua" }, image.config.config.Entrypoint)
      assert.is_true(tonumber((sh("stat -c %%s %s", image.layer))) < 40e6)
      assert.is_true(tonumber(sh("du -sk %s", image.root):match "%d+") < 40000)
      assert.equal(image.config.rootfs.diff_ids[1],
        "sha256:" .. sh("gzip -dc %s | sha256sum", image.layer):match "%x+")
      assert.equal("", (sh("find %s -name sh -o -name bash -o -name busybox", image.root)))
      local said
      if arch == machine then
        said = in_root(image.root, "/usr/bin/kubelua --version")
      else
        said = ran { QEMU[arch], "-L", image.root, image.root .. "/usr/bin/kubelua", "--version" }
      end
      assert.matches("^kubelua " .. version:gsub("%p", "%%%0"), said)
    end
  end)

  -- The tools of others verify the image.
  it("has images that skopeo copies and umoci unpacks", function()
    local both = process.tmpname ".images"
    sh("skopeo copy -q --insecure-policy --all oci-archive:%s dir:%s",
      DIST .. "kubelua-" .. version .. "-linux.oci.tar",
      both)
    local index = json.decode(process.read(both .. "/manifest.json"))
    assert.equal(#ARCHS, #index.manifests)
    for i, arch in ipairs(ARCHS) do
      assert.equal(arch, index.manifests[i].platform.architecture)
      local file = DIST .. name_of(arch) .. ".oci.tar"
      local seen = json.decode(sh("skopeo inspect oci-archive:%s", file))
      assert.same({ arch, "linux", index.manifests[i].digest, version },
        { seen.Architecture, seen.Os, seen.Digest, seen.Labels["org.opencontainers.image.version"] })
      local layout, bundle = unpacked(file), process.tmpname ".bundle"
      sh("umoci unpack --rootless --image %s %s", layout .. ":" .. version, bundle)
      local process_of = json.decode(process.read(bundle .. "/config.json")).process
      assert.same({ 65532, 65532, "/usr/bin/kubelua" },
        { process_of.user.uid, process_of.user.gid, process_of.args[1] })
      if arch == machine then
        process.write(bundle .. "/rootfs/hello.lua", process.read "controllers/hello.lua")
        process.write(bundle .. "/rootfs/hello_test.lua", process.read "controllers/hello_test.lua")
        assert.matches("^controller hello\n", in_root(bundle .. "/rootfs",
          "/usr/bin/kubelua check /hello.lua"))
        -- Its client loads libcurl.
        assert.matches("passed", in_root(bundle .. "/rootfs", "/usr/bin/kubelua test /hello_test.lua"))
      end
    end
  end)

  it("lists its contents", function()
    for _, arch in ipairs(ARCHS) do
      local bill = json.decode(process.read(DIST .. name_of(arch) .. ".spdx.json"))
      assert.equal("SPDX-2.3", bill.spdxVersion)
      local have = {}
      for _, p in ipairs(bill.packages) do have[p.name] = p.versionInfo end
      assert.equal(version, have.kubelua)
      local deb = ("%skubelua_%s_%s.deb"):format(DIST, version, arch)
      assert.equal(arch .. "\n", (sh("dpkg-deb -f %s Architecture", deb)))
      for package in (", " .. sh("dpkg-deb -f %s Depends", deb)):gmatch ", ([^%s,]+)" do
        if package ~= "ca-certificates" then assert.is_string(have[package], package) end
      end
      assert.equal(#bill.packages, #bill.relationships)
    end
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
      assert.truthy(key == "global"
        or process.read(chart .. "/values.yaml"):find("\n" .. key .. ":", 1, true), key)
    end
    assert.is_string(process.read(chart .. "/templates/NOTES.txt"))
  end)
end)

describe("deploy/release.sh", function()
  it("prints its plan, without the network", function()
    local out, code = process.run "deploy/release.sh"
    assert.equal(0, code, out)
    for _, said in ipairs { "+ make dist", "+ git tag -s v" .. version, "+ skopeo copy --all oci-archive:",
      "+ helm push",
      "+ gh release create", "nothing of this was done" } do
      assert.truthy(out:find(said, 1, true), said .. " is not in\n" .. out)
    end
    assert.is_nil(out:find("luarocks: ", 1, true))
    out, code = process.run "deploy/release.sh --now"
    assert.equal(2, code, out)
  end)

  it("does the rest on a commit that has the tag, and refuses a tag elsewhere", function()
    local dir = process.tmpname ".tagged"
    sh("git clone -q --no-tags . %s && cp deploy/release.sh %s/deploy/", dir, dir)
    local function steps(...)
      sh("git -C %s -c user.name=a -c user.email=a@b " .. ..., dir)
      return process.run(process.quote(dir) .. "/deploy/release.sh 2>&1")
    end
    local out = steps("tag v" .. version)
    assert.is_nil(out:find("git tag", 1, true) or out:find("git push", 1, true), out)
    assert.truthy(out:find("+ make dist", 1, true) and out:find("+ gh release create", 1, true), out)
    out = steps "commit -q --allow-empty -m more"
    assert.matches("the tag v[%d.]+ is there already, on another commit", out)
  end)

  it("is what a pushed tag runs, with all that it asks for", function()
    local text = process.read ".github/workflows/release.yaml"
    local job = kube.yaml(text, "release.yaml")[1].jobs.release
    assert.matches('\non:\n  push:\n    tags: %["v%*"%]\n', text)
    assert.equal("deploy/release.sh --do", job.steps[#job.steps].run)
    for _, name in ipairs { "REGISTRY", "LUAROCKS_API_KEY" } do
      assert.is_string(job.env[name])
      assert.truthy(process.read "deploy/release.sh":find("${" .. name, 1, true), name)
    end
  end)

  it("writes the notes of one version, and a rockspec that finds the sources", function()
    local dir, date = process.tmpname ".released",
      process.read "core/base/version.h":match 'KL_VERSION_DATE "([^"]+)"'
    sh("mkdir -p %s/bin && git clone -q --no-tags . %s/tree && cp deploy/release.sh %s/tree/deploy/", dir,
      dir, dir)
    local log = dir .. "/tree/CHANGELOG.md"
    process.write(log, (process.read(log):gsub("\n## [^\n]*", ("\n## %s - %s"):format(version, date), 1))
      .. "\n## 0.0.9 - 2026-01-01\n\nold\n")
    sh("cd %s/tree && git -c user.name=a -c user.email=a@b commit -qam ready && git tag v" .. version, dir)
    for _, name in ipairs { "make", "skopeo", "helm", "gh", "luarocks" } do
      process.write(dir .. "/bin/" .. name, ('#!/bin/sh\necho %s "$@" >>%s/did\n'):format(name, dir))
    end
    sh("chmod +x %s/bin/*", dir)
    local out, code = process.run(
      ("cd %s/tree && PATH=%s/bin:$PATH REGISTRY=ghcr.io/Ada GITHUB_REPOSITORY=Ada/kubelua \z
      LUAROCKS_API_KEY=k deploy/release.sh --do 2>&1"):format(dir, dir))
    assert.equal(0, code, out)
    local did = process.read(dir .. "/did")
    assert.truthy(did:find("docker://ghcr.io/ada/kubelua:" .. version, 1, true), did)
    assert.truthy(did:find("luarocks upload --api-key=k build/rock/kubelua-" .. version .. "-1.rockspec", 1,
      true), did)
    local notes = process.read(dir .. "/tree/build/notes.md")
    assert.matches("^## " .. version:gsub("%.", "%%.") .. " %- ", notes)
    assert.is_nil(notes:find("0.0.9", 1, true))
    assert.truthy(process.read(("%s/tree/build/rock/kubelua-%s-1.rockspec"):format(dir, version)):find(
      ('url = "git+https://github.com/Ada/kubelua.git", tag = "v%s"'):format(version), 1, true))
  end)

  it("does nothing while versions disagree", function()
    if not process.read "CHANGELOG.md":find("## " .. version .. " - unreleased", 1, true) then return end
    local out, code = process.run "env -u REGISTRY -u GITHUB_REPOSITORY deploy/release.sh --do"
    assert.equal(1, code, out)
    assert.matches("CHANGELOG.md does not say", out)
    assert.is_nil(out:find("+ make dist", 1, true))
  end)
end)
