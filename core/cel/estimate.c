/* estimate.c - the worst cost of an expression, from the bounds of its types, as cel-go's checker and
 * Kubernetes' libraries estimate it. The real server decides by these numbers which rules a definition may
 * have, so our numbers are the same, including these oddities:
 *
 * - The size of a value is known by its path from the root: the bounds of the type there. A path that begins
 *   at a computed value counts its first step as the root.
 * - Paths are Go's slices. Two paths that grow out of one share their memory while there is room, and the
 *   later one overwrites the earlier. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"

#define TRAVERSAL 0.1 /* of one character */
#define REGEX 0.25    /* of one character of a pattern */
#define FORMAT_REGEX 128
#define FORMAT_NAME 64
#define ADDRESS 16 /* bytes */
#define LIST_COST 10
#define MAP_COST 30

typedef struct size {
    uint64_t min, max;
} size;
static const size unknown = {0, UINT64_MAX}, one = {1, 1};

typedef struct path {
    const char **v;
    size_t n, cap;
} path;

/* What is known of the items of a list, or of the keys and values of a map. */
typedef struct inside {
    bool known, list;
    size key, value;
} inside;

/* An expression and what is known of its value. */
typedef struct seen {
    const kl__cexpr *x;
    uint64_t cost;
    path path;
    bool sized;
    size size;
    inside inside;
} seen;

typedef struct estimator {
    kl__carena a;
    const kl__ctype *root;
    struct local {
        path path;
        bool sized;
        size size;
    } * local;
} estimator;

/* ---------------------------------------------------------------- numbers that do not overflow */

