-- logs_spec.lua - container logs through a real kube-apiserver and a kubelet's API: every option, unchanged
-- lines, and a slow reader that slows down the sender.

local controller = require "support.controller"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local function lines_of(iterator, ...)
  local all = {}
  for line in iterator, ... do all[#all + 1] = line end
  return all
end

local function raised(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok, "it should have raised")
  return err
end

servers.only_real(function(name, start)
  describe("logs through " .. name, function()
    local server, kubelet, c, ns
    local OLD = "2026-01-02T15:04:05.000000001Z one\n2026-01-02T15:04:06Z two\n2026-01-02T15:04:07Z three\n"

    lazy_setup(function()
      server = start {}
      kubelet = assert(server:kubelet())
      c = kube.connect { kubeconfig = server.kubeconfig }
      ns = controller.namespace(c, "logs")
      kubelet:pod(ns, "web", { main = OLD, side = "2026-01-02T15:04:05Z beside\n" })
      process.write(kubelet:path(ns, "web", "main", ".previous.log"),
        "2026-01-01T00:00:00Z before the crash\n")
    end)
    lazy_teardown(function()
      if c then c:close() end
      if kubelet then kubelet:stop() end
      if server then server:stop() end
    end)

    local function web(opts)
      opts = opts or {}
      opts.container = opts.container or "main"
      return lines_of(c:logs(ns .. "/web", opts))
    end

    it("are lines without newlines, from the named container", function()
      assert.same({ "one", "two", "three" }, web())
      assert.same({ "beside" }, web { container = "side" })
      assert.same({ "one", "two", "three" }, lines_of(c:logs(c:get("v1/Pod", ns, "web"),
        { container = "main" })))
    end)

    it("support tail, since_time, timestamps, limit_bytes and previous", function()
      assert.same({ "two", "three" }, web { tail = 2 })
      assert.same({}, web { tail = 0 })
      assert.same({ "three" }, web { since_time = "2026-01-02T15:04:07Z" })
      assert.same({}, web { since = "10m" })
      assert.equal("2026-01-02T15:04:06Z two", web { timestamps = true }[2])
      assert.same({ "one", "tw" }, web { limit_bytes = 6 })
      assert.same({ "before the crash" }, web { previous = true })
    end)

    it("keep invalid UTF-8, zero bytes, and a last line without a newline", function()
      kubelet:pod(ns, "odd", { main = "2026-01-02T15:04:05Z \xff\xfe\0|\n2026-01-02T15:04:05Z \z
        \n2026-01-02T15:04:05Z end" })
      assert.same({ "\xff\xfe\0|", "", "end" }, lines_of(c:logs(ns .. "/odd")))
    end)

    it("split an endless line into pieces of 1 MiB", function()
      kubelet:pod(ns, "long", { main = "2026-01-02T15:04:05Z " .. ("x"):rep(2500000)
        .. "\n2026-01-02T15:04:05Z short\n" })
      local sizes = {}
      for line in c:logs(ns .. "/long") do sizes[#sizes + 1] = #line end
      assert.same({ 1048576, 1048576, 402848, 5 }, sizes)
    end)

    it("come as chunks with raw", function()
      assert.equal("one\ntwo\nthree\n", table.concat(web { raw = true }))
    end)

    it("follow what is written, until the container ends", function()
      kubelet:pod(ns, "alive", { main = "2026-01-02T15:04:05Z first\n" })
      local seen = {}
      for line in c:logs(ns .. "/alive", { follow = true }) do
        seen[#seen + 1] = line
        if line == "first" then
          kubelet:append(ns, "alive", "main", "2026-01-02T15:04:06Z second\n")
        elseif line == "second" then
          process.write(kubelet:path(ns, "alive", "main", ".done"), "")
        end
      end
      assert.same({ "first", "second" }, seen)
    end)

    it("end when the loop breaks", function()
      kubelet:pod(ns, "endless", { main = "2026-01-02T15:04:05Z first\n" })
      for line in c:logs(ns .. "/endless", { follow = true }) do
        if line == "first" then break end
      end
      assert.same({ "one" }, { (c:logs(ns .. "/web", { container = "main" })()) })
    end)

    it("wait in the network while not read, and lose nothing", function()
      local count = 60000
      local all = {}
      for i = 1, count do all[i] = ("2026-01-02T15:04:05Z line %06d %s\n"):format(i, ("."):rep(200)) end
      kubelet:pod(ns, "big", { main = table.concat(all) })
      local big, slow = c:logs(ns .. "/big"), c:logs(ns .. "/big")
      assert.matches("line 000001", slow(), 1, true)
      local n = 0
      for line in big do
        n = n + 1
        assert(line:find(("line %06d"):format(n), 1, true), line)
      end
      assert.equal(count, n)
      n = 1
      for line in slow do
        n = n + 1
        assert(line:find(("line %06d"):format(n), 1, true), line)
      end
      assert.equal(count, n)
    end)

    it("continue after a broken connection with resume, without gaps or repeats", function()
      local own = servers.real { own = true }
      finally(function() own:stop() end)
      local node = assert(own:kubelet())
      local client <close> = kube.connect { kubeconfig = own.kubeconfig }
      node:pod("default", "talker",
        { main = "2026-01-02T15:04:05Z a\n2026-01-02T15:04:06Z b\n2026-01-02T15:04:06Z c\n" })
      local seen = {}
      for line in client:logs("default/talker", { follow = true, resume = true }) do
        seen[#seen + 1] = line
        if line == "c" then
          own:kill()
          node:append("default", "talker", "main", "2026-01-02T15:04:06Z d\n2026-01-02T15:04:07Z e\n")
          own:restart()
        elseif line == "e" then
          process.write(node:path("default", "talker", "main", ".done"), "")
        end
      end
      assert.same({ "a", "b", "c", "d", "e" }, seen)
    end)

    it("raise the server's error for a missing container", function()
      local err = raised(web, { container = "nope" })
      assert.equal(400, err.code)
      assert.matches("container nope is not valid for pod web", err.message, 1, true)
      assert.equal("logs", err.verb)
      err = raised(lines_of, c:logs(ns .. "/web"))
      assert.matches("a container name must be specified", err.message, 1, true)
      err = raised(lines_of, c:logs(ns .. "/nobody"))
      assert.equal("not_found", err.kind)
      err = raised(web, { container = "side", previous = true })
      assert.equal(400, err.code)
      assert.matches("previous terminated container", err.message, 1, true)
    end)

    it("name the missing rule when they are forbidden", function()
      local nobody <close> = kube.connect { kubeconfig = server:kubeconfig_for(server.tokens.nobody) }
      local err = raised(lines_of, nobody:logs(ns .. "/web"))
      assert.equal("forbidden", err.kind)
      assert.matches('verb "get" on resource "pods/log"', err.message, 1, true)
    end)

    it("reject invalid options before they send a request", function()
      assert.matches("unknown option 'tails'; did you mean 'tail'", raised(c.logs, c, "web", { tails = 1 }),
        1, true)
      assert.matches("since and since_time exclude each other",
        raised(c.logs, c, "web", { since = 1, since_time = "2026-01-02T15:04:05Z" }), 1, true)
      assert.matches("'tail' must be at least 0", raised(c.logs, c, "web", { tail = -1 }), 1, true)
      assert.matches("the pod has no metadata.name", raised(c.logs, c, {}), 1, true)
    end)

    it("end with the client", function()
      local client = kube.connect { kubeconfig = server.kubeconfig }
      kubelet:pod(ns, "waiting", { main = "2026-01-02T15:04:05Z first\n" })
      local next_line = client:logs(ns .. "/waiting", { follow = true })
      assert.equal("first", next_line())
      client:close()
      assert.equal("cancelled", raised(next_line).kind)
    end)

    it("leave no connection open", function()
      local client <close> = kube.connect { kubeconfig = server.kubeconfig }
      for _ = 1, 20 do
        for line in client:logs(ns .. "/web", { container = "main", follow = true }) do
          if line == "three" then break end
        end
      end
      collectgarbage()
      wait.until_true(10, "the stand-in has no followers", function()
        -- 01 is ESTABLISHED: closed connections stay in the table for a minute
        local out = process.run(("grep -c ':%04X 01 ' /proc/net/tcp"):format(kubelet.port))
        return tonumber(out) < 20
      end)
    end)
  end)
end)
