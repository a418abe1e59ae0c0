-- browser.lua - a headless Chromium, controlled with W3C WebDriver (chromedriver).
--
--   local browser = require "support.browser"
--   if browser.available() then local page = browser.open { width = 1200, height = 900 } ... page:close() end
--
-- Calls raise what the browser says is wrong.

local http = require "socket.http"
local ltn12 = require "ltn12"
local kube = require "kubelua"
local process = require "support.process"
local wait = require "support.wait"

local M = {}

local CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
-- As root there is no sandbox; the other flags stop requests to the browser's maker.
local FLAGS = { "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars" }
-- the name that WebDriver gives references to elements
local ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
M.keys = { enter = "\u{E007}", escape = "\u{E00C}", tab = "\u{E004}" }

local function exists(path)
  local f = io.open(path)
  return f and f:close()
end

function M.available() return exists(CHROMIUM) and exists(DRIVER) end

local Page = {}
Page.__index = Page

local function request(base, method, path, body)
  local text, got = body and kube.to_json(body) or nil, {}
  local _, code = http.request {
    method = method, url = base .. path, sink = ltn12.sink.table(got),
    source = text and ltn12.source.string(text) or nil,
    headers = { ["content-type"] = "application/json", ["content-length"] = text and #text or 0 },
  }
  local answer = table.concat(got)
  if code ~= 200 then error(("%s %s: %s %s"):format(method, path, tostring(code), answer), 0) end
  return kube.json(answer)
end

--- Starts driver and browser. width and height of the window in CSS pixels.
function M.open(options)
  local self = setmetatable({}, Page)
  self.driver = process.spawn { DRIVER, "--port=0", name = "chromedriver" }
  local port = wait.until_true(30, "chromedriver's port", function()
    return self.driver:log():match "started successfully on port (%d+)"
  end)
  self.base = "http://127.0.0.1:" .. port
  local flags = kube.array { "--user-data-dir=" .. process.tmpname ".chromium",
    ("--window-size=%d,%d"):format(options.width, options.height), table.unpack(FLAGS) }
  local answer = request(self.base, "POST", "/session", { capabilities = { alwaysMatch = {
    browserName = "chrome", ["goog:chromeOptions"] = { binary = CHROMIUM, args = flags },
  } } })
  self.base = self.base .. "/session/" .. answer.value.sessionId
  return self
end

function Page:close()
  pcall(request, self.base, "DELETE", "")
  self.driver:stop(20)
end

function Page:visit(url) request(self.base, "POST", "/url", { url = url }) end

--- Runs the body of a JavaScript function, and returns its result.
function Page:eval(script, ...)
  return request(self.base, "POST", "/execute/sync", { script = script, args = kube.array { ... } })("value")
end

--- Waits until a JavaScript expression is true; the error shows the page's text.
function Page:until_true(seconds, expression)
  local ok = pcall(wait.until_true, seconds, expression, function()
    return self:eval("return Boolean(" .. expression .. ")")
  end)
  if not ok then
    error(("%s never became true; the page says:\n%s"):format(expression,
      self:eval "return document.body.innerText"), 2)
  end
end

--- Types keys into the element with the focus.
function Page:type(keys)
  local presses = kube.array {}
  for _, code in utf8.codes(keys) do
    for _, kind in ipairs { "keyDown", "keyUp" } do
      presses[#presses + 1] = { type = kind, value = utf8.char(code) }
    end
  end
  request(self.base, "POST", "/actions", { actions = kube.array {
    { type = "key", id = "keyboard", actions = presses } } })
end

function Page:click(selector)
  local element = request(self.base, "POST", "/element",
    { using = "css selector", value = selector }).value[ELEMENT]
  request(self.base, "POST", "/element/" .. element .. "/click", kube.object {})
end

--- A command of the DevTools protocol.
function Page:devtools(command, parameters)
  return request(self.base, "POST", "/goog/cdp/execute", { cmd = command, params = parameters })("value")
end

--- Sets "dark" or "light" as the preferred scheme, and disables animations, so that a click hits its button.
function Page:prefer(scheme)
  self:devtools("Emulation.setEmulatedMedia", { features = kube.array {
    { name = "prefers-color-scheme", value = scheme }, { name = "prefers-reduced-motion", value = "reduce" },
  } })
end

--- Sets the width of the window, for example that of a phone; nil: the initial width.
function Page:width(pixels)
  if not pixels then return self:devtools("Emulation.clearDeviceMetricsOverride", kube.object {}) end
  self:devtools("Emulation.setDeviceMetricsOverride",
    { width = pixels, height = 800, deviceScaleFactor = 2, mobile = true })
end

--- Writes a picture of the whole page to build/screenshots.
function Page:screenshot(name)
  process.run "mkdir -p build/screenshots"
  local height = self:eval "return document.documentElement.scrollHeight"
  local width = self:eval "return document.documentElement.clientWidth"
  local data = self:devtools("Page.captureScreenshot",
    { format = "png", captureBeyondViewport = true, clip = { x = 0, y = 0, width = width, height = height,
    scale = 1 } }).data
  local pipe = assert(io.popen(("base64 -d > build/screenshots/%s.png"):format(name), "w"))
  pipe:write(data)
  pipe:close()
end

return M
