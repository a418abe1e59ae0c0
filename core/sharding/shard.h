/* shard.h - which replica runs which keys: membership by Leases, as a pure state machine.
 *
 *   out --start--> joining --created--> in --deadline passed, lease gone--> lapsed --joined--> joining
 *                                       in --leave (workers have ended)--> leaving --> gone
 *
 * Every replica has a Lease of its own, which it renews, and in which it *publishes* the ring by which it
 * takes keys. All see all Leases through one watch. A replica runs a key when
 *   - its own lease is good by the local boottime, counted from before the renewing request was sent,
 *   - its publications and what it now wants give it the key, and
 *   - in a picture of all Leases that is no older than its publication, nobody else's publication has the
 *     key.
 * Who loses keys takes no more of them at once, and publishes when the last run on them has ended.
 * Publish, then look: of two who want one key at the same time, at least one sees the other.
 *
 * Others are never believed about time: a Lease that has not changed for its duration, by our clock, is
 * deleted with its resourceVersion as the condition, so that a renewal under way fails, and with it every
 * right of its owner. An owner's deadline lies before that. Who lapsed lets all its runs end, deletes what
 * is left of its Lease, and joins as new.
 *
 * No I/O, no thread, no clock. The owner does what the action says; a reply to a request that is not asked
 * for any more is known by its number. Owner thread, but for kl_shard_deadline and the claims. */
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
    /* of replicas that share keys: the label's value and the begin of the Leases' names */
    const char *group;
    const char *ns, *identity;
    kl_time lease, renew, retry; /* 0: 15 s, 10 s, 2 s; rules of kl_leader_check */
    size_t max;                  /* so many members take keys, the longest there first; 0: all */
    uint64_t seed;               /* of the incarnation's name: random */
} kl_shard_config;

typedef struct kl_shard_now {
    kl_time boot, wall;
} kl_shard_now;

typedef enum kl_shard_input_kind {
    KL_SHARD_START, /* at first, or again after KL_SHARD_GONE */
    KL_SHARD_TIMER, /* the action's `until` has come (early is fine) */
    KL_SHARD_REPLY, /* of a request: serial, status, lease */
    /* all Leases of the group as of one moment; moments come in the server's order */
    KL_SHARD_PICTURE,
    /* no run is under way on a key that claims with this target (serial) do not want */
    KL_SHARD_DRAINED,
    KL_SHARD_JOINED, /* after KL_SHARD_STOPPED: no run is left */
    /* lease: {"name": "key" or "namespace"} of the controllers that are sharded now */
    KL_SHARD_CONTROLLERS,
    KL_SHARD_LEAVE, /* for good; no run is left */
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
#define KL_SHARD_STOPPED 2u /* not any more: runs must end, then JOINED */
#define KL_SHARD_CHANGED                                                                                     \
    4u /* other claims: kl_shard_claims; when they are in force and nothing unwanted runs: DRAINED */
#define KL_SHARD_GONE 8u     /* after LEAVE: the lease is given back, or could not be */
#define KL_SHARD_MEMBERS 16u /* others are there than before */

typedef struct kl_shard_action {
    kl_shard_request own, fence; /* each at most one at a time */
    kl_time until;               /* boottime to send TIMER at; KL_NEVER: none */
    unsigned events;
} kl_shard_action;

/* Heap object, the caller owns; the strings are copied. KL_EINVAL for times that make no sense. */
KL_NODISCARD kl_status kl_shard_new(const kl_shard_config *c, kl_shard **out, kl_err *err);
void kl_shard_free(kl_shard *s);
kl_shard_action kl_shard_step(kl_shard *s, const kl_shard_input *in, kl_shard_now now);

/* boottime until which we may write; 0 while we may not. Any thread */
kl_time kl_shard_deadline(const kl_shard *s);
kl_claims *kl_shard_claims(kl_shard *s);     /* as of now, a new reference */
uint64_t kl_shard_target(const kl_shard *s); /* its number, for DRAINED */
/* counts our memberships: what began in one may not write in another */
uint64_t kl_shard_epoch(const kl_shard *s);
const char *kl_shard_name(const kl_shard *s); /* of our Lease */
size_t kl_shard_members(const kl_shard *s);   /* that take keys, as wanted now */
size_t kl_shard_known(const kl_shard *s);     /* Leases there, ours included */
/* Everybody has published what we want: nothing is about to move. */
bool kl_shard_settled(const kl_shard *s);

#endif
