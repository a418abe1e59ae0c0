/* filter.h - selects objects of a resource for a list or watch: by namespace, labels, fields. */
#ifndef KL_STORE_FILTER_H
#define KL_STORE_FILTER_H

#include "model/selector.h"
#include "schema/kinds.h"

typedef struct kl__filter {
    char *ns;                  /* NULL: all */
    kl_selector *labels;       /* NULL: all */
    kl_field_selector *fields; /* NULL: all */
} kl__filter;

/* Texts may be NULL. 400 for invalid text, and for a field that the kind cannot select by. */
KL_NODISCARD kl_status kl__filter_init(
    kl__filter *f, const kl__kind *k, const char *ns, const char *labels, const char *fields, kl_err *err);
void kl__filter_fini(kl__filter *f);
bool kl__filter_matches(const kl__filter *f, const kl_value *object);
bool kl__filter_selects(const kl__filter *f); /* by labels or fields */
char *kl__filter_prefix(const kl__filter *f); /* of the keys it may match: "ns/" or ""; caller frees */

#endif
