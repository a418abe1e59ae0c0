-- exec.lua - kubelua exec: a command in a container, on this terminal; its exit status is ours.

local common = require "kubelua.cli.common"

local M = {}

M.options = {
  { "--container", "NAME", "the container, if the pod has several", brief = "-c" },
  { "--stdin", nil, "pass our standard input", type = "flag", brief = "-i" },
  { "--tty", nil, "allocate a terminal; needs -i and a terminal of our own", type = "flag", brief = "-t" },
}

function M.run(env)
  local o = env.options
  if #env.words == 0 then common.usage "name a pod, then -- and the command: kubelua exec web -it -- sh" end
  if #env.words == 1 then
    common.usage("name the command to run in %s: kubelua exec %s -it -- sh", env.words[1], env.words[1])
  end
  if o.tty and not o.stdin then common.usage "-t needs -i: a terminal needs input" end
  local tty = o.tty
  if tty and not env.interactive then
    common.complain(env, "standard input and output are not a terminal: continuing without -t")
    tty = nil
  end
  local c <close> = common.connect(env)
  local stream <close> = c:exec_stream(common.pod(c, env.words[1]),
    table.move(env.words, 2, #env.words, 1, {}),
    { container = o.container, stdin = o.stdin, tty = tty })
  return env.converse(stream.session, o.stdin, tty)
end

return M
