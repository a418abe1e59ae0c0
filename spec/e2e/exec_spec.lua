-- exec_spec.lua - exec, attach and port-forward through a real kube-apiserver, which translates v5 WebSockets
-- to SPDY for a real kubelet's streaming server (spec/realserver/kubelet).
-- real in asan, tsan: WebSockets over TLS

local controller = require "support.controller"
local identities = require "support.identities"
local kube = require "kubelua"
local servers = require "support.servers"
local socket = require "socket"
local process = require "support.process"
local wait = require "support.wait"

local function raised(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok, "it should have raised")
  return err
end

local V4 = { protocol = "v4.channel.k8s.io" }

servers.only_real(function(name, start)
  describe("through " .. name, function()
    local server, kubelet, c, ns, pod

    lazy_setup(function()
      server = start {}
      kubelet = assert(server:kubelet())
      c = kube.connect { kubeconfig = server.kubeconfig }
      ns = controller.namespace(c, "exec")
      pod = ns .. "/web"
      kubelet:pod(ns, "web", { main = "", side = "" })
    end)
    lazy_teardown(function()
      if c then c:close() end
      if kubelet then kubelet:stop() end
      if server then server:stop() end
    end)

    local function main(opts)
      opts = opts or {}
      opts.container = "main"
      return opts
    end

    describe("exec", function()
      it("gives stdout, stderr and the exit status", function()
        assert.same({ stdout = "out\n", stderr = "err\n", code = 3 },
          c:exec(pod, { "sh", "-c", "echo out; echo err >&2; exit 3" }, main()))
        assert.same({ stdout = "", stderr = "", code = 0 }, c:exec(pod, { "true" }, main()))
        assert.equal(137, c:exec(pod, { "sh", "-c", "exit 137" }, main()).code)
      end)

      it("passes arguments unchanged", function()
        local words = { "printf", "%s|", "a b", "", "ü&=?#%", "line\nbreak" }
        assert.equal("a b||ü&=?#%|line\nbreak|", c:exec(pod, words, main()).stdout)
      end)

      it("feeds standard input and ends it", function()
        assert.same({ stdout = "some text", stderr = "", code = 0 },
          c:exec(pod, { "cat" }, main { stdin = "some text" }))
        assert.same({ stdout = "0\n", stderr = "", code = 0 },
          c:exec(pod, { "sh", "-c", "wc -c" }, main { stdin = "" }))
        local n = 0
        local r = c:exec(pod, { "sh", "-c", "wc -c" }, main { stdin = function()
          n = n + 1
          return n <= 3 and "1234" or nil
        end })
        assert.equal("12\n", r.stdout)
      end)

      it("carries megabytes both ways at once", function()
        local parts = {}
        for i = 1, 200000 do parts[i] = ("%07d\n"):format(i) end
        local text = table.concat(parts)
        local r = c:exec(pod, { "cat" }, main { stdin = text })
        assert.equal(#text, #r.stdout)
        assert.is_true(text == r.stdout)
      end)

      it("keeps bytes as they are", function()
        local all = {}
        for i = 0, 255 do all[#all + 1] = string.char(i) end
        local text = table.concat(all)
        assert.is_true(c:exec(pod, { "cat" }, main { stdin = text }).stdout == text)
      end)

      it("ends even if the command leaves its input unread", function()
        local r = c:exec(pod, { "sh", "-c", "echo done" }, main { stdin = ("x"):rep(3000000) })
        assert.equal("done\n", r.stdout)
      end)

      it("falls back to v4, which has no way to end standard input", function()
        assert.same({ stdout = "out\n", stderr = "err\n", code = 3 },
          c:exec(pod, { "sh", "-c", "echo out; echo err >&2; exit 3" }, main { protocol = V4.protocol }))
        -- Only one line: v4 is proxied byte by byte, and if a client still writes when the command ends, the
        -- proxy cuts off the command's last output.
        local s <close> = c:exec_stream(pod, { "sh", "-c", "read x; echo $x" },
          main { protocol = V4.protocol, stdin = true })
        s:write "hey\n"
        assert.equal("hey\n", (s:read()))
        assert.equal(0, s:wait())
        local err = raised(c.exec, c, pod, { "cat" }, main { protocol = V4.protocol, stdin = "x" })
        assert.equal("rejected", err.kind)
        assert.matches("v4.channel.k8s.io cannot signal the end of standard input", err.message, 1, true)
      end)

      it("has a terminal with a size", function()
        local s <close> = c:exec_stream(pod, { "sh", "-c", "read go; stty size; echo err >&2; exit 5" },
          main { tty = true, stdin = true })
        s:resize(132, 43)
        s:write "go\n"
        local out = {}
        for bytes, from in s.read, s do
          assert.equal("stdout", from)
          out[#out + 1] = bytes
        end
        assert.matches("43 132\r\nerr\r\n", table.concat(out), 1, true)
        assert.equal(5, s:wait())
      end)

      it("raises at the timeout, and when the output is too large", function()
        local err = raised(c.exec, c, pod, { "sleep", "60" }, main { timeout = "200ms" })
        assert.equal("timeout", err.kind)
        assert.matches("the command did not end within 200ms", err.message, 1, true)
        err = raised(c.exec, c, pod, { "sh", "-c", "yes | head -c 100000" }, main { limit = 5000 })
        assert.equal("too_big", err.kind)
        assert.matches("more than 5000 bytes to stdout", err.message, 1, true)
      end)

      it("names a missing pod or container", function()
        local err = raised(c.exec, c, pod, { "true" }, { container = "nope" })
        assert.equal(400, err.code)
        assert.matches("container nope is not valid for pod web", err.message, 1, true)
        assert.equal("not_found", raised(c.exec, c, ns .. "/nobody", { "true" }).kind)
        err = raised(c.exec, c, pod, { "/no/such/program" }, main())
        assert.equal("server", err.kind)
        assert.matches("no such file or directory", err.message, 1, true)
        err = raised(c.exec, c, pod, { "true" })
        assert.matches("a container name must be specified", err.message, 1, true)
        kubelet:pod(ns, "ghost", { main = "" })
        os.remove(kubelet:path(ns, "ghost", "main", ".log"))
        err = raised(c.exec, c, ns .. "/ghost", { "true" })
        assert.matches('container "main" not found in pod "ghost"', err.message, 1, true)
      end)

      it("reports a pod that is not running", function()
        c:create { apiVersion = "v1", kind = "Pod", metadata = { name = "homeless", namespace = ns },
          spec = { containers = { { name = "a", image = "b" } } } }
        local err = raised(c.exec, c, ns .. "/homeless", { "true" })
        assert.matches("does not have a host assigned", err.message, 1, true)
      end)

      it("names the missing rules when it is forbidden", function()
        local nobody <close> = kube.connect { kubeconfig = server:kubeconfig_for(server.tokens.nobody) }
        local err = raised(nobody.exec, nobody, pod, { "true" }, main())
        assert.equal("forbidden", err.kind)
        assert.equal(403, err.code)
        assert.matches('"create" on resource "pods/exec"', err.message, 1, true)
      end)

      it("rejects invalid arguments before it sends a request", function()
        assert.matches('write { "sh", "-c", "ls" }', raised(c.exec, c, pod, "ls"), 1, true)
        assert.matches("got an empty one", raised(c.exec, c, pod, {}), 1, true)
        assert.matches("word 2 of the command is number", raised(c.exec, c, pod, { "a", 1 }), 1, true)
        assert.matches("did you mean 'stdin'", raised(c.exec, c, pod, { "a" }, { sdtin = "" }), 1, true)
        assert.matches("neither a name nor", raised(c.exec, c, "a/b/c", { "a" }), 1, true)
        assert.matches("stdin must return strings", raised(c.exec, c, pod, { "cat" },
          main { stdin = function() return 5 end }), 1, true)
        assert.matches('the protocol is "v5.channel.k8s.io" or',
          raised(c.exec, c, pod, { "a" }, { protocol = "v9" }).message, 1, true)
        assert.matches("holds a zero byte", raised(c.exec, c, pod, { "a\0b" }), 1, true)
      end)
    end)

    describe("exec_stream", function()
      it("is a conversation", function()
        local s <close> = c:exec_stream(pod, { "sh", "-c",
          "while read x; do echo got $x; done; echo bye >&2; exit 2" }, main { stdin = true })
        assert.equal("v5.channel.k8s.io", s:protocol())
        assert.is_false(s:try_read())
        s:write "one\n"
        assert.equal("got one\n", (s:read()))
        s:write "two\n"
        assert.equal("got two\n", (s:read()))
        s:close_stdin()
        local bytes, from = s:read()
        assert.equal("bye\n", bytes)
        assert.equal("stderr", from)
        assert.is_nil(s:read())
        assert.is_nil(s:read())
        assert.equal(2, s:wait())
      end)

      it("blocks the command while its output is not read", function()
        local s <close> = c:exec_stream(pod, { "sh", "-c", "head -c 20000000 /dev/zero" }, main())
        assert.equal("v5.channel.k8s.io", s:protocol())
        local n = 0
        for bytes in s.read, s do n = n + #bytes end
        assert.equal(20000000, n)
        assert.equal(0, s:wait())
      end)

      it("ends once closed", function()
        local s = c:exec_stream(pod, { "cat" }, main { stdin = true })
        s:close()
        s:close()
        assert.matches("the stream was closed", raised(s.read, s), 1, true)
        assert.matches("the stream was closed", raised(s.write, s, "x"), 1, true)
      end)

      it("can exist many times at once", function()
        local streams = {}
        for i = 1, 20 do
          streams[i] = c:exec_stream(pod, { "sh", "-c", "read x; echo $x" }, main { stdin = true })
        end
        for i, s in ipairs(streams) do s:write(i .. "\n") end
        for i, s in ipairs(streams) do
          assert.equal(i .. "\n", (s:read()))
          assert.equal(0, s:wait())
          s:close()
        end
      end)
    end)

    describe("each kind of credentials", function()
      local function runs(config)
        local client <close> = kube.connect { kubeconfig = config }
        assert.same({ stdout = "in", stderr = "", code = 0 },
          client:exec(pod, { "cat" }, main { stdin = "in" }))
        local n = 0
        for _ in client:logs(pod, { container = "main" }) do n = n + 1 end
        assert.equal(0, n)
      end

      it("works: client certificates", function()
        runs(identities.kubeconfig(server, ("client-certificate: %s\nclient-key: %s"):format(
          server.client_cert, server.client_key)))
      end)

      it("works: impersonation", function()
        local function as(user)
          return identities.kubeconfig(server, ("token: %s\nas: %s\nas-groups: [\"system:masters\"]"):format(
            server.token, user))
        end
        runs(as "somebody")
        local client <close> = kube.connect { kubeconfig = (as("somebody-else")), namespace = ns }
        assert.equal("", client:exec("web", { "true" }, main()).stdout)
        local plain <close> = kube.connect { kubeconfig = identities.kubeconfig(server,
          ("token: %s\nas: somebody"):format(server.token)) }
        local err = raised(plain.exec, plain, pod, { "true" }, main())
        assert.matches('User "somebody" cannot', err.message, 1, true)
      end)

      it("works: a credential plugin, which runs again when the server rejects its token",
        function()
        local user,
          count = identities.plugin(
          ([[if [ $N = 1 ]; then printf '"token":"stale"'; else printf '"token":"%s"'; fi]]):format(
          server.token))
        local client <close> = kube.connect { kubeconfig = identities.kubeconfig(server, user) }
        assert.equal("in", client:exec(pod, { "cat" }, main { stdin = "in" }).stdout)
        assert.equal(2, count())
        for _ in client:logs(pod, { container = "main" }) do error "it is empty" end
        assert.equal(2, count())
        local always = identities.plugin [[printf '"token":"stale"']]
        local refused <close> = kube.connect { kubeconfig = identities.kubeconfig(server, always) }
        assert.equal(401, raised(refused.exec, refused, pod, { "true" }, main()).code)
        assert.equal(401, raised(refused:logs(pod, main())).code)
      end)

      it("works: a SOCKS proxy and an HTTP proxy, which see no plaintext", function()
        local port = servers.free_port()
        local socks = process.spawn { "microsocks", "-i", "127.0.0.1", "-p", port }
        finally(function() socks:stop() end)
        wait.until_true(10, "microsocks listens", function()
          local s = socket.connect("127.0.0.1", port)
          return s and s:close()
        end)
        runs(identities.kubeconfig(server, "token: " .. server.token,
          ("proxy-url: socks5://127.0.0.1:%d\n"):format(port)))
        local other = servers.free_port()
        local conf = process.write(process.tmpname ".conf",
          ("Port %d\nListen 127.0.0.1\nAllow 127.0.0.1\nLogLevel Connect\nTimeout 600\n"):format(other))
        local http = process.spawn { "tinyproxy", "-d", "-c", conf }
        finally(function()
          socks:stop()
          http:stop()
        end)
        wait.until_true(10, "tinyproxy listens", function()
          local s = socket.connect("127.0.0.1", other)
          return s and s:close()
        end)
        runs(identities.kubeconfig(server, "token: " .. server.token,
          ("proxy-url: http://127.0.0.1:%d\n"):format(other)))
        assert.matches("CONNECT", http:log(), 1, true)
      end)
    end)

    describe("attach", function()
      it("talks to the container's own process", function()
        local s <close> = c:attach(pod, main { stdin = true })
        local out, err = "", ""
        s:write "hello"
        s:close_stdin()
        for bytes, from in s.read, s do
          if from == "stderr" then err = err .. bytes else out = out .. bytes end
        end
        assert.equal(("attached to %s_web_main\nhello"):format(ns), out)
        assert.equal("a word on stderr\n", err)
        assert.equal(0, s:wait())
      end)
    end)

    describe("port_forward", function()
      local echo, port

      -- A server on a port of the "pod" that returns its input in upper case until it reads "bye".
      lazy_setup(function()
        local probe = assert(socket.bind("127.0.0.1", 0))
        port = select(2, probe:getsockname())
        port = math.tointeger(tonumber(port))
        probe:close()
        echo = process.spawn { "python3", "-c", [[
import socketserver, sys
class H(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper()); self.wfile.flush()
            if line == b"bye\n": return
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
]], port }
        wait.until_true(10, "the port's server listens", function()
          local s = socket.connect("127.0.0.1", port)
          return s and s:close()
        end)
      end)
      lazy_teardown(function() if echo then echo:stop() end end)

      local function connect(forward)
        local s = assert(socket.connect("127.0.0.1", forward.ports[port]))
        s:settimeout(20)
        return s
      end

      it("carries connections to a port of the pod, several at once", function()
        local f <close> = c:port_forward(pod, port)
        assert.equal("127.0.0.1:" .. f.ports[port], f:address())
        local all = {}
        for i = 1, 10 do all[i] = connect(f) end
        for i, s in ipairs(all) do s:send("line " .. i .. "\n") end
        for i, s in ipairs(all) do assert.equal("LINE " .. i, s:receive "*l") end
        for _, s in ipairs(all) do
          s:send "bye\n"
          assert.equal("BYE", s:receive "*l")
          local _, why = s:receive(1)
          assert.equal("closed", why)
        end
        assert.equal(10, f:state().total)
        wait.until_true(10, "all connections are closed", function() return f:state().open == 0 end)
        assert.is_nil(f:state().failure)
      end)

      it("carries megabytes", function()
        local f <close> = c:port_forward(pod, { port })
        local s = connect(f)
        local text = ("x"):rep(65535) .. "\n"
        for _ = 1, 40 do
          s:send(text)
          assert.equal(65535, #assert(s:receive "*l"))
        end
        s:close()
      end)

      it("lets the pod finish after the local side stops writing", function()
        local f <close> = c:port_forward(pod, port)
        local s = connect(f)
        s:send "last words\nbye\n"
        s:shutdown "send"
        assert.equal("LAST WORDS", s:receive "*l")
        assert.equal("BYE", s:receive "*l")
      end)

      it("closes the local connection and says why when the pod's port is closed", function()
        local shut = assert(socket.bind("127.0.0.1", 0))
        local _, closed = shut:getsockname()
        closed = math.tointeger(tonumber(closed))
        shut:close()
        local f <close> = c:port_forward(pod, closed)
        local s = assert(socket.connect("127.0.0.1", f.ports[closed]))
        s:settimeout(20)
        local _, why = s:receive(1)
        assert.equal("closed", why)
        assert.matches("connection refused", wait.until_true(10, "a failure", function()
          return f:state().failure
        end), 1, true)
      end)

      it("stops listening once closed", function()
        local f = c:port_forward(pod, port)
        local here = f.ports[port]
        local s = connect(f)
        f:close()
        local _, why = s:receive(1)
        assert.equal("closed", why)
        wait.until_true(10, "the port is free", function() return not socket.connect("127.0.0.1", here) end)
      end)

      it("rejects an invalid port, remote or local", function()
        assert.matches("a port must be a number from 1 to 65535", raised(c.port_forward, c, pod, 70000), 1,
          true)
        assert.matches("got x:y", raised(c.port_forward, c, pod, "x:y"), 1, true)
        assert.matches("name a port", raised(c.port_forward, c, pod, {}), 1, true)
        local f <close> = c:port_forward(pod, port)
        local err = raised(c.port_forward, c, pod, ("%d:%d"):format(f.ports[port], port))
        assert.matches(tostring(f.ports[port]), err.message, 1, true)
      end)

      it("is a stream as well", function()
        local s <close> = c:port_stream(pod, port)
        s:write "a word\n"
        assert.equal("A WORD\n", (s:read()))
        s:write "bye\n"
        assert.equal("BYE\n", (s:read()))
        assert.is_nil(s:read())
        local none = c:port_stream(ns .. "/nobody", 80)
        assert.equal("not_found", raised(none.read, none).kind)
      end)

      it("ends with the client", function()
        local client = kube.connect { kubeconfig = server.kubeconfig }
        local f = client:port_forward(pod, port)
        local s = connect(f)
        s:send "x\n"
        assert.equal("X", s:receive "*l")
        client:close()
        local _, why = s:receive(1)
        assert.equal("closed", why)
        f:close()
      end)
    end)
  end)
end)
