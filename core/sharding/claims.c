/* claims.c - a key is ours when every publication of our own that others may still go by gives it to us,
 * and no other's does.
 *
 * While all agree, one look at one ring answers: who has the same ring and cuts by the same cannot have
 * the same key. */
#include "sharding/claims.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

struct kl_claims {
    atomic_int refs;
    kl_publication *own, *others;
    size_t n_own, n_others;
};

static kl_publication *copies(const kl_publication *p, size_t n)
{
    kl_publication *out = kl_new_array(kl_publication, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = (kl_publication){kl_ring_ref(p[i].ring), p[i].me, kl_value_ref(p[i].controllers)};
    return out;
}

static void drop(kl_publication *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kl_ring_unref(p[i].ring);
        kl_value_unref(p[i].controllers);
    }
    kl_free(p);
}

kl_claims *kl_claims_new(
    const kl_publication *own, size_t n_own, const kl_publication *others, size_t n_others)
{
    kl_claims *c = kl_new(kl_claims);
    atomic_init(&c->refs, 1);
    c->own = copies(own, n_own);
    c->others = copies(others, n_others);
    c->n_own = n_own;
    c->n_others = n_others;
    return c;
}

kl_claims *kl_claims_ref(kl_claims *c)
{
    if (c)
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void kl_claims_unref(kl_claims *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    drop(c->own, c->n_own);
    drop(c->others, c->n_others);
    kl_free(c);
}

/* The point of a key on the ring: of its namespace, if the controller is cut by namespaces. A key without one
 * stands for itself. */
static uint64_t point(const char *mode, const char *key)
{
    const char *slash = strcmp(mode, "namespace") ? NULL : strchr(key, '/');
    return kl_ring_point(key, slash ? (size_t)(slash - key) : strlen(key));
}

static const char *mode_of(const kl_publication *p, const char *controller)
{
    return kl_value_str(kl_value_get(p->controllers, controller));
}

bool kl_publication_has(const kl_publication *p, const char *controller, const char *key)
{
    if (!p->ring)
        return true;
    const char *mode = mode_of(p, controller);
    return mode && p->me != KL_RING_NOBODY && kl_ring_owner(p->ring, point(mode, key)) == p->me;
}

/* Whether b cannot have a key that a has. */
static bool agree(const kl_publication *a, const kl_publication *b, const char *controller)
{
    const char *x = mode_of(a, controller), *y = mode_of(b, controller);
    return a->ring == b->ring && a->me != b->me && x && (!y || !strcmp(x, y));
}

bool kl_claims_own(const kl_claims *c, const char *controller, const char *key)
{
    if (!c || !c->n_own)
        return false;
    for (size_t i = 0; i < c->n_own; i++)
        if (!kl_publication_has(&c->own[i], controller, key))
            return false;
    for (size_t i = 0; i < c->n_others; i++)
        if (!agree(&c->own[0], &c->others[i], controller)
            && kl_publication_has(&c->others[i], controller, key))
            return false;
    return true;
}

bool kl_claims_want(const kl_claims *c, const char *controller, const char *key)
{
    return c && c->n_own && kl_publication_has(&c->own[c->n_own - 1], controller, key);
}

bool kl_claims_want_namespace(const kl_claims *c, const char *ns, bool *known)
{
    const kl_publication *p = c && c->n_own ? &c->own[c->n_own - 1] : NULL;
    *known = p;
    return p && p->me != KL_RING_NOBODY && kl_ring_owner(p->ring, kl_ring_point(ns, strlen(ns))) == p->me;
}

double kl_claims_share(const kl_claims *c, const char *controller)
{
    const kl_publication *p = c && c->n_own ? &c->own[c->n_own - 1] : NULL;
    return p && mode_of(p, controller) && p->me != KL_RING_NOBODY ? kl_ring_share(p->ring, p->me) : 0;
}

const char *kl_claims_mode(const kl_claims *c, const char *controller)
{
    return c && c->n_own ? mode_of(&c->own[c->n_own - 1], controller) : NULL;
}
