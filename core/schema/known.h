/* known.h - schemas for who has no server to ask: those of the built-in kinds, in the version that the
 * embedded server serves, and what objects of other kinds have in common. Any thread. */
#ifndef KL_SCHEMA_KNOWN_H
#define KL_SCHEMA_KNOWN_H

#include "schema/schema.h"

/* Never NULL, and there until the process ends; the first call reads all of them. Of a kind that is not built
 * in (`custom`) metadata is known, and that status.conditions are told apart by their type. */
const kl__schema *kl__schema_known(const char *group, const char *version, const char *kind);

#endif
