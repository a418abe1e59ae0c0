/* quantity.c - arithmetic on quantities.
 *
 * Work in 64 bits as long as the result fits; else both sides become long and are brought to the smaller
 * scale. The format of the left side wins, unless it is zero: then the right one's. */
#include "model/quantity.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/quantity_impl.h"

#define SCALE_STEPS 18 /* 10^18 is the largest power of ten in 64 bits */

static const int64_t tens[SCALE_STEPS + 1] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
};

kl_quantity *kl__quantity_make(kl_quantity_format f, int64_t value, int32_t scale)
{
    kl_quantity *q = kl_new(kl_quantity);

    q->format = f;
    q->value = value;
    q->scale = scale;
    return q;
}

bool kl__scale_up(int64_t v, int64_t up, int64_t *out)
{
    if (v == 0 || up == 0) {
        *out = v;
        return true;
    }
    return up <= SCALE_STEPS && !__builtin_mul_overflow(v, tens[up], out);
}

bool kl__scale_down(int64_t v, int64_t down, int64_t *out)
{
    int64_t whole = down > SCALE_STEPS ? 0 : v / tens[down];
    bool exact = down > SCALE_STEPS ? v == 0 : v % tens[down] == 0;

    *out = exact ? whole : v > 0 ? whole + 1 : whole - 1;
    return exact;
}

void kl__quantity_to_big(kl_quantity *q)
{
    if (q->big)
        return;
    kl_bignum_set(&q->n, q->value);
    q->value = 0;
    q->big = true;
}

kl_quantity *kl_quantity_new(int64_t value, int scale, kl_quantity_format f)
{
    if (scale > KL_QUANTITY_DIGITS_MAX)
        scale = KL_QUANTITY_DIGITS_MAX;
    if (scale < -KL_QUANTITY_DIGITS_MAX)
        scale = -KL_QUANTITY_DIGITS_MAX;
    return kl__quantity_make(f, value, scale);
}

void kl_quantity_free(kl_quantity *q)
{
    if (!q)
        return;
    kl_bignum_fini(&q->n);
    kl_free(q->text);
    kl_free(q);
}

size_t kl_quantity_bytes(const kl_quantity *q)
{
    return sizeof *q + q->n.cap * sizeof *q->n.limb + (q->text ? strlen(q->text) + 1 : 0);
}

/* A copy that is about to change: without its original text. */
static kl_quantity *copy_to_change(const kl_quantity *q)
{
    kl_quantity *c = kl__quantity_make(q->format, q->value, q->scale);

    c->big = q->big;
    if (q->big)
        kl_bignum_copy(&c->n, &q->n);
    return c;
}

kl_quantity *kl_quantity_copy(const kl_quantity *q)
{
    kl_quantity *c = copy_to_change(q);

    c->text = kl_strdup(q->text);
    return c;
}

int kl_quantity_sign(const kl_quantity *q)
{
    return q->big ? kl_bignum_sign(&q->n) : (q->value > 0) - (q->value < 0);
}

kl_quantity_format kl_quantity_format_of(const kl_quantity *q) { return q->format; }

const char *kl_quantity_format_name(kl_quantity_format f)
{
    return f == KL_DECIMAL_SI ? "DecimalSI" : f == KL_BINARY_SI ? "BinarySI" : "DecimalExponent";
}

/* a += b or a -= b in 64 bits; a is unchanged when that does not fit. */
static bool add_fast(kl_quantity *a, const kl_quantity *b, bool minus)
{
    int64_t x = a->value, y = b->value, sum;
    int32_t scale = a->scale < b->scale ? a->scale : b->scale;

    if (y == 0)
        return true;
    if (x == 0)
        scale = b->scale;
    else if (!kl__scale_up(x, (int64_t)a->scale - scale, &x)
        || !kl__scale_up(y, (int64_t)b->scale - scale, &y))
        return false;
    if (minus ? __builtin_sub_overflow(x, y, &sum) : __builtin_add_overflow(x, y, &sum))
        return false;
    a->value = sum;
    a->scale = scale;
    return true;
}

