-- claim_spec.lua - adoption and release by the rules of Kubernetes' ControllerRefManager.

local kube = require "kubelua"
local widgets = require "support.widgets"

widgets.each("claim-spec", function(t)
  local function map(name, labels, more)
    local metadata = { namespace = t.ns, name = name, labels = labels }
    for key, value in pairs(more or {}) do metadata[key] = value end
    return t.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = metadata }
  end

  local function controller(name)
    local o = t.client:get("v1/ConfigMap", t.ns, name)
    local ref = o and kube.controller_of(o)
    return ref and ref.name
  end

  local function reference(owner)
    return kube.set_controller(owner, { metadata = { namespace = t.ns } }).metadata.ownerReferences
  end

  it("a client adopts an orphan and releases its own object", function()
    local owner, other = t.widget "owner", t.widget "other"
    local orphan = map("orphan", nil, { ownerReferences = {
      { apiVersion = "v1", kind = "ConfigMap", name = "x", uid = "1" } } })
    local adopted = t.client:adopt(owner, orphan)
    assert.equal("owner", controller "orphan")
    assert.equal(2, #adopted.metadata.ownerReferences)
    assert.equal(adopted.metadata.resourceVersion, t.client:adopt(owner, adopted).metadata.resourceVersion)
    local _, err = kube.try(t.client.adopt, t.client, other, adopted)
    assert.same({ "already_owned", true }, { err.kind,
      err.message:find("is already controlled by Widget owner", 1, true) ~= nil })
    -- An object of another owner is not released; with an old version, the release conflicts.
    assert.equal(adopted.metadata.resourceVersion, t.client:release(other, adopted).metadata.resourceVersion)
    t.client:patch(adopted, { data = { a = "1" } })
    _, err = kube.try(t.client.release, t.client, owner, adopted)
    assert.equal("conflict", err.kind)
    local released = t.client:release(owner, t.client:get("v1/ConfigMap", t.ns, "orphan"))
    assert.equal(1, #released.metadata.ownerReferences)
    _, err = kube.try(t.client.adopt, t.client, owner, orphan)
    assert.equal("conflict", err.kind)
    t.client:delete(released)
    assert.is_nil(t.client:adopt(owner, released))
  end)

  it("objects being deleted neither adopt nor are adopted, nor across namespaces", function()
    local owner = t.widget "owner"
    local leaving = map("leaving", nil, { finalizers = { "example.com/f" } })
    t.client:delete(leaving)
    leaving = t.client:get("v1/ConfigMap", t.ns, "leaving")
    local _, err = kube.try(t.client.adopt, t.client, owner, leaving)
    assert.same({ "not_adoptable", true }, { err.kind, err.message:find("is being deleted", 1, true) ~= nil })
    t.client:patch(leaving, { metadata = { finalizers = kube.null } })
    local orphan = map "orphan"
    t.client:delete(owner)
    _, err = kube.try(t.client.adopt, t.client, owner, orphan)
    assert.same({ "not_adoptable", true }, { err.kind,
      err.message:find("is gone and can no longer adopt", 1, true) ~= nil })
    t.widget "owner"                     -- another owner with that name
    _, err = kube.try(t.client.adopt, t.client, owner, orphan)
    assert.equal("not_adoptable", err.kind)
    local elsewhere = t.client:create { kind = "v1/ConfigMap", namespace = "default",
      name = "orphan-of-" .. t.ns }
    assert.error_matches(function()
      t.client:adopt(t.get "owner", elsewhere)
    end, "an owner lives in the same namespace", 1, true)
    t.client:delete(elsewhere)
    assert.error_matches(function()
      t.client:adopt(t.get "owner", { kind = "v1/ConfigMap", name = "x" })
    end, "was read from the server", 1, true)
  end)

  it("a controller claims matching objects: adopts orphans, releases others of its own, leaves the rest",
    function()
    local other = t.widget("zzz", { skip = true })
    local owner = t.widget("owner", { selector = { app = "x" } })
    map("orphan", { app = "x" })
    map("stranger", { app = "y" })
    map("taken", { app = "x" }, { ownerReferences = reference(other) })
    map("lost", { app = "z" }, { ownerReferences = reference(owner) })
    map("mine", { app = "x" }, { ownerReferences = reference(owner) })
    t.run [[
      owns = { "v1/ConfigMap" },
      reconcile = function(obj, ctx)
        if obj.spec("skip") then return end
        local names = {}
        for _, m in ipairs(ctx:claim("v1/ConfigMap",
          { labels = obj.spec.selector,
            match = function(m) return not m.metadata.name:find "^report" end })) do
          names[#names + 1] = m.metadata.name
        end
        table.sort(names)
        return { status = { claimed = names } }
      end]]
    t.await("owner", "what it claimed", function(o)
      return o and table.concat(kube.copy(o("status.claimed") or {}), " ") == "mine orphan"
    end)
    assert.same({ "owner", "owner", "zzz" }, { controller "orphan", controller "mine", controller "taken" })
    assert.is_nil(controller "stranger")
    assert.is_nil(controller "lost")
    -- Removing a label releases the object.
    t.client:patch(t.client:get("v1/ConfigMap", t.ns, "mine"), { metadata = { labels = { app = "y" } } })
    t.await("owner", "it let go", function(o)
      return table.concat(kube.copy(o("status.claimed") or {}), " ") == "orphan"
    end)
    assert.is_nil(controller "mine")
  end)

  it("a controller sees its objects", function()
    local other = t.widget("zzz", { skip = true })
    local owner = t.widget("owner", {})
    map("orphan", { app = "x" })
    map("taken", { app = "x" }, { ownerReferences = reference(other) })
    map("mine-x", { app = "x" }, { ownerReferences = reference(owner) })
    map("mine-y", { app = "y" }, { ownerReferences = reference(owner) })
    t.run [[
      owns = { "v1/ConfigMap" },
      reconcile = function(obj, ctx)
        if obj.spec("skip") then return end
        local function names(opts)
          local out = {}
          for i, m in ipairs(ctx:owned("v1/ConfigMap", opts)) do out[i] = m.metadata.name end
          return table.concat(out, " ")
        end
        local _, limit = pcall(names, { limit = 1 })
        local _, slip = pcall(names, { lables = "app=x" })
        return { status = { all = names(), x = names { labels = "app=x" }, limit = tostring(limit),
          slip = tostring(slip) } }
      end]]
    local o = t.await("owner", "what is its", function(o) return o("status.all") end)
    assert.same({ "mine-x mine-y", "mine-x" }, { o.status.all, o.status.x })
    assert.truthy(o.status.limit:find("ctx:owned: unknown option 'limit'", 1, true), o.status.limit)
    assert.truthy(o.status.slip:find("did you mean 'labels'", 1, true), o.status.slip)
  end)

  it("a controller adopts and releases one by one, and learns what a claim needs", function()
    t.widget("w", {})
    map "m"
    t.run [[
      reads = { "v1/ConfigMap" },
      reconcile = function(obj, ctx)
        local adopted = ctx:adopt(ctx:get("v1/ConfigMap", "m"))
        local was = kube.controller_of(adopted).name
        local released = ctx:release(adopted)
        local _, none = pcall(ctx.claim, ctx, "v1/ConfigMap", {})
        local _, empty = pcall(ctx.claim, ctx, "v1/ConfigMap", { labels = {} })
        return { status = { was = was, is = kube.controller_of(released) == nil,
          none = tostring(none), empty = tostring(empty) } }
      end, when = { "generation" } ]]
    local o = t.await("w", "its words", function(o) return o("status.was") end)
    assert.same({ "w", true }, { o.status.was, o.status.is })
    assert.truthy(o.status.none:find("it would adopt every orphan", 1, true), o.status.none)
    assert.truthy(o.status.empty:find("the selector is empty", 1, true), o.status.empty)
  end)
end)
