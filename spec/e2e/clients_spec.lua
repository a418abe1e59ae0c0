-- clients_spec.lua - unmodified clients of others: client-go (spec/realserver/clients, with JSON and with
-- protobuf) and controller-runtime's envtest, on both servers.
-- not in check, asan, tsan: what runs is a program in Go

local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"

local PROGRAM = process.run("readlink -f build/assets/clients/clients.test"):match "%S+"
local FILE = PROGRAM and process.read(PROGRAM) and PROGRAM

-- Runs tests of the program by name; each that passed, in order, and the whole output.
local function run(tests, env)
  local words = {}
  for name, value in pairs(env) do words[#words + 1] = process.quote(name .. "=" .. value) end
  local out, code = process.run(("env %s %s -test.v -test.count=1 -test.timeout=600s -test.run %s"):format(
    table.concat(words, " "), FILE, process.quote("^(" .. table.concat(tests, "|") .. ")$")))
  assert.equal(0, code, out)
  local passed = {}
  for name in out:gmatch "\n%-%-%- PASS: (%S+)" do passed[#passed + 1] = name end
  table.sort(passed)
  return table.concat(passed, " ")
end

local CALLS = { "TestDiscovery", "TestDynamic", "TestElection", "TestInformers", "TestMetadata",
  "TestSubresources", "TestTyped" }

if not FILE then
  local why = "clients.test is not there; `make versions` builds it"
  if (os.getenv "CI" or "") ~= "" then
    it("runs programs of client-go", function() error(why, 0) end)
  else
    pending("runs programs of client-go: " .. why)
  end
  return
end

servers.each(function(name, start)
  describe("programs of client-go find in " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    it("their resources, in JSON and in protobuf", function()
      assert.equal(table.concat(CALLS, " "), run(CALLS, { KUBECONFIG = s.kubeconfig }))
    end)

    it("a watch in the order of versions, with several writers", function()
      -- a real one writes a tenth as fast
      local writes = s.name == "embedded" and sizes.of { short = 4000, long = 20000 }
        or sizes.of { short = 400, long = 20000 }
      assert.equal("TestOrder", run({ "TestOrder" }, { KUBECONFIG = s.kubeconfig, WRITES = writes }))
    end)
  end)
end)

describe("docs/apiserver.md", function()
  it("shows the program of this spec", function()
    local test = process.read "spec/realserver/clients/envtest_test.go"
    local block = process.read("docs/apiserver.md"):match "\n```go\n(.-)```"
    assert.is_truthy(test:find(block, 1, true))
  end)
end)

describe("envtest starts and stops", function()
  it("what `kubelua apiserver --envtest` made", function()
    local dir = process.tmpname ".envtest"
    local kubelua = os.getenv "KUBELUA" or "build/kubelua"
    local out, code = process.run(("%s apiserver --envtest %s"):format(kubelua, dir))
    assert.equal(0, code, out)
    assert.equal("TestEnvtest", run({ "TestEnvtest" }, { KUBEBUILDER_ASSETS = dir }))
    -- once more over its own links, and not over files of others
    out, code = process.run(("%s apiserver --envtest %s"):format(kubelua, dir))
    assert.equal(0, code, out)
    process.run(("rm %s/etcd && echo x >%s/etcd"):format(dir, dir))
    out, code = process.run(("%s apiserver --envtest %s"):format(kubelua, dir))
    assert.equal(1, code)
    assert.matches("etcd exists, and is not a link that kubelua made; name another directory", out, 1, true)
  end)

  it("names ignored flags", function()
    local dir = process.tmpname ".envtest"
    process.run(("%s apiserver --envtest %s"):format(os.getenv "KUBELUA" or "build/kubelua", dir))
    local out, code = process.run(("%s/kube-apiserver --feature-gates A=true --help"):format(dir))
    assert.equal(0, code)
    assert.matches("kube-apiserver: --feature-gates is unknown to kubelua", out, 1, true)
    assert.matches("\n  --secure-port\n", out, 1, true)
    assert.is_nil(out:find("--insecure-port", 1, true))
  end)

  servers.only_real(function()
    it("the real kube-apiserver and etcd", function()
      assert.equal("TestEnvtest", run({ "TestEnvtest" },
        { KUBEBUILDER_ASSETS = process.run("readlink -f " .. servers.assets()):match "%S+" }))
    end)
  end)
end)
