-- odd_requests_spec.lua - requests that no client should send, and some that are only rare: media types,
-- paths, methods, parameters, preconditions, bodies. Both servers answer with the same
-- code, type, words and warnings.
-- not in tsan: one request after the other

local requests = require "support.requests"

local NS = "/namespaces/odd-requests"
local MAPS, PODS = "/api/v1" .. NS .. "/configmaps", "/api/v1" .. NS .. "/pods"
local APPS = "/apis/apps/v1" .. NS .. "/deployments"
local MAP, POD, APP = MAPS .. "/odd", PODS .. "/odd", APPS .. "/odd"
local DRY = "?dryRun=All"
local TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
local PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
local JSON, MERGE, SMP, APPLY = "application/json-patch+json", "application/merge-patch+json",
  "application/strategic-merge-patch+json", "application/apply-patch+yaml"
local TEMPLATE = '{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'
local MADE = { metadata = { name = "odd", labels = { x = "odd" } }, data = { a = "1" } }

local rows = {}
-- A request, and the code of its answer: headers is a list, or a content type.
local function row(code, method, path, headers, body)
  if type(headers) == "string" then headers = { "Content-Type: " .. headers } end
  rows[#rows + 1] = { code = code, method = method, path = path, headers = headers, body = body }
end
local function get(code, path, accept) row(code, "GET", path, accept and { "Accept: " .. accept }) end
local function patch(code, path, type, body) row(code, "PATCH", path, type, body) end
local function post(code, path, body) row(code, "POST", path, "application/json", body) end

-- media types of bodies
for type, code in pairs { ["text/plain"] = 415, ["application/jsonx"] = 415, ["application"] = 415,
  ["/"] = 415,
  ["*/*"] = 415, ["application/json, application/yaml"] = 415, ["application/x-www-form-urlencoded"] = 415,
  ["multipart/form-data"] = 415, ["application/cbor"] = 415, ["APPLICATION/JSON"] = 201,
  ["application/json; charset=utf-8"] = 201, ["application/json;charset=utf-8;foo=bar"] = 201,
  ["application/vnd.kubernetes.protobuf"] = 400 } do
  row(code, "POST", MAPS .. DRY, type, '{"metadata":{"name":"other"}}')
end
row(415, "PUT", MAP, "text/plain", "{}")
row(415, "DELETE", MAP .. DRY, "text/plain", "{}")
for type, code in pairs { [MERGE .. "; charset=utf-8"] = 200, ["application/MERGE-patch+json"] = 415,
  [MERGE .. ",application/json"] = 415, ["application/apply-patch+cbor"] = 415,
  ["application/apply-patch+json"] = 415, [SMP .. " ; x"] = 415 } do
  patch(code, MAP .. DRY, type, '{"data":{"b":"2"}}')
end

-- paths
for path, code in pairs { [MAPS .. "/"] = 200, [MAP .. "/"] = 200,
  [MAP .. "/nope"] = 404, [MAP .. "/status"] = 404, [MAP .. "/a/b/c"] = 404,
  ["/api/v1" .. NS .. "/nope/x"] = 404,
  ["/api/v1/namespaces/none/configmaps"] = 200, ["/api/v2/namespaces"] = 404, ["/api/v1/ConfigMaps"] = 404,
  ["/api/v1/configmaps/odd"] = 404, ["/apis/apps/v9/deployments"] = 404, ["/apis/nope.io/v1/things"] = 404,
  ["/apis/nope.io"] = 404, ["/nope"] = 404, [MAPS .. "/%6fdd"] = 200, [MAPS .. "/odd%2f"] = 200,
  [MAPS .. "/.."] = 400, [MAPS .. "/."] = 400, [MAPS .. "/a%25b"] = 400,
  [MAPS .. "/" .. ("x"):rep(3000)] = 404,
  [MAPS .. "/%C3%A9"] = 404, ["/API/v1/namespaces"] = 404, ["/api/v1" .. NS .. "/bindings"] = 405,
  ["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = 405,
  ["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x"] = 404,
  ["/api/v1/proxy" .. NS .. "/pods/x"] = 404,
  ["/api/v1/watch" .. NS .. "/configmaps?timeoutSeconds=1"] = 200,
  ["/api/v1/watch/configmaps?timeoutSeconds=1&resourceVersion=0&labelSelector=none"] = 200,
  ["/api/v1/watch" .. NS .. "/configmaps/odd?timeoutSeconds=1&resourceVersion=0"] = 200,
  ["/api/v1/watch" .. NS .. "?timeoutSeconds=1&resourceVersion=0"] = 200 } do
  get(code, path)
end

-- methods
row(405, "POST", "/api/v1/watch" .. NS .. "/configmaps", nil, "{}")
for _, path in ipairs { MAP, MAPS, MAPS .. "/nope" } do row(405, "HEAD", path) end
row(405, "OPTIONS", MAP)
row(405, "BREW", MAP)
row(405, "PUT", MAPS, nil, "{}")
row(405, "POST", MAP, nil, "{}")
patch(405, MAPS, MERGE, "{}")
row(405, "DELETE", "/api/v1/namespaces")
row(405, "DELETE", "/api/v1/configmaps")
row(404, "DELETE", "/api/v1/bindings")
row(405, "POST", "/api/v1/componentstatuses", nil, "{}")
for _, path in ipairs { "/api", "/version", "/apis/apps/v1" } do row(405, "POST", path, nil, "{}") end
row(200, "POST", "/apis/apps", nil, "{}")
row(200, "PUT", "/healthz", nil, "{}")
row(200, "OPTIONS", "/livez/ping")

-- options of writes
for query, code in pairs { ["dryRun=wrong"] = 422, ["dryRun=All&dryRun=All"] = 201, ["dryRun="] = 422,
  ["dryRun=all"] = 422, ["dryRun=All&fieldManager=" .. ("m"):rep(129)] = 422,
  ["dryRun=All&fieldManager=" .. ("m"):rep(128)] = 201, ["dryRun=All&fieldManager=%C3%A9"] = 201,
  ["dryRun=All&fieldValidation=x"] = 422, ["dryRun=All&fieldValidation=strict"] = 422 } do
  post(code, MAPS .. "?" .. query, { metadata = { name = "other" } })
end
local REPEATED = '{"metadata":{"name":"other","name":"other"},"data":{"a":"1","a":"2"},"kind":"ConfigMap",'
  .. '"kind":"ConfigMap"}'
post(400, MAPS .. DRY .. "&fieldValidation=Strict", REPEATED)
post(400, MAPS .. DRY .. "&fieldValidation=Strict",
  '{"metadata":{"name":"other"},"data":{"a":"1","a":"2","a":"3"},"data":{"a":"1","a":"2"}}')
post(201, MAPS .. DRY .. "&fieldValidation=Warn", REPEATED)
post(201, MAPS .. DRY .. "&fieldValidation=Ignore", REPEATED)
post(201, PODS .. DRY,
  '{"metadata":{"name":"other"},"spec":{"containers":[{"name":"b","name":"c","image":"i",'
  .. '"env":[{"name":"A"},{"name":"B","value":"1","value":"2"}]}]}}')
-- Fields of a feature that is off are dropped.
local RULES = '"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]'
post(201, PODS .. DRY, '{"metadata":{"name":"other"},"spec":{"containers":[{"name":"c","image":"i",'
  .. '"restartPolicy":"Never",' .. RULES .. '}],"initContainers":[{"name":"i","image":"i",'
  .. '"restartPolicy":"Never",' .. RULES .. '},{"name":"a","image":"i","restartPolicy":"Always"}]}}')
post(400, MAPS .. DRY .. "&fieldValidation=Strict", '{"metadata":{"name":"other","nope":1},"foo":1}')
for _, type in ipairs { MERGE, SMP } do
  patch(200, MAP .. DRY, type, '{"data":{"a":"1","a":"2"},"foo":1}')
end
patch(422, MAP .. DRY .. "&fieldValidation=Strict", SMP,
  '{"data":{"a":"1","a":"2"},"foo":[1,null,{"b":true,"a":"x"}]}')
patch(200, MAP .. DRY, JSON, '[{"op":"add","path":"/data/x","value":"1","value":"2","extra":1}]')
patch(422, MAP .. DRY .. "&force=true", MERGE, "{}")
patch(422, MAP .. DRY, APPLY, "apiVersion: v1\nkind: ConfigMap\n")
for _, type in ipairs { JSON, MERGE, SMP } do
  patch(404, MAPS .. "/nope", type, "{")
  patch(400, MAP, type, "")
end
patch(400, MAPS .. "/nope?fieldManager=a", APPLY, "{")
patch(400, MAP, MERGE, "null")
for _, body in ipairs { "null", "{}" } do post(422, MAPS, body) end
row(400, "PUT", MAP, nil, "{}")

-- accepted media types, forms
for accept, code in pairs { [""] = 200, ["*/*"] = 200, ["application/*"] = 406, ["text/html"] = 406,
  ["application/json;as=Table"] = 406, ["application/json;as=Table;v=v2;g=meta.k8s.io"] = 406,
  ["application/json;as=Nope;v=v1;g=meta.k8s.io"] = 406, ["application/json;stream=watch"] = 200,
  ["application/json;as=Nope;v=v1;g=meta.k8s.io, application/json"] = 200,
  ["image/png, application/json;q=0"] = 200,
  ["application/cbor"] = 406, ["application/cbor, application/json"] = 200,
  ["application/json;pretty=1"] = 200,
  ["json"] = 406, ["application/json;q=abc"] = 200, [TABLE] = 200,
  [TABLE .. ";q=0.1, application/json"] = 200 } do
  get(code, MAP, accept)
  get(code, MAPS .. "?labelSelector=x%3Dodd", accept)
end
for word, code in pairs { None = 200, Object = 200, Metadata = 200, [""] = 200, none = 400, x = 400 } do
  get(code, MAPS .. "?labelSelector=x%3Dodd&includeObject=" .. word, TABLE)
end
get(404, MAPS .. "/nope", TABLE)
get(200, MAP, PARTIAL)
get(406, MAPS, PARTIAL)

-- lists and watches
for query, code in pairs { ["limit=abc"] = 400, ["limit=99999999999999999999"] = 400, ["limit=1.5"] = 400,
  ["limit="] = 400, ["resourceVersion=abc"] = 400, ["resourceVersion=-1"] = 400,
  ["resourceVersionMatch=Exact"] = 422, ["resourceVersionMatch=Exact&resourceVersion=0"] = 422,
  ["resourceVersionMatch=nope&resourceVersion=1"] = 422, ["resourceVersionMatch=nope"] = 422,
  ["resourceVersionMatch=nope&continue=x"] = 422, ["sendInitialEvents=true"] = 422,
  ["labelSelector=%3D"] = 400, ["labelSelector=a+in+(b"] = 400, ["labelSelector=a%3Db%3Dc"] = 400,
  ["labelSelector=-a"] = 400, ["fieldSelector=metadata.name"] = 400, ["fieldSelector=data.a%3D1"] = 400,
  ["fieldSelector=%3Dx"] = 400, ["timeoutSeconds=abc"] = 400, ["timeout=abc"] = 400, ["timeout=5"] = 400,
  ["watch=0&labelSelector=none"] = 200, ["watch=FALSE&labelSelector=none"] = 200,
  ["watch=maybe&timeoutSeconds=1&labelSelector=none"] = 200,
  ["watch&timeoutSeconds=1&labelSelector=none"] = 200,
  ["watch=1&resourceVersion=abc"] = 500, ["watch=1&resourceVersionMatch=Exact&resourceVersion=0"] = 422,
  ["watch=1&sendInitialEvents=true"] = 422,
  ["watch=1&sendInitialEvents=true&resourceVersionMatch=Exact"] = 422,
  ["watch=1&continue=x&timeoutSeconds=1"] = 422, ["watch=1&timeoutSeconds=abc"] = 400,
  ["watch=1&allowWatchBookmarks=maybe&timeoutSeconds=1&labelSelector=none"] = 200,
  ["watch=1&resourceVersion=0&allowWatchBookmarks=1&timeoutSeconds=1&labelSelector=none"] = 200 } do
  get(code, MAPS .. "?" .. query)
end
get(500, MAP .. "?resourceVersion=abc")
get(200, MAP .. "?resourceVersion=0")

-- deletions
for body, code in pairs { ["{"] = 500, ["[]"] = 500, ['{"dryRun":["wrong"]}'] = 422,
  ['{"dryRun":"All"}'] = 500,
  ['{"propagationPolicy":"Nope"}'] = 422, ['{"preconditions":{"uid":"nope"}}'] = 409,
  ['{"preconditions":{"uid":5}}'] = 500, ['{"kind":"Pod","apiVersion":"v1"}'] = 500,
  ['{"propagationPolicy":"Orphan","orphanDependents":true}'] = 422, ['{"dryRun":["All"],"foo":1}'] = 200,
  ['{"dryRun":["All"],"dryRun":["All"]}'] = 200 } do
  row(code, "DELETE", MAP, "application/json", body)
end
for query, code in pairs { ["gracePeriodSeconds=abc"] = 400, ["propagationPolicy=Nope"] = 422,
  ["dryRun=wrong"] = 422, ["orphanDependents=maybe&dryRun=All"] = 200 } do
  row(code, "DELETE", MAP .. "?" .. query)
end
for query, code in pairs { ["limit=abc"] = 400, ["resourceVersion=abc"] = 400, ["labelSelector=%3D"] = 400,
  ["fieldSelector=data.a%3D1"] = 400 } do
  row(code, "DELETE", MAPS .. "?" .. query)
end

-- preconditions, names, kinds
for body, code in pairs { ['{"metadata":{"name":"other"}}'] = 400,
  ['{"metadata":{"name":"odd","uid":"no"}}'] = 409,
  ['{"metadata":{"name":"odd","namespace":"other"}}'] = 400, ['{"metadata":{}}'] = 400 } do
  row(code, "PUT", MAP, nil, body)
end
for body, code in pairs { ['{"metadata":{"name":"other"}}'] = 400, ['{"metadata":{}}'] = 400,
  ['{"metadata":{"name":"none","namespace":"other"}}'] = 400 } do
  row(code, "PUT", MAPS .. "/none", nil, body)
end
for body, code in pairs { ['{"kind":"Pod"}'] = 422, ['{"apiVersion":"v2"}'] = 422,
  ['{"metadata":null}'] = 400,
  ['{"metadata":{"name":"other"}}'] = 400 } do
  patch(code, MAP, MERGE, body)
end
for name, code in pairs { ["é"] = 422, ["a b"] = 422, [("x"):rep(254)] = 422, ["a/b"] = 422, ["a%b"] = 422,
  [".."] = 422, odd = 409 } do
  post(code, MAPS, { metadata = { name = name } })
end
post(422, MAPS .. DRY, { metadata = { name = "other", generateName = "UP" } })
post(422, MAPS .. DRY, { metadata = { name = "other", generateName = "UP-" } })
post(201, MAPS .. DRY, { metadata = { name = "other", generateName = "up-" } })
post(500, MAPS, { metadata = { name = "other", resourceVersion = "1" } })
post(201, MAPS .. DRY, { metadata = { name = "other", resourceVersion = "x" } })
for kind, code in pairs { ["v2 ConfigMap"] = 400, ["v1 Nope"] = 400, ["v1 Pod"] = 400,
  ["v1 ConfigMapList"] = 400,
  ["apps/v1 Deployment"] = 400, ["apps/v1 ConfigMap"] = 400 } do
  local version, word = kind:match "(%S+) (%S+)"
  post(code, MAPS, { apiVersion = version, kind = word, metadata = { name = "other" } })
end
post(400, "/apis/rbac.authorization.k8s.io/v1" .. NS .. "/roles", { apiVersion = "v1", kind = "Pod",
  metadata = { name = "other" } })

-- subresources
get(200, POD .. "/status")
get(405, POD .. "/eviction")
post(201, POD .. "/eviction" .. DRY, { metadata = { name = "odd" } })
post(400, POD .. "/eviction" .. DRY, { metadata = { name = "other" } })
for body, code in pairs { ['{"metadata":{"name":"odd"},"spec":{"replicas":-1}}'] = 422,
  ['{"metadata":{"name":"other"},"spec":{"replicas":1}}'] = 400,
  ['{"metadata":{"name":"odd","resourceVersion":"1"},"spec":{"replicas":1}}'] = 409,
  ['{"kind":"Scale","apiVersion":"autoscaling/v2","metadata":{"name":"odd"}}'] = 400,
  ['{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"odd"}}'] = 400, ["{"] = 400,
  ['{"metadata":{"name":"odd"},"spec":{"replicas":"x"}}'] = 400,
  ['{"metadata":{"name":"odd"},"spec":{"replicas":2},"foo":1}'] = 200 } do
  row(code, "PUT", APP .. "/scale" .. DRY, nil, body)
end
patch(200, APP .. "/scale" .. DRY, MERGE, '{"spec":{"replicas":null}}')
patch(200, APP .. "/scale" .. DRY, MERGE, '{"foo":1}')
patch(200, APP .. "/scale" .. DRY, JSON, '[{"op":"replace","path":"/spec/replicas","value":7}]')
patch(422, APP .. "/scale" .. DRY, JSON, '[{"op":"remove","path":"/spec/nope"}]')
patch(400, APP .. "/scale" .. DRY, JSON, "{}")
get(404, APPS .. "/none/scale")
row(405, "DELETE", APP .. "/scale")

-- more of all of these
for _, path in ipairs { "/", "/index.html" } do
  for _, method in ipairs { "HEAD", "OPTIONS", "PUT", "DELETE" } do row(200, method, path) end
end
for _, path in ipairs { "/.well-known/openid-configuration", "/openid/v1/jwks", "/version", "/api",
  "/api/v1" } do
  for _, method in ipairs { "HEAD", "OPTIONS", "DELETE" } do row(405, method, path) end
end
for _, path in ipairs { "/apis/nope", "/nope" } do
  for _, method in ipairs { "HEAD", "OPTIONS", "PATCH" } do row(404, method, path) end
end
for type, code in pairs { ["application/json;charset"] = 415, ["application/json;;"] = 415,
  ["application/json ; charset=utf-8"] = 201, ["text/json"] = 415, ["application/json;a=b;c"] = 415,
  ["application/merge-patch+json"] = 415 } do
  row(code, "POST", MAPS .. DRY, type, '{"metadata":{"name":"other"}}')
end
for accept, code in pairs { ["text/html,application/xhtml+xml,*/*;q=0.8"] = 200, ["APPLICATION/JSON"] = 406,
  ["application/json; charset=utf-8"] = 200, ["application/json;foo=bar"] = 200, ["*/json"] = 406,
  [","] = 406, ["application/json;export=1"] = 200, ["application/json;q=2"] = 200, ["*/*;q=0"] = 200,
  ["application/cbor-seq"] = 406 } do
  get(code, MAP, accept)
  get(code == 200 and 404 or code, MAPS .. "/nope", accept)
end
for query, code in pairs { ["limit=0&labelSelector=none"] = 200, ["limit=-1&labelSelector=none"] = 200,
  ["limit=%2B1&labelSelector=none"] = 200, ["limit=0x1"] = 400, ["limit=1e3"] = 400, ["Limit=x"] = 200,
  ["timeoutSeconds=1.5"] = 400, ["pretty=2&labelSelector=none"] = 200, ["&&&"] = 200, ["a=b=c"] = 200,
  ["resourceVersion=0&resourceVersionMatch=NotOlderThan&labelSelector=none"] = 200,
  ["labelSelector=a%3D%3D%3Db"] = 400, ["labelSelector=a%3C5"] = 200, ["labelSelector=a%3Cb"] = 400,
  ["labelSelector=a+notin"] = 400, ["labelSelector=("] = 400, ["labelSelector=a%3Db,,c"] = 400,
  ["labelSelector=a/b/c"] = 400, ["labelSelector=" .. ("x"):rep(64) .. "%3Da"] = 400,
  ["labelSelector=a%3D" .. ("x"):rep(64)] = 400, ["fieldSelector=a"] = 400, ["fieldSelector=,"] = 200,
  ["fieldSelector=metadata.name%3Da%5C"] = 400, ["fieldSelector=status.phase%3DRunning"] = 400,
  ["fieldSelector=metadata.name%3Da,metadata.namespace%3Db"] = 200, ["resourceVersion=1%20"] = 400,
  ["dryRun=All&labelSelector=none"] = 200, ["gracePeriodSeconds=5&labelSelector=none"] = 200 } do
  get(code, MAPS .. "?" .. query)
end
for query, code in pairs { ["timeout=1h"] = 201, ["timeout=x"] = 400, ["timeout=99h"] = 201,
  ["fieldValidation="] = 201, ["fieldValidation=Strict&fieldValidation=Warn"] = 400, ["fieldManager="] = 201,
  ["dryRun=All,All"] = 422, ["pretty=x"] = 201, ["force=true"] = 201 } do
  post(code, MAPS .. DRY .. "&" .. query, '{"metadata":{"name":"other"},"foo":1}')
end
for _, body in ipairs { "[]", '"x"', '{"metadata":[]}', '{"metadata":{"name":5}}',
  '{"metadata":{"name":"other","labels":{"a":1}}}', '{"metadata":{"name":"other"},"data":[]}',
  '{"metadata":{"name":"other"}} {}', '{"metadata":{"name":"other"}}x', '{"metadata":{"name":"other"},}',
  "{'a':1}", '{"metadata":{"name":"other","creationTimestamp":"bad"}}',
  '{"metadata":{"name":"other"},"immutable":"true"}', '{"metadata":{"name":"other"},"binaryData":{"a":"!!"}}',
  '{"apiVersion":"v1","kind":"configmap","metadata":{"name":"other"}}',
  '{"kind":"List","apiVersion":"v1","items":[]}', '{"apiVersion":5,"metadata":{"name":"other"}}' } do
  post(400, MAPS .. DRY, body)
end
for body, code in pairs { ['[{"op":"nope","path":"/data"}]'] = 422, ['[{"op":"add"}]'] = 422,
  ['[{"op":"test","path":"/data/a","value":"2"}]'] = 422,
  ['[{"op":"remove","path":"/metadata/name"}]'] = 400,
  ['[{"op":"replace","path":"/metadata/name","value":"z"}]'] = 400,
  ['[{"op":"copy","from":"/data","path":"/metadata/labels"}]'] = 200,
  ['[{"op":"move","from":"/nope","path":"/data/x"}]'] = 422, ["[5]"] = 400, ["[null]"] = 422,
  ["[]"] = 200 } do
  patch(code, MAP .. DRY, JSON, body)
end

requests.describe("both servers answer", rows, function(api)
  api:delete("/api/v1" .. NS)
  assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = "odd-requests" } }).code)
  assert.equal(201, api:post(MAPS, MADE).code)
  assert.equal(201, api:post(PODS, { metadata = { name = "odd" }, spec = { containers = { { name = "c",
    image = "i" } } } }).code)
  assert.equal(201, api:post(APPS,
    '{"metadata":{"name":"odd"},"spec":{"replicas":3,"selector":{"matchLabels":'
    .. '{"a":"b"}},"template":' .. TEMPLATE .. "}}").code)
end, function(api)
  for _, path in ipairs { MAPS, PODS .. "?gracePeriodSeconds=0", APPS, "/api/v1" .. NS } do
    api:delete(path)
  end
end)
