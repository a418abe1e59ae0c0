-- show.lua - prints the table of reconcile.lua when it is there, and ends `kubelua dev` with it.

local kube = require "kubelua"

local dev = dev -- luacheck: ignore 113

local WAIT = 300     -- seconds

local client = kube.connect { server = dev.server }
local map
for _ = 1, WAIT * 10 do
  map = client:get("v1/ConfigMap", "default", "calls")
  if map then break end
  dev.wait(0.1)
end
if not map then error "bench: the reconcile gave no table" end
io.stdout:write("ctx\n", map.data.rows, "\n")
