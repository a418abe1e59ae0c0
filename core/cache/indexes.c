/* indexes.c - indexes that come and go while readers read and the apply context writes.
 *
 *   add path:           live, in sight -> filled by the caller -> ready
 *   reserve function:   in sight -> fill, in pieces: live -> ready
 *   drop:               out of sight at once -> sweep (apply context): freed
 *
 * Writers maintain a live index, also while it is being filled. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/mem.h"

/* Objects or buckets processed per lock: a put may have to wait for so many. */
#define FILL_STEP 256u
#define SWEEP_STEP 4096u

/* --- the list of indexes ------------------------------------------------------------------ */

const struct kl__listed *kl__index_find(const kl__index_list *l, const char *name)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->v[i].index->name && !strcmp(l->v[i].index->name, name))
            return &l->v[i];
    return NULL;
}

const struct kl__listed *kl__index_find_label(const kl__index_list *l, const char *label)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->v[i].index->label && !strcmp(l->v[i].index->label, label))
            return &l->v[i];
    return NULL;
}

/* Publishes a new list: with `more` at its end (NULL: none), without the index at `less` (SIZE_MAX: none). */
static void relist_locked(kl_indexer *ix, kl__index *more, bool ready, size_t less) KL_REQUIRES(ix->mu)
{
    kl__index_list *old = ix->indexes;
    size_t n = old ? old->len : 0;
    kl__index_list *l = kl_zalloc(sizeof *l + (n + 1) * sizeof *l->v);
    for (size_t i = 0; i < n; i++)
        if (i != less)
            l->v[l->len++] = old->v[i];
    if (more)
        l->v[l->len++] = (struct kl__listed){more, ready};
    ix->indexes = l;
    kl__edit_drop(&ix->edit, old, 0);
}

static kl__index *index_new_locked(kl_indexer *ix, const char *name, bool ready) KL_REQUIRES(ix->mu)
{
    kl__index *x = kl_new(kl__index);
    x->name = kl_strdup(name);
    x->users = 1;
    x->id = ++ix->index_ids;
    relist_locked(ix, x, ready, SIZE_MAX);
    return x;
}

static size_t place_of_locked(const kl_indexer *ix, const kl__index *x) KL_REQUIRES(ix->mu)
{
    size_t i = 0;
    while (i < ix->indexes->len && ix->indexes->v[i].index != x)
        i++;
    return i;
}

static void set_ready(kl_indexer *ix, kl__index *x)
{
    kl_lock(&ix->mu);
    size_t at = place_of_locked(ix, x);
    if (at < ix->indexes->len && !ix->indexes->v[at].ready) {
        relist_locked(ix, x, true, at);
        kl__show_locked(ix);
    }
    kl_unlock(&ix->mu);
}

void kl__indexes_init_locked(kl_indexer *ix) { index_new_locked(ix, KL_INDEX_NAMESPACE, true); }

/* Frees what only writers use. Not under the lock: it may run a script's destructor. */
static void index_clear(kl__index *x)
{
    kl_path_free(x->path);
    if (x->free_arg)
        x->free_arg(x->arg);
    kl__index_forget(x);
}

/* Frees a cleared index, once no reader can see it. */
static void index_free(kl__index *x, kl__edit *e)
{
    kl__edit_drop(e, x->name, 0);
    kl__edit_drop(e, x->label, 0);
    kl__edit_drop(e, x, 0);
}

void kl__indexes_fini(kl_indexer *ix)
{
    for (uint32_t i = 0; i < ix->buckets.end; i++) {
        kl__bucket *b = kl__cells_get(&ix->buckets.cells, i);
        if (b)
            kl__set_drop(NULL, &b->set);
        kl_free(b);
    }
    for (size_t i = 0; i < ix->indexes->len; i++) {
        index_clear(ix->indexes->v[i].index);
        index_free(ix->indexes->v[i].index, &ix->edit);
    }
    kl_free(ix->indexes);
    kl_free(ix->dropped);
}

/* --- adding ------------------------------------------------------------------------------- */

