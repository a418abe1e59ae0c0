-- oracle_spec.lua - the oracle program compares our functions with the tables in spec/fixtures/oracle, the
-- answers of Kubernetes' Go libraries, and fails wrong tables.
-- not in tsan: the tables are read in one thread

local process = require "support.process"

local oracle = (os.getenv "KL_BUILD" or "build") .. "/oracle"

local function run(...)
  local words = { oracle }
  for _, word in ipairs { ... } do words[#words + 1] = process.quote(word) end
  return process.run(table.concat(words, " ") .. " 2>&1")
end

--- A directory with one table in it.
local function tables(name, text)
  local dir = process.tmpname()
  process.run("mkdir -p " .. process.quote(dir))
  process.write(dir .. "/" .. name, text)
  return dir
end

describe("the oracle", function()
  it("finds no difference between ours and the Go libraries' answers", function()
    local out, code = run "spec/fixtures/oracle"
    local passed, failed = out:match "(%d+) passed, (%d+) failed%s*$"
    assert.equal("0", failed, out:sub(1, 4000))
    assert.equal(0, code)
    assert.is_true(tonumber(passed) > 3000)
  end)

  it("names each failure with the expected and the actual answer, and fails", function()
    local out, code = run(tables("quantity.json", [=[[
      {"name": "right", "op": "cmp", "in": {"a": "1", "b": "1000m"}, "want": {"cmp": 0, "equal": true}},
      {"name": "wrong", "op": "cmp", "in": {"a": "1", "b": "2"}, "want": {"cmp": 1, "equal": false}},
      {"name": "no error", "op": "cmp", "in": {"a": "1", "b": "2"}, "err": true},
      {"name": "error", "op": "cmp", "in": {"a": "1", "b": "two"}, "want": {"cmp": 1, "equal": false}}]]=]))
    assert.equal(1, code)
    assert.truthy(out:find('quantity: wrong.-op   cmp.-want {"cmp":1,"equal":false}.-got  \z
      {"cmp":%-1,"equal":false}'), out)
    assert.truthy(out:find('quantity: no error.-want an error.-got  {"cmp":%-1'), out)
    assert.truthy(out:find('quantity: error.-got  error: quantity "two"'), out)
    assert.truthy(out:find "1 passed, 3 failed%s*$", out)
  end)

  it("names tables and ops that it does not know, and does not fail for them", function()
    local out, code = run(tables("quantity.json", '[{"name": "a", "op": "divide", "in": {}, "want": {}}]'))
    assert.equal(0, code)
    assert.truthy(out:find("not known yet: quantity: divide (1)", 1, true), out)
    out, code = run(tables("horoscope.json", '[{"name": "a", "op": "b", "in": {}, "want": {}}]'))
    assert.equal(0, code)
    assert.truthy(out:find("not known yet: horoscope: all 1 cases", 1, true), out)
    assert.truthy(out:find "0 passed, 0 failed%s*$", out)
  end)

  it("explains an invalid file or case", function()
    for text, message in pairs {
      ["[{"] = "quantity.json: ",
      ['{"a": 1}'] = "is not an array of cases",
      ['[{"name": "x", "op": "parse", "in": {"s": "1"}}]'] =
        "case 1 (x) must have name, op, in, and either want or",
      ['[{"op": "parse", "in": {"s": "1"}, "want": {}}]'] = "case 1 (no name) must have",
      ['[{"name": "x", "op": "parse", "in": {"q": "1"}, "err": true}]'] = "in.s must be a string",
      ['[{"name": "x", "op": "mul", "in": {"a": "1", "by": "many"}, "want": {}}]'] =
        "in.by must be a 64-bit integer",
    } do
      local out, code = run(tables("quantity.json", text))
      assert.equal(1, code, text)
      assert.truthy(out:find(message, 1, true), text .. "\n" .. out)
      assert.truthy(out:find "0 passed, 1 failed%s*$", out)
    end
  end)

  it("does not pass without cases", function()
    local out, code = run "spec/no/such/place"
    assert.equal(2, code)
    assert.truthy(out:find("no/such/place", 1, true), out)
    out, code = run(tables("readme.txt", ""))
    assert.equal(2, code)
    assert.truthy(out:find("no file in it ends in .json", 1, true), out)
  end)
end)
