/* sharding.h - a replica among others that share keys: feeds the brain (shard.h) with pictures, answers
 * and timers on the manager's loop, and lets what it says through to the gates of the controllers.
 *
 *   start --> member --lapsed: `stopped`--> joined (no run is left) --> member again          cancel --> left: `ended`
 *
 * Functions are called on the loop unless said otherwise. */
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
    size_t max;                        /* so many replicas take keys; 0: all */
    void (*started)(void *arg);        /* we are a member: workers may begin */
    void (*stopped)(void *arg);        /* not any more: workers end, then kl_sharding_joined */
    void (*ended)(void *arg);          /* after cancel */
    void *arg;
} kl_sharding_env;

/* Any thread. KL_EINVAL for times that make no sense. */
KL_NODISCARD kl_status kl_sharding_new(const kl_sharding_env *env, kl_sharding **out, kl_err *err);
void kl_sharding_start(kl_sharding *s);
void kl_sharding_joined(kl_sharding *s);
/* Gives our place back: nobody works any more. */
void kl_sharding_cancel(kl_sharding *s);
/* after cancel: until it has ended; false when that took too long. Not on the loop */
bool kl_sharding_wait(kl_sharding *s);
void kl_sharding_free(kl_sharding *s); /* not on the loop; gates and tenure end with it */

const char *kl_sharding_name(const kl_sharding *s);  /* of our Lease */
const kl_tenure *kl_sharding_tenure(kl_sharding *s); /* its epoch counts our memberships */

/* The gate of a controller: it takes part from now on, cut `by`. The same one when it comes back. moved
 * (may be NULL): on the loop, the claims were `before` and are those of the gate now; when they are the
 * same, the last run that they do not want has ended. */
kl_gate *kl_sharding_enter(kl_sharding *s, const char *controller, kl_shard_by by,
    void (*moved)(void *arg, kl_claims *before), void *arg);
void kl_sharding_leave(kl_sharding *s, kl_gate *g); /* it has no run under way */

typedef struct kl_sharding_state {
    size_t members, known; /* replicas that take keys; that are there */
    bool member, settled;
    double share; /* of all keys, of the controller that was asked for */
} kl_sharding_state;
/* Gauges; on the loop. */
void kl_sharding_metrics(kl_sharding *s, kl_buf *out);
/* Any thread, waits for nobody: false when our time ran out more than `tolerance` ago and the loop has not
 * seen it. */
bool kl_sharding_healthy(kl_sharding *s, kl_time tolerance);
/* any thread */
void kl_sharding_state_get(kl_sharding *s, const char *controller, kl_sharding_state *out);

#endif
