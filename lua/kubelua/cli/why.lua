-- why.lua - kubelua why: what a running process knows of a key, as a short report.

local common = require "kubelua.cli.common"
local control = require "kubelua.cli.control"

local M = {}

M.no_cluster = true
M.options = {
  { "--namespace", "NAME", "of the object", brief = "-n" },
  { "--runs", "N", "number of recent runs to show in full (1)", type = "count" },
  common.OUTPUT,
  control.options[1], control.options[2],
}

-- ---------------------------------------------------------------- words

local span = common.span

-- "12:05:10" of RFC 3339
local function clock(text) return text and text:match "T(%d%d:%d%d:%d%d)" or "?" end

local function version(x) return x("resourceVersion") and (" (rv %s)"):format(x.resourceVersion) or "" end

local REASONS = {
  started = "the controller started", resync = "resync came round", trigger = "`every` or `cron` was due",
  after = "its last run requested it",
  retry = "a retry", reload = "new logic", leading = "this process became leader, or took over the key",
  ["by hand"] = "by hand", request = "a request",
}

local function trigger(t)
  local what = REASONS[t.reason]
  if not what and t("kind") then
    what = ("%s %s %s%s"):format(t.kind, t("key") or "", t.reason, version(t))
  end
  return (what or t.reason) .. (t.events > 1 and (", the last of %d events"):format(t.events) or "")
end

local PAST = {
  get = "got", list = "listed", create = "created", update = "updated", patch = "patched", apply = "applied",
  delete = "deleted",
  deletecollection = "deleted all of",
}

-- `what`: the call as it is told, which an error of ctx.http repeats at its beginning.
local function answered(s, what)
  if s("error") then
    local why = s.error
    if why:sub(1, #what + 2) == what .. ": " then why = why:sub(#what + 3) end
    return (": %s%s"):format(s("code") ~= 0 and s("code") and ("%d, "):format(s.code) or "", why)
  end
  if s("took") == nil then return ": no answer yet" end
  if s.code == 0 then return ": not sent, as it would have changed nothing" end
  return (": %d in %s"):format(s.code, span(s.took))
end

local function step(s)
  if s("get") then
    return ("read %s %s%s"):format(s.get, s("key") or "",
      s("resourceVersion") and version(s) or ": not there")
  elseif s("list") then
    local by = {}
    for _, name in ipairs { "namespace", "labels", "fields", "index", "value" } do
      if s(name) then by[#by + 1] = name .. " " .. s[name] end
    end
    return ("listed %d %s%s"):format(s.count, s.list, #by > 0 and " (" .. table.concat(by, ", ") .. ")" or "")
  elseif s("call") then
    local key = s("key") or ""
    local what = ("%s %s%s%s%s"):format(PAST[s.call] or s.call, s("kind") or "", key ~= "" and " " or "", key,
      s("subresource") and " (" .. s.subresource .. ")" or "")
    return what .. answered(s, what)
  elseif s("discovery") then
    return ("looked up %s%s"):format(s.discovery, s("error") and ": " .. s.error or "")
  end
  return ("slept %s"):format(span(s("sleep") or 0))
end

local RESULTS = {
  after = "done", requeue = "wants to run again", fail = "failed for good",
  ["put back"] = "was ended, its key runs again", retry = "waits",
}

-- `newest`: its next step is still pending.
local function outcome(run, newest)
  local text = RESULTS[run.result] or run.result
  if run("message") then text = ("%s: %s"):format(text, run.message) end
  if newest and run("in") then
    text = ("%s; next in %s (%s)"):format(text, span(run["in"]), clock(run("next")))
  end
  return text
end

local function summary(run)
  return ("%s ago, %s, generation %d%s: %s"):format(span(run.ago), span(run.took), run.generation,
    run.attempt > 1 and (", attempt %d"):format(run.attempt) or "",
    trigger(run.trigger))
end

-- ---------------------------------------------------------------- the story

local function tell_run(run, newest)
  print(("    ran %s"):format(summary(run)))
  for _, s in ipairs(run.steps) do print("      " .. step(s)) end
  if run("moreSteps") then print(("      and %d steps more"):format(run.moreSteps)) end
  print(("      -> %s"):format(outcome(run, newest)))
  for line in (run("traceback") or ""):gmatch "[^\n]+" do print("         " .. line) end
end

-- The number of lines about earlier runs.
local BRIEFLY = 3

-- Runs that failed with the same words are one line, with the newest of them, also where other failures lie
-- in between.
local function tell_earlier(runs, from)
  local lines, of = {}, {}
  for i = from, #runs do
    local run = runs[i]
    local words = run("message") and run.result .. run.message
    local line = words and of[words]
    if line then
      line.times = line.times + 1
    else
      line = { run = run, times = 1 }
      lines[#lines + 1] = line
      if words then of[words] = line end
    end
  end
  for i = 1, math.min(#lines, BRIEFLY) do
    local line = lines[i]
    print(("    before%s: %s -> %s"):format(line.times > 1 and (" (%d times)"):format(line.times) or "",
      summary(line.run), outcome(line.run)))
  end
end

local ROLES = { owns = "owned", watches = "watched", reads = "read" }

local function tell(entry, full)
  local whose = entry("cluster") and entry.cluster .. "/" .. entry.controller or entry.controller
  local what = entry.role ~= "resource" and entry("key") and (" -> %s %s"):format(entry.resource, entry.key)
    or ""
  local says, newest = entry.says, entry("runs[1]")
  if newest and newest.result == "fail" then says = says:gsub("^nothing to do", "failed for good") end
  print(("  %s%s%s: %s"):format(whose, ROLES[entry.role] and " (" .. ROLES[entry.role] .. ")" or "", what,
    says))
  if full > 0 and entry("params") then print("    params given: " .. tostring(entry.params)) end
  local runs = entry("runs") or {}
  for i = 1, math.min(full, #runs) do tell_run(runs[i], i == 1) end
  tell_earlier(runs, full + 1)
  if entry("key") and not entry("runs") then print "    no run of it is in the history" end
  local d = entry("dropped")
  if d then print(("    an event of it %s ago%s triggered no run: \z
    %s"):format(span(d.ago), version(d), d.by)) end
end

--- Prints a run in full.
function M.show_run(run) tell_run(run, false) end

--- Prints an answer of GET /v1/why, with so many runs in full.
function M.show(answer, full)
  print(("%s %s"):format(answer.kind, answer.key))
  for _, entry in ipairs(answer.controllers) do tell(entry, full) end
  if answer("moreKeys") then print(("  and %d keys more"):format(answer.moreKeys)) end
end

local function target(env)
  local words, ns = env.words, env.options.namespace
  if #words == 1 and words[1]:find "/" then
    local kind, name = common.split(words[1])
    if not name then common.usage("%s names a kind but no object: kubelua why KIND NAMESPACE/NAME", kind) end
    words = { kind, name }
  end
  if #words ~= 2 then
    common.usage "name the object: kubelua why KIND NAMESPACE/NAME, or kubelua why KIND NAME -n NAMESPACE"
  end
  local key = words[2]
  if key:find "/" and ns then common.usage("%s already includes a namespace, but -n is %s", key, ns) end
  return words[1], ns and ns .. "/" .. key or key
end

function M.run(env)
  local kind, key = target(env)
  local json = common.wants_json(env)
  local process = control.connect(env)
  local answer = process:get("/v1/why", { kind = kind, key = key })
  if json then
    common.print_json(answer)
    return 0
  end
  M.show(answer, env.options.runs or 1)
  return 0
end

return M
