/* admission.h - webhooks of the server: which of them a write meets, what they are asked, and what they
 * make of it. Conversion webhooks (convert.h) are called through the same door.
 *
 * The server never waits. A verb that needs to know what a webhook says ends with KL_EAGAIN; the call is
 * made without the lock, and the request begins again from its start, with all answers so far in hand:
 *
 *   run the verb --a webhook is met--> known already? --yes--> go on
 *                                          no --KL_EAGAIN--> call it, remember the answer, run the verb again
 *
 * An answer counts for exactly what was asked: if the stored object changed meanwhile the webhook is asked
 * again, as by kube-apiserver's own retries. So that nothing else changes, the record also keeps the
 * moment, the uid and the name that the first run made. All functions under the server's lock unless said
 * otherwise. */
#ifndef KL_SERVER_ADMISSION_H
#define KL_SERVER_ADMISSION_H

#include "server/state.h"
#include "schema/status.h"

typedef struct kl__admission kl__admission;

/* The record of one request: from its start, until it is answered. */
kl__admission *kl__admission_new(kl_time wall, int64_t stale);
int64_t kl__admission_stale(const kl__admission *a); /* of the plan of faults that it began with */
/* What conversion webhooks have answered to it; NULL where the server calls none. */
struct kl_conversions *kl__admission_conversions(const kl_server *s, const kl__admission *a);
void kl__admission_free(kl__admission *a);        /* any thread; NULL is fine */
void kl__admission_rewind(kl__admission *a);      /* the request begins again */
bool kl__admission_waits(const kl__admission *a); /* the verb ended because of a call to be made */
/* Makes it, without the lock: `http` is handled again when the answer is there, or ended when nobody waits
 * any more, which frees a. */
void kl__admission_call(kl_server *s, kl__admission *a, kl_httpd_request *http);

kl_time kl__admission_wall(const kl__call *c); /* the call's moment */
/* the uid that was made first; takes fresh */
const kl_value *kl__admission_uid(const kl__call *c, const kl_value *fresh);
/* likewise, for generateName; takes fresh; borrowed. NULL: not kept, fresh is still the caller's */
const char *kl__admission_name(const kl__call *c, char *fresh);

/* Whether a mutating webhook may be met at all: cheap. */
bool kl__admission_mutates(const kl__call *c);
/* What the mutating ones make of *o: a new reference in its place. operation "CREATE", "UPDATE" or
 * "DELETE"; old NULL for the first, *o for the last, of which they may say no but change nothing. */
KL_NODISCARD kl_status kl__admit_mutate(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value **o, kl_err *err);
/* Whether policies and the validating ones agree; o NULL for "DELETE". */
KL_NODISCARD kl_status kl__admit_validate(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value *o, kl_err *err);

#endif
