-- pager_spec.lua - lists in pages, and their continuation after the server expired the token.

local kube = require "kubelua"
local core = require "kubelua.core"
local pager = require "kubelua.pager"

local function pod(name, namespace) return { metadata = { name = name, namespace = namespace or "ns" } } end

local function answer(names, continue, version)
  local items = kube.array {}
  for _, name in ipairs(names) do items[#items + 1] = pod(name) end
  return core.value { apiVersion = "v1", kind = "PodList",
    metadata = { continue = continue, resourceVersion = version or "5" }, items = items }
end

local function gone(continue)
  return core.error { code = 410, kind = "gone", message = "too old",
    details = continue and core.value { continue = continue } or nil }
end

--- A scripted server: each entry is an answer, or an error to raise. Returns send, and the requests.
local function server(script)
  local asked = {}
  return function(op)
    asked[#asked + 1] = ("%s/%s/%s"):format(op.limit or "all", op.continue_token or "-", op.rv or "-")
    local next_answer = assert(script[#asked], "asked more often than the script says")
    if core.is_error(next_answer) then error(next_answer, 0) end
    return next_answer
  end, asked
end

local function names(list)
  local out = {}
  for i, o in ipairs(list) do out[i] = o.metadata.name end
  return table.concat(out, " ")
end

local function drain(send, op)
  local list = {}
  for o in pager.each(send, op) do list[#list + 1] = o end
  return names(list)
end

describe("a whole list", function()
  it("comes in pages, only the first of which names a version", function()
    local send, asked = server { answer({ "a", "b" }, "t1"), answer({ "c" }, "t2"), answer { "d" } }
    local all, version = pager.all(send, { rv = "3" })
    assert.equal("a b c d", names(all))
    assert.equal("5", version)
    assert.same({ "500/-/3", "500/t1/-", "500/t2/-" }, asked)
  end)

  it("restarts once, in one piece at the requested version, after an expired continue token",
    function()
    local send, asked = server { answer({ "a", "b" }, "t1"), gone "t9", answer({ "a", "b", "c" }, nil, "9") }
    local all, version = pager.all(send, { rv = "3" })
    assert.equal("a b c", names(all))
    assert.equal("9", version)
    assert.same({ "500/-/3", "500/t1/-", "all/-/3" }, asked)
  end)

  it("does not restart twice, nor after other errors, nor if its first page fails", function()
    for _, script in ipairs {
      { answer({ "a" }, "t1"), gone(), answer({ "a" }, "t2"), gone() },
      { answer({ "a" }, "t1"), core.error { code = 500, kind = "server", message = "broken" } },
      { gone() },
    } do
      local send, asked = server(script)
      local _, err = kube.try(pager.all, send, {})
      assert.is_true(kube.is_error(err))
      assert.equal(#script, #asked)
    end
  end)
end)

describe("an iterator", function()
  it("asks for the next page when it gets there", function()
    local send, asked = server { answer({ "a", "b" }, "t1"), answer({}, "t2"), answer { "c" } }
    local next_pod = pager.each(send, {})
    assert.equal(0, #asked)
    assert.equal("a", next_pod().metadata.name)
    assert.equal("b", next_pod().metadata.name)
    assert.equal(1, #asked)
    assert.equal("c", next_pod().metadata.name)
    assert.is_nil(next_pod())
    assert.is_nil(next_pod())
  end)

  it("ends at its limit without asking for more", function()
    local send, asked = server { answer({ "a", "b", "c" }, "t1") }
    assert.equal("a b", drain(send, { limit = 2 }))
    assert.same({ "2/-/-" }, asked)
  end)

  it("continues with the token of the 410, without repeats", function()
    local send, asked = server { answer({ "a", "b" }, "t1"), gone "t9", answer({ "c" }, "t10"), gone "t11",
      answer { "d" } }
    assert.equal("a b c d", drain(send, {}))
    assert.same({ "500/-/-", "500/t1/-", "500/t9/-", "500/t10/-", "500/t11/-" }, asked)
  end)

  it("reads the whole list if no token is offered, and skips known objects", function()
    local send, asked = server { answer({ "a", "c" }, "t1"), gone(), answer { "a", "b", "c", "d" } }
    assert.equal("a c d", drain(send, { rv = "3" }))
    assert.same({ "500/-/3", "500/t1/-", "all/-/3" }, asked)
  end)

  it("gives up if both the offered token and the whole list fail", function()
    local send = server { answer({ "a" }, "t1"), gone "t9", gone "t9", answer({ "a", "b" }, "t2"), gone() }
    local seen = {}
    local ok, err = pcall(function()
      for o in pager.each(send, {}) do seen[#seen + 1] = o.metadata.name end
    end)
    assert.is_false(ok)
    assert.equal(410, err.code)
    assert.same({ "a", "b" }, seen)
  end)

  it("raises other errors", function()
    local send = server { core.error { code = 403, kind = "forbidden", message = "no" } }
    assert.equal(403, select(2, kube.try(pager.each(send, {}))).code)
  end)
end)

describe("a list without an end", function()
  local ways = { all = pager.all, each = drain }
  for name, read in pairs(ways) do
    it("is an error when a page offers the token it was asked with: " .. name, function()
      local send = server { answer({ "a" }, "t1"), answer({ "b" }, "t1") }
      local _, err = kube.try(read, send, {})
      assert.matches("the list does not end: a page returned the continue token", err.message)
    end)

    it("is an error when pages stay empty: " .. name, function()
      local script = {}
      for i = 1, pager.BARREN_PAGES do script[i] = answer({}, "t" .. i) end
      local send, asked = server(script)
      local _, err = kube.try(read, send, {})
      assert.matches("the list does not end: pages bring new continue tokens but no objects", err.message)
      assert.equal(pager.BARREN_PAGES, #asked)
    end)

    it("is not assumed while objects come between empty pages: " .. name, function()
      local script = {}
      for i = 1, 20 do script[i] = answer(i % 4 == 0 and { "p" .. 10 + i } or {}, "t" .. i) end
      script[21] = answer { "z" }
      assert.is_not_nil((kube.try(read, (server(script)), {})))
    end)
  end
end)
