-- reader_spec.lua - static analysis of scripts: the syntax tree of a text, and the findings of kubelua check.

local lint = require "kubelua.reader.lint"
local process = require "support.process"
local tree = require "kubelua.reader.tree"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function files(...)
  return process.run(("find %s -name '*.lua' | sort"):format(table.concat({ ... }, " "))):gmatch "[^\n]+"
end

describe("the tree of a text", function()
  it("exists for all Lua files of this repository", function()
    for path in files("lua/kubelua/cli", "lua/kubelua/reader", "examples", "controllers", "spec/e2e") do
      local list, line = tree.of(read(path))
      assert.is_table(list, path .. ":" .. tostring(line))
    end
  end)

  it("exists exactly if Lua accepts the text, wherever it is cut", function()
    local text = read "examples/dns-record/dns-record.lua" .. read "lua/kubelua/reader/tokens.lua"
    for _, cut in ipairs { text, ([==[#!/usr/bin/lua
      local a <const>, b <close> = 1, nil; goto done; ::done:: for i = 1, 2 do end
      for k, v in pairs {} do break end
      local s = "\x41\u{48}\z
         \65" .. [=[ ]] ]=] .. 'x' function a.b.c:d(...) return ... end
      while not (a or #b > 0x1p4) and ~1 ~= 2 ^ -3 do repeat local x until x end
      return -a // 2 << 3 | 0xff, f"x"{1}:g()]==]) } do
      for n = 0, #cut, cut == text and 61 or 3 do
        local part = cut:sub(1, n)
        local good = load((part:gsub("^#[^\n]*", "")), "=x", "t") ~= nil
        if good or cut == text then assert.equal(good, tree.of(part) ~= nil, part:sub(-60)) end
      end
    end
  end)

  it("knows where a name was declared, and its constant value", function()
    local found = {}
    tree.each(tree.of [[local a, b = "x", 1 local c = a .. "y" b = 2
      local function f(a) return a end return c, b, f(a), d]], function(node)
      if node.t == "name" then found[#found + 1] = node end
    end)
    local by_name = {}
    for _, node in ipairs(found) do by_name[node.name] = node end
    assert.equal("xy", tree.text(by_name.c))
    assert.is_nil(tree.text(by_name.b))
    assert.is_true(by_name.b.def.set)
    assert.is_nil(by_name.d.def)
  end)

  it("stops at a maximum depth", function()
    assert.is_nil(tree.of("return " .. ("("):rep(5000) .. "1" .. (")"):rep(5000)))
    assert.is_nil(tree.of(("do "):rep(5000) .. ("end "):rep(5000)))
  end)

  it("of a long chain is walked in order, however long", function()
    local numbers = {}
    tree.each(tree.of("return 1" .. (" + 2"):rep(20000) .. " + 3"), function(node)
      if node.t == "number" then numbers[#numbers + 1] = node.value end
    end)
    assert.same({ 20002, "1", "2", "3" }, { #numbers, numbers[1], numbers[2], numbers[20002] })
  end)

  it("makes no text without an end of locals that double each other", function()
    for _, first in ipairs { "x", "" } do
      local lines = { ("local a0 = %q"):format(first) }
      for i = 1, 60 do lines[#lines + 1] = ("local a%d = a%d .. a%d"):format(i, i - 1, i - 1) end
      local list, last = tree.of(table.concat(lines, "\n") .. " return a60"), nil
      tree.each(list, function(node) last = node.t == "name" and node or last end)
      assert.equal(first == "" and "" or nil, tree.text(last))
    end
  end)
end)

-- The findings of a controller with these keys and this body of reconcile, as "line: severity rule: message".
local function findings(keys, body, modules)
  local dir = process.tmpname ".d"
  process.run("mkdir -p " .. dir)
  for name, text in pairs(modules or {}) do process.write(dir .. "/" .. name .. ".lua", text) end
  local path = process.write(dir .. "/x.lua", ([[local kube, helper = require "kubelua"%s
local function reconcile(o, ctx)
%s
end
return kube.controller { name = "x", resource = "v1/ConfigMap", %s reconcile = reconcile }
]]):format(modules and ", require 'helper'" or "", body, keys))
  local said, code = process.run(("%s check %s -o json"):format(KUBELUA, path))
  local out = {}
  for _, f in ipairs(require "dkjson".decode(said).findings) do
    out[#out + 1] = ("%d: %s %s: %s"):format(f.line, f.severity, f.rule, f.message)
  end
  return table.concat(out, "\n"), code
end

describe("kubelua check", function()
  it("finds nothing in valid scripts", function()
    local scripts = {}
    for path in files("controllers", "examples") do
      if not path:find "_test%.lua$" and not path:find "/lib/"
        and read(path):find "return kube%.controller" then
        scripts[#scripts + 1] = path
      end
    end
    assert.is_true(#scripts > 15)
    local said, code = process.run(("%s check %s -o json"):format(KUBELUA, table.concat(scripts, " ")))
    assert.same({}, require "dkjson".decode(said).findings)
    assert.equal(0, code)
  end)

  for what, case in pairs {
    ["a method of ctx that is none"] = { "", "ctx:gett('v1/ConfigMap', 'a')",
      "3: error unknown%-ctx: ctx.gett: unknown field; did you mean 'get'" },
    ["a field of ctx that is none"] = { "", "return ctx.namspace", "ctx.namspace: .*'namespace'" },
    ["a function of kube that is none"] = { "", "return kube.qyt '1'", "unknown%-kube: kube.qyt: .*'qty'" },
    ["a kind that is not declared"] = { "", "local kind = 'v1/Secret'\nctx:list(kind)",
      "4: error undeclared%-kind: ctx:list: .*reads = { \"v1/Secret\" }" },
    ["a kind by another word"] = { "", "ctx:get('po', 'a')",
      "error undeclared%-kind: ctx:get: .*keep v1/Pod in its cache" },
    ["a kind by a word that is nearly one"] = { "", "ctx:get('podds', 'a')",
      "error undeclared%-kind: ctx:get: no built%-in kind has the name \"podds\"; did you mean \"v1/Pod\"" },
    ["a param that is not declared"] = { "params = { region = 'eu' },",
      "return ctx.params.regoin, ctx.params.region",
      "undeclared%-param: ctx.params.regoin: .*'region'" },
    ["a param where there is none"] = { "", "return ctx.params 'a.b'", "declare it: params = { a = ... }" },
    ["a secret among the params"] = { "params = { token = { type = 'secret' } },", "return ctx.params.token",
      "secret%-param: .*read it with ctx.secret \"token\"" },
    ["a param among the secrets"] = { "params = { region = 'eu' },", "return ctx.secret 'region'",
      "secret%-param: .*it is ctx.params.region" },
    ["a secret that is not declared"] = { "", "return ctx.secret 'token'",
      "params = { token = { type = \"secret\" } }" },
    ["a server that is not allowed"] = { "http = 'https://a.example.com',",
      "local A = 'https://b.example.com'\nctx.http:get(A .. '/x')",
      "4: error http%-not%-allowed: ctx.http:get: https://b.example.com/x is not in `http`" },
    ["servers where none is allowed"] = { "", "ctx.http:post(o.data.url)",
      "may not reach any server; add http = " },
    ["a method of ctx.http that is none"] = { "http = 'https://a.example.com',",
      "ctx.http:gt 'https://a.example.com'",
      "ctx.http:gt: unknown method; did you mean 'get'" },
    ["a key of a result"] = { "", "if o then return { statuss = {} } end",
      "unknown%-result%-key: .*'status'" },
    ["a param that nothing reads"] = { "params = { region = 'eu' },", "",
      "5: warning unused%-param: params.region" },
    ["a kind that nothing reads"] = { "reads = { 'v1/Secret' },", "",
      "warning unused%-kind: reads: .*v1/Secret" },
    ["a kind by another name that nothing reads"] = { "reads = { 'secrets' },", "",
      "5: warning unused%-kind: reads: v1/Secret" },
    ["an index that nothing asks"] = { "indexes = { src = 'data.src' },", "",
      "warning unused%-index: .*src" },
  } do
    it("finds " .. what, function()
      local said, code = findings(case[1], case[2])
      assert.match(case[3], said)
      assert.is_nil(said:find "\n", said)
      assert.equal(said:find "error" and 1 or 0, code)
    end)
  end

  it("does not guess", function()
    for keys, body in pairs {
      ["params = { region = 'eu' },"] = "return ctx.params[o.data.name]",
      ["params = { zone = 'eu' },"] = "local function f(c) return c.params.zone end return f(ctx)",
      ["reads = { 'v1/Secret' },"] = "return ctx:list(o.data.kind)",
      ["indexes = { src = 'data.src' },"] = "return ctx:list('v1/ConfigMap', { index = { src = 'a' } })",
      ["reads = { 'v1/Pod' },"] = "local ctx = {} return ctx.anything, ctx:other('v1/Secret')",
      ["http = 'https://a.example.com/v1',"] = "return ctx.http:get('https://a.example.com/v1/' .. \z
        o.metadata.name)",
      ["watches = { ['v1/Secret'] = 'same-name' },"] = "return ctx:get('v1/Secret', 'a'), \z
        ctx.live:get('v1/Pod', 'a')",
      [""] = "local function g() return { anything = 1 } end return g()",
    } do
      local said = findings(keys, body)
      if keys:find "v1/Pod" then said = said:gsub("^5: warning unused%-kind[^\n]*$", "") end
      assert.equal("", said, body)
    end
  end)

  it("reads modules beside the script, with their names", function()
    local said = findings("reads = { 'v1/Secret' }, priority = helper.priority,", "return helper.go(ctx)", {
      helper = "return { priority = 1, go = function(ctx)\n  ctx:pach(ctx:get('v1/Secret', 'a'), {})\nend \z
        }" })
    assert.match("^2: error unknown%-ctx: ctx.pach", said)
    assert.is_nil(said:find "unused")
  end)

  it("tries params, as a deployment would give them", function()
    local path = process.write(process.tmpname ".lua", [[local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/ConfigMap",
  params = { num = { type = "integer", default = 1, max = 5 }, token = { type = "secret" } },
  reconcile = function(_, ctx) return ctx.params.num, ctx.secret "token" end }]])
    local function check(...) return process.run(("%s check %s %s 2>&1"):format(KUBELUA, path,
      table.concat({ ... }, " "))) end
    local said, code = check "--param num=3 --param token=sesame"
    assert.equal(0, code, said)
    assert.match("x: num = 3", said)
    assert.match('x: token = "%*%*%*"', said)
    assert.is_nil(said:find("sesame", 1, true))
    local file = process.write(process.tmpname ".yaml", "num: 9\ntoken: a\n")
    local bare = process.write(process.tmpname ".yaml", "n: 3\n")
    for words, why in pairs { ["--param num=9 --param token=a"] = "num of x must be at most 5",
      ["--param m=9"] = "no controller here has a param m",
      ["--params " .. bare] = "no controller here has a param false; YAML reads a name such as n, y or on \z
        as this",
      ["--param num=2"] = "token", ["--params " .. file] = "num of x must be at most 5",
      ["--params secret/a/b"] = "a check does not contact a cluster" } do
      said, code = check(words)
      assert.equal(1, code, words)
      assert.match(why, said)
    end
  end)

  it("prints SARIF, also for scripts that do not load", function()
    local path = process.write(process.tmpname ".lua", "return {\n")
    local said, code = process.run(("%s check %s -o sarif 2>&1"):format(KUBELUA, path))
    local run = require "dkjson".decode(said).runs[1]
    assert.equal(1, code)
    assert.equal("load", run.results[1].ruleId)
    assert.equal(2, run.results[1].locations[1].physicalLocation.region.startLine)
    for _, rule in ipairs(run.tool.driver.rules) do assert.equal(lint.RULES[rule.id],
      rule.shortDescription.text) end
  end)

  it("stops if a text takes too long, and says so", function()
    local now = 0
    local function clock()
      now = now + 6
      return now
    end
    local found = lint.program({ path = "x.lua", specs = {},
      sources = { { path = "x.lua", text = ("local x = 1\n"):rep(20000) } } }, clock)
    assert.same({ 1, "unchecked", "x.lua" }, { #found, found[1].rule, found[1].file })
    assert.matches("too large to be checked further: that takes more than 10 s", found[1].message)
  end)

  it("knows every field of ctx", function()
    local body = {}
    for _, name in ipairs { "key", "namespace", "name", "params", "attempt", "generation", "id", "object",
      "epoch",
      "cluster", "trigger", "memo", "log", "live", "http" } do body[#body + 1] = "ctx." .. name end
    assert.equal("", (findings("", "local x = { " .. table.concat(body, ", ") .. " } return x and nil")))
  end)
end)
