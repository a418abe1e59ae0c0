/* limiter.h - delays other than backoff: a ladder of steps, a fast and a slow delay, delays by id. A token
 * bucket is in base/bucket.h.
 *
 * All of them are functions of their state and `now`; none waits. Owner thread or owner's lock. */
#ifndef KL_QUEUE_LIMITER_H
#define KL_QUEUE_LIMITER_H

#include <stdbool.h>
#include "base/clock.h"
#include "base/random.h"

/* A ladder: each step's delay is the last one's times `factor`, until the steps are used up or `cap` is
 * reached; from then on the delay stays. The caller fills it in and keeps it. */
typedef struct kl_ladder {
    kl_time delay; /* the next one */
    kl_time cap;   /* 0: none */
    double factor; /* 0: the delay stays */
    double jitter; /* up to this share is added to each delay, but not carried to the next step */
    int steps;     /* left to grow */
} kl_ladder;
kl_time kl_ladder_step(kl_ladder *l, kl_random *r); /* r may be NULL without jitter */

/* `fast` for the first `attempts` failures of a key, then `slow`. `failures` counts the earlier ones. */
kl_time kl_fast_slow_delay(kl_time fast, kl_time slow, int attempts, int failures);

/* A delay for each id, which doubles with every failure and is forgotten after a quiet time of twice the
 * maximum. */
typedef struct kl_penalties kl_penalties;
kl_penalties *kl_penalties_new(kl_time first, kl_time max);
void kl_penalties_free(kl_penalties *p);                                       /* NULL is fine */
void kl_penalties_next(kl_penalties *p, const char *id, kl_time now);          /* records another failure */
kl_time kl_penalties_get(const kl_penalties *p, const char *id);               /* 0 when it has none */
bool kl_penalties_waiting(const kl_penalties *p, const char *id, kl_time now); /* its delay is not over */
void kl_penalties_forget(kl_penalties *p, const char *id);
/* drops forgotten entries */
void kl_penalties_sweep(kl_penalties *p, kl_time now);

#endif
