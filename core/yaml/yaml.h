/* yaml.h - the only door to libyaml: YAML documents as values (YAML 1.1 scalars as sigs.k8s.io/yaml reads
 * them). */
#ifndef KL_YAML_YAML_H
#define KL_YAML_YAML_H

#include "value/value.h"

/* Calls `doc` for each document of a stream (JSON is YAML too); empty documents are skipped. `name` is the
 * file named in errors, which carry line and column. The callback owns the reference; a non-zero status
 * stops. */
KL_NODISCARD kl_status kl_yaml_each(const char *name, const char *text, size_t n,
    kl_status (*doc)(void *arg, const kl_value *v, kl_err *err), void *arg, kl_err *err);
/* The same for a text that comes piece by piece. It is held in parts: the items of a List one by one, other
 * documents whole, up to some MiB. `next` gives at most `room` bytes,
 * *got is 0 at the end, and a non-zero status stops. JSON must be YAML here: escapes that YAML lacks are
 * refused. */
typedef struct kl_yaml_source {
    kl_status (*next)(void *from, char *piece, size_t room, size_t *got, kl_err *err);
    void *from;
    size_t line; /* how many lines of the file come before the text */
    /* Of a document with a list `items`, only those that this wants are kept. NULL: all. */
    bool (*wanted)(void *from, const kl_value *item);
} kl_yaml_source;
KL_NODISCARD kl_status kl_yaml_each_from(const char *name, const kl_yaml_source *source,
    kl_status (*doc)(void *arg, const kl_value *v, kl_err *err), void *arg, kl_err *err);
/* Exactly one document; an empty text gives {}. */
KL_NODISCARD kl_status kl_yaml_decode(
    const char *name, const char *text, size_t n, const kl_value **out, kl_err *err);
/* The first document of a text as kube-apiserver reads it; null: it is empty. Of a repeated key the last
 * value counts, and a merge replaces the keys before it. `repeated` gets what Go's strict reader says of such
 * keys,
 * "\n  line 4: key \"a\" already set in map" for each. */
KL_NODISCARD kl_status kl_yaml_decode_first(
    const char *text, size_t n, kl_buf *repeated, const kl_value **out, kl_err *err);
/* What Go's YAML library says of the first mistake in the syntax of the text's first document; the caller
 * frees it. NULL: there is none. */
char *kl_yaml_mistake(const char *text, size_t n);
KL_NODISCARD kl_status kl_yaml_encode(const kl_value *v, kl_buf *out); /* block style, no leading --- */
/* The same with the keys in the order of Go's YAML library. yaml_write.c */
KL_NODISCARD kl_status kl_yaml_encode_sorted(const kl_value *v, kl_buf *out);

/* The text with one string changed, every other byte as it was, comments included. `path`, NULL-terminated,
 * leads through mappings by key and into a list by "key=value", the first item that has that; the last step
 * is a key, which is added before its mapping's other keys when it is missing. Only the first document is
 * changed. KL_ENOTFOUND names the step that leads nowhere. yaml_edit.c */
KL_NODISCARD kl_status kl_yaml_set_string(const char *name, const char *text, size_t n,
    const char *const *path, const char *value, kl_buf *out, kl_err *err);

#endif
