/* bignum.h - whole numbers of any size, in decimal, because all operations of quantities are decimal: cut
 * digits off, add zeros, compare, print. The number is sign and magnitude; zero has no limbs and no sign.
 * Owner thread. */
#ifndef KL_VALUE_BIGNUM_H
#define KL_VALUE_BIGNUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

typedef struct kl_bignum {
    uint32_t *limb; /* nine digits each, least significant first; the last one is not zero */
    size_t len, cap;
    bool neg;
} kl_bignum;

#define KL_BIGNUM_INIT ((kl_bignum){0})

void kl_bignum_fini(kl_bignum *n);
/* `to` is initialised; what it held is freed */
void kl_bignum_copy(kl_bignum *to, const kl_bignum *from);
void kl_bignum_set(kl_bignum *n, int64_t v);
void kl_bignum_set_digits(kl_bignum *n, const char *digits, size_t len, bool neg); /* '0'..'9' only */

int kl_bignum_sign(const kl_bignum *n);
size_t kl_bignum_digits(const kl_bignum *n); /* 0 for zero */
int kl_bignum_cmp(const kl_bignum *a, const kl_bignum *b);
/* false when it does not fit, out is then clamped */
bool kl_bignum_get(const kl_bignum *n, int64_t *out);
void kl_bignum_print(const kl_bignum *n, kl_buf *out);

void kl_bignum_add(kl_bignum *n, const kl_bignum *b); /* n += b */
void kl_bignum_mul(kl_bignum *n, uint64_t by);
void kl_bignum_shift_up(kl_bignum *n, size_t digits); /* n *= 10^digits */
/* n /= 10^digits towards zero; true when something was lost */
bool kl_bignum_shift_down(kl_bignum *n, size_t digits);
/* towards zero; the remainder's magnitude */
uint32_t kl_bignum_div(kl_bignum *n, uint32_t by);
/* one further from zero in that direction (n is zero or of that sign) */
void kl_bignum_bump(kl_bignum *n, bool neg);

#endif
