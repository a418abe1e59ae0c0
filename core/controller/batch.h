/* batch.h - defers wake-ups: a thread that delivers many events wakes workers once, at the batch's end.
 *
 * Only one thread at a time defers its wake-ups; those of others are immediate. The end may come from another
 * thread than the beginning: an informer's events may move to the mapper loop within a batch, and a
 * subscription may be dropped in it. */
#ifndef KL_CONTROLLER_BATCH_H
#define KL_CONTROLLER_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct kl_batch {    /* all zero at first */
    _Atomic uint64_t holder; /* the thread whose wake-ups wait, or 0 */
    atomic_bool held;        /* a wake-up is pending */
} kl_batch;

/* From now on this thread's wake-ups are deferred, unless another thread's are. Each call needs an end, on
 * any thread, after the last wake-up of this thread. Any thread. */
void kl_batch_begin(kl_batch *b);

/* Whether the caller should wake workers now; false: the end of the batch will. Any thread. */
bool kl_batch_wakes(kl_batch *b);

/* Ends the batch, whoever began it: true when the caller should wake workers for it. Any thread. An early end
 * costs an extra wake-up, but loses none. */
bool kl_batch_end(kl_batch *b);

#endif
