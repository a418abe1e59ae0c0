-- alike.lua - pods that are alike: with the same labels, annotations, owners and spec, all plugins say the
-- same of them.

local fields = require "fields"
local kube = require "kubelua"

local M = {}

local function said_by(x) return kube.is_view(x) and x or kube.object(fields.copy(x) or {}) end

-- The volume with a pod's token has a name of its own in each pod.
local TOKEN = '"name":"kube%-api%-access%-%w%w%w%w%w"'

-- A text that is equal for two pods exactly when they are alike.
function M.text(pod)
  local meta, owners = pod.metadata, {}
  for i, owner in ipairs(meta.ownerReferences or {}) do owners[i] = said_by(owner) end
  return kube.encode { meta.namespace or "", said_by(meta.labels), said_by(meta.annotations),
    kube.array(owners), pod.reserves or false } .. kube.encode(said_by(pod.spec)):gsub(TOKEN, '"name":""')
end

return M
