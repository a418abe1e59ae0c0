/* gate.c - the runs under way are few (concurrency times workers), so they are a list of keys. */
#include "sharding/gate.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "base/texts.h"

struct kl_gate {
    char *controller;
    void (*drained)(void *arg);
    void *arg;
    atomic_uint_fast64_t moves;
    kl_mutex mu;
    kl_claims *claims KL_GUARDED_BY(mu);
    const char **inside KL_GUARDED_BY(mu);
    size_t n KL_GUARDED_BY(mu), room KL_GUARDED_BY(mu);
    bool waits KL_GUARDED_BY(mu);     /* a run is inside whose key we no longer want */
    char **covered KL_GUARDED_BY(mu); /* sorted; NULL: no matter where */
    size_t n_covered KL_GUARDED_BY(mu);
};

kl_gate *kl_gate_new(const char *controller, void (*drained)(void *arg), void *arg)
{
    kl_gate *g = kl_new(kl_gate);
    g->controller = kl_strdup(controller);
    g->drained = drained;
    g->arg = arg;
    kl_mutex_init(&g->mu);
    return g;
}

void kl_gate_free(kl_gate *g)
{
    if (!g)
        return;
    kl_claims_unref(g->claims);
    kl_texts_free(g->covered);
    kl_mutex_fini(&g->mu);
    kl_free(g->inside);
    kl_free(g->controller);
    kl_free(g);
}

void kl_gate_moved(kl_gate *g, uint64_t keys) { atomic_fetch_add(&g->moves, keys); }
uint64_t kl_gate_moves(kl_gate *g) { return atomic_load(&g->moves); }
const char *kl_gate_controller(const kl_gate *g) { return g->controller; }

static bool unwanted_locked(const kl_gate *g) KL_REQUIRES(g->mu)
{
    for (size_t i = 0; i < g->n; i++)
        if (!kl_claims_want(g->claims, g->controller, g->inside[i]))
            return true;
    return false;
}

bool kl_gate_set(kl_gate *g, kl_claims *c)
{
    kl_lock(&g->mu);
    kl_claims *old = g->claims;
    g->claims = kl_claims_ref(c);
    bool waits = g->waits = unwanted_locked(g);
    kl_unlock(&g->mu);
    kl_claims_unref(old);
    return !waits;
}

bool kl_gate_drained(kl_gate *g)
{
    kl_lock(&g->mu);
    bool waits = g->waits;
    kl_unlock(&g->mu);
    return !waits;
}

kl_claims *kl_gate_claims(kl_gate *g)
{
    kl_lock(&g->mu);
    kl_claims *c = kl_claims_ref(g->claims);
    kl_unlock(&g->mu);
    return c;
}

/* --- what the caches hold ----------------------------------------------------------------- */

void kl_gate_cover(kl_gate *g, char *const *namespaces)
{
    char **fresh = namespaces ? kl_texts_copy(namespaces) : NULL;
    kl_lock(&g->mu);
    char **old = g->covered;
    g->covered = fresh;
    g->n_covered = kl_texts_len(fresh);
    kl_unlock(&g->mu);
    kl_texts_free(old);
}

static bool covers_locked(const kl_gate *g, const char *ns, size_t n) KL_REQUIRES(g->mu)
{
    bool found;
    kl_texts_find(g->covered, g->n_covered, ns, n, &found);
    return found || !g->covered;
}

/* Whether the caches cover a key. A key without a namespace belongs to no part. */
static bool runs_locked(const kl_gate *g, const char *key) KL_REQUIRES(g->mu)
{
    const char *slash = g->covered ? strchr(key, '/') : NULL;
    return !slash || covers_locked(g, key, (size_t)(slash - key));
}

bool kl_gate_covers(kl_gate *g, const char *ns)
{
    kl_lock(&g->mu);
    bool yes = covers_locked(g, ns, strlen(ns));
    kl_unlock(&g->mu);
    return yes;
}

bool kl_gate_covers_key(kl_gate *g, const char *key)
{
    kl_lock(&g->mu);
    bool yes = runs_locked(g, key);
    kl_unlock(&g->mu);
    return yes;
}

int kl_gate_covered(kl_gate *g)
{
    kl_lock(&g->mu);
    int n = g->covered ? (int)g->n_covered : -1;
    kl_unlock(&g->mu);
    return n;
}

/* --- whose turn it is --------------------------------------------------------------------- */

bool kl_gate_owns(kl_gate *g, const char *key)
{
    kl_lock(&g->mu);
    kl_claims *c = runs_locked(g, key) ? kl_claims_ref(g->claims) : NULL;
    kl_unlock(&g->mu);
    bool yes = kl_claims_own(c, g->controller, key);
    kl_claims_unref(c);
    return yes;
}

bool kl_gate_enter(kl_gate *g, const char *key)
{
    kl_lock(&g->mu);
    bool yes = runs_locked(g, key) && kl_claims_own(g->claims, g->controller, key);
    if (yes && g->n == g->room) {
        g->room = g->room ? g->room * 2 : 8;
        g->inside = kl_realloc(g->inside, g->room * sizeof *g->inside);
    }
    if (yes)
        g->inside[g->n++] = key;
    kl_unlock(&g->mu);
    return yes;
}

void kl_gate_leave(kl_gate *g, const char *key)
{
    kl_lock(&g->mu);
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->inside[i], key)) {
            g->inside[i] = g->inside[--g->n];
            break;
        }
    bool over = g->waits && !unwanted_locked(g);
    g->waits = g->waits && !over;
    kl_unlock(&g->mu);
    if (over)
        g->drained(g->arg);
}
