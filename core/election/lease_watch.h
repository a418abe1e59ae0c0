/* lease_watch.h - watches one Lease, so that a waiting candidate learns at once when it is released. */
#ifndef KL_ELECTION_LEASE_WATCH_H
#define KL_ELECTION_LEASE_WATCH_H

#include "client/client.h"
#include "base/loop.h"

#define KL_LEASE_KIND "coordination.k8s.io/v1/Lease"

typedef struct kl_lease_watch kl_lease_watch;

/* Begins at once; `changed` is called on the loop with each state (borrowed), NULL when the Lease was
 * deleted. A refused watch (403) is retried from time to time and logged once, so the candidate must poll as
 * well. Loop and client outlive it. */
kl_lease_watch *kl_lease_watch_new(kl_client *client, kl_loop *loop, kl_clock *clock, const char *ns,
    const char *name, void (*changed)(void *arg, const kl_value *lease), void *arg);
/* On the loop: `changed` is not called any more. The watch ends asynchronously; then `gone` (may be NULL) is
 * called on the loop. */
void kl_lease_watch_end(kl_lease_watch *w, void (*gone)(void *arg), void *arg);

#endif
