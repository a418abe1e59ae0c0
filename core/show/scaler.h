/* scaler.h - HorizontalPodAutoscalers of autoscaling/v1 and their stored form, autoscaling/v2. Pure; any
 * thread. */
#ifndef KL_SHOW_SCALER_H
#define KL_SHOW_SCALER_H

#include "schema/kinds.h"

/* Whether the kind is that of autoscaling/v1. */
bool kl__is_old_scaler(const kl__kind *k);
/* The object in that version, a new reference; the same object if it has that version already. v2 gets v1's
 * default for a scaler without metrics; fields that v1 lacks are kept in its annotations. */
const kl_value *kl__scaler_to_v2(const kl_value *v1);
const kl_value *kl__scaler_to_v1(const kl_value *v2);
/* For a write of v1's main resource: takes the annotations that hold parts of the status from `old`. */
void kl__scaler_keep_status(const kl_value *old, const kl_value **o);

#endif
