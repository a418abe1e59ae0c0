/* strings.c - functions of texts: the standard ones, cel-go's extension, Kubernetes' regular expressions.
 * Places in a text are counted in characters. */
#include <string.h>

#include "base/mem.h"
#include "base/regex.h"
#include "base/utf8.h"
#include "cel/cel_impl.h"

static uint64_t tenth(uint64_t n) { return (n + 9) / 10; }

static size_t char_len(const char *s, size_t n)
{
    size_t len = kl_utf8_char(s, n);
    return len ? len : 1;
}

/* The offset of the i-th character; n after the last one. */
static size_t byte_of(kl__cval s, size_t i)
{
    size_t at = 0;
    while (i-- && at < s.s.n)
        at += char_len(s.s.p + at, s.s.n - at);
    return at;
}

static bool starts(kl__cval s, size_t at, kl__cval part)
{
    return s.s.n - at >= part.s.n && !memcmp(s.s.p + at, part.s.p, part.s.n);
}

/* Texts end with a NUL: a part that is not the end of one is copied. */
static kl__cval slice(kl__cev *e, kl__cval s, size_t from, size_t to)
{
    if (to == s.s.n)
        return (kl__cval){.kind = KL_C_STRING, .s = {s.s.p + from, to - from}};
    return kl__cval_str(e, s.s.p + from, to - from);
}

/* ---------------------------------------------------------------- questions */

static kl__cval contains(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(!a[1].s.n || memmem(a[0].s.p, a[0].s.n, a[1].s.p, a[1].s.n));
}

static kl__cval starts_with(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(starts(a[0], 0, a[1]));
}

static kl__cval ends_with(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(a[0].s.n >= a[1].s.n && starts(a[0], a[0].s.n - a[1].s.n, a[1]));
}

static uint64_t cost_contains(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(kl__cval_size(a[0])) * tenth(kl__cval_size(a[1]));
}

static uint64_t cost_first(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(kl__cval_size(a[0]));
}

static uint64_t cost_place(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return a[0].s.n / 10;
}

static uint64_t cost_twice(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(2 * kl__cval_size(a[0]));
}

/* ---------------------------------------------------------------- regular expressions */

static uint64_t cost_regex(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(1 + kl__cval_size(a[0])) * ((kl__cval_size(a[1]) + 3) / 4);
}

/* The compiled pattern, borrowed until the next call, or NULL and *failure. `own`: a function of Kubernetes,
 * whose errors have other words. */
static const kl_regex *regex_of(kl__cev *e, kl__cval pattern, bool own, kl__cval *failure)
{
    kl_err err = KL_ERR_INIT;
    kl_regex *re = NULL;
    if (e->regex.re && e->regex.n == pattern.s.n && !memcmp(e->regex.pattern, pattern.s.p, pattern.s.n))
        return e->regex.re;
    if (kl_regex_new(pattern.s.p, pattern.s.n, &re, &err) == KL_OK) {
        kl_regex_free(e->regex.re);
        e->regex.re = re;
        e->regex.pattern = kl__carena_text(e->a, pattern.s.p, pattern.s.n);
        e->regex.n = pattern.s.n;
    } else
        *failure = kl__cval_err(e, "%s%s", own ? "Illegal regex: " : "", kl_err_message(&err));
    kl_err_fini(&err);
    return re;
}

static kl__cval matches(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval v;
    const kl_regex *re = regex_of(e, a[1], false, &v);
    if (!re)
        return v;
    return KL__CBOOL(kl_regex_matches(re, a[0].s.p, a[0].s.n));
}

static kl__cval find(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval v;
    size_t from, to;
    const kl_regex *re = regex_of(e, a[1], true, &v);
    if (!re)
        return v;
    v = kl_regex_find(re, a[0].s.p, a[0].s.n, 0, &from, &to) ? slice(e, a[0], from, to)
                                                             : slice(e, a[0], 0, 0);
    return v;
}

static kl__cval find_all(kl__cev *e, const kl__cval *a, size_t n)
{
    kl__cval v;
    size_t from, to, at = 0;
    int64_t limit = n == 3 ? a[2].i : -1;
    long previous = -1;
    const kl_regex *re = regex_of(e, a[1], true, &v);
    if (!re)
        return v;
    kl__clist *l = kl__clist_new(e, 4);
    while ((limit < 0 || (int64_t)l->n < limit) && at <= a[0].s.n && kl__cev_works(e)
        && kl_regex_find(re, a[0].s.p, a[0].s.n, at, &from, &to)) {
        if (to > from || (long)from != previous) /* an empty match right after a match does not count */
            kl__clist_add(e, l, slice(e, a[0], from, to));
        previous = (long)to;
        at = to > from ? to : to + (to < a[0].s.n ? char_len(a[0].s.p + to, a[0].s.n - to) : 1);
    }
    return KL__CLIST(l);
}

