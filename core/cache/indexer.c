/* indexer.c - objects by key and by named index.
 *
 *   objects: key -> entry {object, buckets it stands in}      index: name -> buckets: value -> bucket {entries}
 *
 * A bucket is an array of entries sorted by key, and one more bucket holds all of them, so that a snapshot is a copy. Lists
 * and most additions come in key order and are appended; anything else moves 8 bytes per entry behind it, which is cheap
 * beside decoding the object. The writer computes index values before it takes the lock; `generation` tells it that an
 * index came or went meanwhile, and then it computes them again. */
#include "cache/indexer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"
#include "model/path.h"

/* Objects measured for `bytes`: above this many the sum is an estimate from a sample, for measuring walks whole objects. */
#define BYTES_SAMPLE 128

typedef struct index index_;
typedef struct entry entry;

typedef struct bucket {
    index_ *of;                  /* NULL: of all objects */
    entry **v;                   /* sorted by key */
    size_t len, cap;
    char value[];
} bucket;

struct entry {
    const kl_value *object;
    bucket **in;                 /* n of them; the first is the one of all objects */
    uint32_t n;
    uint32_t seen;               /* the last kl_indexer_mark since which it was put or kept */
    char key[];
};

struct index {
    char *name;
    kl_path *path;               /* a path index; */
    kl_index_fn *fn;             /* or a function; neither: the namespace */
    void *arg;
    void (*free_arg)(void *);
    kl_map *buckets;             /* value -> bucket */
    int users;
    bool live;                   /* the writer keeps it */
    bool ready;                  /* it knows all objects: readers may use it */
};

struct kl_indexer {
    kl_mutex mu;
    /* under mu: */
    kl_map *objects;             /* key -> entry */
    bucket *all;
    index_ **indexes, **dropped;
    size_t n_indexes, n_dropped;
    _Atomic uint64_t generation; /* of `indexes` and their `live`; the writer looks at it without the lock */
    char *rv;                    /* never NULL */
    size_t rv_cap;
    /* the writer's: */
    uint32_t mark;
    index_ **live;               /* as of live_generation */
    size_t n_live;
    uint64_t live_generation;
    kl_buf text;                 /* the values that were emitted, one after the other with their NULs */
    struct emitted { index_ *index; size_t at; } *emitted;
    size_t n_emitted, cap_emitted;
};

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

/* --- indexes ------------------------------------------------------------------------------------------------------------------ */

static void bucket_free(void *p)
{
    bucket *b = p;
    kl_free(b->v);
    kl_free(b);
}

static void index_free(index_ *x)
{
    kl_map_free(x->buckets, bucket_free);
    kl_path_free(x->path);
    if (x->free_arg)
        x->free_arg(x->arg);
    kl_free(x->name);
    kl_free(x);
}

static void push(index_ ***v, size_t *n, index_ *x)
{
    *v = kl_realloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = x;
}

static index_ *index_find_locked(const kl_indexer *ix, const char *name) KL_REQUIRES(ix->mu)
{
    for (size_t i = 0; i < ix->n_indexes; i++)
        if (!strcmp(ix->indexes[i]->name, name))
            return ix->indexes[i];
    return NULL;
}

static index_ *index_add_locked(kl_indexer *ix, const char *name) KL_REQUIRES(ix->mu)
{
    index_ *x = kl_new(index_);
    x->name = kl_strdup(name);
    x->buckets = kl_map_new();
    x->users = 1;
    push(&ix->indexes, &ix->n_indexes, x);
    atomic_fetch_add(&ix->generation, 1);
    return x;
}

static void emit_scalar(const kl_value *v, kl_index_emit *emit, void *arg)
{
    kl_type t = kl_value_type(v);
    if (t == KL_STRING) {
        emit(arg, kl_value_str(v));
    } else if (v && t != KL_NULL && t != KL_ARRAY && t != KL_OBJECT) {
        char *text = kl_value_to_json(v);
        emit(arg, text);
        kl_free(text);
    }
}

static void index_compute(const index_ *x, const kl_value *o, kl_index_emit *emit, void *arg)
{
    if (x->fn) {
        x->fn(x->arg, o, emit, arg);
    } else if (x->path) {
        const kl_value *v = kl_path_get(x->path, o);
        emit_scalar(v, emit, arg);
        if (kl_value_type(v) == KL_ARRAY)
            for (size_t i = 0; i < kl_value_len(v); i++)
                emit_scalar(kl_value_item(v, i), emit, arg);
    } else {
        const char *ns = kl_object_namespace(o);
        if (ns)
            emit(arg, ns);
    }
}

/* --- entries in buckets --------------------------------------------------------------------------------------------------------- */

static bucket *bucket_new(index_ *of, const char *value)
{
    size_t n = strlen(value) + 1;
    bucket *b = kl_zalloc(sizeof *b + n);
    b->of = of;
    memcpy(b->value, value, n);
    return b;
}

