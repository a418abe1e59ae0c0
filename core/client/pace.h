/* pace.h - limits the calls that run at once while the server reports that it is busy. Pure: functions of
 * (state, now). Calls thread.
 *
 *   open --429--> narrow: no call starts until the server's Retry-After is over, then half as many as were under way
 *   narrow --answers--> wider by one for each window of answers --twice as wide as at the refusal--> open
 *   narrow --429 of a call that was sent after the last cut--> half of that
 * An open pace limits nothing. */
#ifndef KL_CLIENT_PACE_H
#define KL_CLIENT_PACE_H

#include <stdbool.h>
#include "base/clock.h"

typedef struct kl__pace {
    double window;     /* the maximum of running calls; 0: open */
    double refused_at; /* running calls when it was first narrowed */
    int under_way;
    kl_time cut;  /* when it was narrowed last */
    kl_time rest; /* no call starts before */
} kl__pace;

typedef enum kl__pace_end { KL_PACE_UNKNOWN, KL_PACE_GOOD, KL_PACE_REFUSED } kl__pace_end;

/* Whether another call may start. If not, *when is the time to try again; KL_NEVER: when a call ends. */
bool kl__pace_room(const kl__pace *p, kl_time now, kl_time *when);
void kl__pace_start(kl__pace *p);
/* A call that was sent at `sent` has ended. `wait`: the Retry-After of a refusal, <= 0: none. True when the
 * pace was narrowed or opened. */
bool kl__pace_over(kl__pace *p, kl__pace_end how, kl_time sent, kl_time wait, kl_time now);

#endif
