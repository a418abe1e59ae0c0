-- logs.lua - kubelua logs: the output of a container. A file or a pipe gets it unchanged; a terminal gets its
-- colours, and what else it would obey is spelled out.

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

-- The place of a sequence, a character or an end of line that the text does not complete, but its next piece
-- may; the place behind the text if it has none.
local function open_end(text)
  local at = text:find "\27[%[%d;:]*$" or text:find "\r$" or text:find "[\194-\244][\128-\191]*$"
  return at and #text - at < 32 and not (text:byte(at) > 127 and utf8.len(text, at)) and at or #text + 1
end

--- Pieces of a log as a terminal may get them: call it with each piece, and without one at the end.
---@return fun(piece: string?): string
function M.painter()
  local rest = ""
  return function(piece)
    local text = rest .. (piece or "")
    local to = piece and open_end(text) or #text + 1
    rest = text:sub(to)
    return (common.safe((text:sub(1, to - 1):gsub("\r\n", "\n"))):gsub("%^%[(%[[%d;:]*m)", "\27%1"))
  end
end

function M.run(env)
  local o = env.options
  if #env.words ~= 1 then common.usage("name one pod, got %d words", #env.words) end
  if o.since and o.since_time then common.usage "--since and --since-time exclude each other" end
  local c <close> = common.connect(env)
  local pod = common.pod(c, env.words[1])
  local raw, painted = not o.resume, env.tty and M.painter()
  for text in c:logs(pod, {
    container = o.container, follow = o.follow, tail = o.tail, since = o.since, since_time = o.since_time,
    previous = o.previous,
    timestamps = o.timestamps, limit_bytes = o.limit_bytes, resume = o.resume, raw = raw,
  }) do
    text = raw and text or text .. "\n"
    io.stdout:write(painted and painted(text) or text)
    if o.follow then io.stdout:flush() end
  end
  if painted then io.stdout:write(painted()) end
end

return M
