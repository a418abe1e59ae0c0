-- nightly.lua - a scenario for night.lua: a day's reports are made at night. They are all asked for at
-- midnight, and small jobs come all day.

return {
  at = {
    ["0s"] = function(s) s:add_job { cpu = "4", memory = "8Gi", time = "90m", count = 20 } end,
  },
  every = {
    ["30m"] = function(s) s:add_job { cpu = "1", memory = "1Gi", time = "20m", count = 4 } end,
  },
}