/* Where `key` stands, or would. */
static size_t place_of(const bucket *b, const char *key)
{
    size_t from = 0, to = b->len;
    if (to && strcmp(b->v[to - 1]->key, key) < 0)
        return to;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (strcmp(b->v[mid]->key, key) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void forget_bucket(entry *e, const bucket *b)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (e->in[i] == b) {
            e->in[i] = e->in[--e->n];
            return;
        }
}

static void leave_locked(entry *e, bucket *b)
{
    size_t at = place_of(b, e->key);
    b->len--;
    memmove(&b->v[at], &b->v[at + 1], (b->len - at) * sizeof *b->v);
    forget_bucket(e, b);
    if (!b->len && b->of) {
        kl_map_take(b->of->buckets, b->value);
        bucket_free(b);
    }
}

static void enter_locked(entry *e, bucket *b)
{
    size_t at = place_of(b, e->key);
    if (b->len == b->cap)
        b->v = kl_realloc(b->v, (b->cap = b->cap ? 2 * b->cap : 1) * sizeof *b->v);
    memmove(&b->v[at + 1], &b->v[at], (b->len - at) * sizeof *b->v);
    b->v[at] = e;
    b->len++;
    e->in = kl_realloc(e->in, (e->n + 1) * sizeof *e->in);
    e->in[e->n++] = b;
}

static void join_locked(entry *e, index_ *x, const char *value)
{
    bucket *b = kl_map_get(x->buckets, value);
    if (!b)
        kl_map_set(x->buckets, value, b = bucket_new(x, value));
    for (uint32_t i = 0; i < e->n; i++)
        if (e->in[i] == b)
            return;
    enter_locked(e, b);
}

static entry *entry_new(const char *key)
{
    size_t n = strlen(key) + 1;
    entry *e = kl_zalloc(sizeof *e + n);
    memcpy(e->key, key, n);
    return e;
}

static void entry_free(void *p)
{
    entry *e = p;
    kl_value_unref(e->object);
    kl_free(e->in);
    kl_free(e);
}

kl_indexer *kl_indexer_new(void)
{
    kl_indexer *ix = kl_new(kl_indexer);
    kl_mutex_init(&ix->mu);
    ix->objects = kl_map_new();
    ix->all = bucket_new(NULL, "");
    ix->rv = kl_zalloc(ix->rv_cap = 32);
    kl_lock(&ix->mu);
    index_ *ns = index_add_locked(ix, KL_INDEX_NAMESPACE);
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
        index_free(ix->indexes[i]);
    bucket_free(ix->all);
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

typedef struct emit_to { kl_indexer *ix; index_ *index; } emit_to;

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

static bool emitted_has(const kl_indexer *ix, const bucket *b)
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
            index_compute(ix->live[i], o, collect, &(emit_to){ ix, ix->live[i] });
        kl_lock(&ix->mu);
        if (ix->live_generation == ix->generation)
            return;
        kl_unlock(&ix->mu);
    }
}

/* Out of everything but the bucket of all objects. */
static void detach_locked(kl_indexer *ix, entry *e) KL_REQUIRES(ix->mu)
{
    while (e->n > 1)
        leave_locked(e, e->in[e->n - 1]);
    kl_map_take(ix->objects, e->key);
}

