/* arith.c - operators, sizes, places in lists and maps, optionals. */
#include <math.h>
#include <string.h>

#include "cel/cel_impl.h"

#define NS 1000000000

static kl__cval overflow(kl__cev *e, const char *what) { return kl__cval_err(e, "%s overflow", what); }

static uint64_t tenth(uint64_t size) { return (size + 9) / 10; }

/* ---------------------------------------------------------------- sums */

static kl__cval time_plus(kl__cev *e, kl__cval t, int64_t ns, bool minus)
{
    int64_t sec = ns / NS, rest = ns % NS;
    sec = minus ? -sec : sec;
    rest = (minus ? -rest : rest) + t.t.ns;
    if (rest < 0) {
        rest += NS;
        sec--;
    } else if (rest >= NS) {
        rest -= NS;
        sec++;
    }
    if (__builtin_add_overflow(t.t.sec, sec, &sec) || sec < KL__CEL_SECONDS_MIN || sec > KL__CEL_SECONDS_MAX)
        return overflow(e, "timestamp");
    return (kl__cval){.kind = KL_C_TIME, .t = {sec, (int32_t)rest}};
}

static bool same_keys(kl__cev *e, const kl__ctype *t, kl__cval a, kl__cval b)
{
    for (const char *const *key = t->keys; key && *key; key++) {
        kl__cval k = {.kind = KL_C_STRING, .s = {*key, strlen(*key)}}, x = KL__CNULL, y = KL__CNULL;
        if ((a.kind != KL_C_MAP && a.kind != KL_C_OBJECT) || a.kind != b.kind)
            return false;
        kl__cmap_get(e, a.map, k, &x);
        kl__cmap_get(e, b.map, k, &y);
        if (!kl__cval_equal(e, x, y))
            return false;
    }
    return t->keys != NULL;
}

/* Sets and keyed lists (listType map) are merged; other lists are concatenated. */
static kl__cval add_lists(kl__cev *e, const kl__clist *a, const kl__clist *b)
{
    const kl__ctype *t = a->type;
    size_t na = kl__clist_len(a), nb = kl__clist_len(b);
    kl__clist *l = kl__clist_new(e, na + nb);
    for (size_t i = 0; i < na && kl__cev_works(e); i++)
        kl__clist_add(e, l, kl__clist_at(e, a, i));
    for (size_t i = 0; i < nb && kl__cev_works(e); i++) {
        kl__cval v = kl__clist_at(e, b, i);
        size_t at = na;
        for (size_t k = 0; t && (t->set || t->keys) && k < na && at == na && kl__cev_works(e); k++)
            if (t->set ? kl__cval_equal(e, l->v[k], v) : same_keys(e, t, l->v[k], v))
                at = k;
        if (at == na)
            kl__clist_add(e, l, v);
        else
            ((kl__cval *)l->v)[at] = v;
    }
    if (t && (t->set || t->keys))
        l->type = t;
    return KL__CLIST(l);
}

static kl__cval plus(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval r = a[0];
    switch (a[0].kind) {
    case KL_C_INT: return __builtin_add_overflow(a[0].i, a[1].i, &r.i) ? overflow(e, "integer") : r;
    case KL_C_UINT: return __builtin_add_overflow(a[0].u, a[1].u, &r.u) ? overflow(e, "unsigned integer") : r;
    case KL_C_DOUBLE: return KL__CDOUBLE(a[0].d + a[1].d);
    case KL_C_DURATION:
        if (a[1].kind == KL_C_TIME)
            return time_plus(e, a[1], a[0].i, false);
        return __builtin_add_overflow(a[0].i, a[1].i, &r.i) ? overflow(e, "duration") : r;
    case KL_C_TIME: return time_plus(e, a[0], a[1].i, false);
    case KL_C_LIST: return add_lists(e, a[0].list, a[1].list);
    default: break;
    }
    kl_buf b = KL_BUF_INIT;
    kl_buf_add(&b, a[0].s.p, a[0].s.n);
    kl_buf_add(&b, a[1].s.p, a[1].s.n);
    r = kl__cval_take(e, &b);
    r.kind = a[0].kind;
    return r;
}

