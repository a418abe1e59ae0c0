/* leftover.h - finds finalizers that a controller set before its `finalize` was removed from the script. No
 * code removes them, so the objects could never be deleted. */
#ifndef KL_CONTROLLER_LEFTOVER_H
#define KL_CONTROLLER_LEFTOVER_H

#include "controller/wiring.h"

/* Logs how many objects of the wiring's resource have a finalizer that no code handles any more: the
 * controller's default one, and `before`, that of the previous generation (or NULL). Does nothing if the
 * script has a `finalize`. On the loop, once per generation, when its caches are synced. */
void kl_leftover_tell(kl_wiring *w, const char *before);

#endif
