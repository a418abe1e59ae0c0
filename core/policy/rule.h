/* rule.h - the common checks of webhooks' and policies' rules. Private to core/policy. */
#ifndef KL_POLICY_RULE_H
#define KL_POLICY_RULE_H

#include "check/check.h"

/* operations, apiGroups and apiVersions: none is empty, and "*" stands alone. */
void kl__check_rule_head(kl__causes *c, const kl_value *rule, const kl__place *at);

#endif
