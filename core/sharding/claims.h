/* claims.h - which keys this replica may run, as one immutable value: its publications, its target, and the
 * publications of the others. The state machine (shard.h) makes claims; gates and caches read them. Counted;
 * any thread.
 *
 * A *publication* is a replica's statement in its Lease: a ring of members and its sharded controllers; its
 * keys are those that this ring assigns to it. */
#ifndef KL_SHARDING_CLAIMS_H
#define KL_SHARDING_CLAIMS_H

#include "value/value.h"
#include "sharding/ring.h"

/* How a controller's keys are divided: a script's `shard`. */
typedef enum kl_shard_by { KL_SHARD_DEFAULT, KL_SHARD_KEY, KL_SHARD_NAMESPACE, KL_SHARD_NEVER } kl_shard_by;

typedef struct kl_claims kl_claims;

typedef struct kl_publication {
    kl_ring *ring;               /* NULL: it cannot be read (another version), so it may own any key */
    size_t me;                   /* its author on that ring; KL_RING_NOBODY: it owns no key */
    const kl_value *controllers; /* {"name": "key" or "namespace"}: the part of a key that is hashed */
} kl_publication;

/* Takes references to the contents of the publications. A key is ours if all of `own`, of which the last is
 * the target, assign it to us, and none of `others` owns it. Without `own` no key is ours. */
kl_claims *kl_claims_new(
    const kl_publication *own, size_t n_own, const kl_publication *others, size_t n_others);
kl_claims *kl_claims_ref(kl_claims *c);
void kl_claims_unref(kl_claims *c); /* NULL is fine */
/* Whether we may run this key now. False for a NULL c. */
bool kl_claims_own(const kl_claims *c, const char *controller, const char *key);
/* Whether the key will be ours once all replicas agree. Runs of other keys finish and do not start again. */
bool kl_claims_want(const kl_claims *c, const char *controller, const char *key);
/* The same for a namespace that is assigned as a whole, whatever the controller's present setting; *known
 * false: we are not one of the replicas now, and the result is void. */
bool kl_claims_want_namespace(const kl_claims *c, const char *ns, bool *known);
/* Our share of all keys once all replicas agree, 0..1. */
double kl_claims_share(const kl_claims *c, const char *controller);
/* The attribute that divides a controller: "key", "namespace", or NULL when it is not sharded. */
const char *kl_claims_mode(const kl_claims *c, const char *controller);

/* Whether a publication's author owns the key. An unreadable publication counts as owning every key. */
bool kl_publication_has(const kl_publication *p, const char *controller, const char *key);

#endif
