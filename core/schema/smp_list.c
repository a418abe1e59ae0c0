/* smp_list.c - rows of a merged list and their order. */
#include "schema/smp_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "schema/status.h"

void kl__rows_add(kl__rows *r, const kl_value *taken)
{
    if (!(r->len & (r->len - 1))) /* room is a power of two */
        r->v = kl_realloc(r->v, (r->len ? 2 * r->len : 1) * sizeof *r->v);
    r->v[r->len++] = taken;
}

void kl__rows_add_all(kl__rows *r, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__rows_add(r, kl_value_ref(kl_value_item(list, i)));
}

void kl__rows_fini(kl__rows *r)
{
    for (size_t i = 0; i < r->len; i++)
        kl_value_unref(r->v[i]);
    kl_free(r->v);
    *r = (kl__rows){0};
}

const kl_value *kl__rows_done(kl__rows *r)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < r->len; i++)
        kl_build_value(b, r->v[i]);
    kl_build_end(b);
    kl__rows_fini(r);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ finding */

const kl_value *kl__merge_key(const kl_value *item, const char *key)
{
    return key ? kl_value_get(item, key) : item;
}

static bool alike(const kl_value *a, const kl_value *b, const char *key)
{
    const kl_value *x = kl__merge_key(a, key), *y = kl__merge_key(b, key);
    bool no_x = !x || kl_value_type(x) == KL_NULL, no_y = !y || kl_value_type(y) == KL_NULL;
    return no_x || no_y ? no_x == no_y : kl_value_equal(x, y);
}

/* Equal values have equal hashes: numbers of all types, objects in any order. Each part goes through the
 * seeded hash, or an attacker could choose colliding keys. Recursion follows the key, which is as deep as
 * values are. */
static uint64_t hash_of(const kl_value *v);

static uint64_t hash_in(uint64_t before, uint64_t part)
{
    uint64_t both[] = {before, part};
    return kl_hash(both, sizeof both);
}

static uint64_t hash_of(const kl_value *v)
{
    size_t n = 0;
    uint64_t h = 0;
    double d = kl_value_double(v, 0) + 0.0; /* no -0 */
    const char *s = kl_value_strn(v, &n);
    switch (kl_value_type(v)) {
    case KL_NULL: break;
    case KL_BOOL: h = 1 + kl_value_bool(v, false); break;
    case KL_INT:
    case KL_UINT:
    case KL_DOUBLE: h = kl_hash(&d, sizeof d); break;
    case KL_STRING: h = kl_hash(s, n); break;
    case KL_ARRAY:
        h = KL_ARRAY;
        for (size_t i = 0; i < kl_value_len(v); i++)
            h = hash_in(h, hash_of(kl_value_item(v, i)));
        break;
    case KL_OBJECT:
        for (size_t i = 0; i < kl_value_len(v); i++) {
            const kl_value *x = kl_value_member(v, i, &s, &n);
            h += hash_in(kl_hash(s, n), hash_of(x));
        }
        h = hash_in(KL_OBJECT, h);
        break;
    }
    return h;
}

void kl__finder_init(kl__finder *f, const char *key) { *f = (kl__finder){.key = key}; }

void kl__finder_init_list(kl__finder *f, const char *key, const kl_value *list)
{
    kl__finder_init(f, key);
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__finder_add(f, kl_value_item(list, i));
}

void kl__finder_fini(kl__finder *f)
{
    kl_free(f->v);
    kl_free(f->next);
    kl_free(f->heads);
    kl_free(f->tails);
}

static size_t chain_of(const kl__finder *f, const kl_value *item)
{
    uint64_t h = hash_of(kl__merge_key(item, f->key));
    return (size_t)(h ^ h >> 32) & f->mask;
}

/* Adds a value at the end of its chain, so that the first of several equal ones is found first. */
static void chain(kl__finder *f, size_t at)
{
    size_t c = chain_of(f, f->v[at]);
    f->next[at] = 0;
    if (f->heads[c])
        f->next[f->tails[c] - 1] = (uint32_t)at + 1;
    else
        f->heads[c] = (uint32_t)at + 1;
    f->tails[c] = (uint32_t)at + 1;
}

static void grow(kl__finder *f)
{
    f->cap = f->cap ? 2 * f->cap : 16;
    f->mask = f->cap - 1;
    f->v = kl_realloc(f->v, f->cap * sizeof *f->v);
    f->next = kl_realloc(f->next, f->cap * sizeof *f->next);
    kl_free(f->heads);
    kl_free(f->tails);
    f->heads = kl_new_array(uint32_t, f->cap);
    f->tails = kl_new_array(uint32_t, f->cap);
    for (size_t i = 0; i < f->len; i++)
        chain(f, i);
}

void kl__finder_add(kl__finder *f, const kl_value *item)
{
    if (f->len == f->cap)
        grow(f);
    f->v[f->len++] = item;
    chain(f, f->len - 1);
}

long kl__finder_find(const kl__finder *f, const kl_value *like)
{
    for (uint32_t at = f->cap ? f->heads[chain_of(f, like)] : 0; at; at = f->next[at - 1])
        if (alike(f->v[at - 1], like, f->key))
            return (long)at - 1;
    return -1;
}

void kl__rows_keep(kl__rows *r, const kl__finder *f, bool in)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->len; i++)
        if ((kl__finder_find(f, r->v[i]) >= 0) == in)
            r->v[kept++] = r->v[i];
        else
            kl_value_unref(r->v[i]);
    r->len = kept;
}

/* ------------------------------------------------------------------ order */

