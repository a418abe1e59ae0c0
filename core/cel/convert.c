/* convert.c - int(), uint(), double(), string(), bytes(), bool(), duration(), timestamp(). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"
#include "model/time.h"
#include "value/number.h"

#define EXPONENT_FROM 6 /* as in Go's shortest form */

static kl__cval cannot(kl__cev *e, kl__cval v, const char *to)
{
    return kl__cval_err(e, "type conversion error from '%s' to '%s'", kl__cval_type(v)->name, to);
}

static kl__cval to_same(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return a[0];
}

/* ---------------------------------------------------------------- numbers */

/* Decimal digits with a sign, nothing else. */
static bool digits(kl__cval v, bool sign)
{
    size_t i = sign && v.s.n && (v.s.p[0] == '-' || v.s.p[0] == '+');
    if (i == v.s.n || v.s.n > 24)
        return false;
    for (; i < v.s.n; i++)
        if (v.s.p[i] < '0' || v.s.p[i] > '9')
            return false;
    return true;
}

static kl__cval to_int(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    switch (a[0].kind) {
    case KL_C_UINT:
        return a[0].u > INT64_MAX ? kl__cval_err(e, "integer overflow") : KL__CINT((int64_t)a[0].u);
    case KL_C_DOUBLE:
        if (isnan(a[0].d) || a[0].d <= -9223372036854775808.0 || a[0].d >= 9223372036854775808.0)
            return kl__cval_err(e, "integer overflow");
        return KL__CINT((int64_t)a[0].d);
    case KL_C_TIME: return KL__CINT(a[0].t.sec);
    case KL_C_DURATION: return KL__CINT(a[0].i);
    default: break;
    }
    errno = 0;
    int64_t i = digits(a[0], true) ? strtoll(a[0].s.p, NULL, 10) : 0;
    return errno || !digits(a[0], true) ? cannot(e, a[0], "int") : KL__CINT(i);
}

static kl__cval to_uint(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval r = {.kind = KL_C_UINT};
    if (a[0].kind == KL_C_INT || a[0].kind == KL_C_DOUBLE) {
        bool is_int = a[0].kind == KL_C_INT;
        if (is_int ? a[0].i < 0 : isnan(a[0].d) || a[0].d < 0 || a[0].d >= 18446744073709551616.0)
            return kl__cval_err(e, "unsigned integer overflow");
        r.u = is_int ? (uint64_t)a[0].i : (uint64_t)a[0].d;
        return r;
    }
    errno = 0;
    r.u = digits(a[0], false) ? strtoull(a[0].s.p, NULL, 10) : 0;
    return errno || !digits(a[0], false) ? cannot(e, a[0], "uint") : r;
}

