/* decode.c - JSON text to a value, in one pass, beside a guide.
 *
 * Objects in a cluster resemble each other, so the decoder walks a similar value along with the text. Where a key or a string
 * is the guide's, comparing a few words says so, and no table is asked; a container whose members were all the guide's is the
 * guide's container. What differs goes through the table as without a guide. Values gather on one stack and keys, once they
 * leave the guide's shape, on another; entries say whether their reference is ours or borrowed from the guide.
 *
 * Strict: RFC 8259, UTF-8 checked, duplicate keys and lone surrogates refused, at most KL_VALUE_DEPTH_MAX levels. Duplicates are
 * looked for where a shape is new; a shape that exists has none. Errors know only an offset; line and column are counted
 * when one is told. Functions take the place in the text and return the place after, or NULL. */
#include "model/decode.h"

#include <stdio.h>
#include "base/mem.h"
#include "model/number.h"
#include "model/scan.h"

/* --- telling errors ------------------------------------------------------------------------------------------------------ */

static const char *fail_at(kl__decoder *d, const char *at, const char *what)
{
    if (!d->err)
        return NULL;
    size_t line = 1;
    const char *start = d->text;
    for (const char *nl; (nl = memchr(start, '\n', (size_t)(at - start))); start = nl + 1)
        line++;
    kl_fail(d->err, KL_ESYNTAX, "JSON is malformed at byte %zu (line %zu, column %zu): %s", (size_t)(at - d->text), line, (size_t)(at - start) + 1, what);
    return NULL;
}

/* A message about the character at `at`, or about the end of the text. */
static const char *unexpected(kl__decoder *d, const char *at, const char *wanted)
{
    char what[96];
    if (!d->err)
        return NULL;
    if (at >= d->end)
        snprintf(what, sizeof what, "the text ends where %s is expected", wanted);
    else if ((unsigned char)*at > ' ' && (unsigned char)*at < 0x7f)
        snprintf(what, sizeof what, "'%c' where %s is expected", *at, wanted);
    else
        snprintf(what, sizeof what, "byte 0x%02x where %s is expected", (unsigned char)*at, wanted);
    return fail_at(d, at, what);
}

/* --- entries --------------------------------------------------------------------------------------------------------------- */

static inline void push(kl__entries *s, kl__entry e)
{
    if (__builtin_expect(s->len == s->cap, 0)) {
        s->cap = s->cap ? 2 * s->cap : 128;
        s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
    }
    s->v[s->len++] = e;
}

static void push_borrowed(kl__entries *s, const kl__h *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        push(s, v[i]);
}

static void cut_back(kl__entries *s, size_t len)
{
    while (s->len > len) {
        kl__entry e = s->v[--s->len];
        if (e & KL__OWNED)
            kl_value_unref(KL__VALUE((kl__h)e));
    }
}

static void push_key(kl__decoder *d, kl__entry key, const char *at)
{
    if (d->keys.len >= d->key_at_cap) {
        d->key_at_cap = d->key_at_cap ? 2 * d->key_at_cap : 128;
        d->key_at = kl_realloc(d->key_at, d->key_at_cap * sizeof *d->key_at);
    }
    d->key_at[d->keys.len] = (size_t)(at - d->text);
    push(&d->keys, key);
}

/* The keys of a guide that were followed until now; they are distinct, so their places do not matter. */
static void push_followed(kl__decoder *d, const kl__h *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        push_key(d, v[i], d->text);
}

/* --- strings -------------------------------------------------------------------------------------------------------------- */

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

