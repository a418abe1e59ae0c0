/* bucket.h - a token bucket: a rate per second, and a burst. Pure: functions of (state, now); under its
 * owner's lock. */
#ifndef KL_BASE_BUCKET_H
#define KL_BASE_BUCKET_H

#include <stdbool.h>
#include "base/clock.h"

/* `burst` tokens at first, refilled at `rate` a second. Each call takes one. */
typedef struct kl_bucket {
    double rate;
    int burst;
    double tokens; /* below zero when reservations run ahead */
    kl_time last;  /* the time at which `tokens` was right */
    bool started;
} kl_bucket;
void kl_bucket_init(kl_bucket *b, double rate, int burst);
/* takes a token and returns the time until it may be used; KL_NEVER: never */
kl_time kl_bucket_reserve(kl_bucket *b, kl_time now);
bool kl_bucket_try(kl_bucket *b, kl_time now); /* takes one only if it may be used at once */
/* returns a reserved token, for the next caller */
void kl_bucket_return(kl_bucket *b);

#endif
