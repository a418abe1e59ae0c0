-- project.lua - the files of a new controller (kubelua init): texts with names in them, out of which a
-- project is made.


local M = {}

-- ---------------------------------------------------------------- the script and its test

local CUSTOM = [[
-- @NAME@.lua - every @KIND@ gets a ConfigMap of its name that holds its message.
--
--   what it is                                       kubelua check @NAME@.lua
--   its tests, beside it                             kubelua test
--   a trial, on an API server in the same process    kubelua dev @NAME@.lua --crds crds

local kube = require "kubelua"

local CONFIG_MAP = "v1/ConfigMap"

-- What there should be, as a function of what is wanted: easy to test, easy to read.
local function desired(@VAR@)
  return { message = @VAR@("spec.message") or "nothing to say" }
end

return kube.controller {
  name = "@NAME@",
  resource = "@GVK@",
  owns = { CONFIG_MAP }, -- carries the owner reference, wakes its owner, and goes with it

  reconcile = function(@VAR@, ctx)
    ctx:apply { kind = CONFIG_MAP, name = @VAR@.metadata.name, data = desired(@VAR@) }
    return { status = { observedGeneration = @VAR@.metadata.generation, message = desired(@VAR@).message } }
  end,
}
]]

local CUSTOM_TEST = [[
-- @NAME@_test.lua - run by `kubelua test`.

local kube = require "kubelua"

local KIND, CONFIG_MAP = "@GVK@", "v1/ConfigMap"

describe("@NAME@", function()
  local t ---@type kubelua.Testing
  before_each(function()
    t = kube.testing.start { script = "@NAME@.lua", crds = "crds",
      objects = { { kind = KIND, name = "first", spec = { message = "hello" } } } }
  end)

  it("creates a ConfigMap and reports it in the status", function()
    assert.equal("hello", t:get(CONFIG_MAP, "first").data.message)
    assert.equal("hello", t:get(KIND, "first").status.message)
  end)

  it("owns it", function()
    local owner = kube.controller_of(t:get(CONFIG_MAP, "first"))
    assert.same({ "@KIND@", "first" }, { owner.kind, owner.name })
  end)

  it("follows a change", function()
    t:patch(t:get(KIND, "first"), { spec = { message = "goodbye" } })
    assert.equal("goodbye", t:get(CONFIG_MAP, "first").data.message)
  end)

  it("recreates a deleted object", function()
    t:delete(CONFIG_MAP, "first")
    assert.equal("hello", t:get(CONFIG_MAP, "first").data.message)
  end)

  it("tries again after a failure", function()
    t:fail_next { verb = "apply", kind = CONFIG_MAP, error = "server" }
    t:create { kind = KIND, name = "second", spec = { message = "hi" } }
    t:until_idle()
    assert.equal("hi", t:get(CONFIG_MAP, "second").data.message)
    assert.equal("error", t:runs("second")[1].result)
  end)
end)
]]

local BUILTIN = [[
-- @NAME@.lua - puts an annotation on every @KIND@ that asks for it by a label.
--
--   what it is                                       kubelua check @NAME@.lua
--   its tests, beside it                             kubelua test
--   a trial, on an API server in the same process    kubelua dev @NAME@.lua

local kube = require "kubelua"

local LABEL, ANNOTATION = "@NAME@", "@NAME@/greeting"

-- What there should be, as a function of what is wanted: easy to test, easy to read.
local function greeting(who) return "Hello, " .. who .. "!" end

return kube.controller {
  name = "@NAME@",
  resource = "@GVK@",

  reconcile = function(@VAR@, ctx)
    local who = @VAR@("metadata.labels", LABEL)
    if not who then return end
    ctx:patch(@VAR@, function(o) o.metadata.annotations[ANNOTATION] = greeting(who) end)
  end,
}
]]

local BUILTIN_TEST = [[
-- @NAME@_test.lua - run by `kubelua test`.

local kube = require "kubelua"
@KINDLINE@
describe("@NAME@", function()
@SERVED@  it("has a greeting that can be tested alone", function()
    assert.equal("Hello, you!", kube.testing.pure "@NAME@.lua".functions.greeting "you")
  end)
end)
]]

