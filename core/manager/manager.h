/* manager.h - starts and stops everything in order: informers, controllers, workers, election, metrics,
 * health.
 *
 *   new --add--> ... --start--> running --stop--> stopping --join--> free
 *
 * Start: HTTP endpoints, caches, then per controller: its caches synced -> (leader) -> its workers. A missing
 * or forbidden kind parks only the controllers that need it, and they recover without help. Stop: no new
 * keys; running reconciles finish within the grace period; when the workers have joined, the lease is
 * released; then caches and endpoints end. */
#ifndef KL_MANAGER_MANAGER_H
#define KL_MANAGER_MANAGER_H

#include "client/client.h"
#include "controller/outlook.h"
#include "election/election.h"
#include "run/fleet.h"
#include "metrics/health.h"
#include "run/reconciler.h"
#include "manager/reloads.h"
#include "webhook/webhook_config.h"

typedef struct kl_manager kl_manager;
struct kl_ran;     /* run/worker.h */
struct kl_witness; /* run/witness.h */
struct kl_record;  /* lab/record.h */

typedef enum kl_dry { KL_DRY_NOT, KL_DRY_HERE, KL_DRY_SERVER } kl_dry;

#define KL_FLIGHT_OFF SIZE_MAX

typedef struct kl_manager_options { /* kl_manager_new copies the strings */
    kl_client *client;              /* borrowed, outlives the manager */
    kl_clock *clock;                /* NULL: real */
    const char *ns;                 /* --namespace: only this one; NULL: all */
    /* workers of a controller whose spec sets none; of every controller when workers_forced */
    int workers;
    bool workers_forced;
    kl_time grace; /* 0: 30 s */
    /* which keys run again after a reload, unless the spec sets it */
    kl_reload_keys reload_keys;
    /* keys in a write loop (run/fights.h) are neither reported nor slowed down */
    bool never_slow_down;
    /* for stand-ins: starts of controllers, and the kinds for which they wait, are logged at debug */
    bool quiet;
    kl_time rollback_window; /* see kl_probation_options; for `broken` alone */
    /* The generation of a slot does much worse than the previous one (controller/breaker.h): the owner may
     * want to roll it back. On a thread of the manager; must not wait or call the manager. NULL: generations
     * are not compared. */
    void (*broken)(void *arg, int slot, int generation, const char *controller, const char *why);
    void *broken_arg;
    /* how long runs on old logic may continue, see kl_worker_owner; 0: 30 s, or their `timeout` */
    kl_time reload_deadline;
    size_t max_object; /* 0: 16 MiB */
    /* the memory of the flight recorder; 0: KL_FLIGHT_BYTES, KL_FLIGHT_OFF: none */
    size_t flight_bytes;
    bool drop_managed_fields;
    /* Neither controllers nor the runtime write; writes of controllers are logged instead (lab/dryrun.h). The
     * manager runs no leader election and registers no webhooks. The result of a write is computed locally,
     * or by the server. */
    kl_dry dry_run;
    /* requests of a reconcile carry its trace, in a traceparent header */
    bool trace_requests;
    /* caches begin with a watch's initial events (sendInitialEvents) rather than with lists */
    bool watch_list;
    kl_election_options election;
    const char *metrics_address, *health_address; /* NULL: none */
    kl_webhook_options webhooks;                  /* for scripts that have webhooks */
    const char *metrics_cert_dir;                 /* HTTPS for metrics; NULL: HTTP */
    bool metrics_auth;                            /* the API server decides who may read them */
    /* Called during a stop when runs have not ended after the grace period, and may never end (stuck code).
     * The log names their controllers. A process that must end now can exit here. On a thread of the manager;
     * NULL: kl_manager_stop keeps waiting. */
    void (*stuck)(void *arg);
    /* Called when the states of kl_manager_controllers may have changed. On a thread of the manager; must not
     * wait. May be NULL. */
    void (*changed)(void *arg);
    void *changed_arg;
    /* `ran`: each run as it ends; `seen`: each call of a controller as it is sent. On workers' threads; must
     * not wait. Each may be NULL. */
    void (*ran)(void *arg, const struct kl_ran *r);
    void (*seen)(void *arg, const char *controller, const kl_op *op);
    void *seen_arg; /* of both */
    /* n_witnesses observers of runs (run/witness.h); copied */
    const struct kl_witness *witnesses;
    size_t n_witnesses;
    /* the recording of runs; outlives the manager. NULL: none */
    struct kl_record *record;
    bool turns; /* keys wait for their turn, see manager/turns.h */
    /* the managers of several clusters, and this one's number; the first manager reports metrics, states and
     * readiness of all. NULL: one cluster */
    kl_fleet *fleet;
    size_t cluster;
    kl_clock *watch_clock; /* the clock of lists and watches; NULL: clock */
} kl_manager_options;

KL_NODISCARD kl_status kl_manager_new(const kl_manager_options *o, kl_manager **out, kl_err *err);
/* Adds a program, before or after start; takes a reference. The slot names the source for kl_manager_replace.
 * Controller names are unique. */
KL_NODISCARD kl_status kl_manager_add(kl_manager *m, kl_program *p, int *slot, kl_err *err);
/* Starts the next generation of a slot: new controllers start, workers switch between keys, and queue,
 * caches, backoff and lease stay. On failure the old generation stays. Takes a reference. */
