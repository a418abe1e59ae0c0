/* recorder.h - Events about objects: queued, made once, counted when they repeat, sent through the door.
 * Any thread may record.
 *
 * Events are of events.k8s.io/v1, or of core/v1 where the server lacks that. What is the same and what is
 * too much decides the correlator (events/correlator.h). A request that hangs or is tried again holds up
 * its own Event alone. Nothing here waits, but flush and free. */
#ifndef KL_EVENTS_RECORDER_H
#define KL_EVENTS_RECORDER_H

#include "election/door.h"
#include "base/loop.h"
#include "events/news.h"

typedef struct kl_recorder kl_recorder;

typedef struct kl_recorder_stats {
    uint64_t recorded;    /* news that an Event on the server tells, or will: made, or counted in one */
    uint64_t full;        /* dropped: too many waited */
    uint64_t spam;        /* dropped: too many about one object */
    uint64_t refused;     /* dropped: the server said no, for good */
    uint64_t given_up;    /* dropped: tried too often */
    uint64_t terminating; /* dropped: the namespace was going away */
    uint64_t not_leading; /* dropped: the lease is not ours */
    size_t waiting;       /* Events with something to be sent now */
} kl_recorder_stats;

/* `loop` runs what is due later (tries, ends of series); NULL: the owner calls kl_recorder_tick. It
 * outlives the recorder. */
kl_recorder *kl_recorder_new(kl_door *door, kl_clock *clock, kl_loop *loop);
void kl_recorder_event(kl_recorder *r, const kl_news *n);
/* Does what is due by the clock; when to come again (monotonic), or KL_NEVER. */
kl_time kl_recorder_tick(kl_recorder *r);
/* Sends what is not told yet, counts of running series too, and waits until it has been answered, or until
 * `deadline` (monotonic). False: something is still under way, or has failed and would have to be tried
 * again. */
bool kl_recorder_flush(kl_recorder *r, kl_time deadline);
void kl_recorder_stats_get(kl_recorder *r, kl_recorder_stats *out);
bool kl_recorder_busy(kl_recorder *r);        /* a request is under way, or could be without waiting */
uint64_t kl_recorder_dropped(kl_recorder *r); /* all of them */
/* After flush; waits for answers under way. Not on the loop's thread. */
void kl_recorder_free(kl_recorder *r);

#endif
