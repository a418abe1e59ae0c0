/* epoch.h - how a writer knows that nobody reads any more what it took out of sight.
 *
 * Readers pin the present epoch, look, and let go; they never wait for a writer nor for each other, but
 * for a free place when more than KL_EPOCH_PLACES of them read at the very same time. A writer takes
 * something out of sight, ends the epoch, and frees the thing once every pin is of a later epoch. One set
 * of places serves the process. */
#ifndef KL_BASE_EPOCH_H
#define KL_BASE_EPOCH_H

#include <stdint.h>

#define KL_EPOCH_PLACES 128 /* each a cache line of its own */

/* Any thread. Pins may nest. What is loaded from an atomic pointer (seq_cst) after pin stays until unpin.
 * No call that may wait between the two: nothing is freed meanwhile. */
unsigned kl_epoch_pin(void);
void kl_epoch_unpin(unsigned place);

/* Any thread. Ends the epoch: what was taken out of sight (seq_cst) before the call may be freed once
 * kl_epoch_oldest is above what this returns. */
uint64_t kl_epoch_end(void);
/* Any thread. The earliest epoch that somebody has pinned; UINT64_MAX when nobody reads. */
uint64_t kl_epoch_oldest(void);

#endif
