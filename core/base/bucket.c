/* bucket.c - tokens that come with time and go with use.
 *
 * Counted in doubles and in the same order of operations as golang.org/x/time/rate, so that delays agree
 * to the nanosecond. */
#include "base/bucket.h"

void kl_bucket_init(kl_bucket *b, double rate, int burst)
{
    *b = (kl_bucket){.rate = rate, .burst = burst, .tokens = burst};
}

/* Tokens at `now`. Time that goes backwards brings none. */
static double tokens_at(const kl_bucket *b, kl_time now)
{
    kl_time passed = b->started && now > b->last ? now - b->last : 0;
    double seconds = (double)(passed / KL_SECONDS(1)) + (double)(passed % KL_SECONDS(1)) / 1e9;
    double tokens = b->tokens + (b->rate > 0 ? seconds * b->rate : 0);

    return tokens > b->burst ? b->burst : tokens;
}

static kl_time take(kl_bucket *b, kl_time now, kl_time longest)
{
    double tokens = tokens_at(b, now) - 1;
    kl_time wait = 0;

    if (tokens < 0)
        wait = b->rate > 0 ? (kl_time)(1e9 * (-tokens / b->rate)) : KL_NEVER;
    if (b->burst < 1 || wait > longest || wait == KL_NEVER)
        return KL_NEVER;
    b->tokens = tokens;
    b->last = now;
    b->started = true;
    return wait;
}

kl_time kl_bucket_reserve(kl_bucket *b, kl_time now) { return take(b, now, KL_NEVER); }

bool kl_bucket_try(kl_bucket *b, kl_time now) { return take(b, now, 0) == 0; }

void kl_bucket_return(kl_bucket *b) { b->tokens = b->tokens + 1 < b->burst ? b->tokens + 1 : b->burst; }
