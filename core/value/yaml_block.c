/* yaml_block.c - reads block YAML line by line, at ten times the speed of libyaml's events.
 *
 * The rule is: whatever is read here has the value that libyaml would have given, and whatever is not plain
 * to see is left to libyaml, from the beginning. So each function returns false at the first doubt, and there
 * are no messages. The fuzzer compares both.
 *
 *   container: a line's first word decides: "- " is a list, "key:" a mapping
 *   mapping, sequence: go on while lines have its indentation, and end at one with less
 *
 * What follows a dash on its line is a line of its own, whose indentation is its column (`from`). */
#include "value/yaml_block.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "value/scalar.h"

enum { DEPTH_MAX = 100, KEY_MAX = 1000 };

typedef struct block {
    const char *at, *end; /* the present line */
    const char *from;     /* where the present line begins behind a dash, or NULL */
    bool tabs;            /* the text has some */
    size_t depth;
    kl__stack stack;
    kl__seen seen;
    uint64_t serial; /* of the last mapping */
} block;

typedef struct line {
    const char *text; /* without its indentation */
    size_t n, indent;
} line;

/* --- lines -------------------------------------------------------------------------------- */

static const char *end_of_line(const block *b)
{
    const char *end = memchr(b->at, '\n', (size_t)(b->end - b->at));
    return end ? end : b->end;
}

/* The present line; false at the end of the text. */
static bool present(const block *b, line *l)
{
    if (b->at == b->end)
        return false;
    const char *end = end_of_line(b), *text = b->from ? b->from : b->at;
    while (!b->from && text < end && *text == ' ')
        text++;
    *l = (line){text, (size_t)(end - text), (size_t)(text - b->at)};
    return true;
}

static void advance(block *b)
{
    const char *end = end_of_line(b);
    b->at = end < b->end ? end + 1 : end;
    b->from = NULL;
}

static bool is_item(const line *l) { return l->n && l->text[0] == '-' && (l->n == 1 || l->text[1] == ' '); }

static bool is_separator(const line *l) { return !l->indent && l->n >= 3 && !memcmp(l->text, "---", 3); }

/* --- scalars ------------------------------------------------------------------------------ */

/* Whether a plain scalar may begin with it, wherever it stands. */
static bool begins_plain(char c) { return !memchr(",[]{}#&*!|>'\"%@`-?:= \t", c, 23); }

/* The bytes of the quoted text at the beginning of s, with its quotes; 0: it does not end on this line. */
static size_t quoted_length(const char *s, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (s[i] == '\\' && *s == '"')
            i++;
        else if (s[i] == *s && *s == '\'' && i + 1 < n && s[i + 1] == '\'')
            i++;
        else if (s[i] == *s)
            return i + 1;
    }
    return 0;
}

static bool unescaped(char c, char *out)
{
    static const char from[] = "\"\\nrt", to[] = "\"\\\n\r\t";
    const char *p = memchr(from, c, sizeof from - 1);
    if (p)
        *out = to[p - from];
    return p != NULL;
}

/* A text with its quotes. */
static bool quoted(const char *s, size_t n, const kl_value **out)
{
    char quote = *s;
    const char *p = s + 1, *end = s + n - 1;
    if (!memchr(p, quote == '"' ? '\\' : '\'', (size_t)(end - p))) {
        *out = kl_value_of_strn(p, (size_t)(end - p));
        return true;
    }
    char *text = kl_alloc(n), *to = text;
    bool ok = true;
    while (ok && p < end) {
        if (quote == '\'' && *p == '\'') {
            *to++ = '\'';
            p += 2;
        } else if (quote == '"' && *p == '\\') {
            ok = unescaped(p[1], to++);
            p += 2;
        } else {
            *to++ = *p++;
        }
    }
    if (ok)
        *out = kl_value_of_strn(text, (size_t)(to - text));
    kl_free(text);
    return ok;
}

