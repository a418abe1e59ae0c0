-- support_spec.lua - the modules that run specs: child processes, waiting, idle cores, the runner and its
-- reports.
-- not in asan, tsan: what runs specs is never the thing under test

local process = require "support.process"
local wait = require "support.wait"

describe("a child process of a spec", function()
  it("returns its exit status and output", function()
    local p = process.spawn { "sh", "-c", "echo out; echo err >&2; exit 3" }
    assert.equal(3, p:wait(10))
    assert.equal("out\nerr\n", p:log())
  end)

  it("receives signals, with their default actions", function()
    local p = process.spawn { "sh", "-c",
      "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done" }
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
    wait.until_true(10, "the child ends", function()
      return select(2, process.run("kill -0 " .. pid)) ~= 0
    end)
  end)

  it("shows its log when the awaited line never comes", function()
    local p = process.spawn { "sh", "-c", "echo something else" }
    local ok, why = pcall(p.wait_for_log, p, 5, "hello")
    assert.is_false(ok)
    assert.truthy(why:find('its log never said "hello" and it has ended', 1, true))
    assert.truthy(why:find("something else", 1, true))
  end)
end)

describe("waiting", function()
  it("is bounded, and reports what it waited for", function()
    local ok, why = pcall(wait.until_true, 0.05, "the pod shows up", function() return nil end)
    assert.is_false(ok)
    assert.truthy(why:find("the pod shows up: not within", 1, true))
  end)

  it("shows the last error", function()
    local ok, why = pcall(wait.until_true, 0.05, "a list", function() error "refused" end)
    assert.is_false(ok)
    assert.truthy(why:find("the last look raised: ", 1, true))
    assert.truthy(why:find("refused", 1, true))
  end)
end)

