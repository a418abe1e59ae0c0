/* serving.h - fills in and checks the kinds that configure the API server itself. `w` and `k` as in
 * builtin/builtin.h. Pure; any thread. */
#ifndef KL_SERVING_SERVING_H
#define KL_SERVING_SERVING_H

#include "base/clock.h"
#include "builtin/builtin.h"

/* Sets defaults; *o is replaced. */
void kl__serving_fill(const kl__kind *k, const kl_value **o);
/* Sets what the server writes into a new object: an APIService that the server itself serves is available at
 * once. */
void kl__serving_begin(const kl__kind *k, kl_time wall, const kl_value **o);
/* Adds complaints to w->causes. False: another room checks the kind. */
bool kl__serving_validate(const kl__write *w);

/* What kube-apiserver has of these kinds at its start: a list in JSON; the times of conditions are left out.
 */
extern const char kl_serving_defaults[];

#endif
