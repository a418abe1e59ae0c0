/* holding.h - controllers whose caches hold only the namespaces of their own replica: the caches follow the
 * claims (claims.h), and the gate follows the caches.
 *
 *   wanted --hold--> listed and watched --each kind was listed--> covered: keys may run      not wanted, last run over --> let go
 *
 * So a key never runs while the cache lacks its namespace, and a namespace is never dropped during a run. The
 * keys of a new namespace are enqueued when it is covered. While our membership lease is lost, the caches do
 * not change. All calls on the loop. */
#ifndef KL_CONTROLLER_HOLDING_H
#define KL_CONTROLLER_HOLDING_H

#include "sharding/gate.h"
#include "controller/wiring.h"

/* The controller of `current` has received the gate g. */
void kl_holding_begin(kl_wiring *current, kl_gate *g);
/* Call it whenever claims, caches or wirings may have changed. Each argument may be NULL; `next` is not
 * published yet. Where `current` is not divided, the gate passes all our keys. */
void kl_holding_fit(kl_wiring *current, kl_wiring *next, kl_gate *g);
/* Before `next` takes over: from now on keys start only where both wirings have complete caches. Call
 * kl_holding_fit after it. */
void kl_holding_handover(kl_wiring *next, kl_gate *g);

#endif
