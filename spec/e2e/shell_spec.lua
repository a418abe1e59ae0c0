-- shell_spec.lua - `kubelua shell`: a dialogue on a terminal (spec/support/terminal.py), and its behaviour
-- without one.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function json(text)
  return '"' .. text:gsub('[%c"\\]', function(ch) return ("\\u%04x"):format(ch:byte()) end) .. '"'
end

servers.each(function(name, start)
  describe("the shell on " .. name, function()
    local s, c, ns, state

    lazy_setup(function()
      s = start()
      c = controller.client(s)
      ns = controller.namespace(c, "shell")
      c:create { kind = "v1/ConfigMap", namespace = ns, name = "settings", labels = { app = "web" },
        data = { colour = "blue", size = "3" } }
      c:create { kind = "v1/ConfigMap", namespace = ns, name = "spare" }
      state = process.tmpname ".state"
    end)
    lazy_teardown(function()
      if c then c:close() end
      if s then s:stop() end
    end)

    local function command()
      return ("%s shell --kubeconfig %s -n %s"):format(KUBELUA, process.quote(s.kubeconfig), ns)
    end

    -- Plays {expected, typed} pairs; each expectation is a regular expression that must follow what was
    -- shown before.
    local function play(steps)
      local lines = {}
      for i, step in ipairs(steps) do lines[i] = ("[%s, %s]"):format(json(step[1]), json(step[2])) end
      local script = process.write(process.tmpname ".steps", table.concat(lines, "\n") .. "\n")
      local out,
        code = process.run(("XDG_STATE_HOME=%s LC_ALL=C.UTF-8 python3 spec/support/terminal.py %d \z
        %s < %s"):format(process.quote(state), 20 * wait.factor,
        command(), process.quote(script)))
      assert.equal(0, code, out)
      return out
    end

    -- Without a terminal.
    local function piped(text)
      local path = process.write(process.tmpname ".lua", text)
      return process.run(("%s < %s"):format(command(), process.quote(path)))
    end

    it("reads, evaluates, prints", function()
      local prompt = ns .. "> $"
      play {
        { "help\\(\\) lists.*" .. prompt, 'get("cm", "settings").data.colour\r' },
        { "\nblue\r\n.*" .. prompt, "_ .. '!'\r" },
        { "\nblue!\r\n.*" .. prompt, "#'h\u{e9}'\r" },
        { "\n3\r\n.*" .. prompt, 'local x = get("cm", "settings")\r' },
        { prompt, "x\r" },
        { "\napiVersion: v1\r\n.*  colour: blue\r\n.*" .. prompt, '{ get("cm", "spare") }\r' },
        { "NAMESPACE +NAME +AGE\r\n.*spare.*" .. prompt, 'list "cm"\r' },
        { "NAMESPACE +NAME +AGE\r\n.*settings.*spare.*" .. prompt, "for i = 1, 2 do\r" },
        { "      >> $", "print(i * 21)\r" },
        { "      >> $", "end\r" },
        { "\n21\r\n42\r\n.*" .. prompt, "\4" },
      }
    end)

    it("completes kinds, names and fields", function()
      local prompt = ns .. "> $"
      play {
        { prompt, 'x = get("configm\t' },
        { "configm.*aps$", '", "sett\t' },
        { "sett.*ings$", '")\r' },
        { prompt, "x.metadata.lab\t.ap\t\r" },
        { "\nweb\r\n.*" .. prompt, "x.da\t.\t" },
        { "colour +size\r\n", "colour\r" },
        { "\nblue\r\n.*" .. prompt, "c:patch_s\t" },
        { "c:patch_s.*tatus$", "\3" },
        { "\\^C.*" .. prompt, "kube.dura\t'90s'\r" },
        { "\n90\r\n.*" .. prompt, "\4" },
      }
    end)

    it("continues after ^C and after errors", function()
      local prompt = ns .. "> $"
      play {
        { prompt, "half a li" },
        { "half a li$", "\3" },
        -- It prints when it runs: an earlier ^C would reach the prompt.
        { "\\^C\r\n.*" .. prompt, "print('under' .. 'way') while true do end\r" },
        { "\nunderway\r\n", "\3" },
        { "interrupted\r\n.*" .. prompt, 'watch "cm"\r' },
        { "ADDED.*ADDED", "\3" },
        { "interrupted\r\n.*" .. prompt, 'x = get("cm", "settings")\r' },
        { prompt, "x.spec.size\r" },
        { "the last absent field is spec of ConfigMap.*" .. prompt, 'get("podz")\r' },
        { "did you mean.*" .. prompt, "1 +* 2\r" },
        { "unexpected symbol near '\\*'\r\n.*" .. prompt, "6 * 7\r" },
        { "\n42\r\n.*" .. prompt, "\4" },
      }
    end)

    it("keeps a history, private to its owner", function()
      local prompt = ns .. "> $"
      play { { prompt, "'first' .. 'one'\r" }, { "firstone\r\n.*" .. prompt, "\4" } }
      play { { prompt, "\27[A\r" }, { "firstone\r\n.*" .. prompt, "\4" } }
      assert.equal("600 700", (process.run(("stat -c %%a %s/kubelua/history %s/kubelua"):format(state,
        state)):gsub("\n(.)", " %1"):gsub("\n", "")))
    end)

    it("changes the namespace", function()
      local out, code = piped 'use "default"\nuse()\nget("cm", "settings") == nil\n'
      assert.equal("default\ndefault\ntrue\n0", out .. code)
    end)

    it("runs its input without a terminal, and fails if a line fails", function()
      local out, code = piped 'get("cm",\n"settings").data.size\n\nlocal n = 4\nn + 1\n{ a = 1 }\n'
      assert.equal("3\n5\na: 1\n0", out .. code)
      out, code = piped 'error "no"\n"on"\n'
      assert.equal(1, code)
      assert.truthy(out:find("line 1: no", 1, true) and out:find("\non\n") or out:find("^on\n"), out)
      out, code = piped 'list("pods", { namespace = "empty" })\nget("nodes", "none")\nlist "csinodes"\n'
      assert.equal("no pods in namespace empty\nnil\nno csinodes\n0", out .. code)
      out, code = piped '"on"\nyaml(\n{})\nlst "cm"\nerror { code = 7 }\n'
      assert.equal(1, code)
      assert.truthy(out:find("line 4: attempt to call a nil value (global 'lst'); did you mean 'list'?", 1,
        true) and out:find("code: 7", 1, true), out)
      out, code = piped "unfinished("
      assert.equal(1, code)
      assert.truthy(out:find("<eof>", 1, true), out)
    end)

    it("runs code from the command line", function()
      local out,
        code = process.run(command()
        .. [[ -e 'create { kind = "v1/ConfigMap", name = "made" }' -e 'delete("cm", "made")']])
      assert.equal(0, code)
      assert.truthy(out:find("name: made", 1, true) and out:find("\ntrue\n", 1, true), out)
      out, code = process.run(command() .. " -e 'x ='")
      assert.equal(1, code)
      assert.truthy(out:find("kubelua shell: line 1: unexpected symbol near <eof>", 1, true), out)
      out, code = process.run(command() .. " words")
      assert.equal(2, code)
      assert.truthy(out:find("takes no arguments, got words", 1, true), out)
    end)
  end)
end)
