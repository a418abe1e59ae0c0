-- survive_spec.lua - the API server dies and comes back: no key is lost, and watchers list again.
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"

-- A start of the real server takes four seconds of the processor.
local KILLS = sizes.of { short = 1, long = 10, sanitized = 1 }

local function answer(ask) return ask .. "!" end

servers.each(function(name, start)
  describe("when " .. name .. " dies and comes back in the middle of a run", function()
    local server, client, ns
    lazy_setup(function()
      local data = name:find "embedded" and { "--data", process.tmpdir() .. "/survive" } or nil
      server = start { own = true, args = data }
      client = controller.client(server)
      ns = controller.namespace(client, "survive")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("no key is lost", function()
      -- Half of the questions are asked before the server dies; the controller starts with them and is
      -- interrupted.
      controller.ask(client, ns, 1, 150)
      local run = controller.start(server, controller.answering(ns, "!"), "--workers", "1")
      controller.await_answers(client, ns, 1, 60, answer)
      server:kill()
      server:restart()
      controller.ask(client, ns, 151, 300)
      controller.await_answers(client, ns, 300, 120, answer)
      controller.finish(run)
    end)

    it("the leader continues each time, and a new process waits for the server", function()
      local mine = controller.namespace(client, "leads")
      local run = controller.start(server, controller.answering(mine, "!"), "--leader-elect",
        "--leader-elect-resource-namespace", mine)
      controller.ask(client, mine, 1, 20)
      controller.await_answers(client, mine, 20, 60, answer)
      local late = controller.namespace(client, "late")
      controller.ask(client, late, 1, 5)
      local newcomer
      for round = 1, KILLS do
        server:kill()
        if round == 1 then
          newcomer = controller.start(server, controller.answering(late, "!"))
          newcomer:wait_for_log(30, "refused")
        end
        server:restart()
        controller.ask(client, mine, round * 20 + 1, round * 20 + 20)
        controller.await_answers(client, mine, round * 20 + 20, 120, answer)
      end
      controller.await_answers(client, late, 5, 120, answer)
      controller.finish(newcomer)
      controller.finish(run)
    end)
  end)
end)

describe("when an embedded server restarts without its data", function()
  it("existing watchers list the new state", function()
    local server = servers.embedded()
    finally(function() server:stop() end)
    local client = controller.client(server)
    for i = 1, 50 do client:create { kind = "v1/Namespace", name = "before-" .. i } end
    local ns = controller.namespace(client, "anew")
    controller.ask(client, ns, 1, 5)
    local run = controller.start(server, controller.answering(ns, "!"))
    controller.await_answers(client, ns, 5, 30, answer)
    server:restart()
    client = controller.client(server)
    client:create { kind = "v1/Namespace", name = ns }
    controller.ask(client, ns, 1, 2)
    controller.await_answers(client, ns, 2, 60, answer)
    controller.finish(run)
  end)

  it("versions of its predecessor are expired, however many it has issued", function()
    local server = servers.embedded()
    finally(function() server:stop() end)
    local api = require "support.api" (server)
    local before = api:get("/api/v1/namespaces").body.metadata.resourceVersion
    server:restart()
    for i = 1, 20 do
      assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = "now-" .. i } }).code)
    end
    local events = api:watched("/api/v1/namespaces?resourceVersion=" .. before)
    assert.equal("ERROR", events[1].type)
    assert.equal(410, events[1].object.code)
    assert.equal(410, api:get("/api/v1/namespaces?resourceVersionMatch=Exact&resourceVersion="
      .. before).code)
    local r = api:get("/api/v1/namespaces")
    assert.same({}, (api:watched("/api/v1/namespaces?resourceVersion=" .. r.body.metadata.resourceVersion)))
  end)
end)
