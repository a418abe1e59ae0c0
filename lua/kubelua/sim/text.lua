-- text.lua - results of simulations for a terminal and for programs: the table, CSV, JSON lines.

local core = require "kubelua.core"
local measure = require "kubelua.sim.measure"
local sweep = require "kubelua.sim.sweep"

local M = {}

local SPARKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
local SPARK_WIDTH = 48
-- With more settings than this, each is a row.
local COLUMNS_MAX = 5

--- A number for people, with 3 significant digits.
function M.number(x)
  if x == 0 then return "0" end
  local size = math.abs(x)
  if size >= 100 then return ("%.0f"):format(x) end
  if size >= 10 then return ("%.1f"):format(x) end
  if size >= 0.01 then return ("%.2f"):format(x) end
  return ("%.2g"):format(x)
end

local function shown(s)
  return s.half > 0 and ("%s ±%s"):format(M.number(s.mean), M.number(s.half)) or M.number(s.mean)
end

--- A series as a line of small bars.
---@param rows table[]
---@param name string
function M.spark(rows, name)
  local out, most = {}, 0
  for _, r in ipairs(rows) do most = math.max(most, r[name] or 0) end
  local n = math.min(SPARK_WIDTH, #rows)
  for k = 1, n do
    local first, last, sum = (k - 1) * #rows // n + 1, k * #rows // n, 0
    for i = first, last do sum = sum + (rows[i][name] or 0) end
    local level = most > 0 and sum / (last - first + 1) / most or 0
    out[k] = SPARKS[math.max(1, math.min(8, (level * 8 + 0.5) // 1 | 0))]
  end
  return table.concat(out), most
end

local function width(text) return utf8.len(text) or #text end
local function pad(text, n) return text .. (" "):rep(n - width(text)) end
local function left(text, n) return (" "):rep(n - width(text)) .. text end

local function print_table(lines, out)
  local widths = {}
  for _, line in ipairs(lines) do
    for c, cell in ipairs(line) do widths[c] = math.max(widths[c] or 0, width(cell)) end
  end
  for _, line in ipairs(lines) do
    local cells = {}
    for c, cell in ipairs(line) do cells[c] = c == 1 and pad(cell, widths[c]) or left(cell, widths[c]) end
    out[#out + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
end

local MARK = { better = " +", worse = " -", [""] = "" }

local function by_measure(report, out)
  local lines = { { "" } }
  for _, v in ipairs(report.variants) do lines[1][#lines[1] + 1] = v.label end
  for _, m in ipairs(report.measures) do
    local line = { ("%s (%s)"):format(m[1], m[2]) }
    for k, v in ipairs(report.variants) do
      local mark = k > 1 and MARK[sweep.verdict(m[1], report.variants[1].sums[m[1]], v.sums[m[1]])] or ""
      line[#line + 1] = shown(v.sums[m[1]]) .. mark
    end
    lines[#lines + 1] = line
  end
  print_table(lines, out)
end

local SHORT = { "batch_used", "batch_lent", "violation", "suppressed", "evictions", "wait_p99", "changes",
  "writes" }

local function short(report)
  local out = { report.goal }
  for _, name in ipairs(SHORT) do
    if name ~= report.goal then out[#out + 1] = name end
  end
  for _, l in ipairs(report.limits) do
    local has = false
    for _, name in ipairs(out) do has = has or name == l.name end
    if not has then out[#out + 1] = l.name end
  end
  return out
end

local function by_setting(report, out)
  local lines, names = { { "" } }, short(report)
  for _, name in ipairs(names) do lines[1][#lines[1] + 1] = name end
  for k, v in ipairs(report.variants) do
    local line = { (v.front and "* " or "  ") .. v.label }
    for _, name in ipairs(names) do
      local mark = k > 1 and MARK[sweep.verdict(name, report.variants[1].sums[name], v.sums[name])] or ""
      line[#line + 1] = shown(v.sums[name]) .. mark
    end
    lines[#lines + 1] = line
  end
  print_table(lines, out)
  out[#out + 1] = ("(* no other variant has %s %s at less %s)"):format(
    measure.of(report.goal)[3], report.goal, report.risk)
end

-- The limits that a setting breaks, and in how many seeds.
local function breaks(report, v)
  local said = {}
  for _, l in ipairs(report.limits) do
    if v.broken[l.text] then
      said[#said + 1] = ("breaks %s: %s, kept by %d of %d seeds"):format(l.text, shown(v.sums[l.name]),
        sweep.kept(v, l), report.seeds)
    end
  end
  return table.concat(said, "; ")
end

-- The settings ordered by the goal; those that break the budget are last.
local function ranking(report, out)
  local lines, remarks, rows = { { "", report.goal, report.risk } }, { "" }, {}
  for i, r in ipairs(report.ranking) do
    local v = r.variant
    remarks[i + 1] = not r.keeps and "  " .. breaks(report, v)
      or r.tied and "  no significant difference from the one above" or ""
    local place = ("%s%2s "):format(v.front and "* " or "  ", r.keeps and tostring(i) or "-")
    lines[#lines + 1] = { place .. v.label, shown(v.sums[report.goal]), shown(v.sums[report.risk]) }
  end
  out[#out + 1] = ("ranking by %s, within the budget:"):format(report.goal)
  print_table(lines, rows)
  for i, row in ipairs(rows) do out[#out + 1] = row .. remarks[i] end
  out[#out + 1] = ("* Pareto front: no other has %s %s at less %s%s"):format(measure.of(report.goal)[3],
    report.goal, report.risk, report.seeds > 1 and "" or "; only one seed: --seeds N shows the errors")
end

local function series(report, out)
  local rows = report.variants[1].first.rows
  out[#out + 1] = ("use over %s, of %s:"):format(report.span, report.variants[1].label)
  for _, s in ipairs { { "prod", "prod pods" }, { "batch", "batch jobs" }, { "lent", "lent to batch" } } do
    local bars, most = M.spark(rows, s[1])
    out[#out + 1] = ("  %-14s %s  most %s cores"):format(s[2], bars, M.number(most))
  end
end

local function troubles(report, out)
  local first = report.variants[1].first
  for _, f in ipairs(first.failed) do
    out[#out + 1] = ("! %s failed on %s: %s"):format(f.controller, f.key, f.message or "")
  end
  for i, l in ipairs(first.logs) do
    if i <= 5 then out[#out + 1] = "! " .. l end
  end
  local left_out = {}
  for kind, n in pairs(first.left_out) do left_out[#left_out + 1] = ("%s (%d)"):format(kind, n) end
  table.sort(left_out)
  if #left_out > 0 then
    out[#out + 1] = "left out of the snapshot, since they have no definition or are not simulated: "
      .. table.concat(left_out, ", ")
  end
  if not first.reports then
    out[#out + 1] = "nodes report nothing: NodeMetric has no definition (--crds)"
  end
end

--- The report for a terminal.
---@return string
function M.report(report)
  local out = {}
  out[#out + 1] = report.title
  out[#out + 1] = ""
  if #report.variants > COLUMNS_MAX then by_setting(report, out) else by_measure(report, out) end
  out[#out + 1] = ""
  if #report.variants > 1 then
    out[#out + 1] = ("compared with %q: + better, - worse (significant)")
      :format(report.variants[1].label)
    for k in ipairs(report.variants) do out[#out + 1] = sweep.saved_words(report.variants, k) end
  end
  series(report, out)
  troubles(report, out)
  for _, l in ipairs(report.limits) do
    for _, v in ipairs(report.variants) do
      if #report.variants == 1 and v.broken[l.text] then
        out[#out + 1] = ("NOT KEPT: %s, it is %s"):format(l.text, shown(v.sums[l.name]))
      end
    end
  end
  if #report.limits > 0 and #report.variants > 1 then ranking(report, out) end
  if #report.limits > 0 and report.best then
    out[#out + 1] = ("best within the budget: %s (%s %s)"):format(report.best.label, report.goal,
      shown(report.best.sums[report.goal]))
  elseif #report.limits > 0 then
    out[#out + 1] = "no setting keeps the budget"
  end
  return table.concat(out, "\n") .. "\n"
end

-- ---------------------------------------------------------------- for programs

local function csv(cell)
  cell = tostring(cell)
  return cell:find '[",\r\n]' and '"' .. cell:gsub('"', '""') .. '"' or cell
end

local function line(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = csv(math.type(x) == "float" and ("%.10g"):format(x) or x) end
  return table.concat(out, ",") .. "\n"
end

--- One line for each setting: name, mean and half of the 95 % interval of each number.
function M.summary_csv(report)
  local head = { "setting" }
  for _, m in ipairs(report.measures) do head[#head + 1], head[#head + 2] = m[1], m[1] .. "_ci" end
  local out = { line(head) }
  for _, v in ipairs(report.variants) do
    local row = { v.label }
    for _, m in ipairs(report.measures) do
      row[#row + 1], row[#row + 2] = v.sums[m[1]].mean, v.sums[m[1]].half
    end
    out[#out + 1] = line(row)
  end
  return table.concat(out)
end

--- One line for each setting and moment, of its first seed.
function M.series_csv(report)
  local head = { "setting" }
  for _, name in ipairs(measure.ROW) do head[#head + 1] = name end
  local out = { line(head) }
  for _, v in ipairs(report.variants) do
    for _, r in ipairs(v.first.rows) do
      local row = { v.label }
      for _, name in ipairs(measure.ROW) do row[#row + 1] = r[name] or 0 end
      out[#out + 1] = line(row)
    end
  end
  return table.concat(out)
end

--- The ranking, for programs.
---@return table[]
function M.ranked(report)
  local out = {}
  for i, r in ipairs(report.ranking) do
    local broken = {}
    for _, l in ipairs(report.limits) do
      if r.variant.broken[l.text] then
        broken[#broken + 1] = { limit = l.text, kept = sweep.kept(r.variant, l), seeds = report.seeds }
      end
    end
    out[i] = { setting = r.variant.label, keeps = r.keeps, front = r.variant.front, tied = r.tied or false,
      broken = core.array(broken) }
  end
  return out
end

--- The result of each setting and seed.
---@return table[]
function M.results(report)
  local out = {}
  for _, v in ipairs(report.variants) do
    for _, r in ipairs(v.results) do
      out[#out + 1] = { setting = v.label, seed = r.seed, sums = r.sums,
        controllers = core.array(r.controllers) }
    end
  end
  return out
end

--- The same as JSON lines.
---@return string
function M.json_lines(report)
  local out = {}
  for i, r in ipairs(M.results(report)) do out[i] = core.encode(core.value(r, "a result")) .. "\n" end
  return table.concat(out)
end

return M
