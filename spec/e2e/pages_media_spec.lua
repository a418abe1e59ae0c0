-- pages_media_spec.lua - discovery, /version and OpenAPI in the media types that clients ask for: JSON, YAML,
-- the aggregated form, or 406. Both servers answer alike.
-- not in tsan: one request after the other

local requests = require "support.requests"
local wait = require "support.wait"

local GROUP = "pages-media.example.com"
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

local rows = {}
local function get(code, path, accept, head)
  rows[#rows + 1] = { code = code, method = "GET", path = path, headers = { "Accept: " .. accept },
    head = head }
end

-- Media types, and the code of the answer to each: of routes, of pages without a route, of JSON alone.
local ACCEPTS = {
  { "application/json", 200, 200, 200 }, { "application/yaml", 200, 200, 406 },
  { "text/html", 406, 406, 406 },
  { "application/*", 406, 200, 406 }, { "image/png, */*;q=0.1", 200, 200, 200 }, { "", 200, 200, 200 },
  { "application/yaml, application/json", 200, 200, 200 }, { "application/cbor", 406, 406, 406 },
  { "application/json;q=0.1, application/yaml", 200, 200, 200 },
  { "application/json;stream=watch", 200, 200, 200 }, { "application/yaml;stream=watch", 406, 406, 406 },
  { "application/json;as=Table;v=v1;g=meta.k8s.io", 406, 406, 200 },
  { "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", 406, 406, 200 },
}
for _, a in ipairs(ACCEPTS) do
  for _, path in ipairs { "/api", "/api/v1", "/apis/apps/v1", "/apis/autoscaling/v1" } do
    -- the address in /api is the server's
    get(a[2], path, a[1], path == "/api" and not a[1]:find "yaml")
  end
  for _, path in ipairs { "/apis/", "/apis/apps", "/apis/" .. GROUP, "/apis/" .. GROUP .. "/v1" } do
    get(a[3], path, a[1], path == "/apis/")
  end
  get(a[4], "/version", a[1], a[4] == 200)
end
for _, path in ipairs { "/api", "/apis" } do
  for _, type in ipairs { "json", "yaml" } do
    get(200, path, ("application/%s;%s"):format(type, AGGREGATED), path == "/apis")
    get(200, path, ("application/json;q=0.9, application/%s;%s"):format(type, AGGREGATED), path == "/apis")
  end
  get(200, path, "application/json, application/json;" .. AGGREGATED, true)
  get(406, path, "application/yaml;stream=watch;" .. AGGREGATED)
end
get(406, "/apis/", "application/json;" .. AGGREGATED)
for _, group in ipairs { "events.k8s.io/v1", "autoscaling/v2", "batch/v1", "certificates.k8s.io/v1",
  "coordination.k8s.io/v1", "discovery.k8s.io/v1", "networking.k8s.io/v1", "node.k8s.io/v1", "policy/v1",
  "rbac.authorization.k8s.io/v1", "resource.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1",
  "admissionregistration.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1", "apiextensions.k8s.io/v1",
  "apiregistration.k8s.io/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", GROUP .. "/v2" } do
  get(200, "/apis/" .. group, "application/json")
end

-- OpenAPI: other specs compare the documents.
local V2, V3 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
  "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
for _, path in ipairs { "/openapi/v2", "/openapi/v3/api/v1" } do
  local v2 = path == "/openapi/v2"
  for accept, code in pairs { ["application/json"] = 200, ["application/yaml"] = 406, ["*/*"] = 200,
    ["application/*"] = 200, [""] = 200, ["text/*"] = 406, [V2] = v2 and 200 or 406, [V3] = v2 and 406 or 200,
    ["application/json;q=0.1, " .. V2] = 200, ["application/json;q=0.1, " .. V3] = 200 } do
    get(code, path, accept, true)
  end
end
for path, code in pairs { ["/openapi/v2/"] = 404, ["/openapi"] = 404, ["/openapi/v3/"] = 404,
  ["/openapi/v3/apis/nope/v1"] = 404, ["/openapi/v3/version"] = 200 } do
  get(code, path, "application/json")
end

local function version(name, storage)
  return { name = name, served = true, storage = storage, schema = { openAPIV3Schema = { type = "object" } },
    subresources = { status = setmetatable({}, { __jsontype = "object" }) } }
end
local DEFINITION = { metadata = { name = "things." .. GROUP }, spec = { group = GROUP, scope = "Namespaced",
  names = { plural = "things", kind = "Thing" }, versions = { version("v1", false), version("v2", true) } } }

requests.describe("pages of both servers: ", rows, function(api)
  api:delete(CRDS .. "/things." .. GROUP)
  assert.equal(201, api:post(CRDS, DEFINITION).code)
  wait.until_true(30, "the definition is served", function()
    local r = api:get("/apis/" .. GROUP .. "/v2")
    return r.code == 200 and #(r.body.resources or {}) == 2
      and api:get("/apis/", { "Accept: application/json" }).text:find(GROUP, 1, true)
  end)
end, function(api) api:delete(CRDS .. "/things." .. GROUP) end)
