local process = require "support.process"
local wait = require "support.wait"

describe("a child process of a spec", function()
  it("gives its exit status and its output", function()
    local p = process.spawn { "sh", "-c", "echo out; echo err >&2; exit 3" }
    assert.equal(3, p:wait(10))
    assert.equal("out\nerr\n", p:log())
  end)

  it("sees the signals that it is sent, with their usual meaning", function()
    local p = process.spawn { "sh", "-c", "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done" }
    p:wait_for_log(10, "ready")
    assert.equal(7, p:stop(10))
    assert.truthy(p:log():find("bye", 1, true))
    local killed = process.spawn { "sleep", "100" }
    assert.equal(128 + 9, killed:kill())
  end)

  it("ends when the spec's process ends, however that happens", function()
    local pidfile = process.tmpname ".pid"
    -- A Lua process that starts a child, tells its pid and is killed at once.
    local script = process.write(process.tmpname ".lua", ([[
      package.path = "spec/?.lua;" .. package.path
      local process = require "support.process"
      local p = process.spawn { "sleep", "100" }
      process.write(%q, tostring(p.pid))
      process.run("kill -KILL $PPID")
    ]]):format(pidfile))
    process.run("lua5.4 " .. process.quote(script))
    local pid = tonumber(process.read(pidfile))
    assert.is_number(pid)
    wait.until_true(10, "the child ends", function() return select(2, process.run("kill -0 " .. pid)) ~= 0 end)
  end)

  it("shows its log when it never says what was awaited", function()
    local p = process.spawn { "sh", "-c", "echo something else" }
    local ok, why = pcall(p.wait_for_log, p, 5, "hello")
    assert.is_false(ok)
    assert.truthy(why:find('its log never said "hello" and it has ended', 1, true))
    assert.truthy(why:find("something else", 1, true))
  end)
end)

describe("waiting", function()
  it("has a bound, and says what it waited for", function()
    local ok, why = pcall(wait.until_true, 0.05, "the pod shows up", function() return nil end)
    assert.is_false(ok)
    assert.truthy(why:find("the pod shows up: not within", 1, true))
  end)

  it("shows what went wrong last", function()
    local ok, why = pcall(wait.until_true, 0.05, "a list", function() error "refused" end)
    assert.is_false(ok)
    assert.truthy(why:find("the last look raised: ", 1, true))
    assert.truthy(why:find("refused", 1, true))
  end)
end)
