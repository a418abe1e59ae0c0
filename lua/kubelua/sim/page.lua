-- page.lua - the report as one HTML page that needs nothing else: verdict first, charts, what every number
-- means, and what is not modelled.

local measure = require "kubelua.sim.measure"
local script = require "kubelua.sim.page_script"
local svg = require "kubelua.sim.svg"
local sweep = require "kubelua.sim.sweep"
local text = require "kubelua.sim.text"

local M = {}

-- Colours, for light and dark, and what charts are drawn with: a chart in a file of its own has both, too.
local PALETTE = [[
:root{--paper:#fff;--ink:#1b1f24;--soft:#59636e;--rule:#d8dee4;--prod:#0072b2;--batch:#e69f00;--system:#999;
--lent:#009e73;--bad:#b5332a;--good:#0b6e4f;--other:#cc79a7;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6edf3;--soft:#9aa5b1;--rule:#303841;
--prod:#56b4e9;--batch:#e69f00;--system:#8b949e;--lent:#2cc295;--bad:#ff8d7d;--good:#58d6a2;--other:#e3a0c8}}
]]
local MARKS = [[
.tick{font:11px system-ui,sans-serif;fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}.line{fill:none;stroke-width:2}.band{fill-opacity:.2}
.heat{fill:var(--prod)}.dot{fill:var(--soft)}.front{fill:var(--lent)}
]]
local STYLE = PALETTE .. [[
@media print{:root{--paper:#fff;--ink:#000;--soft:#333;--rule:#aaa}section{break-inside:avoid}}
body{background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif;max-width:60rem;
margin:0 auto;padding:1rem}
h1,code,.keys{overflow-wrap:anywhere}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:1.8rem 0 .4rem}
p,li{max-width:44rem}code{font:13px ui-monospace,monospace}
.soft,caption{color:var(--soft)}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:9rem}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--prod)}
.better{color:var(--good)}.worse{color:var(--bad)}.better::after{content:" ▲"}.worse::after{content:" ▼"}
figure{margin:0;position:relative}figure:focus-visible{outline:2px solid var(--prod);outline-offset:2px}
.read{min-height:1.45em;margin:.2rem 0 0;font-size:13px;color:var(--soft)}
[data-why]{cursor:pointer}
.picked{stroke:var(--ink);stroke-width:2}.cross{stroke:var(--ink);stroke-dasharray:3 3}
.may{fill:var(--rule)}.uses{fill:var(--lent);fill-opacity:.45}.tick.on{fill:var(--ink)}
td button,li button{all:unset;cursor:pointer;text-decoration:underline}
td button:focus-visible,li button:focus-visible{outline:2px solid var(--prod)}
#why{position:fixed;inset:auto 0 0 0;max-height:45vh;overflow:auto;background:var(--paper);color:var(--ink);
border:0;border-top:2px solid var(--prod);margin:0;padding:.6rem 1rem;width:100%;max-width:none;
box-sizing:border-box}
#why pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.4 ui-monospace,monospace;margin:.4rem 0 0}
@media print{#why,.read{display:none}}
svg{width:100%;height:auto;display:block}
.keys{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:13px;color:var(--soft)}
.key i{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}
]] .. MARKS

local t = svg.text

local function shown(s)
  return s.half > 0 and ("%s ± %s"):format(text.number(s.mean), text.number(s.half)) or text.number(s.mean)
end

-- The keys that have an explanation, as a set.
local function told_of(result)
  local out = {}
  for _, one in ipairs(result.told or {}) do out[one.key] = true end
  return out
end

