-- openapi_paths_spec.lua - the paths of the OpenAPI documents equal those of a real server: every document of
-- every group version, v2 and v3, as JSON and as protobuf.
-- not in tsan: requests come one by one

local api = require "support.api"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local GROUP = "openapi-paths.example.com"
local PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"

local CRDS = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wagons.openapi-paths.example.com}
spec:
  group: openapi-paths.example.com
  scope: Namespaced
  names: {plural: wagons, singular: wagon, kind: Wagon}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              open: {type: boolean, default: true}
              load: {type: number, default: 1.5, enum: [1.5, 2]}
              name: {type: string, default: a, nullable: true}
              list:
                type: array
                minItems: 1
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items:
                  type: object
                  required: [id, more]
                  properties: {id: {type: string}, more: {type: integer, format: int64, nullable: true}}
              map: {type: object, additionalProperties: {type: string, pattern: "^a", maxLength: 5}}
              either: {x-kubernetes-int-or-string: true}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              rest:
                type: object
                description: what it is
                properties: {a: {type: string, maxLength: 3}, b: {type: boolean}}
                anyOf: [{required: [a]}, {required: [b]}]
                not: {required: [a, b]}
                x-kubernetes-validations: [{rule: "has(self.a)", message: has no a}]
            required: [name, open, list]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: engines.openapi-paths.example.com}
spec:
  group: openapi-paths.example.com
  scope: Cluster
  names: {plural: engines, singular: engine, kind: Engine}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
]]

-- ---------------------------------------------------------------- JSON documents as lines to compare

