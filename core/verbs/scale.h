/* scale.h - the scale subresource: an autoscaling/v1 Scale of any kind that has replicas. Under the lock. */
#ifndef KL_VERBS_SCALE_H
#define KL_VERBS_SCALE_H

#include "verbs/call.h"

/* The call names the object, with "scale" as its subresource. *out is a new reference to the resulting Scale.
 * A write of the Scale writes the object: the object's rules apply, the resourceVersion is the object's (409
 * when it differs), and webhooks get only the Scale. An owner of the Scale's replicas owns the object's. 404:
 * no object; 400: the body is not a Scale; 422: replicas below 0; 500: a custom object has no field at its
 * specReplicasPath. */
KL_NODISCARD kl_status kl__scale_get(const kl__call *c, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__scale_update(
    const kl__call *c, const kl_value *scale, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__scale_patch(
    const kl__call *c, kl__patch type, bool force, const kl_value *patch, const kl_value **out, kl_err *err);

/* What reads as a Scale: the kind of its bodies. Its strings are static. */
kl__kind kl__scale_kind(const kl__call *c);

#endif
