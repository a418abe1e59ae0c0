/* eval.c - runs a checked expression. Its cost is counted as in cel-go: a name or a field costs 1, a call the
 * cost of its function, literals nothing unless they are built at run time. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"

#define LIST_COST 10
#define MAP_COST 30
#define WORK_MAX ((size_t)20 << 20)

void kl__cev_charge(kl__cev *e, uint64_t cost)
{
    if (cost > e->run->limit || e->cost + cost > e->run->limit)
        e->over = true;
    e->cost = e->cost + cost < e->cost ? UINT64_MAX : e->cost + cost;
}

bool kl__cev_works(kl__cev *e)
{
    if (++e->work > WORK_MAX)
        e->over = true;
    return !e->over;
}

static kl__cval eval(kl__cev *e, const kl__cexpr *x);
static bool failed(kl__cval v) { return v.kind == KL_C_ERROR; }

static kl__cval some(kl__cev *e, kl__cval v)
{
    kl__cval *kept = KL__CNEW(e->a, kl__cval);
    *kept = v;
    return (kl__cval){.kind = KL_C_OPTIONAL, .opt = kept};
}

/* ---------------------------------------------------------------- names and fields */

/* A variable has its own budget. If it exceeds that, it fails, and so do its users. */
static void define(kl__cev *e, size_t i)
{
    const kl_cel *p = e->env->def[i].program;
    const char *name = e->env->def[i].name;
    kl__cval *outer = e->local, v;
    uint64_t cost = e->cost;
    e->is[i] = 1;
    if (!p)
        v = kl__cval_err(e, "composited variable \"%s\" fails to compile", name);
    else {
        e->local = p->locals ? kl__carena_alloc(e->a, p->locals * sizeof *e->local) : NULL;
        e->cost = 0;
        v = eval(e, p->e);
        e->local = outer;
        bool spent = e->cost > e->run->limit;
        e->run->variables_cost += e->cost;
        e->cost = cost;
        if (spent) {
            e->over = false;
            v = kl__cval_err(e, "operation cancelled: actual cost limit exceeded");
        }
        if (failed(v))
            v = kl__cval_err(
                e, "composited variable \"%s\" fails to evaluate: %.*s", name, (int)v.s.n, v.s.p);
    }
    e->defined[i] = v;
    e->is[i] = 2;
}

/* `variables.x` */
static kl__cval defined(kl__cev *e, const char *name)
{
    for (size_t i = 0; i < e->env->ndefs; i++) {
        if (strcmp(e->env->def[i].name, name))
            continue;
        if (e->is[i] == 1)
            return kl__cval_err(e, "variable '%s' refers to itself", name);
        if (!e->is[i])
            define(e, i);
        return e->defined[i];
    }
    return kl__cval_err(e, "no such key: %s", name);
}

static kl__cval ident(kl__cev *e, const kl__cexpr *x)
{
    kl__cev_charge(e, 1);
    if (x->slot >= 0)
        return e->local[x->slot];
    size_t i = (size_t)~x->slot;
    const kl__ctype *t = e->env->var[i].type;
    if ((int)i == e->env->defs) {
        static const kl__cmap lazy = {.lazy = true};
        return (kl__cval){.kind = KL_C_MAP, .map = &lazy};
    }
    bool asks = t->kind == KL_C_AUTHORIZER || t->kind == KL_C_RESOURCE_CHECK;
    if (asks && e->run->vars[i].is != KL_CEL_ABSENT) {
        kl__cval asked = kl__cval_of_json(e, e->run->vars[i].json, NULL);
        return (kl__cval){.kind = t->kind, .o = asked.kind == KL_C_MAP ? asked.map : NULL};
    }
    switch (e->run->vars[i].is) {
    case KL_CEL_VALUE: return kl__cval_of_json(e, e->run->vars[i].json, t);
    case KL_CEL_SOME: return some(e, kl__cval_of_json(e, e->run->vars[i].json, t->p[0]));
    case KL_CEL_NONE: return (kl__cval){.kind = KL_C_OPTIONAL};
    case KL_CEL_ABSENT: break;
    }
    return kl__cval_err(e, "no such attribute(s): %s", x->name);
}

