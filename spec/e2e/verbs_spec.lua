-- verbs_spec.lua - every verb and subresource of a client, with stock Lua on both servers.
-- real in asan: answers of the real server to every verb

local kube = require "kubelua"
local servers = require "support.servers"
local wait = require "support.wait"

local NS = "verbs-spec"
local CSR = "certificates.k8s.io/v1/CertificateSigningRequest"
local SIGNER = "example.com/verbs-spec"

-- A certificate request from openssl; it is not signed here.
local REQUEST = [[
LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaE1JR0pBZ0VBTUNjeEpUQWpC
]]

local function errors(fn, ...)
  local ok, err = kube.try(fn, ...)
  assert.is_nil(ok)
  return err
end

servers.each(function(name, start)
  describe("the verbs of a client of " .. name, function()
    local s, c

    lazy_setup(function()
      s = start()
      c = kube.connect { kubeconfig = s.kubeconfig, namespace = NS }
      c:apply { kind = "v1/Namespace", name = NS }
    end)
    lazy_teardown(function()
      if c then
        c:delete("v1/Namespace", NS)
        c:close()
      end
      s:stop()
    end)

    local function config_map(key, data, labels)
      return { kind = "v1/ConfigMap", namespace = NS, name = key, data = data or { a = "b" },
        labels = labels }
    end

    local function pod(key, labels)
      return c:create { kind = "v1/Pod", namespace = NS, name = key, labels = labels,
        spec = { containers = { { name = "c", image = "i:1" } }, terminationGracePeriodSeconds = 0 } }
    end

    local function running(o, ready)
      return c:patch_status(o, function(d)
        d.status.phase = "Running"
        d.status.conditions = { { type = "Ready", status = ready and "True" or "False" } }
      end)
    end

    local function deployment(key)
      return c:create { kind = "apps/v1/Deployment", namespace = NS, name = key, spec = { replicas = 2,
        selector = { matchLabels = { app = key } },
        template = { metadata = { labels = { app = key } },
          spec = { containers = { { name = "c", image = "i:1" } } } } } }
    end

    describe("evict", function()
      it("deletes a pod, given as object or by its key, and an absent one is success", function()
        assert.is_true(c:evict(pod "gone"))
        assert.is_nil(c:get("v1/Pod", NS, "gone"))
        pod "gone"
        assert.is_true(c:evict(NS .. "/gone", { grace = 0 }))
        pod "gone"
        assert.is_true(c:evict(NS, "gone"))
        assert.is_nil(c:get("v1/Pod", "gone"))
        assert.is_true(c:evict "gone")
      end)

      it("respects the disruption budget", function()
        local o = running(pod("guarded", { app = "guarded" }), true)
        c:create { kind = "policy/v1/PodDisruptionBudget", namespace = NS, name = "guard",
          spec = { minAvailable = 1, selector = { matchLabels = { app = "guarded" } } } }
        -- the disruption controller has not seen the budget yet; a retry after 10 s may succeed
        local err = errors(c.evict, c, o, { timeout = 1 })
        assert.equal(429, err.code)
        assert.equal("throttled", err.kind)
        assert.matches("violate the pod's disruption budget", err.message, 1, true)
        assert.equal("DisruptionBudget", err.details.causes[1].reason)

        local function budget(allowed)
          c:patch_status({ kind = "policy/v1/PodDisruptionBudget", namespace = NS, name = "guard" }, {
            observedGeneration = 1, disruptionsAllowed = allowed, currentHealthy = 1, desiredHealthy = 1,
            expectedPods = 1,
          })
        end
        budget(0)
        err = errors(c.evict, c, o)
        assert.equal("The disruption budget guard needs 1 healthy pods and has 1 currently",
          err.details.causes[1].message)
        assert.is_nil(err.retry_after)
        assert.is_not_nil(c:get("v1/Pod", NS, "guarded"))

        budget(1)
        assert.is_true(c:evict(o, { dry_run = true }))
        assert.is_not_nil(c:get("v1/Pod", NS, "guarded"))
        err = errors(c.evict, c, o, { uid = "11111111-1111-1111-1111-111111111111" })
        assert.equal("conflict", err.kind)
        -- a deletion that fails has spent its disruption all the same
        budget(1)
        assert.is_true(c:evict(o))
        assert.is_nil(c:get("v1/Pod", NS, "guarded"))
        local left = c:get("policy/v1/PodDisruptionBudget", NS, "guard").status
        assert.is_string(left.disruptedPods.guarded)
        assert.equal(0, left.disruptionsAllowed)

        -- An unready pod may be evicted while the others are healthy.
        o = running(pod("sick", { app = "guarded" }), false)
        assert.is_true(c:evict(o))
        -- A pod may have only one budget.
        c:create { kind = "policy/v1/PodDisruptionBudget", namespace = NS, name = "second",
          spec = { minAvailable = 1, selector = { matchLabels = { app = "guarded" } } } }
        o = running(pod("torn", { app = "guarded" }), true)
        err = errors(c.evict, c, o)
        assert.equal(500, err.code)
        assert.matches("more than one PodDisruptionBudget", err.message, 1, true)
        c:delete_collection("policy/v1/PodDisruptionBudget", { namespace = NS })
        c:delete(o, { grace = 0 })
      end)
    end)

    it("binds a pod to a node once", function()
      local o = pod "bound"
      assert.is_true(c:bind(o, "node-1", { annotations = { why = "because" } }))
      local now = c:get("v1/Pod", NS, "bound")
      assert.equal("node-1", now.spec.nodeName)
      assert.equal("because", now("metadata.annotations.why"))
      assert.equal("PodScheduled", now.status.conditions[1].type)
      local err = errors(c.bind, c, o, "node-2")
      assert.equal(409, err.code)
      assert.matches('pod bound is already assigned to node "node-1"', err.message, 1, true)
      assert.equal(404, errors(c.bind, c, NS .. "/never", "node-1").code)
      c:delete(o, { grace = 0 })
    end)

    it("reads and sets the scale of objects with replicas", function()
      local d = deployment "scaled"
      assert.equal(2, c:get_scale("apps/v1/Deployment", NS, "scaled").spec.replicas)
      assert.equal(3, c:scale("apps/v1/Deployment", "scaled", 3).spec.replicas)
      assert.equal(4, c:scale("apps/v1/Deployment", NS, "scaled", 4).spec.replicas)
      assert.equal(5, c:scale(d, 5).spec.replicas)
      assert.equal(6, c:scale(d, 6, { dry_run = true }).spec.replicas)
      local scale = c:get("apps/v1/Deployment", NS, "scaled", { subresource = "scale" })
      assert.equal("Scale", scale.kind)
      assert.equal(5, scale.spec.replicas)
      local copy = kube.copy(scale)
      copy.spec.replicas = 1
      assert.equal(1, c:update(copy, { of = "apps/v1/Deployment", subresource = "scale" }).spec.replicas)
      assert.equal(1, c:get("apps/v1/Deployment", NS, "scaled").spec.replicas)
      assert.equal("conflict", errors(c.scale, c, d, 7,
        { resourceVersion = d.metadata.resourceVersion }).kind)
      -- one spelling for all options; that of the API works, too
      for _, word in ipairs { "resource_version", "resourceVersion" } do
        local stale = { [word] = d.metadata.resourceVersion }
        assert.equal("conflict", errors(c.scale, c, d, 7, stale).kind)
        assert.equal("conflict", errors(c.delete, c, "apps/v1/Deployment", NS, "scaled", stale).kind)
      end
      assert.is_nil(c:get_scale("apps/v1/Deployment", NS, "never"))
      assert.equal(404, errors(c.scale, c, "apps/v1/Deployment", NS, "never", 1).code)
      c:delete(d)
    end)

    it("discovers a subresource that was added later", function()
      local function definition(subresources)
        return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
          metadata = { name = "growers.verbs.kubelua.dev" },
          spec = { group = "verbs.kubelua.dev", scope = "Namespaced",
            names = { plural = "growers", singular = "grower", kind = "Grower" },
            versions = { { name = "v1", served = true, storage = true, subresources = subresources,
              schema = { openAPIV3Schema = { type = "object",
                ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
      end
      local late <close> = kube.connect { kubeconfig = s.kubeconfig, cache_dir = false }
      c:apply(definition(nil))
      local o = wait.until_true(20, "growers are served", function()
        return late:create { kind = "verbs.kubelua.dev/v1/Grower", namespace = NS, name = "g",
          spec = { a = 1 } }
      end)
      assert.same({}, late:resource("verbs.kubelua.dev/v1/Grower").subresources)
      c:apply(definition { status = kube.object {} })
      wait.until_true(20, "growers have a status", function()
        local all = c:raw("GET", "/apis/verbs.kubelua.dev/v1")
        for _, r in ipairs(all.resources) do
          if r.name == "growers/status" then return true end
        end
      end)
      local copy = kube.copy(o)
      copy.status = { ready = true }
      assert.is_true(late:update_status(copy).status.ready)
      c:delete("apiextensions.k8s.io/v1/CustomResourceDefinition", "growers.verbs.kubelua.dev")
    end)

    it("adds ephemeral containers and resizes, and nothing else through these subresources", function()
      local o = pod "grown"
      o = c:patch(o, { metadata = { labels = { x = "y" } },
        spec = { ephemeralContainers = { { name = "debug", image = "i:2" } } } },
        { subresource = "ephemeralcontainers", type = "strategic" })
      assert.equal("debug", o.spec.ephemeralContainers[1].name)
      assert.is_nil(o("metadata.labels.x"))
      o = c:create { kind = "v1/Pod", namespace = NS, name = "sized", spec = { containers = {
        { name = "c", image = "i:1", resources = { requests = { cpu = "100m" } } } } } }
      o = c:patch(o, { spec = { containers = { { name = "c",
        resources = { requests = { cpu = "200m" } } } } } },
        { subresource = "resize", type = "strategic" })
      assert.equal("200m", o.spec.containers[1].resources.requests.cpu)
      assert.equal("i:1", o.spec.containers[1].image)
      c:delete("v1/Pod", NS, "grown", { grace = 0 })
      c:delete("v1/Pod", NS, "sized", { grace = 0 })
    end)

    it("asks for tokens of service accounts", function()
      local account = c:create { kind = "v1/ServiceAccount", namespace = NS, name = "robot" }
      local token, expires = c:token(account, { audiences = { "me" }, expiration = "20m" })
      assert.equal(3, select(2, token:gsub("[^.]+", "")))
      local left = kube.time(expires):unix() - os.time()
      assert.is_true(left > 1000 and left <= 1200, expires)
      assert.is_string((c:token(NS .. "/robot")))
      assert.is_string((c:token(NS, "robot")))
      local secret = c:create { kind = "v1/Secret", namespace = NS, name = "tie" }
      assert.is_string((c:token(account, { bound = secret })))
      local err = errors(c.token, c, account, { expiration = "10s" })
      assert.equal(422, err.code)
      assert.matches("may not specify a duration less than 10 minutes", err.message, 1, true)
      assert.equal(404, errors(c.token, c, account, {
        bound = { kind = "v1/Secret", namespace = NS, name = "never" } }).code)
      assert.equal(400, errors(c.token, c, account, {
        bound = { kind = "v1/ConfigMap", name = "never" } }).code)
      assert.equal(404, errors(c.token, c, "never").code)
    end)

    it("finalizes a namespace", function()
      c:create { kind = "v1/Namespace", name = NS .. "-end" }
      assert.equal("kubernetes", c:get("v1/Namespace", NS .. "-end").spec.finalizers[1])
      c:finalize(NS .. "-end", { "example.com/mine" })
      assert.equal("example.com/mine", c:get("v1/Namespace", NS .. "-end").spec.finalizers[1])
      c:delete("v1/Namespace", NS .. "-end")
      assert.equal("Terminating", c:get("v1/Namespace", NS .. "-end").status.phase)
      c:finalize(NS .. "-end")
      assert.is_nil(c:get("v1/Namespace", NS .. "-end"))
      assert.equal(404, errors(c.finalize, c, NS .. "-end").code)
    end)

    it("approves and denies certificate requests, and writes their status separately", function()
      local process = require "support.process"
      local out,
        code = process.run("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \z
        -keyout /dev/null -subj /CN=verbs 2>/dev/null | base64 -w0")
      assert.equal(0, code)
      assert.equal(REQUEST:sub(1, 40), out:sub(1, 40))
      local function request(key)
        c:delete(CSR, key)
        return c:create { kind = CSR, name = key, spec = { request = out, signerName = SIGNER,
          usages = { "client auth" }, username = "somebody" } }
      end
      local csr = request "verbs-yes"
      assert.not_equal("somebody", csr.spec.username)
      local o = c:approve(csr, { reason = "Fine", message = "as asked" })
      assert.equal("Approved", o.status.conditions[1].type)
      assert.equal("Fine", o.status.conditions[1].reason)
      assert.is_string(o.status.conditions[1].lastTransitionTime)
      assert.is_true(o == c:get(CSR, "verbs-yes"))
      local err = errors(c.deny, c, "verbs-yes")
      assert.equal(422, err.code)
      assert.matches("mutually exclusive", err.message, 1, true)
      -- An ordinary update changes neither spec nor status; /status may not decide.
      local copy = kube.copy(o)
      copy.spec.signerName, copy.status.conditions = "example.com/other", kube.array {}
      local same = c:update(copy)
      assert.equal(SIGNER, same.spec.signerName)
      assert.equal("Approved", same.status.conditions[1].type)
      copy = kube.copy(same)
      copy.status.conditions = { { type = "Denied", status = "True" } }
      assert.equal(422, errors(c.update_status, c, copy).code)
      request "verbs-no"
      assert.equal("Denied", c:deny("verbs-no").status.conditions[1].type)
      assert.equal(422, errors(c.create, c, { kind = CSR, name = "verbs-bad",
        spec = { request = "bm9uZQ==", signerName = SIGNER, usages = { "client auth" } } }).code)
      c:delete_collection(CSR, { fields = { ["spec.signerName"] = SIGNER } })
      assert.is_nil(c:get(CSR, "verbs-no"))
    end)

    it("replaces and applies only a status", function()
      local d = kube.copy(deployment "stated")
      d.status = { observedGeneration = 7, replicas = 2 }
      d.spec.replicas = 9
      local o = c:update_status(d)
      assert.equal(7, o.status.observedGeneration)
      assert.equal(2, o.spec.replicas)
      o = c:apply_status({ kind = "apps/v1/Deployment", namespace = NS, name = "stated",
        status = { collisionCount = 3 } }, { manager = "other" })
      assert.equal(3, o.status.collisionCount)
      assert.equal(7, o.status.observedGeneration)
      c:delete(o)
    end)

    it("deletes a collection by labels, and returns the deleted objects", function()
      for i = 1, 3 do c:create(config_map("many-" .. i, nil, { which = i < 3 and "these" or "not" })) end
      local list = c:delete_collection("v1/ConfigMap",
        { namespace = NS, labels = { which = "these" }, dry_run = true })
      assert.equal(2, #list.items)
      assert.is_not_nil(c:get("v1/ConfigMap", NS, "many-1"))
      list = c:delete_collection("v1/ConfigMap", { namespace = NS, labels = { which = "these" } })
      assert.equal(2, #list.items)
      assert.is_nil(c:get("v1/ConfigMap", NS, "many-1"))
      assert.is_not_nil(c:get("v1/ConfigMap", NS, "many-3"))
      assert.matches("configmaps are namespaced: name the namespace",
        errors(c.delete_collection, c, "v1/ConfigMap").message, 1, true)
    end)

    it("names the owners of conflicting fields of an apply", function()
      c:apply(config_map("shared", { a = "1", b = "1" }), { manager = "first" })
      local err = errors(c.apply, c, config_map("shared", { a = "2", b = "2" }), { manager = "second" })
      assert.equal("conflict", err.kind)
      assert.same({ { manager = "first", field = ".data.a" }, { manager = "first", field = ".data.b" } },
        err.conflicts)
      assert.matches("take the fields with force", err.message, 1, true)
      assert.equal("2", c:apply(config_map("shared", { a = "2" }),
        { manager = "second", force = true }).data.a)
      assert.is_nil(errors(c.create, c, config_map "shared").conflicts)
    end)

    it("makes dry-run writes, and rejects unknown fields if told to", function()
      assert.equal("b", c:create(config_map "dry", { dry_run = true }).data.a)
      assert.is_nil(c:get("v1/ConfigMap", NS, "dry"))
      local o = config_map "strict"
      o.dta = { a = "c" }
      local unchecked <close> = kube.connect { kubeconfig = s.kubeconfig, check = false }
      local err = errors(unchecked.create, unchecked, o, { validation = "Strict" })
      assert.equal(400, err.code)
      assert.matches('unknown field "dta"', err.message, 1, true)
      assert.equal("b", c:create(o, { validation = "Ignore" }).data.a)
      err = errors(unchecked.patch, unchecked, { kind = "v1/ConfigMap", namespace = NS, name = "strict" },
        { dta = { a = "c" } }, { validation = "Strict" })
      assert.equal(422, err.code)
      assert.matches('strict decoding error: unknown field "dta"', err.message, 1, true)
    end)

    it("reads metadata alone, by get, list and watch", function()
      c:create(config_map("light", { heavy = ("x"):rep(1000) }, { light = "yes" }))
      local o = c:get("v1/ConfigMap", NS, "light", { metadata_only = true })
      assert.equal("PartialObjectMetadata", o.kind)
      assert.is_nil(o("data"))
      assert.equal("yes", o.metadata.labels.light)
      local list = c:list("v1/ConfigMap", { namespace = NS, labels = { light = "yes" },
        metadata_only = true })
      assert.equal(1, #list)
      assert.equal("light", list[1].metadata.name)
      assert.is_nil(list[1]("data"))
      local next_event, _, _, watch = c:watch("v1/ConfigMap",
        { namespace = NS, name = "light", metadata_only = true, timeout = 5 })
      local event, seen = next_event()
      watch:close()
      assert.equal("ADDED", event)
      assert.equal("light", seen.metadata.name)
      assert.is_nil(seen("data"))
    end)

    it("gets a table as the server prints it", function()
      local t = c:table("v1/ConfigMap", { namespace = NS, fields = { ["metadata.name"] = "light" } })
      assert.equal("Name", t.columns[1].name)
      assert.equal(1, #t.rows)
      assert.equal("light", t.rows[1].cells[1])
      assert.equal("light", t.rows[1].object.metadata.name)
      t = c:table("v1/ConfigMap", { namespace = NS, fields = { ["metadata.name"] = "light" },
        include = "None" })
      assert.is_nil(t.rows[1]("object"))
    end)

    it("lists at a version, with a choice of its meaning", function()
      local _, version = c:list("v1/ConfigMap", { namespace = NS })
      c:create(config_map "later")
      local function names(opts)
        opts.namespace, opts.fields = NS, { ["metadata.name"] = "later" }
        return #c:list("v1/ConfigMap", opts)
      end
      assert.equal(0, names { resource_version = version, resource_version_match = "Exact" })
      assert.equal(1, names { resource_version = version, resource_version_match = "NotOlderThan" })
      assert.equal(1, names { server_timeout = "30s", timeout = "1m" })
    end)

    it("rejects invalid calls before it sends a request", function()
      local function refused(pattern, fn, ...)
        local err = errors(fn, c, ...)
        assert.equal("invalid", err.kind)
        assert.is_nil(err.code)
        assert.matches(pattern, err.message, 1, true)
      end
      refused('configmaps have no subresource', c.update_status, config_map "light")
      refused('patch configmaps/scale: configmaps have no subresources', c.scale, "v1/ConfigMap", NS, "light",
        1)
      refused('deployments.apps have no subresource "stats"; they have: ', c.get, "apps/v1/Deployment", NS,
        "x", { subresource = "stats" })
      refused("selfsubjectreviews.authentication.k8s.io offer no list; they offer: create", c.list,
        "authentication.k8s.io/v1/SelfSubjectReview")
      refused("may not be '..'", c.get, "v1/ConfigMap", NS, "..")
      refused("may not contain '%'", c.get, "v1/ConfigMap", NS, "a%2fb")
      refused("the body is a v1/Secret, but the call is for apps/v1/Deployment", function()
        return c:update({ kind = "v1/Secret", namespace = NS, name = "light" },
          { of = "apps/v1/Deployment", subresource = "status" })
      end)
      for pattern, fn in pairs {
        ["c:scale: the number of replicas is missing"] = function() c:scale("apps/v1/Deployment", NS,
          "x") end,
        ["c:scale: the number of replicas must be an integer from 0 on, got %-1"] = function()
          c:scale("apps/v1/Deployment", "x", -1)
        end,
        ["c:scale: the number of replicas must be an integer from 0 on, got 1.5"] = function()
          c:scale("apps/v1/Deployment", "x", 1.5)
        end,
        ["c:evict: expected a Pod, got ConfigMap"] = function() c:evict(config_map "light") end,
        ["c:evict: expected an object or its key, got nil"] = function() c:evict() end,
        ["c:evict: unknown option 'graze'; did you mean 'grace'"] = function()
          c:evict("a/b", { graze = 1 })
        end,
        ["c:bind: the node must be a string"] = function() c:bind("a/b") end,
        ["c:token: option 'expiration' must be a duration"] = function()
          c:token("a/b", { expiration = true })
        end,
        ["c:list: resource_version_match must be Exact or NotOlderThan, got \"Exactly\"; did you mean \z
          'Exact'"] = function()
          c:list("v1/Pod", { resource_version = "1", resource_version_match = "Exactly" })
        end,
        ["c:list: resource_version_match needs resource_version"] = function()
          c:list("v1/Pod", { resource_version_match = "Exact" })
        end,
        ["c:list: limit must not be negative, got %-1"] = function() c:list("v1/Pod", { limit = -1 }) end,
        ["c:create: validation must be Strict, Warn or Ignore, got \"strict\"; did you mean 'Strict'"] =
          function()
          c:create(config_map "x", { validation = "strict" })
        end,
        ["c:create: of = \"v1/Pod\" needs a subresource"] = function()
          c:create(config_map "x", { of = "v1/Pod" })
        end,
        ["c:update_status: unknown option 'subresource'"] = function()
          c:update_status(config_map "x", { subresource = "scale" })
        end,
        ["c:delete: propagation must be"] = function()
          c:delete("v1/Pod", "x", { propagation = "orphan" })
        end,
        ["c:delete: grace must not be negative"] = function() c:delete("v1/Pod", "x", { grace = -5 }) end,
        ["c:table: include must be None, Metadata or Object"] = function()
          c:table("v1/Pod", { include = "All" })
        end,
      } do
        assert.error_matches(fn, pattern)
      end
    end)
  end)
end)
