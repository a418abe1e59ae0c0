/* decode.c - JSON text to a value, in one pass, beside a guide.
 *
 * Objects in a cluster resemble each other, so the decoder walks a similar value along with the text.
 * Where a key or a string is the guide's, comparing a few words says so, and no table is asked; a
 * container whose members were all the guide's is the guide's container. What differs goes through the
 * table as without a guide. Values gather on one stack and keys, once they leave the guide's shape, on
 * another; entries say whether their reference is ours or borrowed from the guide.
 *
 * Strict: RFC 8259, UTF-8 checked, duplicate keys and lone surrogates refused, at most KL_VALUE_DEPTH_MAX
 * levels. Duplicates are looked for where a shape is new; a shape that exists has none. Errors know only
 * an offset; line and column are counted when one is told. Functions take the place in the text and return
 * the place after, or NULL. */
#include "value/decode.h"

#include "base/mem.h"
#include "value/scan.h"
#include "value/token.h"

/* --- entries ------------------------------------------------------------------------------ */

static void push_key(kl__decoder *d, kl__entry key, const char *at)
{
    if (d->keys.len >= d->key_at_cap) {
        d->key_at_cap = d->key_at_cap ? 2 * d->key_at_cap : 128;
        d->key_at = kl_realloc(d->key_at, d->key_at_cap * sizeof *d->key_at);
    }
    d->key_at[d->keys.len] = (size_t)(at - d->text);
    kl__entries_push(&d->keys, key);
}

/* Pushes the keys of the guide that were followed until now. They are distinct, so their places do not
 * matter. */
static void push_followed(kl__decoder *d, const kl__h *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        push_key(d, v[i], d->text);
}

/* --- strings ------------------------------------------------------------------------------ */

/* The first n of a word's 8 bytes, 0 < n < 8, as they lie in memory. */
static inline uint64_t first_bytes(uint64_t w, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return w << (8 * (8 - n));
#else
    return w >> (8 * (8 - n));
#endif
}

/* Whether the text from p on is string h and its closing quote. May be false near the end of the text and for
 * escapes, where the slow path decides. */
static inline bool is_text_of(const char *p, const char *end, kl__h h)
{
    if (!kl__is_node(h))
        return false;
    const kl__node *s = kl__at(h);
    size_t n = s->len, i = 0;
    if ((atomic_load_explicit(&s->rc, memory_order_relaxed) & (KL__TYPE | KL__PLAIN))
            != (KL_STRING | KL__PLAIN)
        || (size_t)(end - p) < n + 9 || p[n] != '"')
        return false;
    for (; i + 8 <= n; i += 8)
        if (kl__word_at(p + i) != kl__word_at(s->bytes + i))
            return false;
    return i == n || !(first_bytes(kl__word_at(p + i) ^ kl__word_at(s->bytes + i), n - i));
}

/* The node of a string that is not the guide's: a new reference. The stacks hold the strings that this text
 * has brought before. */
static kl__h find_string(kl__decoder *d, const char *s, size_t n)
{
    return d->last_wins ? kl__intern_str_new(s, n, &d->made_new)
                        : kl__recent_string(&d->recent, s, n, &d->made_new);
}

static const char *string(kl__decoder *d, const char *p, kl__h guide, kl__h *out)
{
    bool guided = kl__is(guide, KL_STRING);
    const char *s;
    size_t n;
    p = kl__string_text(d, p, &s, &n);
    if (!p)
        return NULL;
    *out = guided && kl__is_bytes_of(guide, s, n) ? guide : find_string(d, s, n);
    return p;
}

/* --- structure ---------------------------------------------------------------------------- */

static const char *value(
    kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out);

/* Skips a value; a container by its brackets and quotes alone. */
static const char *skip(kl__decoder *d, const char *p)
{
    const char *text;
    size_t n;
    kl__h bare;
    char c = p < d->end ? *p : '\0';
    if (c == '{' || c == '[') {
        kl__brackets in = {0};
        bool whole;
        p = kl__brackets_close(&in, p, d->end, &whole);
        return whole ? p : kl__fail_at(d, d->end, "the text ends inside a value that is left out");
    }
    if (c == '"')
        return kl__string_text(d, p + 1, &text, &n);
    p = value(d, p, 0, 0, NULL, &bare);
    if (p)
        kl_value_unref(KL__VALUE(bare));
    return p;
}

