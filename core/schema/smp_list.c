/* smp_list.c - rows of a merged list and their order. */
#include "schema/smp_list.h"

#include <stdlib.h>
#include <string.h>

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

void kl__rows_keep(kl__rows *r, const kl_finder *f, bool in)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->len; i++)
        if ((kl_finder_find(f, r->v[i]) >= 0) == in)
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
    kl_finder f = {.key = key};
    sorting *s = kl_new_array(sorting, n + 1);
    const kl_value **out = kl_new_array(const kl_value *, n + 1);
    uint32_t front = NOBODY;
    kl_finder_add_all(&f, order);
    for (size_t i = 0; i < n; i++)
        s[i] = (sorting){kl_finder_find(&f, v[i]), NOBODY, NOBODY, NOBODY};
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
    kl_finder_fini(&f);
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
    kl_finder in_order = {.key = key}, in_was = {.key = key};
    kl_finder_add_all(&in_order, order);
    kl_finder_add_all(&in_was, was);
    for (size_t i = 0; i < r->len; i++)
        kl__rows_add(kl_finder_find(&in_order, r->v[i]) >= 0 ? &named : &others, r->v[i]);
    kl__rows_sort(&named, order, key);
    kl__rows_sort(&others, was, key);
    size_t i = 0, k = 0;
    for (size_t at = 0; at < r->len; at++) {
        bool other = i < others.len;
        if (other && k < named.len) {
            long a = kl_finder_find(&in_was, others.v[i]), b = kl_finder_find(&in_was, named.v[k]);
            other = a >= 0 && b >= 0 && a < b;
        }
        r->v[at] = other ? others.v[i++] : named.v[k++];
    }
    kl_free(named.v);
    kl_free(others.v);
    kl_finder_fini(&in_order);
    kl_finder_fini(&in_was);
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