static uint64_t plus(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

static uint64_t scaled(uint64_t n, double by)
{
    double x = ceil((double)n * by);
    return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

static uint64_t tenth(uint64_t n) { return scaled(n, TRAVERSAL); }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static size either(size a, size b) { return (size){least(a.min, b.min), most(a.max, b.max)}; }
static size sum(size a, size b) { return (size){plus(a.min, b.min), plus(a.max, b.max)}; }
static size product(size a, size b) { return (size){times(a.min, b.min), times(a.max, b.max)}; }

static inside either_inside(const inside *a, const inside *b)
{
    if (!a->known || !b->known)
        return (inside){0};
    return (inside){true, a->list, either(a->key, b->key), either(a->value, b->value)};
}

/* ---------------------------------------------------------------- paths */

static path longer(estimator *c, path p, const char *step)
{
    if (p.n == p.cap) {
        const char **v = kl__carena_alloc(&c->a, (p.cap ? 2 * p.cap : 1) * sizeof *v);
        if (p.n)
            memcpy(v, p.v, p.n * sizeof *v);
        p.v = v;
        p.cap = p.cap ? 2 * p.cap : 1;
    }
    p.v[p.n++] = step;
    return p;
}

/* The bound of the type at a path. The name of the variable does not count: there is one root. */
static bool bound(const estimator *c, const path *p, size *out)
{
    const kl__ctype *t = c->root;
    if (!p->n)
        return false;
    for (size_t i = 1; i < p->n && t; i++) {
        const char *step = p->v[i];
        if (!strcmp(step, "@items") || !strcmp(step, "@values"))
            t = t->kind == KL_C_LIST ? t->p[0] : t->kind == KL_C_MAP ? t->p[1] : NULL;
        else if (!strcmp(step, "@keys"))
            t = t->kind == KL_C_MAP ? t->p[0] : NULL;
        else {
            const kl__cfield *f = t->kind == KL_C_OBJECT ? kl__ctype_field(t, step, strlen(step)) : NULL;
            t = f ? f->type : NULL;
        }
    }
    if (t)
        *out = (size){0, t->max};
    return t != NULL;
}

/* ---------------------------------------------------------------- sizes */

static bool scalar(const kl__ctype *t)
{
    switch (t->kind) {
    case KL_C_BOOL:
    case KL_C_INT:
    case KL_C_UINT:
    case KL_C_DOUBLE:
    case KL_C_TIME:
    case KL_C_DURATION: return true;
    case KL_C_OPTIONAL: return scalar(t->p[0]);
    default: return false;
    }
}

static bool written(const kl__cexpr *x, size *out)
{
    uint64_t n = 1;
    if (x->node == KL_E_LIST)
        n = x->n;
    else if (x->node == KL_E_MAP)
        n = x->n / 2;
    else if (x->node != KL_E_CONST)
        return false;
    else if (x->value.kind == KL_C_STRING)
        n = kl__cel_runes(x->value.s.p, x->value.s.n);
    else if (x->value.kind == KL_C_BYTES)
        n = x->value.s.n;
    *out = (size){n, n};
    return true;
}

/* Finds the size of an expression that has none yet. */
static void measure(estimator *c, seen *s)
{
    const struct local *l = s->x->node == KL_E_IDENT && s->x->slot >= 0 ? &c->local[s->x->slot] : NULL;
    if (s->sized)
        return;
    s->sized = written(s->x, &s->size) || bound(c, &s->path, &s->size);
    if (!s->sized && (s->sized = scalar(s->x->type)))
        s->size = one;
    if (!s->sized && l && (s->sized = l->sized))
        s->size = l->size;
}

static size size_of(const seen *s) { return s->sized ? s->size : unknown; }

static void resize(seen *s, size n)
{
    s->sized = true;
    s->size = n;
}

/* The size of a list's items, if its path gives it; false if the value is no container. */
static bool items(estimator *c, const seen *list, const kl__ctype **type, size *out)
{
    const kl__ctype *t = list->x->type;
    if (t->kind != KL_C_LIST && t->kind != KL_C_MAP && t->kind != KL_C_OPTIONAL)
        return false;
    *type = t->p[0];
    *out = unknown;
    path p = {0};
    for (size_t i = 0; i < list->path.n; i++)
        p = longer(c, p, list->path.v[i]);
    if (p.n) {
        p = longer(c, p, "@items");
        bound(c, &p, out);
    }
    return true;
}

/* ---------------------------------------------------------------- functions */

/* The call, its target (or NULL) and arguments, and the overload's result. */
typedef struct called {
    estimator *c;
    const kl__cfunc *f;
    seen *target, *arg;
    size_t n;
    bool sized;
    size size;
} called;

static void returns(called *k, size n)
{
    k->sized = true;
    k->size = n;
}

static uint64_t first(called *k) { return tenth(size_of(&k->arg[0]).max); }

static uint64_t changes_case(called *k)
{
    returns(k, size_of(k->target));
    return tenth(k->size.max);
}

static uint64_t parses_url(called *k)
{
    returns(k, size_of(&k->arg[0]));
    return tenth(k->size.max);
}

static uint64_t looks_through(called *k)
{
    const kl__ctype *type;
    size n = size_of(k->target), item;
    if (!items(k->c, k->target, &type, &item))
        return tenth(n.max);
    bool text = type->kind == KL_C_STRING || type->kind == KL_C_BYTES;
    return times(n.max, plus(1, text ? tenth(item.max) : 0));
}

static uint64_t replaces(called *k)
{
    size n = size_of(k->target), from = size_of(&k->arg[0]), to = size_of(&k->arg[1]), count = {0, 0},
         kept = {0, 0};
    if (!from.min) {
        count.max = plus(n.max, 1);
        kept.max = n.max;
    } else if (to.max <= from.min)
        kept.max = n.max;
    else
        count.max = scaled(1, ceil((double)n.max / (double)from.min));
    if (!from.max) {
        count.min = plus(n.min, 1);
        kept.min = n.min;
    } else if (from.max <= to.min)
        kept.min = n.min;
    else
        count.min = scaled(1, ceil((double)n.min / (double)from.max));
    returns(k, sum(product(count, to), kept));
    return scaled(n.max, 2 * TRAVERSAL);
}

static uint64_t splits(called *k)
{
    size n = size_of(k->target);
    const kl__cexpr *limit = k->n > 1 ? k->arg[1].x : NULL;
    bool is = limit && limit->node == KL_E_CONST && limit->value.kind == KL_C_INT;
    returns(k, (size){0, is ? (uint64_t)limit->value.i : n.max});
    return scaled(n.max, 2 * TRAVERSAL);
}

static uint64_t joins(called *k)
{
    const kl__ctype *type;
    size n = size_of(k->target), item, all = {0, 0};
    if (items(k->c, k->target, &type, &item))
        all = product(n, item);
    if (k->n) {
        size between = {n.min ? n.min - 1 : 0, n.max ? n.max - 1 : 0};
        all = sum(all, product(size_of(&k->arg[0]), between));
    }
    returns(k, all);
    return tenth(all.max);
}

static uint64_t matching(const seen *text, const seen *pattern)
{
    return times(tenth(plus(size_of(text).max, 1)), scaled(size_of(pattern).max, REGEX));
}

static uint64_t finds(called *k)
{
    returns(k, (size){0, size_of(k->target).max});
    return matching(k->target, &k->arg[0]);
}

static uint64_t matches(called *k) { return matching(k->target, &k->arg[0]); }
static uint64_t canonical(called *k) { return scaled(size_of(&k->arg[0]).max, 2 * TRAVERSAL); }
static bool parses(const called *k) { return k->f->sig[2] == 's'; }
static uint64_t holds_ip(called *k) { return plus(tenth(2 * ADDRESS), parses(k) ? first(k) : 0); }

static uint64_t holds_cidr(called *k)
{
    return plus(tenth(2 * ADDRESS) + tenth(ADDRESS) + 1, parses(k) ? first(k) : 0);
}

static uint64_t validates(called *k) { return scaled(first(k), FORMAT_REGEX * REGEX); }

static uint64_t differs(called *k) { return tenth(least(size_of(&k->arg[0]).max, size_of(&k->arg[1]).max)); }

static uint64_t equals(called *k)
{
    const kl__ctype *t = k->arg[0].x->type;
    if (!kl__ctype_same(t, k->arg[1].x->type))
        return differs(k);
    switch (t->kind) {
    case KL_C_IP:
    case KL_C_CIDR:
    case KL_C_QUANTITY:
    case KL_C_SEMVER: return 1;
    case KL_C_FORMAT: return tenth(FORMAT_NAME);
    case KL_C_URL: return k->arg[1].sized ? first(&(called){.arg = &k->arg[1]}) : 1;
    default: return differs(k);
    }
}

static uint64_t formats(called *k) { return tenth(size_of(k->target).max); }

static uint64_t to_bytes(called *k)
{
    size n = size_of(&k->arg[0]);
    returns(k, (size){n.min, n.max * 4});
    return tenth(n.max);
}

static uint64_t to_text(called *k)
{
    size n = size_of(&k->arg[0]);
    returns(k, (size){n.min / 4, n.max});
    return tenth(n.max);
}

static uint64_t quotes(called *k)
{
    size n = size_of(&k->arg[0]);
    returns(k, (size){n.min + 2, n.max * 2 + 2});
    return tenth(n.max);
}

static uint64_t in_list(called *k) { return size_of(&k->arg[1]).max; }
static uint64_t contains(called *k) { return times(tenth(size_of(k->target).max), first(k)); }

static uint64_t adds(called *k)
{
    returns(k, sum(size_of(&k->arg[0]), size_of(&k->arg[1])));
    return k->f->sig[0] == 'L' ? 1 : tenth(k->size.max);
}

static uint64_t sets(called *k) { return plus(1, times(size_of(&k->arg[0]).max, size_of(&k->arg[1]).max)); }

static uint64_t same_sets(called *k)
{
    uint64_t n = times(size_of(&k->arg[0]).max, size_of(&k->arg[1]).max);
    return plus(1, times(n, 2));
}

/* Functions that cost more than 1. A signature of NULL: all overloads of the name. */
static const struct {
    const char *name, *sig;
    uint64_t (*cost)(called *k);
} functions[] = {
    {"isSorted", NULL, looks_through},
    {"sum", NULL, looks_through},
    {"max", NULL, looks_through},
    {"min", NULL, looks_through},
    {"indexOf", NULL, looks_through},
    {"lastIndexOf", NULL, looks_through},
    {"url", NULL, parses_url},
    {"lowerAscii", NULL, changes_case},
    {"upperAscii", NULL, changes_case},
    {"substring", NULL, changes_case},
    {"trim", NULL, changes_case},
    {"replace", NULL, replaces},
    {"split", NULL, splits},
    {"join", NULL, joins},
    {"find", NULL, finds},
    {"findAll", NULL, finds},
    {"cidr", NULL, first},
    {"isIP", NULL, first},
    {"isCIDR", NULL, first},
    {"ip", "s>P", first},
    {"ip.isCanonical", NULL, canonical},
    {"containsIP", NULL, holds_ip},
    {"containsCIDR", NULL, holds_cidr},
    {"quantity", NULL, first},
    {"isQuantity", NULL, first},
    {"semver", NULL, first},
    {"isSemver", NULL, first},
    {"validate", NULL, validates},
    {"_==_", NULL, equals},
    {"_!=_", NULL, differs},
    {"format", NULL, formats},
    {"bytes", "s>y", to_bytes},
    {"string", "y>s", to_text},
    {"strings.quote", NULL, quotes},
    {"startsWith", NULL, first},
    {"endsWith", NULL, first},
    {"@in", "ALA>b", in_list},
    {"matches", ".ss>b", matches},
    {"contains", NULL, contains},
    {"_+_", "ss>s", adds},
    {"_+_", "yy>y", adds},
    {"_+_", "LALA>LA", adds},
    {"_<_", "ss>b", differs},
    {"_<_", "yy>b", differs},
    {"_<=_", "ss>b", differs},
    {"_<=_", "yy>b", differs},
    {"_>_", "ss>b", differs},
    {"_>_", "yy>b", differs},
    {"_>=_", "ss>b", differs},
    {"_>=_", "yy>b", differs},
    {"sets.contains", NULL, sets},
    {"sets.intersects", NULL, sets},
    {"sets.equivalent", NULL, same_sets},
};

static uint64_t own_cost(called *k)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, k->f->name)
            && (!functions[i].sig || !strcmp(functions[i].sig, k->f->sig)))
            return functions[i].cost(k);
    return 1;
}

