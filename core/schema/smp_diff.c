/* smp_diff.c - creates strategic merge patches: from two objects, and from three.
 *
 * Three-way: additions and changes of `modified` over `current`, and its deletions from `original`, merged
 * into one patch. */
#include "schema/smp.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/smp_list.h"
#include "schema/status.h"

typedef struct job {
    bool deletions, changes; /* which kinds of difference count */
    bool orders;             /* lists get their $setElementOrder */
    kl_err *err;
} job;

static kl_status diff(const job *j, const kl__schema *s, bool retain, const kl_value *from,
    const kl_value *to, const kl_value **out);

/* The patch under construction: *patch with `key`. */
static void put(const kl_value **patch, const char *key, const kl_value *x)
{
    const kl_value *next = kl_value_with(*patch, key, x);
    kl_value_unref(*patch);
    *patch = next;
}

static void put_beside(const kl_value **patch, const char *prefix, const char *key, const kl_value *x)
{
    char *name = kl_sprintf("%s/%s", prefix, key);
    put(patch, name, x);
    kl_free(name);
}

/* ------------------------------------------------------------------ lists */

/* An element of a list with its text as Go prints it. */
typedef struct item {
    const kl_value *v;
    char *text;
    size_t at;
} item;
typedef struct items {
    item *v;
    size_t len;
} items;

static char *text_of(const kl_value *v)
{
    const char *s = kl_value_str(v);
    return s ? kl_strdup(s) : kl_value_to_json(v);
}

static int by_text(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : x->at < y->at ? 1 : -1;
}

/* Sorts the elements by text. Equal texts come out in reverse, as in Go, which sorts short lists by insertion
 * with a comparison that calls equals "less". */
static items sorted(const kl_value *list, const char *key)
{
    items out = {kl_new_array(item, kl_value_len(list) + 1), kl_value_len(list)};
    for (size_t i = 0; i < out.len; i++) {
        const kl_value *v = kl_value_item(list, i);
        out.v[i] = (item){v, text_of(kl__merge_key(v, key)), i};
    }
    if (out.len)
        qsort(out.v, out.len, sizeof *out.v, by_text);
    return out;
}

static void items_fini(items *x)
{
    for (size_t i = 0; i < x->len; i++)
        kl_free(x->v[i].text);
    kl_free(x->v);
}

static const kl_value *deletion(const char *key, const kl_value *value)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "$patch", "delete");
    kl_build_kvalue(b, key, value);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* An item of both lists: for maps, adds their difference, with the merge key. */
static kl_status changed_item(const job *j, const kl__schema *s, bool retain, const char *key,
    const kl_value *from, const kl_value *to, kl__rows *add)
{
    const kl_value *patch = NULL;
    if (!key)
        return KL_OK;
    kl_status st = diff(j, s, retain, from, to, &patch);
    if (!st && kl_value_len(patch)) {
        put(&patch, key, kl_value_get(to, key));
        kl__rows_add(add, kl_value_ref(patch));
    }
    kl_value_unref(patch);
    return st;
}

/* Compares both lists side by side in the order of their texts. `key` NULL: scalars. */
static kl_status compare(const job *j, const kl__schema *s, bool retain, const char *key,
    const kl_value *from, const kl_value *to, kl__rows *add, kl__rows *gone)
{
    items a = sorted(from, key), b = sorted(to, key);
    kl_status st = KL_OK;
    kl_finder scalars = {0}; /* those in `gone`: each once */
    for (size_t i = 0, k = 0; !st && (i < a.len || k < b.len);) {
        int order = i == a.len ? 1 : k == b.len ? -1 : strcmp(a.v[i].text, b.v[k].text);
        if (!order)
            st = changed_item(j, s, retain, key, a.v[i].v, b.v[k].v, add);
        else if (order > 0 && j->changes)
            kl__rows_add(add, kl_value_ref(b.v[k].v));
        else if (order < 0 && j->deletions && key)
            kl__rows_add(gone, deletion(key, kl_value_get(a.v[i].v, key)));
        else if (order < 0 && j->deletions && kl_finder_find(&scalars, a.v[i].v) < 0) {
            kl__rows_add(gone, kl_value_ref(a.v[i].v));
            kl_finder_add(&scalars, a.v[i].v);
        }
        i += order <= 0;
        k += order >= 0;
    }
    items_fini(&a);
    items_fini(&b);
    kl_finder_fini(&scalars);
    return st;
}

