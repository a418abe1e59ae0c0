/* breaker.c - shares and rates of two generations, compared. */
#include "controller/breaker.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"

/* The number of keys whose writes are counted individually: more would cost memory, and this many are
 * enough. */
#define KEYS_MAX 10000

/* --- the judge ---------------------------------------------------------------------------- */

static double share(const kl_breaker_side *s) { return s->runs ? (double)s->errors / (double)s->runs : 0; }

/* A life of less than a second is too short for a rate. */
static double per_second(const kl_breaker_side *s)
{
    return (double)s->writes / (double)(s->lasted > KL_SECONDS(1) ? s->lasted : KL_SECONDS(1))
        * (double)KL_SECONDS(1);
}

static bool fails(const kl_breaker_side *before, const kl_breaker_side *fresh)
{
    bool settled = fresh->runs >= KL_BREAKER_RUNS || fresh->lasted >= KL_BREAKER_SETTLE;
    return settled && fresh->errors >= KL_BREAKER_ERRORS && share(fresh) >= KL_BREAKER_ERROR_SHARE
        && share(fresh) >= KL_BREAKER_RATIO * share(before);
}

static bool writes(const kl_breaker_side *before, const kl_breaker_side *fresh)
{
    return fresh->writes >= KL_BREAKER_WRITES && per_second(fresh) >= KL_BREAKER_RATIO * per_second(before);
}

char *kl_breaker_judge(const kl_breaker_side *before, const kl_breaker_side *fresh)
{
    if (before->runs == before->errors) /* it never succeeded: there is nothing to roll back to */
        return NULL;
    if (fails(before, fresh))
        return kl_sprintf("%" PRIu64 " of %" PRIu64 " runs failed, %" PRIu64 " of %" PRIu64 " did before",
            fresh->errors, fresh->runs, before->errors, before->runs);
    if (writes(before, fresh))
        return kl_sprintf("keys write again and again: %.3g times per second after the first %d runs of a "
                          "key; before, all writes were %.3g per second",
            per_second(fresh), KL_BREAKER_FREE_WRITES, per_second(before));
    return NULL;
}

/* --- a trial ------------------------------------------------------------------------------ */

struct kl_trial {
    kl_mutex mu;
    atomic_bool open; /* readable without the lock */
    int generation KL_GUARDED_BY(mu);
    kl_time since KL_GUARDED_BY(mu);
    kl_breaker_side before KL_GUARDED_BY(mu), fresh KL_GUARDED_BY(mu);
    uint64_t expected KL_GUARDED_BY(mu); /* failures that do not count */
    kl_map *wrote KL_GUARDED_BY(mu);     /* key to the number of its runs that wrote */
};

kl_trial *kl_trial_new(void)
{
    kl_trial *t = kl_new(kl_trial);
    kl_mutex_init(&t->mu);
    atomic_init(&t->open, false);
    return t;
}

static void end_locked(kl_trial *t) KL_REQUIRES(t->mu)
{
    atomic_store(&t->open, false);
    kl_map_free(t->wrote, NULL);
    t->wrote = NULL;
}

void kl_trial_free(kl_trial *t)
{
    kl_trial_end(t);
    kl_mutex_fini(&t->mu);
    kl_free(t);
}

void kl_trial_begin(kl_trial *t, int generation, const kl_breaker_side *before, size_t failing, kl_time now)
{
    kl_lock(&t->mu);
    end_locked(t);
    t->generation = generation;
    t->since = now;
    t->before = *before;
    t->fresh = (kl_breaker_side){0};
    t->expected = (uint64_t)failing * KL_BREAKER_ATTEMPTS;
    t->wrote = kl_map_new();
    atomic_store(&t->open, true);
    kl_unlock(&t->mu);
}

void kl_trial_end(kl_trial *t)
{
    kl_lock(&t->mu);
    end_locked(t);
    kl_unlock(&t->mu);
}

static void count_write(kl_trial *t, const char *key) KL_REQUIRES(t->mu)
{
    uintptr_t n = (uintptr_t)kl_map_get(t->wrote, key);
    if (!n && kl_map_len(t->wrote) >= KEYS_MAX)
        return;
    kl_map_set(t->wrote, key, (void *)(n + 1));
    t->fresh.writes += n >= KL_BREAKER_FREE_WRITES;
}

static void count_locked(kl_trial *t, const kl_trial_run *r) KL_REQUIRES(t->mu)
{
    if (r->wrote)
        count_write(t, r->key);
    if (r->failed && (r->excused || r->attempt > KL_BREAKER_ATTEMPTS))
        return;
    if (r->failed && t->expected) {
        t->expected--;
        return;
    }
    t->fresh.runs++;
    t->fresh.errors += r->failed;
}

bool kl_trial_note(kl_trial *t, const kl_trial_run *r, kl_time now)
{
    if (!atomic_load_explicit(&t->open, memory_order_relaxed))
        return false;
    kl_lock(&t->mu);
    bool ours = t->wrote && r->generation == t->generation;
    char *why = NULL;
    if (ours)
        count_locked(t, r);
    if (ours && (r->failed || r->wrote)) {
        t->fresh.lasted = now - t->since;
        why = kl_breaker_judge(&t->before, &t->fresh);
    }
    kl_unlock(&t->mu);
    bool bad = why;
    kl_free(why);
    return bad;
}

char *kl_trial_verdict(kl_trial *t, kl_time now, int *generation)
{
    char *why = NULL;
    kl_lock(&t->mu);
    *generation = t->generation;
    if (t->wrote) {
        t->fresh.lasted = now - t->since;
        why = kl_breaker_judge(&t->before, &t->fresh);
    }
    if (why)
        end_locked(t);
    kl_unlock(&t->mu);
    return why;
}
