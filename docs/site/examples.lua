-- examples.lua - an example for each function of the reference. spec/reference_spec.lua runs all of them.
--
-- `EXPRESSION --> VALUE` is a claim: strings, objects and lists are written as JSON, quantities and times as
-- their text. `plain` runs in stock Lua. `run` is the body of a reconcile(obj, ctx) over the objects of
-- `WORLD`, and `script` a whole script that has to start.

local M = {}

-- A certificate request as openssl makes it.
local REQUEST = assert(io.open "examples/cert-approver/sample.yaml"):read("a"):match "request: (%S+)"

--- What the examples of `run` find in their cluster; `obj` is the ConfigMap "card".
M.WORLD = ([[
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: card, namespace: default, labels: {app: web}}
data: {who: world}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: default}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: default, labels: {app: web}}
spec:
  nodeName: n1
  containers:
  - {name: app, image: "app:1", resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: default, labels: {app: web}}
spec: {containers: [{name: app, image: "app:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "app:1"}]}
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: jane}
spec: {request: REQUEST, signerName: example.com/people, usages: [client auth]}
]]):gsub("REQUEST", REQUEST)

M.plain = {
  -- values
  ["kube.array"] = 'kube.encode { tags = kube.array {} } --> "{\\"tags\\":[]}"',
  ["kube.object"] = 'kube.encode(kube.object {}) --> "{}"',
  ["kube.uint64"] = 'kube.uint64 "18446744073709551615" --> 18446744073709551615',
  ["kube.copy"] = [[
local mine = kube.copy(kube.decode '{"a":[1,2]}')
table.insert(mine.a, 3)
mine --> {"a":[1,2,3]}]],
  ["kube.id"] = [[
local seen = {}
seen[kube.id { cpu = "1" }] = true
seen[kube.id { cpu = "1" }] --> true]],
  ["kube.encode"] = 'kube.encode { b = 2, a = { 1 } } --> "{\\"a\\":[1],\\"b\\":2}"',
  ["kube.to_json"] = 'kube.to_json { ready = true } --> "{\\"ready\\":true}"',
  ["kube.decode"] = [[
local pod = kube.decode '{"spec":{"nodeName":"n1"}}'
pod.spec.nodeName       --> "n1"
pod("status.phase")     --> nil]],
  ["kube.json"] = 'kube.json("[1,2]")[2] --> 2',
  ["kube.yaml"] = [[
local list = kube.yaml "kind: Pod\n---\nkind: Node"
#list         --> 2
list[2].kind  --> "Node"]],
  ["kube.to_yaml"] = 'kube.to_yaml { a = { 1, 2 } } --> "a:\\n- 1\\n- 2\\n"',
  ["kube.is_view"] = [[
kube.is_view(kube.decode "{}")  --> true
kube.is_view {}                 --> false]],
  ["kube.base64_encode"] = 'kube.base64_encode "abc" --> "YWJj"',
  ["kube.base64_decode"] = 'kube.base64_decode "YWJj" --> "abc"',
  ["kube.equal"] = 'kube.equal({ a = { 1 } }, kube.decode \'{"a":[1]}\') --> true',
  ["kube.dig"] = [[
local pod = { spec = { containers = { { image = "app:1" } } } }
kube.dig(pod, "spec", "containers", 1, "image")  --> "app:1"
kube.dig(pod, "status", "phase")                 --> nil]],
  ["kube.columns"] = [[
local names, ages = kube.columns({ { name = "a", of = { age = 3 } }, { name = "b" } }, "name", "of.age")
names     --> ["a","b"]
ages[1]   --> 3
ages[2]   --> nil]],
  ["kube.milli_columns"] = [[
local cpu = kube.milli_columns({ { requests = { cpu = "1.5" } }, {} }, "requests.cpu")
cpu[1]  --> 1500
cpu[2]  --> 0]],
  ["kube.milli_sums"] = 'kube.milli_sums({ { cpu = "1.5" }, {}, { cpu = "250m" } }, "cpu") --> 1750',
  ["kube.is_column"] = 'kube.is_column({ { name = "a" }, { name = "b" } }, "name", { "a", "b" }) --> true',
  ["kube.pick"] = [[
local name, age, zone = kube.pick({ name = "a", of = { age = 3 } }, "name", "of.age", "of.zone")
name  --> "a"
age   --> 3
zone  --> nil]],
  ["kube.milli_pick"] = [[
local cpu, memory = kube.milli_pick({ cpu = "1.5", of = {} }, "cpu", "of.memory")
cpu     --> 1500
memory  --> nil]],
  ["kube.tally"] = [[
local sums = kube.tally { key = { "name" }, amounts = { "cpu" } }
local list = kube.decode '[{"name":"a","cpu":"1"},{"name":"b","cpu":"500m"},{"name":"c","cpu":"2"}]'
sums:count(list, { a = 1, c = 1 })
local n, cpu = sums:sum(1)
n    --> 2
cpu  --> 3000]],
  ["kube.places"] = [[
local at, texts = kube.places({ { ns = "a", name = "x" }, { ns = "b", name = "x" } }, "ns", "name")
at["b/x"]  --> 2
texts      --> 2]],
  ["kube.merge"] = 'kube.merge({ a = { b = 1 } }, { a = { c = 2 } }) --> {"a":{"b":1,"c":2}}',
  ["kube.hash"] = [[
#kube.hash { image = "app:1" }                                        --> 10
kube.hash { image = "app:1" } == kube.hash { image = "app:2" }        --> false]],
  ["kube.template"] = 'kube.template("hello {{ a.b }}", { a = { b = "card" } }) --> "hello card"',
  -- errors
  ["kube.try"] = [[
local value, err = kube.try(kube.decode, "{")
value     --> nil
err.kind  --> "syntax"]],
  ["kube.is_error"] = [[
local _, err = kube.try(kube.decode, "{")
kube.is_error(err)   --> true
kube.is_error "no"   --> false]],
  ["kube.retry_on_conflict"] = [[
local calls = 0
kube.retry_on_conflict(function()
  calls = calls + 1
  return calls
end)   --> 1]],
  -- quantities
  ["kube.qty"] = 'kube.qty "500m" + "1500m" --> 2',
  ["kube.milli"] = 'kube.milli(250) --> 250m',
  ["kube.to_milli"] = 'kube.to_milli "1.5" --> 1500',
  ["kube.is_quantity"] = 'kube.is_quantity(kube.qty(1)) --> true',
  ["kube.max"] = 'kube.max("1Gi", "512Mi") --> 1Gi',
  ["kube.min"] = 'kube.min(3, 2) --> 2',
  ["kube.requests"] = [[
local pod = { spec = { containers = {
  { resources = { requests = { cpu = "1" } } }, { resources = { requests = { cpu = "500m" } } } } } }
kube.requests(pod).cpu --> 1500m]],
  ["kube.limits"] = [[
local pod = { spec = { containers = { { resources = { limits = { memory = "1Gi" } } } } } }
kube.limits(pod).memory --> 1Gi]],
  ["quantity:value"] = 'kube.qty("1500m"):value() --> 2',
  ["quantity:milli"] = 'kube.qty("1.5"):milli() --> 1500',
  ["quantity:scaled"] = 'kube.qty("2k"):scaled(3) --> 2',
  ["quantity:number"] = 'kube.qty("500m"):number() --> 0.5',
  ["quantity:sign"] = 'kube.qty("-1"):sign() --> -1',
  ["quantity:is_zero"] = 'kube.qty("0"):is_zero() --> true',
  ["quantity:cmp"] = 'kube.qty("1"):cmp "1000m" --> 0',
  ["quantity:canonical"] = 'kube.qty("1000m"):canonical() --> "1"',
  ["quantity:format"] = 'kube.qty("1Gi"):format() --> "BinarySI"',
  ["kube.certificate_request"] = [[
local request, key = kube.certificate_request {
  cn = "jane", o = { "developers" }, dns = { "jane.example.com" },
}
request:match "^[^\n]+"   --> "-----BEGIN CERTIFICATE REQUEST-----"
key:match "^[^\n]+"       --> "-----BEGIN EC PRIVATE KEY-----"]],
  -- time
  ["kube.duration"] = '(kube.duration "1h5m" - kube.duration "5m") * 2 --> 7200',
  ["kube.format_duration"] = 'kube.format_duration(kube.duration "1h" + 300) --> "1h5m0s"',
  ["kube.time"] = 'kube.time "2026-01-01T00:00:00Z" + "1h" --> 2026-01-01T01:00:00Z',
  ["kube.format_time"] = 'kube.format_time(0) --> "1970-01-01T00:00:00Z"',
  ["kube.cron"] = 'kube.cron("@daily"):next "2026-01-01T12:00:00Z" --> 2026-01-02T00:00:00Z',
  ["time:unix"] = 'kube.time("1970-01-01T00:01:00Z"):unix() --> 60',
  ["time:seconds"] = 'kube.time("1970-01-01T00:00:00.5Z"):seconds() --> 0.5',
  ["time:micro"] = 'kube.time(0):micro() --> "1970-01-01T00:00:00.000000Z"',
  -- selectors
  ["kube.selector"] = 'kube.selector("app in (web, db)"):matches { app = "db" } --> true',
  ["selector:matches"] = 'kube.selector({ matchLabels = { app = "web" } }):matches { app = "db" } --> false',
  ["selector:is_empty"] = 'kube.selector(""):is_empty() --> true',
  -- objects
  ["kube.kind_of"] = [[
kube.kind_of { apiVersion = "apps/v1", kind = "Deployment" } --> "apps/v1/Deployment"]],
  ["kube.from_template"] = [[
local template = { metadata = { labels = { app = "web" } }, spec = { replicas = 1 } }
local o = kube.from_template(template, { kind = "apps/v1/Deployment", name = "web" })
o.metadata.labels.app  --> "web"
o.metadata.name        --> "web"]],
  ["kube.set_controller"] = [[
local owner = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card", uid = "u-1" } }
local child = kube.set_controller(owner, { kind = "v1/Secret", metadata = { name = "key" } })
kube.controller_of(child).name --> "card"]],
  ["kube.set_owner"] = [[
local owner = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card", uid = "u-1" } }
local child = kube.set_owner(owner, { kind = "v1/Secret", metadata = { name = "key" } })
kube.controller_of(child)          --> nil
kube.is_owned_by(child, owner)     --> true]],
  ["kube.remove_owner"] = [[
local owner = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card", uid = "u-1" } }
local child = kube.set_owner(owner, { kind = "v1/Secret", metadata = { name = "key" } })
kube.remove_owner(owner, child) --> true]],
  ["kube.controller_of"] = 'kube.controller_of { kind = "v1/Pod", metadata = { name = "alone" } } --> nil',
  ["kube.is_owned_by"] = [[
local owner = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card", uid = "u-1" } }
kube.is_owned_by({ kind = "v1/Pod", metadata = { name = "alone" } }, owner) --> false]],
  ["kube.add_finalizer"] = [[
local o = { metadata = { name = "card" } }
kube.add_finalizer(o, "example.com/dns")  --> true
kube.add_finalizer(o, "example.com/dns")  --> false]],
  ["kube.has_finalizer"] = [[
local o = { metadata = { finalizers = { "a.b/c" } } }
kube.has_finalizer(o, "a.b/c") --> true]],
  ["kube.remove_finalizer"] = [[
local o = { metadata = { finalizers = { "a.b/c" } } }
kube.remove_finalizer(o, "a.b/c") --> true
o.metadata.finalizers             --> nil]],
  ["kube.set_condition"] = [[
local o = { apiVersion = "v1", kind = "Pod", metadata = { name = "web-0" } }
kube.set_condition(o, { type = "Ready", status = "True", reason = "Synced" })  --> true
kube.set_condition(o, { type = "Ready", status = "True", reason = "Synced" })  --> false
o.status.conditions[1].type                                                   --> "Ready"]],
  ["kube.find_condition"] = [[
local o = { status = { conditions = { { type = "Ready", status = "True" } } } }
kube.find_condition(o, "Ready").status --> "True"]],
  ["kube.remove_condition"] = [[
local o = { status = { conditions = { { type = "Ready", status = "True" } } } }
kube.remove_condition(o.status, "Ready") --> true]],
  ["kube.extract"] = [[
local o = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card", namespace = "default" } }
kube.extract(o, "hello").metadata.name --> "card"]],
  ["kube.adopt_fields"] = [[
local o = { metadata = { name = "card", managedFields = { { manager = "old", operation = "Update",
  apiVersion = "v1", fieldsType = "FieldsV1", fieldsV1 = { ["f:data"] = { ["f:a"] = {} } } } } } }
kube.adopt_fields(o, "old", "hello") --> true]],
  -- computing
  ["kube.merge_patch"] = 'kube.merge_patch({ a = 1, b = 2 }, { a = 1, b = 3 }) --> {"b":3}',
  ["kube.strategic_patch"] = [[
local before = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card" }, data = { a = "1" } }
local after = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "card" }, data = { a = "2" } }
kube.strategic_patch(before, after) --> {"data":{"a":"2"}}]],
  ["kube.name_problem"] = 'kube.name_problem("dns1123_label", "web-0") --> nil',
  ["kube.generate_name"] = '#kube.generate_name "web-" --> 9',
  ["kube.share"] = [[
kube.share("25%", 10)        --> 2
kube.share("25%", 10, "up")  --> 3]],
  -- programs
  ["kube.ttl_store"] = [[
local now = 0
local store = kube.ttl_store("1m", { clock = function() return now end })
store:put { kind = "v1/ConfigMap", name = "card" }
store:get("card").metadata.name  --> "card"
now = 61
store:get "card"                 --> nil]],
  ["ttl_store:put"] = [[
local store = kube.ttl_store "1m"
store:put { kind = "v1/ConfigMap", name = "card" }
store:len() --> 1]],
  ["ttl_store:get"] = 'kube.ttl_store "1m":get "card" --> nil',
  ["ttl_store:delete"] = [[
local store = kube.ttl_store "1m"
store:put { kind = "v1/ConfigMap", name = "card" }
store:delete "card"
store:len() --> 0]],
  ["ttl_store:list"] = [[
local store = kube.ttl_store("1m", function(o) return o.metadata.namespace end)
store:put { kind = "v1/ConfigMap", namespace = "a", name = "old" }
store:put { kind = "v1/ConfigMap", namespace = "a", name = "new" }
store:list()[1].metadata.name --> "new"]],
  ["ttl_store:keys"] = [[
local store = kube.ttl_store "1m"
store:put { kind = "v1/ConfigMap", namespace = "a", name = "card" }
store:keys() --> ["a/card"] ]],
  ["ttl_store:len"] = 'kube.ttl_store("1m"):len() --> 0',
  ["kube.crd"] = [[
kube.crd {
  group = "example.com", kind = "Site", version = "v1",
  schema = kube.schema { spec = { { host = "string!" } } },
}   --> "example.com/v1/Site"]],
  ["kube.schema"] = [[
local schema = kube.schema { spec = { { host = "string!", replicas = "integer" } } }
schema.properties.spec.required --> ["host"] ]],
  ["kube.deny"] = 'kube.is_error(kube.deny "no image without a version") --> false',
}

