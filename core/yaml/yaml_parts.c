/* yaml_parts.c - YAML read part by part: a document, or an item of a List, at a time.
 *
 *   a part --kl__yaml_block--> JSON --decoder--> value
 *          --libyaml, the part alone--> value              what the first does not know
 *          --libyaml, all that is left--> values or error  what is a mistake, or none when the rest is seen
 *
 * A part begins with a line: "---", or an item's dash in the top-level `items`. Such a line may also stand
 * inside a quoted text. Then the part before it is incomplete and does not parse alone, so libyaml reads all
 * that is left. It first gets the lines that bring it into the state that it would be in there. So a List of
 * gigabytes takes the memory of its items alone, and an error has libyaml's words and place. */
#include <string.h>

#include "base/mem.h"
#include "value/decode.h"
#include "yaml/yaml_block.h"
#include "yaml/yaml_impl.h"

#define PIECE ((size_t)1 << 18)
#define PART_MAX ((size_t)16 << 20) /* a larger part of a source is left to libyaml, which holds less */

typedef struct parts {
    const char *name;
    const kl_yaml_source *source;
    kl__yaml_fn *doc;
    void *arg;
    kl_err *err;
    /* the text as far as it is here, from the present part on */
    const char *text;
    size_t len;
    bool ended;
    bool too_large; /* the present part is */
    kl_buf held;    /* of a source */
    size_t line, byte;
    kl__yaml_text state; /* anchors, and what aliases stand for */
    kl__decoder decoder;
    const kl_value *guide;
    kl_buf json;
    /* the present List: its lines up to `items:`, and an item that stands for all that were read; these */
    kl_buf head;
    bool in_list, stands;
    size_t head_lines;
    const kl_value **items;
    size_t n_items, cap_items;
} parts;

/* What a line is to the part that is cut. MARK: "---". ODD: a directive, or "...". */
typedef enum place { INSIDE, ITEM, KEY, MARK, ODD, END } place;

/* --- the text ----------------------------------------------------------------------------- */

static kl_status fill(parts *p)
{
    size_t got = 0;
    char *room = p->len > PART_MAX ? NULL : kl_buf_reserve(&p->held, PIECE);
    kl_status st = room ? p->source->next(p->source->from, room, PIECE, &got, p->err) : KL_ETOOBIG;
    p->too_large = !room;
    p->held.len += got;
    p->text = p->held.data;
    p->len = p->held.len;
    p->ended = !st && !got;
    return st;
}

/* How often a part has a byte, followed by a line end's other bytes. */
static size_t count_odd(const char *s, const char *end, int c)
{
    size_t lines = 0;
    for (; (s = memchr(s, c, (size_t)(end - s))) != NULL; s++) {
        const unsigned char *at = (const unsigned char *)s;
        size_t left = (size_t)(end - s);
        lines += c == '\r' ? left < 2 || at[1] != '\n'
            : c == 0xc2    ? left > 1 && at[1] == 0x85
                           : left > 2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9);
    }
    return lines;
}

/* As libyaml counts: CR, NEL, LS and PS end a line, too. */
static size_t count_lines(const char *s, size_t n)
{
    const char *end = s + n;
    size_t lines = n ? count_odd(s, end, '\r') + count_odd(s, end, 0xc2) + count_odd(s, end, 0xe2) : 0;
    for (; n && (s = memchr(s, '\n', (size_t)(end - s))) != NULL; s++)
        lines++;
    return lines;
}

/* Goes on behind a part. */
static void advance(parts *p, size_t n)
{
    p->line += count_lines(p->text, n);
    p->byte += n;
    p->text += n;
    p->len -= n;
    size_t read = p->source ? (size_t)(p->text - p->held.data) : 0;
    if (read > PIECE && read > p->len) {
        kl_buf_consume(&p->held, read);
        p->text = p->held.data;
    }
}

