-- hostile_http2_spec.lua - servers that violate HTTP/2: each request to one ends in an error, in bounded time
-- and memory, and requests to others continue. core/client/hostile_test.c does the same for HTTP/1.1.
local controller = require "support.controller"
local http = require "support.http"
local identities = require "support.identities"
local process = require "support.process"
local servers = require "support.servers"

-- The behaviours of spec/support/hostile_http2.py. The last three send nothing that reaches a transfer.
local TRICKS = {
  "hints", "headers", "continuations", "table", "trailers", "settings", "pings", "pushes", "goaway",
  "refused", "window", "huge", "bomb", "silent", "drops", "closed", "pongs", "grants", "nothing",
}

-- AddressSanitizer keeps 256 MiB of freed memory, and some memory around each block.
local KIB_MAX = (os.getenv "KL_VARIANT" == "asan" and 1024 or 512) * 1024

local ENDS = { closed = true, timeout = true, server = true, too_big = true }

describe("a hostile server of HTTP/2", function()
  local server, client, hostile, web, t, ca
  local ports = {}
  lazy_setup(function()
    server = servers.embedded {}
    client = controller.client(server)
    web = http.web()
    ca = identities.ca "spec-hostile-ca"
    local cert = identities.certificate(ca, "/CN=hostile", "IP:127.0.0.1")
    local words = { "python3", "spec/support/hostile_http2.py", cert.crt, cert.key }
    for _, trick in ipairs(TRICKS) do words[#words + 1] = trick end
    hostile = process.spawn(words)
    hostile:wait_for_log(20, "ready")
    local rules = { web.url }
    for port, trick in hostile:log():gmatch "port (%d+) (%l+)" do
      ports[trick] = port
      rules[#rules + 1] = "https://127.0.0.1:" .. port
    end
    t = http.start(server, client, controller.namespace(client, "hostile"), rules, "--allow-http")
  end)
  lazy_teardown(function()
    if t then t:finish() end
    for _, one in ipairs { hostile, web, server } do one:stop() end
  end)

  for _, trick in ipairs(TRICKS) do
    it("ends one request, and none to other servers: " .. trick, function()
      -- One that has a body where the body cannot leave. Some floods keep both cores busy until it ends.
      local what = trick == "closed" and 'post(url, { body = "text",' or "get(url, {"
      local e = t:ask(([[local url = "https://127.0.0.1:%s/"
        return http:%s timeout = "500ms", tls = { ca = %q } })]]):format(ports[trick],
          what, process.read(ca.crt))).error
      assert.truthy(e and ENDS[e.kind], e and e.message or "it was answered")
      assert.equal(200, t:ask("return http:get(url .. '/text').status"))
    end)
  end

  it("costs a bounded piece of memory", function()
    local peak = tonumber(process.read(("/proc/%d/status"):format(t.run.pid)):match "VmHWM:%s*(%d+) kB")
    assert.is_true(peak < KIB_MAX, peak .. " KiB")
  end)
end)
