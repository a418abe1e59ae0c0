-- podmigrationjob_spec.lua - pod migration as functions: limits, arbitration, the steps of a job, and the
-- life of a Reservation; and properties over random clusters and histories from fixed seeds.
-- not in asan, tsan: functions of tables, in Lua
-- not in check: random histories; the policy's own test shows each step
package.path = "controllers/koordinator/?.lua;" .. package.path

local arbitrate = require "podmigrationjob.arbitrate"
local filter = require "podmigrationjob.filter"
local lifecycle = require "reservations.lifecycle"
local limits = require "podmigrationjob.limits"
local reserve = require "podmigrationjob.reserve"
local seeds = require "support.seeds"
local step = require "podmigrationjob.step"
local workload = require "podmigrationjob.workload"

local START = "2026-01-01T00:00:00Z"
local NOW = 1767225600 -- START in seconds

local function pod(name, more)
  local p = { metadata = { namespace = "ns", name = name, uid = name .. "-uid",
    ownerReferences = { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "web", uid = "web-uid",
      controller = true } } },
    spec = { nodeName = "a", containers = {} },
    status = { phase = "Running", conditions = { { type = "Ready", status = "True" } } } }
  for key, value in pairs(more or {}) do p.metadata[key] = value end
  return p
end

local function job(name, of, more)
  local j = { metadata = { name = name, uid = name .. "-uid", creationTimestamp = START, annotations = {} },
    spec = { podRef = { namespace = "ns", name = of } }, status = {} }
  for key, value in pairs(more or {}) do j[key] = value end
  return j
end

