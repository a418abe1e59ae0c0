/* known.h - schemas without a server: those of the built-in kinds, in the embedded server's version, and the
 * common fields of other kinds. Any thread. */
#ifndef KL_SCHEMA_KNOWN_H
#define KL_SCHEMA_KNOWN_H

#include "schema/schema.h"

/* Never NULL, and valid until the process ends; the first call builds all of them. A kind that is not built
 * in gets a schema (`custom`) of metadata, with conditions keyed by their type. */
const kl__schema *kl__schema_known(const char *group, const char *version, const char *kind);

#endif
