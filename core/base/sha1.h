/* sha1.h - the digest that a WebSocket handshake asks for (RFC 6455 4.2.2). Nothing secret depends on it.
 * Pure; any thread. */
#ifndef KL_BASE_SHA1_H
#define KL_BASE_SHA1_H

#include <stddef.h>

/* The digest of n bytes into the caller's `out`. */
void kl_sha1(const void *data, size_t n, unsigned char out[20]);

#endif
