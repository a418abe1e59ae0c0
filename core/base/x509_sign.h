/* x509_sign.h - a certificate authority of our own, and the certificates that it signs. Any thread.
 *
 * Keys are P-256; `from` and `until` are wall time. The caller wipes the keys (kl_x509_wipe). */
#ifndef KL_BASE_X509_SIGN_H
#define KL_BASE_X509_SIGN_H

#include "base/x509_request.h"

/* A self-signed CA named cn. PEM texts, the caller frees. */
KL_NODISCARD kl_status kl_x509_make_ca(
    const char *cn, kl_time from, kl_time until, char **cert, char **key, kl_err *err);
/* The signing CA, and the validity of the certificate. */
typedef struct kl_x509_issue {
    const char *ca_cert, *ca_key; /* PEM */
    kl_time from, until;
} kl_x509_issue;
/* A certificate for a server of these names, signed by that CA. */
KL_NODISCARD kl_status kl_x509_make_server(
    const kl_x509_wish *w, const kl_x509_issue *by, char **cert, char **key, kl_err *err);

#endif
