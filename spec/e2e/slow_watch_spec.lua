-- slow_watch_spec.lua - clients of the embedded server that do not read their watches: their backlog is
-- bounded, they are disconnected, and other clients do not notice.

local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

-- The kernel buffers a few MiB for a connection; the server buffers 4 MiB more.
local PART, PARTS_MOST, WATCHERS = ("x"):rep(900 * 1024), 60, 5

describe("a watcher that does not read", function()
  local server, api
  lazy_setup(function()
    server = servers.embedded { args = { "--log-level", "info" } }
    api = require "support.api" (server)
  end)
  lazy_teardown(function() if server then server:stop() end end)

  local function resident()
    return tonumber(process.read(("/proc/%d/status"):format(server.api.pid)):match "VmRSS:%s*(%d+)") / 1024
  end

  it("is cut off at 4 MiB of backlog, unlike one that reads", function()
    local url = server.url .. "/api/v1/namespaces/default/configmaps?watch=true"
    local stopped, outs = {}, {}
    local function watch()
      outs[#outs + 1] = process.tmpname ".watched"
      return process.spawn { "curl", "-sS", "-N", "-o", outs[#outs], url, name = "curl" }
    end
    local reader = watch()
    for i = 1, WATCHERS do stopped[i] = watch() end
    finally(function()
      for _, child in ipairs(stopped) do
        child:signal "CONT"
        child:kill()
      end
      reader:kill()
    end)
    assert.equal(201, api:post("/api/v1/namespaces/default/configmaps",
      { metadata = { name = "first" } }).code)
    for _, out in ipairs(outs) do
      wait.until_true(30, "the first event",
        function() return (process.read(out) or ""):find('"first"', 1, true) end)
    end
    local before = resident()
    for _, child in ipairs(stopped) do child:signal "STOP" end

    local function cuts()
      return select(2, server.api:log():gsub("a watch was closed because its client reads too slowly", ""))
    end
    local written = 0
    while cuts() < WATCHERS and written < PARTS_MOST do
      written = written + 1
      local code = api:post("/api/v1/namespaces/default/configmaps",
        { metadata = { name = "part-" .. written }, data = { part = PART } }).code
      assert.equal(201, code)
      assert.equal(200, api:delete("/api/v1/namespaces/default/configmaps/part-" .. written).code)
    end
    assert.equal(WATCHERS, cuts())
    -- Without a bound, the growth is the volume sent to each watcher: twice the written data. Sanitizers keep
    -- freed memory.
    local grown, sent = resident() - before, WATCHERS * 2 * written * #PART / 1024 / 1024
    if (os.getenv "KL_VARIANT" or "release") == "release" then
      assert.truthy(grown < sent / 2, ("it grew by %.0f MiB, %.0f MiB were sent"):format(grown, sent))
    end

    assert.equal(201, api:post("/api/v1/namespaces/default/configmaps",
      { metadata = { name = "last" } }).code)
    wait.until_true(60, "the last event for who reads", function()
      return (process.read(outs[1]) or ""):find('"name":"last"', 1, true)
    end)
  end)
end)
