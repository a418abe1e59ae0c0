/* indexer.c - objects by key and by named index.
 *
 *   objects: key -> entry {object, buckets it stands in}      index: name -> buckets: value -> bucket {entries}
 *
 * A bucket is an array of entries sorted by key, and one more bucket holds all of them, so that a snapshot is a copy. Lists
 * and most additions come in key order and are appended; anything else moves 8 bytes per entry behind it, which is cheap
 * beside decoding the object. The writer computes index values before it takes the lock; `generation` tells it that an
 * index came or went meanwhile, and then it computes them again. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/mem.h"
#include "model/object.h"

/* Objects measured for `bytes`: above this many the sum is an estimate from a sample, for measuring walks whole objects. */
#define BYTES_SAMPLE 128

bool kl_indexer_key(const kl_value *o, char out[KL_KEY_MAX])
{
    const kl_value *metadata = kl_value_get(o, "metadata");
    size_t n = 0, m = 0;
    const char *ns = kl_value_strn(kl_value_get(metadata, "namespace"), &n), *name = kl_value_strn(kl_value_get(metadata, "name"), &m);
    if (!name || !m || (ns && strlen(ns) != n) || strlen(name) != m)
        return false;
    if (n + m + 2 > KL_KEY_MAX)
        return false;
    if (n) {
        memcpy(out, ns, n);
        out[n++] = '/';
    }
    memcpy(out + n, name, m + 1);
    return true;
}

static kl__entry *entry_new(const char *key)
{
    size_t n = strlen(key) + 1;
    kl__entry *e = kl_zalloc(sizeof *e + n);
    memcpy(e->key, key, n);
    return e;
}

static void entry_free(void *p)
{
    kl__entry *e = p;
    kl_value_unref(e->object);
    kl_free(e->in);
    kl_free(e);
}

kl_indexer *kl_indexer_new(void)
{
    kl_indexer *ix = kl_new(kl_indexer);
    kl_mutex_init(&ix->mu);
    ix->objects = kl_map_new();
    ix->all = kl__bucket_new(NULL, "");
    ix->rv = kl_zalloc(ix->rv_cap = 32);
    kl_lock(&ix->mu);
    kl__index *ns = kl__index_add_locked(ix, KL_INDEX_NAMESPACE);
    ns->live = ns->ready = true;
    kl_unlock(&ix->mu);
    return ix;
}

void kl_indexer_free(kl_indexer *ix)
{
    if (!ix)
        return;
    kl_indexer_sweep(ix);
    kl_map_free(ix->objects, entry_free);
    for (size_t i = 0; i < ix->n_indexes; i++)
        kl__index_free(ix->indexes[i]);
    kl__bucket_free(ix->all);
    kl_free(ix->indexes);
    kl_free(ix->dropped);
    kl_free(ix->live);
    kl_free(ix->rv);
    kl_free(ix->emitted);
    kl_buf_fini(&ix->text);
    kl_mutex_fini(&ix->mu);
    kl_free(ix);
}

/* --- the writer ------------------------------------------------------------------------------------------------------------------ */

typedef struct emit_to { kl_indexer *ix; kl__index *index; } emit_to;

static void collect(void *arg, const char *value)
{
    emit_to *to = arg;
    kl_indexer *ix = to->ix;
    if (ix->n_emitted == ix->cap_emitted)
        ix->emitted = kl_realloc(ix->emitted, (ix->cap_emitted = ix->cap_emitted ? 2 * ix->cap_emitted : 8) * sizeof *ix->emitted);
    size_t at = ix->text.len;
    if (!kl_buf_add(&ix->text, value, strlen(value) + 1))
        ix->emitted[ix->n_emitted++] = (struct emitted){ to->index, at };
}

static bool emitted_has(const kl_indexer *ix, const kl__bucket *b)
{
    for (size_t i = 0; i < ix->n_emitted; i++)
        if (ix->emitted[i].index == b->of && !strcmp(ix->text.data + ix->emitted[i].at, b->value))
            return true;
    return false;
}

/* The indexes to keep up. A dropped one stays allocated until the writer sweeps. */
static void refresh_live(kl_indexer *ix)
{
    if (ix->live_generation == atomic_load_explicit(&ix->generation, memory_order_acquire))
        return;
    kl_lock(&ix->mu);
    ix->live = kl_realloc(ix->live, (ix->n_indexes + 1) * sizeof *ix->live);
    ix->n_live = 0;
    for (size_t i = 0; i < ix->n_indexes; i++)
        if (ix->indexes[i]->live)
            ix->live[ix->n_live++] = ix->indexes[i];
    ix->live_generation = ix->generation;
    kl_unlock(&ix->mu);
}

