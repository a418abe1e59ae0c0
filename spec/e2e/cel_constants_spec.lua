-- cel_constants_spec.lua - constants in expressions that cannot be evaluated, and formats that do not fit
-- their arguments: who refuses them, when, and in which words.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
local ADMISSION = "/apis/admissionregistration.k8s.io/v1/"

local SPEC = { type = "object", properties = {
  name = { type = "string", maxLength = 10 }, n = { type = "integer" },
  list = { type = "array", maxItems = 3, items = { type = "integer" } } } }

local function definition(rule)
  local spec = both.merge({ ["x-kubernetes-validations"] = { { rule = rule } } }, SPEC)
  return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = "things.constants.example.com" }, spec = { group = "constants.example.com",
      scope = "Namespaced", names = { kind = "Thing", plural = "things" },
      versions = { { name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = { type = "object", properties = { spec = spec } } } } } } }
end

-- Refused as a definition is made.
local REFUSED = {
  "int(1e99) > 1", "int('x') > 1", "uint(-1) > 1u", "double('x') > 1.0", "bool('x')",
  "string(b'\\xff') == ''",
  "duration('x') > duration('1s')", "duration('9999999999999s') > duration('1s')",
  "timestamp('x') == timestamp('y')", "timestamp(999999999999999) == timestamp(0)",
  "timestamp(-999999999999999) == timestamp(0)", "self.name.matches('[')", "self.name.matches(string('['))",
  "self.name.find('[') == ''", "self.name.findAll('[') == []", "self.name.findAll('(', 1) == []",
  "'x'.lowerAscii().find('(') == ''", "true || int(1e99) > 1", "[int('y')].size() == 1",
  "{'a': int('y')}.size() == 1", "self.n in [int('y')]", "dyn(int('z')) == 1", "type(int('z')) == int",
  "has(self.name) ? int('z') == 1 : true", "self.list.all(x, x < int('z'))", "int(double('1e99')) == 1",
  "int(string('x')) == 1", "string(duration('x')) == ''",
  "'%d'.format(['a']) == ''", "'%d'.format([self.name]) == ''", "'%d'.format([]) == ''",
  "'%s'.format([1, 2]) == ''", "'%s %s'.format([1]) == ''", "'%'.format([1]) == ''", "'%q'.format([1]) == ''",
  "'%.'.format([1.0]) == ''", "'%.2'.format([1.0]) == ''", "'%.9999999999999999999f'.format([1.0]) == ''",
  "'%s'.format([quantity('1')]) == ''", "'%s'.format([[quantity('1')]]) == ''",
  "'%s'.format([{'a': quantity('1')}]) == ''", "'%s'.format([optional.of(1)]) == ''",
  "'%s'.format([?optional.of(1)]) == ''",
  "'%f'.format([1]) == ''", "'%e'.format([true]) == ''", "'%b'.format(['x']) == ''",
  "'%x'.format([1.5]) == ''",
  "'%X'.format([true]) == ''", "'%o'.format(['x']) == ''",
  "'%d %d'.format(['a', 'b']) == '' && '%d'.format(['c']) == ''",
}

-- Accepted: these fail when they are evaluated, or do not.
local ACCEPTED = {
  "quantity('x').isInteger()", "semver('x').major() == 1", "ip('x').family() == 4",
  "cidr('x').prefixLength() == 1",
  "url('x').getHost() == ''", "isQuantity('x')", "self.name.find(self.name) == ''", "'[a'.find('x') == ''",
  "'%%d'.format([]) == '%d'", "'a'.format([]) == 'a'", "'%.2d'.format([self.n]) == ''",
  "'%f'.format(['x']) == ''",
  "'%s'.format([null]) == ''", "'%s'.format([type(1)]) == ''", "'%d'.format([dyn('x')]) == ''",
  "bytes('a') == b'a'",
}

both.describe("constants in rules of definitions", function()
  local rows = {}
  local function add(list, code)
    for _, rule in ipairs(list) do
      rows[#rows + 1] = { rule, "POST", DEFINITIONS, definition(rule), code }
    end
  end
  add(REFUSED, 422)
  add(ACCEPTED, 201)
  return rows
end)

-- A format whose arguments are not known in advance fails in the same words.
both.describe("clauses of a format that get another type", function()
  local rows = {}
  for _, case in ipairs { { "d", "'a'" }, { "f", "true" }, { "e", "true" }, { "b", "'a'" }, { "x", "1.5" },
    { "X", "true" }, { "o", "'a'" }, { "q", "1" }, { ".", "1.0" }, { "", "1" } } do
    -- As a default the rule is evaluated when the definition is made.
    local schema = { type = "object", default = { v = 1 }, properties = { v = { type = "integer" } },
      ["x-kubernetes-validations"] = {
        { rule = ("('%%' + '%s').format([dyn(%s)]) == ''"):format(case[1], case[2]) } } }
    local o = definition "true"
    o.spec.versions[1].schema.openAPIV3Schema.properties.spec = schema
    rows[#rows + 1] = { case[1], "POST", DEFINITIONS, o, 422 }
  end
  return rows
end)

local function policy(more)
  return both.merge({ apiVersion = "admissionregistration.k8s.io/v1", kind = "ValidatingAdmissionPolicy",
    metadata = { name = "constants" },
    spec = { validations = { { expression = "true" } }, matchConstraints = {
      resourceRules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" },
        resources = { "pods" } } } } } }, { spec = more })
end

both.describe("constants in policies, webhooks and device classes", function()
  local rows = {}
  local function add(where, x, path, body)
    rows[#rows + 1] = { where .. ": " .. x, "POST", path .. "?dryRun=All", body, 422 }
  end
  local POLICIES = ADMISSION .. "validatingadmissionpolicies"
  local HOOKS = ADMISSION .. "validatingwebhookconfigurations"
  for _, x in ipairs { "int(1e99) > 1", "object.metadata.name.find('[') == ''",
    "object.metadata.name.matches('[')", "'%d'.format(['a']) == ''" } do
    local text = ("string(%s)"):format(x)
    local of_device = x:gsub("object%.metadata%.name", "device.driver")
    add("validation", x, POLICIES, policy { validations = { { expression = x } } })
    add("message", x, POLICIES, policy {
      validations = { { expression = "true", messageExpression = text } } })
    add("variable", x, POLICIES, policy { variables = { { name = "v", expression = x } },
      validations = { { expression = "variables.v" } } })
    add("condition", x, POLICIES, policy { matchConditions = { { name = "c", expression = x } } })
    add("annotation", x, POLICIES, policy {
      auditAnnotations = { { key = "k", valueExpression = text } } })
    add("two faults", x, POLICIES, policy {
      validations = { { expression = x }, { expression = "nope" } } })
    add("webhook", x, HOOKS, { metadata = { name = "constants" }, webhooks = { { name = "a.example.com",
      admissionReviewVersions = { "v1" }, sideEffects = "None", clientConfig = { url = "https://x.example" },
      matchConditions = { { name = "c", expression = x } } } } })
    add("device class", x, "/apis/resource.k8s.io/v1/deviceclasses", { metadata = { name = "constants" },
      spec = { selectors = { { cel = { expression = of_device } } } } })
  end
  return rows
end)
