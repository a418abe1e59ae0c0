-- uninstall.lua - kubelua uninstall: deletes the webhook configurations of scripts whose process is gone. One
-- that somebody else made under the same name stays.

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

local function webhooks_of(env)
  local list = {}
  if #env.words == 0 then common.usage "name the scripts whose webhooks to remove" end
  for _, path in ipairs(env.words) do
    local controllers, webhooks = env.controllers(path)
    if not controllers then error(webhooks, 0) end
    for _, w in ipairs(webhooks) do
      w.kind = GROUP .. (w.mutating and "Mutating" or "Validating") .. "WebhookConfiguration"
      list[#list + 1] = w
    end
  end
  return list
end

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
    local called = common.called(c:resource(w.kind), w.name)
    local found = c:get(w.kind, w.name)
    if not found then
      r:tell(w, "absent", "%s is not there", called)
    elseif found("metadata.labels", MANAGED_BY) ~= "kubelua" then
      r:fail(w, "%s stays: kubelua did not make it (it has no label %s=kubelua)", called,
        MANAGED_BY)
    else
      local ok, err = true, nil
      if dry ~= "client" then
        ok, err = pcall(c.delete, c, w.kind, w.name,
          { uid = found.metadata.uid, dry_run = dry == "server" or nil })
      end
      if ok then
        gone = gone + 1
        r:tell(w, "deleted", "%s deleted%s", called, dry and " (dry run)" or "")
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