/* Whether a plain scalar or a key is over before its end: a comment or a key would begin. */
static bool has_more(const char *s, size_t n)
{
    for (const char *p = s, *end = s + n; (p = memchr(p, ':', (size_t)(end - p))); p++)
        if (p + 1 == end || p[1] == ' ')
            return true;
    for (const char *p = s, *end = s + n; (p = memchr(p, '#', (size_t)(end - p))); p++)
        if (p > s && p[-1] == ' ')
            return true;
    return false;
}

/* A text after `|` or `|-`, of the lines that are further in than `indent`. */
static bool literal(block *b, const line *head, size_t indent, const kl_value **out)
{
    bool strip = head->n == 2 && head->text[1] == '-', ok = true;
    size_t inner = 0, blank = 0;
    kl_buf text = KL_BUF_INIT;
    if (head->n != 1 && !strip)
        return false;
    kl_buf_init(&text, (size_t)(b->end - b->at) + 1);
    for (advance(b); ok && b->at < b->end; advance(b)) {
        const char *end = end_of_line(b), *p = b->at;
        if (p == end) {
            blank++;
            continue;
        }
        while (p < end && *p == ' ')
            p++;
        size_t spaces = (size_t)(p - b->at);
        if (p == end || end == b->end || (!inner && (blank || spaces <= indent || *p == '\t'))) {
            ok = false;
            break;
        }
        if (inner && spaces < inner) {
            ok = spaces <= indent;
            break;
        }
        inner = inner ? inner : spaces;
        for (blank += text.len ? 1 : 0; ok && blank; blank--)
            ok = !kl_buf_putc(&text, '\n');
        ok = ok && !kl_buf_add(&text, b->at + inner, (size_t)(end - b->at) - inner);
    }
    ok = ok && inner && (strip || !kl_buf_putc(&text, '\n'));
    if (ok)
        *out = kl_value_of_strn(kl_buf_str(&text), text.len);
    kl_buf_fini(&text);
    return ok;
}

/* The scalar that the rest of the present line is, in a container with this indentation. Goes to the next
 * line. */
static bool scalar(block *b, const char *s, size_t n, size_t indent, const kl_value **out)
{
    bool ok = false;
    if (!n || s[n - 1] == ' ' || (b->tabs && memchr(s, '\t', n)))
        return false;
    if (*s == '|')
        return literal(b, &(line){s, n, 0}, indent, out);
    if (*s == '"' || *s == '\'') {
        ok = quoted_length(s, n) == n && quoted(s, n, out);
    } else if (n == 2 && (!memcmp(s, "{}", 2) || !memcmp(s, "[]", 2))) {
        *out = kl__intern_container(*s == '{' ? KL_OBJECT : KL_ARRAY, NULL, 0);
        ok = true;
    } else if (begins_plain(*s) || (*s == '-' && n > 1 && s[1] != ' ')) {
        *out = has_more(s, n) ? NULL : kl__scalar_plain(s, n);
        ok = *out != NULL;
    }
    if (ok)
        advance(b);
    return ok;
}

/* --- containers --------------------------------------------------------------------------- */

/* The bytes of the key with which s begins, up to its colon; 0: it begins with none. */
static size_t key_length(const char *s, size_t n)
{
    size_t i = 0;
    if (n && (*s == '"' || *s == '\''))
        i = quoted_length(s, n);
    else if (n && begins_plain(*s))
        for (const char *p = s; (p = memchr(p, ':', (size_t)(s + n - p))); p++)
            if (p + 1 == s + n || p[1] == ' ') {
                i = (size_t)(p - s);
                break;
            }
    return i && i <= KEY_MAX && i < n && s[i] == ':' && (i + 1 == n || s[i + 1] == ' ') ? i : 0;
}

static bool key_of(const block *b, const char *s, size_t n, const kl_value **out)
{
    if (*s == '"' || *s == '\'')
        return !(b->tabs && memchr(s, '\t', n)) && quoted(s, n, out);
    if (s[n - 1] == ' ' || has_more(s, n) || (b->tabs && memchr(s, '\t', n))
        || (n == 2 && !memcmp(s, "<<", 2)))
        return false;
    const kl_value *v = kl__scalar_plain(s, n);
    if (v && kl_value_type(v) != KL_STRING) {
        kl_value_unref(v);
        return false;
    }
    *out = v;
    return v != NULL;
}

