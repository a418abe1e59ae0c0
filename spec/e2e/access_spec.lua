-- access_spec.lua - authorization: the embedded server with --authorization-mode RBAC and the real one give
-- the same answers to the same requests under the same roles.

local identities = require "support.identities"
local json = require "dkjson"
local kube = require "kubelua"
local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"

local RBAC = "/apis/rbac.authorization.k8s.io/v1"
local NS = "access-spec"

local answers = {}   -- the answers of each server, by request

local function embedded(more)
  local tokens = process.write(process.tmpname ".csv",
    "master-token,master,,system:masters\nnobody-token,nobody,nobody\n")
  local args = { "--authorization-mode", "RBAC", "--token-auth-file", tokens }
  for _, word in ipairs(more or {}) do args[#args + 1] = word end
  local s = identities.logged_in(servers.embedded { args = args })
  s.token, s.tokens = "master-token", { nobody = "nobody-token" }
  return s
end

local function role(kind, name, rules, more)
  local o = { apiVersion = "rbac.authorization.k8s.io/v1", kind = kind, metadata = { name = name },
    rules = rules }
  for k, v in pairs(more or {}) do o[k] = v end
  return o
end

local function binding(kind, name, role_kind, role_name, subjects)
  return { apiVersion = "rbac.authorization.k8s.io/v1", kind = kind, metadata = { name = name },
    roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = role_kind, name = role_name },
      subjects = subjects }
end

local function user(name) return { kind = "User", apiGroup = "rbac.authorization.k8s.io", name = name } end

-- The parts of an answer that do not depend on the server's age and address.
local function plain(r)
  local b = r.body
  if type(b) == "table" then
    b.metadata = nil
    if b.kind ~= "Status" and not tostring(b.kind):find "Review" then b = b.kind end
  end
  return ("%d %s"):format(r.code,
    json.encode(b, { keyorder = { "kind", "apiVersion", "status", "message" } }))
end

