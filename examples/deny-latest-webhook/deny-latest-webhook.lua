-- deny-latest-webhook.lua - refuses images without a version: without a tag, or with `:latest`.

local kube = require "kubelua"

-- The tag of an image; nil: it has none. A digest counts as a version.
local function tag(image)
  if image:find("@", 1, true) then return "digest" end
  return image:match "[^/]*$":match ":(.+)$"
end

local function check(path, list)
  for i, c in ipairs(list or {}) do
    local version = tag(c.image)
    if not version or version == "latest" then
      return kube.deny(("%s[%d].image: %s has no version; write a tag or a digest"):format(path, i - 1,
        c.image), 422)
    end
  end
end

return kube.webhook {
  name = "deny-latest",
  resource = { "v1/Pod", "apps/v1/Deployment" },

  validate = function(obj)
    local at = obj.kind == "Pod" and "spec" or "spec.template.spec"
    return check(at .. ".initContainers", obj(at .. ".initContainers"))
      or check(at .. ".containers", obj(at .. ".containers"))
  end,
}
