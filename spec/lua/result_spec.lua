-- result_spec.lua - the result of a reconcile: the order of results and of effects, and that nothing is sent
-- when a part is invalid. The client is stubbed; e2e/script_spec.lua uses real servers.

local core = require "kubelua.core"
local result = require "kubelua.result"

-- Settles `r` with a client that records its requests. refuse: the op that fails.
local function settled(r, why, refuse)
  local did, warned = {}, {}
  local ctx = { log = { warn = function(_, text) warned[#warned + 1] = text end } }
  function ctx.event(_, e, _, message) did[#did + 1] = "event " .. e.reason .. " " .. message end
  function ctx.warn(_, e, _, message) did[#did + 1] = "warning " .. e.reason .. " " .. message end
  local hands = {
    apply = function(_, what, o, force)
      if not o.name then error(what .. ": the object has no name", 0) end
      return "apply " .. o.name .. (force and " by force" or "")
    end,
    delete = function(_, _, o) return "delete " .. (o.name or o.metadata.name) end,
    send = function(op)
      if op == refuse then error(core.error { kind = "forbidden", code = 403, message = "no" }, 0) end
      did[#did + 1] = op
    end,
    status = function(_, _, status, observed)
      did[#did + 1] = "status " .. core.encode(status) .. (observed and " observed" or "")
    end,
    priority = function(n) did[#did + 1] = "priority " .. n end,
  }
  local outcome = table.pack(pcall(result.settle, hands, ctx, {}, r, why))
  return { ok = outcome[1], word = outcome[2], after = outcome[3], why = outcome[4], did = did,
    warned = warned }
end

describe("a result", function()
  it("is done, a wait, a retry or a failure", function()
    local conflict = core.error { kind = "conflict", code = 409, message = "changed" }
    local cases = {
      { nil, nil, "done" }, { true, nil, "done" }, { true, "ignored", "done" }, { 30, nil, "after", 30 },
      { "1m", nil, "after", 60 }, { 0, nil, "done" }, { "0s", nil, "done" },
      { result.retry("5s", "not yet"), nil, "retry", 5, "not yet" },
      { result.fail "never", nil, "fail", nil, "never" },
      { nil, "broken", "error", nil, "broken" }, { nil, conflict, "conflict" },
      { nil, result.fail "never", "fail", nil, "never" },
      { {}, nil, "done" }, { { requeue_after = 2 }, nil, "after", 2 }, { { requeue_after = 0 }, nil, "done" },
      { { requeue = true }, nil, "requeue" }, { { requeue = false }, nil, "done" },
      { { fail = "never" }, nil, "fail", nil, "never" },
      { { error = "broken" }, nil, "error", nil, "broken" }, { { error = conflict }, nil, "conflict" },
    }
    for i, case in ipairs(cases) do
      local s = settled(case[1], case[2])
      assert.is_true(s.ok, ("case %d: %s"):format(i, tostring(s.word)))
      assert.equal(case[3], s.word, "case " .. i)
      assert.equal(case[4], s.after, "case " .. i)
      if case[5] then assert.equal(case[5], s.why, "case " .. i) end
    end
  end)

  it("counts in the order error, fail, requeue_after, requeue, as controller-runtime's", function()
    local all = { error = "e", fail = "f", requeue_after = 5, requeue = true }
    for _, want in ipairs { "error", "fail", "after", "requeue", "done" } do
      assert.equal(want, settled(all).word)
      all[({ error = "error", fail = "fail", after = "requeue_after", requeue = "requeue" })[want]
        or "none"] = nil
    end
    local both = settled { error = "e", requeue_after = 5 }
    assert.equal(1, #both.warned)
    local returned = settled({ requeue_after = 5, apply = { { name = "never" } } }, "broken")
    assert.same({ "error", {} }, { returned.word, returned.did })
    assert.equal(1, #returned.warned)
    assert.equal(0, #settled({ requeue_after = 5, requeue = true }).warned)
    assert.equal("requeue", settled { requeue_after = 0, requeue = true }.word)
  end)

  it("sends its writes in order, then returns what is next", function()
    local s = settled {
      events = { { reason = "Done", message = "100%" }, { type = "Warning", reason = "Bad", message = "m" } },
      status = { n = 1 },
      observed_generation = true, delete = { kind = "v1/Pod", name = "d" },
      apply = { { name = "a" }, { name = "b" } }, requeue_after = 3, priority = -5,
    }
    assert.same({ "apply a", "apply b", "delete d", "status {\"n\":1} observed", "event Done 100%",
      "warning Bad m", "priority -5" }, s.did)
    assert.same({ "after", 3 }, { s.word, s.after })
    assert.same({ "apply a by force" }, settled { apply = { name = "a" }, force = true }.did)
    assert.same({ "status {} observed" }, settled { observed_generation = true }.did)
    assert.same({ "status {\"n\":1}", "fail" }, { settled { status = { n = 1 }, fail = "f" }.did[1],
      settled { status = { n = 1 }, fail = "f" }.word })
    assert.same({ "apply a" }, settled { apply = core.value { kind = "v1/Pod", name = "a" } }.did)
    assert.same({ "delete a", "delete b" }, settled {
      delete = { core.value { kind = "Pod", apiVersion = "v1", metadata = { name = "a" } },
        { kind = "Pod", apiVersion = "v1", metadata = { name = "b" } } },
    }.did)
  end)

  it("stops at the first failed write, and is then an error", function()
    local s = settled({ apply = { { name = "a" }, { name = "b" } }, status = { n = 1 }, requeue_after = 3,
      priority = 7 }, nil, "apply b")
    assert.is_false(s.ok)
    assert.equal("forbidden", s.word.kind)
    assert.same({ "apply a" }, s.did)
  end)

  it("sends nothing if any part is invalid, and names the place", function()
    local function conditions(...)
      return { conditions = { { type = "Ready", status = "True", reason = "Ok" }, ... } }
    end
    local cases = {
      ["result: unknown key 'requeue_afer'; did you mean 'requeue_after'?"] = { requeue_afer = 1 },
      ["result.requeue_after must be seconds or a duration such as \"30s\", not negative, got -1"] = {
        requeue_after = -1 },
      ["result.requeue must be true or false, got number; use requeue_after for a delay"] = { requeue = 5 },
      ["result.error must be a string with the reason, got boolean"] = { error = true },
      ["result.fail must be a string with the reason, got table"] = { fail = {} },
      ["result.force must be true (take the fields that it applies from other managers) or false, \z
        got string"] = { force = "yes" },
      ["result.priority must be a whole number from -1000000 to 1000000, got 1.5"] = { priority = 1.5 },
      ["got 2000000"] = { priority = 2000000 },
      ["result.apply[2] must be an object, got string"] = { apply = { { name = "a" }, "b" } },
      ["result.apply[2]: the object has no name"] = { apply = { { name = "a" }, {} } },
      ["result.apply[1] is nil but [2] is not"] = { apply = { [2] = { name = "a" } } },
      ["result.apply must be a table, got boolean"] = { apply = true },
      ["result.delete[1].name must be a string, got nil"] = { delete = { kind = "v1/Pod" } },
      ["result.delete[1]: unknown key 'nmae'; did you mean 'name'?"] = {
        delete = { kind = "v1/Pod", nmae = "x" } },
      ["result.status must be a table of status fields, got number"] = { status = 1 },
      ["result.status must be a table of status fields, got a list"] = { status = { { type = "Ready" } } },
      ["result.status.conditions[2]: reason of Up is missing"] = {
        status = conditions { type = "Up", status = "True" } },
      ["result.status.conditions[2]: expected a condition as a table, got string"] = {
        status = conditions "Up" },
      ["result.observed_generation must be true or false, got number"] = { observed_generation = 3 },
      ["result.events[1].type must be Normal or Warning, got Bad"] = {
        events = { { type = "Bad", reason = "R", message = "m" } } },
      ["result.events[1].message must be a string, got nil"] = { events = { { reason = "R" } } },
      ["result.events[2]: the reason must be one word in UpperCamelCase such as \"SourceMissing\", got not \z
        so"] = {
        events = { { reason = "R", message = "m" }, { reason = "not so", message = "m" } },
      },
      ["reconcile returned a function"] = print,
      ["reconcile returned an object"] = core.value { a = 1 },
      ["not negative, got soon"] = "soon",
    }
    for part, r in pairs(cases) do
      -- In addition to the mistake there is something to send.
      if type(r) == "table" then
        r.apply = r.apply == nil and { { name = "never" } } or r.apply
      end
      local s = settled(r)
      assert.is_false(s.ok, part)
      assert.truthy(tostring(s.word):find(part, 1, true), ("%q is not in %s"):format(part, tostring(s.word)))
      assert.same({}, s.did)
    end
  end)

  it("treats raised results the same way", function()
    assert.same({ "error", "x" }, { (result.verdict "x"), select(3, result.verdict "x") })
    assert.equal("retry", (result.verdict(result.retry(1))))
    assert.equal("fail", (result.verdict(result.fail "x")))
    assert.equal("conflict", (result.verdict(core.error { kind = "conflict", code = 409, message = "m" })))
    assert.equal("error", (result.verdict(core.error { kind = "already_exists", code = 409, message = "m" })))
  end)

  it("treats a 404 of the reconciled object as a stale cache, and no other", function()
    local function verdict(kind, key, message)
      local e = core.error { kind = "not_found", code = 404, verb = "patch", resource = "v1/Pod",
        key = "default/a", message = message or 'pods "a" not found' }
      return (result.verdict(e, kind, key))
    end
    assert.equal("conflict", verdict("v1/Pod", "default/a"))
    assert.equal("error", verdict("v1/Pod", "default/b"))
    assert.equal("error", verdict("v1/Secret", "default/a"))
    assert.equal("error", verdict(nil, "default/a"))
    assert.equal("error", verdict("v1/Pod", "default/a", "the server could not find the requested resource"))
  end)
end)
