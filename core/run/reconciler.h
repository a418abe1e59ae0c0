/* reconciler.h - the interface between controller logic and the runtime. Lua scripts implement it in
 * bindings; C programs implement it directly (spec/programs/embed.c is the example).
 *
 * A program is one loaded generation of one source: specs plus code. Each worker thread (and the mapper
 * thread) opens a state of it and uses it alone. A reconcile of one key is a run:
 *
 *   start --WAITING--> (call or sleep is under way) --resume--> WAITING ... --DONE--> (kl_run_finish was called)
 *
 * While a run waits, its worker starts and resumes others. All functions of one state are called on one
 * thread. */
#ifndef KL_RUN_RECONCILER_H
#define KL_RUN_RECONCILER_H

#include <stdatomic.h>
#include "base/log.h"
#include "base/trace.h"
#include "base/watchdog.h"
#include "cache/informer.h"
#include "client/client.h"
#include "run/cause.h"
#include "run/fleet.h"
#include "metrics/metrics.h"
#include "events/news.h"
#include "run/spec.h"

typedef struct kl_program kl_program;
typedef struct kl_run kl_run;       /* one reconcile; owned by the worker */
typedef struct kl_reader kl_reader; /* reads of the caches that a controller declared */

typedef enum kl_run_state { KL_RUN_DONE, KL_RUN_WAITING } kl_run_state;

typedef void kl_emit_fn(void *arg, const char *text);

/* The most keys that one event may wake, and values that one object may have in an index. They are handled
 * under the index's lock or by the queue, where no script's budget applies. */
#define KL_EMITTED_KEYS 100000
#define KL_EMITTED_VALUES 10000

typedef struct kl_program_ops {
    /* A state for one thread; NULL with err on failure. `controller` is an index into specs. `stop` outlives
     * the state. Once it is true, running code must end soon: a run by returning KL_RUN_WAITING, after which
     * it is abandoned; map, index and predicate with KL_ECANCELLED. */
    void *(*open)(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err);
    void (*close)(void *state); /* no run is under way */
    kl_run_state (*start)(void *state, kl_run *run);
    kl_run_state (*resume)(void *state, kl_run *run); /* kl_run_reply has the answer */
    /* Optional, between keys: housekeeping of the state in small bounded steps; true: it did something.
     * `idle`: no key is ready, so this is a good time. */
    bool (*rest)(void *state, bool idle);
    /* Optional, between keys: whether a fresh state of the same generation must replace this one, on which
     * its present runs still end. */
    bool (*worn)(void *state);
    /* Optional: why the state and all its runs were lost; NULL: it is alive. Its runs fail with that reason.
     * `worn` must be true then. */
    const char *(*lost)(void *state);
    /* while WAITING, at timeout or shutdown: frees the run's resources; kl_run_finish is not called */
    void (*abandon)(void *state, kl_run *run);
    /* Functions of the script, on the mapper thread (for `serial` on the worker's). KL_ETIMEOUT and
     * KL_ETOOBIG: it exceeded its budget of processor time or memory; the mapper then calls no function of
     * that controller again. Optional when no spec names any. */
    kl_status (*map)(void *state, size_t fn, kl_reader *reader, const kl_value *object, kl_emit_fn *emit_key,
        void *arg, kl_err *err);
    kl_status (*index)(
        void *state, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err);
    kl_status (*predicate)(
        void *state, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err);
    void (*free)(kl_program *p); /* last reference; frees p itself */
} kl_program_ops;

struct kl_program {
    const kl_program_ops *ops;
    const char *name; /* for people: "controllers/x.lua" */
    kl_controller_spec *specs;
    size_t n_specs;
    kl_webhook_spec *hooks; /* `open` numbers them after the controllers */
    size_t n_hooks;
    const kl_value *metrics; /* its metrics (metrics/custom.h), or NULL */
    const kl_value *crds;    /* its CustomResourceDefinitions, a list; or NULL */
    atomic_int refs;         /* starts at 1 */
    int generation;          /* 1, 2, ...; set by the manager when it takes the program */
    /* Of its index functions, in all of its controllers: the time that they took since their last pause.
     * over: too much. Mapper thread */
    struct {
        kl_time since, taken;
        unsigned calls;
        bool over;
    } indexing;
};
kl_program *kl_program_ref(kl_program *p);
/* of a controller, or of a webhook's runs */
const kl_controller_spec *kl_program_spec(const kl_program *p, size_t index);
void kl_program_unref(kl_program *p);

