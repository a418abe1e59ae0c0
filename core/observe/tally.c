/* tally.c - counts at the end of each run; a key is kept from its first failure to its first success. */
#include "observe/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "run/worker.h"

typedef struct generation {
    int number; /* 0: none */
    uint64_t runs, errors, writes;
} generation;

typedef struct counted {
    char *name;
    generation of[KL_TALLY_GENERATIONS]; /* the newest first */
} counted;

typedef struct failing {
    char *controller, *key, *message;
    kl_result_kind result;
    int attempt;
    kl_time next; /* monotonic; -1: only a change runs the key again */
} failing;

struct kl_tally {
    kl_mutex mu;
    counted *controllers KL_GUARDED_BY(mu);
    size_t n KL_GUARDED_BY(mu);
    kl_map *failing KL_GUARDED_BY(mu); /* "controller key" */
};

kl_tally *kl_tally_new(void)
{
    kl_tally *t = kl_new(kl_tally);
    kl_mutex_init(&t->mu);
    t->failing = kl_map_new();
    return t;
}

static void failing_free(void *p)
{
    failing *f = p;
    kl_free(f->controller);
    kl_free(f->key);
    kl_free(f->message);
    kl_free(f);
}

void kl_tally_free(kl_tally *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        kl_free(t->controllers[i].name);
    kl_free(t->controllers);
    kl_map_free(t->failing, failing_free);
    kl_mutex_fini(&t->mu);
    kl_free(t);
}

/* --- generations -------------------------------------------------------------------------- */

static counted *counted_of(kl_tally *t, const char *name, bool make) KL_REQUIRES(t->mu)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->controllers[i].name, name))
            return &t->controllers[i];
    if (!make)
        return NULL;
    t->controllers = kl_realloc(t->controllers, (t->n + 1) * sizeof *t->controllers);
    t->controllers[t->n] = (counted){.name = kl_strdup(name)};
    return &t->controllers[t->n++];
}

/* The counts of a generation; NULL: it is too old to be remembered. */
static generation *generation_of(counted *c, int number)
{
    size_t i = 0;
    while (i < KL_TALLY_GENERATIONS && c->of[i].number > number)
        i++;
    if (i == KL_TALLY_GENERATIONS)
        return NULL;
    if (c->of[i].number != number) {
        memmove(&c->of[i + 1], &c->of[i], (KL_TALLY_GENERATIONS - i - 1) * sizeof c->of[0]);
        c->of[i] = (generation){.number = number};
    }
    return &c->of[i];
}

static void on_asked(void *arg, kl_run *r, const kl_asked *x)
{
    kl_tally *t = arg;
    if (!x->op || !kl_verb_is_write(x->op->verb))
        return;
    kl_lock(&t->mu);
    generation *g = generation_of(counted_of(t, kl_run_spec(r)->name, true), kl_run_generation(r));
    if (g)
        g->writes++;
    kl_unlock(&t->mu);
}

/* --- keys that fail ----------------------------------------------------------------------- */

static bool fails(kl_result_kind k)
{
    return k == KL_RESULT_ERROR || k == KL_RESULT_FAIL || k == KL_RESULT_CONFLICT || k == KL_RESULT_RETRY;
}

static char *slot_of(const char *controller, const char *key) { return kl_sprintf("%s %s", controller, key); }

static void note(kl_tally *t, const char *slot, const kl_ran *x) KL_REQUIRES(t->mu)
{
    failing *f = kl_map_get(t->failing, slot);
    if (!f && kl_map_len(t->failing) >= KL_TALLY_KEYS)
        return;
    if (!f) {
        f = kl_new(failing);
        f->controller = kl_strdup(x->controller);
        f->key = kl_strdup(x->key);
        kl_map_set(t->failing, slot, f);
    }
    kl_free(f->message);
    f->message = kl_strdup(x->message);
    f->result = x->result;
    f->attempt = x->attempt;
    f->next = x->after < 0 ? -1 : x->ended + x->after;
}

