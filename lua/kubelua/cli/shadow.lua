-- kubelua shadow: a candidate for the next generation beside the running one, in a running process.

local common = require "kubelua.cli.common"
local control = require "kubelua.cli.control"

local M = {}

M.no_cluster = true
M.options = {
  { "--promote", "", "make the candidate the next generation", type = "flag" },
  { "--promote-after", "N", "make it the next generation once N keys match and none differs",
    type = "count" },
  { "--all", "", "run every key once, live and in the shadow, and wait for the verdict",
    type = "flag" },
  { "--end", "", "end the shadow; the live logic stays as it is", type = "flag" },
  common.OUTPUT,
  table.unpack(control.options),
}

local function list(view)
  local out = {}
  for i, item in ipairs(view or {}) do out[i] = item end
  return out
end

local function plural(n, one, many) return ("%d %s"):format(n, n == 1 and one or many) end

local function summary(r)
  local tail = { plural(r.runs, "run", "runs") }
  if r.skipped > 0 then tail[#tail + 1] = ("%d skipped"):format(r.skipped) end
  return ("%d same, %s, %s (%s)"):format(r.same, plural(r.differs, "differs", "differ"),
    plural(r.fails, "fails", "fail"), table.concat(tail, ", "))
end

local PATIENCE = 60 -- seconds

local function await(what)
  if control.until_said(PATIENCE, what) then return end
  error(("not every key has been judged in %d s; kubelua shadow shows the progress"):format(
    PATIENCE), 0)
end

-- Waits until the enqueued keys have run, and the shadow has judged them.
local function run_all(process)
  local names = {}
  await(function() return process:get "/v1/shadow".state == "following" end)
  for i, name in ipairs(list(process:get "/v1/shadow" "controllers")) do
    names[i], names[name] = name, true
  end
  local function idle()
    for _, c in ipairs(process:get "/v1/controllers".controllers) do
      if names[c.name] and c.queue.ready + c.queue.running > 0 then return false end
    end
    return true
  end
  for _, name in ipairs(names) do process:post("/v1/reconcile", { controller = name, all = true }) end
  await(function() return idle() and process:get "/v1/shadow".waiting == 0 end)
end

-- The candidate's path for its user: relative to the working directory, if it is below that.
local function candidate(env, r)
  local path, here = r.candidate, env.absolute ".":gsub("/%.$", "") .. "/"
  return path:sub(1, #here) == here and path:sub(#here + 1) or path
end

local function tell(r, name)
  print(("%s in the shadow of %s: %s"):format(name, r("script") or "?",
    r.state == "following" and summary(r) or r("why") or r.state))
  local new = list(r("new"))
  if #new > 0 then
    print(("  not shadowed, since no controller of that name runs: %s"):format(table.concat(new, ", ")))
  end
  local left = r.differs + r.fails
  local path = r.candidate:gsub("%p", "%%%0")
  for _, k in ipairs(list(r("kinds"))) do
    left = left - k.keys
    -- an error names the file as the process read it
    local diff = (k("diff") or ""):gsub(path, function() return name end)
    print(("  %s %s %s: %s"):format(k.controller, k.key, k.verdict, diff))
    if k.keys > 1 then
      print(("    %s like this"):format(plural(k.keys - 1, "more key", "more keys")))
    end
  end
  if left > 0 then print(("  and %d more"):format(left)) end
end

local function show_json(r)
  common.print_json(r)
  return 0
end

-- Does what one of the flags asks for; nil: no such flag was given.
local function act(env, process, o, json)
  if o.promote then
    local r = process:post("/v1/shadow/promote", {})
    if json then return show_json(r) end
    print(("%s was promoted: %s"):format(candidate(env, r), summary(r)))
    print(("it runs until %s changes or the process ends; put it there to keep it"):format(r("script")
      or "the script"))
    return 0
  end
  if o["end"] then
    local r = process:call("DELETE", "/v1/shadow")
    if json then return show_json(r) end
    print(("%s left the shadow: %s"):format(candidate(env, r), summary(r)))
    return 0
  end
end

function M.run(env)
  local o, path = env.options, env.words[1]
  if env.words[2] then common.usage("one candidate at a time, got %s", table.concat(env.words, " ")) end
  if o.promote and o["end"] or path and (o.promote or o["end"]) then
    common.usage "a candidate, --promote and --end exclude each other"
  end
  if o.promote_after and not path then
    common.usage "--promote-after needs a candidate: kubelua shadow CANDIDATE.lua --promote-after 100"
  end
  local json = common.wants_json(env)
  local process = control.connect(env)
  local status = act(env, process, o, json)
  if status then return status end
  local r = path and process:post("/v1/shadow", { path = env.absolute(path),
    promote_after = o.promote_after }) or process:get "/v1/shadow"
  if o.all then
    run_all(process)
    r = process:get "/v1/shadow"
  end
  if json then common.print_json(r) else tell(r, path or candidate(env, r)) end
  return r.differs + r.fails > 0 and 1 or 0
end

return M
