/* cel.c - environments and programs. */
#include "cel/cel.h"

#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"

kl_cel_env *kl_cel_env_new(void)
{
    kl_cel_env *env = kl_new(kl_cel_env);
    env->defs = -1;
    return env;
}

kl__carena *kl__cel_env_arena(kl_cel_env *env) { return &env->a; }

void kl_cel_env_free(kl_cel_env *env)
{
    if (!env)
        return;
    kl__carena_fini(&env->a);
    kl_free(env->var);
    kl_free(env->def);
    kl_free(env->field);
    kl_free(env);
}

size_t kl_cel_env_var(kl_cel_env *env, const char *name, const kl_cel_type *type)
{
    env->var = kl_realloc(env->var, (env->nvars + 1) * sizeof *env->var);
    env->var[env->nvars].name = kl__carena_text(&env->a, name, strlen(name));
    env->var[env->nvars].type = type;
    return env->nvars++;
}

/* The type of a variable that other expressions see; Kubernetes' own types are hidden. */
static const kl__ctype *variable_type(kl__carena *a, const kl__ctype *t)
{
    switch (t->kind) {
    case KL_C_NULL:
    case KL_C_BOOL:
    case KL_C_INT:
    case KL_C_UINT:
    case KL_C_DOUBLE:
    case KL_C_STRING:
    case KL_C_BYTES:
    case KL_C_TIME:
    case KL_C_DURATION: return &kl__cbasic[t->kind];
    case KL_C_LIST: return t->p[0] ? kl__ctype_list(a, variable_type(a, t->p[0])) : t;
    case KL_C_MAP:
        return t->p[1] ? kl__ctype_map(a, variable_type(a, t->p[0]), variable_type(a, t->p[1])) : t;
    default: return &kl__cbasic[KL_C_DYN];
    }
}

/* The levels of the variable `variables.name`; name NULL: the most levels of any variable. */
static size_t levels_of(const kl_cel_env *env, const char *name)
{
    size_t most = 0;
    for (size_t i = 0; i < env->ndefs; i++)
        if ((!name || !strcmp(env->def[i].name, name)) && env->def[i].levels > most)
            most = env->def[i].levels;
    return most;
}

/* The levels of the deepest variable that an expression uses. */
static size_t levels_below(const kl_cel_env *env, const kl__cexpr *x)
{
    size_t most = 0;
    if (x->node == KL_E_IDENT)
        return x->slot == ~env->defs ? levels_of(env, NULL) : 0;
    if (x->node == KL_E_SELECT && x->arg[0]->node == KL_E_IDENT && x->arg[0]->slot == ~env->defs)
        return levels_of(env, x->name);
    for (size_t i = 0; i < x->n; i++) {
        size_t n = x->arg[i] ? levels_below(env, x->arg[i]) : 0;
        most = n > most ? n : most;
    }
    return most;
}

bool kl_cel_env_define(kl_cel_env *env, const char *name, const kl_cel *program)
{
    if (env->defs < 0) {
        kl__ctype *t = KL__CNEW(&env->a, kl__ctype);
        *t = (kl__ctype){.kind = KL_C_OBJECT, .name = "kubernetes.variables", .max = UINT64_MAX};
        env->defs = (int)kl_cel_env_var(env, "variables", t);
    }
    if (env->ndefs == env->cdefs) {
        env->cdefs = env->cdefs ? 2 * env->cdefs : 8;
        env->def = kl_realloc(env->def, env->cdefs * sizeof *env->def);
        env->field = kl_realloc(env->field, env->cdefs * sizeof *env->field);
    }
    size_t levels = program ? program->e->depth + 1 + levels_below(env, program->e) : 0;
    bool fits = levels <= KL_CEL_LEVELS_MAX;
    struct kl__cdef *d = &env->def[env->ndefs];
    *d = (struct kl__cdef){
        kl__carena_text(&env->a, name, strlen(name)), fits ? program : NULL, fits ? levels : 0};
    env->field[env->ndefs++] = (kl__cfield){
        d->name, d->name, d->program ? variable_type(&env->a, d->program->e->type) : &kl__cbasic[KL_C_DYN]};
    kl__ctype *t = (kl__ctype *)env->var[env->defs].type;
    t->fields = env->field;
    t->nfields = env->ndefs;
    return fits;
}

void kl_cel_env_bind(kl_cel_env *env) { env->binds = true; }

kl_status kl_cel_compile(const kl_cel_env *env, const char *text, kl_cel **out, kl_err *err)
{
    kl_cel *p = kl_new(kl_cel);
    kl_status st = KL_OK;
    size_t n = strlen(text);
    p->env = env;
    p->nvars = env->nvars;
    p->used = kl__carena_alloc(&p->a, env->nvars + 1);
    kl__csource s = {.a = &p->a, .text = kl__carena_text(&p->a, text, n), .n = n, .binds = env->binds};
    p->e = kl__cel_parse(&s);
    if (p->e)
        kl__cel_check(&s, env, p->e, p->used, &p->locals);
    if (s.nissues) {
        kl_buf b = KL_BUF_INIT;
        kl__cel_issues(&s, &b);
        st = kl_fail(err, KL_EINVAL, "compilation failed: %s", kl_buf_str(&b));
        kl_buf_fini(&b);
    } else {
        char *why = kl__cel_fold(env, p->e);
        if (why)
            st = kl_fail(err, KL_EREJECTED, "program instantiation failed: %s", why);
        kl_free(why);
    }
    if (st)
        kl_cel_free(p);
    else
        *out = p;
    return st;
}

void kl_cel_free(kl_cel *p)
{
    if (!p)
        return;
    kl__carena_fini(&p->a);
    kl_free(p);
}

const kl_cel_type *kl_cel_type_of(const kl_cel *p) { return p->e->type; }

bool kl_cel_uses(const kl_cel *p, const char *variable)
{
    for (size_t i = 0; i < p->nvars; i++)
        if (p->used[i] && !strcmp(p->env->var[i].name, variable))
            return true;
    return false;
}
