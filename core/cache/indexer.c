/* indexer.c - objects by key and by named index.
 *
 *   objects: key -> entry {object, members}          index: name -> buckets: value -> bucket {entries}
 *
 * A member says in which bucket an entry stands and where, so that leaving one costs O(1). The writer computes index values
 * before it takes the lock; `generation` tells it that an index came or went meanwhile, and then it computes them again. */
#include "cache/indexer.h"

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
    index_ *of;
    entry **v;
    size_t len, cap;
    char value[];
} bucket;

typedef struct member { bucket *in; size_t at; } member;

struct entry {
    const kl_value *object;
    member *members;
    size_t n;
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
    index_ **indexes, **dropped;
    size_t n_indexes, n_dropped;
    uint64_t generation;         /* of `indexes` and their `live` */
    char *rv;                    /* never NULL */
    size_t rv_cap;
    /* the writer's: */
    kl_buf text;                 /* the values that were emitted, one after the other with their NULs */
    struct emitted { index_ *index; size_t at; } *emitted;
    size_t n_emitted, cap_emitted;
};

bool kl_indexer_key(const kl_value *o, char out[KL_KEY_MAX])
{
    const char *ns = kl_object_namespace(o), *name = kl_object_name(o);
    if (!name || !*name)
        return false;
    size_t n = ns ? strlen(ns) : 0, m = strlen(name);
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
    ix->generation++;
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

static void leave_locked(entry *e, size_t i)
{
    bucket *b = e->members[i].in;
    size_t at = e->members[i].at;
    entry *last = b->v[--b->len];
    if (last != e) {
        b->v[at] = last;
        for (size_t k = 0; k < last->n; k++)
            if (last->members[k].in == b)
                last->members[k].at = at;
    }
    e->members[i] = e->members[--e->n];
    if (!b->len) {
        kl_map_take(b->of->buckets, b->value);
        bucket_free(b);
    }
}

static void join_locked(entry *e, index_ *x, const char *value)
{
    bucket *b = kl_map_get(x->buckets, value);
    if (!b) {
        size_t n = strlen(value) + 1;
        b = kl_zalloc(sizeof *b + n);
        b->of = x;
        memcpy(b->value, value, n);
        kl_map_set(x->buckets, value, b);
    }
    for (size_t i = 0; i < e->n; i++)
        if (e->members[i].in == b)
            return;
    if (b->len == b->cap)
        b->v = kl_realloc(b->v, (b->cap = b->cap ? 2 * b->cap : 1) * sizeof *b->v);
    b->v[b->len] = e;
    e->members = kl_realloc(e->members, (e->n + 1) * sizeof *e->members);
    e->members[e->n++] = (member){ b, b->len++ };
}

static void entry_free(void *p)
{
    entry *e = p;
    kl_value_unref(e->object);
    kl_free(e->members);
    kl_free(e);
}

kl_indexer *kl_indexer_new(void)
{
    kl_indexer *ix = kl_new(kl_indexer);
    kl_mutex_init(&ix->mu);
    ix->objects = kl_map_new();
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
    kl_free(ix->indexes);
    kl_free(ix->dropped);
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

/* Index values of `o` for all live indexes, computed without the lock, which is held when this returns. */
static void compute_and_lock(kl_indexer *ix, const kl_value *o) KL_ACQUIRE(ix->mu)
{
    kl_lock(&ix->mu);
    for (bool stale = o != NULL; stale;) {
        size_t n = ix->n_indexes;
        uint64_t generation = ix->generation;
        index_ **live = kl_new_array(index_ *, n);
        for (size_t i = 0; i < n; i++)
            live[i] = ix->indexes[i]->live ? ix->indexes[i] : NULL;
        kl_unlock(&ix->mu);
        ix->n_emitted = 0;
        kl_buf_clear(&ix->text);
        for (size_t i = 0; i < n; i++)         /* a dropped one stays allocated until the writer sweeps */
            if (live[i])
                index_compute(live[i], o, collect, &(emit_to){ ix, live[i] });
        kl_free(live);
        kl_lock(&ix->mu);
        stale = generation != ix->generation;
    }
}

const kl_value *kl_indexer_put(kl_indexer *ix, const char *key, const kl_value *now)
{
    const kl_value *old = NULL;
    entry *gone = NULL;
    compute_and_lock(ix, now);
    entry *e = kl_map_get(ix->objects, key);
    if (!now) {
        if (e) {
            while (e->n)
                leave_locked(e, e->n - 1);
            kl_map_take(ix->objects, key);
            gone = e;
        }
    } else {
        if (!e)
            kl_map_set(ix->objects, key, e = kl_new(entry));
        old = e->object;
        e->object = kl_value_ref(now);
        for (size_t i = e->n; i-- > 0;)
            if (!emitted_has(ix, e->members[i].in))
                leave_locked(e, i);
        for (size_t i = 0; i < ix->n_emitted; i++)
            join_locked(e, ix->emitted[i].index, ix->text.data + ix->emitted[i].at);
    }
    kl_unlock(&ix->mu);
    if (gone) {
        old = gone->object;
        gone->object = NULL;
        entry_free(gone);
    }
    return old;
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

char **kl_indexer_keys(kl_indexer *ix, size_t *n)
{
    size_t it = 0;
    const char *key;
    *n = 0;
    kl_lock(&ix->mu);
    char **keys = kl_new_array(char *, kl_map_len(ix->objects) + 1);
    while (kl_map_next(ix->objects, &it, &key, NULL))
        keys[(*n)++] = kl_strdup(key);
    kl_unlock(&ix->mu);
    return keys;
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
    size_t n = 0, it = 0;
    const char *key;
    void *e;
    kl_lock(&ix->mu);
    known *all = kl_new_array(known, kl_map_len(ix->objects) + 1);
    while (kl_map_next(ix->objects, &it, &key, &e))
        all[n++] = (known){ kl_strdup(key), kl_value_ref(((entry *)e)->object) };
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
            ix->generation++;
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
        ix->generation++;
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
                for (bucket *in = b; in->len;) {
                    entry *e = in->v[in->len - 1];
                    in->len--;
                    for (size_t i = 0; i < e->n; i++)
                        if (e->members[i].in == in)
                            e->members[i] = e->members[--e->n];
                }
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
    size_t n = kl_map_len(ix->objects);
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
    size_t n = 0, it = 0;
    void *e;
    kl_lock(&ix->mu);
    size_t count = kl_map_len(ix->objects);
    while (n < BYTES_SAMPLE && kl_map_next(ix->objects, &it, NULL, &e))      /* in hash order: as good as random */
        sample[n++] = kl_value_ref(((entry *)e)->object);
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

static void take_bucket_locked(const index_ *x, const char *value, kl_objects *out)
{
    bucket *b = kl_map_get(x->buckets, value);
    if (!b)
        return;
    out->v = kl_new_array(const kl_value *, b->len);
    for (; out->len < b->len; out->len++)
        out->v[out->len] = kl_value_ref(b->v[out->len]->object);
}

static kl_status snapshot_locked(kl_indexer *ix, const kl_query *q, kl_objects *out, kl_err *err) KL_REQUIRES(ix->mu)
{
    if (q->index || q->ns) {
        const char *name = q->index ? q->index : KL_INDEX_NAMESPACE;
        index_ *x = index_find_locked(ix, name);
        if (!x || !x->ready)
            return no_index_locked(ix, name, err);
        take_bucket_locked(x, q->index ? (q->value ? q->value : "") : q->ns, out);
        return KL_OK;
    }
    size_t it = 0;
    void *e;
    out->v = kl_new_array(const kl_value *, kl_map_len(ix->objects) + 1);
    while (kl_map_next(ix->objects, &it, NULL, &e))
        out->v[out->len++] = kl_value_ref(((entry *)e)->object);
    return KL_OK;
}

typedef struct sorted { const char *ns, *name; const kl_value *o; } sorted;

/* As strcmp of the keys would, which do not exist in one piece: the end of a namespace reads as '/'. */
static int by_key(const void *pa, const void *pb)
{
    const sorted *a = pa, *b = pb;
    const char *x = a->ns, *y = b->ns;
    if (x && y && x != y) {
        while (*x && *x == *y)
            x++, y++;
        unsigned char cx = *x ? (unsigned char)*x : '/', cy = *y ? (unsigned char)*y : '/';
        if (cx != cy)
            return cx < cy ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

kl_status kl_indexer_list(kl_indexer *ix, const kl_query *q, kl_objects *out, kl_err *err)
{
    static const kl_query all;
    kl_objects found = {0};
    q = q ? q : &all;
    kl_lock(&ix->mu);
    kl_status st = snapshot_locked(ix, q, &found, err);
    kl_unlock(&ix->mu);
    if (st)
        return st;
    sorted *s = kl_new_array(sorted, found.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < found.len; i++) {
        const kl_value *o = found.v[i];
        const char *ns = kl_object_namespace(o);
        bool take = (!q->index || !q->ns || (ns && !strcmp(ns, q->ns))) &&
                    (!q->labels || kl_selector_matches(q->labels, kl_value_at(o, "metadata", "labels", NULL)));
        if (take)
            s[n++] = (sorted){ ns, kl_object_name(o), o };
        else
            kl_value_unref(o);
    }
    if (n)
        qsort(s, n, sizeof *s, by_key);
    found.len = 0;
    for (size_t i = 0; i < n; i++) {
        bool full = q->limit && found.len == q->limit;
        if (!full && (!q->where || q->where(q->where_arg, s[i].o)))
            found.v[found.len++] = s[i].o;
        else
            kl_value_unref(s[i].o);
    }
    kl_free(s);
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
