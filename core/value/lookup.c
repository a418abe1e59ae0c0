/* lookup.c - reading a field whose place is remembered. The lookup holds the shape, so that its handle
 * names no other one. */
#include "value/intern.h"

#define ABSENT UINT32_MAX

void kl_lookup_init(kl_lookup *l, const char *key, size_t n)
{
    *l = (kl_lookup){kl_value_of_strn(key, n), 0, ABSENT};
}

void kl_lookup_fini(kl_lookup *l)
{
    kl_value_unref(KL__VALUE(l->shape));
    kl_value_unref(l->key);
}

uint32_t kl_value_shape(const kl_value *v)
{
    return kl__is(kl__handle(v), KL_OBJECT) ? kl__at(kl__handle(v))->len : 0;
}

static void learn(kl_lookup *l, kl__h shape)
{
    size_t place = kl__shape_find_key(kl__at(shape), kl__handle(l->key));
    kl_value_ref(KL__VALUE(shape));
    kl_value_unref(KL__VALUE(l->shape));
    l->shape = shape;
    l->place = place == SIZE_MAX ? ABSENT : (uint32_t)place;
}

const kl_value *kl_value_find(const kl_value *v, kl_lookup *l)
{
    if (!kl__is(kl__handle(v), KL_OBJECT))
        return NULL;
    kl__h shape = kl__at(kl__handle(v))->len;
    if (shape != l->shape)
        learn(l, shape);
    return l->place == ABSENT ? NULL : kl__val(v, l->place);
}
