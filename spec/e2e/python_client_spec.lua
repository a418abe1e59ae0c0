-- python_client_spec.lua - the official Python client, unmodified, on both servers.
-- not in check, asan, tsan: what runs is a program in Python

local foreign = require "support.foreign"

local SOURCE = "spec/realserver/python/test_server.py"

foreign.describe("the official client of Python", { program = foreign.asset "python/venv" .. "/bin/python",
  needs = "its Python", words = SOURCE, passed = "Ran 4 tests", source = SOURCE, fence = "python" })
