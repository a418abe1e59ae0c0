/* serving.h - the kinds that configure the API server itself: what is filled in and refused. `w` and `k` as
 * in builtin/builtin.h. Pure; any thread. */
#ifndef KL_SERVING_SERVING_H
#define KL_SERVING_SERVING_H

#include "base/clock.h"
#include "builtin/builtin.h"

/* Defaults; *o is replaced. */
void kl__serving_fill(const kl__kind *k, const kl_value **o);
/* What the server writes into a new object: an APIService of its own is available at once. */
void kl__serving_begin(const kl__kind *k, kl_time wall, const kl_value **o);
/* Complaints go to w->causes. False: the kind is another room's. */
bool kl__serving_validate(const kl__write *w);

#endif
