/* plug.h - admission plugins (core/builtin/plugins.h) and their view of the server. Under the lock. */
#ifndef KL_SERVER_PLUG_H
#define KL_SERVER_PLUG_H

#include "server/state.h"

/* Whether any plugin checks the call's object. */
bool kl__plug_cares(const kl__call *c);
KL_NODISCARD kl_status kl__plug_add(const kl__call *c, const kl_value *old, const kl_value **o, kl_err *err);
KL_NODISCARD kl_status kl__plug_check(const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err);
/* Charges the object about to be stored to the namespace's quotas (not when `dry`); 403 when one is
 * exhausted. */
KL_NODISCARD kl_status kl__plug_charge(
    const kl__call *c, const kl_value *old, const kl_value *o, bool dry, kl_err *err);
/* Recomputes the status of all quotas, as kube-controller-manager's quota controller does. Not within a
 * verb. */
void kl__plug_recount(kl_server *s);

#endif
