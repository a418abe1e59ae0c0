-- edit.lua - a function that edits a draft, run: absent fields can be assigned below, in a host's own state
-- too.

local core = require "kubelua.core"

local M = {}

--- Runs change(draft, ...), after which the draft is closed. Returns what the function returned.
---@param change fun(draft: kubelua.draft, ...): any
---@param draft kubelua.draft
function M.run(change, draft, ...)
  local before = core.nil_swap(true)
  local result
  if before == true then
    -- our own state: nothing to give back, and the traceback stays whole
    result = change(draft, ...)
  else
    local ok
    ok, result = pcall(change, draft, ...)
    core.nil_swap(before)
    if not ok then error(result, 0) end
  end
  core.draft_close(draft)
  return result
end

--- What becomes of `o` when the function edits it: a new view, or `o` itself when nothing changed.
---@param change fun(draft: kubelua.draft): any
---@param o kubelua.view
---@return kubelua.view
function M.view(change, o)
  local draft = core.draft(o)
  M.run(change, draft)
  return core.draft_patch(draft) and core.value(draft) or o
end

return M
