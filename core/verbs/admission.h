/* admission.h - webhooks of the server: finds those that apply to a write, and handles their requests and
 * answers. Conversion webhooks (convert.h) are called the same way.
 *
 * The server never waits. A verb that needs a webhook's answer ends with KL_EAGAIN; the call is made without
 * the lock, and the request starts again from its beginning, with all answers so far:
 *
 *   run the verb --a webhook is met--> known already? --yes--> go on
 *                                          no --KL_EAGAIN--> call it, remember the answer, run the verb again
 *
 * An answer is valid only for the same request: if the stored object changed meanwhile, the webhook is called
 * again, as in kube-apiserver's retries. The record also keeps the time, uid and name of the first run, so
 * that these stay the same. All functions under the server's lock unless stated otherwise. */
#ifndef KL_VERBS_ADMISSION_H
#define KL_VERBS_ADMISSION_H

#include "verbs/call.h"
#include "schema/status.h"

typedef struct kl__admission kl__admission;

/* The record of one request: from its start, until it is answered. */
kl__admission *kl__admission_new(kl_time wall, int64_t stale);
int64_t kl__admission_stale(const kl__admission *a); /* `stale` of the request's first fault plan */
/* Its answers of conversion webhooks; NULL if the server calls none. */
struct kl_conversions *kl__admission_conversions(const kl__world *w, const kl__admission *a);
void kl__admission_free(kl__admission *a);        /* any thread; NULL is fine */
void kl__admission_rewind(kl__admission *a);      /* the request begins again */
bool kl__admission_waits(const kl__admission *a); /* whether the verb ended because a call is needed */
/* Makes the call, without the lock. When the answer has arrived, again(arg) is called once, on any thread and
 * perhaps before this returns; it begins the request again, or ends it and frees a. */
void kl__admission_call(kl__world *w, kl__admission *a, void (*again)(void *arg), void *arg);

kl_time kl__admission_wall(const kl__call *c); /* the call's time */
/* the uid that was made first; takes fresh */
const kl_value *kl__admission_uid(const kl__call *c, const kl_value *fresh);
/* likewise, for generateName; takes fresh; borrowed. NULL: not kept, and fresh stays the caller's */
const char *kl__admission_name(const kl__call *c, char *fresh);

/* Whether any mutating webhook may apply; a cheap check. */
bool kl__admission_mutates(const kl__call *c);
/* Calls the mutating webhooks; *o is replaced by a new reference. operation: "CREATE" (old is NULL), "UPDATE"
 * or "DELETE" (*o is NULL: a webhook may reject it, not change it). */
KL_NODISCARD kl_status kl__admit_mutate(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value **o, kl_err *err);
/* Fails unless policies and validating webhooks allow the write; o is NULL for "DELETE". */
KL_NODISCARD kl_status kl__admit_validate(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value *o, kl_err *err);

#endif
