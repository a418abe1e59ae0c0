/* patch.c - a document and a patch, both any JSON: merge patches do what RFC 7386 says in so many words,
 * JSON patches do what one operation after the other does, a strategic patch without its words is a merge
 * patch. */
#include "base/mem.h"
#include "fuzz/two.h"
#include "fuzz/types.h"
#include "value/patch.h"
#include "schema/smp.h"

/* --- merge patch -------------------------------------------------------------------------- */

static bool plain_key(const char *key, size_t n) { return strlen(key) == n && *key != '$'; }

/* Whether kl_value_with can say every key, none is a directive, and (`nulls`) no member is null. */
static bool plain(const kl_value *v, bool nulls)
{
    const char *key;
    size_t n;
    const kl_value *m;
    for (size_t i = 0; kl_value_type(v) == KL_ARRAY && (m = kl_value_item(v, i)); i++)
        if (!plain(m, nulls))
            return false;
    if (kl_value_type(v) != KL_OBJECT)
        return true;
    for (size_t i = 0; (m = kl_value_member(v, i, &key, &n)); i++)
        if (!plain_key(key, n) || (nulls && kl_value_type(m) == KL_NULL) || !plain(m, nulls))
            return false;
    return true;
}

/* A list with what the objects in it make of nothing, where null means remove. */
static const kl_value *by_the_book(const kl_value *target, const kl_value *patch);
static const kl_value *list_by_the_book(const kl_value *list)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *x = by_the_book(NULL, kl_value_item(list, i));
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* RFC 7386, section 2, line by line; lists as the API server has them. */
static const kl_value *by_the_book(const kl_value *target, const kl_value *patch)
{
    if (kl_value_type(patch) == KL_ARRAY)
        return list_by_the_book(patch);
    if (kl_value_type(patch) != KL_OBJECT)
        return kl_value_ref(patch);
    const kl_value *out = kl_value_type(target) == KL_OBJECT ? kl_value_ref(target)
                                                             : kl_value_with(NULL, "x", NULL),
                   *v, *next;
    const char *key;
    for (size_t i = 0; (v = kl_value_member(patch, i, &key, NULL)); i++) {
        const kl_value *x = kl_value_type(v) == KL_NULL ? NULL : by_the_book(kl_value_get(out, key), v);
        next = kl_value_with(out, key, x);
        kl_value_unref(out);
        kl_value_unref(x);
        out = next;
    }
    return out;
}

static void merge_patch(const kl_value *doc, const kl_value *patch)
{
    const kl_value *out = kl_merge_patch_apply(doc, patch), *again = kl_merge_patch_apply(out, patch);
    CLAIM(again == out);
    if (plain(patch, false)) {
        const kl_value *want = by_the_book(doc, patch);
        CLAIM(want == out);
        kl_value_unref(want);
    }
    const kl_value *way = kl_merge_patch_create(doc, out), *there = kl_merge_patch_apply(doc, way);
    if (plain(out, true))
        CLAIM(kl_value_equal(there, out));
    kl_value_unref(out);
    kl_value_unref(again);
    kl_value_unref(way);
    kl_value_unref(there);
    way = kl_merge_patch_create(doc, patch); /* the patch as another document */
    there = kl_merge_patch_apply(doc, way);
    if (plain(patch, true))
        CLAIM(kl_value_equal(there, patch));
    kl_value_unref(way);
    kl_value_unref(there);
}

/* --- strategic merge patch ---------------------------------------------------------------- */

