/* rbac.c - see k8s.io/kubernetes: plugin/pkg/auth/authorizer/rbac (the decision) and
 * pkg/registry/rbac/validation (which rules hold for whom). */
#include "rbac/rbac.h"

#include <string.h>

#include "base/mem.h"

static bool is(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

bool kl_rbac_in_group(const kl_value *user, const char *group)
{
    const kl_value *groups = kl_value_get(user, "groups");
    for (size_t i = 0; i < kl_value_len(groups); i++)
        if (is(kl_value_str(kl_value_item(groups, i)), group))
            return true;
    return false;
}

/* ------------------------------------------------------------------ one rule */

static bool has(const kl_value *list, const char *word)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i));
        if (s && (!strcmp(s, "*") || is(s, word)))
            return true;
    }
    return false;
}

/* "pods", "pods/log", "* /scale" and "*", which is everything. */
static bool has_resource(const kl_value *list, const char *resource, const char *sub)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i)), *slash = s ? strchr(s, '/') : NULL;
        if (!s)
            continue;
        if (!strcmp(s, "*"))
            return true;
        size_t n = slash ? (size_t)(slash - s) : strlen(s);
        bool main_fits = (n == strlen(resource) && !strncmp(s, resource, n))
            || (slash && sub && n == 1 && *s == '*');
        if (main_fits && is(slash ? slash + 1 : NULL, sub))
            return true;
    }
    return false;
}

static bool has_path(const kl_value *list, const char *path)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i));
        size_t n = s ? strlen(s) : 0;
        if (!s)
            continue;
        if (!strcmp(s, "*") || !strcmp(s, path))
            return true;
        while (n && s[n - 1] == '*')
            n--;
        if (s[n] == '*' && !strncmp(s, path, n))
            return true;
    }
    return false;
}

static bool rule_allows(const kl_value *rule, const kl_rbac_request *r)
{
    if (!has(kl_value_get(rule, "verbs"), r->verb))
        return false;
    if (r->path)
        return has_path(kl_value_get(rule, "nonResourceURLs"), r->path);
    const kl_value *names = kl_value_get(rule, "resourceNames");
    bool named = !kl_value_len(names);
    for (size_t i = 0; i < kl_value_len(names) && !named; i++)
        named = is(kl_value_str(kl_value_item(names, i)), r->name);
    return named && has(kl_value_get(rule, "apiGroups"), r->group ? r->group : "")
        && has_resource(kl_value_get(rule, "resources"), r->resource ? r->resource : "",
            r->sub && *r->sub ? r->sub : NULL);
}

/* ------------------------------------------------------------------ which rules hold */

typedef struct visit {
    const kl_rbac_source *source;
    const kl_value *user;
    const char *ns;                 /* namespace of the visited bindings; NULL: cluster bindings */
    const kl_rbac_request *request; /* the request to decide; NULL: all rules are collected */
    kl_builder *rules;              /* gets the rules, if there is no request */
    bool allowed;
    kl_buf *why;    /* may be NULL */
    kl_buf *errors; /* may be NULL; `errors_n` of them, with ", " between */
    size_t errors_n;
} visit;

static bool is_subject(const visit *v, const kl_value *subject)
{
    const char *kind = kl_value_str_at(subject, "kind", NULL), *name = kl_value_str_at(subject, "name", NULL),
               *user = kl_value_str_at(v->user, "username", NULL);
    if (is(kind, "User"))
        return is(user, name);
    if (is(kind, "Group"))
        return kl_rbac_in_group(v->user, name);
    if (!is(kind, "ServiceAccount"))
        return false;
    const char *ns = kl_value_str_at(subject, "namespace", NULL);
    ns = ns && *ns ? ns : v->ns;
    if (!ns)
        return false;
    char *full = kl_sprintf("system:serviceaccount:%s:%s", ns, name ? name : "");
    bool it = is(user, full);
    kl_free(full);
    return it;
}

