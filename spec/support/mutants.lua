-- mutants.lua - mutation testing: changes one place of the code at a time, and runs the specs that should
-- notice.
--
--   lua5.4 spec/support/mutants.lua [--n 200] [--seed 1] [--from 1] [--to N] [--minutes M] [--near]
--     [--only PATTERN] [--among PATTERN] [--tree DIR]
--
-- A mutant is one small change in core, bindings, lua or controllers, chosen by chance from all places where
-- one is possible (mutant_places.lua): a comparison turned, a constant off by one, a condition negated, a
-- statement dropped, "and" for "or", a function that returns at once. The same seed over the same files gives
-- the same mutants.
--
-- A mutant stands in a copy of the tree (build/mutants/mutated), never in the checkout. Its file alone is
-- compiled, with little optimisation, and linked before the library, whose own object is then not taken: 1 to
-- 3 s on an idle machine. `make -n` gives the commands.
--
-- It meets the specs near it first: those of its room, those that bear its name or its directory's, C tests
-- that include its header, and for a policy the tests of policies that fit it best. If it survives them it
-- meets a wider set: the dozen Lua specs that have most of the words around the place. Of each set the
-- cheapest run first. The first failure ends it, a hang counts as one. A spec that fails without the mutant,
-- too (build/mutants/plain), says nothing and is left out. The copies have no real API server: specs run
-- against the embedded one alone.
--
-- No mutation tool that Debian packages knows C and Lua (Mull and universalmutator are not in Debian, and
-- know no Lua), so this one is ours.
--
-- --only makes mutants of some files alone; --among takes those of some files out of the mutants of all,
-- under the same numbers, so that a long run can be done in parts: --from and --to name the numbers; --near
-- leaves out the wider set where there is a near one.
--
-- Mutants that mutant_equals.lua names are not judged, and count neither as killed nor as survivors.
--
-- Results go to build/mutants/report.txt as they come; survivors are listed at the end.

package.path = "spec/?.lua;" .. package.path
local equals = require "support.mutant_equals"
local places = require "support.mutant_places"
local process = require "support.process"

local M = {}

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
  local lines, words = places.lines_of(text), {}
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
    -- A C test has the library of core in it, and nothing else.
    if top ~= "core" and spec:find "%.c$" then goto continue end
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
    ::continue::
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

