/* sharding.h - makes a replica a member of those that share keys: feeds the state machine (shard.h) with
 * snapshots, answers and timers on the manager's loop, and passes its claims to the gates of the controllers.
 *
 *   start --> member --lapsed: `stopped`--> joined (no run is left) --> member again          cancel --> left: `ended`
 *
 * Functions are called on the loop unless stated otherwise. */
#ifndef KL_SHARDING_SHARDING_H
#define KL_SHARDING_SHARDING_H

#include "base/tenure.h"
#include "client/client.h"
#include "sharding/gate.h"
#include "base/loop.h"

typedef struct kl_sharding kl_sharding;

typedef struct kl_sharding_env {
    kl_loop *loop;
    kl_client *client;
    kl_clock *clock;
    const char *group, *ns, *identity; /* copied */
    kl_time lease, renew, retry;       /* 0: 15 s, 10 s, 2 s */
    size_t max;                        /* the number of replicas that take keys; 0: all */
    void (*started)(void *arg);        /* we are a member: workers may begin */
    /* this replica is not a member any more: workers end, then kl_sharding_joined */
    void (*stopped)(void *arg);
    void (*ended)(void *arg); /* after cancel */
    void *arg;
} kl_sharding_env;

/* Any thread. KL_EINVAL for inconsistent times. */
KL_NODISCARD kl_status kl_sharding_new(const kl_sharding_env *env, kl_sharding **out, kl_err *err);
void kl_sharding_start(kl_sharding *s);
void kl_sharding_joined(kl_sharding *s);
/* Ends the membership; no controller may work any more. */
void kl_sharding_cancel(kl_sharding *s);
/* after cancel: waits until it has ended; false after a timeout. Not on the loop */
bool kl_sharding_wait(kl_sharding *s);
void kl_sharding_free(kl_sharding *s); /* not on the loop; gates and tenure end with it */

const char *kl_sharding_name(const kl_sharding *s);  /* of our Lease */
const kl_tenure *kl_sharding_tenure(kl_sharding *s); /* its epoch is the number of our membership */

/* The gate of a controller, which is divided by `by` from now on. A controller that returns gets the same
 * gate. moved (may be NULL): called on the loop when the claims have changed from `before` to those of the
 * gate; if they are equal, the last unwanted run has ended. */
kl_gate *kl_sharding_enter(kl_sharding *s, const char *controller, kl_shard_by by,
    void (*moved)(void *arg, kl_claims *before), void *arg);
void kl_sharding_leave(kl_sharding *s, kl_gate *g); /* after its last run */

typedef struct kl_sharding_state {
    size_t members, known; /* replicas that take keys; all replicas */
    bool member, settled;
    double share; /* our share of all keys of the requested controller */
} kl_sharding_state;
/* Gauges; on the loop. */
void kl_sharding_metrics(kl_sharding *s, kl_buf *out);
/* Any thread, never waits: false when our deadline passed more than `tolerance` ago and the loop has not
 * noticed. */
bool kl_sharding_healthy(kl_sharding *s, kl_time tolerance);
/* any thread */
void kl_sharding_state_get(kl_sharding *s, const char *controller, kl_sharding_state *out);

#endif
