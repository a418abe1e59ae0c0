--- The official client of Python, unmodified, against the embedded server and against kube-apiserver.
-- not in check, asan, tsan: what runs is a program in Python

local process = require "support.process"
local servers = require "support.servers"

local PROGRAM = "spec/realserver/python/test_server.py"

describe("the official client of Python", function()
  local venv = process.run("readlink -f build/assets/python/venv"):match "%S+" or "none"
  local python = venv .. "/bin/python"
  local there = process.read(python) ~= nil

  local function passes(env)
    local out, code = process.run(("env %s %s %s"):format(env, python, PROGRAM))
    assert.equal(0, code, out)
    assert.matches("Ran 4 tests", out, 1, true)
  end

  local function define(name, body)
    if there then
      it(name, body)
    elseif (os.getenv "CI" or "") ~= "" then
      it(name, function() error("its Python is missing: `make versions` builds it", 0) end)
    else
      pending(name .. ": its Python is missing, `make versions` builds it")
    end
  end

  define("starts a server of its own, as docs/apiserver.md shows", function()
    passes("-u KUBECONFIG KUBELUA=" .. process.quote(os.getenv "KUBELUA" or "build/kubelua"))
  end)

  servers.only_real(function(name, start)
    define("finds the same in " .. name, function()
      local s = start {}
      passes("KUBECONFIG=" .. process.quote(s.kubeconfig))
      s:stop()
    end)
  end)

  it("is used as docs/apiserver.md shows", function()
    local block = process.read("docs/apiserver.md"):match "\n```python\n(.-)```"
    assert.is_truthy(process.read(PROGRAM):find(block, 1, true))
  end)
end)