/* A field of a value; false where it has none, with an error in *out. */
static bool get(kl__cev *e, kl__cval from, const char *name, kl__cval *out)
{
    if (from.kind == KL_C_MAP || from.kind == KL_C_OBJECT) {
        if (from.map->lazy) {
            *out = defined(e, name);
            return !failed(*out);
        }
        kl__cval key = {.kind = KL_C_STRING, .s = {name, strlen(name)}};
        if (kl__cmap_get(e, from.map, key, out))
            return true;
        *out = kl__cval_err(e, "no such key: %s", name);
        return false;
    }
    *out = failed(from) ? from : kl__cval_err(e, "no such key: %s", name);
    return false;
}

/* An attribute is a name with its selections; a selection from anything else costs one more. */
static uint64_t step_cost(const kl__cexpr *operand)
{
    bool attribute = operand->node == KL_E_IDENT || operand->node == KL_E_SELECT
        || (operand->node == KL_E_CALL && !operand->member && !strncmp(operand->name, "_[", 2));
    return attribute ? 1 : 2;
}

static kl__cval select_field(kl__cev *e, const kl__cexpr *x)
{
    kl__cval from = eval(e, x->arg[0]), v;
    if (failed(from) || e->over)
        return from;
    bool optional = from.kind == KL_C_OPTIONAL;
    uint64_t cost = step_cost(x->arg[0]);
    if (optional && !from.opt) {
        kl__cev_charge(e, cost - 1);
        return x->test ? KL__CBOOL(false) : from;
    }
    if (optional)
        from = *from.opt;
    bool there = get(e, from, x->name, &v);
    kl__cev_charge(e, x->test || (!there && (optional || x->opt)) ? cost - 1 : cost);
    if (x->test) {
        bool container = from.kind == KL_C_MAP || from.kind == KL_C_OBJECT;
        return container || optional ? KL__CBOOL(there) : v;
    }
    if (!optional && !x->opt)
        return v;
    if (there)
        return failed(v) ? v : some(e, v);
    bool container = optional || from.kind == KL_C_MAP || from.kind == KL_C_OBJECT;
    return container ? (kl__cval){.kind = KL_C_OPTIONAL} : v;
}

/* ---------------------------------------------------------------- calls */

/* Whether values of this kind have the operator at all. */
static bool operates(const char *name, kl__ckind k)
{
    bool number = k == KL_C_INT || k == KL_C_UINT || k == KL_C_DOUBLE,
         time = k == KL_C_TIME || k == KL_C_DURATION, text = k == KL_C_STRING || k == KL_C_BYTES;
    switch (name[0] == '_' ? name[1] : 0) {
    case '<':
    case '>': return number || time || text || k == KL_C_BOOL;
    case '+': return number || time || text || k == KL_C_LIST;
    case '-': return (number && k != KL_C_UINT) || time || k == KL_C_UINT;
    case '*':
    case '/': return number;
    case '%': return number && k != KL_C_DOUBLE;
    default: return true;
    }
}

static kl__cval no_overload(kl__cev *e, const kl__cexpr *x, kl__ckind first)
{
    bool operator= strchr("_@!-", x->name[0]) != NULL &&operates(x->name, first);
    return kl__cval_err(e, "no such overload%s%s", operator? "" : ": ", operator? "" : x->name);
}

/* x.or(y), x.orValue(y): y is evaluated only where x has no value. */
static kl__cval alternative(kl__cev *e, const kl__cexpr *x)
{
    kl__cval v = eval(e, x->arg[0]);
    if (failed(v) || e->over)
        return v;
    if (v.kind != KL_C_OPTIONAL) {
        kl__cev_charge(e, 1);
        return no_overload(e, x, v.kind);
    }
    if (!v.opt)
        return eval(e, x->arg[1]);
    return x->name[2] ? *v.opt : v;
}

static kl__cval call(kl__cev *e, const kl__cexpr *x)
{
    if (x->member && x->n == 2 && (!strcmp(x->name, "or") || !strcmp(x->name, "orValue")))
        return alternative(e, x);
    kl__cval few[4], *a = x->n <= 4 ? few : kl__carena_alloc(e->a, x->n * sizeof *a);
    for (size_t i = 0; i < x->n; i++) {
        a[i] = eval(e, x->arg[i]);
        if (failed(a[i]) || e->over) {
            kl__cev_charge(e, 1);
            return a[i];
        }
    }
    for (size_t i = 0; i < x->nfn; i++) {
        const kl__cfunc *f = x->fn[i];
        bool index = x->name[0] == '_' && x->name[1] == '[';
        if (!kl__cfunc_fits(f, a, x->n, x->member) && !(index && a[0].kind == KL_C_LIST))
            continue;
        kl__cval v = f->call(e, a, x->n);
        if (e->over)
            return v;
        if (index && v.kind == KL_C_OPTIONAL && !v.opt) {
            kl__cev_charge(e, step_cost(x->arg[0]) - 1);
            return v;
        }
        if (!x->constant)
            kl__cev_charge(e, index ? step_cost(x->arg[0]) : f->cost ? f->cost(a, x->n, v) : 1);
        return v;
    }
    kl__cev_charge(e, 1);
    return no_overload(e, x, x->n ? a[0].kind : KL_C_NULL);
}

