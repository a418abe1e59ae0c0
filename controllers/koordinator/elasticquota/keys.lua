-- keys.lua - the labels and annotations of elastic quotas, as Koordinator names them.

local PREFIX = "quota.scheduling.koordinator.sh/"

return {
  -- labels of a quota
  is_parent = PREFIX .. "is-parent",
  parent = PREFIX .. "parent",
  allow_lent_resource = PREFIX .. "allow-lent-resource",
  profile = PREFIX .. "profile",
  is_root = PREFIX .. "is-root",
  tree_id = PREFIX .. "tree-id", -- of a profile, too
  ignore_default_tree = PREFIX .. "ignore-default-tree",
  allow_force_update = PREFIX .. "allow-force-update",
  -- labels of a pod
  name = PREFIX .. "name",
  preemptible = PREFIX .. "preemptible",
  -- annotations of a quota that people write
  shared_weight = PREFIX .. "shared-weight",
  namespaces = PREFIX .. "namespaces",
  admission = PREFIX .. "admission",
  max_strict_check = PREFIX .. "max-strict-check-resource-keys",
  -- annotations that the policies write
  runtime = PREFIX .. "runtime",
  request = PREFIX .. "request",
  child_request = PREFIX .. "child-request",
  guaranteed = PREFIX .. "guaranteed",
  allocated = PREFIX .. "allocated",
  non_preemptible_request = PREFIX .. "non-preemptible-request",
  non_preemptible_used = PREFIX .. "non-preemptible-used",
  total_resource = PREFIX .. "total-resource",
  unschedulable_resource = PREFIX .. "unschedulable-resource",
  -- an annotation of a profile
  resource_keys = PREFIX .. "resource-keys",
}
