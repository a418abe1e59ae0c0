-- init_spec.lua - `kubelua init`: its files pass check and test at once, and a server accepts its manifests.
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

  it("gives the editor its annotations, from the binary", function()
    local dir = fresh()
    in_dir(dir, "init first")
    local said = process.run("diff -r lua/kubelua " .. process.quote(dir .. "/first/.annotations/kubelua"))
    assert.equal("Only in lua/kubelua: README.md\nOnly in lua/kubelua: cli\nOnly in lua/kubelua: sim\n", said)
    local luarc = require "dkjson".decode(process.read(dir .. "/first/.luarc.json"))
    assert.same({ ".annotations" }, luarc["workspace.library"])
    local out, code = in_dir(dir, "annotations elsewhere/here")
    assert.equal(0, code)
    assert.matches("wrote %d+ files to elsewhere/here: name it in .luarc.json", out)
    assert.truthy(process.read(dir .. "/elsewhere/here/kubelua/kubernetes/init.lua"):find("---@class", 1,
      true))
    out, code = in_dir(dir, "annotations")
    assert.equal(2, code)
    assert.matches("name the directory", out)
  end)

  it("writes a workflow whose commands pass, and manifests that name files of the project", function()
    local kube = require "kubelua"
    for _, kind in ipairs { "", " --kind example.com/v1/Greeting" } do
      local dir, n = fresh(), 0
      in_dir(dir, "init first" .. kind)
      local path = dir .. "/first/.github/workflows/ci.yaml"
      for _, step in ipairs(kube.yaml(process.read(path), path)[1].jobs.test.steps) do
        local command = (step("run") or ""):match "^kubelua (.*)"
        if command then
          local out, code = in_dir(dir .. "/first", command)
          assert.equal(0, code, out)
          n = n + 1
        end
      end
      assert.equal(3, n)
      local manifests = process.read(dir .. "/first/deploy/manifests.yaml")
      assert.matches("# %S+: first.lua:%d+", manifests)
      assert.is_nil(manifests:find("first/first.lua", 1, true))
    end
  end)

  it("overwrites nothing", function()
    local dir = fresh()
    in_dir(dir, "init first")
    local out, code = in_dir(dir, "init first")
    assert.equal(1, code)
    assert.matches("first is not empty %(first/README.md%): choose another %-%-dir", out)
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
    assert.matches("a custom group must contain a dot: example.com/v1/Widget", out)
  end)
end)

servers.each(function(name, start)
  describe("what kubelua init writes, on " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function() s:stop() end)

    it("is accepted by the server", function()
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

local function rooted(dir) return process.run("realpath " .. process.quote(dir)):gsub("%s+$", "") end

servers.only_real(function(name, start)
  describe("a project of kubelua init, at " .. name, function()
    local s
    lazy_setup(function() s = start {} end)
    lazy_teardown(function()
      if not s then return end
      s:kubectl("delete", "crd", "--wait=false", "greetings.first.example.com")
      s:stop()
    end)

    it("starts with one command, has its rights, and answers why from its pods", function()
      local controller = require "support.controller"
      local wait = require "support.wait"
      local kube = require "kubelua"
      local dir = rooted(fresh())
      in_dir(dir, "init first --kind first.example.com/v1/Greeting")
      s:must_kubectl("apply", "-k", dir .. "/first")
      s:wait_established "crd/greetings.first.example.com"
      s:must_kubectl("apply", "-k", dir .. "/first")
      local c = controller.client(s)
      assert.equal(process.read(dir .. "/first/first.lua"),
        c:get("v1/ConfigMap", "first-system", "first-scripts").data["first.lua"])
      local pod = c:get("apps/v1/Deployment", "first-system", "first").spec.template.spec
      local container, env, mounts = pod.containers[1], {}, {}
      for _, e in ipairs(container.env) do env[e.name] = e end
      for _, m in ipairs(container.volumeMounts) do mounts[m.mountPath] = m.name end
      assert.equal("metadata.name", env.POD_NAME.valueFrom.fieldRef.fieldPath)
      assert.equal("metadata.namespace", env.POD_NAMESPACE.valueFrom.fieldRef.fieldPath)
      assert.equal("run", mounts[env.XDG_RUNTIME_DIR.value])
      assert.truthy(container.securityContext.readOnlyRootFilesystem)

      -- The spec's user replaces the service account, since no controller here creates its token.
      s:must_kubectl("create", "clusterrolebinding", "first-nobody", "--clusterrole", "first", "--user",
        "nobody")
      s:must_kubectl("create", "rolebinding", "first-nobody", "-n", "first-system", "--role", "first",
        "--user",
        "nobody")
      local words = { "env", "POD_NAME=first-0", "POD_NAMESPACE=first-system", KUBELUA }
      for _, arg in ipairs(container.args) do
        words[#words + 1] = arg:gsub("^/controllers/", dir .. "/first/"):gsub("0%.0%.0%.0:%d+", "127.0.0.1:0")
      end
      words[#words + 1] = "--kubeconfig"
      words[#words + 1] = s:kubeconfig_for(s.tokens.nobody)
      local run = process.spawn(words)
      run:wait_for_log(60, "controller is running")
      c:create { kind = "first.example.com/v1/Greeting", namespace = "default", name = "a",
        spec = { message = "hello" } }
      wait.until_true(30, "the greeting's ConfigMap", function()
        local map = kube.try(c.get, c, "v1/ConfigMap", "default", "a")
        return map and map("data.message") == "hello"
      end)
      wait.until_true(30, "the greeting's status", function()
        return c:get("first.example.com/v1/Greeting", "default", "a")("status.message") == "hello"
      end)
      assert.equal(0, run:stop(45), run:log())
      for _, refusal in ipairs { "[ =(]403%f[%D]", "orbidden", "cannot list", "cannot patch" } do
        assert.is_nil(run:log():find(refusal), run:log())
      end
      c:close()
    end)
  end)
end)