static kl__cval minus(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval r = a[0];
    switch (a[0].kind) {
    case KL_C_INT: return __builtin_sub_overflow(a[0].i, a[1].i, &r.i) ? overflow(e, "integer") : r;
    case KL_C_UINT: return __builtin_sub_overflow(a[0].u, a[1].u, &r.u) ? overflow(e, "unsigned integer") : r;
    case KL_C_DOUBLE: return KL__CDOUBLE(a[0].d - a[1].d);
    case KL_C_DURATION: return __builtin_sub_overflow(a[0].i, a[1].i, &r.i) ? overflow(e, "duration") : r;
    default: break;
    }
    if (a[1].kind == KL_C_DURATION)
        return time_plus(e, a[0], a[1].i, true);
    r = (kl__cval){.kind = KL_C_DURATION};
    if (__builtin_mul_overflow(a[0].t.sec - a[1].t.sec, (int64_t)NS, &r.i)
        || __builtin_add_overflow(r.i, (int64_t)a[0].t.ns - a[1].t.ns, &r.i))
        return overflow(e, "integer");
    return r;
}

static kl__cval times(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval r = a[0];
    if (a[0].kind == KL_C_INT)
        return __builtin_mul_overflow(a[0].i, a[1].i, &r.i) ? overflow(e, "integer") : r;
    if (a[0].kind == KL_C_UINT)
        return __builtin_mul_overflow(a[0].u, a[1].u, &r.u) ? overflow(e, "unsigned integer") : r;
    return KL__CDOUBLE(a[0].d * a[1].d);
}

static kl__cval divided(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    if (a[0].kind == KL_C_DOUBLE)
        return KL__CDOUBLE(a[0].d / a[1].d);
    if (a[1].u == 0)
        return kl__cval_err(e, "division by zero");
    if (a[0].kind == KL_C_UINT)
        return (kl__cval){.kind = KL_C_UINT, .u = a[0].u / a[1].u};
    return a[0].i == INT64_MIN && a[1].i == -1 ? overflow(e, "integer") : KL__CINT(a[0].i / a[1].i);
}

static kl__cval modulo(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    if (a[1].u == 0)
        return kl__cval_err(e, "modulus by zero");
    if (a[0].kind == KL_C_UINT)
        return (kl__cval){.kind = KL_C_UINT, .u = a[0].u % a[1].u};
    return a[0].i == INT64_MIN && a[1].i == -1 ? overflow(e, "integer") : KL__CINT(a[0].i % a[1].i);
}

static kl__cval negated(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    if (a[0].kind == KL_C_DOUBLE)
        return KL__CDOUBLE(-a[0].d);
    return a[0].i == INT64_MIN ? overflow(e, "integer") : KL__CINT(-a[0].i);
}

static kl__cval not(kl__cev * e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(!a[0].b);
}

/* ---------------------------------------------------------------- comparisons */

static kl__cval equal(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return KL__CBOOL(kl__cval_equal(e, a[0], a[1]));
}

static kl__cval unequal(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return KL__CBOOL(!kl__cval_equal(e, a[0], a[1]));
}

static kl__cval ordered(kl__cev *e, const kl__cval *a, bool less, bool same, bool more)
{
    int c = kl__cval_compare(a[0], a[1]);
    if (c == 3)
        return kl__cval_err(e, "NaN values cannot be ordered");
    if (c == 2)
        return kl__cval_err(e, "no such overload");
    return KL__CBOOL(c < 0 ? less : c ? more : same);
}

#define ORDERED(name, less, same, more)                                                                      \
    static kl__cval name(kl__cev *e, const kl__cval *a, size_t n)                                            \
    {                                                                                                        \
        (void)n;                                                                                             \
        return ordered(e, a, less, same, more);                                                              \
    }
ORDERED(below, true, false, false)
ORDERED(at_most, true, true, false)
ORDERED(above, false, false, true)
ORDERED(at_least, false, true, true)

static uint64_t cost_smaller(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    if (a[0].kind >= KL_C_QUANTITY)
        return 1;
    uint64_t x = kl__cval_size(a[0]), y = kl__cval_size(a[1]);
    return tenth(x < y ? x : y);
}

static uint64_t cost_both(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(kl__cval_size(a[0]) + kl__cval_size(a[1]));
}

/* ---------------------------------------------------------------- lists and maps */

static kl__cval within(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval v;
    if (a[1].kind != KL_C_LIST)
        return KL__CBOOL(kl__cmap_get(e, a[1].map, a[0], &v));
    for (size_t i = 0; i < kl__clist_len(a[1].list) && kl__cev_works(e); i++)
        if (kl__cval_equal(e, kl__clist_at(e, a[1].list, i), a[0]))
            return KL__CBOOL(true);
    return KL__CBOOL(false);
}

