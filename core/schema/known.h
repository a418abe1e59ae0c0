/* known.h - schemas for who has no server to ask: those of the built-in kinds, in the version that the
 * embedded server serves, and what objects of other kinds have in common. Any thread. */
#ifndef KL_SCHEMA_KNOWN_H
#define KL_SCHEMA_KNOWN_H

#include "schema/schema.h"

/* Never NULL, and there until the process ends; the first call reads all of them. A kind that is not built in
 * gets a schema (`custom`) that knows the fields of metadata, and the type of a condition as its key. */
const kl__schema *kl__schema_known(const char *group, const char *version, const char *kind);

#endif
