/* heap.h - what is due next: a binary min-heap of intrusive nodes ordered by (when, seq). Owner thread or
 * owner's lock. */
#ifndef KL_BASE_HEAP_H
#define KL_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include "base/clock.h"

typedef struct kl_heap_node {
    kl_time when;
    uint64_t seq;
    size_t pos; /* 1-based, 0 = not in a heap */
} kl_heap_node;
typedef struct kl_heap {
    kl_heap_node **v;
    size_t len, cap;
    uint64_t next_seq;
} kl_heap;

void kl_heap_init(kl_heap *h);
void kl_heap_fini(kl_heap *h);                                /* nodes belong to their owner */
void kl_heap_push(kl_heap *h, kl_heap_node *n, kl_time when); /* n is not in a heap */
void kl_heap_move(kl_heap *h, kl_heap_node *n, kl_time when); /* n is in this heap */
void kl_heap_remove(kl_heap *h, kl_heap_node *n);             /* no-op when not in a heap */
kl_heap_node *kl_heap_peek(const kl_heap *h);                 /* NULL when empty */
/* the first with when <= now, removed; or NULL */
kl_heap_node *kl_heap_pop_due(kl_heap *h, kl_time now);
#define KL_CONTAINER(ptr, T, field) ((T *)((char *)(ptr)-offsetof(T, field)))

#endif
