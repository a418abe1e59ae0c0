-- revoke.lua - evicts pods of a quota that exceeds its runtime for too long: when, and which.

local kube = require "kubelua"
local fields = require "fields"
local keys = require "elasticquota.keys"
local lists = require "lib.lists"

local M = {}

-- A step of one quota's monitor. since: when it was last seen within its runtime (nil: never checked), in
-- seconds. Returns the next `since`, and whether to evict pods now, which restarts the wait.
function M.watch(since, used, runtime, now, delay)
  if since == nil or lists.within(used, runtime) then return now, false end
  if now - since > delay then return now, true end
  return since, false
end

local function started(pod)
  local time = fields.dig(pod, "status", "startTime")
  return time and kube.time(time):unix() or math.huge
end

-- The least important first: by priority, then the last started. Names break ties, where Koordinator's order
-- is random.
local function by_importance(pods)
  local sorted = {}
  for i, pod in ipairs(pods) do
    sorted[i] = {
      pod = pod,
      request = lists.of(kube.requests(pod)),
      priority = fields.dig(pod, "spec", "priority") or 0,
      started = started(pod),
    }
  end
  table.sort(sorted, function(a, b)
    if a.priority ~= b.priority then return a.priority < b.priority end
    if a.started ~= b.started then return a.started > b.started end
    return a.pod.metadata.name < b.pod.metadata.name
  end)
  return sorted
end

-- The pods to evict among those of the quota: the least important are set aside until the rest fits; then the
-- more important of those set aside are put back as long as they fit, too.
--
-- As in Koordinator, each step compares only the resources that its pod requests; others are not compared
-- again afterwards.
function M.victims(pods, used, runtime)
  local aside = {}
  for _, entry in ipairs(by_importance(pods)) do
    if lists.within(used, runtime) then break end
    if fields.label(entry.pod, keys.preemptible) ~= "false" then
      used = lists.mask(lists.sub(used, entry.request), entry.request)
      table.insert(aside, entry)
    end
  end

  local out = {}
  if not lists.within(used, runtime) then
    for i, entry in ipairs(aside) do out[i] = entry.pod end
    return out
  end
  for i = #aside, 1, -1 do
    local entry = aside[i]
    used = lists.mask(lists.add(used, entry.request), entry.request)
    if not lists.within(used, runtime) then
      used = lists.sub(used, entry.request)
      table.insert(out, entry.pod)
    end
  end
  return out
end

return M
