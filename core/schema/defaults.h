/* defaults.h - defaults of built-in kinds. Pure. */
#ifndef KL_SCHEMA_DEFAULTS_H
#define KL_SCHEMA_DEFAULTS_H

#include "value/value.h"

void kl__defaults(const char *group, const char *plural, const kl_value **object); /* *object is replaced */
const char *kl__pod_qos(const kl_value *pod);

#endif
