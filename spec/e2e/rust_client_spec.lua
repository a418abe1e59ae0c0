--- kube-rs, unmodified: its watcher, Controller, finalizer helper, Recorder and apply (spec/realserver/rust),
--- against the embedded server and against kube-apiserver.
-- not in check, asan, tsan: what runs is a program in Rust

local process = require "support.process"
local servers = require "support.servers"

local SOURCE = "spec/realserver/rust/clients.rs"

describe("kube-rs", function()
  local program = process.run("readlink -f build/assets/rust/rust-clients"):match "%S+" or "none"
  local there = process.read(program) ~= nil
  local _, tests = process.read(SOURCE):gsub("\n#%[test%]\n", "")

  local function passes(env)
    local out, code = process.run(("env %s RUST_BACKTRACE=0 %s"):format(env, program))
    assert.equal(0, code, out)
    assert.matches(("test result: ok. %d passed"):format(tests), out, 1, true)
  end

  local function define(name, body)
    if there then
      it(name, body)
    elseif (os.getenv "CI" or "") ~= "" then
      it(name, function() error("its program is missing: `make versions` builds it", 0) end)
    else
      pending(name .. ": its program is missing, `make versions` builds it")
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

  it("is used as docs/apiserver.md shows", function()
    local block = process.read("docs/apiserver.md"):match "\n```rust\n(.-)```"
    assert.is_truthy(process.read(SOURCE):find(block, 1, true))
  end)
end)
