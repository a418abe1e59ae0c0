/* finder.c - a hash table of items, chained in the order in which they were added. */
#include "value/finder.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"

/* The member as it is compared; NULL: absent. */
static const kl_value *part(const kl_finder *f, const kl_value *item, const char *key)
{
    const kl_value *v = key ? kl_value_get(item, key) : item;
    size_t n = 1;
    if (f->empty_is_absent)
        kl_value_strn(v, &n);
    return !n || kl_value_type(v) == KL_NULL ? NULL : v;
}

static bool same_part(const kl_finder *f, const kl_value *a, const kl_value *b, const char *key)
{
    return kl_value_equal(part(f, a, key), part(f, b, key)); /* which knows NULL */
}

static bool alike(const kl_finder *f, const kl_value *a, const kl_value *b)
{
    bool same = same_part(f, a, b, f->key);
    for (const char *const *key = f->more; same && key && *key; key++)
        same = same_part(f, a, b, *key);
    return same;
}

static uint64_t hash_in(uint64_t before, uint64_t part)
{
    uint64_t both[] = {before, part};
    return kl_hash(both, sizeof both);
}

/* Equal values have equal hashes: numbers of all types, objects in any order. Each part goes through the
 * seeded hash, or an attacker could choose colliding keys. Below the greatest depth of JSON only the type
 * counts, so that the recursion has a bound. */
static uint64_t hash_of(const kl_value *v, unsigned depth)
{
    size_t n = 0;
    kl_type type = kl_value_type(v);
    uint64_t h = depth == KL_VALUE_DEPTH_MAX ? type : 0;
    double d = kl_value_double(v, 0) + 0.0; /* no -0 */
    const char *s = kl_value_strn(v, &n);
    switch (h ? KL_NULL : type) {
    case KL_NULL: break;
    case KL_BOOL: h = 1 + kl_value_bool(v, false); break;
    case KL_INT:
    case KL_UINT:
    case KL_DOUBLE: h = kl_hash(&d, sizeof d); break;
    case KL_STRING: h = kl_hash(s, n); break;
    case KL_ARRAY:
        h = KL_ARRAY;
        for (size_t i = 0; i < kl_value_len(v); i++)
            h = hash_in(h, hash_of(kl_value_item(v, i), depth + 1));
        break;
    case KL_OBJECT:
        for (size_t i = 0; i < kl_value_len(v); i++) {
            const kl_value *x = kl_value_member(v, i, &s, &n);
            h += hash_in(kl_hash(s, n), hash_of(x, depth + 1));
        }
        h = hash_in(KL_OBJECT, h);
        break;
    }
    return h;
}

static size_t place_of(const kl_finder *f, uint64_t h) { return (size_t)(h ^ h >> 32) & f->mask; }

static size_t chain_of(const kl_finder *f, const kl_value *item)
{
    uint64_t h = hash_of(part(f, item, f->key), 0);
    for (const char *const *key = f->more; key && *key; key++)
        h = hash_in(h, hash_of(part(f, item, *key), 0));
    return place_of(f, h);
}

/* Adds a value at the end of its chain, so that the first of several equal ones is found first. */
static void chain(kl_finder *f, size_t at)
{
    size_t c = chain_of(f, f->v[at]);
    f->next[at] = 0;
    if (f->heads[c])
        f->next[f->tails[c] - 1] = (uint32_t)at + 1;
    else
        f->heads[c] = (uint32_t)at + 1;
    f->tails[c] = (uint32_t)at + 1;
}

static void grow(kl_finder *f)
{
    f->cap = f->cap ? 2 * f->cap : 16;
    f->mask = f->cap - 1;
    f->v = kl_realloc(f->v, f->cap * sizeof *f->v);
    f->next = kl_realloc(f->next, f->cap * sizeof *f->next);
    kl_free(f->heads);
    kl_free(f->tails);
    f->heads = kl_new_array(uint32_t, f->cap);
    f->tails = kl_new_array(uint32_t, f->cap);
    for (size_t i = 0; i < f->len; i++)
        chain(f, i);
}

void kl_finder_fini(kl_finder *f)
{
    kl_free(f->v);
    kl_free(f->next);
    kl_free(f->heads);
    kl_free(f->tails);
}

void kl_finder_add(kl_finder *f, const kl_value *item)
{
    if (f->len == f->cap)
        grow(f);
    f->v[f->len++] = item;
    chain(f, f->len - 1);
}

void kl_finder_add_all(kl_finder *f, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl_finder_add(f, kl_value_item(list, i));
}

long kl_finder_find(const kl_finder *f, const kl_value *like)
{
    for (uint32_t at = f->cap ? f->heads[chain_of(f, like)] : 0; at; at = f->next[at - 1])
        if (alike(f, f->v[at - 1], like))
            return (long)at - 1;
    return -1;
}

long kl_finder_find_text(const kl_finder *f, const char *text)
{
    size_t n = strlen(text);
    uint64_t h = n || !f->empty_is_absent ? kl_hash(text, n) : 0;
    for (uint32_t at = f->cap ? f->heads[place_of(f, h)] : 0; at; at = f->next[at - 1]) {
        const kl_value *v = part(f, f->v[at - 1], f->key);
        const char *own = v ? kl_value_str(v) : f->empty_is_absent ? "" : NULL;
        if (own && !strcmp(own, text))
            return (long)at - 1;
    }
    return -1;
}

bool kl_finder_repeats(kl_finder *f, const kl_value *item)
{
    if (kl_finder_find(f, item) >= 0)
        return true;
    kl_finder_add(f, item);
    return false;
}