static bool special(kl__cval v, double *out)
{
    static const struct {
        const char *text;
        double d;
    } all[] = {{"nan", NAN}, {"inf", INFINITY}, {"+inf", INFINITY}, {"-inf", -INFINITY},
        {"infinity", INFINITY}, {"+infinity", INFINITY}, {"-infinity", -INFINITY}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (v.s.n == strlen(all[i].text) && !strcasecmp(v.s.p, all[i].text)) {
            *out = all[i].d;
            return true;
        }
    return false;
}

/* What Go reads as a decimal number. */
static bool real(kl__cval v)
{
    size_t i = v.s.n && (v.s.p[0] == '-' || v.s.p[0] == '+'), seen = 0;
    while (i < v.s.n && v.s.p[i] >= '0' && v.s.p[i] <= '9') {
        i++;
        seen++;
    }
    if (i < v.s.n && v.s.p[i] == '.')
        for (i++; i < v.s.n && v.s.p[i] >= '0' && v.s.p[i] <= '9'; i++)
            seen++;
    if (seen && i < v.s.n && (v.s.p[i] == 'e' || v.s.p[i] == 'E')) {
        i++;
        i += i < v.s.n && (v.s.p[i] == '-' || v.s.p[i] == '+');
        if (i == v.s.n)
            return false;
        while (i < v.s.n && v.s.p[i] >= '0' && v.s.p[i] <= '9')
            i++;
    }
    return seen && i == v.s.n;
}

static kl__cval to_double(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    double d;
    if (a[0].kind == KL_C_INT)
        return KL__CDOUBLE((double)a[0].i);
    if (a[0].kind == KL_C_UINT)
        return KL__CDOUBLE((double)a[0].u);
    if (special(a[0], &d))
        return KL__CDOUBLE(d);
    if (!real(a[0]))
        return cannot(e, a[0], "double");
    bool minus = a[0].s.p[0] == '-', plus = a[0].s.p[0] == '+';
    const char *p = a[0].s.p + (minus || plus);
    char *text = kl_sprintf("%s%s", *p == '.' ? "0" : "", p);
    bool fits = kl__double_parse(text, strlen(text), &d);
    kl_free(text);
    return fits ? KL__CDOUBLE(minus ? -d : d) : cannot(e, a[0], "double");
}

static kl__cval to_bool(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"},
                             *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    for (size_t i = 0; i < 6; i++)
        if (!strcmp(a[0].s.p, yes[i]) || !strcmp(a[0].s.p, no[i]))
            return KL__CBOOL(!strcmp(a[0].s.p, yes[i]));
    return cannot(e, a[0], "bool");
}

/* ---------------------------------------------------------------- texts */

/* The fewest digits that read back as d; their number, and the place of the point. */
static int shortest(double d, char out[32], int *point)
{
    char text[40];
    for (int p = 0; p <= 17; p++) {
        snprintf(text, sizeof text, "%.*e", p, d);
        double back;
        if (!kl__double_parse(text, strlen(text), &back))
            back = strtod(text, NULL);
        if (back == d)
            break;
    }
    int n = 0;
    char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            out[n++] = *p;
    while (n > 1 && out[n - 1] == '0')
        n--;
    *point = atoi(p + 1) + 1;
    return n;
}

void kl__cel_double(double d, kl_buf *out)
{
    char num[32];
    int point, n;
    if (isnan(d) || isinf(d)) {
        kl_buf_puts(out, isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf");
        return;
    }
    if (signbit(d))
        kl_buf_putc(out, '-');
    if (d == 0) {
        kl_buf_putc(out, '0');
        return;
    }
    n = shortest(fabs(d), num, &point);
    if (point - 1 < -4 || point - 1 >= EXPONENT_FROM) {
        kl_buf_printf(out, "%c%s%.*se%c%02d", num[0], n > 1 ? "." : "", n - 1, num + 1, point < 1 ? '-' : '+',
            abs(point - 1));
        return;
    }
    if (point <= 0)
        kl_buf_puts(out, "0.");
    for (int i = point; i < 0; i++)
        kl_buf_putc(out, '0');
    for (int i = 0; i < n || i < point; i++) {
        if (i == point && i > 0)
            kl_buf_putc(out, '.');
        kl_buf_putc(out, i < n ? num[i] : '0');
    }
}

void kl__cel_seconds(int64_t ns, kl_buf *out)
{
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    kl_buf_printf(out, "%s%llu", ns < 0 ? "-" : "", (unsigned long long)(u / 1000000000));
    if (u % 1000000000) {
        char frac[16];
        snprintf(frac, sizeof frac, ".%09llu", (unsigned long long)(u % 1000000000));
        size_t n = strlen(frac);
        while (frac[n - 1] == '0')
            frac[--n] = 0;
        kl_buf_puts(out, frac);
    }
    kl_buf_putc(out, 's');
}

static kl__cval to_string(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl_buf b = KL_BUF_INIT;
    if (a[0].kind == KL_C_BYTES && !kl_utf8_valid(a[0].s.p, a[0].s.n))
        return kl__cval_err(e, "invalid UTF-8 in bytes, cannot convert to string");
    if (a[0].kind == KL_C_DURATION)
        kl__cel_seconds(a[0].i, &b);
    else
        kl__cval_show(e, a[0], &b);
    return kl__cval_take(e, &b);
}

static kl__cval to_bytes(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    kl__cval v = a[0];
    v.kind = KL_C_BYTES;
    return v;
}

/* ---------------------------------------------------------------- times */

static kl__cval to_duration(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval d = {.kind = KL_C_DURATION};
    if (a[0].kind == KL_C_INT) {
        d.i = a[0].i;
        return d;
    }
    return kl_duration_parse(a[0].s.p, &d.i, NULL) ? cannot(e, a[0], "google.protobuf.Duration") : d;
}

static kl__cval to_timestamp(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval t = {.kind = KL_C_TIME};
    if (a[0].kind == KL_C_INT) {
        t.t.sec = a[0].i;
        if (a[0].i < -62135596800 || a[0].i > 253402300799)
            return kl__cval_err(e, "timestamp overflow");
        return t;
    }
    if (kl_time_parse(a[0].s.p, &t.t.sec, &t.t.ns, NULL))
        return cannot(e, a[0], "google.protobuf.Timestamp");
    return t.t.sec < -62135596800 || t.t.sec > 253402300799 ? kl__cval_err(e, "timestamp overflow") : t;
}

static uint64_t cost_text(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return (kl__cval_size(a[0]) + 9) / 10;
}

const kl__cfunc kl__cel_conversions[] = {
    {"int", "i>i", to_same, NULL},
    {"int", "u>i", to_int, NULL},
    {"int", "d>i", to_int, NULL},
    {"int", "s>i", to_int, NULL},
    {"int", "t>i", to_int, NULL},
    {"int", "D>i", to_int, NULL},
    {"uint", "u>u", to_same, NULL},
    {"uint", "i>u", to_uint, NULL},
    {"uint", "d>u", to_uint, NULL},
    {"uint", "s>u", to_uint, NULL},
    {"double", "d>d", to_same, NULL},
    {"double", "i>d", to_double, NULL},
    {"double", "u>d", to_double, NULL},
    {"double", "s>d", to_double, NULL},
    {"bool", "b>b", to_same, NULL},
    {"bool", "s>b", to_bool, NULL},
    {"string", "s>s", to_same, NULL},
    {"string", "b>s", to_string, NULL},
    {"string", "y>s", to_string, cost_text},
    {"string", "d>s", to_string, NULL},
    {"string", "D>s", to_string, NULL},
    {"string", "i>s", to_string, NULL},
    {"string", "t>s", to_string, NULL},
    {"string", "u>s", to_string, NULL},
    {"bytes", "y>y", to_same, NULL},
    {"bytes", "s>y", to_bytes, cost_text},
    {"duration", "D>D", to_same, NULL},
    {"duration", "i>D", to_duration, NULL},
    {"duration", "s>D", to_duration, NULL},
    {"timestamp", "t>t", to_same, NULL},
    {"timestamp", "i>t", to_timestamp, NULL},
    {"timestamp", "s>t", to_timestamp, NULL},
    {NULL},
};
