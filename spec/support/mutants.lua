-- mutants.lua - mutation testing: changes one place of the code at a time, and runs the specs that should
-- notice.
--
--   lua5.4 spec/support/mutants.lua [--n 200] [--seed 1] [--from 1] [--to N] [--minutes M] [--near]
--     [--only PATTERN] [--among PATTERN] [--tree DIR]
--
-- A mutant is one small change in core, bindings, lua or controllers, chosen by chance from all places where
-- one is possible: a comparison turned, a constant off by one, a condition negated, a statement dropped,
-- "and" for "or", a function that returns at once. The same seed over the same files gives the same mutants.
--
-- Each is built in a copy of the tree (build/mutants/mutated), never in the checkout, and meets the specs
-- near it first: those of its room, those that bear its name or its directory's, C tests that include its
-- header, and for a policy the tests of policies that fit it best. If it survives them it meets a wider set:
-- the dozen Lua specs that have most of the words around the place. The
-- first failure ends it, a hang counts as one. A spec that fails without the mutant, too
-- (build/mutants/plain), says nothing and is left out. The copies have no real API server: specs run against
-- the embedded one alone.
--
-- No mutation tool that Debian packages knows C and Lua (Mull and universalmutator are not in Debian, and
-- know no Lua), so this one is ours. It reads text and no syntax: what does not compile is not counted.
--
-- --only makes mutants of some files alone; --among takes those of some files out of the mutants of all,
-- under the same numbers, so that a long run can be done in parts: --from and --to name the numbers.
--
-- Results go to build/mutants/report.txt as they come; survivors are listed at the end.

local M = {}

