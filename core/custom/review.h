/* review.h - ConversionReview: the request to a conversion webhook, and the checks of its answer. Pure; any
 * thread. */
#ifndef KL_CUSTOM_REVIEW_H
#define KL_CUSTOM_REVIEW_H

#include "base/clock.h"
#include "value/value.h"

/* The timeout is not configurable; it is that of apiextensions-apiserver's client. */
#define KL_CONVERSION_TIMEOUT_S 30

/* One question. Borrowed. */
typedef struct kl_review {
    const kl_value *versions; /* conversionReviewVersions: the first known one is used */
    const char *uid;
    const char *api_version;        /* the target version, "example.com/v1" */
    const kl_value *const *objects; /* n of them, none of that version */
    size_t n;
} kl_review;

/* The body of the call. */
void kl_review_write(const kl_review *r, kl_buf *out);

/* An HTTP answer, or `failure` where there was none. NULL, and out[0..n) are new references, in the order of
 * the objects: each has the metadata of its original except labels and annotations. Otherwise the mistake,
 * in apiextensions-apiserver's words; caller kl_free()s. */
char *kl_review_read(const kl_review *r, int code, const char *text, size_t len, const char *failure,
    const char *url, const kl_value **out);

/* Where a clientConfig leads: "https://NAME.NAMESPACE.svc:443/PATH?timeout=10s"; caller kl_free()s. */
char *kl_webhook_url(const kl_value *client, int64_t seconds);
/* Its caBundle as PEM text, NULL: none; caller kl_free()s. */
char *kl_webhook_ca(const kl_value *client);
/* A random UUID; caller kl_free()s. */
char *kl_webhook_uid(void);

#endif
