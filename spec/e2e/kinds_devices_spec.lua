-- kinds_devices_spec.lua - defaults, rules and tables of claims of devices, their templates and classes, and
-- slices of devices.
-- not in tsan: one request after the other, and what answers them is pure

local both = require "support.both"
local NONE, adder = both.NONE, both.adder

local BASE = "/apis/resource.k8s.io/v1/"

-- n of them
local function many(n, make)
  local list = {}
  for i = 1, n do list[i] = make(i) end
  return list
end

local EXACT = { name = "r", exactly = { deviceClassName = "c" } }
local function opaque(parameters, driver)
  return { opaque = { driver = driver or "d.example.com", parameters = parameters } }
end

both.describe("ResourceClaims", function(ns)
  local rows = {}
  local path = BASE .. "namespaces/" .. ns .. "/resourceclaims"
  local add = adder(rows, "ResourceClaim", path)
  local function devices(what, d, code) add(what, { spec = { devices = d } }, code) end
  local function requests(what, list, code) devices(what, { requests = list }, code) end
  local function exactly(what, more, code)
    requests(what, { both.merge({ name = "r" }, { exactly = both.merge({ deviceClassName = "c" }, more) }) },
      code)
  end
  local function first(what, list, code) requests(what, { { name = "r", firstAvailable = list } }, code) end
  local function cel(what, expression, code)
    exactly(what, { selectors = { { cel = { expression = expression } } } }, code)
  end
  rows[#rows + 1] = { "nothing", "POST", path .. "?dryRun=All", { metadata = { name = "x" } }, 201 }
  add("a name", { metadata = { name = "A_" }, spec = { devices = { requests = { EXACT } } } })
  requests("one", { EXACT }, 201)
  requests("no kind of request", { { name = "r" } })
  requests("both kinds", { { name = "r", exactly = { deviceClassName = "c" },
    firstAvailable = { { name = "s", deviceClassName = "c" } } } })
  requests("no name", { { exactly = { deviceClassName = "c" } }, { exactly = { deviceClassName = "c" } } })
  requests("a name that is none", { { name = "A_", exactly = { deviceClassName = "C_" } } })
  requests("one twice", { EXACT, EXACT, EXACT })
  requests("33", many(33, function(i) return { name = "r" .. i, exactly = { deviceClassName = "c" } } end))
  exactly("no class", { deviceClassName = "" })
  exactly("all", { allocationMode = "All" }, 201)
  exactly("some of all", { allocationMode = "All", count = 2 })
  exactly("another mode", { allocationMode = "Some", count = 2 })
  exactly("less than none", { count = -1 })
  exactly("none", { count = 0 }, 201)
  exactly("a capacity, which is cut", { capacity = { requests = { a = "1" } } }, 201)
  exactly("tolerations", { tolerations = { {}, { key = "a", operator = "Exists", effect = "NoExecute" },
    { key = "a", value = "b" } } }, 201)
  exactly("bad tolerations", { tolerations = { { key = "A b", operator = "Some", effect = "Never" },
    { key = "a", operator = "Exists", value = "b" }, { key = "a", operator = "Equal", value = "b c" } } })
  exactly("administration", { adminAccess = true })
  exactly("no administration", { adminAccess = false }, 201)
  exactly("a selector without an expression", { selectors = { {} } })
  exactly("33 selectors", { selectors = many(33, function() return { cel = { expression = "true" } } end) })
  cel("a driver", "device.driver == 'd.example.com'", 201)
  cel("an attribute", "device.attributes['d.example.com'].model == 'a'", 201)
  cel("a capacity of a device",
    "device.capacity['d.example.com'].memory.compareTo(quantity('1Gi')) >= 0", 201)
  cel("any type", "device.attributes['d.example.com'].healthy", 201)
  cel("a version", "device.attributes['d.example.com'].v.isGreaterThan(semver('1.0.0'))", 201)
  cel("names of domains", "device.attributes.exists(d, d.startsWith('a'))", 201)
  cel("a name for a part", "cel.bind(d, device.attributes['d.example.com'], d.a && d.b == 'c')", 201)
  cel("names in names", "cel.bind(a, 1, cel.bind(b, a + 1, b == 2))", 201)
  cel("a name that is none", "cel.bind(a.b, 1, true)")
  cel("a name of another type", "cel.bind(a, device.driver, a + 1 == 2)")
  cel("no use of a name", "cel.bind(a, 1, b)")
  cel("two arguments for a name", "cel.bind(a, 1)")
  cel("another object's function", "device.bind(a, 1, true)")
  cel("named sizes", "cel.bind(a, device.attributes, a.all(b, a.all(c, b == c)))", 201)
  cel("names of too much", "cel.bind(a, device.attributes, a.all(b, a.all(c, a.all(d, \z
    a.all(e, a.all(f, b != f))))))")
  cel("no expression", "")
  cel("no text of one", "device.driver ==")
  cel("another field", "device.name == 'a'")
  cel("another variable", "node.name == 'a'")
  cel("a number", "1")
  cel("a text", "device.driver")
  cel("a map", "device.attributes")
  cel("a time", "timestamp('2024-01-01T00:00:00Z')")
  cel("a list of durations", "[duration('1s')]")
  cel("nothing of a value", "null")
  cel("arguments of any type", "size(device.attributes['a'].b, 1) == 1")
  cel("a field of a text", "device.driver.x")
  cel("an attribute of an attribute", "device.attributes['a'].b.c.d == 1", 201)
  cel("another type", "device.driver == 1")
  cel("too much to look at", ("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \z
    device.attributes.all(d, device.attributes.all(e, a != b)))))"))
  cel("just bearable", "device.attributes.all(a, device.attributes.all(b, a == b))", 201)
  cel("a long one", "true" .. (" "):rep(10 * 1024))
  first("alternatives", { { name = "a", deviceClassName = "c" }, { name = "b", deviceClassName = "d",
    count = 2, tolerations = { { key = "x" } } } }, 201)
  first("bad alternatives", { { name = "A_", deviceClassName = "" }, { name = "a", deviceClassName = "c",
    allocationMode = "All", count = 1 }, { name = "a", deviceClassName = "c" } })
  first("9 alternatives", many(9, function(i) return { name = "a" .. i, deviceClassName = "c" } end))
  local two = { EXACT, { name = "q", firstAvailable = { { name = "s", deviceClassName = "c" } } } }
  local function constraint(what, k, code) devices(what, { requests = two, constraints = { k } }, code) end
  constraint("a constraint", { requests = { "r", "q", "q/s" }, matchAttribute = "a.b/c" }, 201)
  constraint("an empty one", {})
  constraint("of no request", { requests = { "x", "q/x", "r/s", "a/b/c", "", "A_/b" },
    matchAttribute = "a.b/c" })
  constraint("of a request twice", { requests = { "r", "r" }, matchAttribute = "a.b/c" })
  constraint("no domain", { matchAttribute = "c" })
  constraint("no attribute", { matchAttribute = "" })
  constraint("half an attribute", { matchAttribute = "a.b/" })
  constraint("the other half", { matchAttribute = "/c" })
  constraint("an attribute", { matchAttribute = "A_/b-c" })
  constraint("a long attribute", { matchAttribute = "a.b/" .. ("x"):rep(33) })
  constraint("three parts", { matchAttribute = "a/b/c" }, 201)
  constraint("another constraint", { distinctAttribute = "c" })
  local function config(what, k, code) devices(what, { requests = two, config = { k } }, code) end
  config("a configuration", both.merge(opaque { a = 1 }, { requests = { "r", "q/s" } }), 201)
  config("an empty configuration", {})
  config("no parameters", { opaque = { driver = "d" } })
  config("no driver", opaque({ a = 1 }, ""))
  config("a driver's name", opaque({ a = 1 }, "A_"))
  config("a long configuration", opaque { a = ("x"):rep(10 * 1024) })
  config("a configuration of no request", both.merge(opaque { a = 1 }, { requests = { "x", "x" } }))
  devices("33 configurations", { requests = two,
    config = many(33, function() return opaque { a = 1 } end) })
  local real = path .. "/a"
  rows[#rows + 1] = { "is made", "POST", path, { metadata = { name = "a" }, spec = { devices = {
    requests = two, constraints = { { matchAttribute = "a.b/c" } }, config = { opaque { a = 1 } } } },
    status = { reservedFor = { { resource = "pods", name = "p", uid = "u" } } } }, 201 }
  rows[#rows + 1] = { "as a table", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "another class", "JSON", real, { { op = "replace",
    path = "/spec/devices/requests/0/exactly/deviceClassName", value = "D_" } }, 422 }
  rows[#rows + 1] = { "more requests", "PATCH", real, { spec = { devices = { requests = { both.merge({
    exactly = { adminAccess = true, count = 3, selectors = { { cel = { expression = "true" } } },
      tolerations = { { key = "a" } } } }, EXACT) }, config = both.NULL } } }, 422 }
  rows[#rows + 1] = { "a label", "PATCH", real, { metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", real, nil, 200 }
  return rows
end)

