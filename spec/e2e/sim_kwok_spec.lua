-- sim_kwok_spec.lua - `kubelua sim --recording` with a recording of `kwokctl snapshot record`.
-- not in tsan: a simulation has one thread

local bisect = require "kubelua.sim.bisect"
local core = require "kubelua.core"
local kwok = require "kubelua.sim.kwok"
local process = require "support.process"
local recording = require "kubelua.sim.recording"
local run = require "kubelua.sim.run"
local settings = require "kubelua.sim.settings"

local KOORDINATOR = "controllers/koordinator/"

local OBJECTS = [[
apiVersion: v1
kind: Node
metadata: {name: a, resourceVersion: "7"}
status: {capacity: {cpu: "16", memory: 64Gi}, allocatable: {cpu: "16", memory: 64Gi}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data: {colocation-config: '{"enable":true}'}
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
  labels: {app: web, old: "yes"}
  finalizers: [a, b]
spec:
  nodeName: a
  priority: 9000
  containers: [{name: m, image: i, resources: {requests: {cpu: "4", memory: 2Gi}}}]
status:
  phase: Running
  conditions:
  - {type: PodScheduled, status: "True"}
  - {type: Ready, status: "False", reason: Starting}
]]

-- A change `seconds` after the first one, of a pod unless the rest of the words says otherwise.
local function change(seconds, how, name, template, plural)
  return ([[
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: %s}
target: {name: %s%s}
durationNanosecond: %d
method: %s
%s]]):format(plural or "pods", name, plural and "" or ", namespace: default", seconds * 1000000000, how,
    template and "template: " .. template .. "\n" or "")
end

local GUEST = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"guest","namespace":"default"},"spec":{\z
  "priority":9000,"containers":[{"name":"m","image":"i","resources":{"requests":{"cpu":"2",\z
    "memory":"2Gi"}}}]}}'
local READY = '{"metadata":{"labels":{"old":null},"$setElementOrder/finalizers":["b"],\z
  "$deleteFromPrimitiveList/finalizers":["a"]},"status":{"$setElementOrder/conditions":[{"type":"Ready"},\z
  {"type":"PodScheduled"}],"conditions":[{"type":"Ready","status":"True","reason":null}]}}'

local SAMPLE = OBJECTS
  .. change(0, "patch", "web", READY)
  .. change(300, "create", "guest", GUEST)
  .. change(301, "patch", "guest", '{"spec":{"nodeName":"a"},"status":{"phase":"Running"}}')
  .. change(600, "create", "b", '{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"},"status":{\z
    "capacity":{"cpu":"16","memory":"64Gi"}}}', "nodes")
  .. change(900, "patch", "web", '{"status":{"phase":"Succeeded"}}')
  .. change(1000, "create", "x", '{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}', "services")
  .. change(1500, "delete", "guest")
  .. change(1800, "delete", "b", nil, "nodes")

local function file(text) return process.write(process.tmpname ".yaml", text) end

local function cell(path, from, seconds)
  return { scripts = { KOORDINATOR .. "noderesource.lua" }, crds = { KOORDINATOR .. "crds" }, snapshot = {},
    load = {}, colocation = {}, settings = settings.defaults(), params = {}, seconds = seconds, seed = 1,
    recording = { path = path, from = from } }
end

