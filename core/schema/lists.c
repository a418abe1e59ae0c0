/* lists.c - empty lists out of a language that has one empty table for lists and objects. */
#include "schema/normalize.h"
#include "value/edited.h"

static const kl_value *of_items(const kl__schema *s, const kl_value *v)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const kl_value *item = kl__schema_lists(s, kl_value_item(v, i));
        kl_build_value(b, item);
        kl_value_unref(item);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *of_members(const kl__schema *s, const kl_value *v)
{
    kl_edited e = {.base = v};
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *old = kl_value_member(v, i, &key, &n), *now;
        const kl__schema *child = kl__schema_child(s, key, n);
        if (!child)
            continue;
        now = kl__schema_lists(child, old);
        if (now != old)
            kl_edited_put(&e, key, now);
        kl_value_unref(now);
    }
    return kl_edited_done(&e);
}

const kl_value *kl__schema_lists(const kl__schema *s, const kl_value *v)
{
    bool list = s && s->type == KL_S_LIST, object = kl_value_type(v) == KL_OBJECT;
    if (list && object && !kl_value_len(v))
        return kl_value_empty(KL_ARRAY);
    if (list && kl_value_type(v) == KL_ARRAY)
        return of_items(s->items, v);
    return object && s && !list ? of_members(s, v) : kl_value_ref(v);
}
