-- convert_spec.lua - conversion of Lua values to JSON values and back: exact, in a fixed order; values that
-- cannot be sent are rejected with their path.

local kube = require "kubelua"

describe("kube.encode", function()
  it("writes lists, objects and scalars, names sorted", function()
    assert.equal('{"a":[1,2.5,true,"x"],"b":{"c":{}}}',
      kube.encode { b = { c = {} }, a = { 1, 2.5, true, "x" } })
    assert.equal("null", kube.encode(kube.null))
    assert.equal('"x"', kube.encode "x")
  end)

  it("writes whole floats as integers and keeps int64 exact", function()
    assert.equal("[2,0.5,9223372036854775807,-9223372036854775808]",
      kube.encode { 4 / 2, 0.5, math.maxinteger, math.mininteger })
    assert.equal("18446744073709551615", kube.encode(kube.uint64 "18446744073709551615"))
  end)

  it("recognizes marked empty lists", function()
    assert.equal('{"list":[],"object":{}}', kube.encode { list = kube.array {}, object = kube.object {} })
    assert.equal("{}", kube.encode {})
    assert.equal("[1]", kube.encode(kube.array { 1 }))
  end)

  it("embeds views, quantities and times", function()
    local view = kube.decode '{"z":1,"a":[null]}'
    assert.equal('{"q":"2500m","t":"2026-01-02T15:04:05Z","v":{"z":1,"a":[null]}}',
      kube.encode { v = view, q = kube.qty "500m" + kube.qty(2), t = kube.time "2026-01-02T15:04:05Z" })
  end)

  it("indents when asked to", function()
    assert.equal('{\n  "a": [\n    1\n  ]\n}', kube.encode({ a = { 1 } }, true))
  end)

  local function refused(value, pattern)
    local ok, err = pcall(kube.encode, value)
    assert.is_false(ok)
    assert.matches(pattern, err)
  end

  it("names the place of a value that cannot be sent", function()
    refused({ spec = { list = { 1, { x = print } } } },
      "the value%.spec%.list%[2%]%.x: a function cannot be sent")
    refused({ ["a.b/c"] = { print } }, "the value%[a%.b/c%]%[1%]: a function")
    refused({ x = io.stdout }, "the value%.x: file .* cannot be sent")
    refused({ x = 0 / 0 }, "the value%.x: .*nan is not a number that JSON can hold")
    refused({ x = 1 / 0 }, "inf is not a number")
    refused({ x = "\xff" }, "the value%.x: a string with bytes that are not UTF%-8")
    refused({ ["\xff"] = 1 }, "a name with bytes that are not UTF%-8")
  end)

  it("refuses tables that are neither list nor object", function()
    refused({ x = { 1, y = 2 } }, "the value%.x: a table with both names and list items")
    refused({ x = { [1] = 1, [3] = 3 } }, "the value%.x: a list with holes: 2 items up to place 3")
    refused({ [1.5] = 1 }, "the value: the key 1%.5 is neither a name nor a place in a list")
    refused({ [true] = 1 }, "the key true is neither")
    refused({ [0] = 1 }, "the key 0 is neither")
    refused(kube.object { 1 }, "an object %(kube%.object%) with list items")
    local list = kube.array { 1 }
    list.x = 1
    refused(list, "both names and list items")
  end)

  it("rejects cycles with a message of reasonable length", function()
    local circle = {}
    circle.x = circle
    local ok, err = pcall(kube.encode, circle)
    assert.is_false(ok)
    assert.matches("nested deeper than 512; does a table contain itself%?", err)
    assert.is_true(#err < 300)
  end)

  it("rejects tables with a metatable, without calling it", function()
    local asked = false
    local t = setmetatable({ a = 1 }, { __index = function() asked = true end,
      __pairs = function() error "no" end })
    refused({ x = t }, "the value%.x: a table with a metatable cannot be sent")
    assert.is_false(asked)
  end)
end)

describe("kube.decode", function()
  it("returns scalars and views", function()
    assert.equal(1, kube.decode " 1 ")
    assert.is_nil(kube.decode "null")
    assert.is_true(kube.is_view(kube.decode "[]"))
  end)

  it("raises a structured error that says where", function()
    local value, err = kube.try(kube.decode, '{"a": [1, 2')
    assert.is_nil(value)
    assert.equal("syntax", err.kind)
    assert.is_nil(err.code)
    assert.matches("line 1", err.message)
    assert.is_nil(kube.try(kube.decode, '{"a":1,"a":2}'))
    assert.is_nil(kube.try(kube.decode, ("["):rep(600) .. ("]"):rep(600)))
  end)
end)

describe("kube.copy", function()
  it("returns plain tables that remember lists and null", function()
    local text = '{"a":[],"b":{},"c":[1,{"d":null}],"e":18446744073709551615,"f":null}'
    local view = kube.decode(text)
    local copy = kube.copy(view)
    assert.equal("table", type(copy))
    assert.equal(1, copy.c[1])
    assert.equal(kube.null, copy.f)
    assert.equal(text, kube.encode(copy))
    copy.c[1] = 2
    assert.equal(1, view.c[1])
    copy.c[1], copy.c[2] = nil, nil
    assert.equal("[]", kube.encode(copy.c))
  end)

  it("copies tables and passes scalars", function()
    local t = { x = { 1 } }
    local copy = kube.copy(t)
    copy.x[1] = 2
    assert.equal(1, t.x[1])
    assert.equal("x", kube.copy "x")
  end)
end)

describe("kube.array and kube.object", function()
  it("mark their argument", function()
    local t = {}
    assert.equal(t, kube.array(t))
    assert.equal("[]", kube.encode(t))
    assert.equal("{}", kube.encode(kube.object(t)))
    assert.equal("[]", kube.encode(kube.array()))
  end)

  it("leave tables with a metatable alone", function()
    assert.error_matches(function() kube.array(setmetatable({}, {})) end, "has its own metatable")
  end)
end)

describe("kube.uint64", function()
  it("reads digits and integers up to 2^64-1", function()
    assert.equal("5", tostring(kube.uint64(5)))
    assert.equal(5, kube.uint64("5"):number())
    assert.is_true(kube.uint64 "9223372036854775808" > kube.uint64 "9223372036854775807")
    assert.is_true(kube.uint64 "18446744073709551615" > 1e18)
    assert.is_true(-1 < kube.uint64 "0")
    for _, wrong in ipairs { "18446744073709551616", "-1", "", "1.5", "x" } do
      assert.error_matches(function() kube.uint64(wrong) end, "expected digits")
    end
    assert.error_matches(function() kube.uint64(-1) end, "negative")
  end)
end)

describe("kube.yaml", function()
  it("reads every document of a text", function()
    local docs = kube.yaml "kind: A\n---\n# nothing\n---\nkind: B\nlist: [1, x, true, null]\n"
    assert.equal(2, #docs)
    assert.equal("A", docs[1].kind)
    assert.equal("x", docs[2].list[2])
    assert.is_true(docs[2].list[3])
  end)

  it("names file, line and reason of an error", function()
    local _, err = kube.try(kube.yaml, "a: [1\nb: 2\n", "deploy.yaml")
    assert.equal("syntax", err.kind)
    assert.matches("deploy.yaml", err.message, 1, true)
    assert.matches("2", err.message)
  end)

  it("writes what it reads", function()
    local text = kube.to_yaml { kind = "A", list = { 1, "2", true }, text = "a: b" }
    assert.is_true(kube.yaml(text)[1] == kube.decode '{"kind":"A","list":[1,"2",true],"text":"a: b"}')
  end)
end)
