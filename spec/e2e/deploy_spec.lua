-- deploy_spec.lua - the manifests of `kubelua rbac -o manifests`: a real API server accepts them, their
-- rights are sufficient, and the image has everything that the program needs.
-- not in asan, tsan: the manifests are the subject

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local YAML = process.tmpname ".yaml"
local SILENT, RESERVE = "edge-02", "reserve-01"
local BATCH_CPU = "kubernetes.io/batch-cpu"

process.write(YAML, (process.run(KUBELUA
  .. " rbac controllers/koordinator/noderesource.lua -n kubelua-system \z
  --crds controllers/koordinator/crds -o manifests")))
local manifests = {}
for _, o in ipairs(kube.yaml(process.read(YAML), YAML)) do manifests[o.kind] = o end

servers.only_real(function(name, start)
  describe("what `rbac -o manifests` prints at " .. name, function()
    local server, client, agents
    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" },
        load = { "controllers/demo" } }
      client = controller.client(server)
      agents = controller.start(server, "controllers/demo/demo.lua")
    end)
    lazy_teardown(function()
      if agents then controller.finish(agents) end
      if server then server:stop() end
    end)

    it("is accepted", function()
      server:must_kubectl("create", "namespace", manifests.Namespace.metadata.name, "--save-config")
      local out = server:must_kubectl("apply", "--dry-run=server", "--validate=strict", "-f", YAML)
      assert.equal(9, select(2, out:gsub("%(server dry run%)", "")), out)
      assert.is_nil(out:find("Warning", 1, true), out)
    end)

    it("has only the script's objects, whatever its controller, files and params are called", function()
      local dir = process.tmpname "\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: injected\n---\n"
      local param = "a\u{2028}{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\z
        \"metadata\":{\"name\":\"injected\"}}\u{2028}---\u{2028}"
      process.run("mkdir -p " .. process.quote(dir))
      process.write(dir .. "/1e3.lua", ([[
        local kube = require "kubelua"
        return kube.controller { name = "1e3", resource = "v1/ConfigMap",
          params = { [%q] = { type = "string" }, word = "one\u{2028}kind: Secret",
            yes = "\n---\nkind: Secret" },
          reconcile = function(o, ctx) ctx:patch(o, function(m) m.data = {} end) end }]]):format(param))
      local file = process.tmpname ".yaml"
      process.write(file, (process.run(("%s rbac %s -o manifests"):format(KUBELUA,
        process.quote(dir .. "/1e3.lua")))))
      local out = server:must_kubectl("create", "--dry-run=server", "--validate=strict", "-o", "name", "-f",
        file)
      local kinds = {}
      for kind, called in out:gmatch "(%S+)/(%S+)" do kinds[#kinds + 1] = kind .. " " .. called end
      table.sort(kinds)
      assert.same({ "clusterrole.rbac.authorization.k8s.io 1e3",
        "clusterrolebinding.rbac.authorization.k8s.io 1e3", "configmap 1e3-params", "configmap 1e3-scripts",
        "deployment.apps 1e3", "role.rbac.authorization.k8s.io 1e3",
        "rolebinding.rbac.authorization.k8s.io 1e3", "serviceaccount 1e3" }, kinds)
      assert.truthy(process.read(file):find("# Needed: a\\u2028{", 1, true))
    end)

    it("works with the PodMonitor, if the kind exists", function()
      server:must_kubectl("apply", "-f", "spec/fixtures/prometheus/podmonitors.yaml")
      server:wait_established("crd/podmonitors.monitoring.coreos.com")
      server:must_kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "deploy/podmonitor.yaml")
      local labels = manifests.Deployment.spec.template.metadata.labels
      local monitor = kube.yaml(process.read "deploy/podmonitor.yaml")[1]
      for key, value in pairs(monitor.spec.selector.matchLabels) do assert.equal(value, labels[key]) end
    end)

    it("gives sufficient rights: the policy converges without a 403", function()
      server:must_kubectl("apply", "-f", YAML)
      -- The spec's user replaces the service account, since no controller here creates its token.
      local role, cluster_role = manifests.Role.metadata, manifests.ClusterRole.metadata.name
      server:must_kubectl("create", "clusterrolebinding", "spec-nobody", "--clusterrole", cluster_role,
        "--user", "nobody")
      server:must_kubectl("create", "rolebinding", "spec-nobody", "-n", role.namespace, "--role", role.name,
        "--user", "nobody")

      -- The Deployment's command, with other paths.
      local words = { KUBELUA, name = "kubelua run as nobody" }
      for _, arg in ipairs(manifests.Deployment.spec.template.spec.containers[1].args) do
        arg = arg:gsub("^/controllers/", "controllers/koordinator/"):gsub("0%.0%.0%.0:%d+", "127.0.0.1:0")
        words[#words + 1] = arg
      end
      words[#words + 1] = "--kubeconfig"
      words[#words + 1] = server:kubeconfig_for(server.tokens.nobody)
      local p = process.spawn(words)
      local offering
      wait.until_true(90, "all nodes but two offer resources", function()
        offering = {}
        local nodes = 0
        for node in client:each "v1/Node" do
          nodes = nodes + 1
          if node("status.allocatable", BATCH_CPU) then offering[node.metadata.name] = true end
        end
        local n = 0
        for _ in pairs(offering) do n = n + 1 end
        if nodes == 0 or n ~= nodes - 2 then
          error(("%d of %d; the log:\n%s"):format(n, nodes, p:log()), 0)
        end
        return true
      end)
      assert.is_nil(offering[SILENT])
      assert.is_nil(offering[RESERVE])
      wait.until_true(30, "the ratio in an annotation", function()
        return client:get("v1/Node", "turbo-01")("metadata.annotations",
          "node.koordinator.sh/cpu-normalization-ratio") == "1.50"
      end)
      wait.until_true(30, "a zone with batch resources", function()
        for topology in client:each "topology.node.k8s.io/v1alpha1/NodeResourceTopology" do
          for _, zone in ipairs(topology.zones) do
            for _, resource in ipairs(zone.resources) do
              if resource.name == BATCH_CPU then return true end
            end
          end
        end
      end)

      local health = assert(p:log():match "serving health probes address=(%S+)")
      local out, code = process.run(("curl -fsS --max-time 10 'http://%s/readyz' 'http://%s/healthz'"):format(
        health, health))
      assert.equal(0, code, out)
      assert.equal(0, p:stop(45), p:log())
      local log = p:log()
      for _, refusal in ipairs { "[ =(]403%f[%D]", "orbidden", "cannot list", "cannot patch",
        "not allowed" } do
        assert.is_nil(log:find(refusal), log)
      end
      local lease = client:get("coordination.k8s.io/v1/Lease", role.namespace, "noderesource")
      assert.equal("", lease("spec.holderIdentity") or "")
    end)
  end)
end)

describe("deploy/Dockerfile", function()
  local text = process.read "deploy/Dockerfile":gsub("\\\n", " ")
  local build, runtime = text:match "(FROM debian:bookworm%-slim AS build\n.-)\n(FROM .*)$"
  assert(build and runtime, "two stages, the first one called build")

  local function packages(stage)
    local set = {}
    for word in stage:match "apt%-get install %-y %-%-no%-install%-recommends([^&\n]*)":gmatch "%S+" do
      set[word] = true
    end
    return set
  end

  it("installs the build's packages", function()
    local have = packages(build)
    for package in process.read ".ci/deps":gmatch "\n%s*build (%S+)" do
      assert.is_true(have[package], package .. " is missing")
    end
  end)

  it("copies the build's files", function()
    local dir = process.tmpname ".image"
    process.run("mkdir -p " .. process.quote(dir))
    for what in text:gmatch "\nCOPY ([%w%.]+) " do
      local out, code = process.run(("cp -R %s %s/"):format(process.quote(what), process.quote(dir)))
      assert.equal(0, code, out)
    end
    local out,
      code = process.run(("cd %s && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u VARIANT make -n \z
      build/kubelua"):format(process.quote(dir)))
    assert.equal(0, code, out)
    assert.truthy(out:find("-o build/kubelua", 1, true), out)
  end)

  it("installs the packages of every library that the program is linked with", function()
    local have = packages(runtime)
    local linked = process.run("ldd " .. KUBELUA)
    local needed, code = process.run("objdump -p " .. KUBELUA)
    assert.equal(0, code, needed)
    local n = 0
    for library in needed:gmatch "NEEDED%s+(%S+)" do
      local path = linked:match(library:gsub("%p", "%%%0") .. " => (%S+)")
      -- dpkg may know a file below /usr/lib as one below /lib.
      local file = path and process.run("readlink -f " .. path):match "%S+":gsub("^/usr", "")
      local said = file and "\n" .. process.run(("dpkg -S %s /usr%s"):format(file, file)) or ""
      local owner = said:gsub("\ndpkg%-query:[^\n]*", ""):match "\n([%w.+-]+):[^\n]* /" or ""
      -- The C library is in the base image; a sanitizer's is in no image.
      if path and owner ~= "" and owner ~= "libc6" and owner ~= "libgcc-s1"
        and not owner:find "^lib%a+san%d" then
        n = n + 1
        assert.is_true(have[owner], owner .. " is missing: it has " .. library)
      end
    end
    assert.is_true(n >= 3, "libraries outside of libc were found")
  end)
end)
