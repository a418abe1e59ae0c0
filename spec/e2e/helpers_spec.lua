-- helpers_spec.lua - the helper functions of ctx and kube, on both API servers.

local kube = require "kubelua"
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local NS = "helpers-spec"

local function crd(group, plural, kind)
  return {
    apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = plural .. "." .. group },
    spec = {
      group = group, scope = "Namespaced", names = { plural = plural, singular = kind:lower(), kind = kind,
        listKind = kind .. "List" },
      versions = { {
        name = "v1", served = true, storage = true, subresources = { status = {} },
        schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
      } },
    },
  }
end

servers.each(function(name, start)
  describe("helpers of a client of " .. name, function()
    local s, c

    lazy_setup(function()
      s = start()
      c = kube.connect { kubeconfig = s.kubeconfig }
      c:apply { kind = "v1/Namespace", name = NS }
    end)
    lazy_teardown(function()
      if c then c:close() end
      s:stop()
    end)

    local function map(key, data)
      return { kind = "v1/ConfigMap", namespace = NS, name = key, data = data }
    end

    local function pod(key, more)
      local o = {
        apiVersion = "v1", kind = "Pod", metadata = { name = key, namespace = NS, labels = { app = key } },
        spec = { nodeName = more and more.node, containers = { { name = "c", image = "i" } },
          volumes = more and more.volumes },
      }
      o.metadata.ownerReferences, o.metadata.annotations = more and more.owners, more and more.annotations
      return o
    end

    -- Another client's action a little later, while this state waits: a shell is another process.
    local function soon(...) process.spawn { "sh", "-c", ..., name = "soon" } end
    local function kubectl(words)
      return ("KUBECONFIG=%s %s/kubectl %s"):format(process.quote(s.kubeconfig),
        servers.assets() or "build/assets", words)
    end

    -- ---------------------------------------------------------------- create_or_*

    it("create_or_update creates, replaces changed fields, and leaves the rest alone", function()
      local o, result = c:create_or_update(map("upsert", { a = "1" }), function(d) d.data.b = "2" end)
      assert.equal("created", result)
      assert.same({ a = "1", b = "2" }, kube.copy(o.data))
      local again
      again, result = c:create_or_update(map("upsert", { a = "other" }), function(d) d.data.b = "2" end)
      assert.equal("unchanged", result)
      assert.equal(o.metadata.resourceVersion, again.metadata.resourceVersion)
      o, result = c:create_or_update(map "upsert", function(d) d.data = { c = "3" } end)
      assert.equal("updated", result)
      assert.same({ c = "3" }, kube.copy(o.data))
      assert.error_matches(function()
        c:create_or_update(map "upsert", function(d) d.metadata.name = "x" end)
      end, "may not change the object's name", 1, true)
      assert.error_matches(function()
        c:create_or_update(map "upsert", {})
      end, "expected a function", 1, true)
      assert.error_matches(function()
        c:create_or_update({ kind = "v1/ConfigMap" }, print)
      end, "needs a kind and a name", 1, true)
    end)

    it("create_or_update raises a conflict, which retry_on_conflict runs again", function()
      c:create_or_update(map("race", { n = "0" }), function() end)
      local rivals, runs = 2, 0
      local function count()
        return c:create_or_update(map "race", function(d)
          runs = runs + 1
          if rivals > 0 then
            rivals = rivals - 1
            c:patch({ kind = "v1/ConfigMap", namespace = NS, name = "race" },
              { data = { rival = tostring(rivals) } })
          end
          d.data.n = tostring(math.tointeger(d.data.n) + 1)
        end)
      end
      local _, err = kube.try(count)
      assert.equal("conflict", err.kind)
      local o, result = kube.retry_on_conflict(count)
      assert.equal("updated", result)
      assert.equal("1", o.data.n)
      assert.equal(3, runs)
      _, err = kube.try(kube.retry_on_conflict, function() runs = runs + 1 c:create(map "race") end)
      assert.equal("already_exists", err.kind)
      assert.equal(4, runs)
      local always = 0
      _, err = kube.try(kube.retry_on_conflict, function()
        always = always + 1
        c:update { apiVersion = "v1", kind = "ConfigMap",
          metadata = { name = "race", namespace = NS, resourceVersion = "1" } }
      end, { steps = 3, delay = "1ms" })
      assert.equal("conflict", err.kind)
      assert.equal(3, always)
    end)

    it("create_or_patch sends status by itself and says what it changed", function()
      local function deployment(fn)
        return c:create_or_patch({
          apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "patchy", namespace = NS },
          spec = {
            selector = { matchLabels = { app = "x" } },
            template = { metadata = { labels = { app = "x" } },
              spec = { containers = { { name = "c", image = "i" } } } },
          },
        }, fn)
      end
      local o, result = deployment(function(d) d.spec.replicas = 2 end)
      assert.equal("created", result)
      assert.equal(2, o.spec.replicas)
      assert.equal("unchanged", select(2, deployment(function(d) d.spec.replicas = 2 end)))
      o, result = deployment(function(d) d.spec.replicas = 3 end)
      assert.equal("updated", result)
      assert.equal(3, o.spec.replicas)
      o, result = deployment(function(d) d.status.replicas = 3 end)
      assert.equal("updated_status", result)
      assert.equal(3, o.status.replicas)
      o, result = deployment(function(d) d.spec.replicas = 4 d.status.replicas = 4 end)
      assert.equal("updated_both", result)
      assert.equal(4, o.spec.replicas)
      assert.equal(4, o.status.replicas)
    end)

    -- ---------------------------------------------------------------- wait_for

    it("wait_for returns at once if the condition holds", function()
      c:apply(pod "ready")
      local o = c:patch_status(c:get("v1/Pod", NS, "ready"),
        { phase = "Running", conditions = { { type = "Ready", status = "True" } } })
      for _, condition in ipairs {
        "Ready", "ready", "condition=Ready", "Ready=true", "status.phase=Running",
        "jsonpath={.status.phase}=Running", "spec.containers[1].image=i",
        "status.conditions", "created", function(p) return p.status.phase == "Running" end,
      } do
        local got = c:wait_for("v1/Pod", NS .. "/ready", condition, { timeout = 20 * wait.factor })
        assert.equal(o.metadata.uid, got.metadata.uid)
      end
      assert.equal(o.metadata.uid, c:wait_for("v1/Pod", NS, "ready", "Ready").metadata.uid)
      assert.equal(o.metadata.uid, c:wait_for(o, "Ready").metadata.uid)
      assert.is_true(c:wait_for("v1/Pod", NS .. "/never", "deleted"))
    end)

    it("wait_for watches until the condition holds, from absent to deleted", function()
      local file = process.write(process.tmpname ".json",
        kube.to_json { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "later" },
        data = { a = "1" } })
      soon("sleep 0.3; " .. kubectl("create -n " .. NS .. " -f " .. file))
      local o = c:wait_for("v1/ConfigMap", NS .. "/later", "created", { timeout = 20 * wait.factor })
      assert.equal("1", o.data.a)
      soon("sleep 0.3; " .. kubectl("patch configmap -n " .. NS .. " later -p '{\"data\":{\"a\":\"2\"}}'"))
      assert.equal("2", c:wait_for("v1/ConfigMap", NS .. "/later", "data.a=2",
        { timeout = 20 * wait.factor }).data.a)
      soon("sleep 0.3; " .. kubectl("delete configmap -n " .. NS .. " later"))
      local gone = c:wait_for(o, "deleted", { timeout = 20 * wait.factor })
      assert.is_truthy(gone)
    end)

    it("wait_for reports the state at its timeout, and a deleted object", function()
      c:apply(pod "slow")
      c:patch_status(c:get("v1/Pod", NS, "slow"), { phase = "Pending",
        conditions = { { type = "Ready", status = "False", reason = "Waiting", message = "image" } } })
      local _, err = kube.try(c.wait_for, c, "v1/Pod", NS .. "/slow", "Ready", { timeout = "200ms" })
      assert.equal("timeout", err.kind)
      assert.matches('condition "Ready" did not come within 200ms: phase Pending, Ready=False (image)',
        err.message, 1, true)
      _, err = kube.try(c.wait_for, c, "v1/Pod", NS .. "/nobody", "Ready", { timeout = 0 })
      assert.matches("it does not exist", err.message, 1, true)
      _, err = kube.try(c.wait_for, c, "v1/Pod", NS .. "/slow", "deleted", { timeout = "200ms" })
      assert.matches("its deletion did not come within 200ms: nobody has deleted it", err.message, 1, true)
      c:create(map "doomed")
      soon("sleep 0.3; " .. kubectl("delete configmap -n " .. NS .. " doomed"))
      _, err = kube.try(c.wait_for, c, "v1/ConfigMap", NS .. "/doomed", "data.x=1",
        { timeout = 20 * wait.factor })
      assert.equal("not_found", err.kind)
      assert.matches("deleted while waiting", err.message, 1, true)
      _, err = kube.try(c.wait_for, c, "example.com/v1/Nothing", "x", "Ready")
      assert.equal("not_found", err.kind)
      assert.error_matches(function()
        c:wait_for("v1/Pod", "x", 7)
      end, "the condition must be a function or a string", 1, true)
      assert.error_matches(function()
        c:wait_for("v1/Pod", "x", "status..phase=a")
      end, "status..phase", 1, true)
      assert.error_matches(function()
        c:wait_for("v1/Pod", "x", "Ready", { timeuot = 1 })
      end, "did you mean 'timeout'?", 1, true)
    end)

    it("wait_for ignores a condition of an older generation", function()
      c:ensure_crd(crd("helpers.kubelua.test", "gears", "Gear"))
      local gear = c:create { kind = "helpers.kubelua.test/v1/Gear", namespace = NS, name = "g",
        spec = { n = 1 } }
      gear = c:patch_status(gear, { observedGeneration = 1,
        conditions = { { type = "Ready", status = "True" } } })
      c:wait_for(gear, "Ready", { timeout = 20 * wait.factor })
      gear = c:patch(gear, { spec = { n = 2 } })
      assert.equal(2, gear.metadata.generation)
      local _, err = kube.try(c.wait_for, c, gear, "Ready", { timeout = 0 })
      assert.equal("timeout", err.kind)
      c:patch_status(gear, { observedGeneration = 2 })
      c:wait_for(gear, "Ready", { timeout = 20 * wait.factor })
    end)

    -- ---------------------------------------------------------------- owners, finalizers

    it("owner references follow the rules of controllerutil", function()
      local owner, other = c:create(map "owner"), c:create(map "other")
      local owned = c:create(kube.set_controller(owner, map "owned"))
      assert.same({ {
        apiVersion = "v1", kind = "ConfigMap", name = "owner", uid = owner.metadata.uid, controller = true,
        blockOwnerDeletion = true,
      } }, kube.copy(owned.metadata.ownerReferences))
      assert.equal(owner.metadata.uid, kube.controller_of(owned).uid)
      assert.is_true(kube.is_owned_by(owned, owner))
      assert.is_false(kube.is_owned_by(owned, other))
      assert.is_nil(kube.controller_of(owner))

      local _, err = kube.try(kube.set_controller, other, kube.copy(owned))
      assert.equal("already_owned", err.kind)
      assert.matches("is already controlled by ConfigMap owner", err.message, 1, true)
      owned = c:patch(owned, function(d)
        kube.set_owner(other, d)
        kube.set_owner(other, d)
        kube.set_controller(owner, d, { block = false })
      end)
      assert.equal(2, #owned.metadata.ownerReferences)
      assert.is_false(kube.controller_of(owned).blockOwnerDeletion)
      assert.is_nil(owned.metadata.ownerReferences[2]("controller"))
      owned = c:patch(owned, function(d)
        assert.is_true(kube.remove_owner(owner, d))
        assert.is_false(kube.remove_owner(owner, d))
      end)
      assert.equal("other", owned.metadata.ownerReferences[1].name)

      local node = { apiVersion = "v1", kind = "Node", metadata = { name = "n" } }
      assert.error_matches(function()
        kube.set_controller(owner, node)
      end, "has no namespace and cannot be owned by ConfigMap " .. NS .. "/owner", 1, true)
      assert.error_matches(function()
        kube.set_controller(owner, { kind = "v1/Secret", namespace = "default", name = "x" })
      end, "an owner lives in the same namespace", 1, true)
      assert.error_matches(function()
        kube.set_controller(map "unread", map "x")
      end, "the owner has no apiVersion", 1, true)
      assert.error_matches(function()
        kube.set_controller({ apiVersion = "v1", kind = "A", metadata = { name = "a" } }, map "x")
      end, "has no uid", 1, true)
      assert.error_matches(function()
        kube.set_controller(owner, owned)
      end, "a view cannot be changed", 1, true)
      local namespace = c:get("v1/Namespace", NS)
      assert.equal("Namespace", kube.controller_of(kube.set_controller(namespace, map "x")).kind)
    end)

    it("finalizers are added once and removed completely", function()
      local o = c:create(map "final")
      o = c:add_finalizer(o, "kubelua.test/a")
      local version = o.metadata.resourceVersion
      o = c:add_finalizer(o, "kubelua.test/a")
      assert.equal(version, o.metadata.resourceVersion)
      o = c:add_finalizer(o, "kubelua.test/b")
      assert.is_true(kube.has_finalizer(o, "kubelua.test/b"))
      c:delete(o)
      o = c:get("v1/ConfigMap", NS, "final")
      assert.is_string(o.metadata.deletionTimestamp)
      o = c:remove_finalizer(o, "kubelua.test/a")
      assert.is_false(kube.has_finalizer(o, "kubelua.test/a"))
      c:remove_finalizer(o, "kubelua.test/b")
      assert.is_true(c:wait_for("v1/ConfigMap", NS .. "/final", "deleted"))
      local draft = { metadata = { finalizers = { "x/y", "a/b", "x/y" } } }
      assert.is_true(kube.remove_finalizer(draft, "x/y"))
      assert.same({ "a/b" }, draft.metadata.finalizers)
      assert.is_false(kube.remove_finalizer(draft, "x/y"))
      assert.error_matches(function() kube.add_finalizer(draft, "nodomain") end, "domain/name", 1, true)
    end)

    -- ---------------------------------------------------------------- files

    it("apply_file sends definitions and namespaces first, and waits for new kinds", function()
      local dir = process.tmpname ".manifests"
      process.run("mkdir -p " .. dir)
      process.write(dir .. "/1.yaml", [[
apiVersion: files.kubelua.test/v1
kind: Wheel
metadata: {name: w, namespace: helpers-files}
spec: {size: 3}
---
# nothing in this document
---
apiVersion: v1
kind: Namespace
metadata: {name: helpers-files}
]])
      process.write(dir .. "/2.json", kube.to_json { apiVersion = "v1", kind = "List",
        items = { crd("files.kubelua.test", "wheels", "Wheel"), {
        apiVersion = "v1", kind = "ConfigMap", metadata = { name = "filed", namespace = NS },
        data = { a = "1" },
      } } })
      process.write(dir .. "/ignored.txt", "not: ours")
      local applied = c:apply_file(dir)
      local kinds = {}
      for i, o in ipairs(applied) do kinds[i] = o.kind end
      assert.same({ "Namespace", "CustomResourceDefinition", "Wheel", "ConfigMap" }, kinds)
      assert.equal(3, c:get("files.kubelua.test/v1/Wheel", "helpers-files", "w").spec.size)
      assert.equal("1", c:get("v1/ConfigMap", NS, "filed").data.a)
      c:delete_file(dir .. "/2.json", { wait = false })
      assert.is_true(c:wait_for("v1/ConfigMap", NS .. "/filed", "deleted"))
    end)

    it("apply_file and delete_file take one file, and a default namespace", function()
      local file = process.write(process.tmpname ".yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: placed}\ndata: {a: b}\n")
      local o = c:apply_file(file, { namespace = NS, manager = "helper" })[1]
      assert.equal(NS, o.metadata.namespace)
      assert.equal("helper", o.metadata.managedFields[1].manager)
      c:apply_file(file, { namespace = NS, manager = "helper", dry_run = true })
      c:delete_file(file, { namespace = NS, wait = true })
      assert.is_nil(c:get("v1/ConfigMap", NS, "placed"))
      c:delete_file(file, { namespace = NS, wait = true })
    end)

    it("apply_file names the file and the document of an error, before it sends a request", function()
      local function refused(text, what)
        local file = process.write(process.tmpname ".yaml",
          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unsent, namespace: " .. NS .. "}\n---\n" .. text)
        local _, err = kube.try(c.apply_file, c, file)
        assert.matches(file, err.message, 1, true)
        assert.matches(what, err.message, 1, true)
        assert.is_nil(c:get("v1/ConfigMap", NS, "unsent"))
      end
      refused("kind: ConfigMap\n", "document 2: the object needs an apiVersion and a kind")
      refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x}\n",
        "document 2: the ConfigMap has no metadata.name")
      refused("- a\n- b\n", "document 2: the object needs an apiVersion and a kind")
      refused("words\n", 'document 2: expected an object, got "words"')
      refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: no}\n",
        "document 2: metadata.name of the ConfigMap must be a string, got false: write it in quotes, \z
        since YAML")
      refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 12}\n",
        "document 2: metadata.name of the ConfigMap must be a string, got 12: write it in quotes")
      refused("a: [\n", "")
      local file = process.write(process.tmpname ".yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: " .. NS .. "}\n")
      local _, err = kube.try(c.apply_file, c, file)
      assert.equal(422, err.code)
      assert.matches(file .. " (v1/ConfigMap Not_A_Name): ", err.message, 1, true)
      _, err = kube.try(c.apply_file, c, "/no/such/file.yaml")
      assert.equal("io", err.kind)
      assert.matches("cannot read /no/such/file.yaml", err.message, 1, true)
      _, err = kube.try(c.apply_file, c, process.write(process.tmpname ".yaml", "# nothing\n"))
      assert.matches("it contains no objects", err.message, 1, true)
    end)

    it("ensure_crd returns when the kind is served, and is idempotent", function()
      local definition = crd("ensure.kubelua.test", "nuts", "Nut")
      for _ = 1, 2 do
        local o = c:ensure_crd(definition)[1]
        assert.equal("nuts.ensure.kubelua.test", o.metadata.name)
        c:list "ensure.kubelua.test/v1/Nut"
      end
      local file = process.write(process.tmpname ".yaml",
        kube.to_yaml(crd("ensure.kubelua.test", "bolts", "Bolt")))
      c:ensure_crd(file)
      c:create { kind = "ensure.kubelua.test/v1/Bolt", namespace = NS, name = "b" }
      assert.error_matches(function()
        c:ensure_crd(map "x")
      end, "is a ConfigMap, not a CustomResourceDefinition", 1, true)
      assert.error_matches(function() c:ensure_crd {} end, "expected a path", 1, true)
    end)

    -- ---------------------------------------------------------------- in a reconcile

    it("ctx has the helpers that do not wait, and kube those of objects", function()
      local ns = controller.namespace(c, "helpers-ctx")
      local run = controller.start(s, [[
        local kube = require "kubelua"
        return kube.controller {
          name = "helpers", resource = "v1/Secret", when = { "generation" },
          reconcile = function(secret, ctx)
            secret = ctx:add_finalizer(secret, "kubelua.test/held")
            assert(kube.has_finalizer(secret, "kubelua.test/held"))
            local results = {}
            for i = 1, 3 do
              local _, result = ctx:create_or_update({ kind = "v1/ConfigMap", name = "made" }, function(d)
                kube.set_controller(secret, d)
                d.data.n = tostring(math.min(i, 2))
              end)
              results[i] = result
            end
            local tries = 0
            kube.retry_on_conflict(function()
              tries = tries + 1
              if tries == 1 then
                ctx:update { apiVersion = "v1", kind = "ConfigMap",
                  metadata = { name = "made", namespace = ctx.namespace, resourceVersion = "1" } }
              end
            end)
            ctx:remove_finalizer(secret, "kubelua.test/held")
            local ok, why = pcall(function() return kube.informers {} end)
            ctx:create_or_patch({ kind = "v1/ConfigMap", namespace = ctx.namespace,
              name = "report" }, function(d)
              d.data = { results = table.concat(results, " "), tries = tostring(tries),
                informers = tostring(why), json = kube.json(kube.to_json { a = "b" }).a }
            end)
          end,
        }]], "--namespace", ns)
      finally(function() controller.finish(run) end)
      local secret = c:create { kind = "v1/Secret", namespace = ns, name = "s" }
      local report = c:wait_for("v1/ConfigMap", ns .. "/report", "data.results",
        { timeout = 30 * wait.factor })
      assert.equal("created updated unchanged", report.data.results)
      assert.equal("2", report.data.tries)
      assert.equal("b", report.data.json)
      assert.matches("kube.informers is for standalone programs; a controller script declares the kind in \z
        `watches` or `reads`", report.data.informers, 1, true)
      assert.equal(ns, c:get("v1/ConfigMap", ns, "made").metadata.namespace)
      assert.equal(secret.metadata.uid, kube.controller_of(c:get("v1/ConfigMap", ns, "made")).uid)
    end)

    -- ---------------------------------------------------------------- drain

    local function node(key)
      return c:apply({ apiVersion = "v1", kind = "Node", metadata = { name = key } }, { force = true })
    end

    -- A controller that exists only in name: drain asks whether a pod has one.
    local function controlled(kind)
      return { { apiVersion = "apps/v1", kind = kind or "ReplicaSet", name = "rs",
        uid = "11111111-2222-3333-4444-555555555555", controller = true } }
    end

    local function kubelet(pods)
      for _, key in ipairs(pods) do
        local o = c:get("v1/Pod", NS, key)
        if o and o("metadata.deletionTimestamp") then c:delete("v1/Pod", NS, key, { grace = 0 }) end
      end
    end

    it("cordon and uncordon a node", function()
      node "helpers-cordon"
      assert.is_true(c:cordon("helpers-cordon").spec.unschedulable)
      local version = c:cordon("helpers-cordon").metadata.resourceVersion
      assert.equal(version, c:get("v1/Node", "helpers-cordon").metadata.resourceVersion)
      assert.is_nil(c:uncordon(c:get("v1/Node", "helpers-cordon")).spec("unschedulable"))
      local _, err = kube.try(c.cordon, c, "helpers-nobody")
      assert.equal("not_found", err.kind)
    end)

    it("drain names all pods that it may not evict, before it evicts any", function()
      node "helpers-refuse"
      c:apply(pod("bare", { node = "helpers-refuse" }))
      c:apply(pod("data", { node = "helpers-refuse", owners = controlled(),
        volumes = { { name = "v", emptyDir = {} } } }))
      c:apply(pod("daemon", { node = "helpers-refuse", owners = controlled "DaemonSet" }))
      c:apply(pod("mirror", { node = "helpers-refuse",
        annotations = { ["kubernetes.io/config.mirror"] = "x" } }))
      c:apply(pod("fine", { node = "helpers-refuse", owners = controlled() }))
      local _, err = kube.try(c.drain, c, "helpers-refuse")
      assert.equal("refused", err.kind)
      assert.matches(NS .. "/bare: it has no controller that would recreate it", err.message, 1, true)
      assert.matches(NS .. "/data: its emptyDir data would be lost", err.message, 1, true)
      assert.matches(NS .. "/daemon: its daemon set rs does not exist", err.message, 1, true)
      assert.is_nil(err.message:find("mirror", 1, true))
      assert.is_nil(c:get("v1/Pod", NS, "fine")("metadata.deletionTimestamp"))
      assert.is_true(c:get("v1/Node", "helpers-refuse").spec.unschedulable)
      for _, key in ipairs { "bare", "data", "daemon", "mirror", "fine" } do
        c:delete("v1/Pod", NS, key, { grace = 0 })
      end
    end)

    it("drain evicts the rest, retries budgets, and waits until the pods are gone", function()
      node "helpers-drain"
      c:apply(pod("one", { node = "helpers-drain", owners = controlled() }))
      c:apply(pod("two", { node = "helpers-drain" }))
      c:apply(pod("elsewhere", { node = "helpers-other", owners = controlled() }))
      for _, key in ipairs { "one", "two" } do
        c:patch_status(c:get("v1/Pod", NS, key), { phase = "Running",
          conditions = { { type = "Ready", status = "True" } } })
      end
      c:apply {
        apiVersion = "policy/v1", kind = "PodDisruptionBudget",
        metadata = { name = "budget", namespace = NS },
        spec = { minAvailable = 1, selector = { matchLabels = { app = "one" } } },
      }
      -- The part of the disruption controller.
      local function allow(n)
        local budget = c:get("policy/v1/PodDisruptionBudget", NS, "budget")
        c:patch_status(budget, {
          observedGeneration = budget.metadata.generation, disruptionsAllowed = n, currentHealthy = 1 + n,
          desiredHealthy = 1, expectedPods = 1 + n,
        })
      end
      allow(0)
      local seen = {}
      local gone = c:drain("helpers-drain", {
        force = true, timeout = 60 * wait.factor, retry = "50ms",
        on_pod = function(p, what)
          seen[p.metadata.name .. " " .. what] = (seen[p.metadata.name .. " " .. what] or 0) + 1
          if what == "refused by budget" and seen["one refused by budget"] == 2 then allow(1) end
          kubelet { "one", "two" }
        end,
      })
      assert.equal(2, #gone)
      assert.equal(2, seen["one refused by budget"])
      assert.equal(1, seen["one gone"])
      assert.equal(1, seen["two gone"])
      assert.is_nil(c:get("v1/Pod", NS, "one"))
      assert.is_nil(c:get("v1/Pod", NS, "two"))
      assert.is_nil(c:get("v1/Pod", NS, "elsewhere")("metadata.deletionTimestamp"))
      assert.same({}, c:drain "helpers-drain")
    end)

    it("drain names the remaining pods at its timeout", function()
      node "helpers-late"
      c:apply(pod("stuck", { node = "helpers-late", owners = controlled() }))
      c:patch_status(c:get("v1/Pod", NS, "stuck"), { phase = "Running" })
      local _, err = kube.try(c.drain, c, "helpers-late", { timeout = "300ms", disable_eviction = true })
      assert.equal("timeout", err.kind)
      assert.matches("pods still exist after 300ms: " .. NS .. "/stuck", err.message, 1, true)
      c:delete("v1/Pod", NS, "stuck", { grace = 0 })
      assert.error_matches(function() c:drain(7) end, "expected the name of a node", 1, true)
      assert.error_matches(function() c:drain("x", { forse = true }) end, "did you mean 'force'?", 1, true)
    end)
  end)
end)
