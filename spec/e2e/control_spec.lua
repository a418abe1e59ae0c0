-- control_spec.lua - the control socket of `kubelua run`: its place, its permissions, and its answers.

local controller = require "support.controller"
local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

local SCRIPT = [[
local kube = require "kubelua"
return kube.controller { name = "maps", resource = "v1/ConfigMap", reads = { "v1/Secret" },
  namespaces = { %q }, reconcile = function() end }
]]

local function is_root() return process.run "id -u" == "0\n" end

local function runtime_dir()
  local dir = process.tmpname ".runtime"
  assert(select(2, process.run("mkdir -m 700 " .. process.quote(dir))) == 0)
  return dir
end

-- Starts kubelua with its own directory for sockets.
local function start(server, dir, namespace, ...)
  local run = controller.start_with({ "XDG_RUNTIME_DIR=" .. dir }, server, SCRIPT:format(namespace), ...)
  run:wait_for_log(60, "controller is running")
  return run, run:log():match "control socket path=(%S+)"
end

-- Status and body of an answer. `prefix`: what runs curl.
local function ask(socket, path, words, prefix)
  local text,
    code = process.run(("%s curl -sS --max-time 20 --unix-socket %s -w '\\n%%{http_code}' %s \z
    'http://kubelua%s'"):format(prefix or "",
    process.quote(socket), words or "", path))
  if code ~= 0 then return nil, text end
  local body, status = text:match "^(.*)\n(%d+)$"
  return tonumber(status), json.decode(body), body
end

local function mode(path) return (process.run("stat -c '%F %a' " .. process.quote(path)):gsub("%s+$", "")) end

servers.each(function(name, start_server)
  describe("the control socket against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start_server {}
      client = controller.client(server)
      ns = controller.namespace(client, "control")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("belongs to the owner, shows controllers and caches, logs its users, and ends with its process",
      function()
      local dir = runtime_dir()
      local run, socket = start(server, dir, ns)
      assert.equal(("%s/kubelua/%d.sock"):format(dir, run.pid), socket)
      assert.equal("socket 600", mode(socket))
      assert.equal("directory 700", mode(dir .. "/kubelua"))

      local status, about = ask(socket, "/v1/")
      assert.equal(200, status)
      assert.equal(run.pid, about.pid)
      assert.same({ run.script_path }, about.scripts)

      local _, answer = ask(socket, "/v1/controllers")
      local c = answer.controllers[1]
      assert.equal("maps v1/ConfigMap running 1", ("%s %s %s %d"):format(c.name, c.resource, c.state,
        c.generation))
      assert.equal(0, c.queue.failing)

      client:create { kind = "v1/Secret", namespace = ns, name = "one" }
      wait.until_true(20, "the cache of Secrets has it", function()
        local _, informers = ask(socket, "/v1/informers")
        for _, i in ipairs(informers.informers) do
          if i.kind:find "^v1/Secret" and i.objects > 0 and i.bytes > 0 and i.synced and i.lagSeconds then
            return true
          end
        end
        error(json.encode(informers), 0)
      end)
      assert.falsy(run:log():find "control command uid=%d+ pid=%d+ method=GET")

      controller.finish(run)
      assert.not_equal("socket 600", mode(socket))
    end)

    it("rejects another user, by mode and by credentials", function()
      if not is_root() then return pending "only root can be somebody else" end
      -- other users may not read a spec's directory
      local dir = process.run "mktemp -d /tmp/kubelua-control.XXXXXX":gsub("%s+$", "")
      finally(function() process.run("rm -rf " .. process.quote(dir)) end)
      local run, socket = start(server, dir, ns)
      local other = "setpriv --reuid 65534 --regid 65534 --clear-groups"
      process.run("chmod 755 " .. process.quote(dir) .. " " .. process.quote(dir .. "/kubelua"))
      local status, why = ask(socket, "/v1/", nil, other)
      assert.is_nil(status, why)
      process.run("chmod 666 " .. process.quote(socket))
      local body
      status, body = ask(socket, "/v1/", nil, other)
      assert.equal(403, status, why)
      assert.truthy(body.error:find("for the user who runs the process", 1, true))
      assert.truthy(run:log():find("control command refused: another user uid=65534", 1, true))
      controller.finish(run)
    end)

    it("is at the path of --control, replaces a dead one, and not a live one", function()
      local dir = runtime_dir()
      local path = dir .. "/mine.sock"
      local first = start(server, dir, ns, "--control", path)
      local second = controller.start(server, SCRIPT:format(ns), "--control", path)
      assert.equal(1, second:wait(30))
      assert.truthy(second:log():find(
        ("kubelua run: --control: process %d already listens at %s: choose another path"):format(first.pid,
          path), 1,
        true), second:log())
      first:kill()
      assert.equal("socket 600", mode(path))
      local third = start(server, dir, ns, "--control", path)
      local _, about = ask(path, "/v1/")
      assert.equal(third.pid, about.pid)
      controller.finish(third)
    end)

    it("does not exist with off", function()
      local dir = runtime_dir()
      local run, socket = start(server, dir, ns, "--control", "off")
      assert.is_nil(socket)
      assert.equal("", (process.run("ls " .. process.quote(dir))))
      controller.finish(run)
    end)

    it("is optional: without the usual directory the process runs without it", function()
      local dir = runtime_dir()
      process.write(dir .. "/kubelua", "a file in the place of a directory")
      local run = start(server, dir, ns)
      run:wait_for_log(5, "no control socket: kubelua why and attach cannot reach this process")
      controller.finish(run)
    end)
  end)
end)

