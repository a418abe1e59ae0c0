-- nodemetric_test.lua - NodeMetrics in virtual time: what agents are told to measure.

local kube = require "kubelua"

local NODE, METRIC, MAP = "v1/Node", "slo.koordinator.sh/v1alpha1/NodeMetric", "v1/ConfigMap"
local NS, NAME, KEY = "koordinator-system", "slo-controller-config", "colocation-config"

describe("nodemetric", function()
  local t ---@type kubelua.Testing

  local function start(config)
    t = kube.testing.start { script = "nodemetric.lua", crds = "crds", objects = {
      { kind = "v1/Namespace", name = NS },
      { kind = MAP, namespace = NS, name = NAME, data = { [KEY] = config } },
      { kind = NODE, name = "n", labels = { pool = "a" } },
    } }
  end
  local function policy() return t:get(METRIC, "n").spec.metricCollectPolicy end
  local function configure(config) t:patch(t:get(MAP, NS, NAME), { data = { [KEY] = config } }) end

  it("passes the node's strategy to its agent", function()
    start [[{"enable": true, "metricReportIntervalSeconds": 30, "nodeConfigs": [
      {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}, "metricReportIntervalSeconds": 15}]}]]
    assert.equal(15, policy().reportIntervalSeconds)
    assert.equal(300, policy().aggregateDurationSeconds)
    t:patch(t:get(NODE, "n"), { metadata = { labels = { pool = "b" } } })
    assert.equal(30, policy().reportIntervalSeconds)
  end)

  it("passes the defaults if colocation is off", function()
    start '{"enable": false, "metricReportIntervalSeconds": 30}'
    assert.equal(60, policy().reportIntervalSeconds)
    assert.same({ "5m0s", "10m0s", "30m0s" }, kube.copy(policy().nodeAggregatePolicy.durations))
  end)

  it("writes durations as Koordinator does, and settles", function()
    start '{"enable": true, "metricAggregatePolicy": {"durations": ["90s", "2h"]}}'
    assert.same({ "1m30s", "2h0m0s" }, kube.copy(policy().nodeAggregatePolicy.durations))
    local writes = #t:writes()
    t:patch(t:get(NODE, "n"), { metadata = { labels = { looked = "at" } } })
    assert.equal(writes, #t:writes())
  end)

  it("leaves the spec alone while the configuration is in error", function()
    start '{"enable": true, "metricReportIntervalSeconds": 30}'
    configure '{"enable": true, "metricReportIntervalSeconds": -1}'
    assert.equal(30, policy().reportIntervalSeconds)
    configure '{"enable": true, "metricReportIntervalSeconds": 20}'
    assert.equal(20, policy().reportIntervalSeconds)
    t:delete(MAP, NS .. "/" .. NAME)
    assert.equal(20, policy().reportIntervalSeconds)
  end)

  it("never touches the status, which is the agent's", function()
    start '{"enable": true}'
    t:patch_status(t:get(METRIC, "n"), { updateTime = "2026-01-01T00:00:00Z" })
    configure '{"enable": true, "metricReportIntervalSeconds": 20}'
    assert.equal("2026-01-01T00:00:00Z", t:get(METRIC, "n").status.updateTime)
    assert.equal(20, policy().reportIntervalSeconds)
  end)

  it("is created and deleted with the node", function()
    start '{"enable": true}'
    t:delete(NODE, "n")
    assert.is_nil(t:get(METRIC, "n"))
  end)
end)
