-- annotations.lua - kubelua annotations: writes the binary's annotations for the Lua language server.

local common = require "kubelua.cli.common"

local M = {}

M.no_cluster = true
M.options = {}

local function write(path, text)
  local file, why = io.open(path, "wb")
  if not file then error("cannot write " .. why, 0) end
  local good, problem = file:write(text)
  file:close()
  if not good then error(("cannot write %s: %s"):format(path, problem), 0) end
end

--- Writes them below `dir`, which is made; returns how many files there are.
---@param env table
---@param dir string
---@return integer
function M.write(env, dir)
  local text, at, n = env.annotations(), 1, 0
  local made = {}
  while at <= #text do
    local path, size, begin = text:match("^@ (%S+) (%d+)\n()", at)
    local parent = dir .. "/" .. (path:match "^(.*)/" or "")
    if not made[parent] then
      local good, why = env.make_dir(parent)
      if not good then error(why, 0) end
      made[parent] = true
    end
    write(dir .. "/" .. path, text:sub(begin, begin + size - 1))
    at, n = begin + size + 1, n + 1
  end
  return n
end

function M.run(env)
  local dir = env.words[1]
  if not dir or env.words[2] then
    common.usage "name the directory: kubelua annotations DIR"
  end
  print(("wrote %d files to %s: name it in .luarc.json, \"workspace.library\": [%q]"):format(
    M.write(env, dir), dir, dir))
  return 0
end

return M
