/* tally.h - how much of each resource of a ResourceQuota the objects of its namespace use. The sums are
 * counted once and then follow the changes, so a write costs what it changes, whatever the namespace holds.
 * Under the server's lock. */
#ifndef KL_VERBS_TALLY_H
#define KL_VERBS_TALLY_H

#include "schema/kinds.h"
#include "store/store.h"

typedef struct kl__tallies kl__tallies;

kl__tallies *kl__tallies_new(const kl__kinds *kinds); /* `kinds` is borrowed */
void kl__tallies_free(kl__tallies *t);                /* NULL is fine */
/* An object was added, changed or deleted. */
void kl__tallies_change(kl__tallies *t, const kl__bucket *b, const kl__change *c);
/* The quotas of which status.used may be wrong by now: all at first, later those with changes since the last
 * call. Calls `fn` for each with what is used, an object by resource; `fn` may write the quota. */
void kl__tallies_due(
    kl__tallies *t, void (*fn)(void *arg, const kl_value *quota, const kl_value *used), void *arg);

#endif
