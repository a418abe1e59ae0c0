/* rights.c - RBAC: valid rules and subjects, and the immutable role of a binding. */
#include "check/forms.h"
#include "builtin/kinds.h"

#include <string.h>

#include "base/mem.h"

#define GROUP "rbac.authorization.k8s.io"

static void check_rule(kl__causes *c, const kl_value *rule, bool namespaced, const kl__place *at)
{
    const kl_value *urls = kl_value_get(rule, "nonResourceURLs");
    const kl__place *in = KL_IN(at, "nonResourceURLs");
    bool groups = kl_value_len(kl_value_get(rule, "apiGroups")),
         resources = kl_value_len(kl_value_get(rule, "resources"));
    if (!kl_value_len(kl_value_get(rule, "verbs")))
        kl__say_required(c, KL_IN(at, "verbs"), "verbs must contain at least one value");
    if (kl_value_len(urls)) {
        if (namespaced)
            kl__say_invalid(c, in, urls, "namespaced rules cannot apply to non-resource URLs");
        if (groups || resources || kl_value_len(kl_value_get(rule, "resourceNames")))
            kl__say_invalid(
                c, in, urls, "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    if (!groups)
        kl__say_required(c, KL_IN(at, "apiGroups"), "resource rules must supply at least one api group");
    if (!resources)
        kl__say_required(c, KL_IN(at, "resources"), "resource rules must supply at least one resource");
}

void kl__check_role(const kl__write *w)
{
    const kl_value *rules = kl_value_get(w->o, "rules"), *sum = kl_value_get(w->o, "aggregationRule"),
                   *selectors = kl_value_get(sum, "clusterRoleSelectors");
    const kl__place *at = KL_IN(KL_IN(NULL, "aggregationRule"), "clusterRoleSelectors");
    bool namespaced = !strcmp(w->kind->plural, "roles");
    for (size_t i = 0; i < kl_value_len(rules); i++)
        check_rule(w->causes, kl_value_item(rules, i), namespaced, KL_ITEM(KL_IN(NULL, "rules"), i));
    if (sum && !kl_value_len(selectors))
        kl__say_required(
            w->causes, at, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    for (size_t i = 0; i < kl_value_len(selectors); i++)
        kl__check_selector(w->causes, kl_value_item(selectors, i), KL_ITEM(at, i));
}

static void check_subject(kl__causes *c, const kl_value *s, bool namespaced, const kl__place *at)
{
    const kl_value *group = kl_value_get(s, "apiGroup");
    const char *kind = kl__text(s, "kind");
    kl__check_present(c, s, at, "name");
    if (!strcmp(kind, "ServiceAccount")) {
        kl__check_member(c, s, at, "name", KL_DNS_SUBDOMAIN);
        if (*kl__text(s, "apiGroup"))
            kl__say_unsupported(c, KL_IN(at, "apiGroup"), group, " ");
        if (!namespaced)
            kl__check_present(c, s, at, "namespace");
    } else if (kl__one_of(kind, "User Group")) {
        if (!kl__is(s, "apiGroup", GROUP))
            kl__say_unsupported(c, KL_IN(at, "apiGroup"), group, GROUP);
    } else
        kl__say_unsupported(c, KL_IN(at, "kind"), kl_value_get(s, "kind"), "ServiceAccount User Group");
}

static void check_kept(const kl__write *w, const kl_value *ref)
{
    static const char *const members[][2] = {{"APIGroup", "apiGroup"}, {"Kind", "kind"}, {"Name", "name"}};
    if (!w->old || kl_value_equal(kl_value_get(w->old, "roleRef"), ref))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < 3; i++)
        kl_build_kstr(b, members[i][0], kl__text(ref, members[i][1]));
    kl_build_end(b);
    const kl_value *shown = kl_builder_done(b);
    kl__say_invalid(w->causes, KL_IN(NULL, "roleRef"), shown, "cannot change roleRef");
    kl_value_unref(shown);
}

void kl__check_binding(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *ref = kl_value_get(w->o, "roleRef"), *subjects = kl_value_get(w->o, "subjects");
    const kl__place *at = KL_IN(NULL, "roleRef");
    bool namespaced = !strcmp(w->kind->plural, "rolebindings");
    const char *kinds = namespaced ? "Role ClusterRole" : "ClusterRole";
    if (!kl__is(ref, "apiGroup", GROUP))
        kl__say_unsupported(c, KL_IN(at, "apiGroup"), kl_value_get(ref, "apiGroup"), GROUP);
    if (!kl__one_of(kl__text(ref, "kind"), kinds))
        kl__say_unsupported(c, KL_IN(at, "kind"), kl_value_get(ref, "kind"), kinds);
    kl__check_present(c, ref, at, "name");
    kl__check_member(c, ref, at, "name", KL_PATH_SEGMENT);
    for (size_t i = 0; i < kl_value_len(subjects); i++)
        check_subject(c, kl_value_item(subjects, i), namespaced, KL_ITEM(KL_IN(NULL, "subjects"), i));
    check_kept(w, ref);
}
