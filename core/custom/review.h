/* review.h - ConversionReview: the request to a conversion webhook, and the checks of its answer. Pure; any
 * thread. */
#ifndef KL_CUSTOM_REVIEW_H
#define KL_CUSTOM_REVIEW_H

#include "base/clock.h"
#include "value/value.h"

/* The timeout of apiextensions-apiserver's client, which is not configurable. */
#define KL_CONVERSION_TIMEOUT_S 30

/* One conversion request. Borrowed. */
typedef struct kl_review {
    const kl_value *versions; /* conversionReviewVersions: the first known one is used */
    const char *uid;
    const char *api_version;        /* the target version, "example.com/v1" */
    const kl_value *const *objects; /* n of them, none of that version */
    size_t n;
} kl_review;

/* The body of the call. */
void kl_review_write(const kl_review *r, kl_buf *out);

/* Reads an HTTP answer; `failure` says why there is none, or is NULL. Returns NULL and sets out[0..n) to new
 * references, in the order of the objects; each has the metadata of its original except labels and
 * annotations. Otherwise returns the mistake, in apiextensions-apiserver's words, which the caller
 * kl_free()s. */
char *kl_review_read(const kl_review *r, int code, const char *text, size_t len, const char *failure,
    const char *url, const kl_value **out);

/* The URL of a clientConfig: "https://NAME.NAMESPACE.svc:443/PATH?timeout=10s"; caller kl_free()s. */
char *kl_webhook_url(const kl_value *client, int64_t seconds);
/* Its caBundle as PEM text, NULL: none; caller kl_free()s. */
char *kl_webhook_ca(const kl_value *client);
/* A random UUID; caller kl_free()s. */
char *kl_webhook_uid(void);

#endif
