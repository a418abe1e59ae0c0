/* render.h - stored objects as a client asked to see them: version, table, metadata alone. */
#ifndef KL_SHOW_RENDER_H
#define KL_SHOW_RENDER_H

#include "schema/kinds.h"

/* A stored object in the version of `k`, with the defaults of its schema; a new reference. Of a kind with a
 * conversion webhook it is what that has made already. */
const kl_value *kl_render_version(const kl__kind *k, const kl_value *stored);

/* An object of `k`'s version, decoded from a client, as it is stored; a conversion webhook is not asked.
 * Takes o. */
const kl_value *kl_render_stored(const kl__kind *k, const kl_value *o);
/* What `k` shows is not what is stored (another version, or defaults to add). */
bool kl_render_differs(const kl__kind *k);

#endif
