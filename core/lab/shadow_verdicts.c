/* shadow_verdicts.c - a map of keys, and a list of those that differ, the newest first. */
#include "lab/shadow_verdicts.h"

#include <string.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/time.h"
#include "lab/shadow.h"

/* Of so many keys it is known what they came to. */
#define KEYS_MAX 200000
/* So many keys are told in the log as they come to something else; the rest is in the report. */
#define LOGGED_MAX 20

typedef struct told { /* a key that differs */
    kl_list link;
    char *controller, *key, *diff;
    kl_verdict verdict;
    kl_time at;
} told;

struct kl_verdicts {
    kl_mutex mu;
    kl_map *verdicts KL_GUARDED_BY(mu); /* "controller key" -> verdict + 1 */
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
    return v;
}

void kl_verdicts_free(kl_verdicts *v)
{
    kl_list *n;
    while ((n = kl_list_shift(&v->told)))
        told_free(KL_CONTAINER(n, told, link));
    kl_map_free(v->verdicts, NULL);
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

/* True when it is worse than before, and to be told. The live logic mends what the candidate left undone,
 * so a later run may look better. */
static bool count_locked(kl_verdicts *v, const char *name, kl_verdict verdict) KL_REQUIRES(v->mu);
static bool count_locked(kl_verdicts *v, const char *name, kl_verdict verdict)
{
    uintptr_t before = (uintptr_t)kl_map_get(v->verdicts, name), now = (uintptr_t)verdict + 1;
    if (now <= before || (!before && kl_map_len(v->verdicts) >= KEYS_MAX))
        return false;
    kl_map_set(v->verdicts, name, (void *)now);
    if (before)
        v->n.keys[before - 1]--;
    v->n.keys[verdict]++;
    return verdict != KL_SAME && v->logged++ < LOGGED_MAX;
}

bool kl_verdicts_add(kl_verdicts *v, const char *controller, const char *key, const kl_judgement *j,
    kl_time at, size_t keys[3])
{
    char *name = kl_sprintf("%s %s", controller, key);
    kl_lock(&v->mu);
    v->n.runs++;
    bool log = count_locked(v, name, j->verdict);
    if (j->verdict != KL_SAME && (uintptr_t)kl_map_get(v->verdicts, name) == (uintptr_t)j->verdict + 1)
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
    kl_unlock(&v->mu);
}
