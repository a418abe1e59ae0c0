-- show.lua - shows the demo: what the nodes offer before the policy and after, three other policies at work
-- (policies.lua), and then what changes.
--
-- Runs beside the controllers (`kubelua dev --play`), which gives it `dev`. With nobody watching it ends as
-- soon as the cluster has converged; on a terminal it stays.

local kube = require "kubelua"
local cluster = require "cluster"
local policies = require "policies"

local dev = dev -- luacheck: ignore 113

local CONVERGE_WITHIN = 60 -- seconds
local LOOK_EVERY = 0.2
local STEADY_LOOKS = 4     -- as many looks in a row must show the same
local FRESH_WITHIN = 60    -- a metric younger than this was renewed by its agent
local SHOW_EVERY = 30

local client = kube.connect { server = dev.server }

local function say(fmt, ...) io.stdout:write(fmt:format(...), "\n") io.stdout:flush() end

local function list(kind)
  local out = {}
  for o in client:each(kind) do out[#out + 1] = o end
  return out
end

-- The nodes as they were loaded. Asking the server would race with the policy.
local function loaded_nodes()
  local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
  local path = here .. "/20-nodes.yaml"
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return kube.yaml(text, path)
end

local before_nodes = loaded_nodes()
local before = cluster.rows(before_nodes, {})

local place = {}
for i, node in ipairs(before_nodes) do place[node.metadata.name] = i end

local function look()
  local nodes, metrics = list "v1/Node", list "slo.koordinator.sh/v1alpha1/NodeMetric"
  table.sort(nodes, function(a, b)
    local pa, pb = place[a.metadata.name] or math.huge, place[b.metadata.name] or math.huge
    if pa ~= pb then return pa < pb end
    return a.metadata.name < b.metadata.name
  end)
  return cluster.rows(nodes, metrics), metrics
end

-- Only what the policy decides: usage changes all the time.
local function offers(rows)
  local parts = {}
  for i, row in ipairs(rows) do
    parts[i] = table.concat({ row.node, row.batch_cpu or "-", row.batch_memory or "-", row.mid_cpu or "-",
      row.mid_memory or "-", row.note or "" }, " ")
  end
  return table.concat(parts, "\n")
end

local function all_fresh(metrics)
  local now = os.time()
  for _, metric in ipairs(metrics) do
    local updated = metric("status.updateTime")
    if not cluster.silent(metric) and (not updated or now - kube.time(updated):unix() > FRESH_WITHIN) then
      return false
    end
  end
  return #metrics > 0
end

-- Waits until every agent has reported, nothing is left to do and the offers stand still. Returns the rows,
-- or nil.
local function settled()
  local last, steady = nil, 0
  for _ = 1, CONVERGE_WITHIN // LOOK_EVERY do
    local rows, metrics = look()
    local now = offers(rows)
    local still = dev.idle() and all_fresh(metrics) and now == last
    steady, last = still and steady + 1 or 0, now
    if steady >= STEADY_LOOKS then return rows end
    if not dev.wait(LOOK_EVERY) then return nil, "stopped" end
  end
  return nil, "late"
end

local function controllers()
  local parts = {}
  for i, c in ipairs(dev.controllers()) do
    parts[i] = ("%s: %s%s"):format(c.name, c.state, c.message and " (" .. c.message .. ")" or "")
  end
  return table.concat(parts, "; ")
end

local function generation()
  local newest = 0
  for _, c in ipairs(dev.controllers()) do newest = math.max(newest, c.generation) end
  return newest
end

local rows, why = settled()
if not rows then
  if why == "stopped" then return 0 end
  io.stderr:write(("demo: the cluster has not settled within %d s; %s\n"):format(CONVERGE_WITHIN,
    controllers()))
  return 1
end

local offering = 0
for _, row in ipairs(rows) do
  if row.batch_cpu then offering = offering + 1 end
end
say("\n%s", cluster.format(before, rows))
say("%d of %d nodes offer resources to batch and mid pods (cpu in milli-cores).", offering, #rows)
if offering == 0 then
  io.stderr:write(("demo: no node offers anything; %s\n"):format(controllers()))
  return 1
end

local shows, problem = pcall(policies.show, client, dev, say)
if not shows then
  io.stderr:write(("demo: %s; %s\n"):format(problem, controllers()))
  return 1
end

-- ---------------------------------------------------------------- the policy changes while it runs

local policy = dev.scripts[1]:gsub("[^/]*$", "batchresource.lua")

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- Saves as editors do: to a new file, which is renamed.
local function save(path, text)
  local file = assert(io.open(path .. "~", "wb"))
  file:write(text)
  file:close()
  assert(os.rename(path .. "~", path))
end

-- Waits for a reload with this result; its message, or nil.
local function reloaded(result, seen)
  for _ = 1, CONVERGE_WITHIN // LOOK_EVERY do
    local reloads = dev.reloads()
    if #reloads > seen and reloads[1].result == result then return reloads[1].message or "" end
    if not dev.wait(LOOK_EVERY) then return nil end
  end
end

local HALVED = [[
local whole = M.calculate
function M.calculate(input)
  local result, why = whole(input)
  local cpu = result and result.resources and result.resources[M.CPU]
  if cpu then result.resources[M.CPU] = kube.qty(cpu):milli() // 2 .. "m" end
  return result, why
end
return M
]]

-- The output of a kubelua command about this process.
local function asked(...)
  local stat = assert(io.open("/proc/self/stat", "rb"))
  local pid = stat:read "n"
  stat:close()
  local words = { "/proc/" .. pid .. "/exe", ... }
  for i, word in ipairs(words) do words[i] = "'" .. word:gsub("'", "'\\''") .. "'" end
  local pipe = assert(io.popen(table.concat(words, " ") .. " --pid " .. pid .. " 2>&1"))
  local text = pipe:read "a"
  pipe:close()
  return text
end

local CANDIDATE = [[
local batch = require "batchresource"
local whole = batch.calculate
function batch.calculate(input)
  if input.node.metadata.name == %q then return { resources = {} } end
  return whole(input)
end

]]

-- What `why` says about the first controller; the others only watch the node.
local function of_first(text) return (text:match "^(.-\n)  %S+ %(watched%)" or text) .. "  ...\n" end

-- Explains the result, and what another version would do, which writes nothing.
local function questions(shown)
  local node
  for _, row in ipairs(shown) do node = node or row.batch_cpu and row.node end
  say("\n$ kubelua why node %s\n%s", node, of_first(asked("why", "node", node)))
  local path = dev.scripts[1]:gsub("[^/]*$", "next.lua")
  save(path, CANDIDATE:format(node) .. read(dev.scripts[1]))
  say("A version that lends no batch resources of %s, in the shadow of the one that runs:", node)
  say("$ kubelua shadow next.lua --all\n%s", asked("shadow", path, "--all"))
  asked("shadow", "--end")
  os.remove(path)
end

-- Without a terminal the demo edits the policy itself, in the copy that `make demo` runs.
local function tour(shown)
  local original = read(policy)
  say("\nHalf of the processors, by an edit of %s while it runs:", policy)
  save(policy, (original:gsub("return M%s*$", HALVED)))
  if not reloaded("taken", 0) then return nil, "the edit was not taken" end
  local now = settled()
  if not now then return nil, "the cluster has not settled after the edit" end
  say("\n%s", cluster.format(shown, now))
  say "The same file, broken by the next edit:"
  save(policy, original .. "\nlocal M = {")
  local message = reloaded("refused", 1)
  if not message then return nil, "the broken edit was not refused" end
  say("Refused: %s\nGeneration %d runs on.", message, generation())
  save(policy, original)
  if not reloaded("taken", 2) then return nil, "the repaired file was not taken" end
  say("Repaired: generation %d runs.", generation())
  now = settled()
  if not now then return nil, "the cluster has not settled after the repair" end
  questions(now)
  return true
end

local is_copy = not dev.scripts[1]:find "^controllers/"
if not dev.tty and is_copy then
  local ok, trouble = tour(rows)
  if not ok then io.stderr:write(("demo: %s; %s\n"):format(trouble, controllers())) end
  return ok and 0 or 1
end
if not dev.tty then return 0 end

say([[

The agents keep reporting. Try, from another terminal:
  kubectl --server %s get nodes \
    -o custom-columns=NODE:.metadata.name,BATCH:.status.allocatable.'kubernetes\.io/batch-cpu'
  kubectl --server %s -n koordinator-system edit configmap \
    slo-controller-config                   # cpuReclaimThresholdPercent: 80
  $EDITOR %s                                # saved is loaded; broken is refused
  kubelua why node %s                       # what the policy saw and did
Ctrl-C ends it.]], dev.server, dev.server, policy, rows[1].node)

local shown, seen, at, told = rows, generation(), os.time(), #dev.reloads()
while dev.wait(1) do
  local newer = generation() > seen
  local reloads = dev.reloads()
  if #reloads > told and reloads[1].result == "refused" then
    say("\nRefused: %s\nGeneration %d runs on.", reloads[1].message, generation())
  end
  told = #reloads
  if newer or os.time() - at >= SHOW_EVERY then
    if newer then
      seen = generation()
      say("\nThe policy was reloaded (generation %d).", seen)
    end
    local now
    now, why = settled()
    if why == "stopped" then break end
    now = now or look()
    if offers(now) ~= offers(shown) then say("\n%s", cluster.format(shown, now)) end
    shown, at = now, os.time()
  end
end
return 0