/* ---------------------------------------------------------------- literals */

/* An entry with "?": whether it is present, and its value. */
static bool entry(kl__cev *e, const kl__cexpr *x, size_t i, kl__cval *v)
{
    if (!x->optional[i])
        return true;
    if (v->kind != KL_C_OPTIONAL) {
        *v = kl__cval_err(e, "cannot initialize optional list element from non-optional value");
        return true;
    }
    if (v->opt)
        *v = *v->opt;
    else
        return false;
    return true;
}

static kl__cval list(kl__cev *e, const kl__cexpr *x)
{
    kl__clist *l = kl__clist_new(e, x->n);
    for (size_t i = 0; i < x->n; i++) {
        kl__cval v = eval(e, x->arg[i]);
        if (!failed(v) && !entry(e, x, i, &v))
            continue;
        if (failed(v) || e->over)
            return v;
        kl__clist_add(e, l, v);
    }
    if (!x->constant)
        kl__cev_charge(e, LIST_COST);
    return KL__CLIST(l);
}

static kl__cval map(kl__cev *e, const kl__cexpr *x)
{
    kl__cmap *m = kl__cmap_new(e, x->n / 2);
    for (size_t i = 0; i + 1 < x->n; i += 2) {
        kl__cval k = eval(e, x->arg[i]);
        if (failed(k) || e->over)
            return k;
        if (k.kind != KL_C_STRING && k.kind != KL_C_INT && k.kind != KL_C_UINT && k.kind != KL_C_BOOL)
            return kl__cval_err(e, "unsupported key type: %s", kl__cval_type(k)->name);
        kl__cval v = eval(e, x->arg[i + 1]);
        if (!failed(v) && !entry(e, x, i, &v))
            continue;
        if (failed(v) || e->over)
            return v;
        if (kl__cmap_add(e, m, k, v))
            continue;
        if (x->constant) /* cel-go makes these at once, and the last one wins */
            kl__cmap_set(e, m, k, v);
        else {
            kl_buf b = KL_BUF_INIT;
            kl__cval_show(e, k, &b);
            v = kl__cval_err(e, "Failed with repeated key %s", kl_buf_str(&b));
            kl_buf_fini(&b);
            return v;
        }
    }
    if (!x->constant)
        kl__cev_charge(e, MAP_COST);
    return (kl__cval){.kind = KL_C_MAP, .map = m};
}

/* ---------------------------------------------------------------- logic */

/* A deciding operand overrides a failed one. */
static kl__cval logic(kl__cev *e, const kl__cexpr *x)
{
    bool decides = x->node == KL_E_OR;
    kl__cval failure = KL__CNULL;
    for (size_t i = 0; i < x->n; i++) {
        kl__cval v = eval(e, x->arg[i]);
        if (e->over)
            return v;
        if (v.kind == KL_C_BOOL) {
            if (v.b == decides)
                return v;
        } else if (failure.kind == KL_C_NULL)
            failure = failed(v) ? v : kl__cval_err(e, "no such overload");
    }
    return failure.kind == KL_C_NULL ? KL__CBOOL(!decides) : failure;
}

static kl__cval choice(kl__cev *e, const kl__cexpr *x)
{
    kl__cval v = eval(e, x->arg[0]);
    if (failed(v))
        return v;
    if (v.kind != KL_C_BOOL)
        return kl__cval_err(e, "no such overload");
    return eval(e, x->arg[v.b ? 1 : 2]);
}

/* ---------------------------------------------------------------- loops */

typedef struct loop {
    const kl__cexpr *x;
    kl__clist *list;
    kl__cmap *map;
    kl__cval failure; /* NULL: none */
    size_t count;
    bool decided, value;
} loop;

