-- rust_client_spec.lua - kube-rs, unmodified: its watcher, Controller, finalizer helper, Recorder and apply
-- (spec/realserver/rust), on both servers.
-- not in check, asan, tsan: what runs is a program in Rust

local foreign = require "support.foreign"
local process = require "support.process"

local SOURCE = "spec/realserver/rust/clients.rs"
local _, tests = process.read(SOURCE):gsub("\n#%[test%]\n", "")

foreign.describe("kube-rs", { program = foreign.asset "rust/rust-clients", needs = "its program",
  passed = ("test result: ok. %d passed"):format(tests), source = SOURCE, fence = "rust" })
