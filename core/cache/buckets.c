/* buckets.c - index values of objects, and the sets of objects with the same value.
 *
 * A bucket is the ordered set of the objects that have one value; one more bucket per index has those with
 * any value. Entering twice, or leaving without having entered, does nothing, so an index may be filled while
 * it is maintained. For a path index the object's old state gives its buckets; a function is not called
 * twice, so its buckets are recorded. */
#include "cache/indexer_impl.h"

#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"

/* --- what indexes say --------------------------------------------------------------------- */

typedef struct speaker {
    kl__sayings *s;
    kl__index *x;
} speaker;

static void add_saying(void *arg, const char *value)
{
    speaker *to = arg;
    kl__sayings *s = to->s;
    size_t at = s->text.len;
    if (kl_buf_add(&s->text, value, strlen(value) + 1))
        return;
    if (s->len == s->cap)
        s->v = kl_realloc(s->v, (s->cap = s->cap ? 2 * s->cap : 8) * sizeof *s->v);
    s->v[s->len++] = (kl__said){to->x, at};
}

void kl__say(kl__sayings *s, kl__index *x, const kl_value *o)
{
    x->fn(x->arg, o, add_saying, &(speaker){s, x});
}

void kl__sayings_fini(kl__sayings *s)
{
    kl_buf_fini(&s->text);
    kl_free(s->v);
    *s = (kl__sayings){0};
}

/* The part of an object that a path or label index looks at. */
static const kl_value *part_of(const kl__index *x, const kl_value *o)
{
    if (x->path)
        return kl_path_get(x->path, o);
    const kl_value *label = kl_object_label(o, x->label);
    return kl_value_type(label) == KL_STRING ? label : NULL;
}

/* --- buckets ------------------------------------------------------------------------------ */

static uint32_t bucket_tag(const kl__index *x, const char *value, bool any)
{
    return kl__tag((kl_hash(value, strlen(value)) + any) ^ (uint64_t)x->id * 0x9e3779b97f4a7c15u);
}

static uint32_t number_of(const kl__slots *names, const kl__cells *cells, const kl__index *x,
    const char *value, bool any, uint32_t tag)
{
    uint32_t number;
    for (kl__probe p = kl__names_probe(names, tag); kl__probe_next(&p, &number);) {
        const kl__bucket *b = kl__cells_get(cells, number);
        if (b && b->of == x && b->any == any && !strcmp(b->value, value))
            return number;
    }
    return KL__NONE;
}

const kl__bucket *kl__bucket_find(
    const kl__slots *names, const kl__cells *cells, const kl__index *x, const char *value, bool any)
{
    uint32_t number = number_of(names, cells, x, value, any, bucket_tag(x, value, any));
    return number == KL__NONE ? NULL : kl__cells_get(cells, number);
}

static uint32_t bucket_make_locked(
    kl_indexer *ix, const kl__index *x, const char *value, bool any, uint32_t tag) KL_REQUIRES(ix->mu)
{
    size_t n = strlen(value) + 1;
    kl__bucket *b = kl_zalloc(sizeof *b + n);
    b->made = ix->edit.now;
    b->of = x;
    b->tag = tag;
    b->any = any;
    memcpy(b->value, value, n);
    return kl__table_add(&ix->edit, &ix->buckets, tag, b);
}

static kl__bucket *bucket_own_locked(kl_indexer *ix, uint32_t number) KL_REQUIRES(ix->mu)
{
    kl__bucket *b = kl__cells_get(&ix->buckets.cells, number);
    if (b->made == ix->edit.now)
        return b;
    size_t n = sizeof *b + strlen(b->value) + 1;
    kl__bucket *mine = kl_alloc(n);
    memcpy(mine, b, n);
    mine->made = ix->edit.now;
    kl__cells_set(&ix->edit, &ix->buckets.cells, number, mine);
    kl__edit_drop(&ix->edit, b, b->made);
    return mine;
}

void kl__bucket_remove_locked(kl_indexer *ix, uint32_t number, kl__bucket *b)
{
    kl__table_remove(&ix->edit, &ix->buckets, b->tag, number);
    kl__set_drop(&ix->edit, &b->set);
    kl__edit_drop(&ix->edit, b, b->made);
}

static void enter_locked(kl_indexer *ix, uint32_t bucket, uint32_t number) KL_REQUIRES(ix->mu)
{
    kl__order order = kl__order_of(ix);
    kl__set_add(&ix->edit, &bucket_own_locked(ix, bucket)->set, &order, number);
}

static void leave_locked(kl_indexer *ix, uint32_t bucket, uint32_t number) KL_REQUIRES(ix->mu)
{
    kl__order order = kl__order_of(ix);
    kl__bucket *b = bucket_own_locked(ix, bucket);
    kl__set_remove(&ix->edit, &b->set, &order, number);
    if (!b->set.len)
        kl__bucket_remove_locked(ix, bucket, b);
}

/* --- where an object stands --------------------------------------------------------------- */

/* Numbers are appended unsorted, and sorted before they are read, since an object may have very many. */
static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the numbers, and removes duplicates. */
static void numbers_settle(kl__numbers *n)
{
    size_t kept = 0;
    if (n->len > 1)
        qsort(n->v, n->len, sizeof *n->v, by_number);
    for (size_t i = 0; i < n->len; i++)
        if (!kept || n->v[kept - 1] != n->v[i])
            n->v[kept++] = n->v[i];
    n->len = kept;
}

/* Whether the sorted numbers contain `number`. */
static bool has_number(const kl__numbers *n, uint32_t number)
{
    return n->len && bsearch(&number, n->v, n->len, sizeof *n->v, by_number);
}

