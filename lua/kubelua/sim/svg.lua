-- svg.lua - the charts of a report as text: lines with bands, stacked areas, heat maps, scatters. Colours are
-- variables of the page's style, so that light, dark and paper each have their own.

local core = require "kubelua.core"

local M = {}

local WIDTH, HEIGHT = 720, 220
local LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 26
-- The most points of a line: more cannot be seen.
local POINTS_MAX = 240

local ENTITY = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
-- Both spell out what a reader would not see as it is (core.visible).

--- Escapes a text for the JSON of a page, so that "</script" and "<!--" have no meaning there.
function M.json(x) return (core.encode(core.visible(x)):gsub("<", "\\u003c")) end
--- Escapes a text for a page, and for SVG.
function M.text(x) return (core.visible(tostring(x)):gsub('[&<>"]', ENTITY)) end

local function n(x) return ("%.1f"):format(x):gsub("%.0$", "") end

-- The distance between ticks: 1, 2 or 5 times a power of ten.
local function step_of(span, ticks)
  local raw = span / ticks
  local power = 10 ^ math.floor(math.log(raw, 10))
  for _, k in ipairs { 1, 2, 5, 10 } do
    if raw <= k * power then return k * power end
  end
end

local function hours_step(hours)
  for _, k in ipairs { 1, 2, 3, 6, 12, 24, 48, 168 } do
    if hours / k <= 8 then return k end
  end
  return 336
end

