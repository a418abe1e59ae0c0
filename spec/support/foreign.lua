-- foreign.lua - the tests of a client in another language as a spec: unmodified, against the embedded server
-- and kube-apiserver. `make versions` builds what runs them.

local assert = require "luassert"
local busted = require "busted"
local process = require "support.process"
local servers = require "support.servers"

local M = {}

--- The target of a link in build/assets; "none": there is no such link.
function M.asset(path) return process.run("readlink -f build/assets/" .. path):match "%S+" or "none" end

---@param what string  the name of the client
---@param o { program: string, needs: string, words: string?, passed: string, source: string, fence: string }
---  program: the file that runs the tests; needs: its name in messages; words: its arguments; passed: the end
---  of its output on success; source: the tests, which contain the block of docs/apiserver.md with that fence
function M.describe(what, o)
  busted.describe(what, function()
    local there = process.read(o.program) ~= nil

    local function passes(env)
      local out, code = process.run(("env %s RUST_BACKTRACE=0 %s"):format(env,
        o.program .. " " .. (o.words or "")))
      assert.equal(0, code, out)
      assert.matches(o.passed, out, 1, true)
    end

    local function define(name, body)
      if there then
        busted.it(name, body)
      elseif (os.getenv "CI" or "") ~= "" then
        busted.it(name, function() error(("%s is missing: `make versions` builds it"):format(o.needs), 0) end)
      else
        busted.pending(("%s: %s is missing, `make versions` builds it"):format(name, o.needs))
      end
    end

    define("starts servers of its own, as docs/apiserver.md shows", function()
      passes("-u KUBECONFIG KUBELUA=" .. process.quote(os.getenv "KUBELUA" or "build/kubelua"))
    end)

    servers.only_real(function(name, start)
      define("finds the same in " .. name, function()
        local s = start {}
        passes("KUBECONFIG=" .. process.quote(s.kubeconfig))
        s:stop()
      end)
    end)

    busted.it("is used as docs/apiserver.md shows", function()
      local block = process.read("docs/apiserver.md"):match("\n```" .. o.fence .. "\n(.-)```")
      assert.is_truthy(process.read(o.source):find(block, 1, true))
    end)
  end)
end

return M
