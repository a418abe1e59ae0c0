-- discovery_spec.lua - the resources of a server: kubectl's names for them, groups that fail alone, the cache
-- on disk, and controllers whose kind appears while they wait.

local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local A, B = "a.discovery-spec.example.com", "b.discovery-spec.example.com"
local CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"

local function crd(group, plural, kind, short)
  return {
    kind = CRD, name = plural .. "." .. group,
    spec = {
      group = group, scope = "Namespaced", names = { plural = plural, singular = kind:lower(), kind = kind,
        shortNames = { short } },
      versions = { {
        name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
      } },
    },
  }
end

servers.each(function(name, start)
  describe("discovery of " .. name, function()
    local s, c

    lazy_setup(function()
      s = start { empty = true } -- a stale group would disturb other specs
      c = kube.connect { kubeconfig = s.kubeconfig }
    end)
    lazy_teardown(function()
      if c then c:close() end
      s:stop()
    end)

    it("has the names of built-in kinds from the start", function()
      local kinds, n = require "kubelua.kinds", 0
      local function is(word, kind)
        -- Two groups have Events, and the first one counts.
        local full = c:resource(word)
        assert.equal(("%s%s/%s"):format(full.group ~= "" and full.group .. "/" or "", full.version,
          full.kind),
          kinds.full(word), kind)
        n = n + 1
      end
      for _, r in ipairs((c:resources { verb = "list" })) do
        local group = r.kind:match "^(.+)/v"
        if not group or not group:find "metrics" then
          is(r.plural, r.kind)
          is(r.singular, r.kind)
          for _, short in ipairs(r.short_names or {}) do is(short, r.kind) end
        end
      end
      assert.is_true(n > 120)
      assert.equal("apps/v1/Deployment", kinds.full "deployments.apps")
      assert.equal("autoscaling/v1/HorizontalPodAutoscaler", kinds.full "hpa.v1.autoscaling")
      assert.equal("new.example.com/v1/Kind", kinds.full "new.example.com/v1/Kind")
    end)

    it("accepts kubectl's names in every call", function()
      for _, word in ipairs { "Namespace", "v1/Namespace", "namespaces", "namespace", "ns", "v1/namespaces",
        "namespaces.v1." } do
        assert.equal("default", c:get(word, "default").metadata.name)
      end
      for _, word in ipairs { "deploy", "deployments", "deployment.apps", "deployments.v1.apps",
        "apps/v1/deployments", "apps/Deployment" } do
        local r = c:resource(word)
        assert.equal("apps/v1/Deployment", r.group .. "/" .. r.version .. "/" .. r.kind)
        assert.equal("table", type(c:list(word, { namespace = "kube-system" })))
      end
      c:apply { kind = "v1/ConfigMap", namespace = "default", name = "discovery-spec" }
      c:delete("cm", "default", "discovery-spec")
      assert.is_nil(c:get("configmaps", "default", "discovery-spec"))
      local next_event, _, _, watch = c:watch("ns", { name = "default" })
      local event, o = next_event()
      watch:close()
      assert.equal("ADDED default", event .. " " .. o.metadata.name)
      assert.equal("Event", c:resource("ev").kind)
      assert.equal("", c:resource("events").group)
      assert.equal("events.k8s.io", c:resource("events.events.k8s.io").group)
    end)

    it("lists matching kinds, in the preferred version", function()
      local seen = {}
      for _, r in ipairs(c:resources { category = "all", verb = "list" }) do
        assert.is_nil(seen[r.kind])
        seen[r.kind] = r
      end
      assert.is_true(seen["v1/Pod"] and seen["apps/v1/Deployment"] and seen["v1/Service"] and true)
      assert.is_nil(seen["v1/ConfigMap"])
      assert.same({ "po" }, seen["v1/Pod"].short_names)
      for _, r in ipairs(c:resources { group = "", namespaced = false }) do assert.is_false(r.namespaced) end
      assert.same({}, (c:resources { group = "apps", version = "v9" }))
    end)

    it("suggests the nearest kind", function()
      local _, err = kube.try(c.list, c, "deploymets")
      assert.equal("not_found", err.kind)
      assert.matches('the server has no "deploymets"; did you mean "apps/v1/Deployment"', err.message, 1,
        true)
      _, err = kube.try(c.list, c, "gizmos.nowhere.example.org")
      assert.matches('it has no API group "nowhere.example.org": is the CRD installed?', err.message, 1, true)
    end)

    it("asks which of two groups is meant", function()
      c:apply(crd(A, "discos", "Disco", "dsc"))
      c:apply(crd(B, "discos", "Disco", "dsc"))
      finally(function()
        c:delete(CRD, "discos." .. A)
        c:delete(CRD, "discos." .. B)
      end)
      wait.until_true(20, "both groups are served", function()
        return kube.try(c.list, c, "discos." .. A) and kube.try(c.list, c, B .. "/v1/Disco")
      end)
      for _, word in ipairs { "Disco", "discos", "disco", "dsc" } do
        local _, err = kube.try(c.list, c, word)
        assert.equal("invalid", err.kind)
        assert.matches(("%q is in several API groups: name one of "):format(word), err.message, 1, true)
        assert.matches(A .. "/v1/Disco", err.message, 1, true)
        assert.matches(B .. "/v1/Disco", err.message, 1, true)
      end
      assert.equal(B, c:resource("dsc." .. B).group)
    end)

    it("fails for a group whose service is down, and for no other", function()
      local group = "down.discovery-spec.example.com"
      c:apply {
        kind = "apiregistration.k8s.io/v1/APIService", name = "v1." .. group,
        spec = {
          group = group, version = "v1", groupPriorityMinimum = 100, versionPriority = 10,
          insecureSkipTLSVerify = true,
          service = { namespace = "default", name = "nobody" },
        },
      }
      finally(function() c:delete("apiservices", "v1." .. group) end)
      wait.until_true(30, "the server knows that it is stale", function()
        local fresh <close> = kube.connect { kubeconfig = s.kubeconfig }
        local all, failed = fresh:resources()
        return #all > 10 and failed[group .. "/v1"]
      end)
      local fresh <close> = kube.connect { kubeconfig = s.kubeconfig }
      local all, failed = fresh:resources { group = "apps" }
      assert.is_true(#all > 3)
      assert.matches("is the API service behind it up?", failed[group .. "/v1"], 1, true)
      local _, err = kube.try(fresh.list, fresh, group .. "/v1/Thing")
      assert.matches("discovery of its API group failed", err.message, 1, true)
      assert.equal("default", fresh:get("ns", "default").metadata.name)
    end)

    it("caches on disk, private to its owner, and ignores a damaged file", function()
      local dir = process.tmpname ".cache"
      local function files()
        return (process.run("find " .. process.quote(dir) .. " -type f 2>/dev/null | wc -l"))
      end
      local function look()
        local other <close> = kube.connect { kubeconfig = s.kubeconfig, cache_dir = dir }
        return other:resource("deploy").kind
      end
      assert.equal("Deployment", look())
      assert.is_true(tonumber(files()) >= 2)
      local modes = process.run("find " .. process.quote(dir) .. " -printf '%m\\n' | sort -u")
      assert.equal("600\n700\n", modes)
      assert.equal("Deployment", look())
      process.run("find " .. process.quote(dir) .. " -type f -exec sh -c 'printf x >> \"$1\"' _ {} \\;")
      assert.equal("Deployment", look())
      local none = process.tmpname ".cache"
      local other <close> = kube.connect { kubeconfig = s.kubeconfig, cache_dir = false }
      assert.equal("Deployment", other:resource("deploy").kind)
      assert.is_nil(io.open(none))
    end)

    it("wakes controllers when their kind appears, and parks them when it goes", function()
      local group = "late.discovery-spec.example.com"
      local script = process.write(process.tmpname ".lua", ([[
        local kube = require "kubelua"
        return kube.controller {
          name = "late", resource = "%s/v1/Late",
          reconcile = function(o, ctx) ctx.log:info("saw %%s", o.metadata.name) end,
        }
      ]]):format(group))
      local run = process.spawn { KUBELUA, "run", script, "--kubeconfig", s.kubeconfig, "--log-level",
        "debug", name = "kubelua run" }
      finally(function()
        run:stop()
        kube.try(c.delete, c, CRD, "lates." .. group)
      end)
      local function logged(what, n)
        local count = 0
        for _ in run:log():gmatch(what) do count = count + 1 end
        return count >= (n or 1)
      end
      wait.until_true(20, "it is parked", function() return logged "a kind is missing" end)
      wait.until_true(20, "kinds are watched", function() return logged "customresourcedefinitions" end)
      c:apply(crd(group, "lates", "Late", "lt"))
      wait.until_true(20, "the kind is served", function()
        return kube.try(c.list, c, group .. "/v1/Late")
      end)
      c:create { kind = group .. "/v1/Late", namespace = "default", name = "first" }
      wait.until_true(20, "it reconciles", function() return logged "saw first" end)
      c:delete(CRD, "lates." .. group)
      wait.until_true(30, "it is parked again", function()
        return logged("informer is parked resource=lates")
      end)
      wait.until_true(20, "the CRD is gone", function() return c:get(CRD, "lates." .. group) == nil end)
      c:apply(crd(group, "lates", "Late", "lt"))
      wait.until_true(20, "the kind is served again", function()
        return kube.try(c.list, c, group .. "/v1/Late")
      end)
      c:create { kind = group .. "/v1/Late", namespace = "default", name = "second" }
      wait.until_true(25, "it reconciles again", function() return logged "saw second" end)
    end)
  end)
end)
