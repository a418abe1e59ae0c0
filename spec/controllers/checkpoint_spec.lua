-- checkpoint_spec.lua - the state that a policy keeps of objects (lib/checkpoint.lua of the policies),
-- without a server: when it is read from its ConfigMap.
-- not in asan, tsan: a policy's Lua

package.path = "controllers/koordinator/?.lua;" .. package.path

local checkpoint = require "lib.checkpoint"

local DAY = 24 * 3600

describe("a keeper of states", function()
  local kept, ctx, now, reads
  before_each(function()
    now, reads = 0, {}
    ctx = {
      epoch = 1,
      now = function() return { unix = function() return now end } end,
      live = { get = function(_, _, _, name)
        reads[#reads + 1] = name
        return { data = { ["state.json"] = ('{"of":%q}'):format(name) } }
      end },
    }
    kept = checkpoint.keeper { prefix = "p-", load = function(saved) return saved end, save = function() end }
  end)

  local function state_of(uid) return kept:state(ctx, { metadata = { uid = uid } }, "default") end

  it("reads the state of an object once, and again under another leader", function()
    assert.equal("p-a", state_of "a".of)
    assert.equal(state_of "a", state_of "a")
    assert.same({ "p-a" }, reads)
    ctx.epoch = 2
    state_of "a"
    assert.same({ "p-a", "p-a" }, reads)
  end)

  it("forgets objects that nobody asked for in a day, and only those", function()
    state_of "a"
    now = DAY
    state_of "b"
    state_of "a"
    assert.same({ "p-a", "p-b" }, reads)
    now = DAY + 1
    state_of "c"
    state_of "b"
    assert.same({ "p-a", "p-b", "p-c" }, reads)
    state_of "a"
    assert.same({ "p-a", "p-b", "p-c", "p-a" }, reads)
  end)
end)