/* Enters the existing objects, some at a time; concurrent puts enter theirs. */
static void fill_parts(kl_indexer *ix, kl__index *x)
{
    uint32_t end = 1;
    for (uint32_t from = 0; from < end; from += FILL_STEP) {
        kl_lock(&ix->mu);
        end = ix->objects.end;
        for (uint32_t i = from; i < end && i < from + FILL_STEP; i++) {
            const kl_value *o = kl__cells_get(&ix->objects.cells, i);
            ix->was.len = ix->will.len = 0;
            if (o)
                kl__index_part_locked(ix, x, i, NULL, o, false);
        }
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
    set_ready(ix, x);
}

static kl_status taken(const char *name, kl_err *err)
{
    return kl_fail(err, KL_EEXISTS,
        "index \"%s\" exists already with another definition: give one of the two another name", name);
}

kl_status kl_indexer_add_path(kl_indexer *ix, const char *name, const char *path, kl_err *err)
{
    kl_path *p = NULL;
    kl_status st = kl_path_parse(path, &p, err);
    if (st) {
        kl_err_prefix(err, "index \"%s\"", name);
        return st;
    }
    kl_lock(&ix->mu);
    const struct kl__listed *l = kl__index_find(ix->indexes, name);
    kl__index *x = l ? l->index : NULL;
    bool fresh = !x, same = x && x->path && !strcmp(kl_path_text(x->path), kl_path_text(p)),
         ready = l && l->ready;
    if (fresh) {
        x = index_new_locked(ix, name, false);
        x->path = p;
        x->live = true;
        kl__show_locked(ix);
    } else if (same) {
        x->users++;
    }
    kl_unlock(&ix->mu);
    if ((fresh || same) && !ready) /* the first caller may still be filling: then two fill */
        fill_parts(ix, x);
    if (!fresh)
        kl_path_free(p);
    return fresh || same ? KL_OK : taken(name, err);
}

void kl__index_label(kl_indexer *ix, const char *label)
{
    kl_lock(&ix->mu);
    kl__index *x = NULL;
    if (!kl__index_find_label(ix->indexes, label)) {
        x = index_new_locked(ix, NULL, false);
        x->label = kl_strdup(label);
        x->live = true;
        kl__show_locked(ix);
    }
    kl_unlock(&ix->mu);
    if (x)
        fill_parts(ix, x);
}

kl_status kl_indexer_reserve_fn(kl_indexer *ix, const char *name, kl_index_fn *fn, void *arg,
    void (*free_arg)(void *), bool *fresh, kl_err *err)
{
    kl_lock(&ix->mu);
    const struct kl__listed *l = kl__index_find(ix->indexes, name);
    kl__index *x = l ? l->index : NULL;
    bool is_new = !x, same = x && x->fn == fn && x->arg == arg;
    if (is_new) {
        x = index_new_locked(ix, name, false);
        x->fn = fn;
        x->arg = arg;
        x->free_arg = free_arg;
        kl__show_locked(ix);
    } else if (same) {
        x->users++;
    }
    kl_unlock(&ix->mu);
    if (!is_new && !same)
        return taken(name, err);
    *fresh = is_new;
    return KL_OK;
}

/* Enters some objects, at most until it is enough, without the lock around the function. The index may be
 * dropped meanwhile. True: all are in it. */
static bool fill_fn(kl_indexer *ix, kl__index *x, bool (*enough)(void *arg), void *arg)
{
    kl__sayings said = {0};
    size_t upto[FILL_STEP];
    const kl_value *o[FILL_STEP];
    uint32_t n = 0, asked = 0;
    bool all, stop = false;
    kl_lock(&ix->mu);
    for (; n < FILL_STEP && x->filled + n < ix->objects.end; n++)
        o[n] = kl__cells_get(&ix->objects.cells, x->filled + n);
    kl_unlock(&ix->mu);
    for (; asked < n && !stop; asked++) {
        if (o[asked]) {
            kl__say(&said, x, o[asked]);
            stop = enough(arg);
        }
        upto[asked] = said.len;
    }
    kl_lock(&ix->mu);
    for (uint32_t i = 0; i < asked; i++) {
        ix->was.len = ix->will.len = 0;
        if (o[i])
            kl__index_fn_locked(ix, x, x->filled + i, o[i], &said, i ? upto[i - 1] : 0, upto[i]);
    }
    x->filled += asked;
    all = x->filled >= ix->objects.end;
    kl__show_locked(ix);
    kl_unlock(&ix->mu);
    kl__sayings_fini(&said);
    return all;
}

/* A function index that is not ready, and is live from now on; NULL: there is none. */
static kl__index *unfilled(kl_indexer *ix)
{
    kl__index *x = NULL;
    kl_lock(&ix->mu);
    for (size_t i = 0; i < ix->indexes->len && !x; i++)
        if (ix->indexes->v[i].index->fn && !ix->indexes->v[i].ready)
            x = ix->indexes->v[i].index;
    if (x && !x->live) {
        x->live = true;
        atomic_fetch_add(&ix->generation, 1);
    }
    kl_unlock(&ix->mu);
    return x;
}

bool kl_indexer_fill(kl_indexer *ix, bool (*enough)(void *arg), void *arg)
{
    for (kl__index *x; (x = unfilled(ix));)
        if (fill_fn(ix, x, enough, arg))
            set_ready(ix, x);
        else if (enough(arg))
            return false;
    return true;
}

/* --- dropping ----------------------------------------------------------------------------- */

bool kl_indexer_drop(kl_indexer *ix, const char *name)
{
    bool last = false;
    kl_lock(&ix->mu);
    const struct kl__listed *l = kl__index_find(ix->indexes, name);
    kl__index *x = l ? l->index : NULL;
    if (x && (x->path || x->fn) && --x->users == 0) {
        relist_locked(ix, NULL, false, place_of_locked(ix, x));
        atomic_fetch_add(&ix->generation, 1);
        ix->dropped = kl_realloc(ix->dropped, (ix->n_dropped + 1) * sizeof *ix->dropped);
        ix->dropped[ix->n_dropped++] = x;
        kl__show_locked(ix);
        last = true;
    }
    kl_unlock(&ix->mu);
    return last;
}

/* Frees the buckets of dropped indexes, some per lock: no object enters them any more. */
static void drop_buckets(kl_indexer *ix)
{
    uint32_t end = 1;
    for (uint32_t from = 0; from < end; from += SWEEP_STEP) {
        kl_lock(&ix->mu);
        end = ix->buckets.end;
        for (uint32_t i = from; i < end && i < from + SWEEP_STEP; i++) {
            kl__bucket *b = kl__cells_get(&ix->buckets.cells, i);
            if (b && b->of->swept)
                kl__bucket_remove_locked(ix, i, b);
        }
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
}

void kl_indexer_sweep(kl_indexer *ix)
{
    kl_lock(&ix->mu);
    kl__index **x = ix->dropped;
    size_t n = ix->n_dropped;
    ix->dropped = NULL;
    ix->n_dropped = 0;
    for (size_t i = 0; i < n; i++)
        x[i]->swept = true;
    kl_unlock(&ix->mu);
    if (n)
        drop_buckets(ix);
    for (size_t i = 0; i < n; i++) {
        index_clear(x[i]);
        kl_lock(&ix->mu);
        index_free(x[i], &ix->edit);
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
    kl_free(x);
}
