/* admission.h - expressions about a request: matchConditions of webhooks. Any thread. */
#ifndef KL_CEL_ADMISSION_H
#define KL_CEL_ADMISSION_H

#include "cel/rules.h"

/* What is wrong with conditions, with fields that begin with `path`. */
void kl_cel_conditions_validate(
    const kl_value *conditions, const char *path, kl_cel_complain *complain, void *arg);

/* Whether a request fits all conditions. `request` is an AdmissionRequest with its object and oldObject.
 * KL_EINVAL: none says no, and some could not be evaluated; the failure policy decides. */
KL_NODISCARD kl_status kl_cel_conditions_match(const kl_value *conditions, const kl_value *request,
    kl_cel_authorize *authorize, void *arg, bool *matches, kl_err *err);

#endif
