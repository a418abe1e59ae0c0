-- stream_spec.lua - streams of a client whose server has no kubelet: the errors of wrong calls, and the ends
-- of clients and states.

local kube = require "kubelua"
local servers = require "support.servers"

local function raised(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok, "it should have raised")
  return err
end

describe("streams of a client of the embedded API server", function()
  local server, c
  lazy_setup(function()
    server = servers.embedded {}
    c = kube.connect { server = server.url }
    c:create { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "default" },
      spec = { nodeName = "n", containers = { { name = "a", image = "b" } } } }
  end)
  lazy_teardown(function()
    c:close()
    server:stop()
  end)

  it("get 501 with an explanation", function()
    local attached, port = c:attach "p", c:port_stream("p", 80)
    for verb, err in pairs {
      exec = raised(c.exec, c, "p", { "date" }),
      logs = raised(c:logs "p"),
      attach = raised(attached.read, attached),
      port_forward = raised(port.read, port),
    } do
      assert.equal(501, err.code)
      assert.equal(verb, err.verb)
      assert.equal("default/p", err.key)
      assert.matches("the embedded API server has no kubelets: it does not serve pods/", err.message, 1, true)
    end
  end)

  it("give the same answer again", function()
    local s <close> = c:exec_stream("p", { "date" }, { stdin = true })
    assert.equal(501, raised(s.read, s).code)
    assert.equal(501, raised(s.try_read, s).code)
    s:write(("x"):rep(1000000))         -- goes nowhere
    s:close_stdin()
    assert.equal(501, raised(s.protocol, s).code)
    assert.equal(501, raised(s.wait, s).code)
  end)

  it("to an unreachable server fail", function()
    local nobody <close> = kube.connect { server = "http://127.0.0.1:1" }
    local err = raised(nobody.exec, nobody, "p", { "date" })
    assert.equal("unreachable", err.kind)
    assert.matches("connection refused", err.message, 1, true)
    assert.equal("unreachable", raised(nobody:logs "p").kind)
  end)

  it("are cancelled with their client, and may be closed or collected afterwards", function()
    local client = kube.connect { server = server.url }
    local s, f = client:exec_stream("p", { "date" }), client:port_forward("p", 80)
    local log = client:logs("p", { follow = true })
    client:close()
    local err = raised(s.read, s)
    assert.truthy(err.kind == "cancelled" or err.code == 501, tostring(err))
    assert.is_false((pcall(log)))
    s:close()
    f:close()
    collectgarbage()
  end)

  it("release everything when they are collected", function()
    for _ = 1, 50 do
      c:exec_stream("p", { "date" })
      c:port_forward("p", 80)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(501, raised(c.exec, c, "p", { "date" }).code)
  end)

  it("name invalid arguments", function()
    local cases = {
      { "c:exec: expected a table of options, got string", c.exec, c, "p", { "a" }, "x" },
      { "did you mean 'container'", c.exec, c, "p", { "a" }, { contaner = "x" } },
      { "option 'stdin' must be a string or a function that returns strings, got table", c.exec, c, "p",
        { "a" }, { stdin = {} } },
      { "option 'limit' must be at least 1, got 0", c.exec, c, "p", { "a" }, { limit = 0 } },
      { "option 'stdin' must be a boolean, got string", c.exec_stream, c, "p", { "a" }, { stdin = "x" } },
      { "a command must be a list of words", c.exec_stream, c, "p", "ls -l" },
      { "the pod has no metadata.name", c.attach, c, { metadata = {} } },
      { "the name must be a string that is not empty", c.attach, c, "" },
      { "a port must be a number from 1 to 65535", c.port_stream, c, "p", 0 },
      { "a port must be a number from 1 to 65535", c.port_stream, c, "p", 8.5 },
      { "unknown option 'adress'; did you mean 'address'", c.port_forward, c, "p", 80, { adress = "x" } },
      { "resume counts lines", c.logs, c, "p", { resume = true, raw = true } },
      { "option 'tail' must be an integer, got number", c.logs, c, "p", { tail = 1.5 } },
    }
    for _, case in ipairs(cases) do
      local err = raised(table.unpack(case, 2))
      assert.matches(case[1], err, 1, true)
      assert.matches("stream_spec.lua", err, 1, true)
    end
    local f <close> = c:port_forward("p", 80)
    assert.matches("port 81 is not forwarded", raised(f.address, f, 81), 1, true)
    assert.matches("999.1.1.1", tostring(raised(c.port_forward, c, "p", 80, { address = "999.1.1.1" })), 1,
      true)
  end)
end)
