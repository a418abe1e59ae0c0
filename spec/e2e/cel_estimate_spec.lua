-- cel_estimate_spec.lua - the worst-case cost of rules in a definition: both servers estimate the same, and
-- reject the same.
-- not in tsan: one request after the other, and what answers them is pure

local new_api = require "support.api"
local servers = require "support.servers"

local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local LIMIT, SCHEMA_LIMIT = 10000000, 100000000
local HINT = " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
  .. "maps, and strings are declared)"

local INTEGER = { type = "integer" }
local function text(longest) return { type = "string", maxLength = longest } end
local function list(most, items) return { type = "array", maxItems = most, items = items } end
local function map(most, values)
  return { type = "object", maxProperties = most, additionalProperties = values }
end
local function object(properties) return { type = "object", properties = properties } end

local PROPERTIES = {
  s = text(20), t = text(30), e = { type = "string", enum = { "a", "bcd" } }, free = { type = "string" },
  i = INTEGER, j = INTEGER, d = { type = "number" }, b = { type = "boolean" },
  when = { type = "string", format = "date-time" }, ["for"] = { type = "string", format = "duration" },
  bytes = { type = "string", format = "byte", maxLength = 50 },
  x = { ["x-kubernetes-int-or-string"] = true, maxLength = 8 },
  l = list(7, text(20)), n = list(9, INTEGER), m = map(6, text(12)),
  o = object { a = text(40), b = text(4), deep = object { l = list(5, text(20)) }, mm = map(3, text(12)) },
  objs = list(4, object { name = text(20), other = text(3), subs = list(3, text(11)),
    more = list(30, text(2)) }),
}

