-- dashboard_spec.lua - the page of `kubelua run --dashboard`, in a real browser. What comes from the cluster
-- is seen with both servers. The rest is between page and process: the suite looks at it with the embedded
-- server, `make soak` with both.

local browser = require "support.browser"
local controller = require "support.controller"
local process = require "support.process"
local servers = require "support.servers"
local sizes = require "support.sizes"
local wait = require "support.wait"

local KUBELUA = os.getenv "KUBELUA" or "build/kubelua"
local TOKEN = "correct-horse-battery-staple"

local SCRIPT = [[
  local kube = require "kubelua"
  return kube.controller {
    name = "answers", resource = "v1/ConfigMap",
    reconcile = function(map, ctx)
      if map("data.bad") then error("the word is bad: " .. map.data.bad, 0) end
      if map("data.ask") and map("data.word") ~= "one" then
        ctx:patch(map, function(m) m.data.word = "one" end)
      end
    end,
  }
]]

-- The lowest contrast of a text on the page with its background, by WCAG, and the text.
local LEAST_CONTRAST = [[
  const light = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 };
  const parts = s => s.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const p = parts(getComputedStyle(e).backgroundColor);
      if (p.length < 4 || p[3] > 0) return p;
    }
    return [255, 255, 255];
  };
  let least = 99, where = "";
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e), ink = e instanceof SVGElement ? style.fill : style.color;
    const a = luminance(parts(ink)), b = luminance(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) { least = ratio; where = e.textContent; }
  }
  return [least, where];
]]

local function skipped()
  if browser.available() then return false end
  assert(not os.getenv "CI", "there is no chromium with chromedriver here, and in CI that is a failure")
  io.stderr:write "kubelua: there is no chromium with chromedriver here: the dashboard's specs are skipped\n"
  return true
end

