/* strategy.h - the rules of a kind's writes: first fields, generation, validation, and the fields of a status
 * write. */
#ifndef KL_VERBS_STRATEGY_H
#define KL_VERBS_STRATEGY_H

#include "verbs/call.h"
#include "schema/status.h"

/* Prepares the object to be created: drops its status (unless kept), sets its first generation and the like.
 * After a complaint about an allocation (an address that is taken) it makes no further checks. */
void kl__strategy_create(const kl__call *c, const kl_value **o, kl__causes *causes);
/* Prepares the object to replace `old`: takes from `old` the fields that the call must not change, and
 * updates the generation. */
void kl__strategy_update(const kl__call *c, const kl_value *old, const kl_value **o, kl__causes *causes);
/* Whether the writer owns all that it sent, also what kl__strategy_update takes back; else what is left. */
bool kl__strategy_owned_as_sent(const kl__call *c);
/* The object as its writer owns it: with defaults that kube-apiserver gives before it looks at owners. A
 * strategy that sees them already would keep them. A new reference. */
const kl_value *kl__strategy_owned(const kl__call *c, const kl_value *old, const kl_value *o);
/* After kl__strategy_update: 500 if two ports of a Service have the same node port. */
KL_NODISCARD kl_status kl__strategy_ports(const kl__call *c, const kl_value *o, kl_err *err);
/* Adds complaints about the contents. `old` is NULL on create. */
void kl__strategy_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
