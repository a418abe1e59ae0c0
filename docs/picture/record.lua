-- record.lua OUT.cast - `make picture`: plays a session in a real terminal with the built program, and writes what
-- was shown as an asciicast (version 2).
--
-- Shown is what the programs say. The times are made: typing and reading have their pace in the picture, and two
-- recordings differ by what was said alone.

package.path = "spec/?.lua;" .. package.path
local json = require "dkjson"
local process = require "support.process"

local out = assert(arg[1], "usage: lua5.4 docs/picture/record.lua OUT.cast")
local COLUMNS, ROWS = 112, 24
local KEY, BEFORE_OUTPUT, READ, READ_LINE = 0.035, 0.25, 1.1, 0.35     -- seconds

-- What is typed. What stands behind # is for the reader.
local SESSION = {
  "kubelua dev hello.lua --load card.yaml --record hello.tape 2> log &",
  "kubelua get cm card -o path=data.greeting",
  "sed -i 's/Hello/Good morning/' hello.lua          # an edit: the running controller takes it",
  "kubelua get cm card -o path=data.greeting",
  "sed -i 's/return end/return endd/' hello.lua      # a slip: it is refused, the old logic goes on",
  "kubelua reload",
  "sed -i 's/endd/end/' hello.lua",
  "kubelua why cm card",
  "sed 's/Good morning/Hi/' hello.lua > next.lua     # the next idea, beside what runs, without a write",
  "kubelua shadow next.lua --all",
  "kubelua replay hello.tape next.lua                # and on what has happened",
}

local quote = process.quote
local dir = process.tmpname ".picture"
local here = process.run("pwd"):gsub("%s+$", "")
process.run(("mkdir -p %s/bin %s/run"):format(dir, dir))
process.run(("ln -s %s %s/bin/kubelua"):format(quote(here .. "/build/kubelua"), dir))
process.write(dir .. "/hello.lua", (process.read "controllers/hello.lua":gsub("^.-\n\n", "", 1)))
process.write(dir .. "/card.yaml",
  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: card, labels: {hello: world}}\n")
-- The prompt waits until what was just typed has had its effect.
process.write(dir .. "/rc", ([[
set +m
cd %s
export PATH=%s/bin:$PATH KUBECONFIG=kc XDG_RUNTIME_DIR=%s/run LC_ALL=C.UTF-8
kubelua() { if [ "$1" = dev ]; then shift; command kubelua dev --write-kubeconfig kc "$@"; else command kubelua "$@"; fi; }
PROMPT_COMMAND='command sleep 1.5'
PS1='<<P>>'
stty columns %d rows %d
]]):format(dir, dir, dir, COLUMNS, ROWS))

local steps = {}
for _, line in ipairs(SESSION) do steps[#steps + 1] = json.encode { "<<P>>", line .. "\n" } end
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
  local command = SESSION[n]
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
assert(n > #SESSION, said)
now = now + 3
local header = json.encode({
  version = 2, width = COLUMNS, height = ROWS, duration = math.floor(now * 10) / 10,
  title = "kubelua: run, edit, refused edit, why, shadow, replay",
}, { keyorder = { "version", "width", "height", "duration", "title" } })
process.write(out, header .. "\n" .. table.concat(events, "\n") .. "\n")
process.run("rm -rf " .. dir)
