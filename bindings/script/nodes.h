/* nodes.h - the reports of simulated nodes. Owner thread. */
#ifndef LKL_NODES_H
#define LKL_NODES_H

#include "state/border.h"
#include "value/value.h"

extern const lkl_class lkl__sums_class; /* of core.sums: a kl_sums */

/* What is kept of the last report of each node. */
typedef struct lkl__reports lkl__reports;
lkl__reports *lkl__reports_new(void);
void lkl__reports_free(lkl__reports *r);
/* The NodeMetric of s:report's arguments, a new reference; raises. */
const kl_value *lkl__report(lua_State *L, lkl__reports *r);

#endif
