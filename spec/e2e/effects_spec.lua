-- effects_spec.lua - the log of effects has a line for each write: author, object, answer and change, without
-- the contents of Secrets.

local core = require "kubelua.core"
local process = require "support.process"
local wait = require "support.wait"
local widgets = require "support.widgets"

local SECONDS = 30

widgets.each("effects-spec", function(t)
  local path

  before_each(function() path = process.tmpname ".effects" end)

  local function text()
    local file = io.open(path, "rb")
    if not file then return "" end
    local all = file:read "a"
    file:close()
    return all
  end

  -- The lines with all these words, decoded.
  local function lines(words)
    local out = {}
    for line in text():gmatch "([^\n]+)\n" do
      local all = true
      for _, word in ipairs(words) do all = all and line:find(word, 1, true) end
      if all then out[#out + 1] = core.decode(line) end
    end
    return out
  end

  local function line(...)
    local words, found = { ... }, {}
    local ok = pcall(wait.until_true, SECONDS, "a line", function()
      found = lines(words)
      return #found > 0
    end)
    if not ok then
      error(("no line has %s:\n%s\nthe log:\n%s"):format(table.concat(words, ", "), text(), t.process:log()),
        2)
    end
    return found[1]
  end

  it("logs each write", function()
    t.widget("w", { n = 1 })
    t.run([[owns = { "v1/ConfigMap" }, reads = { "v1/Secret" },
    reconcile = function(obj, ctx)
      local made = ctx:create { kind = "v1/ConfigMap", name = "child", data = { n = "1" } }
      ctx:create { kind = "v1/Secret", name = "s", stringData = { password = "hunter2" } }
      pcall(ctx.create, ctx, { kind = "v1/ConfigMap", name = "child" })
      ctx:patch(made, { data = { n = "2" } })
      ctx:delete("v1/ConfigMap", "child")
      return { status = { n = obj.spec.n } }
    end]], "--effects", path)
    local made = line('"verb":"create"', '"name":"child"', '"code":201')
    assert.equal(t.name, made.controller)
    assert.equal(t.ns .. "/w", made.key)
    assert.equal(t.ns, made.namespace)
    assert.equal("ok", made.status)
    assert.equal(1, made.generation)
    assert.is_truthy(made.reconcileID:find "^%x+%-%x+")
    assert.is_truthy(made.after:find "^%d+$")
    assert.is_nil(made("before"))
    assert.equal('{"n":"1"}', made.changes[1].new)
    assert.equal("data", made.changes[1].path)
    local secret = line('"verb":"create"', '"name":"s"')
    assert.equal("data", secret.changes[1].path)
    assert.is_true(secret.changes[1].redacted)
    local refused = line('"status":"already_exists"')
    assert.equal(409, refused.code)
    assert.is_truthy(refused.error:find "already exists")
    assert.is_truthy(line('"verb":"patch"', '"name":"child"').after)
    assert.is_true(line('"verb":"delete"', '"name":"child"').gone)
    local status = line('"subresource":"status"')
    assert.equal("status", status.changes[1].path)
    assert.is_truthy(status.before)
    assert.is_nil(text():find("hunter2", 1, true))
    assert.is_nil(text():find("aHVudGVyMg", 1, true))
  end)

  it("marks writes of a dry run, and stays within its bound", function()
    for i = 1, 30 do t.widget("w" .. i, { n = i }) end
    t.run([[reconcile = function(obj, ctx)
      for i = 1, 20 do ctx:patch(obj,
        { metadata = { annotations = { ["round-" .. i .. ("x"):rep(30)] = ("y"):rep(60) } } }) end
      return { requeue_after = "10ms" }
    end]], "--effects", path, "--effects-max", "1Mi", "--dry-run")
    assert.is_true(line('"verb":"patch"').dry_run)
    wait.until_true(SECONDS, "a third file", function() return io.open(path .. ".2", "rb") end)
    t.finish()
    local size = process.run(("cat %s %s.* | wc -c"):format(process.quote(path), process.quote(path)))
    assert.is_true(tonumber(size) <= 1024 * 1024)
  end)
end)