static bool goes(const kl_value *row, const char *key)
{
    const char *word = key ? kl_value_str(kl_value_get(row, "$patch")) : NULL;
    return word && !strcmp(word, "delete");
}

/* A row while rows are sorted: its place in the order, and its neighbours in one list or another. */
typedef struct sorting {
    long at;
    uint32_t before, after, behind;
} sorting;
#define NOBODY UINT32_MAX

typedef struct placed {
    long at;
    uint32_t row;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->row < y->row ? -1 : x->row > y->row;
}

/* For each row with a place, finds the earlier row that it goes behind. Starting from a list in final order,
 * the latest rows are taken out first. */
static void find_neighbours(sorting *s, size_t n)
{
    placed *p = kl_new_array(placed, n + 1);
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i].at >= 0)
            p[m++] = (placed){s[i].at, (uint32_t)i};
    qsort(p, m, sizeof *p, by_place);
    for (size_t i = 0; i < m; i++) {
        s[p[i].row].before = i ? p[i - 1].row : NOBODY;
        s[p[i].row].after = i + 1 < m ? p[i + 1].row : NOBODY;
    }
    for (size_t i = n; i--;) {
        if (s[i].at < 0)
            continue;
        s[i].behind = s[i].before;
        if (s[i].before != NOBODY)
            s[s[i].before].after = s[i].after;
        if (s[i].after != NOBODY)
            s[s[i].after].before = s[i].before;
    }
    kl_free(p);
}

/* Go sorts short lists by insertion. Its comparison calls a row that `order` lacks smaller than all, so that
 * such a row goes to the front and placed rows pass it. A placed row goes behind the last earlier row whose
 * place is not later, or to the front. */
static void sort_in_order(const kl_value **v, size_t n, const kl_value *order, const char *key)
{
    kl__finder f;
    sorting *s = kl_new_array(sorting, n + 1);
    const kl_value **out = kl_new_array(const kl_value *, n + 1);
    uint32_t front = NOBODY;
    kl__finder_init_list(&f, key, order);
    for (size_t i = 0; i < n; i++)
        s[i] = (sorting){kl__finder_find(&f, v[i]), NOBODY, NOBODY, NOBODY};
    find_neighbours(s, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t *link = s[i].behind == NOBODY ? &front : &s[s[i].behind].after;
        s[i].after = *link;
        *link = (uint32_t)i;
    }
    size_t len = 0;
    for (uint32_t i = front; i != NOBODY; i = s[i].after)
        out[len++] = v[i];
    memcpy(v, out, len * sizeof *v);
    kl__finder_fini(&f);
    kl_free(s);
    kl_free(out);
}

void kl__rows_sort(kl__rows *r, const kl_value *order, const char *key)
{
    size_t n = 0;
    kl__rows gone = {0};
    for (size_t i = 0; i < r->len; i++)
        if (goes(r->v[i], key))
            kl__rows_add(&gone, r->v[i]);
        else
            r->v[n++] = r->v[i];
    if (n > 1)
        sort_in_order(r->v, n, order, key);
    if (gone.len)
        memcpy(r->v + n, gone.v, gone.len * sizeof *gone.v);
    kl_free(gone.v);
}

void kl__rows_weave(kl__rows *r, const kl_value *order, const kl_value *was, const char *key)
{
    kl__rows named = {0}, others = {0};
    kl__finder in_order, in_was;
    kl__finder_init_list(&in_order, key, order);
    kl__finder_init_list(&in_was, key, was);
    for (size_t i = 0; i < r->len; i++)
        kl__rows_add(kl__finder_find(&in_order, r->v[i]) >= 0 ? &named : &others, r->v[i]);
    kl__rows_sort(&named, order, key);
    kl__rows_sort(&others, was, key);
    size_t i = 0, k = 0;
    for (size_t at = 0; at < r->len; at++) {
        bool other = i < others.len;
        if (other && k < named.len) {
            long a = kl__finder_find(&in_was, others.v[i]), b = kl__finder_find(&in_was, named.v[k]);
            other = a >= 0 && b >= 0 && a < b;
        }
        r->v[at] = other ? others.v[i++] : named.v[k++];
    }
    kl_free(named.v);
    kl_free(others.v);
    kl__finder_fini(&in_order);
    kl__finder_fini(&in_was);
}

/* ------------------------------------------------------------------ checks */

kl_status kl__list_type(const kl_value *a, const kl_value *b, kl_type *out, kl_err *err)
{
    const kl_value *first = NULL;
    for (size_t i = 0; i < kl_value_len(a) + kl_value_len(b); i++) {
        const kl_value *x = i < kl_value_len(a) ? kl_value_item(a, i) : kl_value_item(b, i - kl_value_len(a));
        if (kl_value_type(x) == KL_ARRAY)
            return kl__fail_bad_request(err, "lists of lists are not supported");
        first = first ? first : x;
        if (kl_value_type(x) != kl_value_type(first))
            return kl__fail_bad_request(err, "list element types are not identical: %s and %s",
                kl_value_type_name(first), kl_value_type_name(x));
    }
    *out = first ? kl_value_type(first) : KL_NULL;
    return KL_OK;
}

kl_status kl__list_has_keys(const kl_value *list, const char *key, kl_err *err)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *item = kl_value_item(list, i);
        if (kl_value_get(item, key))
            continue;
        char *text = kl_value_to_json(item);
        kl_status st = kl__fail_bad_request(
            err, "map: %s does not contain declared merge key: %s", text, key);
        kl_free(text);
        return st;
    }
    return KL_OK;
}
