/* jsonpath.c - evaluates a JSONPath step by step: each takes the values that the steps before selected, and
 * replaces them by what it selects in them. */
#include "show/jsonpath.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TERMINATORS ".,[]$@{} \t\r\n"
/* More values than this are not collected: a path of recursive steps would multiply them. */
#define FOUND_MAX ((size_t)1 << 16)

/* Values looked at in one step, which may be far more than it selects. */
#define WORK_MAX ((size_t)1 << 20)

typedef struct found {
    const kl_value **v;
    size_t n, room, work;
} found;

static bool put(found *f, const kl_value *v)
{
    if (f->n == FOUND_MAX)
        return false;
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 8;
        f->v = kl_realloc(f->v, f->room * sizeof *f->v);
    }
    f->v[f->n++] = v;
    return true;
}

static void found_fini(found *f)
{
    kl_free(f->v);
    *f = (found){0};
}

/* f becomes next; after an error it stays as it was, which decides about an existence filter. Returns ok. */
static bool become(found *f, found next, bool ok)
{
    if (ok) {
        kl_free(f->v);
        *f = next;
    } else
        kl_free(next.v);
    return ok;
}

/* `made`: the literals of one evaluation. Paths nest, but not deep: a filter ends at its first ")". */
static bool evaluate(found *made, const char *p, const char *end, found *f);

/* --- steps: false is an error ------------------------------------------------------------- */

static bool children(const kl_value *v, found *to)
{
    bool ok = true, list = kl_value_type(v) == KL_ARRAY;
    size_t n = list || kl_value_type(v) == KL_OBJECT ? kl_value_len(v) : 0;
    for (size_t i = 0; i < n && ok; i++)
        ok = put(to, list ? kl_value_item(v, i) : kl_value_member(v, i, NULL, NULL));
    return ok;
}

/* The value, and all that is in it, each before what it contains. What is empty or no container is not among
 * them, but a text is, whose bytes Go counts. */
static bool descend(const kl_value *v, found *to)
{
    found below = {0};
    bool ok = ++to->work < WORK_MAX && children(v, &below);
    if (below.n || (kl_value_type(v) == KL_STRING && kl_value_len(v)))
        ok = ok && put(to, v);
    for (size_t i = 0; i < below.n && ok; i++)
        ok = descend(below.v[i], to);
    found_fini(&below);
    return ok;
}

/* Replaces each value by what `below` selects in it. */
static bool each(found *f, bool (*below)(const kl_value *v, found *to))
{
    found next = {0};
    bool ok = true;
    for (size_t i = 0; i < f->n && ok; i++)
        ok = below(f->v[i], &next);
    return become(f, next, ok);
}

static void field(found *f, const char *key, size_t n)
{
    found next = {0};
    for (size_t i = 0; i < f->n; i++) {
        const kl_value *v = kl_value_getn(f->v[i], key, n);
        if (v)
            (void)put(&next, v); /* no more than there were */
    }
    (void)become(f, next, true);
}

/* [first:last:step] */
typedef struct slice {
    int64_t first, last, step;
    bool has_last, single; /* single: [first] */
} slice;

/* Reads a whole number with its sign. False: none is there, or it has more than 63 bits. */
static bool number(const char **p, const char *end, int64_t *out)
{
    const char *at = *p;
    char *stop;
    if (at < end && *at == '-')
        at++;
    if (at == end || !isdigit((unsigned char)*at))
        return false;
    errno = 0;
    *out = strtoll(*p, &stop, 10);
    *p = stop;
    return stop <= end && !errno;
}

/* Reads a bound of a slice, which may be missing (*there). False: it is not a number. */
static bool bound(const char **p, const char *end, int64_t *out, bool *there)
{
    *there = *p < end && **p != ':';
    return !*there || number(p, end, out);
}

static bool read_slice(const char *p, const char *end, slice *s)
{
    bool first, step;
    *s = (slice){.step = 1};
    if (!bound(&p, end, &s->first, &first))
        return false;
    s->single = p == end;
    if (p < end && *p++ == ':' && !bound(&p, end, &s->last, &s->has_last))
        return false;
    if (p < end && *p++ == ':' && !bound(&p, end, &s->step, &step))
        return false;
    return p == end;
}

