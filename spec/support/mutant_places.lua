-- mutant_places.lua - the places of a text where a mutant is possible: one small change of meaning each.
--
-- It reads text and no syntax: some of its mutants do not compile.

local M = {}

-- The text with comments and strings blanked, every other byte where it was.
local function masked(text, lua)
  local function blank(s) return (s:gsub("[^\n]", " ")) end
  local out, at = {}, 1
  local function skip(to)
    out[#out + 1] = blank(text:sub(at, to))
    at = to + 1
  end
  local function string_end(quote)
    local i = at + 1
    while i <= #text do
      local c = text:sub(i, i)
      if c == "\\" then i = i + 1
      elseif c == quote or c == "\n" then break
      end
      i = i + 1
    end
    return i
  end
  while at <= #text do
    local two, one = text:sub(at, at + 1), text:sub(at, at)
    local level = lua and (text:match("^%-%-%[(=*)%[", at) or text:match("^%[(=*)%[", at))
    if level then
      local _, to = text:find("]" .. level .. "]", at, true)
      skip(to or #text)
    elseif two == (lua and "--" or "//") then skip((text:find("\n", at, true) or #text + 1) - 1)
    elseif not lua and two == "/*" then
      local _, to = text:find("*/", at + 2, true)
      skip(to or #text)
    elseif one == '"' or one == "'" then skip(string_end(one))
    else
      out[#out + 1] = text:match("^[^%-%[/\"']+", at) or one
      at = at + #out[#out]
    end
  end
  return table.concat(out)
end

--- The lines of a text.
function M.lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- ---------------------------------------------------------------- what can be changed

local SWAPS = {
  c = {
    { " == ", " != " }, { " != ", " == " }, { " < ", " <= " }, { " > ", " >= " }, { " <= ", " < " },
    { " >= ", " > " }, { " && ", " || " }, { " || ", " && " },
  },
  lua = {
    { " == ", " ~= " }, { " ~= ", " == " }, { " < ", " <= " }, { " > ", " >= " }, { " <= ", " < " },
    { " >= ", " > " }, { " and ", " or " }, { " or ", " and " },
  },
}

-- Whether the comparison between these columns is part of `a < b ? a : b`, where the bound makes no
-- difference.
local function is_clamp(mask, from, to)
  local a = mask:sub(1, from - 1):match "[%w_.>%-]+$"
  local b, x, y = mask:match("^([%w_.>%-]+) %? ([%w_.>%-]+) : ([%w_.>%-]+)", to + 1)
  return x ~= nil and (a == x and b == y or a == y and b == x)
end

-- Every way to change this line: { column, old, new }.
local function swaps(line, mask, language, add)
  for _, swap in ipairs(SWAPS[language]) do
    local at = 1
    while true do
      local from, to = mask:find(swap[1], at, true)
      if not from then break end
      local is_order = swap[1]:find "[<>]" ~= nil
      if not (is_order and is_clamp(mask, from, to)) then
        add(line:sub(1, from - 1) .. swap[2] .. line:sub(to + 1))
      end
      at = to
    end
  end
end

local function constants(line, mask, _, add)
  if mask:find "^%s*#" or mask:find "^%s*case " then return end
  for from, digits, to in mask:gmatch "%f[%w_.]()(%d+)()%f[^%w_.]" do
    local n = #digits < 10 and tonumber(digits)
    if n then add(line:sub(1, from - 1) .. math.tointeger(n + 1) .. line:sub(to)) end
  end
end

local function negated(line, mask, language, add)
  if language == "lua" then
    local from, to = mask:match "%f[%w]if ().-() then%f[^%w]"
    if from then
      add(line:sub(1, from - 1) .. "not (" .. line:sub(from, to - 1) .. ")" .. line:sub(to))
    end
    return
  end
  local from, to = mask:match "%f[%w]if ()%b()()"
  if from then add(line:sub(1, from - 1) .. "(!" .. line:sub(from, to - 1) .. ")" .. line:sub(to)) end
end

-- Only sanitizers can notice a missing free or lock.
local function only_frees(mask)
  return mask:find "_free%(" or mask:find "_unref%(" or mask:find "_fini%(" or mask:find "_u?n?lock%("
end

-- Drops a statement that is complete on its line, as the line before shows.
local function dropped(line, mask, language, add, before)
  if language == "lua" then
    local starts = before == "" or before:find "[%w_)}\"']$" and not before:find "%f[%w]and$"
      and not before:find "%f[%w]or$" and not before:find "%f[%w]not$" and not before:find "return$"
    local call = mask:find "^%s+[%w_.:]+%b()$"
    local set = mask:find "^%s+[%a_][%w_.]* = [%w_.:]*%b()$" or mask:find "^%s+[%a_][%w_.]* = [%w_.]+$"
    if starts and (call or set) and not mask:find "^%s*local " and not mask:find "^%s*return" then
      add(line:match "^%s*" .. "do end")
    end
    return
  end
  local starts = before == "" or before:find "[;{}:)]$" or before:find "else$"
  local call = mask:find "^%s+[%l_][%w_]*%b();$" or mask:find "^%s+[%w_.>%-]+%b();$"
  local set = mask:find "^%s+[%a_*][%w_.>%[%]%-]* [%+%-|&]?= .*;$" or mask:find "^%s+[%w_.>%-]+[%+%-][%+%-];$"
  if starts and (call or set) and not only_frees(mask) and not mask:find "%f[%w]return%f[%W]" then
    add(line:match "^%s*" .. ";")
  end
end

local RETURNS = { void = "return;", bool = "return false;", size_t = "return 0;", int = "return 0;" }

-- A function that does nothing: its first line, which is `{` in C, gets a return.
local function returned(line, mask, language, add, before)
  if language == "lua" then
    if mask:find "^%s*local function [%w_]+%b()$" or mask:find "^%s*function [%w_.:]+%b()$" then
      add(line .. " do return end")
    end
    return
  end
  local kind = mask == "{" and not only_frees(before) and (before:match "^static ([%l_]+) [%w_]+%b()$"
    or before:match "^([%l_]+) [%w_]+%b()$")
  if RETURNS[kind] then add("{ " .. RETURNS[kind]) end
end

local OPERATORS = {
  { "compare", swaps }, { "constant", constants }, { "negate", negated }, { "drop", dropped },
  { "return", returned },
}

--- Every mutant of a file's text: { line, kind, old, new }, in the order of lines.
function M.of(text, language)
  local list, lines, masks = {}, M.lines_of(text), M.lines_of(masked(text, language == "lua"))
  local before = ""
  for i, line in ipairs(lines) do
    for _, operator in ipairs(OPERATORS) do
      operator[2](line, masks[i]:gsub("%s+$", ""), language, function(new)
        if new ~= line then list[#list + 1] = { line = i, kind = operator[1], old = line, new = new } end
      end, before)
    end
    if masks[i]:find "%S" then before = masks[i]:gsub("%s+$", "") end
  end
  return list
end

--- The text with one place changed.
function M.changed(text, place)
  local lines = M.lines_of(text)
  assert(lines[place.line] == place.old, "the text is another")
  lines[place.line] = place.new
  return (table.concat(lines, "\n"):gsub("\n$", "")) .. (text:sub(-1) == "\n" and "\n" or "")
end

--- Whether mutants of this file are meaningful: not for generated tables and pure annotations.
function M.counts(path, text)
  local is_ours = path:find "^core/.*%.c$" or path:find "^bindings/.*%.c$" or path:find "^lua/.*%.lua$"
    or path:find "^controllers/.*%.lua$"
  local is_data = path:find "_data%.c$" or path:find "_test%.lua$" or path:find "_meta%.lua$"
    or path:find "/gen/"
    or text:sub(1, 600):lower():find "generated by" or text:find("\n---@meta", 1, true)
    or text:find "^---@meta"
  return is_ours and not is_data
end

return M
