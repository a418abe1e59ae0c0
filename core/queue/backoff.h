/* backoff.h - how long a key waits after its n-th failure in a row: base * 2^n, never above max, with
 * jitter. Pure. */
#ifndef KL_QUEUE_BACKOFF_H
#define KL_QUEUE_BACKOFF_H

#include "base/clock.h"
#include "base/random.h"
#include "queue/workqueue.h"

/* client-go's item limiter (default_rate_limiters.go): 5 ms doubling to 1000 s. The jitter is ours: keys that
 * failed together do not come back together. */
#define KL_BACKOFF_BASE KL_MILLISECONDS(5)
#define KL_BACKOFF_MAX KL_SECONDS(1000)
#define KL_BACKOFF_JITTER 0.1

/* Zero fields replaced by the defaults; an all-zero policy also gets the default jitter. */
kl_backoff_policy kl_backoff_defaults(kl_backoff_policy p);
/* The delay after `failures` earlier failures (0 for the first), drawn from [d*(1-jitter), d]. */
kl_time kl_backoff_delay(const kl_backoff_policy *p, int failures, kl_random *r);

#endif
