-- koordinator_quota_spec.lua - the quota policies in `kubelua run` on both API servers, with the real CRDs:
-- they converge, become quiet, accept new logic, and need no more rights than `kubelua rbac` prints.
-- not in tsan: policies are Lua; the threads under them are the scheduler's, too

local controller = require "support.controller"
local kube = require "kubelua"
local policies = require "support.policies"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local QUOTA, POD, NODE = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", "v1/Pod", "v1/Node"
local PROFILE = "quota.koordinator.sh/v1alpha1/ElasticQuotaProfile"
local PREFIX, NS = "quota.scheduling.koordinator.sh/", "koordinator-system"

local function quota(name, parent, min, max, more)
  local labels = { [PREFIX .. "parent"] = parent }
  for key, value in pairs(more or {}) do labels[PREFIX .. key] = value end
  return { kind = QUOTA, namespace = NS, name = name, labels = labels,
    spec = { min = { cpu = min }, max = { cpu = max } } }
end

local function pod(name, team, cpu)
  return { kind = POD, namespace = "default", name = name, labels = { [PREFIX .. "name"] = team },
    spec = { containers = { { name = "c", image = "none", resources = { requests = { cpu = cpu } } } } } }
end

local function add_node(client, name, cpu, labels)
  local node = client:create { kind = NODE, name = name, labels = labels }
  client:patch_status(node, { allocatable = { cpu = cpu, memory = "8Gi" },
    capacity = { cpu = cpu, memory = "8Gi" } })
end

