-- report.lua - disagreements for people: grouped by resource and reason, the largest group first.

local fields = require "fields"
local sloconfig = require "sloconfig"

local M = {}

local SHOWN = 5 -- objects of a group

local function groups(list)
  local by_key, out = {}, {}
  for _, one in ipairs(list) do
    local key = one.name .. ", " .. one.reason
    if not by_key[key] then
      by_key[key] = { key = key }
      out[#out + 1] = by_key[key]
    end
    table.insert(by_key[key], one)
  end
  table.sort(out, function(a, b)
    if #a ~= #b then return #a > #b end
    return a.key < b.key
  end)
  return out
end

local function line(one)
  return ("  %s: there %s, here %s%s"):format(one.object, one.theirs or "none", one.ours or "none",
    one.why and "; " .. one.why or "")
end

-- list: { object, name, theirs, ours, reason, why }; compared: how many of `what` ("nodes") were.
function M.text(list, compared, what)
  local lines = { ("%s compared: %d, disagreements: %d"):format(what, compared, #list) }
  for _, group in ipairs(groups(list)) do
    lines[#lines + 1] = ("%s: %d"):format(group.key, #group)
    for i = 1, math.min(#group, SHOWN) do lines[#lines + 1] = line(group[i]) end
    if #group > SHOWN then lines[#lines + 1] = ("  and %d more"):format(#group - SHOWN) end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- Writes the ConfigMap `name`: the report, and what stands beside it in `more`, { [entry] = text }.
function M.write(ctx, name, text, more)
  ctx:apply { apiVersion = "v1", kind = "ConfigMap",
    data = fields.merge(more or {}, { ["report.txt"] = text }),
    metadata = { namespace = sloconfig.NAMESPACE, name = name } }
end

return M
