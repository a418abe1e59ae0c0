/* format.c - "%s has %d".format([name, count]), as cel-go's extension of strings has it. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"
#include "model/time.h"

#define PRECISION_MAX 100
#define DIGITS_SHOWN 100 /* the most characters of an invalid precision in a message */
#define DEPTH_MAX 50

typedef struct form {
    kl__cev *e;
    kl_buf out;
    kl__cval failure; /* NULL: none */
} form;

static void show(form *f, kl__cval v, int depth);

static void show_list(form *f, kl__cval v, int depth)
{
    kl_buf_putc(&f->out, '[');
    for (size_t i = 0; i < kl__clist_len(v.list) && kl__cev_works(f->e); i++) {
        kl_buf_puts(&f->out, i ? ", " : "");
        show(f, kl__clist_at(f->e, v.list, i), depth + 1);
    }
    kl_buf_putc(&f->out, ']');
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Entries in the order of their texts. */
static void show_map(form *f, kl__cval v, int depth)
{
    size_t n = kl__cmap_len(v.map), made = 0;
    char **entry = kl_new_array(char *, n + 1);
    kl_buf whole = f->out;
    for (; made < n && kl__cev_works(f->e); made++) {
        kl__cval key, value;
        kl__cmap_at(f->e, v.map, made, &key, &value);
        f->out = (kl_buf)KL_BUF_INIT;
        show(f, key, depth + 1);
        kl_buf_putc(&f->out, ':');
        show(f, value, depth + 1);
        entry[made] = kl_buf_take(&f->out);
    }
    f->out = whole;
    qsort(entry, made, sizeof *entry, by_text);
    kl_buf_putc(&f->out, '{');
    for (size_t i = 0; i < made; i++) {
        kl_buf_printf(&f->out, "%s%s", i ? ", " : "", entry[i]);
        kl_free(entry[i]);
    }
    kl_buf_putc(&f->out, '}');
    kl_free(entry);
}

/* Within a list or a map texts are quoted. */
static void show_quoted(form *f, kl__cval v)
{
    const kl_value *s = kl_value_of_strn(v.s.p, v.s.n);
    kl_buf_puts(&f->out, v.kind == KL_C_BYTES ? "b" : "");
    kl_value_encode(s, &f->out);
    kl_value_unref(s);
}

static void show(form *f, kl__cval v, int depth)
{
    if (depth && (v.kind == KL_C_STRING || v.kind == KL_C_BYTES)) {
        show_quoted(f, v);
        return;
    }
    if (depth && (v.kind == KL_C_TIME || v.kind == KL_C_DURATION)) {
        kl_buf_puts(&f->out, v.kind == KL_C_TIME ? "timestamp(\"" : "duration(\"");
        show(f, v, 0);
        kl_buf_puts(&f->out, "\")");
        return;
    }
    if (depth > DEPTH_MAX || f->out.len > KL__CEL_MEMORY_MAX) {
        f->e->over = true;
        return;
    }
    switch (v.kind) {
    case KL_C_LIST: show_list(f, v, depth); break;
    case KL_C_MAP:
    case KL_C_OBJECT: show_map(f, v, depth); break;
    case KL_C_DURATION: kl__cel_seconds(v.i, &f->out); break;
    case KL_C_DOUBLE:
        if (depth && isfinite(v.d)) {
            kl_buf_printf(&f->out, "%f", v.d);
            break;
        }
        kl_buf_puts(&f->out, depth ? "\"" : "");
        kl__cval_show(f->e, v, &f->out);
        kl_buf_puts(&f->out, depth ? "\"" : "");
        break;
    default: kl__cval_show(f->e, v, &f->out); break;
    }
}

static void wrong(form *f, char clause, kl__cval v)
{
    f->failure = kl__cval_err(f->e, "error during formatting: %s, was given %s", kl__cel_clause_takes(clause),
        kl__cval_type(v)->name);
}

/* "1.5e+03" as "1.5" times ten to the power of 03, raised. */
static void raised(const char *text, kl_buf *out)
{
    static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    size_t n = strcspn(text, "e");
    kl_buf_add(out, text, n);
    kl_buf_puts(out, "×10");
    for (const char *p = text + n; *p; p++)
        if (*p == '-')
            kl_buf_puts(out, "⁻");
        else if (isdigit((unsigned char)*p))
            kl_buf_puts(out, digits[*p - '0']);
}

static void real(form *f, char clause, int precision, kl__cval v)
{
    char fmt[8] = {'%', '.', '*', clause, 0}, *text;
    double d = v.d;
    if (v.kind != KL_C_DOUBLE) {
        wrong(f, clause, v);
        return;
    }
    if (!isfinite(d)) {
        const char *s = isnan(d) ? "NaN" : d > 0 ? "∞" : "-∞"; /* a column is 6 or `precision` wide */
        int wide = precision < 0 ? 6 : precision, chars = isnan(d) ? 3 : d > 0 ? 1 : 2;
        kl_buf_printf(&f->out, "%*s%s", clause == 'e' && wide > chars ? wide - chars : 0, "", s);
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    text = kl_sprintf(fmt, precision < 0 ? 6 : precision, d);
#pragma GCC diagnostic pop
    if (clause == 'e')
        raised(text, &f->out);
    else
        kl_buf_puts(&f->out, text);
    kl_free(text);
}

static void whole(form *f, char clause, kl__cval v)
{
    bool hex = clause == 'x' || clause == 'X';
    if (hex && (v.kind == KL_C_STRING || v.kind == KL_C_BYTES)) {
        for (size_t i = 0; i < v.s.n; i++)
            kl_buf_printf(&f->out, clause == 'x' ? "%02x" : "%02X", (unsigned char)v.s.p[i]);
        return;
    }
    if (v.kind == KL_C_BOOL && clause == 'b') {
        kl_buf_putc(&f->out, v.b ? '1' : '0');
        return;
    }
    if (v.kind != KL_C_INT && v.kind != KL_C_UINT) {
        wrong(f, clause, v);
        return;
    }
    uint64_t u = v.u;
    if (v.kind == KL_C_INT && v.i < 0) {
        kl_buf_putc(&f->out, '-');
        u = 0 - u;
    }
    if (clause == 'b') {
        char bits[65];
        int at = 64;
        bits[64] = 0;
        do
            bits[--at] = (char)('0' + u % 2);
        while (u /= 2);
        kl_buf_puts(&f->out, bits + at);
    } else
        kl_buf_printf(&f->out,
            clause == 'o'       ? "%llo"
                : clause == 'x' ? "%llx"
                                : "%llX",
            (unsigned long long)u);
}

static void decimal(form *f, kl__cval v)
{
    if (v.kind == KL_C_INT || v.kind == KL_C_UINT || (v.kind == KL_C_DOUBLE && !isfinite(v.d)))
        kl__cval_show(f->e, v, &f->out);
    else
        wrong(f, 'd', v);
}

const char *kl__cel_clause_takes(char clause)
{
    switch (clause) {
    case 's':
        return "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
               "durations, and timestamps";
    case 'd': return "decimal clause can only be used on integers";
    case 'f': return "fixed-point clause can only be used on doubles";
    case 'e': return "scientific clause can only be used on doubles";
    case 'b': return "only integers and bools can be formatted as binary";
    case 'o': return "octal clause can only be used on integers";
    default: return "only integers, byte buffers, and strings can be formatted as hex";
    }
}

size_t kl__cel_clause(const char *s, size_t n, char *clause, int *precision, char why[KL__CLAUSE_WHY])
{
    size_t i = 0;
    *precision = -1;
    *clause = 0;
    bool fits = true;
    if (n && s[0] == '.') {
        int64_t wide = 0;
        for (i = 1; i < n && isdigit((unsigned char)s[i]); i++)
            fits = fits && !__builtin_mul_overflow(wide, 10, &wide)
                && !__builtin_add_overflow(wide, s[i] - '0', &wide);
        *precision = wide > PRECISION_MAX ? PRECISION_MAX : (int)wide;
    }
    if (!fits)
        snprintf(why, KL__CLAUSE_WHY,
            "error while parsing precision: error while converting precision to integer: strconv.Atoi: "
            "parsing "
            "\"%.*s\": value out of range",
            (int)(i - 1 > DIGITS_SHOWN ? DIGITS_SHOWN : i - 1), s + 1);
    else if (i == n)
        snprintf(
            why, KL__CLAUSE_WHY, "error while parsing precision: could not find end of precision specifier");
    else if (!s[i] || !strchr("sdfebxXo", s[i]))
        snprintf(why, KL__CLAUSE_WHY, "unrecognized formatting clause \"%c\"", s[i]);
    else
        *clause = s[i];
    return i + 1;
}

/* Formats one clause after its "%"; returns its length in the text. */
static size_t clause(form *f, const char *s, size_t n, kl__cval v)
{
    int precision;
    char c, why[KL__CLAUSE_WHY];
    size_t len = kl__cel_clause(s, n, &c, &precision, why);
    switch (c) {
    case 's': show(f, v, 0); break;
    case 'd': decimal(f, v); break;
    case 'f':
    case 'e': real(f, c, precision, v); break;
    case 'b':
    case 'x':
    case 'X':
    case 'o': whole(f, c, v); break;
    default:
        f->failure = n ? kl__cval_err(f->e, "could not parse formatting clause: %s", why)
                       : kl__cval_err(f->e, "unexpected end of string");
    }
    return len;
}

kl__cval kl__cel_format(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    form f = {.e = e, .failure = KL__CNULL};
    if (a[1].kind != KL_C_LIST)
        return kl__cval_err(e, "no such overload: format");
    size_t used = 0, count = kl__clist_len(a[1].list);
    const char *s = a[0].s.p;
    for (size_t i = 0; i < a[0].s.n && f.failure.kind == KL_C_NULL;) {
        if (s[i] != '%') {
            kl_buf_putc(&f.out, s[i++]);
            continue;
        }
        i++;
        if (i < a[0].s.n && s[i] == '%') {
            kl_buf_putc(&f.out, s[i++]);
            continue;
        }
        if (used >= count) {
            f.failure = kl__cval_err(e, "index %zu out of range", used);
            break;
        }
        i += clause(&f, s + i, a[0].s.n - i, kl__clist_at(e, a[1].list, used++));
    }
    if (f.failure.kind == KL_C_NULL)
        return kl__cval_take(e, &f.out);
    kl_buf_fini(&f.out);
    return f.failure;
}
