/* lease_watch.h - one Lease, watched: for who waits for it and wants to know at once when it is given
 * back. */
#ifndef KL_ELECTION_LEASE_WATCH_H
#define KL_ELECTION_LEASE_WATCH_H

#include "client/client.h"
#include "base/loop.h"

#define KL_LEASE_KIND "coordination.k8s.io/v1/Lease"

typedef struct kl_lease_watch kl_lease_watch;

/* Begins at once; `changed` is called on the loop with each state (borrowed), NULL when the Lease was
 * deleted. What cannot be watched (403) is tried again now and then, and said once in the log: who waits
 * must ask now and then, too. Loop and client outlive it. */
kl_lease_watch *kl_lease_watch_new(kl_client *client, kl_loop *loop, kl_clock *clock, const char *ns,
    const char *name, void (*changed)(void *arg, const kl_value *lease), void *arg);
/* On the loop: `changed` is not called any more. What is left of it ends by itself; `gone` is called on
 * the loop then (may be NULL). */
void kl_lease_watch_end(kl_lease_watch *w, void (*gone)(void *arg), void *arg);

#endif
