-- stream_cli_spec.lua - kubelua logs and kubelua exec on a real cluster: unchanged output, exit statuses, a
-- terminal.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

servers.only_real(function(name, start)
  describe("through " .. name, function()
    local server, kubelet, ns

    lazy_setup(function()
      server = start {}
      kubelet = assert(server:kubelet())
      local c <close> = controller.client(server)
      ns = controller.namespace(c, "streamcli")
      kubelet:pod(ns, "web", { main = "2026-01-02T15:04:05Z one\n2026-01-02T15:04:06Z \z
        two\xff\n2026-01-02T15:04:07Z end" })
      kubelet:pod(ns, "two", { main = "2026-01-02T15:04:05Z a\n", side = "2026-01-02T15:04:05Z b\n" })
    end)
    lazy_teardown(function()
      if kubelet then kubelet:stop() end
      if server then server:stop() end
    end)

    local function command(line)
      return ("%s %s"):format(KUBELUA, line:gsub("^(%w+)",
        "%0 --kubeconfig " .. process.quote(server.kubeconfig) .. " -n " .. ns, 1))
    end
    -- `before` is put in front of the command: a pipe into it, variables.
    local function run(line, before) return process.run((before or "") .. command(line) .. " 2>&1") end

    describe("kubelua logs", function()
      it("prints the log unchanged", function()
        local out, code = run "logs web"
        assert.equal("one\ntwo\xff\nend", out)
        assert.equal(0, code)
        assert.equal("a\n", (run "logs pod/two -c main --tail 1"))
        assert.equal("2026-01-02T15:04:06Z two\xff\nend",
          (run "logs web --since-time 2026-01-02T15:04:06Z --timestamps"):gsub("\n2026%-01%-02T15:04:07Z ",
          "\n"))
        assert.equal("b\n", (run "logs two -c side"))
        assert.equal("", (run "logs web --since 5m"))
      end)

      it("follows until the container exits", function()
        kubelet:pod(ns, "alive", { main = "2026-01-02T15:04:05Z first\n" })
        for _, resume in ipairs { "", " --resume" } do
          local out = process.tmpname ".out"
          local child = process.spawn { "sh", "-c", command("logs alive -f" .. resume) .. " > "
            .. process.quote(out) }
          wait.until_true(20, "the first line", function()
            return (process.read(out) or ""):find "first\n"
          end)
          kubelet:append(ns, "alive", "main", "2026-01-02T15:04:06Z second\n")
          wait.until_true(20, "the second line", function()
            return (process.read(out) or ""):find "second\n"
          end)
          process.write(kubelet:path(ns, "alive", "main", ".done"), "")
          wait.until_true(20, "the end", function() return not child:alive() end)
          os.remove(kubelet:path(ns, "alive", "main", ".done"))
        end
      end)

      it("explains missing objects and invalid arguments", function()
        local out, code = run "logs nobody"
        assert.matches('kubelua logs: .*pods "nobody" not found', out)
        assert.equal(1, code)
        out, code = run "logs two"
        assert.matches("a container name must be specified", out, 1, true)
        assert.equal(1, code)
        out, code = run "logs web two"
        assert.matches("name one pod, got 2 words", out, 1, true)
        assert.equal(2, code)
        out, code = run "logs deploy/web"
        assert.matches('"deploy/web" is not a pod', out, 1, true)
        assert.equal(2, code)
      end)
    end)

    describe("kubelua exec", function()
      it("passes on output and exit status", function()
        local out, code = run "exec web -- sh -c 'echo out; exit 7'"
        assert.equal("out\n", out)
        assert.equal(7, code)
        out, code = process.run(command "exec web -- sh -c 'echo out; echo err >&2'" .. " 2>/dev/null")
        assert.equal("out\n", out)
        assert.equal(0, code)
      end)

      it("passes all of standard input", function()
        local out, code = run("exec web -i -- wc -c", "head -c 3000000 /dev/zero | ")
        assert.equal("3000000\n", out)
        assert.equal(0, code)
        out, code = run("exec web -i -- sh -c 'read x; echo got $x; exit 3'", "echo hello | ")
        assert.equal("got hello\n", out)
        assert.equal(3, code)
        assert.equal("0\n", (run("exec web -- wc -c", "echo unread | ")))
      end)

      it("ends with the command although standard input stays open", function()
        local fifo = process.quote(process.tmpname ".fifo")
        local out = process.run(("mkfifo %s; { timeout 60 %s < %s; echo status $?; } & exec 3> \z
          %s; wait"):format(fifo, command "exec web -i -- true", fifo, fifo))
        assert.equal("status 0\n", out)
      end)

      it("is a terminal with -it: raw, with our size, put back afterwards", function()
        local at = process.tmpname ".tty"
        local inner = ("tty > %s; stty cols 120 rows 33; %s; echo status $?; \z
          stty -a | grep -o ' icanon'"):format(at,
          command "exec web -it -- sh -c 'test -t 0 && read x && stty size && echo \"<$x>\"; exit 4'")
        -- Nobody types before the terminal is raw.
        local typed = ([[until stty -a -F "$(cat %s)" | grep -q -- -icanon; do sleep 0.05; done 2>/dev/null
          echo hello]]):format(at)
        local out = process.run(("timeout 60 sh -c %s | timeout 60 script -qec %s /dev/null"):format(
          process.quote(typed), process.quote(inner)))
        assert.matches("33 120", out, 1, true)
        assert.matches("<hello>", out, 1, true)
        assert.matches("status 4", out, 1, true)
        assert.matches(" icanon", out, 1, true)
      end)

      it("works without a terminal", function()
        local out, code = run("exec web -it -- cat", "echo x | ")
        assert.matches("not a terminal: continuing without -t", out, 1, true)
        assert.matches("\nx\n", out, 1, true)
        assert.equal(0, code)
      end)

      it("explains missing objects and invalid arguments", function()
        local out, code = run "exec nobody -- true"
        assert.matches('pods "nobody" not found', out, 1, true)
        assert.equal(1, code)
        out, code = run "exec web -- /no/such"
        assert.matches("no such file", out, 1, true)
        assert.equal(1, code)
        out, code = run "exec web"
        assert.matches("name the command to run in web", out, 1, true)
        assert.equal(2, code)
        out, code = run "exec web -t -- sh"
        assert.matches("-t needs -i", out, 1, true)
        assert.equal(2, code)
      end)
    end)
  end)
end)
