/* manager.h - order of start and stop: informers, controllers, workers, election, metrics, health.
 *
 *   new --add--> ... --start--> running --stop--> stopping --join--> free
 *
 * Start: HTTP endpoints, caches, then per controller: its caches synced -> (leader) -> its workers. A kind
 * that the server lacks, or may not be read, parks only the controllers that need it and heals by itself.
 * Stop: no new keys, running reconciles finish within the grace period, the lease is released after the
 * workers have joined, caches, endpoints. */
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
    /* default per controller; overrides the spec when workers_forced */
    int workers;
    bool workers_forced;
    kl_time grace; /* 0: 30 s */
    /* what runs again on new logic, where the spec says nothing */
    kl_reload_keys reload_keys;
    /* keys that turn in circles (run/fights.h) are neither named nor slowed down */
    bool never_slow_down;
    kl_time rollback_window; /* see kl_probation_options; for `broken` alone */
    /* The generation of a slot is much worse than the one before it (controller/breaker.h): the owner may
     * want to replace it with that. On a thread of the manager's; must not wait, nor call the manager.
     * NULL: generations are not compared. */
    void (*broken)(void *arg, int slot, int generation, const char *controller, const char *why);
    void *broken_arg;
    /* how long runs on old logic may go on, see kl_worker_owner; 0: 30 s, or their `timeout` */
    kl_time reload_deadline;
    size_t max_object; /* 0: 16 MiB */
    /* what the flight recorder keeps of runs; 0: KL_FLIGHT_BYTES, KL_FLIGHT_OFF: nothing */
    size_t flight_bytes;
    bool drop_managed_fields;
    /* Nothing is written, neither by controllers nor for them; what they would write is logged
     * (lab/dryrun.h). There is no election then, nobody is told of webhooks, and the server says what
     * would come of a write, or we do. */
    kl_dry dry_run;
    /* requests of a reconcile carry its trace, in a traceparent header */
    bool trace_requests;
    /* caches begin with a watch's initial events (sendInitialEvents) rather than with lists */
    bool watch_list;
    kl_election_options election;
    const char *metrics_address, *health_address; /* NULL: none */
    kl_webhook_options webhooks;                  /* for scripts that have some */
    const char *metrics_cert_dir;                 /* HTTPS for metrics; NULL: HTTP */
    bool metrics_auth;                            /* the API server says who may read them */
    /* Stopping: runs that were told to end after the grace period have not, and may never (code that does
     * not come back). The log names their controllers. A process that must end now ends itself here. On a
     * thread of the manager's; NULL: kl_manager_stop waits on. */
    void (*stuck)(void *arg);
    /* What kl_manager_controllers tells of states may have changed. On a thread of the manager's; must not
     * wait. May be NULL. */
    void (*changed)(void *arg);
    void *changed_arg;
    /* Each run as it ends, and each call of a controller as it is sent. On workers' threads; must not
     * wait. Each may be NULL. */
    void (*ran)(void *arg, const struct kl_ran *r);
    void (*seen)(void *arg, const char *controller, const kl_op *op);
    void *seen_arg; /* of both */
    /* n_witnesses who look on while keys run (run/witness.h); copied */
    const struct kl_witness *witnesses;
    size_t n_witnesses;
    /* everything that runs depend on goes there; outlives the manager. NULL: nowhere */
    struct kl_record *record;
    bool turns; /* keys wait for their turn, see manager/turns.h */
    /* One of several clusters, by its number; the first one's metrics, states and readiness are those of
     * all. NULL: there is one. */
    kl_fleet *fleet;
    size_t cluster;
    kl_clock *watch_clock; /* of lists and watches; NULL: clock */
} kl_manager_options;

KL_NODISCARD kl_status kl_manager_new(const kl_manager_options *o, kl_manager **out, kl_err *err);
/* Takes a reference. Before or after start. The slot names the source for kl_manager_replace. Controller
 * names are unique. */
KL_NODISCARD kl_status kl_manager_add(kl_manager *m, kl_program *p, int *slot, kl_err *err);
/* The next generation of a slot: starts what is new, switches each worker between keys, keeps queue,
 * caches, backoff and lease. On failure the old one stays. Takes a reference. */
KL_NODISCARD kl_status kl_manager_replace(kl_manager *m, int slot, kl_program *p, kl_err *err);
/* What became of a script that changed: remembered, counted, and told by an Event about `about` (the
 * ConfigMap that it came from, our pod; NULL: no Event). Any thread. */
