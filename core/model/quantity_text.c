/* quantity_text.c - quantity to text: the shortest whole mantissa whose suffix is of the quantity's
 * family.
 *
 * Decimal: the exponent goes down to a multiple of three. Binary: factors of 1024 are taken out; what is
 * below 1024 or not whole is written in decimal. A power of ten past E has no suffix, and is printed
 * without one, as apimachinery does. */
#include <string.h>
#include "base/mem.h"
#include "model/quantity_impl.h"

static void strip_decimal(kl_bignum *n, int64_t *exponent)
{
    kl_bignum cut = KL_BIGNUM_INIT;

    /* Zero limbs go first, so that a number of n digits takes about n/9 steps and not n. */
    while (n->len > 1 && n->limb[0] == 0) {
        kl_bignum_shift_down(n, 9);
        *exponent += 9;
    }
    for (kl_bignum_copy(&cut, n); n->len && kl_bignum_div(&cut, 10) == 0; kl_bignum_copy(n, &cut))
        ++*exponent;
    kl_bignum_fini(&cut);
    while (*exponent % 3) {
        kl_bignum_shift_up(n, 1);
        --*exponent;
    }
}

static void strip_binary(kl_bignum *n, int64_t *exponent)
{
    kl_bignum cut = KL_BIGNUM_INIT;

    for (kl_bignum_copy(&cut, n); n->len && kl_bignum_div(&cut, 1024) == 0; kl_bignum_copy(n, &cut))
        ++*exponent;
    kl_bignum_fini(&cut);
}

static const char *decimal_suffix(int64_t exponent)
{
    static const char *const suffix[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};

    return exponent < -9 || exponent > 18 ? "" : suffix[exponent / 3 + 3];
}

static const char *binary_suffix(int64_t thousands)
{
    static const char *const suffix[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

    return thousands > 6 ? "" : suffix[thousands];
}

/* Is q a whole number of at least 1024 in magnitude? Then *n is that number. */
static bool whole_binary(const kl_quantity *q, kl_bignum *n)
{
    static const int64_t kilo = 1024;
    kl_bignum limit = KL_BIGNUM_INIT;
    bool fraction = false, large;

    kl_bignum_copy(n, &q->n);
    if (!q->big)
        kl_bignum_set(n, q->value);
    if (q->scale >= 0)
        kl_bignum_shift_up(n, (size_t)q->scale);
    else
        fraction = kl_bignum_shift_down(n, (size_t)-q->scale);
    kl_bignum_set(&limit, n->neg ? -kilo : kilo);
    large = n->neg ? kl_bignum_cmp(n, &limit) <= 0 : kl_bignum_cmp(n, &limit) >= 0;
    kl_bignum_fini(&limit);
    return large && !fraction;
}

static void write_parts(const kl_quantity *q, kl_buf *mantissa, kl_buf *suffix)
{
    kl_bignum n = KL_BIGNUM_INIT;
    int64_t exponent = 0;

    if (kl_quantity_sign(q) == 0) {
        kl_buf_putc(mantissa, '0');
        kl_buf_puts(suffix, "");
        return;
    }
    if (q->format == KL_BINARY_SI && whole_binary(q, &n)) {
        /* INT64_MIN, whose magnitude has no 64-bit form, is never divided. */
        if (q->big || q->value != INT64_MIN || q->scale != 0)
            strip_binary(&n, &exponent);
        kl_buf_puts(suffix, binary_suffix(exponent));
    } else {
        kl_bignum_copy(&n, &q->n);
        if (!q->big)
            kl_bignum_set(&n, q->value);
        exponent = q->scale;
        strip_decimal(&n, &exponent);
        if (q->format != KL_DECIMAL_EXPONENT)
            kl_buf_puts(suffix, decimal_suffix(exponent));
        else if (exponent)
            kl_buf_printf(suffix, "e%lld", (long long)exponent);
        else
            kl_buf_puts(suffix, "");
    }
    kl_bignum_print(&n, mantissa);
    kl_bignum_fini(&n);
}

char *kl_quantity_canonical(const kl_quantity *q, char **mantissa, char **suffix)
{
    kl_buf m = KL_BUF_INIT, s = KL_BUF_INIT, whole = KL_BUF_INIT;

    write_parts(q, &m, &s);
    kl_buf_puts(&whole, kl_buf_str(&m));
    kl_buf_puts(&whole, kl_buf_str(&s));
    if (mantissa)
        *mantissa = kl_strdup(kl_buf_str(&m));
    if (suffix)
        *suffix = kl_strdup(kl_buf_str(&s));
    kl_buf_fini(&m);
    kl_buf_fini(&s);
    return kl_buf_take(&whole);
}

char *kl_quantity_text(const kl_quantity *q)
{
    return q->text ? kl_strdup(q->text) : kl_quantity_canonical(q, NULL, NULL);
}
