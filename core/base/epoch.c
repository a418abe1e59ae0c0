/* epoch.c - tells a writer when no reader uses a removed object any more.
 *
 * A place holds 0 or the epoch its reader pinned. All operations that matter are seq_cst, so there is one
 * order of them: a writer that finds a place empty after it changed the pointer knows that a later reader in
 * that place loads the new pointer; and an epoch that is read after kl_epoch_end was also read after that
 * change. A reader that loaded the epoch early and stored it late only appears older than it is. */
#include "base/epoch.h"

#include <sched.h>
#include <stdatomic.h>

typedef struct place {
    _Atomic uint64_t epoch;
} __attribute__((aligned(64))) place;

static place places[KL_EPOCH_PLACES];
static atomic_uint used; /* places[used..] have never been taken */
static _Atomic uint64_t now = 1;

/* The place that this thread tries first: threads are spread over the first few places, since a writer scans
 * all that were ever used; a thread that finds its place taken moves on and stays there. */
#define FIRST_PLACES 16

static unsigned *home(void)
{
    static atomic_uint threads;
    static _Thread_local unsigned at = KL_EPOCH_PLACES;
    if (at == KL_EPOCH_PLACES)
        at = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % FIRST_PLACES;
    return &at;
}

static void reach(unsigned at)
{
    unsigned n = atomic_load(&used);
    while (n <= at && !atomic_compare_exchange_weak(&used, &n, at + 1))
        ;
}

unsigned kl_epoch_pin(void)
{
    unsigned *at = home();
    for (unsigned tries = 0;; tries++) {
        unsigned i = (*at + tries) % KL_EPOCH_PLACES;
        uint64_t none = 0;
        reach(i);
        if (atomic_compare_exchange_strong(&places[i].epoch, &none, atomic_load(&now)))
            return *at = i;
        if (tries % KL_EPOCH_PLACES == KL_EPOCH_PLACES - 1)
            sched_yield(); /* a pin is short: a place is free soon */
    }
}

void kl_epoch_unpin(unsigned i) { atomic_store_explicit(&places[i].epoch, 0, memory_order_release); }

uint64_t kl_epoch_end(void) { return atomic_fetch_add(&now, 1); }

uint64_t kl_epoch_oldest(void)
{
    uint64_t oldest = UINT64_MAX;
    unsigned n = atomic_load(&used);
    for (unsigned i = 0; i < n; i++) {
        uint64_t e = atomic_load(&places[i].epoch);
        if (e && e < oldest)
            oldest = e;
    }
    return oldest;
}
