/* changed.h - the changes of one write, without what others wrote between the state that we knew and the
 * answer. Pure; any thread. */
#ifndef KL_OBSERVE_CHANGED_H
#define KL_OBSERVE_CHANGED_H

#include "client/client.h"

/* `before` (NULL: it did not exist) with the fields that `op` wrote set to the answer's values: a new
 * reference. NULL: unknown, because the whole object was written over another version than `before`.
 */
const kl_value *kl_changed(const kl_op *op, const kl_value *before, const kl_value *answer);

#endif
