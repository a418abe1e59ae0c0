---@meta kubelua.testing_meta
-- luacheck: ignore
-- testing_meta.lua - the words of `kubelua test`, for the Lua language server. It is never loaded.

error "testing_meta.lua is for editors; kubelua test defines these functions in test files"

--- A group of tests.
---@param name string
---@param fn fun()
function describe(name, fn) end
context, insulate, expose = describe, describe, describe

--- A test. Without a function it is pending.
---@param name string
---@param fn fun()?
function it(name, fn) end
spec, test = it, it

--- A test that is not written yet. Within a test: ends it as pending, with the reason.
---@param name string
---@param fn fun()?
function pending(name, fn) end

---@param fn fun()
function before_each(fn) end

---@param fn fun()
function after_each(fn) end

--- Runs once before the tests of a group.
---@param fn fun()
function setup(fn) end
lazy_setup, strict_setup = setup, setup

--- Once after them.
---@param fn fun()
function teardown(fn) end
lazy_teardown, strict_teardown = teardown, teardown

--- Runs after this test, whatever happens in it.
---@param fn fun()
function finally(fn) end

--- What `assert` is in a test: is, are, has, no and not may stand in any of its names.
---@class kubelua.Assert
---@overload fun(v: any, message?: any, ...: any): any
---@field equal fun(expected: any, got: any, message?: any)
---@field equals fun(expected: any, got: any, message?: any)
---@field not_equal fun(expected: any, got: any, message?: any)
---@field same fun(expected: any, got: any, message?: any)            tables and objects by content
---@field not_same fun(expected: any, got: any, message?: any)
---@field near fun(expected: number, got: number, tolerance: number, message?: any)
---@field matches fun(pattern: string, text: string, init?: integer, plain?: boolean)
---@field not_matches fun(pattern: string, text: string, init?: integer, plain?: boolean)
---@field is_true fun(v: any, message?: any)
---@field is_false fun(v: any, message?: any)
---@field is_nil fun(v: any, message?: any)
---@field is_not_nil fun(v: any, message?: any)
---@field truthy fun(v: any, message?: any)
---@field falsy fun(v: any, message?: any)
---@field is_string fun(v: any, message?: any)
---@field is_number fun(v: any, message?: any)
---@field is_table fun(v: any, message?: any)
---@field is_function fun(v: any, message?: any)
---@field is_boolean fun(v: any, message?: any)
---@field has_error fun(fn: function, message?: any)
---@field has_no_error fun(fn: function)
---@field error_matches fun(fn: function, pattern: string)
---@field is any
---@field is_not any
---@field are any
---@field are_not any
---@field has any
---@field has_no any
---@field no any

---@type kubelua.Assert
assert = nil

---@class kubelua.Testing
---@field get fun(self: kubelua.Testing, kind: string, namespace_or_key: string, name_or_opts?: any, opts?: kubelua.GetOptions): any
---@field list fun(self: kubelua.Testing, kind: string, opts?: kubelua.ListOptions): kubelua.view[]
---@field create fun(self: kubelua.Testing, o: table, opts?: table): any
---@field apply fun(self: kubelua.Testing, o: table, opts?: table): any
---@field update fun(self: kubelua.Testing, o: table|kubelua.view, opts?: table): any
---@field patch fun(self: kubelua.Testing, o: any, change: table|function, opts?: table): any
---@field patch_status fun(self: kubelua.Testing, o: any, change: table|function, opts?: table): any
---@field update_status fun(self: kubelua.Testing, o: any, opts?: table): any
---@field delete fun(self: kubelua.Testing, kind: any, key?: string, opts?: table): any
