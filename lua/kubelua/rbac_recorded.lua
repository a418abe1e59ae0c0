-- rbac_recorded.lua - the requests of controllers in a recording (`kubelua run|dev --record FILE`), for
-- `kubelua rbac --recorded FILE`.

local core = require "kubelua.core"

local M = {}

-- The kinds of lines that tell of them, among many that do not (core/lab/record.h).
local WANTED = { kind = true, began = true, asked = true }

-- Of a recording under way the last line may be half there, and any line of a file from elsewhere may be
-- anything: then it tells nothing.
local function decoded(line)
  local ok, v = pcall(core.decode, line)
  return ok and core.is_view(v) and v or nil
end

local function text(v, path)
  local x = v(path)
  return type(x) == "string" and x or nil
end

local take = {}

function take.kind(v, seen)
  local kind, group, plural = text(v, "kind"), text(v, "group"), text(v, "plural")
  if kind and group and plural then
    seen.kinds[kind] = { group = group, plural = plural, namespaced = v "namespaced" == true }
  end
end

function take.began(v, seen)
  local run = text(v, "r")
  if run then seen.runs[run] = text(v, "controller") end
end

function take.asked(v, seen)
  local controller = seen.runs[text(v, "r") or ""]
  local verb, kind, sub = text(v, "op.verb"), text(v, "op.kind"), text(v, "op.sub")
  if not (controller and verb and kind) then return end
  local name = table.concat({ controller, verb, kind, sub or "" }, " ")
  if seen.known[name] then return end
  seen.known[name] = true
  seen.calls[#seen.calls + 1] = { controller = controller, verb = verb, kind = kind, subresource = sub }
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
