/* leftover.h - finalizers that a controller put on objects before it lost its `finalize`: nobody takes
 * them away, and the objects could never be deleted. */
#ifndef KL_CONTROLLER_LEFTOVER_H
#define KL_CONTROLLER_LEFTOVER_H

#include "controller/wiring.h"

/* Says in the log how many objects of the wiring's resource carry a finalizer that is not taken care of
 * any more: the usual one of the controller, and `before`, that of the generation it follows (or NULL).
 * Nothing where there is a `finalize`. On the loop, once per generation, when its caches are synced. */
void kl_leftover_tell(kl_wiring *w, const char *before);

#endif
