-- isolate_spec.lua - scripts whose Lua runs in its own processes: they behave as usual, and no key is lost
-- when such a process ends.
-- real in asan: objects of the real server cross to a child

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local WHOLE = [[
local kube = require "kubelua"
local M = "v1/ConfigMap"
return kube.controller {
  name = "iso-NS", resource = M, isolate = true, namespaces = { "NS" }, finalizer = "example.com/iso",
  concurrency = 4,
  owns = { "v1/Secret" }, when = function(now, old) return now.data ~= old.data end,
  indexes = { [M] = { zone = function(o) return o.data and o.data.zone end } },
  watches = { ["v1/ServiceAccount"] = function(o) return { "NS/mapped" } end },
  params = { suffix = "!" },
  reconcile = function(o, ctx)
    if not (o.data and o.data.zone) or o.data.answer then return end
    ctx.memo.runs = (ctx.memo.runs or 0) + 1
    local all = kube.shared:incr("runs", 1)
    if o.data.wait and ctx.memo.runs == 1 then
      ctx.log:info("waits", { name = ctx.name })
      ctx:sleep(tonumber(o.data.wait))
    end
    ctx.log:info("ran", { name = ctx.name, all = all, why = ctx.trigger.reason })
    local other = ctx.live:get(M, ctx.namespace, ctx.name)
    ctx:event("Normal", "Answered", "it has an answer")
    ctx:apply { kind = "v1/Secret", name = "of-" .. ctx.name }
    local none = ctx:get(M, "none")
    ctx:patch(o, function(m)
      m.data.answer = table.concat({ #ctx:list(M, { index = "zone", value = o.data.zone }),
        other.metadata.uid == o.metadata.uid and "same" or "other",
        ctx.params.suffix, ctx.memo.runs, tostring(none), os.date("%Y") >= "2025" and "now" or "then",
        ctx:get(M, ctx.name).metadata.name }, " ")
    end)
  end,
  finalize = function(o, ctx) ctx.log:info("finalized", { name = ctx.name }) end,
}
]]

