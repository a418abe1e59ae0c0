-- restarts_spec.lua - starting and stopping leaks no threads, descriptors or memory
-- (spec/programs/restarts.c).
-- real in asan, tsan: a server that comes back

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local RESTARTS = (os.getenv "KL_BUILD" or "build") .. "/spec/restarts"
-- The sanitizers find leaks themselves, and malloc's statistics are not available with them.
local PLAIN = (os.getenv "KL_VARIANT" or "release") == "release"
local ROUNDS = sizes.of { short = 36, long = 60, sanitized = 4 }
-- A leak of 64 bytes per controller and round adds up to 38,400 in 12 rounds; the growth of malloc and its
-- threads comes in steps of some thousand. The leak checker of the sanitized runs finds a single byte.
local NOISE = 32768

local function least(rounds, from, to)
  local n = math.huge
  for i = from, to do n = math.min(n, rounds[i].bytes) end
  return n
end

servers.each(function(name, start)
  describe("50 controllers against " .. name, function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("start, stop and start again, and leave no thread, descriptor or byte behind", function()
      local ns = controller.namespace(client, "restarts")
      local p = process.spawn { RESTARTS, "--kubeconfig", server.kubeconfig, ns, ROUNDS }
      assert.equal(0, p:wait(300 * wait.factor), p:log())
      local rounds = {}
      for threads, fds, bytes,
        n in p:log():gmatch "round %d+ threads=(%d+) fds=(%d+) bytes=(%d+) controllers=(%d+)" do
        rounds[#rounds + 1] = { threads = tonumber(threads), fds = tonumber(fds), bytes = tonumber(bytes),
          controllers = tonumber(n) }
      end
      assert.equal(ROUNDS, #rounds, p:log())
      for _, round in ipairs(rounds) do
        assert.equal(50, round.controllers)
        assert.equal(rounds[1].threads, round.threads, p:log())
        assert.equal(rounds[1].fds, round.fds, p:log())
      end
      if PLAIN then
        local third = ROUNDS // 3
        local grown = least(rounds, ROUNDS - third + 1, ROUNDS) - least(rounds, ROUNDS - 2 * third + 1,
          ROUNDS - third)
        assert.is_true(grown < NOISE, ("grown by %d bytes\n%s"):format(grown, p:log()))
      end
    end)
  end)
end)
