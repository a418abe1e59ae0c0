/* wiring.h - one generation of one controller, connected: which caches it reads, which indexes it added,
 * and how an event of each becomes keys.
 *
 *   new --all caches synced, all indexes ready--> ready --listen--> feeding the queue --retire--> silent --last run ended--> freed
 *
 * Until it listens, events feed nothing; activation enqueues every object of the controller's resource
 * once. Owned by the manager's loop; runs of workers hold references. */
#ifndef KL_CONTROLLER_WIRING_H
#define KL_CONTROLLER_WIRING_H

#include "queue/workqueue.h"
#include "informers/caches.h"
#include "run/cause.h"
#include "run/worker.h"

typedef struct kl_wiring kl_wiring;

/* Who is asked before the caches are read; false: it does not know, the caches are. Each may be NULL. */
typedef struct kl_reader_front {
    /* *out a new reference, or NULL: there is none */
    bool (*get)(void *arg, const char *kind, const char *ns, const char *name, const kl_value **out);
    bool (*list)(void *arg, const char *kind, const kl_read_query *q, kl_objects *out);
    void *arg;
} kl_reader_front;

typedef struct kl_wiring_options {
    kl_caches *caches;
    kl_loop *loop, *mapper;
    kl_clock *clock;
    /* outlives the wiring: a function on the mapper may be about to enqueue after it was retired */
    kl_workqueue *queue;
    kl_own_writes *own_writes; /* which hears of its caches; may be NULL. Outlives it likewise */
    kl_program *program;       /* a reference is taken */
    size_t index;
    int generation;
    kl_controller_metrics *metrics; /* which count what its functions spend; may be NULL */
    bool divided;                   /* its caches hold only what they are told to: see holding.h */
    /* on the loop: the wiring is freed, nothing of it touches the queue any more; may be NULL */
    void (*gone)(void *arg);
    void *gone_arg;
    /* Around a run of events: the queue's wakes of the thread that holds may wait until the release, which
     * may come from another thread, and comes also when a feed is dropped within the run. Any thread; may
     * be NULL. */
    void (*hold)(void *arg), (*release)(void *arg);
    void *hold_arg;
    /* Keys that are not ours are not enqueued. Any thread; NULL: all are. */
    bool (*ours)(void *arg, const char *key);
    void *ours_arg;
    kl_reader_front front;
    const kl_value *params; /* in place of the spec's, NULL: those; a reference is taken */
    /* hears of events that woke nobody; may be NULL. Outlives the wiring */
    struct kl_flight *flight;
    /* An object of its own resource was deleted. Any thread; may be NULL. */
    void (*deleted)(void *arg, const char *key);
    void *deleted_arg;
} kl_wiring_options;

/* On the loop, all of it unless said otherwise. */
kl_wiring *kl_wiring_new(const kl_wiring_options *o);
/* Connects what has become available. True when everything is there and synced. A wrong index is reported
 * in *err once. */
bool kl_wiring_advance(kl_wiring *w);
/* When it is ready, and before the one that it follows is retired: from now on its caches owe what runs
 * write. */
void kl_wiring_attend(kl_wiring *w);
/* Events feed the queue from now on, also while the one that it follows still does: none falls between the
 * two. */
void kl_wiring_listen(kl_wiring *w);
void kl_wiring_activate(kl_wiring *w); /* listens, and enqueues everything */
void kl_wiring_enqueue_all(kl_wiring *w, kl_why why);
/* The same because the logic is another: KL_PRIORITY_RELOAD. */
void kl_wiring_enqueue_again(kl_wiring *w);
/* Of these, those for which `which` is true; ours or not. */
void kl_wiring_enqueue_where(kl_wiring *w, kl_why why, bool (*which)(void *arg, const char *key), void *arg);
void kl_wiring_enqueue_namespace(
    kl_wiring *w, const char *ns, kl_why why, bool (*which)(void *arg, const char *key), void *arg);
void kl_wiring_retire(kl_wiring *w); /* disconnects and drops the owner's reference */
/* The same when another one listens: what waits for the mapper is mapped still, since nobody else has
 * heard of it. */
void kl_wiring_hand_over(kl_wiring *w);
kl_logic *kl_wiring_logic(kl_wiring *w); /* borrowed */
/* Its params as they may be shown (kl_params_shown), a new reference or NULL. */
const kl_value *kl_wiring_params(kl_wiring *w);
kl_wiring *kl_wiring_ref(kl_wiring *w); /* any thread */
void kl_wiring_unref(kl_wiring *w);     /* any thread */
kl_wiring *kl_wiring_of(kl_logic *l);
/* any thread: of the controller's resource; a new reference */
const kl_value *kl_wiring_object(kl_wiring *w, const char *key);
/* A kind of it is another thing by now (kl_cache_outdated): it should be wired again. */
bool kl_wiring_outdated(const kl_wiring *w);
/* One of its functions spent its budget: it feeds nothing any more, and only another generation heals
 * that. */
bool kl_wiring_spent(const kl_wiring *w);
/* Why it is not ready: "waiting for v1/Pod", or the problems of its caches. NULL when ready. Caller frees. */
char *kl_wiring_why(kl_wiring *w, bool *parked);
/* That its functions hold up its events, in words; NULL: they do not. Caller frees. Any thread. */
char *kl_wiring_slow(kl_wiring *w);

#endif
