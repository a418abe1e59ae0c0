/* strategic.h - a strategic merge patch over a value, as far as that can be known without the server's
 * schema (mergelist.h). Pure; any thread.
 *
 * "$patch" deletes and replaces; orders and lists of what to keep, which begin with $ as well, are the
 * server's to know. */
#ifndef KL_MODEL_STRATEGIC_H
#define KL_MODEL_STRATEGIC_H

#include "value/value.h"

/* patch applied to doc (NULL: absent), a new reference. `builtin`: see kl_merge_keys_of. */
const kl_value *kl_strategic_apply(const kl_value *doc, const kl_value *patch, bool builtin);

#endif
