/* lookup.c - what shapes make cheap: reading a field whose place is remembered, and comparing the forms of
 * two values. A lookup holds the shape, so that its handle names no other one. */
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

static bool alike(kl__h a, kl__h b, kl__h except)
{
    if (a == b || (kl__is_int(a) && kl__is_int(b)))
        return true;
    if (!kl__is_node(a) || !kl__is_node(b) || kl__node_type(kl__at(a)) != kl__node_type(kl__at(b)))
        return false;
    const kl__node *x = kl__at(a), *y = kl__at(b);
    kl_type t = kl__node_type(x);
    if (t == KL_ARRAY) {
        for (uint32_t i = 0; i < y->len; i++)
            if (!alike(x->v[i < x->len ? i : x->len - 1], y->v[i], except))
                return false;
    } else if (t == KL_OBJECT) {
        const kl__node *shape = kl__shape_of(x);
        for (uint32_t i = 0; x->len == y->len && i < shape->len; i++)
            if (x->v[i] != y->v[i] && (shape->v[i] == except || !alike(x->v[i], y->v[i], except)))
                return false;
    }
    return t == KL_ARRAY || t == KL_STRING || (t == KL_OBJECT && x->len == y->len);
}

bool kl_value_alike(const kl_value *a, const kl_value *b, const kl_value *except)
{
    return alike(kl__handle(a), kl__handle(b), kl__handle(except));
}
