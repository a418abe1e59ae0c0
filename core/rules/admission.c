/* admission.c - see apiserver/pkg/admission/plugin: cel/compile.go has the variables,
 * webhook/matchconditions what is made of the answers. */
#include "rules/admission.h"

#include <string.h>

#include "base/mem.h"
#include "cel/types.h"
#include "rules/rules_impl.h"
#include "model/names.h"

#define CONDITIONS_MAX 64

/* "name:s other:s" as an object type. */
static kl__ctype *type(kl__carena *a, const char *name, const char *fields)
{
    kl__ctype *t = KL__CNEW(a, kl__ctype);
    kl__cfield *f = kl__carena_alloc(a, 16 * sizeof *f);
    *t = (kl__ctype){.kind = KL_C_OBJECT, .name = name, .fields = f, .max = UINT64_MAX, .min = 2};
    for (const char *p = fields; *p;) {
        size_t n = strcspn(p, " ");
        f[t->nfields].name = f[t->nfields].key = kl__carena_text(a, p, n);
        f[t->nfields++].type = &kl__cbasic[KL_C_STRING];
        p += n + (p[n] == ' ');
    }
    return t;
}

static void field(kl__ctype *t, const char *name, const kl__ctype *of)
{
    kl__cfield *f = (kl__cfield *)t->fields;
    f[t->nfields++] = (kl__cfield){.name = name, .key = name, .type = of};
}

static const kl__ctype *request_type(kl__carena *a)
{
    const kl__ctype *texts = kl__ctype_list(a, &kl__cbasic[KL_C_STRING]),
                    *kind = type(a, "kubernetes.GroupVersionKind", "group version kind"),
                    *resource = type(a, "kubernetes.GroupVersionResource", "group version resource");
    kl__ctype *user = type(a, "kubernetes.UserInfo", "username uid"),
              *t = type(a, "kubernetes.AdmissionRequest",
                  "subResource requestSubResource name namespace operation");
    field(user, "groups", texts);
    field(user, "extra", kl__ctype_map(a, &kl__cbasic[KL_C_STRING], texts));
    field(t, "kind", kind);
    field(t, "resource", resource);
    field(t, "requestKind", kind);
    field(t, "requestResource", resource);
    field(t, "userInfo", user);
    field(t, "dryRun", &kl__cbasic[KL_C_BOOL]);
    field(t, "options", &kl__cbasic[KL_C_DYN]);
    return t;
}

/* The type that apiserver/pkg/admission/plugin/cel declares, with `UID` for `uid`. At run time the fields are
 * those of the JSON. */
static const kl__ctype *namespace_type(kl__carena *a)
{
    const kl__ctype *text = &kl__cbasic[KL_C_STRING], *time = &kl__cbasic[KL_C_TIME],
                    *texts = kl__ctype_list(a, text), *map = kl__ctype_map(a, text, text);
    kl__ctype *t = type(a, "kubernetes.Namespace", ""), *spec = type(a, "kubernetes.NamespaceSpec", ""),
              *status = type(a, "kubernetes.NamespaceStatus", "phase"),
              *condition = type(a, "kubernetes.NamespaceCondition", "status type message reason"),
              *metadata = type(
                  a, "kubernetes.NamespaceMetadata", "name generateName namespace UID resourceVersion");
    field(condition, "lastTransitionTime", time);
    field(status, "conditions", kl__ctype_list(a, condition));
    field(spec, "finalizers", texts);
    field(metadata, "labels", map);
    field(metadata, "annotations", map);
    field(metadata, "finalizers", texts);
    field(metadata, "creationTimestamp", time);
    field(metadata, "deletionTimestamp", time);
    field(metadata, "deletionGracePeriodSeconds", &kl__cbasic[KL_C_INT]);
    field(metadata, "generation", &kl__cbasic[KL_C_INT]);
    field(t, "metadata", metadata);
    field(t, "spec", spec);
    field(t, "status", status);
    return t;
}

/* Programs share `variables`, so all environments have the same places. A place without a name cannot be
 * used. */
kl_cel_env *kl_cel_request_env(bool params, bool authorizer)
{
    kl_cel_env *env = kl_cel_env_new();
    kl_cel_env_var(env, "object", kl_cel_type_dyn());
    kl_cel_env_var(env, "oldObject", kl_cel_type_dyn());
    kl_cel_env_var(env, "request", request_type(kl__cel_env_arena(env)));
    kl_cel_env_var(env, "namespaceObject", namespace_type(kl__cel_env_arena(env)));
    kl_cel_env_var(env, authorizer ? "authorizer" : "", &kl__cbasic[KL_C_AUTHORIZER]);
    kl_cel_env_var(env, authorizer ? "authorizer.requestResource" : "", &kl__cbasic[KL_C_RESOURCE_CHECK]);
    kl_cel_env_var(env, params ? "params" : "", kl_cel_type_dyn());
    return env;
}

