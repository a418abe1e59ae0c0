/* x509_pem.h - objects of OpenSSL out of PEM text, for the files of this room. Nobody is asked for a
 * passphrase, for which OpenSSL itself would prompt on the terminal. */
#ifndef KL_BASE_X509_PEM_H
#define KL_BASE_X509_PEM_H

#include <stdbool.h>
#include <stddef.h>
#include <openssl/x509.h>

/* The first such object, or NULL; OpenSSL's queue of errors says why. The caller frees it. */
X509 *kl__pem_certificate(const char *pem);
X509_REQ *kl__pem_request(const char *pem);
/* *encrypted: whether the key has a passphrase; may be NULL. */
EVP_PKEY *kl__pem_key(const char *pem, bool *encrypted);
/* How many certificates there are, as far as they can be read. */
size_t kl__pem_count(const char *pem);

#endif
