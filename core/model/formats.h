/* formats.h - the `format` of texts in JSON schemas, as kube-apiserver checks it. Any thread. */
#ifndef KL_MODEL_FORMATS_H
#define KL_MODEL_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kl__format kl__format;

/* NULL for a name that kube-apiserver does not check: "int32", or an unknown one. */
kl__format *kl__format_get(const char *name);
bool kl__format_fits(kl__format *f, const char *text, size_t n);

#endif
