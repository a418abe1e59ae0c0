/* rights.c - the writer of a policy must be allowed to read its parameters. An unresolved kind needs the
 * right to read everything. */
#include "policy/rights.h"

#include <string.h>

#include "base/mem.h"
#include "check/check.h"

#define GROUP "admissionregistration.k8s.io"

/* A user as Go prints one; the caller frees. */
static char *shown_user(const kl_value *user)
{
    const kl_value *groups = kl_value_get(user, "groups");
    kl_buf b = KL_BUF_INIT;
    kl_buf_printf(&b, "&{%s %s [", kl__text(user, "username"), kl__text(user, "uid"));
    for (size_t i = 0; i < kl_value_len(groups); i++)
        kl_buf_printf(&b, "%s%s", i ? " " : "", kl_value_str(kl_value_item(groups, i)));
    kl_buf_puts(&b, "] map[]}");
    char *text = kl_strdup(kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* Whether the writer may read the kind of paramKind. `kind` NULL: every kind. */
static bool may_read(
    const kl_policy_asker *a, const kl_value *kind, const char *verb, const char *ns, const char *name)
{
    const char *version = kl__text(kind, "apiVersion"), *slash = strchr(version, '/');
    char *group = !kind ? kl_strdup("*")
        : slash         ? kl_strndup(version, (size_t)(slash - version))
                        : kl_strdup("");
    const kl__kind *k = kind
        ? kl__kinds_by_kind(a->kinds, group, slash ? slash + 1 : version, kl__text(kind, "kind"))
        : NULL;
    bool yes = a->may(a->arg, verb, group, k ? k->plural : "*", ns, name);
    kl_free(group);
    return yes;
}

static void check_policy(const kl_policy_asker *a, const kl__write *w)
{
    const kl_value *kind = kl_value_at(w->o, "spec", "paramKind", NULL);
    if (!kind || kl_value_equal(kl_value_at(w->old, "spec", "paramKind", NULL), kind)
        || may_read(a, kind, "get", "*", "*"))
        return;
    char *user = shown_user(a->user);
    kl__say_forbidden(w->causes, KL_IN(KL_IN(NULL, "spec"), "paramKind"),
        "user %s must have \"get\" permission on all objects of the referenced paramKind (kind=%s, "
        "apiVersion=%s)",
        user, kl__text(kind, "kind"), kl__text(kind, "apiVersion"));
    kl_free(user);
}

static void check_binding(const kl_policy_asker *a, const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *ref = kl_value_get(spec, "paramRef");
    if (!ref || kl_value_equal(kl_value_get(w->old, "spec"), spec))
        return;
    const kl__entry *e = kl__bucket_get(
        kl__store_bucket(a->store, GROUP, "validatingadmissionpolicies"), kl__text(spec, "policyName"));
    const kl_value *policy = e ? e->object : NULL, *kind = kl_value_at(policy, "spec", "paramKind", NULL);
    const char *name = kl__text(ref, "name"), *verb = *name ? "get" : "list";
    const kl__place *at = KL_IN(KL_IN(NULL, "spec"), "paramRef");
    if (may_read(a, kind, verb, kl__text(ref, "namespace"), name))
        return;
    char *user = shown_user(a->user);
    if (!policy)
        kl__say_forbidden(w->causes, at,
            "unable to get policy %s to determine minimum required permissions and user %s does not have "
            "\"%s\" permission for all groups, versions and resources",
            kl__text(spec, "policyName"), user, verb);
    else
        kl__say_forbidden(w->causes, at,
            "user %s does not have \"%s\" permission on the object referenced by paramRef", user, verb);
    kl_free(user);
}

void kl_policy_check_rights(const kl_policy_asker *a, const kl__write *w)
{
    if (kl__kind_among(w->kind, GROUP "/validatingadmissionpolicies"))
        check_policy(a, w);
    else if (kl__kind_among(w->kind, GROUP "/validatingadmissionpolicybindings"))
        check_binding(a, w);
}
