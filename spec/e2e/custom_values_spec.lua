-- custom_values_spec.lua - custom resources that an API server rejects: patterns, formats, bounds, anyOf and
-- similar, embedded resources, duplicate list items.
-- not in tsan: one request after the other, and what answers them is pure

local json = require "dkjson"
local new_api = require "support.api"
local servers = require "support.servers"
local wait = require "support.wait"

local function object(t) return setmetatable(t or {}, { __jsontype = "object" }) end
local function list(...) return setmetatable({ ... }, { __jsontype = "array" }) end

local FITS = {
  bsonobjectid = { "507f1f77bcf86cd799439011" }, byte = { "YQ==" }, cidr = { "1.2.3.4/8", "::/0" },
  creditcard = { "4111-1111-1111-1111" }, date = { "2020-02-29" },
  ["date-time"] = { "2020-01-01T00:00:00Z", "2020-01-01t23:59:59z", "2020-01-01T00:00:00.5+02:00" },
  duration = { "1h30m", "-1s", "1 day", "2 weeks", "P1D" }, email = { "a@b", "Joe <a@b.c>" },
  hexcolor = { "#fff", "FFAA00" }, hostname = { "a", "ü.de", "kubernetes.io" },
  ipv4 = { "01.2.3.4", "::1.2.3.4" }, ipv6 = { "::1" }, isbn = { "978-0-306-40615-7", "0306406152" },
  isbn10 = { "080442957X" }, isbn13 = { "9780306406157" }, mac = { "00-00-5e-00-53-01", "0000.5e00.5301" },
  password = { "x" }, rgbcolor = { "rgb( 1 , 2 , 255 )" }, ssn = { "123-45-6789" },
  uri = { "http://a", "/a", "urn:x", "//x" }, uuid = { "123e4567e89b12d3a456426614174000" },
  uuid3 = { "123e4567-e89b-32d3-a456-426614174000" }, uuid4 = { "123e4567-e89b-42d3-a456-426614174000" },
  uuid5 = { "123e4567-e89b-52d3-a456-426614174000" }, ["made-up"] = { "", "x" },
}
local FAILS = {
  bsonobjectid = { "507f" }, byte = { "", "YQ" }, cidr = { "1.2.3.4", "1.2.3.0/33" },
  creditcard = { "4111111111111112" }, date = { "2020-02-30", "20200101" },
  ["date-time"] = { "2020-01-01", "2020-01-01T24:00:00Z", "2020-13-01T00:00:00Z" }, duration = { "5", "" },
  email = { "a", "@b" }, hexcolor = { "#ffff" }, hostname = { "a.b", "-a", "1.2.3.4", "a..bc" },
  ipv4 = { "1.2.3", "::1" }, ipv6 = { "1.2.3.4", "fe80::1%eth0" }, isbn = { "1" },
    isbn10 = { "0306406153" },
  isbn13 = { "9780306406158" }, mac = { "00:00", "00:00:5e:00:53:0g" }, rgbcolor = { "rgb(256,0,0)" },
  ssn = { "123456789" }, uri = { "", "a", " http://a", "http://a b" }, uuid = { "x" },
  uuid3 = { "123e4567-e89b-42d3-a456-426614174000" }, uuid4 = { "123e4567-e89b-42d3-c456-426614174000" },
  uuid5 = { "123e4567-e89b-42d3-a456-426614174000" },
}

local FIELDS = {
  pattern = { type = "string", pattern = "^[a-z]+$", minLength = 3, maxLength = 5 },
  short = { type = "string", enum = { "x", "y" }, maxLength = 1 },
  step = { type = "integer", multipleOf = 3, minimum = 1, maximum = 10 },
  share = { type = "number", minimum = 0.5, exclusiveMinimum = true, maximum = 2.5, multipleOf = 0.25 },
  any = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true,
    anyOf = { { required = { "a" } }, { required = { "b" } } } },
  one = { type = "object", properties = { a = { type = "string" }, b = { type = "string" } },
    oneOf = { { required = { "a" } }, { required = { "b" } } } },
  none = { type = "object", properties = { a = { type = "string" } }, ["not"] = { required = { "a" } } },
  all = { type = "string", allOf = { { minLength = 3 }, { pattern = "^x" } } },
  port = { ["x-kubernetes-int-or-string"] = true, anyOf = { { type = "integer" }, { type = "string" } },
    pattern = "^[0-9]+%?$" },
  embedded = { type = "object", ["x-kubernetes-embedded-resource"] = true,
    ["x-kubernetes-preserve-unknown-fields"] = true },
  set = { type = "array", items = { type = "string", pattern = "^a" }, minItems = 2, maxItems = 3,
    ["x-kubernetes-list-type"] = "set" },
  keyed = { type = "array", ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = { "name" },
    items = { type = "object", required = { "name" }, properties = { name = { type = "string" },
      port = { type = "integer" } } } },
  map = { type = "object", additionalProperties = { type = "integer", maximum = 3 }, minProperties = 1,
    maxProperties = 2 },
}

