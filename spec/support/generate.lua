--- generate.lua - makes committed data again: asks a real kube-apiserver (built by Go from its modules) what it says about itself
-- and writes core/server/builtin_data.c out of that. `make generate` runs it.

local process = require "support.process"
local servers = require "support.servers"

local OUT = "core/server/builtin_data.c"
local DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

local assets, why = servers.assets()
if not assets then
  io.stderr:write("generate: a real API server is needed: " .. why .. "\n")
  os.exit(1)
end

local server = servers.real { own = true }
local dir = process.tmpname ".openapi"
process.run("mkdir -p " .. process.quote(dir))

local function fetch(path, file, accept)
  local out, code = process.run(("curl -fsS --cacert %s -H 'Authorization: Bearer %s' -H %s -o %s %s"):format(process.quote(server.ca),
    server.token, process.quote("Accept: " .. (accept or "application/json")), process.quote(dir .. "/" .. file),
    process.quote(server.url .. path)))
  if code ~= 0 then error(("generate: %s: %s"):format(path, out), 0) end
  return process.read(dir .. "/" .. file)
end

fetch("/api", "api.json", DISCOVERY)
fetch("/apis", "apis.json", DISCOVERY)
local n = 0
for path in fetch("/openapi/v3", "index.json"):gmatch '"serverRelativeURL":"([^"]+)"' do
  n = n + 1
  fetch(path:gsub("\\u0026", "&"), ("openapi-%03d.json"):format(n))
end
server:stop()

local text, code = process.run(("lua5.4 core/server/builtin.lua %s"):format(process.quote(dir)))
if code ~= 0 then error("generate: " .. text, 0) end
process.write(OUT, text)
print(("%s: written from %d documents of kube-apiserver 1.34.3"):format(OUT, n))
