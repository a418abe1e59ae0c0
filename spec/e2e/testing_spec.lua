-- testing_spec.lua - kube.testing and `kubelua test`, as authors of scripts use them.

local kube = require "kubelua"
local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- The source of a controller of ConfigMaps with this body of reconcile(o, ctx), and more keys.
local function source(body, more)
  return ([[local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/ConfigMap",
  %s reconcile = function(o, ctx) %s end }]]):format(more or "", body)
end

local CARD = { kind = "v1/ConfigMap", name = "a", data = { n = "0" } }

describe("kube.testing", function()
  local started = {}
  local function start(opts)
    local t = kube.testing.start(opts)
    started[#started + 1] = t
    return t
  end
  after_each(function()
    for i, t in ipairs(started) do
      t:stop()
      started[i] = nil
    end
  end)

  it("has run existing objects when start returns, and consequences of a write when that returns", function()
    local t = start { source = source 'ctx:patch(o, { data = { seen = o.metadata.name } })',
      objects = { CARD } }
    assert.equal("a", t:get("v1/ConfigMap", "a").data.seen)
    t:create { kind = "v1/ConfigMap", name = "b" }
    assert.equal("b", t:get("v1/ConfigMap", "b").data.seen)
  end)

  it("runs stand-ins beside the script, in the same time", function()
    local t = start { simulate = true, source = [[local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/Pod", params = { word = "is" },
reconcile = function(pod, ctx)
  local done = pod("status.phase") == "Succeeded" or nil
  ctx:patch(pod, { metadata = { annotations = { done = done and ctx.params.word .. " done" } } })
end }]], params = { word = "was" } }
    t:create { kind = "batch/v1/Job", name = "a", spec = { template = { metadata = { annotations = {
      ["simulate.kubelua.dev/runs-for"] = "1m" } }, spec = { restartPolicy = "Never",
      containers = { { name = "c", image = "i" } } } } } }
    assert.equal(1, t:get("batch/v1/Job", "a").status.active)
    t:advance "1m"
    assert.equal("was done", t:list "v1/Pod"[1].metadata.annotations.done)
    assert.equal(1, t:get("batch/v1/Job", "a").status.succeeded)
  end)

  it("stamps conditions that the test itself sets with the test's time", function()
    local t, status = start { source = source "", objects = { CARD } }, {}
    t:advance "1h"
    kube.set_condition(status, { type = "Ready", status = "True", reason = "Asked" })
    assert.equal(tostring(t:now()), status.conditions[1].lastTransitionTime)
    t:stop()
    kube.set_condition(status, { type = "Ready", status = "False", reason = "Asked" })
    assert.is_true(math.abs(os.time() - kube.time(status.conditions[1].lastTransitionTime):unix()) < 60)
  end)

  it("refuses an object with a field that its kind does not have, given as a table or as a file", function()
    local labels = { app = "a" }
    local typo = { kind = "apps/v1/Deployment", name = "d",
      spec = { replicsa = 5, selector = { matchLabels = labels },
      template = { metadata = { labels = labels },
        spec = { containers = { { name = "a", image = "a" } } } } } }
    local file = process.write(process.tmpname ".yaml", kube.encode(kube.merge(typo, { apiVersion = "apps/v1",
      kind = "Deployment", name = kube.null, metadata = { name = "d" } })))
    for _, opts in ipairs { { objects = { typo } }, { files = file } } do
      opts.source = source ""
      local ok, why = pcall(start, opts)
      assert.is_false(ok)
      assert.matches('Deployment "d": .*unknown field "spec.replicsa"', tostring(why))
    end
  end)

  it("treats {} as an empty list if the kind has one there, in tables only", function()
    local pod = { kind = "v1/Pod", name = "p", spec = { volumes = {}, nodeSelector = {},
      containers = { { name = "a", image = "a", args = {}, ports = {}, resources = { limits = {} } } } } }
    local t = start { source = source "", objects = { pod } }
    local o = t:get("v1/Pod", "p")
    assert.equal(1, #o.spec.containers)
    assert.is_nil(o.spec.containers[1].args)
    local file = process.write(process.tmpname ".yaml",
      "apiVersion: v1\nkind: Pod\nmetadata: {name: q}\nspec: {containers: [{name: a, image: a, args: {}}]}\n")
    local ok, why = pcall(t.load, t, file)
    assert.is_false(ok)
    assert.matches("cannot unmarshal object into Go struct field Container.spec.containers.args",
      tostring(why))
  end)

  it("keeps the empty lists of a kind of a definition", function()
    local crd = process.write(process.tmpname ".yaml", [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              items:
                type: array
                items:
                  type: object
                  properties: {parts: {type: array, items: {type: string}}, of: {type: object}}
              names: {type: array, items: {type: string}}
              labels: {type: object, additionalProperties: {type: array, items: {type: string}}}
              any: {x-kubernetes-preserve-unknown-fields: true}
]])
    local t = start { source = source "", crds = crd, objects = { { kind = "example.com/v1/Box", name = "b",
      spec = { items = { { parts = {}, of = {} } }, names = {}, labels = { a = {} }, any = {} } } } }
    local spec = t:get("example.com/v1/Box", "b").spec
    assert.same({ '[{"of":{},"parts":[]}]', "[]", '{"a":[]}', "{}" }, { kube.encode(kube.copy(spec.items)),
      kube.encode(spec.names), kube.encode(spec.labels), kube.encode(spec.any) })
  end)

  it("knows stand-ins by their names", function()
    local function refused(x)
      local ok, why = pcall(start, { simulate = x })
      return not ok and tostring(why)
    end
    assert.matches('there is no stand%-in "pod"; did you mean "pods"', refused { "nodes", "pod" })
    assert.matches("simulate is true for all stand%-ins", refused { 5 })
    assert.matches("simulate is true for all stand%-ins", refused {})
    assert.equal(3, #start { simulate = "nodes" }:list "v1/Node")
  end)

  it("moves time only on request: resync, requeue_after and sleeps", function()
    local t = start { source = source('ctx:sleep "10s" return "1h"', 'resync = "8h",'), objects = { CARD } }
    assert.equal(0, #t:runs())
    assert.equal(10, t:next())
    t:advance "9s"
    assert.equal(0, #t:runs())
    t:advance "1s"
    assert.equal("after", t:runs("a")[1].result)
    assert.equal(3600, t:runs("a")[1].after)
    t:advance "2h"
    assert.equal(2, #t:runs "a")
    assert.equal("2026-01-01T02:00:10Z", tostring(t:now()))
  end)

  it("needs no time for a sleep of nothing", function()
    for _, nothing in ipairs { "0", "-5", '"0s"' } do
      local t = start { source = source(("ctx:sleep(%s)"):format(nothing)), objects = { CARD } }
      assert.equal("done", t:runs("a")[1].result)
    end
  end)

  it("waits out a backoff in until_idle, and reports failures that do not end", function()
    local t = start { source = source 'if ctx.attempt < 4 then error "not yet" end', objects = { CARD } }
    t:until_idle()
    local results = {}
    for i, r in ipairs(t:runs "a") do results[i] = r.result .. r.attempt end
    assert.same({ "error1", "error2", "error3", "done4" }, results)
    local never = start { source = source 'error "no, never"', objects = { CARD } }
    assert.error_matches(function() never:until_idle "1m" end, "keys that fail 1, .*no, never")
  end)

  it("has run keys of the script's mapping functions when a write returns", function()
    local t = start { source = [[local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/ConfigMap",
  when = function(now) return now.data.from == nil end,
  watches = { ["v1/Secret"] = function(o) return o.metadata.annotations.about end },
  reconcile = function(o, ctx)
    local secret = ctx:get("v1/Secret", "s")
    if secret then ctx:patch(o, { data = { seen = secret.metadata.annotations.n } }) end
  end }]], objects = { { kind = "v1/ConfigMap", name = "a" },
      { kind = "v1/Secret", name = "s", annotations = { about = "default/a" } } } }
    for n = 1, os.getenv "KL_VARIANT" == "tsan" and 50 or 200 do
      t:patch(t:get("v1/Secret", "s"), { metadata = { annotations = { n = tostring(n) } } })
      assert.equal(tostring(n), t:get("v1/ConfigMap", "a").data.seen)
    end
  end)

  it("deletes by kind, namespace and name, as a client does", function()
    local t = start { source = source "", objects = { CARD, { kind = "v1/ConfigMap", name = "b" } } }
    t:delete("v1/ConfigMap", "default", "a")
    t:delete("v1/ConfigMap", "b")
    assert.equal(0, #t:list "v1/ConfigMap")
  end)

  it("stops a reconcile that triggers itself forever, and names its writes", function()
    local counts = 'ctx:patch(o, { data = { n = tostring(tonumber(o.data.n) + 1) } })'
    assert.error_matches(function() start { source = source(counts), objects = { CARD } } end,
      "default/a never rests: its own writes triggered it 200 times in a row, .- v1/ConfigMap default/a, \z
        data.n%. ")
    local appends = 'ctx:patch(o, function(c) table.insert(c.metadata.finalizers, \z
      "example.com/x" .. #c.metadata.finalizers) end)'
    local t = start { source = source(appends) }
    assert.error_matches(function() t:create(CARD) end,
      "metadata.finalizers%[3%]%. .- a list takes only what it lacks")
    assert.is_true(#t:runs "default/a" < 210)
  end)

  it("shows a controller the user of a test's request", function()
    local CSR = "certificates.k8s.io/v1/CertificateSigningRequest"
    local t = start { source = [[local kube = require "kubelua"
      return kube.controller { name = "x", resource = "csr", reconcile = function(csr, ctx)
        local by = csr.spec.username .. " of " .. csr.spec.groups[1]
        ctx:patch(csr, { metadata = { annotations = { by = by } } })
      end }]] }
    local request, key = kube.certificate_request { cn = "jane", o = "developers",
      dns = { "jane.example.com" } }
    assert.matches("^%-%-%-%-%-BEGIN EC PRIVATE KEY", key)
    t:as("jane", "developers"):create { kind = CSR, name = "one",
      spec = { request = kube.base64_encode(request),
      signerName = "kubernetes.io/kube-apiserver-client", usages = { "client auth" } } }
    assert.equal("jane of developers", t:get(CSR, "one").metadata.annotations.by)
    assert.error_matches(function() kube.certificate_request { cnn = "x" } end, "did you mean 'cn'")
    assert.error_matches(function() kube.certificate_request { ips = { "nowhere" } } end, "nowhere")
  end)

  it("sums a pod's requests from the documented fields only", function()
    local kept = process.read "docs/scripts.md":match "must keep (`\"spec%.containers%.resources\".-)%.\n"
    local fields = kept:gsub("`", ""):gsub(" and%s", ", ")
    local t = start { source = ([[local kube = require "kubelua"
      return kube.controller { name = "x", resource = "v1/Pod", fields = { %s },
        reconcile = function(pod) return kube.fail(tostring(kube.requests(pod).cpu)) end }]]):format(fields) }
    local function container(cpu)
      return { name = "c" .. cpu, image = "i", resources = { requests = { cpu = cpu } } }
    end
    t:load { kind = "v1/Pod", name = "a", spec = { containers = { container "2" }, overhead = { cpu = "1" },
      initContainers = { container "3" } } }
    t:settle()
    assert.equal("4", t:runs()[1].message)
  end)

  it("stops a run with endless calls: its timeout never comes", function()
    local t = start { source = source "while true do pcall(ctx.sleep, ctx, 0) end", objects = { CARD } }
    assert.matches("stopped after 10000 requests and sleeps at one moment", t:runs("a")[1].message)
  end)

  it("runs keys in the order of their names, each time", function()
    local function order()
      local t = start { source = source('ctx:patch(o, { metadata = { labels = { seen = "yes" } } })',
        'concurrency = 8, workers = 3,'),
        objects = { { kind = "v1/ConfigMap", name = "c" }, { kind = "v1/ConfigMap", name = "a" },
          { kind = "v1/ConfigMap", name = "b", namespace = "z" } } }
      local keys = {}
      for i, r in ipairs(t:runs()) do keys[i] = r.key end
      return keys
    end
    local first = order()
    assert.equal("default/a", first[1])
    for _ = 1, 10 do assert.same(first, order()) end
  end)

  it("injects failures of requests, except for the test's own client", function()
    local t = start { source = source 'ctx:patch(o, { data = { seen = "yes" } })' }
    t:fail_next { verb = "patch", kind = "v1/ConfigMap", error = "conflict", times = 2 }
    t:create(CARD)
    t:patch(t:get("v1/ConfigMap", "a"), { data = { mine = "yes" } })
    t:until_idle()
    assert.equal(0, t:faults_left())
    assert.same({ mine = "yes", n = "0", seen = "yes" }, kube.copy(t:get("v1/ConfigMap", "a").data))
    t:fail_next { error = "forbidden", verb = "patch" }
    t:create { kind = "v1/ConfigMap", name = "b" }
    assert.matches("403", t:runs("b")[1].message)
    assert.error_matches(function() t:fail_next { error = "conflikt" } end, 'did you mean "conflict"')
  end)

  it("injects faults into controllers by rules", function()
    local t = start { source = source 'ctx:patch(o, { data = { seen = o("data.mine") or "none" } })' }
    t:faults { seed = 3, { verb = "apply", kind = "v1/ConfigMap", error = "conflict", times = 1 },
      { kind = "v1/ConfigMap", verb = "watch", stall = "1m", events = 1 } }
    t:create(CARD)
    t:until_idle()
    assert.equal("none", t:get("v1/ConfigMap", "a").data.seen)
    t:patch(t:get("v1/ConfigMap", "a"), { data = { mine = "yes" } })
    t:advance "59s"
    assert.equal("none", t:get("v1/ConfigMap", "a").data.seen)
    t:advance "1s"
    t:until_idle()
    assert.equal("yes", t:get("v1/ConfigMap", "a").data.seen)
    local all = t:faults()
    assert.equal("conflict", all[1].error)
    assert.same({ 1, 0 }, { all[1].hits, all[1].left })
    assert.equal(1, all[2].hits)
    t:clear_faults():faults { verb = "watch", cut = "end" }
    assert.equal(1, #t:faults())
    t:clear_faults()
    assert.error_matches(function() t:faults { stal = 1 } end, "did you mean 'stale'")
    assert.error_matches(function() t:faults { { half = true }, { latency = "1s" } } end,
      "t:faults: rule 2: latency: time stands still on this server")
    assert.error_matches(function() t:faults { seeds = 3, { half = true } } end, "did you mean 'seed'")
    assert.error_matches(function() t:faults "conflict" end, "expected a rule or a list of rules, got string")
  end)

  it("shows runs, writes, logs and Events", function()
    local t = start { source = source 'ctx:event("Seen", "it is %s", o.metadata.name) ctx.log:warn \z
      "careful" ctx:patch(o, { data = { x = "1" } })', objects = { CARD } }
    assert.same({ "Seen", "it is a", "ConfigMap/a", "x" },
      { t:events()[1].reason, t:events()[1].note, t:events()[1].about, t:events()[1].controller })
    assert.equal("careful", t:logs("warn")[1].message)
    assert.matches("^warn: careful controller=", tostring(t:logs("warn")[1]))
    local w = t:writes()[1]
    assert.same({ "x", "patch", "v1/ConfigMap", "default", "a" },
      { w.controller, w.verb, w.kind, w.namespace, w.name })
  end)

  it("sets params, and rejects unknown ones", function()
    local text = source('ctx:patch(o, { data = { size = tostring(ctx.params.size) } })',
      'params = { size = 1, colour = "red" },')
    local t = start { source = text, params = { size = 3 }, objects = { CARD } }
    assert.equal("3", t:get("v1/ConfigMap", "a").data.size)
    assert.error_matches(function()
      start { source = text, params = { sise = 3 } }
    end, 'has no param sise %(did you mean size%?%)')
  end)

  it("sets a param of one script among several", function()
    local sized = process.write(process.tmpname ".lua", source(
      'ctx:patch(o, { data = { size = tostring(ctx.params.size) } })', 'params = { size = 1 },'))
    local other = process.write(process.tmpname ".lua", (source(""):gsub('name = "x"', 'name = "y"')))
    local t = start { scripts = { sized, other }, params = { size = 3 }, objects = { CARD } }
    assert.equal("3", t:get("v1/ConfigMap", "a").data.size)
    assert.error_matches(function()
      start { scripts = { sized, other }, params = { sise = 3 } }
    end, 'none of the scripts has a param sise %(did you mean size%?%)')
  end)

  it("starts each time with an empty server", function()
    for _ = 1, 5 do
      local t = start { source = source "" }
      assert.equal(0, #t:list "v1/ConfigMap")
      t:create(CARD)
      t:create { kind = "v1/Namespace", name = "extra" }
      t:stop()
    end
  end)

  it("says which definition is missing", function()
    local text = 'return require "kubelua".controller { name = "x", resource = "example.com/v1/Thing", \z
      reconcile = function() end }'
    assert.error_matches(function() start { source = text } end, 'controller "x" waits: .*crds = "DIR"')
    local t = start { source = text, parked = true }
    assert.equal("parked", t:controllers()[1].state)
  end)

  it("says at once that the server refuses a selector", function()
    local text = 'return require "kubelua".controller { name = "x", resource = "v1/ConfigMap", \z
      selector = { fields = "spec.x=y" }, reconcile = function() end }'
    assert.error_matches(function() start { source = text } end,
      'controller "x" waits: .*"spec.x" is not a known field selector.*metadata.namespace" %(parked')
  end)

  it("gives access to a script's functions for tests without a server", function()
    local p = kube.testing.pure "controllers/koordinator/noderesource.lua"
    assert.equal("function", type(p.functions.decide))
    assert.equal("noderesource", p.controllers.noderesource.name)
  end)
end)

describe("kubelua test", function()
  local function write(text)
    local dir = process.tmpname ".dir"
    process.run("mkdir -p " .. process.quote(dir))
    process.write(dir .. "/x_test.lua", text)
    return dir
  end
  local function run(...) return process.run(KUBELUA .. " test " .. table.concat({ ... }, " ")) end

  it("passes the tests beside our own controllers", function()
    -- Policies are Lua: under a sanitizer, two files suffice to test the C code below them.
    local out, code = run(os.getenv "KL_VARIANT" == "release" and "controllers"
      or "controllers/hello_test.lua controllers/simulate/pods_test.lua")
    assert.equal(0, code, out)
    assert.matches("%d+ passed, 0 failed", out)
  end)

  it("shows where a test failed, how tables differ, and what the controllers did", function()
    local out, code = run(write [=[
local kube = require "kubelua"
describe("a card", function()
  it("is as it should be", function()
    kube.testing.start { source = [[return require "kubelua".controller { name = "x",
      resource = "v1/ConfigMap", reconcile = function() error "broken" end }]],
      objects = { kind = "v1/ConfigMap", name = "a" } }
    assert.same({ a = { b = 1, c = "x" } }, { a = { b = 2, c = "x" }, d = true })
  end)
  it("is fine", function() coroutine.yield() assert.is_not_nil(1) end)
  pending "comes later"
end)
]=])
    assert.equal(1, code)
    assert.matches("FAILED  [^\n]*x_test.lua: a card is as it should be\n    [^\n]*x_test.lua:7\n    a.b: \z
      expected 1, got 2\n    d: expected nothing, got true\n", out)
    assert.matches("x ran default/a: error: [^\n]*broken", out)
    assert.matches("1 passed, 1 failed, 1 pending", out)
  end)

  it("knows the members of views by next, as scripts do", function()
    local out = run(write [[
      it("is there", function()
        assert.equal("data", (next(require("kubelua").decode '{ "data": {} }')))
        assert.is_nil(next {})
      end)]])
    assert.has_match("1 passed", out)
  end)

  it("speaks TAP, lists and filters", function()
    local dir = write [[it("first", function() end) it("second", function() error "no" end)]]
    local out, code = run("-o tap", dir)
    assert.equal(1, code)
    assert.matches("ok 1 %- first\nnot ok 2 %- second\n.*1..2", out)
    out, code = run("--filter first", dir)
    assert.equal(0, code, out)
    assert.matches("1 passed, 0 failed", out)
    out = run("--list", dir)
    assert.matches("x_test.lua:1: first\n[^\n]*x_test.lua:1: second\n", out)
  end)

  it("writes JUnit's XML", function()
    local dir = write [[
it("first <1>", function() end)
it("second", function() error "no & \1" end)
pending "third"
]]
    local out, code = run("-o junit", dir)
    assert.equal(1, code)
    local xml = out:match "<%?xml.*</testsuites>\n$"
    assert.truthy(xml, out)
    assert.matches('<testsuite name="[^"]*x_test.lua" tests="3" failures="1" skipped="1" time="%d+%.%d+">',
      xml)
    assert.matches('<testcase classname="[^"]*x_test.lua" name="first &lt;1&gt;" time="[%d.]+"/>', xml)
    assert.matches('name="second" time="[%d.]+">\n      <failure message="[^"]*no &amp; \\x01">', xml)
    assert.matches('name="third" time="[%d.]+">\n      <skipped message="', xml)
    assert.is_nil(xml:find "\1")
  end)

  it("knows before and after, in order, and keeps files apart", function()
    local dir = write [[
local log = {}
setup(function() log[#log + 1] = "setup" end)
before_each(function() log[#log + 1] = "before" end)
after_each(function() log[#log + 1] = "after" end)
it("one", function() finally(function() log[#log + 1] = "finally" end) log[#log + 1] = "one" leak = true end)
describe("inner", function()
  before_each(function() log[#log + 1] = "inner" end)
  it("two", function()
    assert.same({ "setup", "before", "one", "finally", "after", "before", "inner" }, log)
  end)
end)
]]
    process.write(dir .. "/y_test.lua",
      [[it("sees nothing of the other file", function() assert.is_nil(leak) end)]])
    local out, code = run(dir)
    assert.equal(0, code, out)
    assert.matches("3 passed", out)
  end)

  it("explains a file that does not load, an unknown option and an empty directory", function()
    local out, code = run(write "it('x', function() end")
    assert.equal(1, code)
    assert.matches("/x_test.lua:1\n[^\n]*expected near", out)
    out = run(write "it('x', function() assert.is_eqaul(1, 1) end)")
    assert.matches("unknown assertion; did you mean 'equal'", out)
    local dir = process.tmpname ".empty"
    process.run("mkdir -p " .. process.quote(dir))
    out, code = run(dir)
    assert.equal(2, code)
    assert.matches("no tests found", out)
  end)
end)
