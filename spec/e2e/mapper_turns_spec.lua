-- mapper_turns_spec.lua - mapping and index functions that take long for each object, but stay within their
-- budgets. Events of a mapping function wait for those of other controllers. All controllers of a kind wait
-- for each other's index functions, so a controller whose functions take too long is parked. The functions
-- burn nine seconds of the processor, whichever server sends the objects: the embedded one in the suite, both
-- in `make soak`.

local controller = require "support.controller"
local servers = require "support.servers"
local wait = require "support.wait"

local N = 20

local SCRIPT = [[
local kube = require "kubelua"
local function answers(name, spec)
  spec.name, spec.resource, spec.namespaces = name .. "-NS", "v1/Secret", { "NS" }
  spec.reconcile = function() end
  return kube.controller(spec)
end
return {
  answers("slow", { watches = { ["v1/ConfigMap"] = function(o)
    local from = os.clock()
    repeat until os.clock() - from > 0.3
    print("mapped slow " .. o.metadata.name .. ".")
    return {}
  end } }),
  answers("quick", { watches = { ["v1/ServiceAccount"] = function(o)
    print("mapped quick " .. o.metadata.name .. ".")
    return {}
  end } }),
}
]]

local SLOW = { "slow", "slower", "slowest" }
local INDEX = [[
local kube = require "kubelua"
local function sees(name, indexes)
  return kube.controller { name = name .. "-NS", resource = "v1/ConfigMap", namespaces = { "NS" },
    indexes = indexes, reconcile = function(o) print(name .. " saw " .. o.metadata.name .. ".") end }
end
local function letter(o)
  local from = os.clock()
  repeat until os.clock() - from > 0.1
  return o.metadata.name:sub(1, 1)
end
return { sees "quick", sees("slow", { letter = letter }), sees("slower", { letter = letter }),
  sees("slowest", { letter = letter }) }
]]

servers.each_long(function(name, start)
  it("a slow mapping function does not delay others, against " .. name, function()
    local server = start {}
    finally(function() server:stop() end)
    local client = controller.client(server)
    local ns = controller.namespace(client, "turns")
    local run = controller.start(server, (SCRIPT:gsub("NS", ns)), "--metrics-bind-address", "127.0.0.1:0")
    finally(function() controller.finish(run) end)
    run:wait_for_log(60, "controller is running controller=quick-" .. ns)
    run:wait_for_log(60, "controller is running controller=slow-" .. ns)
    local function make(kind, key) client:create { kind = kind, namespace = ns, name = key } end
    for i = 1, N do make("v1/ConfigMap", "s" .. i) end
    for i = 1, 20 do make("v1/ServiceAccount", "q" .. i) end
    for i = 1, 20 do run:wait_for_log(60, ("mapped quick q%d."):format(i)) end
    assert.is_nil(run:log():find("mapped slow s" .. N .. ".", 1, true))
    run:wait_for_log(60, "take most of a thread that all controllers share: events of this controller \z
      now wait for those of others controller=slow-" .. ns)
    local text = controller.metrics(run)
    local function taken(who)
      local value = text:match(('kubelua_mapping_seconds_total{controller="%s-%s"} (%%S+)'):format(who, ns)
        :gsub("%-", "%%-"))
      return assert(tonumber(value), text)
    end
    assert.is_true(taken "slow" > taken "quick")
    wait.until_true(300, "all that is slow", function()
      return run:log():find("mapped slow s" .. N .. ".", 1, true)
    end)
  end)

  it("slow index functions park their controllers, and others see the changes, against " .. name, function()
    local server = start {}
    finally(function() server:stop() end)
    local client = controller.client(server)
    local ns = controller.namespace(client, "held")
    local run = controller.start(server, (INDEX:gsub("NS", ns)))
    finally(function() controller.finish(run) end)
    run:wait_for_log(60, "controller is running controller=quick-" .. ns)
    for _, which in ipairs(SLOW) do
      run:wait_for_log(60, ("controller is running controller=%s-%s"):format(which, ns))
    end
    -- Each of them takes a third of the time.
    local n = 0
    for _, which in ipairs(SLOW) do
      wait.until_true(300, which .. " is parked", function()
        for _ = 1, 10 do
          n = n + 1
          client:create { kind = "v1/ConfigMap", namespace = ns, name = "c" .. n }
        end
        return run:log():find(("a function exceeded its budget: the controller is parked until its script \z
          changes controller=%s-%s "):format(which, ns), 1, true)
      end)
    end
    assert.matches('function="function of index letter".*changes wait for the index functions of', run:log())
    for i = 1, n do run:wait_for_log(60, ("quick saw c%d."):format(i)) end
  end)
end)
