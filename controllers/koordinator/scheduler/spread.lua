-- spread.lua - PodTopologySpread: similar pods spread evenly over domains. A domain is the set of nodes with
-- one value of the label topologyKey.
--
--   DoNotSchedule    refuses a node if count(domain) + 1 − lowest count of a domain > maxSkew
--   ScheduleAnyway   scores Σ count(domain) · log(domains + 2) + maxSkew − 1; the lowest is best

local fields = require "fields"
local nodefit = require "lib.nodefit"
local range = require("scheduler.scores").range
local selection = require "scheduler.selection"

local dig = fields.dig

local M = { name = "PodTopologySpread" }

local MAX = 100
local SKEWED = "node(s) didn't match pod topology spread constraints"

local function read(pod, how)
  local out = {}
  for _, one in ipairs(dig(pod, "spec", "topologySpreadConstraints") or {}) do
    if (one.whenUnsatisfiable or "DoNotSchedule") == how then
      out[#out + 1] = {
        key = one.topologyKey,
        skew = one.maxSkew or 1,
        domains = one.minDomains or 1,
        selects = selection.labels(one.labelSelector, pod, one.matchLabelKeys),
        any_node = one.nodeAffinityPolicy == "Ignore",
        untainted = one.nodeTaintsPolicy == "Honor",
        count = {},
      }
    end
  end
  return out
end

local function has_all(constraints, info)
  for _, one in ipairs(constraints) do
    if selection.label(info, one.key) == nil then return false end
  end
  return true
end

-- Whether the pods of a node count for a constraint.
local function counts(one, pod, info)
  return (one.any_node or nodefit.selected(pod, info.node))
    and not (one.untainted and nodefit.repelling(pod, info.node))
end

local function count(constraints, pod, info)
  if not has_all(constraints, info) then return end
  for _, one in ipairs(constraints) do
    if counts(one, pod, info) then
      local value, n = selection.label(info, one.key), 0
      for _, entry in pairs(info.pods) do
        local other = entry.pod
        if other.metadata.namespace == pod.metadata.namespace and other.metadata.deletionTimestamp == nil
          and one.selects(dig(other, "metadata", "labels") or {}) then
          n = n + 1
        end
      end
      one.count[value] = (one.count[value] or 0) + n
    end
  end
end

local function finish(constraints, pod)
  for _, one in ipairs(constraints) do
    one.size, one.least = 0, math.huge
    for _, n in pairs(one.count) do one.size, one.least = one.size + 1, math.min(one.least, n) end
    if one.size < one.domains or one.least == math.huge then one.least = 0 end
    one.self = one.selects(dig(pod, "metadata", "labels") or {}) and 1 or 0
  end
end

function M.prefilter(pod, cycle)
  local mine = { hard = read(pod, "DoNotSchedule"), soft = read(pod, "ScheduleAnyway") }
  cycle.spread = mine
  if #mine.hard + #mine.soft == 0 then return nil end
  cycle.unlike = true
  for _, info in ipairs(cycle.infos) do
    count(mine.hard, pod, info)
    count(mine.soft, pod, info)
  end
  finish(mine.hard, pod)
  finish(mine.soft, pod)
  return nil
end

function M.agrees(_, cycle) return #cycle.spread.hard == 0 end

function M.filter(_, info, cycle)
  for _, one in ipairs(cycle.spread.hard) do
    local value = selection.label(info, one.key)
    if value == nil then return { SKEWED .. " (missing required label)" } end
    if (one.count[value] or 0) + one.self - one.least > one.skew then return { SKEWED } end
  end
  return nil
end

function M.silent(_, cycle) return #cycle.spread.soft == 0 end

function M.score(_, info, cycle)
  local sum = 0.0
  for _, one in ipairs(cycle.spread.soft) do
    local value = selection.label(info, one.key)
    if value ~= nil then sum = sum + (one.count[value] or 0) * math.log(one.size + 2) + one.skew - 1 end
  end
  return math.floor(sum + 0.5)
end

function M.normalize(scores)
  local least, most = range(scores)
  for name, n in pairs(scores) do scores[name] = most > 0 and MAX * (most + least - n) // most or MAX end
end

return M
