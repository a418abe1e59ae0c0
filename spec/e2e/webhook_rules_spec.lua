-- webhook_rules_spec.lua - the requests that webhooks receive, on both API servers: again after others
-- changed the object, of other versions, of subresources, of deletions; the results of CEL conditions; the
-- rotation of our certificate; and the example of docs/webhooks.md.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

local ADMISSION = "admissionregistration.k8s.io/v1/"

local function script(...)
  return 'local kube = require "kubelua"\nreturn { ' .. table.concat({ ... }, ",\n") .. " }\n"
end

local GADGETS = [[{ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": { "name": "gadgets.%s.example.com" },
  "spec": { "group": "%s.example.com", "scope": "Namespaced",
    "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList" },
    "versions": [
      { "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } },
      { "name": "v2", "served": true, "storage": false,
        "schema": { "openAPIV3Schema": { "type": "object",
          "x-kubernetes-preserve-unknown-fields": true } } } ] } }]]

servers.each(function(name, start)
  describe("webhooks of `kubelua run` against " .. name, function()
    local server, client, api, ns, runs, configurations
    lazy_setup(function()
      server = start {}
      client, api = controller.client(server), require "support.api" (server)
    end)
    lazy_teardown(function() if server then server:stop() end end)
    before_each(function()
      ns = controller.namespace(client, "rules")
      runs, configurations = {}, {}
    end)
    after_each(function()
      for _, kind in ipairs { "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration" } do
        for _, hook in ipairs(configurations) do client:delete(ADMISSION .. kind, hook) end
      end
      for _, run in ipairs(runs) do controller.finish(run) end
    end)

    -- A webhook of this namespace: the name of its configuration is `ns` and the word.
    local function hook(word, rest)
      configurations[#configurations + 1] = ns .. word
      return ("kube.webhook { name = %q, namespaces = { %q }, %s }"):format(ns .. word, ns, rest)
    end

    local function begin(text, ...)
      local run = controller.start(server, text, "--webhook-listen", "127.0.0.1:0", "--webhook-url", "auto",
        ...)
      runs[#runs + 1] = run
      return run
    end

    local function map(key, data, opts)
      return client:create({ kind = "v1/ConfigMap", namespace = ns, name = key, data = data }, opts)
    end

    local function in_force(fn) return wait.until_true(60, "the API server calls the webhook", fn) end

    -- Both webhooks record their names.
    local function mark(word, more)
      return hook(word, ([[resource = "v1/ConfigMap", %s mutate = function(obj)
        obj.data.seen = (obj.data.seen or "") .. %q
      end]]):format(more or "", word:sub(-1)))
    end

    it("are called again after others changed the object, if configured", function()
      begin(script(mark("-a", 'reinvocation = "IfNeeded",'), mark "-b"))
      in_force(function() return map("probe", { x = "1" }, { dry_run = true }).data.seen == "aba" end)
      assert.equal("aba", map("one", { x = "1" }).data.seen)
    end)

    it("are called once otherwise, and at most twice if all reinvoke", function()
      begin(script(mark "-a", mark "-b"))
      in_force(function() return map("probe", { x = "1" }, { dry_run = true }).data.seen == "ab" end)
      client:patch({ kind = ADMISSION .. "MutatingWebhookConfiguration", name = ns .. "-a" },
        { metadata = { labels = { seen = "1" } } })
      for _, word in ipairs { "-a", "-b" } do
        local path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/" .. ns .. word
        assert.equal(200, api:patch("json", path, { { op = "replace", path = "/webhooks/0/reinvocationPolicy",
          value = "IfNeeded" } }).code)
      end
      in_force(function() return map("probe", { x = "1" }, { dry_run = true }).data.seen == "abab" end)
    end)

    it("get other versions of their kind, in the version of their rule", function()
      local group = ns
      assert.equal(201, api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        GADGETS:format(group, group)).code)
      finally(function()
        api:delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets." .. group
          .. ".example.com")
      end)
      local function create(version, key)
        return api:post(("/apis/%s.example.com/%s/namespaces/%s/gadgets"):format(group, version, ns),
          { apiVersion = group .. ".example.com/" .. version, kind = "Gadget", metadata = { name = key } })
      end
      wait.until_true(60, "gadgets", function() return create("v2", "first").code == 201 end)
      local function looks(word, policy)
        return hook(word, ([[resource = "%s.example.com/v1/Gadget", match_policy = %q,
          mutate = function(obj, req)
            obj.metadata.annotations[%q] = req.kind:match "v%%d" .. " for " .. req.raw("requestKind.version")
              .. " is " .. obj.apiVersion:match "v%%d$" end]]):format(group, policy, policy))
      end
      begin(script(looks("-equivalent", "Equivalent"), looks("-exact", "Exact")))
      local n, both = 0, nil
      in_force(function()
        n = n + 1
        both = create("v1", "both-" .. n).body.metadata.annotations
        return both and both.Equivalent and both.Exact
      end)
      assert.same({ Equivalent = "v1 for v1 is v1", Exact = "v1 for v1 is v1" }, both)
      local r = create("v2", "second")
      assert.equal(201, r.code)
      assert.equal(group .. ".example.com/v2", r.body.apiVersion)
      assert.same({ Equivalent = "v1 for v2 is v1" }, r.body.metadata.annotations)
    end)

    it("take CEL conditions, and report a rejection by the server", function()
      local function conditional(expression)
        return script(hook("-cel",
          ([[resource = "v1/ConfigMap", match_conditions = { { name = "not-exempt", expression = %q } },
            validate = function(obj) return kube.deny "asked" end]]):format(expression)))
      end
      local run = begin(conditional "object.metadata.name", "--health-probe-bind-address", "127.0.0.1:0")
      run:wait_for_log(60, "must evaluate to bool but got dyn")
      local health = wait.until_true(30, "the address", function()
        return run:log():match "serving health.-address=(%S+)"
      end)
      local answer = process.run(("curl -sS --max-time 20 'http://%s/readyz?verbose'"):format(health))
      assert.truthy(answer:find("webhooks[0].matchConditions", 1, true), answer)
      process.write(run.script_path,
        conditional "!has(object.metadata.labels) || !('exempt' in object.metadata.labels)")
      in_force(function()
        local o, e = kube.try(map, "probe", nil, { dry_run = true })
        return not o and e.message:find("denied the request: asked", 1, true)
      end)
      assert.truthy(client:create { apiVersion = "v1", kind = "ConfigMap",
        metadata = { namespace = ns, name = "let-in", labels = { exempt = "" } } })
    end)

    local function pod(key)
      return client:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = ns, name = key },
        spec = { containers = { { name = "main", image = "none" } } } }
    end

    local function deployment(replicas)
      return client:create { apiVersion = "apps/v1", kind = "Deployment",
        metadata = { namespace = ns, name = "web" }, spec = { replicas = replicas,
        selector = { matchLabels = { app = "web" } }, template = { metadata = { labels = { app = "web" } },
          spec = { containers = { { name = "main", image = "none" } } } } } }
    end

    it("get requests to named subresources, with their bodies", function()
      pod "one"
      deployment(1)
      client:create { kind = "v1/ServiceAccount", namespace = ns, name = "robot" }
      begin(script(hook("-subs",
        [[resource = { "v1/Pod/eviction", "v1/Pod/binding", "apps/v1/Deployment/scale",
          "v1/ServiceAccount/token" },
          validate = function(obj, req)
            return kube.deny(("%s of %s/%s %s: %s, %s, was %s"):format(req.operation,
              req.resource, req.subresource, req.name, req.kind,
              obj("target.name") or obj("spec.replicas") or "nothing",
              req.old and req.old("spec.replicas") or "nothing"))
          end]])))
      local core = ("/api/v1/namespaces/%s/"):format(ns)
      local scale = ("/apis/apps/v1/namespaces/%s/deployments/web/scale"):format(ns)
      local function evict(query)
        return api:post(core .. "pods/one/eviction" .. query,
          { apiVersion = "policy/v1", kind = "Eviction", metadata = { name = "one", namespace = ns } })
      end
      local function says(text, r)
        assert.equal(('admission webhook "%s-subs.webhooks.kubelua" denied the request: %s'):format(ns, text),
          r.body.message)
        assert.equal(403, r.code)
      end
      in_force(function() return evict("?dryRun=All").code == 403 end)
      says("CREATE of pods/eviction one: policy/v1/Eviction, nothing, was nothing", evict "")
      says("CREATE of pods/binding one: v1/Binding, a-node, was nothing", api:post(core .. "pods/one/binding",
        { apiVersion = "v1", kind = "Binding", metadata = { name = "one" },
          target = { kind = "Node", name = "a-node" } }))
      says("CREATE of serviceaccounts/token robot: authentication.k8s.io/v1/TokenRequest, nothing, was \z
        nothing",
        api:post(core .. "serviceaccounts/robot/token",
          { apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest",
          spec = { audiences = { "them" } } }))
      says("UPDATE of deployments/scale web: autoscaling/v1/Scale, 3, was 1",
        api:patch("merge", scale, { spec = { replicas = 3 } }))
      says("UPDATE of deployments/scale web: autoscaling/v1/Scale, 2, was 1",
        api:put(scale, { apiVersion = "autoscaling/v1", kind = "Scale",
          metadata = { name = "web", namespace = ns }, spec = { replicas = 2 } }))
      assert.is_nil(client:get("v1/Pod", ns, "one")("spec.nodeName"))
      assert.equal(1, client:get("apps/v1/Deployment", ns, "web").spec.replicas)
      -- they do not get the object itself
      client:patch({ kind = "apps/v1/Deployment", namespace = ns, name = "web" }, { spec = { replicas = 4 } })
    end)

    it("change the body of a subresource", function()
      deployment(1)
      begin(script(hook("-scale",
        [[resource = "apps/v1/Deployment/scale", mutate = function(obj)
          obj.spec.replicas = math.min(obj.spec.replicas, 5)
        end]])))
      local scale = ("/apis/apps/v1/namespaces/%s/deployments/web/scale"):format(ns)
      in_force(function()
        return api:patch("merge", scale .. "?dryRun=All", { spec = { replicas = 9 } }).body.spec.replicas == 5
      end)
      local r = api:patch("merge", scale, { spec = { replicas = 8 } })
      assert.equal(200, r.code)
      assert.equal("Scale", r.body.kind)
      assert.equal(5, r.body.spec.replicas)
      assert.equal(5, client:get("apps/v1/Deployment", ns, "web").spec.replicas)
    end)

    it("get deletions as mutating webhooks, too, and can reject them", function()
      local run = begin(script(hook("-gone",
        [[resource = "v1/ConfigMap", operations = { "DELETE" }, validate = function(obj, req)
          req.log:info("asked about " .. obj.metadata.name)
          return obj("data.keep") ~= "yes", "it is kept" end]])))
      local own = wait.until_true(60, "the configuration", function()
        return client:get(ADMISSION .. "ValidatingWebhookConfiguration", ns .. "-gone")
      end)
      local copy = kube.copy(own)
      copy.kind, copy.metadata = "MutatingWebhookConfiguration", { name = ns .. "-gone" }
      copy.webhooks[1].name = "mutating.webhooks.kubelua"
      client:create(copy)
      map("kept", { keep = "yes" })
      local function delete(key, opts)
        return kube.try(client.delete, client, "v1/ConfigMap", ns, key, opts)
      end
      in_force(function()
        local ok, e = delete("kept", { dry_run = true })
        return not ok and e.message:find("mutating.webhooks.kubelua", 1, true)
      end)
      local ok, e = delete "kept"
      assert.falsy(ok)
      assert.equal('admission webhook "mutating.webhooks.kubelua" denied the request: it is kept',
        e.message:match "admission.*$")
      map "free"
      assert.truthy(delete "free")
      assert.is_nil(client:get("v1/ConfigMap", ns, "free"))
      local _, asked = run:log():gsub("asked about free", "")
      assert.equal(2, asked, run:log())
    end)

    it("renew a certificate of their own under load without a failed request", function()
      local life = 9 * math.min(wait.factor, 3)
      local run = begin(script(mark "-a"), "--webhook-cert-life", life .. "s")
      in_force(function() return map("probe", { x = "1" }, { dry_run = true }).data.seen end)
      local i, at = 0, 1
      for turn = 1, 2 do
        wait.until_true(4 * life, "certificate " .. turn, function()
          i = i + 1
          assert.equal("a", map("m" .. i, { x = "1" }).data.seen)
          local _, to = run:log():find("webhooks use a new certificate", at, true)
          at = to or at
          return to
        end)
      end
      for n = 1, 5 do assert.equal("a", map("last" .. n, { x = "1" }).data.seen) end
    end)

    it("of docs/webhooks.md work as documented", function()
      local text = assert(process.read "docs/webhooks.md":match "```lua\n(.-)```")
      local swapped
      text, swapped = text:gsub('namespaces = { "default" }', ('namespaces = { %q }'):format(ns))
      assert.equal(2, swapped)
      configurations = { "configmap-defaults", "configmap-limits" }
      begin(text)
      client:warnings()
      local function denied(part, fn, ...)
        local ok, e = kube.try(fn, ...)
        assert(not ok, "it was let in")
        assert.truthy(e.message:find(part, 1, true), e.message)
        return e.code
      end
      in_force(function() return map("probe", nil, { dry_run = true }).metadata("labels.team") end)
      local o = map("one", { size = "1", keep = "yes" })
      assert.equal("nobody", o.metadata.labels.team)
      local warned = false
      for _, w in ipairs((client:warnings())) do
        warned = warned or w.text:find("one has no owner yet", 1, true) ~= nil
      end
      assert.is_true(warned)
      in_force(function()
        return not kube.try(client.delete, client, "v1/ConfigMap", ns, "one", { dry_run = true })
      end)
      assert.equal(422, denied("the size is fixed", client.patch, client, o, { data = { size = "2" } }))
      assert.equal(403, denied("it is to be kept", client.delete, client, "v1/ConfigMap", ns, "one"))
      client:patch(o, { data = { keep = "no" } })
      client:delete("v1/ConfigMap", ns, "one")
      assert.is_nil(client:get("v1/ConfigMap", ns, "one"))
    end)
  end)
end)