--- The places, each once, in an order that the seed says.
function M.choose(all, seed)
  local list = table.move(all, 1, #all, 1, {})
  math.randomseed(seed, 0)
  for i = #list, 2, -1 do
    local k = math.random(i)
    list[i], list[k] = list[k], list[i]
  end
  return list
end

-- ---------------------------------------------------------------- the copies of a tree

local ROOT = "build/mutants"

local function sh(dir, command) return process.run(("cd %s && %s"):format(process.quote(dir), command)) end

-- A copy of what git knows and of what is built, without what specs can do without.
local function copy(tree, name)
  local to = ("%s/%s/%s"):format(tree, ROOT, name)
  local out, code = sh(tree, ([[rm -rf TO && mkdir -p TO/build && git ls-files -z |
    xargs -0 cp -p --parents -t TO && for d in $(ls -Ad build/* build/.deps-* 2>/dev/null); do
      case $d in build/mutants|build/assets|build/tmp|build/asan|build/tsan|build/fuzz) ;;
      *) cp -a "$d" TO/build/ ;; esac; done]]):gsub("TO", ROOT .. "/" .. name))
  assert(code == 0, ("mutants: the tree cannot be copied to %s: %s"):format(to, out))
  return to
end

local function files(tree, pattern)
  local list = {}
  for path in sh(tree, "git ls-files " .. pattern):gmatch "[^\n]+" do list[#list + 1] = path end
  return list
end

local function read(tree, path) return process.read(tree .. "/" .. path) or "" end

-- The texts of the specs by path; those that run alone take too long.
local function specs_in(tree)
  local all = {}
  for _, path in ipairs(files(tree, "spec")) do
    if path:find "_test%.c$" or path:find "_spec%.lua$" then
      local text = read(tree, path)
      if not text:find "\n[-/* ]+alone: %S" then all[path] = text end
    end
  end
  for _, path in ipairs(files(tree, "controllers")) do
    if is_policy_test(path) then all[path] = read(tree, path) end
  end
  return all
end

local function places_in(tree, only)
  local list = {}
  for _, path in ipairs(files(tree, "core bindings lua controllers")) do
    local text = read(tree, path)
    if places.counts(path, text) and (not only or path:find(only)) then
      for _, place in ipairs(places.of(text, path:match "%.(%w+)$")) do
        place.path = path
        list[#list + 1] = place
      end
    end
  end
  return list
end

-- ---------------------------------------------------------------- building a mutant

-- Seconds of a command that compiles or links.
local BUILD_LIMIT = 120
-- Little optimisation, no debugger, and unused code is only a warning.
local FLAGS = "WERROR= CFLAGS=-g0 OPT_release=-O1"
-- What `make` would do beside compiling and linking.
local IDLE = { "^mkdir ", "^rm ", "^ar " }

-- What a spec runs: its own program, or those of the project that are there.
local function targets_of(spec, text, plain)
  if spec:find "%.c$" then return { "build/" .. spec:gsub("%.c$", "") } end
  local list = { "build/kubelua" }
  if is_policy_test(spec) then return list end
  list[2] = "build/lua/kubelua/core.so"
  for name in text:gmatch '"/spec/([%w_]+)"' do
    if process.read(plain .. "/build/spec/" .. name) then list[#list + 1] = "build/spec/" .. name end
  end
  return list
end

-- The commands that make the targets new after a change of `path`. The mutant's object comes before the
-- library. The annotations of Lua files say nothing of what code does. A `make` that this one runs under
-- would change what it prints.
local function commands(plain, path, targets)
  local make = "env -u MAKEFLAGS -u MAKELEVEL make -n V=1 %s -o build/gen/annotations.txt -W %s %s"
  local out, code = sh(plain, make:format(FLAGS, path, table.concat(targets, " ")))
  assert(code == 0, out)
  local list, object = {}, nil
  for line in out:gsub("\\\n", " "):gmatch "[^\n]+" do
    local idle = line:find "^make: "
    for _, pattern in ipairs(IDLE) do idle = idle or line:find(pattern) end
    object = object or line:match " %-c %-o (%S+)"
    if object and not line:find(object, 1, true) then
      line = line:gsub(" %S+%.a%f[%s]", " " .. object .. "%0", 1)
    end
    if not idle then list[#list + 1] = line end
  end
  return list
end

-- Builds what the specs run, where that is not done; false: the mutant does not compile. `m.built` maps the
-- commands that ran to true, `m.written` lists the files that they wrote.
local function build(w, m, specs)
  local targets = {}
  for _, spec in ipairs(specs) do
    for _, target in ipairs(targets_of(spec, w.all[spec], w.plain)) do targets[#targets + 1] = target end
  end
  for _, command in ipairs(commands(w.plain, m.path, targets)) do
    if not m.built[command] then
      local _, code = sh(w.mutated, ("timeout -k 5 %d sh -c %s"):format(BUILD_LIMIT, process.quote(command)))
      if code ~= 0 then return false end
      m.built[command] = true
      m.written[#m.written + 1] = command:match " %-o (build/%S+)" or command:match "> (build/%S+)"
    end
  end
  return true
end

-- Puts a changed text into the copy.
local function enter(w, place, text)
  process.write(w.mutated .. "/" .. place.path, text)
  return { path = place.path, built = {}, written = {} }
end

-- Makes the copy as it was.
local function leave(w, m)
  m.written[#m.written + 1] = m.path
  for _, path in ipairs(m.written) do
    local from, to = process.quote(w.plain .. "/" .. path), process.quote(w.mutated .. "/" .. path)
    local out, code = process.run(("cp -p --remove-destination %s %s"):format(from, to)) -- it may still run
    assert(code == 0, out)
  end
end

-- ---------------------------------------------------------------- running specs

-- Seconds that specs may take: so many, and a multiple of what they took before.
local SPEC_LIMIT, SLOW = 30, 4
local HANG = "a hang" -- unless the spec is as slow without the mutant
local CHUNK = 4       -- specs that are linked and run together
local TOO_LONG = 20   -- a spec that takes more seconds is left to `make test`

-- Seconds by spec: of the last run of each in the tree, or of its first in a copy.
local function learn(w, dir)
  for path, n in (process.read(dir .. "/build/spec/seconds") or ""):gmatch "(%S+) (%S+)[^\n]*\n" do
    w.seconds[path] = w.seconds[path] or tonumber(n)
  end
end

local function is_over(code) return code == 124 or code == 137 end

-- nil where all pass; else the first that failed, or "a hang".
local function failing(w, dir, specs)
  local rest, limit = {}, SPEC_LIMIT
  for _, spec in ipairs(specs) do
    if is_policy_test(spec) then
      local _, code = sh(dir, ("timeout -k 5 %d build/kubelua test %s"):format(SPEC_LIMIT, spec))
      if code ~= 0 then return is_over(code) and HANG or spec end
    else
      rest[#rest + 1] = spec
      limit = limit + SLOW * (w.seconds[spec] or 1)
    end
  end
  if #rest == 0 then return nil end
  local out, code = sh(dir, ("env -u KUBEBUILDER_ASSETS timeout -k 5 %d lua5.4 spec/support/run.lua"
    .. " --build build --variant release --first %s"):format(math.ceil(limit), table.concat(rest, " ")))
  learn(w, dir)
  if code == 0 then return nil end
  return is_over(code) and HANG or out:match "FAILED%s+(%S+)" or "a run that ended"
end

-- Whether a spec passes without the mutant; tested once, at its first failure.
local function is_sound(w, spec)
  if w.sound[spec] == nil then w.sound[spec] = not w.all[spec] or not failing(w, w.plain, { spec }) end
  return w.sound[spec]
end

-- The first spec that fails, and passes without the mutant.
local function noticed_by(w, specs)
  while #specs > 0 do
    local who = failing(w, w.mutated, specs)
    if not who then return nil end
    if who == HANG then return failing(w, w.plain, specs) ~= HANG and who or nil end
    if is_sound(w, who) then return who end
    local rest = {}
    for _, spec in ipairs(specs) do
      if spec ~= who then rest[#rest + 1] = spec end
    end
    specs = rest
  end
  return nil
end

-- The specs that are meaningful and not too slow: C tests, then the others, the cheapest first.
local function usable(w, specs)
  local list, order = {}, {}
  for i, spec in ipairs(specs) do
    local seconds = w.seconds[spec] or spec:find "^spec/e2e/" and 5 or 1
    if w.sound[spec] ~= false and seconds <= TOO_LONG then
      list[#list + 1] = spec
      order[spec] = { spec:find "%.c$" and 1 or 2, seconds, i }
    end
  end
  table.sort(list, function(a, b)
    local x, y = order[a], order[b]
    for i = 1, 3 do
      if x[i] ~= y[i] then return x[i] < y[i] end
    end
    return false
  end)
  return list
end

-- The spec that notices the mutant: its name; nil: none; false: the mutant does not compile.
local function asked(w, m, specs)
  local list = usable(w, specs)
  for i = 1, #list, CHUNK do
    local round = table.move(list, i, math.min(i + CHUNK - 1, #list), 1, {})
    if not build(w, m, round) then return false end
    local who = noticed_by(w, round)
    if who then return who end
  end
  return nil
end

local function judge(w, place, near_alone)
  local text = read(w.plain, place.path)
  local changed = places.changed(text, place)
  if place.path:find "%.lua$" and not load(changed, place.path, "t") then return false end
  local near, wide = M.specs_of(place.path, text, place.line, w.index)
  local m = enter(w, place, changed)
  local who = asked(w, m, near)
  if who == nil and not (near_alone and #near > 0) then who = asked(w, m, wide) end
  leave(w, m)
  return who
end

--- Judges mutants of a tree; the options are those of the command line.
function M.run(o)
  local tree = o.tree or "."
  local w = { seconds = {}, sound = {}, all = specs_in(tree) } -- what is known of the specs
  w.index = M.index(w.all)
  local chosen = M.choose(places_in(tree, o.only), o.seed)
  w.mutated, w.plain = copy(tree, "mutated"), copy(tree, "plain")
  learn(w, tree)
  local report = assert(io.open(tree .. "/" .. ROOT .. "/report.txt", "w"))
  local function say(...)
    local line = string.format(...)
    if not o.quiet then print(line) end
    report:write(line, "\n")
    io.stdout:flush()
    report:flush()
  end
  local began, counts, survivors = os.time(), { killed = 0, survived = 0, broken = 0 }, {}
  say("%d places in %s, seed %d", #chosen, tree, o.seed)
  for i = o.from, math.min(o.to or #chosen, #chosen) do
    local place, since = chosen[i], os.time()
    if counts.killed + counts.survived >= o.n or o.minutes and since - began > o.minutes * 60 then break end
    if o.among and not place.path:find(o.among) then goto continue end
    local equal = equals[place.path .. ": " .. place.new:match "^%s*(.-)$"]
    if equal then
      say("%4d equal    %s:%d: %s", i, place.path, place.line, equal)
      goto continue
    end
    local who = judge(w, place, o.near)
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
  os.exit(M.main(arg), true)
end

return M
