-- msgpack_spec.lua - MessagePack: every type of the specification in both directions, and the errors for
-- invalid bytes.

local core = require "kubelua.core"
local msgpack = require "kubelua.sim.msgpack"

local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function bytes(text) return (text:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end)) end

describe("MessagePack", function()
  it("writes and reads each type as its specification says", function()
    for _, case in ipairs {
      { 0, "00" }, { 127, "7f" }, { 128, "cc80" }, { 256, "cd0100" }, { 65536, "ce00010000" },
      { 4294967296, "cf0000000100000000" }, { -1, "ff" }, { -32, "e0" }, { -33, "d3ffffffffffffffdf" },
      { 1.5, "cb3ff8000000000000" }, { true, "c3" }, { false, "c2" }, { "", "a0" }, { "abc", "a3616263" },
      { ("x"):rep(40), "d928" .. ("78"):rep(40) }, { ("x"):rep(300), "da012c" .. ("78"):rep(300) },
    } do
      assert.equal(case[2], hex(msgpack.encode(case[1])))
      assert.equal(case[1], msgpack.decode(bytes(case[2])))
    end
    assert.equal("c0", hex(msgpack.encode(core.null)))
    assert.equal(core.null, msgpack.decode "\xc0")
    -- forms that others write
    for form, value in pairs { d0ff = -1, d1ff00 = -256, d2ffffff00 = -256, ca3fc00000 = 1.5, c40161 = "a",
      c5000161 = "a", c60000000161 = "a", db0000000161 = "a" } do
      assert.equal(value, msgpack.decode(bytes(form)))
    end
  end)

  it("keeps lists, objects, empty ones of both, and maps with any keys", function()
    local v = { b = core.array {}, a = { 1, "x", core.object {} }, c = core.null }
    local text = msgpack.encode(v)
    assert.equal("83a161" .. "93" .. "01a178" .. "80" .. "a162" .. "90" .. "a163c0", hex(text))
    assert.equal(core.encode(core.value(v, "v")), core.encode(core.value(msgpack.decode(text), "v")))
    local long = {}
    for i = 1, 70000 do long[i] = i % 100 end
    assert.equal("dd00011170", hex(msgpack.encode(long):sub(1, 5)))
    assert.equal(70000, #msgpack.decode(msgpack.encode(long)))
    local by_number = msgpack.map { { 7, "seven" }, { { "v1.Pod", "a" }, 1 } }
    assert.equal("8207a5736576656e92a676312e506f64a16101", hex(msgpack.encode(by_number)))
    local again = msgpack.decode(msgpack.encode(by_number))
    assert.same({ 7, "seven" }, again[1])
    assert.equal("a", again[2][1][2])
  end)

  it("that is truncated, too long, or too deep is rejected with the byte", function()
    for text, why in pairs { [""] = "byte 1: the file ends too early",
      ["\xa3ab"] = "byte 2: the file ends too early",
      ["\xdd\xff\xff\xff\xff"] = "byte 6: the file ends too early", ["\xc1"] = "byte 2: unknown type 0xc1",
      ["\x01\x02"] = "byte 2: the value ends here, the file does not",
      [("\x91"):rep(300) .. "\x01"] = "byte 202: values are nested more than 200 deep" } do
      local ok, said = pcall(msgpack.decode, text)
      assert.is_false(ok)
      assert.equal(why, said)
    end
  end)

  it("reads any bytes or refuses them", function()
    local seed = 5
    for _ = 1, 3000 do
      local out = {}
      for k = 1, 1 + (seed >> 16) % 40 do
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        out[k] = string.char((seed >> 16) % 256)
      end
      local ok, said = pcall(msgpack.decode, table.concat(out))
      assert.is_true(ok or said:match "^byte %d+: " ~= nil, tostring(said))
    end
  end)
end)
