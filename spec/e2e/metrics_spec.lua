-- metrics_spec.lua - kube.counter, kube.gauge and kube.histogram: the metrics of a script.

local controller = require "support.controller"
local process = require "support.process"
local promtext = require "support.promtext"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

local SOURCE = [[
  local kube = require "kubelua"
  %s
  return kube.controller { name = "counts", resource = "v1/ConfigMap", reconcile = function(o, ctx) %s end }
]]

local function map(name) return { kind = "v1/ConfigMap", name = name, data = { n = "0" } } end

describe("what a script counts", function()
  local t
  after_each(function()
    if t then t:stop() end
    t = nil
  end)

  local function start(declarations, body, objects)
    t = kube.testing.start { source = SOURCE:format(declarations, body or ""),
      objects = objects or { map "a", map "b" } }
    return t
  end
  -- The error of its load.
  local function refused(declarations)
    local ok, why = pcall(start, declarations)
    assert.is_false(ok)
    return (tostring(why):gsub("^.-:%d+: ", ""))
  end
  -- The error of its run.
  local function failed(declarations, body)
    start(declarations, body, { map "a" })
    return ((t:runs("a")[1].message or ""):gsub("^.-:%d+: ", ""))
  end

  it("can be read in a test, by its labels", function()
    start([[
      local seen = kube.counter { name = "seen_total", help = "Seen.", labels = { "ns", "ok" } }
      local keys = kube.gauge { name = "keys", help = "Keys.", labels = { "name" } }
      local size = kube.histogram { name = "size", help = "Size.", buckets = { 1, 10 } }
    ]], [[
      seen:inc(1, { ns = ctx.namespace, ok = true })
      seen:inc(0.5, { ns = ctx.namespace, ok = true })
      keys:set(8, { name = ctx.name }) keys:inc(nil, { name = ctx.name }) keys:dec(3, { name = ctx.name })
      if ctx.name == "b" then keys:remove { name = "b" } end
      size:observe(2) size:observe(3.5)
    ]])
    assert.equal(3, t:metric("seen_total", { ns = "default", ok = true }))
    assert.equal(6, t:metric("keys", { name = "a" }))
    assert.is_nil(t:metric("keys", { name = "b" }))
    assert.same({ 11, 4 }, { t:metric "size" })
    assert.is_nil(t:metric "seen_total")
    assert.is_nil(t:metric "nothing")
  end)

  it("works in modules and through passed handles", function()
    start([[local made = kube.counter { name = "made_total", help = "Made." }
      local function count(with) with:inc() end]], "count(made)")
    assert.equal(2, t:metric "made_total")
  end)

  it("needs a complete declaration, or the error says how", function()
    local C = 'kube.counter { name = %s, help = "x" }'
    for text, why in pairs {
      ["kube.counter()"] = 'kube.counter takes a table, { name = ..., help = ... }, got nothing',
      [C:format '"a-b"'] = 'counter "a-b": a metric\'s name has letters, digits and _, such as \z
        "dns_records_made_total"',
      [C:format '"kubelua_x"'] = 'counter "kubelua_x": names that start with kubelua_ are reserved for \z
        kubelua',
      [C:format '"rest_client_x"'] = 'counter "rest_client_x": names that start with rest_client_ are \z
        reserved for kubelua',
      [C:format '"x"' .. " " .. C:format '"x"'] =
        'counter "x": it is declared twice; declare it once, in a module that others require',
      ['kube.histogram { name = "x", help = "x" } ' .. C:format '"x_sum"'] =
        'counter "x_sum": the histogram x has samples of this name; rename one of the two',
      [C:format '"x_bucket"' .. ' kube.histogram { name = "x", help = "x" }'] =
        'histogram "x": its samples x_bucket would have the name of another metric; rename one of the two',
      ['kube.gauge { name = "x" }'] = 'gauge "x": help must be one line that describes the metric',
      ['kube.gauge { name = "x", help = "a\\nb" }'] = 'gauge "x": help must be one line that describes the \z
        metric',
      ['kube.gauge { name = "x", help = "x", label = {} }'] =
        "gauge \"x\": kube.gauge: unknown key 'label'; did you mean 'labels'?",
      ['kube.gauge { name = "x", help = "x", buckets = { 1 } }'] = "gauge \"x\": kube.gauge: unknown key \z
        'buckets'; known are: help, labels, name, series",
      ['kube.gauge { name = "x", help = "x", labels = "zone" }'] = 'gauge "x": labels must be a list, got \z
        string',
      ['kube.gauge { name = "x", help = "x", labels = { zone = "eu" } }'] = 'gauge "x": labels must be a \z
        list; it has a zone',
      ['kube.gauge { name = "x", help = "x", labels = { "a b" } }'] =
        'gauge "x": labels[1]: a label\'s name has letters, digits and _, got a b',
      ['kube.gauge { name = "x", help = "x", labels = { "a", "a" } }'] =
        'gauge "x": labels[2]: a is listed twice',
      ['kube.histogram { name = "x", help = "x", labels = { "le" } }'] =
        'histogram "x": labels[1]: "le" is the label of a histogram\'s buckets',
      ['kube.histogram { name = "x", help = "x", buckets = { 2, 1 } }'] = 'histogram "x": buckets[2] is 1, \z
        after 2: they must ascend',
      ['kube.histogram { name = "x", help = "x", buckets = {} }'] = 'histogram "x": buckets must be a list \z
        of numbers',
      ['kube.gauge { name = "x", help = "x", series = 1e6 }'] =
        'gauge "x": series must be a whole number from 1 to 10000, got 1000000.0',
    } do
      assert.equal(why, refused(text))
    end
  end)

  it("needs all labels, or the run says which are missing", function()
    local L = 'local c = kube.counter { name = "c", help = "x", labels = { "zone" } } \z
      local g = kube.gauge { name = "g", help = "x" }'
    for body, why in pairs {
      ["c:inc()"] = 'counter "c": inc: the label zone is missing; each call gives all of them',
      ["c:inc { zone = 'eu' }"] = 'counter "c": inc: give the number first, then the labels: name:inc(1, { \z
        ... })',
      ["c:inc(1, { zone = 'eu', zon = 1 })"] = 'counter "c": inc: there is no label zon; did you mean \z
        \'zone\'?',
      ["c:inc(1, { zone = {} })"] = 'counter "c": inc: the label zone must be a string, a number or a \z
        boolean, got table',
      ["c:inc(-1, { zone = 'eu' })"] =
        'counter "c": inc: a counter only grows, got -1; use kube.gauge for values that go up and down',
      ["g:set(0 / 0)"] = 'gauge "g": set: expected a number, got ',
      ["g:set 'x'"] = 'gauge "g": set: expected a number, got string',
      ["g.set(1)"] = "call gauge.set with a colon: name:set(...)",
      ["g:sett(1)"] = 'gauge "g": a gauge has no sett; did you mean \'set\'?',
      ["g.x = 1"] = 'gauge "g": x cannot be set',
      ["kube.gauge { name = 'h', help = 'x' }"] =
        'gauge "h": call it at the top level of a script, so that it exists before the first run',
    } do
      local said = failed(L, body)
      t:stop()
      assert.equal(why, said:sub(1, #why))
    end
  end)

  it("cannot be counted in functions that only return an answer", function()
    local ok, why = pcall(start, [[local g = kube.gauge { name = "g", help = "x" } g:set(1)]])
    assert.is_false(ok)
    assert.matches("what a metric counts is available only during a reconcile", tostring(why))
  end)

  it("is in `kubelua check`", function()
    local path = process.write(process.tmpname ".lua", SOURCE:format(
      'kube.counter { name = "made_total", help = "Records that were made.", labels = { "zone", "kind" } }',
        ""))
    local out = process.run((os.getenv "KUBELUA" or "build/kubelua") .. " check " .. path)
    assert.matches("  metric      made_total{zone,kind}, a counter: Records that were made%.", out)
  end)
end)

