/* claims.h - which keys this replica may run, as one immutable value: what it has published of itself,
 * what it wants, and what the others have published. The brain (shard.h) makes them, gates and caches ask
 * them. Counted; any thread.
 *
 * A *publication* is what one replica says of itself in its Lease: a ring of members and its sharded
 * controllers; its keys are those that this ring gives it. */
#ifndef KL_SHARDING_CLAIMS_H
#define KL_SHARDING_CLAIMS_H

#include "value/value.h"
#include "sharding/ring.h"

/* How a controller's keys are divided: a script's `shard`. */
typedef enum kl_shard_by { KL_SHARD_DEFAULT, KL_SHARD_KEY, KL_SHARD_NAMESPACE, KL_SHARD_NEVER } kl_shard_by;

typedef struct kl_claims kl_claims;

typedef struct kl_publication {
    kl_ring *ring;               /* NULL: it cannot be read (another version), and may mean any key */
    size_t me;                   /* its author on that ring; KL_RING_NOBODY: no key is its own */
    const kl_value *controllers; /* {"name": "key" or "namespace"}: what of a key is looked up */
} kl_publication;

/* Takes references of what the publications hold. own: all of them must give us a key; the last one is
 * what we want (the target). No `own`: nothing is ours. others: none of them may have it. */
kl_claims *kl_claims_new(
    const kl_publication *own, size_t n_own, const kl_publication *others, size_t n_others);
kl_claims *kl_claims_ref(kl_claims *c);
void kl_claims_unref(kl_claims *c); /* NULL is fine */
/* May we run this key now? False for a NULL c. */
bool kl_claims_own(const kl_claims *c, const char *controller, const char *key);
/* Will it be ours when everybody has agreed? What is not is to be finished and left. */
bool kl_claims_want(const kl_claims *c, const char *controller, const char *key);
/* The same of a namespace that is divided as a whole, whatever a controller says of itself now; *known
 * false: we are none of the replicas at present, and nothing is said. */
bool kl_claims_want_namespace(const kl_claims *c, const char *ns, bool *known);
/* The part of all keys that is ours then. */
double kl_claims_share(const kl_claims *c, const char *controller);
/* By what a controller is cut: "key", "namespace", or NULL when it has no part in this. */
const char *kl_claims_mode(const kl_claims *c, const char *controller);

/* Of a publication's author: is the key its own? An unreadable one has them all. */
bool kl_publication_has(const kl_publication *p, const char *controller, const char *key);

#endif