servers.each(function(name, start)
  describe("elastic quotas on " .. name, function()
    local server, client, dir, run

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      dir = policies.copy()
      client:create { kind = "v1/Namespace", name = NS }
      add_node(client, "n1", "10", { zone = "a" })
    end)
    lazy_teardown(function() if server then server:stop() end end)
    after_each(function()
      if run then controller.finish(run) end
      run = nil
    end)

    local function begin(script, ...)
      run = policies.start(server, dir .. "/" .. script, ...)
    end

    local function carried(quota_name, what)
      local text = client:get(QUOTA, NS, quota_name)("metadata.annotations", PREFIX .. what)
      return text and kube.decode(text).cpu
    end

    local function await(quota_name, what, value)
      wait.until_true(policies.PATIENCE, ("%s of %s is %s"):format(what, quota_name, value), function()
        local got = carried(quota_name, what)
        if got ~= value then error("it is " .. tostring(got) .. "\n" .. run:log(), 0) end
        return true
      end)
    end

    -- An irrelevant change wakes the policy, too.
    local function rests(controller_name, kinds)
      policies.rests(run, client, controller_name, kinds, function(text)
        client:patch(client:get(NODE, "n1"), { metadata = { labels = { looked = text } } })
      end)
    end

    it("divide a node among teams, and settle", function()
      client:create(quota("org", "koordinator-root-quota", "10", "10", { ["is-parent"] = "true" }))
      client:create(quota("a", "org", "6", "10"))
      client:create(quota("b", "org", "4", "10"))
      client:create(pod("a1", "a", "9"))
      begin "elasticquota.lua"
      await("a", "runtime", "9")
      await("b", "runtime", nil)
      client:create(pod("b1", "b", "4"))
      await("a", "runtime", "6")
      await("b", "runtime", "4")
      await("org", "child-request", "13")
      await("koordinator-root-quota", "request", "10")
      rests("elasticquota", { QUOTA })
    end)

    it("take a reload, and continue from the current state", function()
      begin "elasticquota.lua"
      run:wait_for_log(policies.PATIENCE, "serving metrics")
      policies.save(run, dir .. "/elasticquota/share.lua")
      client:delete(POD, "default", "b1")
      await("a", "runtime", "9")
      rests("elasticquota", { QUOTA })
    end)

    it("create the root quota of a profile, resize it with its nodes, and settle", function()
      client:create { kind = PROFILE, namespace = NS, name = "pool", spec = { quotaName = "pool-root",
        nodeSelector = { matchLabels = { zone = "a" } } } }
      begin "quotaprofile.lua"
      local function await_min(cpu)
        wait.until_true(policies.PATIENCE, "the root quota has " .. cpu, function()
          local root = client:get(QUOTA, NS, "pool-root")
          return root and root.spec.min.cpu == cpu
        end)
      end
      await_min "10"
      add_node(client, "n2", "6", { zone = "a" })
      await_min "16"
      rests("quotaprofile", { QUOTA, PROFILE })
      controller.finish(run)
      begin "quotaprofile.lua"
      run:wait_for_log(policies.PATIENCE, "serving metrics")
      wait.until_true(policies.PATIENCE, "it runs", function()
        return policies.runs(run, "quotaprofile") > 0
      end)
      rests("quotaprofile", { QUOTA, PROFILE })
    end)

    if name:find "kube%-apiserver" then
      it("need the rights that `kubelua rbac` prints and no more", function()
        local role,
          code = process.run(("%s rbac --crds %s/crds %s/elasticquota.lua 2>/dev/null"):format(
          KUBELUA,
          process.quote(dir), process.quote(dir)))
        assert.equal(0, code, role)
        server:must_kubectl("apply", "-f", process.write(process.tmpname ".yaml", role))
        server:must_kubectl("create", "clusterrolebinding", "quota-nobody", "--clusterrole", "elasticquota",
          "--user", "nobody")
        run = controller.start({ kubeconfig = server:kubeconfig_for(server.tokens.nobody) },
          dir .. "/elasticquota.lua")
        client:create(quota("alone", "koordinator-root-quota", "1", "2"))
        client:create(pod("alone1", "alone", "2"))
        await("alone", "child-request", "2")
        assert.is_nil(run:log():find("orbidden", 1, true), run:log())
      end)
    end
  end)

  describe("quota webhooks on " .. name, function()
    local server, client, run

    lazy_setup(function()
      server = start { empty = true, crds = { "controllers/koordinator/crds" } }
      client = controller.client(server)
      client:create { kind = "v1/Namespace", name = NS }
      run = controller.start(server, policies.copy() .. "/quotawebhooks.lua", "--webhook-listen",
        "127.0.0.1:0",
        "--webhook-url", "auto")
      -- An invalid quota is rejected as soon as the server knows the webhook.
      wait.until_true(policies.PATIENCE, "the webhooks are known", function()
        local ok, why = kube.try(client.create, client, quota("early", "nowhere", "1", "2"),
          { dry_run = true })
        if ok then error("it was let in\n" .. run:log(), 0) end
        local both = client:list "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration"
        return tostring(why):find("does not exist", 1, true) and #both == 2
      end)
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    local function refused(text, fn, ...)
      local ok, why = kube.try(fn, client, ...)
      assert.is_nil(ok)
      assert.matches(text, tostring(why), 1, true)
    end

    it("fill in defaults, and keep the tree consistent", function()
      client:create(quota("org", nil, "10", "10", { ["is-parent"] = "true" }))
      local org = client:get(QUOTA, NS, "org")
      assert.equal("koordinator-root-quota", org.metadata.labels[PREFIX .. "parent"])
      assert.equal('{"cpu":"10"}', org.metadata.annotations[PREFIX .. "shared-weight"])
      client:create(quota("a", "org", "6", "10"))
      refused("above its min of cpu:10", client.create, quota("b", "org", "5", "10"))
      refused("has 1 child quotas", client.delete, QUOTA, NS, "org")
      refused("minima of its children", client.patch, org, { spec = { min = { cpu = "5" } } })
      client:create(quota("b", "org", "4", "10"))
      client:delete(QUOTA, NS, "b")
    end)

    it("keep pods out of a parent quota, and keep a quota with pods", function()
      local function await_refusal()
        local ok, why = kube.try(client.create, client, pod("p", "org", "1"), { dry_run = true })
        return not ok and tostring(why):find("is a parent of quotas", 1, true)
      end
      wait.until_true(policies.PATIENCE, "the cache knows the quota", await_refusal)
      client:create(pod("a1", "a", "1"))
      refused("has 1 child pods: a1", client.delete, QUOTA, NS, "a")
      refused("must not change", client.patch, client:get(POD, "default", "a1"),
        { metadata = { labels = { [PREFIX .. "preemptible"] = "false" } } })
    end)

    it("send the pods of a tree to the nodes of its profile", function()
      client:create { kind = PROFILE, namespace = NS, name = "pool", labels = { [PREFIX .. "tree-id"] = "t" },
        spec = { quotaName = "pool-root", nodeSelector = { matchLabels = { zone = "a" } } } }
      client:create(quota("pool-root", nil, "1", "1", { ["tree-id"] = "t", ["is-root"] = "true" }))
      local made
      wait.until_true(policies.PATIENCE, "the caches know tree and profile", function()
        made = client:create(pod("in-tree", "pool-root", "1"), { dry_run = true })
        return made("spec.affinity") ~= nil
      end)
      assert.equal("zone", made("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
        .nodeSelectorTerms[1].matchExpressions[1].key)
    end)
  end)
end)
