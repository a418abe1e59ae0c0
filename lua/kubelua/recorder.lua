-- recorder.lua - Events from a program that is not a controller:
--
--   local events = kube.recorder(c, { component = "backup" })
--   events:event(pod, "BackupDone", "%d files", n)
--   events:close()
--
-- Nothing waits for the server: Events are sent, counted when they repeat, and tried again by a thread of
-- the recorder. close, flush and the end of the state tell what is left, within seconds.

local core = require "kubelua.core"
local news = require "kubelua.news"
local options = require "kubelua.options"
local saying = require "kubelua.saying"

local M = {}

---@class kubelua.Recorder
---@field private core userdata
local Recorder = {}
Recorder.__index = Recorder
Recorder.__name = "kubelua.Recorder"

local KNOWN = { component = "string" }

--- Who records: `component` is a qualified name such as "backup" or "example.com/backup".
---@param c kubelua.Client
---@param opts { component: string }
---@return kubelua.Recorder
function M.recorder(c, opts)
  opts = options.check("kube.recorder", opts, KNOWN)
  if type(c) ~= "table" or c.core == nil then
    core.blame "kube.recorder: the first argument is a client: kube.recorder(kube.connect(), { component = \z
      \"backup\" })"
  end
  local component = opts.component
  if component == nil or not component:find "^[%w][%w%-_./]*$" or #component > 128 then
    core.blame(("kube.recorder: component must be a name of letters, digits, '-', '_', '.' and \z
      '/' such as \"backup\", got %s"):format(
      component == nil and "nothing" or ("%q"):format(component)))
  end
  return setmetatable({ core = core.recorder(c.core, component) }, Recorder)
end

local function record(self, what, kind, about, reason, fmt, ...)
  local o, e = news.object(what, "object", about), news.check(what, reason)
  self.core:event(kind, e.reason, saying.format(what, fmt, ...), o, e.action, e.related)
end

--- A Normal Event about an object. In place of the reason a table may say more: { reason =, action =,
--- related = }
---@param about kubelua.view|kubelua.Object
---@param reason string|kubelua.EventNews
---@param fmt string
function Recorder:event(about, reason, fmt, ...)
  record(self, "recorder:event", "Normal", about, reason, fmt, ...)
end

--- A Warning Event about an object.
---@param about kubelua.view|kubelua.Object
---@param reason string|kubelua.EventNews
---@param fmt string
function Recorder:warn(about, reason, fmt, ...)
  record(self, "recorder:warn", "Warning", about, reason, fmt, ...)
end

--- Waits until the server was told everything, `timeout` at most (5 s). False: something is still to be
--- told, or was not taken.
---@param timeout string|number|nil
---@return boolean
function Recorder:flush(timeout) return self.core:flush(timeout or "5s") end

--- recorded, waiting, and what was dropped: full, spam, refused, given_up, terminating
---@return table<string, integer>
function Recorder:stats() return self.core:stats() end

--- Flushes and ends.
function Recorder:close() self.core:close() end

Recorder.__close = Recorder.close

return M
