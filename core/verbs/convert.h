/* convert.h - converts objects between the version of a call and the stored one: by changing apiVersion, or
 * by the definition's conversion webhook. Under the lock, without waiting: KL_EAGAIN ends the verb, which
 * starts again when the webhook has answered (admission.h). */
#ifndef KL_VERBS_CONVERT_H
#define KL_VERBS_CONVERT_H

#include "custom/convert.h"
#include "verbs/call.h"
#include "store/filter.h"

/* A stored object in the version of the call's kind; *out a new reference. */
KL_NODISCARD kl_status kl__see(const kl__call *c, const kl_value *stored, const kl_value **out, kl_err *err);
/* Converts an object between the kind of the call and `k`, another version of it. */
KL_NODISCARD kl_status kl__see_as(
    const kl__call *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err);
/* Makes the call, and frees its contents; the server must have a caller of webhooks. Without the lock. */
void kl__conversion_send(kl__world *w, kl_conversion_call *call, kl_server_webhook_done *done, void *arg);
/* An object to be written: its stored form, and the writer's view of that. Two new references. seen_status,
 * why: the failure to make the view, although the object is to be stored. */
typedef struct kl__written {
    const kl_value *stored, *seen;
    kl_status seen_status;
    kl_err why;
} kl__written;
KL_NODISCARD kl_status kl__write_begin(const kl__call *c, const kl_value *o, kl__written *out, kl_err *err);
/* Stores the object under `key`, or removes it: *out is the writer's view, at the version of the change.
 * Frees the contents of w. */
KL_NODISCARD kl_status kl__write_end(
    const kl__call *c, kl__written *w, const char *key, bool remove, const kl_value **out, kl_err *err);
void kl__write_drop(kl__written *w);
/* The verb get: the object of the call; *out is a new reference. */
KL_NODISCARD kl_status kl__verb_see(const kl__call *c, const kl_value **out, kl_err *err);
/* Converts each object of a snapshot, in place. */
KL_NODISCARD kl_status kl__see_all(const kl__call *c, kl__picture *p, kl_err *err);
/* The kind of the stored version if no webhook can be called; otherwise `k`. */
kl__kind *kl__kind_of_stored(const kl__world *w, kl__kind *k, const kl_value *stored);

#endif