/* ---------------------------------------------------------------- places */

static kl__cval out_of_range(kl__cev *e, int64_t i)
{
    return kl__cval_err(e, "index out of range: %lld", (long long)i);
}

static kl__cval char_at(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    int64_t len = (int64_t)kl__cval_size(a[0]), i = a[1].i;
    if (i < 0 || i > len)
        return out_of_range(e, i);
    size_t at = byte_of(a[0], (size_t)i);
    return slice(e, a[0], at, i == len ? at : at + char_len(a[0].s.p + at, a[0].s.n - at));
}

static kl__cval index_of(kl__cev *e, const kl__cval *a, size_t n)
{
    int64_t offset = n == 3 ? a[2].i : 0, len = (int64_t)kl__cval_size(a[0]);
    if (!a[1].s.n)
        return KL__CINT(offset);
    if (offset < 0 || offset >= len)
        return offset < 0 ? out_of_range(e, offset) : KL__CINT(-1);
    size_t from = byte_of(a[0], (size_t)offset);
    const char *at = memmem(a[0].s.p + from, a[0].s.n - from, a[1].s.p, a[1].s.n);
    return KL__CINT(at ? (int64_t)kl__cel_runes(a[0].s.p, (size_t)(at - a[0].s.p)) : -1);
}

static kl__cval last_index_of(kl__cev *e, const kl__cval *a, size_t n)
{
    int64_t len = (int64_t)kl__cval_size(a[0]), offset = n == 3 ? a[2].i : len;
    if (!a[1].s.n)
        return KL__CINT(offset);
    if (offset < 0)
        return out_of_range(e, offset);
    if (a[0].s.n < a[1].s.n || (n == 3 && offset >= len))
        return KL__CINT(-1);
    size_t at = byte_of(a[0], (size_t)offset);
    if (at > a[0].s.n - a[1].s.n)
        at = a[0].s.n - a[1].s.n;
    for (at++; at-- > 0;)
        if (starts(a[0], at, a[1]))
            return KL__CINT((int64_t)kl__cel_runes(a[0].s.p, at));
    return KL__CINT(-1);
}

static kl__cval substring(kl__cev *e, const kl__cval *a, size_t n)
{
    int64_t len = (int64_t)kl__cval_size(a[0]), from = a[1].i, to = n == 3 ? a[2].i : len;
    if (n == 3 && from > to)
        return kl__cval_err(
            e, "invalid substring range. start: %lld, end: %lld", (long long)from, (long long)to);
    if (from < 0 || from > len)
        return out_of_range(e, from);
    if (to < 0 || to > len)
        return out_of_range(e, to);
    return slice(e, a[0], byte_of(a[0], (size_t)from), byte_of(a[0], (size_t)to));
}

/* ---------------------------------------------------------------- new texts */

static kl__cval cased(kl__cev *e, kl__cval s, char from, char to, int shift)
{
    kl__cval r = kl__cval_str(e, s.s.p, s.s.n);
    char *p = (char *)r.s.p;
    for (size_t i = 0; i < r.s.n; i++)
        if (p[i] >= from && p[i] <= to)
            p[i] = (char)(p[i] + shift);
    return r;
}

static kl__cval lower(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return cased(e, a[0], 'A', 'Z', 'a' - 'A');
}

static kl__cval upper(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return cased(e, a[0], 'a', 'z', 'A' - 'a');
}

static kl__cval replace(kl__cev *e, const kl__cval *a, size_t n)
{
    int64_t left = n == 4 ? a[3].i : -1;
    kl_buf b = KL_BUF_INIT;
    kl_buf_init(&b, KL__CEL_MEMORY_MAX);
    size_t at = 0;
    while (at <= a[0].s.n && left) {
        if (starts(a[0], at, a[1])) {
            kl_buf_add(&b, a[2].s.p, a[2].s.n);
            left--;
            at += a[1].s.n;
            if (a[1].s.n)
                continue;
        }
        if (at == a[0].s.n)
            break;
        size_t len = char_len(a[0].s.p + at, a[0].s.n - at);
        kl_buf_add(&b, a[0].s.p + at, len);
        at += len;
    }
    if (at < a[0].s.n)
        kl_buf_add(&b, a[0].s.p + at, a[0].s.n - at);
    if (kl_buf_status(&b))
        e->over = true;
    return kl__cval_take(e, &b);
}

