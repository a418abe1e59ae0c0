/* number.c - doubles as text, in the C locale whatever setlocale said.
 *
 * Reading: a mantissa below 2^53 times or over a power of ten up to 10^22 is one exact operation;
 * everything else goes to strtod. Writing: 15, 16 or 17 digits, the first that reads back, laid out by
 * hand. */
#include "value/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

#define EXACT_POWER_MAX 22 /* 10^22 is the last power of ten that a double holds exactly */
#define TEXT_INLINE 128
#define INTEGER_MAX 0x1p53 /* above, a row of digits would read back as another integer */

static const double powers[EXACT_POWER_MAX + 1] = {
    1e0,
    1e1,
    1e2,
    1e3,
    1e4,
    1e5,
    1e6,
    1e7,
    1e8,
    1e9,
    1e10,
    1e11,
    1e12,
    1e13,
    1e14,
    1e15,
    1e16,
    1e17,
    1e18,
    1e19,
    1e20,
    1e21,
    1e22,
};

static locale_t c_locale;

__attribute__((constructor)) static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

__attribute__((destructor(101))) static void free_locale(void) /* after tell_leaks, which writes numbers */
{
    if (c_locale)
        freelocale(c_locale);
    c_locale = (locale_t)0;
}

static double read_c(const char *text)
{
    return c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
}

/* Clinger's fast path. False when the number needs more care. */
static bool parse_exact(const char *p, const char *end, double *out)
{
    bool minus = p < end && *p == '-', point = false, any = false;
    uint64_t m = 0;
    int power = 0, exponent = 0;
    for (p += minus; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (m >= ((uint64_t)1 << 53) / 10)
            return false;
        m = m * 10 + (uint64_t)(*p - '0');
        power -= point;
        any = true;
    }
    if (p < end) {
        bool down = p + 1 < end && p[1] == '-';
        for (p += p + 1 < end && (p[1] == '-' || p[1] == '+') ? 2 : 1; p < end; p++) {
            if (exponent > 1000)
                return false;
            exponent = exponent * 10 + (*p - '0');
        }
        power += down ? -exponent : exponent;
    }
    if (!any || power > EXACT_POWER_MAX || power < -EXACT_POWER_MAX)
        return false;
    double x = power < 0 ? (double)m / powers[-power] : (double)m * powers[power];
    *out = minus ? -x : x;
    return true;
}

bool kl__double_parse(const char *text, size_t n, double *out)
{
    if (parse_exact(text, text + n, out))
        return true;
    char small[TEXT_INLINE], *s = n < sizeof small ? small : kl_alloc(n + 1);
    memcpy(s, text, n);
    s[n] = '\0';
    double x = read_c(s);
    if (s != small)
        kl_free(s);
    if (isinf(x))
        return false;
    *out = x;
    return true;
}

char *kl__double_format(double x, char out[KL__DOUBLE_MAX])
{
    char e[KL__DOUBLE_MAX], digits[24];
    bool subnormal = fabs(x) < DBL_MIN; /* subnormal numbers hold fewer digits than 15 */
    for (int precision = subnormal ? 0 : 14; precision <= 16; precision++) {
        snprintf(e, sizeof e, "%.*e", precision, x);
        for (char *p = e; *p; p++) /* the host's locale may have its own decimal point */
            if (!strchr("0123456789+-e", *p)) {
                *p = '.';
                size_t wide = strspn(p + 1, "0123456789") ? 0 : strcspn(p + 1, "0123456789");
                memmove(p + 1, p + 1 + wide, strlen(p + 1 + wide) + 1);
            }
        if (read_c(e) == x)
            break;
    }
    size_t n = 0;
    int exponent = atoi(strchr(e, 'e') + 1);
    for (const char *p = e; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    char *o = out;
    if (signbit(x))
        *o++ = '-';
    bool reads_as_integer = fabs(x) >= INTEGER_MAX && n <= (size_t)exponent + 1;
    if (x != 0 && (exponent < -6 || exponent >= 21 || reads_as_integer)) {
        *o++ = digits[0];
        if (n > 1) {
            *o++ = '.';
            memcpy(o, digits + 1, n - 1);
            o += n - 1;
        }
        sprintf(o, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        if (exponent < 0 && exponent > -10)
            sprintf(o, "e-%d", -exponent); /* Go cleans e-09 to e-9 */
        return out;
    }
    if (exponent < 0) {
        *o++ = '0';
        *o++ = '.';
        for (int i = -1; i > exponent; i--)
            *o++ = '0';
        memcpy(o, digits, n);
        o += n;
    } else {
        for (int i = 0; i <= exponent; i++)
            *o++ = (size_t)i < n ? digits[i] : '0';
        if (n > (size_t)exponent + 1) {
            *o++ = '.';
            memcpy(o, digits + exponent + 1, n - (size_t)exponent - 1);
            o += n - (size_t)exponent - 1;
        }
    }
    *o = '\0';
    return out;
}
