/* warnings.h - what kube-apiserver warns of in a valid write of a built-in kind: deprecated fields, and
 * values that are ignored or surprise. Pure; any thread. */
#ifndef KL_WARNINGS_WARNINGS_H
#define KL_WARNINGS_WARNINGS_H

#include "builtin/builtin.h"
#include "check/check.h"

/* Adds the warnings as causes: "field: message", or the message alone when the field is "". */
void kl__builtin_warnings(const kl__write *w, kl__causes *out);

/* pod.c: of a pod or a template at `at` (NULL: a pod), whose old form was valid, too. */
void kl__pod_warnings(kl__causes *out, const kl_value *pod, const kl__place *at);
/* Warns of a quantity with a fraction of a byte. */
void kl__warn_fraction(kl__causes *out, const kl_value *amounts, const char *resource, const kl__place *at);
/* The same in the requests and limits of `resources`. */
void kl__warn_fractions(
    kl__causes *out, const kl_value *resources, const char *resource, const kl__place *at);
/* Why a label of nodes should not be used, or NULL. Static. */
const char *kl__old_node_label(const char *label);
/* Warns of such labels in the expressions of a NodeSelectorTerm and, with `values`, of values that no label
 * can have. */
void kl__warn_term(kl__causes *out, const kl_value *term, bool values, const kl__place *at);
/* Warns of annotations that have a note: NULL-terminated pairs of a key and a note. */
void kl__warn_annotations(
    kl__causes *out, const kl_value *meta, const kl__place *at, const char *const notes[][2]);
/* paths.c: warns of paths that overlap within a volume. */
void kl__warn_paths(kl__causes *out, const kl_value *volumes);
/* Warns of volume sources of removed plugins. */
void kl__warn_source(kl__causes *out, const kl_value *volume, const kl__place *at);

#endif
