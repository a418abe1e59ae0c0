-- pods.lua - the state of a workload's pods.

local kube = require "kubelua"
local conditions = require "lib.conditions"

local M = {}

function M.ended(pod) return pod("status.phase") == "Succeeded" or pod("status.phase") == "Failed" end

--- Whether a pod has neither ended nor is being deleted.
function M.is_active(pod) return not M.ended(pod) and not pod("metadata.deletionTimestamp") end

--- Deletes this very pod, not a later one of the same name.
function M.delete(pod, ctx)
  ctx:delete("v1/Pod", pod.metadata.namespace, pod.metadata.name, { uid = pod.metadata.uid })
end

function M.is_ready(pod) return conditions.holds(pod, "Ready") end

--- Whether it has been ready for `seconds`; if not, but ready, in how many it will have been.
function M.is_available(pod, ctx, seconds)
  if not M.is_ready(pod) then return false end
  local since = conditions.find(pod, "Ready").lastTransitionTime
  local left = (seconds or 0) > 0 and seconds - (ctx:now() - kube.time(since)) or 0
  if left <= 0 then return true end
  return false, left
end

--- How many of a list are active, ready and available, and in how many seconds that changes by itself.
function M.count(list, ctx, min_ready)
  local n = { active = 0, ready = 0, available = 0 }
  for _, pod in ipairs(list) do
    if M.is_active(pod) then
      local available, left = M.is_available(pod, ctx, min_ready)
      n.active = n.active + 1
      if M.is_ready(pod) then n.ready = n.ready + 1 end
      if available then n.available = n.available + 1 end
      if left then n.again = math.min(n.again or math.huge, left) end
    end
  end
  return n
end

--- Every object of a kind, as keys: for `watches`.
function M.every(kind)
  return function(_, ctx)
    local keys = {}
    for o in ctx:each(kind) do
      local namespace = o("metadata.namespace")
      keys[#keys + 1] = (namespace and namespace .. "/" or "") .. o.metadata.name
    end
    return keys
  end
end

return M
