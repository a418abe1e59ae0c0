/* edit.h - small changes of an object held in a variable. Values are immutable, so each change replaces the
 * variable's reference by one to a new root, which shares the unchanged parts.
 *
 *   const kl_value *o = ...;                                     one reference
 *   KL_EDIT(&o, kl_value_of_int(1), "metadata", "generation");   takes the new value's reference
 *   KL_EDIT(&o, NULL, "metadata", "generation");                 removes the field */
#ifndef KL_SCHEMA_EDIT_H
#define KL_SCHEMA_EDIT_H

#include "value/value.h"

#define KL_EDIT(o, x, ...)                                                                                   \
    do {                                                                                                     \
        const kl_value *edit_x_ = (x);                                                                       \
        const kl_value **edit_o_ = (o);                                                                      \
        const kl_value *edit_n_ = kl_value_with_at(*edit_o_, edit_x_, __VA_ARGS__, NULL);                    \
        kl_value_unref(edit_x_);                                                                             \
        kl_value_unref(*edit_o_);                                                                            \
        *edit_o_ = edit_n_;                                                                                  \
    } while (0)
#define KL_CUT(o, ...) KL_EDIT(o, (const kl_value *)NULL, __VA_ARGS__)

/* *o takes over the reference `n`; the old one is dropped. */
static inline void kl__replace(const kl_value **o, const kl_value *n)
{
    kl_value_unref(*o);
    *o = n;
}

#endif