/* `p` is after a backslash: undoes one escape into scratch. */
static const char *unescape(kl__decoder *d, const char *p)
{
    const char *from = p - 1;
    char c = p < d->end ? *p : '\0', out[4];
    size_t n = 1;
    switch (c) {
    case '"': case '\\': case '/': out[0] = c; break;
    case 'b': out[0] = '\b'; break;
    case 'f': out[0] = '\f'; break;
    case 'n': out[0] = '\n'; break;
    case 'r': out[0] = '\r'; break;
    case 't': out[0] = '\t'; break;
    case 'u': {
        int hi = d->end - p >= 5 ? hex4(p + 1) : -1;
        if (hi < 0)
            return fail_at(d, from, "\\u wants four hexadecimal digits");
        uint32_t point = (uint32_t)hi;
        if (hi >= 0xd800 && hi <= 0xdfff) {
            int lo = hi < 0xdc00 && d->end - p >= 11 && p[5] == '\\' && p[6] == 'u' ? hex4(p + 7) : -1;
            if (lo < 0xdc00 || lo > 0xdfff)
                return fail_at(d, from, "half of a surrogate pair in a string");
            point = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
            p += 6;
        }
        n = utf8_put(out, point);
        p += 4;
        break;
    }
    default:
        return p >= d->end ? fail_at(d, d->end, "the text ends inside a string") : fail_at(d, from, "unknown escape in a string");
    }
    if (kl_buf_add(&d->scratch, out, n))
        return fail_at(d, from, "the string is too long");
    return p + 1;
}

/* From after the opening quote to after the closing one; *s is in the text, or in scratch when something was escaped. */
static const char *string_text(kl__decoder *d, const char *p, const char **s, size_t *n)
{
    const char *run = p;                 /* begin of what is not yet in scratch */
    bool escaped = false;
    for (;;) {
        p = kl__plain_end(p, d->end);
        if (p >= d->end)
            return fail_at(d, d->end, "the text ends inside a string");
        unsigned char c = (unsigned char)*p;
        if (c == '"')
            break;
        if (c == '\\') {
            if (!escaped)
                kl_buf_clear(&d->scratch);
            escaped = true;
            if (kl_buf_add(&d->scratch, run, (size_t)(p - run)))
                return fail_at(d, run, "the string is too long");
            p = run = unescape(d, p + 1);
            if (!p)
                return NULL;
        } else if (c < ' ') {
            return fail_at(d, p, "a control character inside a string must be escaped");
        } else {
            const char *from = p;
            while (p < d->end && (unsigned char)*p >= 0x80)
                p++;
            if (!kl_utf8_valid(from, (size_t)(p - from)))
                return fail_at(d, from, "invalid UTF-8 in a string");
        }
    }
    *s = run;
    *n = (size_t)(p - run);
    if (escaped) {
        if (kl_buf_add(&d->scratch, run, *n))
            return fail_at(d, run, "the string is too long");
        *s = d->scratch.data;
        *n = d->scratch.len;
    }
    return p + 1;
}

