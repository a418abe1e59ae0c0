/* value.c - reading values, comparing them, and making new ones from old ones.
 *
 * Readers are NULL-safe and never fail: what is not there, or is of another type, reads as absent.
 * Everything that walks a whole tree keeps its own stack on the heap, since a built value may be deeper
 * than any C stack. */
#include "value/intern.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "base/mem.h"
#include "base/utf8.h"

/* --- types and scalars -------------------------------------------------------------------- */

kl_type kl_value_type(const kl_value *v)
{
    static const unsigned char constants[KL__H_NODES] = {
        [KL__H_FALSE] = KL_BOOL,
        [KL__H_TRUE] = KL_BOOL,
        [KL__H_EMPTY_ARRAY] = KL_ARRAY,
        [KL__H_EMPTY_OBJECT] = KL_OBJECT,
        [KL__H_EMPTY_STRING] = KL_STRING,
    };
    kl__h h = kl__handle(v);
    if (kl__is_node(h))
        return kl__node_type(kl__at(h));
    return kl__is_int(h) ? KL_INT : (kl_type)constants[h]; /* 0 is KL_NULL: absent, and null itself */
}

const char *kl_value_type_name(const kl_value *v)
{
    static const char *const names[] = {
        "null", "boolean", "integer", "integer", "number", "string", "array", "object"};
    return v ? names[kl_value_type(v)] : "absent";
}

bool kl_value_bool(const kl_value *v, bool dflt)
{
    return v == KL__TRUE ? true : v == KL__FALSE ? false : dflt;
}

/* The 8 bytes of a number that is a node. */
static uint64_t wide(const kl_value *v)
{
    uint64_t bits;
    memcpy(&bits, kl__at(kl__handle(v))->bytes, sizeof bits);
    return bits;
}

static double real(const kl_value *v)
{
    uint64_t bits = wide(v);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static int64_t int_of(const kl_value *v)
{
    kl__h h = kl__handle(v);
    return kl__is_int(h) ? kl__small(h) : (int64_t)wide(v);
}

bool kl_value_int(const kl_value *v, int64_t *out)
{
    kl_type t = kl_value_type(v);
    if (t == KL_INT) {
        *out = int_of(v);
        return true;
    }
    if (t != KL_DOUBLE)
        return false;
    double d = real(v);
    if (!(d >= -0x1p63 && d < 0x1p63) || d != trunc(d))
        return false;
    *out = (int64_t)d;
    return true;
}

uint64_t kl_value_uint(const kl_value *v) { return kl_value_type(v) == KL_UINT ? wide(v) : 0; }

double kl_value_double(const kl_value *v, double dflt)
{
    switch (kl_value_type(v)) {
    case KL_INT: return (double)int_of(v);
    case KL_UINT: return (double)kl_value_uint(v);
    case KL_DOUBLE: return real(v);
    default: return dflt;
    }
}

const char *kl_value_strn(const kl_value *v, size_t *n)
{
    if (kl_value_type(v) != KL_STRING)
        return NULL;
    return kl__str_bytes(v, n);
}

const char *kl_value_str(const kl_value *v)
{
    size_t n;
    return kl_value_strn(v, &n);
}

/* --- containers --------------------------------------------------------------------------- */

size_t kl_value_len(const kl_value *v)
{
    return kl__is_node(kl__handle(v)) ? kl__count(kl__at(kl__handle(v))) : 0; /* numbers have len 0 */
}

const kl_value *kl_value_item(const kl_value *v, size_t i)
{
    return kl__is(kl__handle(v), KL_ARRAY) && i < kl__at(kl__handle(v))->len ? kl__item(v, i) : NULL;
}

const kl_value *kl_value_member(const kl_value *v, size_t i, const char **key, size_t *keylen)
{
    bool there = kl__is(kl__handle(v), KL_OBJECT) && i < kl__shape_of(kl__at(kl__handle(v)))->len;
    size_t n = 0;
    const char *k = there ? kl__str_bytes(kl__key(v, i), &n) : "";
    if (key)
        *key = k;
    if (keylen)
        *keylen = n;
    return there ? kl__val(v, i) : NULL;
}

/* The place of a key, or SIZE_MAX. */
static size_t place_of(const kl_value *v, const char *key, size_t n)
{
    return kl__is(kl__handle(v), KL_OBJECT) ? kl__shape_find(kl__shape_of(kl__at(kl__handle(v))), key, n)
                                            : SIZE_MAX;
}

const kl_value *kl_value_getn(const kl_value *v, const char *key, size_t n)
{
    size_t i = place_of(v, key, n);
    return i == SIZE_MAX ? NULL : kl__val(v, i);
}

const kl_value *kl_value_get(const kl_value *v, const char *key)
{
    return kl_value_getn(v, key, strlen(key));
}

static const kl_value *at_va(const kl_value *v, va_list ap)
{
    for (const char *key; v && (key = va_arg(ap, const char *));)
        v = kl_value_get(v, key);
    return v;
}

bool kl_value_has_str(const kl_value *v, const char *text)
{
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *one = kl_value_str(kl_value_item(v, i));
        if (one && !strcmp(one, text))
            return true;
    }
    return false;
}

