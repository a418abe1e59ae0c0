-- upsert.lua - an object as a function wants it, whether it is there or not; and what lost a race, tried
-- again.
--
-- This needs of its caller, a client or a ctx:
--   { get = function(kind, namespace, name) -> view from the server or nil, create = function(o) -> view,
--     update = function(o) -> view, patch = function(o, fn) -> view,
--     place = function(kind) -> the namespace of an object that names none, or nil,
--     believed = nil or function(kind, namespace, name) -> view of the cache,
--     elided = function() that counts }

local clock = require "kubelua.clock"
local core = require "kubelua.core"
local edit = require "kubelua.edit"
local object = require "kubelua.object"
local options = require "kubelua.options"

local M = {}

local function identity(self, what, o)
  local base = core.value(object.normalize(o, what), "the object")
  local kind, name, ns = object.kind_of(base), base("metadata.name"), base("metadata.namespace")
  if not kind or not name then core.blame(what .. ": the object needs a kind and a name") end
  if not ns then
    ns = self.place(kind)
    if ns then base = edit.view(function(draft) draft.metadata.namespace = ns end, base) end
  end
  return base, kind, ns, name
end

local function check_function(what, fn)
  if type(fn) ~= "function" then
    core.blame(("%s: expected a function that edits a draft, got %s"):format(what, type(fn)))
  end
end

-- With another name it would be another object, and the call would affect both.
local function guarded(what, fn, name, ns)
  return function(draft)
    fn(draft)
    if draft("metadata.name") ~= name or draft("metadata.namespace") ~= ns then
      core.blame(("%s: the function may not change the object's name or namespace"):format(what))
    end
  end
end

-- The object of the cache, when it may be believed and fn leaves it as it is: then nobody has to be asked.
local function unchanged(self, what, fn, kind, ns, name)
  local o = self.believed and self.believed(kind, ns, name)
  if not o or edit.view(guarded(what, fn, name, o("metadata.namespace")), o) ~= o then return nil end
  self.elided()
  return o
end

local function created(self, what, base, fn, name, ns)
  return self.create(edit.view(guarded(what, fn, name, ns), base)), "created"
end

--- The object as fn(draft) leaves it: created from `o` when it is absent, else replaced when fn changed it.
--- "created", "updated" or "unchanged".
function M.create_or_update(self, what, o, fn)
  check_function(what, fn)
  local base, kind, ns, name = identity(self, what, o)
  local as_it_is = unchanged(self, what, fn, kind, ns, name)
  if as_it_is then return as_it_is, "unchanged" end
  local there = self.get(kind, ns, name)
  if not there then return created(self, what, base, fn, name, ns) end
  local wanted = edit.view(guarded(what, fn, name, there("metadata.namespace")), there)
  if wanted == there then return there, "unchanged" end
  return self.update(wanted), "updated"
end

local RESULTS = {
  [false] = { [false] = "unchanged", [true] = "updated_status" },
  [true] = { [false] = "updated", [true] = "updated_both" },
}

--- The same, with only what changed sent, the status by itself: "created", "updated", "updated_status",
--- "updated_both" or "unchanged".
function M.create_or_patch(self, what, o, fn)
  check_function(what, fn)
  local base, kind, ns, name = identity(self, what, o)
  local as_it_is = unchanged(self, what, fn, kind, ns, name)
  if as_it_is then return as_it_is, "unchanged" end
  local there = self.get(kind, ns, name)
  if not there then return created(self, what, base, fn, name, ns) end
  fn = guarded(what, fn, name, there("metadata.namespace"))
  local rest, status
  local result = self.patch(there, function(draft)
    fn(draft)
    rest, status = false, false
    for key in pairs(core.draft_patch(draft) or {}) do
      if key == "status" then status = true else rest = true end
    end
  end)
  return result, RESULTS[rest][status]
end

-- ---------------------------------------------------------------- conflicts

local RETRY = { steps = "integer", delay = "duration", factor = "integer" }
-- client-go's DefaultRetry: for somebody who makes one change among others.
local STEPS, DELAY, FACTOR, JITTER = 5, 0.01, 1, 0.1

--- Calls fn until it no longer ends in a conflict; fn reads what it changes itself, anew each time. After
--- the last attempt the conflict is raised. Returns what fn returns.
---@generic T
---@param fn fun(): T
---@param opts {steps?: integer, delay?: kubelua.Duration, factor?: integer}?   5 attempts 10ms apart; `factor` makes each pause longer
---@return T
function M.retry_on_conflict(fn, opts)
  if type(fn) ~= "function" then
    core.blame(("kube.retry_on_conflict: expected a function, got %s"):format(type(fn)))
  end
  opts = options.check("kube.retry_on_conflict", opts, RETRY)
  local steps, delay, factor = opts.steps or STEPS, core.duration(opts.delay or DELAY), opts.factor or FACTOR
  if steps < 1 then core.blame(("kube.retry_on_conflict: steps must be at least 1, got %d"):format(steps)) end
  for step = 1, steps do
    local result = table.pack(pcall(fn))
    if result[1] then return table.unpack(result, 2, result.n) end
    local err = result[2]
    if not core.is_error(err) or err.kind ~= "conflict" or step == steps then error(err, 0) end
    clock.sleep(delay * (1 + JITTER * math.random()))
    delay = delay * factor
  end
end

return M