void kl_manager_reloaded(kl_manager *m, const kl_reload *x, const kl_value *about);
kl_reloads *kl_manager_reloads(kl_manager *m);
struct kl_tally *kl_manager_tally(kl_manager *m);     /* observe/tally.h */
struct kl_metrics *kl_manager_figures(kl_manager *m); /* metrics/metrics.h */
/* what its scripts count: metrics/custom.h */
struct kl_custom_metrics *kl_manager_custom_metrics(kl_manager *m);
/* A candidate in the shadow of the slot that has controllers of its names (lab/shadow.h), in place of the
 * one before; o->script and o->live are found here. KL_EINVAL says which controllers there are when none
 * is of its names. Any thread. */
struct kl_shadow_options;
KL_NODISCARD kl_status kl_manager_shadow(
    kl_manager *m, kl_program *p, const struct kl_shadow_options *o, kl_err *err);
void kl_manager_shadow_end(kl_manager *m);
struct kl_shadow *kl_manager_shadow_of(kl_manager *m); /* for its report; any thread */
/* The candidate becomes the next generation of that slot, and its shadow ends. KL_ENOTFOUND: there is
 * none. Any thread. */
KL_NODISCARD kl_status kl_manager_promote(kl_manager *m, kl_err *err);
/* The newest generation of a slot, whichever way it came; a new reference. Any thread. */
kl_program *kl_manager_program(kl_manager *m, int slot);
KL_NODISCARD kl_status kl_manager_start(kl_manager *m, kl_err *err);
void kl_manager_stop(kl_manager *m); /* graceful; waits; any one thread */
/* A stop, under way or to come, does not wait for the grace period. Any thread, until kl_manager_free. */
void kl_manager_hurry(kl_manager *m);
void kl_manager_free(kl_manager *m); /* after stop */

/* A snapshot; free each with kl_controller_states_free. */
size_t kl_manager_controllers(kl_manager *m, kl_controller_state **out);
void kl_controller_states_free(kl_controller_state *v, size_t n);
/* Those for which m speaks, itself among them, by number; NULL beyond the last. *cluster NULL where there
 * is one. */
kl_manager *kl_manager_at(kl_manager *m, size_t i, const char **cluster);
/* The one of several managers whose controller kl_manager_controllers calls so, and what it calls it
 * itself. */
kl_manager *kl_manager_of(kl_manager *m, const char *name, const char **own);
const char *kl_manager_metrics_address(kl_manager *m); /* as bound, or NULL */
const char *kl_manager_health_address(kl_manager *m);
const char *kl_manager_webhook_address(kl_manager *m); /* as bound, or NULL */
/* every lease that its controllers need is ours; without election: true */
bool kl_manager_leading(kl_manager *m);
/* False when a lease ran out more than `tolerance` ago and what ran under it has not ended; *why says
 * which (the caller frees it; may be NULL). Waits for nobody, also when the control loop hangs. */
bool kl_manager_election_healthy(kl_manager *m, kl_time tolerance, char **why);
bool kl_manager_ready(kl_manager *m); /* every controller runs (or waits for leadership) */
/* Nothing queued, nothing running, nothing failing, all caches synced: the cluster has converged as far as
 * we can see. */
bool kl_manager_idle(kl_manager *m);
/* The checks of probes: alive, which waits for nobody, or ready: every controller, every cache, not
 * stopping, and a control loop that answers within 500 ms. Any thread, also while that loop hangs. */
void kl_manager_checks(kl_manager *m, bool readiness, kl_checks *out);
char *kl_manager_metrics(kl_manager *m);            /* Prometheus text; caller frees */
struct kl_flight *kl_manager_flight(kl_manager *m); /* NULL: there is none */
kl_time kl_manager_now(const kl_manager *m);        /* by the clock that its caches and queues go by */
/* Calls fn on the loop for each controller, the present generation's; where that still waits for another
 * resource, the one before it, which runs on. Any thread; waits. */
struct kl_controller;
void kl_manager_each(kl_manager *m, void (*fn)(void *arg, struct kl_controller *c), void *arg);
/* Every cache that has an informer, of all clusters that m speaks for (cluster NULL: there is one); `kind`
 * as kl_caches_each has it. Any thread; do not call back. */
void kl_manager_informers_of_all(
    kl_manager *m, void (*fn)(void *arg, const char *cluster, const char *kind, kl_informer *i), void *arg);
/* The informer of a kind that some controller uses, the one that keeps what is usual when there are
 * several, or NULL; a new reference. */
kl_informer *kl_manager_informer(kl_manager *m, const char *kind);
/* Calls fn for the informer of each kind, in order of names: kl_caches_each. Any thread; fn must not call
 * back. */
void kl_manager_informers(kl_manager *m, void (*fn)(void *arg, const char *kind, kl_informer *i), void *arg);

#endif
