--- run.lua - runs every C test program and every busted spec, and ends with one line: `N passed, N failed, N skipped`.
--
--   lua5.4 spec/support/run.lua --build build --variant release [--fast] [--verbose] [FILE...]
--
-- Each file is a process of its own: a crash, a leak or a race is a failure of that file and hides no other.
-- Both kinds speak TAP. A sanitizer's report in any process that the specs started is a failure, too, and so is a report of
-- values that were alive at a process's end, which debug builds make.

package.path = "spec/?.lua;" .. package.path
local process = require "support.process"

local options = { files = {} }
local flags = { ["--fast"] = "fast", ["--verbose"] = "verbose" }
do
  local i = 1
  while i <= #arg do
    local word = arg[i]
    if word == "--build" or word == "--variant" then
      i = i + 1
      options[word:sub(3)] = arg[i]
    elseif flags[word] then options[flags[word]] = true
    elseif word:sub(1, 2) == "--" then
      io.stderr:write("run.lua: unknown option " .. word .. "\n")
      os.exit(2)
    else options.files[#options.files + 1] = (word:gsub("^%./", "")) end
    i = i + 1
  end
end
local build, variant = assert(options.build, "--build"), assert(options.variant, "--variant")

-- A file may take this long, in seconds; it is a bound for hangs and not an expectation.
local FILE_LIMIT = { release = 600, asan = 900, tsan = 1200 }

-- ---------------------------------------------------------------- what to run

local function find(command)
  local list = {}
  for path in process.run(command):gmatch "[^\n]+" do list[#list + 1] = path end
  table.sort(list)
  return list
end

local files = options.files
if #files == 0 then
  files = find "find spec -name '*_test.c' 2>/dev/null"
  for _, path in ipairs(find "find spec -name '*_spec.lua' 2>/dev/null") do
    if not (options.fast and path:find "^spec/e2e/") then files[#files + 1] = path end
  end
end

-- ---------------------------------------------------------------- how to run it

local cwd = process.run("pwd"):gsub("%s+$", "")
-- A directory of this run, so that two runs of one checkout do not meet. What failed stays to be looked at.
local tmp = process.run(("mkdir -p %s/tmp && mktemp -d %s/tmp/run.XXXXXX"):format(build, process.quote(cwd .. "/" .. build))):gsub("%s+$", "")
local reports = tmp .. "/report"

local env = {
  CMOCKA_MESSAGE_OUTPUT = "TAP",
  KL_BUILD = build,
  KL_VARIANT = variant,
  KL_FAST = options.fast and "1" or "",
  KUBELUA = cwd .. "/" .. build .. "/kubelua",
  LUA_PATH_5_4 = "lua/?.lua;lua/?/init.lua;?.lua;spec/?.lua;;",
  LUA_CPATH_5_4 = build .. "/lua/?.so;;",
  -- LeakSanitizer of gcc 12 stumbles over the thread-local storage of modules that were loaded late, unless it looks away.
  ASAN_OPTIONS = "intercept_tls_get_addr=0:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:exitcode=99:log_path=" .. reports,
  UBSAN_OPTIONS = "print_stacktrace=1:halt_on_error=1:log_path=" .. reports,
  LSAN_OPTIONS = "report_objects=0:suppressions=" .. cwd .. "/spec/support/lsan.supp:print_suppressions=0",
  TSAN_OPTIONS = "second_deadlock_stack=1:exitcode=99:suppressions=" .. cwd .. "/spec/support/tsan.supp:log_path=" .. reports,
}

local function environment()
  local words = {}
  for name, value in pairs(env) do words[#words + 1] = process.quote(name .. "=" .. value) end
  return "env " .. table.concat(words, " ")
end

-- The sanitizers' shadow maps want addresses that a kernel with much randomisation may have given away.
local plain_addresses = ""
if variant ~= "release" then
  local _, code = process.run "setarch -R true"
  if code == 0 then plain_addresses = "setarch -R " end
end

local interpreter = variant == "release" and "lua5.4" or build .. "/lua-host"

local function command(path)
  local limit = ("timeout -k 20 %d "):format(FILE_LIMIT[variant] or 600)
  if path:find "%.c$" then
    local program = path:gsub("^spec/", build .. "/spec/"):gsub("%.c$", "")
    return limit .. plain_addresses .. program
  end
  return ("%s%s%s spec/support/busted.lua -o spec/support/tap.lua -v %s"):format(limit, plain_addresses, interpreter, process.quote(path))
end

-- ---------------------------------------------------------------- reading the result

local total = { passed = 0, failed = 0, skipped = 0 }
local failures, skips = {}, {}

local function read_tap(text)
  local n = { passed = 0, failed = 0, skipped = 0, planned = false }
  for line in text:gmatch "[^\n]+" do
    local skipped = line:match "^ok %d+.*# SKIP (.*)" or line:match "^not ok %d+ # SKIP (.*)"   -- busted's and cmocka's way
    if skipped then
      n.skipped = n.skipped + 1
      skips[#skips + 1] = skipped
    elseif line:find "^ok %d+" then n.passed = n.passed + 1
    elseif line:find "^not ok %d+" then n.failed = n.failed + 1
    elseif line:find "^1%.%.%d+" then n.planned = true
    end
  end
  return n
end

-- ThreadSanitizer could not place memory of its own, once in some ten thousand processes: it has found nothing, and the spec that started the process
-- decides whether it was missed.
local NO_ROOM = "ERROR: ThreadSanitizer failed to allocate 0x%x+ %(%d+%) bytes at address"

-- What sanitizers wrote, from this file's processes.
local function take_reports()
  local parts = {}
  for _, path in ipairs(find("ls " .. process.quote(reports) .. ".* 2>/dev/null")) do
    local text = process.read(path)
    if text:find(NO_ROOM) and not text:find "WARNING: ThreadSanitizer" then
      io.stderr:write("run.lua: a process ended at once, not counted: ", text)
    else
      parts[#parts + 1] = text
    end
    os.remove(path)
  end
  return #parts > 0 and table.concat(parts, "\n") or nil
end

-- Lines about values left behind, from the file's own process and from the logs of those that it started.
local LEAK = "kubelua: leak:"
local function find_leaks(out)
  local lines = {}
  local logs = process.run(("grep -rhs %s %s --include='*.log'"):format(process.quote("^" .. LEAK), process.quote(env.KL_TMP)))
  for line in (out .. "\n" .. logs):gmatch "[^\n]+" do
    if line:sub(1, #LEAK) == LEAK then lines[#lines + 1] = line end
  end
  return #lines > 0 and table.concat(lines, "\n") or nil
end

local stop_real
local function needs_real(path)
  if options.fast or stop_real ~= nil or not path:find "%.lua$" then return false end
  return (process.read(path) or ""):find("support.servers", 1, true) ~= nil
end

local function start_real()
  local servers = require "support.servers"
  stop_real = false
  if not servers.assets() then return end
  local ok, dir, stop = pcall(servers.start_shared)
  if ok then
    env.KL_REAL_DIR, stop_real = dir, stop
  else
    io.stderr:write("run.lua: the real API server did not start: " .. tostring(dir) .. "\n")
  end
end

local function run(path)
  if needs_real(path) then start_real() end
  env.KL_TMP = tmp .. "/" .. path:gsub("[/.]", "-")
  local start = os.time()
  local out, code = process.run(environment() .. " " .. command(path))
  local n = read_tap(out)
  local report, leaks = take_reports(), find_leaks(out)
  local why
  if code == 124 or code == 137 then why = ("still running after %d s"):format(FILE_LIMIT[variant] or 600)
  elseif report then why = "a sanitizer reports:\n" .. report
  elseif leaks then why = "values were alive at the end:\n" .. leaks
  elseif code ~= 0 and n.failed == 0 then why = ("exit status %s"):format(code)
  elseif not n.planned and n.passed + n.failed > 0 then why = "it ended in the middle"
  elseif n.passed + n.failed + n.skipped == 0 then
    -- Without the real API server a file that needs it has nothing to say.
    if path:find "%.c$" and code == 0 then n.passed = 1 elseif not options.fast then why = "no test in it ran" end
  end
  if why then n.failed = n.failed + 1 end
  for key in pairs(total) do total[key] = total[key] + n[key] end
  print(("%-7s %s  %d passed%s%s  %d s"):format(n.failed > 0 and "FAILED" or "ok", path, n.passed,
    n.failed > 0 and (", %d failed"):format(n.failed) or "", n.skipped > 0 and (", %d skipped"):format(n.skipped) or "", os.time() - start))
  if n.failed > 0 then
    local text = ("---- %s%s\n%s"):format(path, why and ": " .. why or "", out)
    failures[#failures + 1] = text
    if not options.verbose then print(text) end
  end
  if options.verbose then print(out) end
  io.stdout:flush()
end

for _, path in ipairs(files) do run(path) end
if stop_real then pcall(stop_real) end
if total.failed == 0 then process.run("rm -rf " .. process.quote(tmp)) end

if #failures > 0 and #files > 1 then
  print(("\n==== %d of %d files failed:"):format(#failures, #files))
  for _, text in ipairs(failures) do print((text:match "^[^\n]*")) end
end
if #skips > 0 then
  print "\n==== SKIPPED, so this run proves less than it could:"
  for _, why in ipairs(skips) do print("  " .. why) end
end
if #files == 0 then print "no specs found" end
print(("%d passed, %d failed%s"):format(total.passed, total.failed, total.skipped > 0 and (", %d skipped"):format(total.skipped) or ""))
os.exit(total.failed == 0 and #files > 0, true)
