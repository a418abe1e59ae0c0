-- version.lua - kubelua version: ours and that of the Lua that runs scripts; with --bugs its published bugs,
-- with --server the server's version.

local common = require "kubelua.cli.common"

local M = {}

M.options = {
  { "--server", "URL", "print the version of the API server too: the configured one, or this \z
    one", type = "maybe" },
  { "--bugs", nil, "list the published bugs of that Lua, and the protection of scripts from each",
    type = "flag" },
  common.OUTPUT,
}

local function server_of(env)
  local wanted = env.options.server
  if wanted == nil then return nil end
  if wanted ~= "" then env.connect.server = wanted end
  local c <close> = common.connect(env)
  local v = c:version()
  return { version = v "gitVersion", platform = v "platform", url = (c:server()) }
end

local function text(env, server)
  local bugs = env.options.bugs and env.lua.bugs or {}
  print(("kubelua %s\nLua %s"):format(env.version, env.lua.version))
  for _, bug in ipairs(bugs) do
    print(("  %s (mended in %s)\n    %s"):format(bug.bug, bug.mended, bug.here))
  end
  if not server then return end
  print(("server %s (%s, %s)"):format(common.cell(server.version or "without a version"),
    common.cell(server.platform or "platform unknown"), server.url))
end

function M.run(env)
  if #env.words > 0 then common.usage("takes no arguments, got %s", env.words[1]) end
  local server = server_of(env)
  if not common.wants_json(env) then return text(env, server) end
  common.print_json { version = env.version, lua = env.lua, server = server }
end

return M
