/* identity.h - what TLS needs of us: the CAs we trust, our certificate and its key, as PEM texts of one
 * moment. Inside net; any thread: an identity never changes, another takes its place. */
#ifndef KL_AUTH_IDENTITY_H
#define KL_AUTH_IDENTITY_H

#include <stdatomic.h>
#include "auth/config.h"
#include "http/http.h"

typedef struct kl__identity {
    _Atomic int refs;
    /* unlike that of every other identity of the process: connections are shared within one */
    uint64_t generation;
    char *ca, *cert, *key; /* PEM; NULL: none (ca: the system's) */
} kl__identity;

/* The CA and pair of `config`, data before files, read now and judged: what is no certificate, or no pair,
 * is KL_EAUTH with the file's name. `cert` and `key`, when given, stand in for the config's (an exec
 * plugin's). */
KL_NODISCARD kl_status kl__identity_load(
    const kl_config *config, const char *cert, const char *key, kl__identity **out, kl_err *err);
kl__identity *kl__identity_ref(kl__identity *i);
void kl__identity_unref(kl__identity *i); /* NULL is fine */
bool kl__identity_same(const kl__identity *a, const kl__identity *b);
/* For http requests; borrowed from both. */
kl_tls kl__identity_tls(const kl__identity *i, const kl_config *config);

#endif
