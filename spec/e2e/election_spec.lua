-- election_spec.lua - leader election between processes: a handover at a graceful stop and after a crash, one
-- lease for each controller, and a standby that may not watch the lease.
-- real in asan, tsan: leases are renewed while connections are cut
local controller = require "support.controller"
local process = require "support.process"
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

    local function contender(lease, duration, deadline, retry)
      return controller.start(server, controller.answering(ns, "!"), "--leader-elect",
        "--leader-elect-resource-namespace", ns,
        "--leader-elect-resource-name", lease, "--leader-elect-lease-duration", duration,
        "--leader-elect-renew-deadline", deadline,
        "--leader-elect-retry-period", retry or "1s")
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

    it("hand over at once when the leader stops", function()
      -- A lease that is long enough for a busy machine, and a standby whose next request comes after 30 s.
      local first, second, leader = one_of_two_leads("polite", "60s", "40s", "30s")
      controller.ask(client, ns, 1, 5)
      controller.await_answers(client, ns, 5, 20, answer)
      assert.equal(leader, holder "polite")
      controller.finish(first)
      wait.until_true(28 / wait.factor, "the other one leads", function()
        local who = holder "polite"
        return who and who ~= leader
      end)
      controller.ask(client, ns, 6, 10)
      controller.await_answers(client, ns, 10, 20, answer)
      controller.finish(second)
      assert.is_nil(holder "polite")
    end)

    it("hand over when the lease has expired after the leader's death", function()
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

    -- A script with three ways to lead; each controller writes the identity of its process into the object
    -- with its name.
    local function three(mine, identity, without_own)
      local function one(called, more)
        return ([[kube.controller { name = "%s", resource = "v1/ConfigMap", namespaces = { %q }, %s
          reconcile = function(map, ctx)
            if map.metadata.name == "%s" then ctx:patch(map, { data = { %s = tostring(ctx.epoch) } }) end
          end }]]):format(called, mine, more or "", called, identity)
      end
      return ('local kube = require "kubelua"\nreturn { %s, %s%s }'):format(one "usual",
        one("everywhere", "leader = false,"),
        without_own and "" or ", " .. one("alone", 'leader = "own",'))
    end

    it("lead a controller with its own lease alone, and one without a lease together", function()
      local mine = controller.namespace(client, "offices")
      for _, object in ipairs { "usual", "everywhere", "alone" } do
        client:create { kind = "v1/ConfigMap", namespace = mine, name = object }
      end
      local function replica(identity)
        return controller.start(server, three(mine, identity), "--leader-elect",
          "--leader-elect-resource-namespace", mine,
          "--leader-elect-resource-name", "shop", "--leader-elect-identity", identity,
          "--leader-elect-lease-duration", "60s",
          "--leader-elect-renew-deadline", "40s", "--leader-elect-retry-period", "10s")
      end
      local function said(object) return client:get("v1/ConfigMap", mine, object)("data") end
      local function holds(lease)
        local l = client:get("coordination.k8s.io/v1/Lease", mine, lease)
        return l and l("spec.holderIdentity")
      end
      local first = replica "first"
      wait.until_true(30, "the first one everywhere", function()
        return said "usual" and said "everywhere" and said "alone"
      end)
      assert.equal("first", holds "shop")
      assert.equal("first", holds "shop-alone")
      local second = replica "second"
      wait.until_true(30, "the second one where no lease is needed", function()
        return said("everywhere")("second")
      end)
      assert.equal("0", said("everywhere").second)
      assert.is_nil(said("usual")("second"))
      -- A reload without the controller releases its lease, and the other replica takes it.
      process.write(first.script_path, three(mine, "first", true))
      wait.until_true(30, "the second one has the lease of the one that is gone", function()
        return said("alone")("second")
      end)
      assert.equal("second", holds "shop-alone")
      assert.equal("1", said("alone").second)
      assert.equal("first", holds "shop")
      local log = first:log()
      assert.matches("this lease is no longer needed; it was released", log, 1, true)
      assert.not_matches("no longer leads", log, 1, true)
      -- And back: it waits for its lease, the others go on.
      process.write(first.script_path, three(mine, "first"))
      first:wait_for_log(30, "alone: waiting for leadership")
      controller.finish(second)
      wait.until_true(30, "the first one has it again", function() return holds "shop-alone" == "first" end)
      controller.finish(first)
      assert.equal("", holds "shop")
      assert.equal("", holds "shop-alone")
    end)

    it("share the work with --leader-elect-per-controller", function()
      local mine = controller.namespace(client, "shared")
      local run = controller.start(server, controller.answering(mine, "!"), "--leader-elect-per-controller",
        "--leader-elect-resource-namespace", mine,
        "--leader-elect-resource-name", "shop")
      wait.until_true(30, "a lease of its own", function()
        return client:get("coordination.k8s.io/v1/Lease", mine, "shop-answers-" .. mine)
      end)
      assert.is_nil(client:get("coordination.k8s.io/v1/Lease", mine, "shop"))
      controller.ask(client, mine, 1, 3)
      controller.await_answers(client, mine, 3, 30, answer)
      controller.finish(run)
    end)
  end)
end)

servers.only_real(function(name, start)
  describe("a standby without the right to watch the lease, against " .. name, function()
    it("logs it, polls, and takes over", function()
      local server = start {}
      local client = controller.client(server)
      local ns = controller.namespace(client, "unwatched")
      local user = "joe-" .. ns
      client:apply { kind = "rbac.authorization.k8s.io/v1/Role", namespace = ns, name = user, rules = {
        { apiGroups = { "" }, resources = { "configmaps" }, verbs = { "list", "watch", "patch" } },
        { apiGroups = { "coordination.k8s.io" }, resources = { "leases" },
          verbs = { "get", "create", "update" } } } }
      client:apply { kind = "rbac.authorization.k8s.io/v1/RoleBinding", namespace = ns, name = user,
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = user },
        subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = user } } }
      local function contender()
        return controller.start(server, controller.answering(ns, "!"), "--namespace", ns, "--as", user,
          "--as-group", "system:authenticated",
          "--leader-elect", "--leader-elect-resource-namespace", ns, "--leader-elect-resource-name", "lock",
          "--leader-elect-retry-period", "1s")
      end
      local first = contender()
      first:wait_for_log(30, "controller is running")
      local second = contender()
      second:wait_for_log(30, "the lease cannot be watched")
      controller.finish(first)
      controller.ask(client, ns, 1, 3)
      controller.await_answers(client, ns, 3, 60, answer)
      controller.finish(second)
    end)
  end)
end)
