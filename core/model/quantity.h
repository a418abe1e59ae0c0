/* quantity.h - resource.Quantity: an exact decimal with a remembered format, in two forms as in apimachinery:
 * 64 bits and a power of ten where that suffices, all digits otherwise. Immutable after creation: any thread
 * may read it until it is freed. */
#ifndef KL_MODEL_QUANTITY_H
#define KL_MODEL_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

typedef struct kl_quantity kl_quantity; /* heap object, immutable after creation */
typedef enum kl_quantity_format { KL_DECIMAL_SI, KL_BINARY_SI, KL_DECIMAL_EXPONENT } kl_quantity_format;

/* The most digits that a quantity may have when written out (KL_ETOOBIG above): "1e2000000000" is twelve
 * bytes, and two gigabytes written out. */
#define KL_QUANTITY_DIGITS_MAX 10000

KL_NODISCARD kl_status kl_quantity_parse(const char *text, kl_quantity **out, kl_err *err);
KL_NODISCARD kl_status kl_quantity_parsen(const char *text, size_t n, kl_quantity **out, kl_err *err);
/* kl_quantity_milli for the most common texts: digits alone, or with m, k, M, G, Ki, Mi or Gi. False: another
 * form, invalid, or too large. Allocates nothing. */
bool kl_quantity_read_milli(const char *text, size_t n, int64_t *out);
/* From JSON: a string, possibly with surrounding white space, a number, or null, which is 0. */
KL_NODISCARD kl_status kl_quantity_parse_json(const char *json, size_t n, kl_quantity **out, kl_err *err);
/* value * 10^scale, |scale| <= KL_QUANTITY_DIGITS_MAX */
kl_quantity *kl_quantity_new(int64_t value, int scale, kl_quantity_format f);
size_t kl_quantity_bytes(const kl_quantity *q); /* its memory */
void kl_quantity_free(kl_quantity *q);
kl_quantity *kl_quantity_copy(const kl_quantity *q);
/* new; format of a (of b when a is zero), as Go */
kl_quantity *kl_quantity_add(const kl_quantity *a, const kl_quantity *b);
kl_quantity *kl_quantity_sub(const kl_quantity *a, const kl_quantity *b);
kl_quantity *kl_quantity_neg(const kl_quantity *a);
kl_quantity *kl_quantity_mul(const kl_quantity *a, int64_t by, bool *exact64);
int kl_quantity_cmp(const kl_quantity *a, const kl_quantity *b);
int kl_quantity_sign(const kl_quantity *q);
kl_quantity_format kl_quantity_format_of(const kl_quantity *q);
/* String(): the input as typed where Go caches it; caller frees */
char *kl_quantity_text(const kl_quantity *q);
/* Whether a text is canonical as it is, for the most common ones: digits alone, or with m. False does not
 * mean that it is not. */
bool kl_quantity_is_canonical(const char *text, size_t n);
/* canonical text; parts when asked; caller frees */
char *kl_quantity_canonical(const kl_quantity *q, char **mantissa, char **suffix);
/* The integer in units of 1, of 1/1000, of 10^scale. A fraction rounds away from zero in the 64-bit form
 * and up in the long form, as in apimachinery. False when it does not fit (out is clamped). */
bool kl_quantity_value(const kl_quantity *q, int64_t *out);
bool kl_quantity_milli(const kl_quantity *q, int64_t *out);
bool kl_quantity_scaled(const kl_quantity *q, int scale, int64_t *out);
/* true only for whole numbers in the 64-bit form */
bool kl_quantity_as_int64(const kl_quantity *q, int64_t *out);
double kl_quantity_double(const kl_quantity *q); /* the nearest double */
/* Rounds away from zero to a multiple of 10^scale. Sets *exact (may be NULL) to true if q was such a multiple
 * already. */
kl_quantity *kl_quantity_round_up(const kl_quantity *q, int scale, bool *exact);
const char *kl_quantity_format_name(kl_quantity_format f); /* "DecimalSI", "BinarySI", "DecimalExponent" */

#endif