static kl__cval repeated(kl__cev *e, kl__cval key)
{
    kl_buf b = KL_BUF_INIT;
    kl__cval_show(e, key, &b);
    kl__cval v = kl__cval_err(e, "insert failed: key %s already exists", kl_buf_str(&b));
    kl_buf_fini(&b);
    return v;
}

static void merge(kl__cev *e, loop *l, kl__cval made)
{
    if (made.kind != KL_C_MAP) {
        l->failure = kl__cval_err(e, "no such overload: cel.@mapInsert");
        return;
    }
    for (size_t i = 0; i < kl__cmap_len(made.map); i++) {
        kl__cval k, v;
        kl__cmap_at(e, made.map, i, &k, &v);
        if (!kl__cmap_add(e, l->map, k, v)) {
            l->failure = repeated(e, k);
            return;
        }
    }
}

/* all and exists: a deciding element ends the loop and hides failures. */
static void quantify(kl__cev *e, loop *l, kl__cval v)
{
    bool decides = l->x->fold == KL_F_EXISTS;
    kl__cev_charge(e, decides ? 4 : 3);
    if (v.kind == KL_C_BOOL) {
        l->decided = v.b == decides;
        l->value = v.b;
    } else if (l->failure.kind == KL_C_NULL)
        l->failure = failed(v) ? v : kl__cval_err(e, "no such overload");
}

/* Runs one round; the variables are set. */
static void turn(kl__cev *e, loop *l, kl__cval first)
{
    const kl__cexpr *x = l->x;
    bool keep = true;
    if (x->arg[1]) {
        kl__cval v = eval(e, x->arg[1]);
        if (e->over)
            return;
        if (x->fold <= KL_F_EXISTS) {
            quantify(e, l, v);
            return;
        }
        if (v.kind != KL_C_BOOL) {
            l->failure = failed(v) ? v : kl__cval_err(e, "no such overload");
            return;
        }
        keep = v.b;
    }
    if (!keep)
        return;
    if (x->fold == KL_F_EXISTS_ONE) {
        kl__cev_charge(e, 2);
        l->count++;
        return;
    }
    kl__cval made = x->arg[2] ? eval(e, x->arg[2]) : first;
    if (failed(made) || e->over) {
        l->failure = made;
        return;
    }
    kl__cev_charge(e, x->fold == KL_F_LIST ? LIST_COST + 2 + !x->arg[2] : x->fold == KL_F_MAP ? 3 : 2);
    if (x->fold == KL_F_LIST)
        kl__clist_add(e, l->list, made);
    else if (x->fold == KL_F_ENTRY)
        merge(e, l, made);
    else if (!kl__cmap_add(e, l->map, first, made))
        l->failure = repeated(e, first);
}

static kl__cval optional(kl__cev *e, const kl__cexpr *x, kl__cval from)
{
    if (from.kind != KL_C_OPTIONAL)
        return kl__cval_err(e, "no such overload: hasValue");
    kl__cev_charge(e, from.opt ? 3 : 2);
    if (!from.opt)
        return from;
    e->local[x->slot] = *from.opt;
    kl__cval v = eval(e, x->arg[2]);
    if (failed(v))
        return v;
    kl__cev_charge(e, 1);
    if (x->fold == KL_F_OPT_FLAT)
        return v.kind == KL_C_OPTIONAL ? v : kl__cval_err(e, "no such overload");
    return some(e, v);
}

static kl__cval loop_result(kl__cev *e, const loop *l)
{
    switch (l->x->fold) {
    case KL_F_ALL:
    case KL_F_EXISTS:
        kl__cev_charge(e, 1);
        if (l->decided)
            return KL__CBOOL(l->value);
        return l->failure.kind != KL_C_NULL ? l->failure : KL__CBOOL(l->x->fold == KL_F_ALL);
    case KL_F_EXISTS_ONE: kl__cev_charge(e, 2); return KL__CBOOL(l->count == 1);
    case KL_F_LIST: kl__cev_charge(e, 1); return KL__CLIST(l->list);
    default: kl__cev_charge(e, 1); return (kl__cval){.kind = KL_C_MAP, .map = l->map};
    }
}

