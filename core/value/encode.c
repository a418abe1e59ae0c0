/* encode.c - a value to JSON text. A loop with frames on the heap: built values may be deeper than any C
 * stack. */
#include "value/intern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/escape.h"
#include "base/mem.h"
#include "value/number.h"

typedef struct frame {
    const kl__h *keys, *values; /* keys NULL: an array */
    size_t n, next;
} frame;

typedef struct encoder {
    kl_buf *out;
    bool exact;
    frame *frames, small[32];
    size_t depth, cap;
} encoder;

static void put_int(kl_buf *out, uint64_t u, bool minus)
{
    char text[24], *p = text + sizeof text;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (minus)
        *--p = '-';
    kl_buf_add(out, p, (size_t)(text + sizeof text - p));
}

/* Writes a string. `after`, unless NUL, follows the closing quote: a key's colon. */
static inline void put_str(kl_buf *out, kl__h h, char after)
{
    size_t n;
    const char *s = kl__bytes(h, &n);
    if (kl__is_node(h) && !(atomic_load_explicit(&kl__at(h)->rc, memory_order_relaxed) & KL__PLAIN)) {
        kl_buf_putc(out, '"');
        kl_json_escape(out, s, n);
        kl_buf_putc(out, '"');
        if (after)
            kl_buf_putc(out, after);
        return;
    }
    char *p = kl_buf_reserve(out, n + 2 + (after != '\0'));
    if (!p)
        return;
    p[0] = '"';
    memcpy(p + 1, s, n);
    p[n + 1] = '"';
    p[n + 2] = after; /* or the end, for which a buffer always has room */
    out->len += n + 2 + (after != '\0');
}

static void put_scalar(kl_buf *out, const kl_value *v, bool exact)
{
    switch (kl_value_type(v)) {
    case KL_BOOL: kl_buf_puts(out, v == KL__TRUE ? "true" : "false"); break;
    case KL_INT: {
        int64_t i = 0;
        kl_value_int(v, &i);
        put_int(out, i < 0 ? 0 - (uint64_t)i : (uint64_t)i, i < 0);
        break;
    }
    case KL_UINT: put_int(out, kl_value_uint(v), false); break;
    case KL_DOUBLE: {
        char text[KL__DOUBLE_MAX];
        double d = kl_value_double(v, 0);
        /* JSON has no infinity and no NaN */
        kl_buf_puts(out, isfinite(d) ? kl__double_format(d, text) : "null");
        if (exact && isfinite(d) && !strpbrk(text, ".e"))
            kl_buf_puts(out, ".0");
        break;
    }
    case KL_STRING: put_str(out, kl__handle(v), '\0'); break;
    case KL_ARRAY: kl_buf_puts(out, "[]"); break; /* only empty ones come here */
    case KL_OBJECT: kl_buf_puts(out, "{}"); break;
    case KL_NULL: kl_buf_puts(out, "null"); break;
    }
}

/* Writes a scalar, or opens a container with a frame. */
static void begin(encoder *e, kl__h h)
{
    const kl__node *n = kl__is_node(h) ? kl__at(h) : NULL;
    kl_type t = n ? kl__node_type(n) : KL_NULL;
    if (t == KL_STRING) {
        put_str(e->out, h, '\0');
        return;
    }
    if (t != KL_ARRAY && t != KL_OBJECT) {
        put_scalar(e->out, KL__VALUE(h), e->exact);
        return;
    }
    kl_buf_putc(e->out, t == KL_ARRAY ? '[' : '{');
    if (e->depth == e->cap) {
        frame *bigger = kl_alloc(2 * e->cap * sizeof *bigger);
        memcpy(bigger, e->frames, e->cap * sizeof *bigger);
        if (e->frames != e->small)
            kl_free(e->frames);
        e->frames = bigger;
        e->cap *= 2;
    }
    e->frames[e->depth++] = (frame){t == KL_OBJECT ? kl__shape_of(n)->v : NULL, n->v, kl__count(n), 0};
}

