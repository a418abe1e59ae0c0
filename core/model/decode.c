/* decode.c - JSON text to a value, in one pass.
 *
 * A loop with its own frames, no recursion: members and items gather on one stack and become a node when their container
 * closes. Strings without escapes go from the text into the table with no copy between. Strict: RFC 8259, UTF-8 checked,
 * duplicate keys and lone surrogates refused, at most KL_VALUE_DEPTH_MAX levels. Errors know only an offset; line and
 * column are counted when one is told. */
#include "model/intern.h"

#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "model/number.h"

typedef struct frame {
    size_t base;               /* where its slots begin on the stack */
    uint64_t serial;
    size_t replaces;           /* the member that the pending value belongs to instead of a new one, or SIZE_MAX */
    bool object;
} frame;

typedef struct decoder {
    const char *text, *p, *end;
    int managed_at;            /* see kl__value_decode */
    bool last_wins;            /* a key that comes again replaces the earlier member */
    kl__stack stack;
    kl__seen seen;
    kl_buf scratch;            /* a string whose escapes are undone */
    kl_err *err;
    uint64_t serials;
    size_t depth;
    frame frames[KL_VALUE_DEPTH_MAX];
} decoder;

/* --- telling errors ------------------------------------------------------------------------------------------------------ */

static kl_status fail_at(decoder *d, const char *at, const char *what)
{
    if (!d->err)
        return KL_ESYNTAX;
    size_t line = 1;
    const char *start = d->text;
    for (const char *nl; (nl = memchr(start, '\n', (size_t)(at - start))); start = nl + 1)
        line++;
    return kl_fail(d->err, KL_ESYNTAX, "JSON is malformed at byte %zu (line %zu, column %zu): %s", (size_t)(at - d->text), line, (size_t)(at - start) + 1, what);
}

/* A message about the character at `at`, or about the end of the text. */
static kl_status unexpected(decoder *d, const char *at, const char *wanted)
{
    char what[96];
    if (at >= d->end)
        snprintf(what, sizeof what, "the text ends where %s is expected", wanted);
    else if ((unsigned char)*at > ' ' && (unsigned char)*at < 0x7f)
        snprintf(what, sizeof what, "'%c' where %s is expected", *at, wanted);
    else
        snprintf(what, sizeof what, "byte 0x%02x where %s is expected", (unsigned char)*at, wanted);
    return fail_at(d, at, what);
}

/* --- strings -------------------------------------------------------------------------------------------------------------- */

/* 1: ends the plain run (quote, backslash, control character, non-ASCII). */
static const unsigned char stops[256] = {
    [0 ... 31] = 1, ['"'] = 1, ['\\'] = 1, [128 ... 255] = 1,
};

