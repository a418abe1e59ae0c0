-- tokens.lua - a Lua text as words: { type, value, line, from }, where type is "name", "string", "number",
-- "end" or the word or sign itself, and `from` its place in the text. Comments are no tokens.

local M = {}

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then
  true until while]]):gmatch "%a+" do KEYWORDS[word] = true end

local SIGNS = { "...", "..", "==", "~=", "<=", ">=", "<<", ">>", "//", "::" }
local ESCAPES = { a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v", ["\n"] = "\n" }

local function lines_in(text) return select(2, text:gsub("\n", "")) end

-- From the quote at `from`: the value, and where the text goes on; nil when it has no end.
local function quoted(text, from)
  local quote, parts, at = text:sub(from, from), {}, from + 1
  while true do
    local stop = text:find('[\\\n' .. quote .. "]", at)
    if not stop then return nil end
    parts[#parts + 1] = text:sub(at, stop - 1)
    local c = text:sub(stop, stop)
    if c == quote then return table.concat(parts), stop + 1 end
    if c == "\n" then return nil end
    local e = text:sub(stop + 1, stop + 1)
    local digits = text:match("^%d%d?%d?", stop + 1)
    local hex = text:match("^x(%x%x)", stop + 1)
    local point = text:match("^u{(%x+)}", stop + 1)
    if digits then
      parts[#parts + 1], at = string.char(math.min(255, tonumber(digits))), stop + 1 + #digits
    elseif hex then
      parts[#parts + 1], at = string.char(tonumber(hex, 16)), stop + 4
    elseif point then
      parts[#parts + 1], at = utf8.char(math.min(0x7fffffff, tonumber(point, 16))), stop + 4 + #point
    elseif e == "z" then
      at = text:match("^%s*()", stop + 2)
    else
      parts[#parts + 1], at = ESCAPES[e] or e, stop + 2
    end
  end
end

-- From "[[" or "[=[" at `from`.
local function long(text, from, level)
  local _, stop = text:find("]" .. level .. "]", from, true)
  if not stop then return nil end
  return (text:sub(from + #level + 2, stop - #level - 2):gsub("^\n", "")), stop + 1
end

--- nil and the line where a text is no Lua.
---@param text string
---@return table[]? tokens, integer? line
function M.of(text)
  local out, at, line = {}, text:match "^#[^\n]*()" or 1, 1
  local function add(type, value) out[#out + 1] = { type = type, value = value, line = line, from = at } end
  while true do
    local space = text:match("^%s+", at)
    if space then
      line, at = line + lines_in(space), at + #space
    end
    if at > #text then break end
    local comment_level = text:match("^%-%-%[(=*)%[", at)
    local level = text:match("^%[(=*)%[", at)
    local name = text:match("^[%a_][%w_]*", at)
    local c = text:sub(at, at)
    if comment_level then
      local _, stop = long(text, at + 2, comment_level)
      if not stop then return nil, line end
      line, at = line + lines_in(text:sub(at, stop - 1)), stop
    elseif text:find("^%-%-", at) then
      at = text:find("\n", at, true) or #text + 1
    elseif name then
      add(KEYWORDS[name] and name or "name", name)
      at = at + #name
    elseif level or c == '"' or c == "'" then
      local value, stop
      if level then value, stop = long(text, at, level) else value, stop = quoted(text, at) end
      if not value then return nil, line end
      add("string", value)
      line, at = line + lines_in(text:sub(at, stop - 1)), stop
    elseif text:find("^%.?%d", at) then
      local number = text:match("^0[xX][%x%.]*[pP]?[+-]?%x*", at) or text:match("^[%d%.]+[eE][+-]?%d+", at)
        or text:match("^[%d%.]+", at)
      add("number", number)
      at = at + #number
    else
      local sign = c
      for _, s in ipairs(SIGNS) do
        if text:sub(at, at + #s - 1) == s then
          sign = s
          break
        end
      end
      add(sign, sign)
      at = at + #sign
    end
  end
  add("end of text", "")
  return out
end

return M
