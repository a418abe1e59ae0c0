/* keys.h - which objects have the same keys. Any thread. */
#ifndef KL_VALUE_KEYS_H
#define KL_VALUE_KEYS_H

#include "value/value.h"

/* A number for the keys of an object, valid while the object is: objects with the same number have the same
 * keys in the same order. 0: it has none, or v is no object. */
uint32_t kl_value_keys(const kl_value *v);

#endif
