/* scalar.c - what a plain YAML scalar means, as sigs.k8s.io/yaml (go-yaml v2, YAML 1.1) reads it.
 *
 * The first character decides what is tried: digits and signs are numbers, a few letters are words, the
 * rest is text. Integral floats come out as integers, since the Go stack sends them through JSON, where
 * 1.0 is 1. */
#include "yaml/scalar.h"

#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "value/intern.h"
#include "value/number.h"

#define INTEGRAL_MAX 1e15 /* beyond it not all digits of a double are exact */

static bool in(const char *s, size_t n, const char *const *words)
{
    for (; *words; words++)
        if (**words == *s && strlen(*words) == n && !memcmp(*words, s, n))
            return true;
    return false;
}

static bool infinite_or_nan(const char *s, size_t n)
{
    static const char *const words[] = {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf",
        "+.INF", "-.inf", "-.Inf", "-.INF", NULL};
    return in(s, n, words);
}

/* Go's strconv.ParseInt and ParseUint with base 0. */
static const kl_value *integer(const char *s, size_t n)
{
    const char *p = s, *end = s + n;
    bool minus = p < end && *p == '-';
    unsigned base = 10;
    uint64_t u = 0;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (end - p >= 2 && *p == '0') {
        char c = (char)(p[1] | 32);
        base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
        p += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
    }
    if (p == end)
        return NULL;
    for (; p < end; p++) {
        char c = *p, l = (char)(c | 32);
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
            : l >= 'a' && l <= 'f'            ? (unsigned)(l - 'a' + 10)
                                              : 99;
        if (digit >= base || __builtin_mul_overflow(u, base, &u) || __builtin_add_overflow(u, digit, &u))
            return NULL;
    }
    if (!minus)
        return kl_value_of_uint(u);
    return u <= (uint64_t)INT64_MAX + 1 ? kl_value_of_int((int64_t)(0 - u)) : NULL;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_float(const char *p, const char *end)
{
    size_t whole = 0, part = 0;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        whole++;
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9'; p++)
            part++;
    if (!whole && !part)
        return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        if (p == end)
            return false;
        while (p < end && *p >= '0' && *p <= '9')
            p++;
    }
    return p == end;
}

static const kl_value *number(const char *s, size_t n)
{
    char *plain = kl_alloc(n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] != '_')
            plain[len++] = s[i];
    plain[len] = '\0';
    const kl_value *v = integer(plain, len);
    double d;
    if (!v && looks_float(plain, plain + len)) {
        const char *from = plain + (*plain == '+');
        if (kl__double_parse(from, len - (size_t)(from - plain), &d))
            v = d == trunc(d) && fabs(d) < INTEGRAL_MAX ? kl_value_of_int((int64_t)d) : kl_value_of_double(d);
    }
    kl_free(plain);
    return v;
}

const kl_value *kl__scalar_plain(const char *s, size_t n)
{
    static const char *const nulls[] = {"~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", NULL};
    static const char *const falses[] = {
        "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", NULL};
    if (!n)
        return KL__NULL;
    const kl_value *v = NULL;
    if (strchr("+-.0123456789", *s)) {
        if (infinite_or_nan(s, n))
            return NULL;
        v = number(s, n);
    } else if (in(s, n, nulls)) {
        v = KL__NULL;
    } else if (in(s, n, trues)) {
        v = KL__TRUE;
    } else if (in(s, n, falses)) {
        v = KL__FALSE;
    }
    return v ? v : kl_value_of_strn(s, n);
}
