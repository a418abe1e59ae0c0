/* proto.c - a message of the built-in kinds to a value, in one pass, beside a guide.
 *
 * Fields come in the order of their numbers and JSON has them in Go's, so each goes into the slot that its
 * table names, and when the message ends the slots are read in order: what stands there, what must be said
 * of what is absent, and nothing for the rest. A message whose members were all the guide's is the guide's
 * object. Entries say whether their reference is ours or borrowed from the guide; those of open messages
 * lie on `slots`, those of the one being closed on `values` and `keys`. Functions return false with the
 * first mistake told; on the way out each level puts its field before the path. */
#include "wire/proto_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/mem.h"

typedef struct level {
    const kl__proto_msg *m;
    kl__h guide;
    const kl__node *shape;  /* the guide's, or NULL */
    size_t guide_n, cursor; /* the guide's member that is expected next */
    size_t base;            /* where our slots begin */
    size_t depth;
    const kl__cut *cut;
} level;

static bool message(kl__proto *d, const kl__proto_msg *m, const char *s, size_t n, kl__h guide, size_t depth,
    const kl__cut *cut, const kl__front *front, kl__h *out);

/* --- names and paths ---------------------------------------------------------------------- */

static kl__h new_name(kl__proto *d, size_t i)
{
    return d->names[i] = kl__intern_str(kl__proto_names[i], strlen(kl__proto_names[i]));
}

static inline kl__h name_of(kl__proto *d, size_t i)
{
    return __builtin_expect(d->names[i] != 0, 1) ? d->names[i] : new_name(d, i);
}

/* Puts a level in front of the path of a mistake. Always false. */
static bool inside(kl__proto *d, const char *name, size_t index)
{
    char step[80], rest[sizeof d->path];
    int n = index == SIZE_MAX ? snprintf(step, sizeof step, "%.60s", name)
                              : snprintf(step, sizeof step, "%.50s[%zu]", name, index);
    memcpy(rest, d->path, sizeof rest);
    size_t room = sizeof d->path - (size_t)n - 2;
    rest[room] = '\0';
    snprintf(d->path, sizeof d->path, "%s%s%s", step, *rest && *rest != '[' ? "." : "", rest);
    return false;
}

/* The guide's member with this key, looked for from the expected one on, or 0. */
static inline kl__h guided(level *l, kl__h name)
{
    if (l->cursor < l->guide_n && l->shape->v[l->cursor] == name)
        return kl__at(l->guide)->v[l->cursor++];
    for (size_t i = 0; i < l->guide_n; i++) {
        size_t at = l->cursor + i < l->guide_n ? l->cursor + i : l->cursor + i - l->guide_n;
        if (l->shape->v[at] == name) {
            l->cursor = at + 1;
            return kl__at(l->guide)->v[at];
        }
    }
    return 0;
}

/* --- values ------------------------------------------------------------------------------- */

/* Reads a message, or the JSON in one, that the memo may have. */
static bool remembered(kl__proto *d, const kl__proto_slot *s, const kl__field *f, kl__h like, size_t depth,
    const kl__cut *cut, kl__h *out)
{
    bool raw = s->what == KL__PROTO_RAW;
    kl__memo *memo = NULL;
    if (!cut) {
        memo = kl__memo_find(d, raw ? KL__MEMO_RAW : s->msg, f->s, f->n, out);
        if (memo && *out) {
            *out = kl__made(*out, like);
            return true;
        }
    }
    if (raw ? !kl__proto_text(d, s->what, f->s, f->n, like, cut, out)
            : !message(d, &kl__proto_msgs[s->msg], f->s, f->n, like, depth + 1, cut, NULL, out))
        return false;
    if (memo && !d->outdated)
        kl__memo_keep(memo, f->s, f->n, *out);
    return true;
}

