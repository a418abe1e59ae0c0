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

describe("the runner", function()
  -- A build directory whose one test program is this shell script.
  local function run(script)
    local build = process.tmpname ""
    process.run("mkdir -p " .. build .. "/spec/core")
    process.write(build .. "/spec/core/odd_test", "#!/bin/sh\n" .. script)
    process.run("chmod +x " .. build .. "/spec/core/odd_test")
    -- Its temporary directory is made below the working directory.
    local relative = build:gsub("^" .. process.run("pwd"):gsub("%s+$", ""):gsub("%p", "%%%0") .. "/", "")
    local out, code = process.run("lua5.4 spec/support/run.lua --variant release --build " .. process.quote(relative) .. " spec/core/odd_test.c")
    process.run("rm -rf " .. process.quote(build))        -- the runner of this spec looks at logs, too
    return out, code
  end

  it("counts what passed and failed, and its status says so", function()
    local out, code = run "echo 1..2; echo ok 1; echo ok 2"
    assert.truthy(out:find("2 passed, 0 failed", 1, true), out)
    assert.equal(0, code)
    out, code = run "echo 1..2; echo ok 1; echo not ok 2; exit 1"
    assert.truthy(out:find("1 passed, 1 failed", 1, true), out)
    assert.equal(1, code)
  end)

  it("fails a program that ends in the middle, or with a status that no test explains", function()
    local out = run "echo ok 1; kill -SEGV $$"
    assert.truthy(out:find("1 failed", 1, true), out)
    out = run "echo 1..1; echo ok 1; exit 3"
    assert.truthy(out:find("exit status 3", 1, true), out)
  end)

  it("fails a program that left values behind, or started one that did", function()
    local out, code = run "echo 1..1; echo ok 1; echo 'kubelua: leak: 3 values' >&2"
    assert.truthy(out:find("values were alive at the end:\nkubelua: leak: 3 values", 1, true), out)
    assert.equal(1, code)
    out, code = run 'echo 1..1; echo ok 1; mkdir -p "$KL_TMP"; echo "kubelua: leak: 1 value" > "$KL_TMP/7.log"'
    assert.truthy(out:find("kubelua: leak: 1 value", 1, true), out)
    assert.equal(1, code)
    out, code = run "echo 1..1; echo ok 1; echo 'it says kubelua: leak: somewhere'"
    assert.equal(0, code, out)
  end)
end)
