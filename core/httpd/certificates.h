/* certificates.h - the certificate of a TLS server, and the client certificates that it accepts. Any
 * thread. */
#ifndef KL_HTTPD_CERTIFICATES_H
#define KL_HTTPD_CERTIFICATES_H

#include "base/keyring.h"

typedef struct kl_httpd_certificates { /* borrowed for the call */
    const char *listen;                /* the address, whose host the certificate names */
    const char *cert, *key;            /* files (PEM); NULL: a self-signed one */
    const char *client_ca; /* file: authorities of clients; NULL: no client certificates are requested */
} kl_httpd_certificates;
/* *ring is the caller's to free; *ca (the caller frees) is the PEM that verifies the certificate. Errors name
 * the file. */
KL_NODISCARD kl_status kl_httpd_certify(
    const kl_httpd_certificates *o, kl_keyring **ring, char **ca, kl_err *err);

#endif