static inline uint64_t word_at(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* Of a word's 8 bytes the first n, 0 < n < 8, as they lie in memory. */
static inline uint64_t first_bytes(uint64_t w, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return w << (8 * (8 - n));
#else
    return w >> (8 * (8 - n));
#endif
}

/* Whether the text from p on is string h and its closing quote. False also near the end of the text, and for what is written with
 * escapes: then it takes the long way. */
static inline bool is_text_of(const char *p, const char *end, kl__h h)
{
    if (!kl__is_node(h))
        return false;
    const kl__node *s = kl__at(h);
    size_t n = s->len, i = 0;
    if ((atomic_load_explicit(&s->rc, memory_order_relaxed) & (KL__TYPE | KL__PLAIN)) != (KL_STRING | KL__PLAIN) || (size_t)(end - p) < n + 9 || p[n] != '"')
        return false;
    for (; i + 8 <= n; i += 8)
        if (word_at(p + i) != word_at(s->bytes + i))
            return false;
    return i == n || !(first_bytes(word_at(p + i) ^ word_at(s->bytes + i), n - i));
}

static inline bool is_bytes_of(kl__h h, const char *s, size_t n)
{
    return kl__is_node(h) ? kl__at(h)->len == n && !memcmp(kl__at(h)->bytes, s, n) : !n;
}

/* The node of a string that is not the guide's: a new reference. What this text brought before is held by its stacks. */
static kl__h find_string(kl__decoder *d, const char *s, size_t n)
{
    if (n < 8 || d->last_wins)
        return kl__intern_str_new(s, n, &d->made_new);
    kl__entry *recent = &d->recent[(word_at(s + n - 8) * 0x9e3779b97f4a7c15u >> 59) % KL__RECENT];
    if (*recent && is_bytes_of((kl__h)*recent, s, n)) {
        kl_value_ref(KL__VALUE((kl__h)*recent));
        d->made_new = *recent & KL__NEW;
        return (kl__h)*recent;
    }
    kl__h h = kl__intern_str_new(s, n, &d->made_new);
    *recent = h | (d->made_new ? KL__NEW : 0);
    return h;
}

static const char *string(kl__decoder *d, const char *p, kl__h guide, kl__h *out)
{
    bool guided = kl__is(guide, KL_STRING);
    const char *s;
    size_t n;
    p = string_text(d, p, &s, &n);
    if (!p)
        return NULL;
    *out = guided && is_bytes_of(guide, s, n) ? guide : find_string(d, s, n);
    return p;
}

/* --- numbers and words ----------------------------------------------------------------------------------------------------- */

static inline bool digit(const kl__decoder *d, const char *p)
{
    return p < d->end && *p >= '0' && *p <= '9';
}

static const char *number(kl__decoder *d, const char *p, kl__h *out)
{
    const char *from = p;
    bool minus = *p == '-', integral = true, overflow = false;
    uint64_t u = 0;
    p += minus;
    if (!digit(d, p))
        return unexpected(d, p, "a digit");
    if (*p == '0') {
        p++;
        if (digit(d, p))
            return fail_at(d, from, "a number must not begin with 0");
    } else {
        for (; digit(d, p); p++)
            overflow |= __builtin_mul_overflow(u, 10u, &u) | __builtin_add_overflow(u, (uint64_t)(*p - '0'), &u);
    }
    if (p < d->end && *p == '.') {
        integral = false;
        for (p++; digit(d, p); p++)
            ;
        if (p[-1] == '.')
            return unexpected(d, p, "a digit");
    }
    if (p < d->end && (*p == 'e' || *p == 'E')) {
        integral = false;
        p++;
        if (p < d->end && (*p == '+' || *p == '-'))
            p++;
        if (!digit(d, p))
            return unexpected(d, p, "a digit");
        while (digit(d, p))
            p++;
    }
    if (integral && !overflow && !minus) {
        *out = u <= INT64_MAX ? kl__intern_int((int64_t)u) : kl__intern_wide(KL_UINT, u);
        return p;
    }
    if (integral && !overflow && u <= (uint64_t)INT64_MAX + 1) {
        *out = kl__intern_int((int64_t)(0 - u));
        return p;
    }
    double x;
    if (!kl__double_parse(from, (size_t)(p - from), &x))
        return fail_at(d, from, "a number beyond the range of a double");
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *out = kl__intern_wide(KL_DOUBLE, bits);
    return p;
}

static const char *literal(kl__decoder *d, const char *p, const char *w, size_t n, kl__h is, kl__h *out)
{
    if ((size_t)(d->end - p) < n || memcmp(p, w, n))
        return unexpected(d, p, "a value");
    *out = is;
    return p + n;
}

/* --- structure ---------------------------------------------------------------------------------------------------------------- */

static const char *spaces(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* Servers write none. */
static inline const char *space(const kl__decoder *d, const char *p)
{
    return p < d->end && (unsigned char)*p <= ' ' ? spaces(p, d->end) : p;
}

static const char *value(kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out);

/* Steps over a value; a container by its brackets and quotes alone. */
static const char *skip(kl__decoder *d, const char *p)
{
    size_t depth = 0;
    do {
        if (p >= d->end)
            return fail_at(d, d->end, "the text ends inside a value that is left out");
        char c = *p++;
        if (c == '"') {
            p = kl__string_end(p, d->end);
            if (p >= d->end)
                return fail_at(d, d->end, "the text ends inside a string");
            p++;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (!depth)
                return fail_at(d, p - 1, "a value is expected");
            depth--;
        } else if (!depth) {                    /* a bare word or number */
            kl__h bare;
            p = value(d, p - 1, 0, 0, NULL, &bare);
            if (!p)
                return NULL;
            kl_value_unref(KL__VALUE(bare));
        }
    } while (depth);
    return p;
}

/* The two values that are the most frequent, and then any. */
static inline const char *member_value(kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    if (d->end - p > 1) {
        if (*p == '"' && is_text_of(p + 1, d->end, guide)) {
            *out = guide;
            return p + 2 + kl__at(guide)->len;
        }
        if (*p == '{' && p[1] == '}' && depth < KL_VALUE_DEPTH_MAX) {
            *out = KL__H_EMPTY_OBJECT;
            return p + 2;
        }
    }
    return value(d, p, guide, depth, cut, out);
}

/* After a member or item: past the comma (*more), or past the closing bracket. */
static inline const char *next(kl__decoder *d, const char *p, char close, bool *more)
{
    p = space(d, p);
    char c = p < d->end ? *p : '\0';
    *more = c == ',';
    if (c == ',')
        return space(d, p + 1);
    if (c == close)
        return p + 1;
    return unexpected(d, p, close == '}' ? "',' or '}'" : "',' or ']'");
}

/* A new reference that turned out to be the guide after all (a key came again and its last value was the guide's) is given back:
 * who gets the guide has borrowed it. */
static inline kl__h made(kl__h h, kl__h guide)
{
    if (h == guide)
        kl__spare(h);
    return h;
}

/* The value that was just read, as an entry. */
static inline kl__entry entry_of(const kl__decoder *d, kl__h h, kl__h like)
{
    return (h == like || !kl__is_node(h) ? h : kl__owned(h)) | (d->made_new ? KL__NEW : 0);
}

static const char *array(kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    const kl__node *g = kl__is(guide, KL_ARRAY) ? kl__at(guide) : NULL;
    size_t base = d->values.len, gn = g ? g->len : 0, n = 0;
    bool same = g != NULL, more = true, any_new = false;    /* same: until now all items were the guide's, and none was pushed */
    kl__h before = 0;
    if (depth > KL_VALUE_DEPTH_MAX)
        return fail_at(d, p - 1, "nested deeper than 512 levels");
    cut = kl__cut_items(cut);
    p = space(d, p);
    if (p < d->end && *p == ']') {
        *out = KL__H_EMPTY_ARRAY;
        return p + 1;
    }
    for (; more; n++) {
        kl__h h, like = n < gn ? g->v[n] : before;
        d->made_new = false;
        p = member_value(d, p, like, depth, cut, &h);
        if (!p)
            return NULL;
        any_new |= d->made_new;
        if (!same || n >= gn || h != g->v[n]) {
            if (same)
                push_borrowed(&d->values, g->v, n);
            same = false;
            push(&d->values, entry_of(d, h, like));
        }
        before = h;
        p = next(d, p, ']', &more);
        if (!p)
            return NULL;
    }
    if (same && n == gn) {
        *out = guide;
        return p;
    }
    if (same)
        push_borrowed(&d->values, g->v, n);
    d->made_new = any_new && d->alone;
    *out = d->made_new ? kl__make_alone(KL_ARRAY, n, d->values.v + base, n) : made(kl__intern_list(KL_ARRAY, d->values.v + base, n), guide);
    d->values.len = base;
    return p;
}

/* --- objects ---------------------------------------------------------------------------------------------------------------- */

/* The place of the first key that stood before, or n; *first is where. With *replace the earlier ones take the later ones'
 * values and n becomes less. */
static size_t find_again(const kl__entry *keys, size_t n, size_t *first)
{
    if (n <= KL__INDEXED_ABOVE) {
        for (size_t i = 1; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if ((kl__h)keys[i] == (kl__h)keys[k]) {
                    *first = k;
                    return i;
                }
        return n;
    }
    size_t cap = 64, again = n;
    while (cap < 2 * n)
        cap *= 2;
    uint32_t *index = kl_zalloc_array(sizeof *index, cap);
    for (size_t i = 0; i < n && again == n; i++) {
        size_t at = (kl__h)keys[i] * 0x9e3779b97f4a7c15u >> 20 & (cap - 1);
        while (index[at] && (kl__h)keys[index[at] - 1] != (kl__h)keys[i])
            at = (at + 1) & (cap - 1);
        if (index[at]) {
            again = i;
            *first = index[at] - 1;
        }
        index[at] = (uint32_t)i + 1;
    }
    kl_free(index);
    return again;
}

static void drop_entry(kl__entry e)
{
    if (e & KL__OWNED)
        kl_value_unref(KL__VALUE((kl__h)e));
}

/* Members whose key came before give their value to the earlier one. Returns how many are left. */
static size_t merge_again(kl__entry *keys, kl__entry *values, size_t n)
{
    for (size_t first, again; (again = find_again(keys, n, &first)) < n; n--) {
        drop_entry(values[first]);
        drop_entry(keys[again]);
        values[first] = values[again];
        memmove(keys + again, keys + again + 1, (n - again - 1) * sizeof *keys);
        memmove(values + again, values + again + 1, (n - again - 1) * sizeof *values);
    }
    return n;
}

typedef struct members {
    kl__h guide;
    const kl__node *shape;       /* the guide's, or NULL */
    const kl__h *values;         /* the guide's */
    size_t guide_n, cursor;      /* the guide's member that is expected next */
    size_t base, key_base;       /* where ours begin on the stacks */
    size_t n;                    /* members until now */
    bool follows;                /* the keys until now are the guide's first n, and none was pushed */
    bool same;                   /* so are the values */
    bool any_new;                /* a key or value is KL__NEW */
    bool filled;                 /* begins with the apiVersion and kind that its text lacks */
} members;

static inline void leave_keys(kl__decoder *d, members *m)
{
    if (m->follows)
        push_followed(d, m->shape->v, m->n);
    m->follows = false;
}

static inline void leave_values(kl__decoder *d, members *m)
{
    if (m->same)
        push_borrowed(&d->values, m->values, m->n);
    m->same = false;
}

/* The guide's member with this key, looked for from the expected one on, or SIZE_MAX. */
static size_t guided_place(const members *m, const char *s, size_t n)
{
    if (m->guide_n > 4 * KL__INDEXED_ABOVE)
        return kl__shape_find(m->shape, s, n);
    for (size_t i = 0; i < m->guide_n; i++) {
        size_t at = m->cursor + i < m->guide_n ? m->cursor + i : m->cursor + i - m->guide_n;
        if (is_bytes_of(m->shape->v[at], s, n))
            return at;
    }
    return SIZE_MAX;
}

/* The keys are complete: the shape, or 0 when one stood there twice. Leaves fewer members with last_wins. */
static kl__entry close_shape(kl__decoder *d, members *m)
{
    if (m->follows && m->n == m->guide_n)
        return kl__at(m->guide)->len;
    leave_keys(d, m);
    kl__entry *keys = d->keys.v + m->key_base;
    kl__h shape = kl__find_shape(keys, m->n);
    if (!shape) {
        size_t first, again = find_again(keys, m->n, &first);
        if (again < m->n && d->last_wins) {
            leave_values(d, m);
            m->n = merge_again(keys, d->values.v + m->base, m->n);
        } else if (again < m->n) {
            size_t n;
            char *what = kl_sprintf("duplicate key \"%.80s\"", kl__bytes((kl__h)keys[again], &n));
            fail_at(d, d->text + d->key_at[m->key_base + again], what);
            kl_free(what);
            return 0;
        }
        shape = kl__intern_list(KL__SHAPE, keys, m->n);
    }
    d->keys.len = m->key_base;
    return kl__owned(shape);
}

static bool close_object(kl__decoder *d, members *m, kl__h *out)
{
    if (m->same && m->n == m->guide_n) {
        *out = m->guide;
        return true;
    }
    if (!m->n) {
        *out = KL__H_EMPTY_OBJECT;
        return true;
    }
    leave_values(d, m);
    kl__entry shape = close_shape(d, m);
    if (!shape)
        return false;
    d->made_new = m->any_new && d->alone;
    *out = d->made_new ? kl__make_alone(KL_OBJECT, shape, d->values.v + m->base, m->n)
                       : made(kl__intern_object(shape, d->values.v + m->base, m->n), m->guide);
    d->values.len = m->base;
    return true;
}

/* The root of a list's item gets apiVersion and kind in front. */
static void fill_root(kl__decoder *d, members *m)
{
    for (size_t i = 0; i < 2; i++) {
        kl__h v = kl__handle(d->fill[i]);
        if (m->follows && m->guide_n > i && m->shape->v[i] == d->fill_keys[i]) {
            if (m->same && m->values[i] != v)
                leave_values(d, m);
        } else {
            leave_keys(d, m);
            leave_values(d, m);
            push_key(d, d->fill_keys[i], d->text);
        }
        if (!m->same)
            push(&d->values, v);
        m->n++;
    }
    m->cursor = m->follows ? 2 : 0;
    m->filled = true;
}

/* A key that is not the one expected. `p` is where its quote belongs. *place is the guide's member with this key, or SIZE_MAX. */
static const char *other_key(kl__decoder *d, const char *p, members *m, const kl__cut *cut, bool *keep, const kl__cut **below, size_t *place)
{
    const char *at = p, *s;
    size_t n;
    if (p >= d->end || *p != '"')
        return unexpected(d, p, "a key in double quotes");
    p = string_text(d, p + 1, &s, &n);
    if (!p)
        return NULL;
    *place = m->guide_n ? guided_place(m, s, n) : SIZE_MAX;
    *keep = !cut || kl__cut_keeps(cut, s, n, below);
    if (!*keep)
        return p;
    bool is_new = false;
    kl__entry key = *place != SIZE_MAX ? m->shape->v[*place] : kl__owned(kl__intern_str_new(s, n, &is_new));
    m->any_new |= is_new;
    if (!m->follows || *place != m->n) {
        leave_keys(d, m);
        push_key(d, key, at);
    }
    if (m->filled && ((kl__h)key == d->fill_keys[0] || (kl__h)key == d->fill_keys[1])) {
        d->refill = true;
        return NULL;
    }
    return p;
}

static const char *object(kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    members m = { .guide = guide, .base = d->values.len, .key_base = d->keys.len };
    if (kl__is(guide, KL_OBJECT)) {
        m.shape = kl__shape_of(kl__at(guide));
        m.values = kl__at(guide)->v;
        m.guide_n = m.shape->len;
        m.follows = m.same = true;
    }
    if (depth > KL_VALUE_DEPTH_MAX)
        return fail_at(d, p - 1, "nested deeper than 512 levels");
    if (depth == 1 && d->fill[0])
        fill_root(d, &m);
    p = space(d, p);
    bool more = !(p < d->end && *p == '}');
    if (!more)
        p++;
    while (more) {
        size_t place = m.cursor;
        const kl__cut *below = NULL;
        bool keep = true;
        if (place < m.guide_n && p < d->end && *p == '"' && is_text_of(p + 1, d->end, m.shape->v[place])) {
            kl__h key = m.shape->v[place];
            size_t n = kl__at(key)->len;
            if (m.filled && (key == d->fill_keys[0] || key == d->fill_keys[1])) {
                d->refill = true;
                return NULL;
            }
            if (cut)
                keep = kl__cut_keeps(cut, kl__at(key)->bytes, n, &below);
            if (keep && (!m.follows || place != m.n)) {
                leave_keys(d, &m);
                push_key(d, key, p);
            }
            p += n + 2;
        } else {
            p = other_key(d, p, &m, cut, &keep, &below, &place);
            if (!p)
                return NULL;
        }
        p = space(d, p);
        if (p >= d->end || *p != ':')
            return unexpected(d, p, "':'");
        p = space(d, p + 1);
        if (!keep) {
            p = skip(d, p);
        } else {
            kl__h like = place != SIZE_MAX ? m.values[place] : 0, h;
            if (m.same && !m.follows)
                leave_values(d, &m);
            d->made_new = false;
            p = member_value(d, p, like, depth, below, &h);
            if (!p)
                return NULL;
            m.any_new |= d->made_new;
            if (m.same && h != like)
                leave_values(d, &m);
            if (!m.same)
                push(&d->values, entry_of(d, h, like));
            m.n++;
            m.cursor = place != SIZE_MAX ? place + 1 : m.cursor;
        }
        p = p ? next(d, p, '}', &more) : NULL;
        if (!p)
            return NULL;
    }
    return close_object(d, &m, out) ? p : NULL;
}

static const char *value(kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    switch (p < d->end ? *p : '\0') {
    case '"': return string(d, p + 1, guide, out);
    case '{': return object(d, p + 1, guide, depth + 1, cut, out);
    case '[': return array(d, p + 1, guide, depth + 1, cut, out);
    case 't': return literal(d, p, "true", 4, KL__H_TRUE, out);
    case 'f': return literal(d, p, "false", 5, KL__H_FALSE, out);
    case 'n': return literal(d, p, "null", 4, KL__H_NULL, out);
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
        p = number(d, p, out);
        if (p && *out == guide)
            kl__spare(guide);
        return p;
    default: return unexpected(d, p, "a value");
    }
}

/* --- whole texts ------------------------------------------------------------------------------------------------------------ */

static const char *document(kl__decoder *d, bool whole, kl__h *out)
{
    const char *p = value(d, space(d, d->text), kl__handle(d->guide), 0, d->frame ? kl__projection_frame(d->keep) : kl__projection_root(d->keep), out);
    if (!p || !whole)
        return p;
    p = space(d, p);
    if (p == d->end)
        return p;
    if (*out != kl__handle(d->guide))
        kl_value_unref(KL__VALUE(*out));
    return unexpected(d, p, "nothing more");
}

static void fill_keys(kl__decoder *d)
{
    if (d->fill[0] && !d->fill_keys[0]) {
        d->fill_keys[0] = kl__intern_str("apiVersion", 10);
        d->fill_keys[1] = kl__intern_str("kind", 4);
    }
}

kl_status kl__decode(kl__decoder *d, const char *text, size_t n, size_t *used, const kl_value **out, kl_err *err)
{
    kl__h h;
    d->text = text ? text : "";
    d->end = d->text + n;
    d->err = err;
    d->refill = false;
    memset(d->recent, 0, sizeof d->recent);
    fill_keys(d);
    const char *p = document(d, !used, &h);
    if (d->refill) {                                /* apiVersion and kind are its own */
        const kl_value *fill = d->fill[0];
        cut_back(&d->values, 0);
        cut_back(&d->keys, 0);
        memset(d->recent, 0, sizeof d->recent);
        d->fill[0] = NULL;
        p = document(d, !used, &h);
        d->fill[0] = fill;
    }
    if (!p) {
        cut_back(&d->values, 0);
        cut_back(&d->keys, 0);
        return KL_ESYNTAX;
    }
    if (used)
        *used = (size_t)(p - d->text);
    *out = KL__VALUE(h);
    if (h == kl__handle(d->guide))
        kl_value_ref(*out);
    return KL_OK;
}

void kl__decoder_fini(kl__decoder *d)
{
    kl_free(d->values.v);
    kl_free(d->keys.v);
    kl_free(d->key_at);
    kl_buf_fini(&d->scratch);
    kl_value_unref(KL__VALUE(d->fill_keys[0]));
    kl_value_unref(KL__VALUE(d->fill_keys[1]));
}

static kl_status decode_once(const char *text, size_t n, bool last_wins, const kl_value **out, kl_err *err)
{
    kl__decoder d = { .last_wins = last_wins };
    kl_status st = kl__decode(&d, text, n, NULL, out, err);
    kl__decoder_fini(&d);
    return st;
}

kl_status kl_value_decode(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    return decode_once(text, n, false, out, err);
}

kl_status kl_value_decode_last(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    return decode_once(text, n, true, out, err);
}
