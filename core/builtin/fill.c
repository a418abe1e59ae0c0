/* fill.c - defaults: an absent field gets a value, a present field stays. */
#include "builtin/fill.h"

#include "schema/edit.h"

void kl__put_str(const kl_value **o, const char *key, const char *text)
{
    if (kl__absent(*o, key))
        KL_EDIT(o, kl_value_of_str(text), key);
}
void kl__put_int(const kl_value **o, const char *key, int64_t n)
{
    if (kl__absent(*o, key))
        KL_EDIT(o, kl_value_of_int(n), key);
}
void kl__put_bool(const kl_value **o, const char *key, bool b)
{
    if (kl__absent(*o, key))
        KL_EDIT(o, kl_value_of_bool(b), key);
}
void kl__put_object(const kl_value **o, const char *key)
{
    if (!kl__absent(*o, key))
        return;
    KL_EDIT(o, kl_value_empty(KL_OBJECT), key);
}

void kl__inside(const kl_value **o, const char *key, kl__edit_fn *edit)
{
    const kl_value *v = kl_value_get(*o, key);
    if (!v)
        return;
    const kl_value *x = kl_value_ref(v);
    edit(&x);
    if (x == v)
        kl_value_unref(x);
    else
        KL_EDIT(o, x, key);
}

static void each(const kl_value **list, kl__edit_fn *edit)
{
    if (kl_value_type(*list) != KL_ARRAY)
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    bool same = true;
    for (size_t i = 0; i < kl_value_len(*list); i++) {
        const kl_value *v = kl_value_item(*list, i), *x = kl_value_ref(v);
        if (kl_value_type(x) == KL_OBJECT)
            edit(&x);
        same = same && x == v;
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    kl_build_end(b);
    if (same)
        kl_builder_free(b);
    else
        kl__replace(list, kl_builder_done(b));
}

void kl__each_inside(const kl_value **o, const char *key, kl__edit_fn *edit)
{
    const kl_value *v = kl_value_get(*o, key);
    if (!v)
        return;
    const kl_value *x = kl_value_ref(v);
    each(&x, edit);
    if (x == v)
        kl_value_unref(x);
    else
        KL_EDIT(o, x, key);
}

void kl__cut(const kl_value **o, const char *const *members)
{
    for (; *members; members++)
        if (!kl__absent(*o, *members))
            KL_CUT(o, *members);
}
