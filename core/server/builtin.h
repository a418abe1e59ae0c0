/* builtin.h - what kube-apiserver refuses of built-in kinds: what has to be there, what fits together, what
 * never changes. Sources: pkg/apis/{core,apps,batch,rbac}/validation. Pure. */
#ifndef KL_SERVER_BUILTIN_H
#define KL_SERVER_BUILTIN_H

#include "schema/status.h"

/* Complaints about `o`, in the order in which kube-apiserver has them. `old` NULL on create. */
void kl__builtin_validate(const kl__kind *k, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
