/* table_backoff.c - of backoff_time_names: how long to wait. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "oracle.h"
#include "queue/backoff.h"
#include "base/bucket.h"
#include "queue/limiter.h"

static void add_int(kl_builder *b, int64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)v);
    kl_build_str(b, text);
}

static kl_status backoff_steps(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl_ladder l = {.factor = kl_value_double(kl_value_get(c->in, "factor"), 0)};
    int64_t steps, n, i;
    kl_ladder again;
    kl_status st = oracle_int(c->in, "durationNs", &l.delay, err);

    if (!st)
        st = oracle_int(c->in, "capNs", &l.cap, err);
    if (!st)
        st = oracle_int(c->in, "steps", &steps, err);
    if (!st)
        st = oracle_int(c->in, "n", &n, err);
    if (st)
        return st;
    l.steps = (int)steps;
    again = l;
    kl_build_key(b, "sleepsNs");
    kl_build_array(b);
    for (i = 0; i < n; i++)
        add_int(b, kl_ladder_step(&l, NULL));
    kl_build_end(b);
    kl_build_key(b, "stepsLeft");
    kl_build_array(b);
    for (i = 0; i < n; i++) {
        kl_ladder_step(&again, NULL);
        add_int(b, again.steps);
    }
    kl_build_end(b);
    return KL_OK;
}

typedef struct speeds {
    kl_backoff_policy doubling;
    kl_time fast, slow;
    int attempts;
} speeds;

static kl_time item_delay(const speeds *s, int failures)
{
    return s->doubling.max ? kl_backoff_delay(&s->doubling, failures, NULL)
                           : kl_fast_slow_delay(s->fast, s->slow, s->attempts, failures);
}

static kl_status letters_only(const char *ops, kl_err *err)
{
    return strspn(ops, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(ops)
        ? KL_OK
        : kl_fail(err, ORACLE_BAD_CASE, "this case makes no sense: in.ops must be letters");
}

/* A letter fails, its capital is forgotten. */
static kl_status run_items(const oracle_case *c, const speeds *s, kl_builder *b, kl_err *err)
{
    int failures[26] = {0};
    const char *ops;
    kl_status st = oracle_str(c->in, "ops", &ops, err);

    if (st)
        return st;
    if (letters_only(ops, err))
        return ORACLE_BAD_CASE;
    kl_build_key(b, "results");
    kl_build_array(b);
    for (; *ops; ops++) {
        int *n = &failures[tolower((unsigned char)*ops) - 'a'];
        char text[48];

        if (isupper((unsigned char)*ops)) {
            *n = 0;
            snprintf(text, sizeof text, "forgot:0");
        } else {
            snprintf(text, sizeof text, "%lld:%d", (long long)item_delay(s, *n), *n + 1);
            ++*n;
        }
        kl_build_str(b, text);
    }
    kl_build_end(b);
    return KL_OK;
}

static kl_status item_exponential(const oracle_case *c, kl_builder *b, kl_err *err)
{
    speeds s = {0};
    kl_status st = oracle_int(c->in, "baseNs", &s.doubling.base, err);

    if (!st)
        st = oracle_int(c->in, "maxNs", &s.doubling.max, err);
    return st ? st : run_items(c, &s, b, err);
}

static kl_status item_fast_slow(const oracle_case *c, kl_builder *b, kl_err *err)
{
    speeds s = {0};
    int64_t attempts = 0;
    kl_status st = oracle_int(c->in, "fastNs", &s.fast, err);

    if (!st)
        st = oracle_int(c->in, "slowNs", &s.slow, err);
    if (!st)
        st = oracle_int(c->in, "fastAttempts", &attempts, err);
    s.attempts = (int)attempts;
    return st ? st : run_items(c, &s, b, err);
}

