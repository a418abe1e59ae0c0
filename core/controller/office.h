/* office.h - which controllers may work: an office is one Lease, the election that campaigns for it, and the
 * controllers that work under it.
 *
 *   closed --won--> open --lost--> closing --all controllers rest--> closed, campaigning again
 *
 * Controllers of the manager's lease share one office, a controller with a lease of its own has one for
 * itself, and those that run in every replica have an office that is always open, or NULL. An office
 * campaigns while a controller is in it. Functions are called on the manager's loop unless stated otherwise.
 *
 * With options.shards most controllers share their keys with other replicas. Their office is open while this
 * replica is a member (sharding.h), and each controller has a gate. */
#ifndef KL_CONTROLLER_OFFICE_H
#define KL_CONTROLLER_OFFICE_H

#include "election/election.h"
#include "sharding/sharding.h"
#include "run/spec.h"

typedef struct kl_offices kl_offices;
typedef struct kl_office kl_office;

typedef struct kl_offices_env {
    kl_election_env election;   /* loop, client, clock, metrics, and options; its callbacks are ours */
    void (*changed)(void *arg); /* called when an office opened or closed; posted to the loop */
    void *arg;
} kl_offices_env;

/* Options that contradict each other are KL_EINVAL. Without election every office is open. Any thread. */
KL_NODISCARD kl_status kl_offices_new(const kl_offices_env *env, kl_offices **out, kl_err *err);
void kl_offices_start(kl_offices *o); /* campaigns for offices with controllers */
/* Releases all leases and stops campaigning; waits at most the renew deadline. No controller may work any
 * more. Not on the loop. */
void kl_offices_close(kl_offices *o);
/* after close, when all controllers have left; not on the loop. Frees the tenures */
void kl_offices_free(kl_offices *o);

/* Puts a controller into its office until kl_office_leave. NULL without offices. */
kl_office *kl_office_enter(kl_offices *o, const char *controller, const kl_controller_spec *spec);
/* whether kl_office_enter would return f for this spec */
bool kl_office_suits(const kl_office *f, const kl_controller_spec *spec);
void kl_office_leave(kl_office *f);      /* the last one releases the lease */
bool kl_office_open(const kl_office *f); /* work may begin */
/* A controller begins work, which needs an open office; a controller has ended its work. In between the lease
 * is neither released nor campaigned for again. */
void kl_office_work(kl_office *f);
void kl_office_rest(kl_office *f);
/* The gate of a controller whose caches are ready; NULL: keys are not shared, so all are ours. Call it again
 * when the spec changes; `have` is the present gate, or NULL. moved: see kl_sharding_enter. */
kl_gate *kl_office_gate(kl_office *f, kl_gate *have, const kl_controller_spec *spec,
    void (*moved)(void *arg, kl_claims *before), void *arg);
/* Whether the controller is divided by namespace, with caches of only its own namespaces. */
bool kl_offices_divide(const kl_offices *o, const kl_controller_spec *spec);
void kl_office_gate_close(kl_office *f, kl_gate *g); /* after the last run that it passed; NULL is fine */
/* For people, about a closed office: "NAMESPACE/NAME is held by X"; NULL when the holder is unknown. Caller
 * frees. On the loop. */
char *kl_office_holder(const kl_office *f);
/* For people: "a third of the keys is here, 3 replicas"; NULL where keys are not shared. Caller frees. */
char *kl_office_say(const kl_office *f, const char *controller);
/* The tenure that its controllers' writes need; NULL: unchecked. Lives as long as the offices. */
const kl_tenure *kl_office_tenure(const kl_office *f);

/* Writes the gauges of shared keys, if keys are shared; on the loop. */
void kl_offices_metrics(kl_offices *o, kl_buf *out);
/* Whether every office with a controller is open. Any thread. */
bool kl_offices_leading(kl_offices *o);
/* Any thread, never waits: false when a lease expired more than `tolerance` ago and its controllers have not
 * ended; *why names it (the caller frees it; may be NULL). */
bool kl_offices_healthy(kl_offices *o, kl_time tolerance, char **why);

#endif
