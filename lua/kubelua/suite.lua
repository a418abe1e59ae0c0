-- suite.lua - describe and it, busted style, without busted: a file's tests become a tree, the tree is run
-- in the order it was written.
--
--   describe, context, insulate              a group
--   it, spec, test                           a test
--   pending                                  a test not yet written, or, within a test, why it cannot run
--   before_each, after_each                  around every test below
--   setup, teardown (lazy_, strict_)         around a group
--   finally                                  after this test

local assertions = require "kubelua.assertions"
local core = require "kubelua.core"

local M = {}

local Pending = {}

-- ---------------------------------------------------------------- the tree

local function group(name, parent)
  return { name = name, parent = parent, children = {}, before_each = {}, after_each = {}, setup = {},
    teardown = {} }
end

local function full_name(node)
  local parts = {}
  while node and node.name do
    table.insert(parts, 1, node.name)
    node = node.parent
  end
  return table.concat(parts, " ")
end

local function line_here(level)
  local info = debug.getinfo(level + 1, "Sl")
  return info and info.source:match "^@(.*)", info and info.currentline
end

local function check_call(word, name, fn, optional)
  if type(name) ~= "string" then
    error(("%s takes a name and a function, got %s"):format(word, type(name)), 3)
  end
  if fn == nil and optional then return end
  if type(fn) ~= "function" then error(("%s %q takes a function, got %s"):format(word, name, type(fn)), 3) end
end

