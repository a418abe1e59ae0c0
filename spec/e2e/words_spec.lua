-- words_spec.lua - bodies that are not objects of their kind, and patches that cannot be applied: both
-- servers return the same messages, with Go's names for structs, fields and types.
-- not in tsan: one request after the other, and what answers them is pure

local api_of = require "support.api"
local servers = require "support.servers"

local CORE, NS = "/api/v1/namespaces/default/", "/namespaces/default/"
local MAPS, PODS, APPS = CORE .. "configmaps", CORE .. "pods", "/apis/apps/v1" .. NS .. "deployments"
local LEASES = "/apis/coordination.k8s.io/v1" .. NS .. "leases"
local GO = "json: cannot unmarshal "
local function into(json, field, go)
  return ("%s%s into Go struct field %s of type %s"):format(GO, json, field, go)
end
local QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
local RFC = '" as "2006-01-02T15:04:05Z07:00": cannot parse "'
local HEAD = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; \z
  json parse error: " .. GO
local STRUCT = [[struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string ]]
  .. [["json:\"kind,omitempty\"" }]]

local function pod(spec) return '{"metadata":{"name":"words"},"spec":' .. spec .. "}" end
local function container(field) return pod('{"containers":[{"name":"a","image":"b",' .. field .. "}]}") end
local function times(text) return '{"metadata":{"name":"words","creationTimestamp":"' .. text .. '"}}' end