const kl_value *kl_value_at(const kl_value *v, ...)
{
    va_list ap;
    va_start(ap, v);
    v = at_va(v, ap);
    va_end(ap);
    return v;
}

const char *kl_value_str_at(const kl_value *v, ...)
{
    va_list ap;
    va_start(ap, v);
    v = at_va(v, ap);
    va_end(ap);
    return kl_value_str(v);
}

int64_t kl_value_int_at(const kl_value *v, int64_t dflt, ...)
{
    va_list ap;
    va_start(ap, dflt);
    v = at_va(v, ap);
    va_end(ap);
    int64_t x;
    return kl_value_int(v, &x) ? x : dflt;
}

/* --- whole trees -------------------------------------------------------------------------- */

/* Pairs (or single values) still to visit. They are borrowed, so this is not a kl__stack. */
typedef struct todo {
    const kl_value **v;
    size_t len, cap;
    const kl_value *small[64];
} todo;

static void todo_push(todo *t, const kl_value *v)
{
    if (t->len == t->cap) {
        size_t cap = t->cap * 2;
        const kl_value **bigger = kl_alloc(cap * sizeof *bigger);
        memcpy(bigger, t->v, t->len * sizeof *bigger);
        if (t->v != t->small)
            kl_free(t->v);
        t->v = bigger;
        t->cap = cap;
    }
    t->v[t->len++] = v;
}

static void todo_init(todo *t)
{
    t->v = t->small;
    t->len = 0;
    t->cap = sizeof t->small / sizeof *t->small;
}

static void todo_fini(todo *t)
{
    if (t->v != t->small)
        kl_free(t->v);
}

/* Exact across representations: 1 and 1.0 are equal, 2^63 and 2^63-1 as doubles are not. */
static bool number_equal(const kl_value *a, kl_type ta, const kl_value *b, kl_type tb)
{
    int64_t ia, ib;
    if (ta == KL_DOUBLE && tb == KL_DOUBLE)
        return kl_value_double(a, 0) == kl_value_double(b, 0);
    if (kl_value_int(a, &ia) && kl_value_int(b, &ib))
        return ia == ib;
    if (ta == KL_UINT && tb == KL_UINT)
        return kl_value_uint(a) == kl_value_uint(b);
    if (tb == KL_UINT)
        return number_equal(b, tb, a, ta);
    if (ta == KL_UINT && tb == KL_DOUBLE) {
        double d = kl_value_double(b, 0);
        return d >= 0x1p63 && d < 0x1p64 && d == trunc(d) && (uint64_t)d == kl_value_uint(a);
    }
    return false;
}

static bool is_number(kl_type t) { return t == KL_INT || t == KL_UINT || t == KL_DOUBLE; }

bool kl_value_equal(const kl_value *a, const kl_value *b)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    todo t;
    todo_init(&t);
    todo_push(&t, a);
    todo_push(&t, b);
    bool equal = true;
    while (equal && t.len) {
        b = t.v[--t.len];
        a = t.v[--t.len];
        if (a == b)
            continue;
        kl_type ta = kl_value_type(a), tb = kl_value_type(b);
        if (is_number(ta) && is_number(tb)) {
            equal = number_equal(a, ta, b, tb);
        } else if (ta != tb || (ta != KL_ARRAY && ta != KL_OBJECT) || kl_value_len(a) != kl_value_len(b)) {
            equal = false; /* equal strings are one node, so these differ */
        } else {
            bool same_keys = ta == KL_OBJECT && kl__at(kl__handle(a))->len == kl__at(kl__handle(b))->len;
            for (size_t i = 0, n = kl_value_len(a); equal && i < n; i++) {
                const kl_value *x = ta == KL_ARRAY ? kl__item(a, i) : kl__val(a, i), *y;
                if (ta == KL_ARRAY) {
                    y = kl__item(b, i);
                } else if (same_keys) {
                    y = kl__val(b, i);
                } else {
                    size_t at = kl__shape_find_key(
                        kl__shape_of(kl__at(kl__handle(b))), kl__handle(kl__key(a, i)));
                    y = at == SIZE_MAX ? NULL : kl__val(b, at);
                }
                if (!y) {
                    equal = false;
                } else if (x != y) {
                    todo_push(&t, x);
                    todo_push(&t, y);
                }
            }
        }
    }
    todo_fini(&t);
    return equal;
}

