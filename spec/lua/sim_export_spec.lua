-- sim_export_spec.lua - traces of SimKube, and simulations written for SimKube and KWOK: reading them back
-- yields the same cluster.
-- not in tsan: a simulation has one thread

local core = require "kubelua.core"
local export = require "kubelua.sim.export"
local manifests = require "kubelua.manifests"
local msgpack = require "kubelua.sim.msgpack"
local process = require "support.process"
local run = require "kubelua.sim.run"
local settings = require "kubelua.sim.settings"
local simkube = require "kubelua.sim.trace_simkube"

local POLICIES = "controllers/koordinator/"

local function cell(words, more)
  local s = settings.defaults()
  settings.words("the spec", words, s)
  local out = { scripts = { POLICIES .. "noderesource.lua" }, crds = { POLICIES .. "crds" }, snapshot = {},
    load = {}, settings = s, params = {}, colocation = {}, seconds = 1800, seed = 1 }
  for k, v in pairs(more or {}) do out[k] = v end
  return out
end

local function rows_of(r)
  local out = {}
  for _, row in ipairs(r.rows) do out[row.time] = row end
  return out
end

local function exported(c, format)
  local exporter
  local r = run.run(c, nil, nil, function(w) exporter = export.new(w) end)
  local files = {}
  for _, f in ipairs(exporter:files(format)) do files[f[1]] = f[2] end
  return files, r
end

local function file(name, text) return process.write(process.tmpname(name), text) end

