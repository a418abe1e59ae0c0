-- record.lua SESSION OUT.cast - `make picture`: plays a session of sessions.lua in a real terminal with the
-- built program, and writes what was shown as an asciicast (version 2).
--
-- Shown is what the programs say. The times are made: typing and reading have their pace in the picture, and
-- two recordings differ by what was said alone.

package.path = "docs/picture/?.lua;spec/?.lua;" .. package.path
local json = require "dkjson"
local process = require "support.process"
local sessions = require "sessions"

local name, out = arg[1], arg[2]
assert(out, "usage: lua5.4 docs/picture/record.lua SESSION OUT.cast")
local session = assert(sessions[name], "docs/picture/sessions.lua has no such session")
local COLUMNS, ROWS = session.wide or 100, session.high or 60
local KEY, BEFORE_OUTPUT, READ, READ_LINE = 0.035, 0.25, 1.1, 0.35     -- seconds

local quote = process.quote
local dir = process.tmpname ".picture"
local here = process.run("pwd"):gsub("%s+$", "")
process.run(("mkdir -p %s/bin %s/run"):format(dir, dir))
process.run(("ln -s %s %s/bin/kubelua"):format(quote(here .. "/build/kubelua"), dir))
if name == "readme" then
  process.write(dir .. "/hello.lua", (process.read "controllers/hello.lua":gsub("^.-\n\n", "", 1)))
  process.write(dir .. "/card.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: card, labels: {hello: world}}\n")
else
  process.run(("cp examples/%s/*.lua examples/%s/*.yaml %s"):format(name, name, dir))
end
-- The prompt waits until what was just typed has had its effect.
process.write(dir .. "/rc", ([[
set +m
cd %s
export PATH=%s/bin:$PATH KUBECONFIG=kc XDG_RUNTIME_DIR=%s/run LC_ALL=C.UTF-8
kubelua() {
  if [ "$1" != dev ]; then command kubelua "$@"; return; fi
  shift
  command kubelua dev --write-kubeconfig kc "$@"
}
PROMPT_COMMAND='command sleep 2'
PS1='<<P>>'
stty columns %d rows %d
]]):format(dir, dir, dir, COLUMNS, ROWS))

local steps = {}
for _, line in ipairs(session) do steps[#steps + 1] = json.encode { "<<P>>", line .. "\n" } end
steps[#steps + 1] = json.encode { "<<P>>", "kill %1; exit\n" }
process.write(dir .. "/steps", table.concat(steps, "\n") .. "\n")
local said, code = process.run(
  ("python3 spec/support/terminal.py 120 bash --noediting --rcfile %s/rc -i < %s/steps"):format(dir, dir))
assert(code ~= 97, said)

local events, now = {}, 0.5
local function show(text, after)
  events[#events + 1] = json.encode { math.floor(now * 1000 + 0.5) / 1000, "o", text }
  now = now + after
end
local n = 0
for part in (said .. "<<P>>"):gmatch "(.-)<<P>>" do
  local command = session[n]
  if command then
    show("\27[32m$\27[0m ", 0.4)
    for char in command:gmatch(utf8.charpattern) do show(char, KEY) end
    now = now + BEFORE_OUTPUT
    local printed = part:gsub("^[^\n]*\n", "", 1):gsub("^%[%d+%] %d+\r?\n", "")
    local _, lines = printed:gsub("\n", "")
    show("\r\n" .. printed, READ + lines * READ_LINE)
  end
  n = n + 1
end
assert(n > #session, said)
now = now + 3
local header = json.encode({
  version = 2, width = COLUMNS, height = ROWS, duration = math.floor(now * 10) / 10,
  title = session.title or "kubelua: " .. name,
}, { keyorder = { "version", "width", "height", "duration", "title" } })
process.write(out, header .. "\n" .. table.concat(events, "\n") .. "\n")
process.run("rm -rf " .. dir)
