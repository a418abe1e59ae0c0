/* quantity_parse.c - text to quantity.
 *
 *   text = [+-] digits* [. digits*] suffix
 *   suffix = "" n u m k M G T P E (powers of 1000) | Ki Mi Gi Ti Pi Ei (powers of 1024) | e or E and a
 *   whole number
 *
 * A number of up to 18 digits becomes the 64-bit form. Everything else becomes the long form: rounded away
 * from zero to nanos, and a binary one capped at 2^63-1. No digits at all is zero, unless it would have
 * become the long form. */
#include <string.h>
#include "base/mem.h"
#include "model/quantity_impl.h"

#define FAST_DIGITS 18 /* always fit 64 bits */
#define NANO (-9)      /* the smallest scale that is kept */
#define EXPONENT_MAX                                                                                         \
    ((int64_t)1 << 40) /* beyond every limit here; keeps the arithmetic on exponents inside 64 bits */

typedef struct parts {
    bool neg;
    const char *whole;
    size_t nwhole; /* without leading zeros */
    const char *frac;
    size_t nfrac;
    const char *suffix;
    size_t nsuffix;
    bool digits; /* there is at least one, a leading zero counts */
} parts;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static size_t span_digits(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && is_digit(s[i]))
        i++;
    return i;
}

static bool split(const char *s, size_t n, parts *p)
{
    const char *end = s + n;
    const char *start;

    *p = (parts){0};
    if (!n)
        return false;
    if (*s == '-' || *s == '+')
        p->neg = *s++ == '-';
    start = s;
    while (s < end && *s == '0')
        s++;
    p->whole = s;
    p->nwhole = span_digits(s, (size_t)(end - s));
    s += p->nwhole;
    p->digits = s > start;
    if (s < end && *s == '.') {
        p->frac = ++s;
        p->nfrac = span_digits(s, (size_t)(end - s));
        s += p->nfrac;
        p->digits |= p->nfrac > 0;
    }
    p->suffix = s;
    p->nsuffix = (size_t)(end - s);
    while (s < end && memchr("eEinumkKMGTP", *s, 12))
        s++;
    if (s < end && (*s == '-' || *s == '+'))
        s++;
    return s + span_digits(s, (size_t)(end - s)) == end;
}

/* The factor of a suffix: 10^exponent, or 2^exponent for KL_BINARY_SI. */
static bool read_suffix(const char *s, size_t n, kl_quantity_format *format, int64_t *exponent)
{
    static const char decimal[] = "num kMGTPE", binary[] = "KMGTPE";
    const char *at;
    bool neg = false;
    int64_t v = 0;

    *exponent = 0;
    *format = KL_DECIMAL_SI;
    if (n == 0)
        return true;
    if (n == 1 && *s != ' ' && (at = memchr(decimal, *s, sizeof decimal - 1))) {
        *exponent = 3 * (at - decimal) + NANO;
        return true;
    }
    if (n == 2 && s[1] == 'i' && (at = memchr(binary, *s, sizeof binary - 1))) {
        *format = KL_BINARY_SI;
        *exponent = 10 * (at - binary + 1);
        return true;
    }
    if (n < 2 || (*s != 'e' && *s != 'E'))
        return false;
    *format = KL_DECIMAL_EXPONENT;
    s++, n--;
    if (*s == '-' || *s == '+')
        neg = *s == '-', s++, n--;
    if (!n)
        return false;
    for (; n; s++, n--) {
        if (!is_digit(*s))
            return false;
        if (v < EXPONENT_MAX)
            v = v * 10 + (*s - '0');
    }
    *exponent = neg ? -v : v;
    return true;
}

/* The 64-bit form if the number fits. The text is kept if it is canonical. */
static bool read_fast(const char *text, size_t n, const parts *p, kl_quantity_format format, int64_t exponent,
    kl_quantity **out)
{
    size_t digits = (p->nwhole ? p->nwhole : 1) + p->nfrac, i;
    int64_t v = 0, scale = exponent - (int64_t)p->nfrac;
    bool as_typed;

    if (format == KL_BINARY_SI) {
        /* Ten bits are about three digits; the whole product must stay below 15. */
        if (p->nfrac || (int64_t)digits + exponent * 3 / 10 + 1 > 15)
            return false;
        scale = 0;
    } else if (digits > FAST_DIGITS || scale < NANO) {
        return false;
    }
    for (i = 0; i < p->nwhole; i++)
        v = v * 10 + (p->whole[i] - '0');
    for (i = 0; i < p->nfrac; i++)
        v = v * 10 + (p->frac[i] - '0');
    if (format == KL_BINARY_SI) {
        as_typed = (v & 7) != 0;
        v *= (int64_t)1 << exponent;
    } else {
        as_typed = scale % 3 == 0 && p->nwhole && !(digits >= 3 && v % 1000 == 0);
        if (v == 0 && scale > KL_QUANTITY_DIGITS_MAX)
            scale = KL_QUANTITY_DIGITS_MAX;
    }
    if (scale > KL_QUANTITY_DIGITS_MAX)
        return false;
    *out = kl__quantity_make(format, p->neg ? -v : v, (int32_t)scale);
    if (as_typed || (n == 1 && *text == '0'))
        (*out)->text = kl_strndup(text, n);
    return true;
}

static void read_digits(const parts *p, kl_bignum *n)
{
    kl_buf digits = KL_BUF_INIT;

    kl_buf_add(&digits, p->whole, p->nwhole);
    if (p->nfrac)
        kl_buf_add(&digits, p->frac, p->nfrac);
    kl_bignum_set_digits(n, kl_buf_str(&digits), digits.len, false);
    kl_buf_fini(&digits);
}

