/* json.h - the only door to cJSON, which is our oracle: what our strict decoder accepts, cJSON must read the same. */
#ifndef KL_VALUE_JSON_H
#define KL_VALUE_JSON_H

#include <stddef.h>

typedef enum kl_json_verdict {
    KL_JSON_SAME,            /* both read it, and read the same */
    KL_JSON_REFUSED,         /* ours refuses it: cJSON is laxer and proves nothing */
    KL_JSON_INCOMPARABLE,    /* it holds what cJSON cannot: NUL in a string, numbers above 63 characters */
    KL_JSON_DIFFERENT,       /* a mistake in one of the two */
} kl_json_verdict;

/* Reads `text` with both and compares. Pure; any thread. */
kl_json_verdict kl_json_compare(const char *text, size_t n);

#endif
