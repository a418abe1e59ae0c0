/* policy.c - the first matching rule decides. */
#include "audit/policy.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "yaml/yaml.h"

const char *const kl_audit_levels[4] = {"None", "Metadata", "Request", "RequestResponse"};
const char *const kl_audit_stages[4] = {"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

static const char *text_of(const kl_value *v) { return kl_value_str(v) ? kl_value_str(v) : ""; }

static const char *text_at(const kl_value *o, const char *member) { return text_of(kl_value_get(o, member)); }

static bool has(const kl_value *list, const char *text)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (!strcmp(text_of(kl_value_item(list, i)), text ? text : ""))
            return true;
    return false;
}

/* ------------------------------------------------------------------ reading */

typedef struct reader {
    const char *path;
    kl_err *err;
} reader;

static kl_status unknown(const reader *r, const char *where, const char *what, const char *word,
    const char *const *words, size_t n)
{
    const char *near = kl_suggest(word, words, n);
    return kl_fail(r->err, KL_EINVAL, "audit policy %s: %s: unknown %s \"%s\"%s%s%s", r->path, where, what,
        word, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static kl_status check_keys(
    const reader *r, const kl_value *o, const char *where, const char *const *keys, size_t n)
{
    if (kl_value_type(o) != KL_OBJECT)
        return kl_fail(r->err, KL_EINVAL, "audit policy %s: %s must be a mapping", r->path, where);
    for (size_t i = 0; i < kl_value_len(o); i++) {
        const char *key;
        size_t len, k = 0;
        kl_value_member(o, i, &key, &len);
        while (k < n && strcmp(keys[k], key))
            k++;
        if (k == n)
            return unknown(r, where, "key", key, keys, n);
    }
    return KL_OK;
}

/* Checks a list of strings; each must be among `words`, if there are any. */
static kl_status check_list(const reader *r, const kl_value *o, const char *member, const char *where,
    const char *const *words, size_t n)
{
    const kl_value *list = kl_value_get(o, member);
    if (list && kl_value_type(list) != KL_ARRAY)
        return kl_fail(r->err, KL_EINVAL, "audit policy %s: %s.%s must be a list", r->path, where, member);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *text = kl_value_str(kl_value_item(list, i));
        size_t k = 0;
        if (!text)
            return kl_fail(
                r->err, KL_EINVAL, "audit policy %s: %s.%s[%zu] must be a string", r->path, where, member, i);
        while (k < n && strcmp(words[k], text))
            k++;
        if (n && k == n)
            return unknown(r, where, "stage", text, words, n);
    }
    return KL_OK;
}

static kl_status check_flag(const reader *r, const kl_value *o, const char *where)
{
    const kl_value *v = kl_value_get(o, "omitManagedFields");
    if (v && kl_value_type(v) != KL_BOOL)
        return kl_fail(
            r->err, KL_EINVAL, "audit policy %s: %s.omitManagedFields must be true or false", r->path, where);
    return KL_OK;
}

static kl_status check_resources(const reader *r, const kl_value *rule, const char *where)
{
    static const char *const keys[] = {"group", "resources", "resourceNames"};
    const kl_value *list = kl_value_get(rule, "resources");
    kl_status st = KL_OK;
    if (list && kl_value_type(list) != KL_ARRAY)
        return kl_fail(r->err, KL_EINVAL, "audit policy %s: %s.resources must be a list", r->path, where);
    for (size_t i = 0; i < kl_value_len(list) && !st; i++) {
        const kl_value *one = kl_value_item(list, i);
        char *at = kl_sprintf("%s.resources[%zu]", where, i);
        st = check_keys(r, one, at, keys, 3);
        if (!st)
            st = check_list(r, one, "resources", at, NULL, 0);
        if (!st)
            st = check_list(r, one, "resourceNames", at, NULL, 0);
        if (!st && kl_value_len(kl_value_get(one, "resourceNames"))
            && !kl_value_len(kl_value_get(one, "resources")))
            st = kl_fail(r->err, KL_EINVAL,
                "audit policy %s: %s.resourceNames limits `resources`: name resources, too", r->path, at);
        kl_free(at);
    }
    return st;
}

static kl_status check_urls(const reader *r, const kl_value *rule, const char *where)
{
    const kl_value *list = kl_value_get(rule, "nonResourceURLs");
    kl_status st = check_list(r, rule, "nonResourceURLs", where, NULL, 0);
    if (!st && kl_value_len(list)
        && (kl_value_len(kl_value_get(rule, "resources")) || kl_value_len(kl_value_get(rule, "namespaces"))))
        return kl_fail(r->err, KL_EINVAL,
            "audit policy %s: %s: a rule has either resources or nonResourceURLs: make two rules", r->path,
            where);
    for (size_t i = 0; i < kl_value_len(list) && !st; i++) {
        const char *url = text_of(kl_value_item(list, i)), *star = strchr(url, '*');
        if (strcmp(url, "*") && (*url != '/' || (star && star[1])))
            st = kl_fail(r->err, KL_EINVAL,
                "audit policy %s: %s.nonResourceURLs[%zu]: \"%s\" must be \"*\", or begin with \"/\" and "
                "have a \"*\" only at its end",
                r->path, where, i, url);
    }
    return st;
}

static kl_status check_rule(const reader *r, const kl_value *rule, const char *where)
{
    static const char *const keys[] = {"level", "users", "userGroups", "verbs", "resources", "namespaces",
        "nonResourceURLs", "omitStages", "omitManagedFields"},
                             *const lists[] = {"users", "userGroups", "verbs", "namespaces"};
    const char *level = text_at(rule, "level");
    size_t k = 0;
    kl_status st = check_keys(r, rule, where, keys, sizeof keys / sizeof *keys);
    if (st)
        return st;
    while (k < 4 && strcmp(kl_audit_levels[k], level))
        k++;
    if (k == 4)
        return unknown(r, where, "level", level, kl_audit_levels, 4);
    for (size_t i = 0; i < 4 && !st; i++)
        st = check_list(r, rule, lists[i], where, NULL, 0);
    if (!st)
        st = check_list(r, rule, "omitStages", where, kl_audit_stages, 4);
    if (!st)
        st = check_flag(r, rule, where);
    if (!st)
        st = check_resources(r, rule, where);
    return st ? st : check_urls(r, rule, where);
}

static kl_status check_policy(const reader *r, const kl_value *policy)
{
    static const char *const keys[] = {
        "apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"};
    const kl_value *rules = kl_value_get(policy, "rules");
    kl_status st = check_keys(r, policy, "the policy", keys, sizeof keys / sizeof *keys);
    if (st)
        return st;
    if (strcmp(text_at(policy, "kind"), "Policy") || strcmp(text_at(policy, "apiVersion"), "audit.k8s.io/v1"))
        return kl_fail(r->err, KL_EINVAL,
            "audit policy %s: it must have apiVersion: audit.k8s.io/v1 and kind: Policy", r->path);
    if (kl_value_type(rules) != KL_ARRAY || !kl_value_len(rules))
        return kl_fail(r->err, KL_EINVAL,
            "audit policy %s: no rules: without one nothing is logged; \"rules: [{level: Metadata}]\" logs "
            "all",
            r->path);
    st = check_list(r, policy, "omitStages", "the policy", kl_audit_stages, 4);
    if (!st)
        st = check_flag(r, policy, "the policy");
    for (size_t i = 0; i < kl_value_len(rules) && !st; i++) {
        char *where = kl_sprintf("rules[%zu]", i);
        st = check_rule(r, kl_value_item(rules, i), where);
        kl_free(where);
    }
    return st;
}

kl_status kl_audit_policy_read(const char *path, const kl_value **out, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    const kl_value *v = NULL;
    kl_status st = kl_file_read_given(path, "--audit-policy", &text, err);
    if (!st)
        st = kl_yaml_decode(path, text.data, text.len, &v, err);
    if (!st)
        st = check_policy(&(reader){path, err}, v);
    kl_buf_fini(&text);
    if (st)
        kl_value_unref(v);
    else
        *out = v;
    return st;
}

/* ------------------------------------------------------------------ judging */

static bool names_resource(const kl_value *list, const kl_rbac_request *q)
{
    const char *sub = q->sub ? q->sub : "";
    size_t n = strlen(q->resource);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *word = text_of(kl_value_item(list, i));
        size_t len = strlen(word);
        bool own = !strncmp(word, q->resource, n);
        if (!strcmp(word, "*") || (own && (*sub ? word[n] == '/' && !strcmp(word + n + 1, sub) : !word[n])))
            return true;
        if (*sub && !strncmp(word, "*/", 2) && !strcmp(word + 2, sub))
            return true;
        if (own && len == n + 2 && !strcmp(word + n, "/*"))
            return true;
    }
    return false;
}

