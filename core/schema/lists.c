/* lists.c - empty lists: out of a language that has one empty table for lists and objects; and into null,
 * where Go's storage has no empty lists. */
#include "schema/normalize.h"
#include "value/edited.h"

typedef const kl_value *each(const kl__schema *s, const kl_value *v);

static const kl_value *of_items(const kl__schema *s, const kl_value *v, each *f)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const kl_value *item = f(s, kl_value_item(v, i));
        kl_build_value(b, item);
        kl_value_unref(item);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *of_members(const kl__schema *s, const kl_value *v, each *f)
{
    kl_edited e = {.base = v};
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *old = kl_value_member(v, i, &key, &n), *now;
        const kl__schema *child = kl__schema_child(s, key, n);
        if (!child)
            continue;
        now = f(child, old);
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
        return of_items(s->items, v, kl__schema_lists);
    return object && s && !list ? of_members(s, v, kl__schema_lists) : kl_value_ref(v);
}

const kl_value *kl__null_lists(const kl__schema *s, const kl_value *v)
{
    bool list = kl_value_type(v) == KL_ARRAY;
    if (!s || !s->nulls || (!list && kl_value_type(v) != KL_OBJECT) || list != (s->type == KL_S_LIST))
        return kl_value_ref(v);
    if (list)
        return of_items(s->items, v, kl__null_lists);
    const kl_value *below = of_members(s, v, kl__null_lists);
    kl_edited e = {.base = below};
    for (size_t i = 0; i < s->nfields; i++) {
        const kl__field *f = &s->fields[i];
        const kl_value *x = f->null && f->schema->type == KL_S_LIST ? kl_value_get(v, f->name) : NULL;
        if (kl_value_type(x) == KL_ARRAY && !kl_value_len(x))
            kl_edited_put(&e, f->name, kl_value_null());
    }
    const kl_value *out = kl_edited_done(&e);
    kl_value_unref(below);
    return out;
}