-- collection, kind ("": the message is complete), body, message
local BODIES = {
  { MAPS, "ConfigMap", '{"data":{"a":5}}', into("number", "ConfigMap.data", "string") },
  { MAPS, "ConfigMap", '{"data":[]}', into("array", "ConfigMap.data", "map[string]string") },
  { MAPS, "ConfigMap", '{"metadata":{"name":5}}', into("number", "ObjectMeta.metadata.name", "string") },
  { MAPS, "ConfigMap", '{"metadata":[]}', into("array", "ConfigMap.metadata", "v1.ObjectMeta") },
  { MAPS, "ConfigMap", '{"metadata":{"labels":{"a":true}}}',
    into("bool", "ObjectMeta.metadata.labels", "string") },
  { MAPS, "ConfigMap", '{"immutable":"yes"}', into("string", "ConfigMap.immutable", "bool") },
  { MAPS, "ConfigMap", '{"metadata":{"generation":"x"}}',
    into("string", "ObjectMeta.metadata.generation", "int64") },
  { PODS, "Pod", pod '{"containers":{}}', into("object", "PodSpec.spec.containers", "[]v1.Container") },
  { PODS, "Pod", pod '{"containers":[5]}', into("number", "PodSpec.spec.containers", "v1.Container") },
  { PODS, "Pod", container '"command":[1]', into("number", "Container.spec.containers.command", "string") },
  { PODS, "Pod", container '"ports":[{"containerPort":"x"}]',
    into("string", "ContainerPort.spec.containers.ports.containerPort", "int32") },
  { PODS, "Pod", container '"resources":{"limits":{"cpu":"x"}}', QUANTITY },
  { PODS, "Pod", container '"resources":{"limits":{"cpu":[]}}', QUANTITY },
  { PODS, "Pod", container '"resources":{"limits":5}',
    into("number", "ResourceRequirements.spec.containers.resources.limits", "v1.ResourceList") },
  { PODS, "Pod", pod '{"terminationGracePeriodSeconds":1.5}',
    into("number 1.5", "PodSpec.spec.terminationGracePeriodSeconds", "int64") },
  { PODS, "Pod", pod '{"priority":3000000000}', into("number 3000000000", "PodSpec.spec.priority", "int32") },
  { PODS, "Pod", pod '{"hostNetwork":"true"}', into("string", "PodSpec.spec.hostNetwork", "bool") },
  { PODS, "Pod", pod '"x"', into("string", "Pod.spec", "v1.PodSpec") },
  { PODS, "Pod", pod '{"nodeSelector":{"a":1}}', into("number", "PodSpec.spec.nodeSelector", "string") },
  { CORE .. "services", "Service", '{"spec":{"ports":[{"port":1,"targetPort":true}]}}',
    into("bool", "ServicePort.spec.ports.targetPort", "int32") },
  { CORE .. "secrets", "Secret", '{"data":{"a":5}}', into("number", "Secret.data", "[]uint8") },
  { APPS, "Deployment", '{"spec":{"replicas":"3"}}',
    into("string", "DeploymentSpec.spec.replicas", "int32") },
  { APPS, "Deployment", '{"spec":{"template":{"spec":{"containers":[{"env":[{"name":1}]}]}}}}',
    into("number", "EnvVar.spec.template.spec.containers.env.name", "string") },
  { "/apis/rbac.authorization.k8s.io/v1" .. NS .. "roles", "Role", '{"rules":[{"verbs":"get"}]}',
    into("string", "PolicyRule.rules.verbs", "[]string") },
  { MAPS, "ConfigMap", times "x", 'parsing time "x' .. RFC .. 'x" as "2006"' },
  { MAPS, "ConfigMap", times "2026-1-02", 'parsing time "2026-1-02' .. RFC .. '1-02" as "01"' },
  { MAPS, "ConfigMap", times "2026-01-02 03:04:05Z",
    'parsing time "2026-01-02 03:04:05Z' .. RFC .. ' 03:04:05Z" as "T"' },
  { MAPS, "ConfigMap", times "2026-01-02T03:04:05",
    'parsing time "2026-01-02T03:04:05' .. RFC .. '" as "Z07:00"' },
  { MAPS, "ConfigMap", times "2026-13-02T03:04:05Z",
    'parsing time "2026-13-02T03:04:05Z": month out of range' },
  { MAPS, "ConfigMap", times "2026-02-30T03:04:05Z",
    'parsing time "2026-02-30T03:04:05Z": day out of range' },
  { MAPS, "ConfigMap", times "2026-02-03T03:04:05Zulu",
    'parsing time "2026-02-03T03:04:05Zulu": extra text: "ulu"' },
  { MAPS, "ConfigMap", '{"metadata":{"creationTimestamp":5}}',
    into("number", "ObjectMeta.metadata.creationTimestamp", "string") },
  { LEASES, "Lease", '{"spec":{"renewTime":"x"}}',
    'parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"' },
  { LEASES, "Lease", '{"spec":{"renewTime":"2026-01-02T03:04:05Z"}}',
    'parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": \z
      cannot parse "Z" as ".000000"' },
  { MAPS, "", "[]", HEAD .. "array into Go value of type " .. STRUCT .. " (5b5d)" },
  { MAPS, "", "5", HEAD .. "number into Go value of type " .. STRUCT .. " (35)" },
  { MAPS, "", '{"kind":5}', HEAD .. 'number into Go struct field .kind of type string ({"kind":5})' },
  { MAPS, "", '{"apiVersion":true,"kind":"ConfigMap"}',
    HEAD .. 'bool into Go struct field .apiVersion of type string ({"apiVersion":true,"kind":"Con ...)' },
}

-- Texts that are not JSON, and what Go says of them.
local SYNTAX = {
  { "", "unexpected end of JSON input" },
  { " \t\r\n", "unexpected end of JSON input" },
  { '{"a":[1,{"b":"c', "unexpected end of JSON input" },
  { '{"a":1', "unexpected end of JSON input" },
  { '{"a":1,}', "invalid character '}' looking for beginning of object key string" },
  { "{a:1}", "invalid character 'a' looking for beginning of object key string" },
  { "{'a':1}", [[invalid character '\'' looking for beginning of object key string]] },
  { "{]", "invalid character ']' looking for beginning of object key string" },
  { '{"a" 1}', "invalid character '1' after object key" },
  { '{"a":1 "b":2}', [[invalid character '"' after object key:value pair]] },
  { '{"a":1]', "invalid character ']' after object key:value pair" },
  { '{"a":1}}', "invalid character '}' after top-level value" },
  { "{} {}", "invalid character '{' after top-level value" },
  { "01", "invalid character '1' after top-level value" },
  { "[1,]", "invalid character ']' looking for beginning of value" },
  { "[1 2]", "invalid character '2' after array element" },
  { '{"a":[}', "invalid character '}' looking for beginning of value" },
  { '{"a":NaN}', "invalid character 'N' looking for beginning of value" },
  { "+1", "invalid character '+' looking for beginning of value" },
  { "<xml/>", "invalid character '<' looking for beginning of value" },
  { "apiVersion: v1", "invalid character 'a' looking for beginning of value" },
  { "\\", [[invalid character '\\' looking for beginning of value]] },
  { "\u{e9}", "invalid character '\u{c3}' looking for beginning of value" },
  { "\x01", [[invalid character '\x01' looking for beginning of value]] },
  { "\x7f", [[invalid character '\x7f' looking for beginning of value]] },
  { "\x80", [[invalid character '\u0080' looking for beginning of value]] },
  { "\xad", [[invalid character '\u00ad' looking for beginning of value]] },
  { "\xff", "invalid character '\u{ff}' looking for beginning of value" },
  { '{"a":trUe}', "invalid character 'U' in literal true (expecting 'u')" },
  { '{"a":fals}', "invalid character '}' in literal false (expecting 'e')" },
  { "nul", "invalid character ' ' in literal null (expecting 'l')" },
  { "-", "invalid character ' ' in numeric literal" },
  { "[-x]", "invalid character 'x' in numeric literal" },
  { "[1.]", "invalid character ']' after decimal point in numeric literal" },
  { "[1e]", "invalid character ']' in exponent of numeric literal" },
  { "[1e+]", "invalid character ']' in exponent of numeric literal" },
  { '"a\tb"', [[invalid character '\t' in string literal]] },
  { '{"a\nb":1}', [[invalid character '\n' in string literal]] },
  { [["\q"]], "invalid character 'q' in string escape code" },
  { [["\u12g4"]], [[invalid character 'g' in \u hexadecimal character escape]] },
  { [["\u12]], [[invalid character ' ' in \u hexadecimal character escape]] },
  { ("["):rep(10001), "invalid character '[' exceeded max depth" },
  { ("["):rep(10000), "unexpected end of JSON input" },
}
-- Texts that are not YAML.
local YAML = {
  { "a: b: c", "mapping values are not allowed in this context" },
  { "a: 1\nb: c: d\n", "line 2: mapping values are not allowed in this context" },
  { "{a: 1", "line 1: did not find expected ',' or '}'" },
  { "a: 1\nb: [1, 2\nc: 3\n", "line 2: did not find expected ',' or ']'" },
  { "a: 1\n- b\n", "line 1: did not find expected key" },
  { "\ta: 1", "found character that cannot start any token" },
  { "a:\n\t- b\n", "line 2: found character that cannot start any token" },
  { "a: @b", "found character that cannot start any token" },
  { 'a: "b', "found unexpected end of stream" },
  { "a: 1\nb: 'c\n\n", "line 4: found unexpected end of stream" },
  { [[a: "\q"]], "found unknown escape character" },
  { "a: *", "did not find expected alphabetic or numeric character" },
  { "a: \x01", "control characters are not allowed" },
  { "a: \xff", "invalid leading UTF-8 octet" },
  { "%YAML 3.0\n---\na: 1", "found incompatible YAML document" },
}

local JSON, MERGE, SMP = "application/json-patch+json", "application/merge-patch+json",
  "application/strategic-merge-patch+json"
local NO = "the server rejected our request due to an error in our request"
local ITEM = into("number", "ConfigMap.data", "string")

-- media type, patch of {"data": {"a": "1"}}, code, reason, message (or how it ends)
local PATCHES = {
  { JSON, '[{"op":"test","path":"/data/a","value":"2"}]', 422, "Invalid", NO },
  { JSON, '[{"op":"test","path":"/data/none","value":"2"}]', 422, "Invalid", NO },
  { JSON, '[{"op":"remove","path":"/data/none"}]', 422, "Invalid", NO },
  { JSON, '[{"op":"add","path":"/none/x","value":"x"}]', 422, "Invalid", NO },
  { JSON, '[{"op":"bad","path":"/data/x","value":"x"}]', 422, "Invalid", NO },
  { JSON, '[{"op":"add","value":"x"}]', 422, "Invalid", NO },
  { JSON, '[{"op":"copy","path":"/data/x"}]', 422, "Invalid", NO },
  { JSON, '[{"path":"/data/a","value":"x"}]', 422, "Invalid", NO },
  { JSON, "null", 200 },
  { JSON, '{"op":"add"}', 400, "BadRequest",
    "error decoding patch: " .. GO .. "object into Go value of type []handlers.jsonPatchOp" },
  { JSON, "[1]", 400, "BadRequest",
    "error decoding patch: " .. GO .. "number into Go value of type handlers.jsonPatchOp" },
  { JSON, '[{"op":"add","path":"/data/x","value":5}]', 422, "Invalid", ITEM },
  { JSON, '[{"op":"replace","path":"","value":{}}]', 400, "BadRequest",
    "the name of the object (words based on URL) was undeterminable: name must be provided" },
  { MERGE, "[]", 400, "BadRequest",
    "error decoding patch: " .. GO .. "array into Go value of type map[string]interface {}" },
  { MERGE, "5", 400, "BadRequest",
    "error decoding patch: " .. GO .. "number into Go value of type map[string]interface {}" },
  { MERGE, '{"data":{"a":5}}', 422, "Invalid", ITEM },
  { SMP, "[]", 400, "BadRequest", GO .. "array into Go value of type map[string]interface {}" },
  { SMP, '{"data":{"a":5}}', 422, "Invalid" },
  { "application/json", "{}", 415, "UnsupportedMediaType", "415: Unsupported Media Type" },
  { "text/plain", "{}", 415, "UnsupportedMediaType", "415: Unsupported Media Type" },
}

servers.each(function(server_name, start)
  describe(server_name .. " says", function()
    local server, api

    lazy_setup(function()
      server = start {}
      api = api_of(server)
      api:delete(MAPS .. "/words")
      assert.equal(201, api:post(MAPS, { metadata = { name = "words" }, data = { a = "1" } }).code)
    end)
    lazy_teardown(function()
      if api then api:delete(MAPS .. "/words") end
      if server then server:stop() end
    end)

    it("which field of a body has which wrong type", function()
      for _, case in ipairs(BODIES) do
        local path, kind, body, message = table.unpack(case)
        local r = api:post(path .. "?dryRun=All", body)
        if kind ~= "" then
          message = ('%s in version "v1" cannot be handled as a %s: %s'):format(kind, kind, message)
        end
        assert.equal(message, r.body.message)
        assert.equal(400, r.code)
        assert.equal("BadRequest", r.body.reason)
      end
    end)

    -- The beginning of a body, as answers show it.
    local function shown(body)
      local more = #body > 30 and " ..." or ""
      if body == "" then return "<empty>" end
      if body:sub(1, 1) == "{" then return body:sub(1, 30) .. more end
      return body:sub(1, 30):gsub(".", function(c) return ("%02x"):format(c:byte()) end) .. more
    end

    it("where a body is not JSON", function()
      for _, case in ipairs(SYNTAX) do
        local body, mistake = table.unpack(case)
        local r = api:post(MAPS .. "?dryRun=All", body)
        assert.equal(("%s%s (%s)"):format(HEAD:gsub(GO .. "$", ""), mistake, shown(body)), r.body.message)
        assert.equal(400, r.code)
        assert.equal("BadRequest", r.body.reason)
      end
    end)

    it("where a body is not YAML", function()
      local head = HEAD:gsub("couldn't get.*", "") .. "yaml: "
      for _, case in ipairs(YAML) do
        local body, mistake = table.unpack(case)
        local r = api:post(MAPS .. "?dryRun=All", body, { "Content-Type: application/yaml" })
        assert.equal(("%s%s (%s)"):format(head, mistake, shown(body)), r.body.message)
        r = api:request("PATCH", MAPS .. "/words?dryRun=All&fieldManager=words", body,
          { "Content-Type: application/apply-patch+yaml" })
        assert.equal("error decoding YAML: error converting YAML to JSON: yaml: " .. mistake, r.body.message)
        assert.equal(400, r.code)
      end
    end)

    it("where a patch is not JSON", function()
      for _, case in ipairs(SYNTAX) do
        local body, mistake = table.unpack(case)
        for media, head in pairs { [JSON] = "error decoding patch: ", [MERGE] = "error decoding patch: ",
          [SMP] = "" } do
          local function patch(more)
            return api:request("PATCH", MAPS .. "/words?dryRun=All" .. more, body,
              { "Content-Type: " .. media })
          end
          assert.equal(head .. mistake, patch("").body.message, media)
          assert.equal(media == MERGE and "Invalid JSON Patch" or mistake,
            patch("&fieldValidation=Ignore").body.message, media)
        end
      end
    end)

    it("the invalid parts of a patch, and no others", function()
      for _, case in ipairs(PATCHES) do
        local media, body, code, reason, message = table.unpack(case)
        local r = api:request("PATCH", MAPS .. "/words?dryRun=All", body, { "Content-Type: " .. media })
        local where = media .. " " .. body
        assert.equal(code, r.code, where .. ": " .. r.text)
        assert.equal(reason, r.body.reason, where)
        if message == ITEM then
          assert.equal(ITEM, r.body.message:sub(-#ITEM), where)
          assert.equal(' "" is invalid: patch: Invalid value: "{', r.body.message:sub(1, 40), where)
          assert.equal("patch", r.body.details.causes[1].field)
        elseif message then
          assert.equal(message, r.body.message, where)
        end
        if message == NO or code == 415 then assert.same({}, r.body.details, where) end
      end
    end)
  end)
end)
