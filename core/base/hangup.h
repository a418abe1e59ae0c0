/* hangup.h - tells when the peer of a socket went away while nobody reads from it, and when it is time to
 * look after those that stay.
 *
 * A watch that waits for events is a suspended connection: its server polls nothing. One thread waits for the
 * hang-ups of all of them. */
#ifndef KL_BASE_HANGUP_H
#define KL_BASE_HANGUP_H

#include <stdint.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct kl_hangup kl_hangup;

#define KL_HANGUP_TIME (UINT64_MAX - 1) /* no socket's id: kl_hangup_at's */

/* `gone(arg, id)` is called on the thread of its own, once per added socket, and may come late: id may be
 * stale. */
KL_NODISCARD kl_status kl_hangup_start(
    void (*gone)(void *arg, uint64_t id), void *arg, kl_hangup **out, kl_err *err);
void kl_hangup_stop(kl_hangup *h);                     /* joins; after it `gone` is not called any more */
void kl_hangup_add(kl_hangup *h, int fd, uint64_t id); /* any thread; fd must be open */
void kl_hangup_remove(kl_hangup *h, int fd);           /* any thread; closing fd does it too */
/* `gone(arg, KL_HANGUP_TIME)` is called once at that time of the real clock, and not at the one that was set
 * before. Any thread. */
void kl_hangup_at(kl_hangup *h, kl_time when);

#endif
