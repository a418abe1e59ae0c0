-- streams_spec.lua - HTTP/2 with the real API server: many watches and calls share few connections, and none
-- starves.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"

local STREAMS = (os.getenv "KL_BUILD" or "build") .. "/spec/streams"

servers.only_real(function(name, start)
  describe("one client of " .. name, function()
    local server, ns
    lazy_setup(function()
      server = start {}
      ns = controller.namespace(controller.client(server), "streams")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("has 200 watches see 500 calls over a handful of connections", function()
      local out, code = process.run(("%s %s %s 200 500 2>&1"):format(STREAMS,
        process.quote(server.kubeconfig), ns))
      assert.equal(0, code, out)
      assert.matches('"events":100000,"good":500,"bad":0', out, 1, true)
      local connections = tonumber(out:match '"connections":(%d+)')
      -- three for 200 watches at 80 streams each, one or two for the calls
      assert.is_true(connections <= 6, out)
    end)
  end)
end)
