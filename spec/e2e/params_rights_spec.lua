-- params_rights_spec.lua - the author of a ValidatingAdmissionPolicy or a binding needs the right to read the
-- parameters that it names.

local busted = require "busted"
local both = require "support.both"
local identities = require "support.identities"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local RBAC, GROUP = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
local MATCH = { resourceRules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" },
  resources = { "nones" } } } }

local function policy(name, kind, query)
  return { "", "POST", GROUP .. "/validatingadmissionpolicies" .. (query or ""), { metadata = { name = name },
    spec = { paramKind = kind, matchConstraints = MATCH, validations = { { expression = "true" } } } } }
end

local function binding(name, of, ref)
  return { "", "POST", GROUP .. "/validatingadmissionpolicybindings?dryRun=All", { metadata = { name = name },
    spec = { policyName = of, validationActions = { "Deny" }, paramRef = ref } } }
end

local function rights(name, verbs)
  return {
    { "", "POST", RBAC .. "/clusterroles", { metadata = { name = name }, rules = {
      { apiGroups = { "admissionregistration.k8s.io" }, resources = { "*" }, verbs = { "*" } },
      { apiGroups = { "" }, resources = { "secrets" }, verbs = verbs } } } },
    { "", "POST", RBAC .. "/clusterrolebindings",
      { metadata = { name = name }, roleRef = { name = name, kind = "ClusterRole",
      apiGroup = "rbac.authorization.k8s.io" }, subjects = { { kind = "User", name = "nobody" } } } },
  }
end

-- The answers to the user "nobody", who may read only Secrets.
local function answers(s, name)
  local map, admin = { apiVersion = "v1", kind = "ConfigMap" }, s.token
  both.ask(s, rights(name, { "get" }))
  both.ask(s, { policy(name, map) })
  s.token = s.tokens.nobody
  wait.until_true(30, "the role is heard", function()
    return both.ask(s, { { "", "GET", GROUP .. "/validatingadmissionpolicies/" .. name } })[1].code == 200
  end)
  local path = GROUP .. "/validatingadmissionpolicies/" .. name .. "?dryRun=All"
  local list = both.ask(s, {
    policy(name .. "-a", map, "?dryRun=All"),
    policy(name .. "-b", { apiVersion = "example.com/v1", kind = "Absent" }, "?dryRun=All"),
    policy(name .. "-c", { apiVersion = "v1", kind = "Secret" }, "?dryRun=All"),
    policy(name .. "-d", nil, "?dryRun=All"),
    { "", "PATCH", path, { metadata = { labels = { a = "b" } } } },
    { "", "PATCH", path, { spec = { paramKind = { apiVersion = "v1", kind = "Service" } } } },
    binding("a", name, { name = "p", namespace = "default", parameterNotFoundAction = "Deny" }),
    binding("b", name, { selector = {}, parameterNotFoundAction = "Deny" }),
    binding("c", "absent-" .. name, { name = "p", parameterNotFoundAction = "Deny" }),
    binding("d", name, nil),
  })
  s.token = admin
  both.ask(s, { { "", "DELETE", RBAC .. "/clusterroles/" .. name },
    { "", "DELETE", RBAC .. "/clusterrolebindings/" .. name },
    { "", "DELETE", GROUP .. "/validatingadmissionpolicies/" .. name } })
  local said = {}
  for i, answer in ipairs(list) do said[i] = ("%d %s"):format(answer.code, answer.body.message or "") end
  return said
end

servers.only_real(function(_, real)
  busted.describe("Parameters of policies", function()
    busted.it("are for those who may read them, on both servers", function()
      local name = "rights-" .. os.time() % 100000
      local users = process.write(process.tmpname ".csv",
        'admin-token,admin,admin,"system:masters"\nnobody-token,nobody,nobody\n')
      local ours, theirs = servers.embedded { args = { "--authorization-mode", "RBAC", "--token-auth-file",
        users } }, real {}
      identities.logged_in(ours)
      ours.token, ours.tokens = "admin-token", { nobody = "nobody-token" }
      local expected, said = answers(theirs, name), answers(ours, name)
      ours:stop()
      busted.assert.matches('must have "get" permission on all objects of the referenced paramKind',
        expected[1])
      busted.assert.matches("^201", expected[3])
      busted.assert.same(expected, said)
    end)
  end)
end)
