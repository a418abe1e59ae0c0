/* collect.h - the garbage collector, as kube-controller-manager's in a cluster; it runs at the end of the
 * call that changed owners. Without the option `collect` it does nothing, as beside a bare kube-apiserver. */
#ifndef KL_SERVER_COLLECT_H
#define KL_SERVER_COLLECT_H

#include "server/state.h"

/* Deletes and orphans objects as a result of the changes so far. Under the lock, not within a verb. */
void kl__collect(kl_server *s);
/* Ignores the changes so far: they come from a load, an undo or a reset. Under the lock. */
void kl__collect_forget(kl_server *s);

#endif
