-- assertions.lua - `assert` of a test: assert(x), assert.equal(1, x), assert.is_not_nil(x),
-- assert.has_error(fn, "text"), as busted has them. Filler words (is, are, has, was, ...) may be anywhere; no
-- and not negate.

local core = require "kubelua.core"
local plain = require "kubelua.plain"
local suggest = require "kubelua.suggest"

local M = {}

local Failure = {}
Failure.__index = Failure
Failure.__name = "kubelua.AssertionFailure"
function Failure.__tostring(f) return f.message end

--- Whether a raised value is a failed assertion.
function M.is_failure(x) return getmetatable(x) == Failure end

local EAR = { is = true, are = true, was = true, were = true, has = true, have = true, does = true, be = true,
  a = true, an = true, all = true, to = true }
local TURN = { no = true, ["not"] = true }

-- Each: function(args) -> holds, the message of a failure, the message of a failed negation.
local checks = {}

local function type_of(x)
  return core.is_view(x) and "view" or type(x)
end

function checks.equal(a)
  local e, g = a[1], a[2]
  return e == g, ("expected %s\n     got %s"):format(plain.text(e), plain.text(g)),
    ("expected something other than %s"):format(plain.text(e))
end
checks.equals = checks.equal

function checks.same(a)
  local e, g = a[1], a[2]
  return plain.same(e, g), plain.diff(e, g), ("expected something other than %s"):format(plain.text(e))
end

checks["true"] = function(a)
  return a[1] == true, ("expected true, got %s"):format(plain.text(a[1])),
    "expected something other than true"
end
checks["false"] = function(a)
  return a[1] == false, ("expected false, got %s"):format(plain.text(a[1])),
    "expected something other than false"
end
checks["nil"] = function(a)
  return a[1] == nil, ("expected nil, got %s"):format(plain.text(a[1])), "expected something, got nil"
end
function checks.truthy(a) return a[1] and true or false,
  ("expected a true value, got %s"):format(plain.text(a[1])),
  ("expected nil or false, got %s"):format(plain.text(a[1])) end
function checks.falsy(a)
  return not a[1], ("expected nil or false, got %s"):format(plain.text(a[1])), "expected a true value"
end

for _, word in ipairs { "string", "number", "table", "function", "boolean", "userdata", "thread" } do
  checks[word] = function(a)
    return type(a[1]) == word, ("expected a %s, got %s"):format(word, plain.text(a[1])),
      ("expected no %s, got %s"):format(word, plain.text(a[1]))
  end
end

function checks.near(a)
  local e, g, within = a[1], a[2], a[3]
  if type(e) ~= "number" or type(g) ~= "number" or type(within) ~= "number" then
    return false, ("near takes three numbers: expected, got, tolerance; got %s, %s, %s"):format(type_of(e),
      type_of(g), type_of(within)), ""
  end
  return math.abs(e - g) <= within, ("expected %s within %s, got %s"):format(e, within, g),
    ("expected a number farther than %s from %s, got %s"):format(within, e, g)
end

function checks.matches(a)
  local pattern, text, init, exact = a[1], a[2], a[3], a[4]
  if type(text) ~= "string" then
    return false, ("expected a string that matches %q, got %s"):format(pattern, plain.text(text)), ""
  end
  return text:find(pattern, init or 1, exact) ~= nil,
    ("expected a string that matches %q\n     got %q"):format(pattern, text),
    ("expected a string that does not match %q\n     got %q"):format(pattern, text)
end
checks.match = checks.matches

local function raised(fn)
  if type(fn) ~= "function" and not (getmetatable(fn) or {}).__call then
    return nil, nil, ("a function was expected, got %s"):format(plain.text(fn))
  end
  local ok, e = pcall(fn)
  return not ok, e
end

-- "file:line: message" is "message", too.
local function says(e, expected)
  if plain.same(e, expected) then return true end
  local text = tostring(e)
  return type(expected) == "string" and (text == expected or text:gsub("^[^\n:]+:%d+: ", "") == expected)
end

function checks.error(a)
  local did, e, wrong = raised(a[1])
  if wrong then return false, wrong, wrong end
  local unwanted = ("expected no error, got: %s"):format(tostring(e))
  if not did then return false, "expected an error, and none was raised", unwanted end
  if a.n < 2 or a[2] == nil then return true, nil, unwanted end
  return says(e, a[2]), ("expected the error %s\n          got %s"):format(plain.text(a[2]),
    plain.text(type(e) == "table" and tostring(e) or e)), unwanted
end
checks.errors = checks.error

function checks.error_matches(a)
  local did, e, wrong = raised(a[1])
  if wrong then return false, wrong, wrong end
  if not did then
    return false, ("expected an error that matches %q, and none was raised"):format(a[2]), ""
  end
  local text = tostring(e)
  return text:find(a[2], 1, a[3]) ~= nil, ("expected an error that matches %q\n     got %q"):format(a[2],
    text),
    ("expected an error that does not match %q\n     got %q"):format(a[2], text)
end
checks.matches_error = checks.error_matches

-- The number of arguments of a check; the next one is the test's own message.
local TAKES = { equal = 2, equals = 2, same = 2, near = 3, matches = 4, match = 4, error = 2, errors = 2,
  error_matches = 3, matches_error = 3 }

local function fail(message, own)
  error(setmetatable({ message = own ~= nil and tostring(own) .. "\n" .. message or message }, Failure), 0)
end

local function run(name, turned, ...)
  local args = table.pack(...)
  local holds, wrong, wrong_turned = checks[name](args)
  if holds == not turned then return ... end
  fail(turned and wrong_turned or wrong, args[(TAKES[name] or 1) + 1])
end

-- Parses the words so far: whether they negate, and the remaining name.
local function parse(words)
  local turned, rest = false, {}
  for word in words:gmatch "[^_.]+" do
    if #rest == 0 and TURN[word] then turned = not turned
    elseif #rest > 0 or not EAR[word] then rest[#rest + 1] = word end
  end
  return table.concat(rest, "_"), turned
end

local Chain = {}
local function chain(words) return setmetatable({ words = words }, Chain) end

function Chain.__index(c, word)
  if type(word) ~= "string" then return nil end
  return chain(rawget(c, "words") .. "." .. word)
end

function Chain.__call(c, ...)
  local words = rawget(c, "words")
  local name, turned = parse(words)
  if name == "" then
    -- assert(x [, message]) itself.
    if words ~= "" then error(("assert%s: the assertion is missing"):format(words), 2) end
    if (...) then return ... end
    local message = select(2, ...)
    if message == nil then fail "an assertion failed" end
    if type(message) == "string" then fail(message) end
    error(message, 0)
  end
  if not checks[name] then
    error(("assert%s: unknown assertion%s"):format(words, suggest.hint(name, checks)), 2)
  end
  return run(name, turned, ...)
end

--- What tests see as `assert`.
M.assert = chain ""

return M
