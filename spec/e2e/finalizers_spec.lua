-- finalizers_spec.lua - a controller with `finalize`: its finalizer is added before the first reconcile, and
-- removed after finalize succeeded.

local kube = require "kubelua"
local process = require "support.process"
local widgets = require "support.widgets"

local function finalizers(o) return table.concat(kube.copy(o("metadata.finalizers") or {}), " ") end

widgets.each("finalizers-spec", function(t)
  local function ours() return "kubelua.dev/" .. t.name end

  it("adds it before the first reconcile, finalizes instead of reconciling, and lets the object go",
    function()
    t.widget "w"
    t.run [[
      reconcile = function(obj, ctx)
        report(ctx, table.concat(kube.copy(obj.metadata.finalizers), " "))
      end,
      finalize = function(obj, ctx)
        report(ctx, "finalized, deleted at " .. (obj.metadata.deletionTimestamp and "some time" or "never"),
          "end-" .. ctx.name)
      end,
      when = { "generation" },]]
    t.reported("w", ours())
    assert.equal(ours(), finalizers(t.get "w"))
    t.client:delete(t.KIND, t.ns, "w")
    t.reported("end-w", "finalized, deleted at some time")
    t.gone "w"
    t.silent "reconcile failed"
  end)

  it("keeps it while finalize waits, asks for another run, or fails", function()
    for _, how in ipairs { "table", "number", "retry", "requeue", "error", "returned" } do t.widget(how) end
    t.run [[
      reconcile = function(obj, ctx) report(ctx, "seen") end,
      finalize = function(obj, ctx)
        local n = (runs[ctx.name] or 0) + 1
        runs[ctx.name] = n
        if n < 3 then
          local ways = {
            table = { requeue_after = "10ms", status = { n = n } }, number = 0.01,
            retry = kube.retry("10ms", "soon"), requeue = { requeue = true },
          }
          if ctx.name == "error" then error "the bucket is not empty" end
          if ctx.name == "returned" then return nil, "the bucket is full" end
          return ways[ctx.name]
        end
        report(ctx, "finalized at run " .. n, "end-" .. ctx.name)
        return { events = { { reason = "Finalized", message = "gone" } } }
      end]]
    for _, how in ipairs { "table", "number", "retry", "requeue", "error", "returned" } do
      t.reported(how, "seen")
      t.client:delete(t.KIND, t.ns, how)
    end
    for _, how in ipairs { "table", "number", "retry", "requeue", "error", "returned" } do
      t.reported("end-" .. how, "finalized at run 3")
      t.gone(how)
    end
    t.says "the bucket is not empty"
    t.says "the bucket is full"
  end)

  it("ignores a deleted object that never had it", function()
    local widget = { apiVersion = t.KIND:match "^(.*)/", kind = "Widget", spec = {},
      metadata = { namespace = t.ns, name = "other", finalizers = { "example.com/other" } } }
    t.client:create(widget)
    t.client:delete(t.KIND, t.ns, "other")
    t.widget "w"
    t.run [[
      reconcile = function(obj, ctx) report(ctx, "seen") end,
      finalize = function(obj, ctx) report(ctx, "finalized", "end-" .. ctx.name) end,
      workers = 1, concurrency = 1]]
    t.reported("w", "seen")
    t.client:delete(t.KIND, t.ns, "w")
    t.reported("end-w", "finalized")
    assert.equal("example.com/other", finalizers(t.get "other"))
    assert.is_nil(t.report "other")
    assert.is_nil(t.report "end-other")
    t.client:patch(t.get "other", { metadata = { finalizers = kube.null } })
  end)

  it("removes its own, however often it appears, and no others", function()
    local widget = { apiVersion = t.KIND:match "^(.*)/", kind = "Widget", spec = {} }
    widget.metadata = { namespace = t.ns, name = "w",
      finalizers = { ours(), "example.com/a", ours(), "example.com/b" } }
    t.client:create(widget)
    t.run [[reconcile = function(obj, ctx) report(ctx, "seen") end, finalize = function() end]]
    t.reported("w", "seen")
    t.client:delete(t.KIND, t.ns, "w")
    local left = t.await("w", "ours is gone", function(o)
      return o and finalizers(o) == "example.com/a example.com/b"
    end)
    t.client:patch(left, { metadata = { finalizers = kube.null } })
    t.gone "w"
  end)

  it("finalizes again after a conflict only if the generation changed", function()
    t.widget("moved", { n = 1 })
    t.widget("changed", { n = 1 })
    t.run [[
      reconcile = function(obj, ctx) report(ctx, "seen") end,
      finalize = function(obj, ctx)
        runs[ctx.name] = (runs[ctx.name] or 0) + 1
        ctx:patch_status(obj, function(o) o.status.phase = "ending" end)
        ctx:patch({ kind = obj.apiVersion .. "/Widget", name = ctx.name },
          { metadata = { labels = { moved = "yes" } } })
        if ctx.name == "changed" and runs[ctx.name] == 1 then
          ctx:patch({ kind = obj.apiVersion .. "/Widget", name = ctx.name }, { spec = { n = 2 } })
        end
        report(ctx, runs[ctx.name] .. " n=" .. obj.spec.n, "end-" .. ctx.name)
      end]]
    for _, name in ipairs { "moved", "changed" } do
      t.reported(name, "seen")
      t.client:delete(t.KIND, t.ns, name)
    end
    t.gone "moved"
    t.gone "changed"
    t.reported("end-moved", "1 n=1")
    assert.truthy(t.reported "end-changed":find "^%d+ n=2$")
    t.silent "reconcile failed"
  end)

  it("has the script's name, and takes over its former names", function()
    t.client:create {
      apiVersion = t.KIND:match "^(.*)/", kind = "Widget", spec = {},
      metadata = { namespace = t.ns, name = "w", finalizers = { "example.com/old", "example.com/a" } },
    }
    t.run [[
      finalizer = { "example.com/new", "example.com/old" },
      reconcile = function(obj, ctx) report(ctx, table.concat(kube.copy(obj.metadata.finalizers), " ")) end,
      finalize = function(obj, ctx) report(ctx, "finalized", "end-" .. ctx.name) end]]
    t.reported("w", "example.com/a example.com/new")
    t.client:delete(t.KIND, t.ns, "w")
    t.reported("end-w", "finalized")
    local left = t.await("w", "ours is gone", function(o) return o and finalizers(o) == "example.com/a" end)
    t.client:patch(left, { metadata = { finalizers = kube.null } })
    t.gone "w"
  end)

  it("finalizes objects deleted before the controller ran, by an old name too", function()
    for name, finalizer in pairs { now = ours(), before = "example.com/old" } do
      t.client:create {
        apiVersion = t.KIND:match "^(.*)/", kind = "Widget", spec = {},
        metadata = { namespace = t.ns, name = name, finalizers = { finalizer } },
      }
      t.client:delete(t.KIND, t.ns, name)
    end
    t.run(([[
      finalizer = { "%s", "example.com/old" }, reconcile = function(obj, ctx) report(ctx, "seen") end,
      finalize = function(obj, ctx) report(ctx, "finalized", "end-" .. ctx.name) end]]):format(ours()))
    for _, name in ipairs { "now", "before" } do
      t.reported("end-" .. name, "finalized")
      t.gone(name)
      assert.is_nil(t.report(name))
    end
  end)

  it("reports once how many objects keep a finalizer whose controller has no finalize any more", function()
    for i = 1, 2 do
      t.client:create {
        apiVersion = t.KIND:match "^(.*)/", kind = "Widget", spec = {},
        metadata = { namespace = t.ns, name = "w" .. i, finalizers = { ours() } },
      }
    end
    local run = t.run [[finalizer = "example.com/named", finalize = function() end,
      reconcile = function(obj, ctx) report(ctx, "seen") end]]
    t.reported("w1", "seen")
    t.reported("w2", "seen")
    t.silent "still carry"
    process.write(run.script_path, t.script [[reconcile = function(obj, ctx) report(ctx, "seen again") end]])
    t.reported("w1", "seen again")
    for _, name in ipairs { ours(), "example.com/named" } do
      t.says("finalizer=" .. name .. " objects=2 first=" .. t.ns .. "/w1")
    end
    t.says "kubelua release-finalizers removes it"
    for i = 1, 2 do t.client:patch(t.get("w" .. i), { metadata = { finalizers = kube.null } }) end
  end)

  it("sees the same fields whether it was just added or not, if only some are kept",
    function()
    t.widget("w", { kept = "k", cut = "c" })
    t.run [[
      fields = { "spec.kept" },
      reconcile = function(obj, ctx)
        report(ctx, obj.spec.kept .. " " .. tostring(pcall(function() return obj.spec.cut end))
          .. " " .. #obj.metadata.finalizers)
        if not obj("metadata.labels.second") then
          ctx:patch(obj, { metadata = { labels = { second = "yes" } } }) else report(ctx, "again", "second")
        end
      end,
      finalize = function(obj, ctx) report(ctx, obj.spec.kept, "end-" .. ctx.name) end]]
    t.reported("second", "again")
    t.reported("w", "k false 1")
    t.client:delete(t.KIND, t.ns, "w")
    t.reported("end-w", "k")
    t.gone "w"
  end)
end)
