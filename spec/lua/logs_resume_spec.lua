-- logs_resume_spec.lua - c:logs with `resume` continues after its connection breaks. The C client here is a
-- list of scripted connections.

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local kube = require "kubelua"

local function broken(kind, after)
  return core.error { kind = kind or "closed", message = kind or "closed", retry_after = after }
end

-- Each new connection uses the next list of pieces: texts, or an error to raise; its end is a clean one.
local function client(script)
  local log = { since = {}, tail = {}, pauses = {}, closed = 0 }
  local c = kube.connect { server = "http://127.0.0.1:1" }
  c.core:close()
  c.core = {
    namespace = function() return "default" end,
    session = function(_, op)
      log.since[#log.since + 1] = op.since_time or "all"
      log.tail[#log.tail + 1] = op.tail or "all"
      local pieces, i = table.remove(script, 1), 0
      return {
        read = function()
          i = i + 1
          if core.is_error(pieces[i]) then error(pieces[i], 0) end
          if pieces[i] then return 1, pieces[i] end
        end,
        close = function() log.closed = log.closed + 1 end,
      }
    end,
  }
  clock.sleep = function(seconds) log.pauses[#log.pauses + 1] = seconds end
  return c, log
end

local function lines(c, opts)
  local seen = {}
  opts.resume = true
  for line in c:logs("default/web", opts) do seen[#seen + 1] = line end
  return seen
end

local T5, T6 = "2026-01-02T15:04:05Z", "2026-01-02T15:04:06Z"

describe("logs that resume", function()
  local sleep = clock.sleep
  after_each(function() clock.sleep = sleep end)

  it("restart at the last line's time, and skip its known lines", function()
    local c, log = client {
      { T5 .. " a\n" .. T6 .. " b\n" .. T6 .. " c\n" .. T6 .. " ha", broken() },
      { T6 .. " b\n" .. T6 .. " c\n" .. T6 .. " half\n" .. T6 .. " half\n" },
    }
    assert.same({ "a", "b", "c", "half", "half" }, lines(c, { follow = true, tail = 4 }))
    assert.same({ "all", T6 }, log.since)
    assert.same({ 4, "all" }, log.tail)
    assert.equal(2, log.closed)
  end)

  it("keep timestamps if requested, and a line without one", function()
    local c = client { { T5 .. " a\nno time\n" .. T5 .. "\n" } }
    assert.same({ T5 .. " a", "no time", T5 }, lines(c, { timestamps = true }))
  end)

  it("pause longer after each failure in a row, and as long as the server asks", function()
    local c, log = client {
      { T5 .. " a\n", broken() }, { broken "unreachable" }, { broken("throttled", 7) },
      { T5 .. " a\n" .. T6 .. " b\n", broken() }, {},
    }
    assert.same({ "a", "b" }, lines(c, {}))
    assert.same({ 0.25, 0.5, 7, 0.25 }, log.pauses)
  end)

  it("raise permanent errors, and errors before the first line", function()
    for _, script in ipairs { { { T5 .. " a\n", broken "forbidden" } }, { { broken "closed" } } } do
      local c = client(script)
      local ok, err = pcall(lines, c, {})
      assert.is_false(ok)
      assert.is_true(core.is_error(err))
    end
  end)
end)
