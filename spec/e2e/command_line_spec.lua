-- command_line_spec.lua - help, man pages and completion, which are generated from the tables that parse the
-- command line. The real shells and man check them.
-- not in asan, tsan: shells and man are the subject; cli_spec runs the commands

local process = require "support.process"

local KUBELUA = process.run("realpath " .. process.quote(os.getenv "KUBELUA" or "build/kubelua")):gsub("%s+$",
  "")
local json = require "dkjson"

local function kubelua(words)
  local out, code = process.run(process.quote(KUBELUA) .. " " .. words)
  assert.equal(0, code, out)
  return out
end

local commands = json.decode(kubelua "help -o json")
local dir = process.tmpname ".line"
process.run("mkdir -p " .. process.quote(dir))

-- Runs `text` in a shell whose first directory of programs has kubelua.
local function shell(command, text)
  local file = process.write(dir .. "/script", text)
  local out, code = process.run(
    ("ln -sf %s %s/kubelua; cd %s; PATH=%s:$PATH %s %s"):format(process.quote(KUBELUA),
    process.quote(dir), process.quote(dir), process.quote(dir), command, process.quote(file)))
  assert.equal(0, code, out)
  return out
end

describe("help", function()
  it("knows every command, in its group", function()
    assert.is_true(#commands > 25)
    local all = kubelua "help"
    assert.equal(kubelua "--help", all)
    for _, c in ipairs(commands) do
      assert.matches("\n  " .. c.name:gsub("%-", "%%-") .. " ", all)
      assert.equal(kubelua(c.name .. " --help"), kubelua("help " .. c.name))
    end
  end)

  it("fits into 100 columns, except examples and usage", function()
    for _, c in ipairs(commands) do
      for line in kubelua("help " .. c.name):gmatch "[^\n]+" do
        assert.is_true(utf8.len(line) <= 100 or line:find "^usage" ~= nil or line:find "^  kubelua" ~= nil,
          line)
      end
    end
  end)

  it("has an exit status and an example for each command, and each example is a command line", function()
    local n = 0
    for _, c in ipairs(commands) do
      assert.truthy(c.exits:find "2", c.name)
      assert.is_string(c.examples, c.name)
      for line in c.examples:gmatch "[^\n]+" do
        for command in line:gmatch "kubelua (.+)" do
          command = command:gsub("^.* | kubelua ", ""):gsub(" | .*", ""):gsub(" > .*", ""):gsub(" && .*", "")
          local out, code = process.run(process.quote(KUBELUA) .. " __parse " .. command)
          assert.equal(0, code, line .. "\n" .. out)
          assert.equal("", out, line)
          n = n + 1
        end
      end
    end
    assert.is_true(n > 40)
    local out, code = process.run(process.quote(KUBELUA) .. " __parse run a.lua --wrokers 3")
    assert.equal(2, code)
    assert.matches("did you mean %-%-workers", out)
  end)

  it("has the exit statuses that docs/cli.md lists", function()
    local page = process.read "docs/cli.md"
    for _, c in ipairs(commands) do
      local said = c.exits:gsub("%.$", ""):gsub(", 2 for a mistake on the command line$", "")
      assert.truthy(page:find(("\n| `%s` | %s |\n"):format(c.name, said), 1, true), c.name)
    end
  end)

  it("is JSON for programs", function()
    local run = json.decode(kubelua "help run -o json")
    local found
    for _, o in ipairs(run.options) do
      if o.name == "--leader-elect" then found = o end
    end
    assert.same({ "Several replicas", "only the holder of a Lease reconciles" },
      { found.heading, found.help })
    assert.same({ "test", "" }, { json.decode(kubelua "help test -o json").name,
      kubelua "help test":match "%-%-kubeconfig" or "" })
  end)

  it("says what is wrong", function()
    for words, said in pairs {
      ["help bogus"] = "unknown command bogus", ["help shadw"] = "did you mean shadow%?",
      ["help run why"] = "one command at a time", ["help run -o html"] = "must be plain, man or json",
      completion = "for which shell", ["completion tcsh"] = "for which shell",
      ["why cm a -o xml"] = "must be plain or json",
    } do
      local out, code = process.run(process.quote(KUBELUA) .. " " .. words)
      assert.equal(2, code, out)
      assert.matches(said, out)
    end
  end)
end)

describe("man pages", function()
  it("pass man and mandoc without a warning", function()
    local files = {}
    for i, name in ipairs { "", table.unpack((function()
      local names = {}
      for k, c in ipairs(commands) do names[k] = c.name end
      return names
    end)()) } do
      files[i] = process.write(("%s/kubelua%s.1"):format(dir, name ~= "" and "-" .. name or ""),
        kubelua("help " .. name .. " -o man"))
    end
    assert.equal(#commands + 1, #files)
    local out, code = process.run(("mandoc -T lint -W warning %s/*.1"):format(process.quote(dir)))
    assert.equal("0", code .. out)
    out, code = process.run(
      ("for f in %s/*.1; do LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z \"$f\" \z
      2>&1 >/dev/null || exit 1; done"):format(process.quote(dir)))
    assert.equal("0", code .. out)
  end)

  it("have the content of --help", function()
    local page = process.run(
      ("mandoc -T utf8 -O width=200 %s/kubelua-run.1 | col -b"):format(process.quote(dir)))
    for _, o in ipairs(json.decode(kubelua "help run -o json").options) do
      assert.truthy(page:find(o.name, 1, true), o.name)
    end
    assert.truthy(page:find("kubelua run hello.lua --leader-elect --metrics-bind-address :8080", 1, true))
  end)
end)

describe("completion", function()
  -- The completions of each shell for a line with the cursor at its end.
  local shells = {
    bash = function(line)
      local words = {}
      for w in (line .. "\0"):gsub("=", " = "):gsub(" %z", " ''"):gsub("%z",
        ""):gmatch "%S+" do words[#words + 1] = w end
      return shell("bash --norc", ("eval \"$(kubelua completion bash)\"\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n\z
        _kubelua\nprintf '%%s\\n' \"${COMPREPLY[@]}\"\n"):format(table.concat(words, " "), #words - 1))
    end,
    -- zsh's line editor needs a terminal: its output functions are replaced here, all else is original.
    zsh = function(line)
      local words = {}
      for w in (line .. "\0"):gsub(" %z", " ''"):gsub("%z", ""):gmatch "%S+" do words[#words + 1] = w end
      return shell("zsh -f", ("compdef() { }\n_describe() { local i; for i in \"${(@P)2}\"; do print -r -- \z
        \"${i%%%%:*}\"; done }\n_files() { if [[ $1 == -/ ]]; then print -l *(/N); else print -l *(N); fi \z
          }\n\z
        eval \"$(kubelua completion zsh)\"\nwords=(%s)\nCURRENT=%d\n_kubelua\n"):format(table.concat(words,
          " "), #words))
    end,
    fish = function(line)
      return shell("fish --no-config",
        ("kubelua completion fish | source\ncomplete -C '%s' | string replace -r \z
          '\\t.*' ''\ntrue\n"):format(line))
    end,
  }

  local function offers(sh, line)
    local set, n = {}, 0
    for word in shells[sh](line):gmatch "[^\n]+" do
      if word ~= "" then set[word], n = true, n + 1 end
    end
    return set, n
  end

  lazy_setup(function()
    process.write(dir .. "/mine.lua", "")
    process.run(("mkdir -p %s/things"):format(process.quote(dir)))
  end)

  for _, sh in ipairs { "bash", "zsh", "fish" } do
    it("of commands, options, values, files and directories in " .. sh, function()
      local got, n = offers(sh, "kubelua re")
      assert.same({ true, true, true, 3 }, { got.reload, got.replay, got["release-finalizers"], n })
      got = offers(sh, "kubelua run --leader-elect-r")
      assert.same({ true, true },
        { got["--leader-elect-renew-deadline"], got["--leader-elect-retry-period"] })
      assert.is_nil(got["--dry-run"])
      got, n = offers(sh, "kubelua run mine.lua --log-level ")
      assert.same({ true, true, 5 }, { got.debug, got.off, n })
      got, n = offers(sh, "kubelua test -o ju")
      assert.same({ true, 1 }, { got.junit, n })
      got, n = offers(sh, "kubelua run --log-format=j")
      assert.same({ true, 1 }, { got[sh == "bash" and "json" or "--log-format=json"], n })
      assert.is_true(offers(sh, "kubelua check ")["mine.lua"])
      assert.is_true(offers(sh, "kubelua help sh").shadow)
      got = offers(sh, "kubelua gen --out ")
      assert.is_true(got.things or got["things/"])
      assert.is_nil(got["mine.lua"])
      assert.is_true(offers(sh, "kubelua get dep").deployments)
      assert.same({ 0, 0 }, { select(2, offers(sh, "kubelua run --nothing-like-it")),
        select(2, offers(sh, "kubelua bogus x")) })
    end)
  end
end)
