/* hangup.h - reports when the peer of a socket goes away while no thread reads from it. It also has one
 * timer.
 *
 * A watch that waits for events is a suspended connection, which its server does not poll. One thread waits
 * for the hang-ups of all of them. */
#ifndef KL_BASE_HANGUP_H
#define KL_BASE_HANGUP_H

#include <stdint.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct kl_hangup kl_hangup;

#define KL_HANGUP_TIME (UINT64_MAX - 1) /* the id that kl_hangup_at passes to `gone`; no socket has it */

/* `gone(arg, id)` is called on its own thread, at most once per added socket, and may come late: id may be
 * stale. */
KL_NODISCARD kl_status kl_hangup_start(
    void (*gone)(void *arg, uint64_t id), void *arg, kl_hangup **out, kl_err *err);
void kl_hangup_stop(kl_hangup *h);                     /* joins; after it `gone` is not called any more */
void kl_hangup_add(kl_hangup *h, int fd, uint64_t id); /* any thread; fd must be open */
void kl_hangup_remove(kl_hangup *h, int fd);           /* any thread; closing fd does it too */
/* `gone(arg, KL_HANGUP_TIME)` is called once at `when`, by the real clock; the time that was set before is
 * forgotten. Any thread. */
void kl_hangup_at(kl_hangup *h, kl_time when);

#endif