both.describe("the status of ResourceClaims", function(ns)
  local rows = {}
  local path = BASE .. "namespaces/" .. ns .. "/resourceclaims"
  local one = path .. "/a/status"
  local result = { request = "r", driver = "d.example.com", pool = "p", device = "v" }
  local reported = { driver = "d.example.com", pool = "p", device = "v" }
  local function put(what, status, code, on) rows[#rows + 1] = { what, "PATCH", on or one .. "?dryRun=All",
    { status = status }, code or 422 } end
  local function allocation(what, a, code, on) put(what, { allocation = a }, code, on) end
  local function results(what, list, code) allocation(what, { devices = { results = list } }, code) end
  local function reports(what, more, code)
    put(what, { allocation = { devices = { results = { result } } },
      devices = { both.merge(both.merge({}, reported), more) } }, code)
  end
  rows[#rows + 1] = { "a claim is made", "POST", path, { metadata = { name = "a" }, spec = { devices = {
    requests = { EXACT, { name = "q", firstAvailable = { { name = "s", deviceClassName = "c" } } } } } } },
    201 }
  put("a consumer of nothing", { reservedFor = { { resource = "pods", name = "p", uid = "u" } } })
  put("no consumer", { allocation = {}, reservedFor = { {}, { resource = "pods", name = "p", uid = "u" },
    { resource = "pods", name = "q", uid = "u" } } })
  allocation("nothing", {}, 200)
  results("a result", { result }, 200)
  results("an alternative", { both.merge({ request = "q/s" }, { driver = "d", pool = "a/b", device = "v" }) },
    200)
  results("no result", { {} })
  results("a bad result", { { request = "x", driver = "A_", pool = "A_/b", device = "B.c" } })
  results("an administrator's result", { both.merge({ adminAccess = true }, result) })
  results("what is cut", { both.merge({ shareID = "x", bindingConditions = { "a b" },
    consumedCapacity = { a = "1" } }, result) }, 200)
  results("33 results", many(33, function() return result end))
  allocation("configuration", { devices = { config = { both.merge({ source = "FromClass" }, opaque { a = 1 }),
    both.merge({ source = "FromClaim", requests = { "r" } }, opaque { a = 1 }) } } }, 200)
  allocation("bad configuration", { devices = { config = { {}, { source = "FromSky", requests = { "x" },
    opaque = { driver = "d" } } } } })
  allocation("nodes", { nodeSelector = { nodeSelectorTerms = { { matchExpressions = { { key = "a",
    operator = "Some" } } } } } })
  allocation("no nodes", { nodeSelector = { nodeSelectorTerms = NONE } })
  reports("a report", { conditions = { { type = "Ready", status = "True", reason = "R", message = "",
    lastTransitionTime = "2024-01-01T00:00:00Z" } }, data = { a = 1 }, networkData = {
      interfaceName = "eth0", hardwareAddress = "ab", ips = { "192.0.2.1/24", "2001:db8::1/64" } } }, 200)
  reports("of another device", { device = "w" })
  reports("of no device", { driver = "", pool = "", device = "" })
  reports("addresses", { networkData = { interfaceName = ("x"):rep(257), hardwareAddress = ("x"):rep(129),
    ips = { "a", "192.0.02.1/24", "::ffff:1.2.3.4/120", "192.0.2.1/24", "192.0.2.1/24",
      "2001:DB8::1/64" } } })
  reports("17 addresses",
    { networkData = { ips = many(17, function(i) return "192.0.2." .. i .. "/24" end) } })
  reports("bad conditions", { conditions = { { type = "A b", status = "Yes", reason = "1", message = "",
    observedGeneration = -1 }, { type = "A", status = "True", reason = "R", message = "",
    lastTransitionTime = "2024-01-01T00:00:00Z" }, { type = "A", status = "True", reason = "", message = "",
    lastTransitionTime = "2024-01-01T00:00:00Z" } } })
  reports("9 conditions", { conditions = many(9, function(i) return { type = "T" .. i, status = "True",
    reason = "R", message = "", lastTransitionTime = "2024-01-01T00:00:00Z" } end) })
  reports("much data", { data = { a = ("x"):rep(10 * 1024) } })
  put("a report without an allocation", { devices = { reported } })
  allocation("is allocated", { devices = { results = { result } } }, 200, one)
  rows[#rows + 1] = { "as a table", "TABLE", path .. "/a", nil, 200 }
  put("is reserved, and reported", { devices = { reported }, reservedFor = { { resource = "pods", name = "p",
    uid = "u" } } }, 200, one)
  rows[#rows + 1] = { "as a table when it is reserved", "TABLE", path .. "/a", nil, 200 }
  allocation("another allocation", { devices = { results = { both.merge({ tolerations = { { key = "a" } } },
    result) } }, nodeSelector = { nodeSelectorTerms = { { matchExpressions = { { key = "a",
      operator = "In", values = { "b" } } } } } } })
  rows[#rows + 1] = { "the rest stays", "PATCH", one, { metadata = { labels = { a = "b" } }, spec = {
    devices = { requests = NONE } } }, 200 }
  put("deallocation cuts the report", { allocation = both.NULL, reservedFor = both.NULL }, 200, one)
  return rows
