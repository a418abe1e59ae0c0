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
    bool base16 = len > 2 && text[0] == '0' && text[1] == 'x';
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
    if (t[p] == '0' && p + 2 < n && t[p + 1] == 'x' && hex(t[p + 2]) >= 0) {
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

/* The escape after a backslash: its length in the text, or 0 and *end, where it stops to be one. *why: it is
 * none for what it means. */
static size_t escape(const char *s, size_t n, bool bytes, kl_buf *out, size_t *end, const char **why)
{
    static const char from[] = "abfnrtv\\'\"`?", to[] = "\a\b\f\n\r\t\v\\'\"`?";
    const char *simple = n && s[0] ? strchr(from, s[0]) : NULL;
    if (simple) {
        kl_buf_putc(out, to[simple - from]);
        return 1;
    }
    bool octal = n && s[0] >= '0' && s[0] <= '3';
    size_t at = !octal,
           digits = octal            ? 3
        : !n                         ? 0
        : s[0] == 'x' || s[0] == 'X' ? 2
        : s[0] == 'u'                ? 4
        : s[0] == 'U'                ? 8
                                     : 0;
    uint32_t c = 0;
    *end = 0;
    if (!digits)
        return 0;
    for (size_t i = at; i < at + digits; i++) {
        *end = i;
        if (i >= n || hex(s[i]) < 0 || (octal && (s[i] < '0' || s[i] > '7')))
            return 0;
        c = c * (octal ? 8 : 16) + (uint32_t)hex(s[i]);
    }
    if (bytes && digits > 3)
        *why = "unable to unescape string";
    else if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        *why = "invalid unicode code point";
    else if (bytes)
        kl_buf_putc(out, (char)c);
    else
        rune(out, c);
    return at + digits;
}

/* Whether a quoted text begins at *p, which then is the quote. */
static bool prefixed(const char *t, size_t n, size_t *p, bool *raw, bool *bytes)
{
    size_t i = *p;
    *bytes = i < n && (t[i] == 'b' || t[i] == 'B');
    i += *bytes;
    *raw = i < n && (t[i] == 'r' || t[i] == 'R');
    i += *raw;
    if (i >= n || (t[i] != '"' && t[i] != '\''))
        return false;
    *p = i;
    return true;
}

/* What begins at `at` stops to be a word with the character at `end`, which is skipped, too. */
static void bad_token(kl__clex *l, size_t at, size_t end)
{
    if (end < l->src->n) {
        size_t len = kl_utf8_char(l->src->text + end, l->src->n - end);
        end += len ? len : 1;
    }
    kl__cel_blame(l->src, (uint32_t)at, "Syntax error: token recognition error at: '%.*s'", (int)(end - at),
        l->src->text + at);
    l->pos = end;
}

/* The text between quotes, the first of which is at `p`. False: it is none; l->pos is where it ends. */
static bool quoted(kl__clex *l, size_t p, bool raw, bool bytes)
{
    const char *t = l->src->text;
    size_t n = l->src->n;
    char quote = t[p];
    bool triple = p + 2 < n && t[p + 1] == quote && t[p + 2] == quote, good = false;
    p += triple ? 3 : 1;
    kl_buf out = KL_BUF_INIT;
    const char *why = NULL;
    for (;;) {
        if (p >= n || (!triple && (t[p] == '\n' || t[p] == '\r')))
            break;
        if (t[p] == quote && (!triple || (p + 2 < n && t[p + 1] == quote && t[p + 2] == quote))) {
            p += triple ? 3 : 1;
            good = true;
            break;
        }
        size_t bad = 0,
               len = t[p] == '\\' && !raw ? escape(t + p + 1, n - p - 1, bytes, &out, &bad, &why) : 0;
        if (t[p] == '\\' && !raw && !len) {
            p += 1 + bad;
            break;
        }
        if (t[p] == '\r') { /* ends of lines are alike */
            p += p + 1 < n && t[p + 1] == '\n';
            kl_buf_putc(&out, '\n');
            p++;
        } else if (len)
            p += 1 + len;
        else
            kl_buf_putc(&out, t[p++]);
    }
    l->pos = p;
    if (good && why)
        kl__cel_blame(l->src, (uint32_t)l->at, "%s", why);
    if (good) {
        l->len = p - l->at;
        l->word = KL_W_CONST;
        l->value = (kl__cval){.kind = bytes ? KL_C_BYTES : KL_C_STRING,
            .s = {kl__carena_text(l->src->a, kl_buf_str(&out), out.len), out.len}};
    }
    kl_buf_fini(&out);
    return good;
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

/* `a name` in backquotes. */
static bool escaped(kl__clex *l)
{
    const char *t = l->src->text;
    size_t n = l->src->n, p = l->at + 1;
    while (p < n && t[p] && (letter(t[p]) || digit(t[p]) || strchr(".-/ ", t[p])))
        p++;
    l->pos = p;
    if (p >= n || t[p] != '`' || p == l->at + 1)
        return false;
    l->pos++;
    l->len = l->pos - l->at;
    l->word = KL_W_ESCAPED;
    return true;
}

/* A text in quotes, or what a text that does not end is instead: its prefix, which is a name, or two quotes
 * of three, which are an empty text. */
static bool text(kl__clex *l, size_t p, bool raw, bool bytes)
{
    const char *t = l->src->text;
    if (quoted(l, p, raw, bytes))
        return true;
    if (p + 1 < l->src->n && t[p + 1] == t[p]) {
        l->pos = p + 2;
        l->word = KL_W_CONST;
        l->value = (kl__cval){.kind = bytes ? KL_C_BYTES : KL_C_STRING, .s = {"", 0}};
    } else if (p > l->at) {
        l->pos = p;
        l->word = KL_W_IDENT;
    } else
        return false;
    l->len = l->pos - l->at;
    return true;
}

static bool sign(kl__clex *l)
{
    static const char two[][3] = {"==", "!=", "<=", ">=", "&&", "||"};
    const char *t = l->src->text + l->pos;
    l->word = KL_W_SIGN;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (l->pos + 1 < l->src->n && t[0] == two[i][0] && t[1] == two[i][1])
            l->len = 2;
    if (!l->len && *t && strchr("()[]{}.,:?-!+*/%<>", *t))
        l->len = 1;
    memcpy(l->sign, t, l->len);
    l->sign[l->len] = 0;
    l->pos += l->len;
    if (!l->len && *t && strchr("=&|", *t)) /* the first of two */
        l->pos++;
    return l->len > 0;
}

void kl__clex_next(kl__clex *l)
{
    for (;;) {
        blank(l);
        const char *t = l->src->text;
        size_t n = l->src->n, p = l->pos;
        bool raw, bytes;
        l->at = p;
        l->len = 0;
        l->negatable = false;
        l->sign[0] = 0;
        l->word = KL_W_END;
        if (p >= n)
            return;
        if (prefixed(t, n, &p, &raw, &bytes)) {
            if (text(l, p, raw, bytes))
                return;
        } else if (digit(t[p]) || (t[p] == '.' && p + 1 < n && digit(t[p + 1]))) {
            number(l, p, false);
            return;
        } else if (letter(t[p])) {
            name(l);
            return;
        } else if (t[p] == '`' ? escaped(l) : sign(l))
            return;
        bad_token(l, p, l->pos);
    }
}