static void on_ended(void *arg, kl_run *r, const kl_ran *x)
{
    kl_tally *t = arg;
    if (x->put_back)
        return;
    char *slot = slot_of(x->controller, x->key);
    kl_lock(&t->mu);
    generation *g = generation_of(counted_of(t, x->controller, true), kl_run_generation(r));
    if (g) {
        g->runs++;
        g->errors += x->result == KL_RESULT_ERROR || x->result == KL_RESULT_FAIL;
    }
    failing *gone = NULL;
    if (fails(x->result))
        note(t, slot, x);
    else
        gone = kl_map_take(t->failing, slot);
    kl_unlock(&t->mu);
    if (gone)
        failing_free(gone);
    kl_free(slot);
}

static void on_gone(void *arg, const char *controller, const char *key)
{
    kl_tally *t = arg;
    char *slot = slot_of(controller, key);
    kl_lock(&t->mu);
    failing *gone = kl_map_take(t->failing, slot);
    kl_unlock(&t->mu);
    if (gone)
        failing_free(gone);
    kl_free(slot);
}

kl_witness kl_tally_witness(kl_tally *t)
{
    return (kl_witness){.asked = on_asked, .ended = on_ended, .gone = on_gone, .arg = t};
}

/* --- for people --------------------------------------------------------------------------- */

void kl_tally_generations(kl_tally *t, const char *controller, kl_builder *b)
{
    kl_lock(&t->mu);
    counted *c = counted_of(t, controller, false);
    for (size_t i = 0; c && i < KL_TALLY_GENERATIONS && c->of[i].number; i++) {
        kl_build_object(b);
        kl_build_kint(b, "generation", c->of[i].number);
        kl_build_kint(b, "runs", (int64_t)c->of[i].runs);
        kl_build_kint(b, "errors", (int64_t)c->of[i].errors);
        kl_build_kint(b, "writes", (int64_t)c->of[i].writes);
        kl_build_end(b);
    }
    kl_unlock(&t->mu);
}

static int by_next(const void *a, const void *b)
{
    const failing *x = *(failing *const *)a, *y = *(failing *const *)b;
    uint64_t xn = (uint64_t)x->next, yn = (uint64_t)y->next; /* -1, never, is last */
    int names = strcmp(x->controller, y->controller);
    return xn != yn ? (xn < yn ? -1 : 1) : names ? names : strcmp(x->key, y->key);
}

static const char *word(kl_result_kind k)
{
    return k == KL_RESULT_FAIL    ? "failed for good"
        : k == KL_RESULT_CONFLICT ? "conflict"
        : k == KL_RESULT_RETRY    ? "waits"
                                  : "error";
}

static void build(kl_builder *b, const failing *f, const char *cluster, kl_time now)
{
    char *name = kl_sprintf("%s%s%s", cluster ? cluster : "", cluster ? "/" : "", f->controller);
    kl_build_object(b);
    kl_build_kstr(b, "controller", name);
    kl_free(name);
    kl_build_kstr(b, "key", f->key);
    kl_build_kstr(b, "result", word(f->result));
    kl_build_kint(b, "attempt", f->attempt);
    kl_build_kstr(b, "message", f->message);
    if (f->next >= 0) {
        kl_build_key(b, "in");
        kl_build_double(b, f->next > now ? (double)(f->next - now) / 1e9 : 0);
    }
    kl_build_end(b);
}

size_t kl_tally_failing(kl_tally *t, const char *cluster, size_t most, kl_time now, kl_builder *b)
{
    kl_lock(&t->mu);
    size_t n = 0, it = 0;
    failing **v = kl_new_array(failing *, kl_map_len(t->failing) + 1);
    void *value;
    while (kl_map_next(t->failing, &it, NULL, &value))
        v[n++] = value;
    qsort(v, n, sizeof *v, by_next);
    for (size_t i = 0; i < n && i < most; i++)
        build(b, v[i], cluster, now);
    kl_unlock(&t->mu);
    kl_free(v);
    return n;
}
