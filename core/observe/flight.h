/* flight.h - the flight recorder: what the last runs of each key were woken by, read, wrote and came to,
 * for `kubelua why`. A witness (run/witness.h).
 *
 * A run is gathered in a piece of memory of its own, by the thread that runs it, and put under its key
 * when it ends. There are at most KL_FLIGHT_RUNS for a key; of all keys together there are at most so many
 * bytes: those that were quiet for longest go first. Any thread, but for the witness. */
#ifndef KL_OBSERVE_FLIGHT_H
#define KL_OBSERVE_FLIGHT_H

#include "value/value.h"
#include "run/witness.h"

typedef struct kl_flight kl_flight;

#define KL_FLIGHT_RUNS 8
#define KL_FLIGHT_BYTES ((size_t)8 << 20)
/* Fewer would hold next to nothing. */
#define KL_FLIGHT_BYTES_MIN ((size_t)64 << 10)

/* At most `bytes`; the clock says when runs were. */
kl_flight *kl_flight_new(size_t bytes, kl_clock *clock);
void kl_flight_free(kl_flight *f); /* when no worker runs any more. NULL is fine */
kl_witness kl_flight_witness(kl_flight *f);

/* An event of an object woke nobody (kind NULL: it is of the controller's own resource): `by` (static)
 * says which part of `when` dropped it. Of each object and controller the last one is kept. */
void kl_flight_dropped(
    kl_flight *f, const char *controller, const char *kind, const kl_value *object, const char *by);

/* Into an open object what is known of a key: "runs", an array of the newest first, absent when there is
 * none:
 *   {at, ago, took, generation, attempt, reconcileID, trigger: {reason, events, kind, key,
 *   resourceVersion}, steps: [...], result, message, traceback, next, in}
 * Times are RFC 3339, `ago`, `in` and `took` seconds. A step is {get, key, resourceVersion}, {list,
 * namespace, labels, fields, index, value, count}, or {call, kind, key, subresource, code, took, error}.
 * False when nothing is known. */
bool kl_flight_runs(kl_flight *f, const char *controller, const char *key, kl_builder *b);
/* Into an open object "dropped", of an object by its kind (NULL: the controller's own) and key: {at, ago,
 * by, resourceVersion}. False when nothing is known. */
bool kl_flight_drop(kl_flight *f, const char *controller, const char *kind, const char *key, kl_builder *b);

/* What it holds, keys without runs included; evicted: keys that made room. */
typedef struct kl_flight_stats {
    size_t keys, runs, bytes;
    uint64_t evicted;
} kl_flight_stats;
void kl_flight_stats_get(kl_flight *f, kl_flight_stats *out);

#endif
