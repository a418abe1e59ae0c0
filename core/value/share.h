/* share.h - a number, or a percentage of one: metav1's IntOrString, as in maxUnavailable and similar fields.
 * Pure; any thread. */
#ifndef KL_VALUE_SHARE_H
#define KL_VALUE_SHARE_H

#include "value/value.h"

/* An integer of 32 bits is itself and null is 0, whatever the total; "25%" is that part of `total`,
 * rounded up or down. KL_EINVAL for anything else, and for a part that no int64 holds. */
KL_NODISCARD kl_status kl_share_of(
    const kl_value *v, int64_t total, bool round_up, int64_t *out, kl_err *err);

#endif
