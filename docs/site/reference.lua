-- reference.lua - writes the site's reference from the sources: functions and tables from the annotations of
-- lua/kubelua, the C API from the headers, metrics and errors from the C files that write them.

local annotations = require "annotations"
local examples = require "examples"

local M = {}

local LIBRARY = "lua/kubelua"

-- The pages in order. `classes` says what stands there: a class, and how its functions are called.
local PAGES = {
  { file = "kube.md", title = "kube", intro = [[
What `require "kubelua"` returns: functions for scripts and for programs in stock Lua.
What the world did wrong is raised as an [error](errors.md); `kube.try` turns it into a value.
What the caller did wrong is an error that names the argument.]],
    classes = {
      { "kubelua", "kube." },
      { "kubelua.Shared", "kube.shared:" },
      { "kubelua.Counter", "counter:" },
      { "kubelua.Gauge", "gauge:" },
      { "kubelua.Histogram", "histogram:" },
      { "kubelua.Cron", "cron:" },
      { "kubelua.MetricOptions" },
      { "kubelua.HistogramOptions" },
      { "kubelua.Condition" },
    } },
  { file = "ctx.md", title = "ctx", intro = [[
A reconcile gets `ctx` as its second argument. Reads come from the cache. Writes, `ctx.live` and `ctx.http`
wait for a server; the worker runs other keys meanwhile. A failure raises an [error](errors.md): after a
conflict the key runs again quietly, after any other error with backoff. `ctx:get(kind, name)` without a
namespace looks in the key's namespace.]],
    classes = {
      { "kubelua.Context", "ctx:" },
      { "kubelua.Verbs", "ctx:" },
      { "kubelua.Live", "ctx.live:" },
      { "kubelua.Http", "ctx.http:" },
      { "kubelua.HttpOptions" },
      { "kubelua.HttpAnswer" },
      { "kubelua.HttpTls" },
      { "kubelua.Log", "ctx.log:" },
      { "kubelua.Trigger" },
      { "kubelua.Secret" },
      { "kubelua.EventNews" },
      { "kubelua.OwnedOptions" },
    } },
  { file = "tables.md", title = "Tables that scripts write", intro = [[
These tables are the arguments of `kube.controller`, `kube.webhook` and `kube.crd`, the rule of a param, and
the result of a reconcile. An unknown key is an error that suggests the nearest known one.]],
    classes = {
      { "kubelua.ControllerSpec" },
      { "kubelua.Result" },
      { "kubelua.Verdict" },
      { "kubelua.Param" },
      { "kubelua.HttpRule" },
      { "kubelua.Shard" },
      { "kubelua.Controller" },
      { "kubelua.WebhookSpec" },
      { "kubelua.AdmissionRequest", "request:" },
      { "kubelua.Denial" },
      { "kubelua.Webhook" },
      { "kubelua.Crd" },
      { "kubelua.CrdVersion" },
      { "kubelua.CrdConversion" },
      { "kubelua.SchemaField" },
    } },
  { file = "values.md", title = "Values", intro = [[
Objects, quantities, times and selectors, as scripts and programs hold them.]],
    classes = {
      { "kubelua.view" },
      { "kubelua.draft" },
      { "kubelua.Object" },
      { "kubelua.quantity", "quantity:" },
      { "kubelua.time", "time:" },
      { "kubelua.selector", "selector:" },
      { "kubelua.tally", "tally:" },
      { "kubelua.uint64" },
      { "kubelua.null" },
    } },
  { file = "testing.md", title = "Tests", intro = [[
The words of a `*_test.lua` file that `kubelua test` runs, and `t`, which `kube.testing.start` returns.
[Testing controllers](../testing.md) has them at work.]],
    classes = {
      { "kubelua.Testing", "t:" },
      { "kubelua.TestingOptions" },
      { "kubelua.TestingFault" }, { "kubelua.TestingFailure" },
      { "kubelua.TestingRun" },
      { "kubelua.TestingHttp", "web:" },
      { "kubelua.TestingRequest" },
      { "kubelua.TestingReply" },
      { "kubelua.Pure" },
      { "kubelua.Assert", "assert." },
    } },
  { file = "client.md", title = "Programs: client, informers, streams", intro = [[
What a program in stock Lua has: `kube.connect()` returns a client `c`. A script has `ctx` in its place.
`kube.http` has the calls of [`ctx.http`](ctx.md). In the examples `synced(kind)` is an informer whose store
holds what there is.]],
    classes = {
      { "kubelua.Client", "c:" },
      { "kubelua.Stream", "stream:" },
      { "kubelua.Forward", "forward:" },
      { "kubelua.Manager", "m:" },
      { "kubelua.ManagedController" },
      { "kubelua.ManagerElection" },
      { "kubelua.ManagerSource" },
      { "kubelua.Informers", "informers:" },
      { "kubelua.Informer", "informer:" },
      { "kubelua.Store", "store:" },
      { "kubelua.Indexer", "indexer:" },
      { "kubelua.Lister", "lister:" },
      { "kubelua.NamespaceLister", "namespace_lister:" },
      { "kubelua.Handler", "handler:" },
      { "kubelua.LuaIndex" },
      { "kubelua.EventHandlers" },
      { "kubelua.StoreQuery" },
      { "kubelua.InformerStats" },
      { "kubelua.Recorder", "recorder:" },
      { "kubelua.TTLStore", "ttl_store:" },
      { "kubelua.CertificateManager", "manager:" },
      { "kubelua.Certificate" },
      { "kubelua.Resource" },
      { "kubelua.ResourceInfo" },
      { "kubelua.ResourceFilter" },
      { "kubelua.OwnerReference" },
      { "kubelua.ManagedFields" },
      { "kubelua.Metadata" },
      { "kubelua.MetadataApply" },
    } },
}
-- Tables named ...Options that no page above has stand on a page of their own.
local OPTIONS = { file = "options.md", title = "Options of calls", intro = [[
The tables that calls take last. `?` behind a type: the field may be left out.]] }

local loaded
local function sources()
  loaded = loaded or annotations.load(LIBRARY)
  return loaded
end

local function function_name(prefix, f)
  if f.method then return prefix .. f.name end
  return prefix:gsub(":$", ".") .. f.name
end

local function example_of(name)
  return examples.plain[name] or examples.run[name] or examples.script[name] or examples.client[name]
    or examples.pod[name]
end

local function short(name) return (name:gsub("^kubelua%.", "")) end

local function cell(text) return (text:gsub("|", "\\|"):gsub("\n", " ")) end

-- ---------------------------------------------------------------- one function, one class

local function write_function(out, name, f)
  local words = {}
  for _, p in ipairs(f.params) do words[#words + 1] = p.name end
  out("### " .. name .. "\n")
  out("```lua\n" .. name .. "(" .. table.concat(words, ", ") .. ")\n```\n")
  if f.text ~= "" then out(f.text .. "\n") end
  if #f.params > 0 then
    out("| parameter | type | |\n| --- | --- | --- |")
    for _, p in ipairs(f.params) do
      out(("| `%s` | `%s` | %s |"):format(p.name, cell(p.type), cell(p.text)))
    end
    out ""
  end
  for i, r in ipairs(f.returns) do
    local kind, text = annotations.split_type(r)
    out(("%s `%s`%s\n"):format(i == 1 and "Returns" or "and", kind, text ~= "" and " " .. text or ""))
  end
  local example = example_of(name)
  if example then out("```lua\n" .. example:gsub("%s+$", "") .. "\n```\n") end
end

local function write_class(out, class, name, prefix)
  out("## " .. short(name) .. "\n")
  if class.about and class.about ~= "" then out(class.about .. "\n") end
  if #class.text > 0 then out(table.concat(class.text, "\n") .. "\n") end
  if class.parents then
    local list = {}
    for parent in class.parents:gmatch "[%w_.]+" do list[#list + 1] = "`" .. short(parent) .. "`" end
    out("Has all of " .. table.concat(list, " and ") .. ", too.\n")
  end
  local fields = {}
  for _, f in ipairs(class.fields) do
    if f.type then fields[#fields + 1] = f end
  end
  if #fields > 0 then
    out "| field | type | |\n| --- | --- | --- |"
    for _, f in ipairs(fields) do
      out(("| `%s` | `%s` | %s |"):format(cell(f.name), cell(f.type), cell(f.text)))
    end
    out ""
  end
  for _, f in ipairs(class.functions) do write_function(out, function_name(prefix, f), f) end
end

local function writer()
  local lines = {}
  return function(text) lines[#lines + 1] = text end, lines
end

local function placed_classes()
  local placed = { ["kubelua.Error"] = true }        -- on the page of errors
  for _, page in ipairs(PAGES) do
    for _, c in ipairs(page.classes) do placed[c[1]] = true end
  end
  return placed
end

local function lua_page(page)
  local out, lines = writer()
  out("# " .. page.title .. "\n")
  out(page.intro .. "\n")
  for _, c in ipairs(page.classes) do
    local class = sources().classes[c[1]]
    if class then write_class(out, class, c[1], c[2] or short(c[1]):lower() .. ":") end
  end
  return table.concat(lines, "\n")
end

local function options_page()
  local placed, classes = placed_classes(), {}
  for _, name in ipairs(sources().order) do
    if not placed[name] and name:find "Options$" then classes[#classes + 1] = { name } end
  end
  table.sort(classes, function(a, b) return a[1] < b[1] end)
  return lua_page { title = OPTIONS.title, intro = OPTIONS.intro, classes = classes }
end

-- ---------------------------------------------------------------- errors, metrics

-- What a caller of the API may meet; the comments of core/base/err.h.
local function errors_page()
  local header = annotations.read "core/base/err.h"
  local names = annotations.read "core/base/err.c"
  local out, lines = writer()
  out "# Errors\n"
  out [[
Calls raise a table when the cluster or the network fails. `kube.try` returns it instead; `tostring` makes a
sentence of it. Branch on `kind`: its values are the same for the API server, for `ctx.http`, and for requests
that never reached a server.
]]
  out "```lua\nlocal value, err = kube.try(kube.decode, \"{\")\nerr.kind  --> \"syntax\"\n```\n"
  local class = sources().classes["kubelua.Error"]
  out "| field | type | |\n| --- | --- | --- |"
  for _, f in ipairs(class.fields) do
    out(("| `%s` | `%s` | %s |"):format(f.name, cell(f.type), cell(f.text)))
  end
  out "\n## Kinds\n\n| kind | in C | means |\n| --- | --- | --- |"
  for constant, text in header:gmatch "\n    (KL_E%u+),%s+/%* ([^\n]-) %*/" do
    local name = names:match("%[" .. constant .. '%] = "([%w_]+)"')
    out(("| `%s` | `%s` | %s |"):format(name, constant, cell(text)))
  end
  out [[

A conflict, whoever raises it, runs the key again after its `backoff` and counts as no failure. `throttled`,
`unavailable` and broken connections are tried again by the client where that is safe
([clients](../clients.md#retries)).
[Troubleshooting](../troubleshooting.md) goes by the lines of the log.]]
  return table.concat(lines, "\n")
end

-- Name, type and help of every metric in the C sources: calls of kl_metrics_head, and tables of these.
local function metrics()
  local found = {}
  local pipe = assert(io.popen "LC_ALL=C ls core/*/*.c")
  for path in pipe:lines() do
    if path:find "metric" or path:find "telemetry" or path:find "manager" or path:find "reloads"
      or path:find "sharding" then
      local text = annotations.read(path):gsub('"%s*\n%s*"', "")
      for name, kind, help in text:gmatch '"([%l][%w_]+)",%s*"(%l+)",%s*"([^"]+)"' do
        if kind == "counter" or kind == "gauge" or kind == "histogram" then
          found[#found + 1] = { name = name, type = kind, help = help, room = path:match "core/(%w+)/" }
        end
      end
      -- {name, help, value}: tables of counters
      for name, help in text:gmatch '{"([%l][%w_]+_total)",%s*"([^"]+)",%s*[%w>%-]' do
        if help ~= "counter" then
          found[#found + 1] = { name = name, type = "counter", help = help, room = path:match "core/(%w+)/" }
        end
      end
    end
  end
  pipe:close()
  table.sort(found, function(a, b) return a.name < b.name end)
  local out = {}
  for i, m in ipairs(found) do
    if i == 1 or found[i - 1].name ~= m.name then out[#out + 1] = m end
  end
  return out
end
M.metrics = metrics

local function metrics_page()
  local out, lines = writer()
  out "# Index of metrics\n"
  out [[
Every series of `/metrics`, taken from the sources. [Operating kubelua](../operations.md#metrics) explains how
to use them; scripts add their own with `kube.counter`, `kube.gauge` and `kube.histogram`.
]]
  out "| metric | type | help |\n| --- | --- | --- |"
  for _, m in ipairs(metrics()) do
    out(("| `%s` | %s | %s |"):format(m.name, m.type, cell(m.help)))
  end
  return table.concat(lines, "\n") .. "\n"
end

-- ---------------------------------------------------------------- C

-- A header's opening comment, and each declaration behind its comment.
local function c_header(out, path)
  local text = annotations.read("core/" .. path)
  local head = text:match "^/%* (.-)%*/" or ""
  out("## " .. path .. "\n")
  head = head:gsub("\n %*", "\n"):gsub("^%S+ %- ", ""):gsub("%s+$", "")
  local paragraphs = {}
  for part in (head .. "\n\n"):gmatch "(.-)\n%s*\n" do
    paragraphs[#paragraphs + 1] = part:find "^ ?  " and "```\n" .. part .. "\n```" or part
  end
  out(table.concat(paragraphs, "\n\n") .. "\n")
  local body = text:match "#include.-\n\n(.*)\n#endif" or text:match "#define %S+\n(.*)\n#endif" or ""
  body = body:gsub("^.*#include[^\n]*\n", ""):gsub("^%s+", ""):gsub("%s+$", "")
  if body ~= "" then out("```c\n" .. body .. "\n```\n") end
end

local function c_page()
  local out, lines = writer()
  local all = annotations.read "core/kubelua.h"
  out "# The C API\n"
  out [[
`#include <kubelua/kubelua.h>`, and link with the flags of `pkg-config kubelua`. The verb in a name tells who
owns the result: `new` pairs with `free`, `init` with `fini`, `ref` with `unref`; `lookup` returns a
reference, `get` borrows. A function that can fail returns a `kl_status` and explains the failure in a
`kl_err`. The contracts below come from the headers. `spec/programs/embed.c` is a complete program.
]]
  for path in all:gmatch '#include "([%w_/]+%.h)"' do c_header(out, path) end
  return table.concat(lines, "\n")
end

-- ---------------------------------------------------------------- all

--- The pages by file name.
---@return table<string, string>
function M.pages()
  local pages = {}
  for _, page in ipairs(PAGES) do pages[page.file] = lua_page(page) end
  pages[OPTIONS.file] = options_page()
  pages["errors.md"] = errors_page()
  pages["metrics.md"] = metrics_page()
  pages["c.md"] = c_page()
  return pages
end

--- What stands in the navigation: { title, file }, in order.
function M.contents()
  local list = {}
  for _, page in ipairs(PAGES) do list[#list + 1] = { page.title, page.file } end
  list[#list + 1] = { OPTIONS.title, OPTIONS.file }
  list[#list + 1] = { "Errors", "errors.md" }
  list[#list + 1] = { "Index of metrics", "metrics.md" }
  list[#list + 1] = { "The C API", "c.md" }
  return list
end

-- ---------------------------------------------------------------- what the spec asks

-- Functions whose example is elsewhere: certificates need a signer, which docs/clients.md shows; requests are
-- a field of tests.
local EXCUSED = { "^manager:", "^kube.certificate$", "^request:" }

local function excused(name)
  for _, pattern in ipairs(EXCUSED) do
    if name:find(pattern) then return true end
  end
  return false
end

local function each_function(fn)
  for _, page in ipairs(PAGES) do
    for _, c in ipairs(page.classes) do
      local class = sources().classes[c[1]]
      for _, f in ipairs(class and class.functions or {}) do
        fn(function_name(c[2] or short(c[1]):lower() .. ":", f), page)
      end
    end
  end
end

--- Functions that have no example and are not excused. Those of tests are shown in docs/testing.md.
function M.without_example()
  local missing = {}
  each_function(function(name, page)
    if page.file ~= "testing.md" and not excused(name) and not example_of(name) then
      missing[#missing + 1] = name
    end
  end)
  return missing
end

--- Examples of functions that there are not.
function M.stray_examples()
  local known, stray = {}, {}
  each_function(function(name) known[name] = true end)
  for _, set in ipairs { examples.plain, examples.run, examples.script, examples.client, examples.pod } do
    for name in pairs(set) do
      if not known[name] then stray[#stray + 1] = name end
    end
  end
  table.sort(stray)
  return stray
end

--- Classes that stand on no page.
function M.unplaced()
  local placed, missing = placed_classes(), {}
  for _, name in ipairs(sources().order) do
    if not placed[name] and not name:find "Options$" then missing[#missing + 1] = name end
  end
  return missing
end

return M