static kl__cval fold(kl__cev *e, const kl__cexpr *x)
{
    kl__cval range = eval(e, x->arg[0]);
    if (failed(range) || e->over)
        return range;
    if (x->fold == KL_F_BIND) {
        e->local[x->slot] = range;
        kl__cev_charge(e, 1);
        return eval(e, x->arg[2]);
    }
    if (x->fold >= KL_F_OPT)
        return optional(e, x, range);
    bool is_list = range.kind == KL_C_LIST;
    if (!is_list && range.kind != KL_C_MAP && range.kind != KL_C_OBJECT)
        return kl__cval_err(e, "no such overload");
    size_t n = is_list ? kl__clist_len(range.list) : kl__cmap_len(range.map), slot = (size_t)x->slot;
    loop l = {.x = x, .failure = KL__CNULL, .list = kl__clist_new(e, 0), .map = kl__cmap_new(e, 0)};
    for (size_t i = 0; i < n && !l.decided && !e->over; i++) {
        kl__cval first, second;
        if (is_list) {
            second = kl__clist_at(e, range.list, i);
            first = x->var[1] ? KL__CINT((int64_t)i) : second;
        } else
            kl__cmap_at(e, range.map, i, &first, &second);
        e->local[slot] = first;
        if (x->var[1])
            e->local[slot + 1] = second;
        turn(e, &l, first);
        if (l.decided && i + 1 < n) /* cel-go checks this before the next round */
            kl__cev_charge(e, x->fold == KL_F_EXISTS ? 3 : 2);
        if (l.failure.kind != KL_C_NULL && x->fold > KL_F_EXISTS)
            return l.failure;
    }
    return loop_result(e, &l);
}

/* ---------------------------------------------------------------- all together */

static kl__cval eval(kl__cev *e, const kl__cexpr *x)
{
    if (e->over || !kl__cev_works(e) || e->a->used > KL__CEL_MEMORY_MAX) {
        e->over = true;
        return kl__cval_err(e, "operation cancelled: actual cost limit exceeded");
    }
    switch (x->node) {
    case KL_E_CONST: return x->value;
    case KL_E_IDENT: return ident(e, x);
    case KL_E_SELECT: return select_field(e, x);
    case KL_E_CALL: return call(e, x);
    case KL_E_LIST: return list(e, x);
    case KL_E_MAP: return map(e, x);
    case KL_E_AND:
    case KL_E_OR: return logic(e, x);
    case KL_E_IF: return choice(e, x);
    case KL_E_FOLD: return fold(e, x);
    case KL_E_OBJECT: break;
    }
    return no_overload(e, x, KL_C_NULL);
}

kl__cval kl__cel_run(kl__cev *e, const kl__cexpr *x) { return eval(e, x); }

struct kl_cel_shared {
    kl__cev e; /* its memory, what is freed at the end, and the values of variables */
    kl__carena a;
};

kl_cel_shared *kl_cel_shared_new(void)
{
    kl_cel_shared *s = kl_new(kl_cel_shared);
    s->e.a = &s->a;
    return s;
}

void kl_cel_shared_free(kl_cel_shared *s)
{
    if (!s)
        return;
    kl__cev_release(&s->e);
    kl__carena_fini(&s->a);
    kl_free(s);
}

static void begin(kl__cev *e, const kl_cel *p, kl_cel_run *run)
{
    size_t ndefs = p->env->ndefs;
    e->env = p->env;
    e->run = run;
    e->local = kl__carena_alloc(e->a, (p->locals + 1) * sizeof *e->local);
    if (!e->is) {
        e->defined = kl__carena_alloc(e->a, (ndefs + 1) * sizeof *e->defined);
        e->is = kl__carena_alloc(e->a, ndefs + 1);
    }
    run->variables_cost = 0;
}

kl_status kl_cel_eval(const kl_cel *p, kl_cel_run *run, const kl_value **out, kl_err *err)
{
    kl__carena arena = {0};
    kl__cev e = {.a = &arena};
    if (run->shared)
        e = run->shared->e;
    begin(&e, p, run);
    kl__cval v = eval(&e, p->e);
    kl_status st = KL_OK;
    run->cost = e.cost;
    if (e.over)
        st = kl_fail(err, KL_ETOOBIG, "operation cancelled: actual cost limit exceeded");
    else if (failed(v))
        st = kl_fail(err, KL_EINVAL, "%.*s", (int)v.s.n, v.s.p);
    else
        *out = kl__cval_to_json(&e, v);
    if (run->shared) {
        e.cost = e.work = 0;
        e.over = false;
        run->shared->e = e;
    } else
        kl__cev_release(&e);
    kl__carena_fini(&arena);
    return st;
}
