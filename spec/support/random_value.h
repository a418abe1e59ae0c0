/* random_value.h - seeded random values for property tests: small alphabets, so that equal keys and equal
 * parts occur. */
#ifndef KL_SPEC_RANDOM_VALUE_H
#define KL_SPEC_RANDOM_VALUE_H

#include <stdint.h>
#include <stdio.h>
#include "value/value.h"

/* A teardown: the test left no values behind, whatever the sanitizer. What an earlier test left is held
 * against that one alone. */
static inline int nothing_left(void **state)
{
    (void)state;
    static size_t known;
    size_t nodes, bytes, before = known;
    kl_value_memory(&nodes, &bytes);
    known = nodes;
    if (nodes > before)
        fprintf(stderr, "%zu values were left behind\n", nodes - before);
    return nodes > before;
}

typedef struct rng {
    uint64_t s;
} rng;

static inline uint32_t rng_next(rng *r)
{
    r->s ^= r->s << 13;
    r->s ^= r->s >> 7;
    r->s ^= r->s << 17;
    return (uint32_t)(r->s >> 16);
}

static inline uint32_t rng_below(rng *r, uint32_t n) { return rng_next(r) % n; }

static inline rng rng_of(uint64_t seed)
{
    rng r = {seed * 0x9e3779b97f4a7c15u + 1};
    for (int i = 0; i < 8; i++)
        rng_next(&r);
    return r;
}

static inline void random_scalar(rng *r, kl_builder *b, bool nulls)
{
    static const char *const texts[] = {"", "a", "true", "null", "1", "line\nline", "quote\"back\\",
        "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "x: y", " lead", "- dash", "\t"};
    switch (rng_below(r, nulls ? 8 : 7)) {
    case 0: kl_build_bool(b, rng_below(r, 2)); break;
    case 1: kl_build_int(b, (int64_t)rng_below(r, 5) - 2); break;
    case 2:
        kl_build_int(b, rng_below(r, 2) ? INT64_MIN + rng_below(r, 3) : INT64_MAX - rng_below(r, 3));
        break;
    case 3: kl_build_uint(b, UINT64_MAX - rng_below(r, 3)); break;
    case 4: kl_build_double(b, ((double)rng_next(r) - 2147483648.0) / (1 + rng_below(r, 1000))); break;
    case 5:
    case 6: kl_build_str(b, texts[rng_below(r, sizeof texts / sizeof *texts)]); break;
    default: kl_build_null(b); break;
    }
}

static inline void random_build(rng *r, kl_builder *b, unsigned depth, bool nulls)
{
    unsigned kind = rng_below(r, depth ? 5 : 2);
    char key[16];
    if (kind < 2) {
        random_scalar(r, b, nulls);
    } else if (kind == 2) {
        kl_build_array(b);
        for (unsigned i = rng_below(r, 5); i; i--)
            random_build(r, b, depth - 1, nulls);
        kl_build_end(b);
    } else {
        kl_build_object(b);
        for (unsigned i = rng_below(r, rng_below(r, 8) ? 6 : 40); i; i--) {
            snprintf(key, sizeof key, rng_below(r, 20) ? "k%u" : "", rng_below(r, i > 6 ? 60 : 8));
            kl_build_key(b, key);
            random_build(r, b, depth - 1, nulls);
        }
        kl_build_end(b);
    }
}

/* `nulls`: whether JSON null may occur (merge patches cannot say it). */
static inline const kl_value *random_value(rng *r, unsigned depth, bool nulls)
{
    kl_builder *b = kl_builder_new();
    random_build(r, b, depth, nulls);
    return kl_builder_done(b);
}

/* An object as Kubernetes has them. */
static inline const kl_value *random_object(rng *r, bool nulls)
{
    static const char *const parts[] = {"metadata", "spec", "status", "data"};
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Pod");
    for (unsigned i = 0; i < 4; i++)
        if (rng_below(r, 4)) {
            kl_build_key(b, parts[i]);
            random_build(r, b, 4, nulls);
        }
    kl_build_end(b);
    return kl_builder_done(b);
}

#endif
