/* conversion.h - reads a ConversionReview (apiextensions.k8s.io/v1) of an API server, and writes the answer;
 * also the configuration that makes an API server call us. Pure; any thread. */
#ifndef KL_WEBHOOK_CONVERSION_H
#define KL_WEBHOOK_CONVERSION_H

#include "base/clock.h"
#include "value/value.h"

#define KL_CRD_KIND "apiextensions.k8s.io/v1/CustomResourceDefinition"

/* Reads a review: *request is its `request`, a new reference, which has a uid, a version and objects.
 * KL_ESYNTAX or KL_EINVAL has a message for the sender. */
KL_NODISCARD kl_status kl_conversion_parse(const char *text, size_t n, const kl_value **request, kl_err *err);
/* The review that answers it. The decision: {"converted": [objects]}, or {"message": text} with the reason of
 * a failure. */
void kl_conversion_reply(const kl_value *request, const kl_value *decision, kl_buf *out);
/* The patch of the definition `name`: `where` is the clientConfig without the CA, `ca` PEM text or NULL.
 * where NULL: removes the conversion webhook. A new reference. */
const kl_value *kl_conversion_config(const char *name, const kl_value *where, const char *ca);

#endif