describe("a recording of KWOK", function()
  it("has the initial objects, and each change as a whole object", function()
    local past = recording.read(file(SAMPLE))
    assert.equal(1800, past.ended - past.began)
    local told = {}
    for i, e in ipairs(past.events) do
      local who = e.gone and "-" .. e.gone or e.object.metadata.name
      told[i] = ("%d %s %s"):format(e.at - past.began, e.kind, who)
    end
    assert.same({ "0 v1/Node a", "0 v1/ConfigMap slo-controller-config", "0 v1/Pod web", "0 v1/Pod web",
      "300 v1/Pod guest", "301 v1/Pod guest", "600 v1/Node b", "900 v1/Pod web", "1500 v1/Pod -default/guest",
      "1800 v1/Node -b" }, told)
    local web = past.events[4].object
    assert.equal('{"app":"web"}', core.encode(web.metadata.labels))
    assert.equal('["b"]', core.encode(web.metadata.finalizers))
    assert.equal(2, #web.status.conditions)
    assert.same({ "Ready", "True", "PodScheduled", "True" }, { web.status.conditions[1].type,
      web.status.conditions[1].status, web.status.conditions[2].type, web.status.conditions[2].status })
    assert.is_nil(web("status.conditions")[1]("reason"))
    assert.equal("Running", web.status.phase)
    assert.equal("a", past.events[6].object.spec.nodeName)
    assert.equal("4", past.events[8].object.spec.containers[1].resources.requests.cpu)
  end)

  it("is simulated: nodes and pods come and go in time", function()
    local r = run.run(cell(file(SAMPLE), 0, 1800))
    assert.same({}, r.failed)
    assert.same({ "a", "b" }, r.nodes)
    local at = {}
    for _, row in ipairs(r.rows) do at[row.time] = row end
    assert.same({ 1, 16 }, { at[240].running, at[240].capacity })
    assert.same({ 2, 16 }, { at[420].running, at[420].capacity })
    assert.same({ 2, 32 }, { at[720].running, at[720].capacity })
    assert.equal(1, at[1020].running)
    assert.equal(0, at[1620].running)
    assert.same(kwok.ASSUMED, { r.not_modelled[#r.not_modelled - 1], r.not_modelled[#r.not_modelled] })
    r = run.run(cell(file(SAMPLE), 400, 240))
    assert.equal(2, r.rows[1].running)
  end)

  it("is bisected between two of its moments, whatever the times are", function()
    local path = file(SAMPLE)
    local found, n = bisect.first(cell(path, 400, 180), cell(path, 430, 180))
    assert.is_nil(found)
    assert.is_true(n > 2)
    found = assert(bisect.first(cell(path, 0, 240), cell(path, 400, 240))) -- guest comes in between
    assert.same({ "a", "a" }, { found.a.key, found.b.key })
    assert.not_equal(found.a.at, found.b.at)
    assert.equal(found.a.seconds, found.b.seconds)
    assert.equal("a", core.decode(bisect.fixture(found, cell(path, 0, 240))).cases[1].expect.decision.key)
  end)

  it("that cannot be read is refused with the document", function()
    local pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"default"}}'
    for text, why in pairs {
      [change(1, "move", "web", "{}")] = '4: method: expected create, patch or delete, got "move"',
      [change(-1, "patch", "web", "{}")] = "4: durationNanosecond: expected nanoseconds since the first",
      [change(1, "patch", "web", "5")] = "4: template: expected an object",
      [change(1, "patch", "web", "[5]")] = "4: template: ",
      [change(1, "patch", "gone", "{}")] = "4: there is no v1/Pod default/gone to patch",
      [change(1, "create", "p", pod)] = "4: target: expected v1/Pod default/q, which the template is",
      [change(1, "patch", "web", '{"metadata":{"name":"q"}}')] = "4: template: a patch keeps kind and name",
      [change(1, "patch", "web", '{"metadata":{"name":null}}')] = "4: metadata.name: expected a name",
      [change(1, "create", "web")] = "4: template: expected an object",
      [change(1, "delete", '""')] = "4: target.name: expected a name",
      [change(1, "delete", "web") .. "---\n5\n"] = "5: expected an object",
      [change(1, "delete", "web") .. "---\nkind: Pod\n"] = "5: apiVersion: expected a version",
    } do
      local path = file(OBJECTS .. text)
      local ok, said = pcall(recording.read, path)
      assert.is_false(ok, text)
      local begins = ("%s, document %s"):format(path, why)
      assert.equal(begins, said:sub(1, #begins))
    end
  end)

  it("with bytes that changed is read, or refused with its name", function()
    local seed, read = 11, 0
    local function up_to(n)
      seed = (seed * 1103515245 + 12345) % (1 << 31)
      return 1 + (seed >> 16) % n
    end
    local odd = { "{", "}", "[", "]", ":", "\n", " ", '"', "$", "-", "5", "\0", "null", ".nan", "&a ", "*a" }
    for _ = 1, 400 do
      local text = SAMPLE
      for _ = 1, up_to(4) do
        local at = up_to(#text)
        text = text:sub(1, at - 1) .. odd[up_to(#odd)] .. text:sub(at + up_to(3) - 1)
      end
      local ok, said = pcall(kwok.read, "some.yaml", text)
      if ok then read = read + 1 else assert.equal("some.yaml", tostring(said):sub(1, 9), said) end
    end
    assert.is_true(read > 20 and read < 400)
  end)
end)
