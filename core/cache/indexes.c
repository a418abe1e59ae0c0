/* indexes.c - where an object stands: buckets sorted by key, indexes that come and go while readers read.
 *
 *   add path: known, live -> filled by the caller -> ready          reserve function: known -> fill (writer): live -> ready
 *   drop: out of sight at once -> sweep (writer): freed
 *
 * A live index is kept up by the writer; a ready one knows every object, so readers may use it. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/mem.h"
#include "model/object.h"

/* --- indexes ------------------------------------------------------------------------------------------------------------------ */

void kl__bucket_free(void *p)
{
    kl__bucket *b = p;
    kl_free(b->v);
    kl_free(b);
}

void kl__index_free(kl__index *x)
{
    kl_map_free(x->buckets, kl__bucket_free);
    kl_path_free(x->path);
    if (x->free_arg)
        x->free_arg(x->arg);
    kl_free(x->name);
    kl_free(x);
}

static void push(kl__index ***v, size_t *n, kl__index *x)
{
    *v = kl_realloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = x;
}

kl__index *kl__index_find_locked(const kl_indexer *ix, const char *name) KL_REQUIRES(ix->mu)
{
    for (size_t i = 0; i < ix->n_indexes; i++)
        if (!strcmp(ix->indexes[i]->name, name))
            return ix->indexes[i];
    return NULL;
}

kl__index *kl__index_add_locked(kl_indexer *ix, const char *name) KL_REQUIRES(ix->mu)
{
    kl__index *x = kl_new(kl__index);
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

void kl__index_compute(const kl__index *x, const kl_value *o, kl_index_emit *emit, void *arg)
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

kl__bucket *kl__bucket_new(kl__index *of, const char *value)
{
    size_t n = strlen(value) + 1;
    kl__bucket *b = kl_zalloc(sizeof *b + n);
    b->of = of;
    memcpy(b->value, value, n);
    return b;
}

/* Where `key` stands, or would. */
static size_t place_of(const kl__bucket *b, const char *key)
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

static void forget_bucket(kl__entry *e, const kl__bucket *b)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (e->in[i] == b) {
            e->in[i] = e->in[--e->n];
            return;
        }
}

void kl__bucket_leave_locked(kl__entry *e, kl__bucket *b)
{
    size_t at = place_of(b, e->key);
    b->len--;
    memmove(&b->v[at], &b->v[at + 1], (b->len - at) * sizeof *b->v);
    forget_bucket(e, b);
    if (!b->len && b->of) {
        kl_map_take(b->of->buckets, b->value);
        kl__bucket_free(b);
    }
}

void kl__bucket_enter_locked(kl__entry *e, kl__bucket *b)
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

void kl__index_join_locked(kl__entry *e, kl__index *x, const char *value)
{
    kl__bucket *b = kl_map_get(x->buckets, value);
    if (!b)
        kl_map_set(x->buckets, value, b = kl__bucket_new(x, value));
    for (uint32_t i = 0; i < e->n; i++)
        if (e->in[i] == b)
            return;
    kl__bucket_enter_locked(e, b);
}

/* --- adding and dropping indexes --------------------------------------------------------------------------------------------------- */

typedef struct known { char *key; const kl_value *object; } known;

static void collect_text(void *arg, const char *value)
{
    (void)!kl_buf_add(arg, value, strlen(value) + 1);
}

/* Enters every object into `x`, which is live: what is put from now on is entered by the writer, so only an object that is
 * still the one we looked at is ours to enter. */
static void index_build(kl_indexer *ix, kl__index *x)
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
        kl__index_compute(x, all[i].object, collect_text, &text);
        kl_lock(&ix->mu);
        kl__entry *here = kl_map_get(ix->objects, all[i].key);
        if (here && here->object == all[i].object)
            for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
                kl__index_join_locked(here, x, text.data + at);
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
    kl__index *x = kl__index_find_locked(ix, name);
    bool fresh = !x, same = x && x->path && !strcmp(kl_path_text(x->path), kl_path_text(p));
    if (fresh) {
        x = kl__index_add_locked(ix, name);
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
    kl__index *x = kl__index_find_locked(ix, name);
    bool is_new = !x, same = x && x->fn == fn && x->arg == arg;
    if (is_new) {
        x = kl__index_add_locked(ix, name);
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
        kl__index *x = NULL;
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
    kl__index *x = kl__index_find_locked(ix, name);
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
        kl__index *x = NULL;
        kl_lock(&ix->mu);
        if (ix->n_dropped) {
            x = ix->dropped[--ix->n_dropped];
            size_t it = 0;
            void *b;
            while (kl_map_next(x->buckets, &it, NULL, &b))
                for (kl__bucket *in = b; in->len; in->len--)
                    forget_bucket(in->v[in->len - 1], in);
        }
        kl_unlock(&ix->mu);
        if (!x)
            return;
        kl__index_free(x);
    }
}
