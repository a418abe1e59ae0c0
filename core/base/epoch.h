/* epoch.h - tells a writer when no reader uses a removed object any more.
 *
 * Readers pin the present epoch, read, and unpin; they wait neither for writers nor for each other, except
 * for a free place when more than KL_EPOCH_PLACES of them read at the same time. A writer unlinks an object,
 * ends the epoch, and frees it once every pin is of a later epoch. One set of places serves the process. */
#ifndef KL_BASE_EPOCH_H
#define KL_BASE_EPOCH_H

#include <stdint.h>

#define KL_EPOCH_PLACES 128 /* each a cache line of its own */

/* Any thread. Pins may nest. What is loaded from an atomic pointer (seq_cst) after pin stays until unpin. Do
 * not wait between the two: a pin keeps all memory from being freed. */
unsigned kl_epoch_pin(void);
void kl_epoch_unpin(unsigned place);

/* Any thread. Ends the epoch: an object that was unlinked (seq_cst) before the call may be freed once
 * kl_epoch_oldest is above the returned number. */
uint64_t kl_epoch_end(void);
/* Any thread. The earliest pinned epoch; UINT64_MAX when there are no readers. */
uint64_t kl_epoch_oldest(void);

#endif
