/* hash.h - the seeded hash of the value table: multiply and fold, 16 bytes at a time (private to model/). */
#ifndef KL_MODEL_HASH_H
#define KL_MODEL_HASH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/map.h"

static inline uint64_t kl__fold(uint64_t a, uint64_t b)
{
    __uint128_t p = (__uint128_t)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t kl__word(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static inline uint32_t kl__half(const unsigned char *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

static inline uint64_t kl__seed(void)
{
    static _Atomic uint64_t s;               /* drawn from the process' secret; two first callers draw the same */
    uint64_t x = atomic_load_explicit(&s, memory_order_relaxed);
    if (__builtin_expect(!x, 0)) {
        x = kl_hash("kl__intern", 10) | 1;
        atomic_store_explicit(&s, x, memory_order_relaxed);
    }
    return x;
}

static inline uint64_t kl__hash64(const void *data, size_t n)
{
    const unsigned char *p = data;
    const uint64_t k = kl__seed();
    uint64_t h = k ^ n, a = 0, b = 0;
    size_t left = n;
    for (; left > 16; left -= 16, p += 16)
        h = kl__fold(kl__word(p) ^ 0xa0761d6478bd642fu ^ k, kl__word(p + 8) ^ h);
    if (left >= 8) {
        a = kl__word(p);
        b = kl__word(p + left - 8);
    } else if (left >= 4) {
        a = kl__half(p);
        b = kl__half(p + left - 4);
    } else if (left) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
    }
    h = kl__fold(a ^ 0xe7037ed1a0b428dbu ^ k, b ^ h);
    return kl__fold(h ^ 0x8ebc6af09c88c6e3u, k ^ n);
}

#endif
