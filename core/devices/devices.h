/* devices.h - ResourceClaims, their templates, DeviceClasses and ResourceSlices: what is filled in and
 * refused. `w` and `k` as in builtin/builtin.h. Pure; any thread. */
#ifndef KL_DEVICES_DEVICES_H
#define KL_DEVICES_DEVICES_H

#include "builtin/builtin.h"

/* Defaults; fields that are alpha in 1.34 are cut. *o is replaced. */
void kl__devices_fill(const kl__kind *k, const kl_value **o);
/* A write of a claim's status: reports about devices that are no longer allocated are cut. */
void kl__devices_status(const kl__kind *k, const kl_value *old, const kl_value **o);
/* Complaints go to w->causes. `ns` is the namespace of the object, or NULL. False: the kind is another
 * room's. */
bool kl__devices_validate(const kl__write *w, const kl_value *ns);

#endif
