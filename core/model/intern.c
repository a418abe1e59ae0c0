/* intern.c - the table in which equal nodes are one node.
 *
 * 64 shards, each an open-addressing array under its own lock, chosen by the top bits of the hash. A cell is a pointer with
 * 16 bits of its node's hash above it, so that probing past other nodes does not touch them. A node
 * is entered with count 1 and leaves when its count falls to zero under the lock; the common count-down (from above one)
 * takes no lock. Dead containers are reclaimed from a list, so deep values need no deep stack. Hashes are seeded per
 * process: nobody in a cluster can choose contents that collide. */
#include "model/intern.h"

#include <assert.h>
#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"

#define SHARD_BITS 6
#define SHARDS (1u << SHARD_BITS)
#define FIRST_SLOTS 64u

typedef uint64_t cell;                       /* 0 is free; user space pointers have 47 bits */

typedef struct shard {
    kl_mutex mu;
    cell *cells KL_GUARDED_BY(mu);           /* cap of them, a power of two */
    uint32_t cap KL_GUARDED_BY(mu);
    uint32_t len KL_GUARDED_BY(mu);
    size_t bytes KL_GUARDED_BY(mu);          /* of the nodes in it */
} __attribute__((aligned(64))) shard;

static shard shards[SHARDS] = { [0 ... SHARDS - 1] = { .mu = KL_MUTEX_INIT } };

