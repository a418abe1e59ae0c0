local controller = require "support.controller"
local servers = require "support.servers"
local wait = require "support.wait"

local function answer(ask) return ask .. "!" end

servers.each(function(name, start)
  describe("two processes with --leader-elect against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "election")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function contender(lease, duration, deadline)
      return controller.start(server, controller.answering(ns, "!"), "--leader-elect", "--leader-elect-resource-namespace", ns,
        "--leader-elect-resource-name", lease, "--leader-elect-lease-duration", duration, "--leader-elect-renew-deadline", deadline,
        "--leader-elect-retry-period", "1s")
    end

    local function holder(lease)
      local l = client:get("coordination.k8s.io/v1/Lease", ns, lease)
      local who = l and l("spec.holderIdentity")
      return who ~= "" and who or nil
    end

    local function one_of_two_leads(lease, ...)
      local first = contender(lease, ...)
      local leader = wait.until_true(20, "a leader", function() return holder(lease) end)
      local second = contender(lease, ...)
      second:wait_for_log(20, "leadership")
      return first, second, leader
    end

    it("hand over at once when the leader says goodbye", function()
      -- A lease that outlives a busy machine's worst moments, and the wait below.
      local first, second, leader = one_of_two_leads("polite", "60s", "40s")
      controller.ask(client, ns, 1, 5)
      controller.await_answers(client, ns, 5, 20, answer)
      assert.equal(leader, holder "polite")
      controller.finish(first)
      wait.until_true(40 / wait.factor, "the other one leads", function()
        local who = holder "polite"
        return who and who ~= leader
      end)
      controller.ask(client, ns, 6, 10)
      controller.await_answers(client, ns, 10, 20, answer)
      controller.finish(second)
      assert.is_nil(holder "polite")
    end)

    it("hand over when the lease has run out after the leader's death", function()
      local first, second, leader = one_of_two_leads("sudden", "10s", "7s")
      first:kill()
      wait.until_true(30, "the other one leads", function()
        local who = holder "sudden"
        return who and who ~= leader
      end)
      controller.ask(client, ns, 11, 15)
      controller.await_answers(client, ns, 15, 20, answer)
      controller.finish(second)
    end)
  end)
end)
