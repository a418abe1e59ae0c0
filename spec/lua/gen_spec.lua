-- gen_spec.lua - kubelua gen: its modules can be required and checked, a second run changes nothing, and
-- invalid definitions are named.
-- not in asan, tsan: what is written is the subject

local cluster = require "kubelua.gen.cluster"
local kube = require "kubelua"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local quote = process.quote

local function gen(...)
  local words = { KUBELUA, "gen" }
  for _, word in ipairs { ... } do words[#words + 1] = quote(word) end
  return process.run(table.concat(words, " "))
end

local function directory()
  local dir = process.tmpname ".gen"
  process.run("mkdir -p " .. quote(dir))
  return dir
end

-- Every file of a directory and what is in it.
local function contents(dir)
  local files = {}
  for name in process.run("ls " .. quote(dir)):gmatch "%S+" do
    files[name] = process.read(dir .. "/" .. name)
  end
  return files
end

local function required(dir, name)
  local path = package.path
  package.path = dir .. "/?.lua;" .. dir .. "/?/init.lua;" .. path
  local ok, library = pcall(require, name)
  package.path = path
  assert.is_true(ok, library)
  return library
end

-- A definition as text; `more` is put into its version.
local function crd(options)
  options = options or {}
  return ([[
apiVersion: %s
kind: CustomResourceDefinition
metadata: { name: %s }
spec:
  group: %s
  scope: %s
  names: { kind: %s, plural: %s, singular: x, shortNames: [wg] }
  versions:
%s]]):format(options.api or "apiextensions.k8s.io/v1", options.name or "widgets.example.com",
    options.group or "example.com", options.scope or "Namespaced", options.kind or "Widget",
    options.plural or "widgets", options.versions or [[
  - name: v1
    served: true
    storage: true
    subresources: { status: {}, scale: { specReplicasPath: .spec.n, statusReplicasPath: .status.n } }
    additionalPrinterColumns: [{ name: Size, type: integer, jsonPath: .spec.size }]
    schema:
      openAPIV3Schema:
        type: object
        description: "A widget. It has\n  two lines."
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: { type: integer, description: How big it is. }
              mode: { type: string, enum: [fast, "slow \"er"] }
              odd-name: { type: string }
              $ref: { type: string }
              port: { x-kubernetes-int-or-string: true }
              cpu: { x-kubernetes-int-or-string: true, pattern: "^(([KMGTPE]i)|[numkMGTPE])$" }
              when: { type: string, format: date-time }
              ratio: { type: number }
              "on": { type: boolean }
              not: { type: boolean }
              labels: { type: object, additionalProperties: { type: string } }
              parts: { type: array, items: { type: object, properties: { a: { type: string } } } }
              matrix: { type: array, items: { type: array, items: { type: integer } } }
              free:
                type: object
                x-kubernetes-preserve-unknown-fields: true
                properties: { known: { type: string } }
              template:
                type: object
                x-kubernetes-embedded-resource: true
                x-kubernetes-preserve-unknown-fields: true
              anything: { x-kubernetes-preserve-unknown-fields: true }
              withDefault: { type: string, default: a }
          status: { type: object, properties: { "n": { type: integer } } }
]])
end

local function written(...)
  local dir = directory()
  for i, text in ipairs { ... } do process.write(("%s/%d.yaml"):format(dir, i), text) end
  return dir
end

describe("kubelua gen", function()
  it("turns no text of a definition into code", function()
    local out, own = directory(), '"%s\\nerror(\\"code\\")--"'
    local said, code = gen("--crds", written(crd { versions = ([[
  - name: v1
    served: true
    storage: true
    deprecated: true
    deprecationWarning: OWN
    additionalPrinterColumns: [{ name: OWN, type: integer, jsonPath: .spec.size }]
    schema:
      openAPIV3Schema:
        type: object
        description: OWN
        properties:
          spec:
            type: object
            properties:
              mode: { type: string, enum: [OWN, "a\\rerror(1)--"] }
              OWN: { type: object, properties: { x: { type: string } } }]]):gsub("OWN", own:format "x") }
      :gsub("%[wg%]", function() return "[" .. own:format "wg" .. "]" end)), "--out", out .. "/hostile")
    assert.equal(0, code, said)
    local text = process.read(out .. "/hostile/example_v1.lua")
    local comments = text:match "^(.-)return {"
    for line in comments:gmatch "[^\r\n]+" do assert.match("^%-%-", line) end
    assert.matches('x error("code")--', comments, 1, true)
    required(out, "hostile.example_v1")
  end)

  it("writes a module that can be required, and that knows the fields", function()
    local out = directory()
    local said, code = gen("--crds", written(crd()), "--out", out .. "/widgetry")
    assert.equal(0, code, said)
    assert.matches("1 resources and 5 types in 1 groups; 2 files written", said, 1, true)
    local library = required(out, "widgetry")
    local asked = {}
    local c = { get = function(_, ...) asked[#asked + 1] = { ... } end }
    library.clientset(c).example_v1.widgets("ns"):get "a"
    assert.same({ { "example.com/v1/Widget", "ns", "a" } }, asked)
    assert.is_function(library.clientset(c).example_v1.widgets.update_status)
    assert.is_function(library.clientset(c).example_v1.widgets.scale)
    local spec = {
      size = 1, mode = "fast", ["odd-name"] = "a", ["$ref"] = "b", port = "http", cpu = "1m",
      when = "2026-01-01T00:00:00Z", ratio = 0.5,
      on = true, ["not"] = false, labels = { a = "b" }, parts = { { a = "b" } }, matrix = { { 1, 2 }, {} },
      free = { known = "a", other = 1 },
      template = { kind = "x" }, anything = { 1 },
    }
    assert.same(spec, library.example_v1.Widget("w", "ns") { spec = spec }.spec)
    for field, wrong in pairs {
      size = "1", mode = 1, port = 1.5, cpu = true, ratio = "x", on = 1, labels = { a = 1 },
      parts = { { b = "c" } }, matrix = { 1 },
      free = { known = 1 }, template = "x", sizes = 1,
    } do
      assert.has_error(function()
        library.example_v1.Widget("w", "ns") { spec = { [field] = wrong } }
      end, nil, field)
    end
  end)

  it("annotates every field", function()
    local out = directory()
    gen("--crds", written(crd()), "--out", out .. "/widgetry", "--attribution", "Somebody's\nwords.")
    local text = contents(out .. "/widgetry")["example_v1.lua"]
    for _, line in ipairs {
      "-- Somebody's\n-- words.\n",
      "--- A widget. It has two lines.\n---@class widgetry.example.v1.WidgetApply\n",
      "---@class widgetry.example.v1.Widget: widgetry.example.v1.WidgetApply\n---@field apiVersion \z
        string\n---@field kind string\n"
        .. "---@field metadata kubelua.Metadata\n---@field spec widgetry.example.v1.WidgetSpec\n",
      "---@field size integer? How big it is.\n", "---@field size integer\n",
      "---@field mode widgetry.example.v1.WidgetSpecMode?\n",
      '---@alias widgetry.example.v1.WidgetSpecMode\n---| "fast"\n---| "slow \\"er"\n',
      '---@field ["odd-name"] string?\n', '---@field ["$ref"] string?\n',
      "---@field port (integer|string)?\n", "---@field cpu kubelua.Quantity?\n", "---@field when string?\n",
      "---@field ratio number?\n",
      "---@field on boolean?\n", '---@field ["not"] boolean?\n', "---@field labels table<string, string>?\n",
      "---@field parts widgetry.example.v1.WidgetSpecParts[]?\n",
      "---@field matrix integer[][]?\n", "---@field template table<string, any>?\n",
      "---@field anything any?\n",
      "---@class widgetry.example.v1.WidgetSpecFree\n---@field known string?\n---@field [string] any\n",
      "---@field withDefault string\n",
      "--- example.com/v1/Widget, namespaced; short: wg; columns: Size\n",
    } do
      assert.is_truthy(text:find(line, 1, true), "missing: " .. line .. "\nin:\n" .. text)
    end
  end)

  it("changes nothing the second time, and removes obsolete files", function()
    local out = directory() .. "/m"
    local both = written(crd(), crd { name = "gadgets.other.org", group = "other.org", kind = "Gadget",
      plural = "gadgets" })
    gen("--crds", both, "--out", out)
    local before = contents(out)
    assert.is_string(before["other_v1.lua"])
    local said = gen("--crds", both, "--out", out)
    assert.matches("0 files written, 3 unchanged, 0 removed", said, 1, true)
    assert.same(before, contents(out))
    said = gen("--crds", written(crd()), "--out", out)
    assert.matches("1 files written, 1 unchanged, 1 removed", said, 1, true)
    assert.is_nil(contents(out)["other_v1.lua"])
  end)

  it("does not depend on the order of its input", function()
    local a, b = directory() .. "/m", directory() .. "/m"
    local other = crd { name = "gadgets.example.com", kind = "Gadget", plural = "gadgets" }
    gen("--crds", written(crd() .. "---\n" .. other), "--out", a)
    gen("--crds", written(other .. "---\n" .. crd()), "--out", b)
    assert.same(contents(a), contents(b))
  end)

  it("never overwrites files that it did not write", function()
    local out = directory()
    process.write(out .. "/example_v1.lua", "return 1\n")
    local said, code = gen("--crds", written(crd()), "--out", out, "--name", "m")
    assert.equal(1, code)
    assert.matches("example_v1.lua was not generated and would be overwritten", said, 1, true)
    assert.same({ ["example_v1.lua"] = "return 1\n" }, contents(out))
  end)

  it("includes every served version, and skips objects that are not definitions", function()
    local versions = ""
    for _, v in ipairs { { "v1", "true" }, { "v1beta1", "true" }, { "v1alpha1", "false" } } do
      versions = versions
        .. ("  - { name: %s, served: %s, storage: false, schema: { openAPIV3Schema: { type: object, \z
        x-kubernetes-preserve-unknown-fields: true } } }\n"):format(v[1], v[2])
    end
    local out = directory()
    local said, code = gen("--crds", written(crd { versions = versions }
      .. "---\n{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }\n--- 5\n"), "--out", out .. "/m")
    assert.equal(0, code, said)
    assert.matches("a ConfigMap is left out", said, 1, true)
    assert.matches("not a Kubernetes object is left out", said, 1, true)
    local names = {}
    for name in pairs(contents(out .. "/m")) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "example_v1.lua", "example_v1beta1.lua", "init.lua" }, names)
    -- A schema that preserves unknown fields accepts any field.
    assert.equal(1, required(out, "m").example_v1.Widget("w", "ns") { whatever = 1 }.whatever)
  end)

  it("joins groups with the same word, and separates them if they share a kind", function()
    local out = directory()
    local joined = written(crd(), crd { name = "gadgets.example.org", group = "example.org", kind = "Gadget",
      plural = "gadgets" })
    gen("--crds", joined, "--out", out .. "/joined")
    assert.is_function(required(out, "joined").example_v1.Gadget)
    assert.is_function(required(out, "joined").example_v1.Widget)
    local parted = written(crd(), crd { name = "widgets.example.org", group = "example.org" })
    gen("--crds", parted, "--out", out .. "/parted")
    assert.equal("example.org/v1", required(out, "parted").example_org_v1.Widget("w", "ns") {}.apiVersion)
    assert.equal("example.com/v1", required(out, "parted").example_com_v1.Widget("w", "ns") {}.apiVersion)
  end)

  it("shares equal types within a kind", function()
    local class = "{ type: object, properties: { cpuQOS: { type: object, properties: { enable: { type: \z
      boolean } } } } }"
    local versions = ("  - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: \z
      object, properties: { spec: { type: object, "
      .. "properties: { be: %s, ls: %s, alone: { type: object, properties: { x: { type: string } } } } } } \z
        } } }\n"):format(class, class)
    local out = directory()
    gen("--crds", written(crd { versions = versions }), "--out", out .. "/folded")
    assert.same({
      Widget = "apiVersion=s kind=s metadata=m spec=@WidgetSpec",
      WidgetSpec = "alone=@WidgetSpecAlone be=@WidgetSpecValue ls=@WidgetSpecValue", WidgetSpecAlone = "x=s",
      WidgetSpecValue = "cpuQOS=@WidgetCpuQOS", WidgetCpuQOS = "enable=b",
    }, dofile(out .. "/folded/example_v1.lua").types)
  end)

  local none = "  - { name: v1, served: true, storage: true }\n"
  for what, case in pairs {
    ["has no CustomResourceDefinition"] = { "{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }",
      "no CustomResourceDefinition in" },
    ["is not YAML"] = { "a: [1,", "while parsing" },
    ["is old"] = { crd { api = "apiextensions.k8s.io/v1beta1" },
      "Kubernetes serves only apiextensions.k8s.io/v1 since 1.22" },
    ["has no schema"] = { crd { versions = none },
      "widgets.example.com: version v1 has no schema.openAPIV3Schema" },
    ["serves nothing"] = { crd { versions = none:gsub("true", "false", 1) }, "serves none of its versions" },
    ["has no versions"] = { crd { versions = "    []\n" }, "has no spec.versions" },
    ["has a version twice"] = { crd { versions = none:gsub("true", "false", 1)
      .. none:gsub("true", "false", 1) }, "lists version v1 twice" },
    ["has a wrong scope"] = { crd { scope = "Everywhere" },
      "spec.scope must be Namespaced or Cluster, got Everywhere" },
    ["has a wrong kind"] = { crd { kind = "widget" },
      'spec.names.kind must begin with an upper-case letter and have only letters and digits, such as \z
      Widget; got "widget"' },
    ["has a wrong plural"] = { crd { plural = "Widgets", name = "Widgets.example.com" },
      'spec.names.plural must be lower case, such as widgets; got "Widgets"' },
    ["has a wrong name"] = { crd { name = "things.example.com" },
      'metadata.name must be "widgets.example.com" (plural and group), got "things.example.com"' },
    ["is there twice"] = { crd() .. "---\n" .. crd(), "widgets.example.com is already defined in" },
    ["has a $ref"] = { crd { versions = "  - { name: v1, served: true, schema: { openAPIV3Schema: { type: \z
      object, properties: { spec: { $ref: '#/x' } } } } }\n" },
      "has a $ref (#/x), which a CRD cannot have" },
    ["has a schema that is none"] = {
      crd { versions = "  - { name: v1, served: true, schema: { openAPIV3Schema: { type: object, \z
      properties: { spec: 5 } } } }\n" },
      "the schema is not valid: the schema of spec is 5, and must be an object" },
    ["has a schema that is a text"] = {
      crd { versions = "  - { name: v1, served: true, schema: { openAPIV3Schema: x } }\n" },
      "openAPIV3Schema must be an object, got x" },
    ["has properties that are none"] = {
      crd { versions = "  - { name: v1, served: true, schema: { openAPIV3Schema: { type: object, \z
      properties: { spec: { type: object, properties: 7 } } } } }\n" },
      "the properties of WidgetSpec are 7, and must be an object" },
    ["is nested without end"] = {
      crd { versions = "  - { name: v1, served: true, schema: { openAPIV3Schema: { type: object, \z
      properties: { spec: "
      .. ("{ type: array, items: "):rep(70) .. "{ type: string }" .. (" }"):rep(70) .. " } } } }\n" },
        "nested deeper than 64 levels" },
  } do
    it("names a definition that " .. what .. ", and writes nothing", function()
      local out = directory() .. "/m"
      local said, code = gen("--crds", written(case[1]), "--out", out)
      assert.equal(1, code, said)
      assert.is_truthy(said:find(case[2], 1, true), said)
      assert.is_falsy(said:find "%.lua:%d+:", said)
      assert.is_nil(process.read(out .. "/init.lua"))
    end)
  end

  for what, case in pairs {
    ["nothing"] = { {}, 2, "give the definitions" },
    ["no --out"] = { { "--crds", "x" }, 2, "name the directory for the modules" },
    ["both sources"] = { { "--crds", "x", "--from-cluster", "--out", "y" }, 2, "exclude each other" },
    ["--groups without a cluster"] = { { "--crds", "x", "--groups", "apps", "--out", "y" }, 2,
      "--groups needs --from-cluster" },
    ["a word"] = { { "clients", "--out", "y" }, 2, "takes no arguments, got clients" },
    ["a path that is not there"] = { { "--crds", "no/such/path", "--out", "y" }, 1,
      "cannot read no/such/path" },
    ["a directory without definitions"] = { { "--crds", "spec/lua", "--out", "y" }, 1,
      "spec/lua has no file that ends in .yaml, .yml or .json" },
    ["a name that is none"] = { { "--crds", "controllers/koordinator/crds", "--out", "y", "--name", "a-b" },
      1, '"a-b" is not a name of a module' },
  } do
    it("says what is wrong with " .. what, function()
      local said, code = gen(table.unpack(case[1]))
      assert.equal(case[2], code, said)
      assert.is_truthy(said:find(case[3], 1, true), said)
    end)
  end

  it("includes modules beside it", function()
    local out = directory() .. "/mine"
    process.run("mkdir -p " .. quote(out))
    process.write(out .. "/words.lua", 'return { hello = "world" }\n')
    local said, code = gen("--crds", written(crd()), "--out", out, "--also", "words")
    assert.equal(0, code, said)
    assert.equal("world", required(out:match "^(.*)/", "mine").words.hello)
    assert.is_function(required(out:match "^(.*)/", "mine").example_v1.Widget)
    said, code = gen("--crds", written(crd()), "--out", out, "--also", "Some-Thing")
    assert.equal(2, code)
    assert.matches('--also takes the name of a module in lower case, not "Some-Thing"', said, 1, true)
  end)

  it("tolerates definitions with arbitrary values", function()
    local crds = require "kubelua.gen.crds"
    local fold, write = require "kubelua.gen.fold", require "kubelua.gen.write"
    local whole = kube.encode(kube.yaml(crd())[1])
    local seed = os.time()
    math.randomseed(seed)
    local junk = { "text", 5, true, kube.null, kube.array {}, kube.object {}, 1.5, { "a" }, { a = "b" },
      { type = "object" }, { type = 7 }, "" }
    local function places(t, list)
      for key, value in pairs(t) do
        list[#list + 1] = { t, key }
        if type(value) == "table" then places(value, list) end
      end
      return list
    end
    local made = 0
    for round = 1, tonumber(os.getenv "KL_GEN_ROUNDS" or 200) do
      local broken = kube.copy(kube.decode(whole))
      for _ = 1, math.random(3) do
        local list = places(broken, {})
        local place = list[math.random(#list)]
        if place then place[1][place[2]] = kube.copy(junk[math.random(#junk)]) end
      end
      local path = process.write(process.tmpname ".json", kube.encode(broken))
      local ok, result = pcall(function()
        local library = crds.library("m", { path })
        library.from, library.also = "x", {}
        fold.fold(library)
        for name, text in pairs(write.files(library)) do assert(load(text, name)) end
      end)
      os.remove(path)
      made = made + (ok and 1 or 0)
      -- Errors are messages for users: no position in our code, no error of Lua.
      if not ok then
        assert.is_string(result)
        assert.is_falsy(result:find "%.lua:%d+:", ("seed %d, round %d: %s\n%s"):format(seed, round, result,
          kube.encode(broken)))
      end
    end
    assert.is_true(made > 20, "some are still definitions: " .. made)
  end)

  it("reproduces Koordinator's committed library", function()
    local out = directory() .. "/koordinator"
    local head = process.read("lua/kubelua/koordinator/init.lua")
    local attribution = head:match "From:\n%-%-   [^\n]+\n%-%- (.-)\n%-%-\n":gsub("\n%-%- ", "\n")
    local said, code = gen("--crds", "controllers/koordinator/crds", "--out", out, "--name",
      "kubelua.koordinator", "--lazy",
      "--also", "constants", "--attribution", attribution)
    assert.equal(0, code, said)
    local committed = contents "lua/kubelua/koordinator"
    committed["constants.lua"] = nil
    assert.same(committed, contents(out))
  end)
end)

-- The kinds of a group version that the server's OpenAPI has.
local function published(c, path)
  local document = kube.try(c.raw, c, "GET", "/openapi/v3/" .. path)
  local kinds = {}
  for _, schema in pairs(document and document("components", "schemas") or {}) do
    for _, of in ipairs(schema "x-kubernetes-group-version-kind" or {}) do kinds[of.kind] = true end
  end
  return kinds
end

-- A server with Koordinator's definitions, which it publishes some time after it has established them.
local function with_koordinator(start)
  local server = start { crds = { "controllers/koordinator/crds" } }
  local c <close> = kube.connect { kubeconfig = server.kubeconfig }
  for o in c:each "apiextensions.k8s.io/v1/CustomResourceDefinition" do
    for _, version in ipairs(o.spec.versions) do
      local path = ("apis/%s/%s"):format(o.spec.group, version.name)
      wait.until_true(60, path .. " in OpenAPI", function()
        return not version.served or published(c, path)[o.spec.names.kind]
      end)
    end
  end
  return server
end

servers.only_real(function(server_name, start)
  describe("kubelua gen --from-cluster, of " .. server_name, function()
    local server
    lazy_setup(function() server = with_koordinator(start) end)
    lazy_teardown(function() server:stop() end)

    it("reproduces the committed built-in library, and adds the custom kinds", function()
      local out = directory() .. "/kubernetes"
      local head = process.read("lua/kubelua/kubernetes/init.lua")
      local attribution = head:match "From:\n%-%-   [^\n]+\n%-%- (.-)\n%-%-\n"
      local said, code = gen("--from-cluster", "--kubeconfig", server.kubeconfig, "--out", out, "--name",
        "kubelua.kubernetes", "--lazy", "--attribution", attribution)
      assert.equal(0, code, said)
      local ours, theirs = contents "lua/kubelua/kubernetes", contents(out)
      for name, text in pairs(ours) do
        -- The group scheduling has custom kinds here, in a version without built-in ones.
        if name ~= "init.lua" then assert.equal(text, theirs[name], name) end
      end
      assert.is_string(theirs["slo_v1alpha1.lua"])
    end)
  end)
end)

servers.each(function(server_name, start)
  describe("kubelua gen --from-cluster, against " .. server_name, function()
    local server
    lazy_setup(function() server = with_koordinator(start) end)
    lazy_teardown(function() server:stop() end)

    it("gives the same result for a custom kind as its definition", function()
      local out = directory()
      local said, code = gen("--from-cluster", "--kubeconfig", server.kubeconfig, "--groups",
        "slo.koordinator.sh", "--out", out .. "/koordinator")
      assert.equal(0, code, said)
      local from_crd, live = dofile "lua/kubelua/koordinator/slo_v1alpha1.lua",
        dofile(out .. "/koordinator/slo_v1alpha1.lua")
      assert.same(from_crd, live)
    end)

    it("reads the index again when a document has changed since", function()
      local c <close> = kube.connect { kubeconfig = server.kubeconfig }
      local indexes, moved = 0, 0
      local stale = { version = function() return c:version() end }
      function stale:raw(verb, path)
        if path == "/openapi/v3" then indexes = indexes + 1 end
        if path:find "^/openapi/v3/.*hash=" and moved < 2 then
          moved, path = moved + 1, path:gsub("hash=%x+", "hash=0")
        end
        return c:raw(verb, path)
      end
      assert.is_table(cluster.library("some", stale, { apps = true }).groups)
      assert.same({ 3, 2 }, { indexes, moved })
    end)

    it("includes the named groups and their references", function()
      local out = directory()
      local said, code = gen("--from-cluster", "--kubeconfig", server.kubeconfig, "--groups", "apps,core",
        "--out", out .. "/some")
      assert.equal(0, code, said)
      local library = required(out, "some")
      assert.is_function(library.apps_v1.Deployment)
      assert.is_function(library.core_v1.Pod)
      library.core_v1.PodSpec { containers = { { name = "a",
        resources = { limits = { cpu = "500m", memory = 1 } } } } }
      assert.has_error(function()
        library.core_v1.PodSpec { containers = { { resources = { limits = { cpu = {} } } } } }
      end)
      assert.error_matches(function() return library.batch_v1 end, "some.batch_v1: unknown field")
      said, code = gen("--from-cluster", "--kubeconfig", server.kubeconfig, "--groups", "aps", "--out",
        out .. "/none")
      assert.equal(1, code)
      assert.matches('the server has no API group "aps"; did you mean \'apps\'?', said, 1, true)
    end)
  end)
end)
