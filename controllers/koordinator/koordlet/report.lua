-- report.lua - the reactions of a node's agent as findings for people: a reason in one word, a sentence with
-- the numbers, and a fingerprint that changes with the action and not with each number.

local burst = require "koordlet.burst"
local evict = require "koordlet.evict"
local lists = require "lib.lists"
local suppress = require "koordlet.suppress"

local M = {}

local SHOWN = 3 -- pods in a sentence

local function names(list, key)
  local parts = {}
  for i = 1, math.min(#list, SHOWN) do parts[i] = key(list[i]) end
  local text = table.concat(parts, ", ")
  return #list > SHOWN and ("%s and %d more"):format(text, #list - SHOWN) or text
end

local function cores(milli) return ("%.2f"):format(milli / 1000) end

local function of_suppression(s)
  return { reason = "WouldSuppress", key = "suppress",
    message = ("BE pods use %s cores and may use %s (%s): they are suppressed"):format(cores(s.used),
      cores(s.limit), s.policy) }
end

local function of_eviction(task)
  local keys = {}
  for i, pod in ipairs(task.evicted) do keys[i] = pod.key end
  local who = #keys > 0 and names(task.evicted, function(pod) return pod.key end) or "no pod"
  return { reason = "WouldEvict", key = task.reaction .. " " .. table.concat(keys, " "),
    message = ("%s would evict %s to release %s: %s%s"):format(task.reaction, who, lists.show(task.release),
      task.why, task.enough and "" or "; that is not enough") }
end

local function of_burst(b)
  local overload = b.state == "overload"
  local function one(sum) return ("%s (to %s cores)"):format(sum.pod.key, cores(sum.ceiling // 100)) end
  local what = overload and "quotas of %s shrink to their limits" or "bursts of %s are open"
  return { reason = overload and "WouldEndBursts" or "MayBurst", key = "burst " .. b.state,
    message = ("%.0f%% of the shared processors are in use (%s): %s"):format(b.part * 100, b.state,
      what:format(names(b.pods, one))) }
end

-- node: as node.lua reads it; gates: { [reaction] = true }; upstream as in evict.lua. Returns a list of
-- { reason, message, key }. Bursting pods are reported only with the gate TellBurst.
function M.findings(node, gates, upstream)
  local out = {}
  local s = gates.BECPUSuppress and suppress.decide(node)
  if s and s.suppressed then out[#out + 1] = of_suppression(s) end
  local tasks, broken = evict.decide(node, s and s.limit or node.capacity.cpu, gates, upstream)
  for _, task in ipairs(tasks) do out[#out + 1] = of_eviction(task) end
  for _, reaction in ipairs(lists.names(broken)) do
    out[#out + 1] = { reason = "CannotWork", key = reaction,
      message = ("%s is enabled but has no effect: %s"):format(reaction, broken[reaction]) }
  end
  local b = gates.CPUBurst and burst.decide(node)
  if b and #b.pods > 0 and (b.state == "overload" or gates.TellBurst) then out[#out + 1] = of_burst(b) end
  return out
end

-- A text of the actions, to compare with the last one.
function M.fingerprint(findings)
  local keys = {}
  for i, finding in ipairs(findings) do keys[i] = finding.key end
  return table.concat(keys, "\n")
end

return M
