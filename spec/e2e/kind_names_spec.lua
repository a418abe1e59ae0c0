-- kind_names_spec.lua - kinds by their other names, wherever a script names one: in the table of a
-- controller, in every call of ctx, in calls of a client.

local kube = require "kubelua"
local widgets = require "support.widgets"

widgets.each("kind-names-spec", function(t)
  local function exists(word, name) return t.client:get(word, t.ns, name) ~= nil end

  it("a controller names kinds as kubectl does", function()
    local owner = t.widget("w", {})
    t.client:create { kind = "v1/Secret", namespace = t.ns, name = "token", stringData = { key = "sesame" } }
    for _, name in ipairs { "old-a", "old-b", "old-c" } do
      t.client:create { kind = "v1/ConfigMap", namespace = t.ns, name = name, labels = { app = "old" } }
    end
    t.run [[
      owns = { cm = { selector = "!nothing" } }, reads = { "secrets" },
      indexes = { cm = { app = "metadata.labels.app" } },
      watches = { ["deployments.apps"] = "owner" }, fields = { deploy = { "metadata.name" } },
      reconcile = function(obj, ctx)
        if obj.status then return end
        ctx:apply { kind = "v1/ConfigMap", name = "child", data = { a = "b" } }
        local old = #ctx:list("configmaps", { index = "app", value = "old" })
        ctx:delete("cm", "old-a")
        ctx:delete("configmap", ctx.namespace, "old-b")
        local alive = ctx.live:get("cm", "old-c") ~= nil
        return { delete = { kind = "cm", name = "old-c" },
          status = { old = old, alive = alive, key = kube.base64_decode(ctx:get("secret", "token").data.key),
            widget = ctx:get("widgets", obj.metadata.name).metadata.name,
            pods = #ctx.live:list("po", { namespace = ctx.namespace }),
            named = #ctx:list "Deployment" } }
      end]]
    local o = t.await("w", "it ran", function(o) return o and o.status and o end)
    assert.same({ old = 3, alive = true, key = "sesame", widget = "w", pods = 0, named = 0 },
      kube.copy(o or t.get("w")).status)
    assert.equal(owner.metadata.uid, kube.controller_of(t.client:get("cm", t.ns, "child")).uid)
    for _, name in ipairs { "old-a", "old-b", "old-c" } do assert.is_false(exists("cm", name), name) end
  end)

  it("an unknown name is rejected, with the server's kinds", function()
    t.widget("w", {})
    t.run [[
      reconcile = function(obj, ctx)
        local _, cached = pcall(ctx.get, ctx, "cm", "a")
        local _, kind = kube.try(ctx.delete, ctx, "confimaps", "a")
        local _, live = kube.try(function() return ctx.live:list "widgetz.kind-names-spec.kubelua.dev" end)
        return { status = { cached = tostring(cached), kind = tostring(kind), live = tostring(live) } }
      end]]
    local status = kube.copy(t.await("w", "it ran", function(o) return o and o.status and o end)
      or t.get "w").status
    assert.matches('does not keep v1/ConfigMap in its cache: add it to reads = { "v1/ConfigMap" }',
      status.cached, 1, true)
    assert.matches('the server has no "confimaps"; did you mean "v1/ConfigMap"?', status.kind, 1, true)
    assert.matches('the server has no "widgetz.kind-names-spec.kubelua.dev"; did you mean ', status.live, 1,
      true)
    assert.matches(t.KIND, status.live, 1, true)
  end)
end)
