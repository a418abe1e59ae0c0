/* message.h - messages of values over a socket: between the runtime and an isolated process (isolate/far.h).
 *
 *   4 bytes: length of the rest | 1 byte: `what` | 4 bytes: number of values | each: 4 bytes of length, and
 *   its JSON; no bytes: no value
 *
 * Numbers are little endian. The receiver checks everything: a message has a maximum size, its lengths must
 * add up, its values must parse. In memory a value takes a multiple of its bytes, so a receiver that does not
 * trust the other side limits the number of values, too. Owner thread. */
#ifndef KL_ISOLATE_MESSAGE_H
#define KL_ISOLATE_MESSAGE_H

#include "base/buf.h"
#include "value/value.h"

typedef struct kl_wire {
    int fd;
    size_t max;                   /* maximum bytes of a received message */
    size_t max_values, max_parts; /* of a received message, of one of its values; 0: any number */
    /* For a non-blocking socket: waits for one of `events` (poll.h); a failure ends the send or take. NULL:
     * the socket blocks. */
    kl_status (*wait)(void *arg, int events, kl_err *err);
    void *arg;
    kl_buf in; /* received bytes that were not taken yet */
} kl_wire;

typedef struct kl_message {
    int what; /* 1 to 255 */
    size_t n;
    const kl_value **v; /* each a reference, or NULL */
} kl_message;

void kl_wire_init(kl_wire *w, int fd, size_t max);
void kl_wire_fini(kl_wire *w); /* fd is the caller's to close */
/* KL_ETOOBIG: the message exceeds `most` bytes, and nothing was sent. KL_ECLOSED: the other side is gone.
 * Otherwise wait's failure. */
KL_NODISCARD kl_status kl_wire_send(
    kl_wire *w, size_t most, int what, const kl_value *const *v, size_t n, kl_err *err);
/* The next message, which the caller frees. KL_ECLOSED likewise; KL_ESYNTAX, KL_ETOOBIG: it is invalid. */
KL_NODISCARD kl_status kl_wire_take(kl_wire *w, kl_message *out, kl_err *err);
bool kl_wire_pending(const kl_wire *w); /* whether a received message waits */
void kl_message_fini(kl_message *m);
/* The i-th value, borrowed; NULL: absent, or out of range. The i-th value's text; NULL when it is not a
 * text. */
const kl_value *kl_message_value(const kl_message *m, size_t i);
const char *kl_message_text(const kl_message *m, size_t i);

#endif
