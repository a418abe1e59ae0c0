-- cli_spec.lua - get, apply, delete, watch and version, as a user calls them. Tables must equal kubectl's.
-- not in tsan: commands of one thread

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local function quoted(...)
  local words = {}
  for i, word in ipairs { ... } do words[i] = process.quote(word) end
  return table.concat(words, " ")
end

local MANIFESTS = [[
apiVersion: v1
kind: Pod
metadata: { name: a, labels: { app: web, tier: front } }
spec: { nodeName: n1, containers: [{ name: main, image: "example.com/a:1", env: [{ name: X, value: "1" }] },
  { name: side, image: "example.com/s:1" }] }
---
apiVersion: v1
kind: Pod
metadata: { name: b, labels: { app: web } }
spec: { containers: [{ name: main, image: "example.com/b:1" }] }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { a: "1", b: two }
---
apiVersion: v1
kind: Service
metadata: { name: front }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } },
    spec: { containers: [{ name: main, image: "example.com/a:1" }] } }
]]

local CRD = [[
apiVersion: example.com/v1
kind: Gadget
metadata: { name: first }
spec: { size: 3 }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gadgets.%s.example.com }
spec:
  group: %s.example.com
  names: { kind: Gadget, plural: gadgets, singular: gadget, shortNames: [gd%s] }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{ name: Size, type: integer, jsonPath: .spec.size }]
    schema: { openAPIV3Schema: { type: object,
      properties: { spec: { type: object, properties: { size: { type: integer } } } } } }
]]

-- Removes ages, which change between two commands, and the column widths that depend on them.
local function still(out)
  return (out:gsub("%f[%w]%d+[smhd]%d*[smhd]?%f[%W]", "AGE"):gsub("[ \t]+", " "):gsub(" \n", "\n"))
end