end)

both.describe("ResourceClaimTemplates", function(ns)
  local rows = {}
  local path = BASE .. "namespaces/" .. ns .. "/resourceclaimtemplates"
  local add = adder(rows, "ResourceClaimTemplate", path)
  local good = { spec = { devices = { requests = { EXACT } } } }
  add("good", { spec = good }, 201)
  add("nothing in it", {}, 201)
  add("metadata", { spec = both.merge({ metadata = { labels = { a = "b" }, annotations = { c = "d" } } },
    good) }, 201)
  add("bad metadata", { spec = both.merge({ metadata = { labels = { ["a b"] = "c d" },
    annotations = { ["e f"] = "" } } }, good) })
  add("a bad claim", { spec = { spec = { devices = { requests = { { name = "A_" } },
    constraints = { {} }, config = { {} } } } } })
  add("administration", { spec = { spec = { devices = { requests = { { name = "r", exactly = {
    deviceClassName = "c", adminAccess = true } } } } } } })
  rows[#rows + 1] = { "is made", "POST", path, { metadata = { name = "a" }, spec = both.merge({ metadata = {
    labels = { a = "b" } } }, good) }, 201 }
  rows[#rows + 1] = { "another request", "PATCH", path .. "/a", { spec = { spec = { devices = { requests = {
    { name = "B_" } } } } } }, 422 }
  rows[#rows + 1] = { "a label", "PATCH", path .. "/a", { metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "as a table", "TABLE", path .. "/a", nil, 200 }
  return rows
end)