static kl__cval split(kl__cev *e, const kl__cval *a, size_t n)
{
    int64_t limit = n == 3 ? a[2].i : -1;
    kl__clist *l = kl__clist_new(e, 4);
    size_t from = 0, at = 0;
    if (!limit)
        return KL__CLIST(l);
    while (at < a[0].s.n && (limit < 0 || (int64_t)l->n + 1 < limit)) {
        size_t step = char_len(a[0].s.p + at, a[0].s.n - at);
        if (!a[1].s.n) { /* each character */
            at += step;
            if (at < a[0].s.n) {
                kl__clist_add(e, l, slice(e, a[0], from, at));
                from = at;
            }
        } else if (starts(a[0], at, a[1])) {
            kl__clist_add(e, l, slice(e, a[0], from, at));
            at += a[1].s.n;
            from = at;
        } else
            at++;
    }
    if (a[1].s.n || a[0].s.n)
        kl__clist_add(e, l, slice(e, a[0], from, a[0].s.n));
    return KL__CLIST(l);
}

static kl__cval join(kl__cev *e, const kl__cval *a, size_t n)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_init(&b, KL__CEL_MEMORY_MAX);
    for (size_t i = 0; i < kl__clist_len(a[0].list); i++) {
        kl__cval v = kl__clist_at(e, a[0].list, i);
        if (v.kind != KL_C_STRING) {
            kl_buf_fini(&b);
            return kl__cval_err(e, "no such overload: join");
        }
        if (i && n == 2)
            kl_buf_add(&b, a[1].s.p, a[1].s.n);
        kl_buf_add(&b, v.s.p, v.s.n);
    }
    return kl__cval_take(e, &b);
}

static uint64_t cost_join(const kl__cval *a, size_t n, kl__cval result)
{
    (void)a;
    (void)n;
    return tenth(2 * kl__cval_size(result));
}

/* White space as Unicode has it. */
static size_t space(const char *s, size_t n)
{
    static const char *const wide[] = {"\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
        "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87",
        "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
        "\xe2\x81\x9f", "\xe3\x80\x80"};
    if (n && s[0] && strchr(" \t\n\v\f\r", s[0]))
        return 1;
    for (size_t i = 0; n && (unsigned char)s[0] >= 0xc2 && i < sizeof wide / sizeof *wide; i++)
        if (n >= strlen(wide[i]) && !memcmp(s, wide[i], strlen(wide[i])))
            return strlen(wide[i]);
    return 0;
}

static kl__cval trim(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    size_t from = 0, to = 0, step;
    while ((step = space(a[0].s.p + from, a[0].s.n - from)))
        from += step;
    for (size_t at = from; at < a[0].s.n;) {
        step = space(a[0].s.p + at, a[0].s.n - at);
        at += step ? step : char_len(a[0].s.p + at, a[0].s.n - at);
        to = step ? to : at;
    }
    return slice(e, a[0], from, to < from ? from : to);
}

static kl__cval quote(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
    kl_buf b = KL_BUF_INIT;
    kl_buf_putc(&b, '"');
    for (size_t i = 0; i < a[0].s.n; i++) {
        const char *at = a[0].s.p[i] ? strchr(from, a[0].s.p[i]) : NULL;
        if (at)
            kl_buf_putc(&b, '\\');
        kl_buf_putc(&b, at ? to[at - from] : a[0].s.p[i]);
    }
    kl_buf_putc(&b, '"');
    return kl__cval_take(e, &b);
}

const kl__cfunc kl__cel_strings[] = {
    {"contains", ".ss>b", contains, cost_contains},
    {"startsWith", ".ss>b", starts_with, cost_first},
    {"endsWith", ".ss>b", ends_with, cost_first},
    {"matches", "ss>b", matches, cost_regex},
    {"matches", ".ss>b", matches, cost_regex},
    {"find", ".ss>s", find, cost_regex},
    {"findAll", ".ss>Ls", find_all, cost_regex},
    {"findAll", ".ssi>Ls", find_all, cost_regex},
    {"charAt", ".si>s", char_at, NULL},
    {"indexOf", ".ss>i", index_of, cost_place},
    {"indexOf", ".ssi>i", index_of, cost_place},
    {"lastIndexOf", ".ss>i", last_index_of, cost_place},
    {"lastIndexOf", ".ssi>i", last_index_of, cost_place},
    {"lowerAscii", ".s>s", lower, cost_first},
    {"upperAscii", ".s>s", upper, cost_first},
    {"replace", ".sss>s", replace, cost_twice},
    {"replace", ".sssi>s", replace, cost_twice},
    {"split", ".ss>Ls", split, cost_twice},
    {"split", ".ssi>Ls", split, cost_twice},
    {"substring", ".si>s", substring, cost_first},
    {"substring", ".sii>s", substring, cost_first},
    {"trim", ".s>s", trim, cost_first},
    {"join", ".Ls>s", join, cost_join},
    {"join", ".Lss>s", join, cost_join},
    {"format", ".s*>s", kl__cel_format, cost_first},
    {"strings.quote", "s>s", quote, cost_first},
    {NULL},
};
