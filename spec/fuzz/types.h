/* types.h - the built-in kinds' types, read once and freed at the end of the process. */
#ifndef KL_SPEC_FUZZ_TYPES_H
#define KL_SPEC_FUZZ_TYPES_H

#include "fuzz/fuzz.h"
#include "schema/schema.h"

static kl__types *builtin_types;

static inline void free_builtin_types(void) { kl__types_free(builtin_types); }

/* Borrowed. */
static inline const kl__types *builtin(void)
{
    if (!builtin_types) {
        builtin_types = kl__types_builtin();
        atexit(free_builtin_types);
    }
    return builtin_types;
}

#endif