static bool items(found *f, const slice *s)
{
    found next = {0};
    bool ok = true, more = true;
    for (size_t i = 0; i < f->n && ok && more; i++) {
        const kl_value *v = f->v[i];
        int64_t len = (int64_t)kl_value_len(v), first = s->first, last = s->has_last ? s->last : len;
        if (kl_value_type(v) == KL_NULL)
            continue;
        if (first < 0)
            first += len;
        if (last < 0)
            last += len;
        bool inside = first >= 0 && first < len;
        if (s->single)
            last = inside ? first + 1 : len + 1;
        ok = kl_value_type(v) == KL_ARRAY;
        more = first != last; /* none of this list: client-go looks at no other */
        ok = ok && (!more || (s->step > 0 && inside && last <= len && first < last));
        for (int64_t k = first; ok && k < last; k = s->step < last - k ? k + s->step : last)
            ok = put(&next, kl_value_item(v, (size_t)k));
    }
    return become(f, next, ok);
}

/* --- filters ------------------------------------------------------------------------------ */

typedef enum compared { LESS = 1, EQUAL = 2, MORE = 4 } compared;

static const struct {
    const char *sign;
    unsigned passes; /* the results of a comparison that pass */
    bool order;      /* compares more than equality, which booleans do not have */
} operators[] = {{"==", EQUAL, false}, {"!=", LESS | MORE, false}, {"<", LESS, true}, {">", MORE, true},
    {"<=", LESS | EQUAL, true}, {">=", MORE | EQUAL, true}};
#define N_OPERATORS (sizeof operators / sizeof *operators)

/* Kinds that Go compares; false: these two it does not. */
static bool compare(const kl_value *a, const kl_value *b, bool order, compared *out)
{
    kl_type t = kl_value_type(a);
    if (t != kl_value_type(b))
        return false;
    int64_t i = 0, k = 0;
    double x = kl_value_double(a, 0), y = kl_value_double(b, 0);
    int way;
    switch (t) {
    case KL_BOOL:
        way = kl_value_bool(a, false) - kl_value_bool(b, false);
        if (order)
            return false;
        break;
    case KL_INT: way = kl_value_int(a, &i) && kl_value_int(b, &k) ? (i > k) - (i < k) : 0; break;
    case KL_DOUBLE: way = (x > y) - (x < y); break;
    case KL_STRING: way = strcmp(kl_value_str(a), kl_value_str(b)); break;
    default: return false;
    }
    *out = way < 0 ? LESS : way > 0 ? MORE : EQUAL;
    return true;
}

/* Whether the item passes "left op right"; with no operator: whether left selects anything in it. Without an
 * item (NULL) both sides are only read. */
static bool passes(found *made, const kl_value *item, const char *p, const char *end, bool *pass)
{
    const char *op = p + strcspn(p, "!<>=");
    size_t n = strspn(op, "!<>="), which = 0;
    found left = {0}, right = {0};
    compared is;
    size_t before = made ? made->n : 0;
    if (op + n == end && n > 1)
        n--; /* the right side has at least one character */
    bool exists = op == p || op + n >= end;
    bool ok = (!item || put(&left, item)) && evaluate(made, p, exists ? end : op, &left);
    *pass = false;
    while (
        which < N_OPERATORS && (strlen(operators[which].sign) != n || strncmp(operators[which].sign, op, n)))
        which++;
    if (exists) {
        *pass = left.n; /* also after an error */
        ok = ok || item;
    } else if (ok && (left.n || !item)) {
        ok = left.n <= 1 && (!item || put(&right, item)) && evaluate(made, op + n, end, &right)
            && right.n <= 1;
        if (ok && item && right.n) {
            ok = which < N_OPERATORS && compare(left.v[0], right.v[0], operators[which].order, &is);
            *pass = ok && (operators[which].passes & is);
        }
    }
    while (made && made->n > before)
        kl_value_unref(made->v[--made->n]);
    found_fini(&left);
    found_fini(&right);
    return ok;
}