-- A rule for the object above, and the highest cost of one evaluation.
local COSTS = {
  { "self.i > 1", 3 }, { "self.i == self.j", 4 }, { "self.i != 3 && self.j < 4", 5 },
  { "self.d < 1.5 || self.b", 5 }, { "self.b ? self.s == 'a' : self.t == 'b'", 5 },
  { "self.s == self.t", 12 }, { "self.s != 'abc'", 3 }, { "self.s < self.t", 12 },
  { "self.s + self.t == self.free", 46 }, { "self.e == 'bcd'", 3 }, { "has(self.o.a)", 2 },
  { "has(self.o) && has(self.o.a) && self.o.a.size() > 3", 8 }, { "size(self.l) < 3", 4 },
  { "self.s.size() < 3", 4 }, { "self.s.startsWith('abcdefghijklmnop')", 4 },
  { "self.s.endsWith(self.t)", 16 }, { "self.s.contains(self.t)", 100 }, { "self.s.contains('abc')", 10 },
  { "self.s.matches('^[a-z]+([0-9]{1,4})?$')", 56 }, { "self.free.matches('^a$')", 314575 },
  { "matches(self.s, '^[a-z]+$')", 3 }, { "self.l.all(x, x.startsWith('a'))", 38 },
  { "self.l.exists(x, x == 'a')", 45 }, { "self.l.exists_one(x, x == self.s)", 95 },
  { "self.l.map(x, x.size()).all(y, y > 3)", 147 },
  { "self.l.map(x, x + 'abc').all(y, y.contains('abc'))", 196 },
  { "self.l.map(x, x != 'a', x).exists(y, y.matches('ab'))", 161 },
  { "self.l.filter(x, x != self.s).size() > 2", 183 },
  { "self.l.filter(x, x.contains('a')).all(y, y.startsWith('b'))", 203 },
  { "self.m.all(k, k.size() < 3)", 39 }, { "self.m.all(k, self.m[k].contains('a'))", 75 },
  { "self.m.exists(k, k == 'abc')", 33 }, { "'a' in self.m", 3 }, { "self.m['a'] == 'b'", 4 },
  { "self.m.a == 'b'", 4 }, { "'a' in self.l", 9 }, { "self.s in self.l", 11 },
  { "self.s in ['a', 'b', 'c']", 15 }, { "self.i in [1, 2, 3]", 15 }, { "self.l[0] == 'a'", 4 },
  { "self.objs[0].name == self.s", 14 }, { "self.objs.all(x, x.name != x.other)", 39 },
  { "self.objs.all(x, x.subs.all(y, y != x.other))", 411 },
  { "self.objs.all(x, self.objs.exists(y, y.name == x.other))", 187 },
  { "self.objs.all(x, x.subs.exists(y, x.more.exists(z, z == y)))", 26067 },
  { "self.objs.all(x, x.subs.all(y, y in x.more))", 4347 },
  { "self.objs.map(x, x.name).exists(n, n == self.s)", 98 },
  { "self.objs.filter(x, x.name == 'a').all(y, y.other == 'b')", 102 },
  { "self.l.all(i, v, v != 'a' && i < 3)", 52 }, { "self.m.all(k, v, k != v)", 33 },
  { "self.o.mm.all(k, v, k != v)", 34 }, { "self.m.exists(k, v, v.contains('ab'))", 63 },
  { "self.m.exists_one(k, v, v == 'ab')", 28 },
  { "self.l.transformList(i, v, v + 'x').all(y, y != 'a')", 196 },
  { "self.m.transformMap(k, v, v + 'a').all(k, k != 'a')", 112 },
  { "self.m.transformMap(k, v, k != 'a', v.size()).all(k, v, v < 3)", 100 },
  { "self.m.transformMapEntry(k, v, {v: k}).size() < 4", 239 },
  { "self.l.transformList(i, v, i > 1, v).size() == 1", 120 }, { "self.x == 3", 3 },
  { "type(self.x) == int ? self.x < 4 : self.x.startsWith('a')", 7 },
  { "self.x.matches('^[0-9]+%$')", 14 }, { "dyn(self.s) == self.t", 13 },
  { "dyn(self.l).all(x, x == 'a')", 32 }, { "self.when > timestamp('2020-01-01T00:00:00Z')", 4 },
  { "self.when == self.when", 8 }, { "self.__for__ < duration('1h')", 4 },
  { "self.when.getFullYear() > 2000", 4 }, { "self.when - self.when < self.__for__", 8 },
  { "string(self.bytes) == 'abc'", 8 }, { "bytes(self.s) == self.bytes", 17 },
  { "self.bytes < self.bytes", 9 }, { "self.bytes + self.bytes == self.bytes", 21 },
  { "string(self.i) == self.s", 13 }, { "int(self.s) > 3", 4 }, { "self.s.lowerAscii() == self.t", 20 },
  { "self.s.upperAscii().contains(self.t)", 108 }, { "self.s.substring(2) == 'a'", 11 },
  { "self.s.substring(1, 2).trim() == 'a'", 19 }, { "self.s.charAt(1) == 'a'", 4 },
  { "self.s.replace('a', 'bcd').contains('abcdefghij')", 42 },
  { "self.s.replace('ab', '').contains('abcdefghijk')", 34 },
  { "self.s.replace(self.t, self.s).contains('abc')", 678 },
  { "self.s.replace('abc', self.t, 3).startsWith('x')", 21 },
  { "self.s.split('a').all(x, x != 'b')", 339 }, { "self.s.split('a', 2).all(x, x != self.t)", 31 },
  { "self.l.join() == 'a'", 59 }, { "self.l.join(',').contains('aaaaaaaaaaaaaaaa')", 173 },
  { "self.s.indexOf('a') == 1", 11 }, { "self.s.lastIndexOf('a', 3) == 1", 11 },
  { "self.l.indexOf('a') == 1", 66 }, { "self.n.indexOf(3) == 1", 12 }, { "self.n.sum() > 3", 12 },
  { "self.n.isSorted()", 11 }, { "self.l.isSorted()", 65 }, { "self.n.max() > self.n.min()", 23 },
  { "self.l.max() == 'a'", 66 }, { "self.s.find('[0-9]+') == 'a'", 21 },
  { "self.s.findAll('[0-9]+').all(x, int(x) > 3)", 501 }, { "self.s.findAll('a', 2).size() == 1", 13 },
  { "'%s is %d'.format([self.s, self.i]) == self.t", 29 }, { "self.s.format([1]) == 'a'", 21 },
  { "strings.quote(self.s) == self.t", 24 }, { "sets.contains(self.l, ['a', 'b'])", 27 },
  { "sets.equivalent(self.l, self.l)", 103 }, { "sets.intersects(self.n, [1])", 22 },
  { "self.l + self.l == ['a']", 16 }, { "(self.l + ['abcdefghijklmn']).all(x, x.contains('a'))", 46 },
  { "url(self.s).getHost() == 'a'", 12 }, { "isURL(self.s)", 3 }, { "url(self.s) == url(self.t)", 36 },
  { "quantity(self.s).isGreaterThan(quantity('1Gi'))", 12 }, { "isQuantity(self.s)", 10 },
  { "quantity(self.s) == quantity(self.t)", 25 }, { "quantity(self.s).add(1).asInteger() > 3", 13 },
  { "ip(self.s).family() == 4", 12 }, { "isIP(self.s)", 10 }, { "ip.isCanonical(self.s)", 18 },
  { "ip(self.s) == ip(self.t)", 25 }, { "cidr(self.s).containsIP(self.t)", 28 },
  { "cidr(self.s).containsIP(ip('10.0.0.1'))", 15 }, { "cidr(self.s).containsCIDR('10.0.0.0/8')", 18 },
  { "cidr(self.s).containsCIDR(cidr(self.t))", 31 }, { "cidr(self.s).ip().isLoopback()", 12 },
  { "cidr(self.s).masked().prefixLength() > 3", 13 }, { "isCIDR(self.s)", 10 },
  { "cidr(self.s) == cidr(self.s)", 21 }, { "!format.dns1123Label().validate(self.s).hasValue()", 261 },
  { "format.named(self.s).hasValue()", 4 }, { "format.dns1123Label() == format.uuid()", 9 },
  { "semver(self.s).isLessThan(semver('1.2.3'))", 12 }, { "isSemver(self.s)", 10 },
  { "semver(self.s) == semver(self.t)", 25 }, { "semver(self.s).major() > 1", 12 },
  { "self.?s.hasValue()", 3 }, { "self.?o.?a.orValue('abc') == self.s", 14 },
  { "self.o.?a.optMap(v, v.size()).orValue(3) > 2", 23 }, { "self.l[?0].orValue('x') == self.s", 14 },
  { "optional.of(self.i).value() == 3", 5 }, { "optional.none().hasValue()", 2 },
  { "self.?o.a.orValue('a') == 'b'", 4 }, { "self.?m['a'].orValue('a') == 'b'", 5 },
  { "[self.s, self.t].all(x, x.contains('ab'))", 23 }, { "{'a': self.s}.all(k, k != self.t)", 39 },
  { "{'a': self.s, self.t: 'b'}['a'] == 'c'", 36 }, { "[1, 2, 3].all(x, x < self.i)", 32 },
  { "[?self.?s].size() == 1", 14 }, { "{?'a': self.?s}.size() == 0", 34 },
  { "[].size() == 0 && {}.size() == 0", 44 },
  { "(self.b ? self.l : ['a']).all(x, x == 'abcdefghijk')", 41 },
  { "(self.b ? self.s : self.t).contains('abc')", 16 },
  { "(self.b ? [self.s] : [self.t]).all(x, x.contains(self.t))", 21 }, { "-self.i < 3 && !self.b", 7 },
  { "self.i + self.j * 2 - 1 > self.i / 3 % 2", 12 }, { "oldSelf.i == self.i", 4 },
  { "self.s == oldSelf.s", 12 }, { "self.l.all(x, oldSelf.l.exists(y, x == y))", 731 },
  { "self == oldSelf", 2 }, { "self.o == oldSelf.o", 4 }, { "self.l == oldSelf.l", 5 },
  { "self.m == oldSelf.m", 5 }, { "self.o.deep.l.all(x, x != self.o.a)", 80 },
  { "self.o.deep.l.all(x, self.o.deep.l.exists(y, y == x))", 395 }, { "type(self.s) == string", 4 },
  { "uint(self.i) == 3u", 4 }, { "double(self.i) > 2.0", 4 },
  { "self.l.all(x, self.l.all(y, self.l.all(z, x + y != z)))", 10629 },
  { "self.l.map(x, [x]).all(y, y[0] == 'a')", 217 },
  { "self.l.map(x, {x: x}).all(y, y.size() == 1)", 364 },
  { "self.objs.map(x, x).all(y, y.name == 'a')", 90 },
  { "self.l.map(x, x).map(y, y).all(z, z.contains('a'))", 235 },
  { "[[self.s]].all(x, x.all(y, y.contains('aaaaaaaaaaaaaa')))", 28 },
}

