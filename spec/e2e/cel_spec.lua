-- cel_spec.lua - rules of custom resources (x-kubernetes-validations): the messages of both servers for
-- objects that break them, and for definitions with invalid rules.
-- not in tsan: one request after the other, and what answers them is pure

local new_api = require "support.api"
local servers = require "support.servers"
local wait = require "support.wait"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local EMPTY = setmetatable({}, { __jsontype = "object" })
local count = 0

local STRING, INTEGER = { type = "string" }, { type = "integer" }

local function rules(...)
  local list = { ... }
  for i, rule in ipairs(list) do
    if type(rule) == "string" then list[i] = { rule = rule } end
  end
  return list
end

local function object(properties, list)
  return { type = "object", properties = properties, ["x-kubernetes-validations"] = list }
end

local SPEC = object({
  replicas = INTEGER, min = INTEGER, max = INTEGER, name = { type = "string", maxLength = 40 },
  secret = { type = "string", maxLength = 20, ["x-kubernetes-validations"] = rules(
    { rule = "self == oldSelf", message = "secret is immutable", reason = "FieldValueForbidden" }) },
  labels = { type = "object", additionalProperties = { type = "string", maxLength = 20,
    ["x-kubernetes-validations"] = rules("self != 'bad'") }, maxProperties = 10 },
  when = { type = "string", format = "date-time" }, zone = { type = "string", maxLength = 40 },
  size = { ["x-kubernetes-int-or-string"] = true },
  ports = { type = "array", maxItems = 10, ["x-kubernetes-list-type"] = "map",
    ["x-kubernetes-list-map-keys"] = { "name" }, items = { type = "object", required = { "name" },
      properties = { name = { type = "string", maxLength = 20 }, port = INTEGER },
      ["x-kubernetes-validations"] = rules({ rule = "self.port == oldSelf.port",
        message = "ports stay" }) } },
  once = { type = "string", maxLength = 20, ["x-kubernetes-validations"] = rules(
    { rule = "!oldSelf.hasValue() || self == oldSelf.value()", optionalOldSelf = true,
      message = "once is forever" }) },
  ["a-b"] = INTEGER,
  old = { type = "string", maxLength = 20, ["x-kubernetes-validations"] = rules(
    { rule = "self.startsWith('new')", message = "old must begin with new" }) },
}, rules(
  { rule = "!has(self.min) || !has(self.max) || self.min <= self.max",
    messageExpression = "'min is %d, which is above max, %d'.format([self.min, self.max])" },
  { rule = "!has(self.replicas) || self.replicas < 10", message = "at most nine", fieldPath = ".replicas",
    reason = "FieldValueInvalid" },
  { rule = "!has(self.name) || self.name.matches('^[a-z]+$')", reason = "FieldValueRequired",
    fieldPath = ".name", message = "a name of letters" },
  "!has(self.a__dash__b) || self.a__dash__b != 3",
  "!has(self.size) || type(self.size) != int || self.size > 0",
  "!has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')",
  { rule = "!has(self.zone) || self.when.getHours(self.zone) < 0",
    messageExpression = "'%d:%d'.format([self.when.getHours(self.zone), self.when.getMinutes(self.zone)])" },
  "!has(self.labels) || !('x' in self.labels) || self.labels['y'] == 'z'"))