describe("kubelua run --help", function()
  it("documents the control socket", function()
    assert.truthy(process.run(KUBELUA .. " run --help"):find("--control PATH|off", 1, true))
  end)
end)

describe("the directory of control sockets", function()
  local function names(dir) return (process.run("ls " .. process.quote(dir .. "/kubelua"))) end

  it("loses dead sockets, but not young ones: their process may be about to listen",
    function()
    local dir = runtime_dir()
    assert(select(2, process.run("mkdir -m 700 " .. process.quote(dir .. "/kubelua"))) == 0)
    process.write(dir .. "/kubelua/77.sock", "")
    local look = ("XDG_RUNTIME_DIR=%s %s why cm a/b"):format(process.quote(dir), KUBELUA)
    assert.truthy(process.run(look):find("you have no running kubelua here", 1, true))
    assert.equal("77.sock\n", names(dir))
    process.run(("touch -d '1 hour ago' %s/kubelua/77.sock"):format(process.quote(dir)))
    assert.truthy(process.run(look):find("you have no running kubelua here", 1, true))
    assert.equal("", names(dir))
  end)

  -- Only root can change the owner of a directory.
  if is_root() then
    it("is not searched if another user owns it, who would learn params and scripts", function()
      local dir = runtime_dir()
      local place = process.quote(dir .. "/kubelua")
      assert(select(2, process.run("mkdir -m 755 " .. place)) == 0)
      process.write(dir .. "/kubelua/77.sock", "")
      process.run(("touch -d '1 hour ago' %s/77.sock && chown 65534 %s"):format(place, place))
      local look = ("XDG_RUNTIME_DIR=%s %s why cm a/b 2>&1"):format(process.quote(dir), KUBELUA)
      local said = process.run(look)
      assert.truthy(said:find("belongs to another user", 1, true), said)
      assert.truthy(said:find("you have no running kubelua here", 1, true), said)
      assert.equal("77.sock\n", names(dir))
      process.run(("mv %s %s/elsewhere && ln -s elsewhere %s && chown -h 65534 %s"):format(place,
        process.quote(dir), place, place))
      said = process.run(look)
      assert.truthy(said:find("is not a directory", 1, true), said)
      for at, why in pairs { kubelua = "is a link of another user (uid 65534)",
        elsewhere = "belongs to another user (uid 65534)" } do
        local out, code = process.run(("%s dev %s --control %s/77.sock"):format(KUBELUA,
          process.write(process.tmpname ".lua", SCRIPT:format "default"), process.quote(dir .. "/" .. at)))
        assert.equal(1, code, out)
        assert.truthy(out:find(why, 1, true), out)
      end
    end)
  end
end)