/* The place after the line that begins at `from`; reads on if need be. KL_ETOOBIG: the part is too large. */
static kl_status line_after(parts *p, size_t from, size_t *to)
{
    for (size_t seen = from;;) {
        const char *nl = seen < p->len ? memchr(p->text + seen, '\n', p->len - seen) : NULL;
        *to = nl ? (size_t)(nl - p->text) + 1 : p->len;
        if (nl || p->ended)
            return KL_OK;
        seen = p->len;
        size_t before = p->source ? (size_t)(p->text - p->held.data) : 0;
        kl_status st = fill(p);
        p->text += before;
        p->len -= before;
        if (st)
            return st;
    }
}

static bool blank(char c) { return c == ' ' || c == '\n'; }

/* Whether the line [s, end) begins with three such characters that mark a document. */
static bool marks(const char *s, const char *end, char c)
{
    return end - s >= 3 && s[0] == c && s[1] == c && s[2] == c && (end - s == 3 || blank(s[3]));
}

/* The column of a dash that begins the line, or -1. */
static ptrdiff_t dash_at(const char *s, const char *end)
{
    const char *c = s;
    while (c < end && *c == ' ')
        c++;
    return c < end && *c == '-' && (c + 1 == end || blank(c[1])) ? c - s : -1;
}

/* Whether a line has nothing, or a comment. */
static bool says_nothing(const char *s, const char *end)
{
    while (s < end && *s == ' ')
        s++;
    return s == end || *s == '\n' || *s == '#';
}

/* What the line [s, end) is, for items with their dashes in this column. */
static place place_of(const char *s, const char *end, ptrdiff_t col)
{
    if (s == end)
        return END;
    if (marks(s, end, '-'))
        return MARK;
    if (*s == '%' || marks(s, end, '.'))
        return ODD;
    if (col >= 0 && dash_at(s, end) == col)
        return ITEM;
    return *s != ' ' && !says_nothing(s, end) ? KEY : INSIDE;
}

/* --- one part ----------------------------------------------------------------------------- */

typedef struct only {
    const kl_value *v;
    size_t n;
} only;

static kl_status keep_only(void *arg, const kl_value *v, kl_err *err)
{
    only *o = arg;
    (void)err;
    kl_value_unref(o->v);
    o->v = v;
    o->n++;
    return KL_OK;
}

/* A part by libyaml alone. False: it is no whole document to it. */
static bool read_alone(parts *p, const char *s, size_t n, const kl_value **out)
{
    only o = {0};
    size_t aliased = p->state.aliased;
    p->state.text[1] = s;
    p->state.left[1] = n;
    p->state.is_part = true;
    kl_status st = kl__yaml_libyaml(p->name, &p->state, keep_only, &o, NULL);
    p->state.is_part = false;
    if (st || o.n > 1) {
        p->state.aliased = aliased; /* it will be read again */
        kl_value_unref(o.v);
        return false;
    }
    *out = o.v;
    return true;
}

/* A part, whose first `mark` bytes are a line "---". */
static bool read_part(parts *p, size_t mark, size_t n, const kl_value **out)
{
    kl_buf_clear(&p->json);
    p->decoder.guide = p->guide;
    if (kl__yaml_block(p->text + mark, n - mark, &p->json)
        && !kl__decode(&p->decoder, kl_buf_str(&p->json), p->json.len, NULL, out, NULL))
        return true;
    return read_alone(p, p->text, n, out);
}

/* --- Lists -------------------------------------------------------------------------------- */

static void keep_item(parts *p, const kl_value *item)
{
    if (p->source && p->source->wanted && !p->source->wanted(p->source->from, item)) {
        kl_value_unref(item);
        return;
    }
    if (p->n_items == p->cap_items) {
        p->cap_items = p->cap_items ? 2 * p->cap_items : 64;
        p->items = kl_realloc(p->items, p->cap_items * sizeof *p->items);
    }
    p->items[p->n_items++] = item;
}