static bool one(kl__proto *d, const kl__proto_slot *s, const kl__field *f, const char *at, kl__h like,
    size_t depth, const kl__cut *cut, kl__h *out)
{
    unsigned wanted = s->what == KL__PROTO_BOOL || s->what == KL__PROTO_INT ? KL__WIRE_VARINT
                                                                            : KL__WIRE_BYTES;
    if (f->wire != wanted)
        return kl__proto_fail(d, at, "a field of another wire type than its own");
    d->made_new = false;
    switch (s->what) {
    case KL__PROTO_STRING: return kl__proto_string(d, f->s, f->n, like, out);
    case KL__PROTO_BOOL: *out = f->num ? KL__H_TRUE : KL__H_FALSE; return true;
    case KL__PROTO_INT: *out = kl__made(kl__intern_int((int64_t)f->num), like); return true;
    case KL__PROTO_MESSAGE:
    case KL__PROTO_RAW: return remembered(d, s, f, like, depth, cut, out);
    default: return kl__proto_text(d, s->what, f->s, f->n, like, cut, out);
    }
}

/* Whether Go leaves the slot out of JSON with omitempty. */
static bool is_zero(const kl__proto_slot *s, const kl__field *f)
{
    switch (s->what) {
    case KL__PROTO_STRING:
    case KL__PROTO_BYTES:
    case KL__PROTO_STRINGS:
    case KL__PROTO_TIME: return f->wire == KL__WIRE_BYTES && !f->n;
    case KL__PROTO_BOOL:
    case KL__PROTO_INT: return f->wire != KL__WIRE_BYTES && !f->num;
    default: return false;
    }
}

static void set_slot(kl__proto *d, size_t at, kl__entry e)
{
    kl__entry_drop(d->slots.v[at]);
    d->slots.v[at] = e;
}

/* The place after one more field with this number, if that follows; otherwise NULL. */
static const char *again(const char *p, const char *end, uint32_t number, kl__field *f)
{
    uint64_t tag;
    return p < end && kl__varint(p, end, &tag) && tag >> 3 == number ? kl__field_next(p, end, f) : NULL;
}

/* Closes an array of items that were read. The result is the guide's array if all items are its. */
static kl__entry close_array(kl__proto *d, size_t base, kl__h guide, bool any_new)
{
    size_t n = d->values.len - base;
    const kl__entry *e = d->values.v + base;
    const kl__node *g = kl__is(guide, KL_ARRAY) ? kl__at(guide) : NULL;
    bool same = g && g->len == n;
    for (size_t i = 0; same && i < n; i++)
        same = (kl__h)e[i] == g->v[i];
    if (same) {
        kl__entries_cut(&d->values, base);
        d->made_new = false;
        return guide;
    }
    d->made_new = any_new && d->alone;
    kl__h h = d->made_new ? kl__make_alone(KL_ARRAY, n, e, n)
                          : kl__made(kl__intern_list(KL_ARRAY, e, n), guide);
    d->values.len = base;
    return kl__entry_of(h, guide, d->made_new);
}

/* Reads the items from p on, as many as follow each other, behind those that the slot has. Numbers may be
 * packed. */
