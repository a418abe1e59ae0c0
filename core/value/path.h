/* path.h - "spec.containers[1].name" and "metadata.labels[app.kubernetes.io/name]": readable names of places
 * in an object. Indexes count from 1 (as in Lua). A key with dots is written in brackets with or without
 * quotes. */
#ifndef KL_VALUE_PATH_H
#define KL_VALUE_PATH_H

#include "value/value.h"

typedef struct kl_path kl_path; /* compiled; any thread, except for kl_path_find */

KL_NODISCARD kl_status kl_path_parse(const char *text, kl_path **out, kl_err *err);
void kl_path_free(kl_path *p);
const char *kl_path_text(const kl_path *p);
const kl_value *kl_path_get(const kl_path *p, const kl_value *root); /* borrowed; NULL when absent */
/* The same for code that follows one path again and again: remembers where each key stands in objects with
 * the same keys. Owner thread. */
const kl_value *kl_path_find(kl_path *p, const kl_value *root);
size_t kl_path_len(const kl_path *p);
/* The i-th step, from 0: its key with its length, or NULL and *index, from 1. Borrowed from the path. */
const char *kl_path_step(const kl_path *p, size_t i, size_t *keylen, size_t *index);

#endif
