-- common.lua - shared by the commands: mistakes, kinds and names on the command line, files of objects, names
-- of objects.

local core = require "kubelua.core"
local manifests = require "kubelua.manifests"
local object = require "kubelua.object"

local M = {}

--- A mistake on the command line: a message, and status 2.
function M.usage(fmt, ...) error({ usage = fmt:format(...) }, 0) end

--- A text of the cluster for a terminal: what a terminal would obey, or show in another order, is spelled
--- out, as in kubectl (ESC is ^[). Line ends and tabs stay.
---@param text string
---@return string
function M.safe(text) return text:find "[%c\127-\255]" and core.visible(text) or text end

--- From now on `print` and `io.write` spell out what a terminal would obey, since scripts, servers and files
--- have a part in most of what commands print. io.stdout:write stays as it is.
function M.guard()
  local write = io.write
  rawset(io, "write", function(...)
    if io.output() ~= io.stdout then return write(...) end
    local out = table.pack(...)
    for i = 1, out.n do out[i] = type(out[i]) == "string" and M.safe(out[i]) or out[i] end
    return write(table.unpack(out, 1, out.n))
  end)
  rawset(_G, "print", function(...)
    local out = table.pack(...)
    for i = 1, out.n do out[i] = tostring(out[i]) end
    io.write(table.concat(out, "\t"), "\n")
  end)
end

--- A remark on stderr, for people.
function M.remark(fmt, ...)
  io.stdout:flush()
  io.stderr:write(M.safe(fmt:format(...)), "\n")
end

--- The same as the command's message.
function M.complain(env, fmt, ...) M.remark("kubelua %s: %s", env.command, fmt:format(...)) end

--- A text as `safe` has it, in one line, cut where it has more.
---@param text string
---@return string
function M.cell(text)
  local at = text:find "[\n\r\f]"
  return (M.safe(at and text:sub(1, at - 1) .. "..." or text):gsub("\t", " "))
end

--- The text of any error, without positions in our code.
function M.message(err)
  return (tostring(type(err) == "table" and err.usage or err):gsub("^kubelua/[%w_/]+%.lua:%d+: ", ""))
end

--- How long something took, or is ago, for people: "3.5 ms", "42s", "17m", "30h", "9d".
---@param seconds number
---@return string
function M.span(seconds)
  if seconds > 0 and seconds < 1 then return ("%.3g ms"):format(seconds * 1000) end
  if seconds < 120 then return ("%.3gs"):format(seconds) end
  if seconds < 7200 then return ("%dm"):format(seconds // 60) end
  if seconds < 172800 then return ("%dh"):format(seconds // 3600) end
  return ("%dd"):format(seconds // 86400)
end

--- The scripts named by words on a command line: files, and of a directory its main.lua, init.lua or only
--- script, as in `run`.
---@param words string[]
---@return string[]
function M.scripts(words)
  local out = {}
  for i, word in ipairs(words) do
    local found, why = core.tree(word, ".lua")
    if not found then error(("cannot read %s: %s"):format(word, why), 0) end
    local dir, have, names = word:gsub("/*$", "/"), {}, {}
    for _, path in ipairs(found) do
      local name = path:sub(1, #dir) == dir and path:sub(#dir + 1) or nil
      if name and not name:find("/", 1, true) and not name:find "_test%.lua$" then
        have[name], names[#names + 1] = true, name
      end
    end
    local chosen = have["main.lua"] and "main.lua" or have["init.lua"] and "init.lua" or #names == 1
      and names[1]
    if found[1] == word then
      out[i] = word
    elseif chosen then
      out[i] = dir .. chosen
    else
      error(("%s has %d scripts, and none is called main.lua or init.lua: name the one to run"):format(
        word, #names), 0)
    end
  end
  return out
end

--- Scripts as `run` loads them, in a state of their own: nothing of them runs in this one. Of each
--- { controllers, webhooks } as their tables say, without functions, and sources, crds
--- (lua/kubelua/script.lua). Raises for one that does not load.
---@param env table
---@param paths string[]
---@return table[]
function M.programs(env, paths)
  local programs = env.programs(paths, {})
  for _, program in ipairs(programs) do
    if program.error then error(program.error, 0) end
    program.controllers, program.webhooks = {}, {}
    for _, c in ipairs(core.copy(program.tables)) do
      table.insert(c.webhook and program.webhooks or program.controllers, c)
    end
  end
  return programs
end

--- A client as the options say. A command's life is short: what the last one learnt of the server counts
--- for ten minutes.
---@return kubelua.Client
function M.connect(env)
  env.connect.cache_ttl = env.connect.cache_ttl or "10m"
  return require "kubelua.client".connect(env.connect)
end

--- The value of --dry-run[=WHERE]; `default` for --dry-run alone, nil for none.
---@param default "client" | "server"
---@return ("client" | "server")?
function M.dry_run(env, default)
  local word = env.options.dry_run
  if word == "" then return default end
  return word ~= "none" and word or nil
end

--- The option of a command with two output formats.
M.OUTPUT = { "--output", "FORMAT", "plain or json (plain)", brief = "-o", values = "plain json" }

--- Whether -o json was said.
---@return boolean
function M.wants_json(env) return env.options.output == "json" end

--- Prints a table or a view, as every command does with -o json.
function M.print_json(t) print(core.encode(core.value(t, "the output"), true)) end

-- ---------------------------------------------------------------- kinds and names

--- "group/version/Kind" of a resource, "version/Kind" in the core group.
---@param r kubelua.Resource
function M.kind_text(r) return (r.group ~= "" and r.group .. "/" or "") .. r.version .. "/" .. r.kind end

--- "pod/a", "deployment.apps/web": how kubectl calls an object.
function M.called(r, name)
  local singular = r.singular ~= nil and r.singular ~= "" and r.singular or r.kind:lower()
  return ("%s%s/%s"):format(singular, r.group ~= "" and "." .. r.group or "", name)
end

--- "pods", "deployments.apps"
function M.plural(r) return r.plural .. (r.group ~= "" and "." .. r.group or "") end

local function is_version(text) return text:find "^v%d+%l*%d*$" end

--- "pod/a" is a kind and a name; "v1/Pod" and "apps/v1/Deployment" are kinds; "v1/Pod/a" and
--- "apps/v1/Deployment/web" both.
---@return string kind, string? name
function M.split(word)
  local parts = {}
  for part in (word .. "/"):gmatch "(.-)/" do parts[#parts + 1] = part end
  for i, part in ipairs(parts) do
    if part == "" or #parts > 4 then
      M.usage("%q is neither a kind nor KIND/NAME: pods, pod/a, deployments.apps, apps/v1/Deployment", word)
    end
    parts[i] = part
  end
  local kind = is_version(parts[1]) and 2 or parts[2] and is_version(parts[2]) and 3 or 1
  if #parts < kind or #parts > kind + 1 then
    M.usage("%q is neither a kind nor KIND/NAME: pods, pod/a, deployments.apps, apps/v1/Deployment", word)
  end
  return table.concat(parts, "/", 1, kind), parts[kind + 1]
end

--- "web" or "pod/web" as "namespace/web".
---@return string
function M.pod(c, word)
  local kind, name = word:match "^([^/]*)/(.*)$"
  if kind and not ({ pod = true, pods = true, po = true })[kind] then
    M.usage("%q is not a pod: write its name, or pod/NAME", word)
  end
  name = name or word
  if name == "" or name:find("/", 1, true) then
    M.usage("%q is not a pod: write its name, or pod/NAME", word)
  end
  return c:namespace() .. "/" .. name
end

--- The words of a command as a list of { kind, names or nil }: "po,svc", "pod a b", "pod/a svc/b",
--- "apps/v1/Deployment web".
---@return { kind: string, names: string[]? }[]
function M.targets(words)
  if #words == 0 then M.usage "name a kind, such as pods, deployments.apps or apps/v1/Deployment" end
  local targets, slashed = {}, false
  for i, word in ipairs(words) do
    if word:find("/", 1, true) then
      local kind, name = M.split(word)
      if name then
        if i > 1 and not slashed then
          M.usage("%s: give either KIND/NAME for each, or a kind followed by names",
            word)
        end
        slashed = true
        local last = targets[#targets]
        if last and last.kind == kind then
          last.names[#last.names + 1] = name
        else
          targets[#targets + 1] = { kind = kind, names = { name } }
        end
        goto continue
      elseif i > 1 then
        M.usage("%s: a name has no slash", word)
      end
    elseif slashed then
      M.usage("%s: give either KIND/NAME for each, or a kind followed by names", word)
    end
    if i == 1 then
      for kind in word:gmatch "[^,]+" do targets[#targets + 1] = { kind = kind } end
      if #targets == 0 then M.usage("%q names no kind", word) end
    else
      for _, target in ipairs(targets) do
        target.names = target.names or {}
        target.names[#target.names + 1] = word
      end
    end
    ::continue::
  end
  return targets
end

--- The same with categories, such as all, as the kinds that are in them.
---@param c kubelua.Client
function M.expand(c, targets)
  local out = {}
  for _, target in ipairs(targets) do
    local ok, err = pcall(c.resource, c, target.kind)
    local members = not ok and not target.names and not target.kind:find "[/.]"
      and c:resources { category = target.kind } or {}
    if ok then
      out[#out + 1] = target
    elseif #members == 0 then
      error(err, 0)
    end
    for _, r in ipairs(members) do
      local listable = false
      for _, verb in ipairs(r.verbs) do listable = listable or verb == "list" end
      if listable then out[#out + 1] = { kind = r.kind } end
    end
  end
  return out
end

--- Whether a view is a list (an empty one counts as an object: neither has contents).
function M.is_list(view)
  local loop, state, first = pairs(view)
  return math.type((loop(state, first))) == "integer"
end

--- The namespace in which objects of a resource are searched: nil means all, or cluster scope.
function M.namespace(c, env, r)
  if not r.namespaced or env.options.all_namespaces then return nil end
  return c:namespace()
end

-- ---------------------------------------------------------------- files

--- The objects that -f names, ready to be applied in order.
---@return { object: kubelua.view, where: string, kind: string }[]
function M.manifests(env)
  local paths = env.options.filename
  if not paths then M.usage "name the objects with -f FILE, -f DIR, or -f - for standard input" end
  local ok, result = pcall(manifests.read, paths)
  if ok then return result end
  error(core.is_error(result) and result.message or result, 0)
end

--- The object of a manifest, and its resource. Its namespace must be that of -n, if given.
function M.identify(c, env, manifest)
  local o = manifest.object
  local kind = object.kind_of(o)
  local r = c:resource(kind)
  local ns, asked = o("metadata.namespace"), env.connect.namespace
  if r.namespaced and ns and asked and ns ~= asked then
    error(("%s is in namespace %s, but -n is %s"):format(M.called(r, o("metadata.name") or "?"), ns, asked),
      0)
  end
  return { kind = kind, resource = r, namespace = r.namespaced and (ns or c:namespace()) or nil,
    name = o("metadata.name") }
end

--- c:get of a thing whose namespace may be nil.
function M.get(c, kind, namespace, name)
  if namespace then return c:get(kind, namespace, name) end
  return c:get(kind, name)
end

return M
