-- sim_trace_spec.lua - clusters from Prometheus recordings and from Alibaba's trace of 2023: their pods and
-- usage, and errors for invalid files.
-- not in tsan: a simulation has one thread

local core = require "kubelua.core"
local process = require "support.process"
local prometheus = require "kubelua.sim.trace_prometheus"
local run = require "kubelua.sim.run"
local settings = require "kubelua.sim.settings"
local traces = require "kubelua.sim.trace"
local trace_files = require "kubelua.sim.trace_files"

local POLICIES = "controllers/koordinator/"

local function simulated(trace, seconds, words)
  local s = settings.defaults()
  settings.words("the spec", words or "nodes=1", s)
  return run.run { scripts = { POLICIES .. "noderesource.lua" }, crds = { POLICIES .. "crds" }, snapshot = {},
    load = {}, settings = s, params = {}, colocation = {}, seconds = seconds, seed = 1, trace = trace }
end

local function text(result) return core.encode(core.value(result, "a result")) end

local dirs = 0

local function dir_of(files)
  dirs = dirs + 1
  local dir = ("%s/trace-%d"):format(process.tmpdir(), dirs)
  process.run("mkdir -p " .. dir)
  for name, content in pairs(files) do process.write(dir .. "/" .. name, content) end
  return dir
end

-- Rows by their time.
local function rows_of(r)
  local out = {}
  for _, row in ipairs(r.rows) do out[row.time] = row end
  return out
end

