/* credentials.h - who we are, over time: what a request brings to be known by, and how it is renewed.
 *
 * A credential is a moment's answer: the Authorization line and the TLS identity. It is at hand, or it has
 * to be fetched (an exec plugin runs, an OIDC provider is asked), which happens once for all who wait, off
 * every http thread. Files are looked after: a token file, a CA, a certificate and its key are read again
 * when they change. Inside net. */
#ifndef KL_AUTH_CREDENTIALS_H
#define KL_AUTH_CREDENTIALS_H

#include "auth/config.h"
#include "http/http.h"
#include "auth/identity.h"

typedef struct kl__credentials kl__credentials;

typedef struct kl__credential { /* counted; never changes */
    _Atomic int refs;
    /* another after every renewal that brought another Authorization line or pair */
    uint64_t generation;
    char *authorization; /* "Authorization: ..." or NULL */
    kl__identity *identity;
} kl__credential;

kl__credential *kl__credential_ref(kl__credential *c);
void kl__credential_unref(kl__credential *c); /* NULL is fine */

/* `config` is borrowed. `fetch` carries requests to an OIDC provider. `moved`, if any, is called on some
 * thread after the TLS identity changed. With a clock that is not the real one files are not watched, only
 * read when they are due. */
kl__credentials *kl__credentials_new(
    const kl_config *config, kl_clock *clock, kl_http *fetch, void (*moved)(void *arg), void *arg);
/* Stops what runs; whoever waits gets KL_ECANCELLED, posted to its thread, and so does whoever asks later.
 * Before kl_http_free. */
void kl__credentials_close(kl__credentials *cs);
void kl__credentials_free(kl__credentials *cs);

/* `cred` is borrowed and NULL on failure, which is KL_EAUTH but for KL_ECANCELLED. */
typedef void kl__credential_fn(void *arg, kl_status st, kl__credential *cred, kl_err *err);
/* On `http`'s thread: calls fn with the credential, at once (then it returns 0) or later on that thread
 * (then the number is for kl__credentials_withdraw). `refused`: what was answered with 401; unless there
 * is another by now, it is renewed. When the renewal brings nothing new, the same generation comes back,
 * and asking the server again is no use. */
uint64_t kl__credentials_get(
    kl__credentials *cs, kl_http *http, const kl__credential *refused, kl__credential_fn *fn, void *arg);
/* the same thread: fn is not called after this */
void kl__credentials_withdraw(kl__credentials *cs, uint64_t id);
/* The TLS identity in force; a reference, NULL before the first. Any thread. */
kl__identity *kl__credentials_identity(kl__credentials *cs);

/* A request's header lines, NULL-terminated: those of `own`, NULLs among its n left out, then one for each
 * name, group and extra to impersonate. The caller frees the array and not the lines. Any thread. */
const char **kl__credentials_headers(const kl__credentials *cs, const char *const *own, size_t n);
/* "the token in /path", "client certificate /path", "no credentials": for messages. Borrowed. */
const char *kl__credentials_describe(const kl__credentials *cs);

#endif
