/* collect.h - the garbage collector, as kube-controller-manager's in a cluster; it runs at the end of the
 * call that changed owners. Without the option `collect` it does nothing, as if kube-apiserver ran alone. */
#ifndef KL_VERBS_COLLECT_H
#define KL_VERBS_COLLECT_H

#include "verbs/call.h"

/* Deletes and orphans objects as a result of the changes so far. Under the lock, not within a verb. */
void kl__collect(kl__world *w);
/* Ignores the changes so far: they come from a load, an undo or a reset. Under the lock. */
void kl__collect_forget(kl__world *w);

#endif
