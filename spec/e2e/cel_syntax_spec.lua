-- cel_syntax_spec.lua - texts that are no CEL expressions: both servers reject them with the same messages
-- and positions, in rules of definitions and in admission policies.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
local POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

-- Each text has one mistake or several: ANTLR's parser skips superfluous tokens, inserts missing ones, and
-- continues.
local TEXTS = {
  "Foo{", "Foo{a", "Foo{a:", "Foo{a: 1", "Foo{a: 1,", "Foo{,}", "Foo{1: 2}", "a.b.{c: 1}", "self.",
  "self.(1)", "self..a", "self. ", "self.true", "self.1", "self.?", "self.?(1)", "self.`a`", "`a`", ".(",
  ".", "!", "!!", "!=!true", "-", "--", "-*1", "- -!true", "1 +", "* 2", "1 1", "1 2 3", "a b c",
  "1 + + 2", "1 == == 2", "(1", "(1))", "()", ")", "f(", "f(1", "f(1,", "f(,1)", "f(1 2)", "f(1,)",
  "self.f(1 2)", "[", "[1", "[1,", "[1 2]", "[,1]", "[1,,2]", "[?]", "{", "{1", "{1:", "{1:2", "{1:2,",
  "{1 2}", "{:}", "{1:2 3:4}", "self[", "self[1", "self[]", "self[1 2]", "a ? b", "a ? b :", "a ? : c",
  "a ?", "? b : c", "a : b", "a && ", "&& a", "a || || b", "a & b", "a | b", "a = b", "a # b", "a ; b",
  "a @b", "$", "é", "a é b", "'abc", "\"abc", "'a\nb'", "'''abc", "r'abc", "b'abc", "rb'abc'", "'a\\qb'",
  "'a\\x4g' + 1", "'\\u12'", "'\\ud800'", "b'\\u1234'", "'\\8'", "0x", "0xG", "0X1", "1.", "1..2", "1e",
  "1.5.5", "99999999999999999999", "99999999999999999999 +", "1u2", "for", "for self.", "self.for.",
  "a.in", "in", "true false", "null null", "a\n+\n", "a\t\t1", "has(", "has(1)", "[1, 'a']",
  "{1: 2, 'a': 'b'}", ".self", ".f(1)", ".has(self.a)", ("("):rep(300) .. "1" .. (")"):rep(300),
  ("1+"):rep(300) .. "1", "1 " .. ("2 "):rep(300), ("a b, "):rep(40), ("["):rep(40), "[1, dyn('a')]",
  "!-1", "--1", "a\n1 2",
}

both.describe("rules of definitions that are no expressions", function(ns)
  local rows, group = {}, ns .. ".example.com"
  for i, text in ipairs(TEXTS) do
    local schema = { type = "object", properties = { spec = { type = "object",
      properties = { a = { type = "string", maxLength = 5 } },
      ["x-kubernetes-validations"] = { { rule = text, message = "no" } } } } }
    rows[i] = { ("%d: %.40s"):format(i, text), "POST", DEFINITIONS, {
      metadata = { name = "things." .. group },
      spec = { group = group, scope = "Namespaced",
        names = { kind = "Thing", plural = "things", singular = "thing", listKind = "ThingList" },
        versions = { { name = "v1", served = true, storage = true,
          schema = { openAPIV3Schema = schema } } } } }, 422 }
  end
  return rows
end)

local function policy(ns, spec, code, what)
  return { what, "POST", POLICIES .. "?dryRun=All", { metadata = { name = ns }, spec = both.merge({
    matchConstraints = { resourceRules = { { apiGroups = { "" }, apiVersions = { "v1" },
      operations = { "CREATE" }, resources = { "pods" } } } } }, spec) }, code }
end

both.describe("policies whose expressions are none", function(ns)
  local rows = {}
  for i, text in ipairs(TEXTS) do
    rows[i] = policy(ns, { validations = { { expression = text } } }, 422, ("%d: %.40s"):format(i, text))
  end
  for _, text in ipairs { "Foo{", "object.", "!", "a b" } do
    rows[#rows + 1] = policy(ns, { validations = { { expression = "true", messageExpression = text } } }, 422,
      "a message: " .. text)
    rows[#rows + 1] = policy(ns, { validations = { { expression = "true" } },
      variables = { { name = "v", expression = text } } }, 422, "a variable: " .. text)
    rows[#rows + 1] = policy(ns, { validations = { { expression = "true" } },
      matchConditions = { { name = "m", expression = text } } }, 422, "a condition: " .. text)
    rows[#rows + 1] = policy(ns, { auditAnnotations = { { key = "k", valueExpression = text } } }, 422,
      "an annotation: " .. text)
  end
  -- The cost of a policy is not estimated at its creation; only its evaluation has a budget.
  local loops = "true"
  for i = 1, 6 do loops = ("object.metadata.labels.all(l%d, %s)"):format(i, loops) end
  rows[#rows + 1] = policy(ns, { validations = { { expression = loops } } }, 201, "a cost without a bound")
  return rows
end)
