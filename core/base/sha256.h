/* sha256.h - the digest SHA-256. Pure; any thread. */
#ifndef KL_BASE_SHA256_H
#define KL_BASE_SHA256_H

#include <stddef.h>

/* The digest of n bytes into the caller's `out`. */
void kl_sha256(const void *data, size_t n, unsigned char out[32]);

#endif