-- The words that a test file sees. `state.now` is the group that is being written, or nil while tests run.
local function words(state)
  local env = {}
  local function at_load(word)
    if not state.now then
      error(word .. " is not allowed inside a test: put it into a describe, or beside it", 3)
    end
    return state.now
  end
  local function describe(name, fn)
    local parent = at_load "describe"
    check_call("describe", name, fn)
    local g = group(name, parent)
    parent.children[#parent.children + 1] = g
    state.now = g
    local ok, why = xpcall(fn, function(e) return { error = e, trace = debug.traceback("", 2) } end)
    state.now = parent
    if not ok then g.broken = why end
  end
  env.describe, env.context, env.insulate, env.expose = describe, describe, describe, describe
  local function it(name, fn)
    local parent = at_load "it"
    check_call("it", name, fn, true)
    local file, line = line_here(2)
    parent.children[#parent.children + 1] = { name = name, parent = parent, fn = fn, file = file, line = line,
      test = true, pending = not fn and "not written yet" }
  end
  env.it, env.spec, env.test = it, it, it
  function env.pending(name, fn)
    if not state.now then
      error(setmetatable({ why = type(name) == "string" and name or "pending" }, Pending), 0)
    end
    check_call("pending", name, fn, true)
    local file, line = line_here(2)
    state.now.children[#state.now.children + 1] = { name = name, parent = state.now, file = file, line = line,
      test = true, pending = "pending" }
  end
  for _, word in ipairs { "before_each", "after_each", "setup", "teardown" } do
    local function add(fn)
      local g = at_load(word)
      if type(fn) ~= "function" then error(("%s takes a function, got %s"):format(word, type(fn)), 2) end
      table.insert(g[word], fn)
    end
    env[word], env["lazy_" .. word], env["strict_" .. word] = add, add, add
  end
  function env.finally(fn)
    if not state.finally then error("finally may be called only within a test", 2) end
    table.insert(state.finally, fn)
  end
  env.assert = assertions.assert
  env.next = core.bounds().next     -- views have members, too, as in scripts
  return env
end

--- Reads a test file: its tree, with `broken` where the file does not load.
---@param path string
function M.load(path)
  local state = { now = group(nil, nil) }
  local root = state.now
  root.path, root.state = path, state
  local env = setmetatable(words(state), { __index = _G })
  local chunk, why = loadfile(path, "t", env)
  if not chunk then
    root.broken = { error = why }
    return root
  end
  local ok, problem = xpcall(chunk, function(e) return { error = e, trace = debug.traceback("", 2) } end)
  if not ok then root.broken = problem end
  state.now = nil
  return root
end

--- The tests of a tree in their order: nodes with `test`, and groups that are broken.
function M.tests(root)
  local out = {}
  local function walk(node)
    if node.broken or node.test then out[#out + 1] = node end
    for _, child in ipairs(node.children or {}) do walk(child) end
  end
  walk(root)
  return out
end

M.full_name = full_name

-- ---------------------------------------------------------------- running

-- Calls fn in a coroutine of its own; a yield is resumed at once.
local function call(fn)
  local co = coroutine.create(fn)
  repeat
    local ok, e = coroutine.resume(co)
    if not ok then return false, e, debug.traceback(co) end
  until coroutine.status(co) == "dead"
  return true
end

-- Where in the test's file a traceback has been last.
local function place(trace, file)
  if not trace or not file then return nil end
  local short = file:gsub("%p", "%%%0")
  local line = trace:match("[\n\t ]" .. short .. ":(%d+): in")
  if not line then
    -- Lua cuts long names of files: "...of/the/way_test.lua".
    local tail = file:match "[^/]*$":gsub("%p", "%%%0")
    line = trace:match("[^\n]-" .. tail .. ":(%d+): in")
  end
  return line and ("%s:%s"):format(file, line)
end

local function message_of(e)
  if type(e) == "string" then return e end
  local meta = getmetatable(e)
  if type(meta) == "table" and meta.__tostring or core.is_error(e) then return tostring(e) end
  return require "kubelua.plain".text(e)
end

local function problem(kind, e, trace, file)
  local message = message_of(e)
  local where = place(trace, file)
  local own = type(e) == "string" and e:match "^([^\n:]+:%d+): "
  if own then message = message:sub(#own + 3) end
  -- Lua cuts long names
  if own and own:sub(1, 3) == "..." and file then own = file .. own:match ":%d+$" end
  return { kind = kind, message = message, where = own or where,
    trace = not assertions.is_failure(e) and trace or nil }
end

local function chain_of(node)
  local list = {}
  while node do
    table.insert(list, 1, node)
    node = node.parent
  end
  return list
end

--- Runs one test with what stands around it. Returns "passed", "pending" or "failed", and what was wrong.
---@return string status, table? problem
function M.run_test(root, test, hooks)
  if test.pending then return "pending", { message = test.pending } end
  local groups, failed, pending = chain_of(test.parent), nil, nil
  root.state.finally = {}
  if hooks and hooks.before then hooks.before() end
  local function attempt(kind, fn)
    local ok, e, trace = call(fn)
    if ok then return true end
    if getmetatable(e) == Pending then
      pending = pending or { message = e.why }
    else
      failed = failed or problem(kind, e, trace, root.path)
    end
    return false
  end
  local entered = 0
  local good = true
  for i, g in ipairs(groups) do
    entered = i
    for _, fn in ipairs(g.before_each) do good = good and attempt("before_each", fn) end
    if not good then break end
  end
  if good then attempt("test", test.fn) end
  if failed and hooks and hooks.failed then failed.story = hooks.failed() end
  for i = #root.state.finally, 1, -1 do attempt("finally", root.state.finally[i]) end
  for i = entered, 1, -1 do
    local list = groups[i].after_each
    for k = #list, 1, -1 do attempt("after_each", list[k]) end
  end
  if hooks and hooks.after then attempt("teardown", hooks.after) end
  root.state.finally = nil
  if failed then return "failed", failed end
  if pending then return "pending", pending end
  return "passed"
end

local function has_wanted(node, wanted)
  if node.test then return wanted[node] end
  if node.broken then return true end
  for _, child in ipairs(node.children) do
    if has_wanted(child, wanted) then return true end
  end
  return false
end

--- Runs the wanted tests of a tree. `tell(node, status, problem)` hears of each; setup and teardown run for
--- groups that have any.
function M.run(root, wanted, tell, hooks)
  local function walk(node)
    if node.broken then
      tell(node, "failed", problem("load", node.broken.error, node.broken.trace, root.path))
      if not node.name then return end
    end
    if node.test then
      if wanted[node] then tell(node, M.run_test(root, node, hooks)) end
      return
    end
    if not has_wanted(node, wanted) then return end
    local ok, e, trace = true, nil, nil
    for _, fn in ipairs(node.setup) do
      if ok then ok, e, trace = call(fn) end
    end
    if ok then
      for _, child in ipairs(node.children) do walk(child) end
    else
      tell(node, "failed", problem("setup", e, trace, root.path))
    end
    for i = #node.teardown, 1, -1 do
      local fine, why, at = call(node.teardown[i])
      if not fine then tell(node, "failed", problem("teardown", why, at, root.path)) end
    end
  end
  walk(root)
end

return M
