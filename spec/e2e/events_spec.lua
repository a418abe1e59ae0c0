-- events_spec.lua - Events on the API server: series, aggregation, limits, a namespace that is deleted, an
-- unreachable server, and the last Events of a process. spec/core/events/recorder_test.c tests the rules and
-- their times.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local function events_of(c, ns, name)
  local list = {}
  for e in c:each("events.k8s.io/v1/Event", { namespace = ns, fields = "regarding.name=" .. name }) do
    list[#list + 1] = e
  end
  table.sort(list, function(a, b) return a.metadata.name < b.metadata.name end)
  return list
end

servers.each(function(name, start)
  describe("a recorder on " .. name, function()
    local s, c, ns, map, events

    lazy_setup(function()
      s = start()
      c = controller.client(s)
    end)
    lazy_teardown(function()
      if c then c:close() end
      if s then s:stop() end
    end)
    before_each(function()
      ns = controller.namespace(c, "events")
      map = c:create { kind = "v1/ConfigMap", namespace = ns, name = "map" }
      events = kube.recorder(c, { component = "events-spec" })
    end)
    after_each(function() events:close() end)

    it("creates an Event that both APIs show", function()
      local other = c:create { kind = "v1/ConfigMap", namespace = ns, name = "other" }
      events:warn(map, { reason = "SourceMissing", action = "Copy", related = other }, "secret %s not found",
        "x")
      assert.is_true(events:flush())
      local found = events_of(c, ns, "map")
      assert.equal(1, #found)
      local e = found[1]
      assert.same({ "Warning", "SourceMissing", "Copy", "secret x not found", "events-spec", "other" },
        { e.type, e.reason, e.action, e.note, e.reportingController, e.related.name })
      assert.truthy(e.reportingInstance:find "^events%-spec%-")
      assert.equal(map.metadata.uid, e.regarding.uid)
      assert.is_nil(e("series"))
      local old = c:get("v1/Event", ns, e.metadata.name)
      assert.same({ "secret x not found", "map", "events-spec" },
        { old.message, old.involvedObject.name, old.reportingComponent })
      assert.equal(e.eventTime, old.eventTime)
    end)

    it("counts repetitions in a series, and flush writes the count", function()
      events:event(map, "Seen", "it")
      assert.is_true(events:flush())
      for _ = 1, 4 do events:event(map, "Seen", "it") end
      assert.is_true(events:flush())
      local found = events_of(c, ns, "map")
      assert.equal(1, #found)
      assert.equal(5, found[1].series.count)
      assert.truthy(found[1].series.lastObservedTime:find "%.%d%d%d%d%d%dZ$")
      assert.same({ recorded = 5, waiting = 0, full = 0, spam = 0, refused = 0, given_up = 0,
        terminating = 0 }, events:stats())
    end)

    it("recreates a deleted Event, with its count", function()
      events:event(map, "Seen", "it")
      assert.is_true(events:flush())
      c:delete("events.k8s.io/v1/Event", ns, events_of(c, ns, "map")[1].metadata.name)
      events:event(map, "Seen", "it")
      assert.is_true(events:flush())
      local found = events_of(c, ns, "map")
      assert.equal(1, #found)
      assert.equal(2, found[1].series.count)
    end)

    it("combines from the tenth different note on", function()
      for i = 1, 12 do events:event(map, "Seen", "note %d", i) end
      assert.is_true(events:flush())
      local found = events_of(c, ns, "map")
      assert.equal(10, #found)
      local combined
      for _, e in ipairs(found) do
        if e.note:find "^%(combined from similar events%): " then combined = e end
      end
      assert.equal(3, combined.series.count)
      assert.equal(12, events:stats().recorded)
    end)

    it("drops and counts excess Events about one object", function()
      for i = 1, 27 do events:event(map, "Reason" .. i, "it") end
      assert.is_true(events:flush())
      assert.equal(25, #events_of(c, ns, "map"))
      assert.equal(2, events:stats().spam)
    end)

    it("cuts a note that the server would refuse", function()
      events:event(map, "Seen", ("é"):rep(1000))
      assert.is_true(events:flush())
      local note = events_of(c, ns, "map")[1].note
      assert.truthy(#note <= 1024 and note:find "é%.%.%.$", note)
    end)

    it("puts an Event about a cluster-scoped object into default", function()
      local node = c:create { kind = "v1/Node", name = ns }
      events:event(node, "Seen", "it")
      assert.is_true(events:flush())
      assert.equal(1, #events_of(c, "default", ns))
      c:delete(node)
    end)

    it("drops Events of a namespace that is being deleted", function()
      c:create { kind = "v1/ConfigMap", namespace = ns, name = "holds", finalizers = nil,
        metadata = nil, labels = { a = "b" } }
      c:patch(c:get("v1/ConfigMap", ns, "holds"), { metadata = { finalizers = { "example.com/hold" } } })
      c:delete("v1/Namespace", ns)
      wait.until_true(10, "the namespace ends", function()
        return c:get("v1/Namespace", ns)("status.phase") == "Terminating"
      end)
      events:event(map, "Seen", "it")
      events:flush()
      assert.equal(1, events:stats().terminating)
      assert.equal(0, events:stats().refused)
      c:patch(c:get("v1/ConfigMap", ns, "holds"), { metadata = { finalizers = kube.null } })
    end)

    it("rejects an invalid call, at the caller's line", function()
      for said, fn in pairs {
        ["events_spec.lua:%d+: recorder:event: the reason must be one word in UpperCamelCase"] = function()
          events:event(map, "not a reason", "x")
        end,
        ["recorder:warn: unknown key 'acton'; did you mean 'action'%?"] = function()
          events:warn(map, { reason = "A", acton = "B" }, "x")
        end,
        ["recorder:event: the object must be an object with apiVersion, kind and metadata.name"] = function()
          events:event({}, "Seen", "x")
        end,
        ["recorder:event: the reason may have at most 128 characters, got 200"] = function()
          events:event(map, ("R"):rep(200), "x")
        end,
        ["kube.recorder: component must be a name"] = function() kube.recorder(c, {}) end,
        ["kube.recorder: the first argument is a client"] = function()
          kube.recorder({}, { component = "a" })
        end,
      } do
        local ok, why = pcall(fn)
        assert.is_false(ok)
        assert.truthy(tostring(why):find(said), tostring(why))
      end
      local other = controller.client(s)
      local left = kube.recorder(other, { component = "left" })
      left:event(map, "Seen", "before the client goes")
      other:close()
      assert.equal("before the client goes", events_of(c, ns, "map")[1].note)
      local ok, why = pcall(left.event, left, map, "Seen", "x")
      assert.is_false(ok)
      assert.truthy(tostring(why):find("the recorder's client was closed", 1, true), tostring(why))
      left:close()
    end)

    it("has its Events validated by the server", function()
      local function event(change)
        local e = {
          apiVersion = "events.k8s.io/v1", kind = "Event",
          metadata = { namespace = ns, generateName = "by-hand-" }, eventTime = "2026-01-01T00:00:00.000000Z",
          reportingController = "spec", reportingInstance = "spec-1", action = "Look", reason = "Seen",
          type = "Normal", note = "it",
          regarding = { apiVersion = "v1", kind = "ConfigMap", namespace = ns, name = "map" },
        }
        change(e)
        local made, err = kube.try(c.create, c, e)
        return made and "made" or err.message
      end
      local function without(field) return function(e) e[field] = nil end end
      local function with(field, value) return function(e) e[field] = value end end
      local long = ("x"):rep(129)
      for change, said in pairs {
        [function() end] = "^made$", [without "note"] = "^made$",
        [with("regarding", { kind = "ConfigMap", namespace = "default", name = "m" })] = "^made$",
        [without "eventTime"] = 'Event "by%-hand%-%w+" is invalid: eventTime: Required value$',
        [without "action"] = ": action: Required value$",
        [without "reason"] = ": reason: Required value$",
        [without "reportingInstance"] = ": reportingInstance: Required value$",
        [without "reportingController"] =
          ": %[reportingController: Required value, .*name part must be non%-empty, ",
        [without "type"] = ': type: Invalid value: "": has invalid value: $',
        [with("type", "Odd")] = ': type: Invalid value: "": has invalid value: Odd$',
        [without "regarding"] = ': involvedObject.namespace: Invalid value: "": does not match \z
          event.namespace$',
        [with("note", ("x"):rep(1025))] = ': message: Invalid value: "": can have at most 1024 characters$',
        [with("reason", long)] = ': reason: Invalid value: "": can have at most 128 characters$',
        [with("action", long)] = ": action: Invalid.*at most 128 characters$",
        [with("reportingInstance", long)] = ": reportingInstance: Invalid.*at most 128 characters$",
        [with("reportingController",
          "a b")] = ': reportingController: Invalid value: "a b": name part must consist of alphanumeric',
        [with("series", { count = 1, lastObservedTime = "2026-01-01T00:00:00.000000Z" })] =
          ': series.count: Invalid value: "": should be at least 2$',
        [with("series", { count = 2 })] = ": series.lastObservedTime: Required value$",
        [with("deprecatedCount", 2)] = ': count: Invalid value: "": needs to be unset$',
        [with("deprecatedFirstTimestamp", "2026-01-01T00:00:00Z")] =
          ": firstTimestamp: Invalid.*needs to be unset$",
        [with("deprecatedSource", { component = "x" })] = ": source: Invalid.*needs to be unset$",
      } do
        local answer = event(change)
        assert.truthy(answer:find(said), said .. " is not what it said: " .. answer)
      end
      events:event(map, "Seen", "it")
      assert.is_true(events:flush())
      local e = events_of(c, ns, "map")[1]
      for _, e2 in ipairs(events_of(c, ns, "map")) do
        if e2.reportingController == "events-spec" then e = e2 end
      end
      for field, shown in pairs { note = "message", reason = "reason", action = "action",
        reportingInstance = "reportingInstance", reportingController = "reportingController" } do
        local _, err = kube.try(c.patch, c, e, { [field] = "New" })
        assert.truthy(err.message:find(('is invalid: %s: Invalid value: "New": field is immutable'):format(
          shown), 1, true), err.message)
      end
      local _, err = kube.try(c.patch, c, e, { regarding = { name = "other" } })
      assert.truthy(err.message:find('involvedObject: Invalid value: {"Kind":"ConfigMap"', 1, true),
        err.message)
      -- The old API still allows changes of the object, and needs fewer fields when eventTime is absent.
      assert.equal("new", c:patch(c:get("v1/Event", ns, e.metadata.name), { message = "new" }).message)
      local core = { apiVersion = "v1", kind = "Event", metadata = { namespace = ns, generateName = "old-" },
        involvedObject = { namespace = ns, name = "m" } }
      assert.truthy(c:create(core))
      core.involvedObject.namespace = "default"
      _, err = kube.try(c.create, c, core)
      assert.truthy(err.message:find(
        'involvedObject.namespace: Invalid value: "default": does not match event.namespace', 1, true),
        err.message)
    end)

    it("of a controller sends everything before the process exits", function()
      local script = process.write(process.tmpname ".lua", ([[
        local kube = require "kubelua"
        local n = 0
        return kube.controller {
          name = "events-%s", resource = "v1/ConfigMap",
          reconcile = function(obj, ctx)
            if ctx.namespace ~= %q or ctx.name ~= "map" then return end
            n = n + 1
            ctx:event({ reason = "Seen", action = "Look", related = { kind = "v1/Node", name = "n1" } }, "it")
            if n < 7 then return "5ms" end
            return { events = { { reason = "Done", message = "seven times", action = "Count" } } }
          end,
        }]]):format(ns, ns))
      local run = controller.start(s, script)
      wait.until_true(20, "it is done", function()
        for _, e in ipairs(events_of(c, ns, "map")) do
          if e.reason == "Done" then return e.action == "Count" end
        end
      end)
      controller.finish(run)
      for _, e in ipairs(events_of(c, ns, "map")) do
        if e.reason == "Seen" then
          assert.same({ 7, "Look", "n1", "events-" .. ns },
            { e.series.count, e.action, e.related.name, e.reportingController })
          return
        end
      end
      error "there is no Event Seen"
    end)
  end)
end)

describe("a recorder whose server goes away", function()
  it("keeps its Events, and sends them when the server is back", function()
    local s <close> = setmetatable({ server = servers.embedded() },
      { __close = function(x) x.server:stop() end })
    local c <close> = controller.client(s.server)
    local map = c:get("v1/Namespace", "default")
    local events <close> = kube.recorder(c, { component = "events-spec" })
    s.server:kill()
    events:event(map, "Seen", "while nobody listened")
    assert.is_false(events:flush())
    assert.equal(1, events:stats().waiting)
    s.server:restart()
    wait.until_true(10, "it is told", function() return events:flush() end)
    assert.equal("while nobody listened", events_of(c, "default", "default")[1].note)
  end)
end)