void kl_cel_request_vars(const kl_value *request, const kl_value *resource, const kl_value *ns,
    const kl_value *params, kl_cel_var vars[KL_CEL_REQUEST_VARS])
{
    const kl_value *object = kl_value_get(request, "object"), *old = kl_value_get(request, "oldObject");
    vars[KL_CEL_OBJECT] = (kl_cel_var){KL_CEL_VALUE, object};
    vars[KL_CEL_OLD_OBJECT] = (kl_cel_var){KL_CEL_VALUE, old};
    vars[KL_CEL_REQUEST] = (kl_cel_var){KL_CEL_VALUE, request};
    vars[KL_CEL_NAMESPACE] = (kl_cel_var){KL_CEL_VALUE, ns};
    vars[KL_CEL_AUTHORIZER] = (kl_cel_var){KL_CEL_VALUE, NULL};
    vars[KL_CEL_REQUEST_RESOURCE] = (kl_cel_var){KL_CEL_VALUE, resource};
    vars[KL_CEL_PARAMS] = (kl_cel_var){KL_CEL_VALUE, params};
    vars[KL_CEL_VARIABLES] = (kl_cel_var){KL_CEL_ABSENT, NULL};
}

static bool comes_to(const kl__ctype *t, kl_cel_returns returns)
{
    switch (returns) {
    case KL_CEL_RETURNS_ANY: return true;
    case KL_CEL_RETURNS_BOOL: return t->kind == KL_C_BOOL;
    case KL_CEL_RETURNS_STRING: return t->kind == KL_C_STRING;
    case KL_CEL_RETURNS_STRING_OR_NULL: return t->kind == KL_C_STRING || t->kind == KL_C_NULL;
    }
    return false;
}

kl_cel *kl_cel_request_compile(const kl_cel_env *env, const char *text, kl_cel_returns returns, kl_err *why)
{
    static const char *const wanted[] = {"", "bool", "string", "one of [string null_type]"};
    kl_cel *p = NULL;
    if (kl_cel_compile(env, text, &p, why) || comes_to(kl_cel_type_of(p), returns))
        return p;
    kl_buf b = KL_BUF_INIT;
    kl__ctype_print(kl_cel_type_of(p), &b);
    kl_fail(why, KL_EINVAL, "must evaluate to %s but got %s", wanted[returns], kl_buf_str(&b));
    kl_buf_fini(&b);
    kl_cel_free(p);
    return NULL;
}

/* ---------------------------------------------------------------- conditions as they are written */

typedef struct teller {
    kl_cel_complain *complain;
    void *arg;
    const char *path;
} teller;

static void KL_PRINTF(5, 6)
    tell(const teller *t, const char *reason, size_t i, const char *part, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap), *at = kl_sprintf("%s[%zu].%s", t->path, i, part);
    va_end(ap);
    t->complain(t->arg, false, reason, at, text);
    kl_free(at);
    kl_free(text);
}

static bool repeated(const kl_value *list, size_t i, const char *name)
{
    for (size_t k = 0; k < i; k++) {
        const char *other = kl_value_str_at(kl_value_item(list, k), "name", NULL);
        if (other && !strcmp(other, name))
            return true;
    }
    return false;
}

