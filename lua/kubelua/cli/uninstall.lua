-- uninstall.lua - kubelua uninstall: deletes the webhook configurations of scripts whose process is gone. One
-- that somebody else made under the same name stays.

local common = require "kubelua.cli.common"
local core = require "kubelua.core"

local M = {}

M.options = {
  { "--yes", nil, "do it", type = "flag", brief = "-y" },
  { "--dry-run", "client|server",
    "say which would be deleted, and delete none; server: let the server check it", type = "maybe" },
}

local GROUP = "admissionregistration.k8s.io/v1/"
local MANAGED_BY = "app.kubernetes.io/managed-by"

local function webhooks_of(env)
  local list = {}
  if #env.words == 0 then common.usage "name the scripts whose webhooks are to go" end
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
  local dry = o.dry_run and common.one_of("--dry-run", o.dry_run == "" and "client" or o.dry_run,
    { "client", "server", "none" })
  if dry == "none" then dry = nil end
  if not o.yes and not dry then
    common.usage "what these webhooks refuse or change goes through from then on: look with --dry-run, then \z
      say --yes"
  end
  local list = webhooks_of(env)
  local c <close> = common.connect(env)
  local gone, code = 0, 0
  for _, w in ipairs(list) do
    local called = common.called(c:resource(w.kind), w.name)
    local found = c:get(w.kind, w.name)
    if not found then
      print(called .. " is not there")
    elseif found("metadata.labels", MANAGED_BY) ~= "kubelua" then
      code = 1
      common.complain(env, "%s stays: kubelua did not make it (it has no label %s=kubelua)", called,
        MANAGED_BY)
    else
      local ok, err = true, nil
      if dry ~= "client" then
        ok, err = pcall(c.delete, c, w.kind, w.name,
          { uid = found.metadata.uid, dry_run = dry == "server" or nil })
      end
      if ok then
        gone = gone + 1
        print(("%s deleted%s"):format(called, dry and " (dry run)" or ""))
      else
        if not core.is_error(err) then error(err, 0) end
        code = 1
        common.complain(env, "%s: %s", called, common.message(err))
      end
    end
  end
  print(("%d configuration%s %s"):format(gone, gone == 1 and "" or "s",
    dry and "would be deleted" or "deleted"))
  return code
end

return M
