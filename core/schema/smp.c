/* smp.c - strategic merge patch: a merge patch in which some lists merge too.
 *
 * A list with a merge key merges item by item; one of scalars with the merge strategy is a set.
 * Directives:
 *   $patch: delete | replace                 of the object, or of the list item, it stands in
 *   $retainKeys: [k]                         the object keeps only these
 *   $deleteFromPrimitiveList/k: [v]          removes values from list k
 *   $setElementOrder/k: [...]                the order of list k
 * Items of the patch come in the patch's order, other items keep their relative place. */
#include "schema/smp.h"

#include <string.h>

#include "base/mem.h"
#include "schema/smp_list.h"
#include "schema/status.h"
#include "value/edited.h"

#define ORDER "$setElementOrder/"
#define REMOVED "$deleteFromPrimitiveList/"
#define STARTS(key, prefix) (!strncmp(key, prefix, sizeof prefix - 1))

/* One patch being applied to a document. `patches`: the document is itself a patch, so nulls and directives
 * are kept. */
typedef struct job {
    bool patches;
    kl_err *err;
} job;

static kl_status merge(
    job *j, const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out);

static const kl_value *directive(const kl_value *patch)
{
    return kl_value_type(patch) == KL_OBJECT ? kl_value_get(patch, "$patch") : NULL;
}

static bool says(const kl_value *v, const char *word)
{
    const char *s = kl_value_str(v);
    return s && !strcmp(s, word);
}

static kl_status unknown_directive(job *j, const kl_value *v)
{
    char *text = kl_value_to_json(v);
    kl_status st = kl__fail_bad_request(j->err, "Unknown patch type found: %s", text);
    kl_free(text);
    return st;
}

static bool is_directive(const char *key)
{
    return *key == '$' && (!strcmp(key, "$retainKeys") || STARTS(key, ORDER) || STARTS(key, REMOVED));
}

/* ------------------------------------------------------------------ what a patch adds */

/* A new value without its objects with $patch and, in a document, without nulls and other directives. NULL:
 * nothing is left. */
