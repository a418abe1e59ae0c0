/* selector_impl.h - internals shared by the files of the label selector. */
#ifndef KL_MODEL_SELECTOR_IMPL_H
#define KL_MODEL_SELECTOR_IMPL_H

#include "model/selector.h"

typedef struct kl__requirement {
    char *key;
    kl_selector_op op;
    char **values; /* sorted, repetitions as they were given (they are printed), NULL-terminated */
    size_t nvalues;
    int64_t number; /* KL_SEL_GT, KL_SEL_LT */
} kl__requirement;

struct kl_selector {
    bool nothing;       /* selects nothing; there are no requirements then */
    kl__requirement *v; /* sorted by key; all must hold */
    size_t len, cap;
};

/* Takes copies and checks them. `values` is as given, in any order. */
KL_NODISCARD kl_status kl__selector_require(kl_selector *s, const char *key, kl_selector_op op,
    const char *const *values, size_t nvalues, kl_err *err);
void kl__selector_sort(kl_selector *s);

#endif