static kl_status token_bucket(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *gaps = kl_value_get(c->in, "gapsMs");
    double rate = kl_value_double(kl_value_get(c->in, "qps"), 0);
    kl_bucket bucket;
    kl_time now = 0;
    int64_t burst, gap;
    kl_status st = oracle_int(c->in, "burst", &burst, err);
    size_t i;

    if (st)
        return st;
    kl_bucket_init(&bucket, rate, (int)burst);
    kl_build_key(b, "delaysNs");
    kl_build_array(b);
    for (i = 0; i < kl_value_len(gaps); i++) {
        now += kl_value_int(kl_value_item(gaps, i), &gap) ? KL_MILLISECONDS(gap) : 0;
        add_int(b, kl_bucket_reserve(&bucket, now));
    }
    kl_build_end(b);
    kl_bucket_init(&bucket, rate, (int)burst);
    kl_build_key(b, "tryAccept");
    kl_build_array(b);
    for (i = 0, now = 0; i < kl_value_len(gaps); i++) {
        now += kl_value_int(kl_value_item(gaps, i), &gap) ? KL_MILLISECONDS(gap) : 0;
        kl_build_bool(b, kl_bucket_try(&bucket, now));
    }
    kl_build_end(b);
    return KL_OK;
}

/* The longer of the key's own backoff and of one bucket for all keys: 10 a second, 100 at first. */
static kl_status default_controller_limiter(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *gaps = kl_value_get(c->in, "gapsMs");
    const kl_backoff_policy ladder = {KL_BACKOFF_BASE, KL_BACKOFF_MAX, 0};
    int failures[26] = {0};
    kl_bucket bucket;
    kl_time now = 0;
    const char *ops;
    int64_t gap;
    kl_status st = oracle_str(c->in, "ops", &ops, err);
    size_t i;

    if (st)
        return st;
    if (letters_only(ops, err))
        return ORACLE_BAD_CASE;
    kl_bucket_init(&bucket, 10, 100);
    kl_build_key(b, "delaysNs");
    kl_build_array(b);
    for (i = 0; ops[i]; i++) {
        kl_time own, shared;

        now += kl_value_int(kl_value_item(gaps, i), &gap) ? KL_MILLISECONDS(gap) : 0;
        own = kl_backoff_delay(&ladder, failures[tolower((unsigned char)ops[i]) - 'a']++, NULL);
        shared = kl_bucket_reserve(&bucket, now);
        add_int(b, own > shared ? own : shared);
    }
    kl_build_end(b);
    return KL_OK;
}

static kl_status flowcontrol_backoff(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *ops = kl_value_get(c->in, "ops");
    kl_time first, max, now = 0;
    kl_penalties *p;
    kl_status st = oracle_int(c->in, "initialNs", &first, err);
    size_t i;

    if (!st)
        st = oracle_int(c->in, "maxNs", &max, err);
    if (st)
        return st;
    p = kl_penalties_new(first, max);
    kl_build_key(b, "results");
    kl_build_array(b);
    for (i = 0; i < kl_value_len(ops); i++) {
        const kl_value *o = kl_value_item(ops, i);
        const char *op = kl_value_str_at(o, "op", NULL), *id = kl_value_str_at(o, "id", NULL);

        if (!op || !id) {
            kl_penalties_free(p);
            return kl_fail(
                err, ORACLE_BAD_CASE, "this case makes no sense: each of in.ops must have op and id");
        }
        now += KL_MILLISECONDS(kl_value_int_at(o, 0, "gapMs", NULL));
        if (!strcmp(op, "in_backoff")) {
            kl_build_bool(b, kl_penalties_waiting(p, id, now));
            continue;
        }
        if (!strcmp(op, "next"))
            kl_penalties_next(p, id, now);
        else if (!strcmp(op, "reset"))
            kl_penalties_forget(p, id);
        else if (!strcmp(op, "gc"))
            kl_penalties_sweep(p, now);
        add_int(b, kl_penalties_get(p, id));
    }
    kl_build_end(b);
    kl_penalties_free(p);
    return KL_OK;
}

static const oracle_op ops[] = {
    {"backoff_steps", backoff_steps, NULL},
    {"item_exponential", item_exponential, NULL},
    {"item_fast_slow", item_fast_slow, NULL},
    {"token_bucket", token_bucket, NULL},
    {"default_controller_limiter", default_controller_limiter, NULL},
    {"flowcontrol_backoff", flowcontrol_backoff, NULL},
    {0},
};
ORACLE_TABLE("backoff_time_names", ops)
