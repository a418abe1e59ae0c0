/* indexer.c - the writer of the store: puts, lists, versions.
 *
 *   key --names--> number --cells--> object          all: the numbers in the order of their keys
 *
 * A put costs a copy of the path from the root to the object's cell; the order changes only when objects are
 * added or removed, buckets only when an index value changes. Scripts run before the lock is taken: function
 * indexes are called first, and again when one was added or removed meanwhile. */
#include "cache/indexer_impl.h"

#include <stdlib.h>
#include <assert.h>
#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"

/* Objects measured for `bytes`: above this many the sum is an estimate from a sample, since measuring walks
 * complete objects. */
#define BYTES_SAMPLE 128

/* --- keys --------------------------------------------------------------------------------- */

static bool key_text(const kl_value *namespace_, const kl_value *name_, char out[KL_KEY_MAX], kl__key *key)
{
    size_t n = 0, m = 0;
    const char *ns = kl_value_strn(namespace_, &n), *name = kl_value_strn(name_, &m);
    if (!name || !m || n + m + 2 > KL_KEY_MAX || memchr(name, 0, m) || memchr(name, '/', m)
        || (n && (memchr(ns, 0, n) || memchr(ns, '/', n))))
        return false;
    *key = (kl__key){n ? ns : "", name};
    if (n) {
        memcpy(out, ns, n);
        out[n++] = '/';
    }
    memcpy(out + n, name, m + 1);
    return true;
}

bool kl_indexer_key(const kl_value *o, char out[KL_KEY_MAX])
{
    const kl_value *metadata = kl_value_get(o, "metadata");
    kl__key key;
    return key_text(kl_value_get(metadata, "namespace"), kl_value_get(metadata, "name"), out, &key);
}

/* The same in the apply context: writes the text, and a key that points into the object. */
bool kl__key_of(kl_indexer *ix, const kl_value *o, char out[KL_KEY_MAX], kl__key *key)
{
    const kl_value *metadata = kl_value_find(o, &ix->metadata);
    return key_text(kl_value_find(metadata, &ix->ns), kl_value_find(metadata, &ix->name), out, key);
}

uint32_t kl__tag(uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash ^ hash >> 32);
    return tag ? tag : 1;
}

uint32_t kl__key_tag(const char *key) { return kl__tag(kl_hash(key, strlen(key))); }

static bool is_text(kl__key k, const char *text)
{
    size_t n = strlen(k.ns);
    return n ? !strncmp(text, k.ns, n) && text[n] == '/' && !strcmp(text + n + 1, k.name)
             : !strcmp(text, k.name);
}

/* Equal strings of two objects usually share one node. */
static bool same_key(kl__key a, kl__key b)
{
    return (a.ns == b.ns || !strcmp(a.ns, b.ns)) && (a.name == b.name || !strcmp(a.name, b.name));
}

static kl__key *key_at(kl_indexer *ix, uint32_t number)
{
    return kl__chunks_at(&ix->edit, &ix->keys, sizeof(kl__key), number);
}

static kl__key kept_key(const void *of, uint32_t number) { return *key_at((kl_indexer *)of, number); }

kl__order kl__order_of(kl_indexer *ix) { return (kl__order){kept_key, ix}; }

/* The key of a number in the version. It was written before the version was published, and stays until no
 * visible version has the number. */
static kl__key key_in(const void *of, uint32_t number)
{
    const kl__version *v = of;
    return ((const kl__key *)(const void *)v->keys[number / KL__CHUNK])[number % KL__CHUNK];
}

kl__order kl__order_in(const kl__sight *s) { return (kl__order){key_in, s->v}; }

/* --- versions ----------------------------------------------------------------------------- */

void kl__show_locked(kl_indexer *ix)
{
    size_t n = strlen(ix->rv) + 1;
    kl__version *v = kl_alloc(sizeof *v + n), *old = atomic_load_explicit(&ix->shown, memory_order_relaxed);
    *v = (kl__version){ix->objects.cells, ix->buckets.cells, ix->objects.names.slots, ix->buckets.names.slots,
        ix->all, ix->indexes, ix->keys.v, ix->objects.end};
    memcpy(v->rv, ix->rv, n);
    atomic_store(&ix->shown, v);
    kl__edit_drop(&ix->edit, old, 0);
    kl__edit_shown(&ix->edit);
    kl__table_shown(&ix->edit, &ix->objects);
    kl__table_shown(&ix->edit, &ix->buckets);
}

