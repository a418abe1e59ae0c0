-- generate.lua - regenerates committed data: it asks a real kube-apiserver (built by Go from its modules) for
-- its description and its first objects, and writes core/schema/builtin_data.c, core/openapi/definitions.txt,
-- core/rbac/defaults.c, core/serving/defaults.c, core/show/columns_data.c and the typed clientsets in
-- lua/kubelua/kubernetes; those in lua/kubelua/koordinator are generated from controllers/koordinator/crds.
-- `make generate` runs it.

local columns = require "support.columns"
local first = require "support.first"
local process = require "support.process"
local servers = require "support.servers"

local OUT = "core/schema/builtin_data.c"
local DEFINITIONS = "core/openapi/definitions.txt"
local DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

local assets, why = servers.assets()
if not assets then
  io.stderr:write("generate: a real API server is needed: " .. why .. "\n")
  os.exit(1)
end

local server = servers.real { own = true, args = { "--enable-priority-and-fairness=true" } }
local dir = process.tmpname ".openapi"
process.run("mkdir -p " .. process.quote(dir))

local function fetch(path, file, accept)
  local out, code = process.run(("curl -fsS --cacert %s -H 'Authorization: Bearer %s' -H %s -o %s %s"):format(
    process.quote(server.ca),
    server.token, process.quote("Accept: " .. (accept or "application/json")),
    process.quote(dir .. "/" .. file),
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

local function gen(from, module, attribution)
  local words = { (os.getenv "KUBELUA" or "build/kubelua") .. " gen --lazy", from, "--name",
    "kubelua." .. module, "--out", "lua/kubelua/" .. module }
  local said, failed = process.run(table.concat(words, " ") .. " --attribution "
    .. process.quote(attribution))
  if failed ~= 0 then error("generate: " .. said, 0) end
  io.write(said)
end

gen("--from-cluster --kubeconfig " .. process.quote(server.kubeconfig), "kubernetes",
  "Names and descriptions of fields: Kubernetes, Copyright The Kubernetes Authors, Apache License 2.0.")
gen("--crds controllers/koordinator/crds --also constants", "koordinator",
  "Names and descriptions of fields: Koordinator, Copyright The Koordinator Authors; scheduler-plugins, \z
    Copyright The Kubernetes Authors;\n"
  .. "noderesourcetopology-api. All Apache License 2.0; controllers/koordinator/crds/README.md has versions \z
    and texts.")

local RBAC = "/apis/rbac.authorization.k8s.io/v1/"
first.file(server, "core/rbac/defaults.c", "the roles and bindings", [[
#include "rbac/rbac.h"]], "kl_rbac_defaults",
  { RBAC .. "clusterroles", RBAC .. "clusterrolebindings", RBAC .. "roles", RBAC .. "rolebindings" })
first.file(server, "core/serving/defaults.c", "what configures the server, and PriorityClasses", [[
#include "serving/serving.h"]], "kl_serving_defaults",
  { "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/servicecidrs", "/apis/scheduling.k8s.io/v1/priorityclasses" })

columns.file(server, "core/show/columns_data.c")

server:stop()

local omitted = process.tmpname ".txt"
local text, code = process.run(
  ("cd spec/realserver && GOFLAGS=-mod=readonly go run ./proto omitted > %s"):format(
  process.quote(omitted)))
if code ~= 0 then error("generate: " .. text, 0) end
text, code = process.run(("lua5.4 core/schema/builtin.lua %s %s"):format(process.quote(dir),
  process.quote(omitted)))
if code ~= 0 then error("generate: " .. text, 0) end
process.write(OUT, text)
print(("%s: written from %d documents of kube-apiserver 1.34.3"):format(OUT, n))

text, code = process.run(("lua5.4 core/openapi/generate.lua %s"):format(process.quote(dir)))
if code ~= 0 then error("generate: " .. text, 0) end
process.write(DEFINITIONS, text)
print(DEFINITIONS .. ": the definitions in them")

-- The tables that convert protobuf and JSON into each other, from Go's own types.
for _, made in ipairs {
  { "tables", "core/wire/proto_data.c" }, { "objects", "spec/fixtures/proto/objects.txt" },
} do
  local tmp = process.tmpname ".go"
  local said,
    failed = process.run(("cd spec/realserver && GOFLAGS=-mod=readonly go run ./proto %s > %s"):format(
    made[1], process.quote(tmp)))
  if failed ~= 0 then error("generate: " .. said, 0) end
  process.write(made[2], process.read(tmp))
  print(made[2] .. ": written from the types of k8s.io/api v0.34.3")
end

-- What the metrics of controller-runtime and client-go look like.
local tmp = process.tmpname ".go"
local said,
  failed = process.run(("cd spec/realserver/metrics && GOFLAGS=-mod=readonly go run . 2>&1 > %s"):format(
  process.quote(tmp)))
if failed ~= 0 then error("generate: " .. said, 0) end
process.write("spec/fixtures/metrics/controller_runtime.txt", process.read(tmp))
print "spec/fixtures/metrics/controller_runtime.txt: written from controller-runtime v0.25.2"
