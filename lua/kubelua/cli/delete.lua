-- delete.lua - kubelua delete: asks for the deletion, then waits until the objects are gone.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local report = require "kubelua.cli.report"

local M = {}

M.options = {
  { "--filename", "FILE|DIR|-",
    "delete the objects of this file, directory or standard input (may be repeated)", type = "list",
  brief = "-f" },
  { "--selector", "SELECTOR", "delete the objects with these labels", brief = "-l" },
  { "--field-selector", "SELECTOR", "delete the objects with these fields" },
  { "--all", nil, "delete all objects of the kind", type = "flag" },
  { "--all-namespaces", nil, "with --all or a selector: in every namespace", type = "flag", brief = "-A" },
  { "--wait", "false", "false: do not wait for the objects to disappear", type = "maybe",
    values = "true false" },
  { "--timeout", "DURATION", "how long to wait (no limit)", type = "duration" },
  { "--grace", "SECONDS", "the grace period of a pod; 0 deletes it at once", type = "count" },
  { "--cascade", "HOW", "propagation to dependents: background, foreground or orphan (background)",
    values = "background foreground orphan" },
  { "--ignore-not-found", nil, "a missing object is not a failure", type = "flag" },
  { "--dry-run", "server", "let the server check the request, and delete nothing", type = "maybe",
    values = "server none" },
  common.OUTPUT,
}

local CASCADE = { background = "Background", foreground = "Foreground", orphan = "Orphan" }

local function known(o)
  return { kind = o.kind, resource = o.resource, namespace = o.namespace, name = o.name }
end

-- What the command line names, as a list of { kind, resource, namespace, name }.
local function chosen(c, env)
  local o, list = env.options, {}
  if o.filename then
    if #env.words > 0 then common.usage("either -f or a kind and names, not both (%s)", env.words[1]) end
    -- Namespaces and definitions are deleted last.
    for i, manifest in ipairs(common.manifests(env)) do
      local ok, thing = pcall(common.identify, c, env, manifest)
      if not ok then error(("%s: %s"):format(manifest.where, common.message(thing)), 0) end
      table.insert(list, 1, thing)
      list[1].order = i
    end
    return list
  end
  for _, target in ipairs(common.expand(c, common.targets(env.words))) do
    local r = c:resource(target.kind)
    local kind, ns = common.kind_text(r), common.namespace(c, env, r)
    if target.names then
      if o.all or o.selector or o.field_selector then
        common.usage "names, --all and selectors exclude each other"
      end
      if o.all_namespaces and r.namespaced then
        common.usage "-A and names exclude each other: a name is in one namespace"
      end
      for _, name in ipairs(target.names) do
        list[#list + 1] = known { kind = kind, resource = r, namespace = ns, name = name }
      end
    elseif o.all or o.selector or o.field_selector then
      for item in c:each(kind, { namespace = ns, labels = o.selector, fields = o.field_selector }) do
        list[#list + 1] = known { kind = kind, resource = r, namespace = item("metadata.namespace"),
          name = item.metadata.name }
      end
    else
      common.usage("name the objects of kind %s, or give --all, -l SELECTOR or --field-selector SELECTOR",
        target.kind)
    end
  end
  return list
end

local function until_gone(c, thing, deadline)
  while true do
    local o = common.get(c, thing.kind, thing.namespace, thing.name)
    if not o or o.metadata.uid ~= thing.uid then return true end
    local left = deadline and deadline - os.time()
    if left and left <= 0 then return false, o end
    for event in c:watch(thing.kind, {
      namespace = thing.namespace, fields = "metadata.name=" .. thing.name,
      resource_version = o.metadata.resourceVersion,
      timeout = math.max(1, math.min(left or 600, 600)),
    }) do
      if event == "DELETED" then break end
    end
  end
end

-- With its definition, or its namespace, an object is gone too.
local function gone(c, thing, deadline)
  local ok, done, still = pcall(until_gone, c, thing, deadline)
  if ok then return done, still end
  if core.is_error(done) and (done.code == 404 or done.kind == "not_found") then return true end
  error(done, 0)
end

local function held(o)
  local finalizers = {}
  for _, name in ipairs(o("metadata.finalizers") or {}) do finalizers[#finalizers + 1] = name end
  return #finalizers > 0 and ("; finalizers hold it: " .. table.concat(finalizers, ", ")) or ""
end

function M.run(env)
  local o = env.options
  local propagation = CASCADE[o.cascade or "background"]
  local dry, waits, r = common.dry_run(env, "server") ~= nil, o.wait ~= "false", report.new(env)
  local c <close> = common.connect(env)
  local things, asked = chosen(c, env), {}
  if #things == 0 then
    common.remark "nothing to delete"
    return r:finish { dryRun = dry }
  end
  for _, thing in ipairs(things) do
    local called = common.called(thing.resource, thing.name)
    local ok, problem = pcall(function()
      local before = common.get(c, thing.kind, thing.namespace, thing.name)
      if not before then
        if not o.ignore_not_found then
          r:fail(thing, "%s does not exist%s (--ignore-not-found ignores this)", called,
            thing.namespace and " in namespace " .. thing.namespace or "")
        end
        return
      end
      thing.uid = before.metadata.uid
      local key = thing.namespace and thing.namespace .. "/" .. thing.name or thing.name
      c:delete(thing.kind, key, { propagation = propagation, grace = o.grace, dry_run = dry or nil })
      r:tell(thing, "deleted", "%s deleted%s%s", called,
        thing.namespace and " from " .. thing.namespace or "", dry and " (dry run)" or "")
      asked[#asked + 1] = thing
    end)
    if not ok then
      if not core.is_error(problem) then error(problem, 0) end
      r:fail(thing, "%s: %s", called, common.message(problem))
    end
  end
  io.stdout:flush()
  if not waits or dry then return r:finish { dryRun = dry } end
  local deadline = o.timeout and os.time() + math.ceil(o.timeout)
  for _, thing in ipairs(asked) do
    local done, still = gone(c, thing, deadline)
    if not done then
      r:fail(thing, "%s still existed after the timeout%s", common.called(thing.resource, thing.name),
        held(still))
    end
  end
  return r:finish { dryRun = dry }
end

return M
