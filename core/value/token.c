/* token.c - what stands between the brackets of JSON text: strings, numbers, words, and the errors about
 * them. */
#include "value/token.h"

#include <stdio.h>
#include "base/mem.h"
#include "value/number.h"
#include "value/scan.h"

/* --- telling errors ----------------------------------------------------------------------- */

const char *kl__fail_at(kl__decoder *d, const char *at, const char *what)
{
    if (!d->err)
        return NULL;
    size_t line = 1;
    const char *start = d->text;
    for (const char *nl; (nl = memchr(start, '\n', (size_t)(at - start))); start = nl + 1)
        line++;
    kl_fail(d->err, KL_ESYNTAX, "JSON is malformed at byte %zu (line %zu, column %zu): %s",
        (size_t)(at - d->text), line, (size_t)(at - start) + 1, what);
    return NULL;
}

const char *kl__unexpected(kl__decoder *d, const char *at, const char *wanted)
{
    char what[96];
    if (!d->err)
        return NULL;
    if (at >= d->end)
        snprintf(what, sizeof what, "the text ends where %s was expected", wanted);
    else if ((unsigned char)*at > ' ' && (unsigned char)*at < 0x7f)
        snprintf(what, sizeof what, "'%c' where %s is expected", *at, wanted);
    else
        snprintf(what, sizeof what, "byte 0x%02x where %s is expected", (unsigned char)*at, wanted);
    return kl__fail_at(d, at, what);
}

/* --- strings ------------------------------------------------------------------------------ */

static int hex4(const char *p)
{
    int x = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'         ? c - '0'
            : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        x = x << 4 | digit;
    }
    return x;
}

static size_t utf8_put(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* `p` is after a backslash: undoes one escape into scratch. */
static const char *unescape(kl__decoder *d, const char *p)
{
    const char *from = p - 1;
    char c = p < d->end ? *p : '\0', out[4];
    size_t n = 1;
    switch (c) {
    case '"':
    case '\\':
    case '/': out[0] = c; break;
    case 'b': out[0] = '\b'; break;
    case 'f': out[0] = '\f'; break;
    case 'n': out[0] = '\n'; break;
    case 'r': out[0] = '\r'; break;
    case 't': out[0] = '\t'; break;
    case 'u': {
        int hi = d->end - p >= 5 ? hex4(p + 1) : -1;
        if (hi < 0)
            return kl__fail_at(d, from, "\\u wants four hexadecimal digits");
        uint32_t point = (uint32_t)hi;
        if (hi >= 0xd800 && hi <= 0xdfff) {
            int lo = hi < 0xdc00 && d->end - p >= 11 && p[5] == '\\' && p[6] == 'u' ? hex4(p + 7) : -1;
            if (lo < 0xdc00 || lo > 0xdfff)
                return kl__fail_at(d, from, "half of a surrogate pair in a string");
            point = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
            p += 6;
        }
        n = utf8_put(out, point);
        p += 4;
        break;
    }
    default:
        return p >= d->end ? kl__fail_at(d, d->end, "the text ends inside a string")
                           : kl__fail_at(d, from, "unknown escape in a string");
    }
    if (kl_buf_add(&d->scratch, out, n))
        return kl__fail_at(d, from, "the string is too long");
    return p + 1;
}

const char *kl__string_text(kl__decoder *d, const char *p, const char **s, size_t *n)
{
    const char *run = p; /* begin of what is not yet in scratch */
    bool escaped = false;
    for (;;) {
        p = kl__plain_end(p, d->end);
        if (p >= d->end)
            return kl__fail_at(d, d->end, "the text ends inside a string");
        unsigned char c = (unsigned char)*p;
        if (c == '"')
            break;
        if (c == '\\') {
            if (!escaped)
                kl_buf_clear(&d->scratch);
            escaped = true;
            if (kl_buf_add(&d->scratch, run, (size_t)(p - run)))
                return kl__fail_at(d, run, "the string is too long");
            p = run = unescape(d, p + 1);
            if (!p)
                return NULL;
        } else if (c < ' ') {
            return kl__fail_at(d, p, "a control character inside a string must be escaped");
        } else {
            const char *from = p;
            while (p < d->end && (unsigned char)*p >= 0x80)
                p++;
            if (!kl_utf8_valid(from, (size_t)(p - from)))
                return kl__fail_at(d, from, "invalid UTF-8 in a string");
        }
    }
    *s = run;
    *n = (size_t)(p - run);
    if (escaped) {
        if (kl_buf_add(&d->scratch, run, *n))
            return kl__fail_at(d, run, "the string is too long");
        *s = d->scratch.data;
        *n = d->scratch.len;
    }
    return p + 1;
}

/* --- numbers and words -------------------------------------------------------------------- */

static inline bool digit(const kl__decoder *d, const char *p) { return p < d->end && *p >= '0' && *p <= '9'; }

const char *kl__number(kl__decoder *d, const char *p, kl__h *out)
{
    const char *from = p;
    bool minus = *p == '-', integral = true, overflow = false;
    uint64_t u = 0;
    p += minus;
    if (!digit(d, p))
        return kl__unexpected(d, p, "a digit");
    if (*p == '0') {
        p++;
        if (digit(d, p))
            return kl__fail_at(d, from, "a number must not begin with 0");
    } else {
        for (; digit(d, p); p++)
            overflow |= __builtin_mul_overflow(u, 10u, &u)
                | __builtin_add_overflow(u, (uint64_t)(*p - '0'), &u);
    }
    if (p < d->end && *p == '.') {
        integral = false;
        for (p++; digit(d, p); p++)
            ;
        if (p[-1] == '.')
            return kl__unexpected(d, p, "a digit");
    }
    if (p < d->end && (*p == 'e' || *p == 'E')) {
        integral = false;
        p++;
        if (p < d->end && (*p == '+' || *p == '-'))
            p++;
        if (!digit(d, p))
            return kl__unexpected(d, p, "a digit");
        while (digit(d, p))
            p++;
    }
    if (integral && !overflow && !minus) {
        *out = u <= INT64_MAX ? kl__intern_int((int64_t)u) : kl__intern_wide(KL_UINT, u);
        return p;
    }
    if (integral && !overflow && u <= (uint64_t)INT64_MAX + 1) {
        *out = kl__intern_int((int64_t)(0 - u));
        return p;
    }
    double x;
    if (!kl__double_parse(from, (size_t)(p - from), &x))
        return kl__fail_at(d, from, "a number beyond the range of a double");
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *out = kl__intern_wide(KL_DOUBLE, bits);
    return p;
}

const char *kl__literal(kl__decoder *d, const char *p, const char *w, size_t n, kl__h is, kl__h *out)
{
    if ((size_t)(d->end - p) < n || memcmp(p, w, n))
        return kl__unexpected(d, p, "a value");
    *out = is;
    return p + n;
}

const char *kl__spaces(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}
