/* quantity_impl.h - internals shared by the files of quantity. */
#ifndef KL_MODEL_QUANTITY_IMPL_H
#define KL_MODEL_QUANTITY_IMPL_H

#include "value/bignum.h"
#include "model/quantity.h"

/* The amount is m * 10^scale, where m is `value` or, when `big`, `n`. The two forms are part of the
 * behaviour (they round differently, and only the first answers AsInt64), so a big one that shrinks stays
 * big. */
struct kl_quantity {
    kl_quantity_format format;
    bool big;
    int32_t scale; /* above zero at most KL_QUANTITY_DIGITS_MAX */
    int64_t value; /* 0 when big */
    kl_bignum n;   /* zero when not big */
    char *text;    /* as typed, when that is how it is written back; or NULL */
};

kl_quantity *kl__quantity_make(kl_quantity_format f, int64_t value, int32_t scale);
void kl__quantity_to_big(kl_quantity *q);
/* v * 10^up and v / 10^down away from zero. False: does not fit / something was rounded. */
bool kl__scale_up(int64_t v, int64_t up, int64_t *out);
bool kl__scale_down(int64_t v, int64_t down, int64_t *out);

#endif
