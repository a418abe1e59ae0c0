/* definitions.h - the definitions of the Kubernetes API as text: compressed in the binary, in memory only
 * while a reader uses them. Any thread; each reader opens its own. */
#ifndef KL_OPENAPI_DEFINITIONS_H
#define KL_OPENAPI_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/packed.h"

extern const kl_packed kl__definitions_packed; /* definitions.txt */

typedef struct kl__definition {
    const char *name; /* "io.k8s.api.core.v1.Pod", NUL-terminated */
    const char *json; /* its schema as OpenAPI v3 has it */
    size_t json_len;
    bool wanted; /* the current document needs it */
} kl__definition;

typedef struct kl__definitions {
    char *text; /* the text that the definitions point into */
    kl__definition *v;
    size_t len;
} kl__definitions;

/* Opens all definitions, unmarked. The caller closes d. */
void kl__definitions_open(kl__definitions *d);
void kl__definitions_close(kl__definitions *d);
/* Finds a definition by name, or by the end of its name ("core.v1.Pod"); borrowed until close, or NULL. */
kl__definition *kl__definitions_get(const kl__definitions *d, const char *name);
kl__definition *kl__definitions_ending(const kl__definitions *d, const char *end);
/* Marks the definitions that `json` refers to, transitively. */
void kl__definitions_want(kl__definitions *d, const char *json, size_t n);
/* The same for a definition itself; NULL is fine. */
void kl__definitions_want_one(kl__definitions *d, kl__definition *of);

#endif
