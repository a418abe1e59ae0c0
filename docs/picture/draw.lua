-- draw.lua IN.cast OUT.svg [still] - an asciicast as an SVG that moves: without a script, for readers and for
-- README. With "still" it is what the terminal shows at the end, as high as the text.
--
-- Each line of the session is drawn once, where it stands in one long page. Style sheets say when it is seen,
-- uncover what is typed, and move the page up when the terminal is full. Who wants no motion sees the
-- beginning. The same cast gives the same bytes.

local json = require "dkjson"

local input, output, still = arg[1], arg[2], arg[3] == "still"
assert(input and output, "usage: lua5.4 docs/picture/draw.lua IN.cast OUT.svg [still]")
local WIDE, HIGH, SIZE, PAD, BAR = 8, 18, 13, 14, 30           -- of a cell, of the text, around
local COLORS = { [30] = "#484f58", [31] = "#ff7b72", [32] = "#7ee787", [33] = "#e3b341", [34] = "#79c0ff",
  [35] = "#d2a8ff", [36] = "#a5d6ff", [37] = "#e6edf3" }
local DIM, BACK, BAR_COLOR = "#8b949e", "#0d1117", "#161b22"
COLORS.plain, COLORS.dim = "#e6edf3", DIM

local ESCAPES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }

local function escape(text) return (text:gsub("[&<>]", ESCAPES)) end
local function number(x) return (("%.3f"):format(x):gsub("%.?0+$", "")) end

-- ---------------------------------------------------------------- the terminal

local head, rows, row, col, style
local scrolls = {}           -- { time, first row that is seen }

