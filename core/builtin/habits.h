/* habits.h - how kinds differ in writes. Pure; any thread. */
#ifndef KL_BUILTIN_HABITS_H
#define KL_BUILTIN_HABITS_H

#include "schema/kinds.h"

bool kl__habit_create_on_update(const kl__kind *k); /* an update creates a missing object */
bool kl__habit_needs_rv(const kl__kind *k);         /* an update must have a resourceVersion */
bool kl__habit_returns_deleted(const kl__kind *k);  /* a delete returns the object */

bool kl__generation_kept(const kl__kind *k); /* its objects have a metadata.generation, which begins at 1 */
/* Whether a write that turns `old` into `o` increases metadata.generation by one. `sub`: the written
 * subresource, or NULL. */
bool kl__generation_moves(const kl__kind *k, const char *sub, const kl_value *old, const kl_value *o);

#endif
