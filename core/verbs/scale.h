/* scale.h - the scale subresource: an autoscaling/v1 Scale over the replicas of any kind that has them.
 * Under the lock. */
#ifndef KL_VERBS_SCALE_H
#define KL_VERBS_SCALE_H

#include "verbs/call.h"

/* The call names the object, with "scale" as its subresource. *out is a new reference to the Scale as it is
 * now. A write is a write of the object: its rules apply, the Scale's resourceVersion is the object's (409
 * when it differs), and webhooks get the Scale only. 404 without the object; 400 when the body is no Scale;
 * 422 for replicas below 0; 500 when a custom kind's object has no field at its specReplicasPath.
 */
KL_NODISCARD kl_status kl__scale_get(const kl__call *c, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__scale_update(
    const kl__call *c, const kl_value *scale, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__scale_patch(
    const kl__call *c, kl__patch type, const kl_value *patch, const kl_value **out, kl_err *err);

#endif
