-- cli_diff_spec.lua - the changes that `kubelua watch` prints.

local diff = require "kubelua.cli.diff"
local kube = require "kubelua"

local function said(a, b) return diff.text(kube.decode(kube.encode(a)), kube.decode(kube.encode(b))) end

describe("a difference of two objects", function()
  local function check(expected, a, b) assert.equal(expected, said(a, b)) end

  it("names the paths of changed, added and removed fields", function()
    check('spec.replicas: 1 -> 2', { spec = { replicas = 1 } }, { spec = { replicas = 2 } })
    check('a: 1 -> none, b: none -> "x"', { a = 1 }, { b = "x" })
    check('spec: none -> {"a":1}', { x = 1 }, { x = 1, spec = { a = 1 } })
    check('metadata.labels[app.kubernetes.io/name]: "a" -> "b"',
      { metadata = { labels = { ["app.kubernetes.io/name"] = "a" } } },
      { metadata = { labels = { ["app.kubernetes.io/name"] = "b" } } })
    check("", { a = { b = { 1, 2 } } }, { a = { b = { 1, 2 } } })
  end)

  it("identifies elements by name, or else by position", function()
    check('c[b].image: "1" -> "2"', { c = { { name = "a" }, { name = "b", image = "1" } } },
      { c = { { name = "b", image = "2" }, { name = "a" } } })
    check('conditions[Ready].status: "False" -> "True"',
      { conditions = { { type = "Ready", status = "False" } } },
      { conditions = { { type = "Ready", status = "True" } } })
    check("ports[1]: 1 -> 2, ports[2]: none -> 3", { ports = { 1 } }, { ports = { 2, 3 } })
    check('c[2]: none -> {"name":"a"}', { c = { { name = "a" } } },
      { c = { { name = "a" }, { name = "a" } } })
  end)

  it("does not take a list for an object", function()
    check("x: [1] -> {\"a\":1}", { x = { 1 } }, { x = { a = 1 } })
    check("x: {} -> [1]", { x = kube.object {} }, { x = { 1 } })
  end)

  it("omits the server's bookkeeping", function()
    check("", { metadata = { resourceVersion = "1", generation = 1, managedFields = { { time = "a" } } } },
      { metadata = { resourceVersion = "2", generation = 2, managedFields = { { time = "b" } } } })
  end)

  it("cuts long values, at a character, and hides secrets", function()
    local text = said({ a = "x" }, { a = ("é"):rep(100) })
    assert.equal('a: "x" -> "' .. ("é"):rep(60) .. "...", text)
    check("data.a: (changed), data.b: (added), stringData: (removed)",
      { kind = "Secret", data = { a = "1" }, stringData = { x = "y" } },
      { kind = "Secret", data = { a = "2", b = "3" } })
    check("data: (added)", { kind = "Secret" }, { kind = "Secret", data = { a = "2" } })
    local applied = "kubectl.kubernetes.io/last-applied-configuration"
    local function annotated(word)
      return { kind = "Secret", metadata = { annotations = { [applied] = word }, labels = { tier = word } } }
    end
    check(("metadata.annotations[%s]: (changed), metadata.labels.tier: \"a\" -> \"b\""):format(applied),
      annotated "a", annotated "b")
  end)
end)
