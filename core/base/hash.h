/* hash.h - a quick hash for hot tables: multiply and fold, 16 bytes at a time. A third of the cost of
 * kl_hash, and seeded per process like it: contents of a cluster cannot be chosen to collide. Any
 * thread. */
#ifndef KL_BASE_HASH_H
#define KL_BASE_HASH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/map.h"

static inline uint64_t kl__hash_fold(uint64_t a, uint64_t b)
{
    __uint128_t p = (__uint128_t)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t kl__hash_8(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static inline uint32_t kl__hash_4(const unsigned char *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

static inline uint64_t kl__hash_seed(void)
{
    /* derived from the process's secret; concurrent first callers derive the same seed */
    static _Atomic uint64_t s;
    uint64_t x = atomic_load_explicit(&s, memory_order_relaxed);
    if (__builtin_expect(!x, 0)) {
        x = kl_hash("quick hash", 10) | 1;
        atomic_store_explicit(&s, x, memory_order_relaxed);
    }
    return x;
}

static inline uint64_t kl_quick_hash(const void *data, size_t n)
{
    const unsigned char *p = data;
    const uint64_t k = kl__hash_seed();
    uint64_t h = k ^ n, a = 0, b = 0;
    size_t left = n;
    for (; left > 16; left -= 16, p += 16)
        h = kl__hash_fold(kl__hash_8(p) ^ 0xa0761d6478bd642fu ^ k, kl__hash_8(p + 8) ^ h);
    if (left >= 8) {
        a = kl__hash_8(p);
        b = kl__hash_8(p + left - 8);
    } else if (left >= 4) {
        a = kl__hash_4(p);
        b = kl__hash_4(p + left - 4);
    } else if (left) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
    }
    h = kl__hash_fold(a ^ 0xe7037ed1a0b428dbu ^ k, b ^ h);
    return kl__hash_fold(h ^ 0x8ebc6af09c88c6e3u, k ^ n);
}

#endif