servers.each(function(name, start)
  describe("rules on " .. name, function()
    local s, api, ns, group, path
    lazy_setup(function()
      s = start {}
      api = new_api(s)
      count = count + 1
      ns = ("cel-%d-%d"):format(os.time() % 1000000, count)
      group = ns .. ".example.com"
      path = ("/apis/%s/v1/namespaces/%s/things"):format(group, ns)
      assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = ns } }).code)
    end)
    lazy_teardown(function()
      api:delete(DEFINITIONS .. "/things." .. group)
      api:delete("/api/v1/namespaces/" .. ns)
      s:stop()
    end)

    local function define(schema, plural)
      local singular = (plural or "things"):sub(1, -2)
      return api:post(DEFINITIONS,
        { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = (plural or "things") .. "." .. group },
        spec = { group = group, scope = "Namespaced", names = { kind = singular:sub(1, 1):upper()
          .. singular:sub(2), plural = plural or "things", singular = singular,
          listKind = singular .. "List" },
          versions = { { name = "v1", served = true, storage = true, subresources = { status = EMPTY },
            schema = { openAPIV3Schema = schema } } } } })
    end

    local function thing(called, spec)
      return { apiVersion = group .. "/v1", kind = "Thing", metadata = { name = called }, spec = spec }
    end

    -- The causes of a 422, "reason field: message" each, in any order.
    local function refused(r, ...)
      assert.equal(422, r.code, r.text)
      local said, want = {}, { ... }
      for i, cause in ipairs(r.body.details.causes) do
        said[i] = ("%s %s: %s"):format(cause.reason, cause.field, cause.message)
      end
      table.sort(said)
      table.sort(want)
      assert.same(want, said)
    end

    local function failed(rule) return "FieldValueInvalid spec: Invalid value: \"object\": " .. rule end

    it("check an object at its creation", function()
      local r = define { type = "object", properties = { spec = SPEC, status = object({ ready = INTEGER },
        rules("self.ready < 3")) }, ["x-kubernetes-validations"] = rules("self.metadata.name != 'nobody'") }
      assert.equal(201, r.code, r.text)
      wait.until_true(30, "the kind is served", function() return api:get(path).code == 200 end)
      assert.equal(201, api:post(path, thing("good", { replicas = 3, min = 1, max = 2, name = "abc",
        secret = "s", ["a-b"] = 2, size = "10%", when = "2024-01-01T00:00:00Z", once = "x",
        labels = { y = "z", x = "1" }, ports = { { name = "a", port = 1 } } })).code)
      refused(api:post(path, thing("bad", { min = 3, max = 2 })), failed "min is 3, which is above max, 2")
      refused(api:post(path, thing("bad", { replicas = 10, name = "A1" })),
        'FieldValueInvalid spec.replicas: Invalid value: "object": at most nine',
        "FieldValueRequired spec.name: Required value: a name of letters")
      refused(api:post(path, thing("bad", { ["a-b"] = 3, size = 0 })),
        failed "failed rule: !has(self.a__dash__b) || self.a__dash__b != 3",
        failed "failed rule: !has(self.size) || type(self.size) != int || self.size > 0")
      refused(api:post(path, thing("bad", { when = "2019-12-31T00:00:00Z" })),
        failed "failed rule: !has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')")
      refused(api:post(path, thing("bad", { labels = { q = "bad", x = "1" } })),
        failed "no such key: y evaluating rule: !has(self.labels) || !('x' in self.labels) || \z
          self.labels['y'] == 'z'",
        'FieldValueInvalid spec.labels[q]: Invalid value: "string": failed rule: self != \'bad\'')
      refused(api:post(path, thing("nobody", { min = 1 })),
        "FieldValueInvalid <nil>: Invalid value: \"object\": failed rule: self.metadata.name != 'nobody'")
    end)

    it("know time zones", function()
      for _, case in ipairs {
        { "2024-07-01T12:00:00Z", "Europe/Berlin", "14:0" },
          { "2024-01-01T12:00:00Z", "Europe/Berlin", "13:0" },
        { "2099-07-01T12:00:00Z", "Europe/Berlin", "14:0" },
          { "2099-01-01T12:00:00Z", "America/New_York", "7:0" },
        { "2099-01-01T12:00:00Z", "Australia/Sydney", "23:0" },
          { "2024-03-31T00:59:59Z", "Europe/Berlin", "1:59" },
        { "2024-03-31T01:00:00Z", "Europe/Berlin", "3:0" },
          { "2050-03-27T00:59:59Z", "Europe/Berlin", "1:59" },
        { "2050-03-27T01:00:00Z", "Europe/Berlin", "3:0" },
          { "2024-01-01T12:00:00Z", "Asia/Kathmandu", "17:45" },
        { "2024-01-01T12:00:00Z", "UTC", "12:0" }, { "2024-01-01T12:00:00Z", "Etc/GMT+5", "7:0" },
        { "2024-01-01T12:00:00Z", "-03:30", "8:30" },
      } do
        refused(api:post(path, thing("zoned", { when = case[1], zone = case[2] })), failed(case[3]))
      end
      for _, zone in ipairs { "Europe/Nowhere", "../Europe/Berlin", "Europe" } do
        local r = api:post(path, thing("zoned", { when = "2024-01-01T12:00:00Z", zone = zone }))
        assert.equal(422, r.code)
        assert.truthy(r.text:find(zone == "Europe" and "evaluating rule" or zone:find "^%."
          and "invalid location name"
          or "unknown time zone " .. zone, 1, true), r.text)
      end
    end)

    it("check at any depth", function()
      local schema = { type = "string", maxLength = 5, ["x-kubernetes-validations"] = rules("self != 'bad'") }
      local good, bad = "good", "bad"
      for _ = 1, 110 do
        schema, good, bad = object { a = schema }, { a = good }, { a = bad }
      end
      local r = define({ type = "object", properties = { spec = schema } }, "deeps")
      assert.equal(201, r.code, r.text)
      local deeps = path:gsub("things$", "deeps")
      local function deep(spec)
        return { apiVersion = group .. "/v1", kind = "Deep", metadata = { name = "deep" }, spec = spec }
      end
      wait.until_true(30, "the kind is served", function() return api:get(deeps).code == 200 end)
      refused(api:post(deeps, deep(bad)), ('FieldValueInvalid spec%s: Invalid value: "string": failed rule: \z
        self != \'bad\''):format((".a"):rep(110)))
      assert.equal(201, api:post(deeps, deep(good)).code)
      api:delete(DEFINITIONS .. "/deeps." .. group)
    end)

    it("are not evaluated for an object that breaks its schema", function()
      refused(api:post(path, thing("bad", { min = "x" })),
        'FieldValueTypeInvalid spec.min: Invalid value: "string": spec.min in body must be of type \z
          integer: "string"',
        "FieldValueInvalid <nil>: Invalid value: null: some validation rules were not checked because the \z
          object "
          .. "was invalid; correct the existing errors to complete validation")
    end)

    it("compare an object with its old state: update, patch, apply and status", function()
      local function patch(spec) return api:patch("merge", path .. "/good", { spec = spec }) end
      refused(patch { secret = "t" }, "FieldValueForbidden spec.secret: Forbidden: secret is immutable")
      refused(patch { once = "y" }, 'FieldValueInvalid spec.once: Invalid value: "string": once is forever')
      refused(patch { ports = { { name = "b", port = 9 }, { name = "a", port = 2 } } },
        'FieldValueInvalid spec.ports[1]: Invalid value: "object": ports stay')
      local o = api:get(path .. "/good").body
      o.spec.secret = "u"
      refused(api:put(path .. "/good", o), "FieldValueForbidden spec.secret: Forbidden: secret is immutable")
      refused(api:patch("apply", path .. "/good?fieldManager=m&force=true", thing("good", { secret = "v" })),
        "FieldValueForbidden spec.secret: Forbidden: secret is immutable")
      refused(api:patch("merge", path .. "/good/status", { status = { ready = 3 } }),
        'FieldValueInvalid status: Invalid value: "object": failed rule: self.ready < 3')
      assert.equal(200, api:patch("merge", path .. "/good/status", { status = { ready = 2 } }).code)
      assert.equal(200, patch({ replicas = 4 }).code)
    end)

    it("tolerate an old violation that does not change", function()
      local definition = api:get(DEFINITIONS .. "/things." .. group).body
      local old = definition.spec.versions[1].schema.openAPIV3Schema.properties.spec.properties.old
      local list = old["x-kubernetes-validations"]
      old["x-kubernetes-validations"] = nil
      assert.equal(200, api:put(DEFINITIONS .. "/things." .. group, definition).code)
      wait.until_true(30, "the rule is gone", function()
        return api:post(path, thing("before", { old = "x" })).code == 201
      end)
      definition = api:get(DEFINITIONS .. "/things." .. group).body
      definition.spec.versions[1].schema.openAPIV3Schema.properties.spec.properties.old
        ["x-kubernetes-validations"] = list
      assert.equal(200, api:put(DEFINITIONS .. "/things." .. group, definition).code)
      wait.until_true(30, "the rule is back", function()
        return api:post(path .. "?dryRun=All", thing("other", { old = "x" })).code == 422
      end)
      assert.equal(200, api:patch("merge", path .. "/before", { spec = { replicas = 2 } }).code)
      refused(api:patch("merge", path .. "/before", { spec = { old = "y" } }),
        'FieldValueInvalid spec.old: Invalid value: "string": old must begin with new')
    end)

    local FIELD = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]."
    local function wrong(rule, ...)
      refused(define({ type = "object", properties = { spec = object({ n = INTEGER, s = STRING,
        l = { type = "array", items = STRING, maxItems = 5 } }, { rule }) } }, "wrongs"), ...)
    end
    local function compile_error(rule, at, message)
      local line = ("ERROR: <input>:1:%d: %s\n | %s\n | %s^"):format(at, message, rule, ("."):rep(at - 1))
      wrong({ rule = rule }, ('FieldValueInvalid %srule: Invalid value: {"Rule":"%s","Message":"",'
        .. '"MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation \z
          failed: %s')
        :format(FIELD, (rule:gsub("[<>]", { ["<"] = "\\u003c", [">"] = "\\u003e" })), line))
    end

    it("that do not compile make their definition invalid", function()
      compile_error("self.n == nope", 11, "undeclared reference to 'nope' (in container '')")
      compile_error("self.m > 1", 5, "undefined field 'm'")
      compile_error("self.n < self.s", 8, "found no matching overload for '_<_' applied to '(int, string)'")
      compile_error("self.s.nosuch(1)", 14, "undeclared reference to 'nosuch' (in container '')")
      compile_error("self.l.all(x, x.size())", 21, "expected type 'bool' but found 'int'")
      compile_error("self.s.matches('[')", 16, "invalid matches argument")
      local VALUES = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
      local function syntax_error(rule, at, expected)
        compile_error(rule, at, ("Syntax error: mismatched input '<EOF>' expecting {%s, %s")
          :format(expected, VALUES))
      end
      syntax_error("size(", 6, "'[', '{', '(', ')', '.', '-', '!'")
      syntax_error("size(1,", 8, "'[', '{', '(', '.', '-', '!'")
      syntax_error("[", 2, "'[', ']', '{', '(', '.', ',', '-', '!', '?'")
      syntax_error("{", 2, "'[', '{', '}', '(', '.', ',', '-', '!', '?'")
      syntax_error("self.l[", 8, "'[', '{', '(', '.', '-', '!', '?'")
      compile_error("[1,", 4, "Syntax error: missing ']' at '<EOF>'")
      compile_error("{1: 2,", 7, "Syntax error: missing '}' at '<EOF>'")
      compile_error("[,].size() + {,}.size() + [1, 2,].size() + {1: 2,}.size() + 'a'", 59,
        "found no matching overload for '_+_' applied to '(int, string)'")
    end)

    it("of the wrong form make their definition invalid", function()
      wrong({ rule = " " }, "FieldValueRequired " .. FIELD .. "rule: Required value: rule is not specified")
      wrong({ rule = "true", message = " " },
        "FieldValueInvalid " .. FIELD .. 'message: Invalid value: " ": must be non-empty if specified')
      wrong({ rule = "true ||\nfalse" }, "FieldValueRequired " .. FIELD
        .. "message: Required value: message must be specified if rule contains line breaks")
      wrong({ rule = "true", fieldPath = ".nope" },
        "FieldValueInvalid " .. FIELD .. 'fieldPath: Invalid value: ".nope": must be a valid path')
      wrong({ rule = "true", reason = "Nope" }, "FieldValueNotSupported " .. FIELD
        .. 'reason: Unsupported value: "Nope": supported values: "FieldValueDuplicate", \z
          "FieldValueForbidden", '
        .. '"FieldValueInvalid", "FieldValueRequired"')
      wrong({ rule = "true", optionalOldSelf = true }, "FieldValueInvalid " .. FIELD
        .. "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule")
    end)

    it("that do not compile in a webhook's matchConditions make the webhook invalid", function()
      local function hook(...)
        return api:post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All", {
          metadata = { name = ns }, webhooks = { { name = "a.example.com", sideEffects = "None",
            admissionReviewVersions = { "v1" }, clientConfig = { url = "https://localhost:1/x" },
            matchConditions = { ... } } } })
      end
      local AT = "webhooks[0].matchConditions[0]."
      assert.equal(201, hook({ name = "a",
        expression = "request.userInfo.username != 'x' && has(object.spec)" },
        { name = "b", expression = "authorizer.requestResource.check('get').allowed() || oldObject == null" })
        .code)
      refused(hook { name = "a", expression = "request.nope == 1" }, "FieldValueInvalid " .. AT
        .. 'expression: Invalid value: "request.nope == 1": compilation failed: ERROR: <input>:1:8: '
        .. "undefined field 'nope'\n | request.nope == 1\n | .......^")
      refused(hook { name = "", expression = "'a'" }, "FieldValueRequired " .. AT .. "name: Required value",
        "FieldValueInvalid " .. AT .. "expression: Invalid value: \"'a'\": must evaluate to bool but got \z
          string")
      refused(hook({ name = "a", expression = " " }, { name = "a", expression = "true" }),
        "FieldValueRequired " .. AT .. "expression: Required value",
        'FieldValueDuplicate webhooks[0].matchConditions[1].name: Duplicate value: "a"')
    end)
  end)
end)
