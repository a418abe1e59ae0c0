/* convert.h - converts objects to another version by a conversion webhook.
 *
 * Nothing here waits or makes calls. A missing conversion is noted; the caller makes the call and tries
 * again:
 *
 *   kl_conversions_get --known--> the object, or why there is none
 *                      --KL_EAGAIN--> noted; more may be asked for, they go with the same call
 *   kl_conversions_call -> the call -> kl_conversions_answer -> kl_conversions_get again
 *
 * Owner's lock; conversions belong to one request, or one watch. */
#ifndef KL_CUSTOM_CONVERT_H
#define KL_CUSTOM_CONVERT_H

#include "base/clock.h"
#include "schema/kinds.h"

typedef struct kl_conversions kl_conversions;

kl_conversions *kl_conversions_new(void);
void kl_conversions_free(kl_conversions *c); /* NULL is fine */
/* The caller starts again; lookups are cheapest in the same order as before. */
void kl_conversions_rewind(kl_conversions *c);
/* Drops all answers. */
void kl_conversions_forget(kl_conversions *c);

/* Converts `o`, of any version of a kind with a conversion webhook, to k's version; *out is a new reference.
 * An object of that version gets its defaults; a converted one gets none, but loses unknown fields.
 * KL_EAGAIN: not known yet. Other failures are those of the webhook, 500 as kube-apiserver words them. `c`
 * NULL: no webhook can be called, so the conversion fails. */
KL_NODISCARD kl_status kl_conversions_get(
    kl_conversions *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err);
/* Converts to the storage version of `k`, which may not be served. */
KL_NODISCARD kl_status kl_conversions_stored(
    kl_conversions *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err);

/* A POST of JSON for the caller to send. Owned: kl_conversion_call_fini. */
typedef struct kl_conversion_call {
    char *url, *ca; /* see kl_server_webhook */
    kl_buf body;
    kl_time timeout;
} kl_conversion_call;
/* Whether noted conversions still need a call. */
bool kl_conversions_wait(const kl_conversions *c);
/* Whether the next call is full. */
bool kl_conversions_full(const kl_conversions *c);
void kl_conversions_call(kl_conversions *c, kl_conversion_call *out);
void kl_conversion_call_fini(kl_conversion_call *call);
/* The result of the call: see kl_review_read. */
void kl_conversions_answer(kl_conversions *c, int code, const char *text, size_t n, const char *failure);

#endif
