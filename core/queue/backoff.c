/* backoff.c - how long a key waits after its n-th failure in a row. */
#include "queue/backoff.h"

kl_backoff_policy kl_backoff_defaults(kl_backoff_policy p)
{
    if (!p.base && !p.max && p.jitter == 0)
        p.jitter = KL_BACKOFF_JITTER;
    if (p.base <= 0)
        p.base = KL_BACKOFF_BASE;
    if (p.max <= 0)
        p.max = KL_BACKOFF_MAX;
    return p;
}

kl_time kl_backoff_delay(const kl_backoff_policy *p, int failures, kl_random *r)
{
    kl_time d = p->base < p->max ? p->base : p->max;
    /* Doubling stops at max, so it cannot overflow, whatever the count. */
    for (; failures > 0 && d < p->max; failures--)
        d = d > p->max / 2 ? p->max : d * 2;
    if (p->jitter > 0)
        d -= (kl_time)((double)d * (p->jitter < 1 ? p->jitter : 1) * kl_random_unit(r));
    return d;
}
