-- release-finalizers.lua - kubelua release-finalizers: removes a finalizer from every object that has it,
-- page by page, each by a patch that names the uid and resourceVersion it was made from.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local finalizer = require "kubelua.finalizer"
local report = require "kubelua.cli.report"

local M = {}

M.options = {
  { "--finalizer", "NAME", "the finalizer (default: that of the script's controllers)", type = "list" },
  { "--selector", "SELECTOR", "only from objects with these labels", brief = "-l" },
  { "--yes", nil, "confirm: the finalizer's cleanup will never run", type = "flag",
    brief = "-y" },
  { "--dry-run", "client|server",
    "print the objects that would be released, and release none; server: let the server check it",
    type = "maybe", values = "client server none" },
  common.OUTPUT,
}

-- If an object changes this often while we try, its controller is still alive.
local ATTEMPTS = 8

local DOMAIN = "kubelua.dev/"

-- ---------------------------------------------------------------- what the command line names

-- kind -> set of finalizers, and the kinds in order.
local function add(wanted, kind, names)
  local set = wanted[kind]
  if not set then
    set = {}
    wanted[kind], wanted[#wanted + 1] = set, kind
  end
  for _, name in ipairs(names) do set[name] = true end
end

local function of_scripts(env, scripts, names)
  local wanted = {}
  for _, path in ipairs(scripts) do
    local list, why = env.controllers(path)
    if not list then error(why, 0) end
    for _, c in ipairs(list) do add(wanted, c.resource, names or { c.finalizer or DOMAIN .. c.manager }) end
  end
  return wanted
end

local function all_kinds(c, names, complain)
  local wanted = { all = true }
  local resources, failed = c:resources { verb = "patch" }
  for _, r in ipairs(resources) do
    for _, verb in ipairs(r.verbs) do
      if verb == "list" then
        add(wanted, r.kind, names)
        break
      end
    end
  end
  for group, why in pairs(failed or {}) do complain("kinds of %s were not searched: %s", group, why) end
  return wanted
end

local function wanted_of(c, env, complain)
  local names, scripts, kinds = env.options.finalizer, {}, {}
  for _, word in ipairs(env.words) do table.insert(word:find "%.lua$" and scripts or kinds, word) end
  for _, name in ipairs(names or {}) do
    if not name:find "^[^/%s]+/[^/%s]+$" then
      common.usage("--finalizer must be \"domain/name\", got %q", name)
    end
  end
  if #scripts > 0 then
    if #kinds > 0 then
      common.usage("the script names the kinds: leave out %s, or replace the script by --finalizer NAME",
        kinds[1])
    end
    return of_scripts(env, scripts, names)
  end
  if not names then common.usage "name a script, or a finalizer with --finalizer NAME" end
  if #kinds == 0 then return all_kinds(c, names, complain) end
  local wanted = {}
  for _, target in ipairs(common.expand(c, common.targets(kinds))) do
    if target.names then
      common.usage("%s: expected kinds, not names; --selector chooses among their objects", target.names[1])
    end
    add(wanted, common.kind_text(c:resource(target.kind)), names)
  end
  return wanted
end

-- ---------------------------------------------------------------- doing it

-- True when it was taken away, false when it was gone already.
local function release(c, kind, o, names, server_only)
  local uid, ns, name = o.metadata.uid, o("metadata.namespace"), o.metadata.name
  for attempt = 1, ATTEMPTS do
    local ok, err = pcall(c.patch, c, { apiVersion = kind:match "^(.*)/", kind = kind:match "[^/]+$",
      metadata = { namespace = ns, name = name } },
      finalizer.guarded(o, finalizer.without(o, names)), { dry_run = server_only or nil })
    if ok then return true end
    if core.is_error(err) and err.code == 404 then return false end
    if not core.is_error(err) or err.code ~= 409 or attempt == ATTEMPTS then error(err, 0) end
    o = common.get(c, kind, ns, name)
    if not o or o.metadata.uid ~= uid or not finalizer.has(o, names) then return false end
  end
end

local function carried(o, names)
  local list = {}
  for _, name in ipairs(o("metadata.finalizers") or {}) do
    if names[name] then list[#list + 1] = name end
  end
  return table.concat(list, ", ")
end

local function plural(n) return ("%d object%s"):format(n, n == 1 and "" or "s") end

function M.run(env)
  local o = env.options
  local dry = common.dry_run(env, "client")
  if not o.yes and not dry then
    common.usage "the cleanup of these finalizers will never run: check with --dry-run, then add --yes"
  end
  local released, failed, rep = 0, 0, report.new(env)
  local function complain(...) rep:fail({}, ...) end
  local c <close> = common.connect(env)
  local wanted = wanted_of(c, env, complain)
  local function look(kind)
    local names, r = wanted[kind], c:resource(kind)
    local where = { namespace = r.namespaced and env.connect.namespace or nil, labels = o.selector,
      metadata_only = true }
    for item in c:each(kind, where) do
      if finalizer.has(item, names) then
        local ok, did = true, true
        if dry ~= "client" then ok, did = pcall(release, c, kind, item, names, dry == "server") end
        local ns, called = item("metadata.namespace"), common.called(r, item.metadata.name)
        local thing = { kind = kind, namespace = ns, name = item.metadata.name }
        if not ok then
          if not core.is_error(did) then error(did, 0) end
          failed = failed + 1
          rep:fail(thing, "%s%s: %s", called, ns and " in " .. ns or "", common.message(did))
        elseif did then
          released = released + 1
          rep:tell(thing, "released", "%s released from %s%s%s%s", called, carried(item, names),
            ns and " in " .. ns or "", item("metadata.deletionTimestamp") and ", deleted" or "",
            dry and " (dry run)" or "")
        end
      end
    end
  end
  for _, kind in ipairs(wanted) do
    local ok, err = pcall(look, kind)
    if not ok then
      if not core.is_error(err) then error(err, 0) end
      -- Releasing a definition would remove its kind, which was not requested.
      if not (wanted.all and err.code == 404) then
        rep:fail({ kind = kind }, "%s: %s", kind, common.message(err))
      end
    end
  end
  rep:say("%s %s%s", plural(released), dry and "would be released" or "released",
    failed > 0 and (", %d not"):format(failed) or "")
  return rep:finish { dryRun = dry ~= nil }
end

return M
