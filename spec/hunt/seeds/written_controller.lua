-- Ended the process with a segmentation fault while it was loaded: what kube.controller returns could be
-- written.
local kube = require "kubelua"
local c = kube.controller {
  name = "hunt",
  resource = "v1/Pod",
  reconcile = function() end,
}
for _, field in ipairs { "watches", "owns", "indexes", "fields", "name" } do
  pcall(function() c[field] = { {} } end)
  pcall(rawset, c, field, "text")
end
return c
