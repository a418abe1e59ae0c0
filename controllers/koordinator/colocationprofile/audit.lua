-- audit.lua - what profiles would make of pods that run: which differ from what they would be if they were
-- created now, and in what.

local fields = require "fields"
local mutate = require "colocationprofile.mutate"

local M = {}

local function walk(before, after, path, out)
  if type(before) ~= "table" or type(after) ~= "table" then
    if before ~= after then out[#out + 1] = path end
    return
  end
  local names = {}
  for _, side in ipairs { before, after } do
    for name in pairs(side) do names[name] = true end
  end
  for name in pairs(names) do
    local step = math.type(name) == "integer" and ("[%d]"):format(name)
      or name:find "[./]" and ("[%s]"):format(name) or "." .. name
    walk(before[name], after[name], path .. step, out)
  end
end

-- The paths in which two pods differ, sorted.
function M.differences(before, after)
  local out = {}
  for _, part in ipairs { "metadata", "spec" } do walk(before[part] or {}, after[part] or {}, part, out) end
  table.sort(out)
  return out
end

-- One pod against one profile: nil when the profile does not select it; else the paths that would change, or
-- nil and why when the profile cannot be applied.
function M.pod(profile, pod, namespace, priority_class)
  if #mutate.matching({ profile }, pod, namespace) == 0 then return nil end
  local before = fields.copy(pod)
  before.metadata.labels, before.metadata.annotations = before.metadata.labels or {},
    before.metadata.annotations or {}
  local after, why = mutate.mutate(before, { profile }, { priority_class = priority_class, once = true,
    draw = function() return 0 end })
  if not after then return nil, why end
  return M.differences(before, after)
end

-- The report of one profile: { matched = n, differ = { { pod = "ns/name", paths = {...} }, ... }, failed =
-- why or nil }, by pod. namespaces: name -> Namespace.
function M.report(profile, list, namespaces, priority_class)
  local out = { matched = 0, differ = {} }
  for _, pod in ipairs(list) do
    local paths, why = M.pod(profile, pod, namespaces[pod.metadata.namespace], priority_class)
    out.failed = out.failed or why
    if paths then
      out.matched = out.matched + 1
      if #paths > 0 then
        local key = pod.metadata.namespace .. "/" .. pod.metadata.name
        out.differ[#out.differ + 1] = { pod = key, paths = paths }
      end
    end
  end
  table.sort(out.differ, function(a, b) return a.pod < b.pod end)
  return out
end

local SHOWN = 3

-- The report as a sentence.
function M.text(report)
  if report.failed then return "cannot be applied: " .. report.failed end
  local text = ("%d of %d running pods differ from pods created under this profile"):format(#report.differ,
    report.matched)
  for i = 1, math.min(#report.differ, SHOWN) do
    local one = report.differ[i]
    local paths = table.concat(one.paths, ", ", 1, math.min(#one.paths, SHOWN))
    text = ("%s; %s in %s"):format(text, one.pod, paths)
    if #one.paths > SHOWN then text = ("%s and %d more"):format(text, #one.paths - SHOWN) end
  end
  return text
end

return M
