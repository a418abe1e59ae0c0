/* certificates.h - what a server shows to clients over TLS, and which clients' certificates it takes. Any
 * thread. */
#ifndef KL_HTTPD_CERTIFICATES_H
#define KL_HTTPD_CERTIFICATES_H

#include "base/keyring.h"

typedef struct kl_httpd_certificates { /* borrowed for the call */
    const char *listen;                /* the address, whose host the certificate names */
    const char *cert, *key;            /* files (PEM); NULL: one of its own making */
    const char *client_ca;             /* file: authorities of clients; NULL: they are asked for nothing */
} kl_httpd_certificates;
/* *ring is the caller's to free; *ca (the caller frees) is the PEM that the certificate is checked with.
 * Errors name the file. */
KL_NODISCARD kl_status kl_httpd_certify(
    const kl_httpd_certificates *o, kl_keyring **ring, char **ca, kl_err *err);

#endif
