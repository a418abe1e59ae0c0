/* tenure.h - until when this process may act as leader, and the term in which a piece of work began.
 *
 * One thread writes a tenure: it wins, renews and loses it. All threads read it. It counts terms, so that
 * work begun in one term does not act in the next. Time is boottime, which counts through suspend. Any
 * thread, except begin, extend and end. */
#ifndef KL_BASE_TENURE_H
#define KL_BASE_TENURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/clock.h"

typedef struct kl_tenure {
    _Atomic kl_time until; /* boottime; 0: not leading */
    _Atomic int64_t term;  /* 1, 2, ...; 0 before the first */
    _Atomic int64_t epoch; /* the term's public number, such as a Lease's leaseTransitions */
} kl_tenure;

/* The right to act under a tenure: `of` NULL means no check, a term of 0 any term. */
typedef struct kl_mandate {
    const kl_tenure *of; /* outlives the work */
    int64_t term;
} kl_mandate;

/* `until` is stored last and cleared first: a reader that finds it valid finds its term, or a later one. */
static inline void kl_tenure_begin(kl_tenure *t, int64_t epoch, kl_time until)
{
    atomic_store(&t->epoch, epoch);
    atomic_fetch_add(&t->term, 1);
    atomic_store(&t->until, until);
}

static inline void kl_tenure_extend(kl_tenure *t, kl_time until) { atomic_store(&t->until, until); }
static inline void kl_tenure_end(kl_tenure *t) { atomic_store(&t->until, 0); }

static inline kl_mandate kl_tenure_mandate(const kl_tenure *t)
{
    return (kl_mandate){t, t ? atomic_load(&t->term) : 0};
}

/* Whether the work may still act. */
static inline bool kl_mandate_holds(const kl_mandate *m, kl_clock *clock)
{
    if (!m->of)
        return true;
    kl_time until = atomic_load(&m->of->until);
    return (until == KL_NEVER || kl_clock_boot(clock) < until)
        && (!m->term || atomic_load(&m->of->term) == m->term);
}

#endif