servers.each(function(name, start)
  describe("the command line on " .. name, function()
    local s, c, ns, file

    -- Output and errors together, and the status.
    local function kubelua(...)
      return process.run(("%s %s --kubeconfig %s -n %s"):format(KUBELUA, quoted(...),
        process.quote(s.kubeconfig), ns))
    end
    local function must(...)
      local out, code = kubelua(...)
      assert.equal(0, code, out)
      return out
    end
    local function fails(status, said, ...)
      local out, code = kubelua(...)
      assert.equal(status, code, out)
      assert.truthy(out:find(said, 1, true), out)
    end

    lazy_setup(function()
      s = start()
      c = controller.client(s)
      ns = controller.namespace(c, "cli")
      file = process.write(process.tmpname ".yaml", MANIFESTS)
      must("apply", "-f", file)
    end)
    lazy_teardown(function()
      if c then c:close() end
      if s then s:stop() end
    end)

    -- ------------------------------------------------------------ get

    it("prints the server's tables as kubectl does", function()
      for _, words in ipairs {
        { "get", "pods" }, { "get", "po", "-o", "wide" }, { "get", "deploy,svc" },
        { "get", "configmaps", "settings" }, { "get", "pod/a", "service/front" },
        { "get", "pods", "-l", "tier=front", "--show-labels" }, { "get", "pods", "--no-headers" },
        { "get", "po", "-A", "--field-selector", "metadata.namespace=" .. ns },
        { "get", "pods", "-o", "name" }, { "get", "deployments.apps", "-o", "name" },
        { "get", "pods", "--sort-by", ".spec.containers[0].image" },
        { "get", "pods", "-o",
          "custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[0].image,NODE:.spec.nodeName" },
        { "get", "pods", "-o", "jsonpath={range \z
          .items[*]}{.metadata.name}{\"\\t\"}{.spec.containers[*].image}{\"\\n\"}{end}" },
        { "get", "pods", "-o", "jsonpath={.items[?(@.metadata.name==\"a\")].spec.containers[-1:].name} \z
          {.items[0].metadata.labels['app']}" },
        { "get", "pod", "a", "-o", "jsonpath={.spec.containers[0].env[0].name}={..image}" },
      } do
        local said = table.concat(words, " ")
        -- On a shared server, a row may appear or disappear between the two commands.
        wait.until_true(10, said, function()
          return assert.equal(still(s:must_kubectl("-n", ns, table.unpack(words))),
            still(must(table.unpack(words)))) and true
        end)
      end
    end)

    it("aligns its columns", function()
      local out = must("get", "pods")
      local at
      for line in out:gmatch "[^\n]+" do
        local second = line:match "^%S+%s+()"
        at = at or second
        assert.equal(at, second, out)
      end
    end)

    it("prints YAML and JSON that can be applied again", function()
      local kube = require "kubelua"
      local one = kube.yaml(must("get", "cm", "settings", "-o", "yaml"), "out")[1]
      assert.same({ "ConfigMap", "two" }, { one.kind, one.data.b })
      assert.is_nil(one("metadata.managedFields"))
      assert.truthy(kube.yaml(must("get", "cm", "settings", "-o", "yaml", "--show-managed-fields"),
        "out")[1]("metadata.managedFields"))
      local list = kube.decode(must("get", "pod/a", "cm/settings", "-o", "json"))
      assert.same({ "List", 2, "a", "settings" }, { list.kind, #list.items, list.items[1].metadata.name,
        list.items[2].metadata.name })
      assert.equal("1\n", must("get", "cm/settings", "-o", "path=data.a"))
      assert.equal("example.com/a:1\nexample.com/s:1\n",
        must("get", "po", "a", "-o", "path=spec.containers[*].image"))
    end)

    it("reports a missing object, and continues", function()
      local out, code = kubelua("get", "pods", "a", "nope")
      assert.equal(1, code)
      assert.truthy(out:find("kubelua get: pod/nope is not there, in namespace " .. ns, 1, true), out)
      assert.truthy(out:find("\na   ", 1, true), out)
      assert.truthy(must("get", "pods", "nope", "--ignore-not-found"))
      assert.equal(("no jobs.batch in namespace %s (-A searches all)\n"):format(ns), must("get", "jobs"))
      fails(1, "did you mean", "get", "podz")
    end)

    it("watches a table", function()
      local pod = c:create { kind = "v1/ConfigMap", namespace = ns, name = "moving", data = {} }
      local watch = process.spawn { KUBELUA, "get", "cm", "moving", "-w", "--kubeconfig", s.kubeconfig, "-n",
        ns }
      watch:wait_for_log(10, "moving   0")
      c:patch(pod, { data = { x = "1", y = "2" } })
      watch:wait_for_log(10, "moving   2")
      c:delete(pod)
      wait.until_true(10, "the row of the deletion", function()
        return select(2, watch:log():gsub("moving   2", "")) == 2
      end)
      watch:kill()
    end)

    -- ------------------------------------------------------------ apply

    it("applies, and reports the result for each object", function()
      local path = process.tmpname ".yaml"
      process.write(path, "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: \z
        {name: applied}, data: {a: '1'}}]}")
      assert.equal("configmap/applied created (dry run)\n", must("apply", "-f", path, "--dry-run"))
      assert.equal("configmap/applied created\n", must("apply", "-f", path))
      assert.equal("configmap/applied unchanged\n", must("apply", "-f", path))
      process.write(path, (process.read(path):gsub("'1'", "'2'")))
      assert.equal("configmap/applied configured (dry run)\n", must("apply", "-f", path, "--dry-run=server"))
      assert.equal('configmap/applied configured\n  data.a: "1" -> "2"\n',
        must("apply", "-f", path, "--diff"))
      assert.equal("2", c:get("v1/ConfigMap", ns, "applied").data.a)
      local out, code = kubelua("apply", "-f", path, "--field-manager", "other")
      assert.equal(0, code, out)
      process.write(path, (process.read(path):gsub("'2'", "'3'")))
      fails(1, "--force takes those fields over", "apply", "-f", path, "--field-manager", "other")
      assert.equal("configmap/applied configured\n", must("apply", "-f", path, "--field-manager", "other",
        "--force"))
    end)

    it("applies a Secret and names changed keys without values", function()
      local kube = require "kubelua"
      local path = process.tmpname ".yaml"
      local function secret(value)
        process.write(path, ("{apiVersion: v1, kind: Secret, metadata: {name: hidden, annotations: \z
          {kubectl.kubernetes.io/last-applied-configuration: %s}}, stringData: {a: %s}}"):format(value,
            value))
      end
      secret "first"
      must("apply", "-f", path)
      secret "second"
      for _, format in ipairs { "plain", "json" } do
        local out = must("apply", "-f", path, "--diff", "--dry-run=server", "-o", format)
        assert.is_truthy(out:find("data.a", 1, true) and out:find("changed", 1, true), out)
        for _, value in ipairs { "first", "second", (kube.base64_encode "first"),
          (kube.base64_encode "second") } do
          assert.is_nil(out:find(value, 1, true), out)
        end
      end
    end)

    it("applies a definition and its object in any order, and shows it", function()
      local id = ns:gsub("%-", "")
      local dir = process.tmpname ".d"
      process.run("mkdir -p " .. process.quote(dir))
      process.write(dir .. "/a.yaml", (CRD:format(id, id, id):gsub("apiVersion: example",
        "apiVersion: " .. id .. ".example")))
      process.write(dir .. "/ignored.txt", "no: [")
      assert.equal(("customresourcedefinition.apiextensions.k8s.io/gadgets.%s.example.com \z
        created\ngadget.%s.example.com/first created\n"):format(id, id),
        must("apply", "-f", dir))
      assert.equal("NAME    SIZE\nfirst   3\n", must("get", "gd" .. id))
      assert.equal("3\n", must("get", ("%s.example.com/v1/Gadget/first"):format(id), "-o", "path=spec.size"))
      local out = must("delete", "-f", dir)
      assert.equal(("gadget.%s.example.com/first deleted from \z
        %s\ncustomresourcedefinition.apiextensions.k8s.io/gadgets.%s.example.com deleted\n"):format(id, ns,
        id), out)
    end)

    it("reads standard input", function()
      local out,
        code = process.run(("printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: piped}\n' | %s apply \z
        -f - --kubeconfig %s -n %s"):format(
        KUBELUA, process.quote(s.kubeconfig), ns))
      assert.equal("configmap/piped created\n0", out .. code)
    end)

    it("continues after a rejected object, and names its file", function()
      local path = process.write(process.tmpname ".yaml", [[
{apiVersion: v1, kind: ConfigMap, metadata: {name: Wrong_Name}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: typo}, dat: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}
]])
      local out, code = kubelua("apply", "-f", path)
      assert.equal(1, code)
      for _, said in ipairs { path .. ", document 1: ", "document 2: ", "dat",
        "document 3: configmap/elsewhere is in namespace other, but -n is " .. ns,
        "configmap/good created" } do
        assert.truthy(out:find(said, 1, true), said .. " is not in\n" .. out)
      end
    end)

    -- ------------------------------------------------------------ delete

    local function maps(...)
      for _, map in ipairs { ... } do
        c:create { kind = "v1/ConfigMap", namespace = ns, name = map, labels = { of = "delete" } }
      end
    end

    it("deletes by name or selector, and waits until the objects are gone", function()
      maps("d1", "d2", "d3", "d4")
      assert.equal(("configmap/d1 deleted from %s (dry run)\n"):format(ns),
        must("delete", "cm", "d1", "--dry-run"))
      assert.equal(("configmap/d1 deleted from %s\nconfigmap/d2 deleted from %s\n"):format(ns, ns),
        must("delete", "cm/d1", "cm/d2"))
      must("delete", "configmaps", "-l", "of=delete")
      assert.same({}, c:list("v1/ConfigMap", { namespace = ns, labels = "of=delete" }))
      fails(1, "configmap/d1 does not exist in namespace", "delete", "cm", "d1")
      assert.equal("", must("delete", "cm", "d1", "--ignore-not-found"):gsub(
        "nothing to delete\n", ""))
    end)

    it("reports what holds an object that is not deleted in time", function()
      local map = c:create { apiVersion = "v1", kind = "ConfigMap",
        metadata = { namespace = ns, name = "held", finalizers = { "example.com/hold" } } }
      fails(1, "configmap/held still existed after the timeout; finalizers hold it: example.com/hold",
        "delete", "cm",
        "held", "--timeout", "1s")
      assert.truthy(must("delete", "cm", "held", "--wait=false"):find("deleted", 1, true))
      c:patch(map, { metadata = { finalizers = require("kubelua").null } })
      wait.until_true(5, "it is gone", function() return c:get("v1/ConfigMap", ns, "held") == nil end)
    end)

    -- ------------------------------------------------------------ watch

    it("shows changes", function()
      local watch = process.spawn { KUBELUA, "watch", "cm,", "-l", "of=watch", "--kubeconfig", s.kubeconfig,
        "-n", ns }
      watch:wait_for_log(10, "watching configmaps in namespace " .. ns)
      local map = c:create { kind = "v1/ConfigMap", namespace = ns, name = "w", labels = { of = "watch" },
        data = { a = "1" } }
      watch:wait_for_log(10, "ADDED    " .. ns .. "/w")
      c:patch(map, { data = { a = "2", b = "x" } })
      watch:wait_for_log(10, ("MODIFIED %s/w  data.a: \"1\" -> \"2\", data.b: none -> \"x\""):format(ns))
      c:delete(map)
      watch:wait_for_log(10, "DELETED  " .. ns .. "/w")
      watch:kill()
      local secret = process.spawn { KUBELUA, "watch", "secrets", "--events", "2", "--kubeconfig",
        s.kubeconfig, "-n", ns }
      secret:wait_for_log(10, "watching secrets")
      local hidden = c:create { kind = "v1/Secret", namespace = ns, name = "s", data = { password = "b2xk" } }
      c:patch(hidden, { data = { password = "bmV3" } })
      assert.equal(0, secret:wait(10))
      assert.truthy(secret:log():find("data.password: (changed)", 1, true), secret:log())
      assert.is_nil(secret:log():find("bmV3", 1, true))
    end)

    -- ------------------------------------------------------------ the rest

    it("says which server answers", function()
      assert.truthy(must("version", "--server"):find("\nserver v%d+%.%d+%.%d+"))
    end)

    it("survives a closed output pipe", function()
      local out,
        code = process.run(("%s get apiservices,crd,ns,events,po,cm -A -o yaml --kubeconfig %s | head -1; \z
        exit ${PIPESTATUS:-0}"):format(KUBELUA, s.kubeconfig))
      assert.equal("apiVersion: v1\n0", out .. code)
    end)

    it("reads a kubeconfig from a pipe, and waits for no device", function()
      local get = KUBELUA .. " get ns default -o path=metadata.name --kubeconfig "
      assert.equal("default\n", (process.run(("cat %s | %s /dev/stdin"):format(s.kubeconfig, get))))
      local out, code = process.run(get .. "/dev/zero")
      assert.equal(1, code)
      assert.matches("/dev/zero is a device, not a regular file", out, 1, true)
    end)

    it("fails when its output cannot be written", function()
      local out, code = process.run(("%s get ns --kubeconfig %s > /dev/full"):format(KUBELUA, s.kubeconfig))
      assert.equal(1, code)
      assert.truthy(out:find("kubelua get: cannot write the output: No space left on device", 1, true), out)
    end)

    it("explains an invalid command line", function()
      fails(2, "name a kind", "get")
      fails(2, "unknown option --outptu, did you mean --output?", "get", "po", "--outptu", "x")
      fails(2, "unknown option -x in -Ax", "get", "po", "-Ax")
      fails(2, "not \"jsn\", did you mean json?", "get", "po", "-o", "jsn")
      fails(2, "--limit must be a whole number, 0 or more, not many", "get", "po", "--limit", "many")
      fails(2, "give either KIND/NAME for each", "get", "po/a", "b")
      fails(2, "a name is in one namespace", "get", "po", "a", "-A")
      fails(2, "is neither a kind nor KIND/NAME", "get", "a/b/c/d/e")
      fails(1, "jsonpath: [ is not closed, at character", "get", "po", "-o", "jsonpath={.items[}")
      fails(2, "--output path= needs the part to show", "get", "po", "-o", "path=")
      fails(1, "400 BadRequest", "get", "po", "-l", "a in (")
      fails(2, "name the objects with -f FILE", "apply")
      fails(1, "cannot read /nope: No such file", "apply", "-f", "/nope")
      fails(2, "--dry-run must be server or none, not \"client\"", "apply", "-f", file, "--dry-run=client")
      fails(2, "name the objects of kind cm, or give --all", "delete", "cm")
      fails(2, "names, --all and selectors exclude each other", "delete", "cm", "x", "--all")
      fails(2, "--cascade must be background, foreground or orphan", "delete", "cm", "x", "--cascade",
        "sideways")
      fails(2, "takes no arguments", "version", "--server", "now")
    end)
  end)
end)

