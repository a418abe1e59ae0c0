/* shadow_verdicts.c - a map of keys, those that differ by kind, and a list of them, the newest first. */
#include "lab/shadow_verdicts.h"

#include <string.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/time.h"
#include "lab/differences.h"
#include "lab/shadow.h"

/* The number of keys whose results are kept. */
#define KEYS_MAX 200000
/* The number of differing keys that are logged; the others are only in the report. */
#define LOGGED_MAX 20

typedef struct told { /* a key that differs */
    kl_list link;
    char *controller, *key, *diff;
    kl_verdict verdict;
    kl_time at;
} told;

struct kl_verdicts {
    kl_mutex mu;
    kl_map *verdicts KL_GUARDED_BY(mu);      /* "controller key" -> kl_likes, of `kinds` or `same` */
    kl_differences *kinds KL_GUARDED_BY(mu); /* each key counts once, with its worst result */
    kl_likes same KL_GUARDED_BY(mu);
    kl_verdict_counts n KL_GUARDED_BY(mu);
    uint64_t logged KL_GUARDED_BY(mu);
    kl_list told KL_GUARDED_BY(mu);
    size_t n_told KL_GUARDED_BY(mu);
};

static void told_free(told *x)
{
    kl_free(x->controller);
    kl_free(x->key);
    kl_free(x->diff);
    kl_free(x);
}

kl_verdicts *kl_verdicts_new(void)
{
    kl_verdicts *v = kl_new(kl_verdicts);
    kl_mutex_init(&v->mu);
    kl_list_init(&v->told);
    v->verdicts = kl_map_new();
    v->kinds = kl_differences_new();
    v->same.verdict = KL_SAME;
    return v;
}

void kl_verdicts_free(kl_verdicts *v)
{
    kl_list *n;
    while ((n = kl_list_shift(&v->told)))
        told_free(KL_CONTAINER(n, told, link));
    kl_map_free(v->verdicts, NULL);
    kl_differences_free(v->kinds);
    kl_mutex_fini(&v->mu);
    kl_free(v);
}

static told *find_told_locked(kl_verdicts *v, const char *controller, const char *key) KL_REQUIRES(v->mu);
static told *find_told_locked(kl_verdicts *v, const char *controller, const char *key)
{
    for (kl_list *n = v->told.next; n != &v->told; n = n->next) {
        told *x = KL_CONTAINER(n, told, link);
        if (!strcmp(x->key, key) && !strcmp(x->controller, controller))
            return x;
    }
    return NULL;
}

static void tell_locked(kl_verdicts *v, const char *controller, const char *key, const kl_judgement *j,
    kl_time at) KL_REQUIRES(v->mu);
static void tell_locked(
    kl_verdicts *v, const char *controller, const char *key, const kl_judgement *j, kl_time at)
{
    told *x = find_told_locked(v, controller, key);
    if (x) {
        kl_list_remove(&x->link);
        v->n_told--;
        told_free(x);
    }
    x = kl_new(told);
    *x = (told){.controller = kl_strdup(controller),
        .key = kl_strdup(key),
        .diff = kl_strdup(j->diff),
        .verdict = j->verdict,
        .at = at};
    kl_list_push_front(&v->told, &x->link);
    if (++v->n_told > KL_SHADOW_TOLD) {
        told *last = KL_CONTAINER(v->told.prev, told, link);
        kl_list_remove(&last->link);
        v->n_told--;
        told_free(last);
    }
}

/* Counts a result that is the key's worst so far; true: it must be logged. A later run may look better only
 * because the live logic does what the candidate omits. */
static bool count_locked(kl_verdicts *v, const char *name, const kl_likes *now) KL_REQUIRES(v->mu);
static bool count_locked(kl_verdicts *v, const char *name, const kl_likes *now)
{
    kl_likes *before = kl_map_get(v->verdicts, name);
    if (before ? now->verdict <= before->verdict : kl_map_len(v->verdicts) >= KEYS_MAX)
        return false;
    if (before) {
        v->n.keys[before->verdict]--;
        before->n--;
    }
    kl_likes *l = now->verdict == KL_SAME ? &v->same : kl_differences_add(v->kinds, now);
    v->same.n += l == &v->same;
    kl_map_set(v->verdicts, name, l);
    v->n.keys[l->verdict]++;
    return l->verdict != KL_SAME && v->logged++ < LOGGED_MAX;
}

