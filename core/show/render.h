/* render.h - stored objects in the form that a client requested: version, table, metadata alone. Any thread
 * that may read the kind (schema/kinds.h). */
#ifndef KL_SHOW_RENDER_H
#define KL_SHOW_RENDER_H

#include "schema/kinds.h"

/* A stored object in the version of `k`, with the defaults of its schema; a new reference. The caller has
 * already converted an object whose kind has a conversion webhook. */
const kl_value *kl_render_version(const kl__kind *k, const kl_value *stored);

/* The stored form of a client's object in `k`'s version; calls no conversion webhook. Takes o. */
const kl_value *kl_render_stored(const kl__kind *k, const kl_value *o);

#endif
