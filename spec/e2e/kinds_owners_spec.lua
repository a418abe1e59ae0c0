-- kinds_owners_spec.lua - owners and their dependents. kube-apiserver decides what a delete leaves and which
-- owners are valid, so both servers are asked. kube-controller-manager collects garbage, and does not run
-- here: those rows follow Kubernetes' documentation.
-- not in tsan: what one thread answers

local both = require "support.both"
local json = require "dkjson"
local servers = require "support.servers"

local FOREGROUND, ORPHAN, BACKGROUND = { propagationPolicy = "Foreground" }, { propagationPolicy = "Orphan" },
  { propagationPolicy = "Background" }

both.describe("deletions and their policies", function(ns)
  local maps = "/api/v1/namespaces/" .. ns .. "/configmaps"
  local rows = {}
  local function row(...) rows[#rows + 1] = { ... } end
  local n = 0
  local function try(what, finalizers, codes, ...)
    n = n + 1
    local path = ("%s/m%d"):format(maps, n)
    row(what .. ": made", "POST", maps, { metadata = { name = "m" .. n, finalizers = finalizers } }, 201)
    for i, options in ipairs { ... } do row(("%s: delete %d"):format(what, i), "DELETE", path, options,
      codes[i]) end
    row(what .. ": released", "PATCH", path, { metadata = { finalizers = json.null } }, codes.after or 200)
  end
  local gone = { 200, 200, after = 404 }
  try("foreground", nil, { 200 }, FOREGROUND)
  try("orphan", nil, { 200 }, ORPHAN)
  try("background", nil, gone, BACKGROUND)
  try("orphanDependents", nil, { 200 }, { orphanDependents = true })
  try("not orphanDependents", nil, gone, { orphanDependents = false })
  try("both ways to say it", nil, { 422 }, { orphanDependents = true, propagationPolicy = "Foreground" })
  try("no such policy", nil, { 422 }, { propagationPolicy = "Sideways" })
  try("an empty policy", nil, { 422 }, { propagationPolicy = "" })
  try("orphan by its finalizer", { "orphan" }, { 200 }, {})
  try("background in place of orphan", { "orphan" }, gone, BACKGROUND)
  try("foreground in place of orphan", { "orphan" }, { 200 }, FOREGROUND)
  try("foreground by its finalizer", { "foregroundDeletion" }, { 200 }, {})
  try("orphan in place of foreground", { "foregroundDeletion", "a.b/c" }, { 200 }, ORPHAN)
  try("foreground beside a finalizer", { "a.b/c" }, { 200 }, FOREGROUND)
  try("a second thought", { "a.b/c" }, { 200, 200, 200 }, FOREGROUND, ORPHAN, BACKGROUND)
  try("background after foreground", nil, gone, FOREGROUND, BACKGROUND)
  local template = { metadata = { labels = { a = "b" } },
    spec = { containers = { { name = "c", image = "i" } }, restartPolicy = "Never" } }
  local jobs = "/apis/batch/v1/namespaces/" .. ns .. "/jobs"
  row("a job", "POST", jobs, { metadata = { name = "j" }, spec = { template = template } }, 201)
  row("a job keeps its pods unless told", "DELETE", jobs .. "/j", {}, 200)
  row("a job that is told", "DELETE", jobs .. "/j", BACKGROUND, 200)
  local controllers = "/api/v1/namespaces/" .. ns .. "/replicationcontrollers"
  row("a controller", "POST", controllers, { metadata = { name = "c" }, spec = { template = {
    metadata = template.metadata, spec = { containers = template.spec.containers } } } }, 201)
  row("a controller keeps its pods unless told", "DELETE", controllers .. "/c", {}, 200)
  local pods = "/api/v1/namespaces/" .. ns .. "/pods"
  row("a pod", "POST", pods, { metadata = { name = "p" }, spec = { containers = template.spec.containers,
    nodeName = "n" } }, 201)
  row("a pod stops", "DELETE", pods .. "/p", FOREGROUND, 200)
  row("a stopping pod keeps its policy", "DELETE", pods .. "/p", ORPHAN, 200)
  row("a pod stops at once", "DELETE", pods .. "/p", { gracePeriodSeconds = 0, propagationPolicy = "Orphan" },
    200)
  return rows
end)

both.describe("owner references", function(ns)
  local maps = "/api/v1/namespaces/" .. ns .. "/configmaps"
  local rows = {}
  local good = { apiVersion = "v1", kind = "ConfigMap", name = "x", uid = "u" }
  local function owner(what, code, ...)
    local refs = {}
    for i, more in ipairs { ... } do refs[i] = both.merge(both.merge({}, good), more) end
    rows[#rows + 1] = { what, "POST", maps, { metadata = { name = "o" .. #rows, ownerReferences = refs } },
      code }
  end
  owner("good", 201, {})
  for _, member in ipairs { "apiVersion", "kind", "name", "uid" } do owner("no " .. member, 422,
    { [member] = "" }) end
  owner("a version of three parts", 422, { apiVersion = "a/b/c" })
  owner("a group without a version", 422, { apiVersion = "apps/" })
  owner("an event", 422, { kind = "Event" })
  owner("two controllers", 422, { controller = true }, { name = "y", controller = true })
  owner("three controllers", 422, { controller = true }, { name = "y", controller = true },
    { name = "z", uid = "w", controller = true })
  owner("one twice", 201, {}, {}, { uid = "v" })
  owner("one twice, but one blocks", 201, {}, { blockOwnerDeletion = true })
  rows[#rows + 1] = { "one twice, by a patch", "PATCH", maps .. "/o0",
    { metadata = { ownerReferences = { good, good } } }, 200 }
  return rows
end)

describe("the garbage collector of the embedded server", function()
  local s
  lazy_setup(function() s = servers.embedded { collects = true } end)
  lazy_teardown(function() s:stop() end)

  -- The body of the answer; nil: there is no object.
  local function ask(method, path, body)
    local answer = both.ask(s, { { "", method, path, body } })[1]
    if answer.code == 404 then return nil end
    assert(answer.code < 300, json.encode(answer.body))
    return answer.body
  end

  local count = 0
  local function world()
    count = count + 1
    local ns = "collect-" .. count
    ask("POST", "/api/v1/namespaces", { metadata = { name = ns } })
    local w = { path = "/api/v1/namespaces/" .. ns .. "/configmaps" }
    function w.make(name, owners, more)
      return ask("POST", w.path, { metadata = both.merge({ name = name, ownerReferences = owners }, more) })
    end
    function w.get(name) return ask("GET", w.path .. "/" .. name) end
    function w.delete(name, options) return ask("DELETE", w.path .. "/" .. name, options or {}) end
    function w.release(name) return ask("PATCH", w.path .. "/" .. name,
      { metadata = { finalizers = json.null } }) end
    return w
  end
  local function ref(object, more)
    return both.merge({ apiVersion = "v1", kind = "ConfigMap", name = object.metadata.name,
      uid = object.metadata.uid }, more)
  end
  local BLOCKS = { blockOwnerDeletion = true }

  it("deletes dependents, and their dependents", function()
    local w = world()
    local a = w.make "a"
    local b = w.make("b", { ref(a) })
    w.make("c", { ref(b) })
    w.delete "a"
    assert.is_nil(w.get "b")
    assert.is_nil(w.get "c")
  end)

  it("keeps an object with another owner, without the dangling reference", function()
    local w = world()
    local a, b = w.make "a", w.make "b"
    w.make("c", { ref(a), ref(b) })
    w.delete "a"
    assert.same({ ref(b) }, w.get "c".metadata.ownerReferences)
    w.delete "b"
    assert.is_nil(w.get "c")
  end)

  it("keeps orphaned dependents", function()
    local w = world()
    local a = w.make "a"
    local b = w.make("b", { ref(a) })
    w.make("c", { ref(b) })
    assert.same({ "orphan" }, w.delete("a", ORPHAN).metadata.finalizers)
    assert.is_nil(w.get "a")
    assert.is_nil(w.get "b".metadata.ownerReferences)
    assert.same({ ref(b) }, w.get "c".metadata.ownerReferences)
  end)

  it("keeps a foreground deletion until the last dependent that blocks it is gone", function()
    local w = world()
    local a = w.make "a"
    w.make("blocks", { ref(a, BLOCKS) }, { finalizers = { "a.b/c" } })
    w.make("does-not", { ref(a) }, { finalizers = { "a.b/c" } })
    w.make("free", { ref(a, BLOCKS) })
    assert.same({ "foregroundDeletion" }, w.delete("a", FOREGROUND).metadata.finalizers)
    assert.is_nil(w.get "free")
    assert.is_string(w.get "blocks".metadata.deletionTimestamp)
    assert.is_string(w.get "does-not".metadata.deletionTimestamp)
    assert.same({ "foregroundDeletion" }, w.get "a".metadata.finalizers)
    w.release "blocks"
    assert.is_nil(w.get "a")
    assert.is_string(w.get "does-not".metadata.deletionTimestamp)
  end)

  it("deletes dependents that have their own in the foreground as well", function()
    local w = world()
    local a = w.make "a"
    local b = w.make("b", { ref(a, BLOCKS) })
    w.make("c", { ref(b, BLOCKS) }, { finalizers = { "a.b/c" } })
    w.delete("a", FOREGROUND)
    assert.same({ "foregroundDeletion" }, w.get "b".metadata.finalizers)
    assert.is_string(w.get "a".metadata.deletionTimestamp)
    w.release "c"
    assert.is_nil(w.get "b")
    assert.is_nil(w.get "a")
  end)

  it("releases a dependent with another owner from a foreground deletion", function()
    local w = world()
    local a, b = w.make "a", w.make "b"
    w.make("c", { ref(a, BLOCKS), ref(b) })
    w.delete("a", FOREGROUND)
    assert.is_nil(w.get "a")
    assert.same({ ref(b) }, w.get "c".metadata.ownerReferences)
  end)

  it("ends a foreground deletion of a cycle", function()
    local w = world()
    local a = w.make "a"
    local b = w.make("b", { ref(a, BLOCKS) })
    ask("PATCH", w.path .. "/a", { metadata = { ownerReferences = { ref(b, BLOCKS) } } })
    w.delete("a", FOREGROUND)
    assert.is_nil(w.get "a")
    assert.is_nil(w.get "b")
  end)

  it("deletes an object whose owner has another uid or is missing", function()
    local w = world()
    local a = w.make "a"
    w.make("wrong", { ref(a, { uid = "other" }) })
    assert.is_nil(w.get "wrong")
    w.make("none", { ref(a, { name = "nobody" }) })
    assert.is_nil(w.get "none")
    w.make("later", { ref(a) })
    ask("PATCH", w.path .. "/later", { metadata = { ownerReferences = { ref(a, { uid = "other" }) } } })
    assert.is_nil(w.get "later")
  end)

  it("looks for an owner in the dependent's namespace alone", function()
    local w, other = world(), world()
    local a = w.make "a"
    other.make("b", { ref(a) })
    assert.is_nil(other.get "b")
    assert.is_table(w.get "a")
  end)

  it("keeps an object whose owner has an unknown kind", function()
    local w = world()
    w.make("b", { { apiVersion = "example.com/v1", kind = "Ghost", name = "g", uid = "u" } })
    assert.is_table(w.get "b")
  end)

  it("keeps a cluster-scoped object whose owner is in a namespace", function()
    local w = world()
    local a = w.make "a"
    ask("POST", "/api/v1/namespaces", { metadata = { name = "owned", ownerReferences = { ref(a) } } })
    w.delete "a"
    assert.equal("Active", ask("GET", "/api/v1/namespaces/owned").status.phase)
  end)

  it("deletes dependents of custom resources with their definition", function()
    local w = world()
    local group = "apis/collect.example.com/v1"
    ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata = { name = "owners.collect.example.com" },
      spec = { group = "collect.example.com", scope = "Cluster",
        names = { plural = "owners", kind = "Owner" },
        versions = { { name = "v1", served = true, storage = true,
          schema = { openAPIV3Schema = { type = "object" } } } } } })
    local o = ask("POST", "/" .. group .. "/owners", { apiVersion = "collect.example.com/v1", kind = "Owner",
      metadata = { name = "o" } })
    w.make("b", { { apiVersion = "collect.example.com/v1", kind = "Owner", name = "o",
      uid = o.metadata.uid } })
    assert.is_table(w.get "b")
    ask("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/owners.collect.example.com", {})
    assert.is_nil(w.get "b")
  end)

  it("collects nothing of a dry run", function()
    local w = world()
    local a = w.make "a"
    w.make("b", { ref(a) })
    ask("DELETE", w.path .. "/a?dryRun=All")
    assert.is_table(w.get "b")
  end)

  it("collects after a deletion of a whole collection", function()
    local w = world()
    local a = w.make("a", nil, { labels = { x = "y" } })
    w.make("b", { ref(a) })
    ask("DELETE", w.path .. "?labelSelector=x%3Dy")
    assert.is_nil(w.get "b")
  end)
