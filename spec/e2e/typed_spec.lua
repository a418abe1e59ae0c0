-- typed_spec.lua - the generated clientsets on API servers: for every resource of Koordinator each offered
-- call works, and each missing call raises an error with the reason.
-- not in tsan: generated code, no thread of its own

local controller = require "support.controller"
local koord = require "kubelua.koordinator"
local k8s = require "kubelua.kubernetes"
local kube = require "kubelua"
local servers = require "support.servers"
local wait = require "support.wait"

-- The required fields of new objects.
local NEEDED = {
  ["topology_v1alpha1.noderesourcetopologies"] = { topologyPolicies = kube.array { "None" },
    zones = kube.array {} },
  ["topology_v1alpha2.noderesourcetopologies"] = { zones = kube.array {} },
}

-- A status that the schema allows, for every kind with a status subresource.
local STATUS = {
  recommendations = { updateTime = "2026-01-02T03:04:05Z" },
  clustercolocationprofiles = {},
  clusternetworktopologies = { detailStatus = kube.array {} },
  podmigrationjobs = { phase = "Pending" },
  reservations = { phase = "Pending" },
  scheduleexplanations = { failedMessage = "none" },
  nodemetrics = { updateTime = "2026-01-02T03:04:05Z" },
  nodeslos = {},
}

-- The same object under two versions is one object.
local ALSO = { ["topology_v1alpha2.noderesourcetopologies"] = true }