static bool filter(found *made, found *f, const char *p, const char *end)
{
    found next = {0};
    bool pass, ok = passes(NULL, NULL, p, end, &pass);
    for (size_t i = 0; i < f->n && ok; i++) {
        ok = kl_value_type(f->v[i]) == KL_ARRAY;
        for (size_t k = 0; k < kl_value_len(f->v[i]) && ok; k++) {
            const kl_value *item = kl_value_item(f->v[i], k);
            ok = passes(made, item, p, end, &pass) && (!pass || put(&next, item));
        }
    }
    return become(f, next, ok);
}

/* --- reading a path ----------------------------------------------------------------------- */

/* What follows a dot: the name up to the next dot, bracket, comma, brace or space, without backslashes. */
static bool name(const char **p, const char *end, found *f)
{
    char *key = kl_alloc((size_t)(end - *p) + 1);
    size_t n = 0;
    bool ok = true;
    for (; *p < end && !strchr(TERMINATORS, **p); ++*p) {
        if (**p == '\\' && ++*p == end)
            break;
        key[n++] = **p;
    }
    if (n == 1 && *key == '*')
        ok = each(f, children);
    else
        field(f, key, n);
    kl_free(key);
    return ok;
}

/* The inside of brackets: a name in quotes, of which dots separate; an index; a slice; * */
static bool element(found *made, const char *p, const char *end, found *f)
{
    slice s;
    if (end - p >= 2 && *p == '\'' && end[-1] == '\'' && !memchr(p + 1, '\'', (size_t)(end - p - 2))) {
        char *path = kl_sprintf(".%.*s", (int)(end - p - 2), p + 1);
        bool ok = evaluate(made, path, path + strlen(path), f);
        kl_free(path);
        return ok;
    }
    if (end - p == 1 && *p == '*')
        return items(f, &(slice){.step = 1});
    return read_slice(p, end, &s) && items(f, &s);
}

static bool unite(found *made, const char *p, const char *end, found *f)
{
    found all = {0};
    bool ok = true;
    while (ok && p <= end) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end, *last = stop;
        found some = {0};
        ok = (all.work += f->n) < WORK_MAX;
        for (size_t i = 0; i < f->n && ok; i++)
            ok = put(&some, f->v[i]);
        while (p < last && *p == ' ')
            p++;
        while (p < last && last[-1] == ' ')
            last--;
        ok = ok && element(made, p, last, &some);
        for (size_t i = 0; i < some.n && ok; i++)
            ok = put(&all, some.v[i]);
        found_fini(&some);
        p = stop + 1;
    }
    return become(f, all, ok);
}

/* Where a filter ends: at the ")" outside of quotes. NULL: nowhere. */
static const char *filter_end(const char *p, const char *end)
{
    char quote = 0;
    for (; p < end; p++)
        if (quote) {
            if (*p == quote && p[-1] != '\\')
                quote = 0;
        } else if (*p == '"' || *p == '\'')
            quote = *p;
        else if (*p == ')')
            return p + 1 < end && p[1] == ']' ? p : NULL;
    return NULL;
}

static bool bracket(found *made, const char **p, const char *end, found *f)
{
    const char *from = *p + 1, *stop;
    if (end - from >= 2 && from[0] == '?' && from[1] == '(') {
        if (!(stop = filter_end(from + 2, end)))
            return false;
        *p = stop + 2;
        return filter(made, f, from + 2, stop);
    }
    if (!(stop = memchr(from, ']', (size_t)(end - from))))
        return false;
    *p = stop + 1;
    return memchr(from, ',', (size_t)(stop - from)) ? unite(made, from, stop, f)
                                                    : element(made, from, stop, f);
}

/* A literal is a step, too: it takes the place of each value, and a text that of all. Takes v. Without `made`
 * the path is only read. */
static bool literal(found *made, const kl_value *v, bool text, found *f)
{
    bool ok = made && put(made, v);
    if (!ok)
        kl_value_unref(v);
    if (!made)
        return true;
    if (text)
        f->n = 0;
    if (text && ok)
        ok = put(f, v);
    for (size_t i = 0; i < f->n; i++)
        f->v[i] = v;
    return ok;
}