servers.each(function(name, start)
  describe("what a script counts in `kubelua run` against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "counts")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function script(more, help)
      return ([[
        local kube = require "kubelua"
        local seen = kube.counter { name = "maps_seen_total", help = %q, labels = { "name" }, series = 3 }
        local size = kube.histogram { name = "maps_size", help = "Entries.", buckets = { 1, 2 } }
        return kube.controller {
          name = "counts", resource = "v1/ConfigMap", namespaces = { %q }, workers = 2, %s
          reconcile = function(o, ctx)
            if not ctx.name:find "^map" then return end
            local n = 0
            for _ in pairs(o.data) do n = n + 1 end
            seen:inc(1, { name = ctx.name })
            size:observe(n)
          end,
        }
      ]]):format(help, ns, more)
    end
    -- /metrics, which is well formed.
    local function figures(run)
      local text = controller.metrics(run)
      promtext.parse(text)
      return text
    end
    local function await(run, what, test)
      wait.until_true(60, what, function()
        test(figures(run))
        return true
      end)
    end

    for _, how in ipairs { "in its own process", "isolated" } do
      it("is in /metrics, survives a reload, and is bounded: " .. how, function()
        local more = how == "isolated" and "isolate = true," or ""
        local path = process.write(process.tmpname ".lua", script(more, "Maps."))
        local run = controller.start(server, path, "--metrics-bind-address", "127.0.0.1:0")
        run:wait_for_log(60, "serving metrics")
        for i = 1, 4 do
          client:create { kind = "v1/ConfigMap", namespace = ns, name = "map-" .. i,
            data = { a = "1", b = "2", c = "3" } }
        end
        await(run, "four maps are seen", function(text)
          assert.matches("\nmaps_size_bucket{le=\"2\"} 0\nmaps_size_bucket{le=\"%+Inf\"} 4\nmaps_size_sum \z
            12\nmaps_size_count 4\n", text)
          assert.matches('\nkubelua_custom_metric_dropped_total{metric="maps_seen_total"} 1\n', text)
        end)
        run:wait_for_log(60, "reached its limit of series")

        process.write(path .. ".new", script(more, "Maps that were seen."))
        assert(os.rename(path .. ".new", path))
        await(run, "the new logic has seen them again, on top", function(text)
          assert.matches("# HELP maps_seen_total Maps that were seen%.\n", text)
          assert.matches("\nmaps_size_count 8\n", text)
        end)
        controller.finish(run)
        for i = 1, 4 do client:delete("v1/ConfigMap", ns, "map-" .. i) end
        wait.until_true(60, "the maps are gone",
          function() return not client:get("v1/ConfigMap", ns, "map-4") end)
      end)
    end

    it("can be shared by scripts with equal declarations, and only by those", function()
      local function other(controller_name, kind, help)
        return process.write(process.tmpname ".lua", ([[
          local kube = require "kubelua"
          local both = kube.%s { name = "both", help = %q }
          return kube.controller { name = %q, resource = "v1/ConfigMap", namespaces = { %q },
            reconcile = function(_, ctx) if ctx.name == "both" then both:inc() end end }
        ]]):format(kind, help, controller_name, ns))
      end
      local one, two = other("one", "gauge", "Both."), other("two", "gauge", "Both of them.")
      local run = controller.start(server, one, two, "--metrics-bind-address", "127.0.0.1:0")
      run:wait_for_log(60, "serving metrics")
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "both" }
      await(run, "both count", function(text) assert.matches("\nboth 2\n", text) end)
      controller.finish(run)

      local third = controller.start(server, one, other("three", "counter", "Both."))
      assert.not_equal(0, third:wait(60))
      assert.matches("declares the metric both as a gauge in another form: rename this one", third:log())
    end)
  end)
end)
