/* holding.h - controllers whose caches hold the namespaces of their own replica, and no others: what is
 * held follows the claims (claims.h), and the gate follows what is held.
 *
 *   wanted --hold--> listed and watched --each kind was listed--> covered: keys may run      not wanted, last run over --> let go
 *
 * So a key never runs over a cache that has not its namespace, and a namespace never leaves under a run.
 * Of one that comes the keys are enqueued when it is covered. While we are none of the replicas (a lease
 * was lost) all that is held stays, warm. On the loop, all of it. */
#ifndef KL_CONTROLLER_HOLDING_H
#define KL_CONTROLLER_HOLDING_H

#include "sharding/gate.h"
#include "controller/wiring.h"

/* A gate that the controller of `current` has just been given. */
void kl_holding_begin(kl_wiring *current, kl_gate *g);
/* Whenever claims, caches or wirings may have changed. Any of the three may be NULL; `next` is not
 * published yet. Where `current` is not divided the gate lets all keys pass that are ours. */
void kl_holding_fit(kl_wiring *current, kl_wiring *next, kl_gate *g);
/* Before `next` takes over: keys begin only where both have all, so that none runs in the one that has
 * not. A fit comes after. */
void kl_holding_handover(kl_wiring *next, kl_gate *g);

#endif
