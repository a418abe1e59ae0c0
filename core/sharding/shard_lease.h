/* shard_lease.h - a member's Lease: reads others' publications, writes ours. Pure; owner thread. */
#ifndef KL_SHARDING_SHARD_LEASE_H
#define KL_SHARDING_SHARD_LEASE_H

#include "base/clock.h"
#include "sharding/claims.h"

typedef struct kl_shard_lease {
    char *name, *uid, *rv, *incarnation, *created; /* incarnation NULL: it was not written by a replica */
    kl_time duration;
    uint64_t seq;
    const kl_value *text; /* the annotation */
    bool readable;        /* otherwise it may own any key */
    const char **members; /* borrowed from the value below */
    size_t n_members;
    const kl_value *said; /* the annotation, decoded */
    kl_publication p;     /* ring NULL until the owner has found or made it */
} kl_shard_lease;

/* Reads a Lease. If the annotation has not changed, it reuses ring and decoding of `before`, an earlier state
 * of the Lease or NULL. */
void kl_shard_lease_read(const kl_value *lease, const kl_shard_lease *before, kl_shard_lease *out);
void kl_shard_lease_fini(kl_shard_lease *l);

typedef struct kl_shard_words {
    const kl_value *base; /* update: the server's Lease; NULL: a new one */
    const char *name, *ns, *group, *identity, *incarnation;
    uint64_t seq;
    const kl_publication *p;
    int64_t seconds;
    kl_time wall;
} kl_shard_words;

const kl_value *kl_shard_lease_body(const kl_shard_words *w); /* a new reference */

/* Names that the API server accepts: "GROUP-shard-IDENTITY", with a hash of the identity if that had to be
 * changed. Caller frees. */
char *kl_shard_lease_name(const char *group, const char *identity);
char *kl_shard_group_label(const char *group);

#endif
