-- rbac_source.lua - what a script's text says about the requests it makes: calls of ctx, and effects in
-- results, with a kind that is written there, or the reconciled object itself. What it cannot know it says,
-- with the line.

local M = {}

-- Comments become spaces and strings stay; positions and lines stay.
local function without_comments(text)
  local out, i = {}, 1
  local function blank(s) return (s:gsub("[^\n]", " ")) end
  while i <= #text do
    local c = text:sub(i, i)
    local level = text:match("^%-%-%[(=*)%[", i)
    local long = not level and text:match("^%[(=*)%[", i)
    if level or long then
      local _, stop = text:find("]" .. (level or long) .. "]", i, true)
      local piece = text:sub(i, stop or #text)
      out[#out + 1] = level and blank(piece) or piece
      i = (stop or #text) + 1
    elseif text:find("^%-%-", i) then
      local stop = (text:find("\n", i, true) or #text + 1) - 1
      out[#out + 1] = blank(text:sub(i, stop))
      i = stop + 1
    elseif c == '"' or c == "'" then
      local j = i + 1
      while j <= #text and text:sub(j, j) ~= c do j = j + (text:sub(j, j) == "\\" and 2 or 1) end
      out[#out + 1] = text:sub(i, j)
      i = j + 1
    else
      out[#out + 1] = c
      i = i + 1
    end
  end
  return table.concat(out)
end

M.without_comments = without_comments

local function line_of(text, at)
  local _, n = text:sub(1, at):gsub("\n", "")
  return n + 1
end

-- The kind that stands in the arguments of a call: a literal first argument, or kind and apiVersion of a
-- table.
local function literal_kind(args, constants)
  local first = args:match '^%s*[({]?%s*["\']([^"\']+)["\']'
  if first and not args:find "^%s*%(?%s*{" then return first end
  local name = args:match "^%s*%(?%s*([%a_][%w_]*)%s*[,)]"
  if name and constants[name] then return constants[name] end
  local kind, api = args:match '[{%s,]kind%s*=%s*["\']([^"\']+)["\']',
    args:match '[{%s,]apiVersion%s*=%s*["\']([^"\']+)["\']'
  if kind and kind:find("/", 1, true) then return kind end
  if kind and api then return api .. "/" .. kind end
  local named = args:match "[{%s,]kind%s*=%s*([%a_][%w_]*)"
  return named and constants[named]
end

-- name -> text of `local NAME = "group/v1/Kind"`.
local function constants_of(text)
  local out = {}
  for name, kind in text:gmatch 'local%s+([%a_][%w_]*)%s*=%s*["\']([%w.-]+/[%w./-]+)["\']' do
    if kind:find "/%u%w*$" then out[name] = kind end
  end
  for names, values in text:gmatch 'local%s+([%a_][%w_, ]*)%s*=%s*(["\'][^\n]*)' do
    local list = {}
    for name in names:gmatch "[%a_][%w_]*" do list[#list + 1] = name end
    local n = 0
    for value in values:gmatch '["\']([^"\']*)["\']' do
      n = n + 1
      if list[n] and value:find "^[%w.-]+/[%w./-]*%u%w*$" then out[list[n]] = value end
    end
  end
  return out
end

-- The call's word -> verbs, and on which subresource.
local CALLS = {
  create = { "create" }, update = { "update" }, delete = { "delete" }, delete_all = { "deletecollection" },
  apply = { "create", "patch" },
  patch = { "get", "patch" }, patch_status = { "get", "patch", sub = "status" },
  update_status = { "update", sub = "status" }, apply_status = { "patch", sub = "status" },
  create_or_update = { "get", "create", "update" }, create_or_patch = { "get", "create", "patch" },
  add_finalizer = { "get", "patch" }, remove_finalizer = { "get", "patch" },
  adopt = { "patch" }, release = { "patch" }, claim = { "patch" },
  evict = { "create", sub = "eviction", kind = "v1/Pod" },
  bind = { "create", sub = "binding", kind = "v1/Pod" },
  token = { "create", sub = "token", kind = "v1/ServiceAccount" },
}
local READERS = { ctx = true, req = true }
local LIVE = { get = { "get" }, list = { "list" }, each = { "list" } }

local function arguments(text, at)
  return text:match("^%s*(%b())", at) or text:match("^%s*(%b{})", at) or text:match('^%s*("[^"\n]*")', at)
    or text:match("^%s*('[^'\n]*')", at) or ""
end

-- Names under which functions of the text get the reconciled object.
local function subjects_of(text)
  local out = {}
  for name in text:gmatch "[%a_]*reconcile%s*=%s*function%s*%(%s*([%a_][%w_]*)" do out[name] = true end
  for name in text:gmatch "finalize%s*=%s*function%s*%(%s*([%a_][%w_]*)" do out[name] = true end
  return out
end

local EFFECTS = { apply = { "create", "patch" }, delete = { "delete" } }

--- Reads a text. `add(need)` gets needs without a place, `unknown(line, what)` what cannot be known.
---@param text string
---@param resources string[]  the kinds that the script's controllers reconcile
---@param add fun(need: {kind: string, verbs: string[], subresource: string?, line: integer})
---@param unknown fun(line: integer, what: string)
function M.read(text, resources, add, unknown)
  text = without_comments(text)
  local add_one = add
  -- After a conflict the object itself is read again, whatever part of it is written.
  function add(need)
    if not need.subresource then return add_one(need) end
    local below = {}
    for _, v in ipairs(need.verbs) do
      if v == "get" then
        add_one { kind = need.kind, verbs = { "get" }, line = need.line }
      else
        below[#below + 1] = v
      end
    end
    add_one { kind = need.kind, verbs = below, subresource = need.subresource, line = need.line }
  end
  local constants, subjects = constants_of(text), subjects_of(text)
  local function each_resource(verbs, sub, line)
    for _, kind in ipairs(resources) do add { kind = kind, verbs = verbs, subresource = sub, line = line } end
  end
  local function call(verbs, at, stop, word)
    local args, line = arguments(text, stop), line_of(text, at)
    local kind = verbs.kind or literal_kind(args, constants)
    local subject = args:match "^%(%s*([%a_][%w_]*)"
    if kind then
      add { kind = kind, verbs = verbs, subresource = verbs.sub, line = line }
    elseif subject and subjects[subject] then
      each_resource(verbs, verbs.sub, line)
    else
      unknown(line, ("%s%s"):format(word, args:gsub("%s+", " "):sub(1, 40)))
    end
  end
  local at = 1
  while true do
    local from, to, word = text:find("ctx%s*:%s*([%a_]+)", at)
    if not from then break end
    if CALLS[word] then call(CALLS[word], from, to + 1, "ctx:" .. word) end
    if word == "event" or word == "warn" then
      add { kind = "events.k8s.io/v1/Event", verbs = { "create", "patch" }, line = line_of(text, from) }
    end
    at = to + 1
  end
  for from, who, word, to in text:gmatch "()%f[%w_]([cr][te][xq])%s*%.%s*live%s*:%s*([%a_]+)()" do
    if READERS[who] and LIVE[word] then call(LIVE[word], from, to, who .. ".live:" .. word) end
  end
  for from in text:gmatch "()%f[%w_]req%s*:%s*event%f[^%w_]" do
    add { kind = "events.k8s.io/v1/Event", verbs = { "create", "patch" }, line = line_of(text, from) }
  end
  for from, body in text:gmatch "return%s*()(%b{})" do
    local line = line_of(text, from)
    if body:find "[{%s,]status%s*=" then each_resource({ "get", "patch" }, "status", line) end
    if body:find "[{%s,]events%s*=" then
      add { kind = "events.k8s.io/v1/Event", verbs = { "create", "patch" }, line = line }
    end
    for word, verbs in pairs(EFFECTS) do
      local inner = body:match("[{%s,]" .. word .. "%s*=%s*(%b{})")
      local kind = inner and literal_kind(inner, constants)
      if kind then
        add { kind = kind, verbs = verbs, line = line }
      elseif body:find("[{%s,]" .. word .. "%s*=") then
        unknown(line, ("`%s` in a result"):format(word))
      end
    end
  end
end

return M
