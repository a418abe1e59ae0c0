-- compiled_spec.lua - a process compiles the library once; line numbers and names are those of its source.
local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- A program beside controllers gets the chunks that an earlier state compiled; the files have the same text.
local PROGRAM = [[
  local function shape(f)
    local i, lines, out = debug.getinfo(f, "SL"), {}, {}
    for line in pairs(i.activelines) do lines[#lines + 1] = line end
    table.sort(lines)
    for n = 1, 250 do out[#out + 1] = debug.getupvalue(f, n) end
    for n = 1, 250 do out[#out + 1] = debug.getlocal(f, n) end
    return ("%s %d-%d: %s; %s"):format(i.source, i.linedefined, i.lastlinedefined, table.concat(lines, " "),
      table.concat(out, " "))
  end
  local functions = 0
  for _, name in ipairs { "conditions", "helpers", "owner", "result" } do
    local f <close> = assert(io.open("lua/kubelua/" .. name .. ".lua"))
    local text = assert(load(f:read "a", "@kubelua/" .. name .. ".lua"))("kubelua." .. name)
    for key, got in pairs(require("kubelua." .. name)) do
      if type(got) == "function" and debug.getinfo(got, "S").what == "Lua" then
        functions = functions + 1
        assert(shape(got) == shape(text[key]), shape(got) .. "\n" .. shape(text[key]))
      end
    end
  end
  print("functions=" .. functions)
]]

describe("the library's compiled code", function()
  it("keeps the lines and names of its source", function()
    local program = process.write(process.tmpname ".lua", PROGRAM)
    local out, code = process.run(
      ("%s dev spec/hunt/seeds/written_controller.lua --control off --log-level error --play %s"):format(
        process.quote(KUBELUA), process.quote(program)))
    assert.equal(0, code, out)
    assert.truthy((tonumber(out:match "functions=(%d+)") or 0) > 20, out)
  end)
end)