static bool same_order(const kl_value *a, const kl_value *b, const char *key)
{
    bool same = kl_value_len(a) == kl_value_len(b);
    for (size_t i = 0; i < kl_value_len(a) && same; i++)
        same = kl_value_equal(
            kl__merge_key(kl_value_item(a, i), key), kl__merge_key(kl_value_item(b, i), key));
    return same;
}

/* The keys of a list's items, in their order: {key: value} each. */
static const kl_value *keys_of(const kl_value *list, const char *key)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        kl_build_object(b);
        kl_build_kvalue(b, key, kl_value_get(kl_value_item(list, i), key));
        kl_build_end(b);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static kl_status diff_maps(const job *j, const kl__schema *s, bool retain, const char *name,
    const kl_value *from, const kl_value *to, const kl_value **patch)
{
    const char *key = s->patch_key;
    kl__rows add = {0}, gone = {0};
    if (!key)
        return kl__fail_bad_request(j->err, "%s has no merge key", name);
    kl_status st = kl__list_has_keys(from, key, j->err);
    if (!st)
        st = kl__list_has_keys(to, key, j->err);
    if (!st)
        st = compare(j, s->items, retain, key, from, to, &add, &gone);
    if (!st) {
        kl__rows_sort(&add, to, key);
        for (size_t i = 0; i < gone.len; i++)
            kl__rows_add(&add, kl_value_ref(gone.v[i]));
        bool any = add.len;
        if (any) {
            const kl_value *x = kl__rows_done(&add);
            put(patch, name, x);
            kl_value_unref(x);
        }
        if (j->orders && kl_value_len(to)
            && ((j->changes && (any || !same_order(from, to, key))) || (j->deletions && any))) {
            const kl_value *x = keys_of(to, key);
            put_beside(patch, "$setElementOrder", name, x);
            kl_value_unref(x);
        }
    }
    kl__rows_fini(&add);
    kl__rows_fini(&gone);
    return st;
}

/* Whether a list is the other one sorted. Go sorts the old list in place before it compares it with the new
 * one, so a pure reordering gets no order directive; we do the same, since servers know kubectl's patches. */
static bool is_sorted_form(const kl_value *list, const kl_value *of)
{
    items all = sorted(of, NULL);
    bool same = all.len == kl_value_len(list);
    for (size_t i = 0; i < all.len && same; i++)
        same = kl_value_equal(all.v[i].v, kl_value_item(list, i));
    items_fini(&all);
    return same;
}

static kl_status diff_scalars(
    const job *j, const char *name, const kl_value *from, const kl_value *to, const kl_value **patch)
{
    kl__rows add = {0}, gone = {0};
    kl_status st = compare(j, NULL, false, NULL, from, to, &add, &gone);
    bool removed = gone.len;
    if (!st && add.len) {
        kl__rows_sort(&add, to, NULL);
        const kl_value *x = kl__rows_done(&add);
        put(patch, name, x);
        kl_value_unref(x);
    }
    if (!st && removed) {
        const kl_value *x = kl__rows_done(&gone);
        put_beside(patch, "$deleteFromPrimitiveList", name, x);
        kl_value_unref(x);
    }
    if (!st && j->orders && kl_value_len(to)
        && ((j->deletions && removed) || (j->changes && !is_sorted_form(to, from))))
        put_beside(patch, "$setElementOrder", name, to);
    kl__rows_fini(&add);
    kl__rows_fini(&gone);
    return st;
}

