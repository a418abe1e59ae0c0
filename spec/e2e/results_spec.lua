-- results_spec.lua - the results of a reconcile: effects in order and as a whole, conditions, and requeues.

local kube = require "kubelua"
local widgets = require "support.widgets"

local function condition(o, name) return o and kube.find_condition(o, name or "Ready") end

widgets.each("results-spec", function(t)
  it("a raised value is shown in full, a table as JSON, and a wrong format with its line", function()
    t.run [[reconcile = function(obj, ctx)
      if obj.metadata.name == "table" then error { code = 7 } end
      ctx.log:info("%d", "x")
    end]]
    t.widget "table"
    t.says [[error="{\"code\":7}"]]
    t.widget "format"
    t.says [[ctx.log:info(\"%d\"): argument 1 of the format: number expected, got string]]
    assert.matches("error=\"[^ ]*lua:%d+: ctx.log:info%(", t.process:log())
  end)

  it("merges conditions by type, keeps their times while unchanged, and sets their generation",
    function()
    t.client:update_status(t.client:patch(t.widget("w", { ready = false }), function(o)
      o.status = { conditions = { { type = "Foreign", status = "True", reason = "Theirs", message = "",
        lastTransitionTime = "2020-01-01T00:00:00Z" } } }
    end))
    t.run [[
      reconcile = function(obj, ctx)
        return {
          status = { conditions = { { type = "Ready", status = obj.spec.ready,
            reason = obj.spec.reason or "Tested", message = "n" .. (obj.spec.n or 0) } } },
          observed_generation = true,
        }
      end]]
    local one = t.await("w", "a condition", function(o) return condition(o) end)
    assert.same({ "False", "Tested", "n0", 1, 1 }, { condition(one).status, condition(one).reason,
      condition(one).message, condition(one).observedGeneration, one.status.observedGeneration })
    local at = condition(one).lastTransitionTime
    t.client:patch(one, { spec = { n = 2, reason = "Again" } })
    local two = t.await("w", "its second state", function(o) return condition(o).message == "n2" end)
    assert.same({ at, "Again", 2 }, { condition(two).lastTransitionTime, condition(two).reason,
      condition(two).observedGeneration })
    -- A status that moves takes a new time: an old one in its place shows it whatever the clock says.
    t.client:patch_status(two, function(o)
      for _, c in ipairs(o.status.conditions) do
        if c.type == "Ready" then c.lastTransitionTime = "2001-01-01T00:00:00Z" end
      end
    end)
    t.client:patch(t.get "w", { spec = { ready = true } })
    local three = t.await("w", "it is ready", function(o) return condition(o).status == "True" end)
    assert.is_true(condition(three).lastTransitionTime > "2020-01-01T00:00:00Z")
    assert.equal("2020-01-01T00:00:00Z", condition(three, "Foreign").lastTransitionTime)
  end)

  it("writes a status only when something in it changed", function()
    t.widget("w", { n = 1 })
    t.run [[
      reconcile = function(obj, ctx)
        report(ctx, obj("metadata.labels.touched") or "no")
        return { status = { n = obj.spec.n,
          conditions = { { type = "Ready", status = "True", reason = "Ok" } } }, observed_generation = true }
      end]]
    local before = t.await("w", "the status", function(o) return o("status.n") == 1 end)
    local touched = t.client:patch(before, { metadata = { labels = { touched = "yes" } } })
    t.reported("w", "yes")
    t.widget("after", { n = 2 })
    t.await("after", "another's status", function(o) return o("status.n") == 2 end)
    assert.equal(touched.metadata.resourceVersion, t.get("w").metadata.resourceVersion)
  end)

  it("sends nothing if any part is invalid, and keeps writes before a failure", function()
    t.widget("wrong", {})
    t.widget("refused", {})
    t.run [[
      reconcile = function(obj, ctx)
        if ctx.name == "wrong" then
          return { apply = { { kind = "v1/ConfigMap", name = "never" },
            { kind = "v1/NoSuchKind", name = "x" } }, status = { n = 1 } }
        end
        return {
          apply = { { kind = "v1/ConfigMap", name = "first", data = { attempt = tostring(ctx.attempt) } },
            { kind = "v1/ConfigMap", name = "Not_A_Name" } },
          status = { n = 1 }, requeue_after = "1h",
        }
      end]]
    t.says "NoSuchKind"
    t.says "Not_A_Name"
    -- A failure is retried, whatever the result requests for the next run.
    t.await("refused", "the second attempt", function()
      local o = t.client:get("v1/ConfigMap", t.ns, "first")
      return o and tonumber(o.data.attempt) > 1
    end)
    assert.is_nil(t.client:get("v1/ConfigMap", t.ns, "never"))
    assert.is_nil(t.get "refused"("status"))
    assert.is_nil(t.get "wrong"("status"))
  end)

  it("may end in a failure or a requeue after its effects", function()
    for _, name in ipairs { "error", "fail", "requeue" } do t.widget(name, {}) end
    t.run [[
      reconcile = function(obj, ctx)
        local n = (runs[ctx.name] or 0) + 1
        runs[ctx.name] = n
        if n == 3 then return report(ctx, "attempt " .. ctx.attempt) end
        return {
          status = { phase = "run " .. n },
          [ctx.name] = ctx.name == "requeue" or ctx.name .. " of the bucket",
        }
      end, when = { "generation" },]]
    t.reported("error", "attempt 3")
    t.reported("requeue", "attempt 3")
    t.says "error of the bucket"
    t.says "failed for good"
    assert.equal("run 1", t.await("fail", "its status", function(o)
      return o("status.phase")
    end).status.phase)
    assert.equal("run 2", t.get("error").status.phase)
    assert.is_nil(t.report "fail")
  end)

  it("deletes objects and lists of them", function()
    for _, name in ipairs { "a", "b", "c" } do
      t.client:create { kind = "v1/ConfigMap", namespace = t.ns, name = name, labels = { old = "yes" } }
    end
    t.widget("w", {})
    t.run [[ reads = { "v1/ConfigMap" }, reconcile = function(obj, ctx)
      return { delete = ctx:list("v1/ConfigMap", { namespace = ctx.namespace, labels = "old" }) }
    end ]]
    t.await("w", "they are gone", function()
      return #t.client:list("v1/ConfigMap", { namespace = t.ns, labels = "old" }) == 0
    end)
  end)
end)

widgets.each("plain-spec", function(t)
  it("leaves observedGeneration out of conditions whose schema does not have it", function()
    t.widget("w", { n = 1 })
    t.run [[
      reconcile = function(obj, ctx)
        return { status = { conditions = { { type = "Ready", status = "True",
          reason = "Ok", message = "n" .. obj.spec.n } } } }
      end]]
    local one = t.await("w", "a condition", function(o) return condition(o) end)
    assert.is_nil(condition(one).observedGeneration)
    t.client:patch(one, { spec = { n = 2 } })
    t.await("w", "the second", function(o) return condition(o).message == "n2" end)
    t.silent "reconcile failed"
  end)
end, { plain = true })