static uint64_t cost_list(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return a[1].kind == KL_C_LIST ? kl__cval_size(a[1]) : 1;
}

/* A whole number of any kind. */
static bool place(kl__cval v, int64_t *out)
{
    if (v.kind == KL_C_INT)
        *out = v.i;
    else if (v.kind == KL_C_UINT && v.u <= INT64_MAX)
        *out = (int64_t)v.u;
    else if (v.kind == KL_C_DOUBLE && v.d == floor(v.d) && fabs(v.d) < 1e15)
        *out = (int64_t)v.d;
    else
        return false;
    return true;
}

/* Gets the value at a key; false: there is none, and *out is the error. */
static bool look(kl__cev *e, kl__cval from, kl__cval key, kl__cval *out)
{
    kl_buf b = KL_BUF_INIT;
    bool there = false;
    int64_t i;
    if (from.kind == KL_C_LIST) {
        if (!place(key, &i)) {
            bool number = key.kind == KL_C_DOUBLE || key.kind == KL_C_UINT;
            kl__cval_show(e, key, &b);
            *out = number ? kl__cval_err(e, "unsupported index value %s in list", kl_buf_str(&b))
                          : kl__cval_err(e, "unsupported index type '%s' in list", kl__cval_type(key)->name);
            kl_buf_fini(&b);
            return false;
        }
        there = i >= 0 && (uint64_t)i < kl__clist_len(from.list);
        *out = there ? kl__clist_at(e, from.list, (size_t)i)
                     : kl__cval_err(e, "index out of bounds: %lld", (long long)i);
        return there;
    }
    if (from.map->lazy || !(there = kl__cmap_get(e, from.map, key, out))) {
        kl__cval_show(e, key, &b);
        *out = kl__cval_err(e, "no such key: %s", kl_buf_str(&b));
        kl_buf_fini(&b);
    }
    return there;
}

static kl__cval optional_of(kl__cev *e, kl__cval v)
{
    kl__cval *kept = KL__CNEW(e->a, kl__cval);
    *kept = v;
    return (kl__cval){.kind = KL_C_OPTIONAL, .opt = kept};
}

static kl__cval indexed(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval v, from = a[0];
    if (from.kind != KL_C_OPTIONAL) {
        look(e, from, a[1], &v);
        return v;
    }
    if (!from.opt)
        return from;
    from = *from.opt;
    if (from.kind != KL_C_LIST && from.kind != KL_C_MAP && from.kind != KL_C_OBJECT)
        return kl__cval_err(e, "no such overload");
    return look(e, from, a[1], &v) ? optional_of(e, v) : (kl__cval){.kind = KL_C_OPTIONAL};
}

static kl__cval maybe_indexed(kl__cev *e, const kl__cval *a, size_t n)
{
    kl__cval v, wrapped[2] = {a[0], a[1]};
    if (a[0].kind == KL_C_OPTIONAL)
        return indexed(e, a, n);
    wrapped[0] = optional_of(e, a[0]);
    v = indexed(e, wrapped, n);
    return v;
}

static kl__cval size(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CINT((int64_t)kl__cval_size(a[0]));
}

static kl__cval type(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return (kl__cval){.kind = KL_C_TYPE, .type = kl__cval_type(a[0])};
}

static kl__cval same(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return a[0];
}

/* ---------------------------------------------------------------- optionals */

static bool zero(kl__cval v)
{
    switch (v.kind) {
    case KL_C_NULL: return true;
    case KL_C_BOOL: return !v.b;
    case KL_C_INT:
    case KL_C_UINT:
    case KL_C_DURATION: return v.i == 0;
    case KL_C_DOUBLE: return v.d == 0;
    case KL_C_STRING:
    case KL_C_BYTES: return v.s.n == 0;
    case KL_C_LIST: return kl__clist_len(v.list) == 0;
    case KL_C_MAP:
    case KL_C_OBJECT: return kl__cmap_len(v.map) == 0;
    case KL_C_OPTIONAL: return !v.opt;
    default: return false;
    }
}

static kl__cval of(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return optional_of(e, a[0]);
}

static kl__cval of_non_zero(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return zero(a[0]) ? (kl__cval){.kind = KL_C_OPTIONAL} : optional_of(e, a[0]);
}

static kl__cval none(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)a;
    (void)n;
    return (kl__cval){.kind = KL_C_OPTIONAL};
}

static kl__cval has_value(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(a[0].opt != NULL);
}

