-- generate.lua - random hostile scripts. Returns a function from a seed (and the kind of the controller, or
-- nil) to the text of a script, the same for the same seed; and the modules that scripts may require, by file
-- name.
--
-- A script is a controller or a webhook (or what is nearly one) with bodies for each phase: load, index,
-- map, `when`, priority, serial, reconcile, finalize, webhook. Bodies are statements over everything that a
-- script can name. What that is comes from the annotations (annotations.lua: arguments are mostly of the
-- types that they say, tables have the fields of their classes, and what a call gave is known by its class,
-- so that its methods are called), from the manual (every word behind `kube.`, `ctx.`, `ctx:`, `req:`) and
-- from the libraries of Lua. So a function, a field or a key that is new is hunted as soon as it is written
-- down. One script in four is an example of controllers/ or docs/ with changes made to its lines and words.

local annotations = dofile "spec/hunt/annotations.lua"

-- ---------------------------------------------------------------- chance

local state = 0

local function next64()
  state = state + 0x9e3779b97f4a7c15
  local z = state
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31)
end

local function upto(n) return (next64() >> 1) % n + 1 end
local function chance(percent) return upto(100) <= percent end
local function pick(list) return list[upto(#list)] end

-- ---------------------------------------------------------------- what there is to call

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

local function files(command)
  local out = {}
  local p = assert(io.popen(command))
  for path in p:lines() do out[#out + 1] = path end
  p:close()
  table.sort(out)
  return out
end

local function set() return { list = {}, has = {} } end
local function add(to, name)
  if not to.has[name] then
    to.has[name] = true
    to.list[#to.list + 1] = name
  end
end

local KUBE, CTX, METHOD, FIELD = set(), set(), set(), set()

local function learn_words(text)
  for name in text:gmatch "%f[%w_]kube%.([%a_][%w_]*)" do add(KUBE, name) end
  for name in text:gmatch "%f[%w_]ctx[:.]([%a_][%w_]*)" do add(CTX, name) end
  for name in text:gmatch "%f[%w_]re[qv][:.]([%a_][%w_]*)" do add(METHOD, name) end
  for name in text:gmatch "%f[%w_]%a+:([%a_][%w_]*)%s*[%({\"]" do add(METHOD, name) end
end

local function learn_annotations()
  local order, texts = {}, {}
  for _, path in ipairs(files "find lua/kubelua -maxdepth 1 -name '*.lua'") do
    local module = path:match "([%w_]+)%.lua$"
    order[#order + 1], texts[module] = module, read(path)
    learn_words(texts[module])
  end
  annotations.read(order, texts)
  local names = {}
  for name in pairs(annotations.classes) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    for _, item in ipairs(annotations.classes[name].fields) do add(FIELD, item.name) end
    for _, item in ipairs(annotations.classes[name].methods) do
      if not name:find "^module " then add(METHOD, item.name) end
    end
  end
  for _, item in ipairs(annotations.all("kubelua.Context", "methods")) do add(CTX, item.name) end
  names = {}
  for name in pairs(annotations.kube) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do add(KUBE, name) end
end

learn_annotations()
for _, path in ipairs(files "find docs -name '*.md'") do learn_words(read(path)) end
for _, name in ipairs { "string", "table", "math", "utf8", "coroutine", "os" } do
  local names = {}
  for fn in pairs(_G[name]) do names[#names + 1] = fn end
  table.sort(names)
  _G[name].__names = names
end
local LIBS = { "string", "string", "table", "table", "math", "utf8", "coroutine", "os" }
local NAMES = {}
for _, name in ipairs(LIBS) do
  NAMES[name] = NAMES[name] or _G[name].__names
  _G[name].__names = nil
end
local BASE = { "assert", "error", "ipairs", "next", "pairs", "rawequal", "rawget", "rawlen", "rawset",
  "select", "tonumber", "tostring", "type",
  "getmetatable", "setmetatable", "print", "load", "collectgarbage", "pcall", "xpcall", "require", "dofile",
  "loadfile" }

-- The examples: scripts, and the Lua of the manual. What they require beside them is there for all.
local EXAMPLES, MODULES = {}, {}
for _, path in ipairs(files "find controllers/koordinator controllers/demo -name '*.lua'") do
  local name = path:match "^controllers/[^/]+/(.+)$":gsub("/", ".")
  if not path:find "_test%.lua$" then MODULES[name] = read(path) end
end
for _, path in ipairs(files "find controllers spec/hunt/seeds -name '*.lua'") do
  local text = read(path)
  if text:find "kube%.controller" and not path:find "_test%.lua$" then EXAMPLES[#EXAMPLES + 1] = text end
end
for _, path in ipairs(files "find docs README.md -name '*.md'") do
  for text in read(path):gmatch "```lua\n(.-)```" do
    if text:find "return kube%." then EXAMPLES[#EXAMPLES + 1] = text end
  end
end

-- ---------------------------------------------------------------- expressions

local KINDS = { "v1/ConfigMap", "v1/Secret", "v1/Pod", "v1/Node", "apps/v1/Deployment",
  "example.com/v1/Widget", "batch/v1/Job", "v1/Namespace" }
local STRINGS = { "", "a", "b", "going", "default", "default/a", "a/b/c", "x\\0y", "\\xff\\xfe",
  "\\27[31m\\n", "metadata.name", "spec.list[1]", "%s%d%q%5.3f",
  "%1$s", "(.-)%1", "((((((((((a*)*)*)*)*)*)*)*)*)*", "%f[%w]", "[^%]", "%b()", "1e309", "-0", "0x1p-1074",
  "9223372036854775808", "500m", "1Ki", "1e1000000000",
  "99999999999999999999999Ei", "1h5m", "-9999999999h", "2026-01-02T03:04:05Z",
  "9999-12-31T23:59:59.999999999Z", "app=a", "app in (a,b),!c", "a.b/c",
  "{\\\"a\\\":[1,2,{\\\"b\\\":null}]}", "[[[[[[[[", "a: &x [*x]", "a: &a {b: 1}\\nc: {<<: *a}",
  "!!binary YQ==", "..", "__index", "__metatable", "__gc", "__close",
  "metadata", "name", "spec", "data", "status", "labels", "n", "collect", "step", "count", "*t", "!%c", "%c",
  "%Ez", "k", "kubelua.core", "kubelua", "io",
  "return 1", "for i = 1, 3 do K = i end", "local x <const> = 1; return function() return x end",
  "return ...", "\\27Lua", "goto a ::a::", "Ready", "True" }
local NUMBERS = { "0", "1", "-1", "2", "3", "0.5", "-0.0", "1/0", "-1/0", "0/0", "math.maxinteger",
  "math.mininteger", "2^53", "2^63", "1e308", "255", "65536",
  "1000000", "2147483647", "-2147483649", "1e15", "7" }
local FIELDS = { "metadata", "spec", "data", "status", "labels", "annotations", "name", "namespace",
  "containers", "list", "deep", "a", "b", "x", "finalizers",
  "ownerReferences", "conditions", "uid", "resourceVersion", "kind", "apiVersion", "n", "__index", "big",
  "managedFields", "__name" }
local EVENTS = { "__index", "__newindex", "__call", "__tostring", "__len", "__eq", "__lt", "__le", "__concat",
  "__unm", "__add", "__idiv", "__band", "__pairs", "__close",
  "__name", "__metatable", "__mode", "__gc" }
local OPS = { "+", "-", "*", "/", "//", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "&", "|", "~", "<<",
  ">>", "and", "or" }

-- The scope of a body: its names, the classes of their values, the number of locals, and what it may do.
local scope

-- The names and classes at the top of the current script, for all bodies.
local declared

local expr, block, fn, CTX_FIELDS

local function str() return '"' .. pick(STRINGS) .. '"' end

local function big()
  return pick {
    ("string.rep(%s, %d)"):format(str(), 10 ^ upto(6)),
    ("('x'):rep(%d)"):format(upto(100000)),
    ("H.deep(%d)"):format(2 ^ upto(17)),
    ("H.wide(%d)"):format(10 ^ upto(5)),
    ("H.dag(%d, %d)"):format(upto(20), upto(12)),
    "H.cycle()",
    ("H.deepview(%d)"):format(2 ^ upto(12)),
    ("H.strings(%d)"):format(10 ^ upto(4)),
  }
end

local function hostile(depth)
  local parts = {}
  for i = 1, upto(3) do
    local event = pick(EVENTS)
    local value = chance(65) and fn(depth - 1, "...") or expr(depth - 1)
    if event == "__gc" and chance(90) then event = "__close" end
    parts[i] = ("%s = %s"):format(event, value)
  end
  local base = chance(60) and "{}" or chance(50) and "{ a = 1, kind = \"v1/Pod\", name = \"a\", 1, 2, 3 }"
    or expr(depth - 1)
  return ("H.mt(%s, { %s })"):format(base, table.concat(parts, ", "))
end

local function manifest(depth)
  if chance(55) then
    return ("{ kind = %q, name = \"%s\", data = { a = %s, b = \"%d\" } }"):format(pick(KINDS),
      pick { "a", "b", "going", "new" }, str(), upto(3))
  end
  local parts = { ("kind = %q"):format(pick(KINDS)),
    ("name = %s"):format(chance(70) and ('"%s"'):format(pick { "a", "b", "new" }) or str()) }
  for _ = 1, upto(3) do
    parts[#parts + 1] = ("%s = %s"):format(pick { "data", "spec", "labels", "annotations", "status",
      "metadata", "namespace", "type" }, expr(depth - 1))
  end
  if chance(30) then parts[#parts + 1] = ("data = { a = %s }"):format(expr(depth - 1)) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function variable(class)
  local names = class and scope.classes[class] or scope.names
  local n = #names
  if n == 0 or not class and chance(25) then return ("K[%d]"):format(upto(12)) end
  return names[n - (upto(n) * upto(n) // n) + 1] or names[1]
end

local function list(depth)
  local parts = {}
  for i = 1, upto(4) do parts[i] = expr(depth - 1) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function map(depth)
  local parts = {}
  for i = 1, upto(4) do
    local key = chance(60) and pick(FIELDS) or chance(50) and pick(FIELD.list)
      or ("[%s]"):format(chance(80) and str() or pick(NUMBERS))
    parts[i] = ("%s = %s"):format(key, expr(depth - 1))
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- Texts and names that must match others in the script or in the world.
local NAMED = {
  kind = KINDS, resource = KINDS, name = { "a", "b", "going", "new", "token" }, namespace = { "default" },
  namespace_or_key = { "default", "default/a", "a" }, index = { "x" }, label = { "a", "b" },
  labels = { "a", "b", "app=a" }, url = { "https://a.example.com", "https://a.example.com/v1?x=%zz" },
  http = { "https://a.example.com" }, method = { "GET", "POST", "DELETE" }, help = { "What it counts." },
}
NAMED.reads, NAMED.owns, NAMED.pod = KINDS, KINDS, NAMED.name

-- The functions of kube by the class of their result, as sources of values. Not those for standalone
-- programs, which raise an error.
local FOR_PROGRAMS = read "lua/kubelua/init.lua":match "\nlocal FOR_PROGRAMS = (%b{})"
local MAKERS = set()
for _, name in ipairs(KUBE.list) do
  local class = annotations.kube[name] and annotations.kube[name].result
  local for_programs = FOR_PROGRAMS:find("\n  " .. name .. " =", 1, true)
  if class and #annotations.all(class, "methods") > 0 and not for_programs then
    MAKERS[class] = MAKERS[class] or {}
    table.insert(MAKERS[class], name)
    add(MAKERS, class)
  end
end

local typed, signed

-- A table with the fields that a class or a { a: A, b?: B } has.
local function shaped(items, depth)
  local parts = {}
  for _, item in ipairs(items) do
    local needed = not item.optional and not item.type:find "%?$"
    if chance(needed and 95 or #items > 6 and 20 or 50) then
      parts[#parts + 1] = ("%s = %s"):format(item.name, typed(item.type, depth - 1, item.name))
    end
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function keyed(kinds, depth, name)
  local key, value = annotations.split(kinds, ",")[1], kinds:match ",%s*(.+)$"
  local parts = {}
  for i = 1, upto(3) do
    local word = key:find "string" and (NAMED[name] and pick(NAMED[name]) or pick(FIELDS)) or tostring(i)
    parts[i] = ("[%s] = %s"):format(key:find "string" and ("%q"):format(word) or word,
      typed(value, depth - 1, name))
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function listed(kind, depth, name)
  local parts = {}
  for i = 1, upto(3) do parts[i] = typed(kind, depth - 1, name) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- A value of a class: an existing one, a call that returns one, or a table with its fields.
local function instance(class, depth)
  if scope.classes[class] and chance(70) then return variable(class) end
  if class == "kubelua.Secret" and scope.ctx then return 'ctx.secret("token")' end
  if MAKERS[class] and depth > 0 then
    local name = pick(MAKERS[class])
    return ("kube.%s(%s)"):format(name, signed(annotations.kube[name], depth))
  end
  local fields = annotations.all(class, "fields")
  return #fields > 0 and depth > 0 and shaped(fields, depth) or variable()
end

local PLAIN = {
  any = function(depth) return expr(depth) end,
  T = function(depth) return chance(50) and "obj" or expr(depth) end,
  string = function(_, name) return NAMED[name] and chance(80) and ("%q"):format(pick(NAMED[name]))
    or str() end,
  number = function() return pick(NUMBERS) end,
  integer = function() return pick(NUMBERS) end,
  boolean = function() return pick { "true", "false" } end,
  table = function(depth) return map(depth) end,
  ["function"] = function(depth) return fn(depth - 1, pick { "d", "a, b", "..." }) end,
  ["nil"] = function() return "nil" end,
  ["kubelua.Duration"] = function() return pick { '"1s"', "5", '"1h5m"', "-1", "0", "1e300", '"1ns"' } end,
  ["kubelua.Object"] = function(depth) return manifest(depth) end,
  ["kubelua.view"] = function(depth) return chance(60) and "obj" or manifest(depth) end,
  ["kubelua.draft"] = function(depth) return chance(60) and "obj" or manifest(depth) end,
  ["kubelua.quantity"] = function()
    return ("kube.qty(%s)"):format(pick { '"500m"', '"1Gi"', "2", '"1e18"', '"-3"' })
  end,
}

local function callback(kind, depth)
  local names = {}
  for i, item in ipairs(annotations.signature(kind)) do names[i] = item.name end
  return fn(depth - 1, #names > 0 and table.concat(names, ", ") or "...")
end

-- A value that mostly matches the annotated type. name: of the argument or field.
function typed(kind, depth, name)
  if chance(20) then return expr(depth) end
  kind = kind:gsub("%?$", "")
  local parts = annotations.split(kind, "|")
  kind = annotations.aliases[parts[1]] and #parts == 1 and not PLAIN[parts[1]]
    and annotations.aliases[parts[1]]
    or pick(parts)
  if #annotations.split(kind, "|") > 1 then kind = pick(annotations.split(kind, "|")) end
  local bare = kind:match "^(%b())$"
  if bare then return typed(bare:sub(2, -2), depth, name) end
  if PLAIN[kind] then return PLAIN[kind](depth, name) end
  if kind:find '^".*"$' or kind == "true" or kind == "false" or tonumber(kind) then return kind end
  if kind:find "%[%]$" then return listed(kind:sub(1, -3):gsub("^(%b())$", "%1"), depth, name) end
  if kind:find "^table<" then return keyed(kind:match "^table<(.*)>$" or "string, any", depth, name) end
  if kind:find "^{" then return shaped(annotations.items(kind:sub(2, -2)), depth) end
  if kind:find "^fun%(" then return callback(kind, depth) end
  if annotations.classes[kind] then return instance(kind, depth) end
  return expr(depth)
end

-- The arguments of a known function, mostly in the right number.
function signed(item, depth)
  local parts = {}
  for i, param in ipairs(item.params) do
    if param.optional and chance(40) then break end
    if chance(3) then break end
    parts[i] = typed(param.type, depth - 1, param.name)
  end
  if chance(4) then parts[#parts + 1] = expr(depth - 1) end
  return table.concat(parts, ", ")
end

local function args(item, depth)
  if item and chance(85) then return signed(item, depth) end
  local parts = {}
  for i = 1, upto(4) - 1 do
    parts[i] = i == 1 and chance(30) and ("%q"):format(pick(KINDS)) or expr(depth - 1)
  end
  if chance(4) then parts[#parts + 1] = "..." end
  return table.concat(parts, ", ")
end

local function known_class(kind)
  kind = kind and kind:gsub("%?$", "")
  return annotations.classes[kind] and kind or nil
end

-- A call of a method on a value of the class, and the class of the result.
local function method_call(what, class, depth)
  local methods = annotations.all(class, "methods")
  if #methods == 0 then return nil end
  local item = pick(methods)
  return ("%s%s%s(%s)"):format(what, item.dot and chance(95) and "." or ":", item.name, args(item, depth)),
    known_class(item.result)
end

-- Those of ctx' fields that have methods: log, live, http.
local REACHED = {}
for _, item in ipairs(annotations.all("kubelua.Context", "fields")) do
  local class = known_class(item.type)
  if class and #annotations.all(class, "methods") > 0 then
    REACHED[#REACHED + 1] = { name = item.name, class = class }
  end
end
CTX_FIELDS = annotations.all("kubelua.Context", "fields")
local CTX_ITEMS = {}
for _, item in ipairs(annotations.all("kubelua.Context", "methods")) do CTX_ITEMS[item.name] = item end

-- A call, and the class of its result, if known.
local function call(depth)
  local r = upto(100)
  if r <= 26 then
    local name = pick(KUBE.list)
    local item = annotations.kube[name]
    return ("kube.%s(%s)"):format(name, args(item, depth)), item and known_class(item.result)
  elseif r <= 48 and scope.ctx then
    local name = pick(CTX.list)
    local item = CTX_ITEMS[name]
    return ("ctx%s%s(%s)"):format((not item or not item.dot) == chance(95) and ":" or ".", name,
      args(item, depth)), item and known_class(item.result)
  elseif r <= 55 and scope.ctx then
    local at = pick(REACHED)
    -- Purely random requests are almost never allowed.
    if at.name == "http" and chance(50) then
      return ('ctx.http:%s("https://a.example.com/v1", %s)'):format(pick { "get", "post", "put", "delete" },
        expr(depth - 1))
    end
    return method_call("ctx." .. at.name, at.class, depth)
  elseif r <= 58 then
    return method_call("kube.shared", "kubelua.Shared", depth)
  elseif r <= 66 and #scope.classes.list > 0 then
    local class = pick(scope.classes.list)
    local text, gives = method_call(variable(class), class, depth)
    if text then return text, gives end
  elseif r <= 84 then
    local lib = pick(LIBS)
    local name = pick(NAMES[lib])
    return ("%s.%s(%s)"):format(lib, name, args(nil, depth))
  elseif r <= 89 then
    return ("%s(%s)"):format(pick(BASE), args(nil, depth))
  end
  if chance(65) then return ("%s:%s(%s)"):format(variable(), pick(METHOD.list), args(nil, depth)) end
  return ("%s(%s)"):format(variable(), args(nil, depth))
end

function expr(depth)
  if depth <= 0 then
    local r = upto(10)
    if r <= 4 then
      return variable()
    elseif r <= 6 then
      return str()
    elseif r <= 8 then
      return pick(NUMBERS)
    end
    return pick { "nil", "true", "false", "{}", "kube.null", "obj", "kube", "K", "string", "_G",
      "coroutine.running()", "print" }
  end
  local r = upto(100)
  if r <= 12 then return variable()
  elseif r <= 18 then return str()
  elseif r <= 23 then return pick(NUMBERS)
  elseif r <= 28 then return list(depth)
  elseif r <= 34 then return map(depth)
  elseif r <= 39 then return manifest(depth)
  elseif r <= 45 then return hostile(depth)
  elseif r <= 49 then return big()
  elseif r <= 77 then return (call(depth))
  elseif r <= 82 then return ("(%s %s %s)"):format(expr(depth - 1), pick(OPS), expr(depth - 1))
  elseif r <= 85 then return ("(%s%s)"):format(pick { "-", "not ", "#", "~" }, expr(depth - 1))
  elseif r <= 90 and scope.ctx and chance(25) then return "ctx." .. pick(CTX_FIELDS).name
  elseif r <= 90 then return ("%s.%s"):format(variable(), pick(FIELDS))
  elseif r <= 93 then return ("%s[%s]"):format(variable(), expr(depth - 1))
  elseif r <= 97 then return fn(depth - 1, "...")
  elseif r <= 98 then return ("coroutine.wrap(%s)"):format(fn(depth - 1, "..."))
  elseif r <= 99 then return ("coroutine.create(%s)"):format(fn(depth - 1, "..."))
  end
  return "..."
end

-- ---------------------------------------------------------------- statements

-- The classes of a scope around this one: { list = { class... }, [class] = { name... } }.
local function copied(classes)
  local copy = { list = { table.unpack(classes.list) } }
  for _, class in ipairs(copy.list) do copy[class] = { table.unpack(classes[class]) } end
  return copy
end

local function classify(name, class)
  if not class then return end
  local known = scope.classes
  if not known[class] then
    known[class] = {}
    known.list[#known.list + 1] = class
  end
  table.insert(known[class], name)
end

local function inner(names, ctx, f)
  local was = scope
  scope = { names = {}, classes = copied(was.classes), ctx = ctx, locals = 0, depth = was.depth + 1,
    draft = names }
  for _, name in ipairs(was.names) do scope.names[#scope.names + 1] = name end
  for name in (names or ""):gmatch "[%a_]+" do scope.names[#scope.names + 1] = name end
  local result = f()
  scope = was
  return result
end

-- Each statement has its own line, so that a failing program can be reduced line by line.
function fn(depth, params)
  if scope.depth > 5 then return "H.nothing" end
  if depth <= 0 or chance(35) then
    return pick { "H.nothing", "H.nothing", "H.raise", "H.self", "H.yield",
      scope.ctx and "H.forever" or "H.self", scope.ctx and "H.recurse" or "H.raise", "print", "error",
      "pcall", "coroutine.wrap", "kube.decode",
      "function(...) return ... end", "function(a, b) return a > b end", "function(a) K[3] = a return a end" }
  end
  return inner(params, scope.ctx, function()
    return ("function(%s)\n%s\nend"):format(params:find "%.%.%." and params or params .. ", ...",
      block(upto(3), depth))
  end)
end

local statements = {
  { 20, function(depth)
    if scope.locals > 40 then
      return ("K[%d] = P(function(...) return %s end, ...)"):format(upto(12), expr(depth))
    end
    local value, class
    if chance(35) then value, class = call(depth) else value = expr(depth) end
    scope.locals = scope.locals + 1
    local name = ("v%d_%d"):format(scope.depth, scope.locals)
    local text = ("local %s = P(function(...) return %s end, ...)"):format(name, value)
    scope.names[#scope.names + 1] = name
    classify(name, class)
    return text
  end },
  { 22, function(depth) return ("P(function(...) return %s end, ...)"):format((call(depth))) end },
  { 10, function(depth)
    if not scope.ctx then return "H.nothing()" end
    return ("P(function(...) return ctx:%s(%s) end, ...)"):format(pick { "apply", "create", "update", "apply",
      "create" }, chance(85) and manifest(depth) or "obj")
  end },
  { 8, function()
    if not scope.ctx then return "H.nothing()" end
    return ("P(function(...) return ctx%s:%s(%q, %s) end, ...)"):format(pick { "", "", ".live" },
      pick { "get", "get", "list", "delete", "each" }, pick(KINDS),
      pick { '"a"', '"b"', '"default/a"', '"default", "a"', '{ namespace = "default" }',
        '{ labels = "app=a" }', '{ limit = 1 }', '{ fields = { ["metadata.name"] = "a" } }',
        '{ index = "x", value = "a" }', str() })
  end },
  { 6, function(depth)
    return ("K[%d] = P(function(...) return %s end, ...)"):format(upto(12), expr(depth))
  end },
  { 9, function(depth)
    local target = chance(50) and ("%s.%s"):format(variable(), pick(FIELDS))
      or ("%s[%s]"):format(variable(), expr(depth - 1))
    return ("P(function(...) %s = %s end, ...)"):format(target:gsub("^%.%.%.", "K"), expr(depth - 1))
  end },
  { 5, function(depth)
    return inner("k, v", scope.ctx, function()
      return ("P(function(...)\nfor k, v in %s(%s) do\n%s\nif H.enough() then break \z
        end\nend\nend, ...)"):format(pick { "pairs", "pairs", "ipairs", "next, " , "" }, expr(depth - 1),
        block(upto(2), depth - 1))
    end)
  end },
  { 8, function(depth)
    if not scope.ctx then return "H.nothing()" end
    return ("P(function(...) return ctx:%s(%s, %s, %s) end, ...)"):format(pick { "patch", "patch",
      "patch_status", "create_or_patch", "create_or_update" },
      chance(80) and "obj" or expr(depth - 1), fn(depth - 1, "d"), chance(80) and "nil" or map(depth - 1))
  end },
  { 5, function(depth)
    local c = pick { "K[1]", "K[2]", variable() }
    return pick {
      ("P(function(...) K[%d] = coroutine.create(%s) end, ...)"):format(upto(2), fn(depth - 1, "...")),
      ("P(function(...) return coroutine.resume(%s, %s) end, ...)"):format(c, expr(depth - 1)),
      ("P(function(...) return coroutine.close(%s) end, ...)"):format(c),
      ("P(function(...) return coroutine.yield(%s) end, ...)"):format(expr(depth - 1)),
      ("P(function(...) return coroutine.wrap(%s)(%s) end, ...)"):format(fn(depth - 1, "..."),
        expr(depth - 1)),
    }
  end },
  { 3, function(depth)
    return ("P(function(...) return H.tower(%d, %s) end, ...)"):format(2 ^ upto(16), fn(depth - 1, "..."))
  end },
  { 3, function(depth)
    if scope.locals > 40 then return "H.nothing()" end
    scope.locals = scope.locals + 1
    return ("local c%d_%d <close> = H.mt({}, { __close = %s })"):format(scope.depth, scope.locals,
      fn(depth - 1, "..."):gsub("^[^f].*$", "H.nothing"))
  end },
  { 3, function(depth)
    local function closed()
      return ("H.mt({}, { __close = %s })"):format(fn(depth - 1, "..."):gsub("^[^f].*$", "H.nothing"))
    end
    local leave = pick { "if held() then break end", "break", "goto out",
      "if H.enough() then return held end" }
    return ("P(function(...)\nfor k in next, H.wide(3), nil, %s do\nlocal function held() return k end\n\z
      do %s end\nend\n::out::\nlocal y <close> = %s\nreturn y\nend, ...)"):format(closed(), leave, closed())
  end },
  { 4, function(depth)
    return ("P(function(...) return table.sort(%s, %s) end, ...)"):format(expr(depth - 1),
      fn(depth - 1, "a, b"))
  end },
  { 4, function(depth)
    return ("P(function(...) return string.gsub(%s, %s, %s) end, ...)"):format(expr(depth - 1), str(),
      fn(depth - 1, "..."))
  end },
  { 3, function(depth) return ("P(function(...) return load(%s) end, ...)"):format(expr(depth - 1)) end },
  { 2, function(depth)
    return ("P(function(...) return load(%q, \"=x\")(%s) end, ...)"):format(block(2, 1), expr(depth - 1))
  end },
  { 3, function(depth)
    return ("P(function(...) return error(%s, %s) end, ...)"):format(expr(depth), pick(NUMBERS))
  end },
  { 2, function(depth)
    return ("P(function(...) return setmetatable(%s, %s) end, ...)"):format(variable(), map(depth))
  end },
  { 2, function(depth)
    return ("for _ = 1, %d do\n%s\nif H.enough() then break end\nend"):format(10 ^ upto(4),
      block(1, depth - 1))
  end },
  { 2, function(depth)
    return ("P(function(...)\nlocal t = %s\nfor i = 1, %d do\nt = %s\nend\nreturn t\nend, ...)"):format(
      expr(depth - 1), 10 ^ upto(4),
      pick { "{ t }", "{ t, t }", "t .. t", "{ a = t }", "kube.copy { t }", "kube.encode(t)",
        "setmetatable({}, { __index = t })", "kube.decode(kube.encode { t })",
        "setmetatable({}, { __tostring = function() return tostring(t) end })", "kube.qty(t) + t",
        "coroutine.wrap(function() return t end)" })
  end },
  { 2, function(depth)
    if not scope.ctx then return "H.nothing()" end
    return ("P(function(...) ctx.memo[%s] = %s end, ...)"):format(expr(depth - 1), expr(depth - 1))
  end },
  { 1, function()
    return scope.ctx and pick { "H.forever()", "P(H.recurse)", "P(H.fill)" } or "H.nothing()"
  end },
  { 1, function(depth)
    return ("P(function(...) if %s then error(%s) end end, ...)"):format(expr(depth), expr(depth - 1))
  end },
}
local WEIGHT = 0
for _, s in ipairs(statements) do WEIGHT = WEIGHT + s[1] end

local function statement(depth)
  local r = upto(WEIGHT)
  for _, s in ipairs(statements) do
    r = r - s[1]
    if r <= 0 then return s[2](depth) end
  end
end

function block(n, depth)
  local out = {}
  for i = 1, n do out[i] = statement(depth) end
  return table.concat(out, "\n")
end

-- ---------------------------------------------------------------- scripts

local PRELUDE = [[
local kube = require "kubelua"
local K, H, count = {}, {}, 0
local function P(f, ...)
  local ok, x = pcall(f, ...)
  count = count + 1
  K[count % 12 + 1] = x
  return x, ok
end
local function Q(f, ...)
  local ok, x = pcall(f, ...)
  if ok then return x end
end
function H.nothing() end
function H.raise(...) error(..., 0) end
function H.self() return H.self end
function H.yield(...) return coroutine.yield(...) end
function H.forever() while true do end end
function H.recurse(...) return (H.recurse(..., 1)) end
function H.fill() local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end
function H.enough() count = count + 1 return count % 50 == 0 end
function H.mt(t, m) local ok, x = pcall(setmetatable, t, m) return ok and x or t end
function H.deep(n) local t = {} for _ = 1, n do t = { a = t } end return t end
function H.wide(n) local t = {} for i = 1, n do t[i] = i end return t end
function H.strings(n) local t = {} for i = 1, n do t["k" .. i] = "v" .. i end return t end
function H.dag(n, m)
  local t = {}
  for _ = 1, n do
    local u = {}
    for i = 1, m do u[i] = t end
    t = u
  end
  return t
end
function H.cycle() local t = { a = {} } t.a.b = t t[1] = t return t end
function H.deepview(n) return kube.decode(("["):rep(n) .. ("]"):rep(n)) end
function H.tower(n, f)
  local function g(i) if i == 0 then return f() end return pcall(g, i - 1) end
  return g(n)
end
]]

local function body(params, names, ctx)
  local was = scope
  scope = { names = { table.unpack(declared.names) }, classes = copied(declared.classes), ctx = ctx,
    locals = 0,
    depth = 1 }
  for name in names:gmatch "[%a_]+" do scope.names[#scope.names + 1] = name end
  local depth = upto(3) + 1
  local text = block(upto(7), depth)
  local result = ""
  if chance(60) then
    local r = upto(10)
    if r <= 4 then
      result = "return " .. expr(depth)
    elseif r <= 8 then
      local parts = {}
      for i = 1, upto(3) do
        parts[i] = ("%s = %s"):format(pick { "apply", "delete", "status", "events", "error", "fail",
          "requeue_after", "requeue", "priority", "force", "keys" },
          chance(50) and manifest(depth) or expr(depth))
      end
      result = ("return { %s }"):format(table.concat(parts, ", "))
    else
      result = ("return %s, %s"):format(expr(depth), expr(depth - 1))
    end
  end
  scope = was
  return ("function(%s)\n%s\n%s\nend"):format(params, text, result)
end

local function obj_ctx() return body("obj, ctx, ...", "obj, ctx", true) end
-- Functions with only an object as argument.
local function pure(params)
  return body(params .. ", ...", params, false):gsub("^function%(([^)]*)%)",
    "function(%1)\nlocal obj = obj or ...")
end

-- The usual values of a spec's keys; one in eight of the others is arbitrary.
local SPEC_VALUES = {
  namespaces = function() return chance(70) and '{ "default" }' or list(2) end,
  selector = function()
    return pick { '"app=a"', "{ labels = { app = \"a\" } }", '{ fields = "metadata.name!=x" }' }
  end,
  when = function()
    return chance(50) and pure "obj, old" or pick { '{ "generation", "labels" }',
      '{ "spec.list", "metadata.labels" }' }
  end,
  indexes = function()
    return ("{ x = %s, [\"v1/Pod\"] = { node = %s } }"):format(pure "obj",
      chance(50) and '"spec.nodeName"' or pure "obj")
  end,
  watches = function()
    return ("{ [%q] = %s, [\"v1/Secret\"] = { %s, when = %s } }"):format(pick { "v1/Pod", "v1/Node",
      "batch/v1/Job" }, obj_ctx(), pick { '"owner"', '"same-name"', 'via = "x"' },
      chance(50) and pure "obj, old" or '"labels"')
  end,
  owns = function()
    return pick { '{ "v1/Secret" }', '{ ["apps/v1/Deployment"] = { when = { "generation" } } }' }
  end,
  reads = function() return '{ "v1/Secret", "v1/Node", "v1/Pod", "v1/ConfigMap", "apps/v1/Deployment" }' end,
  fields = function() return '{ "spec.nodeName", "data.a", "spec.list" }' end,
  metadata = function() return "true" end,
  managed_fields = function() return pick { "true", "false" } end,
  workers = function() return "1" end,
  concurrency = function() return pick { "1", "3" } end,
  timeout = function() return '"1s"' end,
  cpu = function() return pick { '"5ms"', '"20ms"' } end,
  memory = function() return pick { '"4Mi"', '"16Mi"' } end,
  http = function()
    return '{ "https://a.example.com", { url = "https://b.example.com", reads = "POST" } }'
  end,
  resync = function() return '"10h"' end,
  every = function() return '"20s"' end,
  cron = function() return '"* * * * *"' end,
  priority = function() return chance(50) and pure "obj" or pick { "7", '"spec.priority"' } end,
  serial = function() return chance(50) and pure "obj" or '"spec.nodeName"' end,
  backoff = function() return '{ base = "5ms", max = "1s", jitter = 0.1, give_up = 3 }' end,
  own_writes = function() return pick { "false", '"1s"' } end,
  finalize = obj_ctx,
  -- Each state is a process, which has only the budgets of the script.
  isolate = function() return chance(12) and 'true, cpu = "5ms", memory = "16Mi"' or "false" end,
  leader = function() return pick { "true", "false" } end,
  shard = function() return pick { "true", '"namespace"' } end,
  on_reload = function() return '"all"' end,
  finalizer = function() return '{ "kubelua.dev/hunt", "example.com/was" },\n  finalize = ' .. obj_ctx() end,
  -- "token" is what a deployment gives, and a, b and c are what it may.
  params = function()
    local rule = typed("kubelua.Param", 3)
    return ("{ token = { type = \"secret\"%s }, a = %s, b = %s, c = %s }"):format(
      pick { "", ", optional = true", ", doc = \"x\"" }, chance(50) and str() or rule,
      pick { "3", "2^53", "-0.0", "{ 1, 2, 3 }" }, pick { "true", "H.deep(10)", "H.wide(1000)", rule })
  end,
}

-- The keys of a class of specs, with values of their annotated types for those that are not in `values`, and
-- sometimes for the others.
local function keys_of(class, values, but)
  local keys, types = {}, {}
  for _, item in ipairs(annotations.all(class, "fields")) do
    if not but[item.name] then
      keys[#keys + 1] = item.name
      types[item.name] = item.type
    end
  end
  return keys, function(key)
    local known = values[key] or SPEC_VALUES[key]
    if known and chance(94) then return known() end
    local value = typed(types[key] or "any", 3, key)
    return value:find "^function" and value or ("Q(function(...) return %s end)"):format(value)
  end
end

local SPEC_KEYS, spec_value = keys_of("kubelua.ControllerSpec", SPEC_VALUES,
  { name = true, resource = true, reconcile = true })
local HOOK_VALUES = {
  fields = function() return '{ ["v1/Pod"] = { "spec.nodeName" } },\n  reads = { "v1/Pod" }' end,
  operations = function()
    return '{ "CREATE", "UPDATE" }'
  end, scope = function() return '"*"' end, reads = SPEC_VALUES.reads, timeout = SPEC_VALUES.timeout,
  cpu = SPEC_VALUES.cpu, memory = SPEC_VALUES.memory, failure_policy = function()
    return pick { '"Fail"', '"Ignore"' }
  end,
  object_selector = function() return '{ matchLabels = { app = "a" } }' end, match_conditions = function()
    return '{ { name = "a", expression = "true" } }'
  end, subresources = function() return '{ "status" }' end,
}
local HOOK_KEYS, hook_value = keys_of("kubelua.WebhookSpec", HOOK_VALUES,
  { name = true, resource = true, mutate = true, validate = true })

local function fields(keys, value, n, others)
  local parts, seen = {}, {}
  for _ = 1, n do
    local key = pick(keys)
    if chance(2) then key = pick(others) end
    if not seen[key] then
      seen[key] = true
      parts[#parts + 1] = ("  %s = %s,"):format(key, chance(96) and value(key)
        or ("Q(function() return %s end)"):format(expr(3)))
    end
  end
  if chance(40) and not seen.http and keys == SPEC_KEYS then
    parts[#parts + 1] = ("  http = %s,"):format(SPEC_VALUES.http())
  end
  return table.concat(parts, "\n")
end

-- The values that a script makes at its load, for its bodies: metrics, selectors, schedules and other objects
-- with methods.
local function declarations()
  local lines = {}
  scope.names = declared.names
  scope.classes = declared.classes
  for i = 1, chance(40) and upto(2) or 0 do
    local class = pick(MAKERS.list)
    lines[i] = ("local d%d = P(function(...) return %s end, ...)"):format(i, instance(class, 3))
    declared.names[i] = "d" .. i
    classify("d" .. i, class)
  end
  return table.concat(lines, "\n") .. "\n"
end

-- kind: of a controller that takes over from one of that kind; nil: of any kind.
local function top(kind)
  declared = { names = {}, classes = { list = {} } }
  scope = { names = {}, classes = { list = {} }, ctx = false, locals = 0, depth = 1 }
  local made = declarations()
  local load_phase = chance(35) and block(upto(4), 3) or ""
  local text
  if kind or chance(82) then
    text = ("local c = kube.controller {\n  name = \"hunt\",\n  resource = %q,\n%s\n  reconcile \z
      = %s,\n}"):format(kind or pick(KINDS), fields(SPEC_KEYS, spec_value, upto(5), HOOK_KEYS), obj_ctx())
  else
    local how = pick { "mutate", "validate" }
    text = ("local c = kube.webhook {\n  name = \"hunt\",\n  resource = %q,\n%s\n  %s = %s,\n}"):format(
      pick(KINDS), fields(HOOK_KEYS, hook_value, upto(4), SPEC_KEYS), how,
      body("obj, ctx, ...", "obj, ctx", true))
  end
  local last = "return c"
  if chance(10) then
    last = pick {
      ("P(function() c.%s = %s end)\nreturn c"):format(chance(80) and pick(SPEC_KEYS) or "functions",
        expr(3)),
      ("P(function() c[%s] = %s end)\nreturn { c }"):format(expr(1), expr(3)),
      "return { c, { c } }", "return c, c", "return setmetatable({ c }, { __len = H.self })",
      ("return H.mt({ c }, { __index = %s })"):format(fn(2, "...")), ("return %s"):format(expr(3)),
      ("P(setmetatable, c, %s)\nreturn c"):format(map(2)),
      "return H.mt({ c }, { __ipairs = H.raise, __pairs = H.raise })",
    }
  end
  return PRELUDE .. "local obj, ctx = { metadata = {}, spec = {} }, nil\n" .. made .. load_phase .. "\n"
    .. text
    .. "\n" .. last .. "\n"
end

-- ---------------------------------------------------------------- examples, changed

local WORDS = {}               -- of each example
for _, text in ipairs(EXAMPLES) do
  local out = {}
  for word in text:gmatch "[%a_][%w_]*" do out[#out + 1] = word end
  WORDS[text] = out
end

local function change_word(text, words)
  local at = upto(#text)
  local from, to = text:find("[%a_][%w_]*", at)
  if not from then return text end
  scope = { names = { "kube", "ctx", "obj" }, classes = { list = {} }, ctx = true, locals = 100, depth = 3 }
  local new = chance(40) and pick(words) or chance(50) and pick(FIELDS)
    or ("(%s)"):format(expr(2)):gsub("H%.[%a_]+%b()", "{}"):gsub("H%.[%a_]+", "print"):gsub("%f[%w_][PQ]%(",
    "pcall("):gsub("K%[%d+%]", "kube")
  return text:sub(1, from - 1) .. new .. text:sub(to + 1)
end

local function change_literal(text)
  local at = upto(#text)
  local from, to = text:find('"[^"\n]*"', at)
  if chance(40) then from, to = text:find("%f[%w_]%d+", at) end
  if not from then return text end
  return text:sub(1, from - 1) .. (chance(70) and str() or pick(NUMBERS)) .. text:sub(to + 1)
end

local function change_lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  local a, b = upto(#lines), upto(#lines)
  local r = upto(3)
  if r == 1 then
    table.remove(lines, a)
  elseif r == 2 then
    table.insert(lines, b, lines[a])
  else
    lines[a], lines[b] = lines[b], lines[a]
  end
  return table.concat(lines, "\n")
end

local CHANGES = { change_word, change_word, change_literal, change_literal, change_lines }

local function changed(text)
  local words = WORDS[text]
  for _ = 1, upto(6) do
    for _ = 1, 8 do
      local new = pick(CHANGES)(text, words)
      if new ~= "" and (load(new, "=x", "t") or chance(3)) then
        text = new
        break
      end
    end
  end
  return text
end

return function(seed, kind)
  state = seed * 0x2545f4914f6cdd1d
  next64()
  if chance(25) and not kind then return changed(pick(EXAMPLES)) end
  local text
  for _ = 1, 5 do
    text = top(kind)
    if load(text, "=x", "t") then return text end
  end
  return text
end, MODULES
