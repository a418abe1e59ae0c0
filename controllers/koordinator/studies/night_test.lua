-- night_test.lua - the percentage follows the hour, and the rest of the strategy stays.

local kube = require "kubelua"

local NS, MAP, CONFIG = "koordinator-system", "slo-controller-config", "colocation-config"

describe("night", function()
  local t ---@type kubelua.Testing

  local function start(params, data)
    t = kube.testing.start { script = "night.lua", params = params, namespace = NS, objects = {
      { kind = "v1/ConfigMap", namespace = NS, name = MAP, data = data },
      { kind = "v1/ConfigMap", namespace = NS, name = "other", data = {} },
    } }
  end
  after_each(function() t:stop() end)

  local function strategy() return kube.decode(t:get("v1/ConfigMap", NS, MAP).data[CONFIG]) end

  it("lends more from evening to morning, across midnight", function()
    start({ day = 50, night = 80, from = 22, to = 6 },
      { [CONFIG] = '{"enable":true,"degradeTimeMinutes":5}' })
    assert.equal(80, strategy().cpuReclaimThresholdPercent) -- it is midnight
    t:advance(6 * 3600 - 1)
    assert.equal(80, strategy().cpuReclaimThresholdPercent)
    t:advance(1)
    assert.equal(50, strategy().cpuReclaimThresholdPercent)
    t:advance(16 * 3600)
    assert.equal(80, strategy().cpuReclaimThresholdPercent)
    assert.equal(5, strategy().degradeTimeMinutes)
    assert.is_nil(t:get("v1/ConfigMap", NS, "other").data)
  end)

  it("begins with a strategy that is enabled, where there is none", function()
    start({ day = 40, night = 80, from = 8, to = 20 }, { unrelated = "yes" })
    assert.equal(40, strategy().cpuReclaimThresholdPercent)
    assert.is_true(strategy().enable)
  end)
end)