local function sorted(list, key)
  local out = {}
  for k, v in pairs(list or {}) do out[#out + 1] = key and key(v, k) or tostring(v) end
  table.sort(out)
  return out
end

local function joined(list, key) return table.concat(sorted(list, key), ",") end

-- A value as text, with sorted keys.
local function canonical(v)
  if type(v) ~= "table" then return tostring(v) end
  if #v > 0 then
    local list = {}
    for i, x in ipairs(v) do list[i] = canonical(x) end
    return "[" .. table.concat(list, ", ") .. "]"
  end
  return "{" .. joined(v, function(x, key) return key .. ": " .. canonical(x) end) .. "}"
end

local function schema(s) return s and ((s["$ref"] or ""):match "[^/]+$" or s.type) or "-" end

local function content(c)
  return joined(c, function(media, name) return name .. "=" .. schema(media.schema) end)
end

-- The embedded server omits descriptions of parameters (they would be half of each document).
local function parameter(document)
  return function(p)
    if p["$ref"] then p = document.parameters[p["$ref"]:match "[^/]+$"] end
    return ("%s:%s:%s:%s"):format(p["in"], p.name, p.schema and schema(p.schema) or p.type, p.required)
  end
end

local function operation(document, o)
  local on, body = o["x-kubernetes-group-version-kind"] or {}, o.requestBody or {}
  return table.concat({
    "id " .. o.operationId, "says " .. o.description, "tags " .. joined(o.tags),
    "action " .. tostring(o["x-kubernetes-action"]),
    ("on %s/%s/%s"):format(on.group, on.version, on.kind),
    "consumes " .. joined(o.consumes), "produces " .. joined(o.produces), "schemes " .. joined(o.schemes),
    "parameters " .. joined(o.parameters, parameter(document)),
    ("body %s required=%s"):format(content(body.content), body.required),
    "answers " .. joined(o.responses, function(r, code)
      return ("%s %s %s%s"):format(code, r.description, schema(r.schema), content(r.content))
    end),
  }, "\n    ")
end

-- The real server is shared with other specs, whose CRDs are not looked at: their groups, by name.
local others = {}

local function find_others(a)
  local crds = kube.json(a:get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").text)
  for _, crd in ipairs(crds.items) do
    if crd.spec.group ~= GROUP then others[crd.spec.group] = true end
  end
end

local function of_others(path)
  local group = path:match "^/apis/([^/]+)/"
  if not group or not group:find "%." or group == GROUP then return false end
  return others[group] or not group:find "%.k8s%.io$" -- one that is gone may still be documented
end

-- Schemas are named by the group, its parts in reverse.
local function schema_of_others(name)
  for group in pairs(others) do
    local parts = {}
    for part in group:gmatch "[^.]+" do table.insert(parts, 1, part) end
    if name:find(table.concat(parts, ".") .. ".", 1, true) == 1 then return true end
  end
  return false
end

-- "PATH METHOD" -> what it is; "PATH" -> the parameters of all of its operations.
local function described(text)
  local document, out = kube.json(text), {}
  for path, item in pairs(document.paths) do
    for method, o in pairs(item) do
      if of_others(path) then
        goto next
      elseif method == "parameters" then
        if #o > 0 then out[path] = joined(o, parameter(document)) end
      else
        out[path .. " " .. method] = operation(document, o)
      end
      ::next::
    end
  end
  for name in pairs((document.components or {}).securitySchemes or {}) do out["scheme " .. name] = "" end
  for name, s in pairs((document.components or {}).schemas or document.definitions or {}) do
    if name:find "^com%.example%.openapi%-paths%." then
      out["schema " .. name] = canonical(kube.copy(s))
    elseif name:find "^io%.k8s%." and not schema_of_others(name) then
      out["schema " .. name] = ""
    end
  end
  return out
end

-- The lines that only one of them has, at most ten.
local function differences(real, own)
  local out = {}
  for key, value in pairs(real) do
    if own[key] == nil then
      out[#out + 1] = "missing: " .. key
    elseif own[key] ~= value then
      out[#out + 1] = ("differs: %s\n    %s\n  ours:\n    %s"):format(key, value, own[key])
    end
  end
  for key in pairs(own) do if real[key] == nil then out[#out + 1] = "too much: " .. key end end
  table.sort(out)
  return table.concat(out, "\n", 1, math.min(#out, 10))
end

-- ---------------------------------------------------------------- protobuf documents

-- The fields of a message: { number, value } in their order; numbers are integers, the rest is bytes.
local function fields(bytes)
  local out, at = {}, 1
  local function varint()
    local value, shift = 0, 0
    repeat
      local byte = bytes:byte(at)
      value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
    until byte < 128
    return value
  end
  while at <= #bytes do
    local tag = varint()
    local value
    if tag & 7 == 0 then
      value = varint()
    elseif tag & 7 == 1 then
      value, at = bytes:sub(at, at + 7), at + 8
    else
      local n = varint()
      value, at = bytes:sub(at, at + n - 1), at + n
    end
    out[#out + 1] = { tag >> 3, value }
  end
  return out
end

local function field(bytes, number)
  for _, f in ipairs(fields(bytes)) do if f[1] == number then return f[2] end end
end

local schema_text

-- A schema or a reference, and an object of them.
local function some_schema(bytes)
  local s = field(bytes, 1)
  return s and schema_text(s) or "ref " .. field(field(bytes, 2), 1)
end
local function properties(bytes)
  return "{" .. joined(fields(bytes), function(f)
    return field(f[2], 1) .. "=" .. some_schema(field(f[2], 2))
  end) .. "}"
end

local INSIDE = {
  [26] = some_schema, [27] = some_schema, [28] = some_schema, [31] = properties,
  [30] = function(bytes) return some_schema(field(bytes, 1)) end,
  [32] = function(bytes) return field(bytes, 2) or some_schema(field(bytes, 1)) end,
  -- YAML, which can be written in many ways: ours is JSON.
  [24] = function(bytes) return (field(bytes, 2):gsub('^[\'"]?(.-)[\'"]?\n?$', "%1")) end,
  [36] = function(bytes) return field(bytes, 1) end,
}

function schema_text(bytes)
  return "(" .. joined(fields(bytes), function(f)
    return f[1] .. ":" .. (INSIDE[f[1]] and INSIDE[f[1]](f[2]) or tostring(f[2]))
  end) .. ")"
end

-- A parameter, whose field 3 ours leaves out.
local function without_description(bytes)
  local out = {}
  for _, f in ipairs(fields(bytes)) do
    if f[1] ~= 3 then out[#out + 1] = f[1] .. "=" .. tostring(f[2]) end
  end
  return joined(out)
end

-- Like `described`, for a document in protobuf.
local function described_protobuf(bytes)
  local out = {}
  for _, path in ipairs(fields(field(bytes, 4))) do
    local name, item = field(path[2], 1), field(path[2], 2)
    for _, f in ipairs(fields(item)) do
      if f[1] == 13 then
        local p = field(f[2], 1)
        out[("%s parameter %s in %s"):format(name, field(p, 1), field(p, 2))] = without_description(p)
      else
        out[("%s method %d"):format(name, f[1])] = joined(fields(f[2]), function(x)
          if x[1] == 6 then return "parameter " .. field(field(x[2], 1), 1) end
          return x[1] .. "=" .. tostring(x[1] == 13 and field(x[2], 1) or x[2])
        end)
      end
    end
  end
  for _, part in ipairs(fields(field(bytes, 5))) do
    for _, f in ipairs(fields(part[2])) do
      local name, value = field(f[2], 1), field(f[2], 2)
      out[part[1] .. " " .. name] = part[1] == 1 and some_schema(value) or value
    end
  end
  return out
end

-- ----------------------------------------------------------------

servers.only_real(function(name, start)
  describe("beside " .. name .. ", what the embedded one documents of its paths", function()
    local real, own, theirs, ours

    lazy_setup(function()
      real, own = start(), servers.embedded()
      theirs, ours = api(real), api(own)
      find_others(theirs)
      for _, s in ipairs { real, own } do
        s:must_kubectl("apply", "--server-side", "-f", process.write(process.tmpname ".yaml", CRDS))
        s:must_kubectl("wait", "--for", "condition=established", "crd/wagons." .. GROUP,
          "crd/engines." .. GROUP)
        wait.until_true(30, "the CRDs are described", function()
          local v2 = s:kubectl("get", "--raw", "/openapi/v2")
          return v2:find(GROUP .. "/v1/engines", 1, true) and v2:find(GROUP .. "/v2beta1", 1, true)
            and s:kubectl("get", "--raw", "/openapi/v3"):find(GROUP .. "/v2beta1", 1, true)
        end)
      end
    end)
    lazy_teardown(function()
      real:kubectl("delete", "crd", "--wait=false", "wagons." .. GROUP, "engines." .. GROUP)
      own:stop()
      real:stop()
    end)

    -- The documents of v3 that both have: path under /openapi/v3/ -> URL.
    local function index(a)
      local r, out = a:get "/openapi/v3", {}
      for path, entry in pairs(kube.json(r.text).paths) do
        if not of_others("/" .. path .. "/") then
          out[path] = entry.serverRelativeURL
        end
      end
      return out, r
    end

    -- Each of these documents: path, the real server's answer, and ours.
    local function documents(headers)
      local has, mine = index(theirs), index(ours)
      local function all(a, urls)
        local list = {}
        for path in pairs(has) do list[#list + 1] = urls[path] end
        return a:get_all(list, headers)
      end
      local real_ones, own_ones = all(theirs, has), all(ours, mine)
      local path, url
      return function()
        path, url = next(has, path)
        if path then return path, real_ones[url], own_ones[mine[path]] end
      end
    end

    it("names the same documents in the index", function()
      local has, r = index(theirs)
      local mine, m = index(ours)
      local function name_of(_, path) return path end
      assert.same(sorted(has, name_of), sorted(mine, name_of))
      assert.same({ r.code, r.headers["content-type"] }, { m.code, m.headers["content-type"] })
      for path, url in pairs(mine) do
        assert.truthy(url:find("^/openapi/v3/" .. path:gsub("%p", "%%%0") .. "%?hash=%x+$"), url)
      end
    end)

    it("has the paths, operations and schemas of v2", function()
      assert.equal("", differences(described(theirs:get "/openapi/v2".text),
        described(ours:get "/openapi/v2".text)))
    end)

    it("has the paths, operations and schemas of each document of v3", function()
      local n = 0
      for path, real_one, own_one in documents() do
        assert.equal("", differences(described(real_one.text), described(own_one.text)), path)
        n = n + 1
      end
      assert.truthy(n > 40, n)
    end)

    it("has the same in protobuf", function()
      for path, r, m in documents { "Accept: " .. PROTOBUF } do
        assert.same({ 200, r.headers["content-type"] }, { m.code, m.headers["content-type"] })
        assert.equal("", differences(described_protobuf(r.text), described_protobuf(m.text)), path)
      end
    end)

    it("answers with JSON, protobuf or neither, as clients ask", function()
      for _, accept in ipairs { "*/*", "text/plain", "application/json", PROTOBUF,
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", PROTOBUF .. ", application/json",
        "application/json, " .. PROTOBUF } do
        local answers = {}
        for i, a in ipairs { theirs, ours } do
          local r = a:get("/openapi/v3/apis/apps/v1", { "Accept: " .. accept })
          answers[i] = { r.code, r.headers["content-type"], r.headers.vary }
        end
        assert.same(answers[1], answers[2], accept)
      end
      assert.equal(404, ours:get "/openapi/v3/apis/nothing.example.com/v1".code)
      assert.equal(404, ours:get("/openapi/v3/apis/" .. GROUP).code)
      assert.equal(404, ours:get("/openapi/v3/apis//v1").code)
    end)
  end)
end)
