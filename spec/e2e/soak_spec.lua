-- soak_spec.lua - a large namespace that changes all the time, behind connections that break: no key is lost.
--
-- Between the controller and the server stands spec/support/faults.py. The spec itself talks to the server
-- directly.

local controller = require "support.controller"
local process = require "support.process"
local promtext = require "support.promtext"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local OBJECTS = sizes.of { short = 1000, long = 10000, sanitized = 1000 }
local FAULTS = sizes.of { short = 20, long = 100, sanitized = 20 }
local ROUND = 100            -- questions that are asked between two looks at the faults
local MINUTES = 60           -- seconds

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "soak",
  resource = "v1/ConfigMap",
  namespaces = { %q },
  reconcile = function(map, ctx)
    local answer = map.data.ask:reverse()
    if map("data.answer") ~= answer then
      ctx:patch(map, function(m) m.data.answer = answer end)
    end
  end,
}
]]

-- ---------------------------------------------------------------- many requests at once

-- Each of `requests` is { method, path, body (nil: none) }; many are in flight. Every one must succeed.
local function send(server, requests)
  local lines = {}
  for i, r in ipairs(requests) do
    if i > 1 then lines[#lines + 1] = "next" end
    lines[#lines + 1] = ('url = "%s%s"\nrequest = "%s"\noutput = "/dev/null"\nwrite-out = "%%{http_code} \z
      %%{errormsg}\\n"\nmax-time = 60'):format(server.url, r[2], r[1])
    if r[3] then
      lines[#lines + 1] = ("header = \"Content-Type: application/%s\"\ndata = %q"):format(r[1] == "PATCH"
        and "merge-patch+json" or "json", r[3])
    end
    if server.token then
      lines[#lines + 1] = ('header = "Authorization: Bearer %s"\ncacert = "%s"'):format(server.token,
        server.ca)
    end
  end
  local config = process.write(process.tmpname ".curl", table.concat(lines, "\n") .. "\n")
  -- its progress, which -s does not end
  local out = process.run("curl --parallel --parallel-max 50 --config " .. process.quote(config)
    .. " 2>/dev/null")
  local n = 0
  for code, why in out:gmatch "(%d+) ([^\n]*)\n" do
    if code ~= "200" and code ~= "201" then
      error(("a request of the spec's own failed: %s %s"):format(code, why), 2)
    end
    n = n + 1
  end
  assert(n == #requests, ("%d of %d requests of the spec's own had an answer"):format(n, #requests))
end

-- ---------------------------------------------------------------- questions

local Quiz = {}
Quiz.__index = Quiz

local function quiz(server, client, ns)
  return setmetatable({ server = server, client = client, ns = ns, asks = {},
    path = "/api/v1/namespaces/" .. ns .. "/configmaps" }, Quiz)
end

function Quiz:create(first, last)
  local requests = {}
  for i = first, last do
    local name = "soak-" .. i
    self.asks[name] = "first of " .. i
    requests[#requests + 1] = { "POST", self.path, (
      '{"metadata": {"name": "%s"}, "data": {"ask": "%s"}}'):format(name, self.asks[name]) }
  end
  send(self.server, requests)
end

-- New questions for up to `n` random objects; one in twenty is deleted instead.
function Quiz:change(n, random, round)
  local requests = {}
  for _ = 1, n do
    local name = "soak-" .. random(OBJECTS)
    if self.asks[name] and not requests[name] then
      requests[name] = true
      if random(20) == 1 then
        self.asks[name] = nil
        requests[#requests + 1] = { "DELETE", self.path .. "/" .. name }
      else
        self.asks[name] = ("round %d of %s"):format(round, name)
        requests[#requests + 1] = { "PATCH", self.path .. "/" .. name,
          ('{"data": {"ask": "%s"}}'):format(self.asks[name]) }
      end
    end
  end
  send(self.server, requests)
end

function Quiz:count()
  local n = 0
  for _ in pairs(self.asks) do n = n + 1 end
  return n
end

-- Raises for the first wrong object.
function Quiz:check()
  local n = 0
  for map in self.client:each("v1/ConfigMap", { namespace = self.ns }) do
    local name = map.metadata.name
    local ask = self.asks[name]
    if not ask then error(name .. " should not be there", 0) end
    if map("data.ask") ~= ask then error(("%s asks %q, not %q"):format(name, map("data.ask"), ask), 0) end
    if map("data.answer") ~= ask:reverse() then
      error(("%s: the answer to %q is %s"):format(name, ask, tostring(map("data.answer"))), 0)
    end
    n = n + 1
  end
  local all = self:count()
  if n ~= all then error(("%d objects, not %d"):format(n, all), 0) end
  return true
end

-- ---------------------------------------------------------------- what the controller says of itself

local function sum(families, name)
  local total = 0
  for _, sample in ipairs(assert(families[name], name).samples) do total = total + sample.value end
  return total
end

-- Raises unless nothing is queued, nothing runs, and the cache holds `objects`.
local function must_be_idle(address, objects)
  local text, code = process.run(("curl -sS --max-time 30 http://%s/metrics"):format(address))
  assert(code == 0, text)
  local families = promtext.parse(text)
  for _, name in ipairs { "workqueue_depth", "controller_runtime_active_workers" } do
    local n = sum(families, name)
    if n ~= 0 then error(("%s is %d"):format(name, n), 0) end
  end
  local n = sum(families, "kubelua_informer_objects")
  if n ~= objects then error(("the cache holds %d objects, not %d"):format(n, objects), 0) end
  return families
end

-- ---------------------------------------------------------------- the same server, behind trouble

local function behind_faults(server, seed)
  local port, target = servers.free_port(), server.url:match ":(%d+)$"
  local proxy = process.spawn { "python3", "spec/support/faults.py", port, target, FAULTS, seed,
    name = "faults.py" }
  proxy:wait_for_log(30, "listening")
  local config = process.read(server.kubeconfig):gsub(":" .. target .. "%f[%D]", ":" .. port)
  return proxy, { kubeconfig = process.write(process.tmpname ".kubeconfig", config) }
end

servers.each(function(name, start)
  describe(("%d objects and %d broken connections to %s"):format(OBJECTS, FAULTS, name), function()
    local server, client
    lazy_setup(function()
      server = start { empty = true }
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("end in the right state, with no key lost", function()
      local ns = controller.namespace(client, "soak")
      local questions = quiz(server, client, ns)
      questions:create(1, OBJECTS * 9 // 10)
      local proxy, there = behind_faults(server, 42)
      local run = controller.start(there, SCRIPT:format(ns), "--workers", "2", "--metrics-bind-address",
        "127.0.0.1:0")
      local address = wait.until_true(30, "the metrics' address", function()
        return run:log():match "serving metrics.-address[\"=:]+([%d.:]+)"
      end)

      -- Questions change until the last fault, so that each fault hits work, and once more after it.
      local state, round, trouble = 42, 0, nil
      local function random(n)
        state = (state * 1103515245 + 12345) % 2147483648
        return state // 65536 % n + 1
      end
      wait.until_true(5 * MINUTES, "the last fault", function()
        local over = trouble or not proxy:alive() or proxy:log():find("all faults are over", 1, true)
        round = round + 1
        local ok, why = pcall(questions.change, questions, ROUND, random, round)
        trouble = trouble or not ok and why
        return over
      end)
      assert(not trouble, trouble)
      assert(proxy:alive(), proxy:log())
      questions:create(OBJECTS * 9 // 10 + 1, OBJECTS)

      local families = wait.until_true(5 * MINUTES, "the right state", function()
        if not run:alive() then return { ended = run:log() } end
        questions:check()
        return must_be_idle(address, questions:count())
      end)
      assert(not families.ended, families.ended)
      assert.is_true(sum(families, "kubelua_informer_watches_total") > 1)
      assert.is_true(sum(families, "controller_runtime_reconcile_total") >= questions:count())
      controller.finish(run)
      proxy:stop()
    end)
  end)
end)
