/* jsonpath.h - what a JSONPath of printer columns selects in an object, as client-go's package jsonpath reads
 * it: .a.b, ['a.b'], [0], [-1], [1:3:2], [*], .*, ..a, ['a','b'], [?(@.a=="x")]. Any thread. */
#ifndef KL_SHOW_JSONPATH_H
#define KL_SHOW_JSONPATH_H

#include "value/value.h"

/* Whether the path can be read. */
bool kl_jsonpath_reads(const char *path);
/* The first value that the path selects, a new reference; JSON null is a value, too. NULL: it selects
 * nothing, or it cannot be read or evaluated, which the API server shows as an empty cell. */
const kl_value *kl_jsonpath_first(const kl_value *v, const char *path);

#endif