-- ---------------------------------------------------------------- text

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
      out[#out + 1] = one
      at = at + 1
    end
  end
  return table.concat(out)
end

local function lines_of(text)
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
  -- Only sanitizers can notice a missing free or lock.
  local frees = mask:find "_free%(" or mask:find "_unref%(" or mask:find "_fini%(" or mask:find "_u?n?lock%("
  if starts and (call or set) and not frees and not mask:find "%f[%w]return%f[%W]" then
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
  local kind = mask == "{" and (before:match "^static ([%l_]+) [%w_]+%b()$"
    or before:match "^([%l_]+) [%w_]+%b()$")
  if RETURNS[kind] then add("{ " .. RETURNS[kind]) end
end

local OPERATORS = {
  { "compare", swaps }, { "constant", constants }, { "negate", negated }, { "drop", dropped },
  { "return", returned },
}

--- Every mutant of a file's text: { line, kind, old, new }, in the order of lines.
function M.places(text, language)
  local list, lines, masks = {}, lines_of(text), lines_of(masked(text, language == "lua"))
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
  local lines = lines_of(text)
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

-- ---------------------------------------------------------------- which specs cover a place

-- Words of a text that name something: parts of identifiers, and words of messages and comments.
local WORD = "%a+"
local WORD_MIN = 4

--- The index of the specs: `all` maps their paths to their texts.
function M.index(all)
  local index = { all = all, counts = {}, sizes = {}, rare = {}, mean = 0 }
  local n, total, holds = 0, 0, {}
  for spec, text in pairs(all) do
    local counts, size = {}, 0
    for word in text:lower():gmatch(WORD) do
      if #word >= WORD_MIN then
        if not counts[word] then holds[word] = (holds[word] or 0) + 1 end
        counts[word], size = (counts[word] or 0) + 1, size + 1
      end
    end
    index.counts[spec], index.sizes[spec] = counts, size
    n, total = n + 1, total + size
  end
  for word, k in pairs(holds) do index.rare[word] = math.log((n + 1) / k) end
  index.mean = math.max(1, total / math.max(1, n))
  return index
end

-- Lines around a place, and at the head of a file, whose words count.
local AROUND, HEAD = 12, 6

--- The words around a line of a text, those that say what its file is, and those of its path, each once.
local function words_at(path, text, line)
  local lines, words = lines_of(text), {}
  local function take(said)
    for word in said:lower():gmatch(WORD) do words[word] = true end
  end
  for i = 1, math.min(#lines, HEAD) do take(lines[i]) end
  for i = math.max(1, line - AROUND), math.min(#lines, line + AROUND) do take(lines[i]) end
  take(path)
  return words
end

-- BM25: a word counts more the fewer specs have it; repetitions, and words of long specs, count less.
local function score(index, spec, words)
  local counts, sum = index.counts[spec], 0
  local long = 0.25 + 0.75 * index.sizes[spec] / index.mean
  for word in pairs(words) do
    local n = counts[word]
    if n then sum = sum + index.rare[word] * n * 2.2 / (n + 1.2 * long) end
  end
  return sum
end

local WIDE = 12 -- specs of the wider set
local OWN = 3   -- tests of policies, for a place in one
local PLAIN = { kubelua = true, koordinator = true } -- directories whose names say nothing of a file

-- Whether a path is a test that `kubelua test` runs.
local function is_policy_test(path) return path:find "^controllers/.*_test%.lua$" ~= nil end

--- The specs that cover a line of a file, as two lists, the likeliest first: near ones, and the wider set.
function M.specs_of(path, text, line, index)
  local top, room = path:match "^(%w+)/([%w_]+)/"
  if top ~= "core" then room = path:match "^%w+" end
  local name = path:match "([%w_]+)%.%w+$"
  local stem = name:match "^l(%w+)$" or name
  local header = path:gsub("%.%w+$", ".h"):gsub("^core/", "")
  local dir = top ~= "core" and path:match "^%w+/.+/([%w_]+)/[%w_]+%.%w+$"
  local words, near, wide, own, scores = words_at(path, text, line), {}, {}, {}, {}
  local function bears(base, word)
    return word and #word > 3 and not PLAIN[word] and base:find(word, 1, true)
  end
  for spec, said in pairs(index.all) do
    local base = spec:match "([%w_]+)%.%w+$"
    local in_room = spec:find("spec/core/" .. tostring(room) .. "/", 1, true) ~= nil
    local named = base:find(name, 1, true) or #stem > 3 and base:find(stem, 1, true)
    if is_policy_test(spec) then
      own[#own + 1] = top == "controllers" and spec or nil
      scores[spec] = (named or bears(base, dir)) and math.huge or score(index, spec, words)
    elseif named then
      near[#near + 1], scores[spec] = spec, math.huge
    elseif bears(base, dir) then
      near[#near + 1], scores[spec] = spec, 1000 + score(index, spec, words)
    elseif in_room or spec:find "%.c$" and said:find(header, 1, true) then
      near[#near + 1], scores[spec] = spec, score(index, spec, words)
    elseif spec:find "^spec/%w+/.*%.lua$" then -- above those are specs of pages and packages
      scores[spec] = score(index, spec, words)
      if scores[spec] > 0 then wide[#wide + 1] = spec end
    end
  end
  local function is_likelier(a, b)
    if scores[a] ~= scores[b] then return scores[a] > scores[b] end
    return a < b
  end
  table.sort(own, is_likelier)
  table.move(own, 1, math.min(OWN, #own), #near + 1, near)
  table.sort(near, is_likelier)
  table.sort(wide, is_likelier)
  return near, table.move(wide, 1, math.min(WIDE, #wide), 1, {})
end

-- ---------------------------------------------------------------- chance

--- N of the places, each once, in an order that the seed says.
function M.choose(places, seed)
  local list = table.move(places, 1, #places, 1, {})
  math.randomseed(seed, 0)
  for i = #list, 2, -1 do
    local k = math.random(i)
    list[i], list[k] = list[k], list[i]
  end
  return list
end

-- ---------------------------------------------------------------- running

local ROOT = "build/mutants"
-- Seconds for a build; and for specs, beside ten times what they took before.
local BUILD_LIMIT, SPEC_LIMIT, SLOW = 600, 60, 10
local HANG = "a hang" -- unless the spec is as slow without the mutant
local CHUNK = 4 -- specs that are linked and run together
local TOO_LONG = 20 -- a spec of the wider set that takes more seconds is left to `make test`

function M.run(o)
  local process = require "support.process"
  local quote = process.quote
  local tree = o.tree or "."

  local function sh(dir, command) return process.run(("cd %s && %s"):format(quote(dir), command)) end

  local function copy(name)
    local to = ("%s/%s/%s"):format(tree, ROOT, name)
    local _, code = sh(tree, ([[rm -rf %s/%s && mkdir -p %s/%s/build && git ls-files -z |
      xargs -0 cp -p --parents -t %s/%s && for d in build/*; do
        case $d in build/mutants|build/assets|build/tmp|build/asan|build/tsan|build/fuzz) ;;
        *) cp -a "$d" %s/%s/build/ ;; esac; done]]):gsub("%%s/%%s", (ROOT .. "/" .. name)))
    assert(code == 0, "mutants: the tree cannot be copied to " .. to)
    return to
  end

  local function files(pattern)
    local list = {}
    for path in sh(tree, "git ls-files " .. pattern):gmatch "[^\n]+" do list[#list + 1] = path end
    return list
  end

  local function read(path) return process.read(tree .. "/" .. path) or "" end

  local all = {}
  for _, path in ipairs(files "spec") do
    if path:find "_test%.c$" or path:find "_spec%.lua$" then
      local text = read(path)
      if not text:find "\n[-/* ]+alone: %S" then all[path] = text end
    end
  end
  for _, path in ipairs(files "controllers") do
    if is_policy_test(path) then all[path] = read(path) end
  end
  local index = M.index(all)

  local places = {}
  for _, path in ipairs(files "core bindings lua controllers") do
    local text = read(path)
    if M.counts(path, text) and (not o.only or path:find(o.only)) then
      for _, place in ipairs(M.places(text, path:match "%.(%w+)$")) do
        place.path = path
        places[#places + 1] = place
      end
    end
  end

  local mutated, plain = copy "mutated", copy "plain"
  local report = assert(io.open(tree .. "/" .. ROOT .. "/report.txt", "w"))
  local function say(...)
    local line = string.format(...)
    if not o.quiet then print(line) end
    report:write(line, "\n")
    io.stdout:flush()
    report:flush()
  end

  -- Seconds by spec, of the last run of each in this tree or in a copy.
  local seconds = {}
  local function learn(dir)
    for path, n in (process.read(dir .. "/build/spec/seconds") or ""):gmatch "(%S+) (%S+)\n" do
      seconds[path] = seconds[path] or tonumber(n) -- the first is not of a mutant
    end
  end

  local function build(dir, specs)
    local targets = {}
    for _, spec in ipairs(specs) do
      targets[#targets + 1] = is_policy_test(spec) and "all" or spec:find "%.lua$" and "programs"
        or "build/" .. spec:gsub("%.c$", "")
    end
    -- Unused code is only a warning here.
    local _, code = sh(dir, ("timeout -k 5 %d make -j2 WERROR= %s"):format(BUILD_LIMIT,
      table.concat(targets, " ")))
    return code == 0
  end

  -- nil where all pass; else the first that failed, or "a hang".
  local function failing(dir, specs)
    local rest = {}
    for _, spec in ipairs(specs) do
      if is_policy_test(spec) then
        local _, code = sh(dir, ("timeout -k 5 %d build/kubelua test %s"):format(SPEC_LIMIT, spec))
        if code ~= 0 then return (code == 124 or code == 137) and HANG or spec end
      else rest[#rest + 1] = spec end
    end
    if #rest == 0 then return nil end
    specs = rest
    local limit = SPEC_LIMIT
    for _, spec in ipairs(specs) do limit = limit + SLOW * (seconds[spec] or 1) end
    local out, code = sh(dir, ("env -u KUBEBUILDER_ASSETS timeout -k 5 %d lua5.4 spec/support/run.lua"
      .. " --build build --variant release --first %s"):format(math.ceil(limit), table.concat(specs, " ")))
    learn(dir)
    if code == 0 then return nil end
    if code == 124 or code == 137 then return HANG end
    return out:match "FAILED%s+(%S+)" or "a run that ended"
  end

  -- Whether a spec passes without the mutant; tested once, at its first failure.
  local sound = {}
  local function is_sound(spec)
    if sound[spec] == nil then
      sound[spec] = all[spec] == nil or build(plain, { spec }) and not failing(plain, { spec })
    end
    return sound[spec]
  end

  local function noticed_by(specs)
    while #specs > 0 do
      local who = failing(mutated, specs)
      if not who then return nil end
      if who == HANG then return build(plain, specs) and failing(plain, specs) ~= HANG and who or nil end
      if is_sound(who) then return who end
      local rest = {}
      for _, spec in ipairs(specs) do
        if spec ~= who then rest[#rest + 1] = spec end
      end
      specs = rest
    end
    return nil
  end

  -- The specs that are meaningful and not too slow: C tests, then the others.
  local function usable(specs)
    local list = {}
    for _, ending in ipairs { "%.c$", "%.lua$" } do
      for _, spec in ipairs(specs) do
        if spec:find(ending) and sound[spec] ~= false and (seconds[spec] or 1) <= TOO_LONG then
          list[#list + 1] = spec
        end
      end
    end
    return list
  end

  -- The spec that notices the mutant in `mutated`: its name; nil: none; false: the mutant does not compile.
  local function asked(specs)
    local list = usable(specs)
    for i = 1, #list, CHUNK do
      local round = table.move(list, i, math.min(i + CHUNK - 1, #list), 1, {})
      if not build(mutated, round) then return false end
      local who = noticed_by(round)
      if who then return who end
    end
    return nil
  end

  local function judge(place, text)
    local near, wide = M.specs_of(place.path, text, place.line, index)
    local who = asked(near)
    if who == nil and not (o.near and #near > 0) then who = asked(wide) end
    return who
  end

  learn(tree)
  local began, counts, survivors = os.time(), { killed = 0, survived = 0, broken = 0 }, {}
  local chosen = M.choose(places, o.seed)
  say("%d places in %s, seed %d", #places, tree, o.seed)
  for i = o.from, math.min(o.to or #chosen, #chosen) do
    local place = chosen[i]
    local over = o.minutes and os.time() - began > o.minutes * 60
    if counts.killed + counts.survived >= o.n or over then break end
    if o.among and not place.path:find(o.among) then goto continue end
    local at, text = mutated .. "/" .. place.path, read(place.path)
    process.write(at, M.changed(text, place))
    local since = os.time()
    local who = judge(place, text)
    process.write(at, text)
    local word = who and "killed" or who == nil and "survived" or "broken"
    counts[word] = counts[word] + 1
    local line = ("%s:%d %s: `%s` -> `%s`"):format(place.path, place.line, place.kind,
      place.old:match "^%s*(.-)$", place.new:match "^%s*(.-)$")
    if word == "survived" then survivors[#survivors + 1] = line end
    say("%4d %-8s %s%s %d s", i, word, line, who and " by " .. who or "", os.time() - since)
    ::continue::
  end

  say ""
  local total = counts.killed + counts.survived
  for _, line in ipairs(survivors) do say("survived %s", line) end
  say("%d mutants, %d killed (%.1f %%), %d survived; %d more did not compile", total, counts.killed,
    total > 0 and 100 * counts.killed / total or 0, counts.survived, counts.broken)
  report:close()
  return counts
end

-- ---------------------------------------------------------------- the command line

local NUMBERS = { ["--n"] = "n", ["--seed"] = "seed", ["--from"] = "from", ["--to"] = "to",
  ["--minutes"] = "minutes" }
local TEXTS = { ["--only"] = "only", ["--among"] = "among", ["--tree"] = "tree" }

function M.main(words)
  local o, i = { n = 200, seed = 1, from = 1 }, 1
  while i <= #words do
    local word = words[i]
    if word == "--near" then o.near = true
    else
      i = i + 1
      if NUMBERS[word] then o[NUMBERS[word]] = tonumber(words[i])
      elseif TEXTS[word] then o[TEXTS[word]] = words[i]
      else
        io.stderr:write("mutants.lua: unknown option " .. word .. "\n")
        return 2
      end
    end
    i = i + 1
  end
  if not (math.type(o.n) == "integer" and math.type(o.seed) == "integer"
    and math.type(o.from) == "integer") then
    io.stderr:write "mutants.lua: --n, --seed and --from take integers\n"
    return 2
  end
  M.run(o)
  return 0
end

if arg and arg[0] and arg[0]:find "mutants%.lua$" then
  package.path = "spec/?.lua;" .. package.path
  os.exit(M.main(arg), true)
end

return M
