/* strategy.h - what differs between kinds when they are written: defaults, generation, validation, what a
 * status write may touch. */
#ifndef KL_SERVER_STRATEGY_H
#define KL_SERVER_STRATEGY_H

#include "server/state.h"
#include "schema/status.h"

bool kl__strategy_create_on_update(const kl__kind *k);
bool kl__strategy_needs_rv(const kl__kind *k);        /* an update must say the resourceVersion */
bool kl__strategy_returns_deleted(const kl__kind *k); /* a delete answers the object */
/* Defaults of built-in kinds on a normalised object. *o is replaced. */
void kl__strategy_default(const kl_server *s, const kl__kind *k, const kl_value **o);
/* The object about to be created: status dropped (unless kept), first generation and the like. A complaint
 * about what it cannot be given (an address that is taken) stands alone: nothing else is checked then. */
void kl__strategy_create(const kl__call *c, const kl_value **o, kl__causes *causes);
/* The object about to replace `old`: what the call may not touch comes from `old`, generation moves. */
void kl__strategy_update(const kl__call *c, const kl_value *old, const kl_value **o, kl__causes *causes);
/* Complaints about content. `old` NULL on create. */
void kl__strategy_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
