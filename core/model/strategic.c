/* strategic.c - merges maps by key, and lists by element where it is known how. */
#include "model/strategic.h"

#include <string.h>

#include "model/mergelist.h"

static const kl_value *strategic(const char *field, const kl_value *doc, const kl_value *patch, bool builtin);

static bool directive(const kl_value *patch, const char *what)
{
    const char *d = kl_value_str_at(patch, "$patch", NULL);
    return d && !strcmp(d, what);
}

static const kl_value *strategic_object(const kl_value *doc, const kl_value *patch, bool builtin)
{
    const kl_value *out = directive(patch, "replace") || kl_value_type(doc) != KL_OBJECT ? NULL
                                                                                         : kl_value_ref(doc);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_end(b);
    const kl_value *empty = kl_builder_done(b);
    if (!out)
        out = kl_value_ref(empty);
    for (size_t i = 0; i < kl_value_len(patch); i++) {
        const char *key;
        const kl_value *v = kl_value_member(patch, i, &key, NULL), *x;
        if (*key == '$') /* how to order, and what to keep: the server's to know */
            continue;
        x = kl_value_type(v) == KL_NULL ? NULL : strategic(key, kl_value_get(out, key), v, builtin);
        const kl_value *next = kl_value_with(out, key, x);
        kl_value_unref(out);
        out = next;
        kl_value_unref(x);
    }
    kl_value_unref(empty);
    return out;
}

static const kl_value *strategic_list(
    const kl_merge_keys *k, const kl_value *doc, const kl_value *patch, bool builtin)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(doc); i++) {
        const kl_value *x = kl_value_item(doc, i), *p = kl_value_item(patch, kl_merge_find(k, patch, x));
        if (directive(p, "delete"))
            continue;
        const kl_value *v = p && !k->set ? strategic_object(x, p, builtin) : kl_value_ref(x);
        kl_build_value(b, v);
        kl_value_unref(v);
    }
    for (size_t i = 0; i < kl_value_len(patch); i++) {
        const kl_value *p = kl_value_item(patch, i);
        if (!directive(p, "delete") && kl_merge_find(k, doc, p) == kl_value_len(doc))
            kl_build_value(b, p);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *strategic(const char *field, const kl_value *doc, const kl_value *patch, bool builtin)
{
    kl_merge_keys k;
    if (kl_value_type(patch) == KL_OBJECT)
        return strategic_object(doc, patch, builtin);
    if (kl_value_type(patch) == KL_ARRAY && kl_value_type(doc) == KL_ARRAY
        && kl_merge_keys_of(field, builtin, doc, patch, &k))
        return strategic_list(&k, doc, patch, builtin);
    return kl_value_ref(patch);
}

const kl_value *kl_strategic_apply(const kl_value *doc, const kl_value *patch, bool builtin)
{
    return strategic("", doc, patch, builtin);
}