M.run = {
  ["ctx:get"] = [[
ctx:get("v1/Pod", "web-0").spec.nodeName           --> "n1"
ctx:get("v1/Pod", "default", "gone")               --> nil]],
  ["ctx:list"] = '#ctx:list("v1/Pod", { labels = "app=web" }) --> 2',
  ["ctx:each"] = [[
local names = {}
for pod in ctx:each "v1/Pod" do table.insert(names, pod.metadata.name) end
names --> ["web-0","web-1"] ]],
  ["ctx:apply"] = [[
ctx:apply { kind = "v1/Secret", name = "key", stringData = { a = "1" } }
kube.controller_of(ctx.live:get("v1/Secret", "key")).name --> "card"]],
  ["ctx:create"] = 'ctx:create { kind = "v1/Secret", name = "key" }.metadata.name --> "key"',
  ["ctx:update"] = [[
local pod = kube.copy(ctx:get("v1/Pod", "web-1"))
pod.metadata.labels.tier = "front"
ctx:update(pod).metadata.labels.tier --> "front"]],
  ["ctx:create_or_update"] = [[
local key, how = ctx:create_or_update({ kind = "v1/Secret", name = "key" }, function(draft)
  draft.type = "Opaque"
end)
how --> "created"]],
  ["ctx:create_or_patch"] = [[
local card, how = ctx:create_or_patch({ kind = "v1/ConfigMap", name = "card" }, function(draft)
  draft.data.who = "you"
end)
how --> "updated"]],
  ["ctx:delete"] = [[
ctx:delete("v1/Pod", "web-1")  --> true
ctx:delete("v1/Pod", "gone")   --> true]],
  ["ctx:patch"] = [[
ctx:patch(obj, function(draft) draft.data.greeting = "Hello" end).data.greeting  --> "Hello"
ctx:patch(obj, { data = { who = kube.null } })("data.who")                      --> nil]],
  ["ctx:patch_status"] = [[
local pod = ctx:get("v1/Pod", "web-0")
ctx:patch_status(pod, { reason = "Slow" }).status.reason --> "Slow"]],
  ["ctx:merge_status"] = [[
local pod = ctx:get("v1/Pod", "web-0")
ctx:merge_status(pod, { message = "warm" }).status.phase --> "Running"]],
  ["ctx:update_status"] = [[
local pod = kube.copy(ctx:get("v1/Pod", "web-0"))
pod.status.phase = "Succeeded"
ctx:update_status(pod).status.phase --> "Succeeded"]],
  ["ctx:apply_status"] = [[
local o = { kind = "apps/v1/Deployment", name = "web", status = { observedGeneration = 1 } }
ctx:apply_status(o).status.observedGeneration --> 1]],
  ["ctx:at"] = 'type(ctx.at) --> "function"',
  ["ctx:event"] = 'ctx:event("Greeted", "greeted %s", obj.data.who)',
  ["ctx:warn"] = 'ctx:warn("Late", "no answer for %s", "10s")',
  ["ctx:now"] = 'ctx:now() --> 2026-01-01T00:00:00Z',
  ["ctx:age"] = 'ctx:age "2025-12-31T23:59:00Z" --> 60',
  ["ctx.secret"] = [[
tostring(ctx.secret "token")              --> "***"
ctx.secret("token"):format "Bearer %s"    --> ***]],
  ["ctx:sleep"] = 'ctx:sleep "0s"',
  ["ctx:adopt"] = 'kube.controller_of(ctx:adopt(ctx:get("v1/Pod", "web-0"))).name --> "card"',
  ["ctx:release"] = [[
local pod = ctx:adopt(ctx:get("v1/Pod", "web-0"))
kube.controller_of(ctx:release(pod)) --> nil]],
  ["ctx:claim"] = '#ctx:claim("v1/Pod", { labels = "app=web" }) --> 2',
  ["ctx:owned"] = '#ctx:owned "v1/Secret" --> 0',
  ["ctx:evict"] = 'ctx:evict "default/web-0" --> true',
  ["ctx:bind"] = 'ctx:bind("default/web-1", "n1") --> true',
  ["ctx:scale"] = 'ctx:scale("apps/v1/Deployment", "web", 5).spec.replicas --> 5',
  ["ctx:get_scale"] = 'ctx:get_scale("apps/v1/Deployment", "web").spec.replicas --> 2',
  ["ctx:token"] = 'type(ctx:token("default/robot", { expiration = "1h" })) --> "string"',
  ["ctx:finalize"] = 'ctx:finalize("default").metadata.name --> "default"',
  ["ctx:approve"] = 'ctx:approve("jane").status.conditions[1].type --> "Approved"',
  ["ctx:deny"] = 'ctx:deny("jane", { reason = "Unknown" }).status.conditions[1].reason --> "Unknown"',
  ["ctx:delete_collection"] = '#ctx:delete_collection("v1/Pod", { namespace = "default" }).items --> 2',
  ["ctx.live:get"] = 'ctx.live:get("v1/Node", "n1").metadata.name --> "n1"',
  ["ctx.live:list"] = '#ctx.live:list("v1/Pod", { labels = "app=web" }) --> 2',
  ["ctx.live:each"] = [[
local n = 0
for _ in ctx.live:each "v1/Pod" do n = n + 1 end
n --> 2]],
  ["ctx.http:get"] = [[
ctx.http:get("https://dns.example.com/records/a").json.ip                        --> "10.0.0.1"
ctx.http:get("https://dns.example.com/records/b", { expect = 404 }).status       --> 404]],
  ["ctx.http:head"] = 'ctx.http:head("https://dns.example.com/records/a").status --> 200',
  ["ctx.http:post"] = [[
local answer = ctx.http:post("https://dns.example.com/records/a", { json = { ip = "10.0.0.2" } })
answer.status --> 200]],
  ["ctx.http:put"] = 'ctx.http:put("https://dns.example.com/records/a", { body = "text" }).status --> 200',
  ["ctx.http:patch"] = [[
local answer = ctx.http:patch("https://dns.example.com/records/a", { json = { ttl = 60 } })
answer.status --> 200]],
  ["ctx.http:delete"] = 'ctx.http:delete("https://dns.example.com/records/a").status --> 200',
  ["kube.retry"] = 'return kube.retry("30s", "waits for the volume") --> retry',
  ["kube.fail"] = 'return kube.fail "the host name is not a name" --> fail',
  ["kube.shared:get"] = 'kube.shared:get "leader" --> nil',
  ["kube.shared:set"] = [[
kube.shared:set("limits", { cpu = 4 })
kube.shared:get("limits").cpu --> 4]],
  ["kube.shared:incr"] = 'kube.shared:incr("seen", 2) --> 2',
  ["kube.shared:cas"] = 'kube.shared:cas("leader", nil, "card") --> true',
  ["kube.shared:names"] = [[
kube.shared:set("a/1", true)
kube.shared:names "a/" --> ["a/1"] ]],
}