static const kl_value *remove_key(kl_indexer *ix, const char *key)
{
    const kl_value *old = NULL;
    kl_lock(&ix->mu);
    entry *e = kl_map_get(ix->objects, key);
    if (e) {
        detach_locked(ix, e);
        leave_locked(e, ix->all);
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
    entry *e = kl_map_get(ix->objects, key);
    if (!e) {
        kl_map_set(ix->objects, key, e = entry_new(key));
        enter_locked(e, ix->all);
    }
    const kl_value *old = e->object;
    e->object = kl_value_ref(now);
    e->seen = ix->mark;
    for (uint32_t i = e->n; i-- > 1;)
        if (!emitted_has(ix, e->in[i]))
            leave_locked(e, e->in[i]);
    for (size_t i = 0; i < ix->n_emitted; i++)
        join_locked(e, ix->emitted[i].index, ix->text.data + ix->emitted[i].at);
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
    entry *e = kl_map_get(ix->objects, key);
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
    bucket *all = ix->all;
    entry **gone = kl_new_array(entry *, all->len + 1);
    for (size_t i = 0; i < all->len; i++) {
        entry *e = all->v[i];
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

/* --- adding and dropping indexes --------------------------------------------------------------------------------------------------- */

typedef struct known { char *key; const kl_value *object; } known;

static void collect_text(void *arg, const char *value)
{
    (void)!kl_buf_add(arg, value, strlen(value) + 1);
}

/* Enters every object into `x`, which is live: what is put from now on is entered by the writer, so only an object that is
 * still the one we looked at is ours to enter. */
static void index_build(kl_indexer *ix, index_ *x)
{
    size_t n;
    kl_lock(&ix->mu);
    known *all = kl_new_array(known, ix->all->len + 1);
    for (n = 0; n < ix->all->len; n++)
        all[n] = (known){ kl_strdup(ix->all->v[n]->key), kl_value_ref(ix->all->v[n]->object) };
    kl_unlock(&ix->mu);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        kl_buf_clear(&text);
        index_compute(x, all[i].object, collect_text, &text);
        kl_lock(&ix->mu);
        entry *here = kl_map_get(ix->objects, all[i].key);
        if (here && here->object == all[i].object)
            for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
                join_locked(here, x, text.data + at);
        kl_unlock(&ix->mu);
        kl_value_unref(all[i].object);
        kl_free(all[i].key);
    }
    kl_free(all);
    kl_buf_fini(&text);
    kl_lock(&ix->mu);
    x->ready = true;
    kl_unlock(&ix->mu);
}

static kl_status taken(const char *name, kl_err *err)
{
    return kl_fail(err, KL_EEXISTS, "index \"%s\" exists already with another definition: give one of the two another name", name);
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
    index_ *x = index_find_locked(ix, name);
    bool fresh = !x, same = x && x->path && !strcmp(kl_path_text(x->path), kl_path_text(p));
    if (fresh) {
        x = index_add_locked(ix, name);
        x->path = p;
        x->live = true;
    } else if (same) {
        x->users++;
    }
    kl_unlock(&ix->mu);
    if (fresh)
        index_build(ix, x);
    else
        kl_path_free(p);
    return fresh || same ? KL_OK : taken(name, err);
}

kl_status kl_indexer_reserve_fn(kl_indexer *ix, const char *name, kl_index_fn *fn, void *arg, void (*free_arg)(void *), bool *fresh, kl_err *err)
{
    kl_lock(&ix->mu);
    index_ *x = index_find_locked(ix, name);
    bool is_new = !x, same = x && x->fn == fn && x->arg == arg;
    if (is_new) {
        x = index_add_locked(ix, name);
        x->fn = fn;
        x->arg = arg;
        x->free_arg = free_arg;
    } else if (same) {
        x->users++;
    }
    kl_unlock(&ix->mu);
    if (!is_new && !same)
        return taken(name, err);
    *fresh = is_new;
    return KL_OK;
}

void kl_indexer_fill(kl_indexer *ix)
{
    for (;;) {
        index_ *x = NULL;
        kl_lock(&ix->mu);
        for (size_t i = 0; i < ix->n_indexes && !x; i++)
            if (!ix->indexes[i]->live)
                x = ix->indexes[i];
        if (x) {
            x->live = true;
            atomic_fetch_add(&ix->generation, 1);
        }
        kl_unlock(&ix->mu);
        if (!x)
            return;
        index_build(ix, x);
    }
}

bool kl_indexer_drop(kl_indexer *ix, const char *name)
{
    bool last = false;
    kl_lock(&ix->mu);
    index_ *x = index_find_locked(ix, name);
    if (x && (x->path || x->fn) && --x->users == 0) {
        for (size_t i = 0; i < ix->n_indexes; i++)
            if (ix->indexes[i] == x)
                ix->indexes[i--] = ix->indexes[--ix->n_indexes];
        atomic_fetch_add(&ix->generation, 1);
        push(&ix->dropped, &ix->n_dropped, x);
        last = true;
    }
    kl_unlock(&ix->mu);
    return last;
}

void kl_indexer_sweep(kl_indexer *ix)
{
    for (;;) {
        index_ *x = NULL;
        kl_lock(&ix->mu);
        if (ix->n_dropped) {
            x = ix->dropped[--ix->n_dropped];
            size_t it = 0;
            void *b;
            while (kl_map_next(x->buckets, &it, NULL, &b))
                for (bucket *in = b; in->len; in->len--)
                    forget_bucket(in->v[in->len - 1], in);
        }
        kl_unlock(&ix->mu);
        if (!x)
            return;
        index_free(x);
    }
}

/* --- readers ------------------------------------------------------------------------------------------------------------------------ */

const kl_value *kl_indexer_lookup(kl_indexer *ix, const char *key)
{
    kl_lock(&ix->mu);
    entry *e = kl_map_get(ix->objects, key);
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
    kl_status st = index_find_locked(ix, name)
        ? kl_fail(err, KL_EAGAIN, "index \"%s\" is still being built", name)
        : kl_fail(err, KL_ENOTFOUND, "there is no index \"%s\"; there are: %s", name, kl_buf_str(&have));
    kl_buf_fini(&have);
    return st;
}

/* References to the bucket's objects, in key order; `limit` 0: all. */
static void copy_locked(const bucket *b, size_t limit, kl_objects *out)
{
    size_t n = b ? (limit && limit < b->len ? limit : b->len) : 0;
    out->v = kl_new_array(const kl_value *, n + 1);
    for (out->len = 0; out->len < n; out->len++)
        out->v[out->len] = kl_value_ref(b->v[out->len]->object);
}

static kl_status snapshot_locked(kl_indexer *ix, const kl_query *q, size_t limit, kl_objects *out, kl_err *err) KL_REQUIRES(ix->mu)
{
    const bucket *b = ix->all;
    if (q->index || q->ns) {
        const char *name = q->index ? q->index : KL_INDEX_NAMESPACE;
        index_ *x = index_find_locked(ix, name);
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
