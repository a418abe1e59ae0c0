/* shape.c - an object's keys: where a key stands. Many keys carry an index, 2^k words that each are 0 or 1
 * + a place. */
#include "base/hash.h"
#include "value/intern.h"

uint32_t kl__index_cap(size_t keys)
{
    if (keys <= KL__INDEXED_ABOVE)
        return 0;
    uint32_t cap = 64;
    while (cap < 2 * keys)
        cap *= 2;
    return cap;
}

static uint32_t key_hash(const char *s, size_t n) { return (uint32_t)kl_quick_hash(s, n); }

void kl__index_fill(kl__node *shape)
{
    uint32_t cap = kl__index_cap(shape->len), *index = shape->v + shape->len;
    memset(index, 0, cap * sizeof *index);
    for (uint32_t i = 0; i < shape->len; i++) {
        size_t n;
        const char *s = kl__bytes(shape->v[i], &n);
        uint32_t at = key_hash(s, n) & (cap - 1);
        while (index[at])
            at = (at + 1) & (cap - 1);
        index[at] = i + 1;
    }
}

static bool is_key(kl__h h, const char *key, size_t n)
{
    size_t kn;
    const char *k = kl__bytes(h, &kn);
    return kn == n && !memcmp(k, key, n);
}

size_t kl__shape_find(const kl__node *shape, const char *key, size_t n)
{
    uint32_t len = shape->len, cap = kl__index_cap(len);
    if (!cap) {
        for (uint32_t i = 0; i < len; i++)
            if (is_key(shape->v[i], key, n))
                return i;
        return SIZE_MAX;
    }
    const uint32_t *index = shape->v + len;
    for (uint32_t at = key_hash(key, n) & (cap - 1); index[at]; at = (at + 1) & (cap - 1))
        if (is_key(shape->v[index[at] - 1], key, n))
            return index[at] - 1;
    return SIZE_MAX;
}

size_t kl__shape_find_key(const kl__node *shape, kl__h key)
{
    if (shape->len > 4 * KL__INDEXED_ABOVE) {
        size_t n;
        const char *s = kl__bytes(key, &n);
        return kl__shape_find(shape, s, n);
    }
    for (uint32_t i = 0; i < shape->len; i++)
        if (shape->v[i] == key)
            return i;
    return SIZE_MAX;
}
