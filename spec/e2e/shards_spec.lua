-- shards_spec.lua - replicas that divide the keys: which replica has which keys when one starts, stops or
-- hangs.
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local LEASE = "coordination.k8s.io/v1/Lease"
local ROUNDS = sizes.of { short = 2, long = 12, sanitized = 3 }

-- data.by records which replica answered which question, "r1=one;r2=two;". A write requires the version that
-- it read, and is repeated after a conflict, so a question has two answers only if two replicas work on one
-- key at the same time.
local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "%s",
  resource = "v1/ConfigMap",
  namespaces = { %q },
  selector = "shards=yes",
  shard = %s,
  reconcile = function(map, ctx)
    local seen = "=" .. map("data.ask") .. ";"
    if (map("data.by") or ""):find(seen, 1, true) then return end
    ctx:patch(map, function(m)
      local by = m.data.by or ""
      if not by:find(seen, 1, true) then m.data.by = by .. WHO .. seen end
    end, { lock = true })
  end,
}
]]

-- The same with namespaces divided among replicas; an answer has the number of objects in the replica's
-- cache.
local SEEING = [[
local kube = require "kubelua"
return kube.controller {
  name = "%s",
  resource = "v1/ConfigMap",
  namespaces = { "%s" },
  selector = "seen=%s",
  shard = "namespace",
  reconcile = function(map, ctx)
    if map("data.ask") == "nothing" then return end
    local seen = "=" .. map("data.ask") .. ";"
    if (map("data.by") or ""):find(seen, 1, true) then return end
    local all = #ctx:list("v1/ConfigMap")
    ctx:patch(map, function(m) m.data.by = (m.data.by or "") .. WHO .. ":" .. all .. seen end,
      { lock = true })
  end,
}
]]

