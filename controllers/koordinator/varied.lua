-- varied.lua - noderesource with variations: each is a small file that replaces a function of the policy, and
-- is required before the policy. Keep the lines that you want, or write such a script of your own; those of
-- other controllers (teambudget, quotaexplain) go before `return require "podmigrationjob"` or
-- "elasticquota".
--
--   kubelua run controllers/koordinator/noderesource.lua --shadow controllers/koordinator/varied.lua

require "variations.smoothed"
require "variations.midbelowbatch"
-- require "variations.peakbatch"
-- require "variations.peakmid"
-- require "variations.timeofday"
-- require "variations.thirdparty"

return require "noderesource"