static void check_name(const teller *t, const kl_value *list, size_t i)
{
    const char *name = kl_value_str_at(kl_value_item(list, i), "name", NULL);
    if (!name || !*name)
        tell(t, "FieldValueRequired", i, "name", "Required value");
    else if (kl_name_qualified(name))
        tell(t, "FieldValueInvalid", i, "name",
            "Invalid value: \"%s\": name part must consist of alphanumeric characters, '-', '_' or '.', and "
            "must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            name);
    if (name && *name && repeated(list, i, name))
        tell(t, "FieldValueDuplicate", i, "name", "Duplicate value: \"%s\"", name);
}

void kl_cel_conditions_validate(
    const kl_cel_env *env, const kl_value *list, const char *path, kl_cel_complain *complain, void *arg)
{
    teller t = {complain, arg, path};
    if (kl_value_len(list) > CONDITIONS_MAX) {
        char *text = kl_sprintf(
            "Too many: %zu: must have at most %d items", kl_value_len(list), CONDITIONS_MAX);
        complain(arg, false, "FieldValueTooMany", path, text);
        kl_free(text);
    }
    for (size_t i = 0; i < kl_value_len(list) && i < CONDITIONS_MAX; i++) {
        const char *expression = kl_value_str_at(kl_value_item(list, i), "expression", NULL);
        char *text = kl_cel_trimmed(expression ? expression : "");
        kl_err why = KL_ERR_INIT;
        if (!*text)
            tell(&t, "FieldValueRequired", i, "expression", "Required value");
        else
            kl_cel_free(kl_cel_request_compile(env, text, KL_CEL_RETURNS_BOOL, &why));
        if (why.status == KL_EREJECTED)
            tell(&t, "InternalError", i, "expression", "Internal error: %s", kl_err_message(&why));
        else if (why.status) {
            const kl_value *v = kl_value_of_str(text);
            char *shown = kl_value_to_json(v);
            tell(&t, "FieldValueInvalid", i, "expression", "Invalid value: %s: %s", shown,
                kl_err_message(&why));
            kl_free(shown);
            kl_value_unref(v);
        }
        kl_err_fini(&why);
        kl_free(text);
        check_name(&t, list, i);
    }
}

/* ---------------------------------------------------------------- a request */

const kl_value *kl_cel_request_resource(const kl_value *request)
{
    const kl_value *r = kl_value_get(request, "requestResource");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kvalue(b, "group", kl_value_get(r, "group"));
    kl_build_kvalue(b, "resource", kl_value_get(r, "resource"));
    kl_build_kvalue(b, "subresource", kl_value_get(request, "requestSubResource"));
    kl_build_kvalue(b, "namespace", kl_value_get(request, "namespace"));
    kl_build_kvalue(b, "name", kl_value_get(request, "name"));
    kl_build_end(b);
    return kl_builder_done(b);
}

struct kl_cel_conditions {
    size_t n;
    struct kl__condition {
        const char *text;
        kl_cel *program;
        kl_err why; /* why it does not compile */
    } v[];
};

kl_cel_conditions *kl_cel_conditions_new(const kl_cel_env *env, const kl_value *list)
{
    size_t n = kl_value_len(list);
    kl_cel_conditions *c = kl_zalloc(sizeof *c + n * sizeof *c->v);
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        const char *text = kl_value_str_at(kl_value_item(list, i), "expression", NULL);
        c->v[i].text = text ? text : "";
        c->v[i].program = kl_cel_request_compile(env, c->v[i].text, KL_CEL_RETURNS_BOOL, &c->v[i].why);
    }
    return c;
}

void kl_cel_conditions_free(kl_cel_conditions *c)
{
    for (size_t i = 0; c && i < c->n; i++) {
        kl_cel_free(c->v[i].program);
        kl_err_fini(&c->v[i].why);
    }
    kl_free(c);
}

typedef struct trial {
    kl_cel_run *run;
    uint64_t left; /* left of the budget of all conditions */
    bool spent;    /* the budget is spent: nothing else is evaluated or reported */
    kl_buf failures;
    size_t nfailures;
} trial;

static void KL_PRINTF(2, 3) fail(trial *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf_printf(&t->failures, "%s%s", t->nfailures++ ? ", " : "", text);
    kl_free(text);
}

/* Evaluates one condition. False: it does not hold, and no other is evaluated. */
static bool holds(trial *t, const struct kl__condition *c)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    if (!c->program) {
        fail(t, "compilation error: %s", kl_err_message(&c->why));
        return true;
    }
    kl_status st = kl_cel_eval(c->program, t->run, &v, &err);
    uint64_t cost = t->run->cost + t->run->variables_cost;
    t->spent = cost > t->left;
    t->left -= t->spent ? t->left : cost;
    if (t->spent) {
        kl_buf_clear(&t->failures);
        t->nfailures = 0;
        fail(t, KL_CEL_SPENT);
    } else if (st)
        fail(t, "expression '%s' resulted in error: %s", c->text, kl_err_message(&err));
    bool no = !t->spent && !st && !kl_value_bool(v, true);
    kl_value_unref(v);
    kl_err_fini(&err);
    return !no;
}

kl_status kl_cel_conditions_match(const kl_cel_conditions *c, kl_cel_run *run, bool *matches, kl_err *err)
{
    *matches = true;
    trial t = {.left = KL_CEL_MATCH_COST, .run = run};
    run->limit = KL_CEL_CALL_COST;
    for (size_t i = 0; i < c->n && *matches && !t.spent; i++)
        *matches = holds(&t, &c->v[i]);
    kl_status st = KL_OK;
    if (*matches && t.nfailures)
        st = kl_fail(err, KL_EINVAL, "%s%s%s", t.nfailures > 1 ? "[" : "", kl_buf_str(&t.failures),
            t.nfailures > 1 ? "]" : "");
    kl_buf_fini(&t.failures);
    return st;
}
