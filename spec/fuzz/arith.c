/* arith.c - the laws of quantities, whatever the two numbers are. The text is two quantities with a comma
 * between. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "model/quantity.h"

static void laws_of_one(const kl_quantity *a)
{
    kl_quantity *neg = kl_quantity_neg(a), *zero = kl_quantity_add(a, neg), *twice = kl_quantity_add(a, a),
                *by_two = kl_quantity_mul(a, 2, NULL);
    kl_quantity *rounded, *back;
    int64_t v;
    bool exact;

    CLAIM(kl_quantity_sign(neg) == -kl_quantity_sign(a));
    CLAIM(kl_quantity_sign(zero) == 0);
    CLAIM(kl_quantity_cmp(twice, by_two) == 0);
    rounded = kl_quantity_round_up(a, -3, &exact);
    CLAIM(exact == (kl_quantity_cmp(rounded, a) == 0));
    CLAIM(kl_quantity_cmp(rounded, a) * kl_quantity_sign(a) >= 0);
    if (kl_quantity_milli(rounded, &v)) {
        back = kl_quantity_new(v, -3, KL_DECIMAL_SI);
        CLAIM(kl_quantity_cmp(back, rounded) == 0);
        kl_quantity_free(back);
    }
    kl_quantity_free(neg);
    kl_quantity_free(zero);
    kl_quantity_free(twice);
    kl_quantity_free(by_two);
    kl_quantity_free(rounded);
}

static void laws_of_two(const kl_quantity *a, const kl_quantity *b)
{
    kl_quantity *sum = kl_quantity_add(a, b), *back = kl_quantity_sub(sum, b), *apart = kl_quantity_sub(a, b);
    int cmp = kl_quantity_cmp(a, b);
    double x = kl_quantity_double(a), y = kl_quantity_double(b);

    CLAIM(kl_quantity_cmp(back, a) == 0);
    CLAIM(kl_quantity_cmp(b, a) == -cmp);
    CLAIM(kl_quantity_sign(apart) == cmp);
    CLAIM(cmp <= 0 || x >= y);
    CLAIM(cmp >= 0 || x <= y);
    CLAIM(cmp != 0 || x == y);
    kl_quantity_free(sum);
    kl_quantity_free(back);
    kl_quantity_free(apart);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *comma = size ? memchr(data, ',', size) : NULL;
    size_t first = comma ? (size_t)(comma - (const char *)data) : 0;
    kl_quantity *a = NULL, *b = NULL;

    if (!comma || kl_quantity_parsen((const char *)data, first, &a, NULL))
        return 0;
    if (!kl_quantity_parsen(comma + 1, size - first - 1, &b, NULL)) {
        laws_of_one(a);
        laws_of_two(a, b);
    }
    kl_quantity_free(a);
    kl_quantity_free(b);
    return 0;
}
