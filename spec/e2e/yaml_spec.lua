-- yaml_spec.lua - YAML to and from an API server: which document of a body counts, what repeated keys,
-- merges and tags mean, what is said of mistakes, and how answers are written. Both servers answer with the
-- same bytes.
-- not in tsan: one request after the other

local requests = require "support.requests"

local MAPS = "/api/v1/namespaces/yaml-spec/configmaps"
local APPLY = "application/apply-patch+yaml"

local rows = {}
local function row(code, method, path, type, body)
  rows[#rows + 1] = { code = code, method = method, path = path, body = body,
    headers = { "Accept: application/yaml", type and "Content-Type: " .. type } }
end

-- Creates a ConfigMap from each text, and applies it.
local function both_ways(text, created, strict)
  row(created, "POST", MAPS .. "?dryRun=All", "application/yaml", text)
  row(created, "POST", MAPS .. "?dryRun=All&fieldValidation=Ignore", "application/yaml", text)
  row(strict or created, "POST", MAPS .. "?dryRun=All&fieldValidation=Strict", "application/yaml", text)
  local whole = "apiVersion: v1\nkind: ConfigMap\n" .. text
  row(created, "PATCH", MAPS .. "/a?dryRun=All&fieldManager=m", APPLY, whole)
  row(strict or created, "PATCH", MAPS .. "/a?dryRun=All&fieldManager=m&fieldValidation=Strict", APPLY, whole)
end

local A = "metadata:\n  name: a\n"
both_ways(A .. "data: {b: '1', a: '2'}\n", 201)
both_ways(A .. "data:\n  a: '1'\n  a: '2'\n  b: x\n  a: '3'\n", 201, 400)
both_ways(A .. "data:\n  1: '1'\n  1: '2'\n  1.5: x\n  1.5: z\n", 201, 400)
both_ways(A .. "data:\n  a: >-\n    x\n    y\n  a: |\n    z\n", 201, 400)
both_ways(A .. "---\nmetadata:\n  name: b\n", 201)
both_ways(A .. "---\n{{{{", 201)
both_ways(A .. "data:\n  a: !!binary aGk=\n  b: !foo b\n", 201)
both_ways(A .. "  labels: &l\n    x: '1'\n    z: '2'\n  annotations:\n    <<: *l\n", 201)
both_ways(A .. "  labels: &l\n    x: '1'\n    z: '2'\n  annotations:\n    <<: *l\n    z: '3'\n", 201, 400)
for _, text in ipairs { "metadata:\n  name: *x\n", "metadata:\n\tname: a\n", A .. "  <<: 5\n",
  A .. "data:\n  a: true\n  a: true\n" } do
  row(400, "POST", MAPS, "application/yaml", text)
  row(400, "POST", MAPS .. "?fieldValidation=Ignore", "application/yaml", text)
end
for _, text in ipairs { "- a\n", "abc\n", "5\n" } do
  row(400, "POST", MAPS, "application/yaml", text)
  row(400, "PATCH", MAPS .. "/a?fieldManager=m", APPLY, text)
  row(500, "DELETE", MAPS .. "/none", "application/yaml", text)
end
for _, text in ipairs { "", "# nothing\n", "null\n", "---\n---\n" .. A } do
  row(422, "POST", MAPS, "application/yaml", text)
end
row(400, "PATCH", MAPS .. "/a?fieldManager=m", APPLY, "null\n")
row(400, "POST", MAPS .. "?fieldValidation=Strict", "application/yaml", A .. "  name: b\nfoo: 1\nfoo: 2\n")
row(201, "POST", MAPS .. "?dryRun=All", "application/yaml", A .. "  name: b\nfoo: 1\nfoo: 2\n")
-- A request that fails warns of nothing.
row(500, "PATCH", MAPS .. "/a?fieldManager=m", APPLY, "apiVersion: v1\nkind: ConfigMap\n" .. A
  .. "foo: 1\nfoo: 2\n")
row(400, "POST", MAPS, "application/json", '{"metadata":{"name":"a"},"data":{"a":"1","a":1}}')

-- how answers are written: the order of keys, quotes, folded lines
row(201, "POST", MAPS .. "?dryRun=All", "application/yaml", A .. [[
data: {a10: x, a2: x, a02: x, "10": x, "9": x, A: x, _: x, a-b: x, a.b: x, ab: x, "0a": x,
  "00": x, a100: x, a0: x, a-: x}
]])
row(201, "POST", MAPS .. "?dryRun=All", "application/yaml", A .. [[
data: {a: "yes", b: "1.5", c: "null", d: "", e: "~", f: "a\nb", g: " x", h: "x ", i: "a: b", j: "# x",
  k: "1:30", l: "0x1F", m: "2001-01-01", o: "é", p: "\t", q: "a\n", r: "- a", s: "{", t: "'x'", u: "1_000",
  v: "=", w: "<<", x: "on", z: "*a", a1: "2001-02-30", a2: "2001-1-2T3:04:05Z", a3: "2001-01-02 03:04:05.5",
  a4: "2001-01-02T03:04:05+01:00", a5: "2001-01-02T03:04:05", a6: "1:60", a7: "-1:30.5", a8: "1e3",
  a9: "a\n\n"}
]])
row(201, "POST", MAPS .. "?dryRun=All", "application/yaml", A .. "data:\n  a: " .. ("word "):rep(60)
  .. "\n  b: '" .. ("it is: "):rep(40) .. "'\n  c: " .. ("x"):rep(200) .. "\n  d: \"" .. ("\\t word"):rep(30)
  .. "\"\n")
row(404, "GET", MAPS .. "/none")
for _, path in ipairs { "apiregistration.k8s.io/v1/apiservices/v1.apps",
  "scheduling.k8s.io/v1/priorityclasses" } do
  row(200, "GET", "/apis/" .. path)
end

requests.describe("YAML on both servers: ", rows, function(api)
  api:delete "/api/v1/namespaces/yaml-spec"
  assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = "yaml-spec" } }).code)
end, function(api) api:delete "/api/v1/namespaces/yaml-spec" end)
