-- policy_spec.lua - ValidatingAdmissionPolicies with bindings and parameters: what they reject, warn about
-- and allow, on both API servers.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local new_api = require "support.api"
local servers = require "support.servers"
local wait = require "support.wait"

local ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
local POLICIES, BINDINGS = ADMISSION .. "validatingadmissionpolicies",
  ADMISSION .. "validatingadmissionpolicybindings"
local count = 0

local function v(expression, rest) return both.merge({ expression = expression }, rest) end
-- An expression that costs 700,000: the authorizer is asked twice.
local ASK = "authorizer.requestResource.check('get').allowed()"
local HEAVY = ASK .. " && " .. ASK

local function times(n, x)
  local list = {}
  for i = 1, n do list[i] = x end
  return list
end

-- { name, spec of the policy, the request, the answer }; NAME is the policy's name in answers.
local CASES = {
  { "lets through what holds", { validations = { v "object.metadata.name.size() > 3" } }, {}, { 201 } },
  { "refuses with the expression", { validations = { v "  object.data.x == '1'  " } }, { data = { x = "2" } },
    { 422, "Invalid", "failed expression: object.data.x == '1'" } },
  { "refuses with a message", { validations = { v("object.data.x == '1'", { message = " x must be 1 " }) } },
    { data = { x = "2" } }, { 422, "Invalid", "x must be 1" } },
  { "refuses with a made message", { validations = { v("object.data.x == '1'",
    { messageExpression = "'x is ' + object.data.x", message = "never", reason = "Forbidden" }) } },
    { data = { x = "2" } }, { 403, "Forbidden", "x is 2" } },
  { "falls back from a message that fails", { validations = { v("object.data.x == '1'",
    { messageExpression = "string(object.data.nothing)", message = "x must be 1",
      reason = "RequestEntityTooLarge" }) } },
    { data = { x = "2" } }, { 413, "RequestEntityTooLarge", "x must be 1" } },
  { "falls back from a message of several lines", { validations = { v("false",
    { messageExpression = "'a\\nb'", message = "one line" }) } }, {}, { 422, "Invalid", "one line" } },
  { "refuses what cannot be evaluated", { validations = { v "object.data.x == '1'" } }, {},
    { 422, "Invalid", "expression 'object.data.x == '1'' resulted in error: no such key: data" } },
  { "ignores what cannot be evaluated",
    { failurePolicy = "Ignore", validations = { v "object.data.x == '1'" } }, {},
    { 201 } },
  { "refuses with the policy Ignore, too", { failurePolicy = "Ignore", validations = { v "false" } }, {},
    { 422, "Invalid", "failed expression: false" } },
  { "gives the first of several refusals", { validations = { v "true", v("false", { message = "second" }),
    v("false", { message = "third" }) } }, {}, { 422, "Invalid", "second" } },
  { "knows variables", { variables = { { name = "x", expression = "object.data.x" },
    { name = "twice", expression = "variables.x + variables.x" } },
    validations = { v("variables.twice == 'aa'", { messageExpression = "'twice is ' + variables.twice" }) } },
    { data = { x = "b" } }, { 422, "Invalid", "twice is bb" } },
  { "evaluates variables that are used",
    { variables = { { name = "bad", expression = "object.spec.nothing" } },
    validations = { v "true || variables.bad" } }, {}, { 201 } },
  { "says which variable fails", { variables = { { name = "bad", expression = "object.spec.nothing" } },
    validations = { v "variables.bad == 1" } }, {}, { 422, "Invalid",
    "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: no \z
      such key: spec" } },
  { "asks conditions first", { matchConditions = { { name = "only-a", expression = "object.data.x == 'a'" } },
    validations = { v "false" } }, { data = { x = "b" } }, { 201 } },
  { "judges where conditions hold",
    { matchConditions = { { name = "only-a", expression = "object.data.x == 'a'" } },
    validations = { v "false" } }, { data = { x = "a" } }, { 422, "Invalid", "failed expression: false" } },
  { "refuses where conditions fail",
    { matchConditions = { { name = "only-a", expression = "object.data.x == 'a'" } },
    validations = { v "true" } }, {},
    { 422, "Invalid", "expression 'object.data.x == 'a'' resulted in error: no such key: data" } },
  { "spares where conditions fail and are ignored", { failurePolicy = "Ignore", matchConditions = {
    { name = "only-a", expression = "object.data.x == 'a'" } }, validations = { v "false" } }, {}, { 201 } },
  { "knows the request", { validations = { v("false", { messageExpression =
    "[request.operation, request.kind.kind, request.resource.resource, request.name, string(request.dryRun), "
      .. "request.requestKind.version, string(has(request.subResource)), string(oldObject == null)].join(' \z
        ')" }) } }, {},
    { 422, "Invalid", "CREATE ConfigMap configmaps NAME false v1 false true" } },
  { "knows the namespace",
    { validations = { v("namespaceObject.metadata.labels['team'] == 'b'", { messageExpression =
    "'team ' + namespaceObject.metadata.labels['team'] + ' ' + string(namespaceObject.metadata.name == \z
      request.namespace)"
      .. " + ' ' + namespaceObject.status.phase" }) } }, {}, { 422, "Invalid", "team a true Active" } },
  { "knows no namespace in conditions",
    { matchConditions = { { name = "ns", expression = "namespaceObject == null" } },
    validations = { v "namespaceObject == null" } }, {},
      { 422, "Invalid", "failed expression: namespaceObject == null" } },
  { "asks the authorizer",
    { validations = { v("!authorizer.group('').resource('pods').namespace('x').check('create').allowed()",
    { message = "may create pods" }), v "authorizer.requestResource.check('get').allowed()" } }, {},
    { 422, "Invalid", "may create pods" } },
  { "warns", { validations = { v("false", { message = "be warned" }), v "true" } }, { actions = { "Warn" } },
    { 201,
      warns = "Validation failed for ValidatingAdmissionPolicy 'NAME' with binding 'NAME': be warned" } },
  { "audits in silence", { validations = { v "false" } }, { actions = { "Audit" } }, { 201 } },
  { "refuses what an annotation cannot say", { auditAnnotations = { { key = "k", valueExpression =
    "string(object.data.x)" } } }, {}, { 422, "Invalid",
    "expression 'string(object.data.x)' resulted in error: no such key: data" } },
  { "says nothing for annotations that are fine",
    { auditAnnotations = { { key = "k", valueExpression = "'a'" } } }, {}, { 201 } },
  { "has a budget for one expression", { validations = { v(HEAVY .. " && " .. ASK) } }, {}, { 422, "Invalid",
    "expression '" .. HEAVY .. " && " .. ASK
      .. "' resulted in error: operation cancelled: actual cost limit exceeded" } },
  { "has a budget for all of them", { validations = times(15, v(HEAVY)) }, {}, { 422, "Invalid",
    "validation failed due to running out of cost budget, no further validation rules will be run" } },
  { "has a budget for each variable", { variables = { { name = "a", expression = HEAVY } },
    validations = { v("variables.a && " .. HEAVY) } }, {}, { 201 } },
  { "ends a variable that spends its budget",
    { variables = { { name = "a", expression = HEAVY .. " && " .. ASK } },
    validations = { v "variables.a" } }, {},
      { 422, "Invalid", "expression 'variables.a' resulted in error: composited "
      .. 'variable "a" fails to evaluate: operation cancelled: actual cost limit exceeded' } },
  { "evaluates a variable once", { variables = { { name = "a", expression = HEAVY } },
    validations = times(18, v "variables.a") }, {}, { 201 } },
  { "has a budget for conditions", { matchConditions = { { name = "a", expression = HEAVY },
    { name = "b", expression = HEAVY }, { name = "c", expression = HEAVY },
      { name = "d", expression = HEAVY } },
    validations = { v "true" } }, {}, { 422, "Invalid",
    "validation failed due to running out of cost budget, no further validation rules will be run" } },
}

do
  local variables = { { name = "v0", expression = "1" } }
  for i = 1, 200 do variables[i + 1] = { name = "v" .. i,
    expression = ("variables.v%d + 1"):format(i - 1) } end
  CASES[#CASES + 1] = { "knows variables of variables",
    { variables = variables, validations = { v("variables.v200 < 5",
    { messageExpression = "string(variables.v200)" }) } }, {}, { 422, "Invalid", "201" } }
end

local function slug(text) return (text:lower():gsub("[^%w]+", "-")) end

servers.each(function(server, start)
  describe("policies on " .. server, function()
    local s, api, ns
    local made = {}

    local function policy(name, spec, rest)
      local whole = both.merge({ failurePolicy = "Fail",
        matchConstraints = { resourceRules = { { apiGroups = { "" },
        apiVersions = { "v1" }, operations = { "CREATE", "UPDATE", "DELETE" },
          resources = { "configmaps" } } },
        objectSelector = { matchLabels = { case = name } } } }, spec)
      made[#made + 1] = { POLICIES, { metadata = { name = name }, spec = whole } }
      if rest ~= false then
        made[#made + 1] = { BINDINGS, { metadata = { name = name },
          spec = both.merge({ policyName = name, validationActions = { "Deny" } }, rest) } }
      end
    end

    local function make()
      local rows = {}
      for i, m in ipairs(made) do rows[i] = { "", "POST", m[1], m[2] } end
      local failures = {}
      for _, r in ipairs(both.ask(s, rows)) do
        if r.code ~= 201 then failures[#failures + 1] = r.body.message end
      end
      assert.same({}, failures)
    end

    lazy_setup(function()
      s = start {}
      api = new_api(s)
      count = count + 1
      ns = ("policy-%d-%d"):format(os.time() % 1000000, count)
      assert.equal(201, api:post("/api/v1/namespaces",
        { metadata = { name = ns, labels = { team = "a" } } }).code)
      for _, case in ipairs(CASES) do
        policy(ns .. "-" .. slug(case[1]), case[2], { validationActions = case[3].actions })
      end
      local function case(name, spec, binding) policy(ns .. "-" .. name, spec, binding) end
      local function rule(rest) return both.merge({ apiGroups = { "" }, apiVersions = { "v1" },
        operations = { "CREATE" },
        resources = { "configmaps" } }, rest) end
      case("moves", { validations = { v("request.operation != 'UPDATE' || object.data.x >= oldObject.data.x",
        { messageExpression = "'x is ' + oldObject.data.x + ' and may not be ' + object.data.x + ' by ' + \z
          request.operation" }),
        v "request.operation != 'DELETE' || oldObject.data.x == '3'" } })
      case("rules", { matchConstraints = { excludeResourceRules = { rule { resourceNames = { "spared" } } } },
        validations = { v("false", { message = "rules" }) } },
        { matchResources = { excludeResourceRules = { rule { resourceNames = { "unbound" } } } } })
      case("elsewhere", { validations = { v "false" } },
        { matchResources = { namespaceSelector = { matchLabels = { team = "b" } } } })
      case("names", { matchConstraints = { resourceRules = { rule { resources = { "serviceaccounts" },
        resourceNames = { "y" } } } }, validations = { v("false", { message = "names" }) } })
      local limit = { paramKind = { apiVersion = "v1", kind = "ConfigMap" }, validations = { v(
        "int(object.data.n) <= int(params.data.limit)",
        { messageExpression = "object.data.n + ' is above ' + params.data.limit" }) } }
      for name, n in pairs { five = "5", four = "4" } do
        made[#made + 1] = { "/api/v1/namespaces/" .. ns .. "/configmaps",
          { metadata = { name = name, labels = { limits = ns } }, data = { limit = n } } }
      end
      case("named", limit, { paramRef = { name = "five", namespace = ns, parameterNotFoundAction = "Deny" } })
      case("selected", limit,
        { paramRef = { selector = { matchLabels = { limits = ns } }, parameterNotFoundAction = "Deny" } })
      case("none-denied", limit, { paramRef = { name = "nobody", parameterNotFoundAction = "Deny" } })
      case("none-allowed", limit, { paramRef = { name = "nobody", parameterNotFoundAction = "Allow" } })
      case("no-ref", { paramKind = limit.paramKind,
        validations = { v("params != null", { message = "params are null" }) } })
      case("no-kind", { paramKind = { apiVersion = "nothing.example.com/v1", kind = "Nothing" },
        validations = { v "true" } })
      case("cluster", { paramKind = { apiVersion = "v1", kind = "Namespace" }, validations = { v "true" } },
        { paramRef = { name = ns, namespace = ns, parameterNotFoundAction = "Deny" } })
      policy(ns .. "-aa-first", { validations = { v "false" } })
      policy(ns .. "-zz-last", { validations = { v "false" } })
      make()
      wait.until_true(30, "the policies are in force", function()
        return api:post("/api/v1/namespaces/" .. ns .. "/configmaps?dryRun=All",
          { metadata = { name = "probe",
          labels = { case = ns .. "-zz-last" } } }).code == 422
      end)
    end)
    lazy_teardown(function()
      for _, m in ipairs(made) do api:delete(m[1] .. "/" .. m[2].metadata.name) end
      api:delete("/api/v1/namespaces/" .. ns)
      s:stop()
    end)

    it("answer each case", function()
      local rows = {}
      for i, case in ipairs(CASES) do
        local name = ns .. "-" .. slug(case[1])
        rows[i] = { "", "POST", "/api/v1/namespaces/" .. ns .. "/configmaps", { metadata = { name = name,
          labels = { case = name } }, data = case[3].data } }
      end
      for i, r in ipairs(both.ask(s, rows)) do
        local want, name = CASES[i][4], ns .. "-" .. slug(CASES[i][1])
        local function said(text) return (text:gsub(name:gsub("%-", "%%-"), "NAME")) end
        local message = r.code ~= 201 and said(r.body.message) or nil
        assert.same({ CASES[i][1], want[1], want[2], want[3] and "configmaps \"NAME\" is forbidden: "
          .. "ValidatingAdmissionPolicy 'NAME' with binding 'NAME' denied request: " .. want[3] },
          { CASES[i][1], r.code, r.body.reason, message })
        if message then
          assert.same({ name = name, kind = "configmaps", causes = { {
            message = r.body.message:match "is forbidden: (.*)$" } } }, r.body.details)
        end
        assert.same(want.warns and { '299 - "' .. want.warns .. '"' } or {},
          { r.warnings[1] and said(r.warnings[1]) })
      end
    end)

    -- The answers to requests: rows of { method, path below the namespace, body, code, a part of the message
    -- }.
    local function answered(rows)
      local sent = {}
      for i, row in ipairs(rows) do
        sent[i] = { "", row[1], "/api/v1/namespaces/" .. ns .. row[2], row[3] or nil }
      end
      for i, r in ipairs(both.ask(s, sent)) do
        local message = r.code >= 400 and r.body.message:gsub(ns:gsub("%-", "%%-") .. "%-", "") or nil
        local part = rows[i][5] and message and (message:match "denied request: (.*)" or message)
        assert.same({ i, rows[i][4], rows[i][5] }, { i, r.code, part })
      end
    end

    local function map(name, case,
      data) return { metadata = { name = name, labels = { case = ns .. "-" .. case } },
      data = data } end

    it("see updates and deletions", function()
      answered {
        { "POST", "/configmaps", map("a", "moves", { x = "1" }), 201 },
        { "PATCH", "/configmaps/a", { data = { x = "2" } }, 200 },
        { "PATCH", "/configmaps/a", { data = { x = "1" } }, 422, "x is 2 and may not be 1 by UPDATE" },
        { "DELETE", "/configmaps/a", nil, 422, "failed expression: request.operation != 'DELETE' || \z
          oldObject.data.x == '3'" },
        { "PATCH", "/configmaps/a", { data = { x = "3" } }, 200 },
        { "DELETE", "/configmaps/a", nil, 200 },
      }
    end)

    it("match the requests of their rules and their bindings' rules", function()
      answered {
        { "POST", "/configmaps", map("spared", "rules"), 201 },
        { "POST", "/configmaps", map("unbound", "rules"), 201 },
        { "POST", "/configmaps", map("other", "rules"), 422, "rules" },
        { "POST", "/secrets", map("other", "rules"), 201 },
        { "POST", "/configmaps", map("x", "elsewhere"), 201 },
        { "POST", "/configmaps", map("f", "aa-first"), 422, "failed expression: false" },
        { "POST", "/configmaps", map("f", "zz-last"), 422, "failed expression: false" },
        { "POST", "/serviceaccounts", { metadata = { name = "x", labels = { case = ns .. "-names" } } },
          201 },
        { "POST", "/serviceaccounts", { metadata = { name = "y", labels = { case = ns .. "-names" } } }, 422,
          "names" },
      }
    end)

    it("take their parameters by name and by selector", function()
      answered {
        { "POST", "/configmaps", map("p", "named", { n = "4" }), 201 },
        { "POST", "/configmaps", map("q", "named", { n = "6" }), 422, "6 is above 5" },
        { "POST", "/configmaps", map("p2", "selected", { n = "4" }), 201 },
        { "POST", "/configmaps", map("q2", "selected", { n = "5" }), 422, "5 is above 4" },
        { "POST", "/configmaps", map("r", "none-denied"), 422,
          "failed to configure binding: no params found for policy binding with `Deny` \z
            parameterNotFoundAction" },
        { "POST", "/configmaps", map("r", "none-allowed"), 201 },
        { "POST", "/configmaps", map("s", "no-ref"), 422, "params are null" },
        { "POST", "/configmaps", map("t", "no-kind"), 422,
          "failed to configure policy: failed to find resource "
          .. "referenced by paramKind: 'nothing.example.com/v1, Kind=Nothing'" },
        { "POST", "/configmaps", map("u", "cluster"), 422,
          "failed to configure binding: paramRef.namespace must not be "
          .. "provided for a cluster-scoped `paramKind`" },
      }
    end)
  end)
end)

local function spec_of(rest)
  return both.merge({ failurePolicy = "Fail", matchConstraints = { resourceRules = { { apiGroups = { "" },
    apiVersions = { "v1" }, operations = { "CREATE" }, resources = { "configmaps" } } } },
    validations = { v "object.metadata.name != 'x'" } }, rest)
end

local function cut(o, key)
  o[key] = nil
  return o
end

-- They select no objects of other specs, and are deleted at the end.
both.describe("policies and bindings as they are written", function(ns)
  local rows = {}
  local function row(path, what, spec, code)
    spec.matchConstraints = spec.matchConstraints and both.merge(spec.matchConstraints,
      { objectSelector = { matchLabels = { policy = ns } } })
    rows[#rows + 1] = { what, "POST", path .. "?dryRun=All",
      { metadata = { name = ns .. "-" .. #rows }, spec = spec },
      code or 422 }
  end
  local function p(what, rest, code) row(POLICIES, what, spec_of(rest), code) end
  local function b(what, rest, code)
    row(BINDINGS, what, both.merge({ policyName = "p", validationActions = { "Deny" } }, rest), code)
  end
  local function rule(rest)
    return { matchConstraints = { resourceRules = { both.merge({ apiGroups = { "" }, apiVersions = { "v1" },
      operations = { "CREATE" }, resources = { "configmaps" } }, rest) } } }
  end
  p("one that is fine, with its defaults", { failurePolicy = nil }, 201)
  row(POLICIES, "no failurePolicy", cut(spec_of {}, "failurePolicy"), 201)
  p("an unknown failurePolicy", { failurePolicy = "Maybe" })
  row(POLICIES, "no matchConstraints", cut(spec_of {}, "matchConstraints"))
  row(POLICIES, "no rules", both.merge(spec_of {}, { matchConstraints = { resourceRules = both.NONE } }))
  row(POLICIES, "no validations", cut(spec_of {}, "validations"))
  p("an unknown matchPolicy", { matchConstraints = { matchPolicy = "Roughly" } })
  p("a bad selector", { matchConstraints = { namespaceSelector = { matchExpressions = {
    { key = "a b", operator = "In" } } } } })
  p("bad operations", rule { operations = { "CREATE", "*", "READ" } })
  p("bad groups and versions", rule { apiGroups = { "*", "apps" }, apiVersions = { "", "*" } })
  p("no words in a rule", rule { apiGroups = both.NONE, apiVersions = both.NONE, operations = both.NONE,
    resources = both.NONE })
  p("bad resources", rule { resources = { "pods/*", "pods/status", "*/scale", "a/scale", "*/*", "*", "x",
    "" } })
  p("a bad scope", rule { scope = "World" })
  p("bad names", rule { resourceNames = { "a", "a", "a/b" } })
  p("an unknown name", { validations = { v "objekt.metadata" } })
  p("no bool", { validations = { v "object.metadata.name" } })
  p("params without a kind", { validations = { v "params.x == 1" } })
  p("no expression", { validations = { v " " } })
  p("bad messages", { validations = { v("true", { message = " ", messageExpression = " " }),
    v("true", { message = "a\nb", messageExpression = "1" }), v("true", { messageExpression =
      "string(authorizer.requestResource.check('get').allowed())" }) } })
  p("a bad reason", { validations = { v("true", { reason = "Because" }) } })
  p("bad variables", { variables = { { name = "a-b", expression = "1" }, { name = "if", expression = "" },
    { name = "c", expression = "variables.d" }, { name = "d", expression = "1 +" } },
    validations = { v "variables.d == 1 && variables.e == 2" } })
  p("variables of types", { variables = { { name = "q", expression = "quantity('1')" },
    { name = "l", expression = "['a']" }, { name = "r", expression = "request.userInfo" } },
    validations = { v "variables.q.nothing == 1 && variables.r.nothing == 1 && variables.l[0] == 1" } })
  p("bad conditions", { matchConditions = { { name = "a", expression = "1" },
    { name = "a", expression = "true" },
    { name = "a b", expression = "" }, { name = "v", expression = "variables.x" } },
    variables = { { name = "x", expression = "true" } } })
  p("bad annotations", { auditAnnotations = { { key = "a b", valueExpression = "1" }, { key = "a",
    valueExpression = "" }, { key = "a", valueExpression = "'x'" },
      { key = "c", valueExpression = "null" } } })
  p("a bad paramKind", { paramKind = { apiVersion = "a/b/c", kind = "" } })
  p("another bad paramKind", { paramKind = { apiVersion = "A_/1b", kind = "a_b" } })
  p("no field of the namespace",
    { validations = { v "namespaceObject.metadata.nothing == 1 && request.object == null" } })
  b("one that is fine", {}, 201)
  b("no policy", { policyName = "" })
  b("a bad policy", { policyName = "A_b" })
  b("an unknown action", { validationActions = { "Shout" } })
  b("the same action twice", { validationActions = { "Warn", "Warn" } })
  b("actions that exclude each other", { validationActions = { "Deny", "Warn" } })
  row(BINDINGS, "no actions", { policyName = "p" })
  b("an empty paramRef", { paramRef = { namespace = "x" } })
  b("name and selector", { paramRef = { name = "a/b", selector = { matchLabels = { a = "b" } },
    parameterNotFoundAction = "Maybe" } })
  b("a bad rule", { matchResources = { resourceRules = { { operations = { "*" }, apiGroups = { "a" },
    apiVersions = { "v1" }, resources = both.NONE } } } })
  return rows
end)

describe("the embedded API server", function()
  -- Go's stack can grow, C's cannot.
  it("limits nested variables by its stack", function()
    local s = servers.embedded {}
    local api = new_api(s)
    local function chain(n, expression)
      local variables = { { name = "v0", expression = "1" } }
      for i = 1, n - 1 do variables[i + 1] = { name = "v" .. i, expression = expression:format(i - 1) } end
      return api:post(POLICIES, { metadata = { name = "chain" }, spec = spec_of { variables = variables } })
    end
    local deep = chain(600, "[[variables.v%d]]")
    assert.equal(422, deep.code)
    assert.equal('Invalid value: "[[variables.v249]]": together with the variables that it uses it has \z
      more than '
      .. "1000 levels", deep.body.details.causes[1].message)
    local hidden = chain(600, "[[dyn(variables).v%d]]")
    assert.equal(422, hidden.code)
    local many = chain(1001, "%d")
    assert.equal("Too many: 1001: must have at most 1000 items", many.body.details.causes[1].message)
    assert.equal(201, chain(1000, "%d").code)
    s:stop()
  end)
end)
