--- controller.lua - `kubelua run` as a child process of a spec, against a server of support.servers.
--
--   local run = controller.start(server, SCRIPT, "--workers", "4")
--     SCRIPT: a path that ends in .lua or /, configmap/NS/NAME, or the text of a script
--   run:wait_for_log(10, "running"); controller.finish(run)

local busted = require "busted"
local process = require "support.process"
local wait = require "support.wait"
local wire = require "support.wire"

local M = {}

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

--- Starts `kubelua run`; further arguments go to the command line. The path of the script is in
--- `script_path`.
function M.start(server, script, ...)
  return M.start_with({}, server, script, ...)
end

--- The same in an environment with more variables, "NAME=value".
function M.start_with(variables, server, script, ...)
  local named = script:find "%.lua$" or script:find "^/[^\n]*/$" or script:find "^configmap/"
  local path = named and script or process.write(process.tmpname ".lua", script)
  local words = { "env", name = "kubelua run" }
  table.move(variables, 1, #variables, 2, words)
  for _, word in ipairs { KUBELUA, "run", path, "--kubeconfig", server.kubeconfig, ... } do
    words[#words + 1] = word
  end
  local run = process.spawn(words)
  run.script_path = path
  return run
end

--- Sends TERM; the process must end with status 0 (a sanitizer's report changes the status).
function M.finish(run)
  local code = run:stop(45)
  if code ~= 0 then error(("kubelua run ended with status %d; its log:\n%s"):format(code, run:log()), 2) end
end

--- The text of /metrics, which raises while the process does not serve it.
function M.metrics(run)
  local address = assert(run:log():match "serving metrics address=(%S+)", run:log())
  local head, text = wire.send { url = "http://" .. address .. "/metrics", method = "GET", headers = {},
    limit = 30 }
  assert(head and head[1]:find "^HTTP/1.1 200 ", text)
  return text
end

--- The frame of specs against one server: `start` comes from servers.each. take(server, client, ns) is called
--- before each spec with the server, a client of it and a new namespace. Returns begin(script, ...), which is
--- M.start on that server; its processes end after the spec.
function M.frame(prefix, start, take)
  local server, client, begun
  busted.lazy_setup(function()
    server = start {}
    client = M.client(server)
  end)
  busted.lazy_teardown(function() if server then server:stop() end end)
  busted.before_each(function()
    begun = {}
    take(server, client, M.namespace(client, prefix))
  end)
  busted.after_each(function()
    local those = begun
    begun = {}
    for _, run in ipairs(those) do M.finish(run) end
  end)
  return function(script, ...)
    local run = M.start(server, script, ...)
    begun[#begun + 1] = run
    return run
  end
end

--- A client of the server from stock Lua.
function M.client(server)
  return require("kubelua").connect { kubeconfig = server.kubeconfig }
end

--- A fresh namespace on a server that others use, too.
function M.namespace(client, prefix)
  local name = ("%s-%d-%d"):format(prefix, os.time() % 100000, math.random(100000, 999999))
  client:create { kind = "v1/Namespace", name = name }
  -- A real server accepts objects only once it has seen the namespace.
  wait.until_true(10, "namespace " .. name, function() return client:get("v1/Namespace", name) end)
  return name
end

local function answered(client, namespace, answer)
  local n = 0
  for map in client:each("v1/ConfigMap", { namespace = namespace }) do
    if map("data.ask") and map("data.answer") == answer(map.data.ask) then n = n + 1 end
  end
  return n
end

--- Waits until n questions in the namespace have their answer, answer(question).
function M.await_answers(client, namespace, n, seconds, answer)
  wait.until_true(seconds, ("%d answers in %s"):format(n, namespace), function()
    local seen = answered(client, namespace, answer)
    if seen < n then error(("%d of %d"):format(seen, n), 0) end
    return true
  end)
end

--- Creates ConfigMaps with the questions first..last.
function M.ask(client, namespace, first, last)
  for i = first, last do
    client:create { kind = "v1/ConfigMap", namespace = namespace, name = "question-" .. i,
      data = { ask = "q" .. i } }
  end
end

--- A script that answers the questions of one namespace with `suffix`.
function M.answering(namespace, suffix)
  return ([[
local kube = require "kubelua"
return kube.controller {
  name = "answers-%s",
  resource = "v1/ConfigMap",
  reconcile = function(map, ctx)
    if map.metadata.namespace ~= %q then return end
    local ask = map("data.ask")
    if not ask or map("data.answer") == ask .. %q then return end
    ctx:patch(map, function(m) m.data.answer = ask .. %q end)
  end,
}
]]):format(namespace, namespace, suffix, suffix)
end

return M
