-- explain.lua - kubelua explain: the contents of scripts' caches on a cluster, their size, and ways to reduce
-- it.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local explain = require "kubelua.explain"
local tokens = require "kubelua.reader.tokens"

local M = {}

M.options = {
  { "--for", "DURATION", "how long to count events (10s)", type = "duration" },
  { "--namespace", "NAME", "as kubelua run --namespace: look at this namespace only", brief = "-n" },
  { "--sync-timeout", "DURATION", "how long the caches may take to fill (60s)", type = "duration" },
  common.OUTPUT,
}

-- A text without its comments.
local function words(text)
  local out = {}
  for i, token in ipairs(tokens.of(text) or {}) do out[i] = token.value end
  return table.concat(out, " ")
end

local function script_of(program)
  local texts, list = {}, program.controllers
  for i, source in ipairs(program.sources) do texts[i] = words(source.text) end
  table.sort(list, function(a, b) return a.name < b.name end)
  return { controllers = list, text = table.concat(texts, "\n") }
end

local UNITS = { "", "Ki", "Mi", "Gi" }
local function bytes(n)
  local unit = 1
  while n >= 1024 and unit < #UNITS do n, unit = n / 1024, unit + 1 end
  return (unit == 1 and "%d%s" or n < 10 and "%.1f%s" or "%.0f%s"):format(unit == 1 and n // 1 or n,
    UNITS[unit])
end

local function percent(share) return ("%.0f %%"):format(share * 100) end

local function used_by(w)
  local out = {}
  for i, u in ipairs(w.used_by) do out[i] = ("%s (%s)"):format(u.controller, table.concat(u.roles, ", ")) end
  return table.concat(out, "; ")
end

local function table_of(reports)
  local rows, wide = { { "INFORMER", "OBJECTS", "BYTES", "EVENTS/S", "USED BY" } }, {}
  for _, r in ipairs(reports) do
    rows[#rows + 1] = { r.name, tostring(r.objects), bytes(r.bytes), ("%.1f"):format(r.events_per_second),
      used_by(r) }
  end
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do wide[i] = math.max(wide[i] or 0, #cell) end
  end
  for _, row in ipairs(rows) do
    local line = {}
    for i, cell in ipairs(row) do
      line[i] = i == 1 and cell .. (" "):rep(wide[i] - #cell) or i < 5 and (" "):rep(wide[i] - #cell) .. cell
        or cell
    end
    print(table.concat(line, "  "))
  end
end

local function details(r)
  if r.problem then print(("\n%s is not there: %s"):format(r.name, r.problem)) end
  if r.objects == 0 then return end
  local names, shares = {}, {}
  for name in pairs(r.parts) do names[#names + 1] = name end
  table.sort(names, function(a, b) return r.parts[a] > r.parts[b] or r.parts[a] == r.parts[b] and a < b end)
  for i, name in ipairs(names) do shares[i] = ("%s %s"):format(name, percent(r.parts[name])) end
  print(("\n%s: %s"):format(r.name, table.concat(shares, ", ")))
  for _, s in ipairs(r.saves) do
    print(("  %s: %s would keep about %s, %s instead of %s"):format(s.why, s.how, percent(s.share),
      bytes(r.bytes * s.share), bytes(r.bytes)))
  end
  if #r.by_namespace > 0 then
    local parts = {}
    for i, n in ipairs(r.by_namespace) do parts[i] = ("%s %s"):format(n.name, percent(n.share)) end
    print("  objects by namespace: " .. table.concat(parts, ", ") .. "; `namespaces` keeps those it names")
  end
end

local function print_json(reports, seconds)
  for _, r in ipairs(reports) do
    for _, name in ipairs { "keep", "namespaces", "used_by", "saves", "by_namespace" } do
      if r[name] then r[name] = core.array(r[name]) end
    end
    for _, u in ipairs(r.used_by) do u.roles = core.array(u.roles) end
    r.parts = next(r.parts) == nil and core.object {} or r.parts
  end
  common.print_json { seconds = seconds, informers = core.array(reports) }
end

function M.run(env)
  local o = env.options
  if #env.words == 0 then common.usage "name at least one script: kubelua explain SCRIPT.lua" end
  local seconds = o["for"] or 10
  if seconds <= 0 then common.usage "--for must be above zero" end
  local scripts = {}
  for i, program in ipairs(common.programs(env, common.scripts(env.words))) do
    scripts[i] = script_of(program)
  end
  local wants = explain.wants(scripts, o.namespace)
  if #wants == 0 then error("these scripts have no controller", 0) end
  local client = common.connect(env)
  local set <close> = explain.begin(client, wants)
  set:wait_synced(o.sync_timeout or 60)
  local before = {}
  for i, w in ipairs(wants) do before[i] = explain.sum(w, "events") end
  local left = seconds
  while left > 0 do left = core.rest(left) end
  local reports, good = {}, true
  for i, w in ipairs(wants) do
    reports[i] = explain.report(w, explain.sum(w, "events") - before[i], seconds)
    good = good and not reports[i].problem
  end
  if common.wants_json(env) then
    print_json(reports, seconds)
  else
    table_of(reports)
    for _, r in ipairs(reports) do details(r) end
  end
  return good and 0 or 1
end

return M
