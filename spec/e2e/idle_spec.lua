-- idle_spec.lua - the cost of idle `kubelua run`, `kubelua apiserver` and watches.

local controller = require "support.controller"
local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"
local socket = require "cqueues.socket"
local wait = require "support.wait"

local CONTROLLERS = 10
local LIMIT = 16 * 1024        -- KB of memory of its own; sanitizers bring theirs

-- Pages of files do not count: the number of mapped ones depends on the rest of the machine.
local function resident(pid)
  return tonumber(process.read(("/proc/%d/status"):format(pid)):match "RssAnon:%s*(%d+)")
end

servers.each(function(name, start)
  describe("ten idle controllers on " .. name, function()
    local server
    lazy_setup(function() server = start { empty = true } end)          -- nobody else's objects
    lazy_teardown(function() if server then server:stop() end end)

    it("take little memory once settled, and keep working", function()
      local client = controller.client(server)
      local ns = controller.namespace(client, "idle")
      local many = { controller.answering(ns, "!") }
      for i = 2, CONTROLLERS do
        many[i] = process.write(process.tmpname ".lua", ([[
          return require("kubelua").controller { name = "idle-%d", resource = "v1/ConfigMap",
            reconcile = function(map) return map.metadata.name and nil end }
        ]]):format(i))
      end
      local run = controller.start(server, table.unpack(many))
      run:wait_for_log(30, "idle-10: running")
      if (os.getenv "KL_VARIANT" or "release") == "release" then
        wait.until_true(20, "less than 16 MB", function()
          local kb = resident(run.pid)
          if kb >= LIMIT then error(kb .. " KB", 0) end
          return true
        end)
      end
      controller.ask(client, ns, 1, 3)
      controller.await_answers(client, ns, 3, 30, function(ask) return ask .. "!" end)
      controller.finish(run)
    end)
  end)
end)

describe("an empty embedded server", function()
  it("holds less than 12 MB once it serves", function()
    local server = servers.embedded()
    finally(function() server:stop() end)
    if (os.getenv "KL_VARIANT" or "release") ~= "release" then return end
    wait.until_true(20, "it has given back what its start needed", function()
      local kb = tonumber(process.read(("/proc/%d/status"):format(server.api.pid)):match "VmRSS:%s*(%d+)")
      if kb >= 12 * 1024 then error(kb .. " KB", 0) end
      return true
    end)
  end)
end)

local WATCHES = 1000
local PER_WATCH = 80           -- KB
local MAPS = "/api/v1/namespaces/default/configmaps"

-- A connection with a watch of ConfigMaps, whose head was read.
local function watching(server)
  local host, port = server.url:match "^http://([^:]+):(%d+)$"
  local s = assert(socket.connect(host, tonumber(port)))
  s:settimeout(30)
  s:setmode("b", "bf")
  assert(s:write(("GET %s?watch=true HTTP/1.1\r\nHost: %s:%s\r\n\r\n"):format(MAPS, host, port)))
  assert(s:flush())
  local first = assert(s:read "*L")
  assert(first:find "^HTTP/1.1 200", first)
  repeat local line = assert(s:read "*L") until line == "\r\n"
  return s
end

local function threads(pid)
  return tonumber(process.read(("/proc/%d/status"):format(pid)):match "Threads:%s*(%d+)")
end

describe("a thousand idle watches", function()
  it("need no thread each and little memory, and all see a change", function()
    local server, watches = servers.embedded(), {}
    finally(function()
      for _, s in ipairs(watches) do s:close() end
      server:stop()
    end)
    watches[1] = watching(server)
    local before, memory = threads(server.api.pid), resident(server.api.pid)
    for i = 2, WATCHES do watches[i] = watching(server) end
    assert.equal(before, threads(server.api.pid))
    if (os.getenv "KL_VARIANT" or "release") == "release" then
      assert.is_true(resident(server.api.pid) - memory < WATCHES * PER_WATCH,
        ("%d KB each"):format((resident(server.api.pid) - memory) // WATCHES))
    end
    local made = new_api(server):post(MAPS, { metadata = { name = "heard" } })
    assert.equal(201, made.code)
    for i, s in ipairs(watches) do
      repeat local line = assert(s:read "*L", i) until line:find('"name":"heard"', 1, true)
    end
  end)
end)
