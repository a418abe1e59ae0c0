/* collect.h - the garbage collector: what kube-controller-manager's does in a cluster, here at the end of the
 * call that gave cause. Without the option `collect` it does nothing, as beside a bare kube-apiserver. */
#ifndef KL_SERVER_COLLECT_H
#define KL_SERVER_COLLECT_H

#include "server/state.h"

/* Deletes, releases and lets go what follows from the changes so far. Under the lock, not within a verb. */
void kl__collect(kl_server *s);
/* The changes so far give no cause: they are those of a load, an undo, a reset. Under the lock. */
void kl__collect_forget(kl_server *s);

#endif
