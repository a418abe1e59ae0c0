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

/* Callbacks that may answer instead of the caches; false: read the caches. Each may be NULL. */
typedef struct kl_reader_front {
    /* *out a new reference, or NULL: the object does not exist */
    bool (*get)(void *arg, const char *kind, const char *ns, const char *name, const kl_value **out);
    bool (*list)(void *arg, const char *kind, const kl_read_query *q, kl_objects *out);
    void *arg;
} kl_reader_front;

typedef struct kl_wiring_options {
    kl_caches *caches;
    kl_loop *loop, *mapper;
    kl_clock *clock;
    /* outlives the wiring: a function on the mapper may still enqueue after retirement */
    kl_workqueue *queue;
    kl_own_writes *own_writes; /* notified about its caches; may be NULL. Outlives the wiring likewise */
    kl_program *program;       /* a reference is taken */
    size_t index;
    int generation;
    kl_controller_metrics *metrics; /* which count what its functions spend; may be NULL */
    bool divided;                   /* its caches hold only selected namespaces: see holding.h */
    /* on the loop: the wiring was freed and does not use the queue any more; may be NULL */
    void (*gone)(void *arg);
    void *gone_arg;
    /* Called before and after a batch of events: until the release, the holding thread's wake-ups of the
     * queue may wait. The release may come from another thread, and comes even when a feed is dropped within
     * the batch. Any thread; may be NULL. */
    void (*hold)(void *arg), (*release)(void *arg);
    void *hold_arg;
    /* Keys that are not ours are not enqueued. Any thread; NULL: all keys are ours. */
    bool (*ours)(void *arg, const char *key);
    void *ours_arg;
    kl_reader_front front;
    const kl_value *params; /* replaces the spec's params; NULL: the spec's; a reference is taken */
    /* gets events that enqueued no key; may be NULL. Outlives the wiring */
    struct kl_flight *flight;
    /* Called when an object of its own resource was deleted. Any thread; may be NULL. */
    void (*deleted)(void *arg, const char *key);
    void *deleted_arg;
} kl_wiring_options;

/* All calls on the loop unless stated otherwise. */
kl_wiring *kl_wiring_new(const kl_wiring_options *o);
/* Connects the kinds that have become available. True when all kinds are connected and synced. kl_wiring_why
 * reports an invalid index. */
bool kl_wiring_advance(kl_wiring *w);
/* Call it when w is ready, before its predecessor is retired: from now on runs wait until w's caches show
 * their writes. */
void kl_wiring_attend(kl_wiring *w);
/* From now on events feed the queue, even while those of its predecessor still do, so that none is lost
 * between the two. */
void kl_wiring_listen(kl_wiring *w);
void kl_wiring_activate(kl_wiring *w); /* listens, and enqueues everything */
void kl_wiring_enqueue_all(kl_wiring *w, kl_why why);
/* Enqueues everything after a reload, with KL_PRIORITY_RELOAD. */
void kl_wiring_enqueue_again(kl_wiring *w);
/* Enqueues the keys for which `which` returns true, even those of other replicas. */
void kl_wiring_enqueue_where(kl_wiring *w, kl_why why, bool (*which)(void *arg, const char *key), void *arg);
void kl_wiring_enqueue_namespace(
    kl_wiring *w, const char *ns, kl_why why, bool (*which)(void *arg, const char *key), void *arg);
void kl_wiring_retire(kl_wiring *w); /* disconnects and drops the owner's reference */
/* As kl_wiring_retire, when another wiring listens: events that wait for the mapper are still mapped, since
 * no other wiring got them. */
void kl_wiring_hand_over(kl_wiring *w);
kl_logic *kl_wiring_logic(kl_wiring *w); /* borrowed */
/* Its params without secrets (kl_params_shown), a new reference or NULL. */
const kl_value *kl_wiring_params(kl_wiring *w);
kl_wiring *kl_wiring_ref(kl_wiring *w); /* any thread */
void kl_wiring_unref(kl_wiring *w);     /* any thread */
kl_wiring *kl_wiring_of(kl_logic *l);
/* any thread: an object of the controller's resource; a new reference, or NULL */
const kl_value *kl_wiring_object(kl_wiring *w, const char *key);
/* Whether one of its kinds has changed (kl_cache_outdated), so that the controller needs a new wiring. */
bool kl_wiring_outdated(const kl_wiring *w);
/* Whether one of its functions exceeded its budget. It then enqueues no more keys until another generation
 * replaces it. */
bool kl_wiring_spent(const kl_wiring *w);
/* Why it is not ready: "waiting for v1/Pod", or the problems of its caches. NULL when ready. Caller frees. */
char *kl_wiring_why(kl_wiring *w, bool *parked);
/* A sentence for people when its map functions delay its events; NULL: they do not. Caller frees. Any
 * thread. */
char *kl_wiring_slow(kl_wiring *w);

#endif