size_t kl_value_bytes(const kl_value *v)
{
    size_t sum = 0;
    todo t;
    todo_init(&t);
    todo_push(&t, v);
    while (t.len) {
        v = t.v[--t.len];
        if (!kl__is_node(kl__handle(v)))
            continue;
        kl__node *n = kl__at(kl__handle(v));
        kl_type type = kl__node_type(n);
        sum += kl__node_size(n);
        size_t count = type == KL_ARRAY || type == KL_OBJECT ? kl__count(n) : 0;
        for (size_t i = 0; i < count; i++)
            if (kl__is_node(n->v[i]))
                todo_push(&t, KL__VALUE(n->v[i]));
    }
    todo_fini(&t);
    return sum;
}

/* Recursion follows the value, room->depth at most. */
kl_fit kl_value_fit(const kl_value *v, kl_room *room)
{
    kl__h h = kl__handle(v);
    const kl__node *n = v && kl__is_node(h) ? kl__at(h) : NULL;
    kl_type type = kl_value_type(v);
    if (!room->nodes)
        return KL_FIT_MANY;
    room->nodes--;
    if (type == KL_STRING) {
        size_t bytes = kl_value_len(v);
        if (bytes > room->bytes)
            return KL_FIT_LONG;
        room->bytes -= bytes;
    }
    if (type != KL_ARRAY && type != KL_OBJECT)
        return KL_FIT;
    if (!room->depth)
        return KL_FIT_DEEP;
    kl_fit fit = KL_FIT;
    room->depth--;
    for (size_t i = 0, count = n ? kl__count(n) : 0; !fit && i < count; i++) {
        if (type == KL_OBJECT)
            fit = kl_value_fit(kl__key(v, i), room);
        if (!fit)
            fit = kl_value_fit(type == KL_OBJECT ? kl__val(v, i) : kl__item(v, i), room);
    }
    room->depth++;
    return fit;
}

/* The nodes that a walk has met lately: shapes of items, for example, soon occur again. */
#define MET 256

static bool met(kl__h *seen, kl__h h)
{
    kl__h *at = &seen[(h * 0x9e3779b1u) >> 24];
    bool again = *at == h;
    *at = h;
    return again;
}

size_t kl_value_held(const kl_value *v, size_t max)
{
    kl__h seen[MET] = {0};
    size_t sum = 0;
    todo t;
    todo_init(&t);
    todo_push(&t, v);
    while (t.len && sum <= max) {
        kl__h h = kl__handle(t.v[--t.len]);
        if (!kl__is_node(h) || met(seen, h))
            continue;
        const kl__node *n = kl__at(h);
        kl_type type = kl__node_type(n);
        size_t count = type == KL_OBJECT ? kl__count(n) : type == KL_ARRAY || type == KL__SHAPE ? n->len : 0;
        sum += kl__node_size(n);
        if (type == KL_OBJECT)
            todo_push(&t, KL__VALUE(n->len));
        for (size_t i = 0; i < count; i++)
            if (kl__is_node(n->v[i]))
                todo_push(&t, KL__VALUE(n->v[i]));
    }
    todo_fini(&t);
    return sum;
}

/* --- making ------------------------------------------------------------------------------- */

const kl_value *kl_value_null(void) { return KL__NULL; }

const kl_value *kl_value_of_bool(bool b) { return b ? KL__TRUE : KL__FALSE; }

const kl_value *kl_value_of_int(int64_t i) { return KL__VALUE(kl__intern_int(i)); }

const kl_value *kl_value_of_uint(uint64_t u)
{
    return KL__VALUE(u <= INT64_MAX ? kl__intern_int((int64_t)u) : kl__intern_wide(KL_UINT, u));
}

const kl_value *kl_value_of_double(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return KL__VALUE(kl__intern_wide(KL_DOUBLE, bits));
}

const kl_value *kl_value_of_str(const char *s) { return kl_value_of_strn(s, strlen(s)); }

bool kl_utf8_valid(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + n;
    while (p < end) {
        uint64_t eight;
        /* ASCII, as most text is */
        if (end - p >= 8 && (memcpy(&eight, p, 8), !(eight & 0x8080808080808080u))) {
            p += 8;
            continue;
        }
        size_t m = kl_utf8_char((const char *)p, (size_t)(end - p));
        if (!m)
            return false;
        p += m;
    }
    return true;
}

