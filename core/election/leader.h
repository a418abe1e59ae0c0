/* leader.h - leader election on a Lease, as a pure state machine with client-go's timing rules.
 *
 *   idle --start--> acquiring --won--> leading --lost--> stepping down --joined--> (release) --> done --start--> acquiring
 *   leading --cancel--> (release) --> done          acquiring --cancel--> done
 *
 * Only the local boottime decides. A foreign lease is valid from the moment when we saw it change, for the
 * duration that its holder published; its renewTime is never trusted. We lead until a local deadline that
 * counts from the moment before the renewing request was sent (kl_leader_deadline, for the write door). So
 * leading ends before another process may acquire, even when the renewing thread hangs.
 *
 * No I/O, no thread, no clock. The owner performs the action: one request at a time, answered by REPLY; every
 * new action replaces the open one. Owner thread, but for kl_leader_deadline. */
#ifndef KL_ELECTION_LEADER_H
#define KL_ELECTION_LEADER_H

#include <stdbool.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/tenure.h"
#include "value/value.h"

typedef struct kl_leader kl_leader;

typedef struct kl_leader_config {
    const char *identity;        /* our identity, unique per process */
    const char *ns, *name;       /* of the Lease; used when it must be created */
    kl_time lease, renew, retry; /* 0: 15 s, 10 s, 2 s */
    bool release;                /* release the lease at the end (CANCEL, or JOINED after a loss) */
    uint64_t seed;               /* of the jitter between attempts to acquire */
} kl_leader_config;

#define KL_LEADER_LEASE KL_SECONDS(15)
#define KL_LEADER_RENEW KL_SECONDS(10)
#define KL_LEADER_RETRY KL_SECONDS(2)

typedef struct kl_leader_now {
    kl_time boot, wall;
} kl_leader_now;

typedef enum kl_leader_input_kind {
    KL_LEADER_START,   /* campaign; again after DONE */
    KL_LEADER_TIMER,   /* the action's `until` has come (early is fine) */
    KL_LEADER_REPLY,   /* of the request: status, and the Lease when there is one */
    KL_LEADER_CHANGED, /* the Lease was observed: its new state, or NULL: deleted, try now */
    KL_LEADER_CANCEL,  /* stop campaigning; our workers have joined, so the lease may be released */
    KL_LEADER_JOINED,  /* after STOPPED by loss: our workers have joined */
    KL_LEADER_TRY,     /* idle only: one attempt to acquire or renew, then DONE with `ok` */
    KL_LEADER_RELEASE, /* idle only: one release, then DONE with `ok` */
} kl_leader_input_kind;

typedef struct kl_leader_input {
    kl_leader_input_kind kind;
    kl_status status;
    const kl_value *lease; /* borrowed */
} kl_leader_input;

typedef enum kl_leader_do {
    KL_LEADER_GO_ON, /* the open request or timer stays; after TIMER, set the timer again for `until` */
    KL_LEADER_GET,
    KL_LEADER_CREATE, /* body */
    KL_LEADER_UPDATE, /* body: the whole Lease with its resourceVersion */
    KL_LEADER_WAIT,
    KL_LEADER_DONE,
} kl_leader_do;

#define KL_LEADER_STARTED 1u /* we lead: workers may start */
#define KL_LEADER_STOPPED 2u /* we do not lead: workers must stop; sent even if we never led */
#define KL_LEADER_NEW 4u     /* the known holder changed: kl_leader_holder */

typedef struct kl_leader_action {
    kl_leader_do what;
    const kl_value *body; /* borrowed until the next step */
    /* boottime at which to send TIMER; a running request is given up then. KL_NEVER: none */
    kl_time until;
    unsigned events;
    bool ok; /* DONE after TRY or RELEASE */
} kl_leader_action;

/* client-go's rules: lease > renew > 1.2 * retry, all positive, an identity. */
KL_NODISCARD kl_status kl_leader_check(const kl_leader_config *c, kl_err *err);
KL_NODISCARD kl_status kl_leader_new(const kl_leader_config *c, kl_leader **out, kl_err *err);
void kl_leader_free(kl_leader *l);
kl_leader_action kl_leader_step(kl_leader *l, const kl_leader_input *in, kl_leader_now now);

/* Boottime until which we may write; 0 while we do not lead. Any thread. */
kl_time kl_leader_deadline(const kl_leader *l);
/* For the write door: that deadline, our terms, and the leaseTransitions of the present term. Lives as long
 * as l; any thread. */
const kl_tenure *kl_leader_tenure(const kl_leader *l);
/* the last holder seen, "" for none; borrowed until the next step */
const char *kl_leader_holder(const kl_leader *l);
bool kl_leader_leading(const kl_leader *l); /* between STARTED and STOPPED */
bool kl_leader_acquiring(const kl_leader *l);
/* Acquiring: boottime when the Lease of another holder expires, as far as we know; KL_NEVER otherwise. */
kl_time kl_leader_expiry(const kl_leader *l);
/* From STARTED until our workers have joined after a loss: boottime when the lease that we acted under
 * expires; KL_NEVER otherwise. */
kl_time kl_leader_lapse(const kl_leader *l);
/* The Lease as last seen, or NULL; borrowed until the next step. */
const kl_value *kl_leader_object(const kl_leader *l);
/* False when we hold the lease, as far as we know, and have not renewed it for its duration and
 * `tolerance`. */
bool kl_leader_healthy(const kl_leader *l, kl_time boot, kl_time tolerance);

#endif