static kl__fields *fields_new(void)
{
    kl__fields *f = kl_new(kl__fields);
    kl_lookup_init(&f->metadata, "metadata", 8);
    kl_lookup_init(&f->labels, "labels", 6);
    return f;
}

static void fields_free(kl__fields *f)
{
    kl_lookup_fini(&f->metadata);
    kl_lookup_fini(&f->labels);
    kl_free(f);
}

kl__sight kl__look(kl_indexer *ix)
{
    unsigned pin = kl_epoch_pin();
    if (!ix->fields[pin])
        ix->fields[pin] = fields_new();
    return (kl__sight){atomic_load(&ix->shown), ix->fields[pin], pin};
}

void kl__look_away(const kl__sight *s) { kl_epoch_unpin(s->pin); }

kl_indexer *kl_indexer_new(void)
{
    kl_indexer *ix = kl_new(kl_indexer);
    kl_mutex_init(&ix->mu);
    kl_lookup_init(&ix->metadata, "metadata", 8);
    kl_lookup_init(&ix->ns, "namespace", 9);
    kl_lookup_init(&ix->name, "name", 4);
    kl_lookup_init(&ix->uid, "uid", 3);
    kl_lookup_init(&ix->resource_version, "resourceVersion", 15);
    ix->edit.now = 1;
    ix->rv = kl_zalloc(ix->rv_cap = 32);
    kl_lock(&ix->mu);
    kl__indexes_init_locked(ix);
    kl__show_locked(ix);
    kl_unlock(&ix->mu);
    return ix;
}

static bool unref_object(void *arg, uint32_t number)
{
    kl_value_unref(kl__cells_get(arg, number));
    return true;
}

void kl_indexer_free(kl_indexer *ix)
{
    if (!ix)
        return;
    kl_indexer_sweep(ix);
    kl__set_walk(&ix->all, 0, ix->all.len, unref_object, &ix->objects.cells);
    kl__set_drop(NULL, &ix->all);
    kl__indexes_fini(ix);
    kl__table_fini(&ix->objects);
    kl__table_fini(&ix->buckets);
    kl__edit_fini(&ix->edit);
    kl__chunks_fini(&ix->keys);
    kl__sayings_fini(&ix->said);
    kl_free(atomic_load(&ix->shown));
    kl_free(ix->fns);
    kl_free(ix->was.v);
    kl_free(ix->will.v);
    kl_free(ix->rv);
    for (unsigned i = 0; i < KL_EPOCH_PLACES; i++)
        if (ix->fields[i])
            fields_free(ix->fields[i]);
    kl_lookup *fields[] = {&ix->metadata, &ix->ns, &ix->name, &ix->uid, &ix->resource_version};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        kl_lookup_fini(fields[i]);
    kl_mutex_fini(&ix->mu);
    kl_free(ix);
}

/* --- one object --------------------------------------------------------------------------- */

/* Equal strings share one node; empty strings count as absent. */
static bool is_text_value(const kl_value *v) { return kl_value_type(v) == KL_STRING && kl_value_len(v); }
static bool differ(const kl_value *a, const kl_value *b)
{
    return kl_value_id(a) != kl_value_id(b) && is_text_value(a) && is_text_value(b);
}

bool kl_object_reborn(const kl_value *old, const kl_value *now)
{
    return differ(kl_value_at(old, "metadata", "uid", NULL), kl_value_at(now, "metadata", "uid", NULL));
}

/* Whether o is the same value, or has the same resourceVersion in the same incarnation. */
static bool unchanged(kl_indexer *ix, const kl_value *old, const kl_value *now)
{
    if (old == now)
        return true;
    old = kl_value_find(old, &ix->metadata);
    now = kl_value_find(now, &ix->metadata);
    const kl_value *a = kl_value_find(old, &ix->resource_version),
                   *b = kl_value_find(now, &ix->resource_version);
    return kl_value_id(a) == kl_value_id(b) && is_text_value(a)
        && !differ(kl_value_find(old, &ix->uid), kl_value_find(now, &ix->uid));
}

