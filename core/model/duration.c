/* duration.c - "1h5m0.5s": Go's spelling of durations.
 *
 *   text = [+-] ( "0" | { digits [. digits] unit } )     unit = h m s ms us ns (also with either micro sign)
 *
 * Printing uses hours down to seconds from one second on, and one of ms, us, ns below. */
#include <string.h>
#include "model/time.h"
#include <stdbool.h>

#define MOST ((uint64_t)1 << 63) /* the magnitude of the smallest duration; one more than the largest's */
#define NS 1u
#define US 1000u
#define MS 1000000u
#define S 1000000000u

typedef struct unit {
    const char *name;
    uint64_t ns;
} unit;

static const unit units[] = {
    {"ns", NS},
    {"us", US},
    {"\xc2\xb5s", US},
    {"\xce\xbcs", US},
    {"ms", MS},
    {"s", S},
    {"m", 60ull * S},
    {"h", 3600ull * S},
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static kl_status bad(kl_err *err, const char *text, const char *why)
{
    return kl_fail(
        err, KL_ESYNTAX, "\"%.60s\" is not a duration: %s; write it as 300ms, 1.5h or 2h45m", text, why);
}

/* The whole part, which must not pass MOST. */
static bool read_whole(const char **s, uint64_t *out)
{
    uint64_t v = 0;

    for (; is_digit(**s); ++*s) {
        if (v > MOST / 10)
            return false;
        v = v * 10 + (uint64_t)(**s - '0');
        if (v > MOST)
            return false;
    }
    *out = v;
    return true;
}

/* The fraction as v / scale; digits that do not fit add nothing. */
static void read_fraction(const char **s, uint64_t *out, double *scale)
{
    uint64_t v = 0;
    bool full = false;

    *scale = 1;
    for (; is_digit(**s); ++*s) {
        if (full || v > (MOST - 1) / 10 || v * 10 + (uint64_t)(**s - '0') > MOST) {
            full = true;
            continue;
        }
        v = v * 10 + (uint64_t)(**s - '0');
        *scale *= 10;
    }
    *out = v;
}

static const unit *read_unit(const char **s)
{
    const char *from = *s;
    size_t n, i;

    while (**s && **s != '.' && !is_digit(**s))
        ++*s;
    n = (size_t)(*s - from);
    for (i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == n && !memcmp(units[i].name, from, n))
            return &units[i];
    return NULL;
}

static kl_status read_term(const char *text, const char **s, uint64_t *out, kl_err *err)
{
    uint64_t whole, part = 0;
    double scale = 1;
    const char *from = *s;
    const unit *u;
    bool any;

    if (!read_whole(s, &whole))
        return bad(err, text, "too long");
    any = *s > from;
    if (**s == '.') {
        from = ++*s;
        read_fraction(s, &part, &scale);
        any |= *s > from;
    }
    if (!any)
        return bad(err, text, "expected a number");
    if (!**s || **s == '.')
        return bad(err, text, "a number has no unit");
    u = read_unit(s);
    if (!u)
        return bad(err, text, "unknown unit");
    if (whole > MOST / u->ns)
        return bad(err, text, "too long");
    whole *= u->ns;
    if (part)
        whole += (uint64_t)((double)part * ((double)u->ns / scale));
    if (whole > MOST)
        return bad(err, text, "too long");
    *out = whole;
    return KL_OK;
}

kl_status kl_duration_parse(const char *text, kl_time *out, kl_err *err)
{
    const char *s = text;
    uint64_t total = 0, term = 0;
    bool neg = false;
    kl_status st;

    if (*s == '-' || *s == '+')
        neg = *s++ == '-';
    if (!strcmp(s, "0")) {
        *out = 0;
        return KL_OK;
    }
    if (!*s)
        return bad(err, text, "expected a number");
    while (*s) {
        st = read_term(text, &s, &term, err);
        if (st)
            return st;
        if (term > MOST - total)
            return bad(err, text, "too long");
        total += term;
    }
    if (!neg && total == MOST)
        return bad(err, text, "too long");
    *out = neg ? (kl_time)(0 - total) : (kl_time)total;
    return KL_OK;
}

/* v / 10^digits without trailing zeros, ending at `end`; returns where it starts. */
static char *put_decimal(char *end, uint64_t *v, int digits)
{
    bool any = false;

    for (; digits > 0; digits--) {
        char c = (char)('0' + *v % 10);

        *v /= 10;
        any |= c != '0';
        if (any)
            *--end = c;
    }
    if (any)
        *--end = '.';
    return end;
}

static char *put_whole(char *end, uint64_t v)
{
    do
        *--end = (char)('0' + v % 10);
    while (v /= 10);
    return end;
}

static char *put_text(char *end, const char *s)
{
    size_t n = strlen(s);

    return memcpy(end - n, s, n);
}

char *kl_duration_format(kl_time d, char out[KL_DURATION_MAX])
{
    char text[KL_DURATION_MAX], *end = text + sizeof text, *s = end;
    uint64_t v = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
    int digits;

    if (v == 0) {
        strcpy(out, "0s");
        return out;
    }
    *--s = '\0';
    if (v < S) {
        s = put_text(s, v < US ? "ns" : v < MS ? "\xc2\xb5s" : "ms");
        digits = v < US ? 0 : v < MS ? 3 : 6;
        s = put_decimal(s, &v, digits);
        s = put_whole(s, v);
    } else {
        s = put_text(s, "s");
        s = put_decimal(s, &v, 9);
        s = put_whole(s, v % 60);
        v /= 60;
        if (v) {
            s = put_whole(put_text(s, "m"), v % 60);
            v /= 60;
        }
        if (v)
            s = put_whole(put_text(s, "h"), v);
    }
    if (d < 0)
        *--s = '-';
    return memcpy(out, s, (size_t)(end - s));
}
