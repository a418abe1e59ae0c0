-- elide_spec.lua - writes that would change nothing are not sent, and changes by others are still corrected.

local controller = require "support.controller"
local wait = require "support.wait"
local widgets = require "support.widgets"

local SECONDS = 30

widgets.each("elide-spec", function(t)
  local function metrics() return controller.metrics(t.process) end

  -- The numbers of sent and of elided writes, from the client's metrics. The Lease and Events use other
  -- methods, or do not occur here.
  local function counts()
    local text, sent = metrics(), 0
    for method, n in text:gmatch '\nrest_client_requests_total{[^}]*method="(%u+)"[^}]*} (%d+)' do
      if method ~= "GET" then sent = sent + tonumber(n) end
    end
    local elided = tonumber(text:match '\nkubelua_elided_writes_total{[^}]*} (%d+)')
    return sent, elided or 0
  end

  local touches = 0

  -- One more run, which reports itself; returns the numbers of sent and of elided writes.
  local function round(name)
    touches = touches + 1
    local word = ("touch-%dx"):format(touches)
    local sent, elided = counts()
    t.client:patch(t.get(name), { metadata = { labels = { touch = word } } })
    t.says("done with " .. word)
    local sent_now, elided_now = counts()
    return sent_now - sent, elided_now - elided
  end

  -- Repeats rounds until one sends nothing and elides at least `least` writes: then the caches have caught up
  -- with the answers.
  local function quiet(name, least)
    local sent, elided
    local ok, why = pcall(wait.until_true, SECONDS, "a round without a write", function()
      sent, elided = round(name)
      return sent == 0 and elided >= least
    end)
    if not ok then
      error(("the last round sent %s and left out %s: %s; the log:\n%s"):format(sent, elided, why,
        t.process:log()), 2)
    end
  end

  local function run(lines) t.run(lines, "--metrics-bind-address", "127.0.0.1:0") end

  it("a repeated apply, in the body and in a result, until the object changes",
    function()
    t.widget("w", { n = 1 })
    run [[
      owns = { "v1/ConfigMap" }, managed_fields = false,
      reconcile = function(obj, ctx)
        local a = ctx:apply({ kind = "v1/ConfigMap", name = "a", data = { n = tostring(obj.spec.n) } },
          { force = true })
        ctx.log:info("done with %s %s", obj("metadata.labels.touch") or "nothing", a.data.n)
        return { apply = { { kind = "v1/ConfigMap", name = "b", data = { n = tostring(obj.spec.n) } } },
          force = true, status = { n = obj.spec.n } }
      end]]
    quiet("w", 2)
    -- Drift: the object has another version.
    t.client:patch(t.client:get("v1/ConfigMap", t.ns, "a"), { data = { n = "drifted" } })
    t.await("w", "the drift is put right", function()
      return t.client:get("v1/ConfigMap", t.ns, "a").data.n == "1"
    end)
    quiet("w", 2)
    t.client:delete("v1/ConfigMap", t.ns, "b")
    t.await("w", "b is back", function() return t.client:get("v1/ConfigMap", t.ns, "b") end)
    -- The desired state changes.
    t.client:patch(t.get "w", { spec = { n = 2 } })
    t.await("w", "both have it", function()
      return t.client:get("v1/ConfigMap", t.ns, "a").data.n == "2"
        and t.client:get("v1/ConfigMap", t.ns, "b").data.n == "2"
    end)
    quiet("w", 2)
    t.silent "reconcile failed"
  end)

  it("updates, patches and create_or_* that leave the object as the cache has it", function()
    t.client:create { kind = "v1/ConfigMap", namespace = t.ns, name = "m", data = { a = "1" } }
    t.widget("w", { a = "1" })
    run [[
      reads = { "v1/ConfigMap" },
      reconcile = function(obj, ctx)
        local m = ctx:get("v1/ConfigMap", "m")
        ctx:update(m)
        ctx:patch(m, { data = { a = obj.spec.a, absent = kube.null } })
        ctx:patch({ kind = "v1/ConfigMap", name = "m" }, { data = { a = obj.spec.a } })
        local _, how = ctx:create_or_update({ kind = "v1/ConfigMap", name = "m" },
          function(d) d.data.a = obj.spec.a end)
        local _, also = ctx:create_or_patch({ kind = "v1/ConfigMap", name = "m" },
          function(d) d.data.a = obj.spec.a end)
        ctx.log:info("done with %s %s %s", obj("metadata.labels.touch") or "nothing", how, also)
      end]]
    quiet("w", 5)
    t.says "unchanged unchanged"
    t.client:patch(t.get "w", { spec = { a = "2" } })
    t.await("w", "the map has it", function()
      return t.client:get("v1/ConfigMap", t.ns, "m").data.a == "2"
    end)
    quiet("w", 5)
  end)

  it("no write with always = true, and none after a list from the server", function()
    t.client:create { kind = "v1/ConfigMap", namespace = t.ns, name = "m", data = { a = "1" } }
    t.widget("w", {})
    run [[
      reads = { "v1/ConfigMap" },
      reconcile = function(obj, ctx)
        local m = ctx:get("v1/ConfigMap", "m")
        ctx:patch(m, { data = { a = "1" } }, { always = true })
        ctx:update(ctx:get("v1/ConfigMap", "m"), { always = true })
        ctx.live:list("v1/ConfigMap", { namespace = ctx.namespace })
        ctx:patch(m, { data = { a = "1" } })
        ctx.log:info("done with %s", obj("metadata.labels.touch") or "nothing")
      end]]
    t.says "done with nothing"
    local sent, elided = round "w"
    assert.equal(0, elided)
    assert.is_true(sent >= 3)
    assert.equal("1", t.client:get("v1/ConfigMap", t.ns, "m").data.a)
  end)

  it("but not two applies of one run with another write between them", function()
    t.widget("w", {})
    run [[
      reads = { "v1/ConfigMap" },
      reconcile = function(obj, ctx)
        local function n(x) return { kind = "v1/ConfigMap", name = "m", data = { n = x } } end
        ctx:apply(n "1")
        ctx:apply(n "2")
        local seen = ctx:apply(n "1")
        ctx.log:info("done with %s", obj("metadata.labels.touch") or "nothing")
        return { status = { seen = seen.data.n } }
      end, when = { "labels" }]]
    t.await("w", "what the last apply said", function(o) return o("status.seen") == "1" end)
    for _ = 1, 3 do
      round "w"
      assert.equal("1", t.client:get("v1/ConfigMap", t.ns, "m").data.n)
    end
  end)
end)