both.describe("administrators of devices", function(ns)
  local path = BASE .. "namespaces/" .. ns .. "/resourceclaims?dryRun=All"
  local claim = { metadata = { name = "a" }, spec = { devices = { requests = { { name = "r", exactly = {
    deviceClassName = "c", adminAccess = true } } } } } }
  return {
    { "a namespace allows them", "PATCH", "/api/v1/namespaces/" .. ns, { metadata = { labels = {
      ["resource.kubernetes.io/admin-access"] = "true" } } }, 200 },
    { "a claim", "POST", path, claim, 201 },
  }
end)

both.describe("DeviceClasses", function(ns)
  local rows = {}
  local path = BASE .. "deviceclasses"
  local add = adder(rows, "DeviceClass", path)
  add("nothing", {}, 201)
  add("a name", { metadata = { name = "A_" } })
  add("a selector", { spec = { selectors = { { cel = { expression = "device.driver == 'a'" } } } } }, 201)
  add("bad selectors", { spec = { selectors = { {}, { cel = { expression = "x" } } } } })
  add("configuration", { spec = { config = { opaque { a = 1 } } } }, 201)
  add("bad configuration", { spec = { config = { {}, opaque({ a = 1 }, ""), opaque(nil) } } })
  add("a resource, which is cut", { spec = { extendedResourceName = "A b" } }, 201)
  local real = path .. "/" .. ns
  rows[#rows + 1] = { "is made", "POST", path, { metadata = { name = ns }, spec = {} }, 201 }
  rows[#rows + 1] = { "a bad selector", "PATCH", real, { spec = { selectors = { {} } } }, 422 }
  rows[#rows + 1] = { "a good one", "PATCH", real, { spec = { selectors = { { cel = {
    expression = "true" } } } } }, 200 }
  rows[#rows + 1] = { "a label", "PATCH", real, { metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "as a table", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", real, nil, 200 }
  return rows
end)

