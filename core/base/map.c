/* map.c - string to pointer: open addressing, linear probing, tombstones.
 *
 * A slot is empty (key NULL), dead (key == dead_key: probes go on, adds may reuse it) or live. Taking leaves
 * a tombstone, so iteration survives it; tombstones vanish at the next growth. Hashes are SipHash-1-3 under a
 * key drawn once per process, so nobody can choose object names that collide. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/clock.h"
#include "base/mem.h"

typedef struct slot {
    char *key;
    void *value;
    uint64_t hash;
} slot;

struct kl_map {
    slot *slots; /* cap of them, a power of two */
    size_t cap;
    size_t live;
    size_t used; /* live and dead slots */
};

static char dead_key[1];
static uint64_t seed[2];

__attribute__((constructor)) static void draw_seed(void)
{
    if (getrandom(seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed[0] = (uint64_t)kl_clock_now(kl_clock_real()) * 0x9e3779b97f4a7c15u;
        seed[1] = (uint64_t)kl_clock_wall(kl_clock_real()) ^ (uint64_t)(uintptr_t)&seed;
    }
}

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
#define ROUND                                                                                                \
    do {                                                                                                     \
        v0 += v1;                                                                                            \
        v1 = ROTL(v1, 13);                                                                                   \
        v1 ^= v0;                                                                                            \
        v0 = ROTL(v0, 32);                                                                                   \
        v2 += v3;                                                                                            \
        v3 = ROTL(v3, 16);                                                                                   \
        v3 ^= v2;                                                                                            \
        v0 += v3;                                                                                            \
        v3 = ROTL(v3, 21);                                                                                   \
        v3 ^= v0;                                                                                            \
        v2 += v1;                                                                                            \
        v1 = ROTL(v1, 17);                                                                                   \
        v1 ^= v2;                                                                                            \
        v2 = ROTL(v2, 32);                                                                                   \
    } while (0)

uint64_t kl_hash(const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t v0 = 0x736f6d6570736575u ^ seed[0], v1 = 0x646f72616e646f6du ^ seed[1];
    uint64_t v2 = 0x6c7967656e657261u ^ seed[0], v3 = 0x7465646279746573u ^ seed[1];
    uint64_t m = 0;
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&m, p, 8);
        v3 ^= m;
        ROUND;
        v0 ^= m;
    }
    m = 0;
    if (left)
        memcpy(&m, p, left);
    m |= (uint64_t)n << 56;
    v3 ^= m;
    ROUND;
    v0 ^= m;
    v2 ^= 0xff;
    ROUND;
    ROUND;
    ROUND;
    return v0 ^ v1 ^ v2 ^ v3;
}

kl_map *kl_map_new(void) { return kl_new(kl_map); }

static bool slot_live(const slot *s) { return s->key && s->key != dead_key; }

void kl_map_free(kl_map *m, void (*free_value)(void *))
{
    if (!m)
        return;
    for (size_t i = 0; i < m->cap; i++)
        if (slot_live(&m->slots[i])) {
            if (free_value && m->slots[i].value)
                free_value(m->slots[i].value);
            kl_free(m->slots[i].key);
        }
    kl_free(m->slots);
    kl_free(m);
}

size_t kl_map_len(const kl_map *m) { return m ? m->live : 0; }

static slot *find(const kl_map *m, const char *key, size_t n, uint64_t hash)
{
    if (!m || !m->cap)
        return NULL;
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        slot *s = &m->slots[i];
        if (!s->key)
            return NULL;
        if (s->hash == hash && s->key != dead_key && strlen(s->key) == n && !memcmp(s->key, key, n))
            return s;
    }
}

static void place(kl_map *m, slot in)
{
    size_t i = in.hash & (m->cap - 1);
    while (slot_live(&m->slots[i]))
        i = (i + 1) & (m->cap - 1);
    if (!m->slots[i].key)
        m->used++;
    m->slots[i] = in;
    m->live++;
}

static void grow(kl_map *m)
{
    slot *old = m->slots;
    size_t n = m->cap;
    m->cap = 8;
    while (m->cap < 2 * (m->live + 1)) /* at most half full after growing */
        m->cap *= 2;
    m->slots = kl_new_array(slot, m->cap);
    m->live = m->used = 0;
    for (size_t i = 0; i < n; i++)
        if (slot_live(&old[i]))
            place(m, old[i]);
    kl_free(old);
}

void *kl_map_getn(const kl_map *m, const char *key, size_t n)
{
    slot *s = m && m->live ? find(m, key, n, kl_hash(key, n)) : NULL;
    return s ? s->value : NULL;
}

void *kl_map_get(const kl_map *m, const char *key) { return kl_map_getn(m, key, strlen(key)); }

bool kl_map_has(const kl_map *m, const char *key)
{
    size_t n = strlen(key);
    return find(m, key, n, kl_hash(key, n)) != NULL;
}

void *kl_map_set(kl_map *m, const char *key, void *value)
{
    size_t n = strlen(key);
    uint64_t hash = kl_hash(key, n);
    slot *s = find(m, key, n, hash);
    if (s) {
        void *old = s->value;
        s->value = value;
        return old;
    }
    if ((m->used + 1) * 4 > m->cap * 3)
        grow(m);
    place(m, (slot){kl_strndup(key, n), value, hash});
    return NULL;
}

void *kl_map_take(kl_map *m, const char *key)
{
    size_t n = strlen(key);
    slot *s = find(m, key, n, kl_hash(key, n));
    if (!s)
        return NULL;
    void *value = s->value;
    char *own = s->key;
    s->key = dead_key;
    s->value = NULL;
    m->live--;
    kl_free(own); /* last: `key` may be this very string, borrowed by an iteration */
    return value;
}

bool kl_map_next(const kl_map *m, size_t *it, const char **key, void **value)
{
    for (; m && *it < m->cap; ++*it)
        if (slot_live(&m->slots[*it])) {
            if (key)
                *key = m->slots[*it].key;
            if (value)
                *value = m->slots[*it].value;
            ++*it;
            return true;
        }
    return false;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char **kl_map_sorted_keys(const kl_map *m)
{
    size_t n = 0, it = 0;
    char **keys = kl_new_array(char *, kl_map_len(m) + 1);
    const char *key;
    while (kl_map_next(m, &it, &key, NULL))
        keys[n++] = (char *)key;
    if (n)
        qsort(keys, n, sizeof *keys, by_text);
    return keys;
}