local function thin(rows)
  if #rows <= POINTS_MAX then return rows end
  local out = {}
  for k = 1, POINTS_MAX do out[k] = rows[1 + (k - 1) * (#rows - 1) // (POINTS_MAX - 1)] end
  return out
end

local function frame(out, title, w, h)
  out[#out + 1] = ('<svg viewBox="0 0 %d %d" role="img" aria-label="%s">'):format(w, h, M.text(title))
end

--- The attributes of an element that a click explains, at a moment; "" if the key has no explanation.
---@param told table<string, any>?
function M.why(told, key, seconds)
  if not told or not told[key] then return "" end
  return (' data-why="%s" data-at="%.10g"'):format(M.text(key), seconds)
end

--- A chart with such elements, between which arrow keys move; columns: how many stand side by side.
function M.picked(chart, columns)
  if not chart:find(" data-why=", 1, true) then return chart end
  return ('<figure class="pick" tabindex="0" data-columns="%d">%s</figure>'):format(columns or 1, chart)
end

-- A chart over time, with the numbers for its crosshair: one of each series at each of `times`.
local function timed(chart, seconds, unit, times, series)
  local lists = {}
  for k, s in ipairs(series) do
    local row = {}
    for i, x in ipairs(s.values) do row[i] = ("%.4g"):format(x) end
    lists[k] = ('{"label":%s,"values":[%s]}'):format(M.json(s.label), table.concat(row, ","))
  end
  local at = {}
  for i, t in ipairs(times) do at[i] = ("%.6g"):format(t) end
  return ('<figure class="time" tabindex="0" data-seconds="%.6g" data-unit="%s" data-left="%d" \z
    data-right="%d">%s<p class="read" aria-live="polite"></p>\z
    <script type="application/json">{"times":[%s],"series":[%s]}</script></figure>'):format(seconds,
    M.text(unit), LEFT, WIDTH - RIGHT, chart, table.concat(at, ","), table.concat(lists, ","))
end

local function values_of(rows, field)
  local out = {}
  for i, r in ipairs(rows) do out[i] = r[field] or 0 end
  return out
end

local function number(x) return x == x // 1 and ("%d"):format(x) or ("%.4g"):format(x) end

-- Axes of a chart over time: y from 0 to `top`.
local function axes(out, seconds, top, unit)
  local x1, y0 = WIDTH - RIGHT, HEIGHT - BOTTOM
  local function y(v) return y0 - (y0 - TOP) * v / top end
  local step = step_of(top, 4)
  for k = 0, top / step // 1 | 0 do
    local v = k * step
    out[#out + 1] = ('<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/><text class="tick" x="%d" y="%s" \z
      text-anchor="end">%s</text>'):format(LEFT, x1, n(y(v)), n(y(v)), LEFT - 6, n(y(v) + 4), number(v))
  end
  out[#out + 1] = ('<text class="tick" x="%d" y="%d">%s</text>'):format(LEFT + 6, TOP + 2,
    M.text(unit))
  local hours = seconds / 3600
  local every = hours_step(hours)
  for h = 0, hours, every do
    local x = LEFT + (x1 - LEFT) * h / hours
    out[#out + 1] = ('<text class="tick" x="%s" y="%d" text-anchor="middle">%dh</text>')
      :format(n(x), HEIGHT - 8, h)
  end
  return function(t) return LEFT + (x1 - LEFT) * t / seconds end, y
end

local function legend(series)
  local out = {}
  for _, s in ipairs(series) do
    out[#out + 1] = ('<span class="key"><i style="background:var(%s)"></i>%s</span>')
      :format(s.colour, M.text(s.label))
  end
  return '<div class="keys">' .. table.concat(out) .. "</div>"
end

local function top_of(rows, value)
  local top = 0
  for _, r in ipairs(rows) do top = math.max(top, value(r)) end
  return top > 0 and top * 1.05 or 1
end

local function path(rows, x, y, value)
  local out = {}
  for i, r in ipairs(rows) do out[i] = ("%s,%s"):format(n(x(r.time)), n(y(value(r)))) end
  return "M" .. table.concat(out, "L")
end

local function area(rows, x, y, low, high)
  local back = {}
  for i = #rows, 1, -1 do back[#back + 1] = ("%s,%s"):format(n(x(rows[i].time)), n(y(low(rows[i])))) end
  return path(rows, x, y, high) .. "L" .. table.concat(back, "L") .. "Z"
end

--- Stacked areas; series: { field, label, colour }; line: one more series, drawn as a line.
function M.stacked(title, unit, seconds, rows, series, line)
  rows = thin(rows)
  local out = {}
  frame(out, title, WIDTH, HEIGHT)
  local function sum(k)
    return function(r)
      local x = 0
      for i = 1, k do x = x + (r[series[i].field] or 0) end
      return x
    end
  end
  local top = top_of(rows, function(r) return math.max(sum(#series)(r), r[line.field] or 0) end)
  local x, y = axes(out, seconds, top, unit)
  for k, s in ipairs(series) do
    out[#out + 1] = ('<path fill="var(%s)" d="%s"/>'):format(s.colour, area(rows, x, y, sum(k - 1), sum(k)))
  end
  out[#out + 1] = ('<path class="line" stroke="var(%s)" d="%s"/>')
    :format(line.colour, path(rows, x, y, function(r) return r[line.field] or 0 end))
  out[#out + 1] = "</svg>"
  local all, told = { table.unpack(series) }, {}
  all[#all + 1] = line
  for k, s in ipairs(all) do told[k] = { label = s.label, values = values_of(rows, s.field) } end
  return timed(table.concat(out), seconds, unit, values_of(rows, "time"), told) .. legend(all)
end

--- Lines with a band around each; series: { rows, low, mid, high, label, colour }, all with rows of the same
--- moments.
function M.bands(title, unit, seconds, series)
  local out, top = {}, 0
  for _, s in ipairs(series) do
    s.rows = thin(s.rows)
    top = math.max(top, top_of(s.rows, function(r) return r[s.high] or 0 end))
  end
  frame(out, title, WIDTH, HEIGHT)
  local x, y = axes(out, seconds, top, unit)
  for _, s in ipairs(series) do
    local function of(field) return function(r) return r[field] or 0 end end
    if s.low then
      out[#out + 1] = ('<path class="band" fill="var(%s)" d="%s"/>')
        :format(s.colour, area(s.rows, x, y, of(s.low), of(s.high)))
    end
    out[#out + 1] = ('<path class="line" stroke="var(%s)" d="%s"/>'):format(s.colour,
      path(s.rows, x, y, of(s.mid)))
  end
  out[#out + 1] = "</svg>"
  local told = {}
  for k, s in ipairs(series) do told[k] = { label = s.label, values = values_of(s.rows, s.mid) } end
  local times = values_of(series[1] and series[1].rows or {}, "time")
  return timed(table.concat(out), seconds, unit, times, told) .. legend(series)
end

--- The most rows of a heat map; of more, it shows every n-th.
M.HEAT_ROWS = 60
-- The most columns; more hours are averaged.
local HEAT_COLUMNS = 48

--- Which of `n` rows a heat map shows.
---@return integer[]
function M.shown_rows(count)
  local out = {}
  for i = 1, count, math.max(1, math.ceil(count / M.HEAT_ROWS)) do out[#out + 1] = i end
  return out
end

local function merged(list, per)
  local out = {}
  for first = 1, #list, per do
    local sum, last = 0, math.min(first + per - 1, #list)
    for k = first, last do sum = sum + list[k] end
    out[#out + 1] = sum / (last - first + 1)
  end
  return out
end

--- One row per node, one cell per hour (or per several hours), 0 to 100. `told`: the names that the page
--- explains.
function M.heat(title, names, all_hours, told)
  local shown, most, hours = M.shown_rows(#names), 1, {}
  for _, i in ipairs(shown) do most = math.max(most, #all_hours[i]) end
  local per = math.ceil(most / HEAT_COLUMNS)
  for _, i in ipairs(shown) do hours[i] = merged(all_hours[i], per) end
  most = math.ceil(most / per)
  local cell_w, cell_h = (WIDTH - LEFT - 40 - RIGHT) / most, math.max(4, math.min(14, 360 / #shown))
  local h = TOP + #shown * cell_h + BOTTOM
  local out = {}
  frame(out, title, WIDTH, math.ceil(h))
  for row, i in ipairs(shown) do
    local y = TOP + (row - 1) * cell_h
    if cell_h >= 8 or row % 5 == 1 then
      out[#out + 1] = ('<text class="tick" x="%d" y="%s" text-anchor="end">%s</text>')
        :format(LEFT + 34, n(y + cell_h - 1), M.text(names[i]))
    end
    for c, v in ipairs(hours[i]) do
      out[#out + 1] = ('<rect class="heat" x="%s" y="%s" width="%s" height="%s" fill-opacity="%.2f"%s>\z
        <title>%s, hour %d: %.0f %%</title></rect>'):format(n(LEFT + 40 + (c - 1) * cell_w), n(y),
        n(cell_w + 0.3), n(cell_h), math.min(1, v / 100), M.why(told, names[i], c * per * 3600),
        M.text(names[i]), (c - 1) * per, v)
    end
  end
  local step = math.max(1, hours_step(most * per))
  for hour = 0, most * per - 1, step do
    out[#out + 1] = ('<text class="tick" x="%s" y="%s">%dh</text>')
      :format(n(LEFT + 40 + hour / per * cell_w), n(h - 10), hour)
  end
  out[#out + 1] = "</svg>"
  return M.picked(table.concat(out), most)
end

--- A cumulative distribution: series { values, label, colour }, with values from 0.
function M.cdf(title, unit, series)
  local out, most = {}, 0
  for _, s in ipairs(series) do
    s.sorted = { table.unpack(s.values) }
    table.sort(s.sorted)
    most = math.max(most, s.sorted[#s.sorted] or 0)
  end
  most = most > 0 and most or 1
  frame(out, title, WIDTH, HEIGHT)
  local x1, y0 = WIDTH - RIGHT, HEIGHT - BOTTOM
  local function x(v) return LEFT + (x1 - LEFT) * v / most end
  local function y(share) return y0 - (y0 - TOP) * share end
  for k = 0, 4 do
    out[#out + 1] = ('<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/><text class="tick" x="%d" y="%s" \z
      text-anchor="end">%d %%</text>'):format(LEFT, x1, n(y(k / 4)), n(y(k / 4)), LEFT - 6, n(y(k / 4) + 4),
      25 * k)
  end
  local step = step_of(most, 6)
  for k = 0, most / step // 1 | 0 do
    out[#out + 1] = ('<text class="tick" x="%s" y="%d" text-anchor="middle">%s%s</text>'):format(
      n(x(k * step)), HEIGHT - 8, number(k * step), M.text(unit))
  end
  for _, s in ipairs(series) do
    local every = math.max(1, #s.sorted // POINTS_MAX)
    local points = { ("%s,%s"):format(n(x(s.sorted[1] or 0)), n(y(0))) }
    for i = 1, #s.sorted do
      if i % every == 0 or i == #s.sorted then
        points[#points + 1] = ("%s,%s"):format(n(x(s.sorted[i])), n(y(i / #s.sorted)))
      end
    end
    out[#out + 1] = ('<path class="line" stroke="var(%s)" d="M%s"/>'):format(s.colour,
      table.concat(points, "L"))
  end
  out[#out + 1] = "</svg>"
  return table.concat(out) .. legend(series)
end

--- A bar for each item { label, value, half } to the left or right of 0; half: half of its interval, drawn as
--- a line.
function M.bars(title, unit, items)
  local most, out, row, left = 1e-9, {}, 20, 260
  for _, it in ipairs(items) do most = math.max(most, math.abs(it.value) + it.half) end
  frame(out, title, WIDTH, TOP + #items * row + BOTTOM)
  local middle = (left + WIDTH - RIGHT - 60) / 2
  local function x(v) return middle + (WIDTH - RIGHT - 60 - left) / 2 * v / most end
  for k, it in ipairs(items) do
    local y = TOP + (k - 1) * row
    out[#out + 1] = ('<text class="tick" x="%d" y="%d" text-anchor="end">%s</text>'):format(left - 8, y + 13,
      M.text(it.label))
    local tip = ("%s: %.4g ± %.3g %s"):format(M.text(it.label), it.value, it.half, M.text(unit))
    local rect = '<rect fill="var(%s)" x="%s" y="%d" width="%s" height="%d"><title>%s</title></rect>'
    out[#out + 1] = rect:format(
      it.value < 0 and "--batch" or "--lent", n(math.min(x(0), x(it.value))), y + 3,
      n(math.abs(x(it.value) - x(0))), row - 6, tip)
    out[#out + 1] = ('<line stroke="var(--ink)" x1="%s" x2="%s" y1="%d" y2="%d"/>'):format(
      n(x(it.value - it.half)), n(x(it.value + it.half)), y + row // 2, y + row // 2)
  end
  out[#out + 1] = ('<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/><text class="tick" x="%s" y="%d" \z
    text-anchor="middle">0</text><text class="tick" x="%d" y="%d" text-anchor="end">%s</text></svg>'):format(
    n(middle), n(middle), TOP, TOP + #items * row, n(middle), TOP + #items * row + 16, WIDTH - RIGHT,
    TOP + #items * row + 16, M.text(unit))
  return table.concat(out)
end

--- A mark for each event { time, row, key } in the row of its node; rows without events are left out.
function M.raster(title, seconds, names, events, told)
  local rows, at, out = {}, {}, {}
  for _, e in ipairs(events) do
    if not at[e[2]] then
      at[e[2]] = true
      rows[#rows + 1] = e[2]
    end
  end
  table.sort(rows)
  for k, row in ipairs(rows) do at[row] = k end
  local h, x0 = 12, LEFT + 40
  local height = TOP + #rows * h + BOTTOM
  frame(out, title, WIDTH, height)
  for k, row in ipairs(rows) do
    out[#out + 1] = ('<text class="tick" x="%d" y="%d" text-anchor="end">%s</text>'):format(x0 - 6,
      TOP + k * h - 2, M.text(names[row]))
  end
  for _, e in ipairs(events) do
    out[#out + 1] = ('<rect fill="var(--bad)" x="%s" y="%d" width="%d" height="%d"%s>\z
      <title>%s, %.1f h</title></rect>'):format(n(x0 + (WIDTH - RIGHT - x0) * e[1] / seconds),
      TOP + (at[e[2]] - 1) * h + 1, #events > 200 and 2 or 5, h - 2, M.why(told, e[3], e[1]),
      M.text(names[e[2]]), e[1] / 3600)
  end
  local hours = seconds / 3600
  for t = 0, hours, hours_step(hours) do
    out[#out + 1] = ('<text class="tick" x="%s" y="%d">%dh</text>'):format(
      n(x0 + (WIDTH - RIGHT - x0) * t / hours), height - 10, t)
  end
  out[#out + 1] = "</svg>"
  return M.picked(table.concat(out))
end

-- The depth of a tree of teams { name, parent, runtime, used }, and the children of each team.
local function tree_of(teams)
  local by_name, below, tops = {}, {}, {}
  for _, q in ipairs(teams) do by_name[q.name] = q end
  for _, q in ipairs(teams) do
    local parent = q.parent and by_name[q.parent]
    if parent then
      below[q.parent] = below[q.parent] or {}
      table.insert(below[q.parent], q)
    else
      tops[#tops + 1] = q
    end
  end
  return tops, below
end

--- Teams { name, parent, runtime, used } as an icicle chart: each is as wide as its quota, filled by its use,
--- with its children below it.
function M.icicle(title, unit, teams, told)
  local tops, below = tree_of(teams)
  local out, row, deepest, total = {}, 44, 0, 0
  for _, q in ipairs(tops) do total = total + math.max(q.runtime, q.used) end
  local scale = (WIDTH - 2 * RIGHT) / math.max(total, 1e-9)
  local function draw(list, x, depth)
    for _, q in ipairs(list) do
      deepest = math.max(deepest, depth)
      local w, y = math.max(q.runtime, q.used) * scale, TOP + depth * row
      local words = ("%s: uses %.4g of %.4g %s"):format(q.name, q.used, q.runtime, unit)
      out[#out + 1] = ('<g%s><title>%s</title><rect class="may" x="%s" y="%d" width="%s" height="%d"/>\z
        <rect class="uses" x="%s" y="%d" width="%s" height="%d"/>'):format(M.why(told, "team " .. q.name, 0),
        M.text(words), n(x), y, n(math.max(w - 2, 1)), row - 4, n(x), y,
        n(math.max(math.min(w, q.used * scale) - 2, 0)), row - 4)
      if w > 90 then
        out[#out + 1] = ('<text class="tick on" x="%s" y="%d">%s</text>\z
          <text class="tick on" x="%s" y="%d">%.3g of %.3g</text>'):format(n(x + 6), y + 17, M.text(q.name),
          n(x + 6), y + 32, q.used, q.runtime)
      end
      out[#out + 1] = "</g>"
      draw(below[q.name] or {}, x, depth + 1)
      x = x + w
    end
  end
  draw(tops, RIGHT, 0)
  local head = {}
  frame(head, title, WIDTH, TOP + (deepest + 1) * row)
  return M.picked(table.concat(head) .. table.concat(out) .. "</svg>", #teams)
end


-- The most points with visible names; the names of more appear under the pointer.
local LABELS_MAX = 16

--- Points { x, y, label, front, first }; axes have names.
function M.scatter(title, x_name, y_name, points)
  local out, top_x, top_y = {}, 0, 0
  for _, p in ipairs(points) do top_x, top_y = math.max(top_x, p.x), math.max(top_y, p.y) end
  top_x, top_y = top_x > 0 and top_x * 1.1 or 1, top_y > 0 and top_y * 1.1 or 1
  frame(out, title, WIDTH, HEIGHT + 60)
  local x1, y0 = WIDTH - RIGHT, HEIGHT + 60 - BOTTOM - 12
  local function x(v) return LEFT + (x1 - LEFT) * v / top_x end
  local function y(v) return y0 - (y0 - TOP) * v / top_y end
  for _, axis in ipairs { { top_x, true }, { top_y, false } } do
    local top, is_x = axis[1], axis[2]
    local step = step_of(top, 5)
    for k = 0, top / step // 1 | 0 do
      local v = k * step
      out[#out + 1] = is_x
        and ('<text class="tick" x="%s" y="%d" text-anchor="middle">%s</text>'):format(n(x(v)), y0 + 16,
          number(v))
        or ('<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/><text class="tick" x="%d" y="%s" \z
          text-anchor="end">%s</text>'):format(LEFT, x1, n(y(v)), n(y(v)), LEFT - 6, n(y(v) + 4), number(v))
    end
  end
  out[#out + 1] = ('<text class="tick" x="%d" y="%d" text-anchor="end">%s</text>'):format(x1, y0 + 32,
    M.text(x_name))
  out[#out + 1] = ('<text class="tick" x="4" y="%d">%s</text>'):format(TOP, M.text(y_name))
  for _, p in ipairs(points) do
    out[#out + 1] = ('<circle class="%s" cx="%s" cy="%s" r="%d"><title>%s: %s %.4g, %s %.4g</title></circle>')
      :format(p.front and "front" or "dot", n(x(p.x)), n(y(p.y)), p.first and 7 or 5, M.text(p.label),
        M.text(x_name), p.x, M.text(y_name), p.y)
    if #points <= LABELS_MAX then
      out[#out + 1] = ('<text class="tick" x="%s" y="%s"%s>%s</text>'):format(
        n(x(p.x) + (p.x > top_x / 2 and -8 or 8)),
        n(y(p.y) - 7), p.x > top_x / 2 and ' text-anchor="end"' or "", M.text(p.label))
    end
  end
  out[#out + 1] = "</svg>"
  return table.concat(out)
end

return M
