-- data_spec.lua - `kubelua apiserver --data DIR`: acknowledged writes survive kill -9, a full disk and a
-- restart. Only the embedded server is tested, since the real one stores its data in etcd.

local new_api = require "support.api"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local MAPS = "/api/v1/namespaces/default/configmaps"

local CRD = { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
  metadata = { name = "gears.data.kubelua.dev" },
  spec = { group = "data.kubelua.dev", scope = "Namespaced",
    names = { plural = "gears", singular = "gear", kind = "Gear" },
    versions = { { name = "v1", served = true, storage = true,
      schema = { openAPIV3Schema = { type = "object",
        properties = { spec = { type = "object",
          ["x-kubernetes-preserve-unknown-fields"] = true } } } } } } } }

local function map(name, data) return { metadata = { name = name }, data = data or { a = "1" } } end

local function start(dir, more)
  local args = { "--data", dir }
  for _, word in ipairs(more or {}) do args[#args + 1] = word end
  local s = servers.embedded { args = args }
  return s, new_api(s)
end

--- The output of a command that fails at its start.
local function refused(dir)
  local out, code = process.run(("%s apiserver --listen 127.0.0.1:0 --data %s 2>&1"):format(
    os.getenv "KUBELUA" or "build/kubelua", process.quote(dir)))
  assert.equal(1, code, out)
  return out
end

local function acknowledged(path)
  local put, cut = {}, {}
  for verb, name, rv in (process.read(path) or ""):gmatch "(%l+) (%S+) ?(%d*)\n" do
    if verb == "put" then put[name] = rv end
    if verb == "cutting" then put[name] = nil end   -- gone or not: both are right until it is acknowledged
    if verb == "cut" then cut[name] = true end
  end
  return put, cut
end

describe("objects on disk", function()
  it("survive kill -9 under load, with every acknowledged write", function()
    local dir, log, seen = process.tmpname ".data", process.tmpname ".log", 0
    local s, api = start(dir)
    for _ = 1, 3 do
      local writers = process.spawn { "python3", "spec/support/writers.py", s.url, log, name = "writers" }
      wait.until_true(30, "writes are acknowledged", function()
        return select(2, (process.read(log) or ""):gsub("\n", "")) >= seen + 200
      end)
      s:kill()
      assert.is_not_nil(writers:wait(30))
      seen = select(2, process.read(log):gsub("\n", ""))
      s:restart()
      local put, cut = acknowledged(log)
      local there, latest = {}, 0
      local list = api:get(MAPS).body
      for _, o in ipairs(list.items) do there[o.metadata.name] = o.metadata.resourceVersion end
      for name, rv in pairs(put) do
        assert.is_true(tonumber(there[name] or 0) >= tonumber(rv), name .. " is lost")
        latest = math.max(latest, tonumber(rv))
      end
      for name in pairs(cut) do assert.is_nil(there[name], name .. " is back") end
      assert.is_true(tonumber(list.metadata.resourceVersion) > latest)
      -- The next round uses the same names.
      assert.equal(200, api:delete(MAPS).code)
      process.write(log, "")
      seen = 0
    end
    s:stop()
  end)

  it("come back with their kinds, namespaces, addresses and versions", function()
    local dir = process.tmpname ".data"
    local s, api = start(dir)
    assert.equal(201, api:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).code)
    assert.equal(201, api:post("/api/v1/namespaces", { metadata = { name = "other" } }).code)
    local gears = "/apis/data.kubelua.dev/v1/namespaces/other/gears"
    local gear = api:post(gears, { apiVersion = "data.kubelua.dev/v1", kind = "Gear",
      metadata = { name = "g" }, spec = { teeth = 12, big = 9007199254740993 } }).body
    local port = { port = 80 }
    local service = api:post("/api/v1/namespaces/default/services",
      { metadata = { name = "a" }, spec = { ports = { port } } }).body
    api:post(MAPS, map "one")
    assert.equal(200, api:delete(MAPS .. "/one").code)
    local quiet = api:get "/api/v1/namespaces/default/secrets".body.metadata.resourceVersion
    local early = api:get(MAPS).body.metadata.resourceVersion
    s:kill()
    s:restart()
    assert.same(gear, api:get(gears .. "/g").body)
    assert.equal(404, api:get(MAPS .. "/one").code)
    assert.same(service, api:get "/api/v1/namespaces/default/services/a".body)
    local second = api:post("/api/v1/namespaces/default/services",
      { metadata = { name = "b" }, spec = { ports = { port } } }).body
    assert.not_equal(service.spec.clusterIP, second.spec.clusterIP)
    -- A watch continues if its resource has no missed events, and gets 410 if that is unknown.
    local made = api:post(MAPS, map "two").body
    local events = api:watched(MAPS .. "?resourceVersion=" .. early)
    assert.equal("ADDED", events[1].type)
    assert.equal("two", events[1].object.metadata.name)
    assert.is_true(tonumber(made.metadata.resourceVersion) > tonumber(quiet))
    local gap = ("%d"):format(tonumber(quiet) + 1)
    local told = api:watched(MAPS .. "?resourceVersion=" .. gap)[1]
    assert.equal("ERROR", told.type)
    assert.equal(410, told.object.code)
    s:stop()
  end)

  it("are private to their owner, and used by one process at a time", function()
    local dir = process.tmpname ".data"
    local s = start(dir)
    assert.equal("700\n", (process.run("stat -c %a " .. dir)))
    local modes = process.run(("stat -c %%a %s/*"):format(dir))
    assert.is_nil(modes:gsub("600\n", ""):match "%S", modes)
    assert.matches("another process uses it; give each server its own directory", refused(dir), 1, true)
    s:stop()
  end)

  it("are unchanged by a write that fails on a full disk", function()
    local dir = process.tmpname ".data"
    local s, api = start(dir)
    assert.equal(201, api:post(MAPS, map "before").code)
    s:stop()
    -- A limit of the file size simulates a full disk.
    local boot = process.write(process.tmpname ".sh",
      ("ulimit -f 1024\nexec %s \"$@\"\n"):format(os.getenv "KUBELUA" or "build/kubelua"))
    local listen = "127.0.0.1:" .. servers.free_port()
    local limited = process.spawn { "sh", boot, "apiserver", "--listen", listen, "--data", dir }
    limited:wait_for_log(20, "serving ")
    local full = new_api { url = "http://" .. listen }
    local kept, answer = {}, nil
    for i = 1, 100 do
      answer = full:post(MAPS, map("m" .. i, { a = ("x"):rep(60000) }))
      if answer.code ~= 201 then break end
      kept["m" .. i] = true
    end
    assert.equal(500, answer.code)
    assert.matches("nothing was changed, since the change could not be saved", answer.body.message, 1, true)
    assert.matches("objects.db", answer.body.message, 1, true)
    local function check(client)
      local there = {}
      for _, o in ipairs(client:get(MAPS).body.items) do there[o.metadata.name] = true end
      assert.is_true(there.before)
      there.before, there["kube-root-ca.crt"] = nil, nil
      assert.same(kept, there)
    end
    check(full)
    -- A definition that could not be stored is not served.
    local big = { apiVersion = CRD.apiVersion, kind = CRD.kind,
      metadata = { name = CRD.metadata.name, annotations = { a = ("x"):rep(200000) } }, spec = CRD.spec }
    assert.equal(500, full:post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", big).code)
    assert.equal(404, full:get "/apis/data.kubelua.dev/v1/gears".code)
    limited:kill()
    s:restart()
    check(api)
    assert.equal(201, api:post(MAPS, map "after").code)
    s:stop()
  end)

  it("are rejected if their file is damaged, and left unchanged", function()
    local dir = process.tmpname ".data"
    local s, api = start(dir)
    for i = 1, 20 do api:post(MAPS, map("m" .. i, { a = ("x"):rep(4000) })) end
    s:stop()
    local file = dir .. "/objects.db"
    local good = process.read(file)
    local bad = good:sub(1, 8192) .. ("\xff"):rep(20000) .. good:sub(28193)
    process.write(file, bad)
    assert.matches("the file is damaged", refused(dir), 1, true)
    assert.matches("restore a copy", refused(dir), 1, true)
    assert.equal(bad, process.read(file))
    process.write(file, "this was never a database, whatever its name says" .. (" "):rep(2000))
    assert.matches("the file is damaged", refused(dir), 1, true)
    process.write(file, good)
    s:restart()
    assert.equal(200, api:get(MAPS .. "/m20").code)
    s:stop()
  end)

  it("are not read from a file with views or triggers, which would run when it is read or written", function()
    local dir = process.tmpname ".data"
    start(dir):stop()
    for _, sql in ipairs {
      "ALTER TABLE objects RENAME TO o; CREATE VIEW objects AS WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL \z
        SELECT x FROM n) SELECT '' grp, 'pods' plural, x key, 1 rv, '{}' object FROM n",
      "CREATE TRIGGER t AFTER INSERT ON objects BEGIN DELETE FROM resources; END",
      "CREATE INDEX i ON objects (key)",
    } do
      local copy = process.tmpname ".data"
      assert.equal("", (process.run(("cp -r %s %s"):format(dir, copy))))
      local said, code = process.run(("python3 -c %s 2>&1"):format(process.quote(
        ("import sqlite3; sqlite3.connect(%q).executescript(%q)"):format(copy .. "/objects.db", sql))))
      assert.equal(0, code, said)
      assert.matches("the file has another format than this version writes", refused(copy), 1, true)
    end
  end)

  it("are roles and bindings, too, with --authorization-mode RBAC; default roles come back", function()
    local s = start(process.tmpname ".data", { "--authorization-mode", "RBAC" })
    s:must_kubectl("create", "role", "reader", "--verb=get", "--resource=configmaps")
    s:must_kubectl("create", "rolebinding", "jane", "--role=reader", "--user=jane")
    s:must_kubectl("delete", "clusterrole", "view")
    s:kill()
    s:restart()
    assert.equal("yes\n", (s:kubectl("auth", "can-i", "get", "configmaps", "--as", "jane")))
    assert.equal("no\n", (s:kubectl("auth", "can-i", "delete", "configmaps", "--as", "jane")))
    s:must_kubectl("get", "clusterrole", "view")
    s:stop()
  end)
end)