static seen visit(estimator *c, const kl__cexpr *x);

static seen measured(estimator *c, const kl__cexpr *x)
{
    seen s = visit(c, x);
    measure(c, &s);
    return s;
}

/* One overload of several: the dearest counts, and any of their sizes is possible. */
static uint64_t overload(called *k, seen *s, bool *sized, size *n)
{
    uint64_t cost = own_cost(k);
    bool by_index = !strcmp(k->f->name, "_[_]");
    if (k->sized) {
        *n = *sized ? either(*n, k->size) : k->size;
        *sized = true;
    }
    if (!strcmp(k->f->name, "_+_") && k->sized) {
        inside both = either_inside(&k->arg[0].inside, &k->arg[1].inside);
        if (both.known)
            s->inside = both;
    }
    if (by_index && k->f->sig[0] != 'O') {
        *sized = k->arg[0].inside.known;
        *n = k->arg[0].inside.value;
        s->path = longer(k->c, k->arg[0].path, k->f->sig[0] == 'L' ? "@items" : "@values");
    }
    if (!*sized) {
        measure(k->c, s);
        *sized = s->sized;
        *n = s->size;
    }
    return cost;
}

static seen call(estimator *c, const kl__cexpr *x)
{
    seen s = {.x = x}, *arg = kl__carena_alloc(&c->a, (x->n + 1) * sizeof *arg);
    uint64_t dearest = 0;
    bool sized = false;
    size n = unknown;
    for (size_t i = x->member; i < x->n; i++) {
        arg[i] = measured(c, x->arg[i]);
        s.cost = plus(s.cost, arg[i].cost);
    }
    if (x->member) {
        arg[0] = measured(c, x->arg[0]);
        s.cost = plus(s.cost, arg[0].cost);
    }
    if (!strcmp(x->name, "dyn")) {
        s.sized = arg[0].sized;
        s.size = arg[0].size;
        s.inside = arg[0].inside;
        s.cost = plus(s.cost, 1);
        return s;
    }
    for (size_t i = 0; i < x->nfn; i++) {
        called k = {.c = c,
            .f = x->fn[i],
            .target = x->member ? arg : NULL,
            .arg = arg + x->member,
            .n = x->n - x->member};
        dearest = most(dearest, overload(&k, &s, &sized, &n));
    }
    s.cost = plus(s.cost, dearest);
    s.sized = sized;
    s.size = n;
    return s;
}