static void strategic_patch(const kl_value *doc, const kl_value *patch)
{
    static const char *const names[] = {
        "core.v1.PodSpec", "meta.v1.ObjectMeta", "core.v1.ServiceSpec", "core.v1.NodeStatus"};
    kl_err err = KL_ERR_INIT;
    const kl_value *out = NULL, *merged;
    if (!kl__smp_apply(NULL, doc, patch, &out, &err)) {
        merged = kl_merge_patch_apply(doc, patch);
        if (plain(patch, false) && kl_value_type(patch) == KL_OBJECT)
            CLAIM(kl_value_equal(out, merged));
        kl_value_unref(merged);
    }
    kl_value_unref(out);
    kl_err_fini(&err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        out = NULL;
        if (kl__smp_apply(kl__types_get(builtin(), names[i]), doc, patch, &out, &err))
            CLAIM(!out && err.status == KL_EINVAL && *kl_err_message(&err));
        else
            CLAIM(kl_value_type(patch) != KL_OBJECT || kl_value_type(out) == KL_OBJECT);
        kl_value_unref(out);
        kl_err_fini(&err);
    }
}

/* --- JSON patch --------------------------------------------------------------------------- */

static const kl_value *list_of(const kl_value *v)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_value(b, v);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Whether the document has `value` at `path`, asked by an operation. */
static bool has(const kl_value *doc, const kl_value *path, const kl_value *value)
{
    const kl_value *out = NULL;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "op", "test");
    kl_build_kvalue(b, "path", path);
    kl_build_kvalue(b, "value", value);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *patch = kl_builder_done(b);
    bool yes = !kl_json_patch_apply(doc, patch, &out, NULL);
    CLAIM(!yes || out == doc);
    kl_value_unref(out);
    kl_value_unref(patch);
    return yes;
}

/* An operation that was done: it named its place in full, and what it says is so. */
static void law_of_an_operation(const kl_value *op, const kl_value *before, const kl_value *after)
{
    const char *name = kl_value_str_at(op, "op", NULL), *path = kl_value_str_at(op, "path", NULL);
    const kl_value *nothing = NULL;
    CLAIM(name && path && strlen(name) == kl_value_len(kl_value_get(op, "op"))
        && strlen(path) == kl_value_len(kl_value_get(op, "path")));
    const kl_value *value = kl_value_get(op, "value");
    if (!value)
        CLAIM(!kl_value_decode("null", 4, &nothing, NULL));
    size_t n = strlen(path);
    bool end = n && path[n - 1] == '-'; /* "/-" is no place that could be asked for */
    if (!strcmp(name, "test"))
        CLAIM(after == before && has(before, kl_value_get(op, "path"), value));
    else if (!strcmp(name, "replace") || (!strcmp(name, "add") && !end))
        CLAIM(has(after, kl_value_get(op, "path"), value ? value : nothing));
    else if (!strcmp(name, "remove"))
        CLAIM(after != before);
    kl_value_unref(nothing);
}

static void json_patch(const kl_value *doc, const kl_value *patch)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *out = NULL, *now = kl_value_ref(doc), *next;
    kl_status st = kl_json_patch_apply(doc, patch, &out, &err), one = KL_OK;
    if (st)
        CLAIM((st == KL_EINVAL || st == KL_EREJECTED) && st == err.status && *kl_err_message(&err) && !out);
    /* a bound of the whole patch */
    if (kl_value_type(patch) == KL_ARRAY && !strstr(kl_err_message(&err), "3 MiB together")) {
        for (size_t i = 0; i < kl_value_len(patch) && !one; i++) {
            const kl_value *alone = list_of(kl_value_item(patch, i));
            next = NULL;
            one = kl_json_patch_apply(now, alone, &next, NULL);
            if (!one) {
                law_of_an_operation(kl_value_item(patch, i), now, next);
                kl_value_unref(now);
                now = next;
            }
            kl_value_unref(alone);
        }
        CLAIM(st == one);
        CLAIM(st || out == now);
    }
    kl_value_unref(out);
    kl_value_unref(now);
    kl_err_fini(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const kl_value *doc, *patch;
    if (!two_values(data, size, &doc, &patch))
        return 0;
    merge_patch(doc, patch);
    json_patch(doc, patch);
    if (kl_value_type(doc) == KL_OBJECT && kl_value_type(patch) == KL_OBJECT)
        strategic_patch(doc, patch);
    kl_value_unref(doc);
    kl_value_unref(patch);
    return 0;
}
