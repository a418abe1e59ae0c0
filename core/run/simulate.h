/* simulate.h - what the API server would do with a write, as far as that can be known without asking it.
 * Pure; any thread.
 *
 * Known are the object as it is, the request, and how every API server handles names, versions,
 * finalizers, subresources and patches. Patches and applies are those of the embedded server, by the schemas
 * of built-in kinds (schema/known.h). Not known are defaults, validation and pruning, the schemas of custom
 * kinds, admission, quotas and what other controllers do with the result; the server says that
 * (kl_op.dry_run). */
#ifndef KL_RUN_SIMULATE_H
#define KL_RUN_SIMULATE_H

#include "client/client.h"

typedef struct kl_simulation { /* borrowed */
    const kl_op *op;           /* a write of one object */
    /* of its kind; NULL: not known, and taken for one with every subresource that is asked for */
    const kl_resource *resource;
    const char *ns;       /* NULL: cluster scope */
    const kl_value *base; /* the object as it is; NULL: there is none */
    kl_time wall;
    /* from which names, uids and versions are made up: other than the last */
    uint64_t number;
} kl_simulation;

typedef struct kl_simulated {
    const kl_value *object; /* afterwards; NULL: it is gone */
    const kl_value *answer; /* what the caller is told: the object, a Scale, a Status */
    int code;               /* HTTP */
    bool changed;           /* false: the object is as it was, with the same resourceVersion */
} kl_simulated;

/* Fails as the server would: KL_ENOTFOUND, KL_EEXISTS, KL_ECONFLICT, KL_EREJECTED, with reason and code in
 * *err; KL_EINVAL for what cannot be known here (a token, deletecollection), whose message says how to ask
 * the server. */
KL_NODISCARD kl_status kl_simulate(const kl_simulation *s, kl_simulated *out, kl_err *err);
void kl_simulated_fini(kl_simulated *s);

/* The name of the object that op is about: its own, or its body's; NULL when the server has to find one
 * (generateName). Borrowed. */
const char *kl_op_name(const kl_op *op);

#endif
