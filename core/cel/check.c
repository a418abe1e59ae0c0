/* check.c - finds the types of an expression, like cel-go's checker, and the slots of its names. */
#include <string.h>

#include "base/mem.h"
#include "base/regex.h"
#include "cel/cel_impl.h"
#include "model/time.h"

#define LOCALS_MAX 512

typedef struct checker {
    kl__csource *s;
    const kl_cel_env *env;
    kl__cbind b;
    struct {
        const char *name;
        const kl__ctype *type;
    } local[LOCALS_MAX];
    size_t n, *most;
    bool *used;
} checker;

static const kl__ctype *check(checker *c, kl__cexpr *e);

static const kl__ctype *basic(kl__ckind k) { return &kl__cbasic[k]; }

static char *shown(checker *c, const kl__ctype *t)
{
    kl_buf b = KL_BUF_INIT;
    kl__ctype_print(kl__cbind_resolve(&c->b, t, false), &b);
    char *text = kl__carena_text(c->s->a, kl_buf_str(&b), b.len);
    kl_buf_fini(&b);
    return text;
}

static void mismatch(checker *c, uint32_t at, const kl__ctype *want, const kl__ctype *is)
{
    kl__cel_blame(c->s, at, "expected type '%s' but found '%s'", shown(c, want), shown(c, is));
}

/* ---------------------------------------------------------------- names */

static const kl__ctype *type_named(checker *c, const char *name)
{
    static const struct {
        const char *name;
        kl__ckind kind;
    } others[] = {{"null_type", KL_C_NULL}, {"google.protobuf.Timestamp", KL_C_TIME},
        {"google.protobuf.Duration", KL_C_DURATION}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i].name))
            return kl__ctype_of(c->s->a, KL_C_TYPE, basic(others[i].kind));
    for (int k = KL_C_BOOL; k <= KL_C_DECISION; k++)
        if (k != KL_C_OBJECT && kl__cbasic[k].name && !strcmp(name, kl__cbasic[k].name))
            return kl__ctype_of(c->s->a, KL_C_TYPE, basic((kl__ckind)k));
    return NULL;
}

/* Turns e into the variable or the type of that name. */
static const kl__ctype *named(checker *c, kl__cexpr *e, const char *name, bool global)
{
    for (size_t i = c->n; i-- > 0 && !global;)
        if (!strcmp(c->local[i].name, name)) {
            e->node = KL_E_IDENT;
            e->slot = (int)i;
            return c->local[i].type;
        }
    for (size_t i = 0; i < c->env->nvars; i++)
        if (!strcmp(c->env->var[i].name, name)) {
            e->node = KL_E_IDENT;
            e->slot = ~(int)i;
            c->used[i] = true;
            return c->env->var[i].type;
        }
    const kl__ctype *t = type_named(c, name);
    if (t) {
        e->node = KL_E_CONST;
        e->constant = true;
        e->value = (kl__cval){.kind = KL_C_TYPE, .type = t->p[0]};
    }
    return t;
}

static const kl__ctype *check_ident(checker *c, kl__cexpr *e)
{
    const kl__ctype *t = named(c, e, e->name, e->global);
    if (t)
        return t;
    kl__cel_blame(
        c->s, e->at, "undeclared reference to '%s%s' (in container '')", e->global ? "." : "", e->name);
    return basic(KL_C_ERROR);
}

/* ---------------------------------------------------------------- fields */

static const kl__ctype *field_type(checker *c, kl__cexpr *e, const kl__ctype *t)
{
    const kl__cfield *f;
    switch (t->kind) {
    case KL_C_MAP: return t->p[1];
    case KL_C_OBJECT:
        f = kl__ctype_field(t, e->name, strlen(e->name));
        if (f)
            return f->type;
        kl__cel_blame(c->s, e->at, "undefined field '%s'", e->name);
        return basic(KL_C_ERROR);
    case KL_C_PARAM: {
        const kl__ctype *dyn = basic(KL_C_DYN);
        (void)kl__cbind_assign(&c->b, &dyn, &t, 1);
        return dyn;
    }
    case KL_C_DYN:
    case KL_C_ERROR: break;
    default: kl__cel_blame(c->s, e->at, "type '%s' does not support field selection", shown(c, t)); break;
    }
    return basic(KL_C_DYN);
}

