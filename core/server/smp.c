/* smp.c - strategic merge patch: a merge patch in which some lists merge too.
 *
 * A list with a merge key merges item by item; one of scalars with the merge strategy is a set. Directives:
 *   $patch: delete | replace | merge         of the object, or of the list item, it stands in
 *   $retainKeys: [k]                         the object keeps only these
 *   $deleteFromPrimitiveList/k: [v]          removes values from list k
 *   $setElementOrder/k: [...]                the order of list k */
#include "server/smp.h"

#include <string.h>

#include "base/mem.h"
#include "server/status.h"

static const kl_value *merge(const kl__schema *s, const kl_value *old, const kl_value *patch);

static const char *directive(const kl_value *patch)
{
    const char *word = kl_value_str(kl_value_get(patch, "$patch"));
    return word ? word : "";
}

static bool listed(const kl_value *list, const kl_value *v)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (kl_value_equal(kl_value_item(list, i), v))
            return true;
    return false;
}

static const kl_value *sibling(const kl_value *patch, const char *prefix, const char *key, size_t n)
{
    char *name = kl_sprintf("%s%.*s", prefix, (int)n, key);
    const kl_value *v = kl_value_get(patch, name);
    kl_free(name);
    return v;
}

/* ------------------------------------------------------------------ lists */

typedef struct row { const kl_value *v; bool ordered; } row;     /* one reference each */
typedef struct rows { row *v; size_t len; } rows;

static void rows_add(rows *r, const kl_value *v)
{
    r->v = kl_realloc(r->v, (r->len + 1) * sizeof *r->v);
    r->v[r->len++] = (row){ .v = v };
}

static bool same_key(const char *key, const kl_value *a, const kl_value *b)
{
    if (!key)
        return kl_value_equal(a, b);
    const kl_value *x = kl_value_get(a, key), *y = kl_value_get(b, key);
    return x && y && kl_value_equal(x, y);
}

static size_t row_of(const rows *r, const char *key, const kl_value *like)
{
    size_t i = 0;
    while (i < r->len && !same_key(key, r->v[i].v, like))
        i++;
    return i;
}

/* Rows named in `order` take that order, in the places where such rows stand. */
static void put_in_order(rows *r, const char *key, const kl_value *order)
{
    size_t n = 0;
    const kl_value **sorted = kl_new_array(const kl_value *, r->len + 1);
    for (size_t i = 0; i < kl_value_len(order); i++) {
        size_t at = row_of(r, key, kl_value_item(order, i));
        if (at < r->len && !r->v[at].ordered) {
            r->v[at].ordered = true;
            sorted[n++] = r->v[at].v;
        }
    }
    for (size_t i = 0, k = 0; i < r->len && k < n; i++)
        if (r->v[i].ordered)
            r->v[i].v = sorted[k++];
    kl_free(sorted);
}

static const kl_value *rows_done(rows *r)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < r->len; i++) {
        kl_build_value(b, r->v[i].v);
        kl_value_unref(r->v[i].v);
    }
    kl_build_end(b);
    kl_free(r->v);
    return kl_builder_done(b);
}

static const kl_value *merge_list(const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value *removed, const kl_value *order)
{
    rows r = {0};
    const char *key = s->patch_key;
    bool replace = false;
    for (size_t i = 0; i < kl_value_len(patch) && key; i++)
        replace = replace || (!strcmp(directive(kl_value_item(patch, i)), "replace") && !kl_value_get(kl_value_item(patch, i), key));
    for (size_t i = 0; i < kl_value_len(old) && !replace; i++)
        if (!listed(removed, kl_value_item(old, i)))
            rows_add(&r, kl_value_ref(kl_value_item(old, i)));
    for (size_t i = 0; i < kl_value_len(patch); i++) {
        const kl_value *p = kl_value_item(patch, i);
        size_t at = row_of(&r, key, p);
        const char *word = directive(p);
        if (key && !strcmp(word, "delete")) {
            for (; at < r.len; at = row_of(&r, key, p)) {
                kl_value_unref(r.v[at].v);
                memmove(&r.v[at], &r.v[at + 1], (r.len - at - 1) * sizeof *r.v);
                r.len--;
            }
        } else if (key && !strcmp(word, "replace") && !kl_value_get(p, key)) {
            continue;
        } else if (at == r.len) {
            rows_add(&r, merge(s->items, NULL, p));
        } else if (key) {
            const kl_value *x = merge(s->items, r.v[at].v, p);
            kl_value_unref(r.v[at].v);
            r.v[at].v = x;
        }
    }
    if (order)
        put_in_order(&r, key, order);
    return rows_done(&r);
}

