-- dashboard.lua OUT.svg - draws the dashboard of a controller at work: the page as headless Chromium has it,
-- with its style sheet, inside an SVG. Part of `make picture`.

package.path = "spec/?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
local browser = require "support.browser"
local process = require "support.process"
local wait = require "support.wait"

local out = assert(arg[1], "usage: lua5.4 docs/picture/dashboard.lua OUT.svg")
if not browser.available() then
  print "picture: the dashboard is not drawn: there is no Chromium here (Debian: chromium, chromium-driver)"
  os.exit(0)
end
local WIDTH, HEIGHT = 1100, 900
local SCRIPT = [[
local kube = require "kubelua"
return kube.controller {
  name = "hello",
  resource = "v1/ConfigMap",
  reconcile = function(card, ctx)
    local who = card("metadata.labels", "hello")
    if not who then return end
    if who == "nobody" then error "there is nobody to greet" end
    ctx:patch(card, function(c) c.data.greeting = "Hello, " .. who .. "!" end)
  end,
}
]]

local dir = process.tmpname ".dashboard"
process.run("mkdir -p " .. dir)
process.write(dir .. "/hello.lua", SCRIPT)
local CARD = [[
apiVersion: v1
kind: ConfigMap
metadata: {name: card-%d, namespace: default, labels: {hello: %s}}
]]
local objects = {}
for i = 1, 40 do objects[i] = CARD:format(i, i == 7 and "nobody" or "world") end
process.write(dir .. "/cards.yaml", table.concat(objects, "---\n"))

local dev = process.spawn { "build/kubelua", "dev", dir .. "/hello.lua", "--load", dir .. "/cards.yaml",
  "--control", "off", "--dashboard", "127.0.0.1:0", name = "kubelua dev" }
local url = wait.until_true(60, "the dashboard", function()
  return dev:log():match "dashboard[^\n]-(http://%S+)"
end)
local page = browser.open { width = WIDTH, height = HEIGHT }
page:prefer "light"
page:visit((url:gsub('"$', "")))
page:until_true(60, "document.querySelector('#failing-rows pre')")
page:eval "document.querySelectorAll('article.card details').forEach(d => d.open = true)"
page:until_true(30, "document.querySelector('svg rect')")
-- a rate takes two snapshots
page:until_true(30,
  "[...document.querySelectorAll('dt')].find(t => t.textContent == 'runs/s')?.nextElementSibling.textContent")
local body = page:eval [[
  const copy = document.body.cloneNode(true);
  copy.querySelectorAll('[hidden], dialog, script, .skip, a[href^="data:"]').forEach(e => e.remove());
  copy.querySelectorAll('input').forEach(e => e.removeAttribute('autofocus'));
  return new XMLSerializer().serializeToString(copy)]]
local tall = page:eval "return document.documentElement.scrollHeight"
page:close()
dev:stop(20)

local SVG = [[
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>The dashboard: a controller, its figures, and a key that fails</title>
<style>%s</style>
<foreignObject width="%d" height="%d">%s</foreignObject>
</svg>
]]
local css = process.read "bindings/dashboard/style.css":gsub("<", "&lt;")
local text = SVG:format(WIDTH, tall, WIDTH, tall, css, WIDTH, tall, body)
-- only the name of the script, not its directory
process.write(out, (text:gsub("[^%s\"'<>]*/hello%.lua", "hello.lua")))
process.run("rm -rf " .. dir)
