-- frozen_spec.lua - two replicas: the leader is stopped (SIGSTOP) until the other one has taken over, and
-- then continued (SIGCONT), again and again.
--
-- Each write says under which epoch it was made, and the order of resourceVersions is the order in which
-- the server took them. Two objects are written in every run: `ledger` with the resourceVersion that the
-- writer saw, `board` without. A frozen process may hold a request that was half on its way when it was
-- stopped, and nothing on this side of the network can take that back: where a write carries a version the
-- server refuses it, and where it does not, it is the only one that may come late.
-- real in asan: a leader that freezes before the real server

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- Pairs of replicas, each with its own lease, are frozen in parallel: a round takes as long as a lease.
local PAIRS = sizes.of { short = 3, long = 10, sanitized = 4 }
local FREEZES = sizes.of { short = 6, long = 200, sanitized = 16 }

local SCRIPT = [[
local kube = require "kubelua"
local n = 0
return kube.controller {
  name = "%s",
  resource = "v1/ConfigMap",
  when = function(_, old) return old == nil end,
  reconcile = function(map, ctx)
    if map.metadata.name ~= "ledger" then return end
    n = n + 1
    local mark = { writer = "%s", epoch = tostring(ctx.epoch), n = tostring(n) }
    ctx:patch(map, { data = mark }, { lock = true })
    ctx:patch({ kind = "v1/ConfigMap", namespace = map.metadata.namespace, name = "board" }, { data = mark })
    return "100ms"
  end,
}
]]

local function election(ns, lease)
  return "--namespace", ns, "--leader-elect", "--leader-elect-resource-namespace", ns,
    "--leader-elect-resource-name", lease,
    "--leader-elect-lease-duration", "1s", "--leader-elect-renew-deadline", "700ms",
    "--leader-elect-retry-period", "200ms"
end

-- ---------------------------------------------------------------- a pair

local Pair = {}
Pair.__index = Pair

local function pair_start(server, client)
  local self = setmetatable({ server = server, client = client, ns = controller.namespace(client, "frozen"),
    thaws = {} }, Pair)
  for _, name in ipairs { "ledger", "board" } do
    client:create { kind = "v1/ConfigMap", namespace = self.ns, name = name }
  end
  -- All changes of the two objects from now on.
  self.watch = process.spawn { KUBELUA, "get", "v1/ConfigMap", "-n", self.ns, "--kubeconfig",
    server.kubeconfig, "--watch", "--output",
    "jsonpath={.metadata.name} {.metadata.resourceVersion} {.data.epoch} {.data.writer} {.data.n}\n",
    name = "the observer" }
  self.watch:wait_for_log(20, "ledger")
  self.replicas = {}
  for _, name in ipairs { "a", "b" } do
    self.replicas[name] = controller.start(server, SCRIPT:format("frozen", name), "--leader-elect-identity",
      name, election(self.ns, "frozen"))
    self.thaws[name] = 0
  end
  return self
end

function Pair:board() return self.client:get("v1/ConfigMap", self.ns, "board")("data") end

--- The writer and the epoch of the last write without a version, once there was one above `epoch`.
function Pair:writer_above(epoch)
  return wait.until_true(60, "a write of an epoch above " .. epoch, function()
    local data = self:board()
    return data and data("epoch") and tonumber(data.epoch) > epoch
      and { name = data.writer, epoch = tonumber(data.epoch) }
  end)
end

function Pair:freeze()
  self.frozen = self:writer_above(self.epoch or -1)
  self.replicas[self.frozen.name]:signal "STOP"
end

function Pair:thaw()
  local after = self:writer_above(self.frozen.epoch)
  self.epoch = after.epoch - 1
  local name = self.frozen.name
  self.replicas[name]:signal "CONT"
  self.thaws[name] = self.thaws[name] + 1
  wait.until_true(60, name .. " knows that it was deposed", function()
    local _, times = self.replicas[name]:log():gsub("no longer leads; workers stop", "")
    return times >= self.thaws[name]
  end)
end

