-- exits_spec.lua - each command exits with the statuses in its help, and with -o json it prints JSON.
-- not in asan, tsan: statuses and texts are the subject; the commands' own specs run them

local controller = require "support.controller"
local json = require "dkjson"
local process = require "support.process"
local servers = require "support.servers"

local KUBELUA = process.run("realpath " .. process.quote(os.getenv "KUBELUA" or "build/kubelua")):gsub("%s+$",
  "")

local FILES = {
  ["ok.lua"] = [[local kube = require "kubelua"
    return kube.controller { name = "ok", resource = "v1/ConfigMap",
      reconcile = function(map, ctx)
        if map("data.n") then ctx:patch(map, function(m) m.data.m = "1" end) end
      end }]],
  ["other.lua"] = [[local kube = require "kubelua"
    return kube.controller { name = "ok", resource = "v1/ConfigMap",
      reconcile = function(map, ctx)
        if map("data.n") then ctx:patch(map, function(m) m.data.m = "2" end) end
      end }]],
  ["broken.lua"] = "return 1 +",
  ["hook.lua"] = [[local kube = require "kubelua"
    return kube.webhook { name = "$NS", resource = "v1/ConfigMap", namespaces = { "none" },
      validate = function() end }]],
  ["site.lua"] = [[local kube = require "kubelua"
    return kube.controller { name = "site", resource = kube.crd { group = "example.com", kind = "Site",
      versions = { v1 = { schema = kube.schema {} } } }, reconcile = function() end }]],
  ["ok_test.lua"] = [[describe("a test", function() it("passes", function() end) end)]],
  ["bad/bad_test.lua"] = [[describe("a test", function() it("fails", function() error "no" end) end)]],
  ["play.lua"] = "return", ["bad_play.lua"] = [[error "no"]],
  ["map.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { n: '1' }\n",
  ["wrong.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: b }\ndataa: {}\n",
  ["changed.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { n: '2' }\n",
}

-- By status, a shell command in the directory of these files; $NS is a namespace with the ConfigMap a, $S the
-- socket of a process that runs ok.lua, $T its recording. One mistake with status 2 is tried for all
-- commands.
local CASES = {
  check = { [0] = "$K check ok.lua", [1] = "$K check broken.lua" },
  reload = { [0] = "$K reload --socket $S",
    [1] = "cp ok.lua kept; cp broken.lua live.lua; $K reload --socket $S; \z
    code=$?; mv kept live.lua; $K reload --socket $S; exit $code" },
  shadow = { [0] = "$K shadow other.lua --socket $S; $K shadow --end --socket $S",
    [1] = "$K shadow broken.lua --socket $S" },
  replay = { [0] = "$K replay $T ok.lua", [1] = "$K replay $T other.lua" },
  why = { [0] = "$K why cm a -n $NS --socket $S", [1] = "$K why nothing a --socket $S" },
  attach = { [0] = "$K attach --socket $S -e 'controllers()'", [1] = "$K attach --socket $S -e 'error()'" },
  ["release-finalizers"] = { [0] = "$K release-finalizers ok.lua -n $NS --yes",
    [1] = "$K release-finalizers broken.lua --yes" },
  uninstall = { [0] = "$K uninstall hook.lua --yes", [1] = "$K uninstall broken.lua --yes" },
  test = { [0] = "$K test ok_test.lua", [1] = "$K test bad" },
  sim = { [0] = "$K sim ok.lua --generate nodes=2 --for 1m",
    [1] = "$K sim ok.lua --generate nodes=2 --for 1m --budget 'batch_used>=1000000'" },
  rbac = { [0] = "$K rbac ok.lua", [1] = "$K rbac broken.lua" },
  init = { [0] = "$K init fresh", [1] = "$K init fresh" },
  annotations = { [0] = "$K annotations types", [1] = "$K annotations ok.lua/types" },
  explain = { [0] = "$K explain ok.lua --for 1ms", [1] = "$K explain broken.lua" },
  get = { [0] = "$K get cm a -n $NS", [1] = "$K get cm nothing -n $NS" },
  apply = { [0] = "$K apply -f map.yaml -n $NS", [1] = "$K apply -f wrong.yaml -n $NS" },
  delete = { [0] = "$K apply -f map.yaml -n $NS --dry-run && $K delete cm a -n $NS --dry-run",
    [1] = "$K delete cm nothing -n $NS" },
  dump = { [0] = "$K dump", [1] = "$K dump > /dev/full" },
  watch = { [0] = "$K watch cm a -n $NS --initial --events 1", [1] = "$K watch nothing" },
  logs = { [1] = "$K logs nothing -n $NS" },
  exec = { [1] = "$K exec nothing -n $NS -- true" },
  gen = { [0] = "$K gen crds site.lua", [1] = "$K gen crds broken.lua" },
  shell = { [0] = "$K shell -e 'get(\"ns\")'", [1] = "$K shell -e 'error()'" },
  version = { [0] = "$K version --server", [1] = "$K version --server=http://127.0.0.1:1" },
  completion = { [0] = "$K completion bash" },
  help = { [0] = "$K help" },
  dev = { [0] = "$K dev ok.lua --play play.lua", [1] = "$K dev ok.lua --play bad_play.lua" },
  run = { [1] = "$K run broken.lua" },
  apiserver = { [1] = "$K apiserver --load nothing" },
}

-- Tested elsewhere: long runs end with 0 below and in stop_spec, logs and commands of pods are in
-- stream_cli_spec with a kubelet.
local ELSEWHERE = { run = true, apiserver = true, logs = true, exec = true }

-- Their output has no data, consists of files, or was written by others.
local NO_JSON = { run = true, dev = true, apiserver = true, attach = true, shell = true, init = true,
  annotations = true, gen = true, dump = true, logs = true, exec = true, completion = true }

-- Lines of JSON, or one document.
local function parsed(text, lines)
  if not lines then
    local t, after, why = json.decode(text)
    assert(t ~= nil, why)
    assert.is_nil(text:find("%S", after), text)
    return
  end
  local n = 0
  for line in text:gmatch "[^\n]+" do
    parsed(line)
    n = n + 1
  end
  assert.is_true(n > 0)
end

local commands = json.decode((process.run(process.quote(KUBELUA) .. " help -o json")))

servers.each(function(server_name, start)
  describe("the command line's statuses, against " .. server_name, function()
    local server, client, run, variables
    local dir = process.tmpname ".exits"

    local function shell(line)
      return process.run(("cd %s; %s; %s"):format(process.quote(dir), variables, line))
    end

    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      local ns = controller.namespace(client, "exits")
      process.run("mkdir -p " .. process.quote(dir .. "/bad"))
      for name, text in pairs(FILES) do process.write(dir .. "/" .. name, (text:gsub("$NS", ns))) end
      process.run(("cd %s; cp ok.lua live.lua"):format(process.quote(dir)))
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "a", data = { n = "1" } }
      run = controller.start(server, dir .. "/live.lua", "--control", dir .. "/s", "--record", dir .. "/tape",
        "--namespace", ns)
      run:wait_for_log(60, "controller is running")
      variables = ("export KUBECONFIG=%s XDG_RUNTIME_DIR=%s K=%s NS=%s S=%s/s T=%s/tape"):format(
        process.quote(server.kubeconfig), process.quote(dir), process.quote(KUBELUA), ns, process.quote(dir),
        process.quote(dir))
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    for _, c in ipairs(commands) do
      it(c.name .. " ends with " .. c.exits, function()
        local cases = assert(CASES[c.name], "no case")
        local named = {}
        for number in c.exits:gmatch "%f[%w]%d%f[%W]" do named[tonumber(number)] = true end
        for _, status in ipairs { 0, 1 } do
          if named[status] and not (status == 0 and ELSEWHERE[c.name]) then
            local out, code = shell(assert(cases[status], "no case for " .. status))
            assert.equal(status, code, out)
          end
        end
        for status in pairs(cases) do assert.is_true(named[status], "its help does not name " .. status) end
        assert.is_true(named[2])
        local out, code = shell("$K " .. c.name .. " --no-such-option")
        assert.equal(2, code, out)
      end)
    end

    for _, c in ipairs(commands) do
      local help = json.decode((process.run(process.quote(KUBELUA) .. " help " .. c.name .. " -o json")))
      local has
      for _, o in ipairs(help.options) do has = has or o.name == "--output" and o.values:find "json" end
      if not has then
        it(c.name .. " has nothing for programs to read", function() assert.is_true(NO_JSON[c.name]) end)
      else
        it(c.name .. " -o json is JSON", function()
          for _, status in ipairs { 0, 1 } do
            local line = CASES[c.name][status]
            if line and not line:find "broken" and not line:find "127.0.0.1:1" then
              line = line:gsub("$K " .. c.name:gsub("%p", "%%%0"), "%0 -o json"):gsub(" && ",
                " >/dev/null && ")
                :gsub("; ", " >/dev/null; ")
              local out, code = shell("( " .. line .. " ) 2>/dev/null")
              assert.equal(status, code, line .. out)
              -- A command that cannot reach the server writes only to stderr.
              if status == 0 or out ~= "" then parsed(out, c.name == "watch") end
            end
          end
        end)
      end
    end
  end)
end)
