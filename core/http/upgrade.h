/* upgrade.h - the HTTP/1.1 handshake that turns a connection into a WebSocket (RFC 6455 4), from the
 * client's side.
 *
 *   head --101, right proof, a subprotocol of ours--> KL_OK: what follows the head is WebSocket
 *     |  --other codes--> body --length, last chunk, end of connection or 64 KB--> KL_EREJECTED: code and body tell why
 *     `--anything else--> KL_ESERVER
 *
 * Pure: bytes in, verdict out. Owner thread. */
#ifndef KL_HTTP_UPGRADE_H
#define KL_HTTP_UPGRADE_H

#include <stdbool.h>
#include "base/buf.h"

typedef struct kl__upgrade {
    char key[25];                 /* Sec-WebSocket-Key: base64 of 16 random bytes */
    const char *const *protocols; /* the offered ones, best first; NULL-terminated, static */
    kl_buf in;                    /* the head, then nothing */
    bool refused;                 /* the head is read: the body is coming */
    long long left;               /* of the body; -1: until the connection ends */
    bool chunked;
    int chunk_state;
    int code;
    const char *protocol; /* the one that the server chose; of `protocols` */
    char *retry_after;    /* the header, or NULL */
    kl_buf body;          /* of a refusal */
} kl__upgrade;

/* `random` becomes the key. */
void kl__upgrade_init(kl__upgrade *u, const unsigned char random[16], const char *const *protocols);
void kl__upgrade_fini(kl__upgrade *u);
/* The request: `headers` are "Name: value" lines, NULL-terminated. KL_EINVAL for a line that would break
 * out of the head. */
KL_NODISCARD kl_status kl__upgrade_request(
    const kl__upgrade *u, const char *url, const char *const *headers, kl_buf *out, kl_err *err);
/* KL_EAGAIN: more bytes are needed. *used: how many of the n bytes belong to the handshake. */
KL_NODISCARD kl_status kl__upgrade_feed(
    kl__upgrade *u, const char *data, size_t n, size_t *used, kl_err *err);
/* The connection ended before a verdict: KL_EREJECTED when that ends the body of a refusal, else
 * KL_ECLOSED. */
KL_NODISCARD kl_status kl__upgrade_end(kl__upgrade *u, kl_err *err);

#endif
