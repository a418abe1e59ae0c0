std = "lua54"
max_line_length = 110
-- Scripts in long strings, and annotations, which the Lua language server wants on one line.
max_string_line_length = false
max_comment_line_length = 170
exclude_files = { "build/**", "bench/py/venv/**", "spec/hunt/seeds/**" }
-- A method that ignores self, a callback that ignores an argument: both are contracts, not mistakes.
self = false
unused_args = false
-- What `kubelua test` gives: busted's words.
files["**/*_test.lua"] = { std = "+busted" }
-- In specs a script or a message in a long string may stand beside code.
files["spec"] = { std = "+busted", max_code_line_length = 190 }
-- Generated.
files["lua/kubelua/koordinator"] = { max_code_line_length = false }
