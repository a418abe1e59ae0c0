/* json.h - the only door to cJSON: values as cJSON trees and back, for C programs that build or read objects
 * with cJSON; and cJSON as the oracle of our decoder: cJSON must read the same from each text that the
 * decoder accepts. */
#ifndef KL_VALUE_JSON_H
#define KL_VALUE_JSON_H

#include <stddef.h>

#include "base/err.h"
#include "value/value.h"

struct cJSON; /* cjson/cJSON.h */

/* How deep a tree may be in either direction: cJSON's own limit. */
#define KL_CJSON_DEPTH_MAX 1000

/* The value as a new tree; the caller frees it with cJSON_Delete. A whole number that a double cannot hold
 * becomes a cJSON_Raw of its digits, so that nothing is lost. For printing use kl_value_to_json: cJSON writes
 * whole numbers beyond 2^31 with an exponent, which Go does not read as integers. KL_EINVAL names the place
 * of a value that cJSON cannot hold: a string or key with a NUL inside, or a tree that is too deep. A NULL
 * handle is null. Any thread. */
KL_NODISCARD kl_status kl_value_to_cjson(const kl_value *v, struct cJSON **out, kl_err *err);
/* The tree as a new value, which shares nothing with it. Whole numbers of up to 2^53 become integers; a
 * cJSON_Raw is read as JSON. KL_EINVAL names the place of what is not JSON: an invalid item, NaN, infinity,
 * a key twice, or a tree that is too deep. Bytes that are not UTF-8 become U+FFFD. Any thread. */
KL_NODISCARD kl_status kl_value_from_cjson(const struct cJSON *tree, const kl_value **out, kl_err *err);

typedef enum kl_json_verdict {
    KL_JSON_SAME,         /* both read it, and read the same */
    KL_JSON_REFUSED,      /* our decoder refuses it; cJSON accepts more, so there is nothing to compare */
    KL_JSON_INCOMPARABLE, /* cJSON cannot hold it: NUL in a string, numbers above 63 characters */
    KL_JSON_DIFFERENT,    /* a mistake in one of the two */
} kl_json_verdict;

/* Reads `text` with both and compares. Pure; any thread. */
kl_json_verdict kl_json_compare(const char *text, size_t n);

#endif
