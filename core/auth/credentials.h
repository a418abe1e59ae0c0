/* credentials.h - the credentials of requests, and how they are renewed.
 *
 * A credential is the Authorization line and the TLS identity at one time. It is cached or fetched (an exec
 * plugin runs, an OIDC provider is called): once for all waiting requests, and never on an http thread. A
 * token file, a CA, a certificate and its key are read again when they change. */
#ifndef KL_AUTH_CREDENTIALS_H
#define KL_AUTH_CREDENTIALS_H

#include "auth/config.h"
#include "http/http.h"
#include "auth/identity.h"

typedef struct kl__credentials kl__credentials;

typedef struct kl__credential { /* counted; never changes */
    _Atomic int refs;
    /* changes with every renewal that brings another Authorization line or pair */
    uint64_t generation;
    char *authorization; /* "Authorization: ..." or NULL */
    kl__identity *identity;
} kl__credential;

kl__credential *kl__credential_ref(kl__credential *c);
void kl__credential_unref(kl__credential *c); /* NULL is fine */

/* `config` is borrowed. `fetch` carries requests to an OIDC provider. `moved`, if any, is called on any
 * thread after the TLS identity changed. With a fake clock, files are not watched, only read when they are
 * due. */
kl__credentials *kl__credentials_new(
    const kl_config *config, kl_clock *clock, kl_http *fetch, void (*moved)(void *arg), void *arg);
/* Stops running fetches; waiting and later callers get KL_ECANCELLED, posted to their threads. Before
 * kl_http_free. */
void kl__credentials_close(kl__credentials *cs);
void kl__credentials_free(kl__credentials *cs);

/* `cred` is borrowed; NULL on failure, which is KL_EAUTH or KL_ECANCELLED. */
typedef void kl__credential_fn(void *arg, kl_status st, kl__credential *cred, kl_err *err);
/* On `http`'s thread: calls fn with the credential, at once (and returns 0) or later on that thread (and
 * returns an id for kl__credentials_withdraw). `refused`: a credential that the server answered with 401; it
 * is renewed unless that has happened already. If the renewal brings nothing new, the same generation comes
 * back, and a retry is useless. */
uint64_t kl__credentials_get(
    kl__credentials *cs, kl_http *http, const kl__credential *refused, kl__credential_fn *fn, void *arg);
/* the same thread: fn is not called after this */
void kl__credentials_withdraw(kl__credentials *cs, uint64_t id);
/* The present TLS identity, a new reference; NULL before the first. Any thread. */
kl__identity *kl__credentials_identity(kl__credentials *cs);

/* A request's header lines, NULL-terminated: the n lines of `own` that are not NULL, then one for each name,
 * group and extra to impersonate. The caller frees the array but not the lines. Any thread. */
const char **kl__credentials_headers(const kl__credentials *cs, const char *const *own, size_t n);
/* "the token in /path", "client certificate /path", "no credentials": for messages. Borrowed. */
const char *kl__credentials_describe(const kl__credentials *cs);

#endif
