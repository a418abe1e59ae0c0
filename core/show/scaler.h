/* scaler.h - HorizontalPodAutoscalers of autoscaling/v1 and their stored form, autoscaling/v2. Pure; any
 * thread. */
#ifndef KL_SHOW_SCALER_H
#define KL_SHOW_SCALER_H

#include "schema/kinds.h"

/* Whether the kind is autoscaling/v1's. */
bool kl__is_old_scaler(const kl__kind *k);
/* An object in the other version, or itself when it is of that version: new references. v2 gets v1's default
 * for a scaler without metrics; what v1 lacks is kept in its annotations. */
const kl_value *kl__scaler_to_v2(const kl_value *v1);
const kl_value *kl__scaler_to_v1(const kl_value *v2);
/* Of a write of v1's main resource: the annotations with parts of the status are those of `old`. */
void kl__scaler_keep_status(const kl_value *old, const kl_value **o);

#endif
