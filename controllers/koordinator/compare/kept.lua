-- kept.lua - the disagreements and cases that a comparison keeps from look to look: in kube.shared, since
-- ctx.memo has 64 KiB for a key, and one case has all pods of a node.

local fields = require "fields"
local kube = require "kubelua"

local M = {}

local NAME = "kept"
local TOLD = 200          -- disagreements
local ROOM = 512 << 10    -- bytes of cases: the report, a ConfigMap, has room for 1 MiB

-- { told = list of disagreements, cases = list of their inputs }
function M.read()
  local kept = fields.copy(kube.shared:get(NAME) or {})
  return { told = kept.told or {}, cases = kept.cases or {} }
end

function M.tell(kept, disagreement)
  kept.told[#kept.told + 1] = disagreement
  while #kept.told > TOLD do table.remove(kept.told, 1) end
end

-- Adds a case, nil: none, unless there are `most` already, or no room is left.
function M.add(kept, case, most)
  if not case or #kept.cases >= most then return end
  if #kube.encode(kept.cases) + #kube.encode(case) <= ROOM then kept.cases[#kept.cases + 1] = case end
end

function M.write(kept) kube.shared:set(NAME, kept) end

-- The text of a file of cases; nil: there are none.
function M.text(kept, calc)
  return #kept.cases > 0 and kube.encode { calc = calc, cases = kube.array(kept.cases) } or nil
end

return M
