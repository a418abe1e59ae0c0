/* openapi.h - the server's schemas of its kinds, fetched when a write is to be checked.
 *
 * No write fails here that the server would accept. If the server has no OpenAPI v3, or denies access to it,
 * bodies pass unchanged; that is logged once, at debug. */
#ifndef KL_CLIENT_OPENAPI_H
#define KL_CLIENT_OPENAPI_H

#include "base/shelf.h"
#include "client/client.h"

typedef struct kl__openapi kl__openapi;

kl__openapi *kl__openapi_new(kl_client *c, kl_shelf *shelf, kl_time ttl);
/* After the calls thread has ended. */
void kl__openapi_free(kl__openapi *o);

/* Whether op has a body that a schema may describe. */
bool kl__openapi_wants(const kl_op *op);
/* Checks with the schemas in memory, without waiting. KL_OK: *out is the body to send, a new reference.
 * KL_EAGAIN: call kl__openapi_check. Any thread. */
KL_NODISCARD kl_status kl__openapi_try(
    kl__openapi *o, const kl_op *op, const kl_resource *r, const kl_value **out);
/* The same, after it has fetched missing schemas. A fault (KL_EINVAL, reason KL_REASON_SCHEMA) is never
 * reported from the cache alone: the schema was revalidated within the last seconds. `op` and `r` must live
 * until done, which is called once. Calls thread. */
typedef void kl__checked_fn(void *arg, kl_status st, const kl_value *taken_body, kl_err *err);
void kl__openapi_check(
    kl__openapi *o, const kl_op *op, const kl_resource *r, kl__checked_fn *done, void *arg);
/* The next check asks the server whether schemas have changed. Any thread. */
void kl__openapi_forget(kl__openapi *o);

#endif
