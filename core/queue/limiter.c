/* limiter.c - ladders and penalties. */
#include "queue/limiter.h"
#include "base/map.h"
#include "base/mem.h"

kl_time kl_ladder_step(kl_ladder *l, kl_random *r)
{
    kl_time d = l->delay;

    if (l->steps < 1) {
        l->steps = 0;
    } else {
        l->steps--;
        if (l->factor != 0) {
            double next = (double)d * l->factor;

            l->delay = next < (double)INT64_MAX ? (kl_time)next : INT64_MAX;
            if (l->cap > 0 && l->delay > l->cap) {
                l->delay = l->cap;
                l->steps = 0;
            }
        }
    }
    if (l->jitter > 0 && r)
        d += (kl_time)((double)d * l->jitter * kl_random_unit(r));
    return d;
}

kl_time kl_fast_slow_delay(kl_time fast, kl_time slow, int attempts, int failures)
{
    return failures < attempts ? fast : slow;
}

typedef struct penalty {
    kl_time wait, since;
} penalty;

struct kl_penalties {
    kl_time first, max;
    kl_map *by_id;
};

kl_penalties *kl_penalties_new(kl_time first, kl_time max)
{
    kl_penalties *p = kl_new(kl_penalties);

    p->first = first;
    p->max = max;
    p->by_id = kl_map_new();
    return p;
}

void kl_penalties_free(kl_penalties *p)
{
    if (!p)
        return;
    kl_map_free(p->by_id, kl_free);
    kl_free(p);
}

/* An id without failures for twice the longest wait starts over. */
static bool forgotten(const kl_penalties *p, const penalty *x, kl_time now)
{
    return p->max <= INT64_MAX / 2 && now - x->since > p->max * 2;
}

void kl_penalties_next(kl_penalties *p, const char *id, kl_time now)
{
    penalty *x = kl_map_get(p->by_id, id);

    if (!x) {
        x = kl_new(penalty);
        kl_map_set(p->by_id, id, x);
        x->wait = p->first;
    } else if (forgotten(p, x, now)) {
        x->wait = p->first;
    } else {
        x->wait = x->wait > p->max / 2 ? p->max : x->wait * 2;
    }
    x->since = now;
}

kl_time kl_penalties_get(const kl_penalties *p, const char *id)
{
    const penalty *x = kl_map_get(p->by_id, id);

    return x ? x->wait : 0;
}

bool kl_penalties_waiting(const kl_penalties *p, const char *id, kl_time now)
{
    const penalty *x = kl_map_get(p->by_id, id);

    return x && !forgotten(p, x, now) && now - x->since < x->wait;
}

void kl_penalties_forget(kl_penalties *p, const char *id) { kl_free(kl_map_take(p->by_id, id)); }

void kl_penalties_sweep(kl_penalties *p, kl_time now)
{
    size_t it = 0;
    const char *id;
    void *x;

    while (kl_map_next(p->by_id, &it, &id, &x))
        if (forgotten(p, x, now))
            kl_free(kl_map_take(p->by_id, id));
}