static kl_status encode(const kl_value *v, kl_buf *out, bool exact)
{
    encoder e;
    e.out = out;
    e.exact = exact;
    e.frames = e.small;
    e.depth = 0;
    e.cap = sizeof e.small / sizeof *e.small;
    begin(&e, kl__handle(v));
    while (e.depth && !out->failed) {
        frame *f = &e.frames[e.depth - 1];
        if (f->next == f->n) {
            e.depth--;
            kl_buf_putc(out, f->keys ? '}' : ']');
            continue;
        }
        size_t i = f->next++;
        if (i)
            kl_buf_putc(out, ',');
        if (f->keys)
            put_str(out, f->keys[i], ':');
        begin(&e, f->values[i]);
    }
    if (e.frames != e.small)
        kl_free(e.frames);
    return kl_buf_status(out);
}

kl_status kl_value_encode(const kl_value *v, kl_buf *out) { return encode(v, out, false); }

static int by_key(const void *a, const void *b)
{
    size_t n, m;
    const char *x = kl__bytes(((const kl__h *)a)[0], &n), *y = kl__bytes(((const kl__h *)b)[0], &m);
    int order = memcmp(x, y, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

kl_status kl_value_encode_sorted(const kl_value *v, kl_buf *out)
{
    size_t n = kl_value_len(v);
    bool object = kl_value_type(v) == KL_OBJECT;
    if (!n || (!object && kl_value_type(v) != KL_ARRAY))
        return kl_value_encode(v, out);
    struct {
        kl__h key, value;
    } *m = kl_alloc(n * sizeof *m);
    const kl__node *node = kl__at(kl__handle(v));
    for (size_t i = 0; i < n; i++) {
        m[i].key = object ? kl__shape_of(node)->v[i] : 0;
        m[i].value = node->v[i];
    }
    if (object)
        qsort(m, n, sizeof *m, by_key);
    for (size_t i = 0; i < n; i++) {
        kl_buf_putc(out, i ? ',' : object ? '{' : '[');
        if (object)
            put_str(out, m[i].key, ':');
        kl_value_encode_sorted(KL__VALUE(m[i].value), out);
    }
    kl_buf_putc(out, object ? '}' : ']');
    kl_free(m);
    return kl_buf_status(out);
}

static void line(size_t depth, kl_buf *out)
{
    kl_buf_putc(out, '\n');
    for (size_t i = 0; i < depth; i++)
        kl_buf_add(out, "  ", 2);
}

/* Copies a string with its quotes; returns where it ends. */
static size_t copy_string(const char *text, size_t n, kl_buf *out)
{
    size_t i = 1;
    while (i < n && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
    i = i < n ? i + 1 : n;
    kl_buf_add(out, text, i);
    return i;
}

void kl_json_indent(const char *text, size_t n, kl_buf *out)
{
    size_t depth = 0;
    for (size_t i = 0; i < n && !out->failed; i++) {
        char c = text[i], next = i + 1 < n ? text[i + 1] : '\0';
        if (c == '"') {
            i += copy_string(text + i, n - i, out) - 1;
            continue;
        }
        if ((c == '}' || c == ']') && depth)
            line(--depth, out);
        kl_buf_putc(out, c);
        if ((c == '{' || c == '[') && next == c + 2) /* "{}" and "[]" stay as they are */
            kl_buf_putc(out, text[++i]);
        else if (c == '{' || c == '[')
            line(++depth, out);
        else if (c == ',')
            line(depth, out);
        else if (c == ':')
            kl_buf_putc(out, ' ');
    }
}

kl_status kl_value_encode_pretty(const kl_value *v, kl_buf *out)
{
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_value_encode(v, &text);
    if (!st)
        kl_json_indent(kl_buf_str(&text), text.len, out);
    kl_buf_fini(&text);
    return st ? st : kl_buf_status(out);
}

kl_status kl_value_encode_exact(const kl_value *v, kl_buf *out) { return encode(v, out, true); }

char *kl_value_to_json(const kl_value *v)
{
    kl_buf b = KL_BUF_INIT;
    kl_value_encode(v, &b);
    return kl_buf_take(&b);
}
