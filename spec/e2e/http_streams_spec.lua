-- http_streams_spec.lua - answers of ctx.http that are read in pieces: by a callback, within bounds, and only
-- during the run.

local controller = require "support.controller"
local http = require "support.http"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

describe("a stream of ctx.http", function()
  local server, client, web
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    web = http.web()
  end)
  lazy_teardown(function()
    if web then web:stop() end
    if server then server:stop() end
  end)

  local function start(more, ...)
    local ns = controller.namespace(client, "streams")
    local t = http.start_script(server, client, ns, http.script(ns, { web.url }, more), "--allow-http", ...)
    finally(function() t:finish() end)
    return t
  end

  local function gone(path)
    wait.until_true(30, "the end of " .. path, function()
      return web.seen():find("the reader of " .. path .. " has gone", 1, true)
    end)
  end

  local LINES = [[local lines = {}
    local r = http:get(url .. %q,
      { on_line = function(line) lines[#lines + 1] = line return #lines < %d end })
    return { lines = table.concat(lines, "+"), status = r.status, stopped = r.stopped or false,
      body = r.body or "none" }]]

  for _, how in ipairs { "", " isolate = true," } do
    local whom = how == "" and "" or ", to an isolated script"
    it("arrives line by line, until the callback stops" .. whom, function()
      local t = start(how)
      assert.same({ lines = "line 1+line 2+the rest", status = 200, stopped = false, body = "none" },
        t:ask(LINES:format("/lines/2", 9)))
      assert.same({ lines = "line 1+line 2", status = 200, stopped = true, body = "none" },
        t:ask(LINES:format("/lines/5", 2)))
      assert.equal(404, t:ask("return http:get(url .. '/status/404', { on_line = print })").error.code)
    end)
  end

  it("arrives as sent, of any length, and is closed at its end", function()
    local t = start()
    assert.is_true(t:ask [[local n = 0
      http:get(url .. "/flow?1", { on_chunk = function(b) n = n + #b return n < 3000000 end })
      return n >= 3000000]])
    gone "/flow?1"
    assert.equal("too_big",
      t:ask([[return http:get(url .. "/flow?2", { on_chunk = function() end, max = "1Mi" })]])
      .error.kind)
    gone "/flow?2"
    local e = t:ask([[return http:get(url .. "/half", { on_chunk = function() end })]]).error
    assert.equal("closed", e.kind)
    e = t:ask([[return http:get(url .. "/open?1", { on_line = function() end, timeout = "300ms" })]]).error
    assert.equal("timeout", e.kind)
    assert.equal("mine",
      t:ask([[local ok, why = pcall(http.get, http, url .. "/open?2", { on_line = function()
        error("mine", 0) end })
        return why]]))
    gone "/open?2"
  end)

  it("waits like every call, and its callback may make calls", function()
    local t = start("", "--grace-period", "100ms")
    client:create { kind = "v1/ConfigMap", namespace = t.ns, name = "forever", data = { ask =
      [[return http:get(url .. "/open?3", { timeout = "1h", on_line = function(line)
          ctx:patch(ctx:get("v1/ConfigMap", "forever"), function(m) m.data.line = line end)
        end })]] } }
    wait.until_true(30, "the first line", function()
      return client:get("v1/ConfigMap", t.ns, "forever")("data.line") == "line 1"
    end)
    assert.equal("a text", t:ask "return http:get(url .. '/text').body")       -- the same worker
  end)

  it("ends with the run that reads it", function()
    local t = start(' timeout = "500ms",')
    for i, body in ipairs { "", "ctx:sleep('1h')" } do
      local path = "/open?late" .. i
      client:create { kind = "v1/ConfigMap", namespace = t.ns, name = "late-" .. i, data = { ask =
        ("http:get(url .. %q, { timeout = '1h', on_line = function() %s end })"):format(path, body) } }
      gone(path)
    end
  end)

  it("is recorded and replayed, and is sent in a dry run if it reads", function()
    local ns, tape = controller.namespace(client, "streams"), process.tmpname ".tape"
    local socket = process.tmpname ".sock"
    local script = ([[
local kube = require "kubelua"
return kube.controller { name = "follows", resource = "v1/ConfigMap", namespaces = { %q }, http = %q,
  reconcile = function(map, ctx)
    if not map("data.ask") then return end
    local n = 0
    local function count() n = n + 1 end
    ctx.http:get(%q .. "/lines/4", { on_line = count })
    local r = ctx.http:post(%q .. "/lines/4?post", { on_line = count })
    ctx.log:info("counted " .. n .. (r.dry_run and " dry" or ""))
  end }]]):format(ns, web.url, web.url, web.url)
    client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { ask = "x" } }
    local t = http.start_script(server, client, ns, script, "--allow-http", "--record", tape,
      "--control", socket)
    t.run:wait_for_log(60, "counted 10")
    -- why reports that the answer was read, not each piece
    local why = process.run(("%s why --socket %s cm %s/a"):format(KUBELUA, socket, ns))
    assert.equal(1, select(2, why:gsub("GET http://", "")), why)
    t:finish()
    local before = web.seen()
    local said, code = process.run(("%s replay %s %s"):format(KUBELUA, tape, t.run.script_path))
    assert.equal(0, code, said)
    assert.equal(before, web.seen())
    t = http.start_script(server, client, ns, script, "--allow-http", "--dry-run")
    t.run:wait_for_log(60, "counted 5 dry")
    t:finish()
    assert.equal(1, select(2, web.seen():gsub("/lines/4%?post", "")))
  end)

  it("is answered by the stubs of a test", function()
    local t = kube.testing.start { objects = { { kind = "v1/ConfigMap", name = "a" } },
      http = kube.testing.http { ["GET https://a.example.com/log"] = { body = "one\ntwo" },
        ["GET https://a.example.com/none"] = 503 }, source = [[
local kube = require "kubelua"
return kube.controller { name = "reads", resource = "v1/ConfigMap", http = "https://a.example.com",
  reconcile = function(map, ctx)
    if map("data.said") then return end
    local lines = {}
    ctx.http:get("https://a.example.com/log", { on_line = function(l) lines[#lines + 1] = l end })
    local _, e = ctx.try.http:get("https://a.example.com/none", { on_chunk = function() end })
    ctx:patch(map, function(m) m.data = { said = table.concat(lines, "+"), code = tostring(e.code) } end)
  end }]] }
    finally(function() t:stop() end)
    local data = t:get("v1/ConfigMap", "a").data
    assert.same({ "one+two", "503" }, { data.said, data.code })
  end)
end)

describe("a stream of kube.http", function()
  local web
  lazy_setup(function() web = http.web() end)
  lazy_teardown(function() if web then web:stop() end end)

  it("has the options of ctx.http", function()
    local lines = {}
    local r = kube.http:get(web.url .. "/to?/lines/2",
      { redirects = 1, on_line = function(l) lines[#lines + 1] = l end })
    assert.same({ "line 1", "line 2", "the rest" }, lines)
    assert.equal(web.url .. "/lines/2", r.url)
    r = kube.http:get(web.url .. "/flow", { on_chunk = function() return false end })
    assert.is_true(r.stopped)
    assert.error_matches(function() kube.http:get(web.url, { on_line = print, on_chunk = print }) end,
      "on_line and on_chunk are two ways to read one stream")
    assert.error_matches(function() kube.http:get(web.url, { on_line = 1 }) end,
      "'on_line' must be a function")
  end)

  it("cuts lines that are too long, and returns empty ones", function()
    local sizes = {}
    kube.http:get(web.url .. "/big/2500000", { on_line = function(l) sizes[#sizes + 1] = #l end })
    local sum = 0
    for _, n in ipairs(sizes) do
      assert.is_true(n <= 1 << 20)
      sum = sum + n
    end
    assert.equal(2500000, sum)
    local lines = {}
    kube.http:get(web.url .. "/gaps", { on_line = function(l) lines[#lines + 1] = l end })
    assert.same({ "a", "", "b" }, lines)
  end)
end)
