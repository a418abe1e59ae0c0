/* witness.h - who looks on while keys run: flight recorder, tape, shadow, breaker. Each hears in order
 * what a run of a worker begins with, reads from the caches, asks of the server, is answered, and ends
 * with.
 *
 *   began -> (read | asked -> answered)* -> ended
 *
 * Everything is told on the run's worker thread, and borrowed for the call. A witness must not wait and
 * may not begin anything with the run; it may ask what kl_run_* tells (reconciler.h). A key that has no
 * object any more begins no run. */
#ifndef KL_RUN_WITNESS_H
#define KL_RUN_WITNESS_H

#include "client/client.h"
#include "run/reconciler.h"

typedef struct kl_ran kl_ran; /* run/worker.h */

typedef struct kl_saw { /* one read of a cache */
    /* a get: as the cache was asked; name NULL: a list (ns NULL: of all namespaces) */
    const char *kind, *ns, *name;
    const kl_read_query *query;   /* of a list */
    const kl_value *const *found; /* n objects; a get that found none: n is 0 */
    size_t n;
} kl_saw;

typedef struct kl_asked {
    unsigned number;  /* of this run's questions: 1, 2, ... */
    const char *what; /* "get", "patch", ..., "sleep", "discovery"; static */
    /* of a call, complete: manager and namespace are in it. NULL otherwise */
    const kl_op *op;
    const char *kind; /* of a discovery */
    kl_time wait;     /* of a sleep */
    bool elsewhere;   /* of a call: to another cluster */
    bool blocks;      /* the worker does nothing else until it is answered */
} kl_asked;

typedef struct kl_answered {
    unsigned number; /* of what was asked */
    kl_status status;
    /* HTTP; 0: none came, or (with KL_OK, of a write) none was needed: it would have changed nothing */
    int code;
    const kl_value *body; /* NULL where there is none */
    const kl_err *err;    /* of a failure */
    kl_time took;
} kl_answered;

typedef struct kl_witness { /* each function may be NULL */
    void (*began)(void *arg, kl_run *r);
    void (*saw)(void *arg, kl_run *r, const kl_saw *x);
    /* What the runtime gave it of itself: the cached object of a kl_run_believed (n is 0: none), and the
     * time of day. */
    void (*believed)(void *arg, kl_run *r, const kl_saw *x);
    void (*timed)(void *arg, kl_run *r, kl_time wall);
    void (*asked)(void *arg, kl_run *r, const kl_asked *x);
    void (*answered)(void *arg, kl_run *r, const kl_answered *x);
    /* Before the key is the queue's again. x->put_back: it did not come to an end of its own, and counts
     * for nothing. */
    void (*ended)(void *arg, kl_run *r, const kl_ran *x);
    /* The turn of a key came that has no object (any more): nothing runs. */
    void (*gone)(void *arg, const char *controller, const char *key);
    void *arg;
} kl_witness;

#define KL_WITNESSES_MAX 8
typedef struct kl_witnesses {
    kl_witness v[KL_WITNESSES_MAX];
    size_t n;
} kl_witnesses;
/* Before the first worker starts; they stay for good. */
void kl_witnesses_add(kl_witnesses *w, const kl_witness *x);

/* --- who tells ---------------------------------------------------------------------------- */
/* The program has read the caches for this run. */
void kl_run_saw(kl_run *r, const kl_saw *x);
/* What the flight recorder gathers of the run (observe/flight.c), its own. */
void *kl_run_strip(const kl_run *r);
void kl_run_set_strip(kl_run *r, void *strip);
bool kl_run_watched(const kl_run *r); /* somebody would hear of it */

#endif
