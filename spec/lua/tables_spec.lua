-- tables_spec.lua - kube.equal, dig, columns, merge, hash, template and cron.

local kube = require "kubelua"

local TEXT = [[{"metadata": {"name": "a", "labels": {"app": "x"}},
  "spec": {"list": [{"n": 1}, {"n": 2}], "none": null, "empty": []}}]]

local function refused(part, fn, ...)
  local ok, why = pcall(fn, ...)
  assert.is_false(ok)
  assert.truthy(tostring(why):find(part, 1, true), tostring(why))
end

describe("kube.equal", function()
  it("compares views and tables all the way down", function()
    local view, plain = kube.decode(TEXT), kube.copy(kube.decode(TEXT))
    assert.is_true(kube.equal(view, plain))
    assert.is_true(kube.equal(plain, kube.decode(TEXT)))
    assert.is_true(kube.equal({ 1, { a = 2 } }, { 1, { a = 2 } }))
    plain.spec.list[2].n = 3
    assert.is_false(kube.equal(view, plain))
    assert.is_false(kube.equal({ a = 1 }, { a = 1, b = 2 }))
    assert.is_false(kube.equal({ a = 1, b = 2 }, { a = 1 }))
  end)

  it("takes null for absent, and quantities and times for one value each", function()
    assert.is_true(kube.equal({ a = kube.null }, {}))
    assert.is_true(kube.equal({}, { a = kube.null }))
    assert.is_false(kube.equal({ a = kube.null }, { a = 1 }))
    assert.is_false(kube.equal({ a = 1 }, { a = kube.null }))
    assert.is_true(kube.equal({ q = kube.qty "1" }, { q = kube.qty "1000m" }))
    assert.is_false(kube.equal(kube.qty "1", kube.qty "2"))
    assert.is_false(kube.equal(kube.qty "1", {}))
  end)
end)

describe("kube.dig", function()
  it("stops at the first absent field", function()
    for _, o in ipairs { kube.decode(TEXT), kube.copy(kube.decode(TEXT)) } do
      assert.equal(2, kube.dig(o, "spec", "list", 2, "n"))
      assert.is_nil(kube.dig(o, "spec", "list", 3, "n"))
      assert.is_nil(kube.dig(o, "metadata", "name", "x"))
      assert.is_nil(kube.dig(o, "spec", "none", "x"))
      assert.is_nil(kube.dig(o, "status", "phase"))
    end
    assert.is_nil(kube.dig(nil, "a"))
    assert.is_nil(kube.dig(kube.qty "1", "milli"))
    assert.equal("x", kube.dig "x")
  end)
end)

describe("kube.columns", function()
  local ITEMS = [[ [{"n":1,"of":{"age":3,"ok":true}},{"n":"b","of":null},{}] ]]

  it("has a table for each path, of views and of tables alike", function()
    local view = kube.decode(ITEMS)
    for _, list in ipairs { view, kube.copy(view), { view[1], view[2], {} } } do
      local n, age, ok = kube.columns(list, "n", "of.age", "of.ok")
      assert.same({ { 1, "b" }, { 3 }, { true } }, { n, age, ok })
    end
    assert.equal(0, select("#", kube.columns(view)))
    assert.same({}, (kube.columns({}, "n")))
  end)

  it("names the item with another type", function()
    for _, list in ipairs { kube.decode(ITEMS), kube.copy(kube.decode(ITEMS)) } do
      local ok, why = pcall(kube.columns, list, "of")
      assert.is_false(ok)
      assert.match('"of" of item 1 is none of them', why)
    end
    assert.is_false(pcall(kube.columns, "text", "n"))
    assert.is_false(pcall(kube.columns, kube.decode(ITEMS), "of["))
  end)
end)

