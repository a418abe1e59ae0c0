-- pager.lua - lists that come in pages, for the client and for ctx.live alike.
--
-- A server forgets the snapshot of a long list after some minutes, and answers the next page with 410. Then:
--   all    starts again, once, with the whole list in one piece. The result is one snapshot without
--          duplicates.
--   each   continues at the same key with the objects of now: by the token that the server offers, else
--          through the whole list once, skipping the keys already given. No object comes twice; one that was
--          created before the current key is not seen.
-- Pages without an object, or the same token, again and again are an error: such a list has no end.
-- (client-go's pager does the first for lists; its iterators end with the error.)

local core = require "kubelua.core"

local M = {}

-- Objects per page: the server keeps little, and a lazy loop starts early.
M.PAGE = 500

-- A server fills its pages: that many empty pages in a row, with more to come, will not end.
M.BARREN_PAGES = 5

local function no_end(op, why)
  local message = "the list does not end: " .. why
    .. "; does a proxy before the API server answer from a cache?"
  error(core.error { kind = "server", verb = "list", resource = op.kind, message = message }, 0)
end

-- One page: what it holds, the token of the next page or nil, the resourceVersion. Only the first page may
-- name a version. `version` also counts the pages without an object.
local function page(send, op, token, version)
  op.continue_token = token
  op.rv, op.rv_match = not token and version.rv or nil, not token and version.match or nil
  local answer = send(op)
  local items, continue, at = core.items(answer)
  local next_token = continue ~= "" and continue or nil
  version.barren = next_token and #items == 0 and (version.barren or 0) + 1 or 0
  if next_token and next_token == token then
    no_end(op, "a page returned the continue token of its own request")
  elseif version.barren >= M.BARREN_PAGES then
    no_end(op, "pages bring new continue tokens but no objects")
  end
  return items, next_token, at, answer
end

local function expired(err) return core.is_error(err) and err.code == 410 end

--- Everything, and the resourceVersion of the list. `take`, where given, sees each page as it came; nil
--- says to forget those so far.
---@param send fun(op: table): any
---@param op table
---@param take fun(answer: any)?
---@return any[] items, string? resourceVersion
function M.all(send, op, take)
  local version = { rv = op.rv, match = op.rv_match }
  local all, restarted, token = {}, false, nil
  op.limit = M.PAGE
  while true do
    local ok, items, next_token, at, answer = pcall(page, send, op, token, version)
    if ok then
      table.move(items, 1, #items, #all + 1, all)
      if take then take(answer) end
      if not next_token then return all, at end
      token = next_token
    elseif token and not restarted and expired(items) then
      all, restarted, token, op.limit = {}, true, nil, nil
      if take then take(nil) end
    else
      error(items, 0)
    end
  end
end

local function key_of(o)
  local namespace = o("metadata.namespace")
  return (namespace and namespace .. "/" or "") .. (o("metadata.name") or "")
end

--- An iterator over all objects, page by page; at most op.limit of them.
---@param send fun(op: table): any
---@param op table
---@return fun(): kubelua.view?
function M.each(send, op)
  local version = { rv = op.rv, match = op.rv_match }
  local left = op.limit
  if not left or left > M.PAGE then op.limit = M.PAGE end
  local items, i, token, finished = {}, 0, nil, false
  local last                   -- the key given last; once the whole list is read, the one where it broke off
  local whole = false          -- the list is read again in one piece
  local stuck = false          -- the last page was refused, and nothing came since

  local function fetch()
    while true do
      local ok, found, next_token = pcall(page, send, op, token, version)
      if ok then
        items, i, token, finished = found, 0, next_token, not next_token
        stuck = stuck and #found == 0
        return
      end
      local offered = expired(found) and found.details and found.details("continue")
      if not token or not expired(found) then
        error(found, 0)
      elseif offered and not stuck then
        token, stuck = offered, true
      elseif not whole then
        token, whole, op.limit = nil, true, nil
      else
        error(found, 0)
      end
    end
  end

  return function()
    if left == 0 then return nil end
    repeat
      while i >= #items do
        if finished then return nil end
        fetch()
      end
      i = i + 1
      local key = key_of(items[i])
    until not whole or key > last
    if not whole then last = key_of(items[i]) end
    if left then left = left - 1 end
    return items[i]
  end
end

return M
