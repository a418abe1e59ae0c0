-- commands_spec.lua - every command in the docs is run: here, or by the spec that ELSEWHERE names; CANNOT
-- gives the reason where none does. A new command is run here unless it is in one of these lists.
--
-- Commands of a page run in their order, in a directory of the page, against one embedded server. Their exit
-- status is 0 unless STATUS says otherwise, and the first line that the page shows below a command is in
-- what it prints, numbers and quoted values aside.
-- not in asan, tsan: the pages are the subject; what their commands run, other specs run

local process = require "support.process"
local servers = require "support.servers"
local wait = require "support.wait"

local KUBELUA = process.run("readlink -f "
  .. process.quote(os.getenv "KUBELUA" or "build/kubelua")):gsub("%s+$", "")

-- Pages whose commands another spec runs, all of them.
local ELSEWHERE = {
  ["docs/guide.md"] = "spec/e2e/guide_spec.lua",
  ["docs/whatif.md"] = "spec/e2e/whatif_spec.lua",
}

-- Commands that another spec runs: page (a pattern), beginning of the command, spec.
local ELSEWHERE_TOO = {
  { "^examples/.", "kubelua test", "spec/e2e/examples_spec.lua" },
  { "^README", "sudo make install", "spec/install_spec.lua" },
  { "^docs/apiserver", "KUBEBUILDER_ASSETS=$PWD/bin/kubelua go test", "spec/e2e/clients_spec.lua" },
  { "^deploy/README", "helm install", "spec/e2e/chart_spec.lua" },
  { "^docs/performance", "make bench QUICK", "spec/bench_spec.lua" },
}

-- Commands that no spec runs: beginning, and why.
local CANNOT = {
  { "make bench", "measures for minutes to hours" },
  { "valgrind ", "counts instructions for a minute" },
  { "make -C bench profile", "wants perf, and the right to use it" },
  { "make dist &&", "wants docker; dist_spec makes and looks at the image" },
  { "make check", "runs this spec" },
  { "make", "is how the program under test came to be" },
  { "docker build", "wants docker" },
  { "kubectl -n kubelua-system", "wants a cluster with nodes that can pull the image" },
  { "kubectl apply -f deploy/podmonitor.yaml", "wants the definitions of Prometheus' operator" },
  { "kubectl get nodes,pods,configmaps,nodemetrics", "wants a cluster of one's own" },
}

-- Exit statuses of commands that a page shows to fail.
local STATUS = {
  ["kubelua get nodez"] = 1,
  ["kubelua shadow next.lua --all"] = 1,
  ["kubelua shadow"] = 1,
  ["kubelua shadow --all"] = 1,
  ["kubelua check dns.lua"] = 1,
  ["kubelua replay limits.tape next/limits.lua"] = 1,
  ["kubelua replay hello.tape hello-next.lua"] = 1,
  ["kubectl run loose --image=nginx"] = 1,
  ["kubectl get configmap old"] = 1,
}

-- A prompt appears only on a terminal; here the command reads the end of its input.
local PROMPTS = { ["kubelua shell"] = true, ["kubelua attach"] = true }

-- The output on the page is from a cluster with a history; beginnings of commands.
local OF_ANOTHER_CLUSTER = { "kubelua sim noderesource.lua", "kubelua replay hello.tape hello-next.lua" }

-- ---------------------------------------------------------------- what pages show

