-- lasting.lua - the disagreements that have lasted: the original writes later than it decides, and so by
-- older inputs than those that are there now.

local fields = require "fields"

local M = {}

-- Those of `found` that have been there for `patience` seconds, and { [disagreement] = since when } for the
-- next look; since is that of the last one.
function M.of(found, since, now, patience)
  local out, next_since = {}, {}
  for _, one in ipairs(found) do
    local key = one.object .. " " .. one.name .. " " .. one.reason
    next_since[key] = since[key] or now
    if now - next_since[key] >= patience then out[#out + 1] = one end
  end
  return out, next_since
end

-- The same at a look of a run, whose memo keeps what the next look needs; its params have patienceSeconds.
function M.look(ctx, found)
  local out, since = M.of(found, fields.copy(ctx.memo.since or {}), ctx:now():unix(),
    ctx.params.patienceSeconds)
  ctx.memo.since = since
  return out
end

return M
