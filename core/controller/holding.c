/* holding.c - which namespaces a wiring holds, which of them are covered, and the updates of the gate.
 *
 * The namespaces to divide come from the spec, from --namespace, or from a watch of Namespaces. A deleted
 * namespace is held until its last object is gone: otherwise the deletes would be missed. */
#include "controller/holding.h"

#include <string.h>

#include "base/mem.h"
#include "base/texts.h"
#include "model/object.h"
#include "controller/wiring_impl.h"

/* --- which there are ---------------------------------------------------------------------- */

static void spaces_event(
    void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)arg, (void)type, (void)old, (void)now, (void)flags; /* does nothing: a lull follows */
}

static void spaces_changed(void *arg)
{
    kl_wiring *w = arg;
    void (*changed)(void *), *changed_arg;
    kl_caches_notify(w->o.caches, &changed, &changed_arg);
    if (changed)
        kl_loop_post(w->o.loop, changed, changed_arg);
}

void kl__holding_begin(kl_wiring *w)
{
    if (w->o.divided && !w->logic.spec->namespaces && !kl_caches_namespace(w->o.caches))
        w->spaces.cache = kl_caches_acquire(w->o.caches, KL_NAMESPACE_KIND, &(kl_want){.metadata = true});
}

void kl__holding_retire(kl_wiring *w)
{
    if (w->spaces.sub)
        kl_informer_unsubscribe(w->spaces.sub);
    w->spaces.sub = NULL;
}

void kl__holding_end(kl_wiring *w)
{
    for (size_t i = 0; i < w->n_needs; i++)
        kl_cache_hold(w->needs[i].cache, w, NULL);
    kl_informer_unref(w->spaces.informer);
    if (w->spaces.cache)
        kl_cache_release(w->spaces.cache);
    kl_texts_free(w->held);
    kl_texts_free(w->awaited);
}

static char **listed_spaces(kl_informer *i)
{
    kl_objects all = {0};
    if (!i || kl_informer_list(i, &(kl_query){0}, &all, NULL))
        return kl_texts_set(NULL, 0);
    char **names = kl_new_array(char *, all.len + 1), **set;
    for (size_t k = 0; k < all.len; k++)
        names[k] = (char *)kl_object_name(all.v[k]);
    set = kl_texts_set(names, all.len);
    kl_free(names);
    kl_objects_fini(&all);
    return set;
}

static char **spaces_of(const kl_wiring *w)
{
    const char *only = kl_caches_namespace(w->o.caches);
    if (w->logic.spec->namespaces)
        return kl_texts_copy(w->logic.spec->namespaces);
    return only ? kl_texts_set(&(char *){(char *)only}, 1) : listed_spaces(w->spaces.informer);
}

/* --- what is held ------------------------------------------------------------------------- */

static bool is_empty(const kl_wiring *w, const char *ns)
{
    bool none = true;
    for (size_t i = 0; i < w->n_needs && none; i++) {
        kl_objects some = {0};
        if (!w->needs[i].informer || !w->needs[i].resource->namespaced
            || kl_informer_list(w->needs[i].informer, &(kl_query){.ns = ns, .limit = 1}, &some, NULL))
            continue;
        none = !some.len;
        kl_objects_fini(&some);
    }
    return none;
}

static char **to_be_held(const kl_wiring *w, const kl_claims *c, bool drained)
{
    bool known;
    char **spaces = spaces_of(w), **held = w->held;
    char **names = kl_new_array(char *, kl_texts_len(spaces) + kl_texts_len(held) + 1), **set;
    size_t n = 0;
    for (char **ns = spaces; *ns; ns++)
        if (kl_claims_want_namespace(c, *ns, &known))
            names[n++] = *ns;
    for (char **ns = held; ns && *ns; ns++)
        if (!drained
            || (kl_claims_want_namespace(c, *ns, &known) && !kl_texts_has(spaces, *ns) && !is_empty(w, *ns)))
            names[n++] = *ns;
    set = kl_texts_set(names, n);
    kl_free(names);
    kl_texts_free(spaces);
    return set;
}

/* Updates the held namespaces. drained: no run is in an unwanted namespace. */
static void hold(kl_wiring *w, const kl_claims *c, bool drained)
{
    bool known;
    (void)kl_claims_want_namespace(c, "", &known);
    if (!known || !w->o.divided)
        return;
    char **fresh = to_be_held(w, c, drained), **old = w->held;
    w->held = fresh;
    for (size_t i = 0; i < w->n_needs && !kl_texts_same(fresh, old); i++)
        kl_cache_hold(w->needs[i].cache, w, fresh);
    kl_texts_free(old);
}

/* --- what is covered ---------------------------------------------------------------------- */

/* The wiring's first kind that is not listed in the namespace; NULL: all are. */
static const kl_need *misses(const kl_wiring *w, const char *ns)
{
    for (size_t i = 0; i < w->n_needs; i++)
        if (!kl_cache_covers(w->needs[i].cache, ns))
            return &w->needs[i];
    return NULL;
}

