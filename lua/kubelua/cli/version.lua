-- version.lua - kubelua version --server: ours, and what the server says about itself.

local common = require "kubelua.cli.common"

local M = {}

M.options = {
  { "--server", "URL", "ask the API server too: the configured one, or this one", type = "maybe" },
}

function M.run(env)
  if #env.words > 0 then common.usage("takes no words, got %s", env.words[1]) end
  if env.options.server ~= nil and env.options.server ~= "" then env.connect.server = env.options.server end
  print("kubelua " .. env.version)
  local c <close> = common.connect(env)
  local v = c:version()
  print(("server %s (%s, %s)"):format(v("gitVersion") or "without a version", v("platform") or "platform unknown", c:server()))
end

return M
