/* webhook_certs.h - self-made certificates for webhooks: a CA, a certificate for the names under which the
 * API server calls us, and when either must be renewed. Pure; owner thread. */
#ifndef KL_WEBHOOK_WEBHOOK_CERTS_H
#define KL_WEBHOOK_WEBHOOK_CERTS_H

#include "base/clock.h"
#include "value/value.h"
#include "webhook/webhook_config.h"

/* PEM texts. `ca` is a bundle: the present CA, then the previous one while its certificates may still be in
 * use. */
typedef struct kl_webhook_certs {
    char *ca, *ca_key, *cert, *key;
} kl_webhook_certs;
void kl_webhook_certs_fini(kl_webhook_certs *c);

/* The names of a certificate; lists are NULL-terminated and owned. */
typedef struct kl_webhook_names {
    char *dns[6], *ips[2];
} kl_webhook_names;
void kl_webhook_names_of(const kl_webhook_options *o, const char *url, kl_webhook_names *out);
void kl_webhook_names_fini(kl_webhook_names *n);

/* Whether c is usable at `now` (wall): complete, for these names, with at least a third of `life` left. */
bool kl_webhook_certs_good(const kl_webhook_certs *c, const kl_webhook_names *n, kl_time life, kl_time now);
/* Creates what is missing or due: the certificate, or the CA; the previous CA stays in the bundle for a
 * while. */
KL_NODISCARD kl_status kl_webhook_certs_renew(
    kl_webhook_certs *c, const kl_webhook_names *n, kl_time life, kl_time now, kl_err *err);

/* Their form in a Secret. Reading leaves missing parts empty. */
void kl_webhook_certs_read(const kl_value *secret, kl_webhook_certs *out);
/* a new reference */
const kl_value *kl_webhook_certs_secret(
    const kl_webhook_certs *c, const char *ns, const char *name, const char *rv);

#endif