static kl_status diff_lists(const job *j, const kl__schema *s, bool retain, const char *name,
    const kl_value *from, const kl_value *to, const kl_value **patch)
{
    kl_type type;
    if (!kl_value_len(from)) {
        if (kl_value_len(to) && j->changes)
            put(patch, name, to);
        return KL_OK;
    }
    kl_status st = kl__list_type(from, to, &type, j->err);
    if (st)
        return st;
    return type == KL_OBJECT ? diff_maps(j, s, retain, name, from, to, patch)
                             : diff_scalars(j, name, from, to, patch);
}

/* ------------------------------------------------------------------ objects */

static kl_status diff_member(const job *j, const kl__schema *s, const char *key, const kl_value *from,
    const kl_value *to, const kl_value **patch)
{
    kl_type type = kl_value_type(to);
    bool container = type == KL_OBJECT || type == KL_ARRAY;
    const kl__field *f = kl__schema_field(s, key, strlen(key));
    const kl__schema *below = kl__schema_child(s, key, strlen(key));
    const kl_value *inner = NULL;
    kl_status st = KL_OK;
    if (!below)
        below = &kl__schema_any;
    if (!from || !container || type != kl_value_type(from) || (type == KL_ARRAY && !below->patch_merge)) {
        if (j->changes && !(from && kl_value_equal(from, to)))
            put(patch, key, to);
    } else if (type == KL_ARRAY) {
        st = diff_lists(j, below, f && f->retain, key, from, to, patch);
    } else {
        st = diff(j, below, f && f->retain, from, to, &inner);
        if (!st && kl_value_len(inner))
            put(patch, key, inner);
        kl_value_unref(inner);
    }
    return st;
}

/* The names of the members that are not null, sorted, as a list. */
static const kl_value *member_names(const kl_value *v)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    const char *key;
    const kl_value *x;
    for (size_t i = 0; (x = kl_value_member(v, i, &key, NULL)); i++)
        if (kl_value_type(x) != KL_NULL)
            kl_build_str(b, key);
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b);
    items all = sorted(list, NULL);
    kl__rows rows = {0};
    for (size_t i = 0; i < all.len; i++)
        kl__rows_add(&rows, kl_value_ref(all.v[i].v));
    items_fini(&all);
    kl_value_unref(list);
    return kl__rows_done(&rows);
}

static bool lost_a_member(const kl_value *from, const kl_value *to)
{
    const char *key;
    const kl_value *x;
    for (size_t i = 0; (x = kl_value_member(from, i, &key, NULL)); i++)
        if (kl_value_type(x) != KL_NULL && !kl_value_get(to, key))
            return true;
    return false;
}

static kl_status diff(const job *j, const kl__schema *s, bool retain, const kl_value *from,
    const kl_value *to, const kl_value **out)
{
    const kl_value *patch = kl_value_with(NULL, "x", NULL), *v, *null = NULL;
    const char *key;
    kl_status st = kl_value_decode("null", 4, &null, j->err);
    for (size_t i = 0; !st && (v = kl_value_member(to, i, &key, NULL)); i++)
        st = diff_member(j, s, key, kl_value_get(from, key), v, &patch);
    for (size_t i = 0; !st && j->deletions && (v = kl_value_member(from, i, &key, NULL)); i++)
        if (!kl_value_get(to, key))
            put(&patch, key, null);
    if (!st && retain) {
        const kl_value *names = member_names(to);
        if (kl_value_len(names) && (kl_value_len(patch) || lost_a_member(from, to)))
            put(&patch, "$retainKeys", names);
        kl_value_unref(names);
    }
    if (!st)
        *out = patch;
    else
        kl_value_unref(patch);
    return st;
}

static kl_status objects_only(const kl_value *v, kl_err *err)
{
    return !v || kl_value_type(v) == KL_OBJECT
        ? KL_OK
        : kl__fail_bad_request(
            err, "a strategic merge patch is made of objects, not of type %s", kl_value_type_name(v));
}

kl_status kl__smp_diff(
    const kl__schema *s, const kl_value *from, const kl_value *to, const kl_value **out, kl_err *err)
{
    const job j = {.deletions = true, .changes = true, .orders = true, .err = err};
    kl_status st = objects_only(from, err);
    if (!st)
        st = objects_only(to, err);
    return st ? st : diff(&j, s ? s : &kl__schema_any, false, from, to, out);
}

