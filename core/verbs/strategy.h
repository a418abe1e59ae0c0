/* strategy.h - the rules of a kind's writes: first fields, generation, validation, and the fields of a status
 * write. */
#ifndef KL_VERBS_STRATEGY_H
#define KL_VERBS_STRATEGY_H

#include "verbs/call.h"
#include "schema/status.h"

/* The object about to be created: status dropped (unless kept), first generation and the like. After a
 * complaint about an allocation (an address that is taken) nothing else is checked. */
void kl__strategy_create(const kl__call *c, const kl_value **o, kl__causes *causes);
/* The object about to replace `old`: fields that the call must not change come from `old`, and generation is
 * updated. */
void kl__strategy_update(const kl__call *c, const kl_value *old, const kl_value **o, kl__causes *causes);
/* Complaints about content. `old` NULL on create. */
void kl__strategy_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
