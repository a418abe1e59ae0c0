-- audit_spec.lua - the audit log: the same requests under the same policy write the same events on both
-- servers.

local busted = require "busted"
local json = require "dkjson"
local both = require "support.both"
local identities = require "support.identities"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local describe, it, lazy_setup, lazy_teardown = busted.describe, busted.it, busted.lazy_setup,
  busted.lazy_teardown

local POLICY = [[
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: [nobody], verbs: [get]}
- {level: None, nonResourceURLs: ["/readyz*", "/api*", "/openapi/*"]}
- level: RequestResponse
  namespaces: [audited]
  resources: [{group: "", resources: [configmaps]}, {group: "", resources: ["pods", "pods/log"]}]
  omitStages: [ResponseStarted]
- level: RequestResponse
  namespaces: [audited]
  resources: [{group: "", resources: [secrets], resourceNames: [one]}]
  omitManagedFields: false
- {level: Request, namespaces: [audited], resources: [{group: apps, resources: ["deployments", "*/scale"]}]}
- {level: Metadata, namespaces: [audited]}
- {level: Metadata, userGroups: ["system:masters"], nonResourceURLs: ["/version", "/metr*"]}
- {level: Metadata, namespaces: [""], resources: [{group: "", resources: [namespaces/finalize]}]}
- {level: Metadata, users: [nobody], namespaces: [default]}
- {level: None}
]]

local SPACE = "/api/v1/namespaces/audited"
local DEPLOYMENT = { metadata = { name = "d" },
  spec = { selector = { matchLabels = { a = "b" } }, template = {
  metadata = { labels = { a = "b" } }, spec = { containers = { { name = "c", image = "i" } } } } } }

local function requests()
  local deployments = "/apis/apps/v1/namespaces/audited/deployments"
  return {
    { "", "POST", "/api/v1/namespaces", { metadata = { name = "audited" } } },
    { "", "POST", SPACE .. "/configmaps", { metadata = { name = "c" }, data = { a = "b" } } },
    { "", "POST", SPACE .. "/configmaps", { metadata = { name = "c" } } },
    { "", "POST", SPACE .. "/configmaps?dryRun=All", { metadata = { generateName = "g-" } } },
    { "", "GET", SPACE .. "/configmaps/c" },
    { "", "GET", SPACE .. "/configmaps/absent" },
    { "", "GET", SPACE .. "/configmaps?limit=5&labelSelector=a%3Db" },
    { "", "GET", SPACE .. "/configmaps?watch=1&timeoutSeconds=1" },
    { "", "PATCH", SPACE .. "/configmaps/c", { data = { c = "d" } } },
    { "", "PUT", SPACE .. "/configmaps/c", { metadata = { name = "c" }, data = { c = "d" } } },
    { "", "DELETE", SPACE .. "/configmaps/c", { propagationPolicy = "Background" } },
    { "", "APPLY", SPACE .. "/configmaps/j?fieldManager=m",
      { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "j" },
      data = { a = "b" } } },
    { "", "POST", SPACE .. "/secrets", { metadata = { name = "one" } } },
    { "", "GET", SPACE .. "/secrets/one" },
    { "", "POST", deployments, DEPLOYMENT },
    { "", "PATCH", deployments .. "/d/scale", { spec = { replicas = 2 } } },
    { "", "GET", SPACE .. "/services?watch=1&timeoutSeconds=1" },
    { "", "POST", SPACE .. "/services?dryRun=All", { metadata = { name = "B_" } } },
    { "", "GET", "/version" },
    { "", "GET", "/readyz" },
    { "", "GET", "/api/v1/namespaces/default/configmaps/absent" },
  }
end

-- Removes what differs between two servers.
local function scrub(event)
  for _, key in ipairs { "auditID", "requestReceivedTimestamp", "stageTimestamp" } do
    assert(type(event[key]) == "string", key .. " is not there")
    event[key] = nil
  end
  -- kube-apiserver's, of a request that took longer than half a second
  for key in pairs(event.annotations or {}) do
    if key:find "^apiserver%.latency" then event.annotations[key] = nil end
  end
  for _, o in ipairs { event.requestObject or {}, event.responseObject or {} } do
    for _, field in ipairs(o.metadata and o.metadata.managedFields or {}) do field.time = nil end
    local meta = o.metadata or {}
    meta.uid, meta.creationTimestamp, meta.resourceVersion = nil, nil, nil
    if meta.generateName then meta.name = nil end
  end
  for _, o in ipairs { event.responseStatus or {}, event.responseObject or {} } do
    if o.details then o.details.uid = nil end
  end
  return event
end

local LAST = "/api/v1/namespaces/default/configmaps/last"

