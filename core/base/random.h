/* random.h - a small seeded generator (splitmix64) for jitter: the same seed gives the same run. Not for
 * secrets.
 *
 * Owner thread or owner's lock. */
#ifndef KL_BASE_RANDOM_H
#define KL_BASE_RANDOM_H

#include <stdint.h>
#include "base/clock.h"

typedef struct kl_random {
    uint64_t state;
} kl_random;

static inline uint64_t kl_random_next(kl_random *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, 1). */
static inline double kl_random_unit(kl_random *r) { return (double)(kl_random_next(r) >> 11) * 0x1p-53; }

/* Uniform in [from, to); `from` when the range is empty. */
static inline kl_time kl_random_between(kl_random *r, kl_time from, kl_time to)
{
    return to <= from ? from : from + (kl_time)((double)(to - from) * kl_random_unit(r));
}

#endif
