/* off.h - drops fields of features that are off in Kubernetes 1.34: they are not stored, but who sends them
 * owns them. Pure. */
#ifndef KL_VERBS_OFF_H
#define KL_VERBS_OFF_H

#include "schema/kinds.h"

/* Any thread; *o is replaced. */
void kl__drop_off(const kl__kind *k, const kl_value **o);

#endif
