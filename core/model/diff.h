/* diff.h - differences between two states of an object: paths with old and new values. Pure; any thread.
 *
 * Elements of a list are identified by a key field (name, type, key, ...), so that a new element at the front
 * is one difference. Equal subtrees are mostly one node, so only differing parts are visited. */
#ifndef KL_MODEL_DIFF_H
#define KL_MODEL_DIFF_H

#include "value/value.h"

/* `path` as in path.h, but an element of a named list is [its name]; borrowed, like the values. NULL:
 * absent. */
typedef void kl_diff_fn(void *arg, const char *path, const kl_value *was, const kl_value *is);
/* Every difference, in the order of the keys as bytes. */
void kl_diff(const kl_value *was, const kl_value *is, kl_diff_fn *fn, void *arg);
/* The same of two states of one Kubernetes object. The server's bookkeeping (resourceVersion, generation,
 * managedFields) is left out; for a new (NULL) or deleted object, so are the fields that only identify it. */
void kl_diff_objects(const kl_value *was, const kl_value *is, kl_diff_fn *fn, void *arg);
/* "spec.replicas: 1 -> 2, metadata.labels.a: none -> \"b\"", values cut to 64 characters; contents of Secrets
 * are hidden. "" when nothing differs. Appends to out. */
void kl_diff_text(const kl_value *was, const kl_value *is, kl_buf *out);
/* Whether the value at path of an object must be hidden: contents of a Secret, and the annotation with a copy
 * of them. */
bool kl_diff_is_secret(const kl_value *object, const char *path);
/* A value for a line of a diff: compact JSON, cut to 64 characters; "none" when absent. Appends to out. */
void kl_diff_value(const kl_value *v, kl_buf *out);

#endif
