-- tap.lua - busted's output for our runner: TAP, with the full report of each failure and of files that do
-- not load.

local busted = require "busted"
local base = require "busted.outputHandlers.base"
local pretty = require "pl.pretty"

return function()
  local handler = base()
  local counter = 0

  local function say(line)
    io.write(line, "\n")
    io.flush()
  end

  local function comment(text) say("# " .. tostring(text):gsub("\n+$", ""):gsub("\n", "\n# ")) end

  local function text_of(message)
    if message == nil then return "no message" end
    if type(message) == "string" then return message end
    local meta = getmetatable(message)
    return meta and meta.__tostring and tostring(message) or pretty.write(message)
  end

  local function show(failure)
    local element, trace = failure.element or {}, failure.trace or {}
    local where = element.trace and element.trace.currentline and
      ("  (%s:%d)"):format(element.trace.short_src, element.trace.currentline) or ""
    say(("not ok %d - %s%s"):format(counter, failure.name, where))
    comment(text_of(failure.message))
    if trace.traceback then comment((trace.traceback:gsub("^\n", ""))) end
  end

  function handler.testEnd(_, _, status)
    counter = counter + 1
    if status == "success" then
      say(("ok %d - %s"):format(counter, handler.successes[#handler.successes].name))
    elseif status == "pending" then
      local t = handler.pendings[#handler.pendings]
      say(("ok %d - # SKIP %s"):format(counter, type(t.message) == "string" and t.message or t.name))
    else
      show(status == "failure" and handler.failures[#handler.failures] or handler.errors[#handler.errors])
    end
    return nil, true
  end

  -- An error outside of tests: a file that does not load, a setup that raises.
  function handler.error(element)
    if element.descriptor ~= "it" then
      counter = counter + 1
      show(handler.errors[#handler.errors])
    end
    return nil, true
  end

  function handler.suiteEnd()
    say("1.." .. counter)
    return nil, true
  end

  busted.subscribe({ "test", "end" }, handler.testEnd, { predicate = handler.cancelOnPending })
  busted.subscribe({ "error" }, handler.error)
  busted.subscribe({ "failure" }, handler.error)
  busted.subscribe({ "suite", "end" }, handler.suiteEnd)
  return handler
end
