/* validate.h - kube-apiserver's validation of ValidatingAdmissionPolicies and their bindings. Pure; any
 * thread. */
#ifndef KL_POLICY_VALIDATE_H
#define KL_POLICY_VALIDATE_H

#include "builtin/builtin.h"

/* Complaints go to w->causes; neither checks a write of a status. */
void kl_policy_validate(const kl__write *w);
void kl_policy_validate_binding(const kl__write *w);

#endif