local function pages()
  local out = {}
  for path in process.run "ls README.md CONTRIBUTING.md SECURITY.md docs/*.md deploy/README.md \z
    spec/README.md \z
    bench/README.md examples/README.md examples/*/README.md controllers/*/README.md \z
      2>/dev/null":gmatch "%S+%.md" do
    out[#out + 1] = path
  end
  return out
end

-- The commands of a page in order: { text =, expected = the first line shown below it, or nil }.
local function commands(page)
  local out, fence, last = {}, nil, nil
  for line in (process.read(page):gsub("\\\n%s*", " ") .. "\n"):gmatch "(.-)\n" do
    local mark = line:match "^%s*```(.*)$"
    if mark then
      fence, last = not fence and mark or nil, nil
    elseif fence == "sh" or fence == "" or fence == "console" then
      local goes_on = last and select(2, last.text:gsub("'", "")) % 2 == 1 -- a quoted word over several lines
      local text = not goes_on and (line:match "^%s*%$ (.*)$" or fence == "sh" and line) or nil
      if goes_on then
        last.text = last.text .. "\n" .. line
      elseif text and text:find "%S" and not text:find "^%s*#" then
        last = { text = (text:gsub("%s+#%s.*$", "")) }
        out[#out + 1] = last
      elseif last and not text and not last.expected and line:find "%S" and not line:find "^%.%.%." then
        last.expected = not PROMPTS[last.text] and line:gsub("%s*%.%.%..*$", "") or nil
      end
    end
  end
  return out
end

local function begins(text, with) return text:sub(1, #with) == with end

local function elsewhere(page, text)
  if ELSEWHERE[page] then return ELSEWHERE[page] end
  for _, row in ipairs(ELSEWHERE_TOO) do
    if page:find(row[1]) and begins(text, row[2]) then return row[3] end
  end
end

local function reason(text)
  for _, row in ipairs(CANNOT) do
    if begins(text, row[1]) then return row[2] end
  end
end

-- ---------------------------------------------------------------- running one

-- A line without the parts that differ from run to run.
local function bones(line)
  return (line:gsub("^%d[%d-]+T[%d:.]+Z ", ""):gsub('%b""', '""'):gsub("%f[%w]%d[%w.:]*",
    "N"):gsub("N%-[%w-]+", "N")
    :gsub("waiting for caches", "N same, N differ, N fail (N runs)"):gsub("differs", "differ"):gsub("fails",
      "fail")
    :gsub("%s+", " "))
end

-- Whether a line of the output begins like the one on the page.
local function shows(said, expected)
  local with = bones(expected)
  for line in said:gmatch "[^\n]+" do
    if begins(bones(line), with) then return true end
  end
  return false
end

---@class spec.Page
---@field dir string
---@field setting string    what stands before each command in its shell
---@field running table[]   programs that go on until the page is done
local Page = {}
Page.__index = Page

local function open(server)
  local dir = process.tmpname ".page"
  process.run(("mkdir -p %s/.bin && ln -s %s %s/.bin/kubelua && cp -R controllers examples deploy %s"):format(
    dir,
    KUBELUA, dir, dir))
  dir = process.run("cd " .. dir .. " && pwd"):gsub("%s+$", "")
  local assets = servers.assets()
  if assets then process.run(("ln -s $(readlink -f %s/kubectl) %s/.bin/kubectl"):format(assets, dir)) end
  return setmetatable({ dir = dir, running = {}, ports = {},
    setting = ("cd %s && export PATH=%s/.bin:$PATH HOME=%s XDG_RUNTIME_DIR=%s KUBECONFIG=%s && "):format(dir,
      dir,
      dir, dir, server and server.kubeconfig or "kc") }, Page)
end

function Page:write(name, text) process.write(self.dir .. "/" .. name, text) end

-- Replaces the ports on the page, which may be in use here.
function Page:with_ports(command)
  return (command:gsub("127%.0%.0%.1:(%d+)", function(port)
    self.ports[port] = self.ports[port] or servers.free_port()
    return "127.0.0.1:" .. self.ports[port]
  end))
end

function Page:shell(command)
  return process.run(("timeout 60 bash -c %s"):format(process.quote(self.setting
    .. self:with_ports(command))))
end

function Page:must(command)
  local said, code = self:shell(command)
  assert.equal(0, code, command .. "\n" .. said)
  return said
end

-- The output of a long-running program once it works.
local READY = { { "kubelua apiserver", "serving http" }, { "kubelua watch", "watching " },
  { "kubelua", "controller is running" }, { "kubelua", "the webhook is registered" } }

function Page:spawn(command)
  local p = process.spawn { "bash", "-c", self.setting .. "exec " .. self:with_ports(command),
    name = command }
  self.running[#self.running + 1] = p
  local log = command:match "2> ?(%S+)"
  wait.until_true(60, command .. " runs", function()
    local said = p:log() .. (log and process.read(self.dir .. "/" .. log) or "")
    if not p:alive() then return true end
    for _, row in ipairs(READY) do
      if begins(command, row[1]) and said:find(row[2], 1, true) then return true end
    end
  end)
  if not p:alive() then error(("$ %s\nended:\n%s"):format(command, p:log()), 0) end
  return p
end

-- Ends programs whose command begins like that; a page starts the next one in its place.
function Page:finish(beginning)
  local stay = {}
  for _, p in ipairs(self.running) do
    if begins(p.name, beginning or "") then p:signal "TERM" else stay[#stay + 1] = p end
  end
  for _, p in ipairs(self.running) do
    if begins(p.name, beginning or "") and not p:wait(30) then p:kill() end
  end
  self.running = stay
end

-- Commands that are repeated until their answer is right, since a controller or a process must act first.
local POLLED = { "kubelua get", "kubelua why", "kubelua shadow", "curl", "grep", "kubectl" }

function Page:run(command)
  local text = command.text
  local goes_on = text:match "^(.-)%s*&$"
  if goes_on then return self:spawn(goes_on) end
  if text:find "^kubelua run " or text:find "^kubelua dev " then
    self:finish "kubelua run"
    self:finish "kubelua dev"
    return self:spawn(text)
  end
  local first, last = text:match "^(.*); (grep .*)$"
  if first then self:must(first) end
  last = last or text
  for _, beginning in ipairs(OF_ANOTHER_CLUSTER) do
    if begins(text, beginning) then command.expected = nil end
  end
  local said, code
  local function good()
    said, code = self:shell(last)
    return code == (STATUS[text] or 0)
      and (not command.expected or shows(said, command.expected))
  end
  local polled = false
  for _, word in ipairs(POLLED) do polled = polled or begins(last, word) end
  local ok = polled and pcall(wait.until_true, 15, last, good) or not polled and good()
  if ok then return end
  local logs = {}
  for _, p in ipairs(self.running) do logs[#logs + 1] = p.name .. ":\n" .. p:log():sub(-1500) end
  error(("$ %s\nstatus %d, said:\n%s\ninstead of:\n%s\n%s"):format(text, code, said,
    command.expected or "(anything)",
    table.concat(logs, "\n")), 0)
end

-- ---------------------------------------------------------------- what the pages speak of

local CARD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: card, labels: {hello: world}}\n"

-- A script with a mistake, on the lines that cli.md names.
local function dns()
  local lines = { [1] = 'local kube = require "kubelua"', [3] = "return kube.controller {",
    [4] = '  name = "dns", resource = "v1/Service",', [13] = "  reconcile = function(o, ctx)",
    [14] = '    ctx.gett("v1/Service", o.metadata.name)', [15] = "  end,", [22] = '  reads = { "v1/Node" },',
      [23] = "}" }
  for i = 1, 23 do lines[i] = lines[i] or "" end
  return table.concat(lines, "\n")
end

local function namespaces()
  local out = {}
  for i = 1, 50 do
    local tier = i > 12 and "other" or i % 3 == 0 and "large" or "small"
    out[i] = ("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-%d, labels: {tier: %s}}\n"):format(i,
      tier)
  end
  return table.concat(out, "---\n")
end

local PREPARE = {}

PREPARE["README.md"] = function(page)
  page:write("card.yaml", CARD)
  page:must "kubelua apply -f card.yaml"
  local hello = process.read "controllers/hello.lua"
  page:write("next.lua", (hello:gsub('"Hello, " %.%. who', '"Hi, " .. who:upper()')))
  page:must "cp -R controllers/koordinator/* ."
  page:write("cluster.yaml", [[
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "8", memory: 32Gi}, allocatable: {cpu: "8", memory: 32Gi}}
]])
  -- `dev` has its own server, without the card
  return { ["kubelua why cm card"] = function()
    page:finish "kubelua dev"
    page:spawn "kubelua run controllers/hello.lua"
  end }
end

PREPARE["docs/apiserver.md"] = function(page)
  page:must "mkdir crds bin && cp controllers/koordinator/crds/*.yaml crds"
  page:write("objects.yaml", CARD)
  local again = false
  return {
    ["kubelua apiserver --listen 127.0.0.1:8080 --simulate &"] = function() page:finish() end,
    ["curl -s 127.0.0.1:8080/kubelua/v1/clock"] = function()
      if again then return end
      again = true
      page:finish()
      page:spawn "kubelua apiserver --listen 127.0.0.1:8080 --clock virtual"
    end,
  }
end

PREPARE["docs/changing-logic.md"] = function(page)
  local both = process.read "docs/changing-logic.md":match "```lua\n(%-%- limits%.lua.-)```"
  local limits, plan = both:match "^(.-)(%-%- plan%.lua.*)$"
  page:write("limits.lua", limits)
  page:write("plan.lua", (plan:gsub("^%-%- plan%.lua\n", "")))
  page:write("namespaces.yaml", namespaces())
  page:must "mkdir next && cp limits.lua next && sed 's/large = 200/large = 400/' plan.lua > next/plan.lua"
  page:must "sed 's/tostring(pods) }/tostring(pods), by = \"next\" }/' limits.lua > limits-next.lua"
  page:must "cp controllers/hello.lua . && sed 's/Hello/Hi/' hello.lua > hello-next.lua"
  page:must "kubelua apply -f namespaces.yaml"
  page:write("card.yaml", CARD)
  local function wake() -- the shadow waits for a change
    page:write("more.yaml", (namespaces():gsub("labels: {", "labels: {woken: by-hand, ")))
    page:must "kubelua apply -f more.yaml"
  end
  return {
    ["kubelua shadow"] = wake,
    ["kubelua run hello.lua --record hello.tape"] = function() page:must "kubelua apply -f card.yaml" end,
    ["kubelua replay hello.tape hello.lua"] = function()
      page:must "for i in $(seq 50); do [ \"$(kubelua get cm card -o path=data.greeting)\" ] && break; done"
      page:finish "kubelua run"
    end,
  }
end

PREPARE["docs/cli.md"] = function(page)
  page:write("settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: \z
    blue}\n")
  page:write("dns.lua", dns())
  page:write("buckets.lua", [[
local kube = require "kubelua"
local Bucket = kube.crd { group = "example.com", kind = "Bucket", schema = kube.schema { spec = {} } }
return kube.controller { name = "buckets", resource = Bucket, reconcile = print,
  finalize = function() return kube.retry("1h", "never") end }
]])
  page:write("pods.lua", [[
local kube = require "kubelua"
return kube.webhook { name = "pods", resource = "v1/Pod", failure_policy = "Ignore",
  validate = function() end }
]])
  return {
    ["kubelua release-finalizers buckets.lua --dry-run"] = function()
      page:write("bucket.yaml", "apiVersion: example.com/v1\nkind: Bucket\nmetadata: {name: a}\n")
      local run = page:spawn "kubelua run buckets.lua --install-crds"
      page:must "kubelua apply -f bucket.yaml"
      run:wait_for_log(30, "finalizers")
      page:must "kubelua delete bucket.example.com a --wait=false"
      page:finish "kubelua run"
    end,
    ["kubelua uninstall pods.lua --dry-run"] = function()
      page:spawn("kubelua run pods.lua --webhook-listen 127.0.0.1:0 --webhook-url auto")
        :wait_for_log(30, "the webhook is registered")
      page:finish "kubelua run"
    end,
  }
end

PREPARE["docs/operations.md"] = function(page)
  page:write("a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\napiVersion: \z
    v1\nkind: ConfigMap\n"
    .. "metadata: {name: a, namespace: team, labels: {hello: world}}\n")
  page:must "kubelua apply -f a.yaml"
  page:write("hello.lua", (process.read "controllers/hello.lua"))
  page:write("secret-sync.lua", [[
return require "kubelua".controller { name = "secret-sync", resource = "example.com/v1/SecretSync",
  reconcile = print }
]])
  page:spawn "kubelua run hello.lua secret-sync.lua --health-probe-bind-address 127.0.0.1:8081"
  return {}
end

PREPARE["docs/koordinator.md"] = function(page)
  page:must "kubelua apply -f controllers/koordinator/crds"
  return {}
end

PREPARE["examples/README.md"] = function(page)
  page.setting = page.setting .. "cd examples/memcached && "
  return {}
end

PREPARE["deploy/README.md"] = function(page)
  page:write("my.lua", (process.read "controllers/hello.lua"))
  page:must "mkdir build && ln -s ../.bin/kubelua build/kubelua"
  return {}
end

-- The expected text of a command, adapted to this run.
local function here(page, text)
  text = text:gsub("localhost:", "127.0.0.1:"):gsub("/run/user/1000/kubelua/4711", "kubelua/*")
  if text:find "%-%-webhook%-service" then text = text .. " --webhook-listen 127.0.0.1:0" end
  if page == "README.md" and text:find "^kubelua sim" then text = text .. " --for 1m" end
  if page == "examples/README.md" then
    text = text:gsub("NAME%.lua", "memcached.lua"):gsub("NAMESPACE", "default")
  end
  return text
end

-- ---------------------------------------------------------------- the specs

describe("commands on pages", function()
  it("that another spec runs exist there", function()
    local seen = {}
    for page, spec in pairs(ELSEWHERE) do
      assert.truthy((process.read(spec) or ""):find(page, 1, true), spec .. " does not name " .. page)
    end
    for _, page in ipairs(pages()) do
      for _, command in ipairs(commands(page)) do
        local _, why = elsewhere(page, command.text), reason(command.text)
        seen[why or ""] = true
        for i, row in ipairs(ELSEWHERE_TOO) do
          if page:find(row[1]) and begins(command.text, row[2]) then seen[i] = true end
        end
      end
    end
    for _, row in ipairs(CANNOT) do assert.truthy(seen[row[2]], row[1] .. " is on no page any more") end
    for i, row in ipairs(ELSEWHERE_TOO) do
      assert.truthy(seen[i], row[2] .. " is on no page any more")
      assert.truthy(process.read(row[3]), row[3])
    end
  end)

  local server
  lazy_setup(function() server = servers.embedded { collects = true } end)
  lazy_teardown(function() server:stop() end)

  local function run_page(path)
    local list = {}
    for _, command in ipairs(commands(path)) do
      if not elsewhere(path, command.text) and not reason(command.text) then list[#list + 1] = command end
    end
    if #list == 0 then return end
    local page = open(server)
    local ok, why = pcall(function()
      local before = PREPARE[path] and PREPARE[path](page) or {}
      for _, command in ipairs(list) do
        if before[command.text] then before[command.text]() end
        local status = STATUS[command.text]
        command.text = here(path, command.text)
        STATUS[command.text] = status
        if command.text:find "^export " then
          page.setting = page.setting .. command.text .. " && "
        else
          page:run(command)
        end
      end
    end)
    page:finish()
    if not ok then error(why, 0) end
  end

  for _, path in ipairs(pages()) do
    if not path:find "^examples/." or path == "examples/README.md" then
      it("work: " .. path, function() run_page(path) end)
    end
  end

  -- Each starts a server of its own, all of them at once.
  it("work: examples/*/README.md", function()
    local list = {}
    local ok, why = pcall(function()
      for _, path in ipairs(pages()) do
        local name = path:match "^examples/([%w-]+)/README%.md$"
        if name then
          local page = open()
          page.setting = page.setting .. "cd examples/" .. name .. " && export KUBECONFIG=kc && "
          list[#list + 1] = { page = page, path = path, rest = {} }
          for _, command in ipairs(commands(path)) do
            if command.text:find "^kubelua dev" then
              local text = command.text .. " --write-kubeconfig kc"
              page.running[#page.running + 1] = process.spawn { "bash", "-c", page.setting .. "exec " .. text,
                name = command.text }
            elseif not elsewhere(path, command.text) then
              assert.truthy(command.text:find "^kubectl ", command.text)
              local text = command.text:gsub(" %-w$", "") -- it would not end
              table.insert(list[#list].rest, { text = text })
            end
          end
        end
      end
      assert.is_true(#list >= 15)
      for _, one in ipairs(list) do
        assert.equal(1, #one.page.running, one.path)
        assert.is_true(#one.rest > 0, one.path)
        for _, command in ipairs(one.rest) do one.page:run(command) end
      end
    end)
    for _, one in ipairs(list) do
      for _, p in ipairs(one.page.running) do p:signal "TERM" end
    end
    for _, one in ipairs(list) do one.page:finish() end
    if not ok then error(why, 0) end
  end)
end)
