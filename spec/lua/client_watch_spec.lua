-- client_watch_spec.lua - c:watch continues after its connection breaks. The C client here is a list of
-- scripted answers.

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local kube = require "kubelua"

-- Each new watch uses the next list of answers: {type, rv}, an error to raise, or nothing, which is a clean
-- end.
local function client(script)
  local log = { began = {}, pauses = {}, closed = 0 }
  local c = kube.connect { server = "http://127.0.0.1:1" }
  c.core:close()
  c.core = {
    resource = function() return {} end,
    watch = function(_, op)
      log.began[#log.began + 1] = op.rv or "none"
      local answers, i = table.remove(script, 1), 0
      return {
        next = function()
          i = i + 1
          local answer = answers[i]
          if core.is_error(answer) then error(answer, 0) end
          if not answer then return nil end
          local status = answer.status or ('{"metadata":{"resourceVersion":"%s"}}'):format(answer[2])
          return answer[1], kube.decode(status)
        end,
        close = function() log.closed = log.closed + 1 end,
      }
    end,
  }
  clock.sleep = function(seconds) log.pauses[#log.pauses + 1] = seconds end
  return c, log
end

local function failure(kind, code, after)
  return core.error { kind = kind, code = code, message = kind, retry_after = after }
end

-- Takes `n` events.
local function take(c, n, opts)
  local seen = {}
  for event, o in c:watch("v1/Pod", opts) do
    seen[#seen + 1] = event .. o.metadata.resourceVersion
    if #seen == n then break end
  end
  return seen
end

describe("a watch in stock Lua", function()
  local sleep = clock.sleep
  after_each(function() clock.sleep = sleep end)

  it("restarts at the last version after a clean end, without a pause", function()
    local c, log = client { { { "ADDED", "1" }, { "MODIFIED", "2" } }, { { "MODIFIED", "3" } } }
    assert.same({ "ADDED1", "MODIFIED2", "MODIFIED3" }, take(c, 3))
    assert.same({ "none", "2" }, log.began)
    assert.same({}, log.pauses)
    assert.equal(2, log.closed)
  end)

  it("takes the version from bookmarks and hides them", function()
    local c, log = client { { { "ADDED", "1" }, { "BOOKMARK", "9" } }, { { "MODIFIED", "10" } } }
    assert.same({ "ADDED1", "MODIFIED10" }, take(c, 2))
    assert.same({ "none", "9" }, log.began)
    c = client { { { "BOOKMARK", "9" } } }
    assert.same({ "BOOKMARK9" }, take(c, 1, { bookmarks = true }))
  end)

  it("waits longer after each failure in a row, and starts over after success", function()
    local broken, refused = failure "closed", failure "unreachable"
    local c, log = client { { { "ADDED", "1" }, broken }, { refused }, { refused },
      { { "MODIFIED", "2" }, broken }, { { "MODIFIED", "3" } } }
    assert.same({ "ADDED1", "MODIFIED2", "MODIFIED3" }, take(c, 3))
    assert.same({ "none", "1", "1", "1", "2" }, log.began)
    assert.same({ 0.25, 0.5, 1.0, 0.25 }, log.pauses)
  end)

  it("raises if it never worked, and on permanent errors", function()
    local c = client { { failure "unreachable" } }
    assert.equal("unreachable", select(2, kube.try(take, c, 1)).kind)
    c = client { { failure("server", 500) } }
    assert.equal(500, select(2, kube.try(take, c, 1, { resource_version = "x" })).code)
    c = client { { { "ADDED", "1" }, failure("forbidden", 403) } }
    assert.equal(403, select(2, kube.try(take, c, 2)).code)
    c = client { { { "ADDED", "1" }, failure("gone", 410) } }
    assert.equal(410, select(2, kube.try(take, c, 2)).code)
  end)

  it("that never worked is retried after a broken connection, or if the server sends Retry-After",
    function()
    local c, log = client { { failure "closed" }, { failure("throttled", 429, 3) },
      { failure("server", 503, 2) }, { failure "timeout" }, { { "ADDED", "1" } } }
    assert.same({ "ADDED1" }, take(c, 1))
    assert.same({ 1, 3, 2, 1 }, log.pauses)
    c = client { { failure("throttled", 429) } }
    assert.equal(429, select(2, kube.try(take, c, 1)).code)
    local script = {}
    for i = 1, 20 do script[i] = { failure("throttled", 429, 1) } end
    c, log = client(script)
    assert.equal(429, select(2, kube.try(take, c, 1)).code)
    assert.equal(11, #log.began)
  end)

  it("raises the Status of an ERROR event", function()
    local c = client { { { "ERROR",
      status = '{"kind":"Status","code":410,"reason":"Expired","message":"too old"}' } } }
    local _, err = kube.try(take, c, 1)
    assert.equal("gone", err.kind)
    assert.equal(410, err.code)
    assert.equal("watch v1/Pod: too old (410 Expired)", tostring(err))
  end)

  it("ends once at its timeout", function()
    local c, log = client { { { "ADDED", "1" } } }
    assert.same({ "ADDED1" }, take(c, 5, { timeout = "5s" }))
    assert.same({ "none" }, log.began)
  end)
end)