const kl_value *kl_value_of_strn(const char *s, size_t n)
{
    if (kl_utf8_valid(s, n))
        return KL__VALUE(kl__intern_str(s, n));
    kl_buf fixed = KL_BUF_INIT;
    for (size_t i = 0, m; i < n; i += m ? m : 1) {
        m = kl_utf8_char(s + i, n - i);
        kl_buf_add(&fixed, m ? s + i : "\xef\xbf\xbd", m ? m : 3);
    }
    const kl_value *v = KL__VALUE(kl__intern_str(kl_buf_str(&fixed), fixed.len));
    kl_buf_fini(&fixed);
    return v;
}

/* --- functional updates ------------------------------------------------------------------- */

#define WITH_SMALL 32

static const kl_value *with_n(const kl_value *v, const char *key, size_t keylen, const kl_value *x)
{
    if (!kl_utf8_valid(key, keylen)) { /* search for the key as it would be written: valid UTF-8 */
        const kl_value *k = kl_value_of_strn(key, keylen);
        const char *fixed = kl__str_bytes(k, &keylen);
        const kl_value *out = with_n(v, fixed, keylen, x);
        kl_value_unref(k);
        return out;
    }
    size_t len = kl_value_type(v) == KL_OBJECT ? kl_value_len(v) : 0;
    size_t at = place_of(v, key, keylen), n = 0;
    if (at == SIZE_MAX && !x)
        return len ? kl_value_ref(v) : KL__EMPTY_OBJECT;
    if (at != SIZE_MAX && kl__val(v, at) == x)
        return kl_value_ref(v);
    kl__entry small[2 * WITH_SMALL], *e = len < WITH_SMALL ? small : kl_alloc((2 * len + 2) * sizeof *e),
                                     *keys = e + len + 1;
    const kl__node *shape = len ? kl__shape_of(kl__at(kl__handle(v))) : NULL;
    kl__entry same_shape = len ? kl__at(kl__handle(v))->len : 0;
    for (size_t i = 0; i < len; i++) {
        if (i == at && !x)
            continue;
        keys[n] = shape->v[i];
        e[n++] = i == at ? kl__handle(x) : kl__at(kl__handle(v))->v[i];
    }
    if (at == SIZE_MAX) {
        keys[n] = kl__owned(kl__intern_str(key, keylen));
        e[n++] = kl__handle(x);
    }
    kl__h h = KL__H_EMPTY_OBJECT;
    if (n)
        h = kl__intern_object(
            n == len && at != SIZE_MAX ? same_shape : kl__owned(kl__intern_list(KL__SHAPE, keys, n)), e, n);
    if (e != small)
        kl_free(e);
    return KL__VALUE(h);
}

const kl_value *kl_value_like(const kl_value *like, const kl_value *const *values)
{
    const kl__node *node = kl__at(kl__handle(like));
    size_t n = kl__count(node);
    kl__entry small[8] = {0}, *e = n <= sizeof small / sizeof *small ? small : kl_new_array(kl__entry, n);
    for (size_t i = 0; i < n; i++)
        e[i] = kl__owned(kl__handle(values[i]));
    kl__h h = kl__make_alone(KL_OBJECT, node->len, e, n);
    if (e != small)
        kl_free(e);
    return KL__VALUE(h);
}

const kl_value *kl_value_with(const kl_value *v, const char *key, const kl_value *x)
{
    return with_n(v, key, strlen(key), x);
}

const kl_value *kl_value_with_at(const kl_value *v, const kl_value *x, ...)
{
    va_list ap;
    size_t depth = 0;
    va_start(ap, x);
    while (va_arg(ap, const char *))
        depth++;
    va_end(ap);
    if (!depth)
        return kl_value_ref(x);
    const char **keys = kl_new_array(const char *, depth);
    const kl_value **on_way = kl_new_array(const kl_value *, depth); /* the container of each key */
    va_start(ap, x);
    for (size_t i = 0; i < depth; i++) {
        keys[i] = va_arg(ap, const char *);
        on_way[i] = i ? kl_value_get(on_way[i - 1], keys[i - 1]) : v;
    }
    va_end(ap);
    const kl_value *out;
    /* nothing to remove, nothing to create */
    if (!x && !kl_value_get(on_way[depth - 1], keys[depth - 1])) {
        out = v ? kl_value_ref(v) : KL__EMPTY_OBJECT;
    } else {
        out = kl_value_ref(x);
        for (size_t i = depth; i-- > 0;) {
            const kl_value *up = kl_value_with(on_way[i], keys[i], out);
            kl_value_unref(out);
            out = up;
        }
    }
    kl_free(keys);
    kl_free(on_way);
    return out;
}
