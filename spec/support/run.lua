--- run.lua - runs every C test program and every busted spec, and ends with one line: `N passed, N failed,
--- N skipped`.
--
--   lua5.4 spec/support/run.lua --build build --variant release [--fast] [--long] [--again] [--first]
--     [--verbose] [--jobs N] [FILE...]
--
-- Each file is a process of its own: a crash, a leak or a race is a failure of that file and hides no other.
-- Both kinds speak TAP. A sanitizer's report in any process that the specs started is a failure, too, and
-- so is a report of values that were alive at a process's end, which debug builds make.
--
-- Files run side by side, the longest of the last run first: one for each core, up to four for each while a
-- core is idle (support/cores.lua), or N of them (--jobs N). Each has a directory, reports and ports of its
-- own. A file that asks for the real API server has one to itself while it runs. A file with a
-- line
--   alone: WHY
-- among its comments runs at the end, with no other beside it. A file with a line
--   not in check, asan, tsan: WHY
-- is left out of these (or of one or two of them), unless it is named. Under a sanitizer what runs on both
-- servers runs on the embedded one alone, whose clients do the same, but for files with a line
--   real in asan, tsan: WHY
-- (or one of the two), where a client meets what only the real server does.
--
-- With --again a file whose tests fail has a second turn at the end, alone: beside another file, on a loaded
-- machine, a time-out may have been too short. What passes then is told as such, with its first failure. A
-- crash, a sanitizer's report, values left behind and a file that hangs are failures at once, and so are more
-- than three such files.
--
-- --first ends the run at the first file that fails; it begins with the quick ones.
--
-- --fast, which `make check` is, leaves out spec/e2e; --long runs the files that have a long form
-- (support/sizes.lua, test_size of support/sizes.h), in that form.

package.path = "spec/?.lua;" .. package.path
local lfs = require "lfs"
local cores = require "support.cores"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local options = { files = {} }
local flags = { ["--fast"] = "fast", ["--long"] = "long", ["--verbose"] = "verbose",
  ["--again"] = "again", ["--first"] = "first" }
