/* match.c - see apiserver/pkg/admission/plugin/webhook/predicates. */
#include "policy/match.h"

#include <string.h>

#include "model/selector.h"
#include "store/store.h"

static bool has_word(const kl_value *list, const char *word, bool any)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i));
        if (s && ((any && !strcmp(s, "*")) || !strcmp(s, word)))
            return true;
    }
    return false;
}

/* "pods", "pods/status", "pods/ *", "* /status" and "*", which is every resource without its subresources. */
static bool has_resource(const kl_value *list, const char *plural, const char *sub)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i)), *slash = s ? strchr(s, '/') : NULL;
        if (!s)
            continue;
        size_t n = slash ? (size_t)(slash - s) : strlen(s);
        bool main_fits = (n == 1 && *s == '*') || (n == strlen(plural) && !strncmp(s, plural, n));
        bool sub_fits = slash ? !strcmp(slash + 1, "*") || (sub && !strcmp(slash + 1, sub)) : !sub;
        if (main_fits && sub_fits)
            return true;
    }
    return false;
}

static bool rule_fits(const kl_match *m, const kl_value *rule, const char *version)
{
    const char *scope = kl_value_str_at(rule, "scope", NULL);
    const kl_value *names = kl_value_get(rule, "resourceNames");
    bool cluster = !m->kind->namespaced;
    if (scope && ((!strcmp(scope, "Namespaced") && cluster) || (!strcmp(scope, "Cluster") && !cluster)))
        return false;
    return has_word(kl_value_get(rule, "operations"), m->operation, true)
        && has_word(kl_value_get(rule, "apiGroups"), m->kind->group, true)
        && has_word(kl_value_get(rule, "apiVersions"), version, true)
        && has_resource(kl_value_get(rule, "resources"), m->kind->plural, m->sub)
        && (!kl_value_len(names) || has_word(names, m->name ? m->name : "", false));
}

static bool rules_fit(const kl_match *m, const kl_value *rules, const char *version)
{
    for (size_t i = 0; i < kl_value_len(rules); i++)
        if (rule_fits(m, kl_value_item(rules, i), version))
            return true;
    return false;
}

const kl__kind *kl_match_kind(const kl_match *m, const kl_value *rules, const char *policy)
{
    if (rules_fit(m, rules, m->kind->version))
        return m->kind;
    if (policy && !strcmp(policy, "Exact"))
        return NULL;
    for (size_t k = 0; k < kl__kinds_len(m->kinds); k++) {
        const kl__kind *other = kl__kinds_at(m->kinds, k);
        if (other != m->kind && other->bucket == m->kind->bucket && !strcmp(other->group, m->kind->group)
            && rules_fit(m, rules, other->version))
            return other;
    }
    return NULL;
}

bool kl_match_labels(const kl_value *selector, const kl_value *labels)
{
    kl_selector *s = NULL;
    if (!kl_value_len(selector))
        return true;
    if (kl_selector_from_struct(selector, &s, NULL))
        return false;
    bool yes = kl_selector_matches(s, labels);
    kl_selector_free(s);
    return yes;
}

bool kl_match_own(const kl_match *m) { return kl__kind_among(m->kind, "/namespaces"); }

const kl_value *kl_match_namespace(const kl_match *m)
{
    if (!m->kind->namespaced || !m->ns)
        return NULL;
    const kl__entry *e = kl__bucket_get(kl__kinds_get(m->kinds, "", "v1", "namespaces")->bucket, m->ns);
    return e ? e->object : NULL;
}

static bool labelled(const kl_value *selector, const kl_value *o)
{
    return o && kl_match_labels(selector, kl_value_at(o, "metadata", "labels", NULL));
}

/* Every namespace selector matches a cluster-scoped object that is no namespace. */
static bool namespace_fits(const kl_match *m, const kl_value *selector)
{
    if (!kl_value_len(selector) || (!m->kind->namespaced && !kl_match_own(m)))
        return true;
    const kl_value *ns = kl_match_own(m) ? m->o ? m->o : m->old : kl_match_namespace(m);
    return kl_match_labels(selector, kl_value_at(ns, "metadata", "labels", NULL));
}

bool kl_match_selects(const kl_match *m, const kl_value *holder)
{
    const kl_value *selector = kl_value_get(holder, "objectSelector");
    return namespace_fits(m, kl_value_get(holder, "namespaceSelector"))
        && (labelled(selector, m->o) || labelled(selector, m->old));
}