static kl__cval value(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return a[0].opt ? *a[0].opt : kl__cval_err(e, "optional.none() dereference");
}

static kl__cval or (kl__cev * e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return a[0].opt ? a[0] : a[1];
}

static kl__cval or_value(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return a[0].opt ? *a[0].opt : a[1];
}

static uint64_t cost_nothing(const kl__cval *a, size_t n, kl__cval result)
{
    (void)a;
    (void)n;
    (void)result;
    return 0;
}

#define COMPARED(name, f)                                                                                    \
    {name, "bb>b", f, NULL}, {name, "ii>b", f, NULL}, {name, "iu>b", f, NULL}, {name, "id>b", f, NULL},      \
        {name, "uu>b", f, NULL}, {name, "ui>b", f, NULL}, {name, "ud>b", f, NULL}, {name, "dd>b", f, NULL},  \
        {name, "di>b", f, NULL}, {name, "du>b", f, NULL}, {name, "ss>b", f, cost_smaller},                   \
        {name, "yy>b", f, cost_smaller}, {name, "tt>b", f, NULL},                                            \
    {                                                                                                        \
        name, "DD>b", f, NULL                                                                                \
    }

const kl__cfunc kl__cel_core[] = {
    {"!_", "b>b", not, NULL},
    {"-_", "i>i", negated, NULL},
    {"-_", "d>d", negated, NULL},
    {"_+_", "ii>i", plus, NULL},
    {"_+_", "uu>u", plus, NULL},
    {"_+_", "dd>d", plus, NULL},
    {"_+_", "ss>s", plus, cost_both},
    {"_+_", "yy>y", plus, cost_both},
    {"_+_", "LALA>LA", plus, NULL},
    {"_+_", "DD>D", plus, NULL},
    {"_+_", "tD>t", plus, NULL},
    {"_+_", "Dt>t", plus, NULL},
    {"_-_", "ii>i", minus, NULL},
    {"_-_", "uu>u", minus, NULL},
    {"_-_", "dd>d", minus, NULL},
    {"_-_", "DD>D", minus, NULL},
    {"_-_", "tt>D", minus, NULL},
    {"_-_", "tD>t", minus, NULL},
    {"_*_", "ii>i", times, NULL},
    {"_*_", "uu>u", times, NULL},
    {"_*_", "dd>d", times, NULL},
    {"_/_", "ii>i", divided, NULL},
    {"_/_", "uu>u", divided, NULL},
    {"_/_", "dd>d", divided, NULL},
    {"_%_", "ii>i", modulo, NULL},
    {"_%_", "uu>u", modulo, NULL},
    {"_==_", "AA>b", equal, cost_smaller},
    {"_!=_", "AA>b", unequal, cost_smaller},
    COMPARED("_<_", below),
    COMPARED("_<=_", at_most),
    COMPARED("_>_", above),
    COMPARED("_>=_", at_least),
    {"@in", "ALA>b", within, cost_list},
    {"@in", "AMAB>b", within, NULL},
    {"_[_]", "LAi>A", indexed, NULL},
    {"_[_]", "MABA>B", indexed, NULL},
    {"_[_]", "OLAi>OA", indexed, NULL},
    {"_[_]", "OMABA>OB", indexed, NULL},
    {"_[?_]", "LAi>OA", maybe_indexed, NULL},
    {"_[?_]", "MABA>OB", maybe_indexed, NULL},
    {"_[?_]", "OLAi>OA", maybe_indexed, NULL},
    {"_[?_]", "OMABA>OB", maybe_indexed, NULL},
    {"size", "s>i", size, NULL},
    {"size", "y>i", size, NULL},
    {"size", "LA>i", size, NULL},
    {"size", "MAB>i", size, NULL},
    {"size", ".s>i", size, NULL},
    {"size", ".y>i", size, NULL},
    {"size", ".LA>i", size, NULL},
    {"size", ".MAB>i", size, NULL},
    {"type", "A>TA", type, NULL},
    {"dyn", "A>*", same, NULL},
    {"optional.of", "A>OA", of, NULL},
    {"optional.ofNonZeroValue", "A>OA", of_non_zero, NULL},
    {"optional.none", ">OA", none, NULL},
    {"hasValue", ".OA>b", has_value, NULL},
    {"value", ".OA>A", value, NULL},
    {"or", ".OAOA>OA", or, cost_nothing},
    {"orValue", ".OAA>A", or_value, cost_nothing},
    {NULL},
};