--- The accepted writes in their order: lists of { rv, epoch, writer } by object.
function Pair:history()
  local seen = { ledger = {}, board = {} }
  for name, rv, epoch, writer in self.watch:log():gmatch "(%a+) (%d+) (%d+) (%a) %d+\n" do
    table.insert(seen[name], { rv = tonumber(rv), epoch = tonumber(epoch), writer = writer })
  end
  for _, list in pairs(seen) do table.sort(list, function(x, y) return x.rv < y.rv end) end
  return seen
end

function Pair:stop()
  for _, replica in pairs(self.replicas) do controller.finish(replica) end
  local last = self.client:get("v1/ConfigMap", self.ns, "board").metadata.resourceVersion
  self.watch:wait_for_log(30, "board " .. last)
  self.watch:stop()
end

--- Writes of an epoch that came after one of a later epoch.
local function late_ones(list)
  local late, highest = 0, -1
  for _, write in ipairs(list) do
    if write.epoch < highest then late = late + 1 end
    highest = math.max(highest, write.epoch)
  end
  return late
end

servers.each(function(name, start)
  describe("replicas that are frozen while they lead, against " .. name, function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it(("write nothing after the next one's first write, %d times"):format(FREEZES), function()
      local all = {}
      for i = 1, PAIRS do all[i] = pair_start(server, client) end
      for _ = 1, FREEZES // PAIRS do
        for _, pair in ipairs(all) do pair:freeze() end
        for _, pair in ipairs(all) do pair:thaw() end
      end
      local rounds = FREEZES // PAIRS
      for _, pair in ipairs(all) do
        pair:stop()
        local seen = pair:history()
        local owner = {}
        for _, list in pairs(seen) do
          for _, write in ipairs(list) do
            assert.equal(owner[write.epoch] or write.writer, write.writer, "an epoch has one leader")
            owner[write.epoch] = write.writer
          end
        end
        assert.is_true(#seen.ledger >= rounds and #seen.board >= rounds, "every leader wrote")
        assert.equal(0, late_ones(seen.ledger))
        assert.is_true(late_ones(seen.board) <= rounds, "at most the one that was on its way")
      end
    end)

    it("stop a calling and a computing run, and count no errors", function()
      local ns = controller.namespace(client, "thawed")
      local script = [[
local kube = require "kubelua"
return kube.controller {
  name = "thawed",
  resource = "v1/ConfigMap",
  workers = 2, concurrency = 1, cpu = "1h",
  reconcile = function(map, ctx)
    local name = map.metadata.name
    if name ~= "calls" and name ~= "computes" then return end
    if ctx.epoch == 0 then      -- under way until it is stopped, and never waiting
      ctx.log:info("spinning: %s", name)
      repeat until name == "calls" and not pcall(ctx.get, ctx, "v1/ConfigMap", name)
    end
    ctx:patch(map, { data = { writer = ctx.params.name, epoch = tostring(ctx.epoch) } })
  end,
  params = { name = "NAME" },
}
]]
      local function replica(who)
        return controller.start(server, (script:gsub("NAME", who)), "--leader-elect-identity", who,
          election(ns, "thawed"))
      end
      local function both_written_by(who)
        for _, key in ipairs { "calls", "computes" } do
          wait.until_true(60, who .. " writes " .. key, function()
            return client:get("v1/ConfigMap", ns, key)("data.writer") == who
          end)
        end
      end
      local first = replica "first"
      first:wait_for_log(30, "controller is running")
      for _, key in ipairs { "calls", "computes" } do
        client:create { kind = "v1/ConfigMap", namespace = ns, name = key }
        first:wait_for_log(30, "spinning: " .. key)
      end
      first:signal "STOP"
      local second = replica "second"
      both_written_by "second"
      controller.finish(second)
      local before = client:get("v1/ConfigMap", ns, "computes")
      first:signal "CONT"
      first:wait_for_log(60, "no longer leads; workers stop")
      -- It leads again, since nobody else does, and looks at the keys again: in a later epoch.
      both_written_by "first"
      assert.is_true(tonumber(client:get("v1/ConfigMap", ns,
        "computes").data.epoch) > tonumber(before.data.epoch))
      assert.is_nil(first:log():find("reconcile failed", 1, true))
      controller.finish(first)
    end)
  end)
end)
