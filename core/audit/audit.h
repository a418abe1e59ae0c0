/* audit.h - the audit log of a server: one audit.k8s.io/v1 Event per line of JSON.
 *
 *   attend: RequestReceived --> user, decision, object are added --> answered --> ended: ResponseComplete
 *                                      watches: ResponseStarted when the answer begins
 *                                      unauthenticated requests: ResponseStarted alone
 *
 * A record belongs to its request (kl_httpd_attend) and ends with it. Functions of a record accept NULL, the
 * record of a request that is not logged. A record is used on its request's thread; kl_audit on any
 * thread. */
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
/* Waits until the Events are written; requests that have not ended yet still log their outcome. NULL is
 * fine. */
void kl_audit_close(kl_audit *a);

/* The record of the request, created on the first call; NULL: the request is not logged. `a` may be NULL.
 * `user`: the authenticated user, before impersonation; NULL: unknown. */
kl_audit_record *kl_audit_attend(kl_audit *a, kl_httpd_request *http, const kl_value *user);
/* The impersonated user. */
void kl_audit_impersonated(kl_audit_record *r, const kl_value *user);
/* The authorizer's decision, and its reason or "". */
void kl_audit_decided(kl_audit_record *r, bool allowed, const char *why);
/* The decoded object of the request, with its type and its defaults. */
void kl_audit_requested(kl_audit_record *r, const kl_value *object);
/* An annotation; the first value of a key stays. */
void kl_audit_annotate(kl_audit_record *r, const char *key, const char *value);
/* An annotation; the values of a key are joined, each once: "a, b". */
void kl_audit_annotate_also(kl_audit_record *r, const char *key, const char *value);

#endif
