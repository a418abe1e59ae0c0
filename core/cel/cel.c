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

void kl_cel_env_free(kl_cel_env *env)
{
    if (!env)
        return;
    kl__carena_fini(&env->a);
    kl_free(env->var);
    kl_free(env->def);
    kl_free(env);
}

size_t kl_cel_env_var(kl_cel_env *env, const char *name, const kl_cel_type *type)
{
    env->var = kl_realloc(env->var, (env->nvars + 1) * sizeof *env->var);
    env->var[env->nvars].name = kl__carena_text(&env->a, name, strlen(name));
    env->var[env->nvars].type = type;
    return env->nvars++;
}

/* What others know of a variable's type: of Kubernetes' own types nothing. */
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

void kl_cel_env_define(kl_cel_env *env, const char *name, const kl_cel *program)
{
    if (env->defs < 0)
        env->defs = (int)kl_cel_env_var(env, "variables", NULL);
    env->def = kl_realloc(env->def, (env->ndefs + 1) * sizeof *env->def);
    env->def[env->ndefs].name = kl__carena_text(&env->a, name, strlen(name));
    env->def[env->ndefs++].program = program;
    /* a new type each time: programs made before keep theirs */
    kl__ctype *t = KL__CNEW(&env->a, kl__ctype);
    kl__cfield *f = kl__carena_alloc(&env->a, env->ndefs * sizeof *f);
    for (size_t i = 0; i < env->ndefs; i++) {
        const kl_cel *p = env->def[i].program;
        f[i] = (kl__cfield){env->def[i].name, env->def[i].name,
            p ? variable_type(&env->a, p->e->type) : &kl__cbasic[KL_C_DYN]};
    }
    *t = (kl__ctype){.kind = KL_C_OBJECT,
        .name = "kubernetes.variables",
        .fields = f,
        .nfields = env->ndefs,
        .max = UINT64_MAX};
    env->var[env->defs].type = t;
}

kl_status kl_cel_compile(const kl_cel_env *env, const char *text, kl_cel **out, kl_err *err)
{
    kl_cel *p = kl_new(kl_cel);
    size_t n = strlen(text);
    p->env = env;
    p->nvars = env->nvars;
    p->used = kl__carena_alloc(&p->a, env->nvars + 1);
    kl__csource s = {.a = &p->a, .text = kl__carena_text(&p->a, text, n), .n = n};
    p->e = kl__cel_parse(&s);
    if (p->e)
        kl__cel_check(&s, env, p->e, p->used, &p->locals);
    if (!s.nissues) {
        *out = p;
        return KL_OK;
    }
    kl_buf b = KL_BUF_INIT;
    kl__cel_issues(&s, &b);
    kl_status st = kl_fail(err, KL_EINVAL, "%s", kl_buf_str(&b));
    kl_buf_fini(&b);
    kl_cel_free(p);
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