end)

describe("the garbage collector and what was loaded", function()
  it("checks it when its owner is deleted, and not before", function()
    local process = require "support.process"
    local file = process.write(process.tmpname ".json",
      json.encode { apiVersion = "v1", kind = "List", items = {
      { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "b", namespace = "x", ownerReferences = {
        { apiVersion = "v1", kind = "ConfigMap", name = "a",
          uid = "11111111-1111-1111-1111-111111111111" } } } },
      { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = "lost", namespace = "x", ownerReferences = {
        { apiVersion = "v1", kind = "ConfigMap", name = "c", uid = "2" } } } },
      { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "x",
        uid = "11111111-1111-1111-1111-111111111111" } },
    } })
    local s = servers.embedded { collects = true, load = { file } }
    local path = "/api/v1/namespaces/x/configmaps/"
    local answers = both.ask(s, {
      { "", "POST", "/api/v1/namespaces", { metadata = { name = "any" } } }, { "", "GET", path .. "b" },
      { "", "GET", path .. "lost" }, { "", "DELETE", path .. "a" }, { "", "GET", path .. "b" },
      { "", "GET", path .. "lost" } })
    local codes = {}
    for i, answer in ipairs(answers) do codes[i] = answer.code end
    assert.same({ 201, 200, 200, 200, 404, 200 }, codes)
    s:stop()
  end)
end)
