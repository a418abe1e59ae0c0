-- connect_spec.lua - logs, exec, attach, port-forward and proxies as far as a server answers them without a
-- kubelet; odd paths; and the headers that each answer has. Both servers answer alike.
-- not in tsan: one request after the other

local requests = require "support.requests"
local new_api = require "support.api"
local servers = require "support.servers"

local NS = "/api/v1/namespaces/connect-spec"
local POD, TWO, NONE = NS .. "/pods/p", NS .. "/pods/q", NS .. "/pods/none"

local rows = {}
local function row(code, method, path, headers)
  rows[#rows + 1] = { code = code, method = method, path = path, headers = headers }
end

-- parameters of logs
for query, code in pairs { [""] = 204, ["tailLines=5"] = 204, ["tailLines=0"] = 204, ["tailLines=-1"] = 422,
  ["tailLines=abc"] = 400, ["tailLines="] = 400, ["tailLines=%2B5"] = 204, ["tailLines=%205"] = 400,
  ["tailLines=1_0"] = 400, ["tailLines=99999999999999999999"] = 400, ["sinceSeconds=0"] = 422,
  ["sinceSeconds=5"] = 204, ["sinceSeconds=x"] = 400, ["sinceTime=abc"] = 400,
  ["sinceTime=2020-01-01T00:00:00Z"] = 204, ["sinceTime=2020-01-01T00:00:00Z&sinceSeconds=5"] = 422,
  ["limitBytes=0"] = 422, ["limitBytes=-5&tailLines=-1&sinceSeconds=-1"] = 422, ["limitBytes=10"] = 204,
  ["limitBytes=x"] = 400, ["previous=maybe"] = 204, ["timestamps=x"] = 204, ["stream=Stdout"] = 422,
  ["container=c"] = 204, ["container=z"] = 400, ["container="] = 204 } do
  row(code, "GET", POD .. "/log?" .. query)
end
row(400, "GET", TWO .. "/log")
row(204, "GET", TWO .. "/log?container=e")
row(422, "GET", NONE .. "/log?tailLines=-1")
row(404, "GET", NONE .. "/log")

-- connections to containers
for _, sub in ipairs { "exec", "attach", "portforward" } do
  for _, method in ipairs { "GET", "POST" } do
    row(400, method, POD .. "/" .. sub .. "?command=ls&stdout=true")
    row(400, method, POD .. "/" .. sub .. "?container=z&command=ls&stdout=true")
    row(400, method, TWO .. "/" .. sub .. "?command=ls&stdout=true")
    row(404, method, NONE .. "/" .. sub)
  end
  row(405, "PUT", POD .. "/" .. sub)
  row(400, "GET", POD .. "/" .. sub .. "?command=a&stdout=true", { "Accept: text/html" })
  row(400, "GET", POD .. "/" .. sub .. "?ports=80,81")
end
row(400, "GET", POD .. "/portforward?ports=80,abc")
row(400, "GET", NONE .. "/portforward?ports=abc")

-- proxies
for path, code in pairs { ["/pods/p/proxy"] = 400, ["/pods/p:80/proxy/x"] = 400,
  ["/pods/http:p:80/proxy/a/b/c?y=1"] = 400, ["/pods/none/proxy/"] = 404, ["/services/s/proxy"] = 404,
  ["/services/s:http/proxy/a"] = 404, ["/services/s:81/proxy/"] = 503, ["/services/none/proxy/"] = 404,
  ["/services/ready/proxy/"] = 503, ["/services/ready:http/proxy/"] = 503,
  ["/services/none:80/proxy/"] = 404, ["/services/a:b:c:d/proxy/"] = 400,
  ["/services/ftp:s:80/proxy/x"] = 400,
  ["/pods/:/proxy/"] = 400 } do
  for _, method in ipairs { "GET", "POST", "DELETE", "OPTIONS" } do row(code, method, NS .. path) end
end
row(404, "GET", "/api/v1/nodes/none/proxy/")
row(404, "GET", "/api/v1/nodes/none:10250/proxy/x")

-- bodies of what is below an object
for _, path in ipairs { "/pods/p/binding", "/bindings", "/pods/p/eviction", "/serviceaccounts/none/token" } do
  row(400, "POST", NS .. path)
end

-- empty words in paths
for path, code in pairs { ["/api/v1/namespaces//pods/x"] = 400, ["/api/v1/namespaces//configmaps/odd"] = 400,
  ["/api/v1/namespaces//status"] = 400, ["/api/v1/nodes//proxy"] = 400, [NS .. "/pods//log"] = 400,
  [NS .. "/services//proxy/"] = 400, [NS .. "//configmaps"] = 404, [NS .. "/configmaps//odd"] = 404,
  ["/api/v1//namespaces"] = 404, ["//api/v1/namespaces"] = 404, ["/api//v1/namespaces"] = 404,
  [NS .. "/configmaps/a%2Fb"] = 404, [NS .. "/configmaps/..%2Fodd"] = 404, ["/api/v1/.."] = 404,
  ["/api/../api/v1"] = 404, ["/..%2f"] = 404,
  ["/api/v1/namespaces/UPPER/configmaps"] = 200,
  ["/api/v1/namespaces/%20/configmaps"] = 200, [NS .. "/configmaps/%20"] = 404,
  [NS .. "/configmaps/%zz"] = 400, ["/%"] = 400, ["/api/v1/namespaces%2"] = 400,
  ["/api/v1/watch"] = 500,
  ["/api/v1/watch/"] = 500, ["/apis/apps/v1/watch"] = 500, ["/version/x"] = 404, ["/apis/nope/v1/"] = 404,
  ["/api/v1/x/y/z/a/b/c/d/e/f/g"] = 404, ["/apis/apps/v1/namespaces"] = 404, ["/healthz/"] = 404,
  ["/livez/ping/"] = 404, ["/readyz/nope"] = 404, ["/swagger.json"] = 404, ["/metrics/x"] = 404 } do
  row(code, "GET", path)
end
row(405, "POST", "/api/v1/namespaces//pods/x")

requests.describe("connections and odd paths on both servers: ", rows, function(api)
  local function make(path, object) assert.equal(201, api:post(path, object).code) end
  api:delete(NS)
  make("/api/v1/namespaces", { metadata = { name = "connect-spec" } })
  local function container(name) return { name = name, image = "i" } end
  make(NS .. "/pods", { metadata = { name = "p" }, spec = { containers = { container "c" } } })
  make(NS .. "/pods", { metadata = { name = "q" }, spec = { containers = { container "c", container "d" },
    initContainers = { container "e" } } })
  for _, name in ipairs { "s", "ready" } do
    make(NS .. "/services", { metadata = { name = name },
      spec = { ports = { { port = 80, name = "http" } } } })
  end
  make(NS .. "/endpoints", { metadata = { name = "ready" }, subsets = { { addresses = { { ip = "10.1.1.1" } },
    ports = { { name = "http", port = 80 } } } } })
end, function(api)
  for _, path in ipairs { NS .. "/pods?gracePeriodSeconds=0", NS } do api:delete(path) end
end)

servers.each(function(name, start)
  describe("each answer of " .. name .. " has an Audit-Id:", function()
    local api, s
    lazy_setup(function()
      s = start {}
      api = new_api(s)
    end)
    lazy_teardown(function() s:stop() end)

    it("that of the request", function()
      for _, path in ipairs { "/api/v1/namespaces/default", "/nope", "/healthz", "/apis" } do
        assert.equal("my-own id", api:get(path, { "Audit-ID: my-own id" }).headers["audit-id"])
      end
    end)

    it("or a new one", function()
      local one, two = api:get "/api/v1/namespaces/none".headers, api:get "/version".headers
      assert.truthy(one["audit-id"]:find "^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$")
      assert.equal(36, #two["audit-id"])
      assert.not_equal(one["audit-id"], two["audit-id"])
    end)
  end)
end)
