/* flight.h - the flight recorder: the causes, reads, writes and results of the last runs of each key, for
 * `kubelua why`. A witness (run/witness.h).
 *
 * The thread that runs a key gathers the run in its own piece of memory, and stores it under the key at the
 * end. A key has at most KL_FLIGHT_RUNS; the bytes of all keys are limited: the longest idle ones are dropped
 * first. Any thread, but for the witness. */
#ifndef KL_OBSERVE_FLIGHT_H
#define KL_OBSERVE_FLIGHT_H

#include "value/value.h"
#include "run/witness.h"

typedef struct kl_flight kl_flight;

#define KL_FLIGHT_RUNS 8
#define KL_FLIGHT_BYTES ((size_t)8 << 20)
/* The minimum: fewer bytes would hold almost no runs. */
#define KL_FLIGHT_BYTES_MIN ((size_t)64 << 10)

/* `bytes`: the limit of memory; `clock` dates the runs. */
kl_flight *kl_flight_new(size_t bytes, kl_clock *clock);
void kl_flight_free(kl_flight *f); /* after the last worker has ended. NULL is fine */
kl_witness kl_flight_witness(kl_flight *f);

/* Records that an event of an object enqueued no key (kind NULL: the controller's own resource); `by`
 * (static) names the part of `when` that dropped it. The last such event of each object and controller is
 * kept. */
void kl_flight_dropped(
    kl_flight *f, const char *controller, const char *kind, const kl_value *object, const char *by);

/* Adds the history of a key to an open object: "runs", an array, the newest first, absent when there is none:
 *   {at, ago, took, generation, attempt, reconcileID, trigger: {reason, events, kind, key,
 *   resourceVersion}, steps: [...], result, message, traceback, next, in}
 * Times are RFC 3339, `ago`, `in` and `took` seconds. A step is {get, key, resourceVersion}, {list,
 * namespace, labels, fields, index, value, count}, or {call, kind, key, subresource, code, took, error}.
 * False when nothing is known. */
bool kl_flight_runs(kl_flight *f, const char *controller, const char *key, kl_builder *b);
/* Adds "dropped" to an open object, for an object by its kind (NULL: the controller's own) and key: {at, ago,
 * by, resourceVersion}. False when nothing is known. */
bool kl_flight_drop(kl_flight *f, const char *controller, const char *kind, const char *key, kl_builder *b);

/* The recorder's contents, including keys without runs; evicted: keys that were dropped for space. */
typedef struct kl_flight_stats {
    size_t keys, runs, bytes;
    uint64_t evicted;
} kl_flight_stats;
void kl_flight_stats_get(kl_flight *f, kl_flight_stats *out);

#endif