/* ---------------------------------------------------------------- loops */

/* Sets a loop's variable: the keys (or indices) of the range, or its values. */
static void enter(estimator *c, const seen *range, size_t slot, bool list, bool values)
{
    struct local *l = &c->local[slot];
    l->sized = range->inside.known;
    l->size = values ? range->inside.value : range->inside.key;
    l->path = longer(c, range->path, values ? list ? "@items" : "@values" : list ? "@indices" : "@keys");
}

/* optMap and optFlatMap: whether the optional has a value, and a bound name for it. */
static seen optional(estimator *c, const kl__cexpr *x)
{
    seen range = visit(c, x->arg[0]), s = {.x = x};
    const kl__ctype *t = range.x->type;
    t = t->kind == KL_C_OPTIONAL ? t->p[0] : t;
    uint64_t asked = plus(range.cost, 1);
    c->local[x->slot] = (struct local){.sized = scalar(t), .size = one};
    seen body = visit(c, x->arg[2]);
    uint64_t bind = plus(plus(asked, LIST_COST), body.cost);
    s.cost = plus(asked, plus(bind, x->fold == KL_F_OPT));
    resize(&s, scalar(x->type) ? one : unknown);
    return s;
}

/* cel.bind: to cel-go a loop over an empty list. */
static seen bind(estimator *c, const kl__cexpr *x)
{
    seen what = measured(c, x->arg[0]), s = {.x = x};
    c->local[x->slot] = (struct local){.path = what.path, .sized = what.sized, .size = what.size};
    s.cost = plus(plus(what.cost, LIST_COST), visit(c, x->arg[2]).cost);
    return s;
}