/* What follows a backslash in a text, or -1. */
static int escaped(char c)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *at = c ? strchr(from, c) : NULL;
    return at ? to[at - from] : -1;
}

static bool quoted(found *made, const char **p, const char *end, found *f)
{
    char quote = *(*p)++, *text = kl_alloc((size_t)(end - *p) + 1);
    size_t n = 0;
    bool ok = true;
    for (; ok && *p < end && **p != quote; ++*p) {
        bool backslash = **p == '\\' && *p + 1 < end;
        int c = backslash ? escaped(*++*p) : **p;
        text[n++] = (char)c;
        ok = !backslash || c >= 0;
    }
    ok = ok && *p < end && literal(made, kl_value_of_strn(text, n), true, f);
    ++*p;
    kl_free(text);
    return ok;
}

static bool digits(found *made, const char **p, const char *end, found *f)
{
    const char *from = *p + (**p == '+'), *at = *p + 1;
    while (at < end && (isdigit((unsigned char)*at) || *at == '.'))
        at++;
    *p = at;
    char *text = kl_strndup(from, (size_t)(at - from)), *stop;
    int64_t whole;
    const char *begin = text;
    bool ok = true;
    if (number(&begin, text + strlen(text), &whole) && !*begin)
        ok = literal(made, kl_value_of_int(whole), false, f);
    else {
        double d = strtod(text, &stop);
        ok = stop != text && !*stop && isfinite(d) && literal(made, kl_value_of_double(d), false, f);
    }
    kl_free(text);
    return ok;
}

/* true and false are values; any other word can be read, but not evaluated. */
static bool word(found *made, const char **p, const char *end, found *f)
{
    const char *from = *p;
    while (*p < end && !strchr(TERMINATORS, **p))
        ++*p;
    size_t n = (size_t)(*p - from);
    bool yes = n == 4 && !strncmp(from, "true", 4), no = n == 5 && !strncmp(from, "false", 5);
    return yes || no ? literal(made, kl_value_of_bool(yes), false, f) : !f->n;
}

static bool evaluate(found *made, const char *p, const char *end, found *f)
{
    bool ok = true, recursive = false; /* recursive: after "..", which may not come twice in a row */
    while (ok && p < end) {
        bool twice = *p == '.' && p + 1 < end && p[1] == '.', again = twice && recursive;
        if (*p == '@' || *p == '$' || *p == ' ') {
            p++;
            continue;
        }
        recursive = twice;
        if (twice) {
            p += 2;
            ok = !again && each(f, descend);
            if (ok && p < end && (isalnum((unsigned char)*p) || *p == '_')) {
                recursive = false;
                ok = name(&p, end, f);
            }
        } else if (*p == '.') {
            p++;
            ok = name(&p, end, f);
        } else if (*p == '[')
            ok = bracket(made, &p, end, f);
        else if (*p == '"' || *p == '\'')
            ok = quoted(made, &p, end, f);
        else if (isdigit((unsigned char)*p) || *p == '-' || *p == '+')
            ok = digits(made, &p, end, f);
        else
            ok = (isalpha((unsigned char)*p) || *p == '_') && word(made, &p, end, f);
    }
    return ok;
}

static void unref_all(found *made)
{
    for (size_t i = 0; i < made->n; i++)
        kl_value_unref(made->v[i]);
    found_fini(made);
}

bool kl_jsonpath_reads(const char *path)
{
    found none = {0};
    bool ok = evaluate(NULL, path, path + strlen(path), &none);
    found_fini(&none);
    return ok;
}

const kl_value *kl_jsonpath_first(const kl_value *v, const char *path)
{
    found made = {0}, f = {0};
    bool ok = put(&f, v) && evaluate(&made, path, path + strlen(path), &f);
    const kl_value *first = ok && f.n ? kl_value_ref(f.v[0]) : NULL;
    found_fini(&f);
    unref_all(&made);
    return first;
}
