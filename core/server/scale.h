/* scale.h - the scale subresource: an autoscaling/v1 Scale over the replicas of any kind that has them.
 * Under the lock. */
#ifndef KL_SERVER_SCALE_H
#define KL_SERVER_SCALE_H

#include "server/state.h"

/* *out is a new reference to the Scale. Writes go through the object itself: its rules, its resource
 * version. */
KL_NODISCARD kl_status kl__scale_get(const kl__call *c, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__scale_update(
    const kl__call *c, const kl_value *scale, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__scale_patch(
    const kl__call *c, kl__patch type, const kl_value *patch, const kl_value **out, kl_err *err);

#endif
