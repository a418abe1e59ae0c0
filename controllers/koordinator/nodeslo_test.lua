-- nodeslo_test.lua - NodeSLOs in virtual time: made, kept and deleted with their nodes.

local kube = require "kubelua"

local NODE, SLO, MAP = "v1/Node", "slo.koordinator.sh/v1alpha1/NodeSLO", "v1/ConfigMap"
local NS, NAME = "koordinator-system", "slo-controller-config"
local THRESHOLD = "resource-threshold-config"

describe("nodeslo", function()
  local t ---@type kubelua.Testing

  local function start(data, params)
    t = kube.testing.start { script = "nodeslo.lua", crds = "crds", params = params, objects = {
      { kind = "v1/Namespace", name = NS },
      { kind = MAP, namespace = NS, name = NAME, data = data },
      { kind = NODE, name = "plain" },
      { kind = NODE, name = "gold", labels = { tier = "gold" } },
    } }
  end
  local function spec(name) return t:get(SLO, name).spec end
  local function configure(data) t:patch(t:get(MAP, NS, NAME), { data = data }) end

  it("gives every node the defaults if nothing is configured", function()
    start {}
    local thresholds = spec "plain".resourceUsedThresholdWithBE
    assert.equal(65, thresholds.cpuSuppressThresholdPercent)
    assert.is_false(thresholds.enable)
    assert.equal("none", spec "gold".cpuBurstStrategy.policy)
    assert.same({}, t:logs "error")
  end)

  it("lets the first strategy that selects a node decide for it", function()
    start { [THRESHOLD] = [[{"clusterStrategy": {"enable": true}, "nodeStrategies": [
      {"nodeSelector": {"matchLabels": {"tier": "gold"}}, "cpuSuppressThresholdPercent": 50},
      {"nodeSelector": {}, "cpuSuppressThresholdPercent": 60}]}]] }
    assert.equal(50, spec "gold".resourceUsedThresholdWithBE.cpuSuppressThresholdPercent)
    assert.equal(60, spec "plain".resourceUsedThresholdWithBE.cpuSuppressThresholdPercent)
    t:patch(t:get(NODE, "plain"), { metadata = { labels = { tier = "gold" } } })
    assert.equal(50, spec "plain".resourceUsedThresholdWithBE.cpuSuppressThresholdPercent)
    assert.is_true(spec "plain".resourceUsedThresholdWithBE.enable)
  end)

  it("keeps the last good value of an unreadable key, and takes the others", function()
    start { [THRESHOLD] = '{"clusterStrategy": {"enable": true}}' }
    configure { [THRESHOLD] = '{"clusterStrategy": {"enable": 1}}',
      ["cpu-burst-config"] = '{"clusterStrategy": {"policy": "auto"}}' }
    assert.is_true(spec "plain".resourceUsedThresholdWithBE.enable)
    assert.equal("auto", spec "plain".cpuBurstStrategy.policy)
    assert.matches("resource%-threshold%-config: clusterStrategy: enable: expected boolean",
      t:logs "warn"[1].message)
  end)

  it("settles, also with defaults from the definition", function()
    start { ["resource-qos-config"] = '{"clusterStrategy": {"beClass": {"networkQOS": {"enable": true}}}}',
      ["system-config"] = '{"clusterStrategy": {"totalNetworkBandwidth": "1000M"}}' }
    assert.equal(100, spec "plain".resourceQOSStrategy.beClass.networkQOS.ingressLimit)
    local writes = #t:writes()
    t:patch(t:get(NODE, "plain"), { metadata = { labels = { looked = "at" } } })
    configure { unrelated = "text" }
    assert.equal(writes, #t:writes())
    t:patch(t:get(SLO, "plain"), { spec = { systemStrategy = { totalNetworkBandwidth = "1000M" } } })
    assert.equal("1000M", spec "plain".systemStrategy.totalNetworkBandwidth) -- which is 1G
  end)

  it("leaves extensions to their owners, and repairs its own fields", function()
    start {}
    t:patch(t:get(SLO, "plain"), { spec = { extensions = { mine = { a = 1 } },
      cpuBurstStrategy = { policy = "auto" } } })
    assert.equal("none", spec "plain".cpuBurstStrategy.policy)
    assert.equal(1, spec "plain".extensions.mine.a)
  end)

  it("is created and deleted with the node", function()
    start {}
    t:delete(NODE, "gold")
    assert.is_nil(t:get(SLO, "gold"))
    t:delete(SLO, "plain")
    assert.truthy(t:get(SLO, "plain"))
    t:create { kind = NODE, name = "new" }
    assert.truthy(t:get(SLO, "new"))
  end)

  it("drops fields unknown to v1.8.0", function()
    local data = { ["resource-qos-config"] =
      '{"clusterStrategy": {"beClass": {"memoryQOS": {"pageCacheEnable": true, "priority": 1}}}}' }
    start(data, { upstream = "v1.8.0" })
    assert.is_nil(spec "plain"("resourceQOSStrategy.beClass.memoryQOS.pageCacheEnable"))
    assert.equal(1, spec "plain"("resourceQOSStrategy.beClass.memoryQOS.priority"))
    start(data)
    assert.is_true(spec "plain"("resourceQOSStrategy.beClass.memoryQOS.pageCacheEnable"))
  end)
end)
