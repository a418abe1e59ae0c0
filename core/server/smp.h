/* smp.h - strategic merge patch of built-in kinds: lists merge by key as the types say. Pure. */
#ifndef KL_SERVER_SMP_H
#define KL_SERVER_SMP_H

#include "server/schema.h"

/* *out is a new reference. 400 for directives that make no sense. */
KL_NODISCARD kl_status kl__smp_apply(const kl__schema *s, const kl_value *old, const kl_value *patch, const kl_value **out, kl_err *err);

#endif
