-- whole.lua - the frame of a controller that looks at the cluster as a whole. It has one key, the namespace
-- koordinator-system, one worker, and a large budget of processor time and memory.
--
--   return whole.controller { name, reads, watches, every, params, reconcile }
--
-- Other options of kube.controller are accepted, too; all of them override those of the frame. `watches` is a
-- list of the kinds that wake it, or has entries as in kube.controller; whole.anchor maps any object to the
-- key.

local kube = require "kubelua"

local M = {}

M.NAMESPACE = "koordinator-system"

function M.anchor() return { M.NAMESPACE } end

---@param o table
function M.controller(o)
  local controller = {
    name = o.name,
    reconcile = o.reconcile,
    resource = "v1/Namespace",
    selector = { fields = "metadata.name=" .. M.NAMESPACE },
    metadata = true,
    workers = 1,
    cpu = "20s",
    memory = "2Gi",
  }
  for name, value in pairs(o) do controller[name] = value end
  local watches = {}
  for key, value in pairs(o.watches or {}) do
    if math.type(key) then watches[value] = M.anchor else watches[key] = value end
  end
  controller.watches = next(watches) and watches or nil
  return kube.controller(controller)
end

return M
