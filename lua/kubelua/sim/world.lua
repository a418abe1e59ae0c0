-- world.lua - the simulated cluster: nodes and pods as columns (one list per property, cpu in milli-cores,
-- memory in bytes), and their objects, which controllers see.
--
-- All changes of pods go through here, so that columns and objects agree: add, place, finish, evict.

local core = require "kubelua.core"
local dice = require "kubelua.sim.dice"
local queue = require "kubelua.sim.queue"
local quotas = require "kubelua.sim.quotas"

local M = {}

local UPSTREAM = "slo.koordinator.sh/v1alpha1"
M.METRIC = UPSTREAM .. "/NodeMetric"
--- The namespace of pods that the simulation makes.
M.SCHEDULER = "koord-scheduler"

-- The most evictions whose moment and node are kept; all are counted.
local EVICTIONS_KEPT = 1000

---@class kubelua.SimWorld
---@field sim userdata
---@field settings table<string, number>
local W = {}
W.__index = W

--- Classes, with the QoS label, the priority and the resource names of their pods.
M.CLASSES = {
  prod = { qos = "LS", priority = 9000, cpu = "cpu", memory = "memory", name = "koord-prod" },
  mid = { qos = "BE", priority = 7000, cpu = "kubernetes.io/mid-cpu", memory = "kubernetes.io/mid-memory",
    name = "koord-mid" },
  batch = { qos = "BE", priority = 5000, cpu = "kubernetes.io/batch-cpu",
    memory = "kubernetes.io/batch-memory", name = "koord-batch" },
}

local NODE_COLUMNS = {
  "name", "cpu", "memory", "ready", "reports", "pods", "batch_cpu", "batch_memory", "prod_asked",
  "prod_memory_asked", "batch_asked", "batch_memory_asked", "prod_used", "batch_used", "batch_wanted",
  "memory_used", "system", "allowed", "reported_cpu", "reported_memory", "since_cpu", "since_memory", "unmet",
  "recorded", "created",
}
local POD_COLUMNS = {
  "name", "namespace", "class", "cpu", "memory", "app", "node", "state", "created", "placed", "work", "done",
  "used", "sum", "ends", "restarts", "foreign", "object", "labels",
  "quota", "uid", "left",
}

local function columns(names)
  local out = { n = 0 }
  for _, name in ipairs(names) do out[name] = {} end
  return out
end

---@param sim userdata|kubelua.SimStill  a still one: the cluster has columns only
---@param settings table<string, number>
---@param seed integer
---@return kubelua.SimWorld
function M.new(sim, settings, seed)
  local w = setmetatable({
    sim = sim, settings = settings, seed = seed, start = sim:now(), time = 0,
    nodes = columns(NODE_COLUMNS), pods = columns(POD_COLUMNS), node_of = {}, pod_of = {},
    ending = {}, evictions = {}, factor = {}, phases = {}, boost = {}, uids = 0, reported = 0,
    sizes = {}, replicas = {}, resized = {}, heirs = {}, namesakes = {}, parts = {}, n_parts = 0,
    means = { node = core.sums(), memory = core.sums(), pod = core.sums() },
    sums = { evicted = 0, lost_work = 0, finished = 0, waited = {}, oom = 0, nowhere = 0, failed_nodes = 0 },
  }, W)
  w.pending, w.quotas = queue.new(w.pods), quotas.new(w)
  return w
end

