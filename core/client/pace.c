/* pace.c - additive increase, multiplicative decrease, as in TCP. */
#include "client/pace.h"

#define REST_DEFAULT KL_SECONDS(1) /* after a 429 that does not say how long */
#define REST_MAX KL_SECONDS(30)    /* a long Retry-After of one call must not stop all calls */

bool kl__pace_room(const kl__pace *p, kl_time now, kl_time *when)
{
    *when = KL_NEVER;
    if (p->window <= 0)
        return true;
    if (now < p->rest) {
        *when = p->rest;
        return false;
    }
    return p->under_way < (int)p->window;
}

void kl__pace_start(kl__pace *p) { p->under_way++; }

static void narrow(kl__pace *p, int under_way, kl_time now)
{
    double n = p->window > 0 && p->window < under_way ? p->window : under_way;
    if (p->window <= 0)
        p->refused_at = n;
    p->window = n / 2 < 1 ? 1 : n / 2;
    p->cut = now;
}

bool kl__pace_over(kl__pace *p, kl__pace_end how, kl_time sent, kl_time wait, kl_time now)
{
    bool changed = false;
    int under_way = p->under_way--;
    if (how == KL_PACE_REFUSED) {
        kl_time rest = now + (wait <= 0 ? REST_DEFAULT : wait < REST_MAX ? wait : REST_MAX);
        changed = p->window <= 0 || sent > p->cut; /* calls that were sent before the cut do not count */
        if (changed)
            narrow(p, under_way, now);
        p->rest = rest > p->rest ? rest : p->rest;
    } else if (how == KL_PACE_GOOD && p->window > 0) {
        p->window += 1 / p->window;
        changed = p->window >= 2 * p->refused_at;
        if (changed)
            p->window = 0;
    }
    return changed;
}
