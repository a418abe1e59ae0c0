std = "lua54"
max_line_length = 160
exclude_files = { "build/**", "bench/py/venv/**" }
-- A method that ignores self, a callback that ignores an argument: both are contracts, not mistakes.
self = false
unused_args = false
files["spec"] = { std = "+busted" }
