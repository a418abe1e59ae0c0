-- replay_spec.lua - the recording of `run --record` runs again: with the same script it does the same, with
-- another script it shows the differences.

local controller = require "support.controller"
local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local SECRET = "hunter2-is-no-word"

-- A bit of everything: children, a finalizer, conflicts, errors, sleeps, waits, live reads, lists, an
-- index, time and chance, memory of its own, several workers.
local SCRIPT = [[
local kube = require "kubelua"
local runs = 0
return kube.controller {
  name = "mixture", resource = "v1/ConfigMap", workers = 2, every = "1s",
  reads = { "v1/Secret" }, owns = { "v1/Service" },
  indexes = { color = function(o) return o("data.color") end },
  finalizer = "example.com/mixture",
  backoff = { base = "10ms", max = "50ms" },
  finalize = function(map, ctx)
    ctx:delete("v1/Secret", map.metadata.name .. "-copy")
  end,
  reconcile = function(map, ctx)
    local way = map("data.way")
    if not way then return end
    runs = runs + 1
    ctx.memo.turns = (ctx.memo.turns or 0) + 1
    kube.shared:incr("all")
    local count = tonumber(map("data.count") or "0")
    if way == "children" then
      local secret = ctx:get("v1/Secret", "source")
      ctx:apply { apiVersion = "v1", kind = "Service", metadata = { name = map.metadata.name },
        spec = { ports = { { port = 80 } } } }
      if secret then ctx:apply { apiVersion = "v1", kind = "Secret",
        metadata = { name = map.metadata.name .. "-copy" }, data = secret.data,
        stringData = { own = "CONSTANT" } } end
    elseif way == "fails" and ctx.attempt < 3 then
      error "not yet"
    elseif way == "sleeps" then
      ctx:sleep("20ms")
    elseif way == "conflicts" and count < 3 then
      ctx.live:get("v1/ConfigMap", map.metadata.name)
      local stale = kube.copy(map)
      stale.metadata.resourceVersion = "1"
      ctx:update(stale)
    end
    local same = ctx:list("v1/ConfigMap", { index = "color", value = "red" })
    if count >= 3 then return end
    ctx:patch(map, function(m)
      m.data.count = tostring(count + 1)
      m.data.seen = #same .. " red, run " .. runs
      m.data.when = os.date("%H:%M:%S") .. " " .. tostring(ctx:now()) .. " " .. os.time()
      m.data.turns = tostring(ctx.memo.turns)
      m.data.why = ctx.trigger.reason .. " " .. tostring(ctx.trigger.key) .. " " .. ctx.trigger.events
      m.data.chance = math.random(1000000) .. " " .. kube.generate_name("x-") .. " " .. math.random()
    end)
    return { requeue_after = "30ms" }
  end,
}
]]

local WAYS = { "children", "fails", "sleeps", "conflicts", "plain" }

local function replay(words, env)
  local quoted = {}
  for i, w in ipairs(words) do quoted[i] = process.quote(w) end
  return process.run((env or "") .. " " .. KUBELUA .. " replay " .. table.concat(quoted, " "))
end

local function sum(text) return text:match "(%d+ same, %d+ differs?, %d+ fails?)" end

