-- mapper_turns_spec.lua - a mapping function that takes long for each object stays within its budget; its
-- events wait for those of other controllers. It burns six seconds of the processor, whichever server sends
-- the objects: the embedded one in the suite, both in `make soak`.

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
end)