-- The isolated processes of a running kubelua.
local function children(run)
  local pids = {}
  for pid in process.run(("cat /proc/%d/task/*/children"):format(run.pid)):gmatch "%d+" do
    if (process.read(("/proc/%s/cmdline"):format(pid)) or ""):find("--isolated-child", 1, true) then
      pids[#pids + 1] = tonumber(pid)
    end
  end
  return pids
end

-- Each fails only its own key.
local WANTS = [[
local kube = require "kubelua"
local wants = {
  cpu = function() while true do end end,
  memory = function() return ("x"):rep(1 << 30) end,
  recursion = function()
    local function f(n) return 1 + f(n + 1) end
    f(1)
  end,
  callbacks = function()
    local function f() return (("x"):gsub(".", f)) end
    f()
  end,
  coroutines = function()
    local function f() return coroutine.wrap(f)() end
    f()
  end,
  handlers = function()
    local function f() error(setmetatable({}, { __tostring = f })) end
    local ok, e = xpcall(f, function(x) return tostring(x) end)
    error("handled: " .. tostring(ok) .. type(e))
  end,
  deep = function(o, ctx)
    local t = {}
    for _ = 1, 100000 do t = { t } end
    ctx:patch(o, { data = t })
  end,
  many = function(o, ctx) -- what sorts as much asks the kernel how much memory there is
    ctx:patch(o, function(m)
      for i = 1, 2000 do m.data["k" .. i] = "v" end
    end)
    error("has many")
  end,
  large = function(o, ctx) ctx:patch(o, { data = { text = ("\1"):rep(12 << 20) } }) end,
  -- six bytes each in JSON
  fine = function(o, ctx) ctx:patch(o, { data = { want = "done", answer = "fine" } }) end,
}
return kube.controller {
  name = "iso-NS", resource = "v1/ConfigMap", isolate = true, namespaces = { "NS" },
  cpu = "1s", memory = "128Mi",
  reconcile = function(o, ctx) if o.data and wants[o.data.want] then wants[o.data.want](o, ctx) end end,
}
]]

local CASES = {
  { "cpu", "cpu budget of 1s spent" },
  { "memory", "not enough memory" },
  { "recursion", "stack overflow" },
  { "callbacks", "stack overflow" },
  { "coroutines", ".lua:14:" },
  { "handlers", "cannot be shown" },
  { "deep", "nested deeper than 512" },
  { "many", "has many" },
}
-- With ThreadSanitizer, writing 72 MiB of JSON takes longer than a turn may.
if os.getenv "KL_VARIANT" ~= "tsan" then CASES[#CASES + 1] = { "large", "it has more than 65536 KiB" } end

-- The log line about the failed run of that key.
local function failure(run, name)
  local line
  wait.until_true(60, "a failure of " .. name, function()
    for l in run:log():gmatch "[^\n]+" do
      if l:find("reconcile failed", 1, true) and l:find("/" .. name .. " ", 1, true) then line = l end
    end
    return line
  end)
  return line
end

local KEYS = sizes.of { short = 50, long = 1000, sanitized = 50 }
local KEYS_A_KILL = 5
local BESIDE_BOTH = sizes.of { short = 0, long = 1 } == 1

local LOADED = [[
return require("kubelua").controller {
  name = "iso-NS", resource = "v1/ConfigMap", isolate = true, namespaces = { "NS" },
  workers = 2, concurrency = 4,
  reconcile = function(o, ctx)
    if not (o.data and o.data.zone) or o.data.answer then return end
    ctx.log:info("begins", {})
    ctx:sleep(0.1)
    ctx:patch(o, { data = { answer = ctx.name } })
    ctx.log:info("ends", {})
  end,
}
]]

-- The number of runs that ended with their process. Between two beginnings of a key there is an end: its own
-- or that of its process.
local function assert_one_at_a_time(log)
  local open, lost = {}, 0
  for line in log:gmatch "[^\n]+" do
    local what, key = line:match "%u+%s+%w+" or "", line:match "key=(%S+)"
    local failed = line:find("reconcile failed", 1, true)
    if key and what:find "begins" then
      assert.is_nil(open[key], "runs twice at once: " .. line)
      open[key] = line
    elseif key and (what:find "ends" or failed) then
      open[key] = nil
    end
    if failed and line:find("isolated Lua process", 1, true) then lost = lost + 1 end
  end
  return lost
end

local function answers(client, ns)
  local n = 0
  for o in client:each("v1/ConfigMap", { namespace = ns }) do
    if o "data.answer" then n = n + 1 end
  end
  return n
end

servers.each(function(server_name, start)
  describe("an isolated script against " .. server_name, function()
    local client, ns
    local start_run = controller.frame("isolate", start, function(_, c, n) client, ns = c, n end)
    local runs
    before_each(function() runs = {} end)
    -- A sanitizer's report about an isolated process, which opens no file, is in the log of its parent.
    after_each(function()
      for _, run in ipairs(runs) do
        assert.is_nil(run:log():match "[^\n]*Sanitizer[^\n]*" or run:log():match "[^\n]*runtime error:[^\n]*")
      end
    end)
    local function begin(...)
      runs[#runs + 1] = start_run(...)
      return runs[#runs]
    end

    local function ask(name, data)
      data.zone = data.zone or "eu"
      return client:create { kind = "v1/ConfigMap", namespace = ns, name = name, data = data }
    end
    local function answer(name)
      local seen
      wait.until_true(30, "an answer in " .. name, function()
        local o = client:get("v1/ConfigMap", ns, name)
        seen = o and o("data.answer")
        return seen
      end)
      return seen
    end
    local function whole(...) return begin((WHOLE:gsub("NS", ns)), ...) end

    it("reads, writes, waits, remembers, logs, and provides indexes and predicates like any other",
      function()
      local run = whole()
      run:wait_for_log(20, "is running")
      ask("a", {})
      assert.equal("1 same ! 1 nil now a", answer "a")
      ask("b", { wait = "0.05" })
      assert.equal("2 same ! 1 nil now b", answer "b")
      assert.truthy(client:get("v1/Secret", ns, "of-a"))
      assert.is_true(#children(run) >= 2)            -- of the worker, and of the functions
      client:delete("v1/ConfigMap", ns, "a")
      run:wait_for_log(20, "finalized")
      wait.until_true(20, "the end of a", function() return not client:get("v1/ConfigMap", ns, "a") end)
    end)

    it("loses no key when its process is killed while it waits", function()
      local run = whole()
      for i = 1, 3 do ask("k" .. i, { wait = "3600" }) end
      wait.until_true(30, "3 keys that wait", function()
        return select(2, run:log():gsub("INFO  waits", "")) == 3
      end)
      local before = children(run)
      for _, pid in ipairs(before) do process.run("kill -9 " .. pid) end
      for i = 1, 3 do assert.matches("^3 same ! 2 ", answer("k" .. i)) end
      assert.truthy(run:log():find("was killed by signal 9", 1, true))
      for _, pid in ipairs(children(run)) do
        for _, old in ipairs(before) do assert.are_not_equal(old, pid) end
      end
    end)

    it("survives a crash of the interpreter, and reports it", function()
      local run = whole()
      ask("crash", { wait = "3600" })
      run:wait_for_log(30, "waits")
      -- which no sanitizer handles
      for _, pid in ipairs(children(run)) do process.run("kill -ABRT " .. pid) end
      assert.matches("^1 same ! 2 ", answer "crash")
      assert.truthy(run:log():find("was killed by signal 6", 1, true))
    end)

    it("is the mode of every script with --isolate", function()
      local run = begin((WHOLE:gsub("NS", ns):gsub("isolate = true, ", "")), "--isolate")
      ask("a", {})
      assert.equal("1 same ! 1 nil now a", answer "a")
      assert.is_true(#children(run) >= 1)
    end)

    it("has one process per generation, and leaves none behind", function()
      local run = whole()
      ask("a", {})
      answer "a"
      local before = children(run)
      process.write(run.script_path, (WHOLE:gsub("NS", ns):gsub('"!"', '"?"')))
      run:wait_for_log(30, "a new generation took over")
      ask("b", {})
      assert.matches("^2 same %? ", answer "b")
      wait.until_true(20, "the end of the old ones", function()
        local gone = true
        for _, pid in ipairs(children(run)) do
          for _, old in ipairs(before) do gone = gone and pid ~= old end
        end
        return gone
      end)
    end)

    if server_name == servers.EMBEDDED then -- no server is involved
      it("has budgets like any other, and may overflow its stack", function()
        local run = begin((WANTS:gsub("NS", ns)))
        for _, case in ipairs(CASES) do
          ask(case[1], { want = case[1] })
          local line = failure(run, case[1])
          assert.truthy(line:find(case[2], 1, true), line)
        end
        ask("fine", { want = "fine" })
        assert.equal("fine", answer "fine")
        assert.falsy(run:log():find("isolated Lua process ended", 1, true))
      end)
    end

    if server_name == servers.EMBEDDED or BESIDE_BOTH then
      it("loses no key, and runs none twice at once, when its processes are killed again and again",
        function()
        local run = begin((LOADED:gsub("NS", ns)))
        local kills = 0
        for first = 1, KEYS, KEYS_A_KILL do
          for i = first, first + KEYS_A_KILL - 1 do ask("k" .. i, {}) end
          wait.until_true(90, "a run of these keys", function()
            return answers(client, ns) >= first or run:log():find("begins%f[^%w][^\n]*key=%S*/k" .. first)
          end)
          -- those of the last kill may not be back yet
          wait.until_true(90, "a process to kill", function() return #children(run) > 0 end)
          for _, pid in ipairs(children(run)) do
            process.run("kill -9 " .. pid)
            kills = kills + 1
          end
          wait.until_true(90, "their answers", function()
            return answers(client, ns) == first + KEYS_A_KILL - 1
          end)
        end
        local lost = assert_one_at_a_time(run:log())
        assert.is_true(kills >= KEYS / KEYS_A_KILL and lost > 0,
          ("%d kills ended %d runs"):format(kills, lost))
      end)
    end
  end)
end)

describe("isolation", function()
  it("is rejected if kubelua did not start the process", function()
    local out, code = process.run(KUBELUA .. " --isolated-child")
    assert.equal(2, code)
    assert.matches("is internal: kubelua starts it", out)
  end)

  it("is a boolean of the spec", function()
    local path = process.write(process.tmpname ".lua",
      'return require("kubelua").controller { name = "x", resource = "v1/ConfigMap", isolate = "yes", \z
        reconcile = function() end }')
    local out, code = process.run(KUBELUA .. " check " .. path)
    assert.are_not_equal(0, code)
    assert.matches("isolate must be true or false, got string", out)
  end)
end)
