/* smp_list.c - rows of a merged list and their order. */
#include "schema/smp_list.h"

#include <string.h>

#include "base/mem.h"
#include "schema/status.h"

void kl__rows_add(kl__rows *r, const kl_value *taken)
{
    r->v = kl_realloc(r->v, (r->len + 1) * sizeof *r->v);
    r->v[r->len++] = taken;
}

void kl__rows_add_all(kl__rows *r, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__rows_add(r, kl_value_ref(kl_value_item(list, i)));
}

void kl__rows_remove(kl__rows *r, size_t at)
{
    kl_value_unref(r->v[at]);
    memmove(&r->v[at], &r->v[at + 1], (r->len - at - 1) * sizeof *r->v);
    r->len--;
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

long kl__rows_find(const kl__rows *r, const char *key, const kl_value *like)
{
    for (size_t i = 0; i < r->len; i++)
        if (alike(r->v[i], like, key))
            return (long)i;
    return -1;
}

long kl__list_find(const kl_value *list, const char *key, const kl_value *like)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (alike(kl_value_item(list, i), like, key))
            return (long)i;
    return -1;
}

/* ------------------------------------------------------------------ order */

static bool goes(const kl_value *row, const char *key)
{
    const char *word = key ? kl_value_str(kl_value_get(row, "$patch")) : NULL;
    return word && !strcmp(word, "delete");
}

/* What `order` lacks comes before everything: so it is with Go's comparison, which says yes to it. */
static bool before(const kl_value *a, const kl_value *b, const kl_value *order, const char *key)
{
    long i = kl__list_find(order, key, a), k = i < 0 ? -1 : kl__list_find(order, key, b);
    return i < 0 || k < 0 || i < k;
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
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k && before(r->v[k], r->v[k - 1], order, key); k--) {
            const kl_value *x = r->v[k];
            r->v[k] = r->v[k - 1];
            r->v[k - 1] = x;
        }
    if (gone.len)
        memcpy(r->v + n, gone.v, gone.len * sizeof *gone.v);
    kl_free(gone.v);
}

void kl__rows_weave(kl__rows *r, const kl_value *order, const kl_value *was, const char *key)
{
    kl__rows named = {0}, others = {0};
    for (size_t i = 0; i < r->len; i++)
        kl__rows_add(kl__list_find(order, key, r->v[i]) >= 0 ? &named : &others, r->v[i]);
    kl__rows_sort(&named, order, key);
    kl__rows_sort(&others, was, key);
    size_t i = 0, k = 0;
    for (size_t at = 0; at < r->len; at++) {
        bool other = i < others.len;
        if (other && k < named.len) {
            long a = kl__list_find(was, key, others.v[i]), b = kl__list_find(was, key, named.v[k]);
            other = a >= 0 && b >= 0 && a < b;
        }
        r->v[at] = other ? others.v[i++] : named.v[k++];
    }
    kl_free(named.v);
    kl_free(others.v);
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
            return kl__fail_bad_request(err, "list element types are not identical: %s and %s", kl_value_type_name(first), kl_value_type_name(x));
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
        kl_status st = kl__fail_bad_request(err, "map: %s does not contain declared merge key: %s", text, key);
        kl_free(text);
        return st;
    }
    return KL_OK;
}
