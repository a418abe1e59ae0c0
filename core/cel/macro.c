/* macro.c - calls that are forms of the language: has, all, exists, exists_one, map, filter, and those with
 * two variables. */
#include <string.h>

#include "cel/cel_impl.h"

static bool is_name(const kl__cexpr *e) { return e->node == KL_E_IDENT && !e->global; }

static void has(kl__csource *s, kl__cexpr *c)
{
    kl__cexpr *what = c->arg[0];
    if (what->node != KL_E_SELECT || what->test || what->opt) {
        kl__cel_blame(s, what->at, "invalid argument to has() macro");
        return;
    }
    uint32_t at = c->at;
    *c = *what;
    c->at = at;
    c->test = true;
}

static const struct form {
    const char *name;
    size_t args;
    kl__cfold fold;
    bool two;          /* variables */
    bool filter, made; /* whether a condition, or a result, follows the variables */
} forms[] = {
    {"all", 2, KL_F_ALL, false, true, false},
    {"all", 3, KL_F_ALL, true, true, false},
    {"exists", 2, KL_F_EXISTS, false, true, false},
    {"exists", 3, KL_F_EXISTS, true, true, false},
    {"exists_one", 2, KL_F_EXISTS_ONE, false, true, false},
    {"exists_one", 3, KL_F_EXISTS_ONE, true, true, false},
    {"existsOne", 2, KL_F_EXISTS_ONE, false, true, false},
    {"existsOne", 3, KL_F_EXISTS_ONE, true, true, false},
    {"map", 2, KL_F_LIST, false, false, true},
    {"map", 3, KL_F_LIST, false, true, true},
    {"filter", 2, KL_F_LIST, false, true, false},
    {"transformList", 3, KL_F_LIST, true, false, true},
    {"transformList", 4, KL_F_LIST, true, true, true},
    {"transformMap", 3, KL_F_MAP, true, false, true},
    {"transformMap", 4, KL_F_MAP, true, true, true},
    {"transformMapEntry", 3, KL_F_ENTRY, true, false, true},
    {"transformMapEntry", 4, KL_F_ENTRY, true, true, true},
};

static bool variables(kl__csource *s, kl__cexpr *c, const struct form *f)
{
    for (size_t i = 1; i <= (f->two ? 2u : 1u); i++)
        if (!is_name(c->arg[i])) {
            kl__cel_blame(s, c->arg[i]->at,
                f->two || f->fold <= KL_F_EXISTS_ONE ? "argument must be a simple name"
                                                     : "argument is not an identifier");
            return false;
        }
    if (f->two && !strcmp(c->arg[1]->name, c->arg[2]->name)) {
        kl__cel_blame(s, c->arg[2]->at, "duplicate variable name: %s", c->arg[1]->name);
        return false;
    }
    return true;
}

static void fold(kl__csource *s, kl__cexpr *c, const struct form *f)
{
    if (!variables(s, c, f))
        return;
    kl__cexpr **a = c->arg, *range = a[0];
    size_t next = f->two ? 3 : 2;
    c->var[0] = a[1]->name;
    c->var[1] = f->two ? a[2]->name : NULL;
    kl__cexpr *filter = f->filter ? a[next++] : NULL, *made = f->made ? a[next] : NULL;
    c->node = KL_E_FOLD;
    c->fold = f->fold;
    c->member = false;
    c->arg = kl__carena_alloc(s->a, 3 * sizeof *c->arg);
    c->arg[0] = range;
    c->arg[1] = filter;
    c->arg[2] = made;
    c->n = 3;
    c->depth = 0;
}

/* `made` with a name for the value of `what`. */
static void bind(kl__csource *s, kl__cexpr *c, kl__cfold as, kl__cexpr *const part[3])
{
    kl__cexpr *what = part[0], *made = part[2];
    c->node = KL_E_FOLD;
    c->fold = as;
    c->member = false;
    c->var[0] = part[1]->name;
    c->arg = kl__carena_alloc(s->a, 3 * sizeof *c->arg);
    c->arg[0] = what;
    c->arg[2] = made;
    c->n = 3;
    c->depth = 0;
}

/* cel.bind(name, value, expression) */
static bool is_bind(const kl__csource *s, const kl__cexpr *c)
{
    return s->binds && c->n == 4 && !strcmp(c->name, "bind") && is_name(c->arg[0])
        && !strcmp(c->arg[0]->name, "cel");
}

bool kl__cel_expand(kl__csource *s, kl__cexpr *c)
{
    if (!c->member) {
        bool is = !strcmp(c->name, "has") && c->n == 1;
        if (is)
            has(s, c);
        return is;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (c->n - 1 == forms[i].args && !strcmp(c->name, forms[i].name)) {
            fold(s, c, &forms[i]);
            return true;
        }
    /* optMap and optFlatMap: bind the present value to a name */
    if (c->n == 3 && (!strcmp(c->name, "optMap") || !strcmp(c->name, "optFlatMap"))) {
        if (!is_name(c->arg[1])) {
            kl__cel_blame(s, c->arg[1]->at, "%s() variable name must be a simple identifier", c->name);
            return true;
        }
        bind(s, c, !strcmp(c->name, "optMap") ? KL_F_OPT : KL_F_OPT_FLAT, c->arg);
        return true;
    }
    if (is_bind(s, c)) {
        if (!is_name(c->arg[1]))
            kl__cel_blame(s, c->arg[1]->at, "cel.bind() variable names must be simple identifiers");
        else
            bind(s, c, KL_F_BIND, (kl__cexpr *[]){c->arg[2], c->arg[1], c->arg[3]});
        return true;
    }
    return false;
}