-- Of kinds of which we know a smallest object.
local SERVED = [[
  local t ---@type kubelua.Testing
  before_each(function() t = kube.testing.start { script = "@NAME@.lua" } end)

  local function object(name, labels)
    return { kind = KIND, name = name, labels = labels@BODY@ }
  end
  local function greeting(name) return t:get(KIND, name)("metadata.annotations", "@NAME@/greeting") end

  it("greets every object that has the label", function()
    t:load(object("first", { ["@NAME@"] = "world" }))
    t:settle()
    assert.equal("Hello, world!", greeting "first")
  end)

  it("keeps what others wrote", function()
    local first = object("first", { ["@NAME@"] = "world" })
    first.annotations = { theirs = "kept" }
    t:load(first)
    t:settle()
    assert.equal("Hello, world!", greeting "first")
    assert.equal("kept", t:get(KIND, "first").metadata.annotations.theirs)
  end)

  it("leaves others alone", function()
    t:load(object "plain")
    t:settle()
    assert.is_nil(greeting "plain")
    assert.equal(0, #t:writes())
  end)

]]

-- ---------------------------------------------------------------- the rest

local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: @PLURAL@.@GROUP@
spec:
  group: @GROUP@
  scope: Namespaced
  names: {kind: @KIND@, listKind: @KIND@List, plural: @PLURAL@, singular: @SINGULAR@}
  versions:
  - name: @VERSION@
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Message, type: string, jsonPath: .status.message}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              message: {type: string, maxLength: 1024, description: What its ConfigMap says.}
          status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
              message: {type: string}
]]

local LUARC = [[
{
  "runtime.version": "Lua 5.4",
  "workspace.library": [".annotations"]
}
]]

local IGNORED = [[
.annotations/
junit.xml
]]

local README = [[
# @NAME@

A Kubernetes controller in Lua: `@NAME@.lua`, run by kubelua.

```sh
@COMMANDS@
```

One command installs everything in a cluster. After a change to the script, run it again: the running pods
load the new script without a restart.

```sh
kubectl apply -k .
kubectl -n @NAMESPACE@ logs deploy/@NAME@ -f
kubectl -n @NAMESPACE@ exec deploy/@NAME@ -- kubelua why @WHY@
```

The image is `kubelua:latest` (`deploy/manifests.yaml`). Replace it with one that your cluster can pull. With
kind:

```sh
kind create cluster
kind load docker-image kubelua:latest
kubectl apply -k .
```

Files:

- `@NAME@.lua`, `@NAME@_test.lua`: the controller and its tests
@CRDROW@- `deploy/manifests.yaml`: namespace, rights, Deployment. When the script needs other rights,
  `kubelua rbac @NAME@.lua --record@CRDS@ --bind --leader-elect -n @NAMESPACE@` prints them
- `kustomization.yaml`: what `kubectl apply -k .` makes of these files
- `.github/workflows/ci.yaml`: runs `check` and `test` on each push; set the repository variable `KUBELUA_URL`
  to the URL of kubelua's tarball
- `.luarc.json`, `.annotations/`: for the editor (Lua language server); `kubelua annotations .annotations`
  updates the annotations
]]

local CI = [[
name: ci
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v4
    - name: install kubelua
      # A variable of the repository: the address of kubelua's tarball for linux-amd64.
      env: {KUBELUA_URL: "${{ vars.KUBELUA_URL }}"}
      run: |
        curl -fsSL "$KUBELUA_URL" | sudo tar -xz -C /usr/local --strip-components=1
        kubelua version
    - run: kubelua check @NAME@.lua
    - run: kubelua test -o junit > junit.xml
    - run: kubelua rbac @NAME@.lua --record@CRDS@
    - uses: actions/upload-artifact@v4
      if: always()
      with: {name: tests, path: junit.xml}
]]

local KUSTOMIZATION = [[
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
@CRDFILE@- deploy/manifests.yaml
configMapGenerator:
- name: @NAME@-scripts
  namespace: @NAMESPACE@
  files: [@NAME@.lua]
generatorOptions:
  disableNameSuffixHash: true # a changed script is taken by the pods that run: nothing is rolled out
]]

local function filled(text, words)
  return (text:gsub("@(%u+)@", function(word) return words[word] or error("no word for " .. word) end))
end

