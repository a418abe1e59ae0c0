/* fieldset.h - a set of places in an object, as managedFields writes it (FieldsV1). Owner thread.
 *
 * A tree of path elements: "f:name" a field, `k:{"name":"c"}` a list item by its keys, `v:"x"` an item of
 * a set. A node is a member, or only on the way to members. */
#ifndef KL_SCHEMA_FIELDSET_H
#define KL_SCHEMA_FIELDSET_H

#include "value/value.h"

typedef struct kl__fieldset kl__fieldset;
struct kl__fieldset {
    char *element; /* NULL at the root */
    bool member;
    kl__fieldset **kids; /* sorted by element; none is empty after an operation */
    size_t len, cap;
};

/* A path, from its end towards the root. Lives on the walker's stack. */
typedef struct kl__place {
    const struct kl__place *up;
    const char *element;
} kl__place;

/* Sets are heap objects that the caller owns (new, copy, decode give one; free ends it); owner thread.
 * decode reads the form of managedFields.fieldsV1, encode writes it as an object into b. */
kl__fieldset *kl__fieldset_new(void);
void kl__fieldset_free(kl__fieldset *s);
kl__fieldset *kl__fieldset_copy(const kl__fieldset *s);
kl__fieldset *kl__fieldset_decode(const kl_value *fields_v1);
void kl__fieldset_encode(const kl__fieldset *s, kl_builder *b);

/* the root itself (NULL) is never a member */
void kl__fieldset_insert(kl__fieldset *s, const kl__place *at);
kl__fieldset *kl__fieldset_kid(const kl__fieldset *s, const char *element); /* or NULL; s may be NULL */
kl__fieldset *kl__fieldset_make(kl__fieldset *s, const char *element);      /* made when absent */
bool kl__fieldset_empty(const kl__fieldset *s);                             /* NULL is empty */
bool kl__fieldset_equal(const kl__fieldset *a, const kl__fieldset *b);
/* In place: a becomes a + b, a - b, a & b. */
void kl__fieldset_add(kl__fieldset *a, const kl__fieldset *b);
void kl__fieldset_subtract(kl__fieldset *a, const kl__fieldset *b);
void kl__fieldset_intersect(kl__fieldset *a, const kl__fieldset *b);
void kl__fieldset_drop(kl__fieldset *s, const char *element); /* removes a child with all below it */

/* Appends an element to `out` in readable form: `.name`, `[name="c"]`, `["x"]`. */
void kl__fieldset_put_element(const char *element, kl_buf *out);
/* Calls fn with ".spec.containers[name=\"c\"].image" of each member. */
void kl__fieldset_each(const kl__fieldset *s, void (*fn)(void *arg, const char *path), void *arg);

#endif
