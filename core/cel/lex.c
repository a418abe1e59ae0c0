/* lex.c - see cel-spec's langdef.md for the grammar. */
#include "cel/lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "value/number.h"

static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static int hex(char c)
{
    return digit(c)            ? c - '0'
        : c >= 'a' && c <= 'f' ? c - 'a' + 10
        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                               : -1;
}

static void blank(kl__clex *l)
{
    const char *t = l->src->text;
    size_t n = l->src->n;
    for (;;) {
        while (l->pos < n && strchr(" \t\r\n\f", t[l->pos]) && t[l->pos])
            l->pos++;
        if (l->pos + 1 < n && t[l->pos] == '/' && t[l->pos + 1] == '/')
            while (l->pos < n && t[l->pos] != '\n')
                l->pos++;
        else
            return;
    }
}

/* ---------------------------------------------------------------- numbers */

static void whole(kl__clex *l, const char *text, size_t len, bool is_unsigned, bool minus)
{
    char digits[32];
    bool base16 = len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    size_t skip = base16 ? 2 : 0;
    while (skip + 1 < len && text[skip] == '0')
        skip++;
    errno = 0;
    uint64_t u = 0;
    bool fits = len - skip < sizeof digits;
    if (fits) {
        memcpy(digits, text + skip, len - skip);
        digits[len - skip] = 0;
        u = strtoull(digits, NULL, base16 ? 16 : 10);
        fits = !errno;
    }
    l->word = KL_W_CONST;
    if (is_unsigned) {
        l->value = (kl__cval){.kind = KL_C_UINT, .u = u};
        if (!fits)
            kl__cel_blame(l->src, (uint32_t)l->at, "invalid uint literal");
        return;
    }
    if (!fits || u > (uint64_t)INT64_MAX + minus) {
        kl__cel_blame(l->src, (uint32_t)l->at, "invalid int literal");
        u = 0;
    }
    l->value = KL__CINT(minus ? (int64_t)(0 - u) : (int64_t)u);
}

static void number(kl__clex *l, size_t start, bool minus)
{
    const char *t = l->src->text;
    size_t n = l->src->n, p = start;
    bool real = false;
    if (t[p] == '0' && p + 2 < n + 1 && (t[p + 1] == 'x' || t[p + 1] == 'X') && hex(t[p + 2]) >= 0) {
        p += 2;
        while (p < n && hex(t[p]) >= 0)
            p++;
    } else {
        while (p < n && digit(t[p]))
            p++;
        if (p + 1 < n && t[p] == '.' && digit(t[p + 1])) {
            real = true;
            p++;
            while (p < n && digit(t[p]))
                p++;
        }
        size_t e = p;
        if (e < n && (t[e] == 'e' || t[e] == 'E')) {
            e++;
            if (e < n && (t[e] == '+' || t[e] == '-'))
                e++;
            if (e < n && digit(t[e])) {
                real = true;
                p = e;
                while (p < n && digit(t[p]))
                    p++;
            }
        }
    }
    size_t len = p - start;
    bool is_unsigned = !real && p < n && (t[p] == 'u' || t[p] == 'U');
    l->pos = p + is_unsigned;
    l->len = l->pos - l->at;
    l->negatable = !is_unsigned;
    if (!real) {
        whole(l, t + start, len, is_unsigned, minus);
        return;
    }
    char *text = kl_sprintf("%s%.*s", t[start] == '.' ? "0" : "", (int)len, t + start);
    double d;
    if (!kl__double_parse(text, strlen(text), &d)) {
        kl__cel_blame(l->src, (uint32_t)l->at, "invalid double literal");
        d = 0;
    }
    kl_free(text);
    l->word = KL_W_CONST;
    l->value = KL__CDOUBLE(minus ? -d : d);
}

void kl__clex_negate(kl__clex *l, size_t at)
{
    size_t start = l->at;
    l->at = at;
    if (l->src->nissues) /* a number that is too large may be valid with a minus before it */
        l->src->nissues -= l->src->issue[l->src->nissues - 1].at == start;
    number(l, start, true);
}

/* ---------------------------------------------------------------- texts */

