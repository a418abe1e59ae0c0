/* plug.h - admission plugins (core/builtin/plugins.h) and their view of the server. Under the lock. */
#ifndef KL_VERBS_PLUG_H
#define KL_VERBS_PLUG_H

#include "verbs/call.h"

/* Writes of subresources and custom resources pass all plugins.
 * Before webhooks. `old`: the stored object, NULL on create. *o, a reference, is replaced by one to the
 * changed object; on failure it stays. 403 with the plugin's message. */
KL_NODISCARD kl_status kl__plug_add(const kl__call *c, const kl_value *old, const kl_value **o, kl_err *err);
/* After webhooks and validation; does not change the object. 403 with the plugin's message. */
KL_NODISCARD kl_status kl__plug_check(const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err);
/* The last step before the object is stored: charges it to the quotas of its namespace and writes their
 * status.used at once. With `dry`, and in a dry run, it only checks. 403 names the exhausted quota and the
 * requested, used and limited amounts; then nothing is charged. */
KL_NODISCARD kl_status kl__plug_charge(
    const kl__call *c, const kl_value *old, const kl_value *o, bool dry, kl_err *err);
/* Writes the statuses of the quotas whose objects have changed, as kube-controller-manager's quota controller
 * does. Not within a verb; the world has tallies. */
void kl__plug_recount(kl__world *w);

#endif
