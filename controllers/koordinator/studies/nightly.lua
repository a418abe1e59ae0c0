-- nightly.lua - a scenario for night.lua: 20 large jobs arrive at midnight, the start, and 4 small ones every
-- half an hour.

return {
  at = {
    ["0s"] = function(s) s:add_job { cpu = "4", memory = "8Gi", time = "90m", count = 20 } end,
  },
  every = {
    ["30m"] = function(s) s:add_job { cpu = "1", memory = "1Gi", time = "20m", count = 4 } end,
  },
}
