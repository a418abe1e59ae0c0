/* apply.c - the apply context: writes the server's state into the store, and calls handlers with the
 * differences.
 *
 * The store changes first. A list replaces it as a whole: unlisted objects are removed, and handlers get
 * deletes before the rest. Equal objects wake nobody; a new uid under an old name is a delete and an add. */
#include "cache/informer_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"

/* The part has reached rv. Returns the store's version, which is that of its slowest part; NULL:
 * unchanged. */
static const char *reached(kl__follower *f, const char *rv)
{
    kl_informer *i = f->i;
    if (kl_informer_parts(i) == 1 || !rv)
        return rv;
    kl_free(f->reached);
    f->reached = kl_strdup(rv);
    if (i->least && i->least != f) /* the slowest part has not moved */
        return NULL;
    i->least = f;
    bool ok = true;
    kl_lock(&i->mu);
    for (size_t k = 0; i->least->reached && k < i->n_parts; k++) {
        const kl__follower *p = i->parts[k];
        if (!p->reached || kl_rv_compare(p->reached, i->least->reached, &ok) < 0)
            i->least = p;
    }
    kl_unlock(&i->mu);
    return i->least->reached;
}

/* The store now shows the state at rv. */
static void shown(kl__follower *f, const char *rv)
{
    uint64_t n = kl_rv_number(rv);
    if (n)
        atomic_store(&f->seen, n);
    f->i->moved = true;
}

/* A repeated or reordered frame would roll the object back. Versions are compared where they are numbers, as
 * Kubernetes allows, and within one incarnation of the object; after a restore the server sends a new list,
 * which is accepted as it is. (client-go does not compare.) */
static bool is_stale(kl_informer *i, const kl_value *o)
{
    char key[KL_KEY_MAX];
    const kl_value *have = kl_indexer_key(o, key) ? kl_indexer_lookup(i->indexer, key) : NULL;
    bool numbers = true;
    bool stale = have && !kl_object_reborn(have, o)
        && kl_rv_compare(kl_object_rv(o), kl_object_rv(have), &numbers) < 0 && numbers;
    if (stale)
        kl_warn("an event older than the cached object was skipped", "resource=%s key=%s rv=%s known=%s",
            i->resource, key, kl_object_rv(o), kl_object_rv(have));
    kl_value_unref(have);
    return stale;
}

static void change_one(kl__follower *f, kl_event_type type, const kl_value *o)
{
    kl_informer *i = f->i;
    const kl_value *old;
    if (is_stale(i, o))
        return;
    const char *rv = reached(f, kl_object_rv(o));
    kl__handlers_refresh(i);
    if (type == KL_DELETED) {
        old = kl_indexer_remove(i->indexer, o, rv);
        shown(f, kl_object_rv(o));
        /* o is the last state, with the resourceVersion of the delete */
        if (old)
            kl__handlers_tell(i, KL_DELETED, o, NULL, 0);
        kl_value_unref(old);
        return;
    }
    bool news = kl_indexer_put(i->indexer, o, rv, &old);
    shown(f, kl_object_rv(o));
    if (!news)
        return;
    if (old && kl_object_reborn(old, o)) {
        kl__handlers_tell(i, KL_DELETED, old, NULL, 0);
        kl__handlers_tell(i, KL_ADDED, NULL, o, 0);
    } else {
        kl__handlers_tell(i, old ? KL_MODIFIED : KL_ADDED, old, o, 0);
    }
    kl_value_unref(old);
}

void kl__apply_event(kl_informer *i, kl__job *j)
{
    if (!i->stopped)
        change_one(j->from, j->type, j->object);
    kl_value_unref(j->object);
}

void kl__apply_rv(kl_informer *i, kl__job *j)
{
    kl_indexer_set_rv(i->indexer, reached(j->from, j->rv));
    shown(j->from, j->rv);
}

static bool is_gone(const kl_change *x) { return x->old && (!x->now || kl_object_reborn(x->old, x->now)); }

/* Whether every part was listed, for an informer whose parts do not change. */
static bool all_listed(const kl_informer *i)
{
    for (size_t k = 0; k < i->n_parts; k++)
        if (!atomic_load(&i->parts[k]->listed))
            return false;
    return true;
}

static void tell_listed(kl__follower *f, bool first)
{
    kl_informer *i = f->i;
    if (i->changing && first && i->on_part)
        i->on_part(i->part_arg);
    if (i->changing || !all_listed(i))
        return;
    atomic_store(&i->synced, true);
    kl__handlers_tell_synced(i);
}

/* The list is the complete state of its part: it replaces the store, then handlers get the differences,
 * deletes first. */
static void change_all(kl__follower *f, const kl_value **page, size_t n, const char *rv)
{
    kl_informer *i = f->i;
    kl_changes c;
    kl_indexer_replace_namespace(
        i->indexer, kl_informer_parts(i) == 1 ? NULL : f->ns, page, n, reached(f, rv), &c);
    shown(f, rv);
    bool first = !atomic_load(&f->listed);
    unsigned flags = first ? KL_INITIAL : KL_RELIST;
    kl__handlers_refresh(i);
    for (size_t k = 0; k < c.len; k++)
        if (is_gone(&c.v[k]))
            kl__handlers_tell(i, KL_DELETED, c.v[k].old, NULL, KL_RELIST);
    for (size_t k = 0; k < c.len; k++)
        if (c.v[k].now) {
            const kl_value *old = is_gone(&c.v[k]) ? NULL : c.v[k].old;
            kl__handlers_tell(i, old ? KL_MODIFIED : KL_ADDED, old, c.v[k].now, flags);
        }
    kl_changes_fini(&c);
    atomic_store(&f->listed, true);
    tell_listed(f, first);
}

void kl__apply_replace(kl_informer *i, kl__job *j)
{
    if (!i->stopped)
        change_all(j->from, j->page, j->n_page, j->rv);
    for (size_t k = 0; k < j->n_page; k++)
        kl_value_unref(j->page[k]);
    kl_free(j->page);
}

void kl__apply_nothing(kl_informer *i, kl__job *j)
{
    if (!i->stopped && atomic_load(&j->from->listed))
        change_all(j->from, NULL, 0, NULL);
}

/* Removes the part's objects without calling handlers, and releases those that wait for the part. */
void kl__apply_forget(kl_informer *i, kl__job *j)
{
    kl_changes c;
    kl_indexer_replace_namespace(i->indexer, j->from->ns, NULL, 0, NULL, &c);
    kl_changes_fini(&c);
    if (i->least == j->from)
        i->least = NULL;
    i->moved = true;
    kl__follower_free(j->from);
}