static const kl__ctype *check_select(checker *c, kl__cexpr *e)
{
    kl_buf name = KL_BUF_INIT;
    const kl__ctype *t = !e->test && kl__cel_dotted(e, &name) ? named(c, e, kl_buf_str(&name), false) : NULL;
    kl_buf_fini(&name);
    if (t)
        return t;
    t = kl__cbind_resolve(&c->b, check(c, e->arg[0]), false);
    bool optional = t->kind == KL_C_OPTIONAL;
    t = field_type(c, e, optional ? t->p[0] : t);
    if (e->test)
        return basic(KL_C_BOOL);
    return optional || e->opt ? kl__ctype_of(c->s->a, KL_C_OPTIONAL, t) : t;
}

/* ---------------------------------------------------------------- calls */

static void no_overload(
    checker *c, uint32_t at, const char *name, const kl__ctype *const *types, size_t n, bool member)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        kl__ctype_print(kl__cbind_resolve(&c->b, types[i], true), &b);
        kl_buf_puts(&b, i == 0 && member ? ".(" : i + 1 < n ? ", " : "");
    }
    kl__cel_blame(c->s, at, "found no matching overload for '%s' applied to '%s%s)'", name, member ? "" : "(",
        kl_buf_str(&b));
    kl_buf_fini(&b);
}

/* The result type of the first matching overload; e keeps all matching overloads. */
static const kl__ctype *resolve(checker *c, kl__cexpr *e, const kl__cfunc **fn, size_t count)
{
    const kl__ctype **is = kl__carena_alloc(c->s->a, (e->n + 1) * sizeof *is), *result = NULL, *want[8];
    for (size_t i = 0; i < e->n; i++)
        is[i] = e->arg[i]->type;
    e->fn = fn;
    for (size_t i = 0; i < count; i++) {
        size_t n, mark = c->b.n;
        bool member;
        const kl__ctype *answer = kl__cfunc_types(fn[i], c->s->a, &c->b, want, &n, &member);
        if (member != e->member || n != e->n || !kl__cbind_assign(&c->b, want, is, n)) {
            if (c->b.n > mark)
                c->b.n = mark;
            continue;
        }
        fn[e->nfn++] = fn[i];
        answer = kl__cbind_resolve(&c->b, answer, false);
        if (!result)
            result = answer;
        else if (result->kind != KL_C_DYN && !kl__ctype_same(result, answer))
            result = basic(KL_C_DYN);
    }
    if (!result) {
        no_overload(c, e->at, e->name, is, e->n, e->member);
        return basic(KL_C_ERROR);
    }
    return result;
}

/* Reports a literal argument with which the call would always fail. */
static void check_literal(checker *c, const kl__cexpr *e)
{
    const kl__cexpr *x = e->n ? e->arg[e->n - 1] : NULL;
    if (!x || x->node != KL_E_CONST || (x->value.kind != KL_C_STRING && x->value.kind != KL_C_INT))
        return;
    kl_regex *re = NULL;
    bool bad = false, known = true;
    int64_t sec;
    int32_t ns;
    kl_time d;
    if (x->value.kind == KL_C_INT) {
        known = !strcmp(e->name, "timestamp");
        bad = x->value.i < KL__CEL_SECONDS_MIN || x->value.i > KL__CEL_SECONDS_MAX;
    } else if (!strcmp(e->name, "matches")) {
        bad = kl_regex_new(x->value.s.p, x->value.s.n, &re, NULL) != KL_OK;
        kl_regex_free(re);
    } else if (!strcmp(e->name, "duration"))
        bad = kl_duration_parse(x->value.s.p, &d, NULL) != KL_OK;
    else if (!strcmp(e->name, "timestamp"))
        bad = kl_time_parse(x->value.s.p, &sec, &ns, NULL) != KL_OK || sec < KL__CEL_SECONDS_MIN
            || sec > KL__CEL_SECONDS_MAX;
    else
        known = false;
    if (known && bad)
        kl__cel_blame(c->s, x->at, "invalid %s argument", e->name);
}