static void rune(kl_buf *out, uint32_t c)
{
    if (c < 0x80)
        kl_buf_putc(out, (char)c);
    else if (c < 0x800)
        kl_buf_printf(out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
    else if (c < 0x10000)
        kl_buf_printf(
            out, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    else
        kl_buf_printf(out, "%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 63)),
            (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
}

/* The escape after a backslash; its length in the text, 0 when it is invalid. */
static size_t escape(const char *s, size_t n, bool bytes, kl_buf *out)
{
    static const char from[] = "abfnrtv\\'\"`?", to[] = "\a\b\f\n\r\t\v\\'\"`?";
    const char *simple = n && s[0] ? strchr(from, s[0]) : NULL;
    if (simple) {
        kl_buf_putc(out, to[simple - from]);
        return 1;
    }
    size_t digits = !n ? 0 : s[0] == 'x' || s[0] == 'X' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    uint32_t c = 0;
    if (!digits) { /* octal */
        if (n < 3 || s[0] < '0' || s[0] > '3')
            return 0;
        for (int i = 0; i < 3; i++) {
            if (s[i] < '0' || s[i] > '7')
                return 0;
            c = c * 8 + (uint32_t)(s[i] - '0');
        }
        if (bytes)
            kl_buf_putc(out, (char)c);
        else
            rune(out, c);
        return 3;
    }
    if (n < digits + 1 || (bytes && digits > 2))
        return 0;
    for (size_t i = 1; i <= digits; i++) {
        if (hex(s[i]) < 0)
            return 0;
        c = c * 16 + (uint32_t)hex(s[i]);
    }
    if (bytes)
        kl_buf_putc(out, (char)c);
    else if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    else
        rune(out, c);
    return digits + 1;
}

static bool prefixed(const char *t, size_t n, size_t *p, bool *raw, bool *bytes)
{
    size_t i = *p;
    *raw = *bytes = false;
    for (; i < n && i < *p + 2; i++) {
        if ((t[i] == 'r' || t[i] == 'R') && !*raw)
            *raw = true;
        else if ((t[i] == 'b' || t[i] == 'B') && !*bytes)
            *bytes = true;
        else
            break;
    }
    if (i >= n || (t[i] != '"' && t[i] != '\''))
        return false;
    *p = i;
    return true;
}

static void bad_token(kl__clex *l, size_t at, size_t len)
{
    kl__cel_blame(l->src, (uint32_t)at, "Syntax error: token recognition error at: '%.*s'", (int)len,
        l->src->text + at);
    l->word = KL_W_BAD;
    l->pos = at + len;
}

static void quoted(kl__clex *l, size_t p, bool raw, bool bytes)
{
    const char *t = l->src->text;
    size_t n = l->src->n;
    char quote = t[p];
    bool triple = p + 2 < n && t[p + 1] == quote && t[p + 2] == quote;
    p += triple ? 3 : 1;
    kl_buf out = KL_BUF_INIT;
    for (;;) {
        if (p >= n || (!triple && (t[p] == '\n' || t[p] == '\r'))) {
            bad_token(l, l->at, p - l->at);
            break;
        }
        if (t[p] == quote && (!triple || (p + 2 < n && t[p + 1] == quote && t[p + 2] == quote))) {
            l->pos = p + (triple ? 3 : 1);
            l->len = l->pos - l->at;
            l->word = KL_W_CONST;
            l->value = (kl__cval){.kind = bytes ? KL_C_BYTES : KL_C_STRING,
                .s = {kl__carena_text(l->src->a, kl_buf_str(&out), out.len), out.len}};
            break;
        }
        size_t len = t[p] == '\\' && !raw ? escape(t + p + 1, n - p - 1, bytes, &out) : 0;
        if (t[p] == '\\' && !raw && !len) {
            bad_token(l, l->at, p + 2 > n ? n - l->at : p + 2 - l->at);
            break;
        }
        if (len)
            p += 1 + len;
        else
            kl_buf_putc(&out, t[p++]);
    }
    kl_buf_fini(&out);
}

/* ---------------------------------------------------------------- words */

static void name(kl__clex *l)
{
    const char *t = l->src->text;
    while (l->pos < l->src->n && (letter(t[l->pos]) || digit(t[l->pos])))
        l->pos++;
    l->len = l->pos - l->at;
    l->word = KL_W_CONST;
#define IS(w) (l->len == sizeof w - 1 && !memcmp(t + l->at, w, sizeof w - 1))
    if (IS("true") || IS("false"))
        l->value = KL__CBOOL(t[l->at] == 't');
    else if (IS("null"))
        l->value = KL__CNULL;
    else
        l->word = IS("in") ? KL_W_IN : KL_W_IDENT;
#undef IS
}

void kl__clex_next(kl__clex *l)
{
    static const char two[][3] = {"==", "!=", "<=", ">=", "&&", "||"};
    blank(l);
    const char *t = l->src->text;
    size_t n = l->src->n, p = l->pos;
    bool raw, bytes;
    l->at = p;
    l->len = 0;
    l->negatable = false;
    l->sign[0] = 0;
    if (p >= n) {
        l->word = KL_W_END;
        return;
    }
    if (prefixed(t, n, &p, &raw, &bytes)) {
        quoted(l, p, raw, bytes);
        return;
    }
    if (digit(t[p]) || (t[p] == '.' && p + 1 < n && digit(t[p + 1]))) {
        number(l, p, false);
        return;
    }
    if (letter(t[p])) {
        name(l);
        return;
    }
    l->word = KL_W_SIGN;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (p + 1 < n && t[p] == two[i][0] && t[p + 1] == two[i][1]) {
            memcpy(l->sign, two[i], 3);
            l->len = 2;
            l->pos = p + 2;
            return;
        }
    if (t[p] && strchr("()[]{}.,:?-!+*/%<>", t[p])) {
        l->sign[0] = t[p];
        l->sign[1] = 0;
        l->len = 1;
        l->pos = p + 1;
        return;
    }
    size_t len = kl_utf8_char(t + p, n - p);
    bad_token(l, p, len ? len : 1);
}
