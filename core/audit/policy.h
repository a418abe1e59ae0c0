/* policy.h - an audit.k8s.io/v1 Policy: which requests are logged, and how much of them
 * (apiserver/pkg/audit/policy). A policy is a value. Any thread. */
#ifndef KL_AUDIT_POLICY_H
#define KL_AUDIT_POLICY_H

#include "rbac/rbac.h"
#include "value/value.h"

typedef enum kl_audit_level {
    KL_AUDIT_NONE,
    KL_AUDIT_METADATA,
    KL_AUDIT_REQUEST,
    KL_AUDIT_REQUEST_RESPONSE,
} kl_audit_level;
extern const char *const kl_audit_levels[4];

typedef enum kl_audit_stage {
    KL_AUDIT_RECEIVED,
    KL_AUDIT_STARTED,
    KL_AUDIT_COMPLETE,
    KL_AUDIT_PANIC
} kl_audit_stage;
extern const char *const kl_audit_stages[4];

typedef struct kl_audit_verdict {
    kl_audit_level level;
    bool omit[4]; /* by stage */
    bool omit_managed_fields;
} kl_audit_verdict;

/* The policy of a file; KL_EINVAL names file, place and way out. */
KL_NODISCARD kl_status kl_audit_policy_read(const char *path, const kl_value **out, kl_err *err);
/* The level of the first rule that matches; no rule: None. `policy` NULL: Metadata of everything. `user`
 * NULL: unknown. */
kl_audit_verdict kl_audit_policy_judge(
    const kl_value *policy, const kl_value *user, const kl_rbac_request *request);

#endif
