-- validate.lua - which pods may be: QoS and priority that go together, and what must not change. Each rule
-- returns a sentence in the words of Kubernetes' own validation, or nil.

local kube = require "kubelua"
local fields = require "fields"
local pods = require "pods"

local M = {}

local QOS, PRIORITY = "koordinator.sh/qosClass", "koordinator.sh/priority"
local RESERVES = "scheduling.koordinator.sh/reserve-pod"
local REQUESTS = "pod.spec.containers[*].resources.requests"

local FORBIDDEN = {
  BE = { none = true, ["koord-prod"] = true },
  LSR = { none = true, ["koord-mid"] = true, ["koord-batch"] = true, ["koord-free"] = true },
}

local function immutable(path, old, new)
  if old == new then return nil end
  return ('%s: Invalid value: "%s": field is immutable'):format(path, new or "")
end

local function is_zero(q) return q == nil or q:is_zero() end

local function batch_needs_be(pod, requests)
  if is_zero(requests["kubernetes.io/batch-cpu"]) and is_zero(requests["kubernetes.io/batch-memory"])
    or pods.raw_qos(pod) == "BE" then return nil end
  return ("labels.%s: Required value: must specify koordinator QoS BE with koordinator colocation resources")
    :format(QOS)
end

local function combination(pod)
  local qos, class = pods.raw_qos(pod), pods.raw_class(pod)
  if not FORBIDDEN[qos] or not FORBIDDEN[qos][class or "none"] then return nil end
  return ("Pod: Forbidden: %s=%s and priorityClass=%s cannot be used in combination"):format(QOS, qos,
    class or "")
end

local function whole_cpus(pod, requests)
  local qos, cpu = pods.raw_qos(pod), requests.cpu
  if qos ~= "LSR" and qos ~= "LSE" then return nil end
  if is_zero(cpu) then return REQUESTS .. ": Required value: LSR Pod must declare the requested CPUs" end
  if cpu:milli() % 1000 == 0 then return nil end
  return ('%s: Invalid value: "%s": the requested CPUs of LSR Pod must be integer'):format(REQUESTS,
    cpu:canonical())
end

-- What the scheduler marks as a Reservation's stand-in.
local function stand_in(pod)
  if fields.annotation(pod, RESERVES) == nil then return nil end
  return ("annotations.%s: Forbidden: cannot set in annotations"):format(RESERVES)
end

-- Every rule that a pod breaks. `old` is the pod before an update, or nil; settings.skip_priority lets the
-- sub-priority change.
function M.pod(pod, old, settings)
  local broken = {}
  local function rule(why) broken[#broken + 1] = why end
  rule(stand_in(pod))
  if old then
    rule(immutable("labels." .. QOS, pods.raw_qos(old), pods.raw_qos(pod)))
    rule(immutable("spec.priority", pods.raw_class(old), pods.raw_class(pod)))
    if not (settings and settings.skip_priority) then
      rule(immutable("labels." .. PRIORITY, fields.label(old, PRIORITY), fields.label(pod, PRIORITY)))
    end
  end
  local requests = kube.requests(pod)
  rule(batch_needs_be(pod, requests))
  rule(combination(pod))
  rule(whole_cpus(pod, requests))
  return broken
end

-- One text of several sentences, as Kubernetes joins them.
function M.text(broken)
  if #broken == 1 then return broken[1] end
  return "[" .. table.concat(broken, ", ") .. "]"
end

return M