/* --- calls of a run; from its worker's thread, inside start or resume ------------------ */
const char *kl_run_key(const kl_run *r);
const char *kl_run_namespace(const kl_run *r); /* of the key; NULL for cluster scope */
const char *kl_run_name(const kl_run *r);
/* the object in the cache when the run started; borrowed for the run */
const kl_value *kl_run_object(const kl_run *r);
const kl_controller_spec *kl_run_spec(const kl_run *r);
const kl_value *kl_run_params(const kl_run *r); /* spec params with overrides; an object or NULL */
int kl_run_attempt(const kl_run *r);            /* 1, 2, ...: failures in a row, plus one */
int kl_run_generation(const kl_run *r);
/* The cause of the run: the last event, or another reason (run/cause.h), and the number of events since the
 * previous run. *object (may be NULL) is the event's object, borrowed for the run, or NULL. */
kl_why kl_run_cause(const kl_run *r, const kl_value **object, unsigned *events);
/* The number of the term of leadership in which it started (leaseTransitions of the Lease), which grows with
 * each holder. 0 without a Lease. */
int64_t kl_run_epoch(const kl_run *r);
/* Whether the run's term has ended by the local clock. The run should end then; its writes are refused, and
 * its result is ignored. Its key stays in the queue. */
bool kl_run_deposed(kl_run *r);
const char *kl_run_id(kl_run *r); /* reconcileID */
kl_time kl_run_wall(kl_run *r);   /* now, by the runtime's clock */
/* the next random number; derived from kl_run_id, so that a replayed run gets the same ones */
uint64_t kl_run_random(kl_run *r);
void kl_run_seed(kl_run *r, uint64_t seed); /* sets the seed of further numbers */
kl_reader *kl_run_reader(kl_run *r);
/* The time at which running code must end, by the real clock, or KL_NEVER. The program checks it and its
 * state's `stop` (bindings/state/budget.h). */
kl_time kl_run_deadline(const kl_run *r);
/* reports to the metrics that the run exceeded a budget; kl_run_finish follows */
void kl_run_spent(kl_run *r, kl_spent what);
/* the program's own pointer for this run (a coroutine) */
void *kl_run_user(const kl_run *r);
void kl_run_set_user(kl_run *r, void *user);
/* The entry of `owns` for a kind, or NULL. Borrowed. */
const kl_owned_spec *kl_run_owned(const kl_run *r, const char *kind);

/* Each begins an operation; then return KL_RUN_WAITING. Writes go through the door (election/door.h). Fields
 * of op are copied. When op->field_manager is NULL the controller's name is used; when default_ns is NULL,
 * the run's namespace. */
void kl_run_call(kl_run *r, const kl_op *op);
void kl_run_sleep(kl_run *r, kl_time d);
/* the reply's body is NULL; on success kl_run_resource(kind) returns it */
void kl_run_resolve(kl_run *r, const char *kind);
/* With several clusters (run/fleet.h; NULL and 0 where there is one): our number, and the target of the next
 * call or resolve. */
const kl_fleet *kl_run_fleet(const kl_run *r);
size_t kl_run_cluster(const kl_run *r);
void kl_run_at(kl_run *r, size_t cluster);
/* NULL when it was not resolved there yet */
const kl_resource *kl_run_resource_at(kl_run *r, size_t cluster, const char *kind);
/* In resume: the result of the operation. body is NULL for sleep, resolve and failures; both borrowed until
 * the next begin or the end of the run. */
kl_status kl_run_reply(kl_run *r, const kl_value **body, kl_err **err);
/* The same, blocking this worker: for programs in C, which run in this process. *body is a new reference. The
 * wait ends early when the run must end: KL_ETIMEOUT at its deadline; KL_ECANCELLED when the worker stops, or
 * when the time is over that old runs get after a newer generation took over. From then on kl_run_over is set
 * and the run must return: at KL_OVER_STOP with KL_RUN_WAITING, and it is abandoned. */
