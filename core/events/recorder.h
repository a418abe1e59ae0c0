/* recorder.h - Events about objects: queues them, counts repetitions in one Event, and sends them through the
 * write door. Any thread may record.
 *
 * Events are of events.k8s.io/v1, or of core/v1 where the server lacks that. The correlator
 * (events/correlator.h) joins equal ones and limits their number. A request that hangs or is retried delays
 * only its own Event. Only flush and free wait. */
#ifndef KL_EVENTS_RECORDER_H
#define KL_EVENTS_RECORDER_H

#include "election/door.h"
#include "base/loop.h"
#include "events/news.h"

typedef struct kl_recorder kl_recorder;

typedef struct kl_recorder_stats {
    uint64_t recorded; /* notes that an Event on the server has, or will have: created, or counted in one */
    uint64_t full;     /* dropped: too many waited */
    uint64_t spam;     /* dropped: too many about one object */
    uint64_t refused;  /* dropped: the server refused it permanently */
    uint64_t given_up; /* dropped: tried too often */
    uint64_t terminating; /* dropped: the namespace was going away */
    uint64_t not_leading; /* dropped: this process does not lead */
    size_t waiting;       /* Events with something to be sent now */
} kl_recorder_stats;

/* `loop` runs later steps (retries, ends of series); NULL: the owner calls kl_recorder_tick. It outlives the
 * recorder. */
kl_recorder *kl_recorder_new(kl_door *door, kl_clock *clock, kl_loop *loop);
void kl_recorder_event(kl_recorder *r, const kl_news *n);
/* Runs the due steps; returns the time of the next call (monotonic), or KL_NEVER. */
kl_time kl_recorder_tick(kl_recorder *r);
/* Sends all pending Events, also the counts of running series, and waits for the answers until `deadline`
 * (monotonic). False: some are still under way, or have failed and need a retry. */
bool kl_recorder_flush(kl_recorder *r, kl_time deadline);
void kl_recorder_stats_get(kl_recorder *r, kl_recorder_stats *out);
bool kl_recorder_busy(kl_recorder *r);        /* a request is under way, or may be sent now */
uint64_t kl_recorder_dropped(kl_recorder *r); /* the sum of all drops */
/* After flush; waits for pending answers. Not on the loop's thread. */
void kl_recorder_free(kl_recorder *r);

#endif
