/* arena.h - the memory of values (private to core/value): one reserved range of addresses, so that 31 bits
 * name a node.
 *
 * An address is the range's base + 8 * handle. Sizes fall into classes; a class fills chunks of 32 KB with
 * slots of one size, and a chunk without live slots goes back to the system. Any thread. Freed slots are
 * poisoned under AddressSanitizer. */
#ifndef KL_VALUE_ARENA_H
#define KL_VALUE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define KL__ARENA_MAX ((size_t)1 << 34) /* bytes: 31 bits of 8-byte steps */

extern char *kl__arena_base; /* set before the first handle exists, never changed */

/* `size` bytes (at least 8), 8-aligned, not zeroed. Never fails: calls kl_mem_die at the end of the range. */
uint32_t kl__arena_alloc(size_t size);
void kl__arena_free(uint32_t handle, size_t size); /* the size it was allocated with */

void kl__arena_usage(size_t *slots, size_t *bytes); /* what is allocated now */

/* Zeroed memory for a table, straight from the system when it is big: a heap would keep the holes that
 * growing tables leave. */
void *kl__table_alloc(size_t size);
void kl__table_free(void *table, size_t size);

static inline void *kl__arena_at(uint32_t handle) { return kl__arena_base + ((size_t)handle << 3); }

#endif