-- `c` is a client of the same cluster; `synced(kind)` an informer that holds what there is.
M.client = {
  ["kube.connect"] = 'kube.connect({ server = c:server() }):get("v1/Node", "n1").metadata.name --> "n1"',
  ["c:resource"] = 'c:resource("v1/Pod").plural --> "pods"',
  ["c:resources"] = '#c:resources { group = "batch" } --> 2',
  ["c:get"] = [[
c:get("v1/Pod", "default", "web-0").spec.nodeName  --> "n1"
c:get("v1/Pod", "default/gone")                    --> nil]],
  ["c:list"] = '#c:list("v1/Pod", { labels = "app=web" }) --> 2',
  ["c:each"] = [[
local names = {}
for pod in c:each "v1/Pod" do table.insert(names, pod.metadata.name) end
names --> ["web-0","web-1"] ]],
  ["c:table"] = 'c:table("v1/Pod").columns[1].name --> "Name"',
  ["c:watch"] = [[
local event, node
for e, o in c:watch "v1/Node" do
  event, node = e, o
  break
end
event               --> "ADDED"
node.metadata.name  --> "n1"]],
  ["c:create"] = 'c:create({ kind = "v1/Secret", name = "key" }).metadata.namespace --> "default"',
  ["c:update"] = [[
local pod = kube.copy(c:get("v1/Pod", "default/web-0"))
pod.metadata.labels.tier = "front"
c:update(pod).metadata.labels.tier --> "front"]],
  ["c:apply"] = 'c:apply({ kind = "v1/ConfigMap", name = "other", data = { a = "1" } }).data.a --> "1"',
  ["c:patch"] = [[
local card = c:get("v1/ConfigMap", "default/card")
c:patch(card, function(draft) draft.data.who = "moon" end).data.who --> "moon"]],
  ["c:patch_status"] = [[
local pod = c:get("v1/Pod", "default/web-0")
c:patch_status(pod, { phase = "Failed" }).status.phase --> "Failed"]],
  ["c:delete"] = 'c:delete("v1/Pod", "default/web-0") --> true',
  ["c:raw"] = 'c:raw("GET", "/api/v1/namespaces/default").kind --> "Namespace"',
  ["c:version"] = 'c:version().major --> "1"',
  ["c:warnings"] = '#c:warnings() --> 0',
  ["c:namespace"] = 'c:namespace() --> "default"',
  ["c:server"] = 'c:server():match "^%l+" --> "http"',
  ["c:close"] = 'c:close()',
  ["c:create_or_update"] = [[
local o, how = c:create_or_update({ kind = "v1/Secret", name = "key" }, function(draft)
  draft.type = "Opaque"
end)
how --> "created"]],
  ["c:create_or_patch"] = [[
local o, how = c:create_or_patch({ kind = "v1/ConfigMap", name = "card" }, function(draft)
  draft.data.who = "you"
end)
how --> "updated"]],
  ["c:wait_for"] = [[
c:wait_for("v1/Pod", "default/web-0", "status.phase=Running", { timeout = "1m" }).metadata.name --> "web-0"]],
  ["c:ensure_crd"] = '#c:ensure_crd "examples/catset/crd.yaml" --> 1',
  ["c:apply_file"] = 'c:apply_file("examples/janitor/sample.yaml")[1].kind --> "ConfigMap"',
  ["c:delete_file"] = [[
c:apply_file "examples/janitor/sample.yaml"
c:delete_file "examples/janitor/sample.yaml"]],
  ["c:add_finalizer"] = [[
local card = c:get("v1/ConfigMap", "default/card")
kube.has_finalizer(c:add_finalizer(card, "example.com/dns"), "example.com/dns") --> true]],
  ["c:remove_finalizer"] = [[
local card = c:add_finalizer(c:get("v1/ConfigMap", "default/card"), "example.com/dns")
c:remove_finalizer(card, "example.com/dns")("metadata.finalizers") --> nil]],
  ["c:adopt"] = [[
local card, pod = c:get("v1/ConfigMap", "default/card"), c:get("v1/Pod", "default/web-0")
kube.controller_of(c:adopt(card, pod)).name --> "card"]],
  ["c:release"] = [[
local card, pod = c:get("v1/ConfigMap", "default/card"), c:get("v1/Pod", "default/web-0")
kube.controller_of(c:release(card, c:adopt(card, pod))) --> nil]],
  ["c:cordon"] = 'c:cordon("n1").spec.unschedulable --> true',
  ["c:uncordon"] = 'c:uncordon("n1")("spec.unschedulable") --> nil',
  ["c:drain"] = [[
c:delete("v1/Pod", "default/web-0", { grace = 0 })
#c:drain("n1", { force = true, timeout = "30s" }) --> 0]],
  ["informers:informer"] = [[
local f = kube.informers(c)
local pods = f:informer "v1/Pod"
f:start()
f:wait_synced "10s"     --> true
pods:store():len()      --> 2]],
  ["kube.informers"] = 'kube.informers(c):informer("v1/Pod"):synced() --> false',
  ["informers:lister"] = 'kube.informers(c):lister("v1/Pod"):get "default/web-0" --> nil',
  ["informers:start"] = 'kube.informers(c):start()',
  ["informers:wait_synced"] = 'kube.informers(c):wait_synced "1s" --> true',
  ["informers:poll"] = [[
local f, seen = kube.informers(c), {}
f:informer("v1/Node"):on { add = function(node) table.insert(seen, node.metadata.name) end }
f:start()
f:wait_synced "10s" --> true
while f:poll() == 0 do end
seen --> ["n1"] ]],
  ["informers:run"] = 'kube.informers(c):run "0s"',
  ["informers:stop"] = [[
local f = kube.informers(c)
f:informer("v1/Node"):on { add = function() f:stop() end }
f:start()
f:run "10s"]],
  ["informers:shutdown"] = 'kube.informers(c):shutdown()',
  ["informer:on"] = [[
local pods = kube.informers(c):informer "v1/Pod"
pods:on({ delete = function(pod) print(pod.metadata.name) end }):synced() --> false]],
  ["informer:synced"] = 'kube.informers(c):informer("v1/Pod"):synced() --> false',
  ["informer:store"] = 'kube.informers(c):informer("v1/Pod"):store():len() --> 0',
  ["informer:indexer"] = 'kube.informers(c):informer("v1/Pod"):indexer():len() --> 0',
  ["informer:lister"] = '#kube.informers(c):informer("v1/Pod"):lister():list() --> 0',
  ["informer:stats"] = 'kube.informers(c):informer("v1/Pod"):stats().objects --> 0',
  ["informer:release"] = 'kube.informers(c):informer("v1/Pod"):release()',
  ["store:get"] = 'synced("v1/Pod"):store():get("default/web-0").spec.nodeName --> "n1"',
  ["store:has"] = 'synced("v1/Pod"):store():has "default/gone" --> false',
  ["store:list"] = '#synced("v1/Pod"):store():list { labels = "app=web" } --> 2',
  ["store:keys"] = 'synced("v1/Pod"):store():keys() --> ["default/web-0","default/web-1"]',
  ["store:len"] = 'synced("v1/Pod"):store():len() --> 2',
  ["indexer:add_index"] = [[
local pods = synced("v1/Pod"):indexer()
pods:add_index("node", "spec.nodeName")
pods:index_values "node" --> ["n1"] ]],
  ["indexer:by_index"] = '#synced("v1/Pod"):indexer():by_index("namespace", "default") --> 2',
  ["indexer:index_keys"] = 'synced("v1/Node"):indexer():index_keys("namespace", "x") --> {}',
  ["indexer:index_values"] = 'synced("v1/Pod"):indexer():index_values "namespace" --> ["default"]',
  ["lister:get"] = 'synced("v1/Pod"):lister():get("default", "web-0").metadata.name --> "web-0"',
  ["lister:list"] = '#synced("v1/Pod"):lister():list() --> 2',
  ["lister:namespace"] = '#synced("v1/Pod"):lister():namespace("kube-system"):list() --> 0',
  ["namespace_lister:get"] = [[
local lister = synced("v1/Pod"):lister()
lister:namespace("default"):get("web-0").metadata.name --> "web-0"]],
  ["namespace_lister:list"] = '#synced("v1/Pod"):lister():namespace("default"):list { limit = 1 } --> 1',
  ["handler:remove"] = 'kube.informers(c):informer("v1/Pod"):on({ add = print }):remove()',
  ["handler:synced"] = 'kube.informers(c):informer("v1/Pod"):on({ add = print }):synced() --> false',
  ["kube.manager"] = [[
local m <close> = kube.manager { client = c, controllers = { "controllers/hello.lua" } }
m:start()
while not m:ready() do m:step "1s" end
m:controllers()[1].name --> "hello"]],
  ["m:start"] = 'kube.manager { client = c }:start():ready() --> true',
  ["m:step"] = 'kube.manager { client = c }:start():step "10ms" <= 1 --> true',
  ["m:fd"] = 'kube.manager { client = c }:fd() > 2 --> true',
  ["m:run"] = 'kube.manager { client = c }:start():run "10ms"',
  ["m:stop"] = [[
local m
m = kube.manager {
  client = c,
  controllers = { "controllers/hello.lua" },
  on_change = function() m:stop() end,
}
m:start()
m:run()
m:ready() --> false]],
  ["m:ready"] = [[
local m <close> = kube.manager { client = c, controllers = { "controllers/hello.lua" } }
m:ready() --> false]],
  ["m:leading"] = 'kube.manager { client = c }:start():leading() --> true',
  ["m:controllers"] = [[
local m <close> = kube.manager { client = c, controllers = { "controllers/hello.lua" } }
m:start()
while not m:ready() do m:step "1s" end
m:controllers()[1].state --> "running"]],
  ["m:reload"] = [[
local m <close> = kube.manager { client = c, controllers = { "controllers/hello.lua" } }
m:start()
m:reload()[1].result --> "unchanged"]],
  ["m:metrics"] = 'kube.manager { client = c }:metrics():match "process_cpu_sec" --> "process_cpu_sec"',
  ["m:addresses"] = [[
local m = kube.manager { client = c, metrics = "127.0.0.1:0" }:start()
m:addresses():match "^127.0.0.1:" --> "127.0.0.1:"]],
  ["kube.recorder"] = [[
local r = kube.recorder(c, { component = "backup" })
r:event(c:get("v1/ConfigMap", "default/card"), "Saved", "saved %d keys", 3)
r:flush "10s" --> true
r:close()]],
  ["recorder:event"] = [[
local r <close> = kube.recorder(c, { component = "backup" })
r:event(c:get("v1/ConfigMap", "default/card"), { reason = "Saved", action = "Save" }, "saved %d keys", 3)
r:flush() --> true]],
  ["recorder:warn"] = [[
local r <close> = kube.recorder(c, { component = "backup" })
r:warn(c:get("v1/ConfigMap", "default/card"), "NotSaved", "the disk is full")
r:flush() --> true]],
  ["recorder:flush"] = 'kube.recorder(c, { component = "backup" }):flush "1s" --> true',
  ["recorder:stats"] = 'kube.recorder(c, { component = "backup" }):stats().waiting --> 0',
  ["recorder:close"] = 'kube.recorder(c, { component = "backup" }):close()',
}

--- Examples that need a pod. Their namespace has the pod "web-0", whose log has two lines and which serves
--- HTTP on port 8080.
M.pod = {
  ["c:logs"] = [[
local lines = {}
for line in c:logs("web-0", { tail = 2 }) do lines[#lines + 1] = line end
lines --> ["one","two"] ]],
  ["c:exec"] = [[
local r = c:exec("web-0", { "sh", "-c", "cat; exit 3" }, { stdin = "hello" })
r.stdout --> "hello"
r.code   --> 3]],
  ["c:exec_stream"] = [[
local s <close> = c:exec_stream("web-0", { "sh", "-c", "echo hello" })
s:read() --> "hello\n"
s:wait() --> 0]],
  ["c:attach"] = [[
local s <close> = c:attach("web-0", { stdin = true })
s:write "hello"
s:close_stdin()
s:wait() --> 0]],
  ["c:port_forward"] = [[
local f <close> = c:port_forward("web-0", 8080)
kube.http:get("http://" .. f:address(8080) .. "/text").body --> "a text"]],
  ["c:port_stream"] = [[
local s <close> = c:port_stream("web-0", 8080)
s:write "GET /text HTTP/1.0\r\n\r\n"
s:read():match "^HTTP/1.1 200" --> "HTTP/1.1 200"]],
  ["stream:read"] = [[
local s <close> = c:exec_stream("web-0", { "sh", "-c", "echo no >&2" })
local bytes, from = s:read()
bytes    --> "no\n"
from     --> "stderr"
s:read() --> nil]],
  ["stream:try_read"] = [[
local s <close> = c:exec_stream("web-0", { "cat" }, { stdin = true })
s:try_read() --> false]],
  ["stream:write"] = [[
local s <close> = c:exec_stream("web-0", { "cat" }, { stdin = true })
s:write "hello"
s:read() --> "hello"]],
  ["stream:close_stdin"] = [[
local s <close> = c:exec_stream("web-0", { "cat" }, { stdin = true })
s:close_stdin()
s:wait() --> 0]],
  ["stream:resize"] = [[
local s <close> = c:exec_stream("web-0", { "sh" }, { stdin = true, tty = true })
s:resize(120, 40)]],
  ["stream:wait"] = 'c:exec_stream("web-0", { "sh", "-c", "exit 3" }):wait() --> 3',
  ["stream:protocol"] = 'c:exec_stream("web-0", { "true" }):protocol() --> "v5.channel.k8s.io"',
  ["stream:close"] = 'c:exec_stream("web-0", { "cat" }, { stdin = true }):close()',
  ["forward:address"] = 'c:port_forward("web-0", 8080):address(8080):match "^127.0.0.1:" --> "127.0.0.1:"',
  ["forward:state"] = 'c:port_forward("web-0", 8080):state().failure --> nil',
  ["forward:close"] = 'c:port_forward("web-0", 8080):close()',
}

M.script = {
  ["kube.controller"] = [[
local kube = require "kubelua"

return kube.controller {
  name = "labels",
  resource = "v1/ConfigMap",
  reconcile = function(obj, ctx)
    ctx:patch(obj, function(draft) draft.metadata.labels.seen = "yes" end)
  end,
}]],
  ["kube.webhook"] = [[
local kube = require "kubelua"

return kube.webhook {
  name = "no-latest",
  resource = "v1/Pod",
  validate = function(pod)
    for _, container in ipairs(pod.spec.containers) do
      if container.image:find ":latest$" then return kube.deny(container.image .. " has no version") end
    end
  end,
}]],
  ["kube.counter"] = [[
local kube = require "kubelua"
local greeted = kube.counter { name = "greeted_total", help = "Cards that were greeted.", labels = { "who" } }

return kube.controller {
  name = "greet",
  resource = "v1/ConfigMap",
  reconcile = function(obj) greeted:inc(1, { who = obj("data.who") or "nobody" }) end,
}]],
  ["kube.gauge"] = [[
local kube = require "kubelua"
local size = kube.gauge { name = "card_fields", help = "Fields of a card.", labels = { "name" } }

return kube.controller {
  name = "measure",
  resource = "v1/ConfigMap",
  reconcile = function(obj)
    local n = 0
    for _ in pairs(obj.data or {}) do n = n + 1 end
    size:set(n, { name = obj.metadata.name })
  end,
}]],
  ["kube.histogram"] = [[
local kube = require "kubelua"
local age = kube.histogram { name = "card_age_seconds", help = "Age of a card.", buckets = { 60, 3600 } }

return kube.controller {
  name = "ages",
  resource = "v1/ConfigMap",
  reconcile = function(obj, ctx) age:observe(ctx:age(obj.metadata.creationTimestamp)) end,
}]],
}

-- A script that counts something.
local METRIC = [[
local kube = require "kubelua"
local %s

return kube.controller {
  name = "counts",
  resource = "v1/ConfigMap",
  reconcile = function(obj) %s end,
}]]
for name, parts in pairs {
  ["counter:inc"] = { 'seen = kube.counter { name = "seen_total", help = "Cards", labels = { "namespace" } }',
    "seen:inc(1, { namespace = obj.metadata.namespace })" },
  ["gauge:set"] = { 'size = kube.gauge { name = "card_words", help = "Words on the last card." }',
    "size:set(#obj.data.who)" },
  ["gauge:inc"] = { 'open = kube.gauge { name = "cards_open", help = "Cards that wait." }', "open:inc()" },
  ["gauge:dec"] = { 'open = kube.gauge { name = "cards_open", help = "Cards that wait." }', "open:dec(2)" },
  ["gauge:remove"] = { 'size = kube.gauge { name = "words", help = "Words of cards.", labels = { "name" } }',
    "size:remove { name = obj.metadata.name }" },
  ["histogram:observe"] = { 'words = kube.histogram { name = "words", help = "Words.", buckets = { 1, 10 } }',
    "words:observe(#obj.data.who)" },
} do
  M.script[name] = METRIC:format(parts[1], parts[2])
end

return M
