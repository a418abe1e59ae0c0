/* yaml_block.c - the YAML that kubectl prints, as JSON text, ten times as fast as libyaml reads it.
 *
 *   a line:  spaces  { "- " }  [ key ":" ]  [ scalar, which may go on in the lines below ]
 *
 * Mappings and lists in block style, {} and [], plain and quoted scalars, literal blocks, comments. Whatever
 * else there is (anchors, tags, flow style, tabs, folded blocks, mistakes) ends the attempt, so that nothing
 * is read here in another way than libyaml does. JSON's decoder then finds keys that come twice. */
#include "yaml/yaml_block.h"

#include <stdint.h>
#include <string.h>
#include "yaml/scalar.h"
#include "value/value.h"

#define LEVELS_MAX 100
#define KEY_MAX 1000 /* libyaml takes keys of 1,024 characters */

typedef struct level {
    ptrdiff_t col;
    bool list;
    bool any; /* it has an item */
} level;

typedef struct block {
    const char *p, *end;
    const char *line; /* where the line of p begins */
    kl_buf *out;
    level levels[LEVELS_MAX];
    size_t depth;
    /* a key or a dash waits for its value, which stands to the right of this column */
    bool pending, after_key;
    ptrdiff_t parent;
    kl_buf joined; /* a scalar of many lines */
} block;

static bool ends(const block *b, const char *p) { return p == b->end || *p == '\n'; }
static const char *line_end(const block *b, const char *p)
{
    const char *nl = memchr(p, '\n', (size_t)(b->end - p));
    return nl ? nl : b->end;
}
static const char *skip_spaces(const block *b, const char *p)
{
    while (p < b->end && *p == ' ')
        p++;
    return p;
}

#define EACH(byte) (~(uint64_t)0 / 255 * (byte)) /* eight of them */

/* Whether eight bytes are printable ASCII; a byte above others that are not may count as none. */
static bool eight_printable(const char *s)
{
    uint64_t x;
    memcpy(&x, s, sizeof x);
    return !(((x - EACH(' ')) | (x + EACH(1)) | x) & EACH(0x80));
}