static const kl_value *added(const job *j, const kl_value *v)
{
    const char *key;
    const kl_value *x;
    if (directive(v))
        return NULL;
    if (kl_value_type(v) == KL_ARRAY) {
        kl__rows rows = {0};
        for (size_t i = 0; i < kl_value_len(v); i++)
            if ((x = added(j, kl_value_item(v, i))))
                kl__rows_add(&rows, x);
        return kl__rows_done(&rows);
    }
    if (kl_value_type(v) != KL_OBJECT)
        return kl_value_ref(v);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; (x = kl_value_member(v, i, &key, NULL)); i++) {
        if (!j->patches && (kl_value_type(x) == KL_NULL || is_directive(key)))
            continue;
        const kl_value *mine = added(j, x);
        kl_build_kvalue(b, key, mine);
        kl_value_unref(mine);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static void put_added(const job *j, kl_edited *doc, const char *key, const kl_value *v)
{
    const kl_value *x = added(j, v);
    kl_edited_put(doc, key, x);
    kl_value_unref(x);
}

/* ------------------------------------------------------------------ lists */

static kl_status no_merge_key(job *j, const kl_value *item, const char *key)
{
    char *text = kl_value_to_json(item);
    kl_status st = kl__fail_bad_request(j->err, "map: %s does not contain declared merge key: %s", text, key);
    kl_free(text);
    return st;
}

/* Removes rows, or all of them, as the items with $patch say. *rest gets the items without $patch. */
static kl_status special_items(job *j, const char *key, const kl_value *patch, kl__rows *rows, kl__rows *rest)
{
    bool replace = false;
    kl_status st = KL_OK;
    kl_finder gone = {.key = key};
    for (size_t i = 0; !st && i < kl_value_len(patch); i++) {
        const kl_value *p = kl_value_item(patch, i), *word = directive(p);
        if (!word)
            kl__rows_add(rest, kl_value_ref(p));
        else if (says(word, "replace"))
            replace = true;
        else if (says(word, "merge"))
            st = kl__fail_bad_request(j->err, "merging lists cannot yet be specified in the patch");
        else if (!says(word, "delete"))
            st = unknown_directive(j, word);
        else if (kl_value_get(p, key))
            kl_finder_add(&gone, p);
        else
            st = no_merge_key(j, p, key);
    }
    if (gone.len)
        kl__rows_keep(rows, &gone, false);
    kl_finder_fini(&gone);
    if (!st && replace) {
        kl__rows_fini(rows);
        *rows = *rest;
        *rest = (kl__rows){0};
    }
    return st;
}

static kl_status merge_maps(
    job *j, const kl__schema *s, const char *key, const kl_value *patch, kl__rows *rows, kl__rows *rest)
{
    kl_status st = special_items(j, key, patch, rows, rest);
    kl_finder f = {.key = key};
    for (size_t i = 0; i < rows->len; i++)
        kl_finder_add(&f, rows->v[i]);
    for (size_t i = 0; i < rest->len && !st; i++) {
        const kl_value *p = rest->v[i], *x = NULL;
        long at = kl_finder_find(&f, p);
        if (at < 0 && (x = added(j, p))) {
            kl__rows_add(rows, x);
            kl_finder_add(&f, x);
        } else if (at >= 0 && !(st = merge(j, s, rows->v[at], p, &x))) {
            kl_value_unref(rows->v[at]);
            rows->v[at] = f.v[at] = x;
        }
    }
    kl_finder_fini(&f);
    return st;
}

/* Removes repeated values: the first of equal ones stays. */
static void each_once(kl__rows *r)
{
    size_t kept = 0;
    kl_finder f = {0};
    for (size_t i = 0; i < r->len; i++) {
        if (kl_finder_find(&f, r->v[i]) >= 0) {
            kl_value_unref(r->v[i]);
            continue;
        }
        kl_finder_add(&f, r->v[i]);
        r->v[kept++] = r->v[i];
    }
    r->len = kept;
    kl_finder_fini(&f);
}

/* Merges a list with the merge strategy, or one that `removed` takes values from. */
static kl_status merge_list(job *j, const kl__schema *s, const kl_value *old, const kl_value *patch,
    bool removed, const kl_value **out)
{
    const char *key = s->patch_key;
    kl__rows rows = {0}, rest = {0};
    kl_type type;
    kl_status st = kl__list_type(old, patch, &type, j->err);
    if (st)
        return st;
    bool maps = type == KL_OBJECT;
    if (maps && !key)
        return kl__fail_bad_request(j->err, "cannot merge lists without merge key");
    if (maps && (kl__list_has_keys(old, key, j->err)))
        return KL_EINVAL;
    for (size_t i = 0; i < kl_value_len(patch) && maps; i++) {
        const kl_value *p = kl_value_item(patch, i);
        if (!directive(p) && !kl_value_get(p, key))
            return no_merge_key(j, p, key);
    }
    kl__rows_add_all(&rows, old);
    if (maps) {
        st = merge_maps(j, s->items, key, patch, &rows, &rest);
    } else if (removed && !j->patches) {
        kl_finder gone = {0};
        kl_finder_add_all(&gone, patch);
        kl__rows_keep(&rows, &gone, false);
        kl_finder_fini(&gone);
    } else {
        kl__rows_add_all(&rows, patch);
        each_once(&rows);
    }
    if (!st && !(removed && !maps && !j->patches)) {
        const kl_value *order = maps ? kl__rows_done(&rest) : kl_value_ref(patch);
        kl__rows_weave(&rows, order, old, maps ? key : NULL);
        kl_value_unref(order);
    }
    kl__rows_fini(&rest);
    if (!st)
        *out = kl__rows_done(&rows);
    kl__rows_fini(&rows);
    return st;
}

/* ------------------------------------------------------------------ $setElementOrder */

/* Fails unless the patch's items come in the order that the directive gives. */
static kl_status in_order(job *j, const kl_value *patch, const kl_value *order, const char *key)
{
    size_t i = 0, n = kl_value_len(patch);
    if (!n || !kl_value_len(order))
        return KL_OK;
    for (size_t k = 0; k < kl_value_len(order) && i < n;) {
        const kl_value *p = kl_value_item(patch, i), *x = kl__merge_key(p, key),
                       *y = kl__merge_key(kl_value_item(order, k), key);
        if (directive(p)) {
            i++;
            continue;
        }
        if (!x || !y)
            return kl__fail_bad_request(j->err,
                "an item of the patch list or of its " ORDER " list does not contain declared merge key: %s",
                key);
        if (kl_value_equal(x, y))
            i++;
        k++;
    }
    while (i < n && directive(kl_value_item(patch, i)))
        i++;
    if (i == n)
        return KL_OK;
    return kl__fail_bad_request(j->err, "The order in patch list doesn't match $setElementOrder list");
}

static kl_status ordered_list(
    job *j, const kl__schema *s, const char *name, const kl_value *order, kl_edited *doc, kl_edited *patch)
{
    const kl_value *old = kl_edited_get(doc, name), *p = kl_edited_get(patch, name), *merged = NULL;
    const kl__schema *below = kl__schema_child(s, name, strlen(name));
    if (!below)
        below = &kl__schema_any;
    const char *key = below->patch_key;
    kl_type type;
    kl_status st = KL_OK;
    if (kl_value_type(order) != KL_ARRAY || (old && kl_value_type(old) != KL_ARRAY)
        || (p && kl_value_type(p) != KL_ARRAY))
        return kl__fail_bad_request(j->err, "%s and its " ORDER " list must be lists", name);
    if (!old && !p)
        return KL_OK;
    st = in_order(j, p, order, key);
    if (!st)
        st = kl__list_type(old, p, &type, j->err);
    if (!st && type == KL_NULL)
        return kl__fail_bad_request(j->err, "no elements in any of the given slices");
    if (!st && type == KL_OBJECT && !key)
        return kl__fail_bad_request(j->err, "%s has no merge key that its items could be ordered by", name);
    if (!st && type == KL_OBJECT
        && (kl__list_has_keys(old, key, j->err) || kl__list_has_keys(order, key, j->err)))
        st = KL_EINVAL;
    if (st)
        return st;
    if (!p)
        merged = kl_value_ref(old);
    else if (!old)
        merged = added(j, p);
    else if (below->patch_merge)
        st = merge_list(j, below, old, p, false, &merged);
    else
        merged = kl_value_ref(p);
    if (!st && type == KL_OBJECT && kl__list_has_keys(merged, key, j->err))
        st = KL_EINVAL;
    if (!st) {
        kl__rows rows = {0};
        kl__rows_add_all(&rows, merged);
        kl__rows_weave(&rows, order, old, type == KL_OBJECT ? key : NULL);
        const kl_value *done = kl__rows_done(&rows);
        kl_edited_put(doc, name, done);
        kl_edited_put(patch, name, NULL);
        kl_value_unref(done);
    }
    kl_value_unref(merged);
    return st;
}

/* Merges the lists that have an order in the patch, and removes them from the patch. */
static kl_status ordered_lists(job *j, const kl__schema *s, kl_edited *doc, kl_edited *patch)
{
    const kl_value *order;
    const char *key;
    kl_status st = KL_OK;
    for (size_t i = 0; (order = kl_value_member(patch->base, i, &key, NULL)) && !st; i++) {
        if (!STARTS(key, ORDER))
            continue;
        if (j->patches) {
            const kl_value *mine = kl_edited_get(doc, key);
            if (mine && !kl_value_equal(mine, order))
                st = kl__fail_bad_request(j->err, "two patches give one list two orders: %s", key);
            else
                kl_edited_put(doc, key, order);
        }
        kl_edited_put(patch, key, NULL);
        if (!st)
            st = ordered_list(j, s, key + sizeof ORDER - 1, order, doc, patch);
    }
    return st;
}

/* ------------------------------------------------------------------ objects */

static kl_status retain_keys(job *j, kl_edited *doc, kl_edited *patch)
{
    const kl_value *retain = kl_value_ref(kl_edited_get(patch, "$retainKeys")), *v;
    const char *key;
    kl_status st = KL_OK;
    if (retain)
        kl_edited_put(patch, "$retainKeys", NULL);
    if (retain && j->patches) {
        const kl_value *mine = kl_edited_get(doc, "$retainKeys");
        if (mine && !kl_value_equal(mine, retain))
            st = kl__fail_bad_request(j->err, "two patches retain different keys of one object");
        else
            kl_edited_put(doc, "$retainKeys", retain);
    } else if (retain && kl_value_type(retain) != KL_ARRAY) {
        st = kl__fail_bad_request(j->err, "invalid patch format of retainKeys");
    } else if (retain) {
        kl_finder listed = {0};
        kl_finder_add_all(&listed, retain);
        for (size_t i = 0; (v = kl_value_member(patch->base, i, &key, NULL)) && !st; i++)
            if (kl_value_type(v) != KL_NULL && !is_directive(key) && kl_finder_find_text(&listed, key) < 0)
                st = kl__fail_bad_request(j->err, "invalid patch format of retainKeys");
        for (size_t i = 0; kl_value_member(doc->base, i, &key, NULL) && !st; i++)
            if (kl_finder_find_text(&listed, key) < 0)
                kl_edited_put(doc, key, NULL);
        kl_finder_fini(&listed);
    }
    kl_value_unref(retain);
    return st;
}

static kl_status member(job *j, const kl__schema *s, const char *key, const kl_value *p, kl_edited *doc)
{
    bool removed = STARTS(key, REMOVED);
    if (removed && j->patches) {
        kl_edited_put(doc, key, p);
        return KL_OK;
    }
    const char *name = removed ? key + sizeof REMOVED - 1 : key;
    const kl_value *old = kl_edited_get(doc, name), *x = NULL;
    const kl__schema *below = kl__schema_child(s, name, strlen(name));
    kl_type type = kl_value_type(p);
    if (!below)
        below = &kl__schema_any;
    if (type == KL_NULL) {
        kl_edited_put(doc, name, j->patches ? p : NULL);
        return KL_OK;
    }
    if (!old || type != kl_value_type(old) || (type != KL_OBJECT && type != KL_ARRAY)) {
        if (!removed)
            put_added(j, doc, name, p);
        return KL_OK;
    }
    kl_status st = KL_OK;
    if (type == KL_OBJECT)
        st = merge(j, below, old, p, &x);
    else if ((below->patch_merge || removed) && kl_value_len(old) + kl_value_len(p))
        st = merge_list(j, below, old, p, removed, &x);
    else
        x = kl_value_ref(p);
    if (!st)
        kl_edited_put(doc, name, x);
    kl_value_unref(x);
    return st;
}

static kl_status merge(
    job *j, const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out)
{
    const kl_value *word = directive(patch), *v;
    const char *key;
    size_t n;
    if (word) {
        if (!says(word, "replace") && !says(word, "delete"))
            return unknown_directive(j, word);
        *out = kl_value_with(says(word, "replace") ? patch : NULL, "$patch", NULL);
        return KL_OK;
    }
    for (size_t i = 0; (kl_value_member(patch, i, &key, &n)); i++)
        if (strlen(key) != n)
            return kl__fail_bad_request(j->err, "a key of the patch has a NUL character in it: %s...", key);
    kl_edited doc = {.base = kl_value_type(old) == KL_OBJECT ? old : NULL}, rest = {.base = patch};
    kl_status st = retain_keys(j, &doc, &rest);
    if (!st)
        st = ordered_lists(j, s, &doc, &rest);
    const kl_value *left = kl_edited_done(&rest);
    for (size_t i = 0; !st && (v = kl_value_member(left, i, &key, NULL)); i++)
        st = member(j, s, key, v, &doc);
    const kl_value *done = kl_edited_done(&doc);
    kl_value_unref(left);
    if (!st)
        *out = done;
    else
        kl_value_unref(done);
    return st;
}

static kl_status run(
    job *j, const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out)
{
    if (kl_value_type(patch) != KL_OBJECT)
        return kl__fail_bad_request(
            j->err, "a strategic merge patch is an object, not of type %s", kl_value_type_name(patch));
    return merge(j, s ? s : &kl__schema_any, old, patch, out);
}

kl_status kl__smp_apply(
    const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out, kl_err *err)
{
    return run(&(job){false, err}, s, old, patch, out);
}

kl_status kl__smp_merge_patches(
    const kl__schema *s, const kl_value *one, const kl_value *two, const kl_value **out, kl_err *err)
{
    return run(&(job){true, err}, s, one, two, out);
}