local function members(directory)
  local list = {}
  for name, value in pairs(directory) do list[#list + 1] = { name, value } end
  return list
end

local EACH = {}
for _, group in ipairs(members(koord.clientset {})) do
  for _, resource in ipairs(members(group[2])) do
    EACH[#EACH + 1] = { group[1], resource[1], tostring(resource[2]) }
  end
end

servers.each(function(server_name, start)
  describe("typed clients of " .. server_name, function()
    local server, c, ns

    lazy_setup(function()
      server = start { crds = { "controllers/koordinator/crds" } }
      c = kube.connect { kubeconfig = server.kubeconfig, field_manager = "typed-spec" }
      ns = controller.namespace(c, "typed")
    end)
    lazy_teardown(function()
      if c then c:close() end
      if server then server:stop() end
    end)

    for _, each in ipairs(EACH) do
      local group_name, plural, label = each[1], each[2], each[3]
      local function resource_of(set) return set[group_name][plural] end

      describe(label, function()
        local r, name, known, namespaced

        before_each(function()
          r = resource_of(koord.clientset(c))
          known = require("kubelua.koordinator." .. group_name).resources[plural]
          namespaced = known.namespaced
          if namespaced then r = r(ns) end
          name = ("typed-%s-%d"):format(ALSO[group_name .. "." .. plural] and "b" or "a",
            math.random(1, 1 << 40))
        end)

        local function object(labels)
          local o = { metadata = { name = name, labels = labels } }
          for key, value in pairs(NEEDED[group_name .. "." .. plural] or {}) do o[key] = value end
          return o
        end

        it("creates, gets, lists, updates, patches, applies, deletes", function()
          assert.is_nil(r:get(name))
          local made = r:create(object { step = "create" })
          finally(function() r:delete(name) end)
          assert.equal(name, made.metadata.name)
          assert.equal(known.kind, made.apiVersion .. "/" .. made.kind)
          assert.equal(namespaced and ns or nil, made.metadata.namespace)
          assert.is_true(made == r:get(name))
          local _, err = kube.try(r.create, r, object())
          assert.equal(409, err.code)

          local copy = kube.copy(made)
          copy.metadata.labels.step = "update"
          assert.equal("update", r:update(copy).metadata.labels.step)
          assert.equal("patch", r:patch(name, function(draft)
            draft.metadata.labels.step = "patch"
          end).metadata.labels.step)
          assert.equal("merge", r:patch(name, { metadata = {
            labels = { step = "merge" } } }).metadata.labels.step)
          local applied = r:apply(object { mine = "yes" }, { manager = "typed-applier", force = true })
          assert.same({ step = "merge", mine = "yes" }, kube.copy(applied.metadata.labels))

          local listed, version = r:list { labels = "mine=yes,step=merge" }
          local found
          for _, o in ipairs(listed) do found = found or o.metadata.name == name and o end
          assert.is_true(found == applied)
          assert.is_string(version)
          local seen = 0
          for o in r:each { labels = "mine=yes" } do
            assert.equal(known.kind, o.apiVersion .. "/" .. o.kind)
            seen = seen + 1
          end
          assert.is_true(seen >= 1)

          assert.is_true(r:delete(name))
          assert.is_nil(r:get(name))
          assert.is_true(r:delete(name))
        end)

        it("watches", function()
          local _, version = r:list()
          r:create(object())
          r:patch(name, { metadata = { labels = { a = "b" } } })
          r:delete(name)
          local events = {}
          for event, o in r:watch { resource_version = version, timeout = "30s" } do
            if o.metadata.name == name then
              events[#events + 1] = event
              assert.equal(known.kind, o.apiVersion .. "/" .. o.kind)
              if event == "DELETED" then break end
            end
          end
          assert.same({ "ADDED", "MODIFIED", "DELETED" }, events)
        end)

        it("has status calls if its definition does", function()
          if (known.subresources or ""):find "status" then
            local status = assert(STATUS[plural], "a status for " .. plural .. " is missing in this spec")
            local made = r:create(object())
            finally(function() r:delete(name) end)
            local copy = kube.copy(made)
            copy.status = status
            local updated = r:update_status(copy)
            assert.is_true(kube.encode(updated("status") or {}) == kube.encode(status) or next(status) == nil)
            local key, value = next(status)
            if key then
              assert.is_true(r:patch_status(name, { [key] = value })("status")[key] == kube.copy(value)
                or type(value) == "table")
              local applied = r:apply_status({ metadata = { name = name }, status = status },
                { manager = "typed-status", force = true })
              local mine = kube.extract(applied, "typed-status", "status")
              assert.equal(kube.encode(status), kube.encode(mine.status))
            end
          else
            for _, call in ipairs { "update_status", "patch_status", "apply_status" } do
              assert.error_matches(function() return r[call] end, call .. ": .* has no status subresource")
            end
          end
          assert.error_matches(function() return r.scale end, "has no scale: .* has no scale subresource")
        end)

        it("has informers and listers", function()
          local made = r:create(object { informed = "yes" })
          finally(function() r:delete(name) end)
          local informers <close> = koord.informers(c)
          local mine = resource_of(informers)
          local added = {}
          mine:informer():on { add = function(o) added[o.metadata.name] = o end }
          local lister = resource_of(koord.listers(informers))
          informers:start()
          assert.is_true(informers:wait_synced(20 * wait.factor))
          wait.until_true(20, "the informer's event", function()
            informers:poll()
            return added[name]
          end)
          assert.is_true(added[name] == made)
          local key = namespaced and ns .. "/" .. name or name
          assert.is_true(lister:get(key) == made)
          assert.is_true(mine:lister():get(key) == made)
          local listed = lister:list { labels = "informed=yes" }
          assert.is_true(#listed >= 1)
          if namespaced then assert.is_true(lister:namespace(ns):get(name) == made) end
        end)
      end)
    end

    it("reach namespaced objects by namespace and name, and complete their arguments", function()
      local groups = koord.clientset(c).scheduling_v1alpha1.podgroups
      local made = groups:create { metadata = { name = "by-key", namespace = ns }, spec = { minMember = 2 } }
      finally(function() groups:delete(ns, "by-key") end)
      assert.is_true(made == groups:get(ns, "by-key"))
      assert.is_true(made == groups:get(ns .. "/by-key"))
      assert.is_true(made == groups(ns):get "by-key")
      assert.is_true(made == groups(ns):list()[1])
      assert.equal(1, #groups:list { namespace = ns })
      groups:patch(ns .. "/by-key", function(draft) draft.spec.minMember = 3 end)
      assert.equal(3, groups(ns):get("by-key").spec.minMember)
      assert.is_true(groups:delete(made))
      local _, err = kube.try(groups.patch, groups, ns .. "/by-key", function() end)
      assert.equal(404, err.code)
    end)

    it("extract each manager's applied fields; applying them again changes nothing", function()
      local deployments = k8s.clientset(c).apps_v1.deployments(ns)
      finally(function() deployments:delete "extracted" end)
      local function build(body) return k8s.apps_v1.Deployment("extracted", ns)(body) end
      deployments:apply(build {
        metadata = { labels = { mine = "yes" } },
        spec = {
          selector = { matchLabels = { app = "a" } },
          template = {
            metadata = { labels = { app = "a" } },
            spec = {
              containers = { { name = "one", image = "i", ports = { { containerPort = 80 } },
                args = { "x" } } },
              volumes = { { name = "v", emptyDir = {} } }, nodeSelector = { zone = "z" },
            },
          },
        },
      }, { manager = "first" })
      local template = { spec = { containers = { { name = "two", image = "i" } },
        volumes = { { name = "v", emptyDir = { sizeLimit = "1Gi" } } } } }
      deployments:apply(build { metadata = { finalizers = { "example.com/a" } },
        spec = { template = template } }, { manager = "second" })
      local before = deployments:patch("extracted", { metadata = { annotations = { by = "hand" } } })
      for _, manager in ipairs { "first", "second" } do
        local mine = kube.extract(before, manager)
        assert.is_nil((mine.metadata.annotations or {}).by)
        assert.is_true(before == deployments:apply(mine, { manager = manager }), manager)
      end
      deployments:patch("extracted", { metadata = { finalizers = kube.null } })
    end)

    it("accept the results of builders", function()
      local metrics = koord.clientset(c).slo_v1alpha1.nodemetrics
      local name = "built-" .. ns
      local metric = koord.slo_v1alpha1.NodeMetric(name) {
        spec = { metricCollectPolicy = { reportIntervalSeconds = 30 } } }
      metrics:apply(metric)
      finally(function() metrics:delete(name) end)
      assert.equal(30, metrics:get(name).spec.metricCollectPolicy.reportIntervalSeconds)

      -- extract returns the built object, and applying it again changes nothing.
      local before = metrics:get(name)
      local mine = kube.extract(before, "typed-spec")
      assert.same(metric, mine)
      assert.is_true(before == metrics:apply(mine))
    end)

    it("have the client's other functions", function()
      local core_v1 = k8s.clientset(c).core_v1
      local maps = core_v1.configmaps(ns)
      local _, how = maps:create_or_update({ metadata = { name = "maybe" } }, function(draft)
        draft.data = { a = "1" }
      end)
      assert.equal("created", how)
      _, how = maps:create_or_patch({ metadata = { name = "maybe" } }, function(draft)
        draft.data = { a = "2" }
      end)
      assert.equal("updated", how)
      assert.equal("2", maps:wait_for("maybe", "data.a=2", { timeout = "20s" }).data.a)
      local rows = maps:table { labels = "none=here" }
      assert.equal(0, #rows.rows)
      assert.is_true(#rows.columns > 0)
      maps:apply({ metadata = { name = "maybe", labels = { all = "go" } } }, { manager = "m" })
      maps:delete_collection { labels = "all=go" }
      assert.is_nil(maps:get "maybe")
      core_v1.serviceaccounts(ns):create { metadata = { name = "robot" } }
      local token, expires = core_v1.serviceaccounts(ns):token("robot", { expiration = "1h" })
      assert.is_string(token)
      assert.is_string(expires)
      core_v1.pods(ns):create(k8s.core_v1.Pod "lonely" {
        spec = { containers = { { name = "c", image = "i" } } } })
      core_v1.nodes:create { metadata = { name = "node-" .. ns } }
      assert.is_true(core_v1.pods(ns):bind("lonely", "node-" .. ns))
      assert.equal("node-" .. ns, core_v1.pods(ns):get("lonely").spec.nodeName)
      core_v1.nodes:delete("node-" .. ns)
      assert.is_true(core_v1.pods(ns):evict("lonely", { grace = 0 }))
    end)

    it("scale built-in kinds", function()
      local apps = k8s.clientset(c).apps_v1
      local deployments = apps.deployments(ns)
      deployments:apply(k8s.apps_v1.Deployment "web" {
        spec = {
          replicas = 1, selector = { matchLabels = { app = "web" } },
          template = { metadata = { labels = { app = "web" } },
            spec = { containers = { { name = "web", image = "web" } } } },
        },
      })
      finally(function() deployments:delete "web" end)
      assert.equal(1, deployments:get_scale("web").spec.replicas)
      assert.equal(4, deployments:scale("web", 4).spec.replicas)
      assert.equal(4, apps.deployments:get(ns, "web").spec.replicas)
      assert.error_matches(function()
        return k8s.clientset(c).core_v1.configmaps.scale
      end, "configmaps has no scale")
      assert.error_matches(function()
        return k8s.clientset(c).core_v1.componentstatuses.create
      end, "has no create: the server offers only get list")
    end)
  end)
end)
