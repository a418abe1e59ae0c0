/* collect.h - the garbage collector, as kube-controller-manager's in a cluster. It decides; its caller writes
 * objects. Under the server's lock. */
#ifndef KL_OWNERS_COLLECT_H
#define KL_OWNERS_COLLECT_H

#include "owners/owners.h"
#include "schema/kinds.h"

typedef struct kl__collector {
    kl__kinds *kinds;
    kl__owners *owners;
    /* `patch` applies a merge patch of metadata to an object; `remove` deletes it with a propagation policy.
     * Both update `owners`. */
    void (*patch)(void *arg, kl__kind *k, const kl_value *object, const kl_value *patch);
    void (*remove)(void *arg, kl__kind *k, const kl_value *object, const char *policy);
    void *arg;
} kl__collector;

/* Handles changed objects, and those that change as a result, until none is left. */
void kl__collector_run(const kl__collector *c);

#endif
