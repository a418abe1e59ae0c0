-- stuck_load_spec.lua - the load of a script hangs in a C function: nothing waits for it. Debug builds have
-- such a function.
-- real in asan: what scripts do to the process, on both servers

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local DEBUG = (os.getenv "KL_VARIANT" or "release") ~= "release"
local SCRIPT = [[
local kube = require "kubelua"     -- %s
return kube.controller { name = "stuck", resource = "v1/ConfigMap", namespaces = { %q },
  reconcile = function(o, ctx)
    ctx.log:info("%s saw %%s", o.metadata.name)
  end }
]]

if DEBUG then
  servers.each(function(name, start)
    describe("a load that never returns, against " .. name .. ",", function()
      local server, client, ns, run
      lazy_setup(function()
        server = start {}
        client = controller.client(server)
        ns = controller.namespace(client, "stuck")
        run = controller.start_with({ "KUBELUA_STRESS_STUCK=never comes back" }, server,
          SCRIPT:format("sound", ns, "the first"))
        run:wait_for_log(60, "controller is running controller=stuck")
      end)
      lazy_teardown(function()
        if run then run:stop(5) end
        if server then server:stop() end
      end)

      local function see(who, key)
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key }
        run:wait_for_log(60, who .. " saw " .. key)
      end

      it("delays no keys, and is abandoned", function()
        process.write(run.script_path, SCRIPT:format("never comes back", ns, "nobody"))
        see("the first", "meanwhile")
        run:wait_for_log(120, "its load is stuck in a C function and was abandoned")
        see("the first", "afterwards")
      end)

      it("is not tried again while its file is unchanged", function()
        local function count(text) return select(2, run:log():gsub(text, "")) end
        local function loads()
          return select(2, process.run(("cat /proc/%d/task/*/comm"):format(run.pid)):gsub("kl%-load", ""))
        end
        local before = count "was abandoned"
        assert.equal(1, loads())
        run:signal "HUP"
        wait.until_true(60, "the second refusal", function() return count "was abandoned" > before end)
        assert.equal(1, loads())
      end)

      it("is followed by a valid script", function()
        process.write(run.script_path, SCRIPT:format("sound again", ns, "the second"))
        run:wait_for_log(60, "loaded the next generation")
        see("the second", "new")
      end)

      it("is named when the process ends, which has status 1", function()
        assert.equal(1, run:stop(45))
        assert.truthy(run:log():find("a script's load is stuck; exiting without waiting for it", 1, true),
          run:log())
      end)
    end)
  end)
else
  describe("a release build", function()
    it("has no function that never returns", function()
      local path = process.write(process.tmpname ".lua",
        SCRIPT:format("never comes back", "default", "nobody"))
      local out, code = process.run(("KUBELUA_STRESS_STUCK='never comes back' %s check %s"):format(
        os.getenv "KUBELUA" or "build/kubelua", path))
      assert.equal(0, code, out)
    end)
  end)
end