/* Reads a member's value: tries the two most frequent ones first. */
static inline const char *member_value(
    kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
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

/* Goes past the comma behind a member or item (*more), or past the closing bracket. */
static inline const char *next(kl__decoder *d, const char *p, char close, bool *more)
{
    p = kl__space(d, p);
    char c = p < d->end ? *p : '\0';
    *more = c == ',';
    if (c == ',')
        return kl__space(d, p + 1);
    if (c == close)
        return p + 1;
    return kl__unexpected(d, p, close == '}' ? "',' or '}'" : "',' or ']'");
}

/* The value that was just read, as an entry. */
static inline kl__entry entry_of(const kl__decoder *d, kl__h h, kl__h like)
{
    return kl__entry_of(h, like, d->made_new);
}

static const char *array(
    kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    const kl__node *g = kl__is(guide, KL_ARRAY) ? kl__at(guide) : NULL;
    size_t base = d->values.len, gn = g ? g->len : 0, n = 0;
    /* same: all items so far are the guide's, and none was pushed */
    bool same = g != NULL, more = true, any_new = false;
    kl__h before = 0;
    if (depth > KL_VALUE_DEPTH_MAX)
        return kl__fail_at(d, p - 1, "nested deeper than 512 levels");
    cut = kl__cut_items(cut);
    p = kl__space(d, p);
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
                kl__entries_borrow(&d->values, g->v, n);
            same = false;
            kl__entries_push(&d->values, entry_of(d, h, like));
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
        kl__entries_borrow(&d->values, g->v, n);
    d->made_new = any_new && d->alone;
    *out = d->made_new ? kl__make_alone(KL_ARRAY, n, d->values.v + base, n)
                       : kl__made(kl__intern_list(KL_ARRAY, d->values.v + base, n), guide);
    d->values.len = base;
    return p;
}

/* --- objects ------------------------------------------------------------------------------ */

/* The place of the first repeated key, or n; *first: where it stood before. With *replace, earlier keys take
 * later values, and n becomes less. */
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

/* Merges members with repeated keys: the earlier one takes the later value. Returns how many members are
 * left. */
static size_t merge_again(kl__entry *keys, kl__entry *values, size_t n)
{
    for (size_t first, again; (again = find_again(keys, n, &first)) < n; n--) {
        kl__entry_drop(values[first]);
        kl__entry_drop(keys[again]);
        values[first] = values[again];
        memmove(keys + again, keys + again + 1, (n - again - 1) * sizeof *keys);
        memmove(values + again, values + again + 1, (n - again - 1) * sizeof *values);
    }
    return n;
}

typedef struct members {
    kl__h guide;
    const kl__node *shape;  /* the guide's, or NULL */
    const kl__h *values;    /* the guide's */
    size_t guide_n, cursor; /* the guide's member that is expected next */
    size_t base, key_base;  /* where our entries begin on the stacks */
    size_t n;               /* members so far */
    bool follows;           /* the keys so far are the guide's first n, and none was pushed */
    bool same;              /* the values so far are the guide's, too */
    bool any_new;           /* a key or value is KL__NEW */
    bool filled;            /* it begins with an apiVersion and kind that its text lacks */
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
        kl__entries_borrow(&d->values, m->values, m->n);
    m->same = false;
}

/* The guide's member with this key, looked for from the expected one on, or SIZE_MAX. */
static size_t guided_place(const members *m, const char *s, size_t n)
{
    if (m->guide_n > 4 * KL__INDEXED_ABOVE)
        return kl__shape_find(m->shape, s, n);
    for (size_t i = 0; i < m->guide_n; i++) {
        size_t at = m->cursor + i < m->guide_n ? m->cursor + i : m->cursor + i - m->guide_n;
        if (kl__is_bytes_of(m->shape->v[at], s, n))
            return at;
    }
    return SIZE_MAX;
}

/* Ends the keys. Returns the shape, or 0 if a key is repeated. With last_wins, fewer members may be left. */
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
            kl__fail_at(d, d->text + d->key_at[m->key_base + again], what);
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
                       : kl__made(kl__intern_object(shape, d->values.v + m->base, m->n), m->guide);
    d->values.len = m->base;
    return true;
}

/* Gives the root of a list's item apiVersion and kind, in front. */
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
            kl__entries_push(&d->values, v);
        m->n++;
    }
    m->cursor = m->follows ? 2 : 0;
    m->filled = true;
}

/* Reads a key that is not the expected one. `p` is where its quote belongs. *place: the guide's member with
 * this key, or SIZE_MAX. */