static kl_quantity *sum(const kl_quantity *a, const kl_quantity *b, bool minus)
{
    kl_quantity *q = copy_to_change(a), *other;

    if (kl_quantity_sign(a) == 0)
        q->format = b->format;
    if (!q->big && !b->big && add_fast(q, b, minus))
        return q;
    other = copy_to_change(b);
    kl__quantity_to_big(q);
    kl__quantity_to_big(other);
    if (minus && other->n.len)
        other->n.neg = !other->n.neg;
    if (q->scale > other->scale) {
        kl_bignum_shift_up(&q->n, (size_t)((int64_t)q->scale - other->scale));
        q->scale = other->scale;
    } else {
        kl_bignum_shift_up(&other->n, (size_t)((int64_t)other->scale - q->scale));
    }
    kl_bignum_add(&q->n, &other->n);
    kl_quantity_free(other);
    return q;
}

kl_quantity *kl_quantity_add(const kl_quantity *a, const kl_quantity *b) { return sum(a, b, false); }

kl_quantity *kl_quantity_sub(const kl_quantity *a, const kl_quantity *b) { return sum(a, b, true); }

kl_quantity *kl_quantity_neg(const kl_quantity *a)
{
    kl_quantity *q = copy_to_change(a);

    if (q->value == INT64_MIN)
        kl__quantity_to_big(q);
    q->value = -q->value;
    if (q->n.len)
        q->n.neg = !q->n.neg;
    return q;
}

/* Multiplies in 64 bits. False: the result needs the long form, because of its size or a fraction. */
static bool mul_fast(kl_quantity *q, int64_t by)
{
    int64_t product, ignored;

    if (q->value == 0)
        return true;
    if (by == 0) {
        q->value = 0;
        q->scale = 0;
        return true;
    }
    if (__builtin_mul_overflow(q->value, by, &product))
        return false;
    if (q->scale > 0 ? !kl__scale_up(product, q->scale, &ignored)
                     : !kl__scale_down(product, -(int64_t)q->scale, &ignored))
        return false;
    q->value = product;
    return true;
}

kl_quantity *kl_quantity_mul(const kl_quantity *a, int64_t by, bool *exact64)
{
    kl_quantity *q = copy_to_change(a);
    bool fits = true;
    int64_t ignored;

    if (q->big || !mul_fast(q, by)) {
        kl__quantity_to_big(q);
        kl_bignum_mul(&q->n, by < 0 ? 0 - (uint64_t)by : (uint64_t)by);
        if (by < 0 && q->n.len)
            q->n.neg = !q->n.neg;
        fits = kl_bignum_get(&q->n, &ignored);
    }
    if (exact64)
        *exact64 = fits;
    return q;
}

/* Places before the decimal point, which may be negative: the magnitude of q is in [10^(p-1), 10^p). */
static int64_t places(const kl_quantity *q) { return (int64_t)kl_bignum_digits(&q->n) + q->scale; }

static int cmp_long(const kl_quantity *a, const kl_quantity *b)
{
    kl_quantity *x = copy_to_change(a), *y = copy_to_change(b);
    int sign = kl_quantity_sign(a), r;

    kl__quantity_to_big(x);
    kl__quantity_to_big(y);
    if (places(x) != places(y)) {
        r = places(x) < places(y) ? -sign : sign;
    } else {
        /* Both have equally many places, so the shift is at most the number of digits. */
        if (x->scale > y->scale)
            kl_bignum_shift_up(&x->n, (size_t)((int64_t)x->scale - y->scale));
        else
            kl_bignum_shift_up(&y->n, (size_t)((int64_t)y->scale - x->scale));
        r = kl_bignum_cmp(&x->n, &y->n);
    }
    kl_quantity_free(x);
    kl_quantity_free(y);
    return r;
}

