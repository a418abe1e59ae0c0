--- simulate_spec.lua - stand-ins for a cluster (controllers/simulate): unmodified kubectl sees pods become
--- ready, beside the embedded server by --simulate, and beside kube-apiserver as the scripts that they are,
--- so that everything they write is what the real one takes.

local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local DIR = "controllers/simulate"

-- Beside a real server of our own: the stand-ins would play for the pods of other specs, too.
local function start_beside(name, start)
  if name == "the embedded API server" then
    return start { collects = true, args = { "--simulate", "--simulate-nodes", "2" } }
  end
  local server = start { own = true }
  local words = { KUBELUA, "run", name = "kubelua run" }
  for path in process.run("ls " .. DIR .. "/*.lua"):gmatch "%S+" do
    if not path:find "_test%.lua$" then words[#words + 1] = path end
  end
  for _, word in ipairs { "--kubeconfig", server.kubeconfig, "--param", "simulate-cluster.nodes=2", "--control",
    "off" } do words[#words + 1] = word end
  table.insert(server.children, process.spawn(words))
  return server
end

describe("the stand-ins", function()
  it("pass their own tests", function()
    local out, code = process.run(KUBELUA .. " test " .. DIR .. " 2>&1")
    assert.equal(0, code, out)
  end)

  it("are known by their names", function()
    local function refused(words)
      local out, code = process.run(KUBELUA .. " apiserver --listen 127.0.0.1:0 " .. words .. " 2>&1")
      assert.equal(2, code)
      return out
    end
    assert.equal('kubelua apiserver: --simulate: there is no stand-in "pod"; did you mean "pods"?\n',
      refused "--simulate=nodes,pod")
    assert.matches('^kubelua apiserver: %-%-simulate: there is no stand%-in "xyzzy"; there are .*nodes, .*pods',
      refused "--simulate=xyzzy")
    assert.matches("give %-%-simulate, too", refused "--simulate-nodes 4")
  end)

  it("run beside dev, too", function()
    local play = process.write(process.tmpname ".lua", [[
      local c = require "kubelua".connect { server = dev.server }
      for i = 1, 2 do c:wait_for("v1/Node", "node-" .. i, "Ready", { timeout = "20s" }) end
      assert(#c:list "v1/Node" == 2)
    ]])
    local out, code = process.run(("timeout 60 %s dev controllers/hello.lua --control off --simulate=nodes \z
      --simulate-nodes 2 --play %s 2>&1"):format(KUBELUA, play))
    assert.equal(0, code, out)
  end)
end)

servers.each(function(name, start)
  describe("kubectl beside stand-ins and " .. name, function()
    local s
    lazy_setup(function()
      s = start_beside(name, start)
      wait.until_true(20, "two nodes are there", function() return select(2, s:kubectl("get", "node", "node-2")) == 0 end)
      s:must_kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=20s")
    end)
    lazy_teardown(function() if s then s:stop() end end)

    local function get(kind, of, path)
      return s:must_kubectl("get", kind, of, "-o", "jsonpath={" .. path .. "}")
    end

    it("sees a pod become ready, and go", function()
      s:must_kubectl("run", "one", "--image=nginx")
      s:must_kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=20s")
      assert.matches("one +1/1 +Running +0 ", s:must_kubectl("get", "pods", "one"))
      assert.matches("Successfully assigned default/one to node%-", s:must_kubectl("describe", "pod", "one"))
      s:must_kubectl("delete", "pod", "one", "--timeout=20s")
    end)

    it("cordons a node, drains it, and lets pods in again", function()
      s:must_kubectl("run", "two", "--image=nginx")
      s:must_kubectl("wait", "--for=condition=Ready", "pod/two", "--timeout=20s")
      local node = get("pod", "two", ".spec.nodeName")
      s:must_kubectl("drain", node, "--force", "--timeout=20s")
      assert.equal(1, select(2, s:kubectl("get", "pod", "two")))
      assert.matches("SchedulingDisabled", s:must_kubectl("get", "node", node))
      s:must_kubectl("run", "three", "--image=nginx",
        '--overrides={"spec":{"nodeSelector":{"kubernetes.io/hostname":"' .. node .. '"}}}')
      s:must_kubectl("wait", "--for=condition=PodScheduled=False", "pod/three", "--timeout=20s")
      s:must_kubectl("uncordon", node)
      s:must_kubectl("wait", "--for=condition=Ready", "pod/three", "--timeout=20s")
      s:must_kubectl("delete", "pod", "three", "--timeout=20s")
    end)
  end)
end)
