/* tally.h - run statistics for people: runs, failures and writes of each generation of a controller; and
 * which keys fail, why, and when they run again. A witness (run/witness.h). Any thread. */
#ifndef KL_OBSERVE_TALLY_H
#define KL_OBSERVE_TALLY_H

#include "value/value.h"
#include "run/witness.h"

typedef struct kl_tally kl_tally;

/* The number of generations of a controller that are kept, and of failing keys; further keys are only
 * counted. */
#define KL_TALLY_GENERATIONS 5
#define KL_TALLY_KEYS 1000

kl_tally *kl_tally_new(void);
void kl_tally_free(kl_tally *t); /* after the last worker has ended */
kl_witness kl_tally_witness(kl_tally *t);
/* Into an open array: {generation, runs, errors, writes}, the newest first. */
void kl_tally_generations(kl_tally *t, const char *controller, kl_builder *b);
/* Into an open array: {controller, key, result, attempt, message, in}, the first to run again first, at most
 * `most`; `in` is in seconds from `now` (monotonic), absent where only a change triggers it. `cluster`
 * prefixes the controllers' names; may be NULL. Returns the number of all failing keys, at most
 * KL_TALLY_KEYS. */
size_t kl_tally_failing(kl_tally *t, const char *cluster, size_t most, kl_time now, kl_builder *b);

#endif
