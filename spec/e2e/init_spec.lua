--- init_spec.lua - `kubelua init`: what it writes passes check and test at once, and a server takes its
--- manifests.
-- not in asan, tsan: what is written is the subject

local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = process.run("realpath " .. process.quote(os.getenv "KUBELUA" or "build/kubelua")):gsub("%s+$",
  "")

local function fresh()
  local dir = process.tmpname ".init"
  process.run("mkdir -p " .. process.quote(dir))
  return dir
end

local function in_dir(dir, command)
  return process.run(("cd %s && %s %s"):format(process.quote(dir), process.quote(KUBELUA), command))
end

describe("kubelua init", function()
  for _, case in ipairs { { "a kind of one's own", "--kind example.com/v1/Policy", 5 },
    { "ConfigMaps, unless a kind is said", "", 3 },
    { "a kind that wants a spec", "--kind apps/v1/Deployment", 3 },
    { "a kind of the cluster", "--kind v1/Node", 3 },
    { "a kind whose smallest object it does not know", "--kind batch/v1/CronJob", 1 } } do
    it("writes a project for " .. case[1], function()
      local dir = fresh()
      local out, code = in_dir(dir, "init first " .. case[2])
      assert.equal(0, code, out)
      out, code = in_dir(dir .. "/first", "check first.lua")
      assert.equal(0, code, out)
      assert.matches("controller first", out)
      out, code = in_dir(dir .. "/first", "test")
      assert.equal(0, code, out)
      assert.is_true(tonumber(out:match "(%d+) passed, 0 failed") >= case[3], out)
      assert.is_nil(process.read(dir .. "/first/deploy/manifests.yaml"):find "guess")
    end)
  end

  it("overwrites nothing", function()
    local dir = fresh()
    in_dir(dir, "init first")
    local out, code = in_dir(dir, "init first")
    assert.equal(1, code)
    assert.matches("first has something in it already %(first/README.md%): choose another %-%-dir", out)
  end)

  it("explains a wrong name and a wrong kind", function()
    local out, code = in_dir(fresh(), "init First")
    assert.equal(2, code)
    assert.matches("lower case letters", out)
    out, code = in_dir(fresh(), "init first --kind Widget")
    assert.equal(2, code)
    assert.matches("group/version/Kind such as example.com/v1/Widget", out)
    out, code = in_dir(fresh(), "init first --kind apps/v1/Widget")
    assert.equal(2, code)
    assert.matches("the group of one's own has a dot in it: example.com/v1/Widget", out)
  end)
end)

servers.each(function(name, start)
  describe("what kubelua init writes, on " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    it("is taken by the server", function()
      local dir = fresh()
      in_dir(dir, "init init-spec --kind init-spec.example.com/v1/Greeting")
      local kubeconfig = process.run("realpath " .. process.quote(s.kubeconfig)):gsub("%s+$", "")
      local flags = (" --kubeconfig %s -f crds -f deploy"):format(process.quote(kubeconfig))
      local out, code = in_dir(dir .. "/init-spec", "apply" .. flags)
      assert.equal(0, code, out)
      assert.matches("deployment.apps/init%-spec created", out)
      out, code = in_dir(dir .. "/init-spec", "apply" .. flags)
      assert.equal(0, code, out)
      assert.matches("deployment.apps/init%-spec unchanged", out)
      in_dir(dir .. "/init-spec", "delete --wait=false" .. flags)
    end)
  end)
end)
