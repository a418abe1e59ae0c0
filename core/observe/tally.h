/* tally.h - what keys have come to, for people: of each generation of a controller how many runs, failures
 * and writes; and which keys fail, why, and when they come back. A witness (run/witness.h). Any thread. */
#ifndef KL_OBSERVE_TALLY_H
#define KL_OBSERVE_TALLY_H

#include "value/value.h"
#include "run/witness.h"

typedef struct kl_tally kl_tally;

/* So many generations of a controller are remembered, and so many keys that fail; of more keys their
 * number. */
#define KL_TALLY_GENERATIONS 5
#define KL_TALLY_KEYS 1000

kl_tally *kl_tally_new(void);
void kl_tally_free(kl_tally *t); /* when no worker runs any more */
kl_witness kl_tally_witness(kl_tally *t);
/* Into an open array: {generation, runs, errors, writes}, the newest first. */
void kl_tally_generations(kl_tally *t, const char *controller, kl_builder *b);
/* Into an open array: {controller, key, result, attempt, message, in}, the first to come back first, at
 * most `most`; `in` is in seconds from `now` (monotonic), absent where nothing brings it back but a
 * change. `cluster` goes before the controllers' names; NULL: nothing does. How many there are in all,
 * KL_TALLY_KEYS at most. */
size_t kl_tally_failing(kl_tally *t, const char *cluster, size_t most, kl_time now, kl_builder *b);

#endif