static void numbers_add(kl__numbers *n, uint32_t number)
{
    if (n->len == n->cap)
        n->v = kl_realloc(n->v, (n->cap = n->cap ? 2 * n->cap : 8) * sizeof *n->v);
    n->v[n->len++] = number;
}

static void stand_in_locked(kl_indexer *ix, const kl__index *x, const char *value, bool any, bool make,
    kl__numbers *out) KL_REQUIRES(ix->mu)
{
    uint32_t tag = bucket_tag(x, value, any),
             number = number_of(ix->buckets.names.slots, &ix->buckets.cells, x, value, any, tag);
    if (number == KL__NONE && make)
        number = bucket_make_locked(ix, x, value, any, tag);
    if (number != KL__NONE)
        numbers_add(out, number);
}

static void stand_by_locked(
    kl_indexer *ix, const kl__index *x, const kl_value *v, bool make, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    kl_type t = kl_value_type(v);
    if (t == KL_STRING) {
        stand_in_locked(ix, x, kl_value_str(v), false, make, out);
    } else if (v && t != KL_NULL && t != KL_ARRAY && t != KL_OBJECT) {
        char *text = kl_value_to_json(v);
        stand_in_locked(ix, x, text, false, make, out);
        kl_free(text);
    }
}

/* Collects the buckets for this part of an object. */
static void stand_by_part_locked(
    kl_indexer *ix, const kl__index *x, const kl_value *part, bool make, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    stand_by_locked(ix, x, part, make, out);
    if (kl_value_type(part) == KL_ARRAY)
        for (size_t i = 0; i < kl_value_len(part); i++)
            stand_by_locked(ix, x, kl_value_item(part, i), make, out);
    if (out->len)
        stand_in_locked(ix, x, "", true, make, out);
}

static void stand_by_said_locked(kl_indexer *ix, const kl__index *x, const kl__sayings *said, size_t from,
    size_t to, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    for (; from < to; from++)
        if (said->v[from].index == x)
            stand_in_locked(ix, x, said->text.data + said->v[from].at, false, true, out);
    if (out->len)
        stand_in_locked(ix, x, "", true, true, out);
}

typedef struct noted {
    uint32_t len;
    uint32_t v[];
} noted;

static noted **noted_at(kl__edit *e, kl__index *x, uint32_t number)
{
    return kl__chunks_at(e, &x->stands, sizeof(noted *), number);
}

static void note(kl__edit *e, kl__index *x, uint32_t number, const kl__numbers *n)
{
    noted **at = noted_at(e, x, number);
    if (*at && (*at)->len != n->len) {
        kl_free(*at);
        *at = NULL;
    }
    if (!*at && n->len)
        *at = kl_alloc(sizeof **at + n->len * sizeof *n->v);
    if (*at) {
        (*at)->len = (uint32_t)n->len;
        memcpy((*at)->v, n->v, n->len * sizeof *n->v);
    }
}

void kl__index_forget(kl__index *x)
{
    for (uint32_t i = 0; i < x->stands.len; i++)
        for (uint32_t k = 0; x->stands.v[i] && k < KL__CHUNK; k++)
            kl_free(((noted **)(void *)x->stands.v[i])[k]);
    kl__chunks_fini(&x->stands);
}

static void move_locked(kl_indexer *ix, uint32_t number) KL_REQUIRES(ix->mu)
{
    numbers_settle(&ix->was);
    numbers_settle(&ix->will);
    for (size_t i = 0; i < ix->will.len; i++)
        if (!has_number(&ix->was, ix->will.v[i]))
            enter_locked(ix, ix->will.v[i], number);
    for (size_t i = 0; i < ix->was.len; i++)
        if (!has_number(&ix->will, ix->was.v[i]))
            leave_locked(ix, ix->was.v[i], number);
}

void kl__index_fn_locked(kl_indexer *ix, kl__index *x, uint32_t number, const kl_value *now,
    const kl__sayings *said, size_t from, size_t to)
{
    const noted *old = *noted_at(&ix->edit, x, number);
    for (uint32_t i = 0; old && i < old->len; i++)
        numbers_add(&ix->was, old->v[i]);
    if (now)
        stand_by_said_locked(ix, x, said, from, to, &ix->will);
    move_locked(ix, number);
    note(&ix->edit, x, number, &ix->will);
}

void kl__index_part_locked(kl_indexer *ix, const kl__index *x, uint32_t number, const kl_value *old,
    const kl_value *now, bool indexed)
{
    const kl_value *a = part_of(x, old), *b = part_of(x, now);
    if (a == b && indexed)
        return;
    stand_by_part_locked(ix, x, a, false, &ix->was);
    stand_by_part_locked(ix, x, b, true, &ix->will);
    numbers_settle(&ix->will);
    if (!indexed)
        for (size_t i = 0; i < ix->will.len; i++)
            enter_locked(ix, ix->will.v[i], number);
    move_locked(ix, number);
}

static void update_locked(kl_indexer *ix, const struct kl__listed *l, uint32_t number, const kl_value *old,
    const kl_value *now, const kl__sayings *said, size_t from, size_t to) KL_REQUIRES(ix->mu)
{
    kl__index *x = l->index;
    ix->was.len = ix->will.len = 0;
    if (x->fn)
        kl__index_fn_locked(ix, x, number, now, said, from, to);
    else if (x->path || x->label)
        kl__index_part_locked(ix, x, number, old, now, l->ready);
}

void kl__indexes_update_locked(kl_indexer *ix, uint32_t number, const kl_value *old, const kl_value *now,
    const kl__sayings *said, size_t from, size_t to)
{
    for (size_t i = 0; i < ix->indexes->len; i++)
        if (ix->indexes->v[i].index->live)
            update_locked(ix, &ix->indexes->v[i], number, old, now, said, from, to);
}
