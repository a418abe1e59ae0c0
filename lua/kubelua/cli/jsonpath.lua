-- jsonpath.lua - the part of kubectl's JSONPath that people use: {.items[*].metadata.name}, {range
-- .items[*]}{.metadata.name}{"\n"}{end}, {.spec.containers[0].image}, {.metadata.labels.a\.b/c},
-- {.metadata.labels['a.b/c']}, {.status.conditions[?(@.type=="Ready")].status}.
--
-- A template is parsed into a list of strings and paths; a path is a list of steps, each of which turns a
-- list of values into another.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"

local M = {}

local function fail(text, at, why) error(("jsonpath: %s, at character %d of %s"):format(why, at, text), 0) end

-- ---------------------------------------------------------------- paths

local function children(value)
  local out = {}
  if core.is_view(value) then
    for _, child in pairs(value) do out[#out + 1] = child end
  end
  return out
end

-- A list has integer keys, an object names; other values have nothing below them.
local function is_list(value) return core.is_view(value) and common.is_list(value) end

local function field(value, name)
  if core.is_view(value) and not is_list(value) then return value[name] end
end

local function each(values, fn)
  local out = {}
  for _, value in ipairs(values) do fn(value, out) end
  return out
end

local STEP = {}

function STEP.field(step, values)
  return each(values, function(value, out) out[#out + 1] = field(value, step.name) end)
end

function STEP.all(_, values)
  return each(values, function(value, out)
    local list = children(value)
    table.move(list, 1, #list, #out + 1, out)
  end)
end

-- Indexes count from 0, as JSON's readers expect; negative ones from the end.
function STEP.index(step, values)
  return each(values, function(value, out)
    if is_list(value) then out[#out + 1] = value[(step.index < 0 and #value or 0) + step.index + 1] end
  end)
end

function STEP.slice(step, values)
  return each(values, function(value, out)
    if not is_list(value) then return end
    local from, to = step.from or 0, step.to or #value
    if from < 0 then from = from + #value end
    if to < 0 then to = to + #value end
    for i = math.max(from, 0) + 1, math.min(to, #value) do out[#out + 1] = value[i] end
  end)
end

-- All values at any depth, then the field.
function STEP.deep(step, values)
  local out = {}
  local function visit(value)
    out[#out + 1] = field(value, step.name)
    for _, child in ipairs(children(value)) do visit(child) end
  end
  for _, value in ipairs(values) do visit(value) end
  return out
end

local COMPARE = {
  ["=="] = function(a, b) return a == b end, ["!="] = function(a, b) return a ~= b end,
  ["<"] = function(a, b)
    return type(a) == type(b) and a < b
  end, [">"] = function(a, b) return type(a) == type(b) and a > b end,
  ["<="] = function(a, b)
    return type(a) == type(b) and a <= b
  end, [">="] = function(a, b) return type(a) == type(b) and a >= b end,
}

function STEP.filter(step, values)
  return each(values, function(value, out)
    for _, child in ipairs(children(value)) do
      local found = M.walk(step.path, child)[1]
      if step.op == nil and found ~= nil or step.op and found ~= nil
        and COMPARE[step.op](found, step.value) then
        out[#out + 1] = child
      end
    end
  end)
end

local function literal(text, whole, at)
  local quoted = text:match "^\"(.*)\"$" or text:match "^'(.*)'$"
  if quoted then return quoted end
  if text == "true" or text == "false" then return text == "true" end
  return tonumber(text) or fail(whole, at, ("%s is not a string, a number or a boolean"):format(text))
end

local function bracket(inside, whole, at)
  if inside == "*" then return { kind = "all" } end
  if inside:find "^%-?%d+$" then return { kind = "index", index = math.tointeger(tonumber(inside)) } end
  local from, to = inside:match "^(%-?%d*):(%-?%d*)$"
  if from then
    return { kind = "slice", from = math.tointeger(tonumber(from)), to = math.tointeger(tonumber(to)) }
  end
  local name = inside:match "^'(.*)'$" or inside:match "^\"(.*)\"$"
  if name then return { kind = "field", name = name } end
  local condition = inside:match "^%?%(%s*(.-)%s*%)$"
  if not condition then
    fail(whole, at, ("unknown form [%s]; known are [0], [*], [1:3], ['name'] and \z
      [?(@.field==\"x\")]"):format(inside))
  end
  local path, op, value = condition:match "^@(.-)%s*([=!<>]=?)%s*(.+)$"
  if not path then path = condition:match "^@(.*)$" end
  if not path or op and not COMPARE[op] then
    fail(whole, at, ("unknown condition %s"):format(condition))
  end
  return { kind = "filter", path = M.path(path), op = op, value = op and literal(value, whole, at) }
end

-- Where the bracket that opens at `at` closes, quotes respected.
local function closing(text, at)
  local depth, quote = 0, nil
  for i = at, #text do
    local ch = text:sub(i, i)
    if quote then
      if ch == quote then quote = nil end
    elseif ch == "'" or ch == '"' then
      quote = ch
    elseif ch == "[" then
      depth = depth + 1
    elseif ch == "]" then
      depth = depth - 1
      if depth == 0 then return i end
    end
  end
  fail(text, at, "[ is not closed")
end

--- The steps of a path such as .items[*].metadata.name; a leading $, @ or nothing may stand before the
--- first dot.
function M.path(text)
  local steps, at = {}, text:match "^[$@]()" or 1
  if at == 1 and text:find "^[%a_]" then text, at = "." .. text, 1 end
  while at <= #text do
    local ch = text:sub(at, at)
    if ch == "." then
      local deep = text:sub(at + 1, at + 1) == "."
      local from = at + (deep and 2 or 1)
      local to = from
      while to <= #text and not text:find("^[.%[]", to) do to = to + (text:sub(to, to) == "\\" and 2 or 1) end
      local name = text:sub(from, to - 1):gsub("\\(.)", "%1")
      if name == "*" then
        steps[#steps + 1] = { kind = "all" }
      elseif name ~= "" then
        steps[#steps + 1] = { kind = deep and "deep" or "field", name = name }
      elseif deep or to <= #text and text:sub(to, to) ~= "[" then
        fail(text, at, "a name is missing between two dots")
      end
      at = to
    elseif ch == "[" then
      local to = closing(text, at)
      steps[#steps + 1] = bracket(text:sub(at + 1, to - 1), text, at)
      at = to + 1
    else
      fail(text, at, ("expected a dot or a bracket, not %q"):format(ch))
    end
  end
  return steps
end

--- The values at a path in a value, as a list.
function M.walk(path, value)
  local values = { value }
  for _, step in ipairs(path) do values = STEP[step.kind](step, values) end
  return values
end

-- ---------------------------------------------------------------- templates

local ESCAPES = { n = "\n", t = "\t", r = "\r" }

local function action(inside, text, at)
  local quoted = inside:match "^\"(.*)\"$" or inside:match "^'(.*)'$"
  if quoted then return { text = quoted:gsub("\\(.)", function(ch) return ESCAPES[ch] or ch end) .. "" } end
  if inside == "end" then return { close = true } end
  local range = inside:match "^range%s+(.+)$"
  if range then return { range = M.path(range) } end
  if inside == "" then fail(text, at, "{} is empty") end
  return { path = M.path(inside) }
end

-- The } that ends the action which opens at `at`, quotes respected.
local function action_end(text, at)
  local quote
  for i = at + 1, #text do
    local ch = text:sub(i, i)
    if quote then
      if ch == quote and text:sub(i - 1, i - 1) ~= "\\" then quote = nil end
    elseif ch == "'" or ch == '"' then
      quote = ch
    elseif ch == "}" then
      return i
    end
  end
  fail(text, at, "{ is not closed")
end

--- A template ready to be used; a text without braces is one path.
function M.template(text)
  if not text:find("{", 1, true) then return { { path = M.path(text) } } end
  local root, at = {}, 1
  local stack = { root }
  while at <= #text do
    local open = text:find("{", at, true)
    local list = stack[#stack]
    if open ~= at then list[#list + 1] = { text = text:sub(at, open and open - 1) } end
    if not open then break end
    local close = action_end(text, open)
    local item = action(text:sub(open + 1, close - 1):match "^%s*(.-)%s*$", text, open)
    if item.close then
      if #stack == 1 then fail(text, open, "{end} without {range}") end
      stack[#stack] = nil
    else
      list[#list + 1] = item
      if item.range then stack[#stack + 1] = item end
    end
    at = close + 1
  end
  if #stack > 1 then fail(text, #text, "{range} without {end}") end
  return root
end

--- A value as it is printed: texts as they are, everything else as JSON.
function M.text(value)
  if type(value) == "string" then return value end
  return core.encode(value)
end

--- The output of a template for a value.
function M.render(template, value)
  local out = {}
  for _, item in ipairs(template) do
    if item.text then
      out[#out + 1] = item.text
    elseif item.range then
      for _, one in ipairs(M.walk(item.range, value)) do out[#out + 1] = M.render(item, one) end
    else
      local texts = {}
      for i, one in ipairs(M.walk(item.path, value)) do texts[i] = M.text(one) end
      out[#out + 1] = table.concat(texts, " ")
    end
  end
  return table.concat(out)
end

return M
