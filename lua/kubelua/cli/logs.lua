-- logs.lua - kubelua logs: what a container wrote, as it is.

local common = require "kubelua.cli.common"

local M = {}

M.options = {
  { "--container", "NAME", "which container, where the pod has several", brief = "-c" },
  { "--follow", nil, "go on with what is written from now on", type = "flag", brief = "-f" },
  { "--tail", "N", "only the last N lines", type = "count" },
  { "--since", "DURATION", "only lines that are not older: 10m, 1h30m", type = "duration" },
  { "--since-time", "TIME", "only lines not older than 2026-01-02T15:04:05Z" },
  { "--previous", nil, "of the container before its last restart", type = "flag", brief = "-p" },
  { "--timestamps", nil, "begin each line with its time", type = "flag" },
  { "--limit-bytes", "N", "end after so many bytes", type = "count" },
  { "--resume", nil, "with --follow: go on after a broken connection, without gaps or repeats",
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
