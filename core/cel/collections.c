/* collections.c - Kubernetes' functions of lists, and sets. */
#include <string.h>

#include "cel/cel_impl.h"

static uint64_t cost_length(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    uint64_t cost = 0;
    const kl__clist *l = a[0].list;
    for (size_t i = 0; i < kl__clist_len(l); i++) {
        kl_type type = kl_value_type(l->json ? kl_value_item(l->json, i) : NULL);
        bool text = l->json ? type == KL_STRING : l->v[i].kind == KL_C_STRING || l->v[i].kind == KL_C_BYTES;
        size_t size = !text ? 0 : l->json ? kl_value_len(kl_value_item(l->json, i)) : l->v[i].s.n;
        cost += text ? size / 10 : 1;
    }
    return cost;
}

static kl__cval is_sorted(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    size_t len = kl__clist_len(a[0].list);
    for (size_t i = 1; i < len; i++) {
        int c = kl__cval_compare(kl__clist_at(e, a[0].list, i - 1), kl__clist_at(e, a[0].list, i));
        if (c == 2)
            return kl__cval_err(e, "no such overload");
        if (c == 1)
            return KL__CBOOL(false);
    }
    return KL__CBOOL(true);
}

static kl__cval sum(kl__cev *e, const kl__cval *a, kl__ckind kind)
{
    kl__cval s = {.kind = kind};
    for (size_t i = 0; i < kl__clist_len(a[0].list); i++) {
        kl__cval v = kl__clist_at(e, a[0].list, i);
        if (!i)
            s.kind = v.kind;
        bool over = false;
        if (v.kind != s.kind)
            return kl__cval_err(e, "no such overload");
        if (v.kind == KL_C_DOUBLE)
            s.d += v.d;
        else if (v.kind == KL_C_UINT)
            over = __builtin_add_overflow(s.u, v.u, &s.u);
        else if (v.kind == KL_C_INT || v.kind == KL_C_DURATION)
            over = __builtin_add_overflow(s.i, v.i, &s.i);
        else
            return kl__cval_err(e, "no such overload");
        if (over)
            return kl__cval_err(e, "%s overflow",
                v.kind == KL_C_INT        ? "integer"
                    : v.kind == KL_C_UINT ? "unsigned integer"
                                          : "duration");
    }
    return s;
}

#define SUM(name, kind)                                                                                      \
    static kl__cval name(kl__cev *e, const kl__cval *a, size_t n)                                            \
    {                                                                                                        \
        (void)n;                                                                                             \
        return sum(e, a, kind);                                                                              \
    }
SUM(sum_int, KL_C_INT)
SUM(sum_uint, KL_C_UINT)
SUM(sum_double, KL_C_DOUBLE)
SUM(sum_duration, KL_C_DURATION)

static kl__cval extreme(kl__cev *e, const kl__cval *a, int wanted, const char *name)
{
    size_t n = kl__clist_len(a[0].list);
    if (!n)
        return kl__cval_err(e, "%s called on empty list", name);
    kl__cval best = kl__clist_at(e, a[0].list, 0);
    for (size_t i = 1; i < n; i++) {
        kl__cval v = kl__clist_at(e, a[0].list, i);
        int c = kl__cval_compare(v, best);
        if (c == 2)
            return kl__cval_err(e, "no such overload");
        if (c == wanted)
            best = v;
    }
    return best;
}

static kl__cval min(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return extreme(e, a, -1, "min");
}

static kl__cval max(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return extreme(e, a, 1, "max");
}

static kl__cval index_of(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    for (size_t i = 0; i < kl__clist_len(a[0].list) && kl__cev_works(e); i++)
        if (kl__cval_equal(e, kl__clist_at(e, a[0].list, i), a[1]))
            return KL__CINT((int64_t)i);
    return KL__CINT(-1);
}

static kl__cval last_index_of(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    for (size_t i = kl__clist_len(a[0].list); i-- > 0 && kl__cev_works(e);)
        if (kl__cval_equal(e, kl__clist_at(e, a[0].list, i), a[1]))
            return KL__CINT((int64_t)i);
    return KL__CINT(-1);
}

/* ---------------------------------------------------------------- sets */

static bool has(kl__cev *e, const kl__clist *l, kl__cval v)
{
    for (size_t i = 0; i < kl__clist_len(l) && kl__cev_works(e); i++)
        if (kl__cval_equal(e, kl__clist_at(e, l, i), v))
            return true;
    return false;
}

static bool covers(kl__cev *e, const kl__clist *l, const kl__clist *part)
{
    for (size_t i = 0; i < kl__clist_len(part); i++)
        if (!has(e, l, kl__clist_at(e, part, i)))
            return false;
    return true;
}

static kl__cval contains(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return KL__CBOOL(covers(e, a[0].list, a[1].list));
}

static kl__cval equivalent(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return KL__CBOOL(covers(e, a[0].list, a[1].list) && covers(e, a[1].list, a[0].list));
}

static kl__cval intersects(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    for (size_t i = 0; i < kl__clist_len(a[0].list); i++)
        if (has(e, a[1].list, kl__clist_at(e, a[0].list, i)))
            return KL__CBOOL(true);
    return KL__CBOOL(false);
}

static uint64_t cost_product(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return 1 + kl__cval_size(a[0]) * kl__cval_size(a[1]);
}

static uint64_t cost_both_ways(const kl__cval *a, size_t n, kl__cval result)
{
    return 2 * cost_product(a, n, result) - 1;
}

#define COMPARABLE(name, f, answers)                                                                         \
    {name, ".Li>" answers("i"), f, cost_length}, {name, ".Lu>" answers("u"), f, cost_length},                \
        {name, ".Ld>" answers("d"), f, cost_length}, {name, ".Lb>" answers("b"), f, cost_length},            \
        {name, ".LD>" answers("D"), f, cost_length}, {name, ".Lt>" answers("t"), f, cost_length},            \
        {name, ".Ls>" answers("s"), f, cost_length},                                                         \
    {                                                                                                        \
        name, ".Ly>" answers("y"), f, cost_length                                                            \
    }
#define A_BOOL(x) "b"
#define ITSELF(x) x

const kl__cfunc kl__cel_collections[] = {
    COMPARABLE("isSorted", is_sorted, A_BOOL),
    COMPARABLE("min", min, ITSELF),
    COMPARABLE("max", max, ITSELF),
    {"sum", ".Li>i", sum_int, cost_length},
    {"sum", ".Lu>u", sum_uint, cost_length},
    {"sum", ".Ld>d", sum_double, cost_length},
    {"sum", ".LD>D", sum_duration, cost_length},
    {"indexOf", ".LAA>i", index_of, cost_length},
    {"lastIndexOf", ".LAA>i", last_index_of, cost_length},
    {"sets.contains", "LALA>b", contains, cost_product},
    {"sets.equivalent", "LALA>b", equivalent, cost_both_ways},
    {"sets.intersects", "LALA>b", intersects, cost_product},
    {NULL},
};