int kl_quantity_cmp(const kl_quantity *a, const kl_quantity *b)
{
    int sa = kl_quantity_sign(a), sb = kl_quantity_sign(b);
    int64_t apart = (int64_t)a->scale - b->scale;

    if (sa != sb)
        return sa < sb ? -1 : 1;
    if (sa == 0)
        return 0;
    if (!a->big && !b->big && apart >= -SCALE_STEPS && apart <= SCALE_STEPS) {
        __int128 x = (__int128)a->value * (apart > 0 ? tens[apart] : 1),
                 y = (__int128)b->value * (apart < 0 ? tens[-apart] : 1);

        return (x > y) - (x < y);
    }
    return cmp_long(a, b);
}

bool kl_quantity_scaled(const kl_quantity *q, int scale, int64_t *out)
{
    int64_t down = (int64_t)scale - q->scale;
    bool fits;
    kl_bignum n = KL_BIGNUM_INIT;

    if (!q->big) {
        if (down > 0) {
            kl__scale_down(q->value, down, out);
            return true;
        }
        if (kl__scale_up(q->value, -down, out))
            return true;
        *out = q->value < 0 ? INT64_MIN : INT64_MAX;
        return false;
    }
    if (down <= 0 && kl_bignum_sign(&q->n) && (int64_t)kl_bignum_digits(&q->n) - down > SCALE_STEPS + 1) {
        *out = kl_bignum_sign(&q->n) < 0 ? INT64_MIN : INT64_MAX;
        return false;
    }
    kl_bignum_copy(&n, &q->n);
    if (down <= 0)
        kl_bignum_shift_up(&n, (size_t)-down);
    else if (kl_bignum_shift_down(&n, (size_t)down) && !q->n.neg)
        kl_bignum_bump(&n, false);
    fits = kl_bignum_get(&n, out);
    kl_bignum_fini(&n);
    return fits;
}

bool kl_quantity_value(const kl_quantity *q, int64_t *out) { return kl_quantity_scaled(q, 0, out); }

bool kl_quantity_milli(const kl_quantity *q, int64_t *out) { return kl_quantity_scaled(q, -3, out); }

bool kl_quantity_as_int64(const kl_quantity *q, int64_t *out)
{
    return !q->big && q->scale >= 0 && kl__scale_up(q->value, q->scale, out);
}

double kl_quantity_double(const kl_quantity *q)
{
    const int64_t exact = (int64_t)1 << 53;
    kl_buf text = KL_BUF_INIT;
    double d;

    /* Two exact doubles give one correctly rounded result. */
    if (!q->big && q->value <= exact && q->value >= -exact && q->scale >= -SCALE_STEPS && q->scale <= 15)
        return q->scale < 0 ? (double)q->value / (double)tens[-q->scale]
                            : (double)q->value * (double)tens[q->scale];
    if (q->big)
        kl_bignum_print(&q->n, &text);
    else
        kl_buf_printf(&text, "%lld", (long long)q->value);
    kl_buf_printf(&text, "e%d", (int)q->scale);
    d = strtod(kl_buf_str(&text), NULL);
    kl_buf_fini(&text);
    return d;
}

kl_quantity *kl_quantity_round_up(const kl_quantity *q, int scale, bool *exact)
{
    int64_t down = (int64_t)scale - q->scale;
    bool whole = true;
    kl_quantity *r;

    if (!q->big && down <= 0) {
        r = kl_quantity_copy(q);
    } else {
        r = copy_to_change(q);
        if (!q->big) {
            whole = kl__scale_down(q->value, down, &r->value);
        } else if (down > 0 && kl_bignum_shift_down(&r->n, (size_t)down)) {
            whole = false;
            kl_bignum_bump(&r->n, q->n.neg);
        }
        if (down > 0)
            r->scale = scale < KL_QUANTITY_DIGITS_MAX ? scale : KL_QUANTITY_DIGITS_MAX;
    }
    if (exact)
        *exact = whole;
    return r;
}
