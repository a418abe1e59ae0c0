/* plug.h - admission plugins (core/builtin/plugins.h) and their view of the server. Under the lock. */
#ifndef KL_VERBS_PLUG_H
#define KL_VERBS_PLUG_H

#include "verbs/call.h"

/* Whether any plugin looks at the call's object: a built-in kind's, and not a subresource. */
bool kl__plug_cares(const kl__call *c);
/* Before webhooks. `old`: what is stored, NULL on create. *o, a reference, is replaced by a new one to the
 * changed object; on failure it stays. 403 with the plugin's words. */
KL_NODISCARD kl_status kl__plug_add(const kl__call *c, const kl_value *old, const kl_value **o, kl_err *err);
/* After webhooks and validation; the object is not changed. 403 with the plugin's words. */
KL_NODISCARD kl_status kl__plug_check(const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err);
/* The last step before the object is stored: it is charged to the quotas of its namespace, whose status.used
 * is written at once. `dry`, or a dry run: it is only checked. 403 names the quota that is exhausted and what
 * was asked, used and limited; then nothing is charged. */
KL_NODISCARD kl_status kl__plug_charge(
    const kl__call *c, const kl_value *old, const kl_value *o, bool dry, kl_err *err);
/* Recomputes the status of all quotas, as kube-controller-manager's quota controller does. Not within a
 * verb. */
void kl__plug_recount(kl__world *w);

#endif