KL_NODISCARD kl_status kl_manager_replace(kl_manager *m, int slot, kl_program *p, kl_err *err);
/* Reports the outcome of a script change: kept, counted, and recorded as an Event about `about` (the
 * ConfigMap that it came from, our pod; NULL: no Event). Any thread. */
void kl_manager_reloaded(kl_manager *m, const kl_reload *x, const kl_value *about);
kl_reloads *kl_manager_reloads(kl_manager *m);
struct kl_tally *kl_manager_tally(kl_manager *m);     /* observe/tally.h */
struct kl_metrics *kl_manager_figures(kl_manager *m); /* metrics/metrics.h */
/* metrics of its scripts: metrics/custom.h */
struct kl_custom_metrics *kl_manager_custom_metrics(kl_manager *m);
/* Starts a candidate (lab/shadow.h) beside the slot that has controllers with its names, and ends the
 * previous candidate. o->script and o->live are filled in here. KL_EINVAL lists the existing controllers when
 * no name matches. Any thread. */
struct kl_shadow_options;
KL_NODISCARD kl_status kl_manager_shadow(
    kl_manager *m, kl_program *p, const struct kl_shadow_options *o, kl_err *err);
void kl_manager_shadow_end(kl_manager *m);
struct kl_shadow *kl_manager_shadow_of(kl_manager *m); /* for its report; any thread */
/* The candidate becomes the next generation of that slot, and its shadow ends. KL_ENOTFOUND: there is
 * none. Any thread. */
KL_NODISCARD kl_status kl_manager_promote(kl_manager *m, kl_err *err);
/* The newest generation of a slot, however it was started; a new reference. Any thread. */
kl_program *kl_manager_program(kl_manager *m, int slot);
KL_NODISCARD kl_status kl_manager_start(kl_manager *m, kl_err *err);
void kl_manager_stop(kl_manager *m); /* graceful; waits; call it once, on any thread */
/* A stop, under way or to come, does not wait for the grace period. Any thread, until kl_manager_free. */
void kl_manager_hurry(kl_manager *m);
void kl_manager_free(kl_manager *m); /* after stop */

/* From here to the end: any thread. Functions about controllers wait for the control loops: kl_manager_checks
 * and kl_manager_metrics at most 500 ms for all clusters together, the others until the loops answer. */

/* A snapshot; free it with kl_controller_states_free. */
size_t kl_manager_controllers(kl_manager *m, kl_controller_state **out);
void kl_controller_states_free(kl_controller_state *v, size_t n);
/* The i-th manager that m represents, itself included; NULL beyond the last. *cluster: the cluster's name;
 * NULL when there is only one. */
kl_manager *kl_manager_at(kl_manager *m, size_t i, const char **cluster);
/* The manager whose controller has `name` in kl_manager_controllers; *own: the controller's name without its
 * cluster. */
kl_manager *kl_manager_of(kl_manager *m, const char *name, const char **own);
const char *kl_manager_metrics_address(kl_manager *m); /* as bound, or NULL */
const char *kl_manager_health_address(kl_manager *m);
const char *kl_manager_webhook_address(kl_manager *m); /* as bound, or NULL */
/* Whether every lease that its controllers need is ours; true without election. Never waits. */
bool kl_manager_leading(kl_manager *m);
/* False when a lease expired more than `tolerance` ago and runs under it have not ended; *why names it (the
 * caller frees it; may be NULL). Never waits, even when the control loop hangs. */
bool kl_manager_election_healthy(kl_manager *m, kl_time tolerance, char **why);
bool kl_manager_ready(kl_manager *m); /* whether every controller runs (or waits for leadership) */
/* Whether no key is queued, running or failing, and all caches are synced: as far as we can see, the cluster
 * has converged. */
bool kl_manager_idle(kl_manager *m);
/* The checks of probes: alive, which never waits, or ready: every controller, every cache, not stopping, and
 * control loops that answer within 500 ms. */
void kl_manager_checks(kl_manager *m, bool readiness, kl_checks *out);
/* Prometheus text, the caller frees; without a loop's answer, the metrics of its queues are missing. */
char *kl_manager_metrics(kl_manager *m);
struct kl_flight *kl_manager_flight(kl_manager *m); /* NULL: there is none */
kl_time kl_manager_now(const kl_manager *m);        /* the monotonic time of its caches and queues */
/* Calls fn on the loop for each controller that runs: those of the present generation, or a previous one
 * whose successor still waits for another resource. Any thread; waits. */
struct kl_controller;
void kl_manager_each(kl_manager *m, void (*fn)(void *arg, struct kl_controller *c), void *arg);
/* Every cache that has an informer, of all clusters that m represents (cluster NULL: there is one); `kind` as
 * kl_caches_each has it. Any thread; do not call back. */
void kl_manager_informers_of_all(
    kl_manager *m, void (*fn)(void *arg, const char *cluster, const char *kind, kl_informer *i), void *arg);
/* The informer of a kind that some controller uses, or NULL; with several, the one with the default
 * selection; a new reference. */
kl_informer *kl_manager_informer(kl_manager *m, const char *kind);
/* Calls fn for the informer of each kind, in order of names: kl_caches_each. Any thread; fn must not call
 * back. */
void kl_manager_informers(kl_manager *m, void (*fn)(void *arg, const char *kind, kl_informer *i), void *arg);

#endif
