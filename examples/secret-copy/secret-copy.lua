-- secret-copy.lua - copies Secrets with the label secret-copy=yes from the namespace `default` into every
-- other namespace. A copy is deleted when its original is deleted or loses the label.

local kube = require "kubelua"

local SECRET, NAMESPACE = "v1/Secret", "v1/Namespace"
local FROM, MARK = "default", "examples.kubelua.dev/copy-of"

local function wanted(secret)
  return secret and secret("metadata.labels", "secret-copy") == "yes"
    and not secret("metadata.deletionTimestamp")
end

return kube.controller {
  name = "secret-copy",
  resource = NAMESPACE,
  when = { "labels" },
  indexes = { [SECRET] = { copy = function(secret) return secret("metadata.annotations", MARK) end } },
  watches = {
    -- a changed original wakes all namespaces, a changed copy its own
    [SECRET] = function(secret, ctx)
      local copy = secret("metadata.annotations", MARK)
      if copy then return { secret.metadata.namespace } end
      if secret.metadata.namespace ~= FROM then return {} end
      local all = {}
      for _, ns in ipairs(ctx:list(NAMESPACE)) do all[#all + 1] = ns.metadata.name end
      return all
    end,
  },

  reconcile = function(ns, ctx)
    local name, keep = ns.metadata.name, {}
    if name == FROM or ns("metadata.deletionTimestamp") then return end
    for _, secret in ipairs(ctx:list(SECRET, { namespace = FROM, labels = "secret-copy=yes" })) do
      if wanted(secret) then
        keep[secret.metadata.name] = true
        ctx:apply({ kind = SECRET, name = secret.metadata.name, namespace = name, type = secret.type,
          annotations = { [MARK] = FROM .. "/" .. secret.metadata.name }, data = secret("data") },
          { force = true })
      end
    end
    for _, copy in ipairs(ctx:list(SECRET, { namespace = name, index = { copy = true } })) do
      if not keep[copy.metadata.name] then ctx:delete(copy) end
    end
  end,
}