/* ------------------------------------------------------------------ three */

static bool clash(const kl__schema *s, const kl_value *a, const kl_value *b);

static bool lists_clash(const kl__schema *s, const kl_value *a, const kl_value *b)
{
    kl_type type;
    kl_err err = KL_ERR_INIT;
    bool odd = kl__list_type(a, b, &type, &err) || type == KL_NULL;
    kl_err_fini(&err);
    if (odd)
        return true;
    bool merges = s->patch_merge, maps = type == KL_OBJECT,
         clashes = !merges && kl_value_len(a) != kl_value_len(b);
    if (clashes || (merges && !maps))
        return clashes;
    kl_finder f = {.key = maps ? s->patch_key : NULL};
    kl_finder_add_all(&f, b);
    for (size_t i = 0; !clashes && i < kl_value_len(a); i++) {
        const kl_value *x = kl_value_item(a, i);
        long at = maps && !merges ? (long)i : kl_finder_find(&f, x);
        clashes = maps ? at >= 0 && clash(s->items, x, kl_value_item(b, (size_t)at)) : at < 0;
    }
    kl_finder_fini(&f);
    return clashes;
}

/* Whether two patches of one object conflict. */
static bool clash(const kl__schema *s, const kl_value *a, const kl_value *b)
{
    const char *key;
    const kl_value *x, *y;
    if (kl_value_type(a) != kl_value_type(b))
        return true;
    if (!s)
        s = &kl__schema_any;
    if (kl_value_type(a) == KL_ARRAY)
        return lists_clash(s, a, b);
    if (kl_value_type(a) != KL_OBJECT)
        return !kl_value_equal(a, b);
    if (!kl_value_equal(kl_value_get(a, "$patch"), kl_value_get(b, "$patch")))
        return true;
    for (size_t i = 0; (x = kl_value_member(a, i, &key, NULL)); i++)
        if (strcmp(key, "$patch") && strcmp(key, "$retainKeys") && (y = kl_value_get(b, key))
            && clash(kl__schema_child(s, key, strlen(key)), x, y))
            return true;
    return false;
}

/* A conflict when another writer has changed the patched fields since. */
static kl_status no_conflict(const kl__schema *s, const kl_value *original, const kl_value *current,
    const kl_value *patch, kl_err *err)
{
    const job all = {.deletions = true, .changes = true, .err = err};
    const kl_value *theirs = NULL;
    kl_status st = diff(&all, s, false, original, current, &theirs);
    if (!st && clash(s, patch, theirs)) {
        char *a = kl_value_to_json(patch), *b = kl_value_to_json(theirs);
        st = kl__api_fail(err, 409, "Conflict", NULL,
            "patch:\n%s\nconflicts with changes made from original to current:\n%s", a, b);
        kl_free(a);
        kl_free(b);
    }
    kl_value_unref(theirs);
    return st;
}

kl_status kl__smp_three_way(const kl__schema *s, const kl_value *original, const kl_value *modified,
    const kl_value *current, bool overwrite, const kl_value **out, kl_err *err)
{
    const job additions = {.changes = true, .orders = true, .err = err},
              deletions = {.deletions = true, .orders = true, .err = err};
    const kl_value *set = NULL, *gone = NULL, *patch = NULL;
    if (!s)
        s = &kl__schema_any;
    kl_status st = objects_only(original, err);
    if (!st)
        st = objects_only(modified, err);
    if (!st)
        st = objects_only(current, err);
    if (!st)
        st = diff(&additions, s, false, current, modified, &set);
    if (!st)
        st = diff(&deletions, s, false, original, modified, &gone);
    if (!st)
        st = kl__smp_merge_patches(s, gone, set, &patch, err);
    if (!st && !overwrite)
        st = no_conflict(s, original, current, patch, err);
    if (!st)
        *out = kl_value_ref(patch);
    kl_value_unref(set);
    kl_value_unref(gone);
    kl_value_unref(patch);
    return st;
}
