/* run_impl.h - the inside of kl_run and kl_worker, for worker.c (the rounds), start.c and settle.c (a run's
 * start and end), gens.c (the states they run on) and run.c (what a run can do). */
#ifndef KL_RUN_RUN_IMPL_H
#define KL_RUN_RUN_IMPL_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/random.h"
#include "base/sync.h"
#include "run/worker.h"

/* An answer from another thread, on its way to a run. run is NULL when the run ended first (under w->mu). */
typedef struct kl_answer {
    kl_list link;
    kl_worker *w;
    kl_run *run;
    bool arrived; /* under w->mu */
    kl_status status;
    int code;
    const kl_value *body;
    kl_err err;
    /* the facts of a write that later runs wait for (own_writes); NULL: none */
    struct kl_write *write;
} kl_answer;

/* A program's state on this worker, for one generation. */
typedef struct kl_gen_state {
    kl_list link;
    kl_logic *logic; /* a reference */
    void *state;
    size_t runs;       /* under way on it */
    kl_time old_since; /* a newer generation was seen then; 0: none */
} kl_gen_state;

/* Limit of a run's open streams: only nested callbacks have more than one. */
#define KL__RUN_STREAMS 8

struct kl_run {
    kl_list link; /* in w->runs */
    kl_worker *w;
    kl_gen_state *gen;
    kl_queue_item item; /* as the queue gave it; done when the run ends */
    const char *key;    /* the queue owns it, and keeps it until the run ends */
    char *ns;           /* NULL: cluster scope */
    const char *name;   /* into key */
    char *group;        /* its serial group in the queue; NULL: none */
    const kl_value *object;
    struct {                /* of leadership */
        kl_mandate mandate; /* the mandate under which the run was started */
        int64_t epoch;      /* of that mandate */
        bool lost;          /* a write was refused because `mandate` does not hold any more */
    } term;
    int attempt;
    char id[40];
    kl_trace caller;                      /* the trace that it continues; trace "": none */
    char traceparent[KL_TRACEPARENT_MAX]; /* "" until a request carries it */
    char *detail;                         /* its log fields for machines; made on its first log line */
    void *user;
    kl_random chance;
    bool drawn; /* the random seed is set */
    kl_time started;
    struct {
        kl_heap_node sleep;    /* in w->due while sleeping */
        kl_heap_node deadline; /* in w->due while there is a timeout */
        kl_answer *answer;     /* of the request under way, or NULL */
        uint64_t request;
        kl_door *door;        /* the door of `request` */
        const char *for_what; /* words for the timeout message; static */
        char *expired;        /* the reason why it ends before its timeout; NULL: none */
        kl_over over;         /* the reason why a blocking wait ended: the run must end */
    } wait;
    struct {
        kl_status status;
        const kl_value *body;
        kl_err err;
    } reply; /* to its last request */
    /* the last streams of ctx.http that it opened, which may still be open; n_streams: all ever opened */
    uint64_t streams[KL__RUN_STREAMS];
    size_t n_streams;
    size_t at; /* the cluster of the next request, or KL_FLEET_NONE: our own */
    struct {   /* its requests */
        unsigned n;
        bool write; /* the last one is a write that others wait for */
        kl_time at; /* the last one */
        /* virtual time: the moment of the last request, and the number of requests at it */
        kl_time moment;
        unsigned then;
    } asked;
    bool wrote, excused;            /* see kl_ran */
    struct {                        /* where its writes are not sent (run/imagine.h); or NULL */
        struct kl_overlay *overlay; /* its writes and reads */
        kl_reader *view;            /* the caches behind that */
    } dry;
    struct {          /* data of the run's observers */
        void *effect; /* a write under way, for the log of effects (observe/effects.c) */
        void *shadow; /* its record for the shadow (lab/shadow.c) */
        void *strip;  /* the flight recorder's */
    } observed;
    struct { /* once the program has ended it */
        bool known;
        kl_result_kind kind;
        kl_time after;
        char *message, *traceback;
    } outcome;
};

/* BUSY: running, or asleep without room for a key; FREE: asleep, or about to sleep, with room; CALLED: woken
 * from FREE for a key. */
typedef enum kl_worker_rest { KL_WORKER_BUSY, KL_WORKER_FREE, KL_WORKER_CALLED } kl_worker_rest;

struct kl_worker {
    kl_worker_owner o;
    int number;
    kl_mandate mandate; /* of the term in which it was made */
    int64_t epoch;      /* ... and its public number */
    kl_thread *thread;
    bool started;
    kl_bell bell; /* rung after every change that another thread makes here */
    kl_mutex mu;
    kl_list answers KL_GUARDED_BY(mu);    /* kl_answer that arrived */
    size_t outstanding KL_GUARDED_BY(mu); /* answers not yet processed */
    size_t told_asleep KL_GUARDED_BY(mu); /* the result of kl_worker_outlook */
    bool told_full KL_GUARDED_BY(mu);
    kl_time told_next KL_GUARDED_BY(mu);
    atomic_bool draining, aborting;
    _Atomic kl_worker_rest rest;
    _Atomic kl_time until; /* of its sleep, while FREE */
    /* owner thread only: */
    kl_list runs, gens; /* gens: newest first */
    kl_heap due;
    kl_time retry_open; /* when to try again to open a state, after a failure */
    uint64_t ids;
    kl_commons *commons; /* of its own; NULL: not needed yet */
    kl_shared *memos;    /* likewise */
    bool room;           /* the last round could have taken another key */
    atomic_size_t inflight;
    atomic_bool ended; /* its thread will neither run another key nor wait */
};

