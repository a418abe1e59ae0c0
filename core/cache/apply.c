/* apply.c - the apply context: what the server said becomes the store, and handlers hear of the difference.
 *
 * The store changes first. A list replaces it whole: what was not listed goes, and handlers hear of deletes before the rest.
 * Equal objects wake nobody; a new uid under an old name is a delete and an add. */
#include "cache/informer_impl.h"

#include "base/mem.h"
#include "model/object.h"

static void change_one(kl_informer *i, kl_event_type type, const kl_value *o)
{
    const kl_value *old;
    kl__handlers_refresh(i);
    if (type == KL_DELETED) {
        old = kl_indexer_remove(i->indexer, o, kl_object_rv(o));
        if (old)                                  /* o is the last state, with the resourceVersion of the delete */
            kl__handlers_tell(i, KL_DELETED, o, NULL, 0);
        kl_value_unref(old);
        return;
    }
    if (!kl_indexer_put(i->indexer, o, kl_object_rv(o), &old))
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
        change_one(i, j->type, j->object);
    kl_value_unref(j->object);
}

void kl__apply_rv(kl_informer *i, kl__job *j)
{
    kl_indexer_set_rv(i->indexer, j->rv);
}

static bool is_gone(const kl_change *x) { return x->old && (!x->now || kl_object_reborn(x->old, x->now)); }

/* The list is the whole truth: the store becomes it, then handlers hear of the difference, deletes first. */
static void change_all(kl_informer *i, const kl_value **page, size_t n, const char *rv)
{
    kl_changes c;
    kl_indexer_replace(i->indexer, page, n, rv, &c);
    unsigned flags = atomic_load(&i->synced) ? KL_RELIST : KL_INITIAL;
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
    atomic_store(&i->synced, true);
    kl__handlers_tell_synced(i);
}

void kl__apply_replace(kl_informer *i, kl__job *j)
{
    if (!i->stopped)
        change_all(i, j->page, j->n_page, j->rv);
    for (size_t k = 0; k < j->n_page; k++)
        kl_value_unref(j->page[k]);
    kl_free(j->page);
}
