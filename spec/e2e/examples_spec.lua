-- examples_spec.lua - the examples: each passes its check and its tests, and does what its README says, all
-- in one `kubelua run`, on both API servers.
-- not in asan, tsan: the examples are the subject; what they run, other specs run

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local GROUP = "examples.kubelua.dev/v1/"

local NAMES = {}
for path in process.run "ls -d examples/*/":gmatch "examples/([%w-]+)/" do NAMES[#NAMES + 1] = path end

local function script(name) return ("examples/%s/%s.lua"):format(name, name) end
local function exists(path) return process.read(path) ~= nil end

describe("the gallery", function()
  it("has at least fifteen complete examples", function()
    assert.is_true(#NAMES >= 15)
    local index = process.read "examples/README.md"
    for _, name in ipairs(NAMES) do
      assert.is_true(exists(script(name)), name)
      assert.is_true(exists(("examples/%s/%s_test.lua"):format(name, name)), name)
      assert.is_true(exists(("examples/%s/README.md"):format(name)), name)
      assert.is_true(exists(("examples/%s/sample.yaml"):format(name)), name)
      assert.is_truthy(index:find(("](%s/)"):format(name), 1, true), name .. " is not in examples/README.md")
    end
  end)

  it("states its size correctly", function()
    local index = process.read "examples/README.md"
    for _, name in ipairs(NAMES) do
      local n = 0
      for line in process.read(script(name)):gmatch "[^\n]+" do
        if not line:find "^%s*%-%-" and line:find "%S" then n = n + 1 end
      end
      local said = index:match("%]%(" .. name:gsub("%-", "%%-") .. "/%) | [^|]+ | (%d+) |")
      assert.equal(n, tonumber(said), name)
    end
  end)

  for _, name in ipairs(NAMES) do
    it("checks and passes its tests: " .. name, function()
      local out, code = process.run(("%s check %s && %s test examples/%s"):format(KUBELUA, script(name),
        KUBELUA, name))
      assert.equal(0, code, out)
    end)
  end
end)

-- The visible effect of each example on a cluster after its sample was applied: true, or the current state.
local SEEN = {
  ["configmap-generator"] = function(c)
    return c:get("v1/ConfigMap", "default", "motd")("data.content") == "good morning"
  end,
  ["volume-claim"] = function(c) return c:get("v1/PersistentVolumeClaim", "default", "scratch") ~= nil end,
  catset = function(c) return c:get("v1/Pod", "default", "cats-0") ~= nil end,
  ["cron-job"] = function(c)
    return c:get(GROUP .. "CronJob", "default", "hourly")("status.active") ~= nil
  end,
  memcached = function(c)
    local cache = c:get(GROUP .. "Memcached", "default", "sessions")
    return kube.find_condition(cache, "Available") ~= nil
      and c:get("apps/v1/Deployment", "default", "sessions").spec.replicas == 3
  end,
  ["secret-copy"] = function(c) return c:get("v1/Secret", "team-a", "registry").data.token == "YWJj" end,
  ["namespace-defaults"] = function(c)
    return c:get("v1/ResourceQuota", "shop", "defaults").spec.hard["requests.cpu"] == "4"
  end,
  ["sidecar-webhook"] = function(c) return #c:get("v1/Pod", "default", "app").spec.containers == 2 end,
  ["deny-latest-webhook"] = function(c)
    local made, err = kube.try(c.create, c, { kind = "v1/Pod", name = "loose", namespace = "default",
      spec = { containers = { { name = "a", image = "app:latest" } } } })
    return not made and err.message:find "has no version" ~= nil
  end,
  ["pod-cleanup"] = function(c)
    local pod = c:get("v1/Pod", "default", "done")
    if pod and pod("status.phase") ~= "Succeeded" then c:patch_status(pod, { phase = "Succeeded" }) end
    return pod == nil or pod("metadata.deletionTimestamp") ~= nil
  end,
  ["dns-record"] = function(c) -- the service does not exist: to be seen is that its end will be waited for
    return #kube.copy(c:get(GROUP .. "DnsRecord", "default", "www")("metadata.finalizers") or {}) == 1
  end,
  autoscaler = function(c) return c:get("apps/v1/Deployment", "default", "workers").spec.replicas == 3 end,
  ["cert-approver"] = function(c)
    local csr = c:get("certificates.k8s.io/v1/CertificateSigningRequest", "jane")
    return csr("status.conditions[1].type") == "Approved"
  end,
  ["cost-report"] = function(c)
    return #(c:get(GROUP .. "CostReport", "all")("status.namespaces") or {}) > 0
  end,
  janitor = function(c) return c:get("v1/ConfigMap", "default", "old") == nil end,
}

servers.each(function(server_name, start)
  describe("the gallery on " .. server_name, function()
    local server, client, run
    lazy_setup(function()
      local crds, more = {}, {}
      for _, name in ipairs(NAMES) do
        local crd = ("examples/%s/crd.yaml"):format(name)
        if exists(crd) then crds[#crds + 1] = crd end
        more[#more + 1] = script(name)
      end
      -- its webhooks see every pod, so the server is its own
      server = start { empty = true, crds = crds }
      client = controller.client(server)
      for _, word in ipairs { "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto", "--control",
        "off", "--param", "dns-record.token=change-me" } do
        more[#more + 1] = word
      end
      run = controller.start(server, table.remove(more, 1), table.unpack(more))
      -- a webhook that is not there yet would let its sample pass
      wait.until_true(60, "webhooks to be known", function()
        return client:get("admissionregistration.k8s.io/v1/MutatingWebhookConfiguration", "sidecar") ~= nil
          and client:get("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
            "deny-latest") ~= nil
      end)
      wait.until_true(60, "webhooks to answer", function() return SEEN["deny-latest-webhook"](client) end)
      for _, name in ipairs(NAMES) do
        wait.until_true(60, "the sample of " .. name, function()
          local _, code = server:kubectl("apply", "-f", ("examples/%s/sample.yaml"):format(name))
          return code == 0
        end)
      end
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    for _, name in ipairs(NAMES) do
      it(name .. " does what it is for", function()
        wait.until_true(60, name, function()
          local ok, seen = pcall(assert(SEEN[name], "nobody knows what to look for"), client)
          if not ok then error(("%s\n%s"):format(tostring(seen), run:log()), 0) end
          return seen
        end)
      end)
    end
  end)
end)