/* Whether libyaml takes every byte, and none but '\n' for the end of a line. */
static bool bytes_known(const char *s, size_t n)
{
    bool high = false;
    for (size_t i = 0; i < n;) {
        if (n - i >= 8 && eight_printable(s + i)) {
            i += 8;
            continue;
        }
        for (size_t to = n - i > 8 ? i + 8 : n; i < to; i++) {
            unsigned char c = (unsigned char)s[i];
            high = high || c >= 0x80;
            if ((c < ' ' && c != '\n') || c == 0x7f)
                return false;
        }
    }
    if (!high)
        return true;
    if (!kl_utf8_valid(s, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *c = (const unsigned char *)s + i;
        if ((c[0] == 0xc2 && c[1] < 0xa0) || (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
            || (c[0] == 0xef && c[1] >= 0xbb))
            return false;
    }
    return true;
}

/* --- text --------------------------------------------------------------------------------- */

static void put_escaped(block *b, const char *s, size_t n)
{
    char *to = kl_buf_reserve(b->out, 2 * n);
    size_t len = 0;
    if (!to)
        return;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\')
            to[len++] = '\\';
        if (s[i] == '\n')
            to[len++] = '\\';
        to[len++] = s[i] == '\n' ? 'n' : s[i];
    }
    b->out->len += len;
}

static void put_text(block *b, const char *s, size_t n)
{
    kl_buf_putc(b->out, '"');
    put_escaped(b, s, n);
    kl_buf_putc(b->out, '"');
}

/* What a plain scalar means that begins like a number or one of YAML's words. */
static bool put_meant(block *b, const char *s, size_t n)
{
    const kl_value *v = kl__scalar_plain(s, n);
    bool known = v != NULL;
    if (known && kl_value_type(v) == KL_STRING)
        put_text(b, s, n);
    else if (known)
        known = !kl_value_encode_exact(v, b->out);
    kl_value_unref(v);
    return known;
}

/* Whether a plain scalar is surely text: the longest word is "false". */
static bool surely_text(const char *s, size_t n)
{
    char c = *s, l = (char)(c | 32);
    if (l >= 'a' && l <= 'z')
        return n > 5 || !strchr("yntfo", l);
    return c == '/' || c == '(' || c == '$' || c == '_';
}

static bool put_plain(block *b, const char *s, size_t n)
{
    bool digits = *s >= '1' && *s <= '9' && n < 18;
    if (surely_text(s, n)) {
        put_text(b, s, n);
        return true;
    }
    for (size_t i = 1; digits && i < n; i++)
        digits = s[i] >= '0' && s[i] <= '9';
    if (digits)
        return !kl_buf_add(b->out, s, n);
    return put_meant(b, s, n);
}

/* --- scalars ------------------------------------------------------------------------------ */

/* Moves to the next line if nothing but a comment follows. */
static bool rest_is_empty(block *b, const char *p)
{
    const char *q = skip_spaces(b, p);
    if (!ends(b, q) && (*q != '#' || q == p))
        return false;
    b->p = line_end(b, q);
    return true;
}

/* Moves over the end of a line inside a scalar to the next line with text; *breaks: how many line ends.
 * False: the text ends, or goes on to the left of where it may. */
static bool fold(const block *b, const char **p, size_t *breaks)
{
    const char *from = *p;
    *breaks = 0;
    while (from < b->end) {
        from++; /* the '\n' */
        ++*breaks;
        const char *text = skip_spaces(b, from);
        if (text == b->end)
            return false;
        if (*text != '\n') {
            *p = text;
            return text - from > (b->parent > 0 ? b->parent : 0);
        }
        from = text;
    }
    return false;
}

static void put_breaks(kl_buf *out, size_t breaks, const char *line_feed)
{
    if (breaks == 1)
        kl_buf_putc(out, ' ');
    for (size_t i = 1; i < breaks; i++)
        kl_buf_puts(out, line_feed);
}

/* An escape of a double-quoted scalar, from after the backslash; returns the place after it, or NULL. */
static const char *escape(block *b, const char *p)
{
    static const char same[] = "\"\\/bfnrt";
    if (p == b->end)
        return NULL;
    if (strchr(same, *p)) {
        kl_buf_printf(b->out, "\\%c", *p);
        return p + 1;
    }
    if (*p == ' ') {
        kl_buf_putc(b->out, ' ');
        return p + 1;
    }
    size_t digits = *p == 'u' ? 4 : *p == 'x' ? 2 : 0;
    if (!digits || (size_t)(b->end - p) <= digits || (digits == 4 && (p[1] | 32) == 'd'))
        return NULL;
    for (size_t i = 1; i <= digits; i++)
        if (!strchr("0123456789abcdefABCDEF", p[i]))
            return NULL;
    kl_buf_printf(b->out, "\\u%s%.*s", digits == 2 ? "00" : "", (int)digits, p + 1);
    return p + 1 + digits;
}

/* A quoted scalar, written as JSON's; returns the place after the closing quote, or NULL. */
static const char *quoted(block *b, const char *p, bool one_line)
{
    char quote = *p++;
    kl_buf_putc(b->out, '"');
    for (;;) {
        const char *from = p;
        while (p < b->end && *p != quote && *p != '\n' && *p != '\\')
            p++;
        if (p == b->end)
            return NULL;
        if (*p == '\n') {
            const char *text = p;
            size_t breaks;
            while (text > from && text[-1] == ' ')
                text--;
            put_escaped(b, from, (size_t)(text - from));
            if (one_line || !fold(b, &p, &breaks))
                return NULL;
            put_breaks(b->out, breaks, "\\n");
            continue;
        }
        put_escaped(b, from, (size_t)(p - from));
        if (*p == '\\' && quote == '\'') {
            kl_buf_puts(b->out, "\\\\");
            p++;
        } else if (*p == '\\') {
            size_t breaks;
            const char *nl = p + 1;
            bool joins = nl < b->end && *nl == '\n' && !one_line;
            p = joins ? fold(b, &nl, &breaks) && breaks == 1 ? nl : NULL : escape(b, p + 1);
            if (!p)
                return NULL;
        } else if (quote == '\'' && p + 1 < b->end && p[1] == '\'') {
            kl_buf_putc(b->out, '\'');
            p += 2;
        } else {
            kl_buf_putc(b->out, '"');
            return p + 1;
        }
    }
}

/* A literal block, from its "|". */
static bool literal(block *b, const char *p)
{
    char chomp = p + 1 < b->end && (p[1] == '-' || p[1] == '+') ? p[1] : '\0';
    p = skip_spaces(b, p + 1 + (chomp != '\0'));
    if (p == b->end || *p != '\n')
        return false;
    ptrdiff_t col = -1, above = b->parent > 0 ? b->parent : 0, widest = 0;
    size_t breaks = 0; /* line ends that are not written yet */
    b->p = p;
    kl_buf_putc(b->out, '"');
    for (const char *line = p + 1; line < b->end; line = b->p + 1) {
        const char *text = skip_spaces(b, line), *nl = line_end(b, text);
        ptrdiff_t at = text - line;
        if (nl == b->end)
            return false; /* the end of the last line is missing */
        if (text == nl && (col < 0 || at <= col)) {
            widest = at > widest ? at : widest;
            breaks++;
            b->p = nl;
            continue;
        }
        if (col < 0 && at > above && at >= widest)
            col = at;
        if (text != nl && (col < 0 || at < col))
            break;
        for (; breaks; breaks--)
            kl_buf_puts(b->out, "\\n");
        put_escaped(b, line + col, (size_t)(nl - line - col));
        breaks = 1;
        b->p = nl;
    }
    if (col < 0 && (breaks || b->p != p))
        return false; /* blank lines only */
    for (size_t n = chomp == '-' ? 0 : chomp == '+' ? breaks : breaks > 0; n; n--)
        kl_buf_puts(b->out, "\\n");
    kl_buf_putc(b->out, '"');
    return true;
}

/* Where the plain text of a line ends, its comment and spaces left out; NULL: it has what a key has. */
static const char *plain_end(const block *b, const char *p)
{
    const char *nl = line_end(b, p), *to = nl, *q = p;
    while ((q = memchr(q, '#', (size_t)(to - q))) != NULL) {
        if (q > p && q[-1] == ' ') {
            to = q;
            break;
        }
        q++;
    }
    for (q = p; (q = memchr(q, ':', (size_t)(to - q))) != NULL; q++)
        if (q + 1 == to || q[1] == ' ')
            return NULL;
    while (to > p && to[-1] == ' ')
        to--;
    return to;
}

static bool plain(block *b, const char *p)
{
    const char *to = plain_end(b, p), *next;
    size_t breaks;
    if (!to)
        return false;
    b->p = line_end(b, to);
    next = b->p;
    if (skip_spaces(b, to) != b->p || !fold(b, &next, &breaks) || *next == '#')
        return put_plain(b, p, (size_t)(to - p));
    kl_buf_clear(&b->joined);
    kl_buf_add(&b->joined, p, (size_t)(to - p));
    for (;;) {
        put_breaks(&b->joined, breaks, "\n");
        to = plain_end(b, next);
        if (!to)
            return false;
        kl_buf_add(&b->joined, next, (size_t)(to - next));
        next = b->p = line_end(b, to);
        if (skip_spaces(b, to) != b->p || !fold(b, &next, &breaks) || *next == '#')
            break;
    }
    return put_plain(b, kl_buf_str(&b->joined), b->joined.len);
}

static bool scalar(block *b, const char *p)
{
    char c = *p;
    if (!b->pending)
        return false;
    b->pending = false;
    if (c == '"' || c == '\'') {
        p = quoted(b, p, false);
        return p && rest_is_empty(b, p);
    }
    if (c == '|')
        return literal(b, p);
    if ((c == '{' || c == '[') && p + 1 < b->end && p[1] == (c == '{' ? '}' : ']')) {
        kl_buf_add(b->out, p, 2);
        return rest_is_empty(b, p + 2);
    }
    if (strchr("?:,[]{}#&*!|>%@`", c) || (c == '-' && (ends(b, p + 1) || p[1] == ' ')))
        return false;
    return plain(b, p);
}

/* --- containers --------------------------------------------------------------------------- */

static void close_level(block *b) { kl_buf_putc(b->out, b->levels[--b->depth].list ? ']' : '}'); }

/* Gets ready for an item of the container at `col`, which is perhaps the value that something waits for. */
static bool enter(block *b, ptrdiff_t col, bool list)
{
    level *top;
    if (b->pending && (col > b->parent || (list && b->after_key && col == b->parent))) {
        if (b->depth == LEVELS_MAX)
            return false;
        b->levels[b->depth++] = (level){.col = col, .list = list};
        kl_buf_putc(b->out, list ? '[' : '{');
    } else {
        if (b->pending)
            kl_buf_puts(b->out, "null");
        while (b->depth && b->levels[b->depth - 1].col > col)
            close_level(b);
        if (!list && b->depth && b->levels[b->depth - 1].list)
            close_level(b);
        if (!b->depth)
            return false;
    }
    top = &b->levels[b->depth - 1];
    if (top->col != col || top->list != list)
        return false;
    if (top->any)
        kl_buf_putc(b->out, ',');
    top->any = true;
    b->pending = true;
    b->after_key = !list;
    b->parent = col;
    return true;
}

/* The ':' of a plain key that begins at p, or NULL. */
static const char *plain_key(const block *b, const char *p)
{
    const char *nl = line_end(b, p), *q = p;
    while ((q = memchr(q, ':', (size_t)(nl - q))) != NULL && q + 1 != nl && q[1] != ' ')
        q++;
    for (const char *c = q ? p : NULL; c && c < q; c++)
        if (*c == '#' && c > p && c[-1] == ' ')
            return NULL; /* in a comment */
    return q;
}

/* A key and its ':'; *p moves to what follows. *is: whether there is a key. */
static bool key(block *b, const char **p, bool *is)
{
    ptrdiff_t col = *p - b->line;
    const char *s = *p, *colon;
    if (*s == '"' || *s == '\'') {
        size_t before = b->out->len;
        const char *after = quoted(b, s, true);
        b->out->len = before;
        colon = after ? skip_spaces(b, after) : NULL;
        *is = colon && colon < b->end && *colon == ':' && (ends(b, colon + 1) || colon[1] == ' ');
        if (!*is)
            return true;
        if (colon - s > KEY_MAX || !enter(b, col, false))
            return false;
        (void)quoted(b, s, true);
    } else {
        colon = plain_key(b, s);
        *is = colon != NULL;
        if (!*is)
            return true;
        const char *to = colon;
        while (to > s && to[-1] == ' ')
            to--;
        size_t n = (size_t)(to - s);
        if (!n || n > KEY_MAX || strchr("?:,[]{}#&*!|>%@`", *s) || (n == 2 && !memcmp(s, "<<", 2))
            || !enter(b, col, false))
            return false;
        size_t before = b->out->len;
        if (!put_plain(b, s, n) || b->out->data[before] != '"')
            return false;
    }
    kl_buf_putc(b->out, ':');
    *p = skip_spaces(b, colon + 1);
    return true;
}

/* One line, and those that its scalar goes on in. */
static bool line(block *b)
{
    b->line = b->p;
    const char *p = skip_spaces(b, b->p);
    bool is_key = false;
    if (!ends(b, p) && *p != '#' && p == b->line && b->end - p >= 3
        && (!memcmp(p, "---", 3) || !memcmp(p, "...", 3)))
        return false;
    while (!ends(b, p) && *p == '-' && (ends(b, p + 1) || p[1] == ' ')) {
        if (!enter(b, p - b->line, true))
            return false;
        p = skip_spaces(b, p + 1);
    }
    if (ends(b, p) || *p == '#') {
        b->p = line_end(b, p);
        return true;
    }
    if (!key(b, &p, &is_key))
        return false;
    if (ends(b, p) || (is_key && *p == '#')) {
        b->p = line_end(b, p);
        return true;
    }
    return (is_key || p - b->line > b->parent) && scalar(b, p);
}

bool kl__yaml_block(const char *text, size_t n, kl_buf *json)
{
    block b = {.p = text, .end = text + n, .out = json, .pending = true, .parent = -1};
    bool ok = n && *text != '%' && bytes_known(text, n);
    while (ok && b.p < b.end) {
        ok = line(&b);
        b.p += ok && b.p < b.end; /* the '\n' */
    }
    if (ok && b.pending && b.depth)
        kl_buf_puts(json, "null");
    ok = ok && (b.depth || !b.pending);
    while (b.depth)
        close_level(&b);
    kl_buf_fini(&b.joined);
    return ok && !json->failed;
}
