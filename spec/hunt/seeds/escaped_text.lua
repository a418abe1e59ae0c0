-- Each byte of a text was spelt by printf, in one call that no budget ends: six seconds for what a state may
-- hold.
local kube = require "kubelua"
pcall(kube.encode, ("\1"):rep(40 << 20))
return kube.controller { name = "hunt", resource = "v1/ConfigMap", reconcile = function() end }
