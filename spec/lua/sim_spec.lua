-- sim_spec.lua - simulations: repeatable, without lost or invented objects, with unchanged scripts;
-- scenarios; and errors for invalid input.
-- not in asan, tsan: what comes out is the subject; e2e/sim_spec and its like run the engine

local core = require "kubelua.core"
local kube = require "kubelua"
local measure = require "kubelua.sim.measure"
local process = require "support.process"
local queue = require "kubelua.sim.queue"
local run = require "kubelua.sim.run"
local scenario = require "kubelua.sim.scenario"
local settings = require "kubelua.sim.settings"
local sweep = require "kubelua.sim.sweep"

local POLICIES = "controllers/koordinator/"

local function cell(words, more)
  local s = settings.defaults()
  settings.words("the spec", words or "nodes=3", s)
  local out = { scripts = { POLICIES .. "noderesource.lua" }, crds = { POLICIES .. "crds" }, snapshot = {},
    load = {},
    settings = s, params = {}, colocation = {}, seconds = 3600, seed = 1 }
  for k, v in pairs(more or {}) do out[k] = v end
  return out
end

local function text(result) return core.encode(core.value(result, "a result")) end

local function file(name, content) return process.write(process.tmpdir() .. "/" .. name, content) end

describe("a simulation", function()
  it("lends unused resources of prod pods, and jobs use them", function()
    local r = run.run(cell())
    assert.same({}, r.failed)
    assert.equal(0, r.sums.errors)
    assert.is_true(r.sums.batch_lent > 3)
    assert.is_true(r.sums.batch_used > 1 and r.sums.batch_used <= r.sums.batch_lent)
    assert.is_true(r.controllers[1].runs > 3 * 60)
  end)

  it("is repeatable, and differs with another seed", function()
    local a, b, c = run.run(cell()), run.run(cell()), run.run(cell(nil, { seed = 2 }))
    assert.equal(text(a), text(b))
    assert.not_equal(text(a), text(c))
  end)

  it("does not depend on the order of scripts", function()
    local there = { POLICIES .. "noderesource.lua", POLICIES .. "nodemetric.lua" }
    local back = { there[2], there[1] }
    assert.equal(text(run.run(cell(nil, { scripts = there, seconds = 900 }))),
      text(run.run(cell(nil, { scripts = back, seconds = 900 }))))
  end)

  it("never exceeds the capacity", function()
    local r = run.run(cell("nodes=2,batch_rate=60", { seconds = 2 * 3600,
      colocation = { cpuReclaimThresholdPercent = 95 } }))
    for _, row in ipairs(r.rows) do
      assert.is_true(row.prod + row.batch + row.system <= row.capacity + 1e-6)
      assert.is_true(row.batch <= row.wanted + 1e-6)
    end
    assert.is_true(r.sums.suppressed > 0)
  end)

  it("places each pod on the first of the best nodes, whatever was placed before it", function()
    local scheduler, dice = require "kubelua.sim.scheduler", require "kubelua.sim.dice"
    -- 300 nodes in a few sizes, so that some are alike; pods of `shapes` sizes come in turn.
    local function placed(shapes, pods_n)
      local nodes, pods, order = { n = 300, ready = {} }, { class = {}, cpu = {}, memory = {}, state = {} },
        {}
      for _, name in ipairs { "prod_asked", "prod_memory_asked", "batch_asked", "batch_memory_asked",
        "reported_memory", "since_cpu", "since_memory", "reported_cpu", "cpu", "memory", "batch_cpu",
        "batch_memory" } do nodes[name] = {} end
      for i = 1, nodes.n do
        for _, list in pairs(nodes) do if type(list) == "table" then list[i] = 0 end end
        nodes.ready[i], nodes.cpu[i], nodes.memory[i] = i % 7 ~= 0, 100 + 50 * (i % 3), 100
        nodes.batch_cpu[i], nodes.batch_memory[i], nodes.reported_cpu[i] = 20, 20, 10 * (i % 4)
      end
      local w = { nodes = nodes, pods = pods, settings = { load_cpu = 0.65, load_memory = 0.95 },
        pending = queue.new(pods) }
      for p = 1, pods_n do
        pods.class[p], pods.state[p] = p % 3 == 0 and "batch" or "prod", "pending"
        pods.cpu[p], pods.memory[p] = 1 + p % shapes, 1 + (dice.unit(1, p, 2) * 2 // 1 | 0)
        w.pending:add(p)
      end
      function w.place(_, p, i)
        local class, best, score = pods.class[p], nil, nil
        for k = 1, nodes.n do -- each node by itself, as the model says
          local room = class == "prod" and nodes.cpu[k] or nodes.batch_cpu[k]
          local space = class == "prod" and nodes.memory[k] or nodes.batch_memory[k]
          local load = (nodes.reported_cpu[k] + nodes.since_cpu[k] + pods.cpu[p] * 0.85) / nodes.cpu[k]
          local memory = nodes.reported_memory[k] + nodes.since_memory[k] + pods.memory[p] * 0.70
          local full = memory / nodes.memory[k]
          if nodes.ready[k] and nodes[class .. "_asked"][k] + pods.cpu[p] <= room and load <= 0.65
            and nodes[class .. "_memory_asked"][k] + pods.memory[p] <= space and full <= 0.95
            and (not score or 2 - load - full > score) then best, score = k, 2 - load - full end
        end
        assert.equal(best, i, ("pod %d of %d shapes"):format(p, shapes))
        nodes[class .. "_asked"][i] = nodes[class .. "_asked"][i] + pods.cpu[p]
        nodes[class .. "_memory_asked"][i] = nodes[class .. "_memory_asked"][i] + pods.memory[p]
        order[#order + 1] = i
      end
      local n = scheduler.run(w)
      assert.equal(#order, n)
      return n, w.pending.n
    end
    assert.equal(400, (placed(1, 400)))
    -- so many pods between two of a shape that they are not looked at singly
    assert.equal(400, (placed(9, 400)))
    local some, wait = placed(60, 2000)
    assert.is_true(some > 300 and wait > 0)
  end)

  it("counts removable nodes by the pods' requests", function()
    local spare = require "kubelua.sim.scheduler".spare
    -- Nodes of 10 cpu and 10 of memory, which lend 4 and 4; pods are { node, class, cpu, memory }.
    local function count(n, list)
      local nodes, pods = { n = n }, { class = {}, cpu = {}, memory = {} }
      for name, x in pairs { cpu = 10, memory = 10, batch_cpu = 4, batch_memory = 4, prod_asked = 0,
        prod_memory_asked = 0, batch_asked = 0, batch_memory_asked = 0 } do
        nodes[name] = {}
        for i = 1, n do nodes[name][i] = x end
      end
      nodes.pods, nodes.ready = {}, {}
      for i = 1, n do nodes.pods[i], nodes.ready[i] = {}, true end
      for p, one in ipairs(list) do
        local i, class = one[1], one[2]
        pods.class[p], pods.cpu[p], pods.memory[p] = class, one[3], one[4]
        table.insert(nodes.pods[i], p)
        nodes[class .. "_asked"][i] = nodes[class .. "_asked"][i] + one[3]
        nodes[class .. "_memory_asked"][i] = nodes[class .. "_memory_asked"][i] + one[4]
      end
      return spare { nodes = nodes, pods = pods }, nodes, pods
    end
    assert.equal(0, count(1, {}))                                             -- one stays
    assert.equal(2, count(3, {}))
    assert.equal(1, count(2, { { 1, "prod", 6, 1 }, { 2, "prod", 4, 1 } }))
    assert.equal(0, count(2, { { 1, "prod", 6, 1 }, { 2, "prod", 5, 1 } }))   -- cpu
    assert.equal(0, count(2, { { 1, "prod", 1, 6 }, { 2, "prod", 1, 5 } }))   -- memory
    assert.equal(1, count(2, { { 1, "batch", 2, 1 }, { 2, "batch", 2, 1 } }))
    assert.equal(0, count(2, { { 1, "batch", 3, 1 }, { 2, "batch", 2, 1 } })) -- what is lent is 4
    -- A new prod pod reduces what is lent: the job beside it no longer fits.
    assert.equal(0, count(2, { { 1, "batch", 2, 1 }, { 1, "prod", 2, 1 }, { 2, "prod", 2, 1 },
      { 2, "batch", 1, 1 } }))
    -- Its pods move to two nodes, neither of which can be emptied then.
    assert.equal(1, count(3, { { 1, "prod", 6, 1 }, { 2, "prod", 6, 1 }, { 3, "prod", 2, 1 },
      { 3, "prod", 3, 1 } }))
    -- It skips no node: a search over every node for every pod counts the same.
    local function slowly(nodes, pods)
      local order, left = {}, {}
      for i = 1, nodes.n do
        order[i] = i
        left[i] = { prod = { nodes.cpu[i] - nodes.prod_asked[i],
          nodes.memory[i] - nodes.prod_memory_asked[i] },
          batch = { nodes.batch_cpu[i] - nodes.batch_asked[i],
            nodes.batch_memory[i] - nodes.batch_memory_asked[i] } }
      end
      table.sort(order, function(a, b)
        local x, y = nodes.prod_asked[a] + nodes.batch_asked[a], nodes.prod_asked[b] + nodes.batch_asked[b]
        if x ~= y then return x < y end
        return a < b
      end)
      for gone, from in ipairs(order) do
        left[from] = nil
        table.sort(nodes.pods[from], function(a, b)
          if pods.cpu[a] ~= pods.cpu[b] then return pods.cpu[a] > pods.cpu[b] end
          return a < b
        end)
        for _, p in ipairs(nodes.pods[from]) do
          local to
          for i = nodes.n, 1, -1 do
            local r = left[i] and left[i][pods.class[p]]
            if r and r[1] >= pods.cpu[p] and r[2] >= pods.memory[p] then to = i end
          end
          if not to then return gone - 1 end
          for class, r in pairs(left[to]) do
            if class == "batch" or pods.class[p] == "prod" then
              r[1], r[2] = r[1] - pods.cpu[p], r[2] - pods.memory[p]
            end
          end
        end
      end
      return nodes.n - 1
    end
    local seed, seen, outcomes = 7, {}, 0
    local function up_to(n)
      seed = (seed * 1103515245 + 12345) % (1 << 31)
      return 1 + (seed >> 16) % n
    end
    for _ = 1, 100 do
      local n, list = 4 + up_to(6), {}
      for k = 1, up_to(3 * n) do
        list[k] = { up_to(n), up_to(3) == 1 and "batch" or "prod", up_to(3), up_to(3) }
      end
      local got, nodes, pods = count(n, list)
      outcomes, seen[got] = outcomes + (seen[got] and 0 or 1), true
      assert.equal(slowly(nodes, pods), got)
    end
    assert.is_true(outcomes > 2)
  end)

  it("never takes memory from finished jobs", function()
    local said = {}
    local s = settings.defaults()
    s.start_time, s.system_memory = 0, 0
    local one = { cpu = { 1000 }, memory = { 10 }, system = { 0 }, ready = { true }, pods = { { 1, 2 } },
      n = 1 }
    for _, name in ipairs { "prod_used", "batch_used", "batch_wanted", "unmet", "allowed", "memory_used" } do
      one[name] = {}
    end
    local w = { settings = s, seed = 1, time = 60, nodes = one, boost = {}, phases = {}, factor = {}, pods = {
      class = { "batch", "batch" }, cpu = { 100, 100 }, memory = { 8, 4 }, placed = { 0, 0 }, done = { 0, 0 },
      used = { 0, 0 }, work = { 1, 1000 }, app = { "a", "b" } } }
    function w:finish(p) said[#said + 1] = "finished " .. p end
    function w:evict(p, why) said[#said + 1] = why .. " " .. p end
    require "kubelua.sim.node".pass(w, 60)
    assert.same({ "finished 1" }, said)
    assert.equal(4, one.memory_used[1])
  end)

  it("changes with a field of the strategy", function()
    local low = run.run(cell(nil, { colocation = { cpuReclaimThresholdPercent = 50 } }))
    local high = run.run(cell(nil, { colocation = { cpuReclaimThresholdPercent = 80 } }))
    assert.is_true(high.sums.batch_lent > low.sums.batch_lent)
  end)

  it("takes a snapshot as kubectl writes it", function()
    local path = file("snapshot.yaml", [[
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: a, uid: u1}
  status: {capacity: {cpu: "8", memory: 32Gi}, allocatable: {cpu: "8", memory: 32Gi}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default, uid: u2, labels: {app: p}}
  spec:
    nodeName: a
    priority: 9000
    containers: [{name: main, image: i, resources: {requests: {cpu: "2", memory: 4Gi}}}]
  status: {phase: Running}
- {apiVersion: example.com/v1, kind: Unknown, metadata: {name: x}}
]])
    local r = run.run(cell(nil, { snapshot = { path }, colocation = { enable = true }, seconds = 600 }))
    assert.same({ "a" }, r.nodes)
    assert.equal(1, r.left_out["example.com/v1/Unknown"])
    assert.is_true(r.sums.batch_lent > 0)
  end)

  -- The same objects on a server over HTTP, with the manager of a real process: the policy decides there as
  -- in a simulation.
  it("decides as in a process of its own", function()
    local objects = {
      { apiVersion = "v1", kind = "Node", metadata = { name = "n" }, status = {
        capacity = { cpu = "32", memory = "128Gi" }, allocatable = { cpu = "32", memory = "128Gi" } } },
      { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = "slo-controller-config", namespace = "koordinator-system" },
        data = { ["colocation-config"] = '{"enable":true,"cpuReclaimThresholdPercent":70}' } },
      { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "default" },
        spec = { nodeName = "n", priority = 9000, containers = { { name = "main", image = "i",
          resources = { requests = { cpu = "6", memory = "10Gi" } } } } }, status = { phase = "Running" } },
      { apiVersion = "slo.koordinator.sh/v1alpha1", kind = "NodeMetric", metadata = { name = "n" }, spec = {},
        status = { updateTime = "2026-01-01T00:00:00Z", nodeMetric = {
          nodeUsage = { resources = { cpu = "5", memory = "12Gi" } },
          systemUsage = { resources = { cpu = "1", memory = "3Gi" } } },
          podsMetric = { { namespace = "default", name = "p",
            podUsage = { resources = { cpu = "4", memory = "9Gi" } } } } } },
    }
    local t = kube.testing.start { script = POLICIES .. "noderesource.lua", crds = POLICIES .. "crds",
      objects = objects }
    local there = core.copy(t:get("v1/Node", "n").status.allocatable)
    t:stop()
    local sim = core.sim(core.time("2026-01-01T00:00:00Z"):unix() + 0.0, 1)
    sim:load_path(POLICIES .. "crds")
    for _, o in ipairs(objects) do sim:load(core.value(o, "an object")) end
    sim:start({ { path = POLICIES .. "noderesource.lua" } }, nil)
    sim:settle()
    assert.same(there, core.copy(sim:call { verb = "get", kind = "v1/Node", name = "n" }.status.allocatable))
    assert.is_truthy(there["kubernetes.io/batch-cpu"])
  end)
end)

describe("what a script writes in a simulation", function()
  local SCRIPT = [[
    local kube = require "kubelua"
    return kube.controller {
      name = "writer", resource = "v1/ConfigMap", owns = { "v1/Secret" },
      finalize = function(map, ctx) ctx:delete("v1/Secret", map.metadata.namespace, map.metadata.name) end,
      reconcile = function(map, ctx)
        ctx:apply { apiVersion = "v1", kind = "Secret", metadata = { name = map.metadata.name,
          namespace = map.metadata.namespace }, stringData = { a = map("data.a") or "" } }
        if map("data.sleep") then ctx:sleep "30s" end
        return { requeue_after = 60 }
      end,
    }
  ]]
  local sim
  before_each(function()
    sim = core.sim(0.0, 7)
    sim:load(core.value({ apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = "m", namespace = "default" },
      data = { a = "1", sleep = "yes" } }, "a map"))
    sim:start({ { path = "writer.lua", text = SCRIPT } }, nil)
  end)

  it("is stored as by the API server", function()
    sim:settle()
    local secret = sim:call { verb = "get", kind = "v1/Secret", ns = "default", name = "m" }
    assert.equal("MQ==", secret.data.a)
    assert.equal("ConfigMap", secret.metadata.ownerReferences[1].kind)
    assert.equal("kubelua.dev/writer", sim:call { verb = "get", kind = "v1/ConfigMap", ns = "default",
      name = "m" }
      .metadata.finalizers[1])
  end)

  it("runs the controllers of its kind only, not those of a kind with the same name", function()
    local two, scripts = core.sim(0.0, 7), {}
    for _, letter in ipairs { "a", "b" } do
      local group = letter .. ".example.com"
      two:load(core.value({ apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = "widgets." .. group }, spec = { group = group, scope = "Namespaced",
          names = { plural = "widgets", kind = "Widget" }, versions = { { name = "v1", served = true,
            storage = true, schema = { openAPIV3Schema = { type = "object" } } } } } }, "a definition"))
      scripts[#scripts + 1] = { path = letter .. ".lua", text = ([[
        local kube = require "kubelua"
        return kube.controller { name = %q, resource = %q, reconcile = function() end }
      ]]):format(letter, group .. "/v1/Widget") }
    end
    two:start(scripts, nil)
    two:settle()
    two:call { verb = "create", kind = "a.example.com/v1/Widget", ns = "default", body = core.value({
      apiVersion = "a.example.com/v1", kind = "Widget", metadata = { name = "w", namespace = "default" } },
      "a widget") }
    two:settle()
    local runs = {}
    for _, c in ipairs(two:counts()) do runs[c.name] = c.runs end
    assert.same({ a = 1, b = 0 }, runs)
  end)

  it("takes virtual time: sleeps and requeues jump", function()
    local function runs_after(seconds)
      local target = sim:now() + seconds
      while true do
        local next_at = sim:settle()
        if not next_at or sim:now() + next_at > target then break end
        sim:move(next_at)
      end
      sim:move(target - sim:now())
      return sim:counts()[1].runs
    end
    assert.equal(0, runs_after(29))
    assert.equal(1, runs_after(2))
    assert.equal(2, runs_after(30)) -- its own Secret and finalizer woke it
    assert.equal(2, runs_after(88))
    assert.equal(3, runs_after(2))
    assert.equal(3 + 10, runs_after(900))
  end)

  it("is followed by its finalizer", function()
    sim:settle()
    sim:move "30s"
    sim:settle()
    sim:call { verb = "delete", kind = "v1/ConfigMap", ns = "default", name = "m" }
    sim:settle()
    sim:move "30s"
    sim:settle()
    for _, kind in ipairs { "v1/Secret", "v1/ConfigMap" } do
      local ok, err = pcall(sim.call, sim, { verb = "get", kind = kind, ns = "default", name = "m" })
      assert.is_false(ok)
      assert.equal("not_found", err.kind)
    end
  end)

  it("has the same uids and names each time", function()
    local function uid()
      local s = core.sim(0.0, 3)
      local made = s:call { verb = "create", kind = "v1/ConfigMap", ns = "default",
        body = core.value({ apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = "x-" } },
          "a map") }
      return made.metadata.name .. made.metadata.uid
    end
    assert.equal(uid(), uid())
  end)

  it("is rejected if incomplete, without harm", function()
    for _, op in ipairs {
      { verb = "get", kind = "v1/ConfigMap", ns = "default" },
      { verb = "create", kind = "v1/ConfigMap", ns = "default" },
      { verb = "patch", kind = "v1/ConfigMap", ns = "default", name = "m" },
      { verb = "update", kind = "v1/ConfigMap", ns = "default", name = "m" },
      { verb = "create", kind = "v1/Pod", ns = "default", subresource = "eviction" },
      { verb = "delete", kind = "v1/ConfigMap", ns = "default" },
      { verb = "get", kind = "v1/ConfigMap", ns = "default", name = "m", subresource = "nonsense" },
      { verb = "watch", kind = "v1/ConfigMap" },
      { verb = "get", kind = "example.com/v1/Nothing", name = "m" },
      { verb = "http", kind = "http", name = "https://example.com", subresource = "GET" },
    } do
      local ok, err = pcall(sim.call, sim, op)
      assert.is_false(ok, op.verb)
      assert.is_truthy(tostring(err):find "%S")
    end
    assert.equal(0, #sim:call { verb = "list", kind = "v1/Secret", labels = "a=b" }.items)
  end)

  it("that never settles is reported", function()
    local s = core.sim(0.0, 1)
    s:load(core.value({ apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = "m", namespace = "default" },
      data = { n = "0" } }, "a map"))
    s:start({ { path = "restless.lua", text = [[
      local kube = require "kubelua"
      return kube.controller { name = "restless", resource = "v1/ConfigMap",
        reconcile = function(map, ctx)
          ctx:patch(map, function(m) m.data.n = tostring(tonumber(m.data.n) + 1) end)
        end }
    ]] } }, nil)
    local ok, why = pcall(s.settle, s)
    assert.is_false(ok)
    assert.matches("without end", tostring(why))
    assert.matches('controller "restless"', tostring(why))
  end)
