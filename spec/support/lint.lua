-- lint.lua - checks that compilers and luacheck do not make: layers, documented headers, lengths of
-- functions, widths of lines.
--
-- A header opens with its idea, and each paragraph of declarations in it carries a comment (above, beside
-- or between). Prints each finding as path:line: what; exit status 1 when there is one.

package.path = "spec/?.lua;" .. package.path
local layers = require "support.layers"
local process = require "support.process"

local M = {}

local function is_function(line)
  return line:find "^[%a_][%w_%s%*]-%f[%w_][%a_][%w_]*%s*%(" and not line:find "^typedef"
    and not line:find "^static" and
    not line:find "^%s*#" and not line:find "^return" and not line:find "^KL_STATIC_ASSERT"
end

--- Findings of one header.
function M.header(path, text)
  local found, number = {}, 0
  if not text:find "^/%*%s" then
    found[#found + 1] = ("%s:1: a header opens with its idea, in a comment"):format(path)
  end
  local undocumented, commented, depth, in_comment = nil, false, 0, false
  local function close()
    if undocumented and not commented then
      found[#found + 1] = ("%s:%d: nobody says who owns, who may call, what fails: a comment for this \z
        paragraph is missing")
        :format(path, undocumented)
    end
    undocumented, commented = nil, false
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if line:find "^%s*$" and not in_comment and depth == 0 then
      close()
    else
      if in_comment or line:find("/*", 1, true) or line:find("//", 1, true) then commented = true end
      if not in_comment and depth == 0 and is_function(line) then undocumented = undocumented or number end
      local opened, closed = line:match ".*()/%*", line:match ".*()%*/"
      if opened and (not closed or closed < opened) then
        in_comment = true
      elseif closed then
        in_comment = false
      end
      local code = line:gsub("/%*.-%*/", "")
      depth = depth + select(2, code:gsub("{", "")) - select(2, code:gsub("}", ""))
      if code:find 'extern "C"' then depth = 0 end
    end
  end
  close()
  return found
end

--- The finding for a C file without a head "NAME - ...", or nil.
function M.head(path, text)
  local name = path:match "[^/]+$"
  local rest = text:match("^/%*%s*" .. name:gsub("%p", "%%%0") .. " %- ([^\n]+)")
  if not rest or #rest < 12 then
    return ("%s:1: a file opens with what it is: /* %s - ... */"):format(path, name)
  end
end

-- The most lines and the most parameters of a function: lower these numbers, never raise them.
local MOST_LINES, MOST_PARAMS = 75, 8
-- The decoder's inner loops keep their state in registers.
local HOT = { ["core/wire/proto.c"] = 10 }

-- The number of commas at depth 0 and one more.
local function count_params(text)
  local depth, n = 0, 1
  for c in text:gmatch "[(),]" do
    depth = depth + (c == "(" and 1 or c == ")" and -1 or 0)
    if c == "," and depth == 0 then n = n + 1 end
  end
  return n
end

-- Appends a finding if there are too many lines between two numbers.
local function judge_length(found, path, from, to)
  if to - from - 1 > MOST_LINES then
    found[#found + 1] = (
      "%s:%d: a function of %d lines, %d at most: it does more than one thing"):format(path, from,
      to - from - 1, MOST_LINES)
  end
end

--- Findings for functions of a C file that are too long or have too many parameters. In the format of
--- clang-format, a body is between braces in the first column.
function M.functions(path, text)
  local found, number, head, from = {}, 0, "", nil
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    if line == "{" then
      from = number
      local name, params = head:match "([%w_]+)(%b())[^()]*$"
      if head:find "KL_REQUIRES" then name, params = head:match "([%w_]+)(%b()) KL_REQUIRES" end
      local n, most = count_params((params or "()"):sub(2, -2)), HOT[path] or MOST_PARAMS
      if n > most then
        found[#found + 1] = ("%s:%d: %s takes %d parameters, %d at most: give it a struct"):format(path,
          number, name,
          n, most)
      end
    elseif line == "}" and from then
      judge_length(found, path, from, number)
      from = nil
    end
    local ends = line == "" or line:find "^[}#]" or line:find ";%s*$" or line:find "%*/$"
    head = (ends or from) and "" or head .. " " .. line
  end
  return found
end

--- Findings of a Lua file whose functions at the top level are too long.
function M.lua_functions(path, text)
  local found, number, from = {}, 0, nil
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    if line:find "^local function " or line:find "^function " then
      from = number
    elseif line == "end" and from then
      judge_length(found, path, from, number)
      from = nil
    end
  end
  return found
end

-- The most columns of a line of code or comment, where a tab counts as four. Texts of others (spec/fixtures),
-- generated annotations of kinds, and what cannot be wrapped (`---@`, an import of Go) do not count.
local COLUMNS = 110
local LUA = "bench bindings controllers core deploy docs examples lua spec"
local OTHER_PROGRAMS = "Makefile bench/Makefile .ci/run .ci/deps bench/*.py bench/py/*.py bench/*.sh "
  .. "bindings/dashboard/*.js bindings/dashboard/*.css "
  .. "deploy/*.sh deploy/*/*.sh spec/support/*.py spec/realserver/*.sh spec/realserver/python/*.py "
  .. "bench/go/*/*.go spec/realserver/*.go spec/realserver/*/*.go "
  .. "bench/rs/src/*.rs bench/rs/src/bin/*.rs spec/realserver/rust/*.rs bench/*.cpp"
local NOT_OURS = { "^spec/fixtures/", "^lua/kubelua/kubernetes/", "^lua/kubelua/koordinator/" }

--- The lines of a file that are wider, each as "path:line: ...".
function M.wide(path, text)
  local found, number = {}, 0
  for _, pattern in ipairs(NOT_OURS) do
    if path:find(pattern) then return found end
  end
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local columns = utf8.len(line) or #line
    columns = columns + 3 * select(2, line:gsub("\t", ""))
    if columns > COLUMNS and not line:find "^%s*%-%-%-@" and not line:find '^\t%w+ "[^" ]+"$' then
      found[#found + 1] = ("%s:%d: %d columns, %d at most"):format(path, number, columns, COLUMNS)
    end
  end
  return found
end

local function main()
  local found = layers.check(layers.tree())
  -- Calls judge(path, text) for each file of some directories.
  local function each(dirs, ending, judge)
    local list = process.run(("find %s -name '*%s' -type f | sort"):format(dirs, ending))
    for path in list:gmatch "[^\n]+" do judge(path, process.read(path)) end
  end
  local function add(list) table.move(list, 1, #list, #found + 1, found) end
  each("core", ".h", function(path, text) add(M.header(path, text)) end)
  each("core bindings spec", ".c", function(path, text)
    add { M.head(path, text) }
    if not path:find "^spec/" then add(M.functions(path, text)) end
  end)
  each("lua controllers examples spec", ".lua", function(path, text)
    if not text:find "^%-%-+[- ]%S" then
      add { ("%s:1: a file opens with what it is: -- NAME - ..."):format(path) }
    end
    if not path:find "^spec/" then add(M.lua_functions(path, text)) end
  end)
  local function add_wide(path, text) add(M.wide(path, text)) end
  each(LUA, ".lua", add_wide)
  each(OTHER_PROGRAMS, "", add_wide)
  for _, what in ipairs(found) do print(what) end
  os.exit(#found == 0)
end

if arg and arg[0] and arg[0]:find "lint%.lua$" then main() end
return M