describe("kube.milli_columns", function()
  local ITEMS = [[ [{"r":{"cpu":"1.5"}},{},{"r":{"cpu":2}},{"r":{"cpu":"1000000000000u"}},
    {"r":{"cpu":null}}] ]]

  it("reads quantities as kube.to_milli does, and 0 where there is none", function()
    local view = kube.decode(ITEMS)
    for _, list in ipairs { view, kube.copy(view), { view[1], {}, view[3], view[4], {} } } do
      local cpu, memory = kube.milli_columns(list, "r.cpu", "r.memory")
      assert.same({ { 1500, 0, 2000, 1000000000, 0 }, { 0, 0, 0, 0, 0 } }, { cpu, memory })
    end
    assert.same({}, (kube.milli_columns({}, "r.cpu")))
  end)

  it("rejects an invalid quantity", function()
    for _, text in ipairs { '[{"cpu":"much"}]', '[{"cpu":true}]', '[{"cpu":{}}]' } do
      assert.is_false(pcall(kube.milli_columns, kube.decode(text), "cpu"))
      assert.is_false(pcall(kube.milli_columns, kube.copy(kube.decode(text)), "cpu"))
    end
  end)
end)

describe("kube.milli_pick", function()
  it("reads what paths lead to in thousandths, and nil where there is nothing", function()
    local view = kube.decode [[ {"a":{"cpu":"1.5","n":2,"no":null},"b":["100m"],"c":"1000000000000u"} ]]
    for _, x in ipairs { view, kube.copy(view) } do
      assert.same({ 1500, 2000, nil, 100, 1000000000, nil },
        { kube.milli_pick(x, "a.cpu", "a.n", "a.no", "b[1]", "c", "d.e") })
    end
    assert.is_false(pcall(kube.milli_pick, view, "a"))
    assert.is_false(pcall(kube.milli_pick, kube.decode [[ {"a":"much"} ]], "a"))
  end)
end)

