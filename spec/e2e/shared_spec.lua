-- shared_spec.lua - kube.shared and ctx.memo: state of a script that outlives a run.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local kube = require "kubelua"

-- A controller of ConfigMaps with this body of reconcile(o, ctx), and more keys.
local function source(body, more)
  return ([[local kube = require "kubelua"
return kube.controller { name = "x", resource = "v1/ConfigMap",
  %s reconcile = function(o, ctx) %s end }]]):format(more or "", body)
end

describe("the memory of a script", function()
  local started = {}
  local function start(body, more, names)
    local objects = {}
    for i, name in ipairs(names or { "a" }) do
      objects[i] = { kind = "v1/ConfigMap", name = name, data = { n = "0" } }
    end
    local t = kube.testing.start { source = source(body, more), objects = objects }
    started[#started + 1] = t
    return t
  end
  after_each(function()
    for i, t in ipairs(started) do
      t:stop()
      started[i] = nil
    end
  end)

  local function said(t)
    local list = {}
    for _, l in ipairs(t:logs()) do
      if l.message:find "^said: " then list[#list + 1] = l.message:sub(7) end
    end
    return table.concat(list, "; ")
  end
  local function touch(t, name)
    t:patch({ kind = "v1/ConfigMap", name = name or "a" }, { data = { n = tostring(#t:runs() + 1) } })
  end
  local SAY = "local function say(...) ctx.log:info('said: %s', table.concat({ ... }, ' ')) end "
  -- The error of a run with this code.
  local function refusal(code)
    local t = start(SAY .. ("say(select(2, pcall(function() %s end)))"):format(code))
    return (said(t):gsub("^[^\n]-:1: ", ""))
  end

  it("about an object is in ctx.memo, from one run to the next", function()
    local t = start(SAY .. "ctx.memo.runs = (ctx.memo.runs or 0) + 1 ctx.memo.last = { n = o.data.n } \z
      say(ctx.key, ctx.memo.runs, ctx.memo.last.n)", nil, { "a", "b" })
    touch(t, "a")
    assert.equal("default/a 1 0; default/b 1 0; default/a 2 3", said(t))
  end)

  it("about an object survives a failed run, and can be iterated", function()
    local t = start(SAY .. [[
      local names = {}
      for k, v in pairs(ctx.memo) do names[#names + 1] = k .. "=" .. tostring(v) end
      table.sort(names)
      say(tostring(ctx.memo), table.concat(names, ","))
      ctx.memo.done, ctx.memo.tries = false, ctx.attempt
      if ctx.attempt == 2 then ctx.memo.done = nil end
      if ctx.attempt < 3 then error "not yet" end
    ]])
    t:until_idle()
    assert.equal('{} ; {"tries":1,"done":false} done=false,tries=1; {"tries":2} tries=2', said(t))
  end)

  it("about an object is forgotten with it", function()
    local t = start(SAY .. "say(ctx.memo.seen or 'new') ctx.memo.seen = 'seen'")
    touch(t)
    t:delete("v1/ConfigMap", "a")
    t:create { kind = "v1/ConfigMap", name = "a", data = { n = "0" } }
    assert.equal("new; seen; new", said(t))
  end)

  it("about an object is not given to a new one of the same name", function()
    local t = start(SAY .. "say(ctx.memo.seen or 'new') ctx.memo.seen = 'seen' ctx:sleep '1s'")
    t:delete("v1/ConfigMap", "a")                       -- while it sleeps
    t:create { kind = "v1/ConfigMap", name = "a", data = { n = "1" } }
    t:advance "10s"
    assert.equal("new; new", said(t))
  end)

  it("for all keys is in kube.shared", function()
    local t = start(SAY .. [[
      say(kube.shared:incr "runs", kube.shared:incr("half", 0.5), tostring(kube.shared:get "first"))
      say(tostring(kube.shared:cas("first", nil, ctx.key)),
        select(2, kube.shared:cas("first", "nobody", ctx.key)), #kube.shared:names(),
          table.concat(kube.shared:names "f", ","))
      kube.shared:set("list", { ctx.key, { deep = true } })
      say(kube.shared:get("list")[1], tostring(kube.shared:get("list")[2].deep))
      if ctx.name == "b" then kube.shared:set("first", nil) say(tostring(kube.shared:get "first")) end
    ]], nil, { "a", "b" })
    assert.equal("1 0.5 nil; true default/a 3 first; default/a true; 2 1.0 default/a; false default/a 4 \z
      first; default/b true; nil", said(t))
  end)

  it("is separate for each test", function()
    local body = SAY .. "say(kube.shared:incr 'n')"
    assert.equal("1", said(start(body)))
    assert.equal("1", said(start(body)))
  end)

  it("is bounded, with an error", function()
    assert.equal('ctx.memo may hold 64 KiB for a key; with "x" it would be 69: set fields that are no \z
      longer needed to nil, or keep the value in the object', refusal "ctx.memo.x = ('x'):rep(70000)")
    assert.matches('^kube%.shared of .* may hold 16384 KiB and holds 0; the 19532 KiB \z
      of "x" do not fit: set fields that are no longer needed to nil, or keep the value in objects$',
      refusal "kube.shared:set('x', ('x'):rep(20000000))")
    assert.matches("may hold 16384 KiB",
      refusal "for i = 1, 1e6 do kube.shared:set('x' .. i, ('x'):rep(100000)) end")
  end)

  it("holds JSON-like values, replaced as a whole", function()
    assert.matches("^ctx%.memo%.x%.f: a function", refusal "ctx.memo.x = { f = print }")
    assert.matches("^ctx%.memo: field names must be strings, got a number", refusal "ctx.memo[1] = 1")
    assert.matches("read%-only", refusal "ctx.memo.x = { y = 1 } ctx.memo.x.y = 2")
    assert.matches("^ctx%.memo cannot be set", refusal "ctx.memo = {}")
    assert.matches("a function", refusal "kube.shared:set('x', print)")
    assert.matches('^"x" of kube%.shared of .* is not a number but string$',
      refusal "kube.shared:set('x', 'y') kube.shared:incr 'x'")
    assert.matches("would be more than a number holds$",
      refusal "kube.shared:set('x', math.maxinteger) kube.shared:incr 'x'")
  end)

  it("has one way of access, and suggests names", function()
    assert.equal("call kube.shared.get with a colon: kube.shared:get(...)",
      refusal "kube.shared.get 'x'")
    assert.matches("^kube%.shared has no gett; read values with kube%.shared:get%(\"gett\"%); did you \z
      mean 'get'%?$", refusal "return kube.shared.gett")
    assert.equal('kube.shared.x cannot be assigned: use kube.shared:set("x", value)',
      refusal "kube.shared.x = 1")
    assert.equal("kube.shared:get: the name of a value must be a string, got nil",
      refusal "kube.shared:get()")
    assert.equal('kube.shared:incr("x"): expected a number, got a string',
      refusal "kube.shared:incr('x', 'y')")
    assert.error_matches(function() return kube.shared:get "x" end, "a standalone program has variables")
  end)

  it("does not exist while a script loads, nor in mapping functions", function()
    assert.error_matches(function()
      kube.testing.start { source = "local kube = require 'kubelua' kube.shared:incr 'n'" }
    end, "kube%.shared is available only during a reconcile")
    local t = start("", "watches = { ['v1/Secret'] = function() kube.shared:incr 'n' end },")
    t:create { kind = "v1/Secret", name = "s" }
    t:settle()
    local found
    for _, l in ipairs(t:logs()) do
      found = found or (l.fields or ""):find("kube.shared is available only during a reconcile", 1, true)
    end
    assert.truthy(found)
  end)
end)

describe("a memo that a script kept", function()
  it("raises after its reconcile", function()
    local t <close> = kube.testing.start { objects = { { kind = "v1/ConfigMap",
      name = "a", data = { n = "0" } } }, source = [[
      local kube = require "kubelua"
      local kept
      return kube.controller { name = "x", resource = "v1/ConfigMap", reconcile = function(o, ctx)
        kept = kept or ctx.memo
        return kept.x
      end }
    ]] }
    t:patch({ kind = "v1/ConfigMap", name = "a" }, { data = { n = "1" } })
    assert.equal("done", t:runs("a")[1].result)
    assert.matches("ctx%.memo: the reconcile of this ctx is over", t:runs("a")[2].message)
  end)
end)

servers.each(function(name, start)
  describe("the memory of a script in `kubelua run` against " .. name, function()
    local server, client, ns
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "shared")
    end)
    lazy_teardown(function() if server then server:stop() end end)

    local function create(key)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = { touch = "0" } }
    end
    local function await(key, field, value)
      wait.until_true(60, ("%s of %s is %s"):format(field, key, value), function()
        local got = client:get("v1/ConfigMap", ns, key)("data." .. field)
        if got ~= value then error("it is " .. tostring(got), 0) end
        return true
      end)
    end

    -- All keys together count in small steps, each to a thousand; `field` gets the result.
    local function script(field)
      return ([[
        local kube = require "kubelua"
        return kube.controller {
          name = "remembers", resource = "v1/ConfigMap", namespaces = { %q }, workers = 2, concurrency = 4,
          reconcile = function(o, ctx)
            if not ctx.memo.counted then
              for i = 1, 1000 do
                kube.shared:incr "n"
                if i %% 100 == 0 then ctx:sleep "1ms" end
              end
              ctx.memo.counted = true
              kube.shared:incr "keys"
            end
            ctx.memo.runs = (ctx.memo.runs or 0) + 1
            if o("data.touch") == "report" then
              local text = ("%%d of %%d keys"):format(kube.shared:get "n", kube.shared:get "keys")
              if o("data.%s") ~= text then ctx:patch(o, { data = { %s = text } }) end
            end
            ctx.log:info("%s: run %%d of %%s", ctx.memo.runs, ctx.name)
          end,
        }
      ]]):format(ns, field, field, field)
    end

    it("is exact across workers, survives a reload, and ends with the object", function()
      local path = process.write(process.tmpname ".lua", script "before")
      local run = controller.start(server, path)
      for i = 1, 8 do create("key-" .. i) end
      for i = 1, 8 do run:wait_for_log(60, "before: run 1 of key-" .. i) end
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "key-1" }, { data = { touch = "report" } })
      await("key-1", "before", "8000 of 8 keys")

      process.write(path .. ".new", script "after")
      assert(os.rename(path .. ".new", path))
      await("key-1", "after", "8000 of 8 keys")       -- no key counted again
      for i = 2, 8 do run:wait_for_log(60, "after: run 2 of key-" .. i) end

      client:delete("v1/ConfigMap", ns, "key-2")
      wait.until_true(60, "key-2 is gone", function() return not client:get("v1/ConfigMap", ns, "key-2") end)
      create "key-2"
      run:wait_for_log(60, "after: run 1 of key-2")
      create "last"
      run:wait_for_log(60, "after: run 1 of last")
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "last" }, { data = { touch = "report" } })
      await("last", "after", "10000 of 10 keys")
      controller.finish(run)
    end)
  end)
end)
