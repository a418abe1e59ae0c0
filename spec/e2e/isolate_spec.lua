-- Scripts whose Lua runs in processes of its own: what they do is what they always do, and the end of such
-- a process costs nobody a key.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local WHOLE = [[
local kube = require "kubelua"
local M = "v1/ConfigMap"
return kube.controller {
  name = "iso-NS", resource = M, isolate = true, namespaces = { "NS" }, finalizer = "example.com/iso", concurrency = 4,
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
      m.data.answer = table.concat({ #ctx:list(M, { index = "zone", value = o.data.zone }), other.metadata.uid == o.metadata.uid and "same" or "other",
        ctx.params.suffix, ctx.memo.runs, tostring(none), os.date("%Y") >= "2025" and "now" or "then", ctx:get(M, ctx.name).metadata.name }, " ")
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

servers.each(function(server_name, start)
  describe("an isolated script against " .. server_name, function()
    local client, ns
    local begin = controller.frame("isolate", start, function(_, c, n) client, ns = c, n end)

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

    it("reads, writes, waits, remembers, logs and is asked for indexes and predicates as any other",
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

    it("lives on when the interpreter itself crashes, and says what it was", function()
      local run = whole()
      ask("crash", { wait = "3600" })
      run:wait_for_log(30, "waits")
      for _, pid in ipairs(children(run)) do process.run("kill -SEGV " .. pid) end
      assert.matches("^1 same ! 2 ", answer "crash")
      assert.truthy(run:log():find("was killed by signal 11", 1, true))
    end)

    it("is what --isolate makes of every script", function()
      local run = begin((WHOLE:gsub("NS", ns):gsub("isolate = true, ", "")), "--isolate")
      ask("a", {})
      assert.equal("1 same ! 1 nil now a", answer "a")
      assert.is_true(#children(run) >= 1)
    end)

    it("has another process for each generation, and none is left", function()
      local run = whole()
      ask("a", {})
      answer "a"
      local before = children(run)
      process.write(run.script_path, (WHOLE:gsub("NS", ns):gsub('"!"', '"?"')))
      wait.until_true(30, "a new generation", function() return run:log():find("generation=2", 1, true) end)
      ask("b", {})
      assert.equal("2 same ? 1 nil now b", answer "b")
      wait.until_true(20, "the end of the old ones", function()
        local gone = true
        for _, pid in ipairs(children(run)) do
          for _, old in ipairs(before) do gone = gone and pid ~= old end
        end
        return gone
      end)
    end)

    it("spends its budgets as any other", function()
      local run = begin((([[
        local kube = require "kubelua"
        return kube.controller { name = "iso-NS", resource = "v1/ConfigMap", isolate = true, namespaces = { "NS" }, cpu = "50ms", memory = "8Mi", reconcile = function(o, ctx)
          local want = o.data and o.data.want
          if want == "cpu" then while true do end end
          if want == "memory" then local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end
          if want == "fine" then ctx:patch(o, { data = { want = "done", answer = "fine" } }) end
        end }]]):gsub("NS", ns)))
      ask("cpu", { want = "cpu" })
      run:wait_for_log(20, "cpu budget of 50ms spent")
      ask("memory", { want = "memory" })
      run:wait_for_log(20, "not enough memory")
      ask("fine", { want = "fine" })
      assert.equal("fine", answer "fine")
      assert.falsy(run:log():find("isolated Lua process is gone", 1, true))
    end)
  end)
end)

describe("isolation", function()
  it("is refused where kubelua did not start the process", function()
    local out, code = process.run(KUBELUA .. " --isolated-child")
    assert.equal(2, code)
    assert.matches("is for kubelua alone", out)
  end)

  it("is told as a word of the spec that is true or false", function()
    local path = process.write(process.tmpname ".lua",
      'return require("kubelua").controller { name = "x", resource = "v1/ConfigMap", isolate = "yes", \z
        reconcile = function() end }')
    local out, code = process.run(KUBELUA .. " check " .. path)
    assert.are_not_equal(0, code)
    assert.matches("isolate must be true or false, got string", out)
  end)
end)
