std = "lua54"
max_line_length = 170
exclude_files = { "build/**", "bench/py/venv/**" }
-- A method that ignores self, a callback that ignores an argument: both are contracts, not mistakes.
self = false
unused_args = false
-- In specs a row of a table of cases stays a row, with the whole message that it expects.
-- What `kubelua test` gives: busted's words.
files["**/*_test.lua"] = { std = "+busted" }
files["spec"] = { std = "+busted", max_line_length = false }
