-- podmigrationjob_test.lua - migrations in virtual time: three replicas, two nodes; the test is the scheduler
-- and the ReplicaSet.

local kube = require "kubelua"

local NODE, POD = "v1/Node", "v1/Pod"
local JOB = "scheduling.koordinator.sh/v1alpha1/PodMigrationJob"
local RESERVATION = "scheduling.koordinator.sh/v1alpha1/Reservation"

describe("podmigrationjob", function()
  local t ---@type kubelua.Testing
  local set ---@type any

  local function add_pod(name, on, more)
    local pod = { apiVersion = "v1", kind = "Pod",
      metadata = { namespace = "default", name = name, ownerReferences = { { apiVersion = "apps/v1",
        kind = "ReplicaSet", name = "web", uid = set.metadata.uid, controller = true } } },
      spec = { nodeName = on, terminationGracePeriodSeconds = 0, containers = { { name = "c", image = "i",
        resources = { requests = { cpu = "1" } } } } } }
    for key, value in pairs(more or {}) do pod.metadata[key] = value end
    t:create(pod)
    t:patch_status(t:get(POD, "default", name), { phase = "Running",
      conditions = { { type = "Ready", status = "True" } } })
  end

  local function start(replicas, params)
    t = kube.testing.start {
      scripts = { "podmigrationjob.lua", not params and "reservations.lua" or nil }, crds = "crds",
      params = params, namespace = "default",
      objects = {
        { kind = "v1/Namespace", name = "koordinator-system" },
        { kind = NODE, name = "busy" },
        { kind = NODE, name = "idle" },
      } }
    set = t:create { kind = "apps/v1/ReplicaSet", namespace = "default", name = "web",
      spec = { replicas = replicas, selector = { matchLabels = { app = "web" } },
        template = { metadata = { labels = { app = "web" } },
          spec = { containers = { { name = "c", image = "i" } } } } } }
    for i = 1, replicas do add_pod("web-" .. i, "busy") end
  end

  local function job(name, pod, more)
    local spec = { podRef = { namespace = "default", name = pod }, ttl = "5m" }
    for key, value in pairs(more or {}) do spec[key] = value end
    t:create { kind = JOB, name = name, spec = spec }
    t:advance "1s"
  end

  local function status(name) return t:get(JOB, name).status end

  local function condition(name, type)
    for _, one in ipairs(status(name).conditions or {}) do
      if one.type == type then return one.status, one.reason end
    end
  end

  local function schedule(name, on)
    local uid = t:get(JOB, name).metadata.uid
    t:patch_status(t:get(RESERVATION, uid), { phase = "Available", nodeName = on, allocatable = { cpu = "1" },
      conditions = {
        { type = "Scheduled", status = "True", reason = "Scheduled" },
        { type = "Ready", status = "True", reason = "Available" },
      } })
    t:advance "1s"
    return t:get(RESERVATION, uid)
  end

  it("reserves, evicts, waits for the replacement, and reports its node", function()
    start(3)
    job("j", "web-1")
    assert.equal("Running", status("j").phase)
    assert.equal("True", (condition("j", "ReservationCreated")))
    local room = t:list(RESERVATION)[1] ---@type any
    assert.equal(t:get(JOB, "j").metadata.uid, room.metadata.name)
    assert.equal("5m", room.spec.ttl)
    local template = room.spec.template.spec
    assert.is_nil(template.nodeName)
    assert.same({ "busy" }, kube.copy(template.affinity.nodeAffinity
      .requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchFields[1].values))

    room = schedule("j", "idle")
    assert.equal("idle", status("j").nodeName)
    assert.is_nil(t:get(POD, "default", "web-1"))
    assert.equal("True", (condition("j", "Eviction")))
    assert.same({ "False", "WaitForPodBindReservation" }, { condition("j", "PodBoundReservation") })

    add_pod("web-4", "idle", { annotations = { ["scheduling.koordinator.sh/reservation-allocated"] =
      ('{"name":"%s","uid":"%s"}'):format(room.metadata.name, room.metadata.uid) } })
    t:advance "1s"
    assert.equal("Succeeded", t:get(RESERVATION, room.metadata.name).status.phase)
    assert.equal("1", t:get(RESERVATION, room.metadata.name).status.allocated.cpu)
    local done = status "j"
    assert.same({ "Succeeded", "Complete", "web-4" }, { done.phase, done.status, done.podRef.name })
    assert.equal(('Bind Pod "default/web-4" in Reservation "%s"'):format(room.metadata.name), done.message)
    assert.same({}, t:logs "error")

    t:advance "10m"
    assert.is_nil(t:get(JOB, "j"))
  end)

  it("evicts at once if the job says so", function()
    start(3)
    job("j", "web-1", { mode = "EvictDirectly" })
    assert.is_nil(t:get(POD, "default", "web-1"))
    assert.equal("Succeeded", status("j").phase)
    assert.equal(0, #t:list(RESERVATION))
  end)

  it("lets one pod of a small workload go at a time, and one in a window", function()
    start(3)
    for i = 1, 2 do job("j" .. i, "web-" .. i, { mode = "EvictDirectly", ttl = "20m" }) end
    assert.equal("Succeeded", status("j2").phase == "Succeeded" and "Succeeded" or status("j1").phase)
    assert.equal(2, #t:list(POD))
    add_pod("web-4", "idle")
    t:advance "10s"
    assert.equal(3, #t:list(POD))
    t:advance "6m"
    assert.equal(2, #t:list(POD))
    for i = 1, 2 do assert.equal("Succeeded", status("j" .. i).phase) end
  end)

  it("rejects a job that would remove a whole workload", function()
    start(1)
    job("j", "web-1")
    assert.same({ "Failed", "ForbiddenMigratePod" }, { status("j").phase, status("j").reason })
    assert.matches("its whole workload %(1 replica%) would be unavailable", status("j").message)
    assert.truthy(t:get(POD, "default", "web-1"))
  end)

  it("gives up after its timeout, and deletes the reservation", function()
    start(3)
    job("j", "web-1")
    assert.equal(1, #t:list(RESERVATION))
    t:advance "5m"
    assert.same({ "Failed", "Timeout", "Abort job caused by timeout" },
      { status("j").phase, status("j").reason, status("j").message })
    assert.equal(0, #t:list(RESERVATION))
    assert.truthy(t:get(POD, "default", "web-1"))
  end)

  it("gives up if the reservation is on the same node", function()
    start(3)
    job("j", "web-1")
    schedule("j", "busy")
    assert.same({ "Failed", "ForbiddenMigratePod" }, { status("j").phase, status("j").reason })
    assert.truthy(t:get(POD, "default", "web-1"))
  end)

  it("tries an eviction that a budget refuses again", function()
    start(3)
    t:fail_next { verb = "create", kind = POD, subresource = "eviction", error = "throttled" }
    job("j", "web-1", { mode = "EvictDirectly" })
    t:advance "4s"
    t:advance "6m"
    assert.equal(2, #t:list(POD))
  end)

  it("deletes, or only marks, if the pod's label says so", function()
    start(4, { objectLimiters = { workload = { duration = "0s" } },
      defaultDeleteOptions = { gracePeriodSeconds = 0 } })
    for i, policy in ipairs { "Delete", "SoftEviction" } do
      t:patch(t:get(POD, "default", "web-" .. i), { metadata = {
        labels = { ["koordinator.sh/evict-policy"] = policy } } })
      job("j" .. i, "web-" .. i, { mode = "EvictDirectly" })
    end
    assert.is_nil(t:get(POD, "default", "web-1"))
    assert.equal("Succeeded", status("j1").phase)
    local text = t:get(POD, "default",
      "web-2")('metadata.annotations["scheduling.koordinator.sh/soft-eviction"]')
    assert.equal("NotSet", kube.decode(text).reason)
    assert.same({ gracePeriodSeconds = 0 }, kube.copy(kube.decode(text).deleteOptions))
    assert.equal("Running", status("j2").phase)
  end)

  it("leaves alone jobs that are paused, and those of another descheduler", function()
    start(3)
    job("paused", "web-1", { paused = true })
    t:create { kind = JOB, name = "other", annotations = { ["koordinator.sh/job-created-by"] = "somebody" },
      spec = { podRef = { namespace = "default", name = "web-2" } } }
    t:advance "1m"
    assert.equal(3, #t:list(POD))
    assert.equal(0, #t:list(RESERVATION))
    assert.is_nil(t:get(JOB, "other")("status.phase"))
  end)
end)
