/* changed.h - what a write changed, apart from what others wrote between the state we knew and the answer.
 * Pure; any thread. */
#ifndef KL_OBSERVE_CHANGED_H
#define KL_OBSERVE_CHANGED_H

#include "client/client.h"

/* `before` (NULL: there was none) with the fields that `op` wrote, as the answer has them: a new reference.
 * NULL: it is unknown which they are, since the whole object was written over another version than `before`.
 */
const kl_value *kl_changed(const kl_op *op, const kl_value *before, const kl_value *answer);

#endif
