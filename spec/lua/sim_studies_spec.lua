-- sim_studies_spec.lua - what `kubelua sim` simulates without a script: workloads in queues with quotas, pods
-- on nodes with GPUs, and a cluster that no policy sees. Results are calculated by hand.
-- not in tsan: it has one thread

local admission = require "kubelua.sim.admission"
local core = require "kubelua.core"
local placement = require "kubelua.sim.placement"
local process = require "support.process"
local run = require "kubelua.sim.run"
local settings = require "kubelua.sim.settings"

-- A file of one cohort with these sets of queues.
local function world(sets)
  return admission.read(process.write(process.tmpname ".yaml",
    core.to_yaml(core.value({ cohorts = { { className = "c", count = 1, queuesSets = sets } } }, "cohorts"))))
end

-- n queues with a quota of 10 that may borrow 10, and their workloads.
local function queues(n, workloads, more)
  local set = { className = "q", count = n, nominalQuota = "10", borrowingLimit = "10",
    workloadsSets = workloads }
  for key, value in pairs(more or {}) do set[key] = value end
  return set
end

-- `count` workloads of a class, one every `every` ms, that ask for `request` and take `ms`.
local function arriving(count, every, class, request, ms, priority)
  return { count = count, creationIntervalMs = every, workloads = { { className = class, runtimeMs = ms,
    priority = priority or 0, request = tostring(request) } } }
end

local function by_class(result)
  local out = {}
  for _, c in ipairs(result.classes) do out[c.name] = c end
  return out
end

describe("workloads in queues", function()
  it("wait until the quota has room", function()
    -- at 1, 2 and 3 ms; two run at once, each for 10 ms
    local r = admission.run(world { queues(1, { arriving(3, 1, "a", 5, 10) }) })
    assert.same({ 3, 3, 1, 0 }, { r.workloads, r.done, r.queues, r.evictions })
    assert.near(0.021, r.seconds, 1e-9) -- the third begins at 11
    assert.near((11 - 3) / 3 / 1000, by_class(r).a.mean, 1e-12)
    assert.near(100 * 3 * 5 * 10 / (10 * 21), r.usage, 1e-9)
  end)

  it("borrow what other queues of the cohort do not use, and no more than they may", function()
    local r = admission.run(world { queues(1, { arriving(4, 1, "a", 5, 100) }),
      queues(1, { arriving(1, 1000, "b", 1, 1) }) })
    assert.equal(0, by_class(r).a.p99)
    r = admission.run(world { queues(1, { arriving(4, 1, "a", 5, 100) }, { borrowingLimit = "5" }),
      queues(1, { arriving(1, 1000, "b", 1, 1) }) })
    assert.near((101 - 4) / 1000, by_class(r).a.p99, 1e-12)
  end)

  it("take back what others borrowed, if the queue may", function()
    local lender = queues(1, { arriving(1, 50, "b", 10, 10) })
    local r = admission.run(world { queues(1, { arriving(4, 1, "a", 5, 100) }), lender })
    assert.same({ 0, (102 - 50) / 1000 }, { r.evictions, by_class(r).b.p99 })
    lender.reclaimWithinCohort = "Any"
    r = admission.run(world { queues(1, { arriving(4, 1, "a", 5, 100) }), lender })
    assert.same({ 2, 0 }, { r.evictions, by_class(r).b.p99 })
    assert.equal(5, r.done)
    assert.near(0.160, r.seconds, 1e-9) -- both of a begin again when b has ended, at 60
  end)

  it("yield to a higher priority in their queue, the newest first", function()
    local low, high = arriving(2, 1, "low", 5, 100), arriving(1, 20, "high", 5, 10, 1)
    local r = admission.run(world { queues(1, { low, high }, { withinClusterQueue = "LowerPriority" }) })
    assert.same({ 1, 0 }, { r.evictions, by_class(r).high.p99 })
    assert.near(0.130, r.seconds, 1e-9) -- the second of low begins again at 30
    r = admission.run(world { queues(1, { low, high }) })
    assert.same({ 0, (101 - 20) / 1000 }, { r.evictions, by_class(r).high.p99 })
  end)

  it("of six queues that share all come and go, each time alike", function()
    local sets = { queues(6, { arriving(70, 100, "small", 1, 200, 50),
      arriving(20, 500, "medium", 5, 500, 100), arriving(10, 1200, "large", 20, 1000, 200) },
      { nominalQuota = "20", borrowingLimit = "100",
        reclaimWithinCohort = "Any", withinClusterQueue = "LowerPriority" }) }
    local a, b = admission.run(world(sets)), admission.run(world(sets))
    assert.same({ 600, 600 }, { a.workloads, a.done })
    assert.equal(admission.text(a), admission.text(b))
  end)

  it("say what is wrong with their file", function()
    local set = queues(1, { arriving(1, 1, "a", 21, 1) })
    assert.error_matches(function() world { set } end, "more than the queue may ever use")
    set.nominalQota = "1"
    assert.error_matches(function() world { set } end, "unknown field \"nominalQota\"; did you mean")
    set.nominalQota, set.count = nil, 0
    assert.error_matches(function() world { set } end, "queuesSets%[1%]: count must be a whole number from 1")
  end)
end)

