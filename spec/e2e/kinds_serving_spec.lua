-- kinds_serving_spec.lua - defaults, rules and tables of the kinds that configure the API server itself:
-- APIServices, flow control, service addresses.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local NONE, adder = both.NONE, both.adder

both.describe("APIServices", function(ns)
  local rows = {}
  local path = "/apis/apiregistration.k8s.io/v1/apiservices"
  local group = ns .. ".example.com"
  local base = { metadata = { name = "v1." .. group },
    spec = { group = group, version = "v1", groupPriorityMinimum = 100, versionPriority = 10 } }
  local add = adder(rows, "APIService", path, base)
  local remote = { namespace = "default", name = "s" }
  local function spec(what, more, code) add(what, { spec = more }, code) end
  spec("local", {}, 201)
  spec("of a service", { service = remote, insecureSkipTLSVerify = true }, 201)
  spec("a service's port", { service = both.merge({ port = 6443 }, remote), caBundle = "YQ==" }, 201)
  spec("no authority", { service = remote }, 201)
  spec("a port that is none", { service = both.merge({ port = 70000 }, remote) })
  spec("a port of 0", { service = both.merge({ port = 0 }, remote) })
  spec("a service without names", { service = { name = "" } })
  spec("an authority that is not asked",
    { service = remote, caBundle = "YQ==", insecureSkipTLSVerify = true })
  spec("local with an authority", { caBundle = "YQ==", insecureSkipTLSVerify = true })
  spec("priorities of 0", { groupPriorityMinimum = 0, versionPriority = 0 })
  spec("high priorities", { groupPriorityMinimum = 20001, versionPriority = 1001 })
  spec("the highest priorities", { groupPriorityMinimum = 20000, versionPriority = 1000 }, 201)
  spec("another version", { version = "v2" })
  spec("a version that is none", { version = "V_2" })
  spec("a group that is none", { group = "A_b" })
  add("a name", { metadata = { name = "a" } })
  add("a name of a path", { metadata = { name = "a%2fb" } })
  add("no group", { metadata = { name = "v2." }, spec = { group = "", version = "v2" } })
  rows[#rows + 1] = { "nothing", "POST", path, { metadata = { name = "x" } }, 422 }
  rows[#rows + 1] = { "no name", "POST", path, { spec = base.spec }, 422 }
  local one = path .. "/v1." .. group
  rows[#rows + 1] = { "is made", "POST", path, both.merge({ status = { conditions = { { type = "A",
    status = "True" } } } }, base), 201 }
  rows[#rows + 1] = { "needs a version to be replaced", "PUT", one, base, 422 }
  rows[#rows + 1] = { "another group", "PATCH", one, { spec = { group = "other" } }, 422 }
  rows[#rows + 1] = { "other priorities, and a status", "PATCH", one, { spec = { versionPriority = 11 },
    status = { conditions = NONE } }, 200 }
  rows[#rows + 1] = { "a condition's status", "PATCH", one .. "/status",
    { status = { conditions = { { type = "A", status = "Yes" }, { type = "B", status = "False" } } } }, 422 }
  rows[#rows + 1] = { "a status, and all else", "PATCH", one .. "/status", { spec = { versionPriority = 12 },
    metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "as a table", "TABLE", one, nil, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", one, nil, 200 }
  return rows
end)

both.describe("FlowSchemas", function(ns)
  local rows = {}
  local path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
  local user = { kind = "User", user = { name = "u" } }
  local rule = { verbs = { "get" }, apiGroups = { "" }, resources = { "pods" }, namespaces = { "*" } }
  local url = { verbs = { "get" }, nonResourceURLs = { "/healthz" } }
  local base = { spec = { priorityLevelConfiguration = { name = "global-default" } } }
  local add = adder(rows, "FlowSchema", path, base)
  local function spec(what, more, code) add(what, { spec = more }, code) end
  local function one(what, r, code)
    spec(what, { rules = { both.merge({ subjects = { user }, resourceRules = { rule } }, r) } }, code)
  end
  local function subject(what, s, code) one(what, { subjects = { s } }, code) end
  local function resource(what, more, code)
    one(what, { resourceRules = { both.merge(both.merge({}, rule), more) } }, code)
  end
  local function path_of(what, urls, code)
    one(what, { resourceRules = NONE, nonResourceRules = { { verbs = { "get" }, nonResourceURLs = urls } } },
      code)
  end
  spec("nothing but a level", {}, 201)
  rows[#rows + 1] = { "nothing", "POST", path, { metadata = { name = "x" } }, 422 }
  spec("no level", { priorityLevelConfiguration = { name = "" } })
  spec("a level", { priorityLevelConfiguration = { name = "A_" } })
  spec("a precedence below 0", { matchingPrecedence = -1 })
  spec("a precedence of 0", { matchingPrecedence = 0 }, 201)
  spec("a high precedence", { matchingPrecedence = 10001 })
  spec("the first precedence", { matchingPrecedence = 1 })
  spec("a distinguisher", { distinguisherMethod = { type = "ByUser" } }, 201)
  spec("another distinguisher", { distinguisherMethod = { type = "ByMoon" } })
  spec("an empty distinguisher", { distinguisherMethod = {} })
  one("a rule", {}, 201)
  spec("an empty rule", { rules = { {} } })
  one("no subjects", { subjects = NONE })
  one("no rules", { resourceRules = NONE })
  subject("another kind", { kind = "Some", user = { name = "a" } })
  local account = { name = "s", namespace = "n" }
  subject("no user", { kind = "User", group = { name = "g" }, serviceAccount = account })
  subject("a nameless user", { kind = "User", user = { name = "" } })
  subject("no group", { kind = "Group", user = { name = "u" }, serviceAccount = account })
  subject("a nameless group", { kind = "Group", group = { name = "" } })
  subject("no account", { kind = "ServiceAccount", user = { name = "u" }, group = { name = "g" } })
  subject("a nameless account", { kind = "ServiceAccount", serviceAccount = { name = "", namespace = "" } })
  subject("an account", { kind = "ServiceAccount", serviceAccount = { name = "A_", namespace = "B.c" } })
  subject("any account", { kind = "ServiceAccount", serviceAccount = { name = "*", namespace = "n" } }, 201)
  resource("no lists", { verbs = NONE, apiGroups = NONE, resources = NONE, namespaces = NONE })
  resource("a scope", { namespaces = NONE, clusterScope = true }, 201)
  resource("stars beside others", { verbs = { "*", "get" }, apiGroups = { "*", "a" },
    resources = { "*", "b" },
    namespaces = { "*", "c" } })
  resource("verbs", { verbs = { "get", "fly" } })
  resource("namespaces", { namespaces = { "a", "B_", "c.d" } })
  path_of("URLs", { "/", "/a", "/a/*" }, 201)
  path_of("no URLs", NONE)
  path_of("any URL", { "*" }, 201)
  path_of("any URL and more", { "*", "/a" })
  path_of("bad URLs", { "", "a", "/a b", "/a//b", "/*/b", "/a*", "/a/*/*" })
  one("a bad verb of a URL", { nonResourceRules = { { verbs = { "fly" }, nonResourceURLs = { "/" } },
    { verbs = { "*", "get" }, nonResourceURLs = { "/" } }, { verbs = NONE } } })
  add("the name of a built-in one", { metadata = { name = "exempt" } })
  add("the name of the last one", { metadata = { name = "catch-all" }, spec = {
    matchingPrecedence = 5, distinguisherMethod = { type = "ByUser" }, rules = { { subjects = { user,
      { kind = "Group", group = { name = "g" } },
      { kind = "ServiceAccount", serviceAccount = { name = "a", namespace = "b" } } },
      resourceRules = { rule }, nonResourceRules = { url } } } } })
  local real = path .. "/" .. ns
  rows[#rows + 1] = { "is made", "POST", path, both.merge({ metadata = { name = ns },
    status = { conditions = { { type = "A", status = "True" } } } }, base), 201 }
  local order = { { "b", 700 }, { "a", 700 }, { "c", 600 } }
  for _, it in ipairs(order) do
    rows[#rows + 1] = { "made for a table: " .. it[1], "POST", path, both.merge({ metadata = {
      name = it[1] .. "-" .. ns, labels = { table = ns } } }, both.merge(both.merge({}, base), { spec = {
        matchingPrecedence = it[2] } })), 201 }
  end
  for _, limit in ipairs { "", "&limit=500", "&limit=2" } do
    rows[#rows + 1] = { "in the order of precedence" .. limit, "TABLE",
      path .. "?labelSelector=table%3D" .. ns .. limit, nil, 200 }
  end
  for _, it in ipairs(order) do
    rows[#rows + 1] = { "shown: " .. it[1], "DELETE", path .. "/" .. it[1] .. "-" .. ns, nil, 200 }
  end
  rows[#rows + 1] = { "another precedence", "PATCH", real, { spec = { matchingPrecedence = 9000 } }, 200 }
  rows[#rows + 1] = { "a label, and a status", "PATCH", real, { metadata = { labels = { a = "b" } },
    status = { conditions = { { type = "A", status = "True" } } } }, 200 }
  rows[#rows + 1] = { "a status", "PATCH", real .. "/status", { spec = { matchingPrecedence = 1 },
    metadata = { labels = { a = "c" } }, status = { conditions = { { type = "A", status = "Yes",
      reason = "R", message = "M", lastTransitionTime = "2024-01-01T00:00:00Z" } } } }, 200 }
  rows[#rows + 1] = { "a condition twice, and one without a type", "PATCH", real .. "/status",
    { status = { conditions = { { type = "A" }, { type = "A" }, { status = "True" } } } }, 422 }
  rows[#rows + 1] = { "is wrong", "PATCH", real, { spec = { rules = { {} } } }, 422 }
  rows[#rows + 1] = { "as a table", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", real, nil, 200 }
  return rows
end)

both.describe("PriorityLevelConfigurations", function(ns)
  local rows = {}
  local path = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
  local add = adder(rows, "PriorityLevelConfiguration", path)
  local function spec(what, s, code) add(what, { spec = s }, code) end
  local function limited(what, l, code)
    spec(what, { type = "Limited", limited = both.merge({ limitResponse = { type = "Reject" } }, l) }, code)
  end
  local function queued(what, q, code)
    limited(what, { limitResponse = { type = "Queue", queuing = q } }, code)
  end
  rows[#rows + 1] = { "nothing", "POST", path, { metadata = { name = "x" } }, 422 }
  spec("another type", { type = "Some" })
  spec("no limits", { type = "Limited" })
  spec("both", { type = "Limited", limited = { limitResponse = { type = "Reject" } }, exempt = {} })
  spec("an exempt one", { type = "Exempt" })
  spec("an exempt one with limits", { type = "Exempt", limited = { limitResponse = { type = "Reject" } } })
  spec("no answer", { type = "Limited", limited = {} })
  limited("limits", {}, 201)
  limited("shares of 0", { nominalConcurrencyShares = 0 }, 201)
  limited("shares below 0",
    { nominalConcurrencyShares = -1, lendablePercent = -1, borrowingLimitPercent = -1 })
  limited("a high share to lend", { lendablePercent = 101, borrowingLimitPercent = 1000 })
  limited("another answer", { limitResponse = { type = "Wait" } })
  limited("no queues", { limitResponse = { type = "Queue" } })
  limited("queues of a refusal", { limitResponse = { type = "Reject", queuing = {} } })
  queued("queues", {}, 201)
  queued("numbers below 0", { queues = -1, handSize = -1, queueLengthLimit = -1 })
  queued("many queues", { queues = 10000001, handSize = 1 })
  queued("a large hand", { queues = 4, handSize = 5 })
  queued("too much to draw", { queues = 1000, handSize = 7 })
  queued("just enough to draw", { queues = 1024, handSize = 6 }, 201)
  add("the name of the exempt one", { metadata = { name = "exempt" },
    spec = { type = "Limited", limited = { limitResponse = { type = "Reject" } } } })
  add("the name of the exempt one, with a bad share", { metadata = { name = "exempt" },
    spec = { type = "Exempt", exempt = { nominalConcurrencyShares = -1, lendablePercent = 101 } } })
  add("the name of the last one", { metadata = { name = "catch-all" }, spec = { type = "Limited",
    limited = { limitResponse = { type = "Queue", queuing = {} }, borrowingLimitPercent = 5 } } })
  add("an annotation", { metadata = { annotations = {
    ["flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"] = "" } },
    spec = { type = "Limited", limited = { limitResponse = { type = "Reject" } } } })
  local real = path .. "/" .. ns
  rows[#rows + 1] = { "is made", "POST", path, { metadata = { name = ns }, spec = { type = "Limited",
    limited = { limitResponse = { type = "Queue", queuing = {} } } },
    status = { conditions = { { type = "A", status = "True" } } } }, 201 }
  rows[#rows + 1] = { "as a table", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "other limits", "PATCH", real, { spec = { limited = { limitResponse = {
    type = "Reject", queuing = both.NULL } } } }, 200 }
  rows[#rows + 1] = { "a status", "PATCH", real .. "/status", { spec = { type = "Exempt" },
    metadata = { labels = { a = "c" } }, status = { conditions = { { type = "A", status = "Yes" } } } }, 200 }
  rows[#rows + 1] = { "a condition twice, and one without a type", "PATCH", real .. "/status",
    { status = { conditions = { { type = "A" }, { type = "A" }, { status = "True" } } } }, 422 }
  rows[#rows + 1] = { "as a table without queues", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", real, nil, 200 }
  return rows
end)

