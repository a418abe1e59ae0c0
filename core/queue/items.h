/* items.h - a queue's data about its keys: slabs of items, and a table from key to item. Inside core/queue
 * only.
 *
 * An item is one block with its key at the end, named by a 32-bit handle and which stays at its address while
 * it lives, so that callers can borrow the key. Blocks come from slabs, by size and reused by size: an add
 * allocates nothing. An idle item stays for a while, because the same keys return: at most KL_IDLE_ITEMS,
 * plus as many as there were other items at one time. When all items are idle, all slabs but the first are
 * freed. Hashes are seeded: names from the network cannot be chosen to collide. Under the queue's lock. */
#ifndef KL_QUEUE_ITEMS_H
#define KL_QUEUE_ITEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/clock.h"
#include "base/hash.h"

typedef uint32_t kl_handle;
#define KL_NO_ITEM ((kl_handle)0)
#define KL_IDLE_ITEMS 1024u

typedef struct kl_item {
    /* queued, held: when it was added, the start of its wait for a worker. Running: when it was handed out */
    kl_time at;
    union {
        struct {
            kl_handle flow_next, flow_prev;
        };                /* queued */
        kl_time again_at; /* dirty: when it was added */
    };
    union {
        uint64_t first_add; /* rank order: the number of this entry */
        /* otherwise: the group in which it runs, is parked or is the candidate, or NULL; see groups.h */
        struct kl_group *group;
    };
    uint32_t hash;
    kl_handle self;
    kl_handle next, prev; /* in the list of its level, or of running keys; by age */
    uint32_t flow;        /* queued */
    uint32_t place;       /* in an agenda: waiting, queued in rank order, or put back */
    int32_t priority;     /* the highest requested since it was handed out */
    int32_t failures;     /* rate-limited adds since forget */
    int32_t blameless;    /* how many of them were not failures */
    /* the causes of its entry or, while it runs, of the run and of later adds; opaque and owned. 0: none */
    uint32_t cause, again_cause;
    uint16_t events, again_events; /* adds that joined the entry, without retries */
    uint32_t key_len;
    unsigned why : 4, again_why : 4; /* the kind of cause; 0: no entry, or none given */
    bool queued : 1, running : 1, waiting : 1;
    bool dirty : 1;    /* running, and added since: queued again when done */
    bool earnest : 1;  /* dirty: by an add that is not routine */
    bool delayed : 1;  /* rank order: it was delayed before it became ready */
    bool back : 1;     /* queued: handed out before and put back, at the place of its age */
    bool parked : 1;   /* queued: in its group */
    bool called : 1;   /* parked before in this entry */
    bool held : 1;     /* waiting: handed out before; `at` is still the time of its add */
    bool released : 1; /* running: released already, so a following hold has no effect */
    bool resting : 1;  /* given up: routine adds do not bring it back */
    char key[];
} kl_item;

typedef struct kl_slot {
    uint32_t hash;
    kl_handle item;
} kl_slot;

#define KL_EXACT_CLASSES 64 /* in blocks of 16 bytes; larger sizes are powers of two, up to 2^32 blocks */
#define KL_SIZE_CLASSES (KL_EXACT_CLASSES + 27)
typedef struct kl_items {
    kl_slot *slots; /* cap of them, a power of two; open addressing, no tombstones */
    size_t cap, len;
    size_t idle;    /* of len */
    size_t peak;    /* the most items that were not idle at one time, since the last sweep */
    char **slabs;   /* blocks of 16 bytes; a handle is slab << 16 | block */
    uint32_t *tops; /* of each: the first block never used */
    size_t n_slabs;
    uint32_t current; /* the slab for the next new block */
    /* chained through the first bytes of free blocks, by size in blocks */
    kl_handle free_of[KL_SIZE_CLASSES];
} kl_items;

void kl_items_init(kl_items *t); /* storage belongs to the caller */
void kl_items_fini(kl_items *t);

/* A key of this hash will be looked up soon: prefetches its slot. */
static inline void kl_items_expect(const kl_items *t, uint32_t hash)
{
    if (t->cap)
        __builtin_prefetch(&t->slots[hash & (t->cap - 1)]);
}

/* The item of a handle: the same address while it lives. */
static inline kl_item *kl_items_at(const kl_items *t, kl_handle h)
{
    return (kl_item *)(void *)(t->slabs[h >> 16] + ((size_t)(h & 0xffff) << 4));
}

/* any thread */
static inline uint32_t kl_items_hash(const char *key, size_t n) { return (uint32_t)kl_quick_hash(key, n); }
/* NULL when absent */
kl_item *kl_items_find(const kl_items *t, const char *key, size_t n, uint32_t hash);
/* finds or creates the item, which is then not idle */
kl_item *kl_items_use(kl_items *t, const char *key, size_t n, uint32_t hash);
/* the item becomes idle */
void kl_items_drop(kl_items *t, kl_item *it);
static inline bool kl_item_idle(const kl_item *it)
{
    return !it->queued && !it->running && !it->waiting && !it->failures && !it->resting;
}

#endif
