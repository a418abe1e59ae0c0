-- volumelimits_spec.lua - the number of volumes of a driver that a node takes: the scheduler's plugin as
-- functions, and a property over random pods from a fixed seed.
-- not in asan, tsan: functions of tables, in Lua
package.path = "controllers/koordinator/?.lua;" .. package.path

local cycle = require "scheduler.cycle"
local seeds = require "support.seeds"
local snapshot = require "scheduler.snapshot"
local volumelimits = require "scheduler.volumelimits"

local DRIVER = "disks.example.com"
local FULL = "0/1 nodes are available: 1 node(s) exceed max volume count."

local function node()
  return { metadata = { name = "n", labels = {} }, spec = {},
    status = { allocatable = { cpu = "10", memory = "10Gi", pods = "100" } } }
end

local function pod(name, ...)
  local p = { metadata = { name = name, namespace = "ns" }, spec = { volumes = {}, containers = {} } }
  for i, claim in ipairs { ... } do
    p.spec.volumes[i] = { name = "v" .. i, persistentVolumeClaim = { claimName = claim } }
  end
  return p
end

local function volume(name, driver)
  return { metadata = { name = name }, spec = { csi = driver and { driver = driver, volumeHandle = name } } }
end

-- Claims "a" to "f" have volumes of the driver, "other" one of another, "plain" one of none; "later" waits
-- for its pod.
local function world(count, pods, attachments)
  local known = { claims = {}, volumes = {},
    classes = { late = { provisioner = DRIVER, volumeBindingMode = "WaitForFirstConsumer" } },
    limits = volumelimits.limits { { metadata = { name = "n" }, spec = { drivers = {
      { name = DRIVER, allocatable = { count = count } }, { name = "unlimited.example.com" } } } } } }
  local function claim(name, driver)
    known.claims["ns/" .. name] =
      { metadata = { annotations = { ["pv.kubernetes.io/bind-completed"] = "yes" } },
      spec = { volumeName = name } }
    known.volumes[name] = volume(name, driver)
  end
  for name in ("abcdef"):gmatch "." do claim(name, DRIVER) end
  claim("other", "unlimited.example.com")
  claim("plain")
  known.claims["ns/later"] = { metadata = {}, spec = { storageClassName = "late" } }
  known.attached = volumelimits.attached(attachments or {}, function(name) return known.volumes[name] end)
  return { pods_on = { n = pods or {} }, now = 0, volumes = known }
end

local function said(state, ...)
  local result = cycle.run(pod("new", ...), { node() }, state)
  return result.node and "fits" or result.message
end

local function attachment(name, to)
  return { spec = { attacher = DRIVER, nodeName = to or "n", source = { persistentVolumeName = name } } }
end

describe("a node's limit of volumes", function()
  it("counts volumes of the driver, including planned ones", function()
    assert.equal("fits", said(world(2), "a", "b"))
    assert.equal(FULL, said(world(2), "a", "b", "c"))
    assert.equal(FULL, said(world(2), "a", "b", "later"))
    assert.equal("fits", said(world(2), "a", "b", "other", "plain"))
  end)

  it("counts a volume once, however many pods use it", function()
    local there = { pod("p", "a", "b"), pod("q", "a") }
    assert.equal("fits", said(world(2, there), "a", "b"))
    assert.equal(FULL, said(world(2, there), "a", "c"))
    assert.equal("fits", said(world(3, there), "a", "c"))
  end)

  it("counts attached volumes of deleted pods", function()
    assert.equal(FULL, said(world(2, { pod("p", "a") }, { attachment "a", attachment "b" }), "c"))
    assert.equal("fits", said(world(2, { pod("p", "a") }, { attachment "a", attachment "b" }), "b"))
    assert.equal("fits", said(world(2, { pod("p", "a") }, { attachment "a", attachment("b", "m") }), "c"))
  end)

  it("is absent if the node or driver sets none, and ignores pods without volumes", function()
    local state = world(0)
    assert.equal("fits", said(state))
    assert.equal(FULL, said(state, "a"))
    state.volumes.limits = {}
    assert.equal("fits", said(state, "a"))
    state.volumes.limits = nil
    assert.equal("fits", said(state, "a"))
  end)

  it("applies across pods placed one after the other", function()
    seeds.each(300, function()
      local limit = math.random(0, 4)
      local state, used, n = world(limit), {}, 0
      for i = 1, 8 do
        local claims, mine, new = {}, {}, 0
        for j = 1, math.random(0, 3) do
          local name = string.char(math.random(97, 102))
          claims[j] = name
          if not used[name] and not mine[name] then new, mine[name] = new + 1, true end
        end
        local one = pod("p" .. i, table.unpack(claims))
        local result = cycle.run(one, { node() }, state)
        assert.equal(new == 0 or n + new <= limit, result.node ~= nil)
        if result.node then
          snapshot.assume(state, one, result.node)
          n = n + new
          for name in pairs(mine) do used[name] = true end
        end
      end
    end)
  end)
end)
