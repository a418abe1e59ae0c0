/* admission.c - see apiserver/pkg/admission/plugin: cel/compile.go has the variables,
 * webhook/matchconditions what is made of the answers. */
#include "cel/admission.h"

#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"
#include "cel/rules_impl.h"
#include "model/names.h"

#define CONDITIONS_MAX 64

enum { OBJECT, OLD_OBJECT, REQUEST, NAMESPACE, AUTHORIZER, REQUEST_RESOURCE, VARIABLES };

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

static kl_cel_env *environment(void)
{
    kl_cel_env *env = kl_cel_env_new();
    kl_cel_env_var(env, "object", kl_cel_type_dyn());
    kl_cel_env_var(env, "oldObject", kl_cel_type_dyn());
    kl_cel_env_var(env, "request", request_type(&env->a));
    kl_cel_env_var(env, "namespaceObject", kl_cel_type_dyn());
    kl_cel_env_var(env, "authorizer", &kl__cbasic[KL_C_AUTHORIZER]);
    kl_cel_env_var(env, "authorizer.requestResource", &kl__cbasic[KL_C_RESOURCE_CHECK]);
    return env;
}

/* A condition compiled; NULL and why not, which the caller frees. */
static kl_cel *compile(const kl_cel_env *env, const char *text, char **why)
{
    kl_err err = KL_ERR_INIT;
    kl_cel *p = NULL;
    if (kl_cel_compile(env, text, &p, &err))
        *why = kl_sprintf("compilation failed: %s", kl_err_message(&err));
    else if (kl_cel_type_of(p)->kind != KL_C_BOOL) {
        kl_buf b = KL_BUF_INIT;
        kl__ctype_print(kl_cel_type_of(p), &b);
        *why = kl_sprintf("must evaluate to bool but got %s", kl_buf_str(&b));
        kl_buf_fini(&b);
        kl_cel_free(p);
        p = NULL;
    }
    kl_err_fini(&err);
    return p;
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

void kl_cel_conditions_validate(const kl_value *list, const char *path, kl_cel_complain *complain, void *arg)
{
    teller t = {complain, arg, path};
    kl_cel_env *env = environment();
    if (kl_value_len(list) > CONDITIONS_MAX) {
        char *text = kl_sprintf(
            "Too many: %zu: must have at most %d items", kl_value_len(list), CONDITIONS_MAX);
        complain(arg, false, "FieldValueTooMany", path, text);
        kl_free(text);
    }
    for (size_t i = 0; i < kl_value_len(list) && i < CONDITIONS_MAX; i++) {
        const char *expression = kl_value_str_at(kl_value_item(list, i), "expression", NULL);
        char *text = kl__crule_trimmed(expression ? expression : ""), *why = NULL;
        if (!*text)
            tell(&t, "FieldValueRequired", i, "expression", "Required value");
        else
            kl_cel_free(compile(env, text, &why));
        if (why) {
            const kl_value *v = kl_value_of_str(text);
            char *shown = kl_value_to_json(v);
            tell(&t, "FieldValueInvalid", i, "expression", "Invalid value: %s: %s", shown, why);
            kl_free(shown);
            kl_value_unref(v);
        }
        kl_free(why);
        kl_free(text);
        check_name(&t, list, i);
    }
    kl_cel_env_free(env);
}

/* ---------------------------------------------------------------- a request */

/* What is asked of the authorizer is about the resource of the request. */
static const kl_value *resource_of(const kl_value *request)
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

typedef struct trial {
    kl_cel_run run;
    uint64_t left; /* of the budget of all */
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

/* One condition; false: it says no, and nobody else is asked. */
static bool holds(trial *t, const kl_cel_env *env, const char *expression)
{
    char *why = NULL;
    kl_cel *p = compile(env, expression, &why);
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_EINVAL;
    if (!p)
        fail(t, "compilation error: %s", why);
    else {
        st = kl_cel_eval(p, &t->run, &v, &err);
        bool spent = t->run.cost > t->left;
        t->left -= spent ? t->left : t->run.cost;
        if (spent)
            fail(t,
                "validation failed due to running out of cost budget, no further validation rules will be "
                "run");
        else if (st)
            fail(t, "expression '%s' resulted in error: %s", expression, kl_err_message(&err));
    }
    bool no = !st && !kl_value_bool(v, true);
    kl_value_unref(v);
    kl_err_fini(&err);
    kl_cel_free(p);
    kl_free(why);
    return !no;
}

kl_status kl_cel_conditions_match(const kl_value *list, const kl_value *request, kl_cel_authorize *authorize,
    void *arg, bool *matches, kl_err *err)
{
    *matches = true;
    if (!kl_value_len(list))
        return KL_OK;
    kl_cel_env *env = environment();
    const kl_value *null = kl_value_null(), *resource = resource_of(request),
                   *object = kl_value_get(request, "object"), *old = kl_value_get(request, "oldObject");
    kl_cel_var vars[VARIABLES] = {[OBJECT] = {KL_CEL_VALUE, object ? object : null},
        [OLD_OBJECT] = {KL_CEL_VALUE, old ? old : null},
        [REQUEST] = {KL_CEL_VALUE, request},
        [NAMESPACE] = {KL_CEL_VALUE, null},
        [AUTHORIZER] = {KL_CEL_VALUE, null},
        [REQUEST_RESOURCE] = {KL_CEL_VALUE, resource}};
    trial t = {.left = KL_CEL_MATCH_COST,
        .run = {.vars = vars, .limit = KL_CEL_CALL_COST, .authorize = authorize, .authorize_arg = arg}};
    for (size_t i = 0; i < kl_value_len(list) && *matches; i++) {
        const char *expression = kl_value_str_at(kl_value_item(list, i), "expression", NULL);
        *matches = holds(&t, env, expression ? expression : "");
    }
    kl_status st = KL_OK;
    if (*matches && t.nfailures)
        st = kl_fail(err, KL_EINVAL, "%s%s%s", t.nfailures > 1 ? "[" : "", kl_buf_str(&t.failures),
            t.nfailures > 1 ? "]" : "");
    kl_buf_fini(&t.failures);
    kl_value_unref(resource);
    kl_value_unref(null);
    kl_cel_env_free(env);
    return st;
}
