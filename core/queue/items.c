/* items.c - slabs of items and a table from key to item.
 *
 * The table keeps hashes beside handles, so that a probe looks at an item only when it is very likely the
 * one. Items are never removed one by one, which would cost a cache miss each: when there are too many idle
 * items, it is rebuilt without them. So a step is O(1) amortised; the longest one touches every item once. */
#include "queue/items.h"

#include <string.h>
#include "base/mem.h"

#define BLOCK 16u
#define SLAB_BLOCKS 65536u /* 1 MB, the most blocks that the lower half of a handle can number */
#define SLOTS_MIN 64u

void kl_items_init(kl_items *t) { memset(t, 0, sizeof *t); }

void kl_items_fini(kl_items *t)
{
    for (size_t i = 0; i < t->n_slabs; i++)
        kl_free(t->slabs[i]);
    kl_free(t->slabs);
    kl_free(t->tops);
    kl_free(t->slots);
}

/* --- the table ---------------------------------------------------------------------------- */

kl_item *kl_items_find(const kl_items *t, const char *key, size_t n, uint32_t hash)
{
    if (!t->len)
        return NULL;
    for (size_t mask = t->cap - 1, i = hash & mask; t->slots[i].item; i = (i + 1) & mask) {
        if (t->slots[i].hash != hash)
            continue;
        kl_item *it = kl_items_at(t, t->slots[i].item);
        if (it->key_len == n && !memcmp(it->key, key, n))
            return it;
    }
    return NULL;
}

static void place(kl_slot *slots, size_t mask, kl_slot s)
{
    size_t i = s.hash & mask;
    while (slots[i].item)
        i = (i + 1) & mask;
    slots[i] = s;
}

static void grow(kl_items *t)
{
    size_t cap = t->cap ? t->cap * 2 : SLOTS_MIN;
    kl_slot *slots = kl_new_array(kl_slot, cap);
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i].item)
            place(slots, cap - 1, t->slots[i]);
    kl_free(t->slots);
    t->slots = slots;
    t->cap = cap;
}

/* --- slabs -------------------------------------------------------------------------------- */

/* The size of an item in blocks: exact while small, powers of two above (Kubernetes' own keys are small). */
static uint32_t blocks_of(size_t key_len)
{
    size_t exact = (sizeof(kl_item) + key_len + 1 + BLOCK - 1) / BLOCK, n = KL_EXACT_CLASSES;
    if (exact < KL_EXACT_CLASSES)
        return (uint32_t)exact;
    while (n < exact)
        n *= 2;
    return (uint32_t)n;
}

static uint32_t class_of(uint32_t blocks)
{
    uint32_t class = blocks < KL_EXACT_CLASSES ? blocks : KL_EXACT_CLASSES;
    for (; blocks > KL_EXACT_CLASSES; blocks /= 2)
        class ++;
    return class;
}

/* Appends a slab of at least n blocks. No slab uses its block 0, since handle 0 means no item. */
static uint32_t slab_new(kl_items *t, uint32_t n)
{
    if (t->n_slabs == SLAB_BLOCKS)
        kl_mem_die("queue items");
    t->slabs = kl_realloc(t->slabs, (t->n_slabs + 1) * sizeof *t->slabs);
    t->tops = kl_realloc(t->tops, (t->n_slabs + 1) * sizeof *t->tops);
    t->slabs[t->n_slabs] = kl_alloc((size_t)(n < SLAB_BLOCKS ? SLAB_BLOCKS : n) * BLOCK);
    t->tops[t->n_slabs] = 1;
    return (uint32_t)t->n_slabs++;
}

static kl_handle take_blocks(kl_items *t, uint32_t n)
{
    kl_handle *reuse = &t->free_of[class_of(n)], h = *reuse;
    if (h) {
        memcpy(reuse, kl_items_at(t, h), sizeof h);
        return h;
    }
    uint32_t slab = t->current;
    if (n >= SLAB_BLOCKS)
        slab = slab_new(t, n + 1);
    else if (!t->n_slabs || t->tops[slab] + n > SLAB_BLOCKS)
        slab = t->current = slab_new(t, 0);
    h = slab << 16 | t->tops[slab];
    t->tops[slab] += n;
    return h;
}

static void give_blocks(kl_items *t, kl_item *it, kl_handle h)
{
    kl_handle *reuse = &t->free_of[class_of(blocks_of(it->key_len))];
    memcpy(it, reuse, sizeof h);
    *reuse = h;
}

/* All items are idle: frees all slabs but the first, and a big table. */
static void start_over(kl_items *t)
{
    while (t->n_slabs > 1)
        kl_free(t->slabs[--t->n_slabs]);
    t->current = 0;
    t->tops[0] = 1;
    memset(t->free_of, 0, sizeof t->free_of);
    t->len = t->idle = t->peak = 0;
    kl_free(t->slots);
    t->slots = NULL;
    t->cap = 0;
}

/* Reading the items of a big table costs one cache miss each; prefetched this far ahead, the misses
 * overlap. */
#define LOOK_AHEAD 24u

static void sweep(kl_items *t)
{
    size_t cap = SLOTS_MIN, busy = t->len - t->idle;
    while (cap * 3 < busy * 4 + 4)
        cap *= 2;
    kl_slot *slots = kl_new_array(kl_slot, cap);
    for (size_t i = 0; i < t->cap; i++) {
        if (i + LOOK_AHEAD < t->cap && t->slots[i + LOOK_AHEAD].item)
            __builtin_prefetch(kl_items_at(t, t->slots[i + LOOK_AHEAD].item));
        if (!t->slots[i].item)
            continue;
        kl_item *it = kl_items_at(t, t->slots[i].item);
        if (kl_item_idle(it))
            give_blocks(t, it, t->slots[i].item);
        else
            place(slots, cap - 1, t->slots[i]);
    }
    kl_free(t->slots);
    t->slots = slots;
    t->cap = cap;
    t->len = t->peak = busy;
    t->idle = 0;
}

kl_item *kl_items_use(kl_items *t, const char *key, size_t n, uint32_t hash)
{
    kl_item *it = kl_items_find(t, key, n, hash);
    if (it) {
        t->idle -= kl_item_idle(it);
        if (t->len - t->idle > t->peak)
            t->peak = t->len - t->idle;
        return it;
    }
    if ((t->len + 1) * 4 > t->cap * 3)
        grow(t);
    kl_handle h = take_blocks(t, blocks_of(n));
    it = kl_items_at(t, h);
    memset(it, 0, sizeof *it);
    it->self = h;
    it->hash = hash;
    it->key_len = (uint32_t)n;
    memcpy(it->key, key, n);
    it->key[n] = 0;
    place(t->slots, t->cap - 1, (kl_slot){hash, h});
    if (++t->len - t->idle > t->peak)
        t->peak = t->len - t->idle;
    return it;
}

void kl_items_drop(kl_items *t, kl_item *it)
{
    (void)it; /* kl_item_idle tells that the item may be dropped */
    if (++t->idle <= KL_IDLE_ITEMS)
        return;
    if (t->idle == t->len)
        start_over(t);
    else if (t->idle > KL_IDLE_ITEMS + t->peak)
        sweep(t);
}
