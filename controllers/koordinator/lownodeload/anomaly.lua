-- anomaly.lua - a node counts as overloaded only when it was seen so several times in a row. The states are
-- plain tables, so that they can be remembered.
--
--   ok --more than consecutiveAbnormalities bad looks in a row--> anomaly
--   anomaly --timeout, or more than consecutiveNormalities good looks in a row--> ok

local kube = require "kubelua"

local M = {}

local KEPT = "5m" -- after the last bad look, as Koordinator's detector cache

local function begin(entry, state, now, condition)
  entry.state, entry.good, entry.bad = state, 0, 0
  entry.expires = state == "anomaly" and now + kube.duration(condition.timeout) or nil
end

local function settle(entry, now, condition)
  if entry.state == "anomaly" and (entry.expires < now or entry.good > condition.consecutiveNormalities) then
    begin(entry, "ok", now, condition)
  end
end

-- One look at a node. Changes the entry; returns whether the node counts as overloaded. The condition of an
-- entry's first look stays: pools share the entries, and a node may be in several.
function M.mark(entry, good, now, first_condition)
  entry.condition = entry.condition or first_condition
  local condition = entry.condition
  if entry.state == nil then begin(entry, "ok", now, condition) end
  settle(entry, now, condition)
  entry.good, entry.bad = good and entry.good + 1 or 0, good and 0 or entry.bad + 1
  if entry.state == "ok" and entry.bad > condition.consecutiveAbnormalities then
    begin(entry, "anomaly", now, condition)
  end
  settle(entry, now, condition)
  return entry.state == "anomaly"
end

-- The `loads` that count as overloaded. entries: { [node name] = entry }; kept: how long after its last bad
-- look an entry is remembered, nil: KEPT. Without a condition, or with one that is met at the first look, all
-- do.
---@param kept (string|number)?
function M.filter(loads, entries, now, condition, kept)
  if condition == nil or condition.consecutiveAbnormalities == 1 then
    return table.move(loads, 1, #loads, 1, {})
  end
  local out, seconds = {}, kube.duration(kept or KEPT)
  for _, load in ipairs(loads) do
    local entry = entries[load.name]
    if entry == nil or now - entry.seen > seconds then entry = {} end
    if M.mark(entry, false, now, condition) then out[#out + 1] = load end
    entry.seen = now
    entries[load.name] = entry
  end
  return out
end

-- Records that a node is fine again.
function M.reset(load, entries)
  local entry = entries[load.name]
  if entry and entry.state == "anomaly" then
    entry.state, entry.good, entry.bad, entry.expires = "ok", 0, 0, nil
  end
end

-- Counts a good look for nodes from which pods were evicted.
function M.eased(loads, entries, now)
  for _, load in ipairs(loads) do
    if entries[load.name] then M.mark(entries[load.name], true, now) end
  end
end

return M
