-- queue_spec.lua - the order of runs as scripts and servers see it: after a key's own writes are shown, one
-- key of a serial group at a time, and no more after too many failures.

local process = require "support.process"
local wait = require "support.wait"
local widgets = require "support.widgets"

widgets.each("queue-spec", function(t)
  -- Each run looks at its cache and makes, or deletes, what comes next; one that saw an old state would
  -- make what is there already.
  local COUNTER = [[
      reads = { "v1/ConfigMap" },
      timeout = "1m",
      %s
      reconcile = function(obj, ctx)
        local label = { labels = "counter=" .. ctx.name }
        local there = ctx:list("v1/ConfigMap", label)
        local live = ctx.live:list("v1/ConfigMap", label)
        if #live ~= #there then return nil, ("stale: %%d are there, %%d are seen"):format(#live, #there) end
        if obj.spec.to == #there then return { status = { n = #there } } end
        if obj.spec.to > #there then
          ctx:create { kind = "v1/ConfigMap", name = ctx.name .. "-" .. #there,
            labels = { counter = ctx.name } }
        else
          ctx:delete(there[#there])
        end
        return { requeue_after = "1ms" }
      end]]

  it("a run sees all writes and deletions of the one before it", function()
    t.run(COUNTER:format "own_writes = '60s',")
    for i = 1, 4 do t.widget("w" .. i, { to = 25 }) end
    for i = 1, 4 do t.await("w" .. i, "25 objects", function(o) return o("status.n") == 25 end) end
    for i = 1, 4 do t.client:patch(t.get("w" .. i), { spec = { to = 0 } }) end
    for i = 1, 4 do t.await("w" .. i, "no object", function(o) return o("status.n") == 0 end) end
    t.silent "stale"
    t.silent "running anyway"
  end)

  it("and so does the next one of its group", function()
    -- All of them count the same objects; without the group they would run side by side.
    t.run([[
      reads = { "v1/ConfigMap" },
      workers = 3,
      own_writes = "60s",
      serial = function(obj) return obj.spec.pool end,
      reconcile = function(obj, ctx)
        local label = { labels = "pool=" .. obj.spec.pool }
        local there, live = ctx:list("v1/ConfigMap", label), ctx.live:list("v1/ConfigMap", label)
        if #live ~= #there then return nil, ("stale: %d are there, %d are seen"):format(#live, #there) end
        if obj("status.mine") then return end
        ctx:create { kind = "v1/ConfigMap", name = obj.spec.pool .. "-" .. #there,
          labels = { pool = obj.spec.pool } }
        return { status = { mine = #there } }
      end]])
    for i = 1, 24 do t.widget("w" .. i, { pool = "p" .. i % 2 }) end
    local had = {}
    for i = 1, 24 do
      local o = t.await("w" .. i, "its turn", function(o) return o("status.mine") end)
      local turn = o.spec.pool .. " " .. o.status.mine
      assert.is_nil(had[turn])
      had[turn] = true
    end
    t.silent "stale"
  end)

  it("keys that one event wakes run side by side, on as many workers as there are", function()
    t.run([[
      workers = 3, concurrency = 1, timeout = "1m",
      watches = { ["v1/ConfigMap"] = function(o)
        if o.metadata.name == "go" then
          return { o.metadata.namespace .. "/w1", o.metadata.namespace .. "/w2",
            o.metadata.namespace .. "/w3" }
        end
      end },
      reconcile = function(obj, ctx)
        if not ctx:get("v1/ConfigMap", "go") then return { status = { waits = true } } end
        ctx:apply { kind = "v1/ConfigMap", name = "here-" .. ctx.name, labels = { here = "yes" } }
        -- It holds its worker until the others have come, too.
        while #ctx.live:list("v1/ConfigMap", { labels = "here=yes" }) < 3 do ctx:sleep "20ms" end
        return { status = { done = true } }
      end]])
    for i = 1, 3 do
      t.widget("w" .. i)
      t.await("w" .. i, "its first run", function(o) return o("status.waits") end)
    end
    t.client:create { kind = "v1/ConfigMap", namespace = t.ns, name = "go" }
    for i = 1, 3 do t.await("w" .. i, "its run", function(o) return o("status.done") end) end
  end)

  for name, serial in pairs { ["a path"] = '"spec.node"',
    ["a function"] = "function(obj) return obj.spec.node end" } do
    it("runs of equal texts do not overlap, over all workers: " .. name, function()
      -- The lock is an object of the server: it is there while somebody runs.
      t.run(([[
      workers = 3,
      serial = %s,
      reconcile = function(obj, ctx)
        if obj("status.done") then return end
        local lock = { kind = "v1/ConfigMap", name = "lock-" .. (obj.spec.node or ctx.name) }
        local ok, e = kube.try(ctx.create, ctx, lock)
        if not ok then return { status = { overlap = tostring(e) } } end
        ctx:sleep "20ms"
        ctx:delete("v1/ConfigMap", ctx.namespace .. "/" .. lock.name)
        return { status = { done = true } }
      end]]):format(serial))
      for i = 1, 18 do t.widget("w" .. i, { node = i % 4 > 0 and "n" .. i % 4 or nil }) end
      for i = 1, 18 do
        t.await("w" .. i, "its run", function(o) return o("status.done") or error(o("status.overlap")) end)
      end
    end)
  end

  it("after give_up failures in a row a key waits until its object or script changes",
    function()
    local function policy(give_up)
      return ([[
      backoff = { base = "1ms", max = "2ms", give_up = %d },
      resync = "100ms",
      reconcile = function(obj, ctx)
        report(ctx, (obj.spec.n or 0) .. ":" .. ctx.attempt)
        if obj.spec.n == 3 then return { status = { well = true } } end
        error("no " .. obj.spec.n)
      end]]):format(give_up)
    end
    t.run(policy(3))
    t.widget("w", { n = 1 })
    t.says "reconcile failed too often, waiting for the object to change"
    assert.equal("1:3", t.report "w")
    wait.until_true(30, "the event", function()
      for event in t.client:each("events.k8s.io/v1/Event", { namespace = t.ns }) do
        if event.reason == "GaveUp" then
          return event.type == "Warning" and event.note:find("gave up after 3 failures in a row", 1, true)
        end
      end
    end)
    t.widget("other", { n = 3 })
    t.await("other", "another one goes on", function(o) return o("status.well") end)
    t.client:patch(t.get "w", { spec = { n = 2 } })
    t.reported("w", "2:3")
    process.write(t.process.script_path, t.script(policy(5)))
    t.says "a new generation took over"
    t.reported("w", "2:5")
    t.client:patch(t.get "w", { spec = { n = 3 } })
    t.await("w", "it is well", function(o) return o("status.well") end)
    local _, times = t.process:log():gsub("reconcile failed too often", "")
    assert.equal(3, times, t.process:log())
  end)
end)