-- ---------------------------------------------------------------- GPUs

describe("fragments of GPUs", function()
  local function first(now, after) return after - now end

  it("are what pods of the trace could not use", function()
    local g = core.gpus "fewest"
    g:node(8000, 65536, 2, 1)
    local half = g:kind(1000, 1024, 1, 500, 0, 0.5)
    local two = g:kind(4000, 1024, 2, 1000, 0, 0.3)
    g:kind(1000, 1024, 0, 0, 0, 0.2) -- asks for no GPU: all that is free is a fragment to it
    local all, left, fragments = g:sums()
    assert.same({ 2, 2 }, { all, left })
    assert.near(0.4, fragments, 1e-12)
    assert.is_true(g:put(half, first))
    -- 1.5 are left: two GPUs do not fit any more, half of one fits on both
    left, fragments = select(2, g:sums())
    assert.near(1.5, left, 1e-12)
    assert.near(1.5 * 0.5, fragments, 1e-12)
    assert.is_true(g:put(half, first))
    left, fragments = select(2, g:sums()) -- on the same GPU
    assert.near(1, left, 1e-12)
    assert.near(0.5, fragments, 1e-12)
    assert.is_false(g:put(two, first))
  end)

  it("are avoided by a policy that counts them", function()
    local function filled(score)
      local g = core.gpus "fewest"
      for _ = 1, 2 do g:node(8000, 65536, 2, 1) end
      local part, whole = g:kind(1000, 1024, 1, 500, 0, 0.5), g:kind(1000, 1024, 2, 1000, 0, 0.5)
      g:put(part, score)
      g:put(part, score)
      return g:put(whole, score)
    end
    assert.is_true(filled(first))
    assert.is_false(filled(function(_, _, _, free) return -free end)) -- the emptiest node
  end)

  it("fit by model, cpu and memory", function()
    local g = core.gpus "least"
    g:node(4000, 1024, 1, 1)
    g:node(4000, 1024, 1, 2)
    local any = function() return 0 end
    local second, much = g:kind(1000, 512, 1, 1000, 2, 1), g:kind(1000, 2048, 1, 1000, 0, 1)
    assert.same({ true, false, false }, { g:put(second, any), g:put(second, any), g:put(much, any) })
  end)
end)

