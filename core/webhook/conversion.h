/* conversion.h - a ConversionReview (apiextensions.k8s.io/v1) as it comes from an API server, the answer, and
 * what tells an API server where to send it. Pure; any thread. */
#ifndef KL_WEBHOOK_CONVERSION_H
#define KL_WEBHOOK_CONVERSION_H

#include "base/clock.h"
#include "value/value.h"

#define KL_CRD_KIND "apiextensions.k8s.io/v1/CustomResourceDefinition"

/* Reads a review: *request is its `request`, a new reference, which has a uid, a version and objects.
 * KL_ESYNTAX or KL_EINVAL says what is wrong with it, for the one who sent it. */
KL_NODISCARD kl_status kl_conversion_parse(const char *text, size_t n, const kl_value **request, kl_err *err);
/* The review that answers it. What was decided: {"converted": [objects]}; else {"message": text} says why
 * not. */
void kl_conversion_reply(const kl_value *request, const kl_value *decision, kl_buf *out);
/* What of the definition `name` is to be applied: `where` is the clientConfig but for the CA, `ca` PEM text
 * or NULL. where NULL: nobody converts any more. A new reference. */
const kl_value *kl_conversion_config(const char *name, const kl_value *where, const char *ca);

#endif