describe("a trace of Prometheus", function()
  local BEGAN = core.time("2026-03-02T10:00:00Z"):unix() // 1 | 0

  -- A series: its labels, and { from, to, value } ..., a sample each minute.
  local function series(labels, ...)
    local values = {}
    for _, part in ipairs { ... } do
      for at = part[1], part[2], 60 do values[#values + 1] = { BEGAN + at, tostring(part[3]) } end
    end
    return { metric = labels, values = values }
  end
  local function answer(...)
    return core.encode(core.value({ status = "success", data = { resultType = "matrix",
      result = core.array { ... } } }, "an answer"))
  end
  local function info(name, node, class, from, to, uid)
    return series({ __name__ = "kube_pod_info", namespace = "shop", pod = name, node = node,
      priority_class = class,
      uid = uid or name, created_by_kind = "ReplicaSet", created_by_name = name:match "^(.*)%-" },
        { from, to, 1 })
  end
  local function of(pod) return { namespace = "shop", pod = pod } end
  local function asks(pod, resource, amount)
    return series({ namespace = "shop", pod = pod, resource = resource }, { 0, 1800, amount })
  end

  local function sample(changes)
    local files = {
      ["nodes.json"] = answer(series({ node = "a", resource = "cpu" }, { 0, 1800, 16 }),
        series({ node = "a", resource = "memory" }, { 0, 1800, 64 << 30 }),
        series({ node = "b", resource = "cpu" }, { 0, 1800, 8 }),
        series({ node = "b", resource = "memory" }, { 0, 1800, 32 << 30 })),
      ["allocatable.json"] = answer(series({ node = "a", resource = "cpu" }, { 0, 1800, 15.5 }),
        series({ node = "a", resource = "memory" }, { 0, 1800, 60 << 30 })),
      ["pods.json"] = answer(info("web-7d9-x", "a", "koord-prod", 0, 1800),
        info("db-0", "b", "", 0, 600, "first"),
        info("db-0", "b", "", 660, 1800, "second"), info("job-1", "", "koord-batch", 300, 300),
        info("job-1", "a", "koord-batch", 360, 900)),
      ["requests.json"] = answer(asks("web-7d9-x", "cpu", 4), asks("web-7d9-x", "memory", 8 << 30),
        asks("db-0", "cpu", 2), asks("job-1", "kubernetes_io_batch_cpu", 1000),
        asks("job-1", "kubernetes_io_batch_memory", 1 << 30)),
      -- two answers of one query, the second of which begins where the first ends
      ["cpu-1.json"] = answer(series(of "web-7d9-x", { 0, 600, 1.5 }), series(of "db-0", { 0, 600, "NaN" })),
      ["cpu-2.json"] = answer(series(of "web-7d9-x", { 600, 1800, 3 }),
        series(of "db-0", { 660, 1800, 0.5 })),
      ["memory.json"] = answer(series(of "web-7d9-x", { 0, 1800, 2 << 30 })),
      -- as promtool prints it
      ["system.json"] = core.encode(core.value({ series({ node = "a" }, { 0, 900, 0.25 },
        { 960, 1800, 0.75 }) },
        "an answer")),
    }
    for name, content in pairs(changes or {}) do files[name] = content or nil end
    return { format = "prometheus", dir = dir_of(files), from = 0 }
  end

  it("has its nodes, and pods with their recorded usage", function()
    local r = simulated(sample(), 1800)
    assert.same({}, r.failed)
    assert.same({ "a", "b" }, r.nodes)
    local at = rows_of(r)
    assert.equal(24, at[120].capacity)
    -- web starts to work half a minute after its creation; db has the usage of the settings until its own is
    -- known
    assert.is_true(at[120].prod > 1.5 and at[120].prod < 3)
    assert.equal(3 + 0.5, at[780].prod)
    assert.same({ 2, 2, 3, 2 }, { at[240].running, at[720].running - 1, at[480].running, at[1080].running })
    assert.equal(1, r.sums.jobs_done)
    local said = table.concat(r.not_modelled, "\n")
    for _, words in ipairs(prometheus.ASSUMED) do assert.truthy(said:find(words, 1, true)) end
    assert.equal(text(r), text((simulated(sample(), 1800))))
  end)

  it("starts at its time; nodes report their pods and their own usage", function()
    local s = settings.defaults()
    local r = run.run { scripts = { POLICIES .. "noderesource.lua" }, crds = { POLICIES .. "crds" },
      snapshot = {},
      load = {}, settings = s, params = {}, colocation = {}, seconds = 1500, seed = 1, explain = "a",
      trace = sample() }
    local a = r.explanation
    assert.equal("2026-03-02T10:25:00Z", a.time)
    local calculated = table.concat(a.controllers[1].said, "\n")
    -- a mean of 5 minutes: 3 cores of web, 0.75 of the system; capacity 16 of which 0.5 are not allocatable
    assert.matches("podHPUsed:3000", calculated)
    assert.matches("systemUsageOrNodeReserved:750", calculated)
    assert.matches("nodeCapacity:16000", calculated)
  end)

  it("is cut by time and by nodes", function()
    local later = sample()
    later.from = 660
    local at = rows_of(simulated(later, 900))
    assert.equal(3 + 0.5, at[120].prod)
    later.nodes = 1
    local r = simulated(later, 900)
    assert.same({ "a" }, r.nodes)
    assert.equal(3, rows_of(r)[120].prod)
    traces.read_cut("from=0s", later) -- the whole of it
    assert.equal(0, later.from)
  end)

  it("that does not read says which file, and what its query is", function()
    local function fails(changes, pattern)
      local ok, why = pcall(simulated, sample(changes), 600)
      assert.is_false(ok)
      assert.truthy(tostring(why):find(pattern, 1, true), tostring(why))
    end
    local cpu = prometheus.QUERIES[5][2]
    fails({ ["cpu-1.json"] = false, ["cpu-2.json"] = false },
      "has no cpu.json, the answer of query_range to: " .. cpu)
    fails({ ["pods.json"] = '{"status":"error","errorType":"bad_data","error":"parse error"}' },
      "pods.json: Prometheus answered: parse error")
    fails({ ["pods.json"] = '{"status":"success","data":{"resultType":"vector","result":[]}}' },
      "pods.json: expected the answer of query_range (a matrix), got a vector")
    fails({ ["pods.json"] = answer() }, "has no pods")
    fails({ ["pods.json"] = "{" }, "pods.json: ")
    fails({ ["pods.json"] = "5" }, "pods.json: expected an answer of Prometheus")
    fails({ ["pods.json"] = "{}" }, "pods.json: expected the answer of query_range (a matrix), got no \z
      data.resultType")
    fails({ ["nodes.json"] = answer() }, "has no nodes")
    fails({ ["cpu-2.json"] = answer(series({ pod = "x" }, { 0, 0, 1 })) },
      'cpu-2.json: series 1: the label "namespace" is missing; the query is: ' .. cpu)
    fails({ ["cpu-2.json"] = answer(series(of "web-7d9-x", { 0, 0, 1 }),
      series(of "web-7d9-x", { 0, 0, "many" })) },
      'cpu-2.json: series 2: values[1] is not a number: "many"')
    fails({ ["cpu-2.json"] = answer { metric = of "x", values = { 5 } } },
      'cpu-2.json: series 1: values[1]: expected [seconds, "number"]')
    fails({ ["cpu-2.json"] = answer { metric = of "x" } }, "cpu-2.json: series 1: values: expected a list")
  end)

  it("with bytes that changed is read, or refused with its file", function()
    local whole, seed, read = answer(info("web-1", "a", "", 0, 300),
      info("job-1", "a", "koord-batch", 0, 120)), 3, 0
    local function up_to(n)
      seed = (seed * 1103515245 + 12345) % (1 << 31)
      return 1 + (seed >> 16) % n
    end
    local odd = { "{", "}", "[", "]", ":", "\n", " ", '"', "-", "5", "1e999", "null", "NaN", "\\" }
    local trace = sample()
    for _ = 1, 300 do
      local at = up_to(#whole)
      process.write(trace.dir .. "/pods.json",
        whole:sub(1, at - 1) .. odd[up_to(#odd)] .. whole:sub(at + up_to(3)))
      local ok, why = pcall(prometheus.open, trace.dir)
      if ok then read = read + 1 else assert.matches("pods%.json", tostring(why)) end
    end
    assert.is_true(read > 10 and read < 300)
  end)

  it("can be fetched with the commands of the page", function()
    local page = process.read "docs/whatif.md"
    for _, q in ipairs(prometheus.QUERIES) do
      assert.truthy(prometheus.commands():find(('fetch "$1/%s.json" \'%s\''):format(q[1], q[2]), 1, true))
      assert.truthy(page:find(q[1] .. ".json", 1, true), q[1])
      for metric in q[2]:gmatch "kube_[%l_]+" do assert.truthy(page:find(metric, 1, true), metric) end
    end
    assert.equal(0, select(2,
      process.run("sh -n " .. process.write(process.tmpname ".sh", prometheus.commands()))))
  end)
end)

describe("samples", function()
  it("are read from pairs of a time and a text, all of them or none", function()
    local function read(t) return core.samples(core.decode(t)) end
    assert.same({ 60, 0.5, 120, 2, 180.5, -1e3 }, read '[[60,"0.5"],[120.0,"2"],[180.5,"-1e3"]]')
    assert.equal("integer", math.type(read '[[120.0,"2"]]'[1]))
    assert.same({}, read "[]")
    for _, t in ipairs { '[[60,"1"],[120,"NaN"]]', '[[60,1]]', '[["60","1"]]', '[[60]]', '[[60,"1","2"]]',
      "[{}]",
      '[[60,"1\\u0000"]]', '[[60,""]]' } do
      assert.is_nil(read(t), t)
    end
    assert.is_false(pcall(core.samples, { { 60, "1" } }))
  end)

  it("are sorted by time, and at one time by their numbers", function()
    local sorted, mixed = { 1, 5, 2, 7, 2, 8, 3, 0 }, { 3, 0, 2, 8, 1, 5, 2, 7 }
    trace_files.sort(mixed)
    assert.same(sorted, mixed)
    trace_files.sort(mixed)
    assert.same(sorted, mixed)
    local none = {}
    trace_files.sort(none)
    assert.same({}, none)
  end)
end)

describe("a trace of Alibaba's form of 2023", function()
  local NODES = "0,n1,0.1,0.2,1,0,0,0,0.5,0\n0,n2,0.1,0.2,0.5,0,0,0,0.25,0\n60,n1,0.1,0.2,1,0,0,0,0.5,0\n"
    .. "60,n3,0.1,0.2,-1,0,0,0,-1,0\n"
  local META = "create_timestamp,pod,cpu,memory,disk,cpu_limit,memory_limit,disk_limit,qos\n"
    .. "-300,web,0.0625,0.0625,0,0.125,0.0625,0,LSR\n-300,old,0.0625,0.0625,0,0.125,0.0625,0,LS\n"
    .. "300,job,0.03125,0.03125,0,0,0,0,BE\n400,unseen,0.03125,0.03125,0,0,0,0,\n"
  local function usage(at, node, pod, share)
    return ("%d,%s,%s,%s-app,0,%s,0,0,0,0,0,0,0,-1,,,,0,0,0\n"):format(at, node, pod, pod, share)
  end
  local function sample(changes)
    local hours = { "", "" }
    for at = -60, 1740, 60 do
      local h = at < 900 and 1 or 2
      hours[h] = hours[h] .. usage(at, "n1", "web", at < 600 and "0.25" or at == 660 and "-1" or "0.5")
      if at <= 600 then hours[h] = hours[h] .. usage(at, "n2", "old", "0.125") end
      if at >= 300 and at < 600 then hours[h] = hours[h] .. usage(at, "n2", "job", "0.9") end
    end
    local files = { ["node_resource_usage_0.csv"] = NODES, ["pod_meta_info.csv"] = META,
      ["pod_resource_usage_0.csv"] = hours[1], ["pod_resource_usage_1.csv"] = hours[2] }
    for name, content in pairs(changes or {}) do files[name] = content or nil end
    return { format = "alibaba2023", dir = dir_of(files), from = 0 }
  end
  local SIZE = "cpu=64,memory=128Gi"

  it("has machines, pods with their usage, and jobs", function()
    local r = simulated(sample(), 1800, SIZE)
    assert.same({}, r.failed)
    assert.same({ "n1", "n2" }, r.nodes) -- the size of n3 is missing
    local at = rows_of(r)
    assert.equal(48, at[120].capacity)
    assert.equal(4 * 0.25 + 4 * 0.125, at[240].prod)
    assert.equal(4 * 0.5, at[900].prod)
    assert.same({ 2, 3, 1 }, { at[240].running, at[480].running, at[1080].running })
    assert.equal(1, r.sums.jobs_done)
    assert.matches("an amount of 1 is the setting cpu or memory", table.concat(r.not_modelled, "\n"))
    assert.equal(text(r), text((simulated(sample(), 1800, SIZE))))
  end)

  it("is cut by time and by machines", function()
    local later = sample()
    later.from, later.nodes = 900, 1
    local r = simulated(later, 600, SIZE)
    assert.same({ "n1" }, r.nodes)
    assert.equal(2, rows_of(r)[240].prod)
  end)

  it("that is invalid is rejected with the place", function()
    local function fails(changes, pattern)
      local ok, why = pcall(simulated, sample(changes), 600, SIZE)
      assert.is_false(ok)
      assert.truthy(tostring(why):find(pattern, 1, true), tostring(why))
    end
    fails({ ["pod_meta_info.csv"] = false }, "has no file *pod_meta_info*.csv")
    fails({ ["pod_meta_info.csv"] = "pod,cpu\n" },
      'pod_meta_info.csv:1: the column "create_timestamp" is missing')
    fails({ ["pod_meta_info.csv"] = META .. "1,web,2,0,0,0,0,0,LS\nx,web,0,0,0,0,0,0,LS\n" },
      'pod_meta_info.csv:7: create_timestamp is not a number: "x"')
    fails({ ["node_resource_usage_0.csv"] = NODES .. "0,n4,0,0,1,0,0,0,2,0\n" },
      'node_resource_usage_0.csv:5: node_cpu_cores must be from 0 to 1, or -1: "2"')
    fails({ ["pod_resource_usage_1.csv"] = usage(960, "n1", "web", "many") },
      'pod_resource_usage_1.csv:1: pod_cpu_request_util is not a number: "many"')
  end)
end)