static bool fits_resource(const kl_value *rule, const kl_rbac_request *q)
{
    const kl_value *spaces = kl_value_get(rule, "namespaces"), *list = kl_value_get(rule, "resources");
    if (q->path || (kl_value_len(spaces) && !has(spaces, q->ns)))
        return false;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *resources = kl_value_get(one, "resources"),
                       *names = kl_value_get(one, "resourceNames");
        if (strcmp(text_at(one, "group"), q->group ? q->group : ""))
            continue;
        if (!kl_value_len(resources)
            || ((!kl_value_len(names) || has(names, q->name)) && names_resource(resources, q)))
            return true;
    }
    return !kl_value_len(list);
}

static bool fits_url(const kl_value *list, const kl_rbac_request *q)
{
    for (size_t i = 0; i < kl_value_len(list) && q->path; i++) {
        const char *url = text_of(kl_value_item(list, i));
        size_t n = strlen(url);
        if (!strcmp(url, "*") || !strcmp(url, q->path)
            || (n && url[n - 1] == '*' && !strncmp(url, q->path, n - 1)))
            return true;
    }
    return false;
}

static bool fits(const kl_value *rule, const kl_value *user, const kl_rbac_request *q)
{
    const kl_value *users = kl_value_get(rule, "users"), *groups = kl_value_get(rule, "userGroups"),
                   *verbs = kl_value_get(rule, "verbs"), *urls = kl_value_get(rule, "nonResourceURLs");
    if (kl_value_len(users) && !(user && has(users, text_at(user, "username"))))
        return false;
    if (kl_value_len(groups)) {
        const kl_value *own = kl_value_get(user, "groups");
        bool any = false;
        for (size_t i = 0; i < kl_value_len(own) && !any; i++)
            any = has(groups, text_of(kl_value_item(own, i)));
        if (!any)
            return false;
    }
    if (kl_value_len(verbs) && !has(verbs, q->verb))
        return false;
    if (kl_value_len(kl_value_get(rule, "namespaces")) || kl_value_len(kl_value_get(rule, "resources")))
        return fits_resource(rule, q);
    return kl_value_len(urls) ? fits_url(urls, q) : true;
}

kl_audit_verdict kl_audit_policy_judge(const kl_value *policy, const kl_value *user, const kl_rbac_request *q)
{
    kl_audit_verdict v = {.level = policy ? KL_AUDIT_NONE : KL_AUDIT_METADATA};
    const kl_value *rules = kl_value_get(policy, "rules"), *rule = NULL;
    for (size_t i = 0; i < kl_value_len(rules) && !rule; i++)
        if (fits(kl_value_item(rules, i), user, q))
            rule = kl_value_item(rules, i);
    for (size_t i = 0; i < 4; i++) {
        if (rule && !strcmp(kl_audit_levels[i], text_at(rule, "level")))
            v.level = (kl_audit_level)i;
        v.omit[i] = has(kl_value_get(policy, "omitStages"), kl_audit_stages[i])
            || has(kl_value_get(rule, "omitStages"), kl_audit_stages[i]);
    }
    bool all = kl_value_bool(kl_value_get(policy, "omitManagedFields"), false);
    v.omit_managed_fields = kl_value_bool(kl_value_get(rule, "omitManagedFields"), all);
    return v;
}