static char **covered(const kl_wiring *w, kl_gate *also)
{
    char **names = kl_new_array(char *, kl_texts_len(w->held) + 1), **set;
    size_t n = 0;
    for (char **ns = w->held; ns && *ns; ns++)
        if (!misses(w, *ns) && (!also || kl_gate_covers(also, *ns)))
            names[n++] = *ns;
    set = kl_texts_set(names, n);
    kl_free(names);
    return set;
}

bool kl__holding_advance(kl_wiring *w)
{
    if (!w->o.divided)
        return true;
    if (w->needs[0].resource && !w->needs[0].resource->namespaced && !w->problem)
        w->problem = kl_sprintf("shard: caches = \"own\" divides objects by their namespaces, but %s are not "
                                "namespaced: leave `caches` out",
            w->needs[0].resource->plural);
    if (w->spaces.cache && !w->spaces.informer && kl_cache_informer(w->spaces.cache)) {
        w->spaces.informer = kl_informer_ref(kl_cache_informer(w->spaces.cache));
        w->spaces.sub = kl_informer_subscribe(
            w->spaces.informer, &(kl_handler){.on_event = spaces_event, .on_lull = spaces_changed, .arg = w});
    }
    bool ready = !w->spaces.cache || (w->spaces.informer && kl_informer_synced(w->spaces.informer));
    for (char **ns = w->awaited; ns && *ns; ns++)
        ready &= !misses(w, *ns);
    return ready;
}

char *kl__holding_why(const kl_wiring *w)
{
    kl_buf list = KL_BUF_INIT;
    const kl_need *first = NULL;
    if (w->spaces.cache && (!w->spaces.informer || !kl_informer_synced(w->spaces.informer)))
        return kl_sprintf("waiting for %s", kl_cache_kind(w->spaces.cache));
    for (char **ns = w->held; ns && *ns; ns++) {
        const kl_need *n = misses(w, *ns);
        if (n)
            kl_buf_printf(&list, "%s%s", list.len ? ", " : "", *ns);
        first = first ? first : n;
    }
    char *why = first ? kl_sprintf("waiting for %s of %s", kl_cache_kind(first->cache), kl_buf_str(&list))
                      : NULL;
    kl_buf_fini(&list);
    return why;
}

/* --- the gate ----------------------------------------------------------------------------- */

typedef struct arrival {
    const char *controller;
    kl_claims *claims;
    size_t n; /* keys */
} arrival;

static bool has_arrived(void *arg, const char *key)
{
    arrival *a = arg;
    bool ours = kl_claims_own(a->claims, a->controller, key);
    a->n += ours;
    return ours;
}

static char **not_covered_yet(char *const *names, kl_gate *g)
{
    char **news = kl_new_array(char *, kl_texts_len(names) + 1), **set;
    size_t n = 0;
    for (char *const *ns = names; *ns; ns++)
        if (kl_gate_covered(g) < 0 || !kl_gate_covers(g, *ns))
            news[n++] = *ns;
    set = kl_texts_set(news, n);
    kl_free(news);
    return set;
}

static void cover(kl_wiring *w, kl_gate *g)
{
    if (!w->o.divided) {
        kl_gate_cover(g, NULL);
        return;
    }
    char **names = covered(w, NULL), **news = not_covered_yet(names, g);
    arrival a = {.controller = kl_gate_controller(g), .claims = kl_gate_claims(g)};
    kl_gate_cover(g, names);
    for (char **ns = news; *ns; ns++)
        kl_wiring_enqueue_namespace(w, *ns, KL_WHY_LEADING, has_arrived, &a);
    kl_gate_moved(g, a.n);
    kl_claims_unref(a.claims);
    kl_texts_free(news);
    kl_texts_free(names);
}

/* Begins the gate: it covers no namespace of a divided wiring, and everything otherwise. */
void kl_holding_begin(kl_wiring *current, kl_gate *g)
{
    kl_gate_cover(g, current->o.divided ? (char *[]){NULL} : NULL);
}

/* Namespaces whose keys run now must be covered in the next one; a forbidden namespace does not block. */
static void await(kl_wiring *next, kl_gate *g)
{
    char **names = kl_new_array(char *, kl_texts_len(next->held) + 1);
    size_t n = 0;
    for (char **ns = next->held; ns && *ns; ns++)
        if (kl_gate_covers(g, *ns))
            names[n++] = *ns;
    kl_texts_free(next->awaited);
    next->awaited = kl_texts_set(names, n);
    kl_free(names);
}

void kl_holding_fit(kl_wiring *current, kl_wiring *next, kl_gate *g)
{
    if (!g)
        return;
    kl_claims *c = kl_gate_claims(g);
    if (current)
        hold(current, c, kl_gate_drained(g));
    if (next) {
        hold(next, c, true);
        await(next, g);
    }
    kl_claims_unref(c);
    if (current)
        cover(current, g);
}

void kl_holding_handover(kl_wiring *next, kl_gate *g)
{
    if (!g || !next->o.divided)
        return;
    char **both = covered(next, g);
    kl_gate_cover(g, both);
    kl_texts_free(both);
}
