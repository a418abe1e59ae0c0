-- reloads_spec.lua - new logic again and again while objects change (spec/programs/reloads.c): nothing is
-- listed twice, lost, run twice at once or leaked; and after each kind of mistake the old logic keeps running
-- and the reason is reported.

local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local BUILD = os.getenv "KL_BUILD" or "build"
-- The sanitizers find leaks themselves, and malloc's statistics are not available with them.
local PLAIN = (os.getenv "KL_VARIANT" or "release") == "release"
local OBJECTS = sizes.of { short = 500, long = 10000, sanitized = 1000 }
local RELOADS = sizes.of { short = 60, long = 1000, sanitized = 100 }
-- A leaked generation has at least 100,000 bytes; between the compared halves there are RELOADS * 6 / 20 of
-- them. Other growth comes in steps: another connection with its buffers, when the machine is slow. malloc's
-- threads keep nothing (see below).
local NOISE = 524288

local function least(parts, what, from, to)
  local n = math.huge
  for i = from, to do n = math.min(n, parts[i][what]) end
  return n
end

-- One part may be far from the others, on a busy machine.
local function middle(parts, what, from, to)
  local list = {}
  for i = from, to do list[#list + 1] = parts[i][what] end
  table.sort(list)
  return list[#list // 2]
end

local function numbers(text)
  local t = {}
  for name, value in text:gmatch "(%a+)=(%-?%d+)" do t[name] = tonumber(value) end
  return t
end

servers.each(function(name, start)
  describe(("%d reloads over %d objects of %s"):format(RELOADS, OBJECTS, name), function()
    local server, client
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
    end)
    lazy_teardown(function() if server then server:stop() end end)

    it("list nothing again, lose no key, run none twice at once, and leave no thread, descriptor or \z
      byte behind", function()
      local ns = controller.namespace(client, "reloads")
      local p = process.spawn { env = { GLIBC_TUNABLES = "glibc.malloc.tcache_count=0" },
        BUILD .. "/spec/reloads", "--kubeconfig", server.kubeconfig, ns, OBJECTS, RELOADS }
      assert.equal(0, p:wait(240 * wait.factor), p:log())
      local parts, log = {}, p:log()
      for line in log:gmatch "part %d+/20 ([^\n]+)" do parts[#parts + 1] = numbers(line) end
      assert.equal(20, #parts, log)
      local last = numbers(assert(log:match "\nend ([^\n]+)", log))
      assert.same({ lists = 1, lost = 0, unmarked = 0, double = 0, errors = 0 },
        { lists = last.lists, lost = last.lost, unmarked = last.unmarked, double = last.double,
          errors = last.errors }, log)
      assert.is_true(last.runs >= 2 * OBJECTS, log)
      for i = 2, #parts do assert.equal(parts[1].threads, parts[i].threads, log) end
      -- Connections come and go with the load; a descriptor a generation would be half as many as there
      -- were reloads.
      assert.is_true(least(parts, "fds", 11, 20) < least(parts, "fds", 1, 10) + RELOADS // 4, log)
      if PLAIN then
        for _, what in ipairs { "bytes", "values" } do
          -- the last one writes everything
          local grown = middle(parts, what, 14, 19) - middle(parts, what, 8, 13)
          assert.is_true(grown < NOISE, ("%s: grown by %d\n%s"):format(what, grown, log))
        end
      end
    end)
  end)

  describe("a mistake in a new script, against " .. name, function()
    local server, client, ns, run, path, touches

    -- Where there is RBAC the controller may do this much.
    local function config()
      if not server.tokens.nobody then return server.kubeconfig end
      client:create { kind = "rbac.authorization.k8s.io/v1/Role", namespace = ns, name = "maps",
        rules = { { apiGroups = { "" }, resources = { "configmaps" },
          verbs = { "get", "list", "watch", "patch" } } } }
      client:create { kind = "rbac.authorization.k8s.io/v1/RoleBinding", namespace = ns, name = "maps",
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = "maps" },
        subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = "nobody" } } }
      return server:kubeconfig_for(server.tokens.nobody)
    end

    local function text(more, word)
      return ([[
        local kube = require "kubelua"
        return kube.controller {
          name = "echo", resource = "v1/ConfigMap", %s
          reconcile = function(map, ctx)
            local echo = map("data.touch") and "%s " .. map.data.touch
            if echo ~= map("data.echo") then ctx:patch(map, function(m) m.data.echo = echo end) end
          end,
        }
      ]]):format(more or "", word or "old")
    end

    local function save(new)
      process.write(path .. ".new", new)
      assert(os.rename(path .. ".new", path))
    end

    local function answers(word)
      touches = touches + 1
      client:patch({ kind = "v1/ConfigMap", namespace = ns, name = "map" },
        { data = { touch = tostring(touches) } })
      wait.until_true(30, "the answer of " .. word, function()
        local echo = client:get("v1/ConfigMap", ns, "map")("data.echo")
        if echo ~= word .. " " .. touches then error("it is " .. tostring(echo), 0) end
        return true
      end)
    end

    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      ns = controller.namespace(client, "mistakes")
      touches = 0
      path = process.write(process.tmpname ".lua", text())
      client:create { kind = "v1/ConfigMap", namespace = ns, name = "map", data = {} }
      run = controller.start({ kubeconfig = config() }, path, "--namespace", ns)
      answers "old"
    end)
    lazy_teardown(function()
      if run then controller.finish(run) end
      if server then server:stop() end
    end)

    -- The message in the log. `waits`: the script is accepted and waits, since the missing kind may appear.
    local MISTAKES = {
      { "in the syntax", "return {", says = { ":1: unexpected symbol near <eof>" } },
      { "that raises while loading", 'local t\nreturn t.x',
        says = { ":2: ", "attempt to index a nil value" } },
      { "that does I/O while loading", 'local f = io.open "/etc/passwd"\nreturn f',
        says = { ":1: ", "'io' is not available to scripts" } },
      { "in a key of the spec", text "worker = 3,", says = {
        "unknown key 'worker'; did you mean 'workers'?" } },
      { "in a kind's name", text 'reads = { "Secrets" },',
        says = { 'no built-in kind has the name', 'v1/Secret' } },
      { "that never ends loading", "while true do end", says = { "loading takes longer than" } },
      { "in a module's name", 'require "nowhere"', says = { ":1: ", "nowhere" } },
      { "in what is returned", "return 42", says = { "return" } },
      { "of a kind that the server lacks", text 'reads = { "nowhere.example.com/v1/Thing" },', waits = true,
        says = { "the server has no", "nowhere.example.com/v1/Thing" } },
      { "of an informer without permission", text 'reads = { "v1/Secret" },', waits = true, rbac = true,
        says = { "may not list secrets in namespace", 'resources: [\\"secrets\\"]' } },
    }
    for _, mistake in ipairs(MISTAKES) do
      it(mistake[1] .. " leaves the old logic at work, and is told", function()
        if mistake.rbac and not server.tokens.nobody then return end
        local before = #run:log()
        save(mistake[2])
        local what = mistake.waits and "the new generation waits; the old one keeps running"
          or "the new script was refused; the old one keeps running"
        -- The last mistake may be rejected twice: saving causes two events of the file system.
        wait.until_true(30, "the log says why", function()
          local said = run:log():sub(before + 1)
          for line in said:gmatch("[^\n]*" .. what .. "[^\n]*") do
            local says = true
            for _, words in ipairs(mistake.says) do says = says and line:find(words, 1, true) end
            if says then return true end
          end
          error(said, 0)
        end)
        answers "old"
      end)
    end

    it("ends with the next good one", function()
      save(text("", "new"))
      answers "new"
    end)
  end)
end)
