/* syntax.c - the syntax of JSON, as Go's encoding/json checks a text before it decodes it.
 *
 *   VALUE -> AFTER in an array: "," VALUE, or "]" AFTER
 *   KEY -> COLON -> VALUE -> AFTER in an object: "," KEY, or "}" AFTER
 *
 * FIRST_VALUE and FIRST_KEY may be the end of their container. */
#include "server/syntax.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "value/value.h"

/* Go's limit of nested containers */
#define DEPTH_MAX 10000

typedef enum state { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER } state;

typedef struct reader {
    const unsigned char *p, *end;
    const char *wrong; /* where the character at p, or the end, does not fit */
    size_t depth;
    bool objects[DEPTH_MAX]; /* which of the open containers are objects */
} reader;

static bool at_end(const reader *r) { return r->p == r->end; }
static bool digit(const reader *r) { return !at_end(r) && *r->p >= '0' && *r->p <= '9'; }
static bool at(const reader *r, const char *any) { return !at_end(r) && *r->p && strchr(any, *r->p); }

static void digits(reader *r)
{
    while (digit(r))
        r->p++;
}

/* Notes a mistake unless `fits`. Returns whether the text goes on. */
static bool expect(reader *r, bool fits, const char *wrong)
{
    if (!fits)
        r->wrong = wrong;
    return fits;
}

static bool number(reader *r)
{
    static const char literal[] = "in numeric literal", exponent[] = "in exponent of numeric literal";
    if (*r->p == '-')
        r->p++;
    if (!expect(r, digit(r), literal))
        return false;
    if (*r->p == '0')
        r->p++;
    else
        digits(r);
    if (at(r, ".")) {
        r->p++;
        if (!expect(r, digit(r), "after decimal point in numeric literal"))
            return false;
        digits(r);
    }
    if (at(r, "eE")) {
        r->p++;
        if (at(r, "+-"))
            r->p++;
        if (!expect(r, digit(r), exponent))
            return false;
        digits(r);
    }
    return true;
}

/* An escape, behind its backslash; p ends at its last character. */
static bool escape(reader *r)
{
    if (!expect(r, at(r, "bfnrt\\/\"u"), "in string escape code"))
        return false;
    for (int left = *r->p == 'u' ? 4 : 0; left > 0; left--) {
        r->p++;
        if (!expect(r, at(r, "0123456789abcdefABCDEF"), "in \\u hexadecimal character escape"))
            return false;
    }
    return true;
}

/* A string, behind its first quotation mark. */
static bool string(reader *r)
{
    static const char wrong[] = "in string literal";
    for (; !at_end(r) && *r->p != '"'; r->p++)
        if (!expect(r, *r->p >= ' ', wrong) || (*r->p == '\\' && (r->p++, !escape(r))))
            return false;
    return !at_end(r) && r->p++;
}

static bool word(reader *r, const char *all, const char *const *wrong)
{
    for (size_t i = 0; all[i]; i++, r->p++)
        if (!expect(r, !at_end(r) && *r->p == (unsigned char)all[i], wrong[i]))
            return false;
    return true;
}

static bool literal(reader *r)
{
    static const char *const t[] = {"", "in literal true (expecting 'r')", "in literal true (expecting 'u')",
        "in literal true (expecting 'e')"},
                             *const f[] = {"", "in literal false (expecting 'a')",
                                 "in literal false (expecting 'l')", "in literal false (expecting 's')",
                                 "in literal false (expecting 'e')"},
                             *const n[] = {"", "in literal null (expecting 'u')",
                                 "in literal null (expecting 'l')", "in literal null (expecting 'l')"};
    return *r->p == 't' ? word(r, "true", t) : *r->p == 'f' ? word(r, "false", f) : word(r, "null", n);
}

/* Reads what begins at p, and says what may follow. False: a mistake. */
static bool step(reader *r, state *s)
{
    bool inside = r->depth && r->objects[r->depth - 1];
    if ((*s == FIRST_KEY && at(r, "}")) || (*s == FIRST_VALUE && at(r, "]"))
        || (*s == AFTER && r->depth && at(r, inside ? "}" : "]"))) {
        r->p++;
        r->depth--;
        *s = AFTER;
        return true;
    }
    switch (*s) {
    case KEY:
    case FIRST_KEY:
        *s = COLON;
        return expect(r, at(r, "\""), "looking for beginning of object key string") && r->p++ && string(r);
    case COLON: *s = VALUE; return expect(r, at(r, ":"), "after object key") && r->p++;
    case AFTER:
        *s = inside ? KEY : VALUE;
        return expect(r, r->depth && at(r, ","),
                   !r->depth    ? "after top-level value"
                       : inside ? "after object key:value pair"
                                : "after array element")
            && r->p++;
    case VALUE:
    case FIRST_VALUE: break;
    }
    *s = AFTER;
    if (at(r, "{[")) {
        if (!expect(r, r->depth < DEPTH_MAX, "exceeded max depth"))
            return false;
        r->objects[r->depth++] = *r->p == '{';
        *s = *r->p++ == '{' ? FIRST_KEY : FIRST_VALUE;
        return true;
    }
    if (at(r, "\""))
        return r->p++ && string(r);
    if (at(r, "-0123456789"))
        return number(r);
    return expect(r, at(r, "tfn"), "looking for beginning of value") && literal(r);
}

