-- play_spec.lua - `kubelua dev --play FILE`: a Lua program runs beside the controllers, and the process ends
-- with it.

local process = require "support.process"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"

-- The path of a program with that text, in a new directory.
local function written(text)
  local dir = process.tmpname ".play"
  process.run("mkdir -p " .. process.quote(dir))
  process.write(dir .. "/words.lua", 'return { hello = "hello from beside" }')
  return process.write(dir .. "/play.lua", text)
end

local function play(text)
  return process.run(("%s dev controllers/hello.lua --play %s"):format(KUBELUA, written(text)))
end

describe("`kubelua dev --play`", function()
  it("runs a program that sees controllers work, finds modules beside it and sets the exit status",
    function()
    local out, code = play [[
      local kube = require "kubelua"
      local c = kube.connect { server = dev.server }
      c:create { kind = "v1/ConfigMap", namespace = "default", name = "card",
        labels = { hello = "world" }, data = { a = "b" } }
      for _ = 1, 600 do
        local card = c:get("v1/ConfigMap", "default", "card")
        if card("data.greeting") then
          print(require("words").hello, card.data.greeting, dev.controllers()[1].state, #dev.scripts, dev.tty,
            dev.wait(0))
          return 3
        end
        dev.wait(0.1)
      end
      return 4
    ]]
    assert.equal(3, code, out)
    assert.truthy(out:find("hello from beside\tHello, world!\trunning\t1\tfalse\ttrue", 1, true), out)
  end)

  it("exits with 0 when the program does", function()
    local out, code = play "return"
    assert.equal(0, code, out)
  end)

  it("fails when the program does, and shows where", function()
    local out, code = play "local x = nil\nreturn x.y"
    assert.equal(1, code)
    assert.truthy(out:find("play.lua:2: attempt to index", 1, true) and out:find("stack traceback", 1, true),
      out)
  end)

  it("ends with the process, though the program neither returns nor waits", function()
    local dev = process.spawn { KUBELUA, "dev", "controllers/hello.lua", "--play", written [[
      io.write "begun\n" io.flush()
      local function work() for _ = 1, 1e4 do end end
      local forever = coroutine.wrap(function() while true do pcall(work) end end)
      while true do pcall(forever) end]] }
    dev:wait_for_log(30, "begun")
    local code = dev:stop(30)
    local out = dev:log()
    assert.equal(0, code, out)
    assert.truthy(out:find("the play did not end by itself", 1, true), out)
  end)

  it("fails when the program is not Lua", function()
    local out, code = play "return return"
    assert.equal(1, code)
    assert.truthy(out:find("play.lua:1:", 1, true), out)
  end)
end)
