-- uninstall.lua - kubelua uninstall: takes away what asks scripts whose process is gone: their webhook
-- configurations, and the conversion of the definitions that they convert. What somebody else made under the
-- same name stays.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"
local report = require "kubelua.cli.report"

local M = {}

M.options = {
  { "--yes", nil, "do it", type = "flag", brief = "-y" },
  { "--dry-run", "client|server",
    "print what would be deleted, and delete nothing; server: let the server check it", type = "maybe",
    values = "client server none" },
  common.OUTPUT,
}

local GROUP = "admissionregistration.k8s.io/v1/"
local MANAGED_BY = "app.kubernetes.io/managed-by"
local DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"
local MANAGER = "kubelua-webhooks"          -- core/webhook/webhook_keeper.c

local function webhooks_of(env)
  local list = {}
  if #env.words == 0 then common.usage "name the scripts whose webhooks to remove" end
  for _, path in ipairs(env.words) do
    local controllers, webhooks = env.controllers(path)
    if not controllers then error(webhooks, 0) end
    for _, w in ipairs(webhooks) do
      w.kind = w.converts and DEFINITION
        or GROUP .. (w.mutating and "Mutating" or "Validating") .. "WebhookConfiguration"
      list[#list + 1] = w
    end
  end
  return list
end

-- How one kind of them goes: whether there is nothing to take away and why, why it stays, and the call.

local configuration = {
  deleted = "deleted", done = "%s deleted%s",
  absent = function(found) return not found and "is not there" end,
  theirs = function(found)
    return found("metadata.labels", MANAGED_BY) ~= "kubelua"
      and ("stays: kubelua did not make it (it has no label %s=kubelua)"):format(MANAGED_BY)
  end,
  take = function(c, w, found, dry_run)
    c:delete(w.kind, w.name, { uid = found.metadata.uid, dry_run = dry_run })
  end,
}

-- Whether the manager of webhooks set the conversion that the definition has.
local function keeps_conversion(found)
  for _, entry in ipairs(found "metadata.managedFields" or {}) do
    if entry "manager" == MANAGER and entry "fieldsV1"("f:spec", "f:conversion") then return true end
  end
end

local conversion = {
  deleted = "released", done = "%s no longer has a conversion webhook%s",
  absent = function(found)
    return not found and "is not there"
      or found "spec.conversion.strategy" ~= "Webhook" and "has no conversion webhook"
  end,
  theirs = function(found)
    return not keeps_conversion(found)
      and ("is unchanged: kubelua did not set its conversion webhook (field manager %s)"):format(MANAGER)
  end,
  take = function(c, w, found, dry_run)
    c:apply({ apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
      metadata = { name = w.name, uid = found.metadata.uid }, spec = { conversion = { strategy = "None" } } },
      { manager = MANAGER, force = true, dry_run = dry_run })
  end,
}

function M.run(env)
  local o = env.options
  local dry = common.dry_run(env, "client")
  if not o.yes and not dry then
    common.usage "requests that these webhooks reject or change will then pass unchecked: check with \z
      --dry-run, then add --yes"
  end
  local list = webhooks_of(env)
  local c <close> = common.connect(env)
  local gone, r = 0, report.new(env)
  for _, w in ipairs(list) do
    local way = w.converts and conversion or configuration
    local called = common.called(c:resource(w.kind), w.name)
    local found = c:get(w.kind, w.name)
    local absent = way.absent(found)
    local theirs = not absent and way.theirs(found)
    if absent then
      r:tell(w, "absent", "%s %s", called, absent)
    elseif theirs then
      r:fail(w, "%s %s", called, theirs)
    else
      local ok, err = true, nil
      if dry ~= "client" then ok, err = pcall(way.take, c, w, found, dry == "server" or nil) end
      if ok then
        if not w.converts then gone = gone + 1 end
        r:tell(w, way.deleted, way.done, called, dry and " (dry run)" or "")
      else
        if not core.is_error(err) then error(err, 0) end
        r:fail(w, "%s: %s", called, common.message(err))
      end
    end
  end
  r:say("%d configuration%s %s", gone, gone == 1 and "" or "s", dry and "would be deleted" or "deleted")
  return r:finish { dryRun = dry ~= nil }
end

return M
