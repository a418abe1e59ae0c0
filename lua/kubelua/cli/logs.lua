-- logs.lua - kubelua logs: the output of a container, unchanged.

local common = require "kubelua.cli.common"

local M = {}

M.options = {
  { "--container", "NAME", "the container, if the pod has several", brief = "-c" },
  { "--follow", nil, "follow the log", type = "flag", brief = "-f" },
  { "--tail", "N", "only the last N lines", type = "count" },
  { "--since", "DURATION", "only lines newer than this: 10m, 1h30m", type = "duration" },
  { "--since-time", "TIME", "only lines since this time: 2026-01-02T15:04:05Z" },
  { "--previous", nil, "the log of the container before its last restart", type = "flag", brief = "-p" },
  { "--timestamps", nil, "prefix each line with its timestamp", type = "flag" },
  { "--limit-bytes", "N", "stop after this many bytes", type = "count" },
  { "--resume", nil, "with --follow: resume after a broken connection, without gaps or repeats",
    type = "flag" },
}

function M.run(env)
  local o = env.options
  if #env.words ~= 1 then common.usage("name one pod, got %d words", #env.words) end
  if o.since and o.since_time then common.usage "--since and --since-time exclude each other" end
  local c <close> = common.connect(env)
  local pod = common.pod(c, env.words[1])
  local raw = not o.resume
  for text in c:logs(pod, {
    container = o.container, follow = o.follow, tail = o.tail, since = o.since, since_time = o.since_time,
    previous = o.previous,
    timestamps = o.timestamps, limit_bytes = o.limit_bytes, resume = o.resume, raw = raw,
  }) do
    io.stdout:write(text, raw and "" or "\n")
    if o.follow then io.stdout:flush() end
  end
end

return M
