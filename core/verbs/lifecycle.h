/* lifecycle.h - the effects of a write: namespaces are emptied, CRDs are established and removed. Under the
 * lock. */
#ifndef KL_VERBS_LIFECYCLE_H
#define KL_VERBS_LIFECYCLE_H

#include "verbs/call.h"
#include "schema/status.h"

/* After `object` was stored / removed (its last state). */
void kl__after_put(kl__world *w, kl__kind *k, const kl_value *object);
void kl__after_remove(kl__world *w, kl__kind *k, const kl_value *object);
/* 404 or 403 if the namespace takes no new objects. */
KL_NODISCARD kl_status kl__namespace_open(
    kl__world *w, const kl__kind *k, const char *ns, const char *name, kl_err *err);

/* crd.c: a CustomResourceDefinition gets its defaults when it is decoded, and its status when it is about to
 * be stored. */
void kl__crd_fill(const kl_value **crd);
void kl__crd_prepare(const kl__call *c, const kl_value *old, const kl_value **crd);
void kl__crd_validate(const kl__call *c, const kl_value *old, const kl_value *crd, kl__causes *causes);
void kl__crd_serve(kl__world *w, const kl_value *crd); /* updates the served kinds from the CRD */
/* Updates the conditions of a group's definitions, after names may have become free or taken. */
void kl__crd_reconsider(kl__world *w, const char *group);
void kl__crd_unserve(kl__world *w, const kl_value *crd);
/* Removes a terminating CRD when its objects are gone. */
void kl__crd_settle(kl__world *w, const char *group, const char *plural);

#endif