servers.each(function(name, start)
  describe("a recording of `kubelua run` against " .. name, function()
    local server, client, ns
    local begin = controller.frame("replay", start, function(s, c, n) server, client, ns = s, c, n end)

    local function create(key, data)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = data }
    end

    local function count_of(key)
      local map = client:get("v1/ConfigMap", ns, key)
      return map and tonumber(map("data.count") or "0") or 0
    end

    -- Runs the mixture until every key has come to rest, and one was deleted; returns the recording.
    local function record(...)
      local tape = process.tmpname ".tape"
      client:create { kind = "v1/Secret", namespace = ns, name = "source",
        stringData = { password = SECRET } }
      for i, way in ipairs(WAYS) do create(way, { way = way, color = i % 2 == 0 and "red" or "blue" }) end
      local run = controller.start(server, SCRIPT, "--namespace", ns, "--record", tape, ...)
      for _, way in ipairs(WAYS) do
        if way ~= "conflicts" then
          wait.until_true(60, way .. " has come to rest", function() return count_of(way) == 3 end)
        end
      end
      run:wait_for_log(30, "mixture: running")
      client:delete("v1/ConfigMap", ns, "children")
      wait.until_true(30, "it is finalized", function()
        return not client:get("v1/ConfigMap", ns, "children")
      end)
      controller.finish(run)
      return tape, run.script_path
    end

    it("gives the same result on replay: twice, and elsewhere", function()
      local tape, script = record()
      local text = assert(process.read(tape))
      assert.is_nil(text:find(SECRET, 1, true))
      assert.is_nil(text:find("aHVudGVyMi1pcy1uby13b3Jk", 1, true))
      assert.is_nil(text:find("CONSTANT", 1, true))
      for _, what in ipairs { '"code":409', '"result":"error"', '"what":"sleep"', '"t":"clock"', '"t":"list"',
        "example.com/mixture" } do
        assert.is_truthy(text:find(what, 1, true), what)
      end
      assert.is_truthy(text:find '"t":"get"[^\n]*"kind":"v1/Secret"[^\n]*"name":"source"')

      local first, code = replay { tape, script }
      assert.equal(0, code, first)
      local same = tonumber(sum(first):match "^(%d+) same, 0 differ, 0 fail$")
      assert.is_true(same >= 15, first)
      assert.is_truthy(first:find("the recorded script", 1, true), first)

      local dir = process.tmpname ".elsewhere"
      local out, status = process.run(("mkdir -p %s && cp %s %s/x.tape && cp %s %s/mixture.lua"):format(dir,
        tape, dir, script, dir))
      assert.equal(0, status, out)
      local again, code2 = replay({ dir .. "/x.tape", dir .. "/mixture.lua" },
        "TZ=Asia/Tokyo LANG=de_DE.UTF-8 LC_ALL=C KUBECONFIG=/nowhere HOME=/nowhere")
      assert.equal(0, code2, again)
      assert.equal(sum(first), sum(again))
    end)

    it("reports a difference once, however many keys have it", function()
      local tape = process.tmpname ".tape"
      local text = [[local kube = require "kubelua"
return kube.controller { name = "alike", resource = "v1/ConfigMap", when = { "labels" },
  reconcile = function(o, ctx)
    if not o.metadata.name:find "card" then return end
    if o.metadata.name:find "bad" then error("it was bad " .. #o.metadata.name .. o.metadata.name:sub(-2)) end
    ctx:patch(o, function(m) m.data.greeting = "Hello" .. o.metadata.name end)
  end }]]
      for _, key in ipairs { "card-1", "card-2", "card-3", "badcard-1", "badcard-2" } do
        create(key, { a = "b" })
      end
      local run = controller.start(server, text, "--namespace", ns, "--record", tape)
      for _, key in ipairs { "card-1", "card-2", "card-3" } do
        wait.until_true(60, key, function() return client:get("v1/ConfigMap", ns, key).data.greeting end)
      end
      run:wait_for_log(30, "it was bad 9-1")
      run:wait_for_log(30, "it was bad 9-2")
      controller.finish(run)
      local out, code = replay { tape, process.write(process.tmpname ".lua", (text:gsub("Hello", "Hi"):gsub(
        'error%b()', "return"))) }
      assert.equal(1, code, out)
      local _, told = out:gsub('data.greeting: "Hellocard%-%d" %-> "Hicard%-%d"', "")
      assert.equal(1, told, out)
      assert.has_match("  2 more runs like this\n", out)
      _, told = out:gsub("result: error %-> done\n  recorded: [^\n]*it was bad 9%-%d", "")
      assert.equal(1, told, out)
      -- Those that failed are tried again and again: the commonest comes first.
      assert.has_match("^alike [^\n]*badcard", out)
      local report = json.decode((replay { tape, "-o", "json", process.write(process.tmpname ".lua",
        (text:gsub("Hello", "Hi"))) }))
      assert.equal(1, #report.kinds)
      assert.same({ "differs", 3, "patch v1/ConfigMap: data.greeting" },
        { report.kinds[1].verdict, report.kinds[1].runs, report.kinds[1].kind })
      local shown = replay { tape, "--show", ns .. "/card-2", process.write(process.tmpname ".lua",
        (text:gsub("Hello", "Hi"))) }
      assert.has_match("alike " .. ns:gsub("%p", "%%%0") .. "/card%-2 at [^\n]*: differs\n", shown)
    end)

    it("names the scripts that ran, also after a reload", function()
      local tape = process.tmpname ".tape"
      local run = controller.start(server, SCRIPT, "--namespace", ns, "--record", tape)
      run:wait_for_log(30, "controller is running")
      process.write(run.script_path, "-- other\n" .. SCRIPT)
      run:wait_for_log(30, "loaded the next generation")
      controller.finish(run)
      local text = assert(process.read(tape))
      local first, digest = text:match '"scripts":%[{"path":"[^"]+","digest":"(%x+)"}%]',
        text:match '"t":"scripts","scripts":%[{"path":"[^"]+","digest":"(%x+)"}%]'
      assert.is_truthy(digest, text)
      assert.are_not.equal(first, digest)
    end)

    it("reports the keys that another script would treat differently", function()
      local tape, script = record()
      local changed = process.write(process.tmpname ".lua",
        (SCRIPT:gsub('m%.data%.seen = ', 'if way == "plain" then m.data.news = "yes" end m.data.seen = ')))
      local out, code = replay { tape, changed }
      assert.equal(1, code, out)
      assert.is_truthy(out:find(("mixture %s/plain at"):format(ns), 1, true), out)
      assert.is_truthy(out:find('data.news: none -> "yes"', 1, true), out)
      for _, way in ipairs { "sleeps", "fails", "conflicts", "children" } do
        assert.is_nil(out:find(("mixture %s/%s at"):format(ns, way), 1, true), out)
      end
      assert.is_truthy(out:find("another script", 1, true), out)

      local fails = process.write(process.tmpname ".lua",
        (SCRIPT:gsub('ctx:sleep%("20ms"%)', 'error "it cannot sleep"')))
      out, code = replay { tape, fails, "--show", ns .. "/sleeps" }
      assert.equal(1, code, out)
      assert.is_truthy(out:find("it cannot sleep", 1, true), out)
      assert.is_truthy(out:find(": fails\n", 1, true), out)
      assert.is_nil(out:find("/plain", 1, true), out)

      -- No write any more, and one that asks for what nobody asked then.
      local less = process.write(process.tmpname ".lua",
        (SCRIPT:gsub('ctx:apply { apiVersion = "v1", kind = "Service".-80 } } } }\n', [[
          if not ctx.live:get("v1/Secret", "source") then error "the recording knows it" end
          local made = ctx:create { apiVersion = "v1", kind = "Secret", metadata = { name = "new" },
            stringData = { a = "b" } }
          if made.metadata.name ~= "new" then error "an answer is made out" end
        ]])))
      out, code = replay { tape, less }
      assert.equal(1, code, out)
      assert.is_truthy(out:find(("not any more: apply v1/Service %s/children"):format(ns), 1, true), out)
      assert.is_truthy(out:find(("only now: create v1/Secret %s/new"):format(ns), 1, true), out)
      assert.is_nil(out:find("an answer is made out", 1, true), out)

      out, code = replay { tape, script, "--until", "1ms" }
      assert.equal(0, code, out)
      out, code = replay { tape, changed, "-o", "json" }
      assert.equal(1, code, out)
      local report = require("kubelua").decode(out)
      assert.is_false(report.recordedScript)
      assert.equal("other", report.runs[1].changes[1].how)
      assert.equal("yes", report.runs[1].changes[1].now.body.data.news)
    end)

    it("stays below its bound, and the rest can be replayed", function()
      local tape = process.tmpname ".tape"
      for i = 1, 20 do create("map-" .. i, { fill = ("x"):rep(2000) .. i }) end
      local run = begin([[
        local kube = require "kubelua"
        return kube.controller {
          name = "turns", resource = "v1/ConfigMap",
          reconcile = function(map, ctx)
            if not map("data.fill") then return end
            local n = tonumber(map("data.n") or "0")
            if n < 40 then ctx:patch(map, function(m) m.data.n = tostring(n + 1) end) end
          end,
        }
      ]], "--namespace", ns, "--record", tape, "--record-max", "1Mi", "--record-secrets", "--never-slow-down")
      wait.until_true(60, "there are four files", function() return process.read(tape .. ".3") end)
      wait.until_true(60, "all is done", function()
        for i = 1, 20 do
          if client:get("v1/ConfigMap", ns, "map-" .. i)("data.n") ~= "40" then return false end
        end
        return true
      end)
      controller.finish(run)
      local total = 0
      for _, suffix in ipairs { "", ".1", ".2", ".3" } do
        total = total + #assert(process.read(tape .. suffix))
      end
      assert.is_true(total < 1.1 * 1048576, total)
      assert.is_nil(process.read(tape .. ".4"))
      local out, code = replay { tape, run.script_path }
      assert.equal(0, code, out)
      assert.is_truthy(out:find("the start of the recording is no longer in these files", 1, true), out)
      for _, suffix in ipairs { ".1", ".2", ".3" } do
        out, code = replay { tape .. suffix, run.script_path }
        assert.equal(0, code, out)
        assert.is_truthy(sum(out):find "^%d+ same, 0 differ, 0 fail$", out)
      end
    end)
  end)
end)

describe("kubelua replay", function()
  local function fails(words, status, text)
    local out, code = replay(words)
    assert.equal(status, code, out)
    assert.is_truthy(out:find(text, 1, true), out)
  end

  local HEAD = '{"t":"tape","format":1,"version":"0.1.0","recording":"a","file":1,"at":1}\n'
  local BEGIN = '{"t":"kind","kind":"v1/ConfigMap","group":"","version":"v1","is":"ConfigMap",\z
    "plural":"configmaps","namespaced":true}\n'
    .. '{"t":"cache","c":1,"label":"v1/ConfigMap","kind":"v1/ConfigMap"}\n'
    .. '{"t":"put","c":1,"o":1,"v":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",\z
      "namespace":"b","resourceVersion":"1"}}}\n'
    .. '{"t":"began","r":"r1","at":1000000000,"controller":"x","worker":1,"key":"b/a","attempt":1,\z
      "generation":1,"o":1}\n'
  local END = '{"t":"ended","r":"r1","at":1001000000,"result":"done"}\n'

  local function tape(text) return process.write(process.tmpname ".tape", text) end
  local script
  lazy_setup(function()
    script = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "x", resource = "v1/ConfigMap", reconcile = function() end }
    ]])
  end)

  it("explains what is wrong with a recording, and where", function()
    fails({}, 2, "name the recording and the script")
    fails({ tape(HEAD) }, 2, "name the script, too")
    fails({ "/nowhere/x.tape", script }, 2, "cannot read /nowhere/x.tape")
    fails({ tape "", script }, 2, "is empty")
    fails({ tape "apiVersion: v1\n", script }, 2, "is not a recording of kubelua run --record")
    fails({ tape '{"kind":"Pod"}\n', script }, 2, "is not a recording of kubelua run --record")
    fails({ tape((HEAD:gsub('"format":1', '"format":7'):gsub("0%.1%.0", "9.9.9"))), script }, 2,
      "written by kubelua 9.9.9; this one reads format 1")
    fails({ tape(HEAD), script }, 2, "the recording has no runs")
    fails({ tape(HEAD .. BEGIN .. "garbage\n" .. END), script }, 2, ".tape:6: no record")
    fails({ tape(HEAD .. BEGIN .. '{"t":"news"}\n'), script }, 2,
      '.tape:6: a record "news", unknown to this version of kubelua')
    fails({ tape(HEAD .. BEGIN .. '{"t":"get","r":"r1","kind":"v1/Pod","name":"a","o":9}\n'), script }, 2,
      ".tape:6: object 9 is not in the recording: lines are missing")
    fails({ tape(HEAD .. BEGIN .. '{"t":"answered","r":"r1","n":1}\n'), script }, 2,
      "question 1 of run r1, which was not asked")
    fails({ tape(HEAD .. BEGIN:gsub('"controller":"x"', '"controller":"other"') .. END), script }, 2,
      "it has runs of other, but the script has x")
    fails({ tape(HEAD .. BEGIN .. END), tape "return {" }, 2, "unexpected symbol")
    fails({ tape(HEAD .. BEGIN .. END), script, "--show", "b/other" }, 2,
      "the recording has no run of b/other")
    fails({ tape(HEAD .. BEGIN .. END), script, "--until", "noon" }, 2, "--until must be a time")
  end)

  it("tolerates a torn last line", function()
    fails({ tape(HEAD .. BEGIN .. END), script }, 0, "1 same, 0 differ, 0 fail")
    fails({ tape(HEAD .. BEGIN .. END .. '{"t":"put","c":1,"o":2,"v":{"apiVer'), script }, 0,
      "the last line is incomplete")
    fails({ tape(HEAD .. BEGIN .. '{"t":"ended","r":'), script }, 0, "1 cut short when recorded")
  end)

  it("reports reads that were not recorded", function()
    local more = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "x", resource = "v1/ConfigMap", reads = { "v1/Secret" },
        reconcile = function(_, ctx)
          if ctx:get("v1/Secret", "b", "a") then error "there is none" end
        end }
    ]])
    fails({ tape(HEAD .. BEGIN .. END), more }, 0, "no v1/Secret was recorded")
  end)

  -- A recording of two runs of one key, with what else their beginnings say, and their ends.
  local function two_runs(first, second)
    local begin = BEGIN:gsub('{"t":"began".*', "")
    local function run(n, with)
      local began = ('{"t":"began","r":"r%d","at":%d000000000,"controller":"x","worker":1,"key":"b/a",'
        .. '"attempt":1,"generation":1,"o":1%s}\n'):format(n, n, with.more or "")
      return began .. ('{"t":"ended","r":"r%d","at":%d001000000,"result":"%s","after":%d}\n'):format(n, n,
        with.result, with.after)
    end
    return tape(HEAD .. begin .. run(1, first) .. run(2, second))
  end

  local function script_of(body)
    return process.write(process.tmpname ".lua", ([[
      local kube = require "kubelua"
      return kube.controller { name = "x", resource = "v1/ConfigMap", reconcile = function(_, ctx) %s end }
    ]]):format(body))
  end

  it("notices another delay until the next run", function()
    local five = { result = "after", after = 5000000000 }
    local recorded = two_runs(five, five)
    fails({ recorded, script_of 'return { requeue_after = "5s" }' }, 0, "2 same, 0 differ, 0 fail")
    fails({ recorded, script_of 'return { requeue_after = "6s" }' }, 1, "0 same, 2 differ, 0 fail")
  end)

  it("keeps the memo of the replayed script, and restores that of older runs", function()
    local one = { result = "done", after = -1 }
    local then_seven = { result = "done", after = -1, more = ',"memo":{"n":7}' }
    local counts = script_of [[
      ctx.memo.n = (ctx.memo.n or 0) + 1
      if ctx.memo.n > 2 then error "not its own" end
    ]]
    fails({ two_runs(one, then_seven), counts }, 0, "2 same, 0 differ, 0 fail")
    local reads = script_of 'if ctx.memo.n ~= 7 then error "not recalled" end'
    fails({ two_runs(then_seven, then_seven), reads }, 0, "2 same, 0 differ, 0 fail")
  end)

  it("gives each run the params of its time", function()
    local function with(second)
      return { result = "done", after = -1, more = (',"params":{"second":%d}'):format(second) }
    end
    local with_params = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "x", resource = "v1/ConfigMap", params = { second = 0 },
        reconcile = function(_, ctx)
          if os.time() ~= ctx.params.second then error("second " .. ctx.params.second) end
        end }
    ]])
    fails({ two_runs(with(1), with(2)), with_params }, 0, "2 same, 0 differ, 0 fail")
  end)

  it("ends a run with endless calls, whatever it catches: time stands still, so no timeout would", function()
    for _, loop in ipairs { "ctx:sleep(1)", 'pcall(ctx.live.get, ctx.live, "v1/ConfigMap", "b", "a")' } do
      fails({ tape(HEAD .. BEGIN .. END), script_of("while true do " .. loop .. " end") }, 1,
        "this run keeps sending requests: 1000 so far, and 0 when it was recorded")
    end
  end)

  it("tolerates invalid times", function()
    fails({ tape(HEAD .. BEGIN .. END:gsub('"at":%d+', '"at":-9223372036854775808')), script }, 0,
      "1 same, 0 differ, 0 fail")
  end)

  it("reports the size that a recording's caches need", function()
    local big = {}
    for i = 1, 200 do
      big[i] = ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d, namespace: default}\ndata: \z
        {x: %s}\n"):format(i, ("y"):rep(2000))
    end
    local path = process.tmpname ".tape"
    local dev = process.spawn { KUBELUA, "dev", script, "--load",
      process.write(process.tmpname ".yaml", table.concat(big, "---\n")), "--record", path, "--record-max",
      "1Mi" }
    dev:wait_for_log(30, "nothing more is written to this file")
    assert.is_truthy(dev:log():find "%-%-record%-max should be %d+Mi or more", dev:log())
    controller.finish(dev)
  end)

  it("explains how to record", function()
    local function run(...) return process.run(KUBELUA .. " run " .. table.concat({ script, ... }, " ")) end
    local out, code = run "--record-max 1Gi"
    assert.equal(2, code, out)
    assert.is_truthy(out:find("needs --record FILE", 1, true), out)
    out, code = run("--record", "x", "--record-max", "1000")
    assert.equal(2, code, out)
    assert.is_truthy(out:find("at least 1Mi", 1, true), out)
    out, code = run("--record", "x", "--context", "a", "--context", "b")
    assert.equal(2, code, out)
    assert.is_truthy(out:find("one cluster", 1, true), out)
    out, code = process.run(KUBELUA .. " dev " .. script .. " --record /nowhere/x")
    assert.equal(1, code, out)
    assert.is_truthy(out:find("cannot write /nowhere/x", 1, true), out)
  end)
end)