local values = { ["--build"] = "build", ["--variant"] = "variant", ["--jobs"] = "jobs" }
do
  local i = 1
  while i <= #arg do
    local word = arg[i]
    if values[word] then
      i = i + 1
      options[values[word]] = arg[i]
    elseif flags[word] then
      options[flags[word]] = true
    elseif word:sub(1, 1) == "-" then
      io.stderr:write("run.lua: unknown option " .. word .. "\n")
      os.exit(2)
    else
      options.files[#options.files + 1] = (word:gsub("^%./", ""))
    end
    i = i + 1
  end
end
local build, variant = assert(options.build, "--build"), assert(options.variant, "--variant")
local processors = tonumber((process.run "nproc"))
local jobs = tonumber(options.jobs or processors)
if math.type(jobs) ~= "integer" or jobs < 1 then
  io.stderr:write("run.lua: --jobs takes a number from 1, not " .. tostring(options.jobs) .. "\n")
  os.exit(2)
end

-- The time limit of a file in seconds, which only detects hangs.
local FILE_LIMIT = { release = 600, asan = 900, tsan = 1200 }
local LONG_LIMIT = 3600
local limit = options.long and LONG_LIMIT or FILE_LIMIT[variant] or 600

-- ---------------------------------------------------------------- what to run

local function find(command)
  local list = {}
  for path in process.run(command):gmatch "[^\n]+" do list[#list + 1] = path end
  table.sort(list)
  return list
end

local function all_files()
  local list = find "find spec -name '*_test.c' 2>/dev/null"
  for _, path in ipairs(find "find spec -name '*_spec.lua' 2>/dev/null") do list[#list + 1] = path end
  return list
end

-- Whether a file belongs to a run without file names.
local function belongs(path, text)
  if options.fast and path:find "^spec/e2e/" then return false end
  local sized = text:find('require "support.sizes"', 1, true) or text:find("test_size(", 1, true)
    or text:find("servers.each_long(", 1, true)
  if options.long and not sized then return false end
  for names in text:gmatch "\n[-/* ]+not in ([%a, ]+): %S" do
    if names:find(variant, 1, true) or (options.fast and names:find("check", 1, true)) then return false end
  end
  return true
end

-- The seconds of each file in the last run of this build, or else of the release build.
local SECONDS = "/spec/seconds"

local function read_seconds()
  local seconds = {}
  for _, dir in ipairs { "build", build } do
    for path, took in (process.read(dir .. SECONDS) or ""):gmatch "(%S+) (%S+)[^\n]*\n" do
      seconds[path] = tonumber(took)
    end
  end
  return seconds
end

local function write_seconds(seconds)
  local lines = {}
  for path, took in pairs(seconds) do lines[#lines + 1] = ("%s %.1f\n"):format(path, took) end
  table.sort(lines)
  lfs.mkdir(build .. "/spec")
  process.write(build .. SECONDS, table.concat(lines))
end

-- How a spec asks for the real API server.
local ASKS = { "servers%.each%f[^%w_]", "servers%.only_real%f[^%w_]", "servers%.real%f[^%w_]",
  "widgets%.each%f[^%w_]", "foreign%.describe%f[^%w_]", "both%.describe%f[^%w_]" }
if options.long then ASKS[#ASKS + 1] = "servers%.each_long%f[^%w_]" end
local has_real = not options.fast and servers.assets() ~= nil
local BOTH = { ["servers%.each%f[^%w_]"] = true, ["servers%.each_long%f[^%w_]"] = true,
  ["widgets%.each%f[^%w_]"] = true }

-- Whether "both servers" are the embedded one alone here.
local function embedded_alone(text)
  if variant == "release" then return false end
  local names = text:match "\n[-/* ]+real in ([%a, ]+): %S" or ""
  return not names:find(variant, 1, true)
end

local function needs_real(text)
  for _, pattern in ipairs(ASKS) do
    if text:find(pattern) and not (BOTH[pattern] and embedded_alone(text)) then return has_real end
  end
  return false
end

-- A guess for a new file: specs of whole processes take longer than others, and large files longer than small
-- ones.
local function guess(path, text)
  return (path:find "^spec/e2e/" and 5 or 0) + #text / 4000
end

local seconds = read_seconds()

local function describe(path, text)
  return {
    path = path,
    seconds = seconds[path] or guess(path, text),
    alone = text:find "\n[-/* ]+alone: %S" ~= nil,
    real = path:find "%.lua$" ~= nil and needs_real(text),
    embedded_alone = embedded_alone(text),
  }
end

--- The files to run: those that may run in parallel first, and the longest first.
local function plan()
  local queue, named = {}, #options.files > 0
  for _, path in ipairs(named and options.files or all_files()) do
    local text = "\n" .. (process.read(path) or "")
    if named or belongs(path, text) then queue[#queue + 1] = describe(path, text) end
  end
  table.sort(queue, function(a, b)
    if a.alone ~= b.alone then return b.alone end
    if a.seconds ~= b.seconds then return (a.seconds > b.seconds) ~= (options.first or false) end
    return a.path < b.path
  end)
  return queue
end

-- ---------------------------------------------------------------- how to run it

local cwd = lfs.currentdir()
-- The directory of this run, so that two runs in one checkout do not collide. Files of failed specs stay for
-- inspection.
local tmp = process.run(("mkdir -p %s/tmp && mktemp -d %s/tmp/run.XXXXXX"):format(build,
  process.quote(cwd .. "/" .. build))):gsub("%s+$", "")

process.use_tmpdir(tmp)

local env = {
  GOGC = servers.GO.GOGC,     -- of kubectl and others
  CMOCKA_MESSAGE_OUTPUT = "TAP",
  KL_BUILD = build,
  KL_VARIANT = variant,
  KL_FAST = options.fast and "1" or "",
  KL_LONG = options.long and "1" or "",
  KUBELUA = cwd .. "/" .. build .. "/kubelua",
  LUA_PATH_5_4 = "lua/?.lua;lua/?/init.lua;?.lua;spec/?.lua;;",
  LUA_CPATH_5_4 = build .. "/lua/?.so;;",
  LSAN_OPTIONS = "report_objects=0:suppressions=" .. cwd .. "/spec/support/lsan.supp:print_suppressions=0",
}

-- Each file that runs has ports of its own (servers.free_port). Other checkouts may run specs, too: they
-- hardly begin at the same.
local PORTS = { first = 20000, count = 30, each = 400 }
local first_block = math.random(0, PORTS.count - 1)

-- Files that run side by side while cores are idle. Half of the blocks are for files, half for servers.
local EACH_CORE = 4
local lanes = options.jobs and jobs or math.max(jobs, math.min(jobs * EACH_CORE, PORTS.count // 2))
local function read_stat() return process.read "/proc/stat" end
local has_room = cores.watch(read_stat)

local function ports(slot)
  local from = PORTS.first + (first_block + slot) % PORTS.count * PORTS.each
  return ("%d-%d"):format(from, from + PORTS.each - 1)
end

-- Variables of one file: its directory, the place of sanitizers' reports, ports and server.
local function environment(job)
  local t = { KL_TMP = job.tmp, KL_PORTS = ports(job.slot),
    KL_REAL_DIR = job.server and job.server.dir or "",
    KL_EMBEDDED_ALONE = job.file.embedded_alone and "1" or "" }
  for name, value in pairs(env) do t[name] = value end
  -- LeakSanitizer of gcc 12 fails on the thread-local storage of modules that were loaded late, unless this
  -- check is off.
  t.ASAN_OPTIONS = "intercept_tls_get_addr=0:detect_leaks=1:detect_stack_use_after_return=1:"
    .. "strict_string_checks=1:exitcode=99:log_path=" .. job.reports
  t.UBSAN_OPTIONS = "print_stacktrace=1:halt_on_error=1:log_path=" .. job.reports
  t.TSAN_OPTIONS = "second_deadlock_stack=1:exitcode=99:suppressions=" .. cwd
    .. "/spec/support/tsan.supp:log_path=" .. job.reports
  return t
end

-- The sanitizers' shadow maps need addresses that a kernel with strong randomisation may have used.
local plain_addresses = ""
if variant ~= "release" then
  local _, code = process.run "setarch -R true"
  if code == 0 then plain_addresses = "setarch -R " end
end

local interpreter = variant == "release" and "lua5.4" or build .. "/lua-host"

local function command(path)
  local bound = ("timeout -k 20 %d %s"):format(limit, plain_addresses)
  if path:find "%.c$" then return bound .. path:gsub("^spec/", build .. "/spec/"):gsub("%.c$", "") end
  return ("%s%s spec/support/busted.lua -o spec/support/tap.lua -v %s"):format(bound, interpreter,
    process.quote(path))
end

-- Seconds that the processor spent on a lent API server so far.
local function served_seconds(real)
  return real.server and real.server.processor_seconds() or 0
end

-- Runs the command, then writes what the processor spent on it. TERM ends the command: `timeout` passes it on
-- to all that it started.
local TIMED = "trap 'kill $pid' TERM; %s & pid=$!; wait $pid; code=$?; times >%s; exit $code"

local function start(file, slot, server)
  local job = { file = file, slot = slot, server = server, began = wait.now(),
    served = server and served_seconds(server) or 0 }
  job.tmp = tmp .. "/" .. file.path:gsub("[/.]", "-") .. (file.failed and "-again" or "")
  job.base = job.tmp .. ".run"
  job.reports = job.tmp .. ".report"
  job.times = job.tmp .. ".times"
  job.process = process.spawn { "sh", "-c", TIMED:format(command(file.path), process.quote(job.times)),
    base = job.base, log = job.base .. ".out", env = environment(job), name = file.path }
  return job
end

-- Seconds that the processor spent on a job: the second line of the shell's `times`; and on its API server
-- meanwhile.
local function processor_seconds(job)
  local user_min, user, sys_min, sys = (process.read(job.times)
    or ""):match "\n(%d+)m([%d.]+)s (%d+)m([%d.]+)s"
  return user and user_min * 60 + user + sys_min * 60 + sys or 0,
    job.server and served_seconds(job.server) - job.served or 0
end

-- ---------------------------------------------------------------- reading the result

local total = { passed = 0, failed = 0, skipped = 0 }
local failures, skips, spent = {}, {}, {}
local total_processor, servers_processor = 0, 0     -- seconds: of files, and of the API servers lent to them

local function read_tap(text)
  local n = { passed = 0, failed = 0, skipped = 0, planned = false, skips = {} }
  for line in text:gmatch "[^\n]+" do
    -- busted's and cmocka's way
    local skipped = line:match "^ok %d+.*# SKIP (.*)" or line:match "^not ok %d+ # SKIP (.*)"
    if skipped then
      n.skipped = n.skipped + 1
      n.skips[#n.skips + 1] = skipped
    elseif line:find "^ok %d+" then n.passed = n.passed + 1
    elseif line:find "^not ok %d+" then n.failed = n.failed + 1
    elseif line:find "^1%.%.%d+" then n.planned = true
    end
  end
  return n
end

-- About once in ten thousand processes, ThreadSanitizer cannot place its own memory: it has found nothing,
-- and the spec that started the process decides whether that is a failure.
local NO_ROOM = "ERROR: ThreadSanitizer failed to allocate 0x%x+ %(%d+%) bytes at address"

-- The sanitizers' reports from this file's processes.
local function take_reports(job)
  if variant == "release" then return nil end
  local parts = {}
  for _, path in ipairs(find("ls " .. process.quote(job.reports) .. ".* 2>/dev/null")) do
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
local function find_leaks(job, out)
  local lines = {}
  local logs = lfs.attributes(job.tmp) and process.run(("grep -rhs %s %s --include='*.log'"):format(
    process.quote("^" .. LEAK), process.quote(job.tmp))) or ""
  for line in (out .. "\n" .. logs):gmatch "[^\n]+" do
    if line:sub(1, #LEAK) == LEAK then lines[#lines + 1] = line end
  end
  return #lines > 0 and table.concat(lines, "\n") or nil
end

-- cmocka's message for a signal in a test.
local CRASH = "Test failed with exception: "

-- The reason why a file failed without a failed test, or nil; then whether a repetition cannot excuse it.
local function trouble(job, out, code, n)
  local report, leaks = take_reports(job), find_leaks(job, out)
  if report then return "a sanitizer reports:\n" .. report, true end
  if leaks then return "values were alive at the end:\n" .. leaks, true end
  if code == 124 or code == 137 then return ("still running after %d s"):format(limit), true end
  if code > 128 then return ("ended by signal %d"):format(code - 128), true end
  if out:find(CRASH, 1, true) then return "a test crashed", true end
  if code ~= 0 and n.failed == 0 then return ("exit status %s"):format(code) end
  if not n.planned and n.passed + n.failed > 0 then return "it ended in the middle" end
  if n.passed + n.failed + n.skipped > 0 then return nil end
  if job.file.path:find "%.c$" and code == 0 then
    n.passed = 1
    return nil
  end
  -- Without the real API server a file that needs it has nothing to say.
  return not options.fast and "no test in it ran" or nil
end

-- The output of a failed file from its first bad line on, at most `most` lines.
local function bad_lines(out, most)
  local lines, dropped = {}, 0
  for line in out:gmatch "[^\n]+" do
    if line:match "^ok " or line:match "^1%.%." then goto continue end
    if #lines < most then lines[#lines + 1] = line else dropped = dropped + 1 end
    ::continue::
  end
  if dropped > 0 then lines[#lines + 1] = ("(%d more lines)"):format(dropped) end
  return table.concat(lines, "\n")
end

local MOST_FLICKERS = 3
local flickers = {}         -- the output of files that failed and then passed
local again = {}            -- files that run again; `failed`: the output of their first run

local function put_off(file, text)
  again[#again + 1] = { path = file.path, seconds = file.seconds, alone = true, real = file.real,
    failed = text }
end

local function count(job, n, took)
  for key in pairs(total) do total[key] = total[key] + n[key] end
  table.move(n.skips, 1, #n.skips, #skips + 1, skips)
  local own, served = processor_seconds(job)
  local processor = own + served
  total_processor = total_processor + own
  spent[#spent + 1] = { path = job.file.path, took = took, processor = processor }
  seconds[job.file.path] = took
end

local function finish(job)
  local path, out, code = job.file.path, process.read(job.base .. ".out") or "", job.process:wait(1)
  local took, n = wait.now() - job.began, read_tap(out)
  local why, sure = trouble(job, out, code, n)
  if why then n.failed = n.failed + 1 end
  local again_later = n.failed > 0 and not sure and not job.file.failed and options.again
  print(("%-7s %s  %d passed%s%s  %.1f s%s"):format(n.failed > 0 and "FAILED" or "ok", path, n.passed,
    n.failed > 0 and (", %d failed"):format(n.failed) or "",
    n.skipped > 0 and (", %d skipped"):format(n.skipped) or "", took,
    again_later and ", runs again at the end" or ""))
  if n.failed > 0 then
    local head = ("---- %s%s\n"):format(path, why and ": " .. why or "")
    local text = head .. bad_lines(out, 30)
    if again_later then put_off(job.file, text) else failures[#failures + 1] = text end
    if not options.verbose then print(head .. bad_lines(out, 400)) end
  elseif job.file.failed then
    flickers[#flickers + 1] = job.file.failed
  end
  if options.verbose then print(out) end
  io.stdout:flush()
  if not again_later then count(job, n, took) end
end

-- ---------------------------------------------------------------- side by side

local LOOK = 0.01           -- seconds between two looks at what runs
local SERVER_LOOK = 0.5     -- seconds between two questions to a real API server that starts
local SERVER_LIMIT = 120    -- seconds until it answers

local function begin_server(reals)
  local ok, server = pcall(servers.begin_shared, ports(lanes + #reals + 1))
  reals[#reals + 1] = { starting = true, server = ok and server, why = not ok and server, began = wait.now(),
    looked = 0 }
end

-- One real API server for each file that may use one in parallel. They start while files run that need none.
local function start_servers(queue)
  local reals = {}
  for _, file in ipairs(queue) do
    if file.real and #reals < jobs then begin_server(reals) end
  end
  return reals
end

-- Adds one, if the next file waits only for a server.
local function add_server(file, reals)
  for _, real in ipairs(reals) do
    if real.starting or not real.busy then return end
  end
  if file.real and not file.alone and #reals < lanes // 2 then begin_server(reals) end
end

-- Whether a server that starts is there; why not, where it never will be.
local function look_at(real)
  if not real.server then return false, real.why end
  local ok, ready = pcall(real.server.ready)
  if not ok then return false, ("%s\n%s"):format(ready, real.server.story()) end
  if not ready and wait.now() - real.began > SERVER_LIMIT then
    return false, "it does not answer\n" .. real.server.story()
  end
  return ready
end

-- An API server that no file uses. A server that did not start counts as one without a directory: the file
-- starts its own, and shows the error.
local function idle_server(reals)
  for _, real in ipairs(reals) do
    if real.starting and wait.now() - real.looked > SERVER_LOOK then
      local ready, why = look_at(real)
      real.looked = wait.now()
      real.starting = not ready and not why
      if ready then real.server.remember() end
      real.dir = ready and real.server.dir
      if why then io.stderr:write("run.lua: the real API server did not start: " .. tostring(why) .. "\n") end
    end
    if not real.starting and not real.busy then return real end
  end
  return nil
end

-- The next file that may start now, taken out of the queue, and its server; nil where all that is left must
-- wait.
local function next_file(queue, running, reals)
  local server = idle_server(reals)
  for i, file in ipairs(queue) do
    local free = server or not file.real
    if file.alone then free = free and running == 0 and i == 1 end
    if free then return table.remove(queue, i), file.real and server or nil end
  end
  return nil
end

-- Ends the API servers that no file uses any more: even idle ones cost 3 % of a core each.
local function end_unused(queue, reals)
  for _, file in ipairs(queue) do
    if file.real then return end
  end
  for i = #reals, 1, -1 do
    if not reals[i].busy then
      if reals[i].server then servers_processor = servers_processor + reals[i].server.discard() end
      table.remove(reals, i)
    end
  end
end

local most = 0              -- files that ran at one time

local function run_all(queue)
  local reals, slots, running, alone = start_servers(queue), {}, 0, false
  local function over() return options.first and total.failed > 0 end
  local function start_next(slot)
    local idle = has_room(wait.now())
    if running >= jobs and not idle then return end
    if running >= jobs then add_server(queue[1], reals) end
    local file, server = next_file(queue, running, reals)
    if not file then return end
    if server then server.busy = true end
    slots[slot], running, alone = start(file, slot, server), running + 1, file.alone
    most = math.max(most, running)
  end
  repeat
    for slot = 1, lanes do
      local job = slots[slot]
      if job and not job.process:alive() then
        finish(job)
        if job.server then job.server.busy = false end
        slots[slot], running, alone = nil, running - 1, false
      end
      if not slots[slot] and not alone and #queue > 0 and not over() then
        start_next(slot)
      end
    end
    if over() then
      for _, job in pairs(slots) do job.process:signal "TERM" end
      for _, job in pairs(slots) do job.process:wait(5) end
      break
    end
    end_unused(queue, reals)
    wait.pause(LOOK)
  until #queue == 0 and running == 0
  for _, real in ipairs(reals) do real.busy = false end
  end_unused({}, reals)
end

local SLOWEST = 20
-- Prints two lists, by time and by processor time, since slow files mostly wait.
local function print_slowest()
  if #spent <= SLOWEST then return end
  for _, by in ipairs { { "took", "slowest" }, { "processor", "dearest" } } do
    table.sort(spent, function(a, b) return a[by[1]] > b[by[1]] end)
    print(("\n==== the %s %d of %d files: seconds, and seconds of the processor:"):format(by[2], SLOWEST,
      #spent))
    for i = 1, SLOWEST do
      print(("%7.1f %7.1f  %s"):format(spent[i].took, spent[i].processor, spent[i].path))
    end
  end
end

local queue = plan()
local files = #queue
local began, idle_before = wait.now(), cores.idle_seconds(read_stat()) or 0
run_all(queue)
if #again > 0 then run_all(again) end
if #flickers > MOST_FLICKERS then
  total.failed = total.failed + 1
  failures[#failures + 1] = ("%d files passed only when they ran again: more than %d are a failure"):format(
    #flickers, MOST_FLICKERS)
end
write_seconds(seconds)
if total.failed == 0 then process.run("rm -rf " .. process.quote(tmp)) end

print_slowest()
if #failures > 0 and files > 1 then
  print(("\n==== %d of %d files failed:"):format(#failures, files))
  for _, text in ipairs(failures) do print(text) end
end
if #flickers > 0 then
  print(("\n==== %d of %d files passed only when they ran again, alone:"):format(#flickers, files))
  for _, text in ipairs(flickers) do print(text) end
end
if #skips > 0 then
  print "\n==== SKIPPED, so this run proves less than it could:"
  for _, why in ipairs(skips) do print("  " .. why) end
end
if files == 0 then print "no specs found" end
if files > 1 then
  local took, idle = wait.now() - began, (cores.idle_seconds(read_stat()) or 0) - idle_before
  local all, n = total_processor + servers_processor, processors
  print(("\n%d files in %.0f s, at most %d side by side; %.0f s of the processor, %.0f of them of shared \z
    API servers: %.0f %% of %d cores, of which all work of the machine kept %.1f busy"):format(files, took,
    most, all, servers_processor, 100 * all / took / n, n, n - idle / took))
end
print(("%d passed, %d failed%s"):format(total.passed, total.failed,
  total.skipped > 0 and (", %d skipped"):format(total.skipped) or ""))
os.exit(total.failed == 0 and files > 0, true)
