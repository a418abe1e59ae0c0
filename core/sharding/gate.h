/* gate.h - one controller's part in sharding: which keys may begin a run here, and which runs are under way.
 *
 *   claims change --set--> keys that are not wanted begin no more --their runs end--> drained
 *
 * A controller whose caches hold only some namespaces sets them (cover): keys of others do not run either,
 * even if the claims own them.
 *
 * Any thread unless stated otherwise; never waits. */
#ifndef KL_SHARDING_GATE_H
#define KL_SHARDING_GATE_H

#include "base/err.h"
#include "sharding/claims.h"

typedef struct kl_gate kl_gate;

/* drained: called once after a set that found runs of unwanted keys, when the last of them has left; on
 * the thread that left. */
kl_gate *kl_gate_new(const char *controller, void (*drained)(void *arg), void *arg);
void kl_gate_free(kl_gate *g); /* after the last leave */
const char *kl_gate_controller(const kl_gate *g);
/* Sets new claims. False when runs of unwanted keys are under way. */
bool kl_gate_set(kl_gate *g, kl_claims *c); /* takes its own reference */
bool kl_gate_drained(kl_gate *g);
kl_claims *kl_gate_claims(kl_gate *g); /* a new reference; NULL before the first set */
bool kl_gate_owns(kl_gate *g, const char *key);
/* The namespaces whose objects the caches hold, sorted, copied; NULL, the initial state: all our keys may
 * run. */
void kl_gate_cover(kl_gate *g, char *const *namespaces);
/* whether the caches cover that namespace */
bool kl_gate_covers(kl_gate *g, const char *ns);
bool kl_gate_covers_key(kl_gate *g, const char *key);
/* The number of covered namespaces; -1: not set. */
int kl_gate_covered(kl_gate *g);
/* Counts keys that moved to or from this replica. */
void kl_gate_moved(kl_gate *g, uint64_t keys);
uint64_t kl_gate_moves(kl_gate *g);
/* Called before a run, and after it; `key` is borrowed between the two. False: the key is not ours to run. */
KL_NODISCARD bool kl_gate_enter(kl_gate *g, const char *key);
void kl_gate_leave(kl_gate *g, const char *key);

#endif
