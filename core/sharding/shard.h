/* shard.h - which replica runs which keys: membership by Leases, as a pure state machine.
 *
 *   out --start--> joining --created--> in --deadline passed, lease gone--> lapsed --joined--> joining
 *                                       in --leave (workers have ended)--> leaving --> gone
 *
 * Every replica has its own Lease, which it renews, and in which it *publishes* the ring that assigns its
 * keys. All see all Leases through one watch. A replica runs a key when
 *
 *   - its own lease is good by the local boottime, counted from before the renewing request was sent,
 *   - its publications and its target assign the key to it, and
 *   - in a snapshot of all Leases that is not older than its publication, no other publication owns the key.
 *
 * A replica that loses keys stops taking them at once, and publishes when the last run on them has ended.
 * Each replica publishes first and then reads, so of two replicas that want one key at the same time, at
 * least one sees the other.
 *
 * Other replicas' clocks are never trusted: a Lease that has not changed for its duration, by our clock, is
 * deleted with its resourceVersion as the precondition, so that a concurrent renewal fails, and its owner
 * loses every right. The owner's own deadline passes earlier. A lapsed replica ends all its runs, deletes its
 * Lease, and joins again.
 *
 * No I/O, no thread, no clock. The owner performs the action; a reply to an outdated request is recognised by
 * its number. Owner thread, but for kl_shard_deadline and the claims. */
#ifndef KL_SHARDING_SHARD_H
#define KL_SHARDING_SHARD_H

#include "base/clock.h"
#include "base/err.h"
#include "sharding/claims.h"

/* The annotation that holds the publication, and the label by which all Leases of a group are watched. */
#define KL_SHARD_ANNOTATION "kubelua.dev/shard"
#define KL_SHARD_LABEL "kubelua.dev/shards-of"

typedef struct kl_shard kl_shard;

typedef struct kl_shard_config {
    /* the name of the replicas that share keys: the label's value, and the prefix of the Leases' names */
    const char *group;
    const char *ns, *identity;
    kl_time lease, renew, retry; /* 0: 15 s, 10 s, 2 s; rules of kl_leader_check */
    size_t max;                  /* the number of members that take keys, the oldest first; 0: all */
    uint64_t seed;               /* random; seeds the incarnation's name */
} kl_shard_config;

typedef struct kl_shard_now {
    kl_time boot, wall;
} kl_shard_now;

typedef enum kl_shard_input_kind {
    KL_SHARD_START, /* at first, or again after KL_SHARD_GONE */
    KL_SHARD_TIMER, /* the action's `until` has come (early is fine) */
    KL_SHARD_REPLY, /* of a request: serial, status, lease */
    /* a snapshot of all Leases of the group; snapshots come in the server's order */
    KL_SHARD_PICTURE,
    /* no run is under way on a key outside the target with this serial */
    KL_SHARD_DRAINED,
    KL_SHARD_JOINED, /* after KL_SHARD_STOPPED: no run is left */
    /* lease: {"name": "key" or "namespace"} of the controllers that are sharded now */
    KL_SHARD_CONTROLLERS,
    KL_SHARD_LEAVE, /* leave for good; no run is left */
} kl_shard_input_kind;

typedef struct kl_shard_input {
    kl_shard_input_kind kind;
    uint64_t serial;
    kl_status status;
    const kl_value *lease;         /* borrowed */
    const kl_value *const *leases; /* PICTURE; borrowed */
    size_t n;
} kl_shard_input;

typedef enum kl_shard_do {
    KL_SHARD_NOTHING,
    KL_SHARD_CREATE,
    KL_SHARD_UPDATE,
    KL_SHARD_GET,
    KL_SHARD_DELETE
} kl_shard_do;

typedef struct kl_shard_request {
    kl_shard_do what;
    uint64_t serial; /* for the reply */
    /* of the Lease; conditions of a delete, rv may be NULL. Borrowed until the next step */
    const char *name, *uid, *rv;
    const kl_value *body; /* create, update; likewise */
} kl_shard_request;

#define KL_SHARD_STARTED 1u /* we are a member: workers may start */
#define KL_SHARD_STOPPED 2u /* this replica is not a member any more: runs must end, then JOINED */
#define KL_SHARD_CHANGED                                                                                     \
    4u /* new claims: kl_shard_claims; when they are in force and no unwanted key runs: DRAINED */
#define KL_SHARD_GONE 8u     /* after LEAVE: the lease was released, or could not be */
#define KL_SHARD_MEMBERS 16u /* the set of replicas has changed */

typedef struct kl_shard_action {
    kl_shard_request own, fence; /* at most one request of each kind is under way */
    kl_time until;               /* boottime to send TIMER at; KL_NEVER: none */
    unsigned events;
} kl_shard_action;

/* Heap object, the caller owns; the strings are copied. KL_EINVAL for inconsistent times. */
KL_NODISCARD kl_status kl_shard_new(const kl_shard_config *c, kl_shard **out, kl_err *err);
void kl_shard_free(kl_shard *s);
kl_shard_action kl_shard_step(kl_shard *s, const kl_shard_input *in, kl_shard_now now);

/* boottime until which we may write; 0 while we may not. Any thread */
kl_time kl_shard_deadline(const kl_shard *s);
kl_claims *kl_shard_claims(kl_shard *s);     /* as of now, a new reference */
uint64_t kl_shard_target(const kl_shard *s); /* the target's number, for DRAINED */
/* counts our memberships; a run that began in one must not write in another */
uint64_t kl_shard_epoch(const kl_shard *s);
const char *kl_shard_name(const kl_shard *s); /* of our Lease */
size_t kl_shard_members(const kl_shard *s);   /* members that take keys, by the target */
size_t kl_shard_known(const kl_shard *s);     /* existing Leases, ours included */
/* Whether all replicas have published our target, so that no key is about to move. */
bool kl_shard_settled(const kl_shard *s);

#endif