/* Index values of `o` for all live indexes, computed without the lock, which is held when this returns. */
static void compute_and_lock(kl_indexer *ix, const kl_value *o) KL_ACQUIRE(ix->mu)
{
    for (;;) {
        refresh_live(ix);
        ix->n_emitted = 0;
        kl_buf_clear(&ix->text);
        for (size_t i = 0; i < ix->n_live; i++)
            kl__index_compute(ix->live[i], o, collect, &(emit_to){ ix, ix->live[i] });
        kl_lock(&ix->mu);
        if (ix->live_generation == ix->generation)
            return;
        kl_unlock(&ix->mu);
    }
}

/* Out of everything but the bucket of all objects. */
static void detach_locked(kl_indexer *ix, kl__entry *e) KL_REQUIRES(ix->mu)
{
    while (e->n > 1)
        kl__bucket_leave_locked(e, e->in[e->n - 1]);
    kl_map_take(ix->objects, e->key);
}

static const kl_value *remove_key(kl_indexer *ix, const char *key)
{
    const kl_value *old = NULL;
    kl_lock(&ix->mu);
    kl__entry *e = kl_map_get(ix->objects, key);
    if (e) {
        detach_locked(ix, e);
        kl__bucket_leave_locked(e, ix->all);
    }
    kl_unlock(&ix->mu);
    if (e) {
        old = e->object;
        e->object = NULL;
        entry_free(e);
    }
    return old;
}

const kl_value *kl_indexer_put(kl_indexer *ix, const char *key, const kl_value *now)
{
    if (!now)
        return remove_key(ix, key);
    compute_and_lock(ix, now);
    kl__entry *e = kl_map_get(ix->objects, key);
    if (!e) {
        kl_map_set(ix->objects, key, e = entry_new(key));
        kl__bucket_enter_locked(e, ix->all);
    }
    const kl_value *old = e->object;
    e->object = kl_value_ref(now);
    e->seen = ix->mark;
    for (uint32_t i = e->n; i-- > 1;)
        if (!emitted_has(ix, e->in[i]))
            kl__bucket_leave_locked(e, e->in[i]);
    for (size_t i = 0; i < ix->n_emitted; i++)
        kl__index_join_locked(e, ix->emitted[i].index, ix->text.data + ix->emitted[i].at);
    kl_unlock(&ix->mu);
    return old;
}

void kl_indexer_mark(kl_indexer *ix)
{
    ix->mark++;
}

const kl_value *kl_indexer_keep(kl_indexer *ix, const char *key)
{
    kl_lock(&ix->mu);
    kl__entry *e = kl_map_get(ix->objects, key);
    const kl_value *o = e ? kl_value_ref(e->object) : NULL;
    if (e)
        e->seen = ix->mark;
    kl_unlock(&ix->mu);
    return o;
}

void kl_indexer_take_unmarked(kl_indexer *ix, kl_objects *out)
{
    size_t kept = 0, n = 0;
    *out = (kl_objects){0};
    kl_lock(&ix->mu);
    kl__bucket *all = ix->all;
    kl__entry **gone = kl_new_array(kl__entry *, all->len + 1);
    for (size_t i = 0; i < all->len; i++) {
        kl__entry *e = all->v[i];
        if (e->seen == ix->mark)
            all->v[kept++] = e;
        else
            gone[n++] = e;
    }
    all->len = kept;
    for (size_t i = 0; i < n; i++)
        detach_locked(ix, gone[i]);
    kl_unlock(&ix->mu);
    out->v = kl_new_array(const kl_value *, n + 1);
    for (; out->len < n; out->len++) {
        out->v[out->len] = gone[out->len]->object;
        gone[out->len]->object = NULL;
        entry_free(gone[out->len]);
    }
    kl_free(gone);
}

void kl_indexer_set_rv(kl_indexer *ix, const char *rv)
{
    if (!rv)
        return;
    size_t n = strlen(rv) + 1;
    kl_lock(&ix->mu);
    if (n > ix->rv_cap)
        ix->rv = kl_realloc(ix->rv, ix->rv_cap = n);
    memcpy(ix->rv, rv, n);
    kl_unlock(&ix->mu);
}

/* --- readers ------------------------------------------------------------------------------------------------------------------------ */

