-- reservations_test.lua - Reservations in virtual time: the test is the scheduler.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local RESERVATION = "scheduling.koordinator.sh/v1alpha1/Reservation"

describe("reservations", function()
  local t ---@type kubelua.Testing
  local room ---@type any

  local function start(params)
    t = kube.testing.start { script = "reservations.lua", crds = "crds", namespace = "default",
      objects = { { kind = NODE, name = "n" } }, params = params }
    room = t:create { kind = RESERVATION, name = "room", spec = { ttl = "1h", allocateOnce = false,
      owners = { { labelSelector = { matchLabels = { app = "web" } } } },
      template = { spec = { containers = { { name = "c", image = "i" } } } } } }
  end
  before_each(function() start() end)

  local function schedule()
    t:patch_status(room, { phase = "Available", nodeName = "n", allocatable = { cpu = "4" }, conditions = {
      { type = "Scheduled", status = "True", reason = "Scheduled" },
      { type = "Ready", status = "True", reason = "Available" },
    } })
    t:advance "1s"
  end

  local function add_pod(name)
    t:create { kind = POD, namespace = "default", name = name,
      annotations = { ["scheduling.koordinator.sh/reservation-allocated"] =
        ('{"name":"room","uid":"%s"}'):format(room.metadata.uid) },
      spec = { nodeName = "n", terminationGracePeriodSeconds = 0, containers = { { name = "c", image = "i",
        resources = { requests = { cpu = "1", memory = "1Gi" } } } } } }
    t:advance "1s"
  end

  local function status() return t:get(RESERVATION, "room").status end

  it("report their users and usage as pods come and go", function()
    schedule()
    add_pod "a"
    add_pod "b"
    assert.same({ cpu = "2" }, kube.copy(status().allocated))
    assert.equal(2, #status().currentOwners)
    t:delete(POD, "a")
    t:advance "1s"
    assert.same({ cpu = "1" }, kube.copy(status().allocated))
    assert.same({ "Available", "b" }, { status().phase, status().currentOwners[1].name })
  end)

  it("expire, and are deleted a day later", function()
    schedule()
    t:advance "59m"
    assert.equal("Available", status().phase)
    t:advance "2m"
    assert.equal("Failed", status().phase)
    assert.equal("Expired", status().conditions[2].reason)
    t:advance "24h"
    assert.is_nil(t:get(RESERVATION, "room"))
  end)

  it("are deleted earlier, or never, if the params say so", function()
    for after, params in pairs { ["2h"] = { gcDurationSeconds = 3600 },
      ["48h"] = { disableGarbageCollection = true } } do
      start(params)
      schedule()
      t:advance "61m"
      assert.equal("Failed", status().phase)
      t:advance(after)
      assert.equal(params.disableGarbageCollection, t:get(RESERVATION, "room") and true)
      assert.same({}, t:logs "error")
    end
  end)

  it("end with their node", function()
    schedule()
    t:delete(NODE, "n")
    t:advance "1s"
    assert.is_nil(t:get(RESERVATION, "room"))
    assert.same({}, t:logs "error")
  end)

  it("wait for the scheduler as long as it takes", function()
    t:advance "48h"
    assert.is_nil(t:get(RESERVATION, "room")("status.phase"))
  end)
end)