/* The fields that follow "controller=%s key=%s ... reconcileID=%s generation=%d" in a log line: "
 * controllerGroup=... spanID=..." if the log is detailed, else "". Valid for the run. */
const char *kl__run_detail(kl_run *r);
/* Sends op through the door. A write that would change nothing is not sent: done is called at once with the
 * cached object (elide_run.c). */
uint64_t kl__run_submit(kl_run *r, const kl_op *op, kl_reply_fn *done, void *arg);
kl_answer *kl__answer_new(kl_run *r);
/* a kl_reply_fn; arg is the kl_answer */
void kl__answer_done(void *arg, kl_status st, int code, const kl_value *body, kl_err *err);
/* An answer that has arrived becomes its run's reply, if the run still exists; returns its HTTP status. a is
 * freed.
 */
int kl__answer_take(kl_answer *a);
void kl__answer_forget(kl_run *r); /* detaches the run from its pending answers */

/* Scripts give durations of up to 292 years; below 0 is now. */
static inline kl_time kl__after(kl_time now, kl_time d)
{
    return d <= 0 ? now : d > KL_NEVER - 1 - now ? KL_NEVER - 1 : now + d;
}

char *kl__late_text(const kl_run *r); /* the message of a run whose `timeout` expired */
/* Ends the run in the worker's next round, for the reason `why`, which it takes over. */
void kl__run_expire(kl_run *r, char *why);

/* --- gens.c; owner thread ------------------------------------------------------------------ */
kl_gen_state *kl__gen_newest(kl_worker *w); /* NULL: none is open */
/* The state of the present generation, opened when it is new here; NULL when it cannot be opened now. */
kl_gen_state *kl__gen_current(kl_worker *w, kl_time now);
/* The same, but a state is only opened for a key: an idle controller has none, and states of other
 * generations are closed. NULL with *next: when to try again. */
kl_gen_state *kl__gen_wanted(kl_worker *w, kl_time now, kl_time *next);
void kl__gen_close(kl_worker *w, kl_gen_state *g); /* without runs */
void kl__gens_sweep(kl_worker *w);                 /* closes unused states */
/* When runs on g are ended because of a newer generation; KL_NEVER while there is none. */
kl_time kl__outlived_at(kl_worker *w, kl_gen_state *g, kl_time now);
/* Ends runs that have outlived their generation for too long; returns the time of the next check, or
 * KL_NEVER. */
kl_time kl__gens_end_old_runs(kl_worker *w, kl_time now);

/* --- start.c, settle.c; owner thread ------------------------------------------------------- */
/* False when the key must wait after all. */
bool kl__run_start(kl_worker *w, kl_gen_state *g, kl_queue_item *item, kl_time now);
void kl__run_stepped(kl_run *r, kl_run_state state); /* worker.c: handles a program's result; ends finished
                                                        runs */
void kl__run_end(kl_run *r, kl_time now);            /* by its result; frees it */
void kl__run_abandon(kl_run *r, kl_time now);        /* without a result: its key is put back; frees it */
/* Puts back a key that did not run, or not to its end; its cause stays. */
void kl__key_return(kl_worker *w, const kl_queue_item *item, kl_time now);

/* --- witness.c ---------------------------------------------------------------------------- */
void kl__tell_began(kl_run *r);
void kl__tell_asked(kl_run *r, kl_asked *x);       /* numbers it */
void kl__tell_answered(kl_run *r, kl_answered *x); /* the last request; numbers and times it */
void kl__tell_believed(kl_run *r, const kl_saw *x);
void kl__tell_timed(kl_run *r, kl_time wall);
void kl__tell_ended(kl_run *r, const kl_ran *x);
void kl__tell_gone(const kl_worker *w, const char *key);

/* --- own_run.c ---------------------------------------------------------------------------- */
typedef struct kl_write kl_write; /* the facts of a write that are needed when it is answered */
kl_write *kl__write_of(kl_run *r, const kl_op *op); /* op is complete; NULL: no run will wait for it */
void kl__write_free(kl_write *x);                   /* NULL is fine */
/* the write succeeded; x NULL is fine */
void kl__write_answered(kl_run *r, const kl_write *x, const kl_value *body);
/* Whether the key, or its group, must wait for its writes, until *until at the latest. */
bool kl__write_owed(
    kl_worker *w, const kl_gen_state *g, const char *name, const char *key, kl_time now, kl_time *until);

/* --- fight_run.c -------------------------------------------------------------------------- */
void kl__fight_began(kl_run *r);
void kl__fight_wrote(kl_run *r, const kl_value *answer);
/* Reports a loop or fight: log, Event, metric. In virtual time it returns the text of a loop instead, which
 * the caller frees; else NULL. */
char *kl__fight_ended(kl_run *r, kl_time now);

/* --- serial.c ----------------------------------------------------------------------------- */
bool kl__serial_says(const kl_controller_spec *s); /* the spec has `serial` */
/* Appends the group of an object, a text that is never empty; nothing for an object without a group. */
KL_NODISCARD kl_status kl__serial_text(
    const kl_gen_state *g, const kl_value *object, kl_buf *out, kl_err *err);

#endif
