/* simulate.h - the API server's result of a write, as far as it can be computed without the server. Pure; any
 * thread.
 *
 * It knows the present object, the request, and how every API server handles names, versions, finalizers,
 * subresources and patches. Patches and applies are those of the embedded server, by the schemas of built-in
 * kinds (schema/known.h). It does not know defaults, validation, pruning, schemas of custom kinds, admission,
 * quotas and reactions of other controllers; only the server does (kl_op.dry_run). */
#ifndef KL_RUN_SIMULATE_H
#define KL_RUN_SIMULATE_H

#include "client/client.h"

typedef struct kl_simulation { /* borrowed */
    const kl_op *op;           /* a write of one object */
    /* of its kind; NULL: unknown, and assumed to have every requested subresource */
    const kl_resource *resource;
    const char *ns;       /* NULL: cluster scope */
    const kl_value *base; /* the present object; NULL: there is none */
    kl_time wall;
    /* the seed of generated names, uids and versions: different each time */
    uint64_t number;
} kl_simulation;

typedef struct kl_simulated {
    const kl_value *object; /* the resulting object; NULL: it was deleted */
    const kl_value *answer; /* the answer to the caller: the object, a Scale, a Status */
    int code;               /* HTTP */
    bool changed;           /* false: the object is unchanged, with the same resourceVersion */
} kl_simulated;

/* Fails as the server would: KL_ENOTFOUND, KL_EEXISTS, KL_ECONFLICT, KL_EREJECTED, with reason and code in
 * *err; KL_EINVAL for results that cannot be computed here (a token, deletecollection); the message tells how
 * to ask the server. */
KL_NODISCARD kl_status kl_simulate(const kl_simulation *s, kl_simulated *out, kl_err *err);
void kl_simulated_fini(kl_simulated *s);

/* The name of op's object: its own, or its body's; NULL when the server generates it (generateName).
 * Borrowed. */
const char *kl_op_name(const kl_op *op);

#endif
