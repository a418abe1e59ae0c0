/* worker.h - takes keys from a queue and runs them as a program's runs, many in flight.
 *
 * A worker is one thread (or none: specs call kl_worker_step), one program state per generation, and a
 * mailbox for answers. Everything else comes from its owner (kl_worker_owner), so that specs can drive it. */
#ifndef KL_RUN_WORKER_H
#define KL_RUN_WORKER_H

#include "base/tenure.h"
#include "base/trace.h"
#include "queue/workqueue.h"
#include "election/door.h"
#include "run/elide.h"
#include "run/fights.h"
#include "run/fleet.h"
#include "sharding/gate.h"
#include "run/imagine.h"
#include "metrics/metrics.h"
#include "run/own_writes.h"
#include "run/reconciler.h"
#include "run/shared.h"
#include "run/witness.h"

typedef struct kl_worker kl_worker;

/* One generation's logic and readable caches, as a controller publishes it. Refcounted by its owner. */
typedef struct kl_logic {
    kl_program *program;
    size_t index; /* of the controller in program->specs */
    const kl_controller_spec *spec;
    kl_reader *reader;      /* reads what this generation declared */
    const kl_value *params; /* or NULL */
    int generation;
} kl_logic;

/* A run that has ended. Strings are borrowed. */
struct kl_ran {
    const char *controller, *key, *id, *message; /* message NULL: none */
    kl_result_kind result;
    kl_time after;          /* until the next requested run; -1: none */
    kl_time started, ended; /* monotonic */
    int attempt;
    const char *traceback; /* of an error, where there is one */
    const char *loop;      /* in virtual time: how the key triggers itself without end; or NULL */
    int generation;
    bool wrote; /* the server accepted a write of it */
    /* one of its calls failed because of the server: no answer, 429, 5xx */
    bool excused;
    /* it was aborted, because the lease was lost or the process stops. Its key stays in the queue; result and
     * after are unset */
    bool put_back;
};

typedef struct kl_worker_owner {
    /* The present generation, with a reference for the caller; never NULL. */
    kl_logic *(*logic)(void *arg);
    void (*logic_unref)(void *arg, kl_logic *l);
    /* Whether l, a reference of the worker, is the current generation. Called for each key, so it is cheap.
     */
    bool (*is_current)(void *arg, const kl_logic *l);
    /* The object of the controller's resource under key, a new reference or NULL. */
    const kl_value *(*object)(void *arg, kl_logic *l, const char *key);
    /* The trace that the key's run continues, from its requester; false: none, and *out is unchanged. NULL:
     * every run begins its own. */
    bool (*trace)(void *arg, const char *key, kl_trace *out);
    /* Resolves a kind; calls done on any thread. */
    void (*resolve)(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg);
    const kl_resource *(*resource)(void *arg, const char *kind); /* NULL: not resolved yet */
    void (*event)(void *arg, const kl_news *n);                  /* the owner sets `component` */
    void (*more)(void *arg); /* a key was taken: another worker might take the next; may be NULL */
    /* see kl_run_answer; NULL unless the runs are a webhook's */
    void (*answer)(void *arg, const char *key, const kl_value *decision);
    void (*ended)(void *arg);                /* the worker's last call, on its thread; may be NULL */
    void (*ran)(void *arg, const kl_ran *r); /* on its thread; may be NULL */
    /* Virtual time: `turn` returns whether a key may be taken now (NULL: always); `turn_over` follows a round
     * in which one was. */
    bool (*turn)(void *arg);
    void (*turn_over)(void *arg);
    /* The run's time of day, and its cached object for kl_run_believed (a new reference, or NULL). NULL: from
     * the clock, and from `elide`. */
    kl_time (*wall)(void *arg, kl_run *r);
    const kl_value *(*believed)(void *arg, kl_run *r, const char *kind, const char *ns, const char *name);
    /* while true, the worker takes no key; poke the worker after a change. NULL: never paused */
    const atomic_bool *paused;
    void *arg;
    const char *name;    /* controller name */
    bool trace_requests; /* its requests carry a traceparent */
    kl_workqueue *queue;
    kl_door *door;
    kl_clock *clock;
    kl_controller_metrics *metrics; /* may be NULL */
    kl_fights *fights;              /* slows down keys in a write loop; NULL: no detection */
    kl_elide *elide;                /* NULL: every write is sent */
    kl_commons *commons;            /* the memory of its script, and ... */
    /* ... of its controller, by key. NULL: the worker has its own (run/shared.h) */
    kl_shared *memos;
    /* results of its runs are ignored: no log, no backoff, no requeue; only witnesses get them */
    bool shadow;
    const kl_imagination *imagine; /* simulates its writes instead of sending them; NULL: they are sent */
    const kl_witnesses *witnesses; /* observers; may be NULL */
    /* The worker runs keys only in the term in which it was created. NULL: unchecked. */
    const kl_tenure *tenure;
    /* makes keys wait until the caches show their writes; NULL: keys do not wait */
    kl_own_writes *own_writes;
    const kl_fleet *fleet; /* the clusters, ours included; NULL: there is only ours */
    size_t cluster;
    /* How long runs on an older generation may continue before they are ended and their keys put back. 0: 30
     * s, or the older generation's `timeout` if that is longer. Below 0: without limit. */
    kl_time reload_deadline;
    const struct kl_remote *remote; /* its runs belong to another process (run/remote.h); NULL: they are ours
                                     */
    /* keys that it rejects belong to another replica, and are dropped; NULL: none */
    kl_gate *gate;
} kl_worker_owner;

kl_worker *kl_worker_new(const kl_worker_owner *owner, int number);
void kl_worker_start(kl_worker *w); /* its own thread */
void kl_worker_poke(kl_worker *w);  /* any thread: makes it look for work again */
/* Wakes the worker for a key. True when it slept with room for a key; a call that was made before counts,
 * too. Any thread that keeps the worker from being joined meanwhile. */
bool kl_worker_call(kl_worker *w);
/* any thread, likewise: it sleeps with room for a key, and wakes at `due` or earlier */
bool kl_worker_awaits(kl_worker *w, kl_time due);
/* No new keys; runs under way finish. */
void kl_worker_drain(kl_worker *w); /* any thread */
/* Abandons its runs; their keys are put back into the queue. */
void kl_worker_abort(kl_worker *w); /* any thread, after drain */
bool kl_worker_idle(kl_worker *w);  /* any thread: nothing in flight */
bool kl_worker_ended(kl_worker *w); /* any thread: drained, and joining it would not block */
/* any thread, after drain: waits until its thread has ended */
void kl_worker_wait(kl_worker *w);
void kl_worker_join(kl_worker *w); /* waits likewise, then frees */
/* One round without a thread: answers, timers, new keys. Returns the latest time of the next call; KL_NEVER:
 * only after a poke. */
kl_time kl_worker_step(kl_worker *w);
size_t kl_worker_inflight(kl_worker *w); /* any thread */
/* As of its last round: the number of sleeping runs, whether it has no room for another, and the time of its
 * next timer, or KL_NEVER. Any thread. */
void kl_worker_outlook(kl_worker *w, size_t *asleep, bool *full, kl_time *next);

#endif
