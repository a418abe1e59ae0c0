/* diff.h - what is different between two states of an object: paths, with what was there and what is
 * there. Pure; any thread.
 *
 * Elements of a list are told apart by what names them (name, type, key, ...), so that a new element at
 * the front is one difference and not many. Equal subtrees are mostly one node, so only what differs is
 * looked at. */
#ifndef KL_MODEL_DIFF_H
#define KL_MODEL_DIFF_H

#include "value/value.h"

/* `path` as in path.h, but an element of a named list is [its name]; borrowed, like the values. NULL:
 * absent. */
typedef void kl_diff_fn(void *arg, const char *path, const kl_value *was, const kl_value *is);
/* Every difference, in the order of the keys as bytes. */
void kl_diff(const kl_value *was, const kl_value *is, kl_diff_fn *fn, void *arg);
/* The same of two states of one Kubernetes object. What the server keeps books with (resourceVersion,
 * generation, managedFields) is left out; of an object that was not there before (NULL), or is gone, so is
 * what only says which one it is. */
void kl_diff_objects(const kl_value *was, const kl_value *is, kl_diff_fn *fn, void *arg);
/* "spec.replicas: 1 -> 2, metadata.labels.a: none -> \"b\"", values cut to 64 characters; what a Secret
 * holds is not told. "" when nothing differs. Appends to out. */
void kl_diff_text(const kl_value *was, const kl_value *is, kl_buf *out);
/* Whether the value at path of an object is nobody's business: what a Secret holds, and the annotation
 * that has a copy of it. */
bool kl_diff_is_secret(const kl_value *object, const char *path);
/* A value for a line of a diff: compact JSON, cut to 64 characters; "none" when absent. Appends to out. */
void kl_diff_value(const kl_value *v, kl_buf *out);

#endif