static void say_allowed(const visit *v, const kl_value *binding, const kl_value *subject)
{
    const char *kind = kl_value_str_at(subject, "kind", NULL), *name = kl_value_str_at(subject, "name", NULL),
               *sns = kl_value_str_at(subject, "namespace", NULL),
               *bound = kl_value_str_at(binding, "metadata", "name", NULL);
    if (!v->why)
        return;
    kl_buf_printf(v->why, "RBAC: allowed by %s \"%s%s%s\" of %s \"%s\" to %s \"%s",
        v->ns ? "RoleBinding" : "ClusterRoleBinding", bound, v->ns ? "/" : "", v->ns ? v->ns : "",
        kl_value_str_at(binding, "roleRef", "kind", NULL), kl_value_str_at(binding, "roleRef", "name", NULL),
        kind, name);
    if (is(kind, "ServiceAccount"))
        kl_buf_printf(v->why, "/%s", sns && *sns ? sns : v->ns ? v->ns : "");
    kl_buf_putc(v->why, '"');
}

static void say_absent(visit *v, bool cluster, const char *name)
{
    if (v->errors)
        kl_buf_printf(v->errors, "%s%s." KL_RBAC_GROUP " \"%s\" not found", v->errors_n ? ", " : "",
            cluster ? "clusterrole" : "role", name ? name : "");
    v->errors_n++;
}

static void visit_binding(void *arg, const kl_value *binding)
{
    visit *v = arg;
    const kl_value *subjects = kl_value_get(binding, "subjects"), *subject = NULL;
    for (size_t i = 0; i < kl_value_len(subjects) && !subject; i++)
        if (is_subject(v, kl_value_item(subjects, i)))
            subject = kl_value_item(subjects, i);
    if (!subject || v->allowed)
        return;
    const char *name = kl_value_str_at(binding, "roleRef", "name", NULL);
    bool cluster = !v->ns || is(kl_value_str_at(binding, "roleRef", "kind", NULL), "ClusterRole");
    const kl_value *role = v->source->role(v->source->arg, cluster ? NULL : v->ns, name ? name : "");
    if (!role) {
        say_absent(v, cluster, name);
        return;
    }
    const kl_value *rules = kl_value_get(role, "rules");
    for (size_t i = 0; i < kl_value_len(rules) && !v->allowed; i++) {
        const kl_value *rule = kl_value_item(rules, i);
        if (v->rules)
            kl_build_value(v->rules, rule);
        else if (rule_allows(rule, v->request)) {
            v->allowed = true;
            say_allowed(v, binding, subject);
        }
    }
}

static void visit_all(visit *v, const char *ns)
{
    v->ns = NULL;
    v->source->bindings(v->source->arg, NULL, visit_binding, v);
    v->ns = ns && *ns ? ns : NULL;
    if (v->ns && !v->allowed)
        v->source->bindings(v->source->arg, v->ns, visit_binding, v);
}

bool kl_rbac_allows(
    const kl_rbac_source *s, const kl_value *user, const kl_rbac_request *request, kl_buf *why)
{
    if (kl_rbac_in_group(user, KL_RBAC_MASTERS))
        return true;
    kl_buf errors = KL_BUF_INIT;
    visit v = {.source = s, .user = user, .request = request, .why = why, .errors = &errors};
    visit_all(&v, request->path ? NULL : request->ns);
    if (!v.allowed && v.errors_n && why)
        kl_buf_printf(why, v.errors_n > 1 ? "RBAC: [%s]" : "RBAC: %s", kl_buf_str(&errors));
    kl_buf_fini(&errors);
    return v.allowed;
}

const kl_value *kl_rbac_rules(const kl_rbac_source *s, const kl_value *user, const char *ns, kl_buf *errors)
{
    visit v = {.source = s, .user = user, .rules = kl_builder_new(), .errors = errors};
    kl_build_array(v.rules);
    visit_all(&v, ns);
    kl_build_end(v.rules);
    return kl_builder_done(v.rules);
}

void kl_rbac_say(const kl_value *user, const kl_rbac_request *r, kl_buf *out)
{
    const char *name = kl_value_str_at(user, "username", NULL);
    kl_buf_printf(out, "User \"%s\" cannot %s ", name ? name : "", r->verb);
    if (r->path) {
        kl_buf_printf(out, "path \"%s\"", r->path);
        return;
    }
    kl_buf_printf(out, "resource \"%s%s%s\" in API group \"%s\" ", r->resource ? r->resource : "",
        r->sub && *r->sub ? "/" : "", r->sub ? r->sub : "", r->group ? r->group : "");
    if (r->ns && *r->ns)
        kl_buf_printf(out, "in the namespace \"%s\"", r->ns);
    else
        kl_buf_puts(out, "at the cluster scope");
}