local POD = 'metadata = { labels = { app = "a" } }, spec = { containers = { { name = "a", image = "a" } } }'
local SETS = 'spec = { selector = { matchLabels = { app = "a" } }, template = { ' .. POD .. ' } }'
-- The smallest that a server takes, where that is more than a name.
local BODIES = {
  ["v1/Pod"] = 'spec = { containers = { { name = "a", image = "a" } } }',
  ["v1/Service"] = "spec = { ports = { { port = 80 } } }",
  ["apps/v1/Deployment"] = SETS, ["apps/v1/ReplicaSet"] = SETS, ["apps/v1/DaemonSet"] = SETS,
  ["apps/v1/StatefulSet"] = 'spec = { serviceName = "a", selector = { matchLabels = { app = "a" } }, \z
    template = { ' .. POD .. ' } }',
  ["batch/v1/Job"] = 'spec = { template = { spec = { restartPolicy = "Never", containers = { { name = "a", \z
    image = "a" } } } } }',
}

--- An object of a built-in kind for its test, as Lua text, in the short form.
---@return string
function M.body(kind) return BODIES[kind] and ",\n      " .. BODIES[kind] or "" end

local function commands(name, custom)
  local lines = { { "check %s.lua", "its actions, or its failures" }, { "test", "its tests" },
    { custom and "dev %s.lua --crds crds" or "dev %s.lua",
      "runs it without a cluster; edit and save while it runs" },
    { "run %s.lua", "on the cluster of your kubeconfig" } }
  local out, wide = {}, 0
  for i, l in ipairs(lines) do
    out[i] = "kubelua " .. l[1]:format(name)
    wide = math.max(wide, #out[i])
  end
  for i, l in ipairs(lines) do out[i] = out[i] .. (" "):rep(wide - #out[i] + 2) .. "# " .. l[2] end
  return table.concat(out, "\n")
end

local KEYWORDS = " and break do else elseif end false for function goto if in local nil not or repeat \z
  return then true until while ctx kube o t "

local function variable(kind)
  local name = kind:sub(1, 1):lower() .. kind:sub(2)
  return KEYWORDS:find(" " .. name .. " ", 1, true) and name .. "_" or name
end

--- The files of a project: path -> text, without deploy/manifests.yaml, which is made of the script.
---@param name string
---@param kind {group: string, version: string, kind: string, plural: string, custom: boolean, testable: boolean?}
---@param namespace string
---@return table<string, string>
function M.files(name, kind, namespace)
  local words = {
    NAME = name, GVK = (kind.group ~= "" and kind.group .. "/" or "") .. kind.version .. "/" .. kind.kind,
    KIND = kind.kind, GROUP = kind.group,
    VERSION = kind.version, PLURAL = kind.plural, SINGULAR = kind.kind:lower(), VAR = variable(kind.kind),
    NAMESPACE = namespace,
    COMMANDS = commands(name, kind.custom),
    WHY = kind.plural .. (kind.group ~= "" and "." .. kind.group or "")
      .. (kind.namespaced and " default/NAME" or " NAME"),
    CRDS = kind.custom and " --crds crds" or "",
    CRDFILE = kind.custom and ("- crds/%s.yaml\n"):format(kind.plural) or "",
    CRDROW = kind.custom and ("- `crds/%s.yaml`: the definition of %s\n"):format(kind.plural, kind.kind)
      or "",
  }
  words.BODY = M.body(words.GVK)
  words.KINDLINE = kind.testable and ('\nlocal KIND = "%s"\n'):format(words.GVK) or ""
  words.SERVED = kind.testable and filled(SERVED, words) or ""
  local files = {
    [name .. ".lua"] = filled(kind.custom and CUSTOM or BUILTIN, words),
    [name .. "_test.lua"] = filled(kind.custom and CUSTOM_TEST or BUILTIN_TEST, words),
    ["README.md"] = filled(README, words),
    ["kustomization.yaml"] = filled(KUSTOMIZATION, words),
    [".github/workflows/ci.yaml"] = filled(CI, words),
    [".luarc.json"] = LUARC,
    [".gitignore"] = IGNORED,
  }
  if kind.custom then files["crds/" .. kind.plural .. ".yaml"] = filled(CRD, words) end
  return files
end

return M