static uint64_t round_cost(estimator *c, const kl__cexpr *x, seen *s, size *step)
{
    uint64_t filter = x->arg[1] ? visit(c, x->arg[1]).cost : 0;
    seen made = {.cost = 1};
    switch (x->fold) {
    case KL_F_ALL: return plus(filter, 3);
    case KL_F_EXISTS: return plus(filter, 4);
    case KL_F_EXISTS_ONE: return plus(filter, 2);
    case KL_F_MAP: return plus(filter, plus(visit(c, x->arg[2]).cost, 3));
    case KL_F_ENTRY: return plus(filter, plus(visit(c, x->arg[2]).cost, 2));
    default: break;
    }
    if (x->arg[2])
        made = measured(c, x->arg[2]);
    else { /* filter: the variable itself */
        const struct local *l = &c->local[x->slot];
        const kl__ctype *t = x->type->kind == KL_C_LIST ? x->type->p[0] : x->type;
        made.sized = bound(c, &l->path, &made.size);
        if (!made.sized && (made.sized = scalar(t) || l->sized))
            made.size = scalar(t) ? one : l->size;
    }
    *step = size_of(&made);
    s->inside = (inside){true, true, one, (size){0, step->max}};
    return plus(filter, plus(made.cost, LIST_COST + 2));
}

