-- adopt_spec.lua - kube.adopt_fields: the fields of client-side apply become those of a manager.
local controller = require "support.controller"
local kube = require "kubelua"
local servers = require "support.servers"

local function managers(o)
  local list = {}
  for _, entry in ipairs(o.metadata.managedFields) do
    list[#list + 1] = entry.manager .. "/" .. entry.operation
  end
  table.sort(list)
  return table.concat(list, " ")
end

servers.each(function(name, start)
  describe("kube.adopt_fields on " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "adopt")
    end)
    lazy_teardown(function()
      if client then client:close() end
      if server then server:stop() end
    end)

    it("lets an applier remove fields that others updated", function()
      local made = client:create({ kind = "v1/ConfigMap", namespace = ns, name = "a",
        data = { old = "1", kept = "1" } }, { manager = "tool" })
      local function applied()
        return { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { kept = "2" } }
      end
      local plain = client:apply(applied(), { manager = "me", force = true })
      assert.equal("1", plain.data.old)                        -- tool's still
      client:patch(plain, function(draft) assert.is_true(kube.adopt_fields(draft, { "tool" }, "me")) end)
      local now = client:apply(applied(), { manager = "me", force = true })
      assert.is_nil(now.data("old"))
      assert.equal("2", now.data.kept)
      assert.equal("me/Apply", managers(now))
      assert.equal(made.metadata.uid, now.metadata.uid)
    end)

    it("joins several managers, and ignores an empty list", function()
      client:create({ kind = "v1/ConfigMap", namespace = ns, name = "b", data = { x = "1" } },
        { manager = "one" })
      local o = client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "b" }, { data = { y = "2" } },
        { manager = "two" })
      o = client:patch(o, function(draft) kube.adopt_fields(draft, { "one", "two" }, "me") end)
      assert.equal("me/Apply", managers(o))
      client:patch(o, function(draft) assert.is_false(kube.adopt_fields(draft, "one", "me")) end)
      local now = client:apply({ kind = "v1/ConfigMap", namespace = ns, name = "b", data = { z = "3" } },
        { manager = "me" })
      assert.same({ z = "3" }, kube.copy(now.data))
    end)
  end)
end)

describe("kube.adopt_fields", function()
  it("says what is wrong with its arguments", function()
    assert.error_matches(function() kube.adopt_fields({}, {}, "me") end, "managers must be a name")
    assert.error_matches(function() kube.adopt_fields({}, "a", "") end, "manager must be the name")
    assert.is_false(kube.adopt_fields({}, "a", "me"))
  end)
end)
