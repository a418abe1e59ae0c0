-- gen/write.lua - the files of a library: comments for the Lua language server, tables for kubelua.typed.
--
-- A file depends only on the definitions, and not on time, place or the order of a table, so generating it
-- again changes nothing. A type with required fields has two classes: in XApply every field is optional (for
-- writing), in X the fields exist that the API promises (for reading). An X can stand wherever an XApply is
-- expected.

local model = require "kubelua.gen.model"

local M = {}

local sorted = model.sorted

-- ---------------------------------------------------------------- which types promise something

local function each_class(of, visit)
  if of.of then return each_class(of.of, visit) end
  if of.k == "class" then visit(of.group.types[of.name], of) end
end

-- Marks every type that has required fields, itself or below.
local function mark_strict(library)
  local users, work = {}, {}
  for _, accessor in ipairs(sorted(library.groups)) do
    for _, type_ in pairs(library.groups[accessor].types) do
      for _, field in ipairs(type_.fields) do
        if field.required and not type_.strict then
          type_.strict = true
          work[#work + 1] = type_
        end
        each_class(field.type, function(other)
          users[other] = users[other] or {}
          table.insert(users[other], type_)
        end)
      end
    end
  end
  while #work > 0 do
    for _, user in ipairs(users[table.remove(work)] or {}) do
      if not user.strict then
        user.strict = true
        work[#work + 1] = user
      end
    end
  end
end

-- ---------------------------------------------------------------- types as text

local SIGIL = {
  string = "s", enum = "s", time = "s", integer = "i", number = "n", boolean = "b", quantity = "q",
  int_or_string = "x", any = "*",
  object = "o", metadata = "m",
}

-- A type as kubelua.fields reads it.
local function word(group, of)
  if of.k == "list" then return "[" .. word(group, of.of) end
  if of.k == "map" then return "{" .. word(group, of.of) end
  if of.k == "class" then return "@" .. (of.group ~= group and of.group.accessor .. "." or "") .. of.name end
  return SIGIL[of.k]
end

local ANNOTATION = {
  string = "string", time = "string", integer = "integer", number = "number", boolean = "boolean",
  quantity = "kubelua.Quantity",
  int_or_string = "integer|string", any = "any", object = "table<string, any>",
}

-- A type as the language server reads it.
local function annotation(of, apply)
  if of.k == "list" then
    local inner = annotation(of.of, apply)
    return (inner:find "|" and "(" .. inner .. ")" or inner) .. "[]"
  elseif of.k == "map" then
    return ("table<string, %s>"):format(annotation(of.of, apply))
  elseif of.k == "class" then
    return ("%s.%s%s"):format(of.group.class, of.name,
      apply and of.group.types[of.name].strict and "Apply" or "")
  elseif of.k == "enum" then
    return ("%s.%s"):format(of.group.class, of.name)
  elseif of.k == "metadata" then
    return apply and "kubelua.MetadataApply" or "kubelua.Metadata"
  end
  return ANNOTATION[of.k]
end

local function promises(of)
  local found = of.k == "metadata"
  each_class(of, function(type_) found = found or type_.strict end)
  return found
end

local KEYWORDS = {}
for keyword in ("and break do else elseif end false for function goto if in local nil not or repeat return \z
  then true until while"):gmatch "%a+" do
  KEYWORDS[keyword] = true
end

-- A name as a key in Lua: name, ["$ref"], ["end"]
local function key_of(name)
  return name:find "^[%a_][%w_]*$" and not KEYWORDS[name] and name or ("[%q]"):format(name)
end

local function field_line(field, of, optional)
  if optional then of = of:find "|" and "(" .. of .. ")?" or of .. "?" end
  return ("---@field %s %s%s"):format(key_of(field.name), of, field.doc and " " .. field.doc or "")
end

local function class_lines(out, group, name)
  local type_ = group.types[name]
  local function line(...) out[#out + 1] = (...) end
  line ""
  if type_.doc then line("--- " .. type_.doc) end
  line(("---@class %s.%s%s"):format(group.class, name, type_.strict and "Apply" or ""))
  for _, field in ipairs(type_.fields) do line(field_line(field, annotation(field.type, true), true)) end
  if type_.open then line "---@field [string] any" end
  if not type_.strict then return end
  line ""
  if type_.doc then line("--- " .. type_.doc) end
  line(("---@class %s.%s: %s.%sApply"):format(group.class, name, group.class, name))
  for _, field in ipairs(type_.fields) do
    if field.required or promises(field.type) then
      line(field_line({ name = field.name }, annotation(field.type, false), not field.required))
    end
  end
  if type_.kind then
    -- A server's answer is a view: o("spec.a.b") is nil-safe.
    line "---@overload fun(path: string, ...: string|integer): any"
  end
end

local function alias_lines(out, group, name)
  out[#out + 1] = ""
  out[#out + 1] = ("---@alias %s.%s"):format(group.class, name)
  for _, value in ipairs(group.aliases[name].values) do out[#out + 1] = ("---| %q"):format(value) end
end

-- ---------------------------------------------------------------- resources as text

local FULL = "create delete deletecollection get list patch update watch"

local function has(list, what)
  for _, x in ipairs(list) do
    if x == what then return true end
  end
  return false
end

-- Each call that a resource may have: the verb or the subresource it needs, and its type.
local CALLS = {
  { "get", "get", { true, "name: string, opts?: kubelua.GetOptions",
    "namespace_or_name: string, name_or_opts?: string|kubelua.GetOptions, opts?: kubelua.GetOptions" }, "T?",
    "The object, or nil when it is absent." },
  { "list", "list", { false, "opts?: kubelua.ListOptions" }, "T[], string?",
    "All of them, and the resourceVersion of the list." },
  { "each", "list", { false, "opts?: kubelua.ListOptions" }, "fun(): T?",
    "Iterates over them, page by page." },
  { "table", "list", { false, "opts?: kubelua.TableOptions" },
    "{columns: kubelua.view[], rows: kubelua.view[]}", "As the server prints them." },
  { "watch", "watch", { false, "opts?: kubelua.WatchOptions" }, "fun(): string?, T?",
    "Iterates over what happens." },
  { "wait_for", "watch", { false,
    "name: string, condition: string|(fun(o: T): any), opts?: {timeout?: kubelua.Duration}" }, "T|true",
  "Waits, by a watch." },
  { "create", "create", { false, "o: TApply, opts?: kubelua.WriteOptions" }, "T" },
  { "update", "update", { false, "o: TApply, opts?: kubelua.WriteOptions" }, "T" },
  { "create_or_update", "update", { false, "o: TApply, change: fun(draft: T)" }, "T, string" },
  { "patch", "patch", { false, "o: string|TApply, change: fun(draft: T)|table, opts?: kubelua.PatchOptions" },
    "T" },
  { "create_or_patch", "patch", { false, "o: TApply, change: fun(draft: T)" }, "T, string" },
  { "apply", "patch", { false, "o: TApply, opts?: kubelua.ApplyOptions" }, "T",
    "Server-side apply: the fields given become ours." },
  { "delete", "delete", { true, "o: string|TApply, opts?: kubelua.DeleteOptions",
    "o: string|TApply, name_or_opts?: string|kubelua.DeleteOptions, opts?: kubelua.DeleteOptions" }, "true",
    "That it is absent is success." },
  { "delete_collection", "deletecollection", { false, "opts?: kubelua.DeleteCollectionOptions" },
    "kubelua.view" },
  { "update_status", "/status", { false, "o: TApply, opts?: kubelua.WriteOptions" }, "T" },
  { "patch_status", "/status",
    { false, "o: string|TApply, change: fun(draft: T)|table, opts?: kubelua.PatchStatusOptions" }, "T" },
  { "apply_status", "/status", { false, "o: TApply, opts?: kubelua.ApplyOptions" }, "T" },
  { "get_scale", "/scale", { true, "name: string", "namespace_or_name: string, name?: string" },
    "kubelua.view?" },
  { "scale", "/scale", { true, "name: string, replicas: integer, opts?: kubelua.ScaleOptions",
    "namespace_or_name: string, name_or_replicas: string|integer, replicas_or_opts?: \z
      integer|kubelua.ScaleOptions, opts?: kubelua.ScaleOptions" },
    "kubelua.view" },
  { "evict", "/eviction", { false, "o: string|TApply, opts?: table" }, "true" },
  { "bind", "/binding", { false, "o: string|TApply, node: string, opts?: kubelua.BindOptions" }, "true" },
  { "token", "/token", { false, "o: string|TApply, opts?: kubelua.TokenOptions" }, "string, string" },
  { "logs", "/log", { false, "o: string|TApply, opts?: kubelua.LogOptions" }, "fun(): string?" },
  { "exec", "/exec", { false, "o: string|TApply, command: string[], opts?: kubelua.ExecOptions" },
    "{stdout: string, stderr: string, code: integer}" },
  { "exec_stream", "/exec", { false, "o: string|TApply, command: string[], opts?: kubelua.StreamOptions" },
    "any" },
  { "attach", "/attach", { false, "o: string|TApply, opts?: kubelua.StreamOptions" }, "any" },
  { "port_forward", "/portforward", { false, "o: string|TApply, ports: any, opts?: table" }, "any" },
  { "port_stream", "/portforward", { false, "o: string|TApply, port: integer" }, "any" },
  { "update_ephemeralcontainers", "/ephemeralcontainers", { false, "o: TApply, opts?: kubelua.WriteOptions" },
    "T" },
  { "patch_ephemeralcontainers", "/ephemeralcontainers",
    { false, "o: string|TApply, change: fun(draft: T)|table, opts?: kubelua.PatchOptions" }, "T" },
  { "update_resize", "/resize", { false, "o: TApply, opts?: kubelua.WriteOptions" }, "T" },
  { "patch_resize", "/resize",
    { false, "o: string|TApply, change: fun(draft: T)|table, opts?: kubelua.PatchOptions" }, "T" },
  { "update_approval", "/approval", { false, "o: TApply, opts?: kubelua.WriteOptions" }, "T" },
  { "approve", "/approval", { false, "o: string|TApply, opts?: kubelua.DecideOptions" }, "T" },
  { "deny", "/approval", { false, "o: string|TApply, opts?: kubelua.DecideOptions" }, "T" },
  { "finalize", "/finalize",
    { false, "o: string|TApply, finalizers?: string[], opts?: kubelua.FinalizeOptions" }, "T" },
}

local function offered(resource, need)
  if need:sub(1, 1) == "/" then return has(resource.subresources, need:sub(2)) end
  return not resource.verbs or has(resource.verbs, need)
end

local function typed(text, class)
  return (text:gsub("TApply", class .. "Apply"):gsub("TInformer", class .. "Informer"):gsub("%f[%w]T%f[^%w]",
    class))
end

local function resource_lines(out, group, plural)
  local resource = group.resources[plural]
  local class = group.class .. "." .. resource.type
  local function line(...) out[#out + 1] = (...) end
  line ""
  local about = ("%s, %s"):format(resource.kind, resource.namespaced and "namespaced" or "cluster-scoped")
  if #(resource.short_names or {}) > 0 then
    about = about .. "; short: " .. table.concat(resource.short_names, ", ")
  end
  if #(resource.columns or {}) > 0 then
    about = about .. "; columns: " .. table.concat(resource.columns, ", ")
  end
  line("--- " .. about)
  line(("---@class %sClient"):format(class))
  if resource.deprecated then line("---@deprecated " .. resource.deprecated:gsub("%s+", " ")) end
  if resource.namespaced then line(("---@overload fun(namespace: string): %sClient"):format(class)) end
  for _, call in ipairs(CALLS) do
    if offered(resource, call[2]) then
      local arguments = call[3][1] and resource.namespaced and call[3][3] or call[3][2]
      line(("---@field %s fun(self: %sClient, %s): %s%s"):format(call[1], class, typed(arguments, class),
        typed(call[4], class), call[5] and " " .. call[5] or ""))
    end
  end
  line ""
  line(("---@class %sLister"):format(class))
  if resource.namespaced then
    line(("---@field namespace fun(self: %sLister, namespace: string): %sLister"):format(class, class))
  end
  line(("---@field get fun(self: %sLister, %s): %s?"):format(class,
    resource.namespaced and "key: string, name?: string" or "name: string", class))
  line(("---@field list fun(self: %sLister, opts?: kubelua.StoreQuery): %s[]"):format(class, class))
  line ""
  line(("---@class %sInformer: kubelua.Informer"):format(class))
  line(typed("---@field on fun(self: TInformer, handlers: {add?: fun(o: T, initial: boolean), update?: \z
    fun(old: T, new: T), "
    .. "delete?: fun(o: T)}, opts?: {resync?: kubelua.Duration}): kubelua.Handler", class))
  line(("---@field lister fun(self: %sInformer): %sLister"):format(class, class))
  line ""
  line(("---@class %sInformers"):format(class))
  line(("---@field informer fun(self: %sInformers, opts?: kubelua.InformerOptions): %sInformer"):format(class,
    class))
  line(("---@field lister fun(self: %sInformers, opts?: kubelua.InformerOptions): %sLister"):format(class,
    class))
end

-- ---------------------------------------------------------------- tables

local function listed(group)
  local names, kind_of = {}, {}
  for _, plural in ipairs(sorted(group.resources)) do
    local resource = group.resources[plural]
    names[#names + 1] = plural
    kind_of[resource.type] = resource
    group.types[resource.type].kind = true
  end
  return names, kind_of
end

local function builder_lines(out, group, kind_of)
  out[#out + 1] = ""
  out[#out + 1] = ("---@class %s.Builders"):format(group.class)
  for _, name in ipairs(sorted(group.types)) do
    local class = ("%s.%s%s"):format(group.class, name, group.types[name].strict and "Apply" or "")
    local resource = kind_of[name]
    if resource then
      out[#out + 1] = ("---@field %s fun(name: string%s): fun(fields: %s): %s"):format(name,
        resource.namespaced and ", namespace?: string" or "", class, class)
    else
      out[#out + 1] = ("---@field %s fun(fields: %s): %s"):format(name, class, class)
    end
  end
end

local function group_classes(out, group, names)
  for _, suffix in ipairs { "Client", "Lister", "Informers" } do
    out[#out + 1] = ""
    out[#out + 1] = ("---@class %s.%s"):format(group.class, suffix == "Lister" and "Listers" or suffix)
    for _, plural in ipairs(names) do
      out[#out + 1] = ("---@field %s %s.%s%s"):format(key_of(plural), group.class,
        group.resources[plural].type, suffix)
    end
  end
end

local function table_lines(out, group, names)
  local function line(...) out[#out + 1] = (...) end
  line ""
  line "return {"
  line "  resources = {"
  for _, plural in ipairs(names) do
    local r = group.resources[plural]
    local more = ""
    if r.type ~= r.name then more = more .. (", type = %q"):format(r.type) end
    if #r.subresources > 0 then
      more = more .. (", subresources = %q"):format(table.concat(r.subresources, " "))
    end
    if r.verbs and table.concat(r.verbs, " ") ~= FULL then
      more = more .. (", verbs = %q"):format(table.concat(r.verbs, " "))
    end
    line(("    %s = { kind = %q, namespaced = %s%s },"):format(key_of(plural), r.kind, r.namespaced, more))
  end
  line "  },"
  line "  types = {"
  for _, name in ipairs(sorted(group.types)) do
    local type_, words = group.types[name], {}
    if type_.open then words[1] = "*" end
    for _, field in ipairs(type_.fields) do
      words[#words + 1] = field.name .. "=" .. word(group, field.type)
    end
    line(("    %s = %q,"):format(key_of(name), table.concat(words, " ")))
  end
  line "  },"
  line "}"
end

-- ---------------------------------------------------------------- files

-- Comments contain words of the definitions (columns, enum values, field names), whose authors are not
-- trusted: each comment stays on its line, so that none of its text becomes code.
local function one_line(text) return (text:gsub("\\\n", "\\n"):gsub("%c", " ")) end

-- The first words of every file that kubelua gen may overwrite.
M.MARK = "-- Generated by `kubelua gen`"

local function head(library, from)
  local lines = { M.MARK .. "; do not edit, generate it again. From:" }
  for _, source in ipairs(from) do lines[#lines + 1] = "--   " .. one_line(source) end
  if library.attribution then lines[#lines + 1] = library.attribution end
  return table.concat(lines, "\n")
end

local function group_file(library, group)
  local names, kind_of = listed(group)
  local out = {}
  for _, name in ipairs(sorted(group.aliases)) do alias_lines(out, group, name) end
  for _, name in ipairs(sorted(group.types)) do class_lines(out, group, name) end
  for _, plural in ipairs(names) do resource_lines(out, group, plural) end
  builder_lines(out, group, kind_of)
  group_classes(out, group, names)
  for i, text in ipairs(out) do out[i] = one_line(text) end
  table.insert(out, 1, head(library, sorted(group.sources)))
  table.insert(out, 2, "-- luacheck: ignore 631")
  table_lines(out, group, names)
  return table.concat(out, "\n") .. "\n"
end

local function member(list, group, suffix)
  return ("---@field %s %s.%s"):format(group.accessor, group.class, suffix), list
end

local function init_file(library)
  local out = { head(library, { library.from }) }
  local function line(...) out[#out + 1] = (...) end
  line "--"
  line(("--   local %s = require %q"):format(library.prefix, library.name))
  local example
  for _, accessor in ipairs(sorted(library.groups)) do
    local group = library.groups[accessor]
    local plural = sorted(group.resources)[1]
    if plural and not example then
      local r = group.resources[plural]
      example = ("--   %s.clientset(c).%s.%s%s:list()"):format(library.prefix, accessor, plural,
        r.namespaced and '("default")' or "")
    end
  end
  line(example or "--   (no resources)")
  line ""
  line "local typed = require \"kubelua.typed\""
  local with_resources = {}
  for _, accessor in ipairs(sorted(library.groups)) do
    if next(library.groups[accessor].resources) then
      with_resources[#with_resources + 1] = library.groups[accessor]
    end
  end
  for _, kind in ipairs { { "Clientset", "Client" }, { "Listers", "Listers" } } do
    line ""
    line(("---@class %s.%s"):format(library.prefix, kind[1]))
    for _, group in ipairs(with_resources) do line((member(nil, group, kind[2]))) end
  end
  line ""
  line(("---@class %s.Informers: kubelua.Informers"):format(library.prefix))
  for _, group in ipairs(with_resources) do line((member(nil, group, "Informers"))) end
  line ""
  line(("---@class %s.Library"):format(library.prefix))
  line(("---@field clientset fun(c: kubelua.Client|kubelua.Context|kubelua.Live): %s.Clientset over a \z
    client, or a reconcile's ctx"):format(
    library.prefix))
  line(("---@field informers fun(c: kubelua.Client, opts?: kubelua.InformersOptions): %s.Informers a shared \z
    informer factory"):format(library.prefix))
  for _, name in ipairs(library.also) do
    line(("---@field %s %s.%s"):format(name, library.prefix, model.camel(name)))
  end
  line(("---@field listers fun(factory: kubelua.Informers): %s.Listers what the caches of a \z
    factory hold"):format(library.prefix))
  for _, accessor in ipairs(sorted(library.groups)) do
    line((member(nil, library.groups[accessor], "Builders")))
  end
  line ""
  if library.lazy then
    line "local groups = {"
    for _, accessor in ipairs(sorted(library.groups)) do line(("  %q,"):format(accessor)) end
    line "}"
    line ""
    line(("local function load(group) return require(%q .. group) end"):format(library.name .. "."))
  else
    line "local groups, loaded = {}, {"
    for _, accessor in ipairs(sorted(library.groups)) do
      line(("  %s = require %q,"):format(accessor, library.name .. "." .. accessor))
    end
    line "}"
    line "for name in pairs(loaded) do groups[#groups + 1] = name end"
    for _, name in ipairs(library.also) do
      line(("loaded.%s = require %q"):format(name, library.name .. "." .. name))
    end
    line ""
    line "local function load(group) return loaded[group] end"
  end
  line ""
  line(("---@type %s.Library"):format(library.prefix))
  local also = {}
  for i, name in ipairs(library.also) do also[i] = ("%q"):format(name) end
  line(("local library = typed.library { name = %q, groups = groups, load = load%s }"):format(
    library.name, #also > 0 and (", also = { %s }"):format(table.concat(also, ", ")) or ""))
  line "return library"
  return table.concat(out, "\n") .. "\n"
end

--- The files of a library: { ["init.lua"] = text, ["slo_v1alpha1.lua"] = text, ... }
---@param library table
---@return table<string, string>
function M.files(library)
  mark_strict(library)
  for _, group in pairs(library.groups) do listed(group) end
  local files = { ["init.lua"] = init_file(library) }
  for accessor, group in pairs(library.groups) do files[accessor .. ".lua"] = group_file(library, group) end
  return files
end

return M
