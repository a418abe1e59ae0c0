/* apply.c - the apply context: what the server said becomes the store, and handlers hear of the difference.
 *
 * The store changes first. A list replaces it whole: what was not listed goes, and handlers hear of deletes before the rest.
 * Equal objects wake nobody; a new uid under an old name is a delete and an add. */
#include "cache/informer_impl.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/object.h"

static bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static bool reborn(const kl_value *old, const kl_value *now)
{
    const char *a = kl_object_uid(old), *b = kl_object_uid(now);
    return a && b && strcmp(a, b);
}

/* Nobody needs to hear of it: the very value, or the same resourceVersion of the same incarnation. */
static bool unchanged(const kl_value *old, const kl_value *now)
{
    return old == now || (same_text(kl_object_rv(old), kl_object_rv(now)) && !reborn(old, now));
}

static void change_one(kl_informer *i, kl_event_type type, const kl_value *o)
{
    char key[KL_KEY_MAX];
    if (!kl_indexer_key(o, key))
        return;
    kl__handlers_refresh(i);
    if (type == KL_DELETED) {
        const kl_value *old = kl_indexer_put(i->indexer, key, NULL);
        kl_indexer_set_rv(i->indexer, kl_object_rv(o));
        if (old)                                  /* o is the last state, with the resourceVersion of the delete */
            kl__handlers_tell(i, KL_DELETED, o, NULL, 0);
        kl_value_unref(old);
        return;
    }
    const kl_value *before = kl_indexer_lookup(i->indexer, key);
    bool news = !before || !unchanged(before, o);
    kl_value_unref(before);
    if (news) {
        const kl_value *old = kl_indexer_put(i->indexer, key, o);
        kl_indexer_set_rv(i->indexer, kl_object_rv(o));
        if (old && reborn(old, o)) {
            kl__handlers_tell(i, KL_DELETED, old, NULL, 0);
            kl__handlers_tell(i, KL_ADDED, NULL, o, 0);
        } else {
            kl__handlers_tell(i, old ? KL_MODIFIED : KL_ADDED, old, o, 0);
        }
        kl_value_unref(old);
    }
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

typedef struct change { const kl_value *old, *now; } change;      /* references */
typedef struct changes { change *v; size_t len, cap; } changes;

static void changes_add(changes *c, const kl_value *old, const kl_value *now)
{
    if (c->len == c->cap)
        c->v = kl_realloc(c->v, (c->cap = c->cap ? 2 * c->cap : 16) * sizeof *c->v);
    c->v[c->len++] = (change){ old, now };
}

static void changes_tell(kl_informer *i, changes *c, unsigned flags)
{
    for (size_t k = 0; k < c->len; k++) {
        change *x = &c->v[k];
        kl__handlers_tell(i, !x->now ? KL_DELETED : x->old ? KL_MODIFIED : KL_ADDED, x->old, x->now, flags);
        kl_value_unref(x->old);
        kl_value_unref(x->now);
    }
    kl_free(c->v);
}

typedef struct keyed { const char *ns, *name; const kl_value *object; } keyed;

/* As strcmp of the keys would, which do not exist in one piece: the end of a namespace reads as '/'. */
static int by_key(const void *pa, const void *pb)
{
    const keyed *a = pa, *b = pb;
    const char *x = a->ns ? a->ns : "", *y = b->ns ? b->ns : "";
    if (x != y) {
        while (*x && *x == *y)
            x++, y++;
        unsigned char cx = *x ? (unsigned char)*x : '/', cy = *y ? (unsigned char)*y : '/';
        if (cx != cy)
            return cx < cy ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* Servers list in key order, which the indexer likes best; not all of them do. */
static void sort_page(const kl_value **page, size_t n)
{
    keyed *k = kl_new_array(keyed, n + 1);
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        k[i] = (keyed){ kl_object_namespace(page[i]), kl_object_name(page[i]), page[i] };
        sorted &= !i || by_key(&k[i - 1], &k[i]) < 0;
    }
    if (!sorted)
        qsort(k, n, sizeof *k, by_key);
    for (size_t i = 0; i < n && !sorted; i++)
        page[i] = k[i].object;
    kl_free(k);
}

/* The list is the whole truth: the store becomes it, then handlers hear of the difference, deletes first. */
static void change_all(kl_informer *i, const kl_value **page, size_t n, const char *rv)
{
    changes gone = {0}, rest = {0};
    kl_objects lost;
    char key[KL_KEY_MAX];
    sort_page(page, n);
    kl_indexer_mark(i->indexer);
    for (size_t k = 0; k < n; k++) {
        if (!kl_indexer_key(page[k], key))
            continue;
        const kl_value *before = kl_indexer_keep(i->indexer, key);
        if (!before || !unchanged(before, page[k])) {
            const kl_value *old = kl_indexer_put(i->indexer, key, page[k]);
            if (old && reborn(old, page[k])) {
                changes_add(&gone, old, NULL);
                old = NULL;
            }
            changes_add(&rest, old, kl_value_ref(page[k]));
        }
        kl_value_unref(before);
    }
    kl_indexer_take_unmarked(i->indexer, &lost);
    for (size_t k = 0; k < lost.len; k++)
        changes_add(&gone, lost.v[k], NULL);          /* takes the reference over */
    kl_free(lost.v);
    kl_indexer_set_rv(i->indexer, rv);
    bool first = !atomic_load(&i->synced);
    kl__handlers_refresh(i);
    changes_tell(i, &gone, KL_RELIST);
    changes_tell(i, &rest, first ? KL_INITIAL : KL_RELIST);
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