/* --- hashing --------------------------------------------------------------------------------------------------- */

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t p = (__uint128_t)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t word(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static uint64_t seed(void)
{
    static _Atomic uint64_t s;               /* drawn from the process' secret; two first callers draw the same */
    uint64_t x = atomic_load_explicit(&s, memory_order_relaxed);
    if (!x) {
        x = kl_hash("kl__intern", 10) | 1;
        atomic_store_explicit(&s, x, memory_order_relaxed);
    }
    return x;
}

/* Multiply-and-fold over 16 bytes at a time. */
uint32_t kl__hash(const void *data, size_t n)
{
    const unsigned char *p = data;
    const uint64_t k = seed();
    uint64_t h = k ^ n, a = 0, b = 0;
    size_t left = n;
    for (; left > 16; left -= 16, p += 16)
        h = fold(word(p) ^ 0xa0761d6478bd642fu ^ k, word(p + 8) ^ h);
    if (left >= 8) {
        a = word(p);
        b = word(p + left - 8);
    } else if (left) {
        memcpy(&a, p, left);
    }
    h = fold(a ^ 0xe7037ed1a0b428dbu ^ k, b ^ h);
    h = fold(h ^ 0x8ebc6af09c88c6e3u, k ^ n);
    return (uint32_t)(h ^ h >> 32);
}

/* --- nodes ------------------------------------------------------------------------------------------------------ */

static size_t slot_count(kl_type type, size_t n)
{
    return type == KL_OBJECT ? 2 * n : n;
}

static uint32_t index_cap(size_t members)
{
    if (members <= KL__INDEXED_ABOVE)
        return 0;
    uint32_t cap = 64;
    while (cap < 2 * members)
        cap *= 2;
    return cap;
}

static size_t container_size(kl_type type, size_t n)
{
    return sizeof(kl__container) + slot_count(type, n) * sizeof(kl_value *)
        + (type == KL_OBJECT ? index_cap(n) * sizeof(uint32_t) : 0);
}

size_t kl__node_size(const kl__node *n)
{
    switch (n->type) {
    case KL_STRING: {
        size_t size = offsetof(kl__node, bytes) + n->len + 1;
        return size < sizeof(kl__node) ? sizeof(kl__node) : size;
    }
    case KL_ARRAY:
    case KL_OBJECT: return container_size((kl_type)n->type, n->len);
    default: return sizeof(kl__wide);
    }
}

const uint32_t *kl__index(const kl_value *object, uint32_t *mask)
{
    uint32_t len = kl__node_of(object)->len;
    *mask = index_cap(len) - 1;
    return (const uint32_t *)(kl__slots(object) + 2 * (size_t)len);
}

static uint32_t key_hash(const kl_value *key)
{
    size_t n;
    const char *s = kl__str_bytes(key, &n);
    return kl__is_node(key) ? kl__node_of(key)->hash : kl__hash(s, n);
}

static void index_fill(kl__container *c)
{
    uint32_t cap = index_cap(c->node.len), *index = (uint32_t *)(c->slots + 2 * (size_t)c->node.len);
    memset(index, 0, cap * sizeof *index);
    for (uint32_t i = 0; i < c->node.len; i++) {
        uint32_t at = key_hash(c->slots[2 * (size_t)i]) & (cap - 1);
        while (index[at])
            at = (at + 1) & (cap - 1);
        index[at] = i + 1;
    }
}

/* What is looked for: `data` are a string's bytes, a number's 8 bytes or a container's slots. */
typedef struct wanted {
    kl_type type;
    uint32_t hash;
    uint32_t len;
    const void *data;
    size_t size;
} wanted;

static const void *payload(const kl__node *n)
{
    if (n->type == KL_STRING)
        return n->bytes;
    if (n->type == KL_ARRAY || n->type == KL_OBJECT)
        return ((const kl__container *)n)->slots;
    return &((const kl__wide *)n)->number;
}

static kl__node *node_make(const wanted *w)
{
    kl__node head = { .hash = w->hash, .len = w->len, .type = (uint8_t)w->type };
    size_t size = kl__node_size(&head);
    kl__node *n = kl_alloc(size);
    atomic_init(&n->rc, 1);
    n->hash = w->hash;
    n->len = w->len;
    n->type = (uint8_t)w->type;
    n->spare = 0;
    memcpy((void *)payload(n), w->data, w->size);
    if (w->type == KL_STRING)
        n->bytes[w->len] = '\0';
    if (w->type == KL_OBJECT && w->len > KL__INDEXED_ABOVE)
        index_fill((kl__container *)n);
    return n;
}

/* --- the table --------------------------------------------------------------------------------------------------- */

#define POINTER_BITS 48

static shard *shard_of(uint32_t hash)
{
    return &shards[hash >> (32 - SHARD_BITS)];
}

/* Bits that neither choose the shard nor, in most tables, the place. */
static cell tag_of(uint32_t hash)
{
    return (cell)(uint16_t)(hash >> 10) << POINTER_BITS;
}

static kl__node *cell_node(cell c)
{
    return (kl__node *)(uintptr_t)(c & (((cell)1 << POINTER_BITS) - 1));
}

static cell cell_of(kl__node *n)
{
    return (cell)(uintptr_t)n | tag_of(n->hash);
}

static void resize_locked(shard *s, uint32_t cap) KL_REQUIRES(s->mu)
{
    cell *old = s->cells;
    uint32_t n = s->cap;
    s->cap = cap;
    s->cells = kl_new_array(cell, cap);
    for (uint32_t i = 0; i < n; i++)
        if (old[i]) {
            uint32_t at = cell_node(old[i])->hash & (cap - 1);
            while (s->cells[at])
                at = (at + 1) & (cap - 1);
            s->cells[at] = old[i];
        }
    kl_free(old);
}

/* Takes n out and closes the gap: whatever probed past it moves back. */
static void remove_locked(shard *s, kl__node *n) KL_REQUIRES(s->mu)
{
    uint32_t mask = s->cap - 1, hole = n->hash & mask;
    cell mine = cell_of(n);
    while (s->cells[hole] != mine)
        hole = (hole + 1) & mask;
    for (uint32_t at = (hole + 1) & mask; s->cells[at]; at = (at + 1) & mask) {
        uint32_t home = cell_node(s->cells[at])->hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            s->cells[hole] = s->cells[at];
            hole = at;
        }
    }
    s->cells[hole] = 0;
    s->len--;
    s->bytes -= kl__node_size(n);
    if (!s->len) {
        kl_free(s->cells);
        s->cells = NULL;
        s->cap = 0;
    } else if (s->cap > FIRST_SLOTS && s->len < s->cap / 8) {
        resize_locked(s, s->cap / 2);
    }
}

/* The node equal to w, counted up, or a new one. *found says which. */
static kl__node *intern(const wanted *w, bool *found)
{
    shard *s = shard_of(w->hash);
    kl_lock(&s->mu);
    if (s->len + 1 > s->cap / 4 * 3)
        resize_locked(s, s->cap ? s->cap * 2 : FIRST_SLOTS);
    uint32_t mask = s->cap - 1, at = w->hash & mask;
    cell tag = tag_of(w->hash), c;
    kl__node *n = NULL;
    for (; (c = s->cells[at]); at = (at + 1) & mask) {
        if ((c ^ tag) >> POINTER_BITS)
            continue;
        n = cell_node(c);
        if (n->hash == w->hash && n->type == w->type && n->len == w->len && !memcmp(payload(n), w->data, w->size))
            break;
        n = NULL;
    }
    *found = n != NULL;
    if (n) {
        atomic_fetch_add_explicit(&n->rc, 1, memory_order_relaxed);
    } else {
        n = node_make(w);
        s->cells[at] = cell_of(n);
        s->len++;
        s->bytes += kl__node_size(n);
    }
    kl_unlock(&s->mu);
    return n;
}

