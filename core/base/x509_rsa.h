/* x509_rsa.h - a signing key, and the public part that verifies its signatures (RS256 of RFC 7518). Behind
 * the door to OpenSSL. Any thread. */
#ifndef KL_BASE_X509_RSA_H
#define KL_BASE_X509_RSA_H

#include "base/buf.h"

typedef struct kl_rsa kl_rsa;

/* A new key of 2048 bits, which takes some tenths of a second. */
kl_rsa *kl_rsa_new(void);
void kl_rsa_free(kl_rsa *k); /* NULL is fine */

/* The public part: modulus and exponent, the highest byte first, and the SHA-256 of its DER form. */
void kl_rsa_public(const kl_rsa *k, kl_buf *modulus, kl_buf *exponent, kl_buf *digest);
/* The signature of n bytes: RSASSA-PKCS1-v1_5 of their SHA-256. */
void kl_rsa_sign(const kl_rsa *k, const void *data, size_t n, kl_buf *signature);

#endif