servers.each(function(name, start)
  if skipped() then
    pending("the dashboard against " .. name)
    return
  end

  describe("the dashboard of `kubelua run` against " .. name, function()
    local server, client, ns, page, run, url
    lazy_setup(function()
      server = start {}
      client = controller.client(server)
      page = browser.open { width = 1200, height = 900 }
    end)
    lazy_teardown(function()
      if page then page:close() end
      if server then server:stop() end
    end)

    local function begin(script, ...)
      run = controller.start(server, script, "--namespace", ns, ...)
      run:wait_for_log(30, "serving the dashboard")
      url = run:log():match "serving the dashboard url=(%S+)"
      page:width(nil)
      page:prefer "light"
      page:visit(url)
      page:until_true(60, "document.querySelector('.state.running')")
    end

    before_each(function()
      ns = controller.namespace(client, "board")
      local token = process.write(process.tmpname ".token", TOKEN .. "\n")
      begin(SCRIPT, "--dashboard", "127.0.0.1:0", "--dashboard-token-file", token)
    end)
    after_each(function() controller.finish(run) end)

    -- A spec of page and process alone.
    local of_page = (name == servers.EMBEDDED or sizes.of { short = 0, long = 1 } == 1) and it
      or function() end

    local function create(key, data)
      client:create { kind = "v1/ConfigMap", namespace = ns, name = key, data = data }
    end

    it("updates without a reload of the page", function()
      page:eval "window.sameDocument = true"
      create("a", { ask = "yes" })
      page:until_true(30, "/default|board/.test(document.body.innerText) && \z
        document.querySelector('#informer-rows').textContent.includes('v1/ConfigMap')")
      create("b", { bad = "oops" })
      page:until_true(30, "document.querySelector('#failing-rows').textContent.includes('the word is \z
        bad: oops')")
      page:until_true(30, "document.querySelector('#failing-count').textContent === '1'")
      client:delete("v1/ConfigMap", ns, "b")
      page:until_true(30, "document.querySelector('#failing-rows').children.length === 0")
      page:until_true(30, "!document.querySelector('#failing .empty').hidden")
      assert.is_true(page:eval "return window.sameDocument")
    end)

    of_page("shows what the scripts count, and nothing of it where they count nothing", function()
      assert.is_true(page:eval "return document.querySelector('#metrics').hidden")
      controller.finish(run)
      begin([[
        local kube = require "kubelua"
        local seen = kube.counter { name = "maps_seen_total", help = "Maps.", labels = { "name" } }
        local size = kube.histogram { name = "map_entries", help = "Entries." }
        return kube.controller { name = "counts", resource = "v1/ConfigMap", reconcile = function(map, ctx)
          if map("data.count") then seen:inc(1234, { name = ctx.name }) size:observe(2) size:observe(5) end
        end }
      ]], "--dashboard", "127.0.0.1:0")
      create("a", { count = "yes" })
      create("b", { count = "yes" })
      page:until_true(30, "document.querySelectorAll('#metric-rows tr').length === 3")
      page:until_true(5, "!document.querySelector('#metrics').hidden")
      assert.equal('map_entries||mean 3.5;maps_seen_total|name="a"|1,234;|name="b"|1,234', page:eval [[
        return [...document.querySelectorAll('#metric-rows tr')].map(r => [...r.children].slice(0, 3)
          .map(c => c.textContent).join('|')).join(';')]])
    end)

    it("treats strings of the cluster as text", function()
      create("x", { bad = "<img src=x onerror='window.broken = true'><script>window.broken = true</script>" })
      page:until_true(30, "document.querySelector('#failing-rows pre')?.textContent.includes('<img src=x')")
      assert.equal(0, page:eval "return document.querySelectorAll('img, #failing-rows script').length")
      assert.is_nil(page:eval "return window.broken")
    end)

    of_page("spells out what is no letter and cuts what is long, of what scripts and params say", function()
      controller.finish(run)
      begin([[
        local kube = require "kubelua"
        local word = "a\u{202e}<b>\27[2J\u{9b}\u{2028}\u{2066}z"
        local seen = kube.counter { name = "seen_total", help = word:gsub("%c", ""), labels = { "word" } }
        return kube.controller { name = "odd", resource = "v1/ConfigMap", params = { big = "", list = {} },
          reconcile = function(map)
            if not map("data.bad") then return end
            seen:inc(1, { word = word })
            error(word, 0)
          end }
      ]], "--dashboard", "127.0.0.1:0", "--param", "big=" .. ("x"):rep(9000) .. "\u{202e}", "--param",
        "list=[" .. ("1,"):rep(5000) .. "1]")
      create("x", { bad = "yes" })
      local shown = "a\\u202e<b>^[[2J\\u009b\\u2028\\u2066z"
      for _, place in ipairs { "#failing-rows pre", "#metric-rows code" } do
        page:until_true(30, ("document.querySelector('%s')?.textContent.includes(%q)"):format(place, shown))
      end
      page:until_true(10, "/big=x{8192}\\.\\.\\. \\(9003 bytes\\) list=\\[(1,){4095}1\\.\\.\\. /.test(\z
        document.querySelector('.params').textContent)")
      page:click "#failing-rows button"
      page:until_true(30, ("document.querySelector('#why-answer pre')?.textContent.includes(%q)"):format(
        shown))
      assert.is_false(page:eval
        "return /[\\x1b\\x7f-\\x9f\\u2028-\\u202e\\u2066]/.test(document.body.innerText)")
      assert.is_true(page:eval "return document.querySelector('article.card').offsetHeight < innerHeight")
      page:screenshot "odd"
    end)

    of_page("has one row for each reload, however many there are in a second", function()
      for i = 1, 6 do
        process.write(run.script_path, "return (" .. ("\n"):rep(i))
        page:until_true(30, ("document.querySelector('#reload-rows pre')?.textContent.includes(':%d:')")
          :format(i + 1))
      end
      page:eval [[
        window.pictures = 0
        new EventSource("v1/events").addEventListener("snapshot", () => window.pictures++)]]
      page:until_true(30, "window.pictures > 3")
      assert.equal(6, page:eval "return document.querySelectorAll('#reload-rows li').length")
    end)

    of_page("is reached by the keyboard: a key's story, the list of keys, and the way back", function()
      create("b", { bad = "oops" })
      page:until_true(30, "document.querySelector('#failing-rows button')")
      page:type "2"
      page:until_true(5, "document.activeElement.matches('#failing-rows button')")
      page:type(browser.keys.enter)
      page:until_true(5, "document.activeElement.id === 'why-key' && \z
        document.activeElement.value.endsWith('/b')")
      page:until_true(30, "document.querySelector('#why-answer .run .why-bad')?.textContent === 'error'")
      page:until_true(5, "document.querySelector('#why-answer').textContent.includes('the word is \z
        bad: oops')")
      page:until_true(5, "document.querySelector('#why-answer .story h3').textContent.startsWith('answers')")
      page:eval "document.activeElement.blur()"
      page:type "?"
      page:until_true(5, "document.querySelector('#help').open")
      page:type(browser.keys.escape)
      page:until_true(5, "!document.querySelector('#help').open")
      page:type "1"
      page:until_true(5, "document.activeElement.matches('article.card')")
      page:type(browser.keys.enter)
      page:until_true(5, "document.activeElement.querySelector('details').open")
      page:until_true(10, "document.activeElement.querySelector('svg rect')")
      -- The focus stays while the page is redrawn.
      local heard = page:eval "return document.querySelector('.figures').textContent"
      create("c", { ask = "yes" })
      page:until_true(30, ("document.querySelector('.figures').nextElementSibling.textContent + \z
        document.querySelector('.figures').textContent !== %q"):format(heard))
      assert.is_true(page:eval "return document.activeElement.matches('article.card') && \z
        document.activeElement.querySelector('details').open")
      page:screenshot "keyboard"
    end)

    of_page("can be read in light and dark, and on a phone", function()
      create("b", { bad = "oops" })
      page:until_true(30, "document.querySelector('#failing-rows pre')")
      page:eval "document.querySelectorAll('details').forEach(d => d.open = true)"
      page:until_true(10, "document.querySelector('svg rect')")
      local grounds = {}
      for _, scheme in ipairs { "light", "dark" } do
        page:prefer(scheme)
        local least = page:eval(LEAST_CONTRAST)
        assert.is_true(least[1] >= 4.5, ("%s: %.2f of %q"):format(scheme, least[1], least[2]))
        grounds[scheme] = page:eval "return getComputedStyle(document.body).backgroundColor"
        page:screenshot(scheme)
      end
      assert.are_not.equal(grounds.light, grounds.dark)
      page:width(360)
      page:until_true(10, "innerWidth === 360")
      assert.is_true(page:eval "return document.documentElement.scrollWidth <= innerWidth")
      page:screenshot "phone"
    end)

    of_page("says that a reload was refused, with the message, until it is mended", function()
      process.write(run.script_path, "return (\n")
      page:until_true(30, "!document.querySelector('#refused').hidden")
      page:until_true(5, "document.querySelector('#refused').textContent.includes('unexpected symbol')")
      assert.equal("alert", page:eval "return document.querySelector('#refused').getAttribute('role')")
      page:screenshot "refused"
      process.write(run.script_path, "-- mended\n" .. SCRIPT)
      page:until_true(30, "document.querySelector('#refused').hidden")
      page:until_true(10, "document.querySelector('#reload-rows li .result.taken')")
      page:until_true(30, "document.querySelector('.figures dd').textContent === '2'")
    end)

    of_page("asks for a token where one would allow changes, and nowhere else", function()
      local shown = "[...document.querySelectorAll('#token-form label, #token-form button')].filter(e => \z
        e.offsetParent).length"
      page:until_true(10, shown .. " === 2")
      controller.finish(run)
      begin(SCRIPT, "--dashboard", "127.0.0.1:0")
      page:until_true(10, "document.querySelector('#process').textContent")      -- it has asked by then
      assert.equal(0, page:eval("return " .. shown))
      assert.equal("read-only", page:eval "return document.querySelector('#token-form').innerText.trim()")
    end)

    of_page("reads no file that is named to it, with the token either", function()
      local file = process.write(process.tmpname ".conf", "password = (hidden\n")
      local said = process.run(("curl -s -w ' %%{http_code}' -X POST -H 'Authorization: Bearer %s' -d \z
        '{\"path\":\"%s\"}' %s")
        :format(TOKEN, file, process.quote(url .. "v1/shadow")))
      assert.truthy(said:find "start it there, with kubelua shadow CANDIDATE.lua.* 403$", said)
      assert.is_nil(said:find("hidden", 1, true))
    end)

    of_page("lets nobody change anything without the token", function()
      local target = process.quote(url .. "v1/pause")
      local function post(...)
        local out = process.run(("curl -s -w ' %%{http_code}' -X POST -d \z
          '{\"controller\":\"answers\"}' %s %s"):format(table.concat({ ... }, " "), target))
        return out
      end
      assert.truthy(post():find("changes and the contents of objects need the token", 1, true))
      assert.truthy(post():find " 401$")
      assert.truthy(post "-H 'Authorization: Bearer correct-horse-battery-stapl'":find(
        "wrong token", 1, true))
      -- The contents of objects need the same rights as changes.
      for _, path in ipairs { "v1/list?kind=v1/ConfigMap", "v1/object?kind=v1/ConfigMap&key=a",
        "v1/params?controller=answers" } do
        local said = process.run(("curl -s -w ' %%{http_code}' %s"):format(process.quote(url .. path)))
        assert.truthy(said:find " 401$", said)
      end
      assert.truthy(process.run(("curl -s -H 'Authorization: Bearer %s' %s"):format(TOKEN,
        process.quote(url .. "v1/list?kind=v1/ConfigMap"))):find('"items"', 1, true))
      assert.truthy(process.run(("curl -s -H 'Authorization: Bearer %s' %s"):format(TOKEN,
        process.quote(url .. "v1/list?kind=v1/ConfigMap&limit=ten"))):find("limit must be a number", 1, true))
      assert.truthy(process.run(("curl -s -H 'Host: evil.example.com' %s"):format(process.quote(url))):find(
        "answers only to its names", 1, true))
      for _, origin in ipairs { "https://evil.example.com", "http://127.0.0.1:1", "http://127.0.0.1",
        "null" } do
        assert.truthy(process.run(("curl -s -H 'Origin: %s' %s"):format(origin,
          process.quote(url))):find("does not answer pages of other origins", 1, true), origin)
      end
      page:eval "document.querySelector('#token').value = 'wrong'"
      page:click "#token-form button"
      page:until_true(10, "document.querySelector('#token-state').textContent === 'wrong token'")
      assert.equal(0, page:eval "return document.querySelectorAll('.card button.act').length")
      page:eval(("document.querySelector('#token').value = %q"):format(TOKEN))
      page:click "#token-form button"
      page:until_true(10, "document.querySelector('#token-state').textContent === 'changes are allowed'")
      page:until_true(10, "document.querySelector('.card button.act').textContent === 'Pause'")
      page:click ".card button.act"
      page:until_true(30, "document.querySelector('.card .state').textContent === 'paused'")
      create("a", { ask = "yes" })
      page:until_true(30, "document.querySelectorAll('.figures')[1].textContent.startsWith('ready1')")
      page:click ".card button.act"
      page:until_true(30, "document.querySelector('.card .state').textContent === 'running'")
      wait.until_true(30, "the word", function()
        return client:get("v1/ConfigMap", ns, "a")("data.word") == "one"
      end)
    end)

    it("shows differences of a shadow candidate, and promotes it", function()
      local candidate = process.write(process.tmpname ".lua", (SCRIPT:gsub('"one"', '"two"')))
      create("a", { ask = "yes" })
      wait.until_true(30, "the word", function()
        return client:get("v1/ConfigMap", ns, "a")("data.word") == "one"
      end)
      assert.is_true(page:eval "return document.querySelector('#shadow').hidden")
      local out, code = process.run(("%s shadow %s --pid %d 2>&1"):format(KUBELUA, candidate, run.pid))
      assert.equal(0, code, out)
      create("b", { ask = "yes" })
      page:until_true(60, "document.querySelector('#shadow-body').textContent.includes('1 differ')")
      page:until_true(10, [[/"one" -> "two"/.test(
        document.querySelector('#shadow-body li pre').textContent)]])
      page:screenshot "shadow"
      page:eval(("document.querySelector('#token').value = %q"):format(TOKEN))
      page:click "#token-form button"
      page:until_true(10, "[...document.querySelectorAll('#shadow-body button')].some(b => b.textContent \z
        === 'Promote')")
      page:click "#shadow-body button.act"
      wait.until_true(60, "the candidate's word", function()
        return client:get("v1/ConfigMap", ns, "a")("data.word") == "two"
      end)
      page:until_true(30, "document.querySelector('#shadow').hidden")
    end)

    of_page("says when the connection is lost, how old the picture is, and goes on when the process is back",
      function()
      local address = url:match "^http://([^/]+)"
      page:until_true(10, "document.querySelector('#connection').textContent === 'live'")
      local pid = page:eval "return document.querySelector('#process').textContent"
      run:kill()
      page:until_true(30, "document.querySelector('#connection.lost')?.textContent.startsWith('connection \z
        lost; this is ')")
      page:screenshot "lost"
      run = controller.start(server, SCRIPT, "--namespace", ns, "--dashboard", address)
      page:until_true(60, "document.querySelector('#connection').textContent === 'live'")
      page:until_true(10, ("document.querySelector('#process').textContent !== %q"):format(pid))
    end)
  end)
end)
