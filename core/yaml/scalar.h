/* scalar.h - the value of a plain YAML scalar, as sigs.k8s.io/yaml reads it (private to core/yaml). Any
 * thread. */
#ifndef KL_YAML_SCALAR_H
#define KL_YAML_SCALAR_H

#include "value/value.h"

/* null, booleans (yes, no, on, off and y, n too), integers (decimal, 0x, 0o and 0, 0b, with underscores),
 * floats, or else the string itself. Timestamps stay strings. NULL for .inf and .nan, which JSON lacks. A new
 * reference. */
const kl_value *kl__scalar_plain(const char *s, size_t n);

#endif