local function with(schema, ...)
  local copy = { ["x-kubernetes-validations"] = { ... } }
  for k, v in pairs(schema) do copy[k] = v end
  return copy
end

-- The number of repetitions of a rule with this cost that just exceeds the limit, and the factor by which it
-- does.
local function repeated(cost)
  local times = math.ceil(1.2 * LIMIT / cost)
  return times, ("%fx"):format(cost * times / LIMIT)
end

servers.each(function(name, start)
  describe("costs of rules on " .. name, function()
    local s, api, group
    lazy_setup(function()
      s = start {}
      api = new_api(s)
      group = ("cost-%d.example.com"):format(os.time() % 1000000)
    end)
    lazy_teardown(function()
      api:delete(DEFINITIONS .. "/things." .. group)
      s:stop()
    end)

    local function definition(properties)
      return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = "things." .. group },
        spec = { group = group, scope = "Namespaced", names = { kind = "Thing", plural = "things",
          singular = "thing", listKind = "ThingList" }, versions = { { name = "v1", served = true,
          storage = true, schema = { openAPIV3Schema = object(properties) } } } } }
    end

    -- The causes of a refused definition by their fields below `properties`; "" is the schema as a whole.
    local function causes(properties)
      local r = api:post(DEFINITIONS, definition(properties))
      assert.equal(422, r.code, r.text)
      local found = {}
      for _, cause in ipairs(r.body.details.causes) do
        local field = cause.field:gsub("^spec%.validation%.openAPIV3Schema%.?", ""):gsub("^properties", "")
        found[field] = found[field] or {}
        table.insert(found[field], cause.reason .. " " .. cause.message)
        table.sort(found[field])
      end
      return found
    end

    local function dear(what, factor)
      return ("FieldValueForbidden Forbidden: %s exceeds budget by factor of %s%s"):format(what, factor, HINT)
    end
    local TOTAL = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    local PART = "FieldValueForbidden Forbidden: contributed to estimated rule cost total exceeding cost "
      .. "limit for entire OpenAPIv3 schema"
    local RULE = "x-kubernetes-validations[0].rule"

    it("are estimated from the bounds of the schema", function()
      local properties = {}
      for i, case in ipairs(COSTS) do
        properties["p" .. i] = list(repeated(case[2]), with(object(PROPERTIES), { rule = case[1] }))
      end
      local said = causes(properties)
      for i, case in ipairs(COSTS) do
        local _, factor = repeated(case[2])
        local at = ("[p%d].items.%s"):format(i, RULE)
        local first = (said[at] or {})[1] == PART and said[at][2] or (said[at] or {})[1]
        assert.equal(dear("estimated rule cost", factor), first, case[1])
      end
    end)

    it("count for the definition as a whole", function()
      local properties = {}
      for i = 1, 12 do
        properties["p" .. i] = list(3000000 - i, with(object(PROPERTIES), { rule = "self.i < 3" }))
      end
      local said = causes(properties)
      local sum = 0
      for i = 1, 12 do sum = sum + 3 * (3000000 - i) end
      assert.same({ dear(TOTAL, ("%fx"):format(sum / SCHEMA_LIMIT)) }, said[""])
      for i = 1, 12 do
        assert.same(i <= 4 and { PART } or nil, said[("[p%d].items.%s"):format(i, RULE)], i)
      end
    end)

    it("are those of the largest request where the schema has no bounds", function()
      local said = causes {
        text = with({ type = "string" }, { rule = ("self.contains('%s')"):format(("a"):rep(400)) }),
        list = { type = "array", items = with({ type = "array", items = { type = "string" } },
          { rule = "self.all(x, self.all(y, x == y))" }) },
        map = { type = "object", additionalProperties = with({ type = "string" }, { rule = "self == 'abc'" },
          { rule = ("self == '%s'"):format(("a"):rep(200)) }) },
        object = { type = "array", items = with({ type = "object", required = { "name", "other" },
          properties = { name = { type = "string" }, other = INTEGER } }, { rule = "self.other < 3" },
          { rule = ("self.name != '%s'"):format(("a"):rep(1000)) }) },
      }
      local COST = "estimated rule cost"
      assert.same({
        [""] = { dear(TOTAL, "more than 100x") },
        ["[text]." .. RULE] = { PART, dear(COST, "1.258292x") },
        ["[list].items." .. RULE] = { PART, dear(COST, "more than 100x") },
        ["[map].additionalProperties.x-kubernetes-validations[1].rule"] = { PART, dear(COST, "2.2x") },
        ["[object].items.x-kubernetes-validations[1].rule"] = { PART, dear(COST, "1.395054x") },
      }, said)
    end)

    it("count for messages, and are forbidden within allOf", function()
      local said = causes { p = with(object { l = list(100, text(1000)) }, { rule = "true",
        messageExpression = "self.l.map(x, self.l.exists(y, x == y) ? x : '').join(' ')" }) }
      assert.same({
        [""] = { dear(TOTAL, "more than 100x") },
        ["[p].x-kubernetes-validations[0].messageExpression"] =
          { PART, dear("estimated messageExpression cost", "more than 100x") },
      }, said)
      local all = object { l = INTEGER }
      all.allOf = { { ["x-kubernetes-validations"] = { { rule = "self.l < 3" } } } }
      assert.same({ ["[p].allOf[0].x-kubernetes-validations"] =
        { "FieldValueForbidden Forbidden: must be empty to be structural" } }, causes { p = all })
    end)

    it("are named beside rules that do not compile", function()
      local said = causes {
        bad = with(object { s = with(text(3), { rule = "self.nope" }) }, { rule = "self.none" }),
        form = with(object { s = with(text(3), { rule = " " }) }, { rule = "self.none" }),
        dear = with(object { l = list(1000, text(1000)) }, { rule = "self.l.all(x, self.l.all(y, x == y))" }),
      }
      local fields = {}
      for field in pairs(said) do fields[#fields + 1] = field end
      table.sort(fields)
      assert.same({ "", "[bad].properties[s]." .. RULE, "[bad]." .. RULE, "[dear]." .. RULE,
        "[form].properties[s]." .. RULE }, fields)
    end)
  end)
end)
