-- pages_spec.lua - a load balancer without a backend answers instead of the API server, with HTML pages or
-- empty bodies: the process takes no object and no kind for deleted. The proxy is spec/support/pages.py.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "counts",
  resource = "v1/ConfigMap",
  owns = { "v1/Secret" },
  reconcile = function(map, ctx)
    if map.metadata.namespace ~= %q or map.metadata.name ~= "asked" then return end
    local n = #ctx:list("v1/Secret", { namespace = %q })
    ctx.log:info(("%%s: %%d secrets, trigger %%s"):format(map("data.word") or "none", n, ctx.trigger.reason))
  end,
}
]]

servers.each(function(name, start)
  describe("a controller of " .. name .. " behind a load balancer without a backend", function()
    local server, client, ns, proxy, run
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "pages")
    end)
    lazy_teardown(function()
      if proxy then proxy:stop() end
      if server then server:stop() end
    end)

    local function behind(port)
      local text = process.read(server.kubeconfig):gsub("(https?://127%.0%.0%.1:)%d+", "%1" .. port)
      return { kubeconfig = process.write(process.tmpname ".kubeconfig", text) }
    end

    local function turn(signal, word)
      local before = select(2, proxy:log():gsub("now: " .. word, ""))
      proxy:signal(signal)
      wait.until_true(10, "the proxy is on " .. word, function()
        return select(2, proxy:log():gsub("now: " .. word, "")) > before
      end)
    end

    local function failures() return select(2, run:log():gsub("list or watch failed", "")) end

    it("keeps its cache, and continues when there is one again", function()
      for i = 1, 5 do client:create { kind = "v1/Secret", namespace = ns, name = "s" .. i } end
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "asked", data = { word = "first" } }
      local port = servers.free_port()
      local words = { "python3", "spec/support/pages.py", port, server.url:match ":(%d+)/?$",
        name = "pages.py" }
      if server.dir then
        words[#words + 1] = server.dir .. "/server.crt"
        words[#words + 1] = server.dir .. "/server.key"
      end
      proxy = process.spawn(words)
      proxy:wait_for_log(20, "now: pass")
      run = controller.start(behind(port), SCRIPT:format(ns, ns))
      run:wait_for_log(30, "first: 5 secrets")
      for i, mode in ipairs { { "USR1", "page" }, { "USR2", "mixed" } } do
        local seen = failures()
        turn(mode[1], mode[2])
        wait.until_true(60, "watches and lists have failed a few times", function()
          return failures() >= seen + 4
        end)
        turn("HUP", "pass")
        client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "asked" },
          { data = { word = "after " .. i } })
        run:wait_for_log(60, "after " .. i .. ": 5 secrets")
      end
      local log = run:log()
      for _, wrong in ipairs { "trigger deleted", "a kind is gone", ": 0 secrets", "a kind is missing" } do
        assert.is_nil(log:find(wrong, 1, true), wrong .. "\n" .. log)
      end
      assert.is_truthy(log:find("without a Status", 1, true), log)
      controller.finish(run)
    end)
  end)
end)