local function newline(time)
  row, col = row + 1, 1
  rows[row] = rows[row] or {}
  if row > head.height then scrolls[#scrolls + 1] = { time, row - head.height } end
end

local function put(char, time)
  if col > head.width then newline(time) end
  rows[row][col] = { char = char, time = time, style = style }
  col = col + 1
end

local function set_style(codes)
  for code in (codes == "" and "0" or codes):gmatch "%d+" do
    code = tonumber(code)
    if code == 0 then style = "plain" elseif code == 2 then style = "dim" end
    if code >= 90 and code <= 97 then code = code - 60 end
    if COLORS[code] then style = code end
  end
end

local function feed(text, time)
  local i = 1
  while i <= #text do
    local codes, final, rest = text:match("^\27%[([%d;?]*)(%a)()", i)
    if codes then
      if final == "m" then set_style(codes) end
      i = rest
    else
      local char = text:match("^" .. utf8.charpattern, i)
      if char == "\n" then
        newline(time)
      elseif char == "\r" then
        col = 1
      elseif char >= " " then
        put(char, time)
      end
      i = i + #char
    end
  end
end

row, col, rows, style = 1, 1, { {} }, "plain"
for line in io.lines(input) do
  if not head then
    head = assert(json.decode(line))
  elseif line ~= "" then
    local event = assert(json.decode(line))
    if event[2] == "o" then feed(event[3], event[1]) end
  end
end

-- ---------------------------------------------------------------- the picture

local css, body = {}, {}
local total = head.duration

local function percent(time) return number(time / total * 100) .. "%" end

-- Seen from `time` on.
local function appears(id, time)
  local rule = "@keyframes %s{0%%,%s{opacity:0}%s,100%%{opacity:1}}#%s{animation:%s %ss step-end infinite}"
  css[#css + 1] = rule:format(id, percent(time), percent(time), id, id, number(total))
end

-- One piece of a row: cells of one style that came at once, or were typed one after the other.
local function piece(id, y, from, cells, typed)
  local text = {}
  for _, cell in ipairs(cells) do text[#text + 1] = cell.char end
  text = table.concat(text)
  local x, width = PAD + (from - 1) * WIDE, #cells * WIDE
  local fill = COLORS[cells[1].style]
  -- what a reader is told behind "#" is quieter
  local before, remark = text:match "^(.-)(%s# .*)$"
  local words = escape(text)
  if typed and remark then
    words = ('%s<tspan fill="%s">%s</tspan>'):format(escape(before), DIM, escape(remark))
  end
  body[#body + 1] = ('<text%s x="%d" y="%d" fill="%s" textLength="%d">%s</text>'):format(
    still and "" or (' id="%s"'):format(id), x, y, fill, width, words)
  if still then return end
  appears(id, cells[1].time)
  if typed then
    -- a cover in the colour of the background, with a cursor at its left edge, moves away to the right
    local last = cells[#cells].time
    local rect = '<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>'
    local cover = rect:format(x, y - HIGH + 5, width + WIDE, HIGH, BACK)
    local cursor = rect:format(x, y - HIGH + 6, WIDE, HIGH - 3, DIM)
    body[#body + 1] = ('<g id="%sc">%s%s</g>'):format(id, cover, cursor)
    local typing = "@keyframes %sc{0%%{opacity:0;transform:none;animation-timing-function:step-end}\z
      %s{opacity:1;transform:none;animation-timing-function:steps(%d,end)}\z
      %s{opacity:1;transform:translateX(%dpx)}%s,100%%{opacity:0;transform:translateX(%dpx)}}\z
      #%sc{animation:%sc %ss infinite}"
    css[#css + 1] = typing:format(id, percent(cells[1].time), #cells, percent(last), width,
      percent(last + 0.2), width, id, id, number(total))
  end
end

if still then
  while not next(rows[#rows]) do rows[#rows] = nil end
  head.height, scrolls = #rows, {}
end
for r = 1, #rows do
  local cells, y, from, n = rows[r], PAD + BAR + r * HIGH - 4, 1, 0
  local last = 0
  for c in pairs(cells) do last = math.max(last, c) end
  while from <= last do
    if not cells[from] then
      from = from + 1
    else
      local to = from
      local function fits(typed)
        local a, b = cells[to], cells[to + 1]
        return b and a.style == b.style and (typed and b.time > a.time or not typed and b.time == a.time)
      end
      local typed = fits(true)
      while fits(typed) do to = to + 1 end
      n = n + 1
      piece(("r%dp%d"):format(r, n), y, from, { table.unpack(cells, from, to) }, typed)
      from = to + 1
    end
  end
end

-- The page moves up when the terminal is full; several moves of one moment are one.
local moves, seen = { "0%{transform:none}" }, 0
for i, move in ipairs(scrolls) do
  local following = scrolls[i + 1]
  if not following or following[1] ~= move[1] then
    moves[#moves + 1] = ("%s{transform:translateY(%dpx)}"):format(percent(move[1]), -move[2] * HIGH)
    seen = move[2]
  end
end
if seen > 0 then
  moves[#moves + 1] = ("100%%{transform:translateY(%dpx)}"):format(-seen * HIGH)
  local rule = "@keyframes page{%s}#page{animation:page %ss step-end infinite}"
  css[#css + 1] = rule:format(table.concat(moves),
    number(total))
end

for i, rule in ipairs(css) do css[i] = rule .. "\n" end
if not still then
  css[#css + 1] = "@media (prefers-reduced-motion:reduce){#page,#page *{animation:none!important}\z
    #page g{opacity:0}}\n"
end

local width, height = head.width * WIDE + 2 * PAD, head.height * HIGH + 2 * PAD + BAR
local PICTURE = [[
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" height="$height"
  role="img">
<title>$title</title>
<style>
$(css)text{font:$(size)px $font;white-space:pre}
</style>
<rect width="$width" height="$height" rx="8" fill="$back"/>
<path d="M0 $(bar)V8a8 8 0 0 1 8-8H$(right)a8 8 0 0 1 8 8v$(side)z" fill="$bar_color"/>
<circle cx="18" cy="15" r="5" fill="#ff5f57"/><circle cx="36" cy="15" r="5" fill="#febc2e"/>
<circle cx="54" cy="15" r="5" fill="#28c840"/>
<clipPath id="screen"><rect x="0" y="$top" width="$width" height="$seen"/></clipPath>
<g clip-path="url(#screen)"><g id="page">
$body
</g></g>
</svg>
]]
local values = {
  width = width, height = height, title = escape(head.title or "a session"), css = table.concat(css),
  size = SIZE, font = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace",
  back = BACK, bar = BAR, right = width - 8, side = BAR - 8, bar_color = BAR_COLOR,
  top = BAR + PAD, seen = head.height * HIGH + 4, body = table.concat(body, "\n"),
}
local file = assert(io.open(output, "wb"))
file:write((PICTURE:gsub("%$%(?([%l_]+)%)?", function(name) return tostring(assert(values[name], name)) end)))
file:close()
