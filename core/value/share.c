/* share.c - "25%" of a total. */
#include "value/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool percent(const char *s, int64_t *out)
{
    char *end;
    size_t n = strlen(s);

    if (n < 2 || s[n - 1] != '%' || !strchr("+-0123456789", *s))
        return false;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return !errno && end == s + n - 1;
}

static kl_status part(const char *text, int64_t of, int64_t total, bool round_up, int64_t *out, kl_err *err)
{
    int64_t product, whole, rest;

    if (__builtin_mul_overflow(of, total, &product))
        return kl_fail(err, KL_EINVAL, "%s of %lld is more than 64 bits hold", text, (long long)total);
    whole = product / 100;
    rest = product % 100;
    *out = rest && (rest > 0) == round_up ? whole + (round_up ? 1 : -1) : whole;
    return KL_OK;
}

kl_status kl_share_of(const kl_value *v, int64_t total, bool round_up, int64_t *out, kl_err *err)
{
    const char *s = kl_value_str(v);
    int64_t n;

    if (kl_value_type(v) == KL_NULL) {
        *out = 0;
        return KL_OK;
    }
    if (s && percent(s, &n))
        return part(s, n, total, round_up, out, err);
    if (s)
        return kl_fail(
            err, KL_EINVAL, "\"%s\" is not a percentage: write a whole number and %%, such as \"25%%\"", s);
    if (kl_value_int(v, &n) && n >= INT32_MIN && n <= INT32_MAX) {
        *out = n;
        return KL_OK;
    }
    return kl_fail(err, KL_EINVAL, "a 32-bit whole number or a string such as \"25%%\" is expected");
}
