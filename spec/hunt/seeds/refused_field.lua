-- A selector of fields that the server refuses, once with a table in it: its cache was retried forever, and
-- who waited for it (a test, the stage) waited for a minute and was not told why.
local kube = require "kubelua"

return kube.controller {
  name = "hunt",
  resource = "v1/ConfigMap",
  selector = { fields = "kubelua.core=x" },
  reconcile = function() end,
}