static seen fold(estimator *c, const kl__cexpr *x)
{
    if (x->fold == KL_F_BIND)
        return bind(c, x);
    if (x->fold >= KL_F_OPT)
        return optional(c, x);
    seen range = visit(c, x->arg[0]), s = {.x = x};
    bool list = range.inside.known ? range.inside.list : range.x->type->kind == KL_C_LIST;
    size_t slot = (size_t)x->slot;
    size step = unknown;
    if (x->var[1]) {
        enter(c, &range, slot, list, false);
        enter(c, &range, slot + 1, list, true);
    } else {
        enter(c, &range, slot, list, list);
    }
    uint64_t cost = round_cost(c, x, &s, &step);
    measure(c, &range);
    s.cost = plus(range.cost, times(size_of(&range).max, cost));
    switch (x->fold) {
    case KL_F_ALL:
    case KL_F_EXISTS: s.cost = plus(s.cost, 1); break;
    case KL_F_EXISTS_ONE: s.cost = plus(s.cost, 2); break;
    default: s.cost = plus(s.cost, 1 + (x->fold == KL_F_LIST ? LIST_COST : MAP_COST)); break;
    }
    resize(&s, x->fold <= KL_F_EXISTS_ONE ? one : size_of(&range));
    return s;
}

/* ---------------------------------------------------------------- all together */

static seen select_field(estimator *c, const kl__cexpr *x)
{
    seen from = visit(c, x->arg[0]), s = {.x = x, .cost = from.cost};
    kl__ckind kind = from.x->type->kind;
    if (x->test)
        return s;
    if (x->opt) { /* a call of _?._ */
        s.cost = plus(s.cost, 1);
        return s;
    }
    if (kind == KL_C_MAP || kind == KL_C_OBJECT)
        s.cost = plus(s.cost, 1);
    s.path = longer(c, from.path, x->name);
    return s;
}

static seen literal(estimator *c, const kl__cexpr *x)
{
    seen s = {.x = x, .cost = x->node == KL_E_MAP ? MAP_COST : LIST_COST};
    size_t step = x->node == KL_E_MAP ? 2 : 1;
    const size none = {x->n ? UINT64_MAX : 0, 0};
    s.inside = (inside){true, step == 1, step == 1 ? one : none, none};
    for (size_t i = 0; i < x->n; i++) {
        seen part = measured(c, x->arg[i]);
        size *into = step == 2 && i % 2 == 0 ? &s.inside.key : &s.inside.value;
        *into = either(*into, size_of(&part));
        s.cost = plus(s.cost, part.cost);
    }
    return s;
}

static seen choice(estimator *c, const kl__cexpr *x)
{
    seen s = {.x = x, .cost = visit(c, x->arg[0]).cost}, yes = measured(c, x->arg[1]),
         no = measured(c, x->arg[2]);
    s.cost = plus(s.cost, most(yes.cost, no.cost));
    s.inside = either_inside(&yes.inside, &no.inside);
    resize(&s, either(size_of(&yes), size_of(&no)));
    return s;
}

static seen visit(estimator *c, const kl__cexpr *x)
{
    seen s = {.x = x};
    switch (x->node) {
    case KL_E_IDENT:
        s.cost = 1;
        s.path = x->slot >= 0 ? c->local[x->slot].path : longer(c, s.path, x->name);
        break;
    case KL_E_SELECT: return select_field(c, x);
    case KL_E_CALL: return call(c, x);
    case KL_E_LIST:
    case KL_E_MAP: return literal(c, x);
    case KL_E_FOLD: return fold(c, x);
    case KL_E_IF: return choice(c, x);
    case KL_E_AND:
    case KL_E_OR:
        for (size_t i = 0; i < x->n; i++)
            s.cost = plus(s.cost, visit(c, x->arg[i]).cost);
        break;
    case KL_E_CONST:
    case KL_E_OBJECT: break;
    }
    return s;
}

uint64_t kl_cel_estimate(const kl_cel *p, const kl_cel_type *root)
{
    estimator c = {.root = root};
    c.local = kl__carena_alloc(&c.a, (p->locals + 1) * sizeof *c.local);
    uint64_t cost = visit(&c, p->e).cost;
    kl__carena_fini(&c.a);
    return cost;
}