const kl_value *kl_indexer_lookup(kl_indexer *ix, const char *key)
{
    kl_lock(&ix->mu);
    kl__entry *e = kl_map_get(ix->objects, key);
    const kl_value *o = e ? kl_value_ref(e->object) : NULL;
    kl_unlock(&ix->mu);
    return o;
}

size_t kl_indexer_count(kl_indexer *ix)
{
    kl_lock(&ix->mu);
    size_t n = ix->all->len;
    kl_unlock(&ix->mu);
    return n;
}

char *kl_indexer_rv(kl_indexer *ix)
{
    kl_lock(&ix->mu);
    char *rv = kl_strdup(ix->rv);
    kl_unlock(&ix->mu);
    return rv;
}

uint64_t kl_indexer_bytes(kl_indexer *ix)
{
    const kl_value *sample[BYTES_SAMPLE];
    size_t n = 0;
    kl_lock(&ix->mu);
    size_t count = ix->all->len, step = count / BYTES_SAMPLE + 1;
    for (size_t i = 0; i < count; i += step)
        sample[n++] = kl_value_ref(ix->all->v[i]->object);
    kl_unlock(&ix->mu);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += kl_value_bytes(sample[i]);
        kl_value_unref(sample[i]);
    }
    return n ? (uint64_t)((double)sum / (double)n * (double)count) : 0;
}

static kl_status no_index_locked(const kl_indexer *ix, const char *name, kl_err *err) KL_REQUIRES(ix->mu)
{
    kl_buf have = KL_BUF_INIT;
    for (size_t i = 0; i < ix->n_indexes; i++)
        (void)!kl_buf_printf(&have, "%s%s", i ? ", " : "", ix->indexes[i]->name);
    kl_status st = kl__index_find_locked(ix, name)
        ? kl_fail(err, KL_EAGAIN, "index \"%s\" is still being built", name)
        : kl_fail(err, KL_ENOTFOUND, "there is no index \"%s\"; there are: %s", name, kl_buf_str(&have));
    kl_buf_fini(&have);
    return st;
}

/* References to the bucket's objects, in key order; `limit` 0: all. */
static void copy_locked(const kl__bucket *b, size_t limit, kl_objects *out)
{
    size_t n = b ? (limit && limit < b->len ? limit : b->len) : 0;
    out->v = kl_new_array(const kl_value *, n + 1);
    for (out->len = 0; out->len < n; out->len++)
        out->v[out->len] = kl_value_ref(b->v[out->len]->object);
}

static kl_status snapshot_locked(kl_indexer *ix, const kl_query *q, size_t limit, kl_objects *out, kl_err *err) KL_REQUIRES(ix->mu)
{
    const kl__bucket *b = ix->all;
    if (q->index || q->ns) {
        const char *name = q->index ? q->index : KL_INDEX_NAMESPACE;
        kl__index *x = kl__index_find_locked(ix, name);
        if (!x || !x->ready)
            return no_index_locked(ix, name, err);
        b = kl_map_get(x->buckets, q->index ? (q->value ? q->value : "") : q->ns);
    }
    copy_locked(b, limit, out);
    return KL_OK;
}

static bool wanted(const kl_query *q, const kl_value *o)
{
    if (q->index && q->ns) {
        const char *ns = kl_object_namespace(o);
        if (!ns || strcmp(ns, q->ns))
            return false;
    }
    return (!q->labels || kl_selector_matches(q->labels, kl_value_at(o, "metadata", "labels", NULL))) &&
           (!q->where || q->where(q->where_arg, o));
}

kl_status kl_indexer_list(kl_indexer *ix, const kl_query *q, kl_objects *out, kl_err *err)
{
    static const kl_query all;
    kl_objects found = {0};
    q = q ? q : &all;
    bool filtered = q->labels || q->where || (q->index && q->ns);
    kl_lock(&ix->mu);
    kl_status st = snapshot_locked(ix, q, filtered ? 0 : q->limit, &found, err);
    kl_unlock(&ix->mu);
    if (st)
        return st;
    if (filtered) {
        size_t n = found.len;
        found.len = 0;
        for (size_t i = 0; i < n; i++) {
            const kl_value *o = found.v[i];
            bool full = q->limit && found.len == q->limit;
            if (!full && wanted(q, o))
                found.v[found.len++] = o;
            else
                kl_value_unref(o);
        }
    }
    *out = found;
    return KL_OK;
}

void kl_objects_fini(kl_objects *o)
{
    for (size_t i = 0; i < o->len; i++)
        kl_value_unref(o->v[i]);
    kl_free(o->v);
    *o = (kl_objects){0};
}