KL_NODISCARD kl_status kl_run_call_wait(kl_run *r, const kl_op *op, const kl_value **body, kl_err *err);
KL_NODISCARD kl_status kl_run_resolve_wait(kl_run *r, const char *kind, kl_err *err);
KL_NODISCARD kl_status kl_run_sleep_wait(kl_run *r, kl_time d, kl_err *err);
kl_over kl_run_over(const kl_run *r);
const kl_resource *kl_run_resource(kl_run *r, const char *kind); /* NULL when it was not resolved yet */

/* An Event about the run's object (or `about`, NULL for the object); queued, sent by the recorder. type
 * "Normal" or "Warning". kl_run_record knows action and related object too; the component is the
 * controller's name, whatever n says. */
void kl_run_record(kl_run *r, const kl_news *n);
void kl_run_event(
    kl_run *r, const kl_value *about, const char *type, const char *reason, const char *message);
/* logs with the fields controller, key, reconcileID and generation */
void kl_run_log(kl_run *r, kl_log_level level, const char *message);
/* The same with fields of the script's own, and their types: see kl_log_text. */
void kl_run_log_with(
    kl_run *r, kl_log_level level, const char *message, const char *format, const char *fields);
/* the run's trace and span: the trace is its caller's, or made from the reconcileID */
void kl_run_trace(kl_run *r, kl_trace *out);

typedef enum kl_result_kind {
    KL_RESULT_DONE,     /* forget backoff */
    KL_RESULT_AFTER,    /* requeue after (5 ms at least); forget backoff */
    KL_RESULT_REQUEUE,  /* again, rate limited; no error, backoff grows */
    KL_RESULT_RETRY,    /* kube.retry: expected wait, no error, backoff kept as it is; 0: as REQUEUE */
    KL_RESULT_CONFLICT, /* a raised 409, or 404 of the run's object, which the next run may not meet: requeued
                         * at once, counts no error */
    KL_RESULT_ERROR,    /* rate limited requeue, logged with traceback */
    KL_RESULT_FAIL,     /* terminal until the object changes */
} kl_result_kind;
const char *kl_result_name(kl_result_kind k); /* "done", "after", ...; static. Any thread */
/* Exactly once before KL_RUN_DONE. message and traceback may be NULL; copied. */
void kl_run_finish(kl_run *r, kl_result_kind kind, kl_time after, const char *message, const char *traceback);

/* The priority of the key when the result requeues it; unchanged by default. */
void kl_run_set_priority(kl_run *r, int priority);
int kl_run_priority(const kl_run *r);
/* The decision of a webhook's run, whose object is an AdmissionRequest (webhook/admission.h). Once, before
 * kl_run_finish; the API server may have been answered already. */
void kl_run_answer(kl_run *r, const kl_value *decision);
/* The complete cached object, when no later state is known (run/elide.h): a write that would not change it
 * need not be sent. A new reference, or NULL; ns NULL: the run's. kl_run_elided counts such a change. */
const kl_value *kl_run_believed(kl_run *r, const char *kind, const char *ns, const char *name);
void kl_run_elided(kl_run *r);

/* --- reading the caches: any thread that holds a reader ----------------------------------- */
typedef struct kl_read_query {
    /* texts; NULL for none. fields: metadata.name, metadata.namespace and paths of string values */
    const char *ns, *labels, *fields, *index, *value;
    const kl_index_term *terms; /* more index terms, with the script's names */
    size_t n_terms, limit;
} kl_read_query;
/* A kind that the controller did not declare is KL_EINVAL: "add it to reads". *out NULL when absent
 * (KL_OK). */
KL_NODISCARD kl_status kl_reader_get(
    kl_reader *rd, const char *kind, const char *ns, const char *name, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl_reader_list(
    kl_reader *rd, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err);
/* of a declared kind, NULL otherwise */
const kl_resource *kl_reader_resource(kl_reader *rd, const char *kind);

#endif