local LABEL = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \z
  '.', and "
  .. "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \z
    regex used "
  .. "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
local KIND = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case "
  .. "alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric \z
    character "
  .. "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

-- A field, its value, and the causes; without causes it is accepted.
local CASES = {
  { "pattern", "abcd" },
  { "pattern", "ABCD",
    [[spec.pattern: Invalid value: "ABCD": spec.pattern in body should match '^[a-z]+$']] },
  { "pattern", "A",
    [[spec.pattern: Invalid value: "A": spec.pattern in body should be at least 3 chars long]] },
  { "pattern", "abcdef", "spec.pattern: Too long: may not be more than 5 bytes" },
  { "pattern", 5,
    [[spec.pattern: Invalid value: "integer": spec.pattern in body must be of type string: "integer"]] },
  { "short", "x" }, { "short", "y" },
  { "short", "zz", "spec.short: Too long: may not be more than 1 byte",
    [[spec.short: Unsupported value: "zz": supported values: "x", "y"]] },
  { "step", 9 },
  { "step", 13, "spec.step: Invalid value: 13: spec.step in body should be a multiple of 3",
    "spec.step: Invalid value: 13: spec.step in body should be less than or equal to 10" },
  { "step", -1, "spec.step: Invalid value: -1: spec.step in body should be a multiple of 3",
    "spec.step: Invalid value: -1: spec.step in body should be greater than or equal to 1" },
  { "share", 0.5, "spec.share: Invalid value: 0.5: spec.share in body should be greater than 0.5" },
  { "share", 0.6, "spec.share: Invalid value: 0.6: spec.share in body should be a multiple of 0.25" },
  { "any", object { b = 1 } },
  { "any", object(), [[<nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf)]],
    "spec.any.a: Required value" },
  { "one", object { a = "x" } },
  { "one", object(),
    [[<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). ]]
    .. "Found none valid", "spec.one.a: Required value" },
  { "one", object { a = "x", b = "y" },
    [[<nil>: Invalid value: "": "spec.one" must validate one and only one ]]
    .. "schema (oneOf). Found 2 valid alternatives" },
  { "none", object { a = "x" },
    [[<nil>: Invalid value: "": "spec.none" must not validate the schema (not)]] },
  { "all", "a", [[spec.all: Invalid value: "a": spec.all in body should be at least 3 chars long]],
    [[spec.all: Invalid value: "a": spec.all in body should match '^x']],
    [[<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf). None validated]] },
  { "all", "abcd", [[spec.all: Invalid value: "abcd": spec.all in body should match '^x']],
    [[<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf)]] },
  { "port", 5 }, { "port", "5%" },
  { "port", "x", [[spec.port: Invalid value: "x": spec.port in body should match '^[0-9]+%?$']] },
  { "port", true,
    [[spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"]],
    [[<nil>: Invalid value: "": "spec.port" must validate at least one schema (anyOf)]],
    [[spec.port: Invalid value: "boolean": spec.port in body must be of type integer: "boolean"]] },
  { "embedded", object { apiVersion = "v1", kind = "X" } },
  { "embedded", object(), "spec.embedded.apiVersion: Required value",
    "spec.embedded.kind: Required value" },
  { "embedded", object { apiVersion = "a/b/c", kind = "x!" },
    [[spec.embedded.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c]],
    [[spec.embedded.kind: Invalid value: "x!": ]] .. KIND },
  { "embedded", object { apiVersion = "v1", kind = "X",
    metadata = object { labels = object { x = "a b" } } },
    [[spec.embedded.metadata.labels: Invalid value: "a b": ]] .. LABEL },
  { "set", list("b"), [[spec.set[0]: Invalid value: "b": spec.set[0] in body should match '^a']],
    "spec.set: Invalid value: 1: spec.set in body should have at least 2 items" },
  { "set", list("ab", "ab", "ac", "ad"), "spec.set: Too many: 4: must have at most 3 items",
    [[spec.set[1]: Duplicate value: "ab"]] },
  { "keyed", list({ name = "a", port = 1 }, { name = "a", port = 2 }),
    [[spec.keyed[1]: Duplicate value: {"name":"a"}]] },
  { "map", object(), "spec.map: Invalid value: 0: spec.map in body should have at least 1 properties" },
  { "map", object { a = 5, b = 1, c = 2 }, "spec.map: Too many: 3: must have at most 2 items",
    "spec.map.a: Invalid value: 5: spec.map.a in body should be less than or equal to 3" },
}

servers.each(function(name, start)
  describe(name .. " takes of custom resources", function()
    local s, api, group

    lazy_setup(function()
      s = start {}
      api = new_api(s)
      group = ("values%d.example.com"):format(os.time() % 1000000)
      local properties = {}
      for field, schema in pairs(FIELDS) do properties[field] = schema end
      for format in pairs(FITS) do properties["f" .. format] = { type = "string", format = format } end
      local crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
      local r = api:post(crds, { metadata = { name = "values." .. group }, spec = { group = group,
        scope = "Namespaced", names = { plural = "values", kind = "Value" }, versions = { { name = "v1",
          served = true,
          storage = true, schema = { openAPIV3Schema = { type = "object",
            properties = { spec = { type = "object",
            properties = properties } } } } } } } })
      assert.equal(201, r.code, r.text)
      assert.truthy((r.headers.warning or ""):find('unrecognized format \\"made-up\\"', 1, true), r.text)
      s:wait_established("crd", "values." .. group)
    end)
    lazy_teardown(function()
      api:delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/values." .. group)
      s:stop()
    end)

    -- The causes for one field, sorted, since the real server iterates over Go's maps.
    local function causes(field, value)
      local r = api:post(("/apis/%s/v1/namespaces/default/values?dryRun=All"):format(group),
        { apiVersion = group .. "/v1", kind = "Value", metadata = { name = "it" },
          spec = { [field] = value } })
      local said = {}
      if r.code == 422 then
        for i, cause in ipairs(r.body.details.causes) do said[i] = cause.field .. ": " .. cause.message end
      else
        assert.equal(201, r.code, r.text)
      end
      table.sort(said)
      return said
    end

    it("texts that have the format", function()
      for format, texts in pairs(FITS) do
        for _, text in ipairs(texts) do assert.same({}, causes("f" .. format, text), format) end
      end
    end)

    it("no texts that do not have it", function()
      for format, texts in pairs(FAILS) do
        for _, text in ipairs(texts) do
          local field = "spec.f" .. format
          assert.same({ ('%s: Invalid value: %s: %s in body must be of type %s: %s'):format(field,
            json.encode(text),
            field, format, json.encode(text)) }, causes("f" .. format, text))
        end
      end
    end)

    it("what fits the rest of the schema, and says what does not", function()
      for _, case in ipairs(CASES) do
        local want = { table.unpack(case, 3) }
        table.sort(want)
        assert.same(want, causes(case[1], case[2]), case[1] .. " " .. json.encode(case[2]))
      end
    end)

    it("with the deprecation warning of a version", function()
      local olds, crds = "olds." .. group, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
      local schema = { openAPIV3Schema = { type = "object" } }
      local r = api:post(crds, { metadata = { name = olds }, spec = { group = group, scope = "Namespaced",
        names = { plural = "olds", kind = "Old" }, versions = {
          { name = "v1", served = true, storage = true, schema = schema },
          { name = "v1beta1", served = true, storage = false, schema = schema, deprecated = true },
          { name = "v1alpha1", served = true, storage = false, schema = schema, deprecated = true,
            deprecationWarning = "do not" },
        } } })
      assert.equal(201, r.code, r.text)
      s:wait_established("crd", olds)
      local function warning(version)
        local found
        -- The real server needs a moment to serve a new kind.
        wait.until_true(30, "the kind is served", function()
          found = api:get(("/apis/%s/%s/namespaces/default/olds"):format(group, version))
          return found.code == 200
        end)
        return found.headers.warning
      end
      assert.is_nil(warning "v1")
      assert.equal(('299 - "%s/v1beta1 Old is deprecated; use %s/v1 Old"'):format(group, group),
        warning "v1beta1")
      assert.equal('299 - "do not"', warning "v1alpha1")
      api:delete(crds .. "/" .. olds)
    end)
  end)
end)