--- The present time as Kubernetes writes it, to the second.
function W:timestamp(at) return tostring(core.time((self.start + (at or self.time)) // 1)) end

local function value(o) return core.value(o, "an object of the simulation") end

-- ---------------------------------------------------------------- objects

-- Uids are numbers in order of creation, which is the same each time.
local function next_uid(w)
  w.uids = w.uids + 1
  return ("00000000-0000-4000-9000-%012x"):format(w.uids)
end

-- Stores an object as it is.
function W:put(o)
  if self.sim.still then return end
  local uid = next_uid(self)
  o.metadata.uid = o.metadata.uid or uid
  o.metadata.creationTimestamp = o.metadata.creationTimestamp or self:timestamp()
  self.sim:put(value(o))
end

--- Stores an object of another cluster, a view, without what belongs to that one alone.
function W:put_copy(o)
  self.sim:put_copy(o, next_uid(self), self:timestamp())
end

local function milli(n) return ("%dm"):format(n // 1) end
local function bytes(n) return ("%d"):format(n // 1) end

--- The report of node i's agent: { cpu, memory, cpu of the system, memory of the system }, and of each pod
--- there its memory, and the mean of its last n samples of cpu.
function W:put_metric(i, amounts, n)
  local nodes, pods = self.nodes, self.pods
  self.sim:report(i, nodes.name[i], nodes.created[i], self:timestamp(), amounts, nodes.pods[i],
    pods.namespace, pods.name, pods.class, pods.memory, self.holds, self.means.pod, n)
end

-- What many pods have alike is made once: a value by its key, and how many there are.
local PARTS_KEPT = 10000

local function part(w, key, make, ...)
  local known = w.parts[key]
  if known then return known end
  if w.n_parts == PARTS_KEPT then w.parts, w.n_parts = {}, 0 end
  known = value(make(...))
  w.parts[key], w.n_parts = known, w.n_parts + 1
  return known
end

-- What a pod's status says: it runs and is ready once it has a node; at: when it got it, or nil.
local function status_since(w, at)
  if not at then
    return { phase = "Pending", conditions = { { type = "PodScheduled", status = "False",
      reason = "Unschedulable" } } }
  end
  at = w:timestamp(at)
  return { phase = "Running", startTime = at, conditions = {
    { type = "PodScheduled", status = "True", lastTransitionTime = at },
    { type = "Ready", status = "True", lastTransitionTime = at },
  } }
end

local function status_of(w, p)
  local at = w.pods.node[p] ~= 0 and w.pods.placed[p] or nil
  return part(w, at or "pending", status_since, w, at)
end

local function set_uid(app) return "replicaset-" .. app end

local function owners_of(app)
  return { { apiVersion = "apps/v1", kind = "ReplicaSet", name = app, uid = set_uid(app),
    controller = true } }
end

local function labels_of(class, app, more)
  local labels = { app = app, ["koordinator.sh/qosClass"] = M.CLASSES[class].qos }
  for name, text in pairs(more or {}) do labels[name] = text end
  return labels
end

local function containers_of(name, cpu, memory)
  local class, batch = M.CLASSES[name], name ~= "prod"
  local amounts = { [class.cpu] = batch and bytes(cpu) or milli(cpu), [class.memory] = bytes(memory) }
  return { { name = "main", image = "simulated",
    resources = { requests = amounts, limits = batch and amounts or nil } } }
end

-- A new table. What pods have alike are values in it, which nobody can change.
local function own_object(w, p)
  local pods = w.pods
  local class, app, cpu, memory = pods.class[p], pods.app[p], pods.cpu[p], pods.memory[p]
  local labels = pods.labels[p] and labels_of(class, app, pods.labels[p])
    or part(w, ("labels %s %s"):format(class, app), labels_of, class, app)
  return {
    apiVersion = "v1", kind = "Pod",
    metadata = { labels = labels,
      ownerReferences = class == "prod" and part(w, "owners " .. app, owners_of, app) or nil },
    spec = {
      schedulerName = M.SCHEDULER, priority = M.CLASSES[class].priority,
      priorityClassName = M.CLASSES[class].name,
      containers = part(w, ("containers %s %a %a"):format(class, cpu, memory), containers_of, class, cpu,
        memory),
    },
  }
end

-- A pod that others made keeps its object, except for node and status; a successor gets the original object.
local function adopted_object(w, p)
  local pods = w.pods
  local ok, now = pcall(w.sim.call, w.sim,
    { verb = "get", kind = "v1/Pod", ns = pods.namespace[p], name = pods.name[p] })
  local o = core.copy(ok and now or pods.object[p])
  local m = o.metadata
  m.resourceVersion, m.managedFields, m.deletionTimestamp, m.deletionGracePeriodSeconds = nil, nil, nil, nil
  if not ok then m.uid, m.creationTimestamp = nil, nil end
  return o
end

-- A uid that differs from those of earlier pods of the same name.
local function new_uid(w, p)
  local base = ("pod-%s-%d"):format(w.pods.name[p], w.pods.restarts[p])
  local n = w.namesakes[base] or 0
  w.namesakes[base] = n + 1
  return n == 0 and base or ("%s-%d"):format(base, n)
end

--- The manifest of pod p as a new table, without name, node and status.
---@return table
function W:manifest(p)
  return core.copy(self.pods.object[p] or own_object(self, p))
end

--- Updates the object of pod p in the cluster.
function W:put_pod(p)
  if self.sim.still then return end
  local pods = self.pods
  local o = pods.object[p] and adopted_object(self, p) or own_object(self, p)
  o.metadata.name, o.metadata.namespace = pods.name[p], pods.namespace[p]
  pods.uid[p] = o.metadata.uid or pods.uid[p] or new_uid(self, p)
  o.metadata.uid = pods.uid[p]
  o.metadata.creationTimestamp = o.metadata.creationTimestamp or self:timestamp(pods.created[p])
  o.spec.nodeName = pods.node[p] ~= 0 and self.nodes.name[pods.node[p]] or nil
  o.status = status_of(self, p)
  self.sim:put(value(o))
end

-- ---------------------------------------------------------------- nodes

--- Adds a node that the cluster has; its object is a table in a manifest's form, or a view.
function W:take_node(o)
  local nodes, i = self.nodes, self.nodes.n + 1
  nodes.n = i
  for _, name in ipairs(NODE_COLUMNS) do nodes[name][i] = 0 end
  nodes.name[i], nodes.ready[i], nodes.reports[i], nodes.pods[i] = o.metadata.name, false, false, {}
  nodes.recorded[i], nodes.created[i] = false, self:timestamp()
  nodes.system[i] = self.settings.system_cpu
  self.node_of[o.metadata.name] = i
  self:size_node(i, o)
  return i
end

local BATCH_CPU = 'status.allocatable["kubernetes.io/batch-cpu"]'
local BATCH_MEMORY = 'status.allocatable["kubernetes.io/batch-memory"]'

-- A member of a table or a view that may be absent; a null is absent, too.
local function member(o, name)
  local v = o and o[name]
  return v ~= core.null and v or nil
end

--- Reads its size from its status. From then on the node takes part.
function W:size_node(i, o)
  local nodes, status = self.nodes, member(o, "status")
  local capacity = member(status, "capacity") or member(status, "allocatable") or {}
  local cpu_text, memory_text = capacity.cpu or "0", capacity.memory or "0"
  local known = self.sizes[i]
  if known and known.cpu == cpu_text and known.memory == memory_text then return end
  self.sizes[i] = { cpu = cpu_text, memory = memory_text }
  local cpu = core.qty(cpu_text):milli()
  if nodes.cpu[i] == 0 and cpu > 0 then nodes.ready[i], nodes.reports[i] = true, true end
  nodes.cpu[i], nodes.memory[i] = cpu, core.qty(memory_text):value()
end

--- Adds a node at the beginning: a table in a manifest's form.
function W:add_node(o)
  local i = self:take_node(o)
  self:put(o)
  return i
end

--- Follows a change of a node: an allocatable that policies set; a node that an autoscaler added or removed.
function W:saw_node(view, what)
  local name = view.metadata.name
  if what == "DELETED" then return self.node_of[name] and self:lose_node(name) end
  local i = self.node_of[name] or self:take_node(view)
  self:size_node(i, view)
  local nodes, cpu, memory = self.nodes, core.pick(view, BATCH_CPU, BATCH_MEMORY)
  nodes.batch_cpu[i] = cpu and core.qty(cpu):value() or 0
  nodes.batch_memory[i] = memory and core.qty(memory):value() or 0
end

-- ---------------------------------------------------------------- pods

-- Counts a prod pod of the simulation in, or out of, the ReplicaSet of its app.
local function resize(w, p, by)
  local pods = w.pods
  if pods.class[p] ~= "prod" or pods.object[p] then return end
  local key = pods.namespace[p] .. "/" .. pods.app[p]
  w.replicas[key] = (w.replicas[key] or 0) + by
  if not w.resized[key] then w.resized[#w.resized + 1] = key end
  w.resized[key] = true
end

--- Updates ReplicaSets whose number of pods has changed.
function W:put_workloads()
  for _, key in ipairs(self.resized) do
    local namespace, app = key:match "^(.-)/(.*)$"
    self:put {
      apiVersion = "apps/v1", kind = "ReplicaSet",
      metadata = { name = app, namespace = namespace, uid = set_uid(app) },
      spec = { replicas = self.replicas[key], selector = { matchLabels = { app = app } },
        template = { metadata = { labels = { app = app } },
          spec = { containers = { { name = "main", image = "simulated" } } } } },
      status = { replicas = self.replicas[key] },
    }
  end
  self.resized = {}
end

-- A row for a pod: { name, namespace, class, cpu, memory, app, work, ends, restarts, object, foreign,
-- labels }.
local function take_pod(w, o)
  local pods, p = w.pods, w.pods.n + 1
  pods.n = p
  pods.name[p], pods.namespace[p], pods.class[p] = o.name, o.namespace or "default", o.class
  pods.cpu[p], pods.memory[p], pods.app[p] = o.cpu, o.memory, o.app or o.name
  pods.node[p], pods.state[p], pods.created[p], pods.placed[p] = 0, "pending", w.time, 0
  pods.work[p], pods.done[p], pods.used[p], pods.sum[p] = o.work or false, 0, 0, 0
  pods.ends[p] = o.ends or false
  if o.ends then w.ending[#w.ending + 1] = p end
  pods.restarts[p], pods.object[p], pods.foreign[p] = o.restarts or 0, o.object or false, o.foreign or false
  pods.labels[p], pods.left[p] = o.labels or false, false
  pods.uid[p] = pods.restarts[p] == 0 and o.object and o.object "metadata.uid" or false
  pods.quota[p] = o.labels and o.labels[quotas.LABEL]
    or o.object and o.object("metadata.labels", quotas.LABEL)
    or false
  if pods.restarts[p] == 0 then resize(w, p, 1) end
  -- pods of one app differ: each uses its own share
  w.factor[p] = 1 + 0.2 * dice.normal(w.seed, dice.of(o.name), 1)
  w.pod_of[pods.namespace[p] .. "/" .. o.name] = p
  return p
end

-- Adds a pod's requests to its node (sign 1), or subtracts them (-1).
local function count(w, p, sign)
  local pods, nodes, i = w.pods, w.nodes, w.pods.node[p]
  local prefix = pods.class[p] == "prod" and "prod" or "batch"
  nodes[prefix .. "_asked"][i] = nodes[prefix .. "_asked"][i] + sign * pods.cpu[p]
  nodes[prefix .. "_memory_asked"][i] = nodes[prefix .. "_memory_asked"][i] + sign * pods.memory[p]
end

-- Puts it on node i in the columns.
local function stand(w, p, i)
  local pods = w.pods
  pods.node[p], pods.state[p], pods.placed[p] = i, "running", w.time
  local here = w.nodes.pods[i]
  here[#here + 1] = p
  count(w, p, 1)
end

local function stand_at_last(w, p, i)
  stand(w, p, i)
  if w.time == 0 then return end
  w.sums.waited[#w.sums.waited + 1] = w.time - w.pods.created[p]
  w.quotas:placed(p, w.time - w.pods.created[p])
end

--- The pod runs on node i from now on.
function W:place(p, i)
  stand_at_last(self, p, i)
  self:put_pod(p)
end

--- A scheduler under test has bound the pod to node i: its object stays as that left it.
local function bound(w, p, i)
  w.pending:remove(p)
  stand_at_last(w, p, i)
  w.sim:call { verb = "patch", patch_type = "strategic", kind = "v1/Pod", ns = w.pods.namespace[p],
    name = w.pods.name[p], subresource = "status", field_manager = "simulation",
    body = value { status = status_of(w, p) } }
end

--- Whether a scheduler under test places the pod: the pod names its scheduler.
function W:is_for_others(p)
  local name, object = self.scheduler, self.pods.object[p]
  if not name then return false end
  return name == "*" or (object and object("spec.schedulerName") or M.SCHEDULER) == name
end

--- Adds a pod that waits for a node, or (node) has one: { name, namespace, class, cpu, memory, app, labels,
--- work }. work: for a job, seconds at its full request; nil: it runs until somebody ends it.
---@return integer
function W:add_pod(o)
  local p = take_pod(self, o)
  if o.node then
    self:place(p, o.node)
  else
    self.pending:add(p, self:is_for_others(p))
    self:put_pod(p)
  end
  return p
end

-- Removes it from its node and, unless somebody has deleted it already, from the cluster.
local function take_away(w, p, deleted)
  local pods = w.pods
  local i = pods.node[p]
  w.pending:remove(p)
  if i ~= 0 then
    count(w, p, -1)
    local here = w.nodes.pods[i]
    for k = 1, #here do
      if here[k] == p then table.remove(here, k); break end
    end
  end
  pods.state[p], pods.node[p] = "gone", 0
  w.pod_of[pods.namespace[p] .. "/" .. pods.name[p]] = nil
  if not deleted then w.sim:lose("v1/Pod", pods.namespace[p], pods.name[p]) end
end

--- A job has done its work.
function W:finish(p)
  self.sums.finished = self.sums.finished + 1
  take_away(self, p)
end

--- Removes pods whose end has come, wherever they are; they have no successors.
function W:leave_due()
  local stay, pods = {}, self.pods
  for _, p in ipairs(self.ending) do
    if pods.state[p] ~= "gone" and pods.ends[p] <= self.time then
      resize(self, p, -1)
      pods.left[p] = pods.ends[p]
      take_away(self, p)
    elseif pods.state[p] ~= "gone" then
      stay[#stay + 1] = p
    end
  end
  self.ending = stay
end

--- Removes a pod, or its successor; it is not replaced.
---@param key string
function W:leave(key)
  local p = self.pod_of[key] or self.pod_of[self.heirs[key] or ""]
  if not p then return end
  self.pods.left[p] = self.time
  take_away(self, p)
end

--- The pod was evicted or deleted. Its owner makes another one, which starts anew; a pod of a controller
--- under test is replaced by that controller.
---@param p integer
---@param why string
---@param deleted boolean?  its object is gone already
---@return integer? p of its successor
function W:evict(p, why, deleted)
  local pods = self.pods
  local base = pods.name[p]:gsub("%-r%d+$", "")
  self.sums.evicted = self.sums.evicted + (why == "evicted" and 1 or 0)
  if why == "evicted" and pods.node[p] ~= 0 and #self.evictions < EVICTIONS_KEPT then
    local key = pods.namespace[p] .. "/" .. pods.name[p]
    self.evictions[#self.evictions + 1] = { self.time, pods.node[p], key }
    if self.told then self.told:victim(p) end
  end
  self.sums.oom = self.sums.oom + (why == "out of memory" and 1 or 0)
  self.sums.lost_work = self.sums.lost_work + pods.done[p] * pods.cpu[p]
  local restarts = pods.restarts[p] + 1
  take_away(self, p, deleted)
  if pods.foreign[p] then return end
  local name = ("%s-r%d"):format(base, restarts)
  self.heirs[pods.namespace[p] .. "/" .. base] = pods.namespace[p] .. "/" .. name
  return self:add_pod {
    name = name, namespace = pods.namespace[p], class = pods.class[p],
    cpu = pods.cpu[p], memory = pods.memory[p], app = pods.app[p], work = pods.work[p] or nil,
    ends = pods.ends[p] or nil, restarts = restarts, object = pods.object[p], labels = pods.labels[p] or nil,
  }
end

-- Objects of a snapshot or a recording have not been validated.
local function must(good, path, what)
  if not good then error(("%s must be %s"):format(path, what), 0) end
end

local function class_of(view)
  local priority, qos = view("spec.priority") or 0, view("metadata.labels", "koordinator.sh/qosClass")
  must(math.type(priority) == "integer", "spec.priority", "an integer")
  if priority >= 9000 then return "prod" end
  if priority >= 7000 then return "mid" end
  return (priority >= 5000 or qos == "BE") and "batch" or "prod"
end

-- A container's request; 0 if it has none.
local function request(container, name, in_milli)
  local amount = container("resources.requests", name)
  if amount == nil then return 0 end
  local ok, q = pcall(core.qty, amount)
  must(ok and q >= 0, "the request of " .. name,
    ("a quantity from 0 on, such as 500m or 2Gi, not %q"):format(tostring(amount)))
  return in_milli and q:milli() or q:value()
end

-- The requests of a pod object: cpu and memory, by its class's resource names.
local function asked(view, class)
  local names, cpu, memory = M.CLASSES[class], 0, 0
  local containers = view("spec.containers") or {}
  must(type(containers) ~= "number" and type(containers) ~= "string", "spec.containers", "a list")
  for _, c in ipairs(containers) do
    must(core.is_view(c), "a container", "an object")
    cpu = cpu + request(c, names.cpu, class == "prod")
    memory = memory + request(c, names.memory)
  end
  return cpu, memory
end

--- The class and the requested cpu and memory of a pod (or a template) that the simulation did not make.
---@return string class, integer cpu, integer memory
function M.asked_by(view)
  local class = class_of(view)
  return class, asked(view, class)
end

--- A pod that the simulation did not make: of a snapshot, or (foreign) of a controller under test.
function W:adopt(view, foreign)
  local class = class_of(view)
  local cpu, memory = asked(view, class)
  local p = take_pod(self, { name = view.metadata.name, namespace = view.metadata.namespace, class = class,
    cpu = cpu, memory = memory, app = view("metadata.labels.app"), object = view, foreign = foreign })
  local i = view("spec.nodeName") and self.node_of[view("spec.nodeName")]
  if i then stand(self, p, i) else self.pending:add(p, self:is_for_others(p)) end
end

--- Follows the changes in the cluster since the last call. True if a pod has come or gone.
function W:hear()
  local moved = false
  for _, news in ipairs(self.sim:news()) do
    local what, view = news[1], news[2]
    if self.listener then self.listener(what, view) end
    if view.kind == "Node" then
      self:saw_node(view, what)
    elseif view.kind == "Pod" then
      local p = self.pod_of[view.metadata.namespace .. "/" .. view.metadata.name]
      local leaving = what == "DELETED" or view("metadata.deletionTimestamp") ~= nil
      if what == "DELETED" and p and self.pods.uid[p] and view.metadata.uid ~= self.pods.uid[p] then
        p = nil -- one with the same name, before it
      end
      if p and leaving then
        self:evict(p, "evicted", what == "DELETED")
        moved = true
      elseif p and self.pods.node[p] == 0 and self.node_of[view("spec.nodeName") or ""] then
        bound(self, p, self.node_of[view.spec.nodeName])
        moved = true
      elseif not p and what == "ADDED" and not leaving and self.started then
        self:adopt(view, true)
        moved = true
      end
    end
  end
  return moved
end

-- ---------------------------------------------------------------- nodes that fail

-- Nothing runs on the node any more; its pods start again elsewhere.
local function stop_node(w, i)
  local nodes = w.nodes
  nodes.ready[i], nodes.reports[i], nodes.batch_cpu[i], nodes.batch_memory[i] = false, false, 0, 0
  w.sums.failed_nodes = w.sums.failed_nodes + 1
  for _, p in ipairs({ table.unpack(nodes.pods[i]) }) do w:evict(p, "its node failed") end
end

--- A node stops answering.
function W:fail_node(name)
  local i = self.node_of[name] or core.blame(("there is no node %q"):format(tostring(name)))
  if not self.nodes.ready[i] then return end
  stop_node(self, i)
  self:condition(i, "Unknown")
end

--- Its object was deleted.
function W:lose_node(name)
  stop_node(self, self.node_of[name])
  self.node_of[name] = nil
end

--- It is back, empty.
function W:heal_node(name)
  local i = self.node_of[name] or core.blame(("there is no node %q"):format(tostring(name)))
  self.nodes.ready[i], self.nodes.reports[i] = true, true
  self:condition(i, "True")
end

-- The taint of a node that does not answer.
local UNREACHABLE = "node.kubernetes.io/unreachable"

-- A patch replaces the whole list of taints, so it repeats those of others.
local function taint(w, i, on)
  local name, taints = w.nodes.name[i], {}
  local node = w.sim:call { verb = "get", kind = "v1/Node", name = name }
  for _, t in ipairs(node("spec.taints") or {}) do
    if t.key ~= UNREACHABLE then taints[#taints + 1] = core.copy(t) end
  end
  if on then taints[#taints + 1] = { key = UNREACHABLE, effect = "NoSchedule" } end
  w.sim:call { verb = "patch", patch_type = "merge", kind = "v1/Node", name = name,
    field_manager = "simulation",
    body = value { spec = { taints = #taints > 0 and taints or core.null } } }
end

function W:condition(i, status)
  if self.sim.still then return end
  taint(self, i, status ~= "True")
  self.sim:call { verb = "patch", patch_type = "strategic", kind = "v1/Node", name = self.nodes.name[i],
    subresource = "status", field_manager = "simulation",
    body = value { status = { conditions = { { type = "Ready", status = status, reason = "Simulated",
      lastTransitionTime = self:timestamp() } } } } }
end

return M
