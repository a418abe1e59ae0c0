-- test.lua - kubelua test: the tests beside scripts, *_test.lua, in a process of our own and without busted.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local junit = require "kubelua.cli.junit"
local plain = require "kubelua.plain"
local suite = require "kubelua.suite"
local testing = require "kubelua.testing"

local M = {}

M.no_cluster = true
M.options = {
  { "--filter", "PATTERN", "only tests whose name matches this (a Lua pattern; may be \z
    repeated)", type = "list" },
  { "--filter-out", "PATTERN", "skip tests whose name matches this (may be repeated)", type = "list" },
  { "--list", nil, "list the tests without running them", type = "flag" },
  { "--output", "FORMAT", "plain, json, tap or junit (plain)", brief = "-o",
    values = "plain json tap junit" },
  { "--fail-fast", nil, "stop at the first failure", type = "flag" },
  { "--verbose", nil, "with a failure, everything that controllers and the runtime logged", type = "flag",
    brief = "-v" },
}

-- ---------------------------------------------------------------- which files

--- The test files of words on a command line: files, scripts that have one beside them, directories.
function M.files(words)
  local out, seen = {}, {}
  local function add(path)
    path = path:gsub("^%./", "")
    if not seen[path] then out[#out + 1] = path end
    seen[path] = true
  end
  for _, word in ipairs(#words > 0 and words or { "." }) do
    local found, why = core.tree(word, "_test.lua")
    if not found then common.usage("cannot read %s: %s", word, why) end
    if word:find "%.lua$" and not word:find "_test%.lua$" then
      local beside = word:gsub("%.lua$", "_test.lua")
      local file = io.open(beside, "rb")
      if not file then common.usage("%s has no tests: expected them in %s", word, beside) end
      file:close()
      add(beside)
    else
      for _, path in ipairs(found) do add(path) end
    end
  end
  return out
end

-- ---------------------------------------------------------------- output

local function indent(text, by) return by .. (text:gsub("\n+$", ""):gsub("\n", "\n" .. by)) end

local function name_of(node) return suite.full_name(node) ~= "" and suite.full_name(node) or "(the file)" end

local Plain = {}
Plain.__index = Plain

function Plain:file(path) self.path = path end

function Plain:tell(node, status, problem)
  if status == "passed" and not self.verbose then
    self.dots = (self.dots or 0) + 1
    return
  end
  local words = { passed = "ok", failed = "FAILED", pending = "pending" }
  print(("%-7s %s: %s"):format(words[status], self.path, name_of(node)))
  if not problem then return end
  if problem.where then print("    " .. problem.where) end
  print(indent(problem.message, "    "))
  if problem.trace and self.verbose then print(indent(problem.trace, "    ")) end
  if problem.story and problem.story ~= "" then print(indent(problem.story, "    | ")) end
end

function Plain:finish(n, seconds)
  print(("%d passed, %d failed%s in %.2f s"):format(n.passed, n.failed,
    n.pending > 0 and (", %d pending"):format(n.pending) or "", seconds))
end

-- One line is one test, whatever a test is called.
local Tap = { count = 0 }
Tap.__index = Tap

local function line(text) return core.visible(text, true) end

-- In a description "#" begins a directive: TAP does not count a failure whose name has "# TODO".
local function described(node) return (line(name_of(node)):gsub("#", "\\#")) end

function Tap:file(path) print("# " .. line(path)) end

function Tap:tell(node, status, problem)
  self.count = self.count + 1
  if status == "pending" then
    print(("ok %d - %s # SKIP %s"):format(self.count, described(node), line(problem.message)))
    return
  end
  print(("%s %d - %s"):format(status == "passed" and "ok" or "not ok", self.count,
    described(node)))
  if not problem then return end
  if problem.where then print("# " .. line(problem.where)) end
  print(indent(core.visible(problem.message), "# "))
  if problem.trace then print(indent(core.visible(problem.trace), "# ")) end
  if problem.story and problem.story ~= "" then print(indent(core.visible(problem.story), "#   ")) end
end

function Tap:finish() print("1.." .. self.count) end

-- A suite for each file, once all have run.
local Junit = {}
Junit.__index = Junit

function Junit:file(path)
  self.suites = self.suites or {}
  self.suites[#self.suites + 1] = { name = path, cases = {}, began = core.monotonic() }
  self.last = core.monotonic()
end

function Junit:tell(node, status, problem)
  local suite_of, now = self.suites[#self.suites], core.monotonic()
  local lines = problem and { problem.message }
  for _, part in ipairs { "where", "trace", "story" } do
    local more = problem and problem[part] or ""
    if more ~= "" then lines[#lines + 1] = more end
  end
  suite_of.cases[#suite_of.cases + 1] = {
    class = suite_of.name, name = name_of(node), seconds = now - self.last,
    failure = status == "failed" and table.concat(lines, "\n") or nil,
    skipped = status == "pending" and problem.message or nil,
  }
  suite_of.seconds, self.last = now - suite_of.began, now
end

function Junit:finish() io.write(junit.text(self.suites or {})) end

local Json = {}
Json.__index = Json

function Json:file(path) self.path = path end

function Json:tell(node, status, problem)
  self.tests, problem = self.tests or {}, problem or {}
  local out = { file = self.path, line = node.line, name = name_of(node), status = status,
    message = problem.message, where = problem.where, trace = problem.trace, story = problem.story }
  for key, text in pairs(out) do out[key] = plain.readable(text) end
  table.insert(self.tests, out)
end

function Json:finish(n, seconds)
  common.print_json { tests = core.array(self.tests or {}), passed = n.passed, failed = n.failed,
    pending = n.pending, seconds = seconds }
end

local FORMATS = { plain = Plain, json = Json, tap = Tap, junit = Junit }

-- ---------------------------------------------------------------- running

local function check_patterns(option, patterns)
  for _, p in ipairs(patterns or {}) do
    local ok, why = pcall(string.find, "", p)
    if not ok then
      common.usage("%s %q is not a Lua pattern: %s (%% makes a character mean itself)", option, p,
        common.message(why))
    end
  end
end

local function wants(o, name)
  local yes = not o.filter
  for _, p in ipairs(o.filter or {}) do yes = yes or name:find(p) ~= nil end
  for _, p in ipairs(o.filter_out or {}) do yes = yes and not name:find(p) end
  return yes
end

-- Modules that a test file loads are its own; those of the library stay.
local function forget_modules(before)
  for name in pairs(package.loaded) do
    if not before[name] and not name:find "^kubelua" then package.loaded[name] = nil end
  end
end

--- Runs the tests of files. `report` has file, tell and finish.
---@return {passed: integer, failed: integer, pending: integer} counts
function M.run_files(files, o, report)
  local n, stop = { passed = 0, failed = 0, pending = 0 }, false
  local began = core.monotonic()
  local path_before = package.path
  for _, path in ipairs(files) do
    if stop then break end
    local dir = path:match "^(.*)/" or ""
    local loaded = {}
    for name in pairs(package.loaded) do loaded[name] = true end
    package.path = ("%s?.lua;%s?/init.lua;%s"):format(dir == "" and "" or dir .. "/",
      dir == "" and "" or dir .. "/", path_before)
    testing.directory(dir)
    local root = suite.load(path)
    local wanted, some = {}, false
    for _, node in ipairs(suite.tests(root)) do
      if node.test and wants(o, suite.full_name(node)) then wanted[node] = true end
      some = some or wanted[node] or node.broken ~= nil
    end
    local mark = 0
    if some then
      report:file(path)
      suite.run(root, wanted, function(node, status, problem)
        n[status] = n[status] + 1
        report:tell(node, status, problem)
        if status == "failed" and o.fail_fast then
          for other in pairs(wanted) do wanted[other] = nil end
          stop = true
        end
      end, {
        before = function() mark = testing.mark() end,
        failed = function() return testing.story(o.verbose) end,
        after = function() testing.stop_since(mark) end,
      })
    end
    testing.stop_since(0)
    package.path = path_before
    forget_modules(loaded)
  end
  testing.directory ""
  report:finish(n, core.monotonic() - began)
  return n
end

local function list(files, o)
  local all = {}
  for _, path in ipairs(files) do
    for _, node in ipairs(suite.tests(suite.load(path))) do
      if node.broken then
        error(("%s does not load: %s"):format(path, common.message(node.broken.error)), 0)
      end
      if wants(o, suite.full_name(node)) then
        all[#all + 1] = { file = node.file or path, line = node.line, name = suite.full_name(node) }
      end
    end
  end
  return all
end

function M.run(env)
  local o = env.options
  check_patterns("--filter", o.filter)
  check_patterns("--filter-out", o.filter_out)
  local format = o.output or "plain"
  local files = M.files(env.words)
  if #files == 0 then
    common.usage("no tests found in %s: tests are in files named *_test.lua beside the scripts",
      #env.words > 0 and table.concat(env.words, " ") or "this directory")
  end
  if o.list then
    local all = list(files, o)
    if format == "json" then
      common.print_json { tests = core.array(all) }
    else
      for _, t in ipairs(all) do print(("%s:%d: %s"):format(t.file, t.line, t.name)) end
    end
    return #all > 0 and 0 or 1
  end
  local report = setmetatable({ verbose = o.verbose }, FORMATS[format])
  local n = M.run_files(files, o, report)
  if n.passed + n.failed + n.pending == 0 then
    common.complain(env, "no test has this name; --list lists them")
    return 1
  end
  return n.failed == 0 and 0 or 1
end

return M