/* ------------------------------------------------------------------ objects */

static bool kept(const kl_value *retain, const char *key, size_t n)
{
    if (kl_value_type(retain) != KL_ARRAY)
        return true;
    for (size_t i = 0; i < kl_value_len(retain); i++) {
        size_t len;
        const char *word = kl_value_strn(kl_value_item(retain, i), &len);
        if (word && len == n && !memcmp(word, key, n))
            return true;
    }
    return false;
}

/* The member `key` after the patch: a new reference, or NULL when it goes. */
static const kl_value *member(const kl__schema *s, const kl_value *old, const kl_value *patch, const char *key, size_t n)
{
    const kl_value *was = kl_value_getn(old, key, n), *now = kl_value_getn(patch, key, n);
    const kl__schema *below = kl__schema_child(s, key, n);
    if (!below)
        below = &kl__schema_any;
    const kl_value *removed = sibling(patch, "$deleteFromPrimitiveList/", key, n), *order = sibling(patch, "$setElementOrder/", key, n);
    if (now && kl_value_type(now) == KL_NULL)
        return NULL;
    if (below->type == KL_S_LIST && below->patch_merge && (now || removed || order) && (was || now)
        && (!now || kl_value_type(now) == KL_ARRAY) && (!was || kl_value_type(was) == KL_ARRAY || kl_value_type(was) == KL_NULL))
        return merge_list(below, was, now, removed, order);
    return now ? merge(below, was, now) : kl_value_ref(was);
}

static const kl_value *merge(const kl__schema *s, const kl_value *old, const kl_value *patch)
{
    if (kl_value_type(patch) != KL_OBJECT)
        return kl_value_ref(patch);
    const char *word = directive(patch);
    const kl_value *retain = kl_value_get(patch, "$retainKeys");
    if (!strcmp(word, "replace") || !strcmp(word, "delete") || kl_value_type(old) != KL_OBJECT)
        old = NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(old); i++) {
        const char *key;
        size_t n;
        kl_value_member(old, i, &key, &n);
        if (!kept(retain, key, n))
            continue;
        const kl_value *x = member(s, old, patch, key, n);
        if (x) {
            kl_build_keyn(b, key, n);
            kl_build_value(b, x);
        }
        kl_value_unref(x);
    }
    for (size_t i = 0; i < kl_value_len(patch) && strcmp(word, "delete"); i++) {
        const char *key;
        size_t n;
        kl_value_member(patch, i, &key, &n);
        if (kl_value_getn(old, key, n) || !strcmp(key, "$patch") || !strcmp(key, "$retainKeys") || !strncmp(key, "$setElementOrder/", 17)
            || !strncmp(key, "$deleteFromPrimitiveList/", 25))
            continue;
        const kl_value *x = member(s, old, patch, key, n);
        if (x) {
            kl_build_keyn(b, key, n);
            kl_build_value(b, x);
        }
        kl_value_unref(x);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Items of a keyed list must say their key, and directives must be known: looked at before anything is merged. */
static kl_status check(const kl__schema *s, const kl_value *patch, kl_err *err)
{
    kl_status st = KL_OK;
    const char *word = directive(patch);
    if (*word && strcmp(word, "delete") && strcmp(word, "replace") && strcmp(word, "merge"))
        return kl__fail_bad_request(err, "Unknown patch type found: %s", word);
    for (size_t i = 0; i < kl_value_len(patch) && !st && kl_value_type(patch) == KL_OBJECT; i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(patch, i, &key, &n);
        const kl__schema *below = kl__schema_child(s, key, n);
        if (*key == '$' || !below)
            continue;
        if (below->type == KL_S_LIST && kl_value_type(v) == KL_ARRAY)
            for (size_t k = 0; k < kl_value_len(v) && !st; k++) {
                const kl_value *item = kl_value_item(v, k);
                if (below->patch_key && !kl_value_get(item, below->patch_key) && !*directive(item)) {
                    char *text = kl_value_to_json(item);
                    st = kl__fail_bad_request(err, "map: %s does not contain declared merge key: %s", text, below->patch_key);
                    kl_free(text);
                } else
                    st = check(below->items, item, err);
            }
        else
            st = check(below, v, err);
    }
    return st;
}

kl_status kl__smp_apply(const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out, kl_err *err)
{
    if (!s)
        s = &kl__schema_any;
    kl_status st = check(s, patch, err);
    if (!st)
        *out = merge(s, old, patch);
    return st;
}