/* Expressions that cel-go folds before it counts: conversions of literals, and membership in a literal
 * list. */
static bool free_of_cost(const kl__cexpr *e)
{
    if (!strcmp(e->name, "@in"))
        return e->arg[1]->node == KL_E_LIST && e->arg[1]->constant;
    return kl__cel_converts(e) && (e->arg[0]->constant || !strcmp(e->name, "dyn"));
}

static const kl__ctype *check_call(checker *c, kl__cexpr *e)
{
    size_t count;
    const kl__cfunc **fn;
    kl_buf name = KL_BUF_INIT;
    for (size_t i = e->member; i < e->n; i++)
        check(c, e->arg[i]);
    e->constant = free_of_cost(e);
    if (e->member && kl__cel_dotted(e->arg[0], &name)) { /* optional.of(x) */
        kl_buf_printf(&name, ".%s", e->name);
        fn = kl__cfunc_find(c->s->a, kl_buf_str(&name), &count);
        if (fn) {
            e->name = kl__carena_text(c->s->a, kl_buf_str(&name), name.len);
            e->member = false;
            e->arg++;
            e->n--;
            kl_buf_fini(&name);
            return resolve(c, e, fn, count);
        }
    }
    kl_buf_fini(&name);
    if (e->member)
        check(c, e->arg[0]);
    fn = kl__cfunc_find(c->s->a, e->name, &count);
    if (!fn) {
        kl__cel_blame(
            c->s, e->at, "undeclared reference to '%s%s' (in container '')", e->global ? "." : "", e->name);
        return basic(KL_C_ERROR);
    }
    check_literal(c, e);
    return resolve(c, e, fn, count);
}

/* ---------------------------------------------------------------- literals, choices, loops */

static const kl__ctype *join(checker *c, const kl__ctype *a, const kl__ctype *b)
{
    if (!a)
        return b;
    if (kl__cbind_assign(&c->b, &a, &b, 1))
        return kl__cbind_general(a, b) ? a : b;
    return basic(KL_C_DYN);
}

static const kl__ctype *entry(checker *c, const kl__cexpr *e, size_t i, const kl__ctype *t)
{
    if (!e->optional[i])
        return t;
    t = kl__cbind_resolve(&c->b, t, false);
    if (t->kind == KL_C_OPTIONAL)
        return t->p[0];
    if (t->kind != KL_C_DYN)
        mismatch(c, e->arg[i]->at, kl__ctype_of(c->s->a, KL_C_OPTIONAL, t), t);
    return t;
}

static const kl__ctype *check_list(checker *c, kl__cexpr *e)
{
    const kl__ctype *t = NULL;
    e->constant = true;
    for (size_t i = 0; i < e->n; i++) {
        const kl__ctype *item = entry(c, e, i, check(c, e->arg[i]));
        e->constant = e->constant && e->arg[i]->constant && !e->optional[i];
        t = join(c, t, item);
    }
    return kl__ctype_list(c->s->a, t ? t : kl__cbind_fresh(&c->b));
}

static const kl__ctype *check_map(checker *c, kl__cexpr *e)
{
    const kl__ctype *key = NULL, *value = NULL;
    e->constant = true;
    for (size_t i = 0; i + 1 < e->n; i += 2) {
        key = join(c, key, check(c, e->arg[i]));
        const kl__ctype *t = entry(c, e, i + 1, check(c, e->arg[i + 1]));
        value = join(c, value, t);
        e->constant = e->constant && e->arg[i]->constant && e->arg[i + 1]->constant && !e->optional[i];
    }
    if (!key) {
        key = kl__cbind_fresh(&c->b);
        value = kl__cbind_fresh(&c->b);
    }
    return kl__ctype_map(c->s->a, key, value);
}

