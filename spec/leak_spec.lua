-- leak_spec.lua - `kubelua run` and `kubelua dev` leak no memory when a signal ends them.
-- not in check: valgrind takes its time

local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local LEAKED = 99

-- The sanitizers' builds report by themselves what they see, and the runner counts that. The plain build is
-- watched by valgrind.
local function watched(words)
  if os.getenv "KL_VARIANT" == "release" and select(2, process.run "command -v valgrind") == 0 then
    local valgrind = { "valgrind", "--quiet", "--leak-check=full",
      "--errors-for-leak-kinds=definite,indirect,possible",
      "--show-leak-kinds=definite,indirect,possible", "--error-exitcode=" .. LEAKED }
    return table.move(words, 1, #words, #valgrind + 1, valgrind)
  end
  return words
end

local SCRIPT = [[
  local kube = require "kubelua"
  return kube.controller {
    name = "leak-watch",
    resource = "v1/ConfigMap",
    owns = { "v1/Secret" },
    reconcile = function(map, ctx)
      if map.metadata.name ~= "watched" then return end
      ctx:apply { kind = "v1/Secret", name = "made", stringData = { of = map.data.text } }
      ctx.log:info "made it"
      ctx:sleep "1ms"
      return "1h"
    end,
  }
]]

local MAP = [[
apiVersion: v1
kind: ConfigMap
metadata: {name: watched, namespace: default}
data: {text: hello}
]]

describe("after a signal", function()
  local script, map
  setup(function()
    script = process.write(process.tmpname ".lua", SCRIPT)
    map = process.write(process.tmpname ".yaml", MAP)
  end)

  it("`kubelua run` ends with status 0 and has freed everything", function()
    local server = servers.embedded { load = { map } }
    local run = process.spawn(watched { KUBELUA, "run", script, "--kubeconfig", server.kubeconfig })
    run:wait_for_log(60, "made it")
    assert.equal(0, run:stop(60), run:log())
    assert.equal(0, server.api:stop(30), server:log())
  end)

  it("`kubelua dev`, with the server in it, ends with status 0 and has freed everything", function()
    local dev = process.spawn(watched { KUBELUA, "dev", script, "--load", map })
    dev:wait_for_log(60, "made it")
    assert.equal(0, dev:stop(60), dev:log())
  end)
end)
