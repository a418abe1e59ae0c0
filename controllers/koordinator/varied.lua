-- varied.lua - noderesource with variations. A variation is a small file that replaces a function of the
-- policy; it is required before the controller. Keep the lines that you want, or write your own such script.
-- Variations of other controllers (teambudget, quotaexplain) stand before `return require "podmigrationjob"`
-- or `return require "elasticquota"`.
--
--   kubelua run controllers/koordinator/noderesource.lua --shadow controllers/koordinator/varied.lua

require "variations.smoothed"
require "variations.midbelowbatch"
-- require "variations.peakbatch"
-- require "variations.peakmid"
-- require "variations.timeofday"
-- require "variations.thirdparty"

return require "noderesource"
