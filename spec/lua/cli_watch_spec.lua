-- cli_watch_spec.lua - get --watch and watch when the server has expired their version: one new list, and the
-- missed changes. The client is scripted.

local core = require "kubelua.core"
local kube = require "kubelua"

local RESOURCE = { group = "", version = "v1", kind = "ConfigMap", plural = "configmaps",
  singular = "configmap", namespaced = true }

local function map(name, version, value)
  return kube.decode(kube.encode { apiVersion = "v1", kind = "ConfigMap",
    metadata = { namespace = "ns", name = name, uid = "u-" .. name, resourceVersion = version },
    data = { a = value } })
end

local function row(o)
  return { cells = kube.decode(kube.encode { o.metadata.name, o.data.a }), object = o }
end

-- states: the objects of each list; streams: the events of each watch before it ends with 410, the last one
-- with "over".
local function client(states, streams)
  local c = setmetatable({ began = {} }, { __close = function() end })
  local now = {}
  function c:resource() return RESOURCE end -- luacheck: no self
  function c:namespace() return "ns" end -- luacheck: no self
  function c:list() -- luacheck: no self
    now = table.remove(states, 1)
    return now, tostring(#now)
  end
  function c:table(_, opts) -- luacheck: no self
    local name = opts.fields and opts.fields:match "metadata.name=(.+)"
    if not name then now = table.remove(states, 1) end
    local rows = {}
    for _, o in ipairs(now) do
      if not name or o.metadata.name == name then rows[#rows + 1] = row(o) end
    end
    return { columns = { kube.decode '{"name":"Name"}', kube.decode '{"name":"A"}' }, rows = rows,
      resourceVersion = tostring(#now) }
  end
  function c:watch(_, opts)
    self.began[#self.began + 1] = opts.resource_version
    local events = table.remove(streams, 1)
    return function()
      local e = table.remove(events, 1)
      if e == "over" then error("over", 0) end
      if not e then error(core.error { code = 410, kind = "gone", message = "too old" }, 0) end
      for i, o in ipairs(now) do
        if o.metadata.name == e[2].metadata.name then now[i] = e[2] end
      end
      return e[1], e[2]
    end
  end
  return c
end

-- What a command prints with that client.
local function run(command, c, options)
  local out = {}
  local kept, write, say = package.loaded["kubelua.client"], io.write, print
  package.loaded["kubelua.client"] = { connect = function() return c end }
  rawset(io, "write", function(...) out[#out + 1] = table.concat({ ... }) end)
  _G.print = function(text) out[#out + 1] = text .. "\n" end
  local ok, err = pcall(require("kubelua.cli." .. command).run,
    { command = command, words = { "cm" }, options = options, connect = {} })
  package.loaded["kubelua.client"], _G.print = kept, say
  rawset(io, "write", write)
  assert.is_false(ok)
  assert.equal("over", err)
  return (table.concat(out):gsub("%d%d:%d%d:%d%d ", ""))
end

describe("a watching command, when its version expires", function()
  it("get --watch prints the changed rows", function()
    local c = client({ { map("a", "1", "x"), map("b", "1", "y") },
      { map("a", "1", "x"), map("b", "5", "z"), map("c", "6", "new") } },
      { { { "MODIFIED", map("a", "2", "x") } }, { "over" } })
    assert.equal("NAME   A\na      x\nb      y\na      x\nb      z\nc      new\n",
      run("get", c, { watch = true }))
    assert.same({ "2", "3" }, c.began)
  end)

  it("watch reports what was missed", function()
    local c = client({ { map("a", "1", "x"), map("b", "1", "y") },
      { map("b", "5", "z"), map("c", "6", "new") } },
      { { { "MODIFIED", map("a", "2", "w") } }, { { "DELETED", map("c", "7", "new") }, "over" } })
    assert.equal('MODIFIED ns/a  data.a: "x" -> "w"\nMODIFIED ns/b  data.a: "y" -> "z"\nADDED    \z
      ns/c\nDELETED  ns/a\nDELETED  ns/c\n', run("watch", c, {}))
  end)

  it("watch says once that only bookkeeping changed", function()
    local c = client({ { map("a", "1", "x") } },
      { { { "MODIFIED", map("a", "2", "x") }, { "MODIFIED", map("a", "2", "x") }, "over" } })
    assert.equal("MODIFIED ns/a  (only bookkeeping: resourceVersion, managedFields)\n", run("watch", c, {}))
  end)
end)
