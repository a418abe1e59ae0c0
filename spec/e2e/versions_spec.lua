-- versions_spec.lua - the oldest and the newest API server that README supports: the features that a client
-- and a controller rely on, once. Details are tested with the version between them, in the other specs. The
-- suite asks the oldest, `make soak` both.
-- not in asan, tsan: what differs is the server and not our code

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local CRDS = "controllers/koordinator/crds"

-- The minor version of Kubernetes that a go.mod asks for.
local function version_in(path)
  return assert(process.read(path)):match "k8s%.io/kubernetes v(%d+%.%d+)"
end

describe("README", function()
  it("names the tested versions", function()
    local dir = "spec/realserver/"
    local tested = ("Tested against Kubernetes %s, %s and %s."):format(version_in(dir .. "oldest/go.mod"),
      version_in(dir .. "go.mod"), version_in(dir .. "newest/go.mod"))
    assert.matches(tested, (process.read "README.md":gsub("%s+", " ")), 1, true)
  end)
end)

servers.versions(sizes.of { short = 1, long = 2 }, function(name, start)
  describe("a client and a controller against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start { crds = { CRDS } }
      client = controller.client(server)
      ns = controller.namespace(client, "versions")
    end)
    lazy_teardown(function()
      if client then client:close() end      -- a server that drains waits for open watches
      if server then server:stop() end
    end)

    it("knows which version it talks to", function()
      assert.matches("^v1%.%d+%.%d+", client:version().gitVersion)
    end)

    it("finds built-in and custom kinds", function()
      assert.equal("deployments", client:resource("apps/v1/Deployment").plural)
      assert.is_false(client:resource("slo.koordinator.sh/v1alpha1/NodeMetric").namespaced)
    end)

    it("creates, reads, patches, applies and deletes", function()
      local made = client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { x = "1" } }
      assert.equal("1", made.data.x)
      client:patch(made, function(o) o.data.x = "2" end)
      client:apply { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { y = "3" } }
      local now = client:get("v1/ConfigMap", ns, "a")
      assert.equal("2", now.data.x)
      assert.equal("3", now.data.y)
      client:delete(now)
      assert.is_nil(client:get("v1/ConfigMap", ns, "a"))
    end)

    it("writes the status of a custom resource", function()
      local o = client:create { kind = "slo.koordinator.sh/v1alpha1/NodeMetric", name = "versions",
        spec = {} }
      client:patch_status(o, { updateTime = "2026-01-02T03:04:05Z" })
      assert.equal("2026-01-02T03:04:05Z", client:get("slo.koordinator.sh/v1alpha1/NodeMetric",
        "versions").status.updateTime)
    end)

    it("reads logs, runs a command and reaches a port of a pod", function()
      local kubelet = assert(server:kubelet())
      finally(function() kubelet:stop() end)
      kubelet:pod(ns, "web", { main = "2026-01-02T15:04:05Z a line\n" })
      local pod = ns .. "/web"
      assert.equal("a line", (client:logs(pod)()))
      for _, protocol in ipairs { "v5.channel.k8s.io", "v4.channel.k8s.io" } do
        assert.equal(3, client:exec(pod, { "sh", "-c", "exit 3" }, { protocol = protocol }).code)
      end
      assert.same({ stdout = "in", stderr = "", code = 0 }, client:exec(pod, { "cat" }, { stdin = "in" }))
      -- the stand-in's own: it speaks TLS, and says so
      local port <close> = client:port_stream(pod, kubelet.port)
      port:write "GET /healthz HTTP/1.0\r\n\r\n"
      assert.matches("HTTP request to an HTTPS server", (port:read()), 1, true)
    end)

    it("lists in pages and watches from there", function()
      for i = 1, 7 do client:create { kind = "v1/Secret", namespace = ns, name = "s" .. i } end
      local seen = 0
      for _ in client:each("v1/Secret", { namespace = ns, limit = 7 }) do seen = seen + 1 end
      assert.equal(7, seen)
      local _, version = client:list("v1/Secret", { namespace = ns })
      client:delete("v1/Secret", ns, "s3")
      local next_event = client:watch("v1/Secret", { namespace = ns, resource_version = version })
      local event, o = next_event()
      assert.equal("DELETED", event)
      assert.equal("s3", o.metadata.name)
    end)

    for _, way in ipairs { "pages", "--watch-list" } do
      it("reconciles under a lease (" .. way .. ")", function()
        local mine = controller.namespace(client, "versions")
        controller.ask(client, mine, 1, 20)
        local words = { "--leader-elect", "--leader-elect-resource-namespace", mine }
        if way == "--watch-list" then words[#words + 1] = way end
        local run = controller.start(server, controller.answering(mine, "!"), table.unpack(words))
        controller.await_answers(client, mine, 20, 30, function(ask) return ask .. "!" end)
        controller.ask(client, mine, 21, 30)
        controller.await_answers(client, mine, 30, 30, function(ask) return ask .. "!" end)
        wait.until_true(10, "a lease", function()
          return #client:list("coordination.k8s.io/v1/Lease", { namespace = mine }) > 0
        end)
        controller.finish(run)
      end)
    end
  end)
end)
