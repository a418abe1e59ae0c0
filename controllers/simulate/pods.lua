-- pods.lua - plays the kubelet for pods that have a node: they start, become ready, run to their end, and go
-- when they are deleted. Nothing runs in them. Annotations of a pod say how it fares:
--
--   simulate.kubelua.dev/ready-after: 5s     from its start to readiness (param readyAfter)
--   simulate.kubelua.dev/runs-for: 1m        until its containers end (param runsFor), unless its
--                                            restartPolicy is Always
--   simulate.kubelua.dev/exit-code: "1"      with which they end (0)
--   simulate.kubelua.dev/waits: ErrImagePull its containers never start, for this reason

local kube = require "kubelua"
local conditions = require "lib.conditions"

local POD, NODE = "v1/Pod", "v1/Node"
local PREFIX = "simulate.kubelua.dev/"
-- Addresses are of 10.244.0.0/14, which is apart from those of Services.
local FIRST, COUNT = 10 << 24 | 244 << 16, 1 << 18

local function said(pod, name) return pod("metadata.annotations", PREFIX .. name) end

local function duration(pod, ctx, name, otherwise)
  local text = said(pod, name)
  local ok, seconds = pcall(kube.duration, text or otherwise)
  if ok then return seconds end
  ctx:warn("BadAnnotation", "%s%s: %q is not a duration such as 5s; it counts as %s", PREFIX, name, text,
    otherwise)
  return kube.duration(otherwise)
end

local function address(pod, ctx)
  local at = tonumber(pod.metadata.uid:gsub("-", ""):sub(1, 8), 16) or 0
  local text
  repeat
    local n = FIRST + at % (COUNT - 2) + 1
    text = ("%d.%d.%d.%d"):format(n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255)
    at = at + 1
  until #ctx:list(POD, { index = "address", value = text, limit = 1 }) == 0
  return text
end

-- ---------------------------------------------------------------- how it is with a pod at a moment

-- { phase, ready, state = of its containers, restarts, again = seconds until something changes }
local function course(pod, ctx, started)
  local now = ctx:now():unix()
  local since = now - kube.time(started):unix()
  local waits = said(pod, "waits")
  if waits then
    return { phase = "Pending", ready = false, state = { waiting = { reason = waits } }, restarts = 0 }
  end
  local policy = pod("spec.restartPolicy")
  local ready_after = duration(pod, ctx, "ready-after", ctx.params.readyAfter)
  local code = math.tointeger(tonumber(said(pod, "exit-code") or 0)) or 0
  local run = duration(pod, ctx, "runs-for", ctx.params.runsFor)
  local ends = policy ~= "Always" and since >= run
  local restarts = 0
  if ends and policy == "OnFailure" and code ~= 0 then
    restarts = run > 0 and since // run | 0 or 1
    ends = false
  end
  if ends then
    local state = { exitCode = code, reason = code == 0 and "Completed" or "Error", startedAt = started,
      finishedAt = conditions.now(ctx) }
    return { phase = code == 0 and "Succeeded" or "Failed", ready = false, state = { terminated = state },
      restarts = 0 }
  end
  local ready = since >= ready_after
  local again = not ready and ready_after - since or nil
  if policy ~= "Always" then
    again = math.min(again or math.huge, math.max(run * (restarts + 1) - since, 0.01))
  end
  return { phase = "Running", ready = ready, state = { running = { startedAt = started } },
    restarts = restarts, again = again }
end

-- ---------------------------------------------------------------- its status

local function statuses(pod, containers, state, ready, restarts)
  local list = {}
  for i, c in ipairs(containers or {}) do
    local image, there = c("image") or "", not state.waiting
    list[i] = { name = c.name, image = image, imageID = there and "simulated://" .. image or "",
      containerID = there and "simulated://" .. kube.hash { pod.metadata.uid, c.name, restarts } or nil,
      ready = ready, started = state.running ~= nil, restartCount = restarts, state = state }
  end
  return kube.array(list)
end

local function host_of(node)
  for _, a in ipairs(node and node("status.addresses") or {}) do
    if a.type == "InternalIP" then return a.address end
  end
  return "10.1.0.1"
end

local function gates_open(pod)
  for _, gate in ipairs(pod("spec.readinessGates") or {}) do
    if not conditions.holds(pod, gate.conditionType) then return false end
  end
  return true
end

local function report(draft, pod, ctx, started, c, node)
  local now, status = conditions.now(ctx), draft.status
  local done = c.phase == "Succeeded"
  local why = done and "PodCompleted" or not c.ready and "ContainersNotReady" or nil
  local up = node == nil or conditions.holds(node, "Ready")
  local ready = c.ready and up and gates_open(pod)
  status.phase, status.startTime = c.phase, started
  status.hostIP = pod("status.hostIP") or host_of(node)
  status.hostIPs = { { ip = status.hostIP } }
  if not c.state.waiting and pod("status.podIP") == nil then
    status.podIP = pod("spec.hostNetwork") and status.hostIP or address(pod, ctx)
    status.podIPs = { { ip = status.podIP } }
  end
  if pod("spec.initContainers") then
    local over = { exitCode = 0, reason = "Completed", startedAt = started, finishedAt = started }
    status.initContainerStatuses = statuses(pod, pod.spec.initContainers,
      c.state.waiting and c.state or { terminated = over }, not c.state.waiting, 0)
  end
  status.containerStatuses = statuses(pod, pod.spec.containers, c.state, c.ready, c.restarts)
  local function yes(x) return x and "True" or "False" end
  status.conditions = conditions.with(draft("status.conditions"), {
    { type = "PodReadyToStartContainers", status = yes(c.phase == "Running") },
    { type = "Initialized", status = yes(not c.state.waiting), reason = done and why or nil },
    { type = "Ready", status = yes(ready), reason = why },
    { type = "ContainersReady", status = yes(c.ready), reason = why },
    { type = "PodScheduled", status = "True" },
  }, now)
end

local function ended(pod) return pod("status.phase") == "Succeeded" or pod("status.phase") == "Failed" end

return kube.controller {
  name = "simulate-pods",
  resource = POD,
  indexes = { address = "status.podIP", node = "spec.nodeName" },
  watches = { [NODE] = { via = "node", when = { "status.conditions" } } },
  params = {
    readyAfter = { type = "duration", default = "0s", doc = "from a pod's start to its readiness" },
    runsFor = { type = "duration", default = "1s", doc = "how long a pod runs that does not restart always" },
  },
  reconcile = function(pod, ctx)
    if (pod("spec.nodeName") or "") == "" then return end
    local node = ctx:get(NODE, pod.spec.nodeName)
    if node and not conditions.holds(node, "Ready") and not ended(pod) then
      -- nobody reports; the node lifecycle controller says that much
      ctx:patch_status(pod, function(draft)
        draft.status.conditions = conditions.with(draft.status.conditions,
          { { type = "Ready", status = "False", reason = "NodeNotReady" } }, conditions.now(ctx))
      end)
      return
    end
    if pod("metadata.deletionTimestamp") then
      ctx:delete(POD, ctx.key, { grace = 0, uid = pod.metadata.uid })
      return
    end
    if ended(pod) then return end
    local started = pod("status.startTime") or conditions.now(ctx)
    local c = course(pod, ctx, started)
    ctx:patch_status(pod, function(draft) report(draft, pod, ctx, started, c, node) end)
    return c.again
  end,
}