static const char *repeated(kl__proto *d, const kl__proto_slot *s, const kl__field *first, const char *at,
    const char *p, const char *end, kl__h guide, size_t depth, const kl__cut *cut, size_t slot)
{
    const kl__node *g = kl__is(guide, KL_ARRAY) ? kl__at(guide) : NULL;
    size_t base = d->values.len, n = 0;
    kl__h before = 0, had = (kl__h)d->slots.v[slot];
    kl__field f = *first;
    bool any_new = d->slots.v[slot] & KL__NEW;
    cut = kl__cut_items(cut);
    if (kl__is(had, KL_ARRAY))
        for (; n < kl__at(had)->len; n++)
            kl__entries_push(&d->values, kl__owned(kl__handle(kl_value_ref(KL__VALUE(kl__at(had)->v[n])))));
    for (bool more = true; more;) {
        bool packed = f.wire == KL__WIRE_BYTES && (s->what == KL__PROTO_INT || s->what == KL__PROTO_BOOL);
        const char *numbers = packed ? f.s : NULL, *numbers_end = packed ? f.s + f.n : NULL;
        do {
            kl__h h, like = g && n < g->len ? g->v[n] : before;
            if (packed && numbers < numbers_end) {
                f.wire = KL__WIRE_VARINT;
                numbers = kl__varint(numbers, numbers_end, &f.num);
                if (!numbers) {
                    kl__proto_fail(d, at, "a malformed list of numbers");
                    return NULL;
                }
            }
            if (packed && f.wire == KL__WIRE_BYTES) /* an empty one */
                break;
            if (!one(d, s, &f, at, like, depth, cut, &h)) {
                inside(d, kl__proto_names[s->name], n);
                return NULL;
            }
            any_new |= d->made_new;
            kl__entries_push(&d->values, kl__entry_of(h, like, d->made_new));
            before = h;
            n++;
        } while (packed && numbers < numbers_end);
        at = p;
        const char *after = again(p, end, first->number, &f);
        more = after != NULL;
        p = more ? after : p;
    }
    set_slot(d, slot, close_array(d, base, guide, any_new));
    return p;
}

/* --- objects ------------------------------------------------------------------------------ */

/* Closes an object of n gathered keys and values. The result is the guide if all are its. */
static kl__h close_object(kl__proto *d, size_t key_base, size_t base, size_t n, kl__h guide)
{
    const kl__entry *keys = d->keys.v + key_base, *values = d->values.v + base;
    const kl__node *shape = kl__is(guide, KL_OBJECT) ? kl__shape_of(kl__at(guide)) : NULL;
    bool follows = shape && shape->len == n, same, any_new = false;
    for (size_t i = 0; follows && i < n; i++)
        follows = shape->v[i] == (kl__h)keys[i];
    same = follows;
    for (size_t i = 0; same && i < n; i++)
        same = kl__at(guide)->v[i] == (kl__h)values[i];
    d->made_new = false;
    if (same || !n) {
        kl__entries_cut(&d->keys, key_base);
        kl__entries_cut(&d->values, base);
        return same ? guide : (kl__h)KL__H_EMPTY_OBJECT;
    }
    for (size_t i = 0; i < n; i++)
        any_new |= ((keys[i] | values[i]) & KL__NEW) != 0;
    kl__entry head;
    if (follows) {
        kl__entries_cut(&d->keys, key_base);
        head = kl__at(guide)->len;
    } else {
        head = kl__owned(kl__intern_list(KL__SHAPE, keys, n));
        d->keys.len = key_base;
    }
    d->made_new = any_new && d->alone;
    kl__h h = d->made_new ? kl__make_alone(KL_OBJECT, head, values, n)
                          : kl__made(kl__intern_object(head, values, n), guide);
    d->values.len = base;
    return h;
}

static int by_bytes(kl__h a, kl__h b)
{
    size_t an, bn;
    const char *as = kl__bytes(a, &an), *bs = kl__bytes(b, &bn);
    int c = memcmp(as, bs, an < bn ? an : bn);
    return c ? c : an < bn ? -1 : an > bn;
}

/* Moves the top pair to its place among n sorted ones; a repeated key replaces the earlier value. Returns the
 * number of pairs. */
