/* admission.h - reads an AdmissionReview (admission.k8s.io/v1) of an API server, and writes the answer. Pure;
 * any thread. */
#ifndef KL_WEBHOOK_ADMISSION_H
#define KL_WEBHOOK_ADMISSION_H

#include "base/clock.h"
#include "value/value.h"

/* Reads a review: *request is its `request`, a new reference, which has a uid and an operation. KL_ESYNTAX or
 * KL_EINVAL has a message for the sender. */
KL_NODISCARD kl_status kl_admission_parse(const char *text, size_t n, const kl_value **request, kl_err *err);

/* The decision: {"allowed": bool, "code": int, "message": text, "warnings": [text], "patch": [JSON patch]},
 * all but the first optional. */
/* Writes the review with that decision. A patch without effect is left out; texts that are too long for the
 * API server are cut. */
void kl_admission_reply(const kl_value *request, const kl_value *decision, kl_buf *out);
/* A decision without a patch; message and warning may be NULL. A new reference. */
const kl_value *kl_admission_decide(bool allowed, int code, const char *message, const char *warning);
/* The time to decide, from a `timeout` parameter such as "10s" (NULL: `dflt`), less a reserve for sending the
 * answer. */
kl_time kl_admission_time(const char *timeout, kl_time dflt);

#endif