static const kl__ctype *check_logic(checker *c, kl__cexpr *e)
{
    const kl__ctype *is = basic(KL_C_BOOL), *yes = is;
    for (size_t i = 0; i < e->n; i++) {
        const kl__ctype *t = check(c, e->arg[i]);
        if (!kl__cbind_assign(&c->b, &yes, &t, 1)) {
            mismatch(c, e->arg[i]->at, yes, t);
            is = basic(KL_C_ERROR);
        }
    }
    return is;
}

static const kl__ctype *check_if(checker *c, kl__cexpr *e)
{
    const kl__ctype *is[3], *var = kl__cbind_fresh(&c->b), *want[3] = {basic(KL_C_BOOL), var, var};
    for (size_t i = 0; i < 3; i++)
        is[i] = check(c, e->arg[i]);
    if (kl__cbind_assign(&c->b, want, is, 3))
        return kl__cbind_resolve(&c->b, var, false);
    no_overload(c, e->at, "_?_:_", is, 3, false);
    return basic(KL_C_ERROR);
}

static void enter(checker *c, const char *name, const kl__ctype *t)
{
    if (c->n == LOCALS_MAX) {
        kl__cel_blame(c->s, 0, "expression recursion limit exceeded: %d", KL__CEL_DEPTH_MAX);
        return;
    }
    c->local[c->n].name = name;
    c->local[c->n++].type = t;
    if (c->n > *c->most)
        *c->most = c->n;
}

/* The types of a loop's variables. */
static void ranged(checker *c, kl__cexpr *e, const kl__ctype *range, const kl__ctype **x, const kl__ctype **y)
{
    *x = *y = basic(KL_C_DYN);
    switch (range->kind) {
    case KL_C_LIST:
        *x = e->var[1] ? basic(KL_C_INT) : range->p[0];
        *y = range->p[0];
        break;
    case KL_C_MAP:
        *x = range->p[0];
        *y = range->p[1];
        break;
    case KL_C_PARAM: (void)kl__cbind_assign(&c->b, y, &range, 1); break;
    case KL_C_DYN:
    case KL_C_ERROR: break;
    default:
        kl__cel_blame(c->s, e->arg[0]->at,
            "expression of type '%s' cannot be range of a comprehension (must be list, map, or dynamic)",
            shown(c, range));
        *x = *y = basic(KL_C_ERROR);
    }
}

/* The result type of a loop, from the types of its variables and of its expressions. */
static const kl__ctype *folded(checker *c, kl__cexpr *e, const kl__ctype *x, const kl__ctype *made)
{
    switch (e->fold) {
    case KL_F_LIST: return kl__ctype_list(c->s->a, made ? made : x);
    case KL_F_MAP: return kl__ctype_map(c->s->a, x, made);
    case KL_F_ENTRY:
        made = kl__cbind_resolve(&c->b, made, false);
        if (made->kind == KL_C_MAP || made->kind <= KL_C_DYN)
            return made->kind == KL_C_MAP ? made : basic(KL_C_MAP);
        no_overload(c, e->at, "cel.@mapInsert", (const kl__ctype *[]){basic(KL_C_MAP), made}, 2, false);
        return basic(KL_C_ERROR);
    case KL_F_OPT: return kl__ctype_of(c->s->a, KL_C_OPTIONAL, made);
    case KL_F_OPT_FLAT:
    case KL_F_BIND: return made;
    default: return basic(KL_C_BOOL);
    }
}