-- Waits for the last of the requests' events, and returns them all.
local function events(path)
  local list
  wait.until_true(30, "the last request is in the audit log", function()
    list = {}
    local text = process.read(path) or ""
    for line in text:gmatch "([^\n]+)\n" do list[#list + 1] = json.decode(line) end
    return text:find('"ResponseComplete","requestURI":"' .. LAST, 1, true)
  end)
  for i = #list, 1, -1 do
    if (list[i].user.username or ""):find "^system:" then table.remove(list, i) end -- the server itself
  end
  return list
end

local function asked(s)
  local token = s.token
  both.ask(s, requests())
  process.run(("%s create configmap proto -n audited --from-literal=a=b --kubeconfig /dev/null -s %s \z
    --token %s \z
    --certificate-authority %s"):format(servers.assets() .. "/kubectl", s.url, token, s.ca)) -- sends protobuf
  s.token = s.tokens.nobody
  both.ask(s, { { "", "GET", SPACE .. "/services" }, { "", "GET", SPACE .. "/services/x" },
    { "", "DELETE", SPACE .. "/services/x" },
    { "", "GET", "/version" } })
  s.token = "wrong"
  both.ask(s, { { "", "GET", SPACE .. "/services" } })
  s.token = token
  process.run(("curl -sk --cacert %s -H 'User-Agent: worn' -H 'Authorization: Bearer %s' -H \z
    'Impersonate-User: nobody' \z
    -H 'Impersonate-Group: g' '%s%s/services'"):format(s.ca, token, s.url, SPACE))
  s.token = s.tokens.nobody
  both.ask(s, { { "", "DELETE", LAST } })
  s.token = token
end

local function name_of(e)
  return ("%s %s %s %s by %s"):format(e.level, e.stage, e.verb, e.requestURI,
    e.user.username or "nobody known")
end

servers.only_real(function(_, real)
  describe("The audit logs of both servers", function()
    local logs = {}
    lazy_setup(function()
      local policy = process.write(process.tmpname ".policy.yaml", POLICY)
      local users = process.write(process.tmpname ".csv",
        'admin-token,admin,admin,"system:masters"\nnobody-token,nobody,nobody\n')
      for i, start in ipairs { servers.embedded, real } do
        local log = process.tmpname ".audit"
        local ours = i == 1
        local s = start(ours and { args = { "--authorization-mode", "RBAC", "--token-auth-file", users,
          "--audit-log", log,
          "--audit-policy", policy } }
            or { own = true, args = { "--audit-log-path", log, "--audit-policy-file", policy } })
        if ours then
          identities.logged_in(s)
          s.token, s.tokens = "admin-token", { nobody = "nobody-token" }
        end
        asked(s)
        logs[i] = events(log)
        s:stop()
      end
    end)
    it("name the same requests in the same order", function()
      local names = { {}, {} }
      for i, log in ipairs(logs) do
        for k, e in ipairs(log) do names[i][k] = name_of(e) end
      end
      busted.assert.same(names[2], names[1])
      busted.assert.is_true(#names[1] > 20)
    end)
    it("agree about each request", function()
      local found = {}
      for k, theirs in ipairs(logs[2]) do
        local name = name_of(theirs)
        both.differences(name, scrub(theirs), scrub(logs[1][k] or {}), found)
      end
      busted.assert.equal("", table.concat(found, "\n"))
    end)
  end)
end)

-- An admission policy with messages for the log; a policy that rejects shows when the server knows it.
local function policies()
  local group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
  local list = {}
  local function policy(name, validations, annotations)
    list[#list + 1] = { "", "POST", group .. "ies",
      { metadata = { name = name }, spec = { validations = validations,
      auditAnnotations = annotations,
        matchConstraints = { resourceRules = { { apiGroups = { "" }, apiVersions = { "v1" },
        operations = { "CREATE" }, resources = { "configmaps" } } } } } } }
  end
  local function binding(name, of, actions)
    list[#list + 1] = { "", "POST", group .. "ybindings",
      { metadata = { name = name }, spec = { policyName = of,
      validationActions = actions } } }
  end
  policy("one", { { expression = "object.metadata.name != 'bad'", message = "no bad" },
    { expression = "object.metadata.name == 'x'" } },
    { { key = "who", valueExpression = "' it is ' + object.metadata.name" },
      { key = "none", valueExpression = "null" } })
  -- Only one audits: kube-apiserver evaluates the bindings of a policy in the order of a map, and keeps the
  -- first message.
  binding("b1", "one", { "Audit", "Warn" })
  binding("b2", "one", { "Warn" })
  policy("two", { { expression = "object.metadata.name != 'refused'" } })
  binding("b3", "two", { "Deny" })
  return list
end

servers.only_real(function(_, real)
  describe("Policies of admission", function()
    it("leave the same in both audit logs", function()
      local said = {}
      for i, start in ipairs { servers.embedded, real } do
        local log = process.tmpname ".audit"
        local file = process.write(process.tmpname ".yaml",
          "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, omitStages: \z
            [RequestReceived]}]\n")
        local s = start(i == 1 and { args = { "--audit-log", log, "--audit-policy", file } }
          or { own = true, args = { "--audit-log-path", log, "--audit-policy-file", file } })
        local path = "/api/v1/namespaces/default/configmaps"
        both.ask(s, policies())
        local function create(name) return { "", "POST", path .. "?dryRun=All",
          { metadata = { name = name } } } end
        wait.until_true(60, "the policies are heard", function()
          local answer = both.ask(s, { create "refused" })[1]
          return answer.code == 422 and #answer.warnings > 0
        end)
        both.ask(s, { create "bad", create "good", create "x", { "", "DELETE", LAST } })
        said[i] = {}
        for _, e in ipairs(events(log)) do
          local name = e.objectRef and e.verb == "create" and e.objectRef.resource == "configmaps"
            and e.objectRef.name
          if name == "bad" or name == "good" or name == "x" then said[i][name] = scrub(e).annotations end
        end
        s:stop()
      end
      busted.assert.equal("it is bad", said[1].bad["one/who"])
      busted.assert.same(said[2], said[1])
    end)
  end)
end)

describe("The audit log of the embedded server", function()
  local s
  lazy_teardown(function() if s then s:stop() end end)
  local function start(...) s = servers.embedded { args = { ... } } return s end

  it("has the metadata of every request without a policy, at its start and end", function()
    local log = process.tmpname ".audit"
    start("--audit-log", log)
    both.ask(s, { { "", "DELETE", LAST } })
    local found = {}
    for _, e in ipairs(events(log)) do
      if e.requestURI == LAST then found[#found + 1] = e.level .. " " .. e.stage end
    end
    busted.assert.same({ "Metadata RequestReceived", "Metadata ResponseComplete" }, { found[1], found[2] })
    s:stop()
  end)

  it("continues in a new file after a rotation", function()
    local log = process.tmpname ".audit"
    start("--audit-log", log)
    both.ask(s, { { "", "DELETE", LAST } })
    busted.assert.is_true(#events(log) > 0)
    assert(os.rename(log, log .. ".1"))
    both.ask(s, { { "", "DELETE", LAST } })
    busted.assert.is_true(#events(log) > 0)
    s:stop()
  end)

  it("reports a full disk, and the server continues", function()
    start("--audit-log", "/dev/full")
    busted.assert.equal(404, both.ask(s, { { "", "DELETE", LAST } })[1].code)
    wait.until_true(10, "the loss is told", function()
      return s:log():find("audit events are lost: the log cannot be written file=/dev/full", 1, true)
    end)
    busted.assert.equal(404, both.ask(s, { { "", "DELETE", LAST } })[1].code)
    s:stop()
    s = nil
  end)

  it("never waits for the reader of a pipe", function()
    local fifo = process.tmpname ".fifo"
    busted.assert.equal("", (process.run("mkfifo " .. fifo)))
    local out, code = process.run(("%s apiserver --listen 127.0.0.1:0 --audit-log %s 2>&1"):format(
      os.getenv "KUBELUA" or "build/kubelua", fifo))
    busted.assert.equal(1, code)
    busted.assert.truthy(out:find("is a socket, or a FIFO without a reader", 1, true), out)
    local reader = process.spawn { "sh", "-c", "exec 3<> " .. fifo .. "; echo open; exec sleep 600" }
    reader:wait_for_log(10, "open")
    start("--audit-log", fifo)
    local rows = {}
    for i = 1, 120 do rows[i] = { "", "GET", "/version?" .. ("x"):rep(2000) } end
    both.ask(s, rows)
    s:stop()
    reader:kill()
  end)

  for what, case in pairs {
    ["a level"] = { "{level: Metdata}", 'rules[0]: unknown level "Metdata"; did you mean "Metadata"?' },
    ["a key"] = { "{level: None, user: [a]}", 'rules[0]: unknown key "user"; did you mean "users"?' },
    ["a stage"] = { "{level: None, omitStages: [Received]}", 'rules[0]: unknown stage "Received"' },
    ["names without resources"] = { "{level: None, resources: [{resourceNames: [a]}]}",
      "rules[0].resources[0].resourceNames limits" },
    ["two subjects"] = { '{level: None, nonResourceURLs: ["/x"], namespaces: [a]}',
      "rules[0]: a rule has either resources or" },
    ["a URL"] = { '{level: None, nonResourceURLs: ["x"]}',
      'rules[0].nonResourceURLs[0]: "x" must be "*", or begin with "/"' },
  } do
    it("refuses of a policy " .. what, function()
      local file = process.write(process.tmpname ".yaml",
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [" .. case[1] .. "]\n")
      local out, code = process.run(("%s apiserver --listen 127.0.0.1:0 --audit-log %s --audit-policy %s \z
        2>&1"):format(
        os.getenv "KUBELUA" or "build/kubelua", process.tmpname ".audit", file))
      busted.assert.equal(1, code)
      busted.assert.truthy(out:find(file .. ": " .. case[2], 1, true), out)
    end)
  end

  it("names the policy of an error", function()
    local out, code = process.run((os.getenv "KUBELUA" or "build/kubelua")
      .. " apiserver --audit-policy x 2>&1")
    busted.assert.equal(2, code)
    busted.assert.truthy(out:find("--audit-policy needs --audit-log FILE", 1, true), out)
  end)
end)
