/* defaults.h - defaults of built-in kinds. Pure. */
#ifndef KL_BUILTIN_DEFAULTS_H
#define KL_BUILTIN_DEFAULTS_H

#include "value/value.h"

void kl__defaults(const char *group, const char *plural, const kl_value **object); /* *object is replaced */
/* defaults of kinds without pods or pod templates; kl__defaults calls it */
void kl__defaults_other(const char *group, const char *plural, const kl_value **object);
/* defaults of an autoscaler, in either version (autoscaler.c) */
void kl__scaler_defaults(const kl_value **o);
void kl__pod_template_defaults(const kl_value **o); /* of a PodTemplate (defaults.c) */
/* the initial status of a new object; owned by the caller */
const kl_value *kl__empty_status(const char *group, const char *plural);
const char *kl__pod_qos(const kl_value *pod);

#endif