-- The world of the arbitration.
local function world(list, replicas, kind)
  local owner = { metadata = { uid = "web-uid" }, spec = { replicas = replicas } }
  return {
    get = function(asked, namespace, name)
      if asked == (kind or "apps/v1/ReplicaSet") and name == "web" then return owner end
      for _, p in ipairs(list) do
        if asked == "v1/Pod" and p.metadata.namespace == namespace and p.metadata.name == name then
          return p
        end
      end
    end,
    owned = function(_, _, uid)
      local out = {}
      for _, p in ipairs(list) do
        if p.metadata.ownerReferences and p.metadata.ownerReferences[1].uid == uid then out[#out + 1] = p end
      end
      return out
    end,
    scale = function() end,
  }
end

describe("the number of pods of a workload that may be unavailable", function()
  it("is the configured one, or depends on its size, and never exceeds it", function()
    local function most(...) return limits.most(...) end
    assert.same({ 1, 1, 2, 2, 1, 2, 10 },
      { most(1), most(3), most(4), most(10), most(11), most(20), most(100) })
    assert.same({ 3, 1, 1, 5, 2 }, { most(30, "10%"), most(5, "10%"), most(9, 1), most(20, 5), most(2, 5) })
    assert.same({ 0, 0, 4, 2 }, { most(0), most(0, 3), most(4, "200%"), most(4, "") })
  end)
end)

describe("a bucket of tokens", function()
  it("is full at first, and reports the wait for the next token", function()
    assert.equal(0, limits.wait(nil, 0))
    local b = limits.take(nil, 0, 2, 300, 1)
    assert.equal(150, limits.wait(b, 0))
    assert.is_true(math.abs(limits.wait(b, 100) - 50) < 1e-6)
    assert.equal(0, limits.wait(b, 150))
    assert.equal(0, limits.wait(limits.give(b), 0))
    assert.equal(0, limits.wait(b, 450))
  end)

  it("never lets more through than its size and its rate", function()
    seeds.each(1000, function()
      local most, window, burst = math.random(1, 5), math.random(10, 300), 1
      local b, now, times = nil, 0, {}
      for _ = 1, 30 do
        now = now + math.random(0, window) / math.random(1, 4)
        if limits.wait(b, now) == 0 then
          b = limits.take(b, now, most, window, burst)
          times[#times + 1] = now
        end
      end
      for i = 1, #times do
        for k = i, #times do
          assert.is_true(k - i + 1 <= burst + (times[k] - times[i]) * most / window + 1e-6)
        end
      end
    end)
  end)

  it("exists for all evictions, for workloads and for limited namespaces", function()
    local settings = { evictQPS = 10, evictBurst = 2, objectLimiters = { workload = { duration = "5m" },
      namespace = { duration = "1m", maxMigrating = 3 } } }
    local load = { uid = "u", replicas = 20 }
    assert.same({
      { name = "all", most = 2, window = 0.2, burst = 2 },
      { name = "workload/u", most = 2, window = 300, burst = 1 },
      { name = "namespace/ns", most = 3, window = 60, burst = 1 },
    }, limits.buckets(pod "p", load, settings))
    assert.equal(1, #limits.buckets(pod "p", load, settings, true))
    assert.equal(0, #limits.buckets(pod "p", nil, {}))
  end)
end)

describe("skipEvictionGates", function()
  it("switch single rules off", function()
    local function load(replicas, ...)
      local unavailable = {}
      for _, key in ipairs { ... } do unavailable[key] = true end
      return { uid = "web-uid", replicas = replicas, unavailable = unavailable }
    end
    local book = filter.ledger()
    for _, name in ipairs { "b", "c" } do filter.enter(book, "ns/" .. name, pod(name)) end
    local function why(gate, settings, of)
      settings.skipEvictionGates = gate and { gate }
      local p = pod("a", { labels = { app = "a" } })
      p.spec.priority, p.spec.volumes = settings.priority or 0, settings.volumes
      local s = filter.settings(settings)
      local fresh = { uid = of.uid, replicas = of.replicas, unavailable = of.unavailable }
      return filter.forbidden(p, s, fresh) or filter.held(p, s, fresh, book)
    end
    local claim = { { name = "v", persistentVolumeClaim = { claimName = "c" } } }
    for gate, case in pairs {
      MaxMigratingGlobally = { { maxMigratingGlobally = 2 }, load(100) },
      MaxMigratingPerNode = { { maxMigratingPerNode = 2 }, load(100) },
      MaxMigratingPerNamespace = { { maxMigratingPerNamespace = 2 }, load(100) },
      MaxMigratingPerWorkload = { { maxMigratingPerWorkload = 2 }, load(100) },
      MaxUnavailablePerWorkload = { { maxMigratingPerWorkload = 3 }, load(20, "ns/d") },
      ExpectedReplicas = { { maxMigratingPerWorkload = 9 }, load(9) },
      PVC = { { ignorePvcPods = true, volumes = claim }, load(100) },
      LocalStorage = { { volumes = { { name = "v", emptyDir = {} } } }, load(100) },
      SystemCritical = { { priority = 2000000000 }, load(100) },
      PriorityThreshold = { { priorityThreshold = 5, priority = 6 }, load(100) },
      LabelSelector = { { labelSelector = { matchLabels = { app = "b" } } }, load(100) },
      Namespaces = { { namespaces = { exclude = { "ns" } } }, load(100) },
    } do
      local settings, of = case[1], case[2]
      assert.is_string(why(nil, settings, of), gate)
      if gate == "ExpectedReplicas" then settings.maxUnavailablePerWorkload = 9 end
      assert.is_nil(why(gate, settings, of), gate)
    end
    local bare = pod "a"
    bare.metadata.ownerReferences = nil
    assert.is_string(filter.forbidden(bare, filter.settings {}))
    assert.is_nil(filter.forbidden(bare, filter.settings { skipEvictionGates = { "BarePods" } }))
  end)

  it("has names that exist", function()
    local ok, why = pcall(filter.settings, { skipEvictionGates = { "Pvc" } })
    assert.is_false(ok)
    assert.matches('unknown gate "Pvc"; there are BarePods, ', why)
  end)
end)

describe("a descheduling policy gets no job for a pod", function()
  local REST = { jobMode = "ReservationFirst", schedulerNames = { "koord-scheduler" } }

  local function ours(name, more)
    local p = pod(name, more)
    p.spec.schedulerName = "koord-scheduler"
    return p
  end

  -- The filter of a cluster of these pods, with the jobs of those whose names follow.
  local function open(list, replicas, settings, ...)
    local w, all, jobs = world(list, replicas), { table.unpack(REST) }, {}
    for key, value in pairs(REST) do all[key] = value end
    for key, value in pairs(settings or {}) do all[key] = value end
    for i, name in ipairs { ... } do
      jobs[i] = job("j" .. i, name)
      jobs[i].spec.podRef.uid = name .. "-uid"
    end
    return filter.open(filter.settings(all), jobs, function(j) return filter.pod_of(j, w) end,
      (workload.loads(w)))
  end

  it("that another job moves", function()
    local p = ours "p"
    assert.is_nil(open({ p }, 5).refused(p))
    assert.equal("a job moves it already", open({ p }, 5, nil, "p").refused(p))
    p.metadata.annotations = { ["descheduler.alpha.kubernetes.io/evict"] = "" }
    assert.equal("a job moves it already", open({ p }, 5, nil, "p").refused(p))
    local gate = open({ p }, 5)
    gate.note(p)
    assert.equal("a job moves it already", gate.refused(p))
  end)

  it("of another scheduler, if a Reservation comes first", function()
    local p = ours "p"
    p.spec.schedulerName = "default-scheduler"
    assert.matches('its scheduler "default%-scheduler" is not in schedulerNames', open({ p }, 5).refused(p))
    assert.is_nil(open({ p }, 5, { jobMode = "EvictDirectly" }).refused(p))
    assert.is_nil(open({ p }, 5, { schedulerNames = { "other", "default-scheduler" } }).refused(p))
    p.metadata.annotations = { ["descheduler.alpha.kubernetes.io/evict"] = "" }
    assert.is_string(open({ p }, 5).refused(p))
    p.spec.schedulerName = nil
    assert.matches('its scheduler ""', open({ p }, 5).refused(p))
  end)

  it("that migration refuses for good", function()
    local p = ours "p"
    assert.matches("whole workload %(1 replica%)", open({ p }, 1).refused(p))
    assert.is_nil(open({ p }, 1, { skipCheckExpectedReplicas = true }).refused(p))
    p.metadata.annotations = { ["scheduling.koordinator.sh/eviction-cost"] = "2147483647" }
    assert.equal("its eviction cost is the highest", open({ p }, 5).refused(p))
    p.metadata.annotations = { ["scheduling.koordinator.sh/eviction-cost"] = "2147483646" }
    assert.is_nil(open({ p }, 5).refused(p))
    p.spec.volumes = { { name = "v", emptyDir = {} } }
    assert.equal("it has local storage", open({ p }, 5).refused(p))
    assert.is_nil(open({ p }, 5, { evictLocalStoragePods = true }).refused(p))
    assert.equal("the settings exclude it", open({ p }, 5, { evictableNamespaces = { exclude = { "ns" } },
      evictLocalStoragePods = true }).refused(p))
  end)

  it("while as many as may migrate do so, jobs that wait included", function()
    local list = { ours "a", ours "b", ours "c" }
    for setting, most in pairs { maxMigratingPerNode = 2, maxMigratingPerNamespace = 2,
      maxMigratingGlobally = 2, maxMigratingPerWorkload = 2 } do
      assert.is_nil(open(list, 100, { [setting] = most }, "a").refused(list[3]), setting)
      assert.matches(setting .. " is 2", open(list, 100, { [setting] = most }, "a", "b").refused(list[3]))
      local gate = open(list, 100, { [setting] = most }, "a")
      gate.note(list[2])
      assert.matches(setting .. " is 2", gate.refused(list[3]))
    end
    list[3].spec.nodeName = "elsewhere"
    assert.is_nil(open(list, 100, { maxMigratingPerNode = 2 }, "a", "b").refused(list[3]))
    list[2].status.conditions = {}
    assert.matches("2 pods of its workload are unavailable already", open(list, 5, nil, "a").refused(list[3]))
    list[3].metadata.annotations = { ["descheduler.alpha.kubernetes.io/evict"] = "" }
    assert.is_nil(open(list, 5, { maxMigratingGlobally = 1 }, "a").refused(list[3]))
  end)

  it("and keeps what it knows of a version of a pod as long as the settings are the same table", function()
    local p, none = ours "p", function() end
    local fact, settings = { key = "ns/p" }, filter.settings { jobMode = "EvictDirectly" }
    local other = filter.settings { jobMode = "EvictDirectly", evictLocalStoragePods = true }
    p.spec.volumes = { { name = "v", emptyDir = {} } }
    assert.equal("it has local storage", filter.open(settings, {}, none, none).refused(p, fact))
    assert.is_nil(filter.open(other, {}, none, none).refused(p, fact))
    p.spec.volumes = nil
    assert.is_nil(filter.open(settings, {}, none, none).refused(p, fact))
    p.spec.volumes = { { name = "v", emptyDir = {} } }
    assert.is_nil(filter.open(settings, {}, none, none).refused(p, fact))
    assert.equal("it has local storage", filter.open(settings, {}, none, none).refused(p))
  end)
end)

describe("arbitration", function()
  local function verdicts(jobs, settings, list, replicas, kind)
    local out = {}
    for i, v in ipairs(arbitrate.pass(jobs, settings, world(list, replicas, kind))) do
      out[i] = v.job.metadata.name .. " " .. v.verdict
    end
    return out
  end

  it("rejects jobs of immovable pods", function()
    local p = pod "p"
    local function why(settings, replicas)
      return filter.forbidden(p, settings or {}, workload.loads(world({ p }, replicas or 5))(p))
    end
    assert.is_nil(why())
    assert.matches("namespace", why { namespaces = { exclude = { "ns" } } })
    assert.matches("labels", why { labelSelector = { matchLabels = { app = "x" } } })
    assert.matches("its whole workload %(1 replica%)", why({}, 1))
    assert.matches("its whole workload %(2 replicas%)", why({ maxUnavailablePerWorkload = 2 }, 2))
    assert.is_nil(why({ skipCheckExpectedReplicas = true }, 1))
    p.spec.priority = 100
    assert.matches("priority 100", why { priorityThreshold = 100 })
    assert.is_nil(why { priorityThreshold = 101 })
    p.metadata.annotations = { ["scheduling.koordinator.sh/eviction-cost"] = "2147483647" }
    assert.matches("cost", why())
    p.metadata.annotations["descheduler.alpha.kubernetes.io/evict"] = "true"
    assert.is_nil(why({ namespaces = { exclude = { "ns" } } }, 1))
    p.metadata.annotations = nil
    p.spec.volumes = { { name = "v", persistentVolumeClaim = { claimName = "c" } } }
    assert.is_nil(why())
    assert.matches("claim", why { ignorePvcPods = true })
    p.spec.volumes = { { name = "v", emptyDir = {} } }
    assert.matches("local storage", why())
    assert.is_nil(why { evictLocalStoragePods = true })
  end)

  it("holds pods of an unknown or deleted workload", function()
    local p = pod "p"
    assert.same({ "j failed" }, verdicts({ job("j", "p") }, {}, { p }, 5, "batch/v1/Job"))
  end)

  it("counts the pods of all ReplicaSets of a Deployment", function()
    local a, b = pod "a", pod "b"
    b.metadata.ownerReferences[1].uid, b.status.conditions = "old-uid", {}
    local function set(uid)
      return { metadata = { uid = uid, name = uid, ownerReferences = { { apiVersion = "apps/v1",
        kind = "Deployment", name = "d", uid = "d-uid", controller = true } } }, spec = { replicas = 1 } }
    end
    local w = {
      get = function(kind)
        if kind == "apps/v1/Deployment" then
          return { metadata = { uid = "d-uid" }, spec = { replicas = 3 } }
        end
        return kind == "v1/Pod" and a or set "web-uid"
      end,
      owned = function(kind, _, uid)
        if kind == "apps/v1/ReplicaSet" then return { set "web-uid", set "old-uid" } end
        return uid == "web-uid" and { a } or { b }
      end,
    }
    local verdict = arbitrate.pass({ job("j", "a") }, {}, w)[1]
    assert.equal("waits", verdict.verdict)
    assert.matches("1 pod of its workload is unavailable already", verdict.why)
  end)

  it("lets the newest of the least important go first, and those of a batch Job together", function()
    local list, jobs = {}, {}
    local function add(name, class, created, batch)
      local p = pod(name, { labels = { ["koordinator.sh/priority-class"] = class } })
      p.metadata.ownerReferences[1].kind = batch and "Job" or "ReplicaSet"
      p.metadata.ownerReferences[1].uid = batch or name
      list[#list + 1], jobs[#jobs + 1] = p, job(name, name)
      jobs[#jobs].metadata.creationTimestamp = created
    end
    add("prod", "koord-prod", "2026-01-01T00:00:05Z")
    add("train-2", "koord-mid", "2026-01-01T00:00:00Z", "train")
    add("mid", "koord-mid", "2026-01-01T00:00:09Z")
    add("train-1", "koord-batch", "2026-01-01T00:00:00Z", "train")
    add("free", "koord-free", "2026-01-01T00:00:01Z")
    jobs[#jobs + 1] = job("gone", "gone")
    local function order()
      local out = {}
      for i, v in ipairs(arbitrate.pass(jobs, { skipCheckExpectedReplicas = true }, world(list, 1))) do
        out[i] = v.job.metadata.name
      end
      return table.concat(out, " ")
    end
    assert.equal("gone free train-1 train-2 mid prod", order())
    add("train-0", "koord-prod", "2026-01-01T00:00:00Z", "train")
    jobs[#jobs].status.phase = "Running"
    assert.equal("train-1 train-2 gone free mid prod", order())
  end)

  it("never lets more move than any limit, and each job is judged once", function()
    seeds.each(1000, function()
      local list, jobs, replicas = {}, {}, math.random(2, 30)
      for i = 1, replicas do
        local p = pod("p" .. i, { namespace = "ns" .. math.random(2) })
        p.spec.nodeName = "n" .. math.random(3)
        if math.random(6) == 1 then p.status.conditions = {} end
        list[i] = p
      end
      for i = 1, math.random(0, replicas) do
        jobs[i] = job("j" .. i, "p" .. i)
        jobs[i].spec.podRef.namespace = list[i].metadata.namespace
        if math.random(5) == 1 then jobs[i].status.phase = "Running" end
      end
      local function limit() return math.random(2) == 1 and math.random(1, 4) or 0 end
      local settings = { maxMigratingGlobally = limit(), maxMigratingPerNode = limit(),
        maxMigratingPerNamespace = limit(), maxMigratingPerWorkload = limit() > 0 and limit() or "",
        maxUnavailablePerWorkload = limit() > 0 and limit() or "" }
      local there = world(list, replicas)
      local function moving()
        local n = { all = 0, workload = 0 }
        for i, j in ipairs(jobs) do
          if arbitrate.stage(j) == "moving" then
            local p = list[i]
            n.all = n.all + 1
            for _, key in ipairs { p.spec.nodeName, p.metadata.namespace } do n[key] = (n[key] or 0) + 1 end
          end
        end
        return n
      end
      local before = moving()
      local function pass()
        local seen, passed = {}, 0
        for _, v in ipairs(arbitrate.pass(jobs, settings, there)) do
          assert.is_nil(seen[v.job])
          seen[v.job] = true
          if v.verdict == "passed" then
            v.job.metadata.annotations[arbitrate.PASSED], passed = "true", passed + 1
          elseif v.verdict == "failed" then
            v.job.status.phase = "Failed"
          end
        end
        for _, j in ipairs(jobs) do assert.is_true(arbitrate.stage(j) ~= "waiting" or seen[j]) end
        return passed
      end
      pass()
      local after = moving()
      local function holds(most, ...)
        for _, key in ipairs { ... } do
          local n = after[key] or 0
          assert.is_true(most == 0 or n <= math.max(most, before[key] or 0), key .. ": " .. n)
        end
      end
      holds(settings.maxMigratingGlobally, "all")
      holds(settings.maxMigratingPerNode, "n1", "n2", "n3")
      holds(settings.maxMigratingPerNamespace, "ns1", "ns2")
      -- The limit of a workload, whatever is requested.
      local most = limits.most(replicas, settings.maxMigratingPerWorkload)
      holds(most, "all")
      local away = after.all
      for i, p in ipairs(list) do
        local counted = jobs[i] and arbitrate.stage(jobs[i]) == "moving"
        if #p.status.conditions == 0 and not counted then away = away + 1 end
      end
      if after.all > before.all then
        assert.is_true(away <= limits.most(replicas, settings.maxUnavailablePerWorkload))
      end
      assert.equal(0, pass())
    end)
  end)
end)

describe("the Reservation of a job", function()
  it("requests what the pod requests, on another node, once, while the job lasts", function()
    local p = pod("p", { labels = { app = "web" }, resourceVersion = "7" })
    p.spec.affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = { { matchExpressions = { { key = "zone", operator = "Exists" } } }, {} } } } }
    local j = job("j", "p")
    j.spec.ttl = "5m"
    local r = reserve.manifest(j, p, NOW)
    assert.equal("j-uid", r.metadata.name)
    assert.same({ ["app.kubernetes.io/created-by"] = "koord-descheduler",
      [reserve.ORDER] = NOW .. "000" }, r.metadata.labels)
    assert.same({ "5m", true }, { r.spec.ttl, r.spec.allocateOnce })
    assert.same({ namespace = "ns", kind = "ReplicaSet", apiVersion = "apps/v1", name = "web",
      uid = "web-uid",
      controller = true }, r.spec.owners[1].controller)
    assert.is_nil(r.spec.template.metadata.resourceVersion)
    assert.is_nil(r.spec.template.spec.nodeName)
    local terms = r.spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    for _, term in ipairs(terms.nodeSelectorTerms) do
      assert.same({ key = "metadata.name", operator = "NotIn", values = { "a" } }, term.matchFields[1])
    end
    assert.equal("a", p.spec.nodeName)
    assert.is_nil(p.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
      .nodeSelectorTerms[1].matchFields)
  end)

  it("is for the pod itself if that has no node", function()
    local p = pod "p"
    p.spec.nodeName = nil
    p.status = { phase = "Pending", conditions = { { type = "PodScheduled", status = "False" } } }
    local r = reserve.manifest(job("j", "p"), p, NOW)
    assert.same({ { object = { kind = "Pod", namespace = "ns", name = "p", uid = "p-uid" } } }, r.spec.owners)
    assert.is_true(reserve.for_pending(r))
    assert.is_nil(r.spec.template.spec.affinity)
  end)

  it("keeps the job's template", function()
    local j = job("j", "p")
    j.spec.reservationOptions = { template = { metadata = { name = "mine" }, spec = { ttl = "1h",
      owners = { { labelSelector = { matchLabels = { a = "b" } } } },
      template = { spec = { containers = {}, nodeName = "x" } } } } }
    local r = reserve.manifest(j, pod "p", NOW)
    assert.same({ "mine", "1h" }, { r.metadata.name, r.spec.ttl })
    assert.same({ matchLabels = { a = "b" } }, r.spec.owners[1].labelSelector)
    assert.is_nil(r.spec.template.spec.nodeName)
  end)
end)

local function reservation(more)
  local r = { metadata = { name = "j-uid", uid = "r-uid", creationTimestamp = START,
    labels = { [reserve.ORDER] = "1" } }, spec = { owners = { { controller = {} } } }, status = {} }
  for key, value in pairs(more or {}) do r.status[key] = value end
  return r
end

local function scheduled(on)
  return reservation { phase = "Available", nodeName = on, allocatable = { cpu = "2" },
    conditions = { { type = "Scheduled", status = "True", reason = "Scheduled" },
      { type = "Ready", status = "True", reason = "Available" } } }
end

describe("a step of a job", function()
  local function running(mode)
    local j = job("j", "p")
    j.spec.podRef.uid, j.spec.mode, j.status.phase = "p-uid", mode, "Running"
    if mode == nil then j.spec.reservationOptions = { reservationRef = { name = "j-uid" } } end
    return j
  end

  local function take(j, more)
    local input = { job = j, now = NOW + 10, default_mode = "ReservationFirst" }
    for key, value in pairs(more or {}) do input[key] = value end
    return step.step(input)
  end

  local function fails(reason, j, more)
    local out = take(j, more)
    assert.same({ "Failed", reason }, { out.status.phase, out.status.reason })
    assert.is_nil(out.evict)
    return out
  end

  it("waits for arbitration, then begins or fails with the reason", function()
    local j = job("j", "p")
    assert.is_nil(take(j, { pod = pod "p" }).status.phase)
    j.metadata.annotations[arbitrate.PASSED] = "true"
    local out = take(j, { pod = pod "p" })
    assert.same({ "Running", "p-uid" }, { out.status.phase, out.uid })
    assert.is_truthy(out.reserve)
    fails("MissingPod", j)
    j.spec.podRef.uid = "another"
    fails("MissingPod", j, { pod = pod "p" })
    j.spec.podRef = { name = "p" }
    fails("InvalidPodRef", j, { pod = pod "p" })
  end)

  it("does not exist when the job is paused or over", function()
    for _, phase in ipairs { "Succeeded", "Failed", "Aborted" } do
      local j = running()
      j.status.phase = phase
      assert.is_nil(take(j))
    end
    local j = running()
    j.spec.paused = true
    assert.is_nil(take(j))
  end)

  it("ends the job at its timeout, and reports when that is", function()
    local j = running()
    j.spec.ttl = "1m"
    assert.equal(50, take(j, { pod = pod "p", reservation = reservation() }).after)
    local out = fails("Timeout", j, { now = NOW + 60, pod = pod "p" })
    assert.is_true(out.timeout)
    assert.equal(360, step.until_swept(j, NOW))
    j.spec.ttl = nil
    assert.equal(1800, step.until_swept(j, NOW))
  end)

  it("gives up with the Reservation", function()
    local p = pod "p"
    fails("MissingReservation", running(), { pod = p })
    fails("ReservationExpired", running(), { pod = p, reservation = reservation { phase = "Failed",
      conditions = { { type = "Ready", status = "False", reason = "Expired" } } } })
    local out = fails("Unschedulable", running(), { pod = p, reservation = reservation { phase = "Failed",
      conditions = { { type = "Scheduled", status = "False", reason = "Unschedulable",
        message = "full" } } } })
    assert.equal("full", out.status.message)
    fails("ForbiddenMigratePod", running(), { pod = p, reservation = scheduled "a" })
    local taken = scheduled "b"
    taken.status.phase = "Succeeded"
    fails("ForbiddenMigratePod", running(), { pod = p, reservation = taken })
    fails("MissingPod", running(), { reservation = scheduled "b" })
  end)

  it("reports why there is no room yet", function()
    local out = take(running(), { pod = pod "p", reservation = reservation { phase = "Pending",
      conditions = { { type = "Scheduled", status = "False", reason = "Unschedulable",
        message = "full" } } } })
    assert.equal("Running", out.status.phase)
    assert.equal("ReservationScheduled", out.status.status)
    assert.equal("full", out.status.message)
  end)

  it("never evicts a pod that only has the name", function()
    local other = pod("p", { uid = "other" })
    fails("MissingPod", running "EvictDirectly", { pod = other })
    fails("MissingPod", running(), { pod = other, reservation = scheduled "b" })
  end)

  it("waits for a pod without a node to get the room", function()
    local p, r = pod "p", scheduled "b"
    p.spec.nodeName, p.status = nil, { phase = "Pending" }
    r.spec.owners = { { object = { uid = "p-uid" } } }
    local out = take(running(), { pod = p, reservation = r })
    assert.same({ "Running", "PodScheduled" }, { out.status.phase, out.status.status })
    assert.is_nil(out.evict)
    p.spec.nodeName, p.status.conditions = "b", { { type = "PodScheduled", status = "True" } }
    out = take(running(), { pod = p, reservation = r })
    assert.same({ "Succeeded", 'Assign Pod "ns/p" to node "b"' }, { out.status.phase, out.status.message })
    p.status.conditions, r.status.phase = nil, "Succeeded"
    fails("ForbiddenMigratePod", running(), { pod = p, reservation = r })
  end)

  -- A history: the job takes steps while everything else changes at random.
  local function history()
    local mode = math.random(3) == 1 and "EvictDirectly" or nil
    local j = job("j", "p")
    j.spec.mode, j.spec.ttl = mode, math.random(2) == 1 and "2m" or nil
    local there = { pod = pod "p" }
    local evictions, now, meant = 0, NOW, nil
    local happens = {
      function() j.metadata.annotations[arbitrate.PASSED] = "true" end,
      function() if there.reservation and not there.reservation.status.nodeName then
        there.reservation.status = scheduled(math.random(4) == 1 and "a" or "b").status
      end end,
      function() if there.going then there.pod, there.going = nil, nil end end,
      function() if not there.pod then there.pod = pod("p", { uid = "newer" }) end end,
      function() if math.random(8) == 1 then there.pod = nil end end,
      function() if math.random(8) == 1 then there.reservation = nil end end,
      function()
        local r = there.reservation
        if r and r.status.nodeName and not there.bound then
          there.bound = pod("q", { uid = "q-uid" })
          there.bound.status.conditions = {}
          r.status.currentOwners = { { namespace = "ns", name = "q", uid = "q-uid" } }
        end
      end,
      function()
        if there.bound then there.bound.status.conditions = { { type = "Ready", status = "True" } } end
      end,
    }
    for _ = 1, 80 do
      happens[math.random(#happens)]()
      now = now + math.random(0, 4)
      local over = j.status.phase == "Succeeded" or j.status.phase == "Failed"
      local out = step.step { job = j, now = now, default_mode = "ReservationFirst", pod = there.pod,
        reservation = there.reservation, bound_pod = there.bound }
      assert.equal(over, out == nil)
      if out then
        if out.uid then meant, j.spec.podRef.uid = out.uid, out.uid end
        if out.reserve then
          there.reservation = reservation()
          j.spec.reservationOptions = { reservationRef = reserve.reference(there.reservation) }
        end
        if out.evict then
          evictions = evictions + 1
          assert.equal(meant, out.evict.metadata.uid)
          assert.equal("Running", out.status.phase)
          assert.is_true(mode ~= nil or there.reservation.status.nodeName == "b")
          step.note_eviction(out.status, now, out.evicted)
          there.going = true
        end
        if out.timeout then there.reservation = nil end
        j.status = out.status
        local types = {}
        for _, c in ipairs(j.status.conditions or {}) do
          assert.is_nil(types[c.type])
          types[c.type] = true
        end
        if j.status.phase == "Succeeded" then assert.equal("Complete", j.status.status) end
        if j.status.phase == "Failed" then assert.is_truthy(j.status.reason) end
        -- A second step at the same time changes nothing, and has no action.
        local again = step.step { job = j, now = now, default_mode = "ReservationFirst", pod = there.pod,
          reservation = there.reservation, bound_pod = there.bound }
        if again and not out.reserve and not out.evict then
          assert.same(j.status, again.status)
          assert.same({}, again.events)
        end
        assert.is_nil(again and again.evict)
      end
    end
    assert.is_true(evictions <= 1)
    return j.status.phase, j.status.reason
  end

  it("in any order of events evicts the pod at most once, with room elsewhere, and ends with a reason",
    function()
    local ends = {}
    seeds.each(1000, function()
      local phase, reason = history()
      local key = phase == "Failed" and reason or phase or "waiting"
      ends[key] = (ends[key] or 0) + 1
    end)
    for _, key in ipairs { "Succeeded", "MissingPod", "Timeout", "MissingReservation",
      "ForbiddenMigratePod" } do
      assert.is_truthy(ends[key], key .. " never happened")
    end
  end)
end)

describe("a Reservation", function()
  local function user(name, cpu, uid)
    local p = pod(name, { annotations = { [lifecycle.ALLOCATED] = ('{"name":"j-uid","uid":"%s"}'):format(uid
      or "r-uid") } })
    p.spec.containers = { { resources = { requests = { cpu = cpu, memory = "1Gi" } } } }
    return p
  end

  it("lists the pods that use it, and ends with the first if it is for one", function()
    local r = scheduled "b"
    assert.is_nil(lifecycle.status(r, { user("x", "1", "another") }, true, NOW))
    local status = lifecycle.status(r, { user("y", "1"), user("x", "500m") }, true, NOW)
    assert.equal("Succeeded", status.phase)
    assert.same({ cpu = "1500m" }, status.allocated)
    assert.same({ "x-uid", "y-uid" }, { status.currentOwners[1].uid, status.currentOwners[2].uid })
    assert.same({ "False", "Succeeded" }, { status.conditions[2].status, status.conditions[2].reason })
    r.spec.allocateOnce = false
    assert.equal("Available", lifecycle.status(r, { user("x", "1") }, true, NOW).phase)
  end)

  it("expires with its time, or its node; not before it has one", function()
    local r = scheduled "b"
    r.spec.ttl = "1m"
    assert.is_nil(lifecycle.status(r, {}, true, NOW + 60))
    local status = lifecycle.status(r, {}, true, NOW + 61)
    assert.same({ "Failed", "Expired" }, { status.phase, status.conditions[2].reason })
    assert.equal("Failed", lifecycle.status(r, {}, false, NOW).phase)
    r.spec.expires = "2026-01-01T00:00:10Z"
    assert.equal("Failed", lifecycle.status(r, {}, true, NOW + 11).phase)
    r.spec.ttl = "0s"
    assert.is_nil(lifecycle.status(r, {}, true, NOW + 999999))
    local pending = reservation()
    pending.spec.ttl = "1m"
    assert.is_nil(lifecycle.status(pending, {}, true, NOW + 999))
  end)

  it("is checked when it could expire, and deleted a day after its end", function()
    local r = scheduled "b"
    assert.is_nil(lifecycle.next_look(r, NOW))
    r.spec.ttl = "1m"
    assert.same({ 61, 11, 1 }, { lifecycle.next_look(r, NOW), lifecycle.next_look(r, NOW + 50),
      lifecycle.next_look(r, NOW + 70) })
    assert.is_nil(lifecycle.next_look(reservation(), NOW))
    assert.is_nil(lifecycle.until_deleted(r, true, NOW, 86400))
    r.status = lifecycle.status(r, {}, true, NOW + 70)
    assert.is_nil(lifecycle.next_look(r, NOW + 80))
    assert.equal(86400 - 30, lifecycle.until_deleted(r, true, NOW + 100, 86400))
    assert.equal(0, lifecycle.until_deleted(r, false, NOW + 100, 86400))
  end)

  it("settles after each change, and never leaves its final state", function()
    seeds.each(1000, function()
      local r, now = scheduled "b", NOW
      r.spec.allocateOnce, r.spec.ttl = math.random(2) == 1, math.random(2) == 1 and "5m" or nil
      for _ = 1, 20 do
        local users = {}
        for i = 1, math.random(0, 3) do users[i] = user("p" .. math.random(9) .. i, math.random(3) .. "") end
        now = now + math.random(0, 40)
        local over, status = lifecycle.ended(r), lifecycle.status(r, users, math.random(30) > 1, now)
        assert.is_false(over and status ~= nil)
        if status then
          r.status = status
          assert.is_nil(status.phase ~= "Failed" and lifecycle.status(r, users, true, now) or nil)
        end
      end
    end)
  end)
end)
