-- embed_spec.lua - the example C program (spec/programs/embed.c) is a controller without Lua.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local EMBED = (os.getenv "KL_BUILD" or "build") .. "/spec/embed"
local ANNOTATION = "embed.example.com/keys"

servers.each(function(name, start)
  describe("a C program that embeds the library, against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "embed")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function map(key, label, data)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, labels = label and { embed = label },
        data = data }
    end

    local function counted(key)
      local annotations = client:get("v1/ConfigMap", ns, key).metadata.annotations
      return annotations and annotations[ANNOTATION]
    end

    it("counts the keys of the given kind, and exits with status 0", function()
      map("two", "count", { a = "1", b = "2" })
      map("none", "count")
      map("other", "ignore", { a = "1" })
      map("bare", nil, { a = "1" })
      local p = process.spawn { EMBED, "--kubeconfig", server.kubeconfig }
      p:wait_for_log(20, "running")
      wait.until_true(20, "the counts", function() return counted "two" == "2" and counted "none" == "0" end)

      map("late", "count", { a = "1" })
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "two" }, { data = { c = "3" } })
      wait.until_true(20, "the new counts", function()
        return counted "late" == "1" and counted "two" == "3"
      end)
      assert.is_nil(counted "other")
      assert.is_nil(counted "bare")
      assert.equal(0, p:stop(), p:log())
    end)
  end)
end)

describe("a C program that embeds the library", function()
  it("explains a missing cluster", function()
    local out, code = process.run(EMBED .. " --kubeconfig /nowhere/config")
    assert.equal(1, code)
    assert.truthy(out:find("embed: no cluster: ", 1, true) and out:find("/nowhere/config", 1, true), out)
  end)
end)