describe("apply after --load", function()
  it("takes over the fields of the file's last version, and no others", function()
    local path = process.tmpname ".yaml"
    local function write(value)
      return process.write(path, ("{apiVersion: v1, kind: ConfigMap, metadata: {name: loaded}, \z
        data: {a: '%s'}}"):format(value))
    end
    local server <close> = setmetatable({ s = servers.embedded { load = { write "1" } } },
      { __close = function(self) self.s:stop() end })
    local function apply(...)
      return process.run(("KUBECONFIG=%s %s apply -f %s %s"):format(server.s.kubeconfig, KUBELUA, path,
        quoted(...)))
    end
    write "2"
    assert.equal("configmap/loaded configured\n", (apply()))
    assert.equal("configmap/loaded unchanged\n", (apply()))
    write "3"
    local out, code = apply("--field-manager", "other")
    assert.equal(1, code)
    assert.matches('conflict with "kubelua": %.data%.a', out)
  end)
end)

describe("the command line without a server", function()
  it("names the server that does not answer", function()
    local out, code = process.run(KUBELUA .. " get po -s http://127.0.0.1:1")
    assert.equal(1, code)
    assert.truthy(out:find("kubelua get: ", 1, true)
      and out:find("connection refused by 127.0.0.1:1", 1, true), out)
    assert.falsy(out:find("WARN", 1, true), out)
  end)

  it("lists its commands in groups, and suggests the nearest", function()
    local out, code = process.run(KUBELUA .. " --help")
    assert.equal(0, code)
    local headings = {}
    for heading in out:gmatch "\n(%u[^\n]*):\n" do headings[#headings + 1] = heading end
    assert.same({ "Controllers", "A cluster, by hand", "Other" }, headings)
    for _, said in ipairs { "  get ", "  shell ", "  apply " } do
      assert.truthy(out:find(said, 1, true), out)
    end
    out, code = process.run(KUBELUA .. " help why")
    assert.equal(0, code)
    assert.equal(process.run(KUBELUA .. " why --help"), out)
    for _, words in ipairs { "bogus", "help bogus" } do
      out, code = process.run(KUBELUA .. " " .. words)
      assert.equal(2, code)
      assert.equal("kubelua: unknown command bogus\n(kubelua --help lists the commands)\n", out)
    end
    out, code = process.run("KUBECONFIG=/nowhere " .. KUBELUA .. " get")
    assert.equal(2, code)
    assert.matches("name a kind", out)
    out, code = process.run(KUBELUA .. " gte")
    assert.equal(2, code)
    assert.equal("kubelua: unknown command gte, did you mean get?\n(kubelua --help lists the commands)\n",
      out)
  end)
end)
