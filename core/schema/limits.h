/* limits.h - kube-apiserver's limits on the size of requests and objects. */
#ifndef KL_SCHEMA_LIMITS_H
#define KL_SCHEMA_LIMITS_H

#include "schema/kinds.h"
#include "schema/status.h"

/* 413 for a body that is larger than any request may be. */
KL_NODISCARD kl_status kl__limits_body(size_t n, kl_err *err);
/* Check annotations, and the data of a ConfigMap or Secret. */
void kl__limits_annotations(const char *field, const kl_value *annotations, kl__causes *causes);
void kl__limits_validate(const kl__kind *k, const kl_value *o, kl__causes *causes);

#endif
