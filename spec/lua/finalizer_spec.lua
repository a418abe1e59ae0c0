-- finalizer_spec.lua - the finalizer of a controller with `finalize`, with a stubbed client: the requests,
-- their preconditions, and the handling of conflicts.

local core = require "kubelua.core"
local finalizer = require "kubelua.finalizer"

local uids = 0

-- An object of the cache. more: deleted, finalizers, generation, rv, uid.
local function object(more)
  uids = uids + 1
  return core.value {
    apiVersion = "v1", kind = "Secret", data = { a = "b" },
    metadata = {
      name = "s", namespace = "n", uid = more.uid or "u" .. uids, resourceVersion = more.rv or "1",
      generation = more.generation,
      deletionTimestamp = more.deleted and "2020-01-01T00:00:00Z" or nil, finalizers = more.finalizers,
    },
  }
end

local function conflict()
  return core.error { kind = "conflict", code = 409, message = "it has been modified" }
end
local function absent()
  return core.error { kind = "not_found", code = 404, message = "secrets \"s\" not found" }
end

-- Runs a controller on `o`. server: { send = function(op, n) -> view, get = function() -> view }; result:
-- what its functions return.
local function run(o, server, result, spec)
  server = server or {}
  local log, n = {}, 0
  local c = { resource = "v1/Secret", finalizer = "x.io/f" }
  for key, value in pairs(spec or {}) do c[key] = value end
  function c.reconcile(seen)
    log[#log + 1] = "reconcile " .. seen.metadata.resourceVersion .. " "
      .. #(seen("metadata.finalizers") or {})
    return result
  end
  function c.finalize(seen) log[#log + 1] = "finalize " .. seen.metadata.resourceVersion return result end
  local hands = {
    send = function(op)
      n = n + 1
      log[#log + 1] = ("%s %s/%s %s"):format(op.verb, op.ns, op.name, core.encode(op.body.metadata))
      return server.send and server.send(op, n) or object { rv = "2", finalizers = { "x.io/f" } }
    end,
    get = function() log[#log + 1] = "get" return server.get and server.get() end,
    is_cut = function() return server.cut or false end,
    status = function()
      log[#log + 1] = "status"
      return object { rv = "9", finalizers = { "x.io/f" }, deleted = true }
    end,
  }
  local function settle(h, _, _, r)
    if type(r) == "table" and r.status then h.status() r = nil end
    return r or "done"
  end
  local ok, word = pcall(finalizer.run, hands, settle, c, o, {})
  return { ok = ok, word = word, log = log }
end

describe("the finalizer of a controller", function()
  it("is planned for", function()
    local cases = {
      { {}, "add" }, { { finalizers = { "a/b" } }, "add" },
      { { finalizers = { "a/b", "x.io/f" } }, "reconcile" },
      { { finalizers = { "x.io/f" }, deleted = true }, "finalize" },
      { { finalizers = { "a/b" }, deleted = true }, "nothing" }, { { deleted = true }, "nothing" },
      { { finalizers = { "x.io/old" } }, "add" }, { { finalizers = { "x.io/old", "x.io/f" } }, "add" },
      { { finalizers = { "x.io/old" }, deleted = true }, "finalize" },
    }
    for i, case in ipairs(cases) do
      assert.equal(case[2], finalizer.plan(object(case[1]), "x.io/f", { "x.io/old" }), "case " .. i)
    end
  end)

  it("is added last, guarded by uid and resourceVersion, and the answer is reconciled",
    function()
    local r = run(object { uid = "id", rv = "5", finalizers = { "a/b" } })
    assert.same({ 'patch n/s {"finalizers":["a/b","x.io/f"],"resourceVersion":"5","uid":"id"}',
      "reconcile 2 1" }, r.log)
    -- The same holds for an object of which only some fields are cached.
    r = run(object { uid = "id2", rv = "5", finalizers = { "a/b" } }, { cut = true })
    assert.equal("reconcile 2 2", r.log[2])
  end)

  it("ends the run when it cannot be added: quietly when the object is gone, as a conflict when it moved",
    function()
    local r = run(object {}, { send = function() error(absent(), 0) end })
    assert.same({ true, 1 }, { r.ok, #r.log })
    r = run(object {}, { send = function() error(conflict(), 0) end })
    assert.same({ false, "conflict", 1 }, { r.ok, r.word.kind, #r.log })
  end)

  it("is removed when finalize is done, and kept otherwise", function()
    local o = object { uid = "id3", rv = "5", finalizers = { "x.io/f", "a/b", "x.io/f" }, deleted = true }
    local r = run(o)
    assert.same({ "finalize 5", 'patch n/s {"finalizers":["a/b"],"resourceVersion":"5","uid":"id3"}' }, r.log)
    -- The cache still shows the object; nothing more is done.
    assert.same({}, run(o).log)
    for _, word in ipairs { "after", "retry", "requeue", "error", "fail" } do
      r = run(object { finalizers = { "x.io/f" }, deleted = true }, nil, word)
      assert.same({ true, word, 1 }, { r.ok, r.word, #r.log })
    end
    r = run(object { uid = "id4", finalizers = { "x.io/f" }, deleted = true }, nil, { status = {} })
    assert.same({ "finalize 1", "status" }, { r.log[1], r.log[2] })
    assert.truthy(r.log[3]:find('"finalizers":null,"resourceVersion":"9"', 1, true), r.log[3])
  end)

  it("is removed from the fresh object after a conflict; finalize runs again only if the generation \z
    changed", function()
    local function fresh(more)
      more.finalizers, more.deleted, more.uid = more.finalizers or { "x.io/f", "c/d" }, true,
        more.uid or "same"
      return function() return object(more) end
    end
    local function first(_, n) if n == 1 then error(conflict(), 0) end end
    local function start(name)
      return object { uid = name, rv = "5", finalizers = { "x.io/f" }, deleted = true, generation = 3 }
    end
    local r = run(start "same", { send = first, get = fresh { rv = "6", generation = 3 } })
    assert.same({ "get", 'patch n/s {"finalizers":["c/d"],"resourceVersion":"6","uid":"same"}' },
      { r.log[3], r.log[4] })
    r = run(start "same2", { send = first, get = fresh { uid = "same2", rv = "6", generation = 4 } })
    assert.same({ false, "conflict", 3 }, { r.ok, r.word.kind, #r.log })
    r = run(start "same3", { send = first, get = fresh { uid = "another", generation = 3 } })
    assert.same({ true, 3 }, { r.ok, #r.log })
    r = run(start "same4", { send = first, get = function() end })
    assert.same({ true, 3 }, { r.ok, #r.log })
    r = run(start "same5", { send = first, get = fresh { uid = "same5", generation = 3,
      finalizers = { "c/d" } } })
    assert.same({ true, 3 }, { r.ok, #r.log })
    r = run(start "same6", { send = function() error(conflict(), 0) end,
      get = fresh { uid = "same6", generation = 3 } })
    assert.same({ false, "conflict" }, { r.ok, r.word.kind })
    r = run(start "same7", { send = function() error(absent(), 0) end })
    assert.same({ true, 2 }, { r.ok, #r.log })
    r = run(start "same8", { send = function()
      error(core.error { kind = "forbidden", code = 403, message = "no" }, 0)
    end })
    assert.same({ false, "forbidden" }, { r.ok, r.word.kind })
  end)
end)
