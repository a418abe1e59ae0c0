-- custompriority_test.lua - in virtual time: a dear node and a cheap one.

local kube = require "kubelua"

local NODE = "v1/Node"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"

describe("custompriority", function()
  local t ---@type kubelua.Testing

  local function start(params, pods)
    t = kube.testing.start { script = "custompriority.lua", crds = "crds", params = params }
    for name, price in pairs { dear = "high", cheap = "low" } do
      t:load { { kind = NODE, name = name, labels = { price = price },
        status = { allocatable = { cpu = "10", memory = "10Gi", pods = "10" } } } }
    end
    for _, name in ipairs(pods or { "p" }) do
      t:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = name,
        ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "r", uid = "u" } } },
        spec = { nodeName = "dear", schedulerName = "koord-scheduler",
          containers = { { name = "c", image = "i" } } } }
    end
    t:create { kind = "v1/Namespace", name = "koordinator-system" }
    t:advance "2m"
  end

  local function order()
    local out = {}
    for i, price in ipairs { "high", "low" } do
      out[i] = { name = price, nodeSelector = { matchLabels = { price = price } } }
    end
    return out
  end

  it("does nothing until costs are configured", function()
    start()
    assert.equal(0, #t:list(JOB))
  end)

  it("empties the expensive node, and cordons it if configured", function()
    start { evictionOrder = order(), mode = "DrainNode", autoCordon = true }
    assert.equal(1, #t:list(JOB))
    assert.is_true(t:get(NODE, "dear")("spec.unschedulable"))
    assert.is_nil(t:get(NODE, "cheap")("spec.unschedulable"))
    assert.same({}, t:logs "error")
  end)

  it("drains a node until a pod may not move, and then does not leave it cordoned", function()
    start({ evictionOrder = order(), mode = "DrainNode", autoCordon = true }, { "p", "q", "r" })
    assert.equal(2, #t:list(JOB))
    assert.falsy(t:get(NODE, "dear")("spec.unschedulable"))
    start({ evictionOrder = order(), mode = "DrainNode", autoCordon = true, maxMigratingPerNode = 3 },
      { "p", "q", "r" })
    assert.equal(3, #t:list(JOB))
    assert.is_true(t:get(NODE, "dear")("spec.unschedulable"))
  end)

  it("makes no more jobs than may be under way on a node, though it decided on more", function()
    start({ evictionOrder = order() }, { "p", "q", "r" })
    assert.equal(2, #t:list(JOB))
    start({ evictionOrder = order(), maxMigratingPerNode = 3 }, { "p", "q", "r" })
    assert.equal(3, #t:list(JOB))
  end)
end)