-- The explanations for the page's script, as JSON: { key: [[seconds, text], ...] }, in the order of keys.
local function told_json(list)
  local keys, texts = {}, {}
  for _, one in ipairs(list) do
    if not texts[one.key] then
      keys[#keys + 1], texts[one.key] = one.key, {}
    end
    table.insert(texts[one.key], ("[%.10g,%s]"):format(one.seconds, svg.json(one.text)))
  end
  table.sort(keys)
  for i, key in ipairs(keys) do keys[i] = ("%s:[%s]"):format(svg.json(key), table.concat(texts[key], ",")) end
  return ('<dialog id="why" aria-label="explanation"><button>close</button><pre></pre></dialog>\z
    <script id="told" type="application/json">{%s}</script>'):format(table.concat(keys, ","))
end

local function button(told, key, seconds)
  local why = svg.why(told, key, seconds)
  return why == "" and svg.text(key) or ("<button%s>%s</button>"):format(why, svg.text(key))
end

local function section(out, title, words, body)
  out[#out + 1] = ("<section><h2>%s</h2>"):format(t(title))
  if words then out[#out + 1] = ('<p class="soft">%s</p>'):format(t(words)) end
  out[#out + 1] = body .. "</section>"
end

-- Measures in rows, settings in columns; the first is what others are compared with.
local function verdicts(report)
  local out = { '<div class="scroll"><table><thead><tr><th></th>' }
  for _, v in ipairs(report.variants) do out[#out + 1] = ("<th>%s</th>"):format(t(v.label)) end
  out[#out + 1] = "</tr></thead><tbody>"
  for _, m in ipairs(report.measures) do
    out[#out + 1] = ('<tr><td title="%s">%s <span class="soft">%s</span></td>'):format(t(m[4]), t(m[1]),
      t(m[2]))
    for k, v in ipairs(report.variants) do
      local verdict = k > 1 and sweep.verdict(m[1], report.variants[1].sums[m[1]], v.sums[m[1]]) or ""
      out[#out + 1] = ('<td class="%s">%s</td>'):format(verdict, shown(v.sums[m[1]]))
    end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</tbody></table></div>"
  return table.concat(out)
end

-- What settings need less of.
local function saved(report)
  local out = {}
  for k in ipairs(report.variants) do
    local words = sweep.saved_words(report.variants, k)
    if words then out[#out + 1] = "<p>" .. t(words) .. ".</p>" end
  end
  return table.concat(out)
end

local COLUMNS = { "batch_used", "batch_lent", "utilization", "violation", "severity", "suppressed",
  "evictions",
  "wait_p99", "changes", "turns", "writes" }

local function settings_table(report)
  local out = { '<div class="scroll"><table class="sorts"><thead><tr><th><button>setting</button></th>' }
  for _, name in ipairs(COLUMNS) do out[#out + 1] = ("<th><button>%s</button></th>"):format(name) end
  out[#out + 1] = "</tr></thead><tbody>"
  for k, v in ipairs(report.variants) do
    out[#out + 1] = ("<tr><td>%s</td>"):format(t(v.label))
    for _, name in ipairs(COLUMNS) do
      local verdict = k > 1 and sweep.verdict(name, report.variants[1].sums[name], v.sums[name]) or ""
      out[#out + 1] = ('<td class="%s" data-v="%.6g">%s</td>'):format(verdict, v.sums[name].mean,
        shown(v.sums[name]))
    end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</tbody></table></div>"
  return table.concat(out)
end

local COLOURS = { "--lent", "--batch", "--prod", "--other", "--system" }

-- Of each node the mean use of the whole, in percent.
local function means(result)
  local out = {}
  for i, hours in ipairs(result.hours) do
    local sum = 0
    for _, x in ipairs(hours) do sum = sum + x end
    out[i] = #hours > 0 and sum / #hours or 0
  end
  return out
end

-- The bars that are shown, the largest first.
local BARS_MAX = 20

-- What each setting gives more or less than the first, with the interval over seeds.
local function sensitivity(report)
  local goal = report.goal
  local base, items = report.variants[1].sums[goal], {}
  for k = 2, #report.variants do
    local apart = {}
    for i, x in ipairs(report.variants[k].sums[goal].list) do apart[i] = x - base.list[i] end
    local d = sweep.spread(apart)
    items[#items + 1] = { label = report.variants[k].label, value = d.mean, half = d.half }
  end
  table.sort(items, function(a, b)
    if math.abs(a.value) ~= math.abs(b.value) then return math.abs(a.value) > math.abs(b.value) end
    return a.label < b.label
  end)
  return svg.bars(("change of %s by setting"):format(goal), measure.of(goal)[2],
    table.move(items, 1, BARS_MAX, 1, {}))
end

-- Nodes that are shown of those that differ most.
local NODES_MAX = 100

-- The mean use of each node under the first setting and under the last one.
local function by_node(report)
  local before, after = report.variants[1].first, report.variants[#report.variants].first
  local a, b, at, rows, told = means(before), means(after), {}, {}, told_of(before)
  for i, name in ipairs(after.nodes) do at[name] = b[i] end
  for i, name in ipairs(before.nodes) do
    if at[name] then rows[#rows + 1] = { name, a[i], at[name], at[name] - a[i] } end
  end
  table.sort(rows, function(x, y)
    if math.abs(x[4]) ~= math.abs(y[4]) then return math.abs(x[4]) > math.abs(y[4]) end
    return x[1] < y[1]
  end)
  local out = { '<div class="scroll"><table class="sorts"><thead><tr>' }
  for _, title in ipairs { "node", "first, %", "last, %", "difference" } do
    out[#out + 1] = ("<th><button>%s</button></th>"):format(title)
  end
  out[#out + 1] = "</tr></thead><tbody>"
  for k = 1, math.min(#rows, NODES_MAX) do
    local r = rows[k]
    local cell = '<td data-v="%.6g">%.1f</td>'
    local difference = ('<td data-v="%.6g">%+.1f</td>'):format(r[4], r[4])
    out[#out + 1] = ("<tr><td>%s</td>%s%s%s</tr>"):format(button(told, r[1], before.seconds),
      cell:format(r[2], r[2]), cell:format(r[3], r[3]), difference)
  end
  return table.concat(out) .. "</tbody></table></div>"
end

local function mean(rows, field)
  local sum = 0
  for _, r in ipairs(rows) do sum = sum + r[field] end
  return #rows > 0 and sum / #rows or 0
end

-- What teams may use and use, of the first setting.
local function teams(out, variant, told)
  local quotas = variant.first.quotas or {}
  if #quotas == 0 then return end
  local boxes, lines = {}, {}
  for k, q in ipairs(quotas) do
    boxes[k] = { name = q.name, parent = q.parent, used = mean(q.rows, "used"),
      runtime = mean(q.rows, "runtime") }
    if k <= #COLOURS then
      lines[k] = { rows = q.rows, low = "used", mid = "used", high = "runtime", label = q.name,
        colour = COLOURS[k] }
    end
  end
  section(out, "Teams", ("Of %s, means in cores: a box is as wide as the team's limit (its quota's \z
    runtime, else its max), and filled with its pods' requests."):format(variant.label),
    svg.icicle("teams by their limits", "cores", boxes, told))
  section(out, "Teams over time",
    "Cores that running pods request; the band is the rest of the team's limit.",
    svg.bands("cores of teams", "cores", variant.first.seconds, lines))
end

local function waiting(out, first, told)
  local items = {}
  for k, key in ipairs(first.waiting or {}) do
    items[k] = "<li>" .. button(told, key, first.seconds) .. "</li>"
  end
  if #items == 0 then return end
  section(out, "Pods that wait", ("Of %d at the end, the first %d."):format(first.sums.waiting, #items),
    "<ul>" .. table.concat(items) .. "</ul>")
end

--- The chart of what each setting gains, against its risk.
function M.gain(report)
  local points, goal, risk = {}, report.goal, report.risk
  for k, v in ipairs(report.variants) do
    points[k] = { x = v.sums[risk].mean, y = v.sums[goal].mean, label = v.label, front = v.front,
      first = k == 1 }
  end
  return svg.scatter("gain and risk of each setting", ("%s, %s"):format(risk, measure.of(risk)[2]),
    ("%s, %s"):format(goal, measure.of(goal)[2]), points)
end

--- A chart as a file of its own.
function M.picture(chart)
  return (chart:gsub("^<svg ([^>]*>)", function(rest)
    return ('<svg xmlns="http://www.w3.org/2000/svg" %s<style>%s%s</style>'):format(rest, PALETTE, MARKS)
  end)) .. "\n"
end

local function charts(out, report)
  local first = report.variants[1].first
  local told = told_of(first)
  section(out, "Where the cpu goes",
    ("For %s; the line is the total capacity."):format(report.variants[1].label),
    svg.stacked("cpu by its users", "cores", first.seconds, first.rows, {
      { field = "system", label = "nodes themselves", colour = "--system" },
      { field = "prod", label = "prod pods", colour = "--prod" },
      { field = "batch", label = "batch jobs", colour = "--batch" },
    }, { field = "capacity", label = "capacity", colour = "--ink" }))
  local lent = {}
  for k = 1, math.min(#report.variants, #COLOURS) do
    local v = report.variants[k]
    lent[k] = { rows = v.first.rows, low = k == 1 and "lent_p5" or nil, mid = "lent_p50", high = "lent_p95",
      label = v.label, colour = COLOURS[k] }
  end
  section(out, "Resources that a node lends to batch jobs",
    "The median node, and of the first setting the nodes from the lowest to the highest twentieth.",
    svg.bands("batch cpu lent by nodes", "cores", first.seconds, lent))
  section(out, "How full nodes are", "The median node and the range without the outer twentieths.",
    svg.bands("use of nodes", "%", first.seconds, {
      { rows = first.rows, low = "used_p5", mid = "used_p50", high = "used_p95",
        label = report.variants[1].label,
        colour = "--prod" } }))
  section(out, "Nodes by hour", ("Darker cells are fuller nodes.%s"):format(next(told)
    and " A click on a cell, or arrow keys and Enter, explains the node at that hour." or ""),
    svg.heat("use of each node by hour", first.nodes, first.hours, told))
  local shares = {}
  for k = 1, math.min(#report.variants, #COLOURS) do
    local v = report.variants[k]
    shares[k] = { values = means(v.first), label = v.label, colour = COLOURS[k] }
  end
  section(out, "How use is spread over nodes",
    "The share of nodes whose mean use is at most the value on the axis.",
    svg.cdf("nodes by their mean use", " %", shares))
  if #first.evictions > 0 then
    section(out, "Evictions", ("Of %s, the first %d, by node and moment."):format(report.variants[1].label,
      #first.evictions), svg.raster("evictions by node", first.seconds, first.nodes, first.evictions, told))
  end
  teams(out, report.variants[1], told)
  waiting(out, first, told)
  if #report.variants > 1 then
    section(out, "What a setting changes",
      ("%s against the first setting; the line is the interval over seeds."):format(report.goal),
      sensitivity(report))
    section(out, "Nodes that change most", ("Mean use under %s and under %s."):format(
      report.variants[1].label, report.variants[#report.variants].label), by_node(report))
    section(out, "Gain and risk",
      ("Green: no other setting has %s %s at less risk. The large one is the first."):format(
        measure.of(report.goal)[3], report.goal), M.gain(report))
  end
end

local function list(items)
  local out = {}
  for i, x in ipairs(items) do out[i] = "<li>" .. t(x) .. "</li>" end
  return "<ul>" .. table.concat(out) .. "</ul>"
end

local function controllers(first)
  local out = { '<div class="scroll"><table><thead><tr><th>controller</th><th>reconciles</th><th>failed</th>\z
    <th>writes</th><th>refused</th></tr></thead><tbody>' }
  for _, c in ipairs(first.controllers) do
    out[#out + 1] = ("<tr><td>%s</td><td>%d</td><td>%d</td><td>%d</td><td>%d</td></tr>")
      :format(t(c.name), c.runs, c.errors, c.writes, c.refused)
  end
  return table.concat(out) .. "</tbody></table></div>"
end

local function budget(report)
  local out = {}
  for _, l in ipairs(report.limits) do out[#out + 1] = l.text end
  local best = report.best
    and ("The best that keeps it: <b>%s</b>, with %s %s of %s."):format(t(report.best.label),
      shown(report.best.sums[report.goal]), t(measure.of(report.goal)[2]), t(report.goal))
    or '<b class="worse">No setting keeps it.</b>'
  return ("<p>%s</p><p>%s</p>"):format(t(table.concat(out, ", ")), best)
end

-- The page's own script runs and nothing else, whatever a name in it says; it loads nothing.
local POLICY = ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \z
  \'unsafe-inline\'; script-src \'%s\'; base-uri \'none\'; form-action \'none\'">'):format(script.HASH)

-- What a page begins with.
local function head(title, command)
  return { '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" \z
    content="width=device-width,initial-scale=1">', POLICY, '<title>', t(title), "</title><style>", STYLE,
    "</style></head><body><h1>", t(title), "</h1><p><code>", t(command), "</code></p>" }
end

--- A page of one chart and the words that go with it.
---@return string
function M.plain(title, command, chart, words)
  local out = head(title, command)
  out[#out + 1] = chart .. '<div class="scroll"><pre>' .. t(words) .. "</pre></div></body></html>\n"
  return table.concat(out)
end

--- The page.
---@return string
function M.make(report)
  local first = report.variants[1].first
  local out = head(report.title, report.command)
  if #report.limits > 0 then section(out, "Budget", nil, budget(report)) end
  if #report.variants <= 6 then
    section(out, "Verdict", #report.variants > 1
      and ("Significant differences from %q."):format(report.variants[1].label) or nil,
        verdicts(report) .. saved(report))
  else
    section(out, "Settings",
      ("Compared with %q; click a column head to sort."):format(report.variants[1].label),
      settings_table(report) .. saved(report))
  end
  charts(out, report)
  section(out, "Controllers", nil, controllers(first))
  local words = {}
  for i, m in ipairs(report.measures) do
    words[i] = ("%s: %s%s"):format(m[1], m[4], m[3] and (" (%s is better)"):format(m[3]) or "")
  end
  section(out, "What the numbers mean", nil, list(words))
  section(out, "Not modelled", "The simulation leaves out:",
    list(first.not_modelled))
  out[#out + 1] = told_json(first.told or {})
  out[#out + 1] = "<script>" .. script.TEXT .. "</script></body></html>\n"
  return table.concat(out)
end

return M