end)

describe("what controllers make of the cluster itself", function()
  local function with(source, seconds)
    return run.run(cell("nodes=1,prod=0.3,batch_rate=0", { scripts = { file("maker.lua", source) },
      crds = { POLICIES .. "crds" }, seconds = seconds or 600 }))
  end

  it("is part of it: a node that an autoscaler adds, and takes away again", function()
    local r = with [[
      local kube = require "kubelua"
      return kube.controller { name = "autoscaler", resource = "v1/Node", every = "1m",
        reconcile = function(node, ctx)
          local minute = ctx:now():unix() // 60 % 60
          if node.metadata.name == "node-001" and minute == 2 then
            ctx:apply { apiVersion = "v1", kind = "Node", metadata = { name = "more" } }
            ctx:apply({ apiVersion = "v1", kind = "Node", metadata = { name = "more" },
              status = { capacity = { cpu = "8", memory = "16Gi" } } }, { subresource = "status" })
          elseif node.metadata.name == "more" and minute == 6 then
            ctx:delete("v1/Node", "more")
          end
        end }
    ]]
    local sizes = {}
    for _, row in ipairs(r.rows) do sizes[row.capacity] = true end
    assert.same({}, r.failed)
    assert.same({ [32] = true, [40] = true }, sizes)
    assert.equal(32, r.rows[#r.rows].capacity)
  end)

  it("runs: pods of a controller are placed, and only it makes new ones", function()
    local SCRIPT = [[
      local kube = require "kubelua"
      return kube.controller {
        name = "cats", resource = "v1/ConfigMap", owns = { "v1/Pod" }, namespaces = { "koordinator-system" },
        reconcile = function(map, ctx)
          ctx:apply { apiVersion = "v1", kind = "Pod",
            metadata = { name = "cat", namespace = map.metadata.namespace },
            spec = { containers = { { name = "main", image = "cat",
              resources = { requests = { cpu = "4", memory = "1Gi" } } } } } }
        end,
      }
    ]]
    local r, without = with(SCRIPT), with((SCRIPT:gsub("ctx:apply %b{}", "")))
    assert.same({}, r.failed)
    assert.equal(0, r.sums.waiting)
    assert.equal(without.rows[#without.rows].running + 1, r.rows[#r.rows].running)
  end)
end)

describe("any controller", function()
  it("settles again when a third of the nodes leave", function()
    local r = run.run(cell("nodes=6,prod=0.3,batch_rate=0", {
      scripts = { "examples/catset/catset.lua" }, crds = { "examples/catset/crd.yaml" },
      load = { "examples/catset/sample.yaml" },
      scenario = file("third.lua", [[
        local SET = "examples.kubelua.dev/v1/CatSet"
        local function status(s) return s.client:get(SET, "default", "cats").status end
        return { at = {
          ["5m"] = function(s)
            assert(status(s).readyReplicas == 2, "not ready")
            s.client:patch(s.client:get(SET, "default", "cats"), { spec = { replicas = 6 } })
          end,
          ["10m"] = function(s)
            assert(status(s).readyReplicas == 6, "not six")
            s:fail_node "node-001"
            s:fail_node "node-002"
          end,
          ["20m"] = function(s)
            assert(status(s).readyReplicas == 6, "not six again")
            for _, pod in ipairs(s.client:list("v1/Pod", { labels = "catset=cats" })) do
              assert(pod.metadata.ownerReferences[1].kind == "CatSet")
              assert(pod.spec.nodeName > "node-002", pod.spec.nodeName)
            end
            assert(#s.client:list("v1/Pod", { labels = "catset=cats" }) == 6)
          end,
        } }
      ]]) }))
    assert.same({}, r.failed)
    assert.equal(0, r.sums.failing)
    assert.equal(0, r.sums.waiting)
  end)

  it("keeps a snapshot's pods unchanged when they restart elsewhere", function()
    local path = file("two.yaml", [[
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "8", memory: 32Gi}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status: {capacity: {cpu: "8", memory: 32Gi}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
  uid: w
  labels: {app: web, tier: front}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}]
spec: {nodeName: a, containers: [{name: main, image: web:1, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
status: {phase: Running}
]])
    local r = run.run(cell(nil, { snapshot = { path }, seconds = 600, scenario = file("fails.lua", [[
      return { at = {
        ["2m"] = function(s) s:fail_node "a" end,
        ["5m"] = function(s)
          local pods = s.client:list("v1/Pod", { labels = "tier=front" })
          assert(#pods == 1 and pods[1].spec.nodeName == "b" and pods[1].metadata.name == "web-r1")
          assert(pods[1].spec.containers[1].image == "web:1" and pods[1].metadata.uid ~= "w")
        end,
      } }
    ]]) }))
    assert.same({}, r.failed)
  end)
end)

-- Node "a" wants a toleration, "b" does not; pod "p" waits for the scheduler, "other" for another one.
local TAINTED = [[
apiVersion: v1
kind: Node
metadata: {name: a}
spec: {taints: [{key: dedicated, value: x, effect: NoSchedule}]}
status:
  capacity: {cpu: "64", memory: 256Gi, pods: "250"}
  allocatable: {cpu: "64", memory: 256Gi, pods: "250"}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status:
  capacity: {cpu: "16", memory: 64Gi, pods: "250"}
  allocatable: {cpu: "16", memory: 64Gi, pods: "250"}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, annotations: {kept: "yes"}}
spec:
  schedulerName: koord-scheduler
  priority: 9000
  containers: [{name: main, image: i, resources: {requests: {cpu: "2", memory: 4Gi}}}]
status: {phase: Pending}
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default}
spec:
  schedulerName: default-scheduler
  priority: 9000
  containers: [{name: main, image: i, resources: {requests: {cpu: "2", memory: 4Gi}}}]
status: {phase: Pending}
]]

-- A scenario that records where the pods are.
local WHERE = [[
local function is(s, name, node, phase)
  local pod = s.client:get("v1/Pod", "default", name)
  assert((pod.spec.nodeName or "-") == node and pod.status.phase == phase,
    name .. " is on " .. tostring(pod.spec.nodeName) .. ", " .. pod.status.phase)
  return pod
end
]]

describe("a scheduler under test", function()
  local function placed(words, scenario_text)
    return run.run(cell(nil, { snapshot = { file("tainted.yaml", TAINTED) }, seconds = 300,
      scripts = { POLICIES .. "scheduler.lua" }, scheduler = words,
      scenario = file("where.lua", WHERE .. scenario_text) }))
  end

  it("places its own pods, and the simulation the others", function()
    local r = placed("koord-scheduler", [[
      return { at = { ["2m"] = function(s)
        local pod = is(s, "p", "b", "Running")
        assert(pod.metadata.annotations.kept == "yes")
        is(s, "other", "a", "Running") -- our own model knows no taints
      end } }]])
    assert.same({ 0, 0, 2 }, { r.sums.waiting, r.sums.errors, r.rows[#r.rows].running })
    assert.matches("preemption", r.not_modelled[#r.not_modelled])
  end)

  it("leaves and counts a pod that fits no node", function()
    local gone = placed("koord-scheduler", [[
      return { at = { ["2m"] = function(s) s:fail_node "b" end, ["3m"] = function(s)
        is(s, "p-r1", "-", "Pending")
      end } }]])
    assert.same({ 1, 1 }, { gone.sums.nowhere, gone.sums.waiting })
    local back = placed("koord-scheduler", [[
      return { at = { ["2m"] = function(s) s:fail_node "b" s:fail_node "a" end,
        ["3m"] = function(s) s:heal_node "b" s:heal_node "a" end, ["4m"] = function(s)
          is(s, "p-r1", "b", "Running")
          local a, b = s.client:get("v1/Node", "a"), s.client:get("v1/Node", "b")
          assert(b("spec.taints") == nil and #a.spec.taints == 1 and a.spec.taints[1].key == "dedicated")
        end } }]])
    assert.same({ 0, 0 }, { back.sums.nowhere, back.sums.waiting })
  end)

  it("that handles all pods leaves none to the simulation", function()
    local r = placed("*", [[
      return { at = { ["2m"] = function(s) is(s, "other", "-", "Pending") end } }]])
    assert.same({ 1, 0 }, { r.sums.waiting, r.sums.nowhere })
  end)

  it("is the same each time", function()
    local function once()
      return text(run.run(cell("nodes=2,batch_rate=20", { seconds = 600,
        scripts = { POLICIES .. "scheduler.lua", POLICIES .. "noderesource.lua" },
        scheduler = "koord-scheduler" })))
    end
    local a = once()
    assert.equal(a, once())
    assert.is_true(core.decode(a).sums.batch_used > 0)
  end)
end)

describe("an explanation", function()
  local function about(key, words, more)
    more = more or {}
    more.explain, more.seconds = key, more.seconds or 600
    return run.run(cell(words, more)).explanation
  end
  local function fact(answer, name)
    for _, f in ipairs(answer.facts) do
      if f.name == name then return f.value end
    end
  end

  it("of a node has the calculation of its last run, and its result", function()
    local a = about("node-001", "nodes=2,batch_rate=20")
    local said = a.controllers[1].said
    assert.equal("noderesource", a.controllers[1].controller)
    local left, capacity, safe, kept, used =
      said[1]:match "^batchAllocatable.-:(%d+) = .-:(%d+) .-:(%d+) .-:(%d+) .-:(%d+)$"
    assert.equal(math.tointeger(tonumber(left)), capacity - safe - kept - used)
    assert.equal(32000, math.tointeger(tonumber(capacity)))
    assert.is_true(math.abs(fact(a, "lent to batch") - left / 1000) < 0.1 * left / 1000)
    assert.equal("2026-01-01T00:10:00Z", a.time)
  end)

  it("of a moment is that of a simulation which ends then", function()
    local first = about("node-001", "nodes=1", { seconds = 60 })
    assert.same({ "patch v1/Node/status node-001", "patch v1/Node node-001" }, first.controllers[1].wrote)
    assert.equal(0, first.controllers[1].seconds)
  end)

  it("of a pod that waits says why each node was refused", function()
    local a = about("batch/job-1", "nodes=2,batch_rate=60,batch_cpu=31")
    assert.same({ 2, "batch" }, { fact(a, "nodes refused: insufficient resources"), fact(a, "class") })
    assert.is_true(fact(a, "waits, seconds") >= 540)
    a = about("batch/job-1", "nodes=1,batch_rate=60,batch_cpu=31", { scheduler = "koord-scheduler",
      scripts = { POLICIES .. "noderesource.lua", POLICIES .. "scheduler.lua" } })
    assert.matches("^0/1 nodes are available: 1 Insufficient kubernetes.io/batch%-cpu",
      fact(a, "the scheduler says"))
    assert.equal("scheduler", a.controllers[1].controller)
  end)

  it("of a pod that runs says where, and since when", function()
    local a = about("batch/job-1", "nodes=1,batch_rate=60,batch_cpu=1")
    assert.equal("node-001", fact(a, "node"))
    assert.equal(1, fact(a, "uses cores"))
  end)

  it("of an evicted pod says when it went, and what came in its place", function()
    local a = about("default/app-1-1", "nodes=2,batch_rate=0,prod=0.2", { scenario = file("evicts.lua",
      'return { at = { ["2m"] = function(s) s.client:delete("v1/Pod", "default", "app-1-1") end } }') })
    assert.same({ "2026-01-01T00:02:00Z", "node-001", "default/app-1-1-r1" }, { fact(a, "evicted"),
      fact(a, "from node"), fact(a, "in its place") })
    assert.matches("^node%-00%d$", fact(a, "which is on"))
  end)

  it("continues when an earlier simulation is freed", function()
    do
      local before = core.sim(0.0, 1)
      before:about "node-001"
    end
    local a = about("node-001", "nodes=1", { seconds = 60, scenario = file("collects.lua",
      'return { at = { ["0s"] = function() collectgarbage() collectgarbage() end } }') })
    assert.matches("^batchAllocatable", a.controllers[1].said[1])
  end)

  it("does not change the simulation", function()
    local with = run.run(cell("nodes=2", { explain = "node-001", seconds = 600 }))
    with.explanation = nil
    assert.equal(text(run.run(cell("nodes=2", { seconds = 600 }))), text(with))
  end)

  it("of a missing object says so", function()
    local ok, why = pcall(about, "node-999", "nodes=1", { seconds = 60 })
    assert.is_false(ok)
    assert.matches('no node or pod is called "node%-999"', tostring(why))
  end)
end)

describe("a trace of openb's form", function()
  local function openb(more_pods)
    local dir = process.tmpdir() .. "/openb" .. tostring(more_pods and #more_pods or 0)
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/openb_node_list.csv", "sn,cpu_milli,memory_mib,gpu,model\n"
      .. "openb-node-0000,64000,262144,2,P100\nopenb-node-0001,32000,131072,0,\n")
    process.write(dir .. "/openb_pod_list.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,"
      .. "pod_phase,creation_time,deletion_time,scheduled_time\n"
      .. "openb-pod-0000,8000,30517,1,1000,,LS,Running,0,,0\n" -- forever
      .. "openb-pod-0001,4000,8192,0,0,,LS,Succeeded,0,300,0\n" -- until 5 minutes
      .. "openb-pod-0002,2000,4096,0,0,,BE,Succeeded,120,300,120\n" -- a job of 3 minutes
      .. "openb-pod-0003,2000,4096,0,0,,BE,Failed,50,50,50\n" -- never there
      .. (more_pods or ""))
    return { format = "openb", dir = dir, from = 0 }
  end
  local function followed(trace)
    local r, seen = run.run(cell(nil, { trace = trace, seconds = 900 })), {}
    for i, row in ipairs(r.rows) do seen[i] = row.running end
    return r, seen
  end

  it("has its nodes and pods, which come and go when it says", function()
    local r, running = followed(openb())
    assert.same({ "openb-node-0000", "openb-node-0001" }, r.nodes)
    assert.equal(96, r.rows[1].capacity)
    assert.same({ 2, 2, 3, 3, 3 }, table.move(running, 1, 5, 1, {}))
    assert.equal(1, running[#running])
    assert.same({ 1, 0, 0 }, { r.sums.jobs_done, r.sums.evictions, r.sums.waiting })
    assert.matches("GPUs are left out", table.concat(r.not_modelled, "\n"))
    assert.equal(text(r), text((followed(openb()))))
  end)

  it("is cut by time and by nodes", function()
    local later = openb()
    later.from = 240
    local _, running = followed(later)
    assert.same({ 3, 1 }, { running[1], running[2] }) -- of two pods a minute is left
    local one = openb()
    one.nodes = 1
    assert.same({ "openb-node-0000" }, (followed(one)).nodes)
  end)

  it("that is invalid is rejected with the place", function()
    local ok, why = pcall(followed, openb "openb-pod-0004,x,4096,0,0,,BE,Succeeded,1,2,1\n")
    assert.is_false(ok)
    assert.matches('openb_pod_list.csv:6: cpu_milli is not a number: "x"', tostring(why))
    ok, why = pcall(followed, { format = "openb", dir = process.tmpdir() .. "/openb-none", from = 0 })
    assert.is_false(ok)
    assert.matches("openb%-none", tostring(why))
  end)
end)

describe("a trace of Alibaba's form of 2018", function()
  local dir
  lazy_setup(function()
    dir = process.tmpdir() .. "/alibaba2018"
    process.run("mkdir -p " .. dir)
    process.write(dir .. "/machine_meta.csv",
      "m_1,0,1,1,96,100,USING\nm_1,500,1,1,96,100,USING\nm_2,0,1,1,64,50,USING\n")
    process.write(dir .. "/container_meta.csv",
      "c_1,m_1,0,app_5,started,400,400,1.56\nc_1,m_1,700,app_5,started,400,400,1.56\nc_2,m_2,0,app_6,\z
        started,800,800,3.12\n")
    process.write(dir .. "/container_usage.csv",
      "c_1,m_1,3500,50,3,,,,,,\nc_1,m_1,3900,25,3,,,,,,\nc_1,m_1,100,99,3,,,,,,\nc_2,m_2,3600,101,3,,,,,,\n"
      .. "c_2,m_2,3600,10,3,,,,,,\n")
    process.write(dir .. "/batch_task.csv", "M1,2,j_1,1,Terminated,3720,4020,100.0,0.5\n"
      .. "R2_1,1,j_1,1,Failed,3720,4020,100.0,0.5\nM1,1,j_2,1,Terminated,100,4020,100.0,0.5\n")
  end)
  local function from(cut)
    return run.run(cell("memory=512Gi", { seconds = 900,
      trace = { format = "alibaba2018", dir = dir, from = 3600, nodes = cut } }))
  end

  it("has machines, containers with their usage, and batch tasks", function()
    local r = from()
    assert.same({}, r.failed)
    assert.same({ "m-1", "m-2" }, r.nodes)
    assert.equal(160, r.rows[1].capacity)
    -- a container begins to work half a minute after it is placed; then 50 % of 4 cores and 10 % of 8, later
    -- 25 %
    assert.equal(2 + 0.8, r.rows[4].prod)
    assert.equal(1 + 0.8, r.rows[10].prod)
    assert.equal(2, r.rows[2].running)
    assert.equal(4, r.rows[4].running)
    assert.equal(2, r.sums.jobs_done) -- the failed task and the one from before are left out
    assert.matches("a memory of 100 is the setting memory", table.concat(r.not_modelled, "\n"))
  end)

  it("is cut by machines, with what runs on them", function()
    local r = from(1)
    assert.same({ "m-1" }, r.nodes)
    assert.equal(2, r.rows[4].prod)
  end)
end)

describe("a scenario", function()
  local function with(source)
    return run.run(cell("nodes=3,prod=0.4", { scenario = file("scenario.lua", source) }))
  end

  it("takes a node away: its pods start again elsewhere", function()
    local r = with [[ return { at = { ["20m"] = function(s) s:fail_node "node-002" end } } ]]
    assert.equal(64, r.rows[#r.rows].capacity)
    assert.is_true(r.rows[1].capacity == 96)
    assert.is_true(r.rows[#r.rows].prod > 0)
  end)

  it("silences agents: after the time of degradation nothing is lent", function()
    local r = with [[ return { at = { ["10m"] = function(s) s:silence "*" end } } ]]
    assert.is_true(r.rows[5].lent > 0)
    assert.equal(0, r.rows[#r.rows].lent)
  end)

  it("has a client, and more demand", function()
    local r = with [[ return {
      at = { ["10m"] = function(s)
        s:boost("*", 2)
        assert(#s:nodes() == 3)
        assert(s.client:get("v1/Node", "node-001").metadata.name == "node-001")
        assert(s.client:get("v1/ConfigMap", "default", "none") == nil)
      end },
      every = { ["30m"] = function(s) s:add_job { cpu = "1", memory = "1Gi", time = "5m", count = 2 } end },
    } ]]
    assert.is_true(r.rows[#r.rows].prod > 1.5 * r.rows[5].prod)
    assert.is_true(r.sums.jobs_done >= 2)
  end)

  it("does something each 90 or 20 seconds, too, though nodes report each minute", function()
    with [[
      local nineties, twenties = 0, 0
      return {
        every = { ["90s"] = function() nineties = nineties + 1 end,
          ["20s"] = function() twenties = twenties + 1 end },
        at = { ["10m"] = function() -- comes before what is due each 20 seconds
          assert(nineties == 6, nineties)
          assert(twenties == 27, twenties)
        end },
      } ]]
  end)

  it("that is invalid is reported", function()
    local function fails(source, pattern)
      local ok, why = pcall(with, source)
      assert.is_false(ok)
      assert.matches(pattern, tostring(why))
    end
    fails("return { ats = {} }", [[has no "ats"; did you mean 'at'?]])
    fails("return 1", "must return a table")
    fails('return { at = { soon = function() end } }', 'at%["soon"%] is not a duration')
    fails('return { at = { ["1m"] = function(s) s:fail_node "nobody" end } }', 'there is no node "nobody"')
    fails("return {", "cannot read the scenario")
    fails('return { every = { ["0s"] = print } }', 'every%["0s"%] must be at least 1s')
    fails("return { params = 3 }", "params must be a table, got number")
    for call, why in pairs {
      ['s:silence "node-9"'] = 's:silence: unknown node "node%-9"',
      ['s:boost("ap-1", 2)'] = 's:boost: no pod is of the app "ap%-1"; did you mean \'app%-1\'%?',
      ["s:boost(1, 2)"] = "s:boost: expected the name of an app",
      ['s:add_job { cpu = "much" }'] = '"much" is not a quantity from 0 on, such as 500m or 2Gi',
      ['s:add_job { cpu = "-1" }'] = 's:add_job: cpu: "%-1" is not a quantity from 0 on',
      ['s:add_job { memory = "20E" }'] = 's:add_job: memory: "20E" is not a quantity from 0 on',
      ['s:boost("app-1", 0/0)'] = "s:boost: the factor must be a finite number",
      ['s:boost("app-1", math.huge)'] = "s:boost: the factor must be a finite number",
    } do
      fails(('return { at = { ["1m"] = function(s) %s end } }'):format(call), why)
    end
    with [[return { at = { ["1m"] = function(s)
      s:boost("to come", 2) s:boost("app-1000", 2) s:silence "*"
    end } }]]
    assert.equal(1, #scenario.read(file("good.lua", 'return { at = { ["1h"] = print } }')).at)
  end)
end)

-- Two quotas share by the scenario's weights. The simulation uses its own scheduler, which ignores quotas:
-- the spec tests the report about teams.
local function with_teams(words, key)
  local path = file("teams.lua", [[
    local QUOTA, PREFIX = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota", "quota.scheduling.koordinator.sh/"
    return { params = { big = 3 }, at = {
      ["0s"] = function(s)
        for _, name in ipairs { "a", "b" } do
          s.client:create { kind = QUOTA, namespace = "default", name = name,
            annotations = { [PREFIX .. "shared-weight"] = '{"cpu":' .. s.params.big .. "}" },
            spec = { min = { cpu = "1" }, max = { cpu = "16" } } }
        end
        s:add_job { cpu = "2", time = "4h", count = 2, labels = { [PREFIX .. "name"] = "a" } }
        s:add_job { cpu = "200", time = "1h", namespace = "b" }
      end,
    } }
  ]])
  return run.run(cell(words or "nodes=1,batch_rate=0",
    { scenario = path, scene = { big = 2 }, explain = key }))
end

describe("teams", function()
  it("have their own measures, and their quotas are shown", function()
    local r = with_teams()
    assert.is_true(math.abs(r.sums["used.a"] - 4) < 0.1)
    assert.equal(0, r.sums["used.b"]) -- it fits nowhere
    assert.equal(2, #r.quotas)
    assert.same({ "a", 1, 16, 2 }, { r.quotas[1].name, r.quotas[1].min, r.quotas[1].max, r.quotas[1].weight })
    assert.equal(200, r.quotas[2].rows[1].waiting)
    local names = {}
    for _, m in ipairs(measure.all(r.sums)) do names[#names + 1] = m[1] end
    assert.same({ "used.a", "used.b", "wait.a", "wait.b" }, { table.unpack(names, #measure.list + 1) })
    assert.equal("less", measure.of("wait.b")[3])
    assert.is_true(measure.keeps(measure.limit("--budget", "used.a>=3.5"), r.sums))
    assert.is_nil(measure.of "spent.a")
  end)

  it("are explained by their quota", function()
    local facts = {}
    for _, f in ipairs(with_teams(nil, "default/b").explanation.facts) do facts[f.name] = f.value end
    assert.same({ 1, 16, 2, 0, 200 }, { facts["min, cores"], facts["max, cores"], facts.weight,
      facts["used, cores"], facts["requested by pods that wait, cores"] })
  end)
end)

describe("a generated cluster", function()
  it("has the workloads of its pods, which keep their size when a pod moves", function()
    local r = run.run(cell("nodes=2,apps=3,batch_rate=0", { seconds = 600, scenario = file("sets.lua", [[
      local function check(s)
        local pods = s.client:list("v1/Pod", { namespace = "default" })
        local sum = 0
        for _, set in ipairs(s.client:list("apps/v1/ReplicaSet", { namespace = "default" })) do
          sum = sum + set.spec.replicas
          for _, pod in ipairs(pods) do
            local owner = pod.metadata.ownerReferences[1]
            if owner.uid == set.metadata.uid then assert(owner.name == pod.metadata.labels.app) end
          end
        end
        assert(sum == #pods and sum > 10, sum)
      end
      return { at = {
        ["1m"] = check,
        ["2m"] = function(s)
          assert(#s:apps "node-001" == 3)
          s:fail_node "node-001"
        end,
        ["5m"] = check,
      } }
    ]]) }))
    assert.is_true(r.sums.waiting >= 0)
  end)

  it("is seen by a controller as its selectors say", function()
    local function runs(selector)
      local r = run.run(cell("nodes=3,batch_rate=0", { seconds = 60, scripts = { file("seen.lua", ([[
        local kube = require "kubelua"
        return kube.controller { name = "seen", resource = "v1/Node", selector = { %s },
          reconcile = function() end }
      ]]):format(selector)) } }))
      return r.controllers[1].runs
    end
    assert.equal(1, runs 'fields = "metadata.name=node-002"')
    assert.equal(2, runs 'fields = "metadata.name!=node-002"')
    assert.equal(1, runs 'labels = "kubernetes.io/hostname=node-003"')
    assert.equal(3, runs "")
  end)
end)

describe("what is varied", function()
  local function fails(pattern, ...)
    local ok, why = pcall(...)
    assert.is_false(ok)
    assert.matches(pattern, tostring(why))
  end

  it("are settings, params and fields of the strategy", function()
    local axes = sweep.axes({ "nodes=2,4", "colocation.degradeTimeMinutes=5..15/5", "fast=true" },
      { fast = false })
    assert.same({ 2, 4 }, axes[1].values)
    assert.same({ 5, 10, 15 }, axes[2].values)
    assert.same({ true }, axes[3].values)
    local variants = sweep.variants(cell(), axes)
    assert.equal(6, #variants)
    assert.equal("nodes=2 degradeTimeMinutes=5", variants[1].label)
    assert.equal(4, variants[6].cell.settings.nodes)
    assert.equal(15, variants[6].cell.colocation.degradeTimeMinutes)
  end)

  it("are fields of params, and the rest of the param stays as it is", function()
    local params = { pools = { { name = "all", high = { cpu = 75, memory = 80 }, on = false } }, ttl = "5m" }
    local axes = sweep.axes({ "pools.1.high.cpu=65,85", "pools.1.on=true", "ttl=1m" }, params)
    local variants = sweep.variants(cell(), axes)
    assert.equal(2, #variants)
    assert.equal("high.cpu=85", variants[2].label)
    local twins = sweep.axes({ "pools.1.high.cpu=1,2", "other.high.cpu=1,2" },
      { pools = { { high = { cpu = 1 } } }, other = { high = { cpu = 1 } } })
    assert.equal("1.high.cpu=1 other.high.cpu=1", sweep.variants(cell(), twins)[1].label)
    assert.same({ pools = { { name = "all", high = { cpu = 65, memory = 80 }, on = true } }, ttl = "1m" },
      variants[1].cell.params)
    assert.equal(85, variants[2].cell.params.pools[1].high.cpu)
    assert.equal(75, params.pools[1].high.cpu)
    fails([[pools.1.high has no "cpus"; did you mean 'cpu']], sweep.axes,
      { "pools.1.high.cpus=3" }, params)
    fails('pools has no "2"; known are: 1', sweep.axes, { "pools.2.high.cpu=3" }, params)
    fails("pools.1.high.cpu has no \"x\"; it has no fields", sweep.axes, { "pools.1.high.cpu.x=3" }, params)
    fails("set one of its fields: cpu, memory", sweep.axes, { "pools.1.high=3" }, params)
    fails("expected a number", sweep.axes, { "pools.1.high.cpu=much" }, params)
  end)

  it("are params of the scenario", function()
    local axes = sweep.axes({ "scenario.factor=2,3", "cpu=16" }, { factor = "of a script" }, { factor = 1.5 })
    local variants = sweep.variants(cell(), axes)
    assert.equal(2, #variants)
    assert.same({ factor = 3 }, variants[2].cell.scene)
    fails([[the scenario has no param "facto"; did you mean 'factor']], sweep.axes,
      { "scenario.facto=2" }, {},
      { factor = 1 })
    fails("expected a number", sweep.axes, { "scenario.factor=much" }, {}, { factor = 1 })
    fails("there is no scenario with params", sweep.axes, { "scenario.factor=2" }, {}, {})
  end)

  it("are fields of the colocation strategy, or of a policy's own", function()
    fails([[has no field "cpuReclaimTresholdPercent"; did you mean 'cpuReclaimThresholdPercent']], sweep.axes,
      { "colocation.cpuReclaimTresholdPercent=50,60" }, {})
    for _, field in ipairs { "cpuReclaimThresholdPercent", "ourOwn" } do
      assert.equal(2, #sweep.axes({ ("colocation.%s=50,60"):format(field) }, {})[1].values)
    end
  end)

  it("happen in the same order at the same moment, however it is written", function()
    for _ = 1, 5 do
      local read = scenario.read(file("same.lua",
        'return { at = { ["60s"] = print, ["1m"] = print, ["0.5m"] = print, ["30s"] = print } }'))
      local words = {}
      for i, entry in ipairs(read.at) do words[i] = entry[3] end
      assert.same({ "0.5m", "30s", "1m", "60s" }, words)
    end
  end)

  it("is refused with a way out", function()
    fails([[unknown setting or param "node"; did you mean 'nodes']], sweep.axes, { "node=2" }, {})
    fails("a whole number above 0", sweep.axes, { "nodes=none" }, {})
    fails("NAME=VALUE", sweep.axes, { "nodes" }, {})
    fails("upwards", sweep.axes, { "nodes=9..2" }, {})
    fails([[no setting "cpus"; did you mean 'cpu']], settings.words, "--generate", "cpus=3", {})
    fails([[nothing is called "eviction"; did you mean 'evictions']], measure.limit, "--budget",
      "eviction<=3")
    fails("NAME<=NUMBER", measure.limit, "--budget", "evictions")
  end)

  it("is judged seed by seed", function()
    local function sums(...)
      local results = {}
      for i, x in ipairs { ... } do
        results[i] = { sums = setmetatable({ batch_used = x }, { __index = function() return 0 end }) }
      end
      return sweep.together(results)
    end
    local a, b, c = sums(10, 20, 30), sums(11, 21, 31), sums(30, 10, 25)
    assert.equal("better", sweep.verdict("batch_used", a.batch_used, b.batch_used))
    assert.equal("worse", sweep.verdict("batch_used", b.batch_used, a.batch_used))
    assert.equal("", sweep.verdict("batch_used", a.batch_used, c.batch_used))
    assert.same({ false, false, true }, sweep.pareto({ a, b, c }, "batch_used", "violation"))
  end)

  it("reports how many nodes better usage saves", function()
    local function sums(...) return { utilization = sweep.spread { ... } } end
    assert.equal(30000, math.floor(sweep.saved(100000, sums(28), sums(40)) + 0.5))
    assert.is_nil(sweep.saved(10, sums(40), sums(28)))
    assert.is_nil(sweep.saved(10, sums(20, 40, 30), sums(40, 30, 30)))
    local variants = { { label = "a", sums = sums(20), first = { nodes = { "x", "y" } } },
      { label = "b", sums = sums(40), first = { nodes = { "x", "y" } } } }
    assert.is_nil(sweep.saved_words(variants, 1))
    assert.equal("b needs 1.0 fewer of 2 nodes for the same work, by its utilization",
      sweep.saved_words(variants, 2))
  end)

  it("is ranked by a goal of either direction", function()
    local function sums(hot, evictions)
      return { hot = { mean = hot }, evictions = { mean = evictions }, violation = { mean = 0 },
        suppressed = { mean = 0 }, changes = { mean = 0 } }
    end
    local list = { sums(0.1, 9), sums(0.4, 3), sums(3, 3), sums(3, 0) }
    assert.equal("evictions", sweep.risk(list, "hot"))
    assert.same({ true, true, false, true }, sweep.pareto(list, "hot", "evictions"))
    assert.is_true(sweep.better("hot", 1, 2))
    assert.is_true(sweep.better("batch_used", 2, 1))
  end)
end)

describe("a ranking", function()
  local function variant(label, used, violation)
    return { label = label, sums = { batch_used = sweep.spread(used), violation = sweep.spread(violation) },
      broken = {}, front = label == "b" }
  end

  it("lists settings within the budget first, and marks those that seeds cannot distinguish", function()
    local variants = { variant("a", { 10, 11, 12 }, { 0, 0, 0 }),
      variant("b", { 20, 21, 22 }, { 0.5, 0.5, 0.5 }),
      variant("c", { 20, 20, 22.5 }, { 0, 0, 0 }), variant("d", { 30, 31, 32 }, { 0.9, 1.5, 2 }) }
    local limit = measure.limit("--budget", "violation<=1%")
    variants[4].broken[limit.text] = true
    local told = {}
    for i, r in ipairs(sweep.ranking(variants, "batch_used")) do
      told[i] = ("%s %s %s"):format(r.variant.label, r.keeps, r.tied)
    end
    assert.same({ "b true nil", "c true true", "a true false", "d false false" }, told)
    assert.equal(1, sweep.kept(variants[4], limit))
    assert.equal(3, sweep.kept(variants[2], limit))
    told = {}
    for i, r in ipairs(sweep.ranking(variants, "violation")) do told[i] = r.variant.label end
    assert.same({ "a", "c", "b", "d" }, told) -- less of it is better
  end)
end)