static uint32_t number_of_locked(kl_indexer *ix, uint32_t tag, kl__key key) KL_REQUIRES(ix->mu)
{
    uint32_t number;
    for (kl__probe p = kl__names_probe(ix->objects.names.slots, tag); kl__probe_next(&p, &number);)
        if (kl__cells_get(&ix->objects.cells, number) && same_key(*key_at(ix, number), key))
            return number;
    return KL__NONE;
}

void kl__set_rv_locked(kl_indexer *ix, const char *rv)
{
    if (!rv)
        return;
    size_t n = strlen(rv) + 1;
    if (n > ix->rv_cap)
        ix->rv = kl_realloc(ix->rv, ix->rv_cap = n);
    memcpy(ix->rv, rv, n);
}

static uint32_t add_locked(kl_indexer *ix, uint32_t tag, kl__key key, const kl_value *o) KL_REQUIRES(ix->mu)
{
    uint32_t number = kl__table_add(&ix->edit, &ix->objects, tag, (void *)kl_value_ref(o));
    kl__order order = kl__order_of(ix);
    *key_at(ix, number) = key;
    kl__set_add(&ix->edit, &ix->all, &order, number);
    return number;
}

/* Replaces an object. Its key stays valid for readers: equal strings share one node, which o holds as old
 * did. */
static void exchange_locked(
    kl_indexer *ix, uint32_t number, kl__key key, const kl_value *old, const kl_value *o) KL_REQUIRES(ix->mu)
{
    assert(key_at(ix, number)->ns == key.ns && key_at(ix, number)->name == key.name);
    kl__cells_set(&ix->edit, &ix->objects.cells, number, (void *)kl_value_ref(o));
    kl__edit_drop_value(&ix->edit, old);
}

bool kl__put_locked(kl_indexer *ix, const char *text, kl__key key, const kl_value *o, size_t from, size_t to,
    uint32_t *number, const kl_value **old)
{
    uint32_t tag = kl__key_tag(text);
    *number = number_of_locked(ix, tag, key);
    *old = *number == KL__NONE ? NULL : kl__cells_get(&ix->objects.cells, *number);
    if (*old && unchanged(ix, *old, o))
        return false;
    if (*old)
        exchange_locked(ix, *number, key, *old, o);
    else
        *number = add_locked(ix, tag, key, o);
    kl__indexes_update_locked(ix, *number, *old, o, &ix->said, from, to);
    return true;
}

const kl_value *kl__remove_locked(kl_indexer *ix, const char *text, uint32_t number)
{
    const kl_value *old = kl__cells_get(&ix->objects.cells, number);
    kl__order order = kl__order_of(ix);
    kl__indexes_update_locked(ix, number, old, NULL, NULL, 0, 0);
    kl__set_remove(&ix->edit, &ix->all, &order, number);
    kl__table_remove(&ix->edit, &ix->objects, kl__key_tag(text), number);
    kl__edit_drop_value(&ix->edit, old);
    return old;
}

/* --- function indexes speak before the lock is taken -------------------------------------- */

/* The function indexes to call. A dropped one stays allocated until this thread sweeps. */
void kl__fns_refresh(kl_indexer *ix)
{
    if (ix->fns_generation == atomic_load_explicit(&ix->generation, memory_order_acquire))
        return;
    kl_lock(&ix->mu);
    ix->fns = kl_realloc(ix->fns, (ix->indexes->len + 1) * sizeof *ix->fns);
    ix->n_fns = 0;
    for (size_t i = 0; i < ix->indexes->len; i++)
        if (ix->indexes->v[i].index->fn && ix->indexes->v[i].index->live)
            ix->fns[ix->n_fns++] = ix->indexes->v[i].index;
    ix->fns_generation = atomic_load(&ix->generation);
    kl_unlock(&ix->mu);
}

bool kl__fns_fresh(kl_indexer *ix) { return ix->fns_generation == atomic_load(&ix->generation); }

void kl__fns_ask(kl_indexer *ix, const kl_value *o)
{
    for (size_t i = 0; i < ix->n_fns; i++)
        kl__say(&ix->said, ix->fns[i], o);
}

void kl__fns_forget(kl_indexer *ix)
{
    ix->said.len = 0;
    kl_buf_clear(&ix->said.text);
}

/* The stored object, borrowed: only this thread removes objects. */
static const kl_value *peek(kl_indexer *ix, const char *text, kl__key key)
{
    kl_lock(&ix->mu);
    uint32_t number = number_of_locked(ix, kl__key_tag(text), key);
    const kl_value *o = number == KL__NONE ? NULL : kl__cells_get(&ix->objects.cells, number);
    kl_unlock(&ix->mu);
    return o;
}

