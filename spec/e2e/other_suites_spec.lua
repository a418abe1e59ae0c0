-- other_suites_spec.lua - the tests of another project, unmodified, against the embedded server as envtest's
-- kube-apiserver: controller-runtime's pkg/client. In `make soak`: they take minutes to compile.
-- not in check, asan, tsan: what runs is a program in Go

local json = require "dkjson"
local process = require "support.process"
require "support.sizes" -- it has a long form

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local MODULE, SUITE = "sigs.k8s.io/controller-runtime", "pkg/client"

-- What docs/apiserver.md says of the suite: its version, and how many of its tests pass here and there.
local function documented()
  return process.read("docs/apiserver.md"):match("\n| controller%-runtime `" .. SUITE
    .. "` | ([%d.]+) | (%d+) | (%d+) |")
end

local function sh(command)
  local out, code = process.run(command)
  assert(code == 0, ("%s: exit status %d\n%s"):format(command, code, out))
  return out
end

-- A copy of the module, in which its tests may be compiled; the specs of client-go choose the version.
local function checkout()
  local module = json.decode(sh("cd spec/realserver/clients && go mod download -json " .. MODULE))
  local dir = process.tmpname ".suite"
  sh(("cp -r %s %s && chmod -R u+w %s"):format(process.quote(module.Dir), dir, dir))
  return dir, module.Version:match "^v(.*)"
end

describe("the suite of controller-runtime's client", function()
  it("is in docs/apiserver.md, with equal results on both servers", function()
    local version, here, there = documented()
    assert.is_truthy(version)
    assert.equal(there, here)
  end)

  if os.getenv "KL_LONG" ~= "1" then return end
  if select(2, process.run "go version") ~= 0 then
    pending("passes: not run, for there is no Go")
    return
  end

  it("passes", function()
    local version, passes = documented()
    local dir, of_module = checkout()
    assert.equal(version, of_module)
    local assets = sh("mkdir -p " .. dir .. "/assets && readlink -f " .. dir .. "/assets"):match "%S+"
    sh(("%s apiserver --envtest %s"):format(KUBELUA, assets))
    sh(("cd %s/%s && go test -vet=off -c -o suite.test ."):format(dir, SUITE))
    local out, code = process.run(("cd %s/%s && KUBEBUILDER_ASSETS=%s ./suite.test -test.timeout=30m"):format(
      dir, SUITE, assets))
    assert.equal(0, code, out:sub(-4000))
    local ran, passed, failed = out:match "Ran (%d+) of %d+ Specs.-(%d+) Passed.-(%d+) Failed"
    assert.equal(passes, passed, out:sub(-2000))
    assert.equal(passed, ran)
    assert.equal("0", failed)
  end)
end)