both.describe("ResourceSlices", function(ns)
  local rows = {}
  local path = BASE .. "resourceslices"
  local base = { spec = { driver = "d.example.com", pool = { name = "p", generation = 1,
    resourceSliceCount = 1 }, nodeName = "n" } }
  local add = adder(rows, "ResourceSlice", path, base)
  local function spec(what, more, code) add(what, { spec = more }, code) end
  local function device(what, d, code)
    spec(what, { devices = { both.merge({ name = "v" }, d) } }, code)
  end
  local function attribute(what, key, a, code) device(what, { attributes = { [key] = a } }, code) end
  spec("no devices", {}, 201)
  rows[#rows + 1] = { "nothing", "POST", path, { metadata = { name = "x" }, spec = {} }, 422 }
  spec("a driver", { driver = "A_" })
  spec("a long driver", { driver = ("x"):rep(64) })
  spec("no pool", { pool = { name = "", generation = -1, resourceSliceCount = 0 } })
  spec("a pool", { pool = { name = "A_/b//c" } })
  spec("a pool of several parts", { pool = { name = "a/b.c" } }, 201)
  spec("a long pool", { pool = { name = ("x"):rep(254) } })
  spec("a node", { nodeName = "N_" })
  spec("no node", { nodeName = "" })
  spec("nowhere", { nodeName = both.NULL })
  spec("everywhere", { nodeName = both.NULL, allNodes = true }, 201)
  spec("not everywhere", { nodeName = both.NULL, allNodes = false })
  spec("on several", { allNodes = true, nodeSelector = { nodeSelectorTerms = { { matchExpressions = {
    { key = "a", operator = "Exists" } } } } } })
  spec("on some", { nodeName = both.NULL, nodeSelector = { nodeSelectorTerms = { { matchExpressions = {
    { key = "a", operator = "In", values = { "b" } } } } } } }, 201)
  spec("on two kinds", { nodeName = both.NULL, nodeSelector = { nodeSelectorTerms = { { matchExpressions = {
    { key = "a", operator = "In", values = { "b" } } } }, { matchFields = { { key = "metadata.name",
      operator = "In", values = { "b" } } } } } } })
  spec("by a bad selector", { nodeName = both.NULL, nodeSelector = { nodeSelectorTerms = { {
    matchExpressions = { { key = "a", operator = "Some" } } } } } })
  spec("what is cut", { perDeviceNodeSelection = true, sharedCounters = { { name = "A_" } } }, 201)
  device("a device", { attributes = { a = { string = "b" }, ["x.y/c"] = { int = 1 }, d = { bool = false },
    e = { version = "1.2.3-rc.1+b.007" } }, capacity = { memory = { value = "1Gi" } } }, 201)
  device("what is cut of it", { taints = { { key = "A b" } }, nodeName = "N_", allNodes = false,
    consumesCounters = { {} }, bindingConditions = { "a b" }, bindsToNode = true,
    allowMultipleAllocations = true, capacity = { memory = { value = "1Gi", requestPolicy = {
      validValues = { "1" } } } } }, 201)
  device("a name", { name = "A_" })
  spec("a device twice", { devices = { { name = "a" }, { name = "a" } } })
  spec("129 devices", { devices = many(129, function(i) return { name = "v" .. i } end) })
  attribute("no value", "a", {})
  attribute("two values", "a", { string = "b", int = 2 })
  attribute("all values", "a", { string = "b", int = 2, bool = true, version = "1.0.0" })
  attribute("a long text", "a", { string = ("x"):rep(65) })
  for _, version in ipairs { "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3-a..b",
    "v1.2.3", "" } do
    attribute("the version '" .. version .. "'", "a", { version = version })
  end
  attribute("a long version", "a", { version = "1.0.0-" .. ("x"):rep(60) })
  attribute("a key", "a-b", { int = 1 })
  attribute("an empty key", "", { int = 1 })
  attribute("a key without a domain", "/a", { int = 1 })
  attribute("a key without a name", "a.b/", { int = 1 })
  attribute("a bad domain", "A_/b", { int = 1 })
  attribute("a key of three parts", "a/b/c", { int = 1 }, 201)
  attribute("a long key", ("x"):rep(70) .. "/" .. ("y"):rep(40), { int = 1 })
  device("a key of a capacity", { capacity = { ["a b"] = { value = "1" } } })
  device("33 facts", { capacity = { c = { value = "1" } }, attributes = (function()
    local all = {}
    for i = 1, 32 do all["a" .. i] = { int = i } end
    return all
  end)() })
  local real = path .. "/" .. ns
  rows[#rows + 1] = { "is made", "POST", path, both.merge({ metadata = { name = ns } }, base), 201 }
  rows[#rows + 1] = { "what may not change", "PATCH", real, { spec = { driver = "e.example.com",
    pool = { name = "q" }, nodeName = "m" } }, 422 }
  rows[#rows + 1] = { "no node any more", "PATCH", real, { spec = { nodeName = both.NULL, allNodes = true } },
    422 }
  rows[#rows + 1] = { "a device more", "PATCH", real, { spec = { devices = { { name = "v" } } } }, 200 }
  rows[#rows + 1] = { "a label", "PATCH", real, { metadata = { labels = { a = "b" } } }, 200 }
  rows[#rows + 1] = { "as a table", "TABLE", real, nil, 200 }
  rows[#rows + 1] = { "without a version", "PUT", real, both.merge({ metadata = { name = ns } }, base), 200 }
  rows[#rows + 1] = { "is deleted", "DELETE", real, nil, 200 }
  return rows
end)
