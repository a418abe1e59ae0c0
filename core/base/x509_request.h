/* x509_request.h - a new key, a certificate request for it, and the facts of a certificate. Behind the door
 * to OpenSSL. Any thread.
 *
 * Keys are EC P-256, as client-go makes them. A caller that gets a key's text passes it to kl_x509_wipe
 * afterwards. */
#ifndef KL_BASE_X509_REQUEST_H
#define KL_BASE_X509_REQUEST_H

#include "base/clock.h"
#include "base/err.h"

/* The names in the request; lists are NULL-terminated, or NULL. */
typedef struct kl_x509_wish {
    const char *cn;
    const char *const *orgs;
    const char *const *dns, *const *ips;
} kl_x509_wish;

/* A new key as "EC PRIVATE KEY" and a "CERTIFICATE REQUEST" signed by it, as PEM texts that the caller frees
 * (kl_x509_wipe, kl_free). KL_EINVAL for an address or a name that a certificate cannot contain; the message
 * shows it. */
KL_NODISCARD kl_status kl_x509_request(const kl_x509_wish *w, char **key, char **request, kl_err *err);
/* Overwrites a key's text and frees it; NULL is fine. */
void kl_x509_wipe(char *key);

/* The facts of the first certificate of a PEM text; lists are NULL-terminated, addresses as inet_ntop writes
 * them. */
typedef struct kl_x509_facts {
    char *cn; /* "" when there is none */
    char **orgs, **dns, **ips;
    kl_time not_before, not_after; /* wall */
} kl_x509_facts;
KL_NODISCARD kl_status kl_x509_facts_read(const char *pem, kl_x509_facts *out, kl_err *err);
void kl_x509_facts_fini(kl_x509_facts *f);

#endif
