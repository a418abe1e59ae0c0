/* ring.h - a consistent-hash ring: every key has one owner among the members, and when a member joins or
 * leaves, only its own keys move.
 *
 * Each member stands on the ring at many points; a key belongs to the member of the next point. The points
 * are the same in every process and every release: replicas with different points would own keys twice
 * (KL_RING_VERSION names the algorithm). Immutable, counted; any thread. */
#ifndef KL_SHARDING_RING_H
#define KL_SHARDING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of the algorithm; rings of different versions never agree. */
#define KL_RING_VERSION 1
#define KL_RING_NOBODY ((size_t)-1)

typedef struct kl_ring kl_ring;

/* Copies the names; their order and repetitions do not matter. */
kl_ring *kl_ring_new(const char *const *members, size_t n);
kl_ring *kl_ring_ref(kl_ring *r);
void kl_ring_unref(kl_ring *r); /* NULL is fine */

size_t kl_ring_members(const kl_ring *r);
/* in the order of their names; borrowed */
const char *kl_ring_member(const kl_ring *r, size_t i);
size_t kl_ring_find(const kl_ring *r, const char *member); /* KL_RING_NOBODY when it is not a member */
uint64_t kl_ring_point(const char *text, size_t n);        /* the point of a key */
/* KL_RING_NOBODY when there are no members */
size_t kl_ring_owner(const kl_ring *r, uint64_t point);
/* the member's share of all keys, 0..1; 0 for KL_RING_NOBODY */
double kl_ring_share(const kl_ring *r, size_t member);

#endif
