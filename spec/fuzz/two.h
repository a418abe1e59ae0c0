/* two.h - an input of two JSON documents: the first line and the rest. */
#ifndef KL_SPEC_FUZZ_TWO_H
#define KL_SPEC_FUZZ_TWO_H

#include "fuzz/fuzz.h"
#include "value/value.h"

/* Both are new references. False when one does not decode. */
static inline bool two_values(const uint8_t *data, size_t size, const kl_value **a, const kl_value **b)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    *a = *b = NULL;
    if (!line || kl_value_decode(text, (size_t)(line - text), a, NULL))
        return false;
    if (!kl_value_decode(line + 1, size - (size_t)(line - text) - 1, b, NULL))
        return true;
    kl_value_unref(*a);
    *a = NULL;
    return false;
}

static inline void no_values_left(void)
{
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
}

#endif