local function sorted(list)
  local out = {}
  for _, rule in ipairs(list or {}) do
    local parts = {}
    for _, key in ipairs { "verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs" } do
      parts[#parts + 1] = key .. "=" .. table.concat(rule[key] or {}, ",")
    end
    out[#out + 1] = table.concat(parts, " ")
  end
  table.sort(out)
  return table.concat(out, "\n")
end

local RULES = {
  { apiGroups = { "" }, resources = { "pods", "pods/log" }, verbs = { "get", "list" } },
  { apiGroups = { "" }, resources = { "configmaps" }, resourceNames = { "mine" },
    verbs = { "get", "update", "list" } },
  { apiGroups = { "apps" }, resources = { "*/scale" }, verbs = { "*" } },
}

local REQUESTS = {
  { "GET", "/api/v1/namespaces/%s/pods" },
  { "GET", "/api/v1/namespaces/%s/pods?watch=true&timeoutSeconds=1&limit=1", watch = true },
  { "GET", "/api/v1/namespaces/%s/pods/absent" },
  { "GET", "/api/v1/namespaces/%s/pods/absent/log" },
  { "GET", "/api/v1/namespaces/%s/pods/absent/exec" },
  { "GET", "/api/v1/pods" },
  { "GET", "/api/v1/namespaces/default/pods" },
  { "POST", "/api/v1/namespaces/%s/pods", {} },
  { "DELETE", "/api/v1/namespaces/%s/pods" },
  { "DELETE", "/api/v1/namespaces/%s/pods/absent" },
  { "GET", "/api/v1/namespaces/%s/configmaps/mine" },
  { "GET", "/api/v1/namespaces/%s/configmaps/other" },
  { "GET", "/api/v1/namespaces/%s/configmaps?fieldSelector=metadata.name%%3Dmine" },
  { "GET", "/api/v1/namespaces/%s/configmaps" },
  { "GET", "/apis/apps/v1/namespaces/%s/deployments/absent/scale" },
  { "GET", "/apis/apps/v1/namespaces/%s/deployments/absent" },
  { "PUT", "/apis/apps/v1/namespaces/%s/deployments/absent/status", {} },
  { "GET", "/api/v1/namespaces/%s" },
  { "GET", "/api/v1/namespaces" },
  { "GET", "/apis/not.there/v1/namespaces/%s/things" },
  { "GET", "/metrics" },
  { "GET", "/no/such/path" },
  { "POST", "/no/such/path", {} },
  { "GET", "/version" },
  { "GET", "/healthz" },
}

local function compare(title, key, real)
  it(title, function()
    if not answers.embedded or not answers.real then pending "one of the servers is not there" return end
    for name, said in pairs(answers.real[key]) do
      assert.equal(said, answers.embedded[key][name], real and name or name)
    end
  end)
end

local function setup(s, admin)
  admin:post("/api/v1/namespaces", { metadata = { name = NS } })
  local roles = RBAC .. "/namespaces/" .. NS .. "/roles"
  local bindings = RBAC .. "/namespaces/" .. NS .. "/rolebindings"
  assert.equal(201, admin:post(roles, role("Role", "reader", RULES)).code)
  assert.equal(201, admin:post(bindings, binding("RoleBinding", "readers", "Role", "reader", { user "bob",
    { kind = "Group", apiGroup = "rbac.authorization.k8s.io", name = "devs" },
    { kind = "ServiceAccount", name = "runner", namespace = NS } })).code)
  assert.equal(201, admin:post(bindings,
    binding("RoleBinding", "lost", "Role", "not-there", { user "eve" })).code)
  assert.equal(201, admin:post(roles, role("Role", "granter", {
    { apiGroups = { "rbac.authorization.k8s.io" }, resources = { "roles", "rolebindings" },
      verbs = { "create", "update", "patch", "get" } },
    { apiGroups = { "" }, resources = { "pods" }, verbs = { "get" } } })).code)
  assert.equal(201, admin:post(bindings, binding("RoleBinding", "granters", "Role", "granter",
    { user "grace" })).code)
  return s
end

local function as(api, name, groups)
  local headers = { "Impersonate-User: " .. name }
  for _, g in ipairs(groups or {}) do headers[#headers + 1] = "Impersonate-Group: " .. g end
  return function(method, path, body) return api:request(method, path, body, headers) end
end

local function ask_all(ask)
  local out = {}
  for _, r in ipairs(REQUESTS) do
    local path = r[2]:format(NS)
    local got = ask(r[1], path, r[3])
    if got.code == 403 or got.code == 401 then
      out[r[1] .. " " .. path] = plain(got)
    else
      out[r[1] .. " " .. path] = "allowed"
    end
  end
  return out
end

local function review(api, kind, spec, headers)
  return api:request("POST", "/apis/authorization.k8s.io/v1/" .. kind,
    { apiVersion = "authorization.k8s.io/v1",
    spec = spec }, headers)
end

local function ask_server(s)
  local admin = new_api(s)
  setup(s, admin)
  local out = {}
  out.bob = ask_all(as(admin, "bob"))
  out.eve = ask_all(as(admin, "eve"))
  out.runner = ask_all(as(admin, "system:serviceaccount:" .. NS .. ":runner"))
  local nobody = new_api { url = s.url, token = s.tokens.nobody, ca = s.ca }
  out.nobody = ask_all(function(...) return nobody:request(...) end)
  out.wrong = { ask = plain(new_api { url = s.url, token = "wrong", ca = s.ca }:get "/api/v1/pods") }
  out.mask = {
    user = plain(nobody:request("GET", "/api/v1/pods", nil, { "Impersonate-User: bob" })),
    account = plain(nobody:request("GET", "/api/v1/pods", nil,
      { "Impersonate-User: system:serviceaccount:a:b" })),
  }
  local attributes = { namespace = NS, verb = "get", resource = "pods", name = "x" }
  local function status(r) return json.encode(r.body.status,
    { keyorder = { "allowed", "denied", "reason" } }) end
  out.reviews = {
    bob = status(review(admin, "subjectaccessreviews", { user = "bob", resourceAttributes = attributes })),
    dev = status(review(admin, "subjectaccessreviews",
      { user = "d", groups = { "devs" }, resourceAttributes = attributes })),
    account = status(review(admin, "subjectaccessreviews",
      { user = "system:serviceaccount:" .. NS .. ":runner", resourceAttributes = attributes })),
    eve = status(review(admin, "subjectaccessreviews", { user = "eve", resourceAttributes = attributes })),
    master = status(review(admin, "selfsubjectaccessreviews", { resourceAttributes = attributes })),
    -- not /version: two bindings allow it, and the real server names either one
    path = status(review(admin, "subjectaccessreviews", { user = "x", groups = { "system:authenticated" },
      nonResourceAttributes = { path = "/api", verb = "get" } })),
    no_path = status(review(admin, "subjectaccessreviews", { user = "x",
      nonResourceAttributes = { path = "/version/x", verb = "get" } })),
    here = status(admin:post("/apis/authorization.k8s.io/v1/namespaces/" .. NS
      .. "/localsubjectaccessreviews",
      { metadata = { namespace = NS }, spec = { user = "bob", resourceAttributes = attributes } })),
    who = json.encode(admin:request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
      { apiVersion = "authentication.k8s.io/v1", kind = "SelfSubjectReview" },
      { "Impersonate-User: bob", "Impersonate-Group: devs" }).body.status.userInfo,
      { keyorder = { "username", "groups" } }),
  }
  local rules = review(admin, "selfsubjectrulesreviews", { namespace = NS },
    { "Impersonate-User: bob" }).body.status
  out.rules = { resources = sorted(rules.resourceRules), paths = sorted(rules.nonResourceRules),
    incomplete = tostring(rules.incomplete) }
  local grace = as(admin, "grace")
  local roles = RBAC .. "/namespaces/" .. NS .. "/roles"
  local bindings = RBAC .. "/namespaces/" .. NS .. "/rolebindings"
  local more = { { apiGroups = { "" }, resources = { "pods", "secrets" }, verbs = { "get", "list" } },
    { apiGroups = { "apps" }, resources = { "deployments" }, resourceNames = { "a", "b" },
      verbs = { "get" } } }
  out.grants = {
    held = plain(grace("POST", roles, role("Role", "held",
      { { apiGroups = { "" }, resources = { "pods" }, verbs = { "get" } } }))),
    more = plain(grace("POST", roles, role("Role", "more", more))),
    raise = plain(grace("PUT", roles .. "/held", role("Role", "held", more))),
    bind = plain(grace("POST", bindings, binding("RoleBinding", "bound", "ClusterRole", "cluster-admin",
      { user "grace" }))),
    bind_held = plain(grace("POST", bindings, binding("RoleBinding", "bound", "Role", "held", { user "x" }))),
    bind_absent = plain(grace("POST", bindings,
      binding("RoleBinding", "bound2", "Role", "absent", { user "x" }))),
  }
  return out
end

describe("access", function()
  local s, real
  lazy_setup(function()
    s = embedded()
    answers.embedded = ask_server(s)
    if servers.assets() then
      real = servers.real()
      answers.real = ask_server(real)
    end
  end)
  lazy_teardown(function()
    if s then s:stop() end
    if real then
      new_api(real):delete("/api/v1/namespaces/" .. NS)
      real:stop()
    end
  end)

  compare("of a user by a role, of what it does not name in the real one's words", "bob")
  compare("of a user whose role is not there", "eve")
  compare("of a service account", "runner")
  compare("of a user without roles", "nobody")
  compare("with a token that is nobody's", "wrong")
  compare("in somebody else's name", "mask")
  compare("as reviews tell of it", "reviews")
  compare("as a list of rules", "rules")
  compare("that is granted by who does not have it", "grants")

  it("anonymous: only public paths", function()
    local anonymous = new_api { url = s.url }
    local function get(path)
      local out = process.run(("curl -sS --cacert %s -w ' %%{http_code}' %s%s"):format(s.ca, anonymous.s.url,
        path))
      return out
    end
    assert.matches(" 200$", get "/version")
    assert.matches('cannot get path', get "/api", 1, true)
    assert.matches([[User \"system:anonymous\" cannot list resource \"pods\"]], get "/api/v1/pods", 1, true)
  end)

  it("by kubectl: whoami, can-i, --as, and aggregated roles", function()
    assert.matches("kubelua", s:must_kubectl("auth", "whoami"))
    assert.equal("yes\n", s:must_kubectl("auth", "can-i", "list", "pods", "-n", NS, "--as", "bob"))
    local out, code = s:kubectl("auth", "can-i", "delete", "pods", "-n", NS, "--as", "bob")
    assert.matches("no", out)
    assert.equal(1, code)
    assert.matches("configmaps%s+%[%]%s+%[mine%]%s+%[get update list%]",
      s:must_kubectl("auth", "can-i", "--list", "-n", NS, "--as", "bob"))
    s:must_kubectl("create", "clusterrole", "gears", "--verb=get", "--resource=pods/gears")
    s:must_kubectl("label", "clusterrole", "gears", "rbac.authorization.k8s.io/aggregate-to-view=true")
    assert.matches("pods/gears", s:must_kubectl("get", "clusterrole", "view", "-o", "yaml"), 1, true)
    s:must_kubectl("create", "rolebinding", "viewers", "--clusterrole=admin", "--user=vera", "-n", NS)
    assert.equal("yes\n",
      s:must_kubectl("auth", "can-i", "get", "pods", "--subresource=gears", "-n", NS, "--as", "vera"))
    assert.equal("yes\n", s:must_kubectl("auth", "can-i", "create", "deployments", "-n", NS, "--as", "vera"))
    s:must_kubectl("delete", "clusterrole", "gears")
    assert.equal("no", (s:kubectl("auth", "can-i", "get", "pods", "--subresource=gears", "-n", NS, "--as",
      "vera")):match "^%a+")
  end)

  it("by tokens of service accounts, as long as the account exists", function()
    local own = embedded()
    own:must_kubectl("create", "namespace", NS)
    own:must_kubectl("create", "serviceaccount", "robot", "-n", NS)
    own:must_kubectl("create", "rolebinding", "robots", "--clusterrole=view",
      "--serviceaccount=" .. NS .. ":robot", "-n", NS)
    local function token(...)
      return (own:must_kubectl("create", "token", "robot", "-n", NS, ...):gsub("%s+$", ""))
    end
    local function ask(bearer, path, body)
      local out = process.run(
        ("curl -sS --cacert %s -H 'Authorization: Bearer %s' %s %s%s 2>&1"):format(own.ca, bearer,
        body and "-H 'Content-Type: application/json' -d '" .. body .. "'" or "", own.url, path))
      return assert(json.decode(out), out)
    end
    local function who(bearer) return ask(bearer, "/apis/authentication.k8s.io/v1/selfsubjectreviews",
      "{}") end
    local good = token()
    local info = who(good).status.userInfo
    assert.equal("system:serviceaccount:" .. NS .. ":robot", info.username)
    assert.equal(own:must_kubectl("get", "serviceaccount", "robot", "-n", NS, "-o",
      "jsonpath={.metadata.uid}"), info.uid)
    assert.same({ "system:serviceaccounts", "system:serviceaccounts:" .. NS, "system:authenticated" },
      info.groups)
    assert.equal("PodList", ask(good, "/api/v1/namespaces/" .. NS .. "/pods").kind)
    assert.equal(403, ask(good, "/api/v1/nodes").code)
    local told = ask("master-token", "/apis/authentication.k8s.io/v1/tokenreviews",
      '{"spec":{"token":"' .. good .. '"}}')
    assert.same(info, told.status.user)
    assert.equal(401, who(good .. "x").code)
    assert.equal(401, who(token("--audience=vault")).code)
    own:must_kubectl("delete", "serviceaccount", "robot", "-n", NS)
    own:must_kubectl("create", "serviceaccount", "robot", "-n", NS)
    assert.equal(401, who(good).code)
    own:stop()
  end)

  it("puts the users of a token file in system:authenticated once", function()
    local tokens = process.write(process.tmpname ".csv", "m,master,,system:masters\nb,bea,2,crew\n"
      .. 'a,ann,1,"crew,system:authenticated"\n')
    local own = servers.embedded { args = { "--authorization-mode", "RBAC", "--token-auth-file", tokens } }
    for _, token in ipairs { "a", "b" } do
      local told = json.decode(own:must_kubectl("--token=" .. token, "auth", "whoami", "-o", "json"))
      assert.same({ "crew", "system:authenticated" }, told.status.userInfo.groups)
    end
    own:stop()
  end)

  it("records the requester of a CertificateSigningRequest, and keeps that of a loaded one", function()
    local request = { metadata = { name = "mine" },
      spec = { signerName = "example.com/it", usages = { "client auth" },
      username = "forged", request = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K" } }
    local PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    local own = embedded()
    local admin = new_api(own)
    local r = admin:request("POST", PATH, request, { "Impersonate-User: jane", "Impersonate-Uid: 7",
      "Impersonate-Group: system:masters", "Impersonate-Extra-Team: blue" })
    assert.equal(201, r.code)
    assert.equal("jane", r.body.spec.username)
    assert.equal("7", r.body.spec.uid)
    assert.same({ "system:masters", "system:authenticated" }, r.body.spec.groups)
    assert.same({ team = { "blue" } }, r.body.spec.extra)
    request.metadata.name = "admins"
    assert.equal("master", admin:post(PATH, request).body.spec.username)
    own:stop()
    local world <close> = kube.testing.start { source = [[return require "kubelua".controller { name = "none",
      resource = "v1/ConfigMap", reconcile = function() end }]] }
    request.metadata.name, request.kind, request.apiVersion = "kept", "CertificateSigningRequest",
      "certificates.k8s.io/v1"
    request.spec.username = "joe"
    world:load(request)
    assert.equal("joe", world:get("certificates.k8s.io/v1/CertificateSigningRequest", "kept").spec.username)
  end)

  it("by certificates: CN and O", function()
    local dir = process.tmpname ".pki"
    local function sh(command)
      local out, code = process.run(command)
      assert.equal(0, code, out)
    end
    sh(("mkdir %s && cd %s && for ca in ca other; do openssl req -x509 -newkey ec -pkeyopt \z
      ec_paramgen_curve:prime256v1 "
      .. "-nodes -keyout $ca.key -out $ca.crt -subj /CN=$ca -days 2; openssl req -newkey ec -pkeyopt "
      .. "ec_paramgen_curve:prime256v1 -nodes -keyout $ca-user.key -out $ca-user.csr "
      .. "-subj /O=system:masters/O=crew/CN=carl; openssl x509 -req -in $ca-user.csr -CA $ca.crt -CAkey \z
        $ca.key "
      .. "-CAcreateserial -days 2 -out $ca-user.crt; done 2>&1"):format(dir, dir))
    local own = embedded { "--client-ca-file", dir .. "/ca.crt" }
    local function who(name)
      return process.run(("curl -sS --cacert %s --cert %s/%s-user.crt --key %s/%s-user.key -d '{}' "
        .. "-H 'Content-Type: application/json' %s/apis/authentication.k8s.io/v1/selfsubjectreviews \z
          2>&1"):format(own.ca,
        dir, name, dir, name, own.url))
    end
    local info = json.decode(who "ca").status.userInfo
    assert.equal("carl", info.username)
    assert.same({ "system:masters", "crew", "system:authenticated" }, info.groups)
    assert.equal(401, json.decode(who "other").code)
    own:stop()
  end)
end)
