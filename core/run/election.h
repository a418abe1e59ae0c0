/* election.h - campaigns for a Lease: feeds the pure election (leader.h) with answers and timers, on the manager's loop. */
#ifndef KL_RUN_ELECTION_H
#define KL_RUN_ELECTION_H

#include "run/loop.h"
#include "run/manager.h"
#include "run/metrics.h"

typedef struct kl_election kl_election;

typedef struct kl_election_env {
    kl_loop *loop;
    kl_client *client;
    /* What sends a request: NULL for the client, a script in specs. */
    uint64_t (*send)(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg);
    void (*cancel)(void *arg, uint64_t id);
    void *send_arg;
    kl_clock *clock;
    kl_metrics *metrics;
    kl_election_options options;       /* strings are copied */
    void (*started)(void *arg);        /* we lead; on the loop */
    void (*stopped)(void *arg);        /* we do not lead any more; on the loop; workers must end before it returns */
    void *arg;
} kl_election_env;

KL_NODISCARD kl_status kl_election_new(const kl_election_env *env, kl_election **out, kl_err *err);
void kl_election_start(kl_election *e);                /* on the loop */
/* Until when the lease is ours, in which of our terms. Lives as long as e; any thread. */
const kl_tenure *kl_election_tenure(kl_election *e);
bool kl_election_leading(kl_election *e);              /* on the loop */
/* Gives the lease back (when it is ours) and stops campaigning; waits for the answer within the renew deadline. Not on the loop. */
void kl_election_release(kl_election *e);
void kl_election_free(kl_election *e);                 /* after release, on no thread of ours */

#endif