bool kl_verdicts_add(kl_verdicts *v, const char *controller, const char *key, const kl_judgement *j,
    kl_time at, size_t keys[3])
{
    char *name = kl_sprintf("%s %s", controller, key);
    kl_lock(&v->mu);
    v->n.runs++;
    kl_likes now = {(char *)controller, (char *)key, j->kind, j->diff, j->verdict, 0};
    bool log = count_locked(v, name, &now);
    const kl_likes *is = kl_map_get(v->verdicts, name);
    if (j->verdict != KL_SAME && is && is->verdict == (int)j->verdict)
        tell_locked(v, controller, key, j, at);
    memcpy(keys, v->n.keys, sizeof v->n.keys);
    kl_unlock(&v->mu);
    kl_free(name);
    return log;
}

void kl_verdicts_skip(kl_verdicts *v)
{
    kl_lock(&v->mu);
    v->n.skipped++;
    kl_unlock(&v->mu);
}

void kl_verdicts_count(kl_verdicts *v, kl_verdict_counts *out)
{
    kl_lock(&v->mu);
    *out = v->n;
    kl_unlock(&v->mu);
}

static void build_told_locked(kl_verdicts *v, kl_builder *b) KL_REQUIRES(v->mu);
static void build_told_locked(kl_verdicts *v, kl_builder *b)
{
    char at[KL_TIME_MAX];
    for (kl_list *n = v->told.next; n != &v->told; n = n->next) {
        told *x = KL_CONTAINER(n, told, link);
        kl_build_object(b);
        kl_build_kstr(b, "controller", x->controller);
        kl_build_kstr(b, "key", x->key);
        kl_build_kstr(b, "verdict", kl_verdict_name(x->verdict));
        kl_build_kstr(b, "diff", x->diff);
        kl_build_kstr(b, "at", kl_time_format_wall(x->at, at));
        kl_build_end(b);
    }
}

static void build_kinds_locked(kl_verdicts *v, kl_builder *b) KL_REQUIRES(v->mu);
static void build_kinds_locked(kl_verdicts *v, kl_builder *b)
{
    kl_likes **all = kl_differences_sorted(v->kinds);
    for (size_t i = 0; all[i] && i < KL_SHADOW_TOLD; i++) {
        kl_build_object(b);
        kl_build_kstr(b, "kind", all[i]->kind);
        kl_build_kstr(b, "verdict", kl_verdict_name((kl_verdict)all[i]->verdict));
        kl_build_kint(b, "keys", (int64_t)all[i]->n);
        kl_build_kstr(b, "controller", all[i]->controller);
        kl_build_kstr(b, "key", all[i]->key);
        kl_build_kstr(b, "diff", all[i]->text);
        kl_build_end(b);
    }
    kl_free(all);
}

void kl_verdicts_build(kl_verdicts *v, kl_builder *b)
{
    kl_lock(&v->mu);
    kl_build_kint(b, "same", (int64_t)v->n.keys[KL_SAME]);
    kl_build_kint(b, "differs", (int64_t)v->n.keys[KL_DIFFERS]);
    kl_build_kint(b, "fails", (int64_t)v->n.keys[KL_FAILS]);
    kl_build_kint(b, "runs", (int64_t)v->n.runs);
    kl_build_kint(b, "skipped", (int64_t)v->n.skipped);
    kl_build_key(b, "keys");
    kl_build_array(b);
    build_told_locked(v, b);
    kl_build_end(b);
    kl_build_key(b, "kinds");
    kl_build_array(b);
    build_kinds_locked(v, b);
    kl_build_end(b);
    kl_unlock(&v->mu);
}