/* A byte as Go quotes it: as the character of that number. */
static void quote(unsigned char c, kl_buf *out)
{
    static const char named[] = "\a\b\t\n\v\f\r\\'", letters[] = "abtnvfr\\'";
    const char *it = c ? strchr(named, c) : NULL;
    if (it)
        kl_buf_printf(out, "\\%c", letters[it - named]);
    else if (c < ' ' || c == 0x7f)
        kl_buf_printf(out, "\\x%02x", c);
    else if (c < 0x80)
        kl_buf_putc(out, (char)c);
    else if (c <= 0xa0 || c == 0xad)
        kl_buf_printf(out, "\\u%04x", c);
    else
        kl_buf_printf(out, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

static char *mistake(const reader *r)
{
    if (!r->wrong)
        return kl_strdup("unexpected end of JSON input");
    kl_buf out = KL_BUF_INIT;
    kl_buf_puts(&out, "invalid character '");
    quote(at_end(r) ? ' ' : *r->p, &out); /* Go ends a token by a blank */
    kl_buf_printf(&out, "' %s", r->wrong);
    return kl_buf_take(&out);
}

char *kl__json_mistake(const char *text, size_t n)
{
    reader *r = kl_new(reader);
    r->p = (const unsigned char *)text;
    r->end = r->p + n;
    state s = VALUE;
    bool good = true;
    while (good) {
        while (at(r, " \t\r\n"))
            r->p++;
        if (at_end(r))
            break;
        good = step(r, &s);
    }
    char *said = good && s == AFTER && !r->depth ? NULL : mistake(r);
    kl_free(r);
    return said;
}

/* ------------------------------------------------------------------ repeated keys */

/* Go reports each path once, and at most so many. */
#define TOLD_MAX 100

typedef struct walk {
    reader r;
    kl_buf path;
    void (*each)(void *arg, const char *path);
    void *arg;
    kl_map *told; /* the paths */
} walk;

static void skip(reader *r, const char *any)
{
    while (at(r, any))
        r->p++;
}

static void walk_value(walk *w);

static void cut(kl_buf *path, size_t len)
{
    path->len = len;
    if (path->data)
        path->data[len] = '\0';
}

/* A member whose key is at p. */
static void walk_member(walk *w, kl_map *seen)
{
    const char *start = (const char *)w->r.p++;
    const kl_value *key = NULL;
    size_t len = w->path.len;
    string(&w->r);
    if (kl_value_decode(start, (size_t)((const char *)w->r.p - start), &key, NULL))
        key = NULL;
    const char *name = kl_value_str(key);
    if (!name)
        name = "";
    kl_buf_printf(&w->path, "%s%s", len ? "." : "", name);
    if (kl_map_len(w->told) < TOLD_MAX && kl_map_has(seen, name)
        && !kl_map_has(w->told, kl_buf_str(&w->path))) {
        kl_map_set(w->told, kl_buf_str(&w->path), w);
        w->each(w->arg, kl_buf_str(&w->path));
    }
    kl_map_set(seen, name, seen);
    kl_value_unref(key);
    skip(&w->r, " \t\r\n:");
    walk_value(w);
    cut(&w->path, len);
}

/* The depth is bounded by KL_VALUE_DEPTH_MAX. */
static void walk_value(walk *w)
{
    static const char between[] = " \t\r\n,";
    size_t len = w->path.len, i = 0;
    skip(&w->r, between);
    bool object = at(&w->r, "{");
    if (object || at(&w->r, "[")) {
        kl_map *seen = object ? kl_map_new() : NULL;
        w->r.p++;
        for (skip(&w->r, between); !at(&w->r, "]}") && !at_end(&w->r); skip(&w->r, between)) {
            if (object)
                walk_member(w, seen);
            else {
                kl_buf_printf(&w->path, "[%zu]", i++);
                walk_value(w);
                cut(&w->path, len);
            }
        }
        kl_map_free(seen, NULL);
        w->r.p++;
    } else if (at(&w->r, "\"")) {
        w->r.p++;
        string(&w->r);
    } else
        while (!at_end(&w->r) && !at(&w->r, " \t\r\n,]}"))
            w->r.p++;
}

void kl__json_repeated(const char *text, size_t n, void (*each)(void *arg, const char *path), void *arg)
{
    walk *w = kl_new(walk);
    w->r.p = (const unsigned char *)text;
    w->r.end = w->r.p + n;
    w->each = each;
    w->arg = arg;
    w->told = kl_map_new();
    walk_value(w);
    kl_map_free(w->told, NULL);
    kl_buf_fini(&w->path);
    kl_free(w);
}
