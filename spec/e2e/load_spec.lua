-- load_spec.lua - `--load`: the accepted formats of a file of objects, which is read once and never whole in
-- memory.
-- not in tsan: the file is read by one thread before the server answers

local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local RACKS = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.load.kubelua.dev}
spec:
  group: load.kubelua.dev
  scope: Namespaced
  names: {plural: racks, singular: rack, kind: Rack}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
]]

-- The names of the ConfigMaps that a server has once it has loaded a file of this text.
local function loaded(text)
  local s, names = servers.embedded { load = { process.write(process.tmpname ".json", text) } }, {}
  for _, o in ipairs(new_api(s):get("/api/v1/namespaces/default/configmaps").body.items) do
    names[#names + 1] = o.metadata.name
  end
  s:stop()
  table.sort(names)
  return table.concat(names, " ")
end

local function map(name, more) return ('{"metadata":{"name":"%s"}%s}'):format(name, more or "") end
local TYPE = ',"apiVersion":"v1","kind":"ConfigMap"'

describe("a file to load", function()
  it("can be a list whose items have types", function()
    local text = '{"kind":"List","apiVersion":"v1","items":[%s,%s]}'
    assert.equal("a b", loaded(text:format(map("a", TYPE), map("b", TYPE))))
  end)

  it("can be a list of a kind, named before or after the items", function()
    for _, text in ipairs { '{"kind":"ConfigMapList","apiVersion":"v1","items":[%s,%s]}',
      '{"items":[%s,%s],"kind":"ConfigMapList","apiVersion":"v1"}' } do
      assert.equal("a b", loaded(text:format(map "a", map "b")))
    end
  end)

  it("loads definitions first, wherever they are", function()
    local rack = "apiVersion: load.kubelua.dev/v1\nkind: Rack\nmetadata: {name: a}\nitems: [{x: 1}]\n"
    local path = process.write(process.tmpname ".yaml", rack .. "---\n" .. RACKS)
    local one = process.write(process.tmpname ".json",
      '{"apiVersion":"load.kubelua.dev/v1","kind":"Rack","metadata":{"name":"b"},"items":[{"x":1},{"x":2}]}')
    local s = servers.embedded { load = { path, one } }
    local api = new_api(s)
    local racks = "/apis/load.kubelua.dev/v1/namespaces/default/racks/"
    assert.same({ { x = 1 } }, api:get(racks .. "a").body.items)
    assert.same({ { x = 1 }, { x = 2 } }, api:get(racks .. "b").body.items)
    s:stop()
  end)

  it("can be several documents, or an empty list", function()
    assert.equal("a b", loaded(map("a", TYPE) .. "\n---\n" .. map("b", TYPE)))
    assert.equal("", loaded '{"kind":"List","apiVersion":"v1","items":[]}')
  end)

  it("can mix JSON and YAML, and YAML that begins like JSON", function()
    local yaml = "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
    local list = '{"items":[%s],"kind":"ConfigMapList","apiVersion":"v1"}'
    assert.equal("a b c", loaded(list:format(map "a") .. "\n---\n" .. yaml .. "---\n" .. map("c", TYPE)))
    assert.equal("a b", loaded(list:format(map "a") .. "\n" .. map("b", TYPE)))
    assert.equal("a", loaded "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    assert.equal("a", loaded("  {\n  apiVersion: v1, # one\n  kind: ConfigMap, metadata: {name: a}}"))
    assert.equal("a b", loaded(("  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: %s}\n"):format "a"
      .. "---\n" .. map("b", TYPE)))
  end)

  it("can be JSON whose strings are not valid YAML", function()
    local text = map("a", [[,"apiVersion":"v1","kind":"ConfigMap","data":{"k":"\ud83d\ude00 \/"}]])
    assert.equal("a", loaded(text))
  end)

  -- Each text, and the place that the message names.
  local FAULTS = {
    { "a list that is cut behind an item",
      ('{"kind":"List","apiVersion":"v1","items":[%s,{"metadata"'):format(map("a", TYPE)),
      ":1: the list is truncated at byte %d+, inside list item 2" },
    { "a list that is cut in its first item", '{"kind":"List","apiVersion":"v1","items":[{"metadata"',
      ":%d+:%d+: " },
    { "a wrong item in the second document", ('%s\n---\n{"kind":"List","items":[%s,\n{"x":tru}]}'):format(
      map("a", TYPE), map("b", TYPE)), ":3: list item 2, which starts at byte" },
    { "wrong YAML behind JSON", map("a", TYPE) .. "\n\n---\n\nkind: x\n- y\n", ":6:1: " },
  }
  for _, fault in ipairs(FAULTS) do
    it("is refused with its place: " .. fault[1], function()
      local path = process.write(process.tmpname ".json", fault[2])
      local said, code = process.run(("timeout 20 %s apiserver --listen 127.0.0.1:0 --load %s 2>&1"):format(
        KUBELUA, path))
      assert.not_equal(0, code)
      assert.truthy(said:find("%.json" .. fault[3]), said)
    end)
  end

  it("can be a shell pipe, or a FIFO", function()
    local text = process.write(process.tmpname ".json",
      ('{"kind":"List","apiVersion":"v1","items":[%s,%s]}'):format(map("a", TYPE), map("b", TYPE)))
    local fifo, log = process.tmpname ".fifo", process.tmpname ".log"
    local said = process.run(([[mkfifo %s; (cat %s > %s) &
      cat %s | timeout 20 %s apiserver --listen 127.0.0.1:0 --load /dev/stdin --load %s --load /nowhere \
      > %s 2>&1; grep -c objects=2 %s]]):format(fifo, text, fifo, text, KUBELUA, fifo, log, log))
    assert.equal("2\n", said, process.read(log))
  end)

  -- The text between the objects here is large, like most of a dump. A pipe cannot be read twice.
  it("is never held in memory as a whole", function()
    local MB = 192
    local forms = {
      [".json"] = ([[{ printf '{"kind":"List","apiVersion":"v1","items":[%s,';
        head -c %dM /dev/zero | tr '\0' ' '; printf '%s]}'; }]]):format(map("a", TYPE), MB, map("b", TYPE)),
      [".yaml"] = ([[{ printf '# two\n%s\n'; yes '# %s' | head -c %dM; printf '\n---\n%s\n'; }]]):format(
        map("a", TYPE), ("x"):rep(4000), MB, map("b", TYPE)),
    }
    for ending, command in pairs(forms) do
      local path = process.tmpname(ending)
      assert.equal("", (process.run("mkfifo " .. path)))
      local writer = process.spawn { "sh", "-c", ("{ %s; } > %s"):format(command, path) }
      local s = servers.embedded { load = { path } }
      os.remove(path)
      local items = new_api(s):get("/api/v1/namespaces/default/configmaps").body.items
      assert.equal(2, #items)
      local peak = tonumber(process.read(("/proc/%d/status"):format(s.api.pid)):match "VmHWM:%s*(%d+) kB")
      s:stop()
      writer:kill()
      assert.is_true(peak < MB * 1024, ("%s: a file of %d MB took %d kB"):format(ending, MB, peak))
    end
  end)
end)