both.describe("IPAddresses", function(ns)
  local rows = {}
  local path = "/apis/networking.k8s.io/v1/ipaddresses"
  local base = { spec = { parentRef = { resource = "services", namespace = "default", name = "a" } } }
  local function named(what, name, code)
    rows[#rows + 1] = { "IPAddress: " .. what, "POST", path .. "?dryRun=All",
      both.merge({ metadata = { name = name } }, base), code or 422 }
  end
  local function parent(what, p, code)
    rows[#rows + 1] = { "IPAddress: " .. what, "POST", path .. "?dryRun=All",
      { metadata = { name = "192.0.2.7" }, spec = { parentRef = p } }, code or 422 }
  end
  named("an address", "192.0.2.1", 201)
  named("of version 6", "2001:db8::ff", 201)
  named("no address", "a")
  named("a part of one", "192.0.2")
  named("too much", "192.0.2.256")
  named("zeros", "192.0.02.1")
  named("an address in another", "::ffff:1.2.3.4")
  named("an old address in another", "::1.2.3.4")
  named("a zone", "fe80::1%eth0")
  named("a long form", "2001:DB8:0:0::1")
  named("capital letters", "2001:DB8::1")
  named("the longest form", "abcd:abcd:abcd:abcd:abcd:abcd:192.168.158.190")
  rows[#rows + 1] = { "a generated name", "POST", path .. "?dryRun=All",
    both.merge({ metadata = { generateName = "192.0.2.9" } }, base), 201 }
  rows[#rows + 1] = { "nothing", "POST", path, { metadata = { name = "192.0.2.7" } }, 422 }
  parent("an empty parent", {})
  parent("a group", { group = "A_", resource = "a/b", name = "c%", namespace = ".." })
  parent("one of a group", { group = "a.b", resource = "things", name = "Any Name", namespace = "n" }, 201)
  local name = "192.0.2." .. 100 + math.random(0, 99)
  rows[#rows + 1] = { "is made", "POST", path, both.merge({ metadata = { name = name } }, base), 201 }
  rows[#rows + 1] = { "as a table", "TABLE", path .. "/" .. name, nil, 200 }
  rows[#rows + 1] = { "another parent", "PATCH", path .. "/" .. name,
    { spec = { parentRef = { name = "b" } } }, 422 }
  rows[#rows + 1] = { "no parent", "PATCH", path .. "/" .. name, { spec = { parentRef = both.NULL } }, 422 }
  rows[#rows + 1] = { "a label", "PATCH", path .. "/" .. name, { metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "without a version", "PUT", path .. "/" .. name,
    both.merge({ metadata = { name = name } }, base), 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", path .. "/" .. name, nil, 200 }
  return rows
end)

both.describe("ServiceCIDRs", function(ns)
  local rows = {}
  local path = "/apis/networking.k8s.io/v1/servicecidrs"
  local add = adder(rows, "ServiceCIDR", path)
  local function ranges(what, list, code) add(what, { spec = { cidrs = list } }, code) end
  rows[#rows + 1] = { "nothing", "POST", path, { metadata = { name = "x" } }, 422 }
  ranges("a range", { "192.0.2.0/24" }, 201)
  ranges("both families", { "192.0.2.0/24", "2001:db8::/64" }, 201)
  ranges("no range", NONE)
  ranges("three", { "192.0.2.0/24", "2001:db8::/64", "a" })
  ranges("one family twice", { "192.0.2.0/25", "192.0.2.128/25" })
  ranges("no ranges", { "a", "192.0.2.1" })
  ranges("an address", { "192.0.2.1/24", "2001:db8::1/64" })
  ranges("zeros", { "192.0.02.0/24", "2001:db8::/064" })
  ranges("a long form", { "2001:DB8:0::/64" })
  ranges("a range within another family", { "::ffff:1.2.3.0/120" })
  ranges("too long a prefix", { "192.0.2.0/33" })
  add("a name", { metadata = { name = "A_" }, spec = { cidrs = { "192.0.2.0/24" } } })
  local real = path .. "/" .. ns
  local made = { metadata = { name = ns }, spec = { cidrs = { "192.0.2.0/24" } } }
  rows[#rows + 1] = { "is made", "POST", path, both.merge({ status = { conditions = { { type = "Ready",
    status = "False", reason = "R", message = "", lastTransitionTime = "2024-01-01T00:00:00Z" } } } },
    made), 201 }
  rows[#rows + 1] = { "another range", "PATCH", real, { spec = { cidrs = { "192.0.2.0/25" } } }, 422 }
  rows[#rows + 1] = { "no range left", "PATCH", real, { spec = { cidrs = both.NULL } }, 422 }
  rows[#rows + 1] = { "two other ranges", "PATCH", real,
    { spec = { cidrs = { "192.0.2.0/25", "192.0.2.128/25" } } }, 422 }
  rows[#rows + 1] = { "a second one", "PATCH", real,
    { spec = { cidrs = { "192.0.2.0/24", "2001:db8::/64" } } }, 200 }
  rows[#rows + 1] = { "one less", "PATCH", real, { spec = { cidrs = { "192.0.2.0/24" } } }, 422 }
  rows[#rows + 1] = { "as a table", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "a status beside the rest", "PATCH", real, { metadata = { labels = { a = "b" } },
    status = { conditions = { { type = "Other", status = "True", reason = "R", message = "",
      lastTransitionTime = "2024-01-01T00:00:00Z" } } } }, 200 }
  rows[#rows + 1] = { "a status", "PATCH", real .. "/status", { metadata = { labels = { a = "c" } },
    spec = { cidrs = NONE }, status = { conditions = { { type = "Bad Type", status = "Yes", reason = "R",
      message = "", lastTransitionTime = "2024-01-01T00:00:00Z" } } } }, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", real, nil, 200 }
  return rows
end)
