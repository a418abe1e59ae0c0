/* election.h - campaigns for a Lease: feeds the state machine (leader.h) with answers, timers and changes, on
 * the manager's loop.
 *
 *   start -> (started -> ... -> stopped -> joined)* -> cancel -> ended -> start or free */
#ifndef KL_ELECTION_ELECTION_H
#define KL_ELECTION_ELECTION_H

#include "base/tenure.h"
#include "base/loop.h"
#include "client/client.h"
#include "metrics/metrics.h"

typedef struct kl_election kl_election;

typedef struct kl_election_options {
    bool enabled;
    const char *name, *ns, *identity; /* lease; identity NULL: host_pid_random */
    kl_time lease, renew, retry;      /* 0: 15 s, 10 s, 2 s */
    /* replicas share keys; a controller whose script opts out has one leader */
    bool shards;
    size_t max_shards; /* how many replicas share keys; 0: all */
    /* each controller has its own lease (name-controller), unless its script says otherwise */
    bool per_controller;
} kl_election_options;

typedef struct kl_election_env {
    kl_loop *loop;
    kl_client *client; /* NULL: nothing is watched, and `send` must be set */
    /* Sends a request: NULL for the client, a script in specs. */
    uint64_t (*send)(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg);
    void (*cancel)(void *arg, uint64_t id);
    void *send_arg;
    kl_clock *clock;
    kl_metrics *metrics;
    kl_election_options options; /* strings are copied */
    void (*started)(void *arg);  /* we lead; on the loop */
    /* we do not lead any more (the tenure has ended): workers must end, then kl_election_joined; on the
     * loop */
    void (*stopped)(void *arg);
    /* after cancel: the lease is released, if possible; on the loop */
    void (*ended)(void *arg);
    void *arg;
} kl_election_env;

/* Validates lease duration, renew deadline, retry period and name. Any thread. */
KL_NODISCARD kl_status kl_election_check(const kl_election_options *o, kl_err *err);
/* a new identity for this process: host_pid_random; the caller frees it */
char *kl_election_identity(void);
KL_NODISCARD kl_status kl_election_new(const kl_election_env *env, kl_election **out, kl_err *err);

/* On the loop: */
void kl_election_start(kl_election *e); /* campaigns; again after `ended` */
/* after `stopped`: all workers have ended; it campaigns again */
void kl_election_joined(kl_election *e);
/* when no controller works under it: releases the lease (if it is ours) and stops campaigning */
void kl_election_cancel(kl_election *e);
bool kl_election_leading(kl_election *e);
/* the Lease was observed in this state; NULL: it was deleted */
void kl_election_changed(kl_election *e, const kl_value *lease);

/* The time until which the lease is ours, and the number of our term. Lives as long as e; any thread. */
const kl_tenure *kl_election_tenure(kl_election *e);
/* False when we still act under a lease that expired more than `tolerance` ago. Any thread, never waits. */
bool kl_election_healthy(kl_election *e, kl_time tolerance);
const char *kl_election_name(const kl_election *e); /* "namespace/name" of the Lease */
/* the holder of the lease, as far as we know; "" or NULL: none. On the loop */
const char *kl_election_holder(const kl_election *e);
/* After cancel, not on the loop: waits until it has ended, within the renew deadline. False: the lease was
 * not released. */
bool kl_election_wait(kl_election *e);
/* only when never started, or after `ended`; not on the loop; waits for running requests */
void kl_election_free(kl_election *e);

#endif