static int hex4(const char *p)
{
    int x = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
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

/* d->p is after a backslash: undoes one escape into scratch. */
static kl_status unescape(decoder *d)
{
    const char *from = d->p - 1;
    char c = d->p < d->end ? *d->p : '\0', out[4];
    size_t n = 1;
    switch (c) {
    case '"': case '\\': case '/': out[0] = c; break;
    case 'b': out[0] = '\b'; break;
    case 'f': out[0] = '\f'; break;
    case 'n': out[0] = '\n'; break;
    case 'r': out[0] = '\r'; break;
    case 't': out[0] = '\t'; break;
    case 'u': {
        int hi = d->end - d->p >= 5 ? hex4(d->p + 1) : -1;
        if (hi < 0)
            return fail_at(d, from, "\\u wants four hexadecimal digits");
        uint32_t point = (uint32_t)hi;
        if (hi >= 0xd800 && hi <= 0xdfff) {
            int lo = hi < 0xdc00 && d->end - d->p >= 11 && d->p[5] == '\\' && d->p[6] == 'u' ? hex4(d->p + 7) : -1;
            if (lo < 0xdc00 || lo > 0xdfff)
                return fail_at(d, from, "half of a surrogate pair in a string");
            point = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
            d->p += 6;
        }
        n = utf8_put(out, point);
        d->p += 4;
        break;
    }
    default:
        return d->p >= d->end ? fail_at(d, d->end, "the text ends inside a string") : fail_at(d, from, "unknown escape in a string");
    }
    d->p++;
    if (kl_buf_add(&d->scratch, out, n))
        return fail_at(d, from, "the string is too long");
    return KL_OK;
}

/* d->p is after the opening quote. A new reference. */
static kl_status string(decoder *d, const kl_value **out)
{
    const char *run = d->p;              /* begin of what is not yet in scratch */
    bool escaped = false;
    kl_buf_clear(&d->scratch);
    for (;;) {
        while (d->p < d->end && !stops[(unsigned char)*d->p])
            d->p++;
        if (d->p >= d->end)
            return fail_at(d, d->end, "the text ends inside a string");
        unsigned char c = (unsigned char)*d->p;
        if (c == '"')
            break;
        if (c == '\\') {
            escaped = true;
            if (kl_buf_add(&d->scratch, run, (size_t)(d->p - run)))
                return fail_at(d, run, "the string is too long");
            d->p++;
            kl_status st = unescape(d);
            if (st)
                return st;
            run = d->p;
        } else if (c < ' ') {
            return fail_at(d, d->p, "a control character inside a string must be escaped");
        } else {
            const char *from = d->p;
            while (d->p < d->end && (unsigned char)*d->p >= 0x80)
                d->p++;
            if (!kl_utf8_valid(from, (size_t)(d->p - from)))
                return fail_at(d, from, "invalid UTF-8 in a string");
        }
    }
    size_t n = (size_t)(d->p - run);
    d->p++;
    if (!escaped) {
        *out = kl__intern_str(run, n);
        return KL_OK;
    }
    if (kl_buf_add(&d->scratch, run, n))
        return fail_at(d, run, "the string is too long");
    *out = kl__intern_str(d->scratch.data, d->scratch.len);
    return KL_OK;
}

/* --- numbers --------------------------------------------------------------------------------------------------------------- */

static bool digit(const decoder *d)
{
    return d->p < d->end && *d->p >= '0' && *d->p <= '9';
}

static kl_status number(decoder *d, const kl_value **out)
{
    const char *from = d->p;
    bool minus = *d->p == '-', integral = true, overflow = false;
    uint64_t u = 0;
    d->p += minus;
    if (!digit(d))
        return unexpected(d, d->p, "a digit");
    if (*d->p == '0') {
        d->p++;
        if (digit(d))
            return fail_at(d, from, "a number must not begin with 0");
    } else {
        for (; digit(d); d->p++)
            overflow |= __builtin_mul_overflow(u, 10u, &u) | __builtin_add_overflow(u, (uint64_t)(*d->p - '0'), &u);
    }
    if (d->p < d->end && *d->p == '.') {
        integral = false;
        for (d->p++; digit(d); d->p++)
            ;
        if (d->p[-1] == '.')
            return unexpected(d, d->p, "a digit");
    }
    if (d->p < d->end && (*d->p == 'e' || *d->p == 'E')) {
        integral = false;
        d->p++;
        if (d->p < d->end && (*d->p == '+' || *d->p == '-'))
            d->p++;
        if (!digit(d))
            return unexpected(d, d->p, "a digit");
        while (digit(d))
            d->p++;
    }
    if (integral && !overflow && !minus) {
        *out = kl_value_of_uint(u);
        return KL_OK;
    }
    if (integral && !overflow && u <= (uint64_t)INT64_MAX + 1) {
        *out = kl_value_of_int((int64_t)(0 - u));
        return KL_OK;
    }
    double x;
    if (!kl__double_parse(from, (size_t)(d->p - from), &x))
        return fail_at(d, from, "a number beyond the range of a double");
    *out = kl_value_of_double(x);
    return KL_OK;
}

/* --- structure ---------------------------------------------------------------------------------------------------------------- */

static void space(decoder *d)
{
    while (d->p < d->end && (*d->p == ' ' || *d->p == '\n' || *d->p == '\r' || *d->p == '\t'))
        d->p++;
}

static bool word(decoder *d, const char *w, size_t n)
{
    if ((size_t)(d->end - d->p) < n || memcmp(d->p, w, n))
        return false;
    d->p += n;
    return true;
}

static bool string_is(const kl_value *v, const char *s)
{
    return !strcmp(kl_value_str(v), s);
}

/* Whether the key just read is the metadata.managedFields that the caller does not want. */
static bool unwanted(const decoder *d, const kl_value *key)
{
    if (d->managed_at < 0 || d->depth != (size_t)d->managed_at + 2 || !string_is(key, "managedFields"))
        return false;
    for (size_t i = 1; i < d->depth; i++)
        if (!d->frames[i - 1].object)
            return false;
    return string_is(d->stack.v[d->frames[d->depth - 1].base - 1], "metadata")
        && (d->managed_at == 0 || string_is(d->stack.v[d->frames[d->depth - 2].base - 1], "object"));
}

/* Steps over a value by its brackets and quotes alone. */
static kl_status skip(decoder *d)
{
    size_t depth = 0;
    do {
        if (d->p >= d->end)
            return fail_at(d, d->end, "the text ends inside managedFields");
        char c = *d->p++;
        if (c == '"') {
            while (d->p < d->end && *d->p != '"')
                d->p += *d->p == '\\' && d->end - d->p > 1 ? 2 : 1;
            if (d->p >= d->end)
                return fail_at(d, d->end, "the text ends inside a string");
            d->p++;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (!depth)
                return fail_at(d, d->p - 1, "a value is expected for managedFields");
            depth--;
        } else if (!depth) {                    /* a bare word or number: up to what ends it */
            while (d->p < d->end && !strchr(",}] \t\r\n", *d->p))
                d->p++;
        }
    } while (depth);
    return KL_OK;
}

/* A key and its colon; *skipped when the member was stepped over. d->p is at the quote. */
static kl_status member_key(decoder *d, bool *skipped)
{
    frame *f = &d->frames[d->depth - 1];
    const char *from = d->p;
    const kl_value *key;
    if (d->p >= d->end || *d->p != '"')
        return unexpected(d, d->p, "a key in double quotes");
    d->p++;
    kl_status st = string(d, &key);
    if (st)
        return st;
    *skipped = unwanted(d, key);
    size_t place = *skipped ? SIZE_MAX : kl__seen_check(&d->seen, f->serial, &d->stack, f->base, key);
    if (place != SIZE_MAX && !d->last_wins) {
        char *what = kl_sprintf("duplicate key \"%.80s\"", kl_value_str(key));
        st = fail_at(d, from, what);
        kl_free(what);
        kl_value_unref(key);
        return st;
    }
    f->replaces = place;
    if (*skipped || place != SIZE_MAX)
        kl_value_unref(key);
    else
        kl__stack_push(&d->stack, key);
    space(d);
    if (d->p >= d->end || *d->p != ':')
        return unexpected(d, d->p, "':'");
    d->p++;
    space(d);
    return *skipped ? skip(d) : KL_OK;
}

static kl_status open_container(decoder *d, bool object)
{
    if (d->depth == KL_VALUE_DEPTH_MAX)
        return fail_at(d, d->p, "nested deeper than 512 levels");
    d->frames[d->depth++] = (frame){ d->stack.len, d->serials++, SIZE_MAX, object };
    d->p++;
    space(d);
    return KL_OK;
}

static void close_container(decoder *d)
{
    frame *f = &d->frames[--d->depth];
    size_t n = d->stack.len - f->base;
    const kl_value *v = kl__intern_container(f->object ? KL_OBJECT : KL_ARRAY, n ? d->stack.v + f->base : NULL, f->object ? n / 2 : n);
    d->stack.len = f->base;
    d->p++;
    kl__stack_push(&d->stack, v);
}

static kl_status scalar(decoder *d)
{
    const kl_value *v = NULL;
    kl_status st = KL_OK;
    char c = d->p < d->end ? *d->p : '\0';
    if (c == '"') {
        d->p++;
        st = string(d, &v);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        st = number(d, &v);
    } else if (word(d, "true", 4)) {
        v = KL__TRUE;
    } else if (word(d, "false", 5)) {
        v = KL__FALSE;
    } else if (word(d, "null", 4)) {
        v = KL__NULL;
    } else {
        st = unexpected(d, d->p, "a value");
    }
    if (!st)
        kl__stack_push(&d->stack, v);
    return st;
}

/* The value on top of the stack takes the place of an earlier one, when its key came before. */
static void settle(decoder *d)
{
    frame *f = &d->frames[d->depth - 1];
    if (f->replaces == SIZE_MAX)
        return;
    const kl_value **place = &d->stack.v[f->base + 2 * f->replaces + 1], *old = *place;
    *place = d->stack.v[--d->stack.len];
    f->replaces = SIZE_MAX;
    kl_value_unref(old);
}

/* After a complete value: closes what closes here. *more when another member or item follows. */
static kl_status after_value(decoder *d, bool *more)
{
    *more = false;
    while (d->depth) {
        bool object = d->frames[d->depth - 1].object;
        settle(d);
        space(d);
        if (d->p < d->end && *d->p == ',') {
            d->p++;
            space(d);
            *more = true;
            return KL_OK;
        }
        if (d->p >= d->end || *d->p != (object ? '}' : ']'))
            return unexpected(d, d->p, object ? "',' or '}'" : "',' or ']'");
        close_container(d);
    }
    return KL_OK;
}

static kl_status document(decoder *d)
{
    bool more;
    space(d);
    do {
        bool skipped = false;
        kl_status st = KL_OK;
        if (d->depth && d->frames[d->depth - 1].object)
            st = member_key(d, &skipped);
        while (!st && !skipped && d->p < d->end && (*d->p == '{' || *d->p == '[')) {
            bool object = *d->p == '{';
            st = open_container(d, object);
            if (!st && d->p < d->end && *d->p == (object ? '}' : ']')) {
                close_container(d);
                goto whole;
            }
            if (!st && object)
                st = member_key(d, &skipped);
        }
        if (!st && !skipped)
            st = scalar(d);
        if (st)
            return st;
    whole:
        st = after_value(d, &more);
        if (st)
            return st;
    } while (more);
    space(d);
    return d->p < d->end ? unexpected(d, d->p, "nothing more") : KL_OK;
}

static kl_status decode(const char *text, size_t n, int managed_at, bool last_wins, const kl_value **out, kl_err *err)
{
    decoder d;
    d.text = d.p = text ? text : "";
    d.end = d.text + n;
    d.managed_at = managed_at;
    d.last_wins = last_wins;
    d.stack = (kl__stack){0};
    d.seen = (kl__seen){0};
    kl_buf_init(&d.scratch, 0);
    d.err = err;
    d.serials = 0;
    d.depth = 0;
    kl_status st = document(&d);
    if (!st)
        *out = d.stack.v[--d.stack.len];
    kl__stack_fini(&d.stack);
    kl__seen_fini(&d.seen);
    kl_buf_fini(&d.scratch);
    return st;
}

kl_status kl__value_decode(const char *text, size_t n, int managed_at, const kl_value **out, kl_err *err)
{
    return decode(text, n, managed_at, false, out, err);
}

kl_status kl_value_decode(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    return decode(text, n, -1, false, out, err);
}

kl_status kl_value_decode_last(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    return decode(text, n, -1, true, out, err);
}