static void list_drop(parts *p)
{
    for (size_t i = 0; i < p->n_items; i++)
        kl_value_unref(p->items[i]);
    p->n_items = 0;
    p->in_list = p->stands = false;
    kl_buf_clear(&p->head);
    p->head_lines = 0;
}

/* Gives a document, with the items that were read before it was whole. Takes over v. */
static kl_status give(void *arg, const kl_value *v, kl_err *err)
{
    parts *p = arg;
    if (kl_value_type(v) == KL_NULL) {
        kl_value_unref(v);
        return KL_OK;
    }
    const kl_value *rest = kl_value_get(v, "items");
    if (!p->in_list)
        return p->doc(p->arg, v, err);
    for (size_t i = p->stands; i < kl_value_len(rest); i++)
        keep_item(p, kl_value_ref(kl_value_item(rest, i)));
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < p->n_items; i++)
        kl_build_value(b, p->items[i]);
    kl_build_end(b);
    const kl_value *items = kl_builder_done(b), *whole = kl_value_with(v, "items", items);
    kl_value_unref(items);
    kl_value_unref(v);
    list_drop(p);
    return p->doc(p->arg, whole, err);
}

/* Leaves all that is left to libyaml, which has read the lines of the List's head, if there is one. */
static kl_status leave(parts *p)
{
    kl__yaml_text *in = &p->state;
    in->text[0] = p->head.data;
    in->left[0] = p->head.len;
    in->text[1] = p->text;
    in->left[1] = p->len;
    in->source = p->ended ? NULL : p->source;
    in->line = p->line - p->head_lines;
    in->byte = p->byte - p->head.len;
    kl_status st = kl__yaml_libyaml(p->name, in, give, p, p->err);
    p->len = 0;
    p->ended = true;
    return st;
}

/* The first line from `from` on that ends an item whose dash is in this column (-1: that ends a document). */
static kl_status part_end(parts *p, ptrdiff_t col, size_t from, size_t *to, place *at)
{
    for (size_t after;; from = after) {
        kl_status st = line_after(p, from, &after);
        if (st)
            return st;
        *at = place_of(p->text + from, p->text + after, col);
        *to = from;
        if (*at != INSIDE && (*at != KEY || col >= 0))
            return KL_OK;
    }
}

/* Whether the head of a List, up to `items:`, is what libyaml would have read so far. */
static bool is_head(parts *p, size_t n)
{
    const kl_value *v = NULL;
    const char *last = "";
    bool is = read_alone(p, p->text, n, &v) && !p->state.anchors && kl_value_len(v)
        && kl_value_type(kl_value_member(v, kl_value_len(v) - 1, &last, NULL)) == KL_NULL
        && !strcmp(last, "items");
    kl_value_unref(v);
    kl__yaml_forget_anchors(&p->state);
    return is;
}

/* The last item and what is behind it, together with the head. */
static bool read_tail(parts *p, size_t n, const kl_value **out)
{
    kl_buf text = KL_BUF_INIT;
    const kl_value *v = NULL;
    bool whole = !kl_buf_add(&text, p->head.data, p->head.len) && !kl_buf_add(&text, p->text, n)
        && read_alone(p, text.data, text.len, &v)
        && kl_value_len(kl_value_get(v, "items")) == (size_t)p->stands + 1;
    kl_buf_fini(&text);
    if (whole)
        *out = v;
    else
        kl_value_unref(v);
    return whole;
}

/* Reads an item that another one follows. */
static bool read_item(parts *p, size_t n)
{
    const kl_value *v = NULL;
    if (!read_part(p, 0, n, &v))
        return false;
    kl_value_unref(p->guide);
    p->guide = v;
    if (kl_value_len(v) != 1)
        return false;
    keep_item(p, kl_value_ref(kl_value_item(v, 0)));
    return true;
}