-- Each replica caches only its own namespaces. An answer has the number of cached objects of its namespace,
-- whether the secret is cached, and the number of namespaces that cannot be read. Another controller needs
-- everything.
local KEEPING = [[
local kube = require "kubelua"
local SPACES = { "%s" }
return { kube.controller {
  name = "%s",
  resource = "v1/ConfigMap",
  %s
  selector = "seen=%s",
  reads = { "v1/Secret" },
  fields = { ["v1/Secret"] = { "metadata.labels" } },
  shard = { by = "namespace", caches = "own" },
  reconcile = function(map, ctx)
    if map("data.ask") == "nothing" then return end
    local seen = "=" .. map("data.ask") .. ";"
    if (map("data.by") or ""):find(seen, 1, true) then return end
    local here, refused = ctx:list("v1/ConfigMap", { namespace = map.metadata.namespace }), 0
    local secret = ctx:get("v1/Secret", map.metadata.namespace, "there")
    for _, ns in ipairs(SPACES) do
      local ok, err = pcall(ctx.get, ctx, "v1/Secret", ns, "there")
      if not ok then
        assert(tostring(err):find("ask the server with ctx.live", 1, true), tostring(err))
        assert(ctx.live:get("v1/Secret", ns, "there"), "the server has it")
        refused = refused + 1
      end
    end
    local whole, why = pcall(ctx.list, ctx, "v1/ConfigMap")
    assert(not whole and tostring(why):find("name a namespace", 1, true), tostring(why))
    ctx:patch(map, function(m)
      m.data.by = (m.data.by or "") .. WHO .. ":" .. #here .. ":" .. (secret and "there" or "missing")
        .. ":" .. refused .. seen
    end, { lock = true })
  end,
}, kube.controller {
  name = "%s-all", resource = "v1/ConfigMap", namespaces = SPACES, selector = "seen=%s", leader = false,
  reconcile = function(_, ctx) assert(#ctx:list("v1/ConfigMap") > 0) end,
} }
]]

servers.each(function(name, start)
  describe("replicas that share keys at " .. name, function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    -- A group of replicas: names are "r1", "r2", ...
    local function group(prefix, by)
      local g = { ns = controller.namespace(client, prefix), n = 0, running = {} }
      g.lease = "shards-" .. g.ns
      local script = SCRIPT:format(g.lease, g.ns, by or "true")
      function g.join(...)
        g.n = g.n + 1
        local who = "r" .. g.n
        g.running[who] = controller.start(server, "local WHO = \"" .. who .. "\"\n" .. script, "--shards",
          "auto", "--leader-elect-identity", who,
          "--leader-elect-resource-namespace", g.ns, ...)
        return who
      end
      function g.leases()
        local out, n = {}, 0
        for lease in client:each(LEASE, { namespace = g.ns, labels = "kubelua.dev/shards-of=" .. g.lease }) do
          out[lease.spec.holderIdentity] = lease
          n = n + 1
        end
        return out, n
      end
      -- Waits until every member has published a ring of all members.
      function g.settled(members)
        wait.until_true(90, ("%d replicas agree"):format(members), function()
          local leases, n = g.leases()
          if n ~= members then error(("there are %d"):format(n), 0) end
          for _, lease in pairs(leases) do
            local said = require("kubelua").decode(lease.metadata.annotations["kubelua.dev/shard"])
            if #said.members ~= members then
              error(lease.spec.holderIdentity .. " knows " .. #said.members, 0)
            end
          end
          return true
        end)
      end
      function g.ask(first, last, ask)
        for i = first, last do
          client:apply({ kind = "v1/ConfigMap", namespace = g.ns, name = "q" .. i,
            labels = { shards = "yes" }, data = { ask = ask } }, { manager = "asker" })
        end
      end
      -- The answering replicas: { q1 = "r2", ... }, once all n objects have an answer to `ask`; an error when
      -- one has two.
      function g.answers(n, ask, seconds)
        local who = {}
        wait.until_true(seconds or 90, ("%d answers to %s"):format(n, ask), function()
          local count = 0
          for map in client:each("v1/ConfigMap", { namespace = g.ns, labels = "shards=yes" }) do
            local log = map("data.by") or ""
            local _, times = log:gsub("=" .. ask .. ";", "")
            if times > 0 then
              who[map.metadata.name], count = log:match("(r%d+)=" .. ask .. ";"), count + 1
              if times > 1 then who.twice = map.metadata.name .. ": " .. log end
            end
          end
          if count < n then error(("%d of %d"):format(count, n), 0) end
          return true
        end)
        assert.is_nil(who.twice)
        return who
      end
      function g.finish()
        for _, run in pairs(g.running) do controller.finish(run) end
        local _, n = g.leases()
        assert.equal(0, n)
      end
      return g
    end

    local function count(who)
      local n = {}
      for _, replica in pairs(who) do n[replica] = (n[replica] or 0) + 1 end
      return n
    end

    it("each run their own, and a new one only its share", function()
      local g = group "shards"
      for _ = 1, 3 do
        g.join("--leader-elect-lease-duration", "30s", "--leader-elect-renew-deadline", "20s")
      end
      g.settled(3)
      g.ask(1, 300, "one")
      local first = g.answers(300, "one")
      local n = count(first)
      for i = 1, 3 do
        assert.truthy((n["r" .. i] or 0) > 50, ("r%d answered %d of 300"):format(i, n["r" .. i] or 0))
      end

      g.join("--leader-elect-lease-duration", "30s", "--leader-elect-renew-deadline", "20s")
      g.settled(4)
      g.ask(1, 300, "two")
      local second = g.answers(300, "two")
      local moved = 0
      for question, replica in pairs(second) do
        if replica ~= first[question] then
          assert.equal("r4", replica, question)
          moved = moved + 1
        end
      end
      assert.truthy(moved > 30 and moved < 150, moved .. " moved")

      controller.finish(g.running.r2)         -- releases its lease of 30 s, so nobody waits for it
      g.running.r2 = nil
      g.settled(3)
      g.ask(1, 300, "three")
      for question, replica in pairs(g.answers(300, "three")) do
        if second[question] ~= "r2" then assert.equal(second[question], replica, question) end
      end
      g.finish()
    end)

    it("keep namespaces together if configured, and report their share in metrics", function()
      local g = group("whole", '"namespace"')
      g.join()
      local measured = g.join("--metrics-bind-address", "127.0.0.1:0")
      g.settled(2)
      g.ask(1, 40, "one")
      local n = 0
      for _ in pairs(count(g.answers(40, "one"))) do n = n + 1 end
      assert.equal(1, n)
      local metrics = controller.metrics(g.running[measured])
      assert.truthy(metrics:find("\nkubelua_shard_members 2\n", 1, true), metrics)
      local share = tonumber(metrics:match "\nkubelua_shard_share{[^}]*} (%S+)")
      assert.truthy(share and share > 0.2 and share < 0.8, tostring(share))
      assert.truthy(metrics:find "\nkubelua_shard_moves_total{[^}]*} %d+\n")
      g.finish()
    end)

    it("cache the objects of all namespaces, whatever their shares", function()
      local g, spaces = group "seen", {}
      for i = 1, 9 do spaces[i] = controller.namespace(client, "seen" .. i) end
      local function ask(what)
        for _, ns in ipairs(spaces) do
          for i = 1, 3 do
            client:apply({ kind = "v1/ConfigMap", namespace = ns, name = "q" .. i, labels = { seen = g.ns },
              data = { ask = what } }, { manager = "asker" })
          end
        end
      end
      -- The answering replicas; an error unless each object was answered once, by a replica that saw all 27.
      local function answers(what)
        local who, wrong = {}, nil
        wait.until_true(90, "27 answers to " .. what, function()
          local n = 0
          for _, ns in ipairs(spaces) do
            for map in client:each("v1/ConfigMap", { namespace = ns, labels = "seen=" .. g.ns }) do
              local times = 0
              for replica, saw in (map("data.by") or ""):gmatch("(r%d+):(%d+)=" .. what .. ";") do
                times = times + 1
                if saw ~= "27" then wrong = ns .. ": " .. map.data.by end
                who[replica] = true
              end
              n = n + (times > 0 and 1 or 0)
              if times > 1 then wrong = ns .. ": " .. map.data.by end
            end
          end
          if n < 27 then error(("%d of 27"):format(n), 0) end
          return true
        end)
        assert.is_nil(wrong)
        return who
      end
      ask "nothing"
      local script = SEEING:format(g.lease, table.concat(spaces, '", "'), g.ns)
      for i = 1, 3 do
        g.running["r" .. i] = controller.start(server, ("local WHO = \"r%d\"\n"):format(i) .. script,
          "--shards", "auto", "--leader-elect-identity", "r" .. i,
          "--leader-elect-resource-namespace", g.ns, "--leader-elect-lease-duration", "3s",
          "--leader-elect-renew-deadline", "2s",
          "--leader-elect-retry-period", "400ms", "--metrics-bind-address", "127.0.0.1:0")
      end
      g.settled(3)
      ask "one"
      answers "one"
      for i = 1, 3 do
        local metrics = controller.metrics(g.running["r" .. i])
        assert.equal(27, tonumber(metrics:match "\nkubelua_informer_objects{kind=\"v1/ConfigMap[^}]*} (%d+)"),
          metrics)
      end
      g.running.r1:kill()
      g.running.r1 = nil
      g.settled(2)
      ask "two"
      assert.is_nil((answers "two").r1)
      g.finish()
    end)

    for _, way in ipairs { "that the script names", "that there are" } do
      it("keep only their own of the namespaces " .. way .. ", where the script says so", function()
        local g, spaces = group "own", {}
        for i = 1, 9 do
          spaces[i] = controller.namespace(client, "own" .. i)
          client:create { kind = "v1/Secret", namespace = spaces[i], name = "there",
            labels = { seen = g.ns } }
        end
        local function ask(what)
          for _, ns in ipairs(spaces) do
            for i = 1, 3 do
              client:apply({ kind = "v1/ConfigMap", namespace = ns, name = "q" .. i, labels = { seen = g.ns },
                data = { ask = what } }, { manager = "asker" })
            end
          end
        end
        -- The number of answers of each replica; an error unless each object was answered once, by a replica
        -- with all of its namespace.
        local function answers(what)
          local who, refused, wrong
          wait.until_true(90, #spaces * 3 .. " answers to " .. what, function()
            local n = 0
            who, refused = {}, 0
            for _, ns in ipairs(spaces) do
              for map in client:each("v1/ConfigMap", { namespace = ns, labels = "seen=" .. g.ns }) do
                local times = 0
                for replica, here, secret, foreign in (map("data.by")
                  or ""):gmatch("(r%d+):(%d+):(%a+):(%d+)=" .. what .. ";") do
                  times, refused = times + 1, refused + tonumber(foreign)
                  if here ~= "3" or (secret ~= "there" and ns ~= spaces[10]) then
                    wrong = ns .. ": " .. map.data.by
                  end
                  who[replica] = (who[replica] or 0) + 1
                end
                n = n + (times > 0 and 1 or 0)
                if times > 1 then wrong = ns .. ": " .. map.data.by end
              end
            end
            if n < #spaces * 3 then error(("%d of %d"):format(n, #spaces * 3), 0) end
            return true
          end)
          assert.is_nil(wrong)
          -- Names are random: about once in a hundred runs, one of two replicas gets all of them.
          if next(who, (next(who))) then assert.truthy(refused > 0) end
          return who
        end
        local function metric(i, pattern)
          local sum = 0
          for n in controller.metrics(g.running["r" .. i]):gmatch("\n" .. pattern .. " (%d+)") do
            sum = sum + n
          end
          return sum
        end
        -- The replicas' caches together have each object once; in addition, each has all objects for the
        -- controller that needs them.
        local function divided(running, of_all)
          wait.until_true(30, "each object is in one cache", function()
            local maps, secrets, held = 0, 0, 0
            for _, i in ipairs(running) do
              maps = maps + metric(i, 'kubelua_informer_objects{kind="v1/ConfigMap %([^}]*this \z
                replica\'s[^}]*}')
              secrets = secrets + metric(i,
                'kubelua_informer_objects{kind="v1/Secret %([^}]*this replica\'s[^}]*}')
              held = held + metric(i, "kubelua_shard_namespaces{[^}]*}")
            end
            if maps ~= #spaces * 3 or (not of_all and secrets ~= #spaces)
              or (not of_all and held ~= #spaces) then
              error(("%d maps, %d secrets of %d namespaces"):format(maps, secrets, held), 0)
            end
            return true
          end)
          for _, i in ipairs(running) do
            assert.equal(27, metric(i,
              'kubelua_informer_objects{kind="v1/ConfigMap %(labels seen=[^;]*; namespaces [^}]*}'))
          end
        end
        ask "nothing"
        local of_all = way == "that there are"
        local names = table.concat(spaces, '", "')
        local script = KEEPING:format(names, g.lease, of_all and "" or "namespaces = SPACES,", g.ns, g.lease,
          g.ns)
        for i = 1, 3 do
          g.running["r" .. i] = controller.start(server, ("local WHO = \"r%d\"\n"):format(i) .. script,
            "--shards", "auto", "--leader-elect-identity", "r" .. i,
            "--leader-elect-resource-namespace", g.ns, "--leader-elect-lease-duration", "3s",
            "--leader-elect-renew-deadline", "2s",
            "--leader-elect-retry-period", "400ms", "--metrics-bind-address", "127.0.0.1:0")
        end
        g.settled(3)
        ask "one"
        answers "one"
        divided({ 1, 2, 3 }, of_all)
        g.running.r1:kill()
        g.running.r1 = nil
        g.settled(2)
        ask "two"
        assert.is_nil((answers "two").r1)
        divided({ 2, 3 }, of_all)
        if of_all then                        -- one that comes is somebody's
          spaces[#spaces + 1] = controller.namespace(client, "own10")
          client:create { kind = "v1/Secret", namespace = spaces[#spaces], name = "there",
            labels = { seen = g.ns } }
          ask "nothing"
          divided({ 2, 3 }, of_all)
          ask "three"
          answers "three"
        end
        g.finish()
      end)
    end

    it("take over from a dead one, and from a frozen one, which then restarts", function()
      local g = group "crash"
      local short = { "--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s",
        "--leader-elect-retry-period", "400ms" }
      for _ = 1, 3 do g.join(table.unpack(short)) end
      g.settled(3)
      g.running.r1:kill()
      g.running.r1 = nil
      g.ask(1, 60, "zero")
      for _, replica in pairs(g.answers(60, "zero")) do assert.not_equal("r1", replica) end
      g.settled(2)
      for round = 1, ROUNDS do
        local frozen, other = "r2", "r3"
        if round % 2 == 0 then frozen, other = other, frozen end
        g.running[frozen]:signal "STOP"
        g.ask(1, 60, "a" .. round)
        wait.until_true(60, "the frozen one is out", function() return not g.leases()[frozen] end)
        g.running[frozen]:signal "CONT"
        g.answers(60, "a" .. round)           -- exactly once each, although the frozen replica had begun some
        g.settled(2)
        -- Both work again; on a machine that stalls for two seconds, one may just have rejoined.
        local asked, n = 0
        repeat
          asked = asked + 1
          g.settled(2)
          g.ask(1, 60, ("b%d.%d"):format(round, asked))
          n = count(g.answers(60, ("b%d%%.%d"):format(round, asked)))
        until asked == 5 or ((n[frozen] or 0) > 5 and (n[other] or 0) > 5)
        assert.truthy((n[frozen] or 0) > 5 and (n[other] or 0) > 5, "both are at work again")
      end
      g.finish()
    end)

    it("leave keys without shards to one of them", function()
      local g = group("single", "false")
      -- a replica that has not started yet does not end gracefully
      for _ = 1, 2 do g.running[g.join()]:wait_for_log(60, "caches are synced") end
      wait.until_true(60, "a leader", function()
        local lease = client:get(LEASE, g.ns, g.lease)
        return lease and lease("spec.holderIdentity") ~= ""
      end)
      g.ask(1, 30, "one")
      local n = 0
      for _ in pairs(count(g.answers(30, "one"))) do n = n + 1 end
      assert.equal(1, n)
      local _, members = g.leases()
      assert.equal(0, members)
      g.finish()
    end)
  end)
end)

describe("kubelua run --shards", function()
  it("is auto or a number", function()
    for _, wrong in ipairs { "0", "-1", "many", "3x", "1001", "" } do
      local out, code = process.run((KUBELUA .. " run --shards '%s' controllers/hello.lua 2>&1"):format(
        wrong))
      assert.equal(2, code, out)
      assert.truthy(out:find("auto for all of them, or a number from 1 to 1000", 1, true), out)
    end
  end)
end)
