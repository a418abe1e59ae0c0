/* bell.h - one descriptor that a program's loop may poll: readable while there are events for the program's
 * thread, or after an alarm.
 *
 *   silent --ring, or the moment of an alarm--> readable --lkl__bell_hush--> silent
 *
 * The reader first hushes the bell and then looks for events, so that it misses none. */
#ifndef LKL_BELL_H
#define LKL_BELL_H

#include <stdbool.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct lkl_bell lkl_bell; /* counted; the last reference closes the descriptor */

KL_NODISCARD kl_status lkl__bell_new(lkl_bell **out, kl_err *err); /* KL_EIO: no descriptors left */
/* Any thread: */
lkl_bell *lkl__bell_ref(lkl_bell *b);
void lkl__bell_unref(lkl_bell *b); /* NULL is fine */
void lkl__bell_ring(lkl_bell *b);  /* NULL is fine */
/* The program's thread: */
int lkl__bell_fd(const lkl_bell *b);
void lkl__bell_hush(lkl_bell *b);
/* Makes the bell ring after that time; KL_NEVER: no alarm. Replaces the previous alarm. */
void lkl__bell_alarm(lkl_bell *b, kl_time after);
/* Waits at most that long; true: the bell rang. */
bool lkl__bell_wait(lkl_bell *b, kl_time most);

#endif
