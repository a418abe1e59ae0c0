/* plug.h - admission plugins (core/builtin/plugins.h) and what they see of the server. Under the lock. */
#ifndef KL_SERVER_PLUG_H
#define KL_SERVER_PLUG_H

#include "server/state.h"

/* Whether plugins look at the call's object. */
bool kl__plug_cares(const kl__call *c);
KL_NODISCARD kl_status kl__plug_add(const kl__call *c, const kl_value *old, const kl_value **o, kl_err *err);
KL_NODISCARD kl_status kl__plug_check(const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err);
/* The quotas of the namespace have room for what is about to be stored, and (not `dry`) it is taken: 403. */
KL_NODISCARD kl_status kl__plug_charge(
    const kl__call *c, const kl_value *old, const kl_value *o, bool dry, kl_err *err);
/* Statuses of all quotas become what there is, as kube-controller-manager's quota controller has it. Not
 * within a verb. */
void kl__plug_recount(kl_server *s);

#endif