static kl_status read_long(const char *text, size_t n, const parts *p, kl_quantity_format format,
    int64_t exponent, kl_quantity **out, kl_err *err)
{
    kl_quantity *q;
    int64_t scale = -(int64_t)p->nfrac;

    if (format != KL_BINARY_SI)
        scale += exponent;
    if (p->nwhole + p->nfrac > KL_QUANTITY_DIGITS_MAX
        || scale + (int64_t)(p->nwhole + p->nfrac) > KL_QUANTITY_DIGITS_MAX)
        return kl_fail(err, KL_ETOOBIG, "quantity \"%.*s%s\": more than %d digits", (int)(n < 40 ? n : 40),
            text, n > 40 ? "..." : "", KL_QUANTITY_DIGITS_MAX);
    q = kl__quantity_make(format, 0, 0);
    q->big = true;
    read_digits(p, &q->n);
    if (format == KL_BINARY_SI)
        kl_bignum_mul(&q->n, (uint64_t)1 << exponent);
    if (!kl_bignum_sign(&q->n)) {
        q->scale = 0;
    } else {
        if (scale < NANO) {
            if (kl_bignum_shift_down(&q->n, (size_t)(NANO - scale)))
                kl_bignum_bump(&q->n, false);
        } else {
            kl_bignum_shift_up(&q->n, (size_t)(scale - NANO));
        }
        q->scale = NANO;
    }
    if (format == KL_BINARY_SI) {
        kl_quantity *cap = kl__quantity_make(format, INT64_MAX, 0), *one = kl__quantity_make(format, 1, 0);

        if (kl_quantity_cmp(q, cap) > 0) {
            kl_bignum_set(&q->n, INT64_MAX);
            q->scale = 0;
        } else if (kl_bignum_sign(&q->n) && kl_quantity_cmp(q, one) < 0) {
            q->format = KL_DECIMAL_SI; /* fractions of one are not written in powers of 1024 */
        }
        kl_quantity_free(cap);
        kl_quantity_free(one);
    }
    q->n.neg = p->neg && kl_bignum_sign(&q->n);
    *out = q;
    return KL_OK;
}

kl_status kl_quantity_parsen(const char *text, size_t n, kl_quantity **out, kl_err *err)
{
    kl_quantity_format format;
    int64_t exponent;
    parts p;

    if (!split(text, n, &p))
        return kl_fail(err, KL_ESYNTAX,
            "quantity \"%.*s\" is not a number and a suffix, such as 100m, 1.5, 2Gi or 1e3",
            (int)(n < 80 ? n : 80), text);
    if (!read_suffix(p.suffix, p.nsuffix, &format, &exponent))
        return kl_fail(err, KL_ESYNTAX,
            "quantity \"%.*s\": unknown suffix \"%.*s\"; known are n u m k M G T P E, Ki Mi Gi Ti Pi Ei and "
            "e with a number",
            (int)(n < 80 ? n : 80), text, (int)(p.nsuffix < 40 ? p.nsuffix : 40), p.suffix);
    if (read_fast(text, n, &p, format, exponent, out))
        return KL_OK;
    if (!p.digits)
        return kl_fail(err, KL_ESYNTAX, "quantity \"%.*s\" has no digits", (int)(n < 80 ? n : 80), text);
    return read_long(text, n, &p, format, exponent, out, err);
}

bool kl_quantity_read_milli(const char *text, size_t n, int64_t *out)
{
    int64_t v = 0;
    size_t i = 0;

    for (; i < n && i < FAST_DIGITS && is_digit(text[i]); i++)
        v = 10 * v + (text[i] - '0');
    if (i == 0)
        return false;
    int64_t by = 0;
    if (n - i == 0) {
        by = 1000;
    } else if (n - i == 1) {
        switch (text[i]) {
        case 'm': by = 1; break;
        case 'k': by = 1000000; break;
        case 'M': by = 1000000000; break;
        case 'G': by = 1000000000000; break;
        default: break;
        }
    } else if (n - i == 2 && text[i + 1] == 'i') {
        switch (text[i]) {
        case 'K': by = 1000LL << 10; break;
        case 'M': by = 1000LL << 20; break;
        case 'G': by = 1000LL << 30; break;
        default: break;
        }
    }
    return by && !__builtin_mul_overflow(v, by, out);
}

bool kl_quantity_is_canonical(const char *text, size_t n)
{
    size_t digits = n && text[n - 1] == 'm' ? n - 1 : n;
    if (n == 1 && *text == '0')
        return true;
    if (!digits || digits > FAST_DIGITS || *text == '0'
        || (digits >= 3 && !memcmp(text + digits - 3, "000", 3)))
        return false;
    for (size_t i = 0; i < digits; i++)
        if (!is_digit(text[i]))
            return false;
    return true;
}

kl_status kl_quantity_parse(const char *text, kl_quantity **out, kl_err *err)
{
    return kl_quantity_parsen(text, strlen(text), out, err);
}

kl_status kl_quantity_parse_json(const char *json, size_t n, kl_quantity **out, kl_err *err)
{
    if (n == 4 && !memcmp(json, "null", 4)) {
        *out = kl__quantity_make(KL_DECIMAL_SI, 0, 0);
        return KL_OK;
    }
    if (n >= 2 && *json == '"' && json[n - 1] == '"')
        json++, n -= 2;
    for (; n && memchr(" \t\n\v\f\r", *json, 6); n--)
        json++;
    while (n && memchr(" \t\n\v\f\r", json[n - 1], 6))
        n--;
    return kl_quantity_parsen(json, n, out, err);
}