static size_t put_in_order(kl__proto *d, size_t key_base, size_t base, size_t n)
{
    kl__entry *keys = d->keys.v + key_base, *values = d->values.v + base, key = keys[n], value = values[n];
    size_t low = 0, high = n;
    if (!n || by_bytes((kl__h)keys[n - 1], (kl__h)key) < 0) /* servers write keys in order */
        return n + 1;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (by_bytes((kl__h)keys[mid], (kl__h)key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (keys[low] == key || (kl__h)keys[low] == (kl__h)key) {
        kl__entry_drop(values[low]);
        kl__entry_drop(key);
        values[low] = value;
        d->keys.len--;
        d->values.len--;
        return n;
    }
    memmove(keys + low + 1, keys + low, (n - low) * sizeof *keys);
    memmove(values + low + 1, values + low, (n - low) * sizeof *values);
    keys[low] = key;
    values[low] = value;
    return n + 1;
}

/* Reads one entry of a map: pushes its key and value, or neither when it is cut. */
static bool map_entry(kl__proto *d, const kl__proto_slot *s, const kl__field *f, const char *at, level *guide,
    const kl__cut *cut, bool *kept)
{
    static const kl__field nothing = {.wire = KL__WIRE_BYTES, .s = ""};
    const char *key = "", *end = f->s + f->n;
    size_t key_n = 0;
    kl__field in, value = nothing;
    if (f->wire != KL__WIRE_BYTES)
        return kl__proto_fail(d, at, "a field of another wire type than its own");
    if (s->what == KL__PROTO_BOOL || s->what == KL__PROTO_INT)
        value.wire = KL__WIRE_VARINT;
    for (const char *p = f->s; p < end;) {
        const char *from = p;
        p = kl__field_next(p, end, &in);
        if (!p || (in.number == 1 && in.wire != KL__WIRE_BYTES))
            return kl__proto_fail(d, from, "a malformed entry of a map");
        if (in.number == 1) {
            key = in.s;
            key_n = in.n;
        } else if (in.number == 2) {
            value = in;
        }
    }
    const kl__cut *below = NULL;
    *kept = !cut || kl__cut_keeps(cut, key, key_n, &below);
    if (!*kept)
        return true;
    kl__h like = 0, name = 0;
    bool is_new = false;
    if (guide->cursor < guide->guide_n && kl__is_bytes_of(guide->shape->v[guide->cursor], key, key_n)) {
        name = guide->shape->v[guide->cursor];
        kl__entries_push(&d->keys, name);
    } else {
        if (!kl_utf8_valid(key, key_n))
            return kl__proto_fail(d, key, "a key that is not UTF-8");
        name = kl__intern_str_new(key, key_n, &is_new);
        kl__entries_push(&d->keys, kl__entry_of(name, 0, is_new));
    }
    like = guided(guide, name);
    kl__h h;
    if (!one(d, s, &value, at, like, guide->depth, below, &h))
        return false;
    kl__entries_push(&d->values, kl__entry_of(h, like, d->made_new));
    return true;
}

static void guide_by(level *l, kl__h guide)
{
    if (kl__is(guide, KL_OBJECT)) {
        l->guide = guide;
        l->shape = kl__shape_of(kl__at(guide));
        l->guide_n = l->shape->len;
    }
}

static const char *map(kl__proto *d, const kl__proto_slot *s, const kl__field *first, const char *at,
    const char *p, const char *end, kl__h guide, size_t depth, const kl__cut *cut, size_t slot)
{
    size_t key_base = d->keys.len, base = d->values.len, n = 0;
    level l = {.depth = depth + 1};
    kl__field f = *first;
    kl__h had = (kl__h)d->slots.v[slot];
    guide_by(&l, guide);
    if (depth + 1 > KL_VALUE_DEPTH_MAX) {
        kl__proto_fail(d, at, "nested deeper than 512 levels");
        return NULL;
    }
    if (kl__is(had, KL_OBJECT))
        for (; n < kl__shape_of(kl__at(had))->len; n++) {
            kl__entries_push(
                &d->keys, kl__owned(kl__handle(kl_value_ref(KL__VALUE(kl__shape_of(kl__at(had))->v[n])))));
            kl__entries_push(&d->values,
                kl__owned(kl__handle(kl_value_ref(KL__VALUE(kl__at(had)->v[n]))))
                    | (d->slots.v[slot] & KL__NEW));
        }
    for (bool more = true; more;) {
        bool kept = false;
        if (!map_entry(d, s, &f, at, &l, cut, &kept)) {
            inside(d, kl__proto_names[s->name], SIZE_MAX);
            return NULL;
        }
        if (kept)
            n = put_in_order(d, key_base, base, n);
        at = p;
        const char *after = again(p, end, first->number, &f);
        more = after != NULL;
        p = more ? after : p;
    }
    kl__h h = close_object(d, key_base, base, n, guide);
    set_slot(d, slot, kl__entry_of(h, guide, d->made_new));
    return p;
}

/* --- messages ----------------------------------------------------------------------------- */

/* Notes a field that the tables lack. A zero of a newer server means nothing, and is ignored. */
static void unknown_field(kl__proto *d, const kl__field *f)
{
    if (f->wire == KL__WIRE_BYTES ? f->n : f->num)
        d->outdated = true;
}

/* Reads the fields of m into the slots from `base` on; those of an inlined message are among its parent's. */
static bool fields(kl__proto *d, level *l, const kl__proto_msg *m, size_t base, const char *p, size_t n)
{
    const char *end = p + n;
    kl__field f;
    while (p < end) {
        const char *at = p;
        p = kl__field_next(p, end, &f);
        if (!p)
            return kl__proto_fail(d, at, "a malformed field, or one that ends beyond its message");
        unsigned place = f.number <= m->wires ? kl__proto_wire[m->wire + f.number - 1] : 0;
        if (!place) {
            unknown_field(d, &f);
            continue;
        }
        if (place >= KL__PROTO_INLINES) {
            const kl__proto_inline *in = &kl__proto_inlines[m->inlines + place - KL__PROTO_INLINES];
            if (f.wire != KL__WIRE_BYTES)
                return kl__proto_fail(d, at, "a field of another wire type than its own");
            if (!fields(d, l, &kl__proto_msgs[in->msg], base + in->base, f.s, f.n))
                return false;
            continue;
        }
        const kl__proto_slot *s = &kl__proto_slots[m->slots + place - 1];
        size_t slot = base + place - 1;
        const kl__cut *below = NULL;
        if (l->cut
            && !kl__cut_keeps(l->cut, kl__proto_names[s->name], strlen(kl__proto_names[s->name]), &below))
            continue;
        if (!(s->flags & (KL__PROTO_REPEATED | KL__PROTO_MAP | KL__PROTO_POINTER))
            && s->flags & KL__PROTO_OMIT && is_zero(s, &f)) {
            set_slot(d, slot, 0);
            continue;
        }
        kl__h like = guided(l, name_of(d, s->name)), h;
        if (s->flags & KL__PROTO_REPEATED) {
            p = repeated(d, s, &f, at, p, end, like, l->depth + 1, below, slot);
            if (!p)
                return false;
        } else if (s->flags & KL__PROTO_MAP) {
            p = map(d, s, &f, at, p, end, like, l->depth, below, slot);
            if (!p)
                return false;
        } else {
            if (!one(d, s, &f, at, like, l->depth, below, &h))
                return inside(d, kl__proto_names[s->name], SIZE_MAX);
            set_slot(d, slot, kl__entry_of(h, like, d->made_new));
        }
    }
    return true;
}

/* The value in JSON of a slot that got no field. */
static bool absent(kl__proto *d, level *l, const kl__proto_slot *s, const kl__cut *below, kl__entry *out)
{
    static const kl__field nothing = {.s = ""};
    kl__field f = nothing;
    kl__h h = KL__H_NULL, like = 0;
    d->made_new = false;
    if (s->what == KL__PROTO_CONST) {
        *out = name_of(d, s->msg);
        return true;
    }
    bool none = s->flags & (KL__PROTO_POINTER | KL__PROTO_REPEATED | KL__PROTO_MAP)
        || s->what == KL__PROTO_BYTES || s->what == KL__PROTO_STRINGS;
    if (!none) {
        f.wire = s->what == KL__PROTO_BOOL || s->what == KL__PROTO_INT ? KL__WIRE_VARINT : KL__WIRE_BYTES;
        like = guided(l, name_of(d, s->name));
        if (!one(d, s, &f, f.s, like, l->depth, below, &h))
            return false;
    }
    *out = kl__entry_of(h, like, d->made_new);
    return true;
}

static bool message(kl__proto *d, const kl__proto_msg *m, const char *s, size_t n, kl__h guide, size_t depth,
    const kl__cut *cut, const kl__front *front, kl__h *out)
{
    level l = {.m = m, .base = d->slots.len, .depth = depth, .cut = cut};
    guide_by(&l, guide);
    if (depth > KL_VALUE_DEPTH_MAX)
        return kl__proto_fail(d, s, "nested deeper than 512 levels");
    kl__entries_zeroes(&d->slots, m->n);
    if (!fields(d, &l, m, l.base, s, n))
        return false;
    for (size_t i = 0; i < m->n; i++) {
        const kl__proto_slot *slot = &kl__proto_slots[m->slots + i];
        const kl__cut *below = NULL;
        kl__entry e;
        if (d->slots.v[l.base + i] || slot->flags & KL__PROTO_OMIT
            || (cut
                && !kl__cut_keeps(
                    cut, kl__proto_names[slot->name], strlen(kl__proto_names[slot->name]), &below)))
            continue;
        if (!absent(d, &l, slot, below, &e))
            return inside(d, kl__proto_names[slot->name], SIZE_MAX);
        d->slots.v[l.base + i] = e;
    }
    size_t key_base = d->keys.len, base = d->values.len;
    for (size_t i = 0; front && i < front->n; i++) {
        kl__entries_push(&d->keys, kl__handle(front->key[i]));
        kl__entries_push(&d->values, kl__handle(front->value[i]));
    }
    for (size_t i = 0; i < m->n; i++)
        if (d->slots.v[l.base + i]) {
            kl__entries_push(&d->keys, name_of(d, kl__proto_slots[m->slots + i].name));
            kl__entries_push(&d->values, d->slots.v[l.base + i]);
        }
    d->slots.len = l.base;
    *out = close_object(d, key_base, base, d->values.len - base, guide);
    return true;
}

kl_status kl__proto_message(kl__proto *d, const kl__proto_msg *m, const char *p, size_t n,
    const kl_value *guide, const kl__front *front, const kl_value **out, kl_err *err)
{
    kl__h h;
    d->text = p;
    d->what = NULL;
    *d->path = '\0';
    d->recent = (kl__recent){0};
    if (!d->names)
        d->names = kl_zalloc_array(sizeof *d->names, kl__proto_count.names);
    if (!message(d, m, p, n, kl__handle(guide), 1, kl__projection_root(d->keep), front, &h)) {
        kl__entries_cut(&d->slots, 0);
        kl__entries_cut(&d->values, 0);
        kl__entries_cut(&d->keys, 0);
        kl_fail(err, KL_ESYNTAX, "the protobuf has %s at byte %zu%s%s%s%s", d->what,
            (size_t)(d->at - d->text), *d->path ? ", in " : "", d->path, d->story ? ": " : "",
            d->story ? d->story : "");
        kl_free(d->story);
        d->story = NULL;
        return KL_ESYNTAX;
    }
    *out = KL__VALUE(h);
    if (h == kl__handle(guide))
        kl_value_ref(*out);
    return KL_OK;
}

void kl__proto_fini(kl__proto *d)
{
    for (size_t i = 0; d->names && i < kl__proto_count.names; i++)
        kl_value_unref(KL__VALUE(d->names[i]));
    kl_free(d->names);
    for (size_t i = 0; d->memos && i < KL__MEMOS; i++) {
        kl_value_unref(KL__VALUE(d->memos[i].value));
        kl_free(d->memos[i].bytes);
    }
    kl_free(d->memos);
    kl_free(d->slots.v);
    kl_free(d->values.v);
    kl_free(d->keys.v);
    kl_free(d->story);
    kl_buf_fini(&d->scratch);
    kl__decoder_fini(&d->json);
}
