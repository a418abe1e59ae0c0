/* admission.h - an AdmissionReview (admission.k8s.io/v1) as it comes from an API server, and the answer.
 * Pure; any thread. */
#ifndef KL_WEBHOOK_ADMISSION_H
#define KL_WEBHOOK_ADMISSION_H

#include "base/clock.h"
#include "value/value.h"

/* Reads a review: *request is its `request`, a new reference, which has a uid and an operation. KL_ESYNTAX
 * or KL_EINVAL says what is wrong with it, for the one who sent it. */
KL_NODISCARD kl_status kl_admission_parse(const char *text, size_t n, const kl_value **request, kl_err *err);

/* What was decided: {"allowed": bool, "code": int, "message": text, "warnings": [text], "patch": [JSON
 * patch]}, all but the first optional. */
/* The review that says so. A patch of an allowed request that changes nothing is left out; what is too
 * long for the API server is cut. */
void kl_admission_reply(const kl_value *request, const kl_value *decision, kl_buf *out);
/* A decision without a patch; message and warning may be NULL. A new reference. */
const kl_value *kl_admission_decide(bool allowed, int code, const char *message, const char *warning);
/* When an answer must be there for a `timeout` parameter of "10s" (NULL: `dflt`): the time left, less what
 * the way back takes. */
kl_time kl_admission_time(const char *timeout, kl_time dflt);

#endif