static const kl__ctype *check_fold(checker *c, kl__cexpr *e)
{
    const kl__ctype *range = kl__cbind_resolve(&c->b, check(c, e->arg[0]), false), *x, *y, *made = NULL,
                    *yes = basic(KL_C_BOOL);
    size_t mark = c->n;
    e->slot = (int)mark;
    if (e->fold == KL_F_BIND)
        x = range;
    else if (e->fold >= KL_F_OPT) {
        if (range->kind > KL_C_DYN && range->kind != KL_C_OPTIONAL)
            no_overload(c, e->at, "hasValue", &range, 1, true);
        x = range->kind == KL_C_OPTIONAL ? range->p[0] : basic(KL_C_DYN);
    } else
        ranged(c, e, range, &x, &y);
    enter(c, e->var[0], x);
    if (e->var[1])
        enter(c, e->var[1], y);
    if (e->arg[1]) {
        const kl__ctype *t = check(c, e->arg[1]);
        if (!kl__cbind_assign(&c->b, &yes, &t, 1)) {
            const kl__ctype *whole = e->fold == KL_F_EXISTS_ONE ? basic(KL_C_INT)
                                                                : kl__ctype_list(c->s->a, x),
                            *is[] = {t, whole, whole};
            if (e->fold <= KL_F_EXISTS)
                mismatch(c, e->arg[1]->at, yes, t);
            else
                no_overload(c, e->at, "_?_:_", is, 3, false);
        }
    }
    if (e->arg[2])
        made = check(c, e->arg[2]);
    c->n = mark;
    return folded(c, e, x, made);
}

static const kl__ctype *check(checker *c, kl__cexpr *e)
{
    const kl__ctype *t = basic(KL_C_ERROR);
    switch (e->node) {
    case KL_E_CONST: t = basic(e->value.kind); break;
    case KL_E_IDENT: t = check_ident(c, e); break;
    case KL_E_SELECT: t = check_select(c, e); break;
    case KL_E_CALL: t = check_call(c, e); break;
    case KL_E_LIST: t = check_list(c, e); break;
    case KL_E_MAP: t = check_map(c, e); break;
    case KL_E_OBJECT:
        kl__cel_blame(c->s, e->at, "undeclared reference to '%s' (in container '')", e->name);
        break;
    case KL_E_FOLD: t = check_fold(c, e); break;
    case KL_E_AND:
    case KL_E_OR: t = check_logic(c, e); break;
    case KL_E_IF: t = check_if(c, e); break;
    }
    e->type = t;
    return t;
}

/* Items of a literal, each `step`-th, have one type: Kubernetes demands it of a program that is good else.
 * Of a map all are named that differ. */
static void alike(checker *c, const kl__cexpr *e, size_t first, size_t step)
{
    const kl__ctype *want = NULL;
    for (size_t i = first; i < e->n; i += step) {
        const kl__ctype *t = e->arg[i]->type;
        if (e->optional[i] && i % step == step - 1 && t->kind == KL_C_OPTIONAL)
            t = t->p[0];
        if (!want)
            want = t;
        if (kl__ctype_same(want, t))
            continue;
        mismatch(c, e->arg[i]->at, want, t);
        if (step == 1)
            return;
    }
}

/* Unbound type variables become dyn. `loose`: in the arguments of format(), which may be of any types. */
static void settle(checker *c, kl__cexpr *e, bool loose)
{
    e->type = kl__cbind_resolve(&c->b, e->type, true);
    bool within = loose || (e->node == KL_E_CALL && !strcmp(e->name, "format"));
    for (size_t i = 0; i < e->n && (e->node != KL_E_IDENT && e->node != KL_E_CONST); i++)
        if (e->arg[i])
            settle(c, e->arg[i], within);
    if (e->node == KL_E_LIST && !loose)
        alike(c, e, 0, 1);
    for (size_t i = 0; i < 2 && e->node == KL_E_MAP && !loose; i++)
        alike(c, e, i, 2);
}

void kl__cel_check(kl__csource *s, const kl_cel_env *env, kl__cexpr *e, bool *used, size_t *locals)
{
    checker *c = kl_new(checker);
    c->s = s;
    c->env = env;
    c->b.a = s->a;
    c->used = used;
    c->most = locals;
    *locals = 0;
    check(c, e);
    if (!s->nissues)
        settle(c, e, false);
    if (!s->nissues)
        kl__cel_check_formats(s, e);
    kl_free(c);
}
