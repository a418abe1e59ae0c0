/* strategy.h - the rules of a kind's writes: defaults, generation, validation, and the fields of a status
 * write. */
#ifndef KL_SERVER_STRATEGY_H
#define KL_SERVER_STRATEGY_H

#include "server/state.h"
#include "schema/status.h"

bool kl__strategy_create_on_update(const kl__kind *k);
bool kl__strategy_needs_rv(const kl__kind *k);        /* an update must have a resourceVersion */
bool kl__strategy_returns_deleted(const kl__kind *k); /* a delete returns the object */
/* Defaults of built-in kinds on a normalised object. *o is replaced. */
void kl__strategy_default(const kl_server *s, const kl__kind *k, const kl_value **o);
/* The object about to be created: status dropped (unless kept), first generation and the like. After a
 * complaint about an allocation (an address that is taken) nothing else is checked. */
void kl__strategy_create(const kl__call *c, const kl_value **o, kl__causes *causes);
/* The object about to replace `old`: fields that the call must not change come from `old`, and generation is
 * updated. */
void kl__strategy_update(const kl__call *c, const kl_value *old, const kl_value **o, kl__causes *causes);
/* Complaints about content. `old` NULL on create. */
void kl__strategy_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
