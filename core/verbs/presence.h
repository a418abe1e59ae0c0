/* presence.h - what a running kube-apiserver keeps of itself in kube-system: the Lease that it renews, the
 * authorities of its clients, and since when it notes the use of old tokens. Only in a `complete` world.
 * Under the lock. */
#ifndef KL_VERBS_PRESENCE_H
#define KL_VERBS_PRESENCE_H

#include "verbs/call.h"

/* Creates what is missing, and renews the Lease. authorities: PEM text of the client authorities; NULL: none.
 */
KL_NODISCARD kl_status kl__presence_begin(kl__world *w, const char *authorities, kl_err *err);
/* Renews the Lease and looks at the ConfigMaps, if it is time to; deleted ones come back. Returns the time of
 * the next call, by the world's clock. */
kl_time kl__presence_tick(kl__world *w);
/* An object has changed: whether kl__presence_tick is to be called soon. `updated`: it was there, and is. */
bool kl__presence_noticed(kl__world *w, const kl__bucket *b, const char *key, bool updated);
void kl__presence_end(kl__world *w);

#endif
