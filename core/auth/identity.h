/* identity.h - our side of TLS: the CAs we trust, our certificate and its key, as PEM. Any
 * thread: an identity never changes, a new one replaces it. */
#ifndef KL_AUTH_IDENTITY_H
#define KL_AUTH_IDENTITY_H

#include <stdatomic.h>
#include "auth/config.h"
#include "http/http.h"

typedef struct kl__identity {
    _Atomic int refs;
    /* unique in the process: only requests with the same identity share connections */
    uint64_t generation;
    char *ca, *cert, *key; /* PEM; NULL: none (ca: the system's) */
} kl__identity;

/* The CA and pair of `config`, data before files, read and checked now: an invalid certificate or pair is
 * KL_EAUTH with the file's name. `cert` and `key`, when given (by an exec plugin), replace the config's. */
KL_NODISCARD kl_status kl__identity_load(
    const kl_config *config, const char *cert, const char *key, kl__identity **out, kl_err *err);
kl__identity *kl__identity_ref(kl__identity *i);
void kl__identity_unref(kl__identity *i); /* NULL is fine */
bool kl__identity_same(const kl__identity *a, const kl__identity *b);
/* For http requests; borrowed from both. */
kl_tls kl__identity_tls(const kl__identity *i, const kl_config *config);

#endif