/* Reads a List whose head has n bytes, and whose items have their dashes in this column. libyaml reads the
 * last item, and so comes to what is behind it as if it had read all. */
static kl_status list(parts *p, size_t n, ptrdiff_t col)
{
    size_t to;
    place at;
    const kl_value *v = NULL;
    kl_buf_add(&p->head, p->text, n);
    p->in_list = true;
    p->head_lines = count_lines(p->text, n);
    advance(p, n);
    for (;;) {
        kl_status st = part_end(p, col, 0, &to, &at);
        if (!st)
            st = line_after(p, to, &to);
        if (!st)
            st = part_end(p, col, to, &to, &at);
        if (st)
            return st;
        if (at != ITEM)
            break;
        if (!read_item(p, to))
            return leave(p);
        advance(p, to);
        if (!p->stands)
            kl_buf_printf(&p->head, "%*s- 0\n", (int)col, "");
        p->head_lines += !p->stands;
        p->stands = true;
    }
    kl_status st = part_end(p, -1, 0, &to, &at);
    if (st)
        return st;
    if (at == ODD || !read_tail(p, to, &v))
        return leave(p);
    advance(p, to);
    return give(p, v, p->err);
}

/* --- documents ---------------------------------------------------------------------------- */

/* The column of the dashes of the items, if the line is `items:` and they follow it, or -1. */
static kl_status items_follow(parts *p, size_t from, size_t to, ptrdiff_t *col)
{
    static const char key[] = "items:";
    const size_t n = sizeof key - 1;
    *col = -1;
    if (to - from <= n || memcmp(p->text + from, key, n) || !says_nothing(p->text + from + n, p->text + to))
        return KL_OK;
    do {
        from = to;
        kl_status st = line_after(p, from, &to);
        if (st)
            return st;
    } while (to > from && says_nothing(p->text + from, p->text + to));
    *col = dash_at(p->text + from, p->text + to);
    return KL_OK;
}

/* Reads one document; *more: there may be another one. */
static kl_status document(parts *p, bool *more)
{
    size_t from = 0, to;
    const kl_value *v = NULL;
    kl_status st = line_after(p, 0, &to);
    if (st)
        return st;
    bool marked = marks(p->text, p->text + to, '-');
    size_t mark = marked && says_nothing(p->text + 3, p->text + to) ? to : 0;
    for (bool looked = false;; from = to) {
        ptrdiff_t col = -1;
        st = line_after(p, from, &to);
        if (st)
            return st;
        place at = place_of(p->text + from, p->text + to, -1);
        if (at == ODD)
            return leave(p);
        *more = at == MARK && from;
        if (at == END || *more)
            break;
        if (at == KEY && !looked)
            st = items_follow(p, from, to, &col);
        if (st)
            return st;
        looked = looked || col >= 0;
        if (col >= 0 && is_head(p, to)) {
            *more = true;
            return list(p, to, col);
        }
    }
    if (!read_part(p, mark, from, &v))
        return leave(p);
    advance(p, from);
    return give(p, v, p->err);
}

kl_status kl__yaml_parts(const char *name, const char *text, size_t n, const kl_yaml_source *source,
    kl__yaml_fn *doc, void *arg, kl_err *err)
{
    parts p = {.name = name, .source = source, .doc = doc, .arg = arg, .err = err, .len = n};
    p.text = source ? NULL : text;
    p.ended = !source;
    p.line = source ? source->line : 0;
    kl_status st = KL_OK;
    for (bool more = true; more && !st;) {
        more = false;
        st = document(&p, &more);
        if (st && p.too_large)
            st = leave(&p);
        list_drop(&p);
        kl__yaml_forget_anchors(&p.state);
    }
    kl_value_unref(p.guide);
    kl__decoder_fini(&p.decoder);
    kl_free(p.items);
    kl_buf_fini(&p.head);
    kl_buf_fini(&p.json);
    kl_buf_fini(&p.held);
    return st;
}