describe("cores", function()
  -- The results of measurements with these idle and nice seconds of all cores.
  local function watch(looks)
    local i = 0
    return require("support.cores").watch(function()
      i = i + 1
      return looks[i] and ("cpu  900 %d 300 %d 0 0 0 0 0 0\ncpu0 1 2 3 4 5\n"):format(looks[i].nice or 0,
        looks[i].idle or 0)
    end)
  end

  it("are free if half of one was idle, or compiled in the background", function()
    local has_room = watch { {}, { idle = 49 }, { idle = 99 }, { idle = 99, nice = 50 } }
    assert.is_false(has_room(10))
    assert.is_false(has_room(11))
    assert.is_true(has_room(12))
    assert.is_true(has_room(13))
  end)

  it("are not free before new work shows, nor because of old figures", function()
    local has_room = watch { {}, { idle = 100 }, { idle = 900 }, { idle = 1000 } }
    assert.is_false(has_room(10))
    assert.is_false(has_room(10.1))
    assert.is_true(has_room(10.5))
    assert.is_false(has_room(10.6))
    assert.is_false(has_room(20))
    assert.is_true(has_room(20.5))
  end)

  it("are unknown if the system does not report them", function()
    local has_room = watch {}
    for now = 1, 3 do assert.is_false(has_room(now)) end
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
    local out, code = process.run("lua5.4 spec/support/run.lua --variant release --build "
      .. process.quote(relative) .. " spec/core/odd_test.c")
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

  it("fails a program that ends early, or with an unexplained status", function()
    local out = run "echo ok 1; kill -SEGV $$"
    assert.truthy(out:find("1 failed", 1, true), out)
    out = run "echo 1..1; echo ok 1; exit 3"
    assert.truthy(out:find("exit status 3", 1, true), out)
  end)

  it("fails a program that leaked values, or whose child did", function()
    local out, code = run "echo 1..1; echo ok 1; echo 'kubelua: leak: 3 values' >&2"
    assert.truthy(out:find("values were alive at the end:\nkubelua: leak: 3 values", 1, true), out)
    assert.equal(1, code)
    out, code = run 'echo 1..1; echo ok 1; mkdir -p "$KL_TMP"; echo "kubelua: leak: 1 value" > \z
      "$KL_TMP/7.log"'
    assert.truthy(out:find("kubelua: leak: 1 value", 1, true), out)
    assert.equal(1, code)
    out, code = run "echo 1..1; echo ok 1; echo 'it says kubelua: leak: somewhere'"
    assert.equal(0, code, out)
  end)
end)

describe("the runner of several files", function()
  -- One core, which is always idle.
  local IDLE = [[OMP_NUM_THREADS=1 lua5.4 -e 'package.preload["support.cores"] = function()
    return { watch = function() return function() return true end end, idle_seconds = function() end } end']]

  -- Runs specs by name, which write to a common diary; returns the runner's output, its status and the diary.
  -- Without `jobs` it has one core, which is always idle. `seconds` are those of the last run, by name.
  local function run(specs, jobs, seconds, options)
    local build = process.tmpname ""
    process.run("mkdir -p " .. build .. "/spec")
    local diary, words = process.write(build .. "/diary", ""), {}
    for name, spec in pairs(specs) do
      words[#words + 1] = process.write(("%s/%s_spec.lua"):format(build, name), ([[
%s
local function say(text) local f = assert(io.open(%q, "a")); f:write(%q .. " ", text, "\n"); f:close() end
local function said(text) for line in io.lines %q do if line == text then return true end end end
local wait = require "support.wait"
it("uses one if told to", function() say "begins"; %s say "ends" end)
]]):format(spec.mark or "", diary, name, diary, spec.body or ""))
    end
    table.sort(words)
    if seconds then
      local lines = {}
      for name, n in pairs(seconds) do
        lines[#lines + 1] = ("%s/%s_spec.lua %s\n"):format(build, name, n)
      end
      process.write(build .. "/spec/seconds", table.concat(lines))
    end
    local relative = build:gsub("^" .. process.run("pwd"):gsub("%s+$", ""):gsub("%p", "%%%0") .. "/", "")
    local out, code = process.run(("%s spec/support/run.lua --variant release --build %s %s %s %s"):format(
      jobs and "lua5.4" or IDLE, relative, jobs and "--jobs " .. jobs or "", options or "",
      table.concat(words, " ")))
    local text = process.read(diary)
    process.run("rm -rf " .. process.quote(build))
    return out, code, text
  end

  it("runs them in parallel, and those marked alone at the end", function()
    local out, code, diary = run({
      first = { mark = "-- alone: it counts what the machine does" },
      one = { body = 'wait.until_true(20, "the other", function() return said "two begins" end);' },
      two = { body = 'wait.until_true(20, "the other", function() return said "one begins" end);' },
    }, 2)
    assert.equal(0, code, out)
    assert.truthy(out:find("3 passed, 0 failed", 1, true), out)
    assert.truthy(diary:find "ends\nfirst begins\nfirst ends\n$", diary)
  end)

  it("runs four files per core while one is idle, and no more", function()
    local names, specs = { "one", "two", "three", "four" }, { five = {}, six = {} }
    for _, name in ipairs(names) do
      local body = {}
      for _, other in ipairs(names) do
        body[#body + 1] = ('wait.until_true(20, %q, function() return said "%s begins" end);'):format(other,
          other)
      end
      specs[name] = { body = table.concat(body) }
    end
    local out, code = run(specs, nil, { one = 9, two = 9, three = 9, four = 9, five = 1, six = 1 })
    assert.equal(0, code, out)
    assert.truthy(out:find(" s, at most 4 side by side", 1, true), out)
  end)

  it("gives each its own directory and ports", function()
    local body = 'say(os.getenv "KL_TMP"); say(os.getenv "KL_PORTS");'
    local wait_for = ' wait.until_true(20, "the other", function() return said "%s begins" end);'
    local out, code, diary = run({ one = { body = body .. wait_for:format "two" },
      two = { body = body .. wait_for:format "one" } }, 2)
    assert.equal(0, code, out)
    for _, pattern in ipairs { "one (/%S+)\n.*two (/%S+)\n", "one (%d+%-%d+)\n.*two (%d+%-%d+)\n" } do
      local both = { diary:match(pattern) }
      if #both == 0 then
        both = { diary:match((pattern:gsub("one", "~"):gsub("two", "one"):gsub("~", "two"))) }
      end
      assert.equal(2, #both, diary)
      assert.not_equal(both[1], both[2])
    end
  end)

  it("starts with the slowest of the last run", function()
    local _, _, diary = run({ one = {}, two = {}, three = {} }, 1, { one = 5, two = 50, three = 20 })
    assert.equal("two begins\ntwo ends\nthree begins\nthree ends\none begins\none ends\n", diary)
  end)

  it("stops at the first failure, the quick files first", function()
    local out, code, diary = run({ one = { body = 'error "always"' }, two = {}, three = {} }, 1,
      { one = 5, two = 50, three = 2 }, "--first")
    assert.equal(1, code, out)
    assert.truthy(out:find("1 passed, 1 failed", 1, true), out)
    assert.equal("three begins\nthree ends\none begins\n", diary)
    out, code, diary = run({
      one = { body = 'wait.until_true(20, "it", function() return said "two waits" end) error "x"' },
      two = { body = [[say("is " .. io.popen("echo $PPID"):read "l") say "waits"
        wait.until_true(500, "never", function() return false end)]] },
    }, 2, nil, "--first")
    assert.equal(1, code, out)
    assert.truthy(out:find("0 passed, 1 failed", 1, true), out)
    assert.falsy(diary:find("ends", 1, true), diary)
    local pid = diary:match "two is (%d+)\n"
    wait.until_true(10, "the end of the other", function()
      return not process.read("/proc/" .. pid .. "/stat")
    end)
  end)

  local FIRST_TIME = 'if not said "%s was here" then say "was here" error "the first time" end'

  it("repeats failed files alone at the end, and reports them", function()
    local specs = { one = { body = FIRST_TIME:format "one" }, two = {} }
    local out, code, diary = run(specs, 2, { one = 50, two = 1 }, "--again")
    assert.equal(0, code, out)
    assert.truthy(out:find("2 passed, 0 failed", 1, true), out)
    assert.truthy(out:find "==== 1 of 2 files passed only when they ran again, alone:.*the first time", out)
    assert.truthy(diary:find "two ends\n.*one begins\none ends\n$", diary)
    out, code = run(specs, 2)
    assert.equal(1, code, out)
  end)

  it("fails a file that fails twice, and too many repeated files", function()
    local out, code = run({ one = { body = 'error "each time"' }, two = {} }, 2, nil, "--again")
    assert.equal(1, code, out)
    assert.truthy(out:find("1 passed, 1 failed", 1, true), out)
    local specs = {}
    for _, name in ipairs { "one", "two", "three", "four" } do
      specs[name] = { body = FIRST_TIME:format(name) }
    end
    out, code = run(specs, 2, nil, "--again")
    assert.equal(1, code, out)
    assert.truthy(out:find("4 files passed only when they ran again: more than 3 are a failure", 1, true),
      out)
    assert.truthy(out:find("4 passed, 1 failed", 1, true), out)
  end)

  it("does not repeat a file after a leak", function()
    local out, code = run({
      one = { body = FIRST_TIME:format "one" },
      two = { body = 'io.stderr:write "\\nkubelua: leak: 3 values\\n" ' .. FIRST_TIME:format "two" },
    }, 1, { one = 50, two = 1 }, "--again")
    assert.equal(1, code, out)
    assert.truthy(out:find("1 passed, 2 failed", 1, true), out)
  end)

  it("does not repeat a file after a crash", function()
    local out, code = run({ one = { body = FIRST_TIME:format "one":gsub('error "the first time"',
      'require("support.process").run("kill -SEGV $PPID")') }, two = {} }, 1, nil, "--again")
    assert.equal(1, code, out)
    assert.truthy(out:find("ended by signal 11", 1, true), out)
    assert.falsy(out:find("runs again at the end", 1, true), out)
  end)

  it("needs the number of files as a number", function()
    local out,
      code = process.run "lua5.4 spec/support/run.lua --variant release --build build --jobs many 2>&1"
    assert.equal(2, code)
    assert.equal("run.lua: --jobs takes a number from 1, not many\n", out)
  end)
end)
