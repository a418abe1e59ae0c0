/* selector.c - CEL expressions that select devices (k8s.io/dynamic-resource-allocation/cel): their variable
 * `device`, and the limit of their cost. */
#include <string.h>

#include "base/err.h"
#include "cel/types.h"
#include "devices/parts.h"

#define SELECTORS_MAX 32
#define EXPRESSION_MAX (10 * 1024)
#define DOMAIN_MAX 63
#define ID_MAX 32
#define TEXT_MAX 64
#define FACTS_MAX 32
#define ANY "any"

static kl__ctype *sized(kl__carena *a, kl__ckind kind, uint64_t max)
{
    kl__ctype *t = KL__CNEW(a, kl__ctype);
    *t = kl__cbasic[kind];
    t->max = max;
    return t;
}

static const kl__ctype *map(kl__carena *a, uint64_t key, const kl__ctype *value)
{
    kl__ctype *t = sized(a, KL_C_MAP, FACTS_MAX);
    t->p[0] = sized(a, KL_C_STRING, key);
    t->p[1] = value;
    return t;
}

/* Attributes and capacities are maps by domain of maps by id. */
static const kl__ctype *device_type(kl__carena *a)
{
    kl__ctype *t = sized(a, KL_C_OBJECT, 0);
    kl__cfield *f = kl__carena_alloc(a, 3 * sizeof *f);
    kl__ctype *attribute = sized(a, KL_C_DYN, TEXT_MAX);
    attribute->name = ANY;
    f[0] = (kl__cfield){"driver", "driver", sized(a, KL_C_STRING, DOMAIN_MAX)};
    f[1] = (kl__cfield){"attributes", "attributes", map(a, DOMAIN_MAX, map(a, ID_MAX, attribute))};
    f[2] = (kl__cfield){
        "capacity", "capacity", map(a, DOMAIN_MAX, map(a, ID_MAX, &kl__cbasic[KL_C_QUANTITY]))};
    t->name = "kubernetes.DRADevice";
    t->fields = f;
    t->nfields = 3;
    return t;
}

/* A type under its full name, unlike kl__ctype_print. */
static void put_type(const kl__ctype *t, kl_buf *out)
{
    kl_buf_puts(out, strcmp(t->name, ANY) ? t->name : "google.protobuf.Any");
    for (size_t i = 0; i < 2 && t->p[i]; i++) {
        kl_buf_puts(out, i ? ", " : "(");
        put_type(t->p[i], out);
    }
    kl_buf_puts(out, t->p[0] ? ")" : "");
}

static void check_expression(
    kl__causes *c, const kl_cel_env *env, const kl__ctype *device, const char *text, const kl__place *at)
{
    kl_cel *p = NULL;
    kl_err err = KL_ERR_INIT;
    if (strlen(text) > EXPRESSION_MAX)
        kl__say_too_long(c, at, EXPRESSION_MAX);
    else if (kl_cel_compile(env, text, &p, &err) == KL_EREJECTED)
        kl__say_internal(c, at, kl_err_message(&err));
    else if (!p)
        kl__say_invalid_text(c, at, text, "%s", kl_err_message(&err));
    else if (kl_cel_type_of(p)->kind != KL_C_BOOL && kl_cel_type_of(p)->kind != KL_C_DYN) {
        kl_buf type = KL_BUF_INIT;
        put_type(kl_cel_type_of(p), &type);
        kl__say_invalid_text(
            c, at, text, "must evaluate to bool or the unknown type, not %s", kl_buf_str(&type));
        kl_buf_fini(&type);
    } else if (kl_cel_estimate(p, device) > KL_CEL_CALL_COST)
        kl__say_forbidden(c, at, "too complex, exceeds cost limit");
    kl_cel_free(p);
    kl_err_fini(&err);
}

void kl__check_device_selectors(kl__causes *c, const kl_value *list, const kl__place *at)
{
    if (!kl_value_len(list))
        return;
    kl_cel_env *env = kl_cel_env_new();
    const kl__ctype *device = device_type(kl__cel_env_arena(env));
    kl_cel_env_var(env, "device", device);
    kl_cel_env_bind(env);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *cel = kl_value_get(kl_value_item(list, i), "cel");
        const kl__place *in = KL_IN(KL_ITEM(at, i), "cel");
        if (cel)
            check_expression(c, env, device, kl__text(cel, "expression"), KL_IN(in, "expression"));
        else
            kl__say_required(c, in, "");
    }
    kl_cel_env_free(env);
    if (kl_value_len(list) > SELECTORS_MAX)
        kl__say_too_many(c, at, kl_value_len(list), SELECTORS_MAX);
}
