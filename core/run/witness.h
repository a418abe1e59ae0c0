/* witness.h - observers of runs: flight recorder, recording, shadow, breaker. Each gets in order the start of
 * a run, its reads of the caches, its requests, their answers, and its result.
 *
 *   began -> (read | asked -> answered)* -> ended
 *
 * All calls come on the run's worker thread, and their data is borrowed. A witness must not wait and must not
 * start requests of the run; it may read it with kl_run_* (reconciler.h). A key without an object does not
 * begin a run. */
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
    unsigned number;  /* the number of the request in this run: 1, 2, ... */
    const char *what; /* "get", "patch", ..., "sleep", "discovery"; static */
    /* of a call, with manager and namespace filled in. NULL otherwise */
    const kl_op *op;
    const char *kind; /* of a discovery */
    kl_time wait;     /* of a sleep */
    bool elsewhere;   /* of a call: to another cluster */
    bool blocks;      /* the worker does nothing else until it is answered */
} kl_asked;

typedef struct kl_answered {
    unsigned number; /* the number of the request */
    kl_status status;
    /* HTTP; 0: no answer, or, with KL_OK, a write that was not sent because it would have changed nothing */
    int code;
    const kl_value *body; /* NULL where there is none */
    const kl_err *err;    /* of a failure */
    kl_time took;
} kl_answered;

typedef struct kl_witness { /* each function may be NULL */
    void (*began)(void *arg, kl_run *r);
    void (*saw)(void *arg, kl_run *r, const kl_saw *x);
    /* Inputs without a request: the cached object of a kl_run_believed (none if n is 0), and the time of
     * day. */
    void (*believed)(void *arg, kl_run *r, const kl_saw *x);
    void (*timed)(void *arg, kl_run *r, kl_time wall);
    void (*asked)(void *arg, kl_run *r, const kl_asked *x);
    void (*answered)(void *arg, kl_run *r, const kl_answered *x);
    /* Before the key returns to the queue. x->put_back: the run was aborted, and its result is ignored. */
    void (*ended)(void *arg, kl_run *r, const kl_ran *x);
    /* A worker took a key whose object is gone; no run begins. */
    void (*gone)(void *arg, const char *controller, const char *key);
    void *arg;
} kl_witness;

#define KL_WITNESSES_MAX 8
typedef struct kl_witnesses {
    kl_witness v[KL_WITNESSES_MAX];
    size_t n;
} kl_witnesses;
/* Call it before the first worker starts; a witness cannot be removed. */
void kl_witnesses_add(kl_witnesses *w, const kl_witness *x);

/* --- who tells ---------------------------------------------------------------------------- */
/* The program has read the caches for this run. */
void kl_run_saw(kl_run *r, const kl_saw *x);
/* The flight recorder's own data of the run (observe/flight.c). */
void *kl_run_strip(const kl_run *r);
void kl_run_set_strip(kl_run *r, void *strip);
bool kl_run_watched(const kl_run *r); /* whether there is an observer for it */

#endif