static const char *other_key(kl__decoder *d, const char *p, members *m, const kl__cut *cut, bool *keep,
    const kl__cut **below, size_t *place)
{
    const char *at = p, *s;
    size_t n;
    if (p >= d->end || *p != '"')
        return kl__unexpected(d, p, "a key in double quotes");
    p = kl__string_text(d, p + 1, &s, &n);
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

static const char *object(
    kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    members m = {.guide = guide, .base = d->values.len, .key_base = d->keys.len};
    if (kl__is(guide, KL_OBJECT)) {
        m.shape = kl__shape_of(kl__at(guide));
        m.values = kl__at(guide)->v;
        m.guide_n = m.shape->len;
        m.follows = m.same = true;
    }
    if (depth > KL_VALUE_DEPTH_MAX)
        return kl__fail_at(d, p - 1, "nested deeper than 512 levels");
    if (depth == 1 && d->fill[0])
        fill_root(d, &m);
    p = kl__space(d, p);
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
        p = kl__space(d, p);
        if (p >= d->end || *p != ':')
            return kl__unexpected(d, p, "':'");
        p = kl__space(d, p + 1);
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
                kl__entries_push(&d->values, entry_of(d, h, like));
            m.n++;
            m.cursor = place != SIZE_MAX ? place + 1 : m.cursor;
        }
        p = p ? next(d, p, '}', &more) : NULL;
        if (!p)
            return NULL;
    }
    return close_object(d, &m, out) ? p : NULL;
}

static const char *value(
    kl__decoder *d, const char *p, kl__h guide, size_t depth, const kl__cut *cut, kl__h *out)
{
    switch (p < d->end ? *p : '\0') {
    case '"': return string(d, p + 1, guide, out);
    case '{': return object(d, p + 1, guide, depth + 1, cut, out);
    case '[': return array(d, p + 1, guide, depth + 1, cut, out);
    case 't': return kl__literal(d, p, "true", 4, KL__H_TRUE, out);
    case 'f': return kl__literal(d, p, "false", 5, KL__H_FALSE, out);
    case 'n': return kl__literal(d, p, "null", 4, KL__H_NULL, out);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        p = kl__number(d, p, out);
        if (p && *out == guide)
            kl__spare(guide);
        return p;
    default: return kl__unexpected(d, p, "a value");
    }
}

/* --- whole texts -------------------------------------------------------------------------- */

static const char *document(kl__decoder *d, bool whole, kl__h *out)
{
    const char *p = value(d, kl__space(d, d->text), kl__handle(d->guide), 0,
        d->cut         ? d->cut
            : d->frame ? kl__projection_frame(d->keep)
                       : kl__projection_root(d->keep),
        out);
    if (!p || !whole)
        return p;
    p = kl__space(d, p);
    if (p == d->end)
        return p;
    if (*out != kl__handle(d->guide))
        kl_value_unref(KL__VALUE(*out));
    return kl__unexpected(d, p, "nothing more");
}

static void fill_keys(kl__decoder *d)
{
    if (d->fill[0] && !d->fill_keys[0]) {
        d->fill_keys[0] = kl__intern_str("apiVersion", 10);
        d->fill_keys[1] = kl__intern_str("kind", 4);
    }
}

kl_status kl__decode(
    kl__decoder *d, const char *text, size_t n, size_t *used, const kl_value **out, kl_err *err)
{
    kl__h h;
    d->text = text ? text : "";
    d->end = d->text + n;
    d->err = err;
    d->refill = false;
    d->recent = (kl__recent){0};
    fill_keys(d);
    const char *p = document(d, !used, &h);
    if (d->refill) { /* the text has its own apiVersion and kind */
        const kl_value *fill = d->fill[0];
        kl__entries_cut(&d->values, 0);
        kl__entries_cut(&d->keys, 0);
        d->recent = (kl__recent){0};
        d->fill[0] = NULL;
        p = document(d, !used, &h);
        d->fill[0] = fill;
    }
    if (!p) {
        kl__entries_cut(&d->values, 0);
        kl__entries_cut(&d->keys, 0);
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
    kl__decoder d = {.last_wins = last_wins};
    kl_status st = kl__decode(&d, text, n, NULL, out, err);
    kl__decoder_fini(&d);
    return st;
}

kl_status kl_value_decode(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    return decode_once(text, n, false, out, err);
}

kl_status kl_value_decode_like(
    const char *text, size_t n, const kl_value *like, const kl_value **out, kl_err *err)
{
    kl__decoder d = {.guide = like, .alone = true};
    kl_status st = kl__decode(&d, text, n, NULL, out, err);
    kl__decoder_fini(&d);
    return st;
}

kl_status kl_value_decode_last(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    return decode_once(text, n, true, out, err);
}