static bool container(block *b, size_t indent, const kl_value **out);

/* What a key without a scalar on its line has: a container on the following lines, or null. */
static bool below(block *b, size_t indent, const kl_value **out)
{
    line l;
    advance(b);
    *out = KL__NULL;
    if (!present(b, &l) || is_separator(&l) || l.indent < indent || (l.indent == indent && !is_item(&l)))
        return true;
    return container(b, l.indent, out);
}

static bool member(block *b, const line *l, size_t base, uint64_t serial)
{
    const kl_value *key, *v;
    size_t n = key_length(l->text, l->n);
    if (!n || !key_of(b, l->text, n, &key))
        return false;
    if (kl__seen_check(&b->seen, serial, &b->stack, base, key) != SIZE_MAX) {
        kl_value_unref(key);
        return false;
    }
    kl__stack_push(&b->stack, key);
    bool ok = n + 1 == l->n ? below(b, l->indent, &v)
                            : scalar(b, l->text + n + 2, l->n - n - 2, l->indent, &v);
    if (ok)
        kl__stack_push(&b->stack, v);
    return ok;
}

static bool item(block *b, const line *l)
{
    const kl_value *v;
    line rest = {l->text + 2, l->n - 2, l->indent + 2};
    if (l->n < 3 || rest.text[0] == ' ')
        return false;
    b->from = rest.text;
    bool ok = is_item(&rest) || key_length(rest.text, rest.n) ? container(b, rest.indent, &v)
                                                              : scalar(b, rest.text, rest.n, l->indent, &v);
    if (ok)
        kl__stack_push(&b->stack, v);
    return ok;
}

/* Reads the container that begins at the present line, which has this indentation. The depth of recursion is
 * bounded. */
static bool container(block *b, size_t indent, const kl_value **out)
{
    line l;
    size_t base = b->stack.len;
    uint64_t serial = ++b->serial;
    bool list = present(b, &l) && is_item(&l), ok = b->depth++ < DEPTH_MAX;
    while (ok && present(b, &l) && l.indent >= indent && !is_separator(&l)
        && !(list && l.indent == indent && !is_item(&l)))
        ok = l.indent == indent && (list ? item(b, &l) : !is_item(&l) && member(b, &l, base, serial));
    b->depth--;
    if (!ok)
        return false;
    size_t n = b->stack.len - base;
    *out = kl__intern_container(list ? KL_ARRAY : KL_OBJECT, b->stack.v + base, list ? n : n / 2);
    b->stack.len = base;
    return true;
}

/* --- texts -------------------------------------------------------------------------------- */

/* Whether all bytes mean the same to everybody: UTF-8 without control characters, and without line breaks
 * other than \n. Those others begin with the bytes C2, E2 and EF, as do the marks of the order of bytes. */
static bool plain_bytes(const char *text, size_t n, bool *tabs)
{
    bool high = false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f)
            continue;
        if (c == '\t')
            *tabs = true;
        else if (c == 0x7f || c == 0xc2 || c == 0xe2 || c == 0xef || (c < 0x20 && c != '\n'))
            return false;
        high |= c >= 0x80;
    }
    return !high || kl_utf8_valid(text, n);
}

bool kl__yaml_block(const char *text, size_t n, kl__stack *out)
{
    block b = {.at = text, .end = text + n};
    size_t before = out->len;
    bool ok = n && plain_bytes(text, n, &b.tabs);
    line l;
    while (ok && present(&b, &l)) {
        const kl_value *v;
        if (is_separator(&l)) {
            ok = l.n == 3;
            advance(&b);
        } else {
            ok = !l.indent && container(&b, 0, &v);
            if (ok)
                kl__stack_push(out, v);
            ok = ok && (!present(&b, &l) || is_separator(&l));
        }
    }
    kl__stack_fini(&b.stack);
    kl__seen_fini(&b.seen);
    if (!ok)
        kl__stack_cut(out, before);
    return ok;
}
