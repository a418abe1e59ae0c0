/* webhook_certs.h - certificates of our own for webhooks: a CA, what it signed for the names under which
 * the API server calls us, and when either is due. Pure; owner thread. */
#ifndef KL_WEBHOOK_WEBHOOK_CERTS_H
#define KL_WEBHOOK_WEBHOOK_CERTS_H

#include "base/clock.h"
#include "value/value.h"
#include "webhook/webhook_config.h"

/* PEM texts. `ca` is a bundle: the CA that signs, then the one before it while its certificates may still
 * be shown. */
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

/* Whether these may be shown at `now` (wall) and on: whole, for these names, with a third of `life` left
 * at least. */
bool kl_webhook_certs_good(const kl_webhook_certs *c, const kl_webhook_names *n, kl_time life, kl_time now);
/* Makes what is missing or due: the certificate, and the CA, of which there are two for a while then. */
KL_NODISCARD kl_status kl_webhook_certs_renew(
    kl_webhook_certs *c, const kl_webhook_names *n, kl_time life, kl_time now, kl_err *err);

/* As a Secret keeps them. Reading leaves empty what is not there. */
void kl_webhook_certs_read(const kl_value *secret, kl_webhook_certs *out);
/* a new reference */
const kl_value *kl_webhook_certs_secret(
    const kl_webhook_certs *c, const char *ns, const char *name, const char *rv);

#endif
