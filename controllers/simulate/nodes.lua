-- nodes.lua - plays what speaks for nodes: the kubelet that reports them and renews their leases, and the
-- node lifecycle controller that taints them. Where nobody has made a node, a few are made.
--
-- simulate.kubelua.dev/down: "true" on a node stops its heartbeats.

local kube = require "kubelua"
local conditions = require "lib.conditions"

local NODE = "v1/Node"
local DOWN = "simulate.kubelua.dev/down"
-- As the kubelet has it: nodeLeaseDurationSeconds.
local LEASE_SECONDS = 40
local SILENT = "Kubelet stopped posting node status."
local PRESSURES = {
  { "MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available" },
  { "DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure" },
  { "PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available" },
}
-- kube-apiserver puts not-ready on each new node.
local OURS = { ["node.kubernetes.io/unschedulable"] = true, ["node.kubernetes.io/unreachable"] = true,
  ["node.kubernetes.io/not-ready"] = true }

local function taints_of(node, down)
  local list = {}
  for _, taint in ipairs(node("spec.taints") or {}) do
    if not OURS[taint.key] then list[#list + 1] = kube.copy(taint) end
  end
  local function add(key, effect)
    list[#list + 1] = { key = "node.kubernetes.io/" .. key, effect = effect }
  end
  if node("spec.unschedulable") then add("unschedulable", "NoSchedule") end
  if down then
    add("unreachable", "NoSchedule")
    add("unreachable", "NoExecute")
  end
  return #list > 0 and list or nil
end

local function conditions_of(down)
  local list = {}
  for i, p in ipairs(PRESSURES) do
    list[i] = { type = p[1], status = "False", reason = p[2], message = p[3] }
  end
  list[#list + 1] = { type = "Ready", status = "True", reason = "KubeletReady",
    message = "kubelet is posting ready status" }
  for _, c in ipairs(down and list or {}) do
    c.status, c.reason, c.message = "Unknown", "NodeStatusUnknown", SILENT
  end
  return list
end

local function is_empty(x) return x == nil or next(x) == nil end

local function report(draft, ctx, down)
  local name, p, now = draft.metadata.name, ctx.params, conditions.now(ctx)
  if is_empty(draft("status.capacity")) then
    draft.status.capacity = { cpu = p.cpu, memory = p.memory, pods = tostring(p.pods),
      ["ephemeral-storage"] = "100Gi" }
  end
  if is_empty(draft("status.allocatable")) then
    draft.status.allocatable = kube.copy(draft.status.capacity)
  end
  if is_empty(draft("status.addresses")) then
    local n = tonumber(draft.metadata.uid:sub(1, 4), 16) or 0
    draft.status.addresses = { { type = "InternalIP", address = ("10.1.%d.%d"):format(n >> 8, n & 255) },
      { type = "Hostname", address = name } }
  end
  if (draft("status.nodeInfo.kubeletVersion") or "") == "" then
    draft.status.nodeInfo = { kubeletVersion = "v1.34.3", kubeProxyVersion = "", operatingSystem = "linux",
      architecture = "amd64", osImage = "kubelua", kernelVersion = "", bootID = "", machineID = name,
      systemUUID = name, containerRuntimeVersion = "simulated://1" }
  end
  draft.status.conditions = conditions.with(draft("status.conditions"), conditions_of(down), now)
end

local function renew(node, ctx)
  ctx:apply {
    apiVersion = "coordination.k8s.io/v1", kind = "Lease",
    metadata = { namespace = "kube-node-lease", name = node.metadata.name, ownerReferences = {
      { apiVersion = "v1", kind = "Node", name = node.metadata.name, uid = node.metadata.uid } } },
    spec = { holderIdentity = node.metadata.name, leaseDurationSeconds = LEASE_SECONDS,
      renewTime = os.date("!%Y-%m-%dT%H:%M:%S.000000Z", math.floor(ctx:now():unix())) },
  }
end

local nodes = kube.controller {
  name = "simulate-nodes",
  resource = NODE,
  params = {
    cpu = { type = "string", default = "8", doc = "the capacity of nodes that do not set it" },
    memory = { type = "string", default = "32Gi" },
    pods = { type = "integer", default = 110, min = 1 },
    heartbeat = { type = "duration", default = "10s", doc = "how often a lease is renewed" },
  },
  reconcile = function(node, ctx)
    if node("metadata.deletionTimestamp") then return end
    local down = node("metadata.annotations", DOWN) == "true"
    ctx:patch(node, function(draft) draft.spec.taints = taints_of(draft, down) end)
    ctx:patch_status(node, function(draft) report(draft, ctx, down) end)
    if down then return end
    renew(node, ctx)
    return ctx.params.heartbeat
  end,
}

-- Runs once: a user who deletes the last node wants none.
local cluster = kube.controller {
  name = "simulate-cluster",
  resource = "v1/Namespace",
  selector = { fields = "metadata.name=default" },
  reads = { NODE },
  params = {
    nodes = { type = "integer", default = 3, min = 0, max = 10000, doc = "how many to make if none exist" },
  },
  reconcile = function(_, ctx)
    if ctx.memo.made then return end
    local wanted = #ctx:list(NODE, { limit = 1 }) == 0 and ctx.params.nodes or 0
    for i = 1, wanted do
      local name = "node-" .. i
      ctx.try:create { kind = NODE, name = name, labels = {
        ["kubernetes.io/hostname"] = name, ["kubernetes.io/os"] = "linux", ["kubernetes.io/arch"] = "amd64",
        ["topology.kubernetes.io/region"] = "region-1",
        ["topology.kubernetes.io/zone"] = "zone-" .. (i - 1) % 3 + 1,
      } }
    end
    ctx.memo.made = true
  end,
}

return { nodes, cluster }
