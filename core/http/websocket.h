/* websocket.h - the only door to wslay: frames in, messages out, and the timeouts of a silent peer.
 *
 * Pure: bytes and the time come from the owner; bytes to send stay in kl_websocket_out until the owner has
 * written them. As in client-go: a ping every 5 s; a peer that sends nothing for 61 s is dead, and so is one
 * that reads nothing for 60 s. Owner thread. */
#ifndef KL_HTTP_WEBSOCKET_H
#define KL_HTTP_WEBSOCKET_H

#include <stdbool.h>
#include "base/buf.h"
#include "base/clock.h"

#define KL_WEBSOCKET_PING KL_SECONDS(5)
#define KL_WEBSOCKET_SILENCE_MAX KL_SECONDS(61)
#define KL_WEBSOCKET_WRITE_MAX KL_SECONDS(60)
#define KL_WEBSOCKET_MESSAGE_MAX ((size_t)1 << 20) /* from the peer; Kubernetes sends pieces of 32 KB */

typedef struct kl_websocket kl_websocket;

/* A whole message, borrowed. Any status but KL_OK ends kl_websocket_feed with it. */
typedef kl_status kl_websocket_fn(void *arg, const char *data, size_t n, kl_err *err);

kl_websocket *kl_websocket_new(kl_websocket_fn *on_message, void *arg, kl_time now);
void kl_websocket_free(kl_websocket *w);
/* Takes bytes from the peer. KL_ECLOSED: the peer sent a close frame, see kl_websocket_code. KL_ESERVER: it
 * violated the protocol. */
KL_NODISCARD kl_status kl_websocket_feed(
    kl_websocket *w, const char *data, size_t n, kl_time now, kl_err *err);
/* the code of the peer's close frame; 0: no close frame; 1005: a close frame without a code */
int kl_websocket_code(const kl_websocket *w);
/* Queues one binary message. KL_ETOOBIG: too much is waiting to be sent. */
KL_NODISCARD kl_status kl_websocket_send(
    kl_websocket *w, const char *head, size_t headlen, const char *data, size_t n, kl_err *err);
void kl_websocket_close(kl_websocket *w, int code); /* our close frame, after the queued messages; once */
/* The bytes to write, from the front; kl_websocket_wrote tells how many were written. */
const kl_buf *kl_websocket_out(const kl_websocket *w);
void kl_websocket_wrote(kl_websocket *w, size_t n, kl_time now);
/* While the owner does not read, the peer's silence does not count. */
void kl_websocket_rest(kl_websocket *w, bool on, kl_time now);
/* Pings when it is time; *next is when to call again. KL_ETIMEOUT: the peer is dead. */
KL_NODISCARD kl_status kl_websocket_tick(kl_websocket *w, kl_time now, kl_time *next, kl_err *err);

#endif
