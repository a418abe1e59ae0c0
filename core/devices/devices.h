/* devices.h - fills in and checks ResourceClaims, their templates, DeviceClasses and ResourceSlices. `w` and
 * `k` as in builtin/builtin.h. Pure; any thread. */
#ifndef KL_DEVICES_DEVICES_H
#define KL_DEVICES_DEVICES_H

#include "builtin/builtin.h"

/* Sets defaults. *o is replaced. */
void kl__devices_fill(const kl__kind *k, const kl_value **o);
/* Drops fields of features that are off: see verbs/off.h. */
void kl__devices_drop(const kl__kind *k, const kl_value **o);
/* For a write of a claim's status: drops reports about devices that are no longer allocated. */
void kl__devices_status(const kl__kind *k, const kl_value *old, const kl_value **o);
/* Adds complaints to w->causes. `ns` is the object's Namespace, or NULL. False: another room checks the
 * kind. */
bool kl__devices_validate(const kl__write *w, const kl_value *ns);

#endif
