-- rbac_recorded.lua - the requests of controllers in a recording (`kubelua run|dev --record FILE`), for
-- `kubelua rbac --recorded FILE`.

local core = require "kubelua.core"

local M = {}

-- The kinds of lines that tell of them, among many that do not (core/lab/record.h).
local WANTED = { kind = true, began = true, asked = true }

-- Of a recording under way the last line may be half there.
local function decoded(line)
  local ok, v = pcall(core.decode, line)
  return ok and v or nil
end

local take = {}

function take.kind(v, seen)
  seen.kinds[v.kind] = { group = v.group, plural = v.plural, namespaced = v.namespaced }
end
function take.began(v, seen) seen.runs[v.r] = v.controller end

function take.asked(v, seen)
  local op, controller = v.op, seen.runs[v.r]
  if not op or not op.kind or not controller then return end
  local name = table.concat({ controller, op.verb, op.kind, op.sub or "" }, " ")
  if seen.known[name] then return end
  seen.known[name] = true
  seen.calls[#seen.calls + 1] = { controller = controller, verb = op.verb, kind = op.kind,
    subresource = op.sub }
end

local function read(path, seen)
  local file, why = io.open(path, "rb")
  if not file then return why end
  local first = decoded(file:read "l" or "")
  if not first or first("t") ~= "tape" then
    error(("%s is not a recording; kubelua run or dev --record FILE writes recordings"):format(path), 0)
  end
  for line in file:lines() do
    local what = line:match '^{"t":"(%l+)"'
    local v = WANTED[what] and decoded(line)
    if v then take[what](v, seen) end
  end
  file:close()
end

--- Each request once: a list of calls as kube.testing's t:calls() has them; and the kinds that the server
--- told of, by the scripts' names.
---@param path string               FILE; FILE.1 and so on, which are older, are read as well
---@return table[] calls, table<string, table> kinds
function M.calls(path)
  local seen = { kinds = {}, runs = {}, known = {}, calls = {} }
  local why = read(path, seen)
  if why then error("cannot read " .. why, 0) end
  local n = 1
  while not read(("%s.%d"):format(path, n), seen) do n = n + 1 end
  return seen.calls, seen.kinds
end

return M
