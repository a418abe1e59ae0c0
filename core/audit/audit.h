/* audit.h - what a server says of its requests: audit.k8s.io/v1 Events, a line of JSON each.
 *
 *   attend: RequestReceived --> what is found out on the way --> answered --> ended: ResponseComplete
 *                                      watches: ResponseStarted when the answer begins
 *                                      nobody knows who asks: ResponseStarted alone
 *
 * A record belongs to its request (kl_httpd_attend) and ends with it. Functions of a record take NULL:
 * nothing is said of that request. A record is its request's thread's; kl_audit is any thread's. */
#ifndef KL_AUDIT_AUDIT_H
#define KL_AUDIT_AUDIT_H

#include "base/clock.h"
#include "httpd/httpd.h"
#include "value/value.h"

typedef struct kl_audit kl_audit;
typedef struct kl_audit_record kl_audit_record;

/* Events go to the end of the file `log`. `policy`: a file with a Policy; NULL: Metadata of every request.
 * `clock` outlives it. KL_EINVAL, KL_EIO name the file. */
KL_NODISCARD kl_status kl_audit_open(
    const char *log, const char *policy, kl_clock *clock, kl_audit **out, kl_err *err);
/* Waits until what was said is written; requests that have not ended yet still say what became of them. NULL
 * is fine. */
void kl_audit_close(kl_audit *a);

/* The record of the request, which begins here unless it has one; NULL: nothing is said of it. `a` may be
 * NULL. `user`: who asks, before he takes another's place; NULL: nobody knows. */
kl_audit_record *kl_audit_attend(kl_audit *a, kl_httpd_request *http, const kl_value *user);
/* In whose place he asks. */
void kl_audit_impersonated(kl_audit_record *r, const kl_value *user);
/* Whether he may; `why` in the authorizer's words, or "". */
void kl_audit_decided(kl_audit_record *r, bool allowed, const char *why);
/* The object that was sent, as it was read: with its type and its defaults. */
void kl_audit_requested(kl_audit_record *r, const kl_value *object);
/* The first word to a key stays. */
void kl_audit_annotate(kl_audit_record *r, const char *key, const char *value);
/* All words to a key stay, each once: "a, b". */
void kl_audit_annotate_also(kl_audit_record *r, const char *key, const char *value);

#endif