describe("placement", function()
  -- 6 nodes of 4 GPUs; parts and whole ones.
  local function sample()
    local dir = process.tmpdir() .. "/gpus"
    process.run("mkdir -p " .. dir)
    local nodes, pods = { "sn,cpu_milli,memory_mib,gpu,model\n" }, { "name,cpu_milli,memory_mib,num_gpu,\z
      gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" }
    for i = 1, 6 do nodes[#nodes + 1] = ("n%d,64000,262144,4,%s\n"):format(i, i <= 3 and "T4" or "G2") end
    for i = 1, 60 do
      local kind = ({ "1,300,", "1,1000,", "2,1000,", "1,700,T4", "0,0," })[i % 5 + 1]
      pods[#pods + 1] = ("p%d,%d,4096,%s,LS,Running,%d,,\n"):format(i, 2000 + i % 3 * 1000, kind, i)
    end
    process.write(dir .. "/node.csv", table.concat(nodes))
    process.write(dir .. "/pod.csv", table.concat(pods))
    return dir
  end

  it("fills the cluster, the same way each time", function()
    local dir = sample()
    for _, policy in ipairs { "fgd", "bestfit", "dotprod", "packing", "clustering", "random" } do
      local a = placement.once { dir = dir, policy = policy, seed = 3 }
      assert.equal(24, a.gpus)
      assert.is_true(a.allocated > 70 and a.allocated <= 100, policy)
      assert.is_true(a.fragments >= 0 and a.fragments <= 100 - a.allocated + 1e-9, policy)
      assert.is_true(a.failed > 0)
      assert.same(a, placement.once { dir = dir, policy = policy, seed = 3 })
    end
    local own = process.write(process.tmpname ".lua", "return function(now, after) return after - now end\n")
    assert.same(placement.once { dir = dir, policy = "fgd", seed = 1 },
      placement.once { dir = dir, policy = own, seed = 1 })
  end)

  it("rejects unknown policies", function()
    assert.error_matches(function() placement.policy "fdg" end, "unknown policy \"fdg\"; did you mean 'fgd'")
  end)

  it("names what is wrong with a policy", function()
    local bad = process.write(process.tmpname ".lua", "return function() return {} end\n")
    assert.error_matches(function() placement.once { dir = sample(), policy = bad, seed = 1 } end,
      "a placement policy must return a number, got table")
  end)

  it("is a command", function()
    local kubelua = os.getenv "KUBELUA" or "build/kubelua"
    local out, code = process.run(("%s sim --placement fgd,random --trace openb:%s --seeds 2"):format(kubelua,
      sample()))
    assert.equal(0, code, out)
    assert.matches("6 nodes with 24 GPUs", out)
    assert.matches("\nfgd +%d+%.%d%d ±", out)
    out, code = process.run(kubelua .. " sim --placement fgd")
    assert.equal(2, code)
    assert.matches("--placement needs --trace openb:DIR", out, 1, true)
  end)
end)

-- ---------------------------------------------------------------- without a script

describe("a cluster without a script", function()
  local function cell(more, scripts)
    local given = settings.defaults()
    settings.words("the test", more, given)
    return { scripts = scripts or {}, crds = {}, snapshot = {}, load = {}, settings = given, params = {},
      colocation = {}, seconds = 3600, seed = 1 }
  end
  local SETTINGS = "nodes=3,prod=0.3,batch_rate=8,batch_cpu=4,lent=0.5"

  it("has the same columns as with an empty script", function()
    local idle = process.write(process.tmpname ".lua", [[
      local kube = require "kubelua"
      return kube.controller { name = "idle", resource = "v1/Node", reconcile = function() end }
    ]])
    local a, b = run.run(cell(SETTINGS)), run.run(cell(SETTINGS, { idle }))
    assert.is_true(a.sums.jobs_done > 0 and a.sums.batch_used > 0)
    for name, x in pairs(a.sums) do
      if name ~= "reconciles" then assert.equal(x, b.sums[name], name) end
    end
    assert.same(a.rows, b.rows)
  end)

  it("lends nothing unless its nodes do", function()
    local r = run.run(cell "nodes=2,batch_rate=8")
    assert.equal(0, r.sums.batch_lent)
    assert.is_true(r.sums.waiting > 0)
  end)
end)