/* Counts down; true when n left the table and is ours to reclaim. */
static bool drop(kl__node *n)
{
    uint32_t rc = atomic_load_explicit(&n->rc, memory_order_relaxed);
    while (rc > 1)
        if (atomic_compare_exchange_weak_explicit(&n->rc, &rc, rc - 1, memory_order_acq_rel, memory_order_relaxed))
            return false;
    shard *s = shard_of(n->hash);
    kl_lock(&s->mu);
    bool dead = atomic_fetch_sub_explicit(&n->rc, 1, memory_order_acq_rel) == 1;
    if (dead)
        remove_locked(s, n);
    kl_unlock(&s->mu);
    return dead;
}

const kl_value *kl_value_ref(const kl_value *v)
{
    if (kl__is_node(v))
        atomic_fetch_add_explicit(&kl__node_of(v)->rc, 1, memory_order_relaxed);
    return v;
}

void kl_value_unref(const kl_value *v)
{
    if (!kl__is_node(v) || !drop(kl__node_of(v)))
        return;
    kl__node *dead = kl__node_of(v);
    dead->dead_next = NULL;
    while (dead) {
        kl__node *n = dead;
        dead = n->dead_next;
        if (n->type == KL_ARRAY || n->type == KL_OBJECT) {
            const kl_value *const *slots = ((kl__container *)n)->slots;
            size_t count = slot_count((kl_type)n->type, n->len);
            for (size_t i = 0; i < count; i++)
                if (kl__is_node(slots[i]) && drop(kl__node_of(slots[i]))) {
                    kl__node *child = kl__node_of(slots[i]);
                    child->dead_next = dead;
                    dead = child;
                }
        }
        kl_free(n);
    }
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static uint32_t length(size_t n)
{
    if (n > UINT32_MAX / 4)
        kl_mem_die("memory (a value above 1 GiB)");
    return (uint32_t)n;
}

const kl_value *kl__intern_str(const char *s, size_t n)
{
    if (!n)
        return KL__EMPTY_STRING;
    bool found;
    wanted w = { KL_STRING, kl__hash(s, n), length(n), s, n };
    return KL__HANDLE(intern(&w, &found));
}

const kl_value *kl__intern_wide(kl_type type, uint64_t bits)
{
    bool found;
    wanted w = { type, kl__hash(&bits, sizeof bits) ^ (uint32_t)type, 0, &bits, sizeof bits };
    return KL__HANDLE(intern(&w, &found));
}

const kl_value *kl__intern_int(int64_t i)
{
    uint64_t shifted = (uint64_t)i << 1;
    if ((int64_t)shifted >> 1 == i)
        return KL__HANDLE((uintptr_t)shifted | KL__TAG_INT);
    return kl__intern_wide(KL_INT, (uint64_t)i);
}

const kl_value *kl__intern_container(kl_type type, const kl_value *const *slots, size_t n)
{
    if (!n)
        return type == KL_ARRAY ? KL__EMPTY_ARRAY : KL__EMPTY_OBJECT;
    size_t count = slot_count(type, n);
    wanted w = { type, kl__hash(slots, count * sizeof *slots) ^ (uint32_t)type, length(n), slots, count * sizeof *slots };
    bool found;
    const kl_value *v = KL__HANDLE(intern(&w, &found));
    if (found)                       /* it holds references of its own: ours are spare, and never the last */
        for (size_t i = 0; i < count; i++)
            kl_value_unref(slots[i]);
    return v;
}

void kl_value_memory(size_t *nodes, size_t *bytes)
{
    *nodes = *bytes = 0;
    for (size_t i = 0; i < SHARDS; i++) {
        kl_lock(&shards[i].mu);
        *nodes += shards[i].len;
        *bytes += shards[i].bytes + shards[i].cap * sizeof *shards[i].cells;
        kl_unlock(&shards[i].mu);
    }
}