describe("a trace of SimKube", function()
  local BEGAN = 1780000000

  local function object(kind, name, spec)
    return { apiVersion = kind:match "^(.*)%.", kind = kind:match "[^.]*$",
      metadata = { name = name, namespace = "shop" }, spec = spec }
  end
  local function template(cpu, labels)
    return { metadata = { labels = labels or core.object {} },
      spec = { containers = { { name = "m", image = "i",
      resources = { requests = { cpu = cpu, memory = "1Gi" } } } } } }
  end
  local function owner(name) return { "batch/v1.Job", "shop/" .. name } end

  local function sample(changes)
    local small = object("apps/v1.Deployment", "web", { replicas = 2, template = template "2" })
    local large = object("apps/v1.Deployment", "web", { replicas = 4, template = template "2" })
    local trace = {
      version = 2, index = core.object {},
      config = { trackedObjects =
        { ["x.io/v1.Team"] = { podSpecTemplatePaths = { "/spec/tasks/*/template" } } } },
      events = {
        { ts = BEGAN, applied_objs = { small, object("batch/v1.Job", "report", { template = template "1" }),
          object("x.io/v1.Team", "blue", { tasks = { { template = template "3" } } }),
          object("apps/v1.DaemonSet", "agent", { template = template "1" }) }, deleted_objs = core.array {} },
        { ts = BEGAN + 600, applied_objs = { large }, deleted_objs = core.array {} },
        { ts = BEGAN + 1200, applied_objs = core.array {}, deleted_objs = { large } },
        { ts = BEGAN + 1800, applied_objs = core.array {}, deleted_objs = core.array {} },
      },
      pod_lifecycles = msgpack.map {
        { owner "report", msgpack.map { { 7, { { Finished = { BEGAN + 300, BEGAN + 540 } }, "Empty" } } } },
        { { "x.io/v1.Team", "shop/blue" }, msgpack.map { { 1, { { Running = BEGAN + 900 } } } } },
      },
    }
    for name, value in pairs(changes or {}) do trace[name] = value end
    return { format = "simkube", dir = file(".sktrace", msgpack.encode(trace)), from = 0 }
  end

  it("has the pods of its owners: by lifetimes, or else by replicas", function()
    local r = run.run(cell("nodes=2,noise=0", { trace = sample() }))
    assert.same({}, r.failed)
    assert.same({ "node-001", "node-002" }, r.nodes)
    local at = rows_of(r)
    assert.same({ 2, 3, 4, 5, 1 }, { at[240].running, at[420].running, at[840].running,
      at[1080].running, at[1320].running })
    assert.equal(1, r.sums.jobs_done)
    assert.matches("it has no nodes", table.concat(r.not_modelled, "\n"))
    local later = sample()
    later.from = 900
    assert.equal(5, rows_of(run.run(cell("nodes=2", { trace = later, seconds = 240 })))[180].running)
  end)

  it("that is invalid is rejected with the place", function()
    local function fails(changes, pattern)
      local trace = sample(changes)
      local ok, why = pcall(function() return run.run(cell("nodes=1", { trace = trace })) end)
      assert.is_false(ok)
      assert.truthy(tostring(why):find(trace.dir .. ": " .. pattern, 1, true), tostring(why))
    end
    fails({ version = 1 }, "not a trace of SimKube: expected version 2, got 1")
    fails({ events = core.array {} }, "the trace has no events")
    fails({ events = { { ts = 5, applied_objs = { { kind = "Pod" } }, deleted_objs = core.array {} } } },
      "event 1, applied object 1: metadata: expected a list or an object, got nil")
    fails({ events = { { ts = "x" } } }, "event 1: ts: expected a number, got string")
    fails({ pod_lifecycles = msgpack.map { { owner "report",
      msgpack.map { { 7, { { Finished = { "x", 1 } } } } } } } },
      "pod_lifecycles 1: a start: expected a number, got string")
    fails({ events = { { ts = BEGAN, deleted_objs = core.array {},
      applied_objs = { object("apps/v1.Deployment", "web",
        { replicas = -1, template = template "1" }) } } } },
      "event 1, applied object 1: spec.replicas: expected a number from 0 to 1000000")
    fails({ events = { { ts = BEGAN, deleted_objs = core.array {},
      applied_objs = { object("apps/v1.Deployment", "web", { template = template "much" }) } } } },
      "event 1, applied object 1: the request of cpu must be a quantity")
    local path = file(".sktrace", "{}")
    local ok, why = pcall(simkube.open, path)
    assert.is_false(ok)
    assert.equal(path .. ": not a trace of SimKube (MessagePack): byte 2: the value ends here, the file \z
      does not", why)
  end)
end)

describe("an export", function()
  local WORDS = "nodes=2,batch_rate=12,batch_time=5m,noise=0"

  it("for KWOK is read back as the same cluster, with the same changes", function()
    local files, r = exported(cell(WORDS, { scenario = file(".lua",
      'return { at = { ["20m"] = function(s) s:cordon "node-002" s:fail_node "node-002" end } }') }), "kwok")
    assert.equal(files["recording.yaml"], exported(cell(WORDS, { scenario = file(".lua",
      'return { at = { ["20m"] = function(s) s:cordon "node-002" s:fail_node "node-002" end } }') }),
      "kwok")["recording.yaml"])
    local path = file(".yaml", files["recording.yaml"])
    local back = run.run(cell(WORDS, { recording = { path = path, from = 0 }, seconds = 1200 }))
    assert.same({}, back.failed)
    local was, is = rows_of(r), rows_of(back)
    for _, t in ipairs { 300, 600, 900, 1140 } do
      assert.equal(was[t].capacity, is[t].capacity)
      assert.equal(was[t].running, is[t].running)
    end
    -- each change as a patch makes the object that there was
    local last = {}
    for _, e in ipairs(require("kubelua.sim.recording").read(path).events) do
      last[e.gone or e.object.metadata.name] = e.object or false
    end
    local node = last["node-002"]
    assert.same({ true, "node.kubernetes.io/unreachable" },
      { node.spec.unschedulable, node.spec.taints[1].key })
    assert.same({ "Ready", "Unknown", 1 }, { node.status.conditions[1].type, node.status.conditions[1].status,
      #node.status.conditions })
  end)

  it("for KWOK has manifests of the beginning that a server takes", function()
    local files = exported(cell("nodes=2,batch_rate=0", { seconds = 60 }), "kwok")
    local kinds = {}
    for _, d in ipairs(manifests.read(file(".yaml", files["start.yaml"]))) do
      local o = d.object
      kinds[o.kind] = (kinds[o.kind] or 0) + 1
      assert.is_nil(o("metadata.uid"))
      assert.is_nil(o("metadata.resourceVersion"))
      assert.is_nil(o("metadata.ownerReferences"))
      if o.kind == "Node" then assert.equal("fake", o("metadata.annotations", "kwok.x-k8s.io/node")) end
    end
    assert.equal(2, kinds.Node)
    assert.is_true(kinds.Pod > 10)
    assert.equal(1, kinds.Namespace)
  end)

  it("for SimKube has pods with their lifetimes, which read back", function()
    local files, r = exported(cell(WORDS), "simkube")
    assert.equal(files["trace.sktrace"], exported(cell(WORDS), "simkube")["trace.sktrace"])
    local path = file(".sktrace", files["trace.sktrace"])
    local back = run.run(cell("nodes=2,noise=0", { trace = { format = "simkube", dir = path, from = 0 } }))
    assert.same({}, back.failed)
    -- in SimKube's trace a job waits for nobody, so as much has come by the end
    local t = simkube.open(path)
    local jobs, apps = 0, 0
    for _, of in ipairs(t.order) do
      if of.name:find "^job%-" then jobs = jobs + 1 else apps = apps + 1 end
      assert.is_nil(of.versions[1][2].spec.nodeName)
      assert.is_nil(of.versions[1][2].metadata.ownerReferences)
    end
    assert.equal(rows_of(r)[0].running, apps)
    assert.is_true(jobs >= r.sums.jobs_done and jobs > 3)
    local life = t.lifetimes["v1.Pod batch/job-1"]
    assert.is_true(life[1][2] - life[1][1] >= 150 and life[1][2] - life[1][1] <= 450)
    assert.equal(math.huge, t.lifetimes["v1.Pod default/app-1-1"][1][2])
  end)
end)