describe("kube.tally", function()
  local function tally()
    return kube.tally { key = { "ns", "name" }, amounts = { "use.cpu", "use.memory" } }
  end

  local function list_of(items)
    return kube.decode(kube.encode { items = kube.array(items) }).items
  end

  local function item(name, cpu, memory)
    return { ns = "a", name = name, use = { cpu = cpu, memory = memory } }
  end

  local CLASSES = { ["a/x"] = 1, ["a/y"] = 2, ["a/z"] = 1 }

  it("sums by class, and 0 is the class of all others", function()
    local t = tally()
    assert.is_true(t:count(list_of { item("x", "1", "1Ki"), item("y", "250m"), item("z", "500m", "1"),
      { name = "x", use = { cpu = "9" } } }, CLASSES))
    assert.same({ 2, 1500, 1025000 }, { t:sum(1) })
    assert.same({ 1, 250, 0 }, { t:sum(2) })
    assert.same({ 1, 9000, 0 }, { t:sum(0) })
    assert.same({ 0, 0, 0 }, { t:sum(7) })
  end)

  it("gives after any changes of the list and the classes what a new one gives", function()
    local t, state = tally(), 7
    local function dice(n)
      state = (state * 1103515245 + 12345) % (1 << 31)
      return state // 65536 % n
    end
    local classes = {}
    for _ = 1, 300 do
      local items = {}
      for k = 1, 6 do
        if dice(4) > 0 then items[#items + 1] = item("n" .. k, dice(3) .. "m", tostring(dice(2))) end
      end
      if dice(3) == 0 then
        classes = {}
        for k = 1, 6 do classes["a/n" .. k] = dice(4) end
      end
      local list, new = list_of(items), tally()
      assert.equal(new:count(list, classes), t:count(list, classes))
      for class = 0, 3 do assert.same({ new:sum(class) }, { t:sum(class) }) end
    end
  end)

  it("does not count lists of another form, and then has no sums", function()
    local t = tally()
    local function not_counted(list)
      assert.is_true(t:count(list_of { item("x", "1") }, CLASSES))
      assert.is_nil(t:count(list, CLASSES))
      assert.same({ 0, 0, 0 }, { t:sum(1) })
    end
    not_counted { item("x", "1") }
    not_counted(nil)
    not_counted(list_of { item("x", "1"), item("x", "1") })
    not_counted(list_of { item("x", "much") })
    not_counted(list_of { item("x", 1) })
    not_counted(list_of { item(3, "1") })
    not_counted(list_of { item(("x"):rep(1000), "1") })
  end)

  it("says what is wrong with its paths and classes", function()
    refused("key must be a list of 1 to 2 paths", kube.tally, { amounts = { "a" } })
    refused("amounts must be a list of 1 to 2 paths", kube.tally, { key = { "a" }, amounts = {} })
    refused("amounts must be a list of paths", kube.tally, { key = { "a" }, amounts = { {} } })
    refused("a quoted key without", kube.tally, { key = { "a['b" }, amounts = { "c" } })
    refused("expected a class from 0 to 7", function() tally():sum(8) end)
    refused("table expected", function() tally():count(list_of {}, 1) end)
  end)
end)

describe("kube.milli_sums", function()
  local ITEMS = [[ [{"r":{"cpu":"1.5","memory":"1Gi"}},{},{"r":{"cpu":2,"memory":"1500m"}},
    {"r":{"cpu":"1000u","memory":null}},{"r":{"cpu":"-1500u","memory":"-1500m"}}] ]]

  it("adds up the columns of kube.milli_columns", function()
    local view = kube.decode(ITEMS)
    for _, list in ipairs { view, kube.copy(view), { view[1], {}, view[3], view[4], view[5] } } do
      local cpu, memory, none = kube.milli_sums(list, "r.cpu", "r.memory", "r.none")
      assert.same({ 1500 + 2000 + 1 - 2, 1000 << 30, 0 }, { cpu, memory, none })
    end
    assert.same({ 0 }, { kube.milli_sums({}, "r.cpu") })
    assert.same({}, { kube.milli_sums {} })
  end)

  it("rejects an invalid quantity, and what does not fit 64 bits", function()
    for _, text in ipairs { '[{"cpu":"much"}]', '[{"cpu":true}]', '[{"cpu":{}}]', '[{"cpu":"10E"}]',
      '[{"cpu":"9P"},{"cpu":"9P"}]' } do
      assert.is_false(pcall(kube.milli_sums, kube.decode(text), "cpu"), text)
      assert.is_false(pcall(kube.milli_sums, kube.copy(kube.decode(text)), "cpu"), text)
    end
    assert.is_false(pcall(kube.milli_sums, "text", "cpu"))
  end)
end)

describe("kube.to_milli", function()
  it("is exact for integers, up to the largest whose thousandths fit", function()
    assert.equal(-2000, kube.to_milli(-2))
    assert.equal(9223372036854775000, kube.to_milli(9223372036854775))
    for _, n in ipairs { 9223372036854776, math.mininteger } do
      local fits, milli = pcall(kube.to_milli, n)
      local also, same = pcall(function() return kube.qty(n):milli() end)
      assert.same({ also, also and same }, { fits, fits and milli })
    end
  end)
end)

describe("kube.is_column", function()
  local ITEMS = [[ [{"n":"a","of":{"age":3}},{"n":"b"},{"n":null,"of":{"age":true}}] ]]

  it("is true for lists that kube.columns reads, of views and of tables alike", function()
    local view = kube.decode(ITEMS)
    for _, list in ipairs { view, kube.copy(view), { view[1], view[2], view[3] } } do
      for _, path in ipairs { "n", "of.age", "none" } do
        assert.is_true(kube.is_column(list, path, (kube.columns(list, path))), path)
      end
      for _, other in ipairs { { "a" }, { "a", "b", "c" }, { "a", "c" }, { "a", "b", nil, "d" }, { "b", "a" },
        { "a", false }, { "a", "bb" }, {} } do
        assert.is_false(kube.is_column(list, "n", other))
      end
      assert.is_false(kube.is_column(list, "of.age", { "3", nil, true }))
      assert.is_true(kube.is_column(list, "of.age", { 3, nil, true }))
    end
    assert.is_true(kube.is_column({}, "n", {}))
  end)

  it("rejects values that are not lists", function()
    assert.is_false(pcall(kube.is_column, "text", "n", {}))
    assert.is_false(pcall(kube.is_column, {}, "n", "a"))
    assert.is_false(pcall(kube.is_column, kube.decode(ITEMS), "of", { 1 }))
  end)
end)

describe("kube.pick", function()
  local DEEP = [[ {"n":"a","of":{"age":3,"on":null,"is":false,"list":[{"x":"deep"}]}} ]]

  it("gives what each path leads to, of views and tables alike", function()
    local view = kube.decode(DEEP)
    for _, o in ipairs { view, kube.copy(view) } do
      assert.same({ "a", 3, nil, nil, false, "deep", nil, n = 7 },
        table.pack(kube.pick(o, "n", "of.age", "of.no", "n.of", "of.is", "of.list[1].x", "of.list[9].x")))
      assert.equal("deep", (kube.pick(o, "of.list")[1].x))
    end
    assert.equal(0, select("#", kube.pick(view)))
    assert.same({ n = 2 }, table.pack(kube.pick(nil, "a", "b")))
  end)

  it("follows objects with other keys after each other", function()
    for i, text in ipairs { '{"a":{"b":1}}', '{"x":0,"a":{"c":0,"b":2}}', '{"a":{"c":0}}',
      '{"b":0,"a":{"b":4}}' } do
      assert.equal(i ~= 3 and i or nil, (kube.pick(kube.decode(text), "a.b")))
      assert.equal(i ~= 3 and i or nil, kube.decode(text)("a.b"))
    end
  end)

  -- Lua keeps one copy of a short text, but any number of a long one, and uses their memory again.
  it("does not take a long path for another one that had its memory", function()
    local names = { ("a"):rep(50), ("b"):rep(50) }
    local o = kube.decode(('{"of":{"%s":1,"%s":2}}'):format(names[1], names[2]))
    for i = 1, 20000 do
      local which = i % 2 + 1
      assert.equal(which, o("of." .. names[which]))
      assert.equal(which, (kube.pick(o, "of." .. names[which])))
      if i % 50 == 0 then collectgarbage() end
    end
  end)

  it("rejects what is no path", function()
    assert.is_false(pcall(kube.pick, kube.decode(DEEP), "of["))
    assert.is_false(pcall(kube.pick, {}, {}))
    local view = kube.decode(DEEP)
    for _, wrong in ipairs { {}, true, "a\0b" } do assert.is_false(pcall(kube.pick, view, wrong)) end
    assert.is_false(pcall(kube.pick, view, nil))
  end)
end)

describe("kube.places", function()
  local ITEMS = [[ [{"n":"a","of":{"ns":"x"}},{"n":"b"},{"n":"a","of":{"ns":"y"}},{"n":"a","of":{"ns":"x"}},
    {"of":{"ns":null}}] ]]

  it("gives the last place of each text, of views and tables alike", function()
    local view = kube.decode(ITEMS)
    for _, list in ipairs { view, kube.copy(view), { view[1], view[2], view[3], view[4], {} } } do
      assert.same({ { ["x/a"] = 4, ["/b"] = 2, ["y/a"] = 3, ["/"] = 5 }, 4, n = 2 },
        table.pack(kube.places(list, "of.ns", "n")))
      assert.same({ { a = 4, b = 2, [""] = 5 }, 3, n = 2 }, table.pack(kube.places(list, "n")))
    end
    assert.same({ {}, 0, n = 2 }, table.pack(kube.places({}, "n")))
  end)

  it("joins eight texts however deep the calls are", function()
    local item, want = {}, {}
    for i, name in ipairs { "a", "b", "c", "d", "e", "f", "g", "h" } do
      item[name] = i
      want[i] = i
    end
    local function at(depth)
      if depth > 0 then return at(depth - 1) + 1 end
      return kube.places({ item }, "a", "b", "c", "d", "e", "f", "g", "h")[table.concat(want, "/")]
    end
    for depth = 0, 300 do assert.equal(depth + 1, at(depth)) end
  end)

  it("joins texts of any length, and numbers", function()
    local long = ("x"):rep(200)
    local list = kube.decode(kube.encode { { n = long, m = long }, { n = 3, m = "a" } })
    assert.same({ [long .. "/" .. long] = 1, ["3/a"] = 2 }, (kube.places(list, "n", "m")))
  end)

  it("rejects other values, and more than 8 paths", function()
    assert.is_false(pcall(kube.places, "text", "n"))
    assert.is_false(pcall(kube.places, kube.decode(ITEMS), "of"))
    assert.is_false(pcall(kube.places, kube.decode '[{"n":true}]', "n"))
    assert.is_false(pcall(kube.places, {}))
    assert.is_false(pcall(kube.places, {}, "1", "2", "3", "4", "5", "6", "7", "8", "9"))
  end)
end)

describe("kube.merge", function()
  it("merges objects and replaces other values", function()
    local view = kube.decode(TEXT)
    local merged = kube.merge(view, nil, { spec = { list = { 9 }, more = true } },
      { metadata = { labels = { app = kube.null, b = "y" } } })
    assert.same({ metadata = { name = "a", labels = { b = "y" } },
      spec = { list = { 9 }, more = true, empty = {}, none = kube.null } }, kube.copy(merged))
    assert.equal("x", view.metadata.labels.app)
  end)

  it("does not change its arguments, and recognizes an empty list", function()
    local a, b = { x = { y = 1 } }, { x = { z = 2 } }
    local merged = kube.merge(a, b)
    merged.x.z = 3
    assert.same({ x = { y = 1 } }, a)
    assert.same({ x = { z = 2 } }, b)
    assert.equal("[]", kube.encode(kube.merge({ l = { 1, 2 } }, { l = kube.array {} }).l))
    assert.same({}, kube.merge())
    refused("argument 2 must be a table or a view, got number", kube.merge, {}, 1)
  end)
end)

describe("kube.hash", function()
  it("is the same for equal values, in every process", function()
    assert.equal(kube.hash(kube.decode(TEXT)), kube.hash(kube.copy(kube.decode(TEXT))))
    assert.equal(kube.hash { a = 1, b = 2 }, kube.hash { b = 2, a = 1 })
    assert.equal("m46dv52nmd", kube.hash { a = 1 })
  end)

  it("is fit for a name, and another one for other values", function()
    local seen = {}
    for i = 1, 2000 do
      local hash = kube.hash { i = i }
      assert.truthy(hash:find "^[a-z0-9]+$" and #hash == 10, hash)
      assert.is_nil(seen[hash])
      seen[hash] = true
    end
  end)
end)

describe("kube.template", function()
  it("fills in known names", function()
    local view = kube.decode(TEXT)
    assert.equal("a/x: 2, , [{\"n\":1},{\"n\":2}]!", kube.template(
      "{{metadata.name}}/{{ metadata.labels.app }}: {{ spec.list.2.n }}, {{ status.phase }}, {{ \z
        spec.list }}!", view))
    assert.equal("} {", kube.template("} {", {}))
    assert.equal("{{x}}", kube.template("{{ a }}", { a = "{{x}}" }))
  end)

  it("names the line of an unknown name", function()
    refused('line 2: "{{ a b }}" is no {{ path.to.a.value }}', kube.template, "x\n{{ a b }}", {})
    refused('line 1: "{{ a" is no {{ path.to.a.value }}', kube.template, "{{ a", {})
    refused("the text must be a string", kube.template, nil, {})
    refused("the values must be a table or a view", kube.template, "", "x")
    refused("{{ f }} is a function", kube.template, "{{ f }}", { f = print })
  end)
end)

describe("kube.hash", function()
  it("limits the size of its argument", function()
    assert.equal(10, #kube.hash(("x"):rep(1024 * 1024)))
    refused("kube.hash: a value may have at most 4 MiB as JSON, got 4194305 bytes", kube.hash,
      ("x"):rep(4 * 1024 * 1024 - 1))
  end)
end)

describe("kube.cron", function()
  it("rejects overlong schedules", function()
    local minutes = ("1,"):rep(490) .. "1 * * * *"
    assert.equal("2026-11-20T04:01:00Z", tostring(kube.cron(minutes):next "2026-11-20T03:30:00Z"))
    refused("a schedule has at most 1000 characters, this one has 24000009", kube.cron,
      ("1,"):rep(12 * 1000 * 1000) .. "1 * * * *")
  end)

  it("gives the next and the last time of a schedule", function()
    local nightly = kube.cron "30 3 * * mon-fri"
    assert.equal("2026-11-23T03:30:00Z", tostring(nightly:next "2026-11-20T03:30:00Z"))
    assert.equal("2026-11-19T03:30:00Z", tostring(nightly:previous "2026-11-20T03:30:00Z"))
    assert.equal("2024-02-29T00:00:00Z", tostring(kube.cron("0 0 29 2 *"):previous(
      kube.time "2026-01-01T00:00:00Z")))
  end)

  it("names what is wrong with it", function()
    refused("kube.cron: cron \"60 * * * *\": '60' is not a valid minute", kube.cron, "60 * * * *")
    refused("is no", function() return kube.cron("@daily"):next "tomorrow" end)
  end)
end)