/* --- puts --------------------------------------------------------------------------------- */

static void ask_and_lock(kl_indexer *ix, const kl_value *o) KL_ACQUIRE(ix->mu)
{
    for (;;) {
        kl__fns_refresh(ix);
        kl__fns_forget(ix);
        kl__fns_ask(ix, o);
        kl_lock(&ix->mu);
        if (kl__fns_fresh(ix))
            return;
        kl_unlock(&ix->mu);
    }
}

/* Whether the stored object equals o: then no script needs to be called. */
bool kl__fns_know(kl_indexer *ix, const char *text, kl__key key, const kl_value *o)
{
    const kl_value *old = ix->n_fns ? peek(ix, text, key) : NULL;
    return old && unchanged(ix, old, o);
}

bool kl_indexer_put(kl_indexer *ix, const kl_value *o, const char *rv, const kl_value **before)
{
    char text[KL_KEY_MAX];
    kl__key key;
    *before = NULL;
    if (!kl__key_of(ix, o, text, &key))
        return false;
    kl__fns_refresh(ix);
    if (kl__fns_know(ix, text, key, o))
        return false;
    ask_and_lock(ix, o);
    uint32_t number;
    const kl_value *old;
    bool news = kl__put_locked(ix, text, key, o, 0, ix->said.len, &number, &old);
    if (news) {
        *before = kl_value_ref(old);
        kl__set_rv_locked(ix, rv);
        kl__show_locked(ix);
    }
    kl_unlock(&ix->mu);
    return news;
}

const kl_value *kl_indexer_remove(kl_indexer *ix, const kl_value *o, const char *rv)
{
    char text[KL_KEY_MAX];
    kl__key key;
    const kl_value *old = NULL;
    if (!kl__key_of(ix, o, text, &key))
        return NULL;
    kl_lock(&ix->mu);
    uint32_t number = number_of_locked(ix, kl__key_tag(text), key);
    if (number != KL__NONE)
        old = kl_value_ref(kl__remove_locked(ix, text, number));
    kl__set_rv_locked(ix, rv);
    kl__show_locked(ix);
    kl_unlock(&ix->mu);
    return old;
}

void kl_indexer_set_rv(kl_indexer *ix, const char *rv)
{
    if (!rv)
        return;
    kl_lock(&ix->mu);
    kl__set_rv_locked(ix, rv);
    kl__show_locked(ix);
    kl_unlock(&ix->mu);
}

/* --- readers ------------------------------------------------------------------------------ */

const kl_value *kl_indexer_lookup(kl_indexer *ix, const char *key)
{
    uint32_t number;
    const kl_value *found = NULL;
    kl__sight s = kl__look(ix);
    for (kl__probe p = kl__names_probe(s.v->object_names, kl__key_tag(key));
         !found && kl__probe_next(&p, &number);) {
        const kl_value *o = kl__cells_get(&s.v->objects, number);
        if (o && is_text(key_in(s.v, number), key))
            found = kl_value_ref(o);
    }
    kl__look_away(&s);
    return found;
}

size_t kl_indexer_count(kl_indexer *ix)
{
    kl__sight s = kl__look(ix);
    size_t n = s.v->all.len;
    kl__look_away(&s);
    return n;
}

char *kl_indexer_rv(kl_indexer *ix)
{
    kl__sight s = kl__look(ix);
    char *rv = kl_strdup(s.v->rv);
    kl__look_away(&s);
    return rv;
}

typedef struct sample {
    const kl__version *v;
    uint64_t bytes;
} sample;

static bool measure(void *arg, uint32_t number)
{
    sample *s = arg;
    s->bytes += kl_value_bytes(kl__cells_get(&s->v->objects, number));
    return true;
}

uint64_t kl_indexer_bytes(kl_indexer *ix)
{
    kl__sight sight = kl__look(ix);
    sample s = {sight.v, 0};
    uint32_t count = s.v->all.len, step = count / BYTES_SAMPLE + 1, n = 0;
    for (uint32_t i = 0; i < count; i += step, n++)
        kl__set_walk(&s.v->all, i, i + 1, measure, &s);
    kl__look_away(&sight);
    return n ? (uint64_t)((double)s.bytes / n * count) : 0;
}
