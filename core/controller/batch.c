/* batch.c - wake-ups that wait for the end of a batch.
 *
 * The end releases the holder before it checks for a deferred wake-up. A wake-up of the holder between the
 * two is found by its own end, which begin guarantees. */
#include "controller/batch.h"

#include "base/sync.h"

void kl_batch_begin(kl_batch *b)
{
    uint64_t nobody = 0;
    atomic_compare_exchange_strong(&b->holder, &nobody, kl_thread_self());
}

bool kl_batch_wakes(kl_batch *b)
{
    bool waits = atomic_load_explicit(&b->holder, memory_order_relaxed) == kl_thread_self();
    if (waits)
        atomic_store(&b->held, true);
    return !waits;
}

bool kl_batch_end(kl_batch *b)
{
    atomic_store(&b->holder, 0);
    return atomic_exchange(&b->held, false);
}
