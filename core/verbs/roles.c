/* roles.c - roles as objects: the first ones, those that gather others, and the check that a user grants
 * only rights of his own (see pkg/registry/rbac/escalation_check and .../policybased). */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"
#include "policy/rights.h"
#include "schema/edit.h"
#include "schema/status.h"
#include "value/finder.h"
#include "verbs/access.h"
#include "verbs/first.h"

kl_status kl__access_begin(kl__world *w, kl_err *err) { return kl__first_list(w, kl_rbac_defaults, err); }

/* ------------------------------------------------------------------ those that gather others */

static bool selected(const kl_value *selectors, const kl_value *role)
{
    bool it = false;
    for (size_t i = 0; i < kl_value_len(selectors) && !it; i++) {
        kl_selector *s = NULL;
        if (kl_selector_from_struct(kl_value_item(selectors, i), &s, NULL))
            continue;
        it = kl_selector_matches(s, kl_value_at(role, "metadata", "labels", NULL));
        kl_selector_free(s);
    }
    return it;
}

/* The rules of all roles that `selectors` choose, each once; a new reference. */
static const kl_value *gather(const kl__bucket *b, const kl_value *self, const kl_value *selectors)
{
    kl_builder *out = kl_builder_new();
    kl_finder seen = {0};
    kl_build_array(out);
    for (size_t e = 0; e < b->len; e++) {
        const kl_value *role = b->v[e]->object, *rules = kl_value_get(role, "rules");
        if (role == self || !selected(selectors, role))
            continue;
        for (size_t i = 0; i < kl_value_len(rules); i++) {
            const kl_value *rule = kl_value_item(rules, i);
            if (!kl_finder_repeats(&seen, rule))
                kl_build_value(out, rule);
        }
    }
    kl_build_end(out);
    kl_finder_fini(&seen);
    return kl_builder_done(out);
}

/* Updates all aggregated roles. These may be gathered again; a chain has no more steps than roles. */
void kl__access_aggregate(kl__world *w)
{
    kl__bucket *b = kl__store_bucket(w->store, KL_RBAC_GROUP, "clusterroles");
    bool changed = w->rbac;
    for (size_t round = 0; changed && round <= b->len; round++) {
        changed = false;
        for (size_t e = 0; e < b->len; e++) {
            const kl_value *role = b->v[e]->object,
                           *selectors = kl_value_at(role, "aggregationRule", "clusterRoleSelectors", NULL);
            if (!selectors)
                continue;
            const kl_value *rules = gather(b, role, selectors);
            if (kl_value_equal(rules, kl_value_get(role, "rules"))) {
                kl_value_unref(rules);
                continue;
            }
            const kl_value *o = kl_value_ref(role);
            char *key = kl_strdup(b->v[e]->key);
            KL_EDIT(&o, rules, "rules");
            kl__store_put(w->store, b, key, o);
            kl_free(key);
            changed = true;
        }
    }
}

/* ------------------------------------------------------------------ what may be granted */

static bool may(const kl__call *c, const char *verb, const char *resource, const char *name)
{
    kl_rbac_request r = {
        .verb = verb, .group = KL_RBAC_GROUP, .resource = resource, .ns = c->ns, .name = name};
    return kl__access_allows(c->w, c->user, &r, NULL);
}

/* The groups as Go writes a list of strings. */
static void put_groups(const kl_value *user, kl_buf *out)
{
    const kl_value *groups = kl_value_get(user, "groups");
    for (size_t i = 0; i < kl_value_len(groups); i++)
        kl_buf_printf(out, "%s\"%s\"", i ? " " : "", kl_value_str(kl_value_item(groups, i)));
}

static kl_status check_rules(const kl__call *c, const char *name, const kl_value *rules, kl_err *err)
{
    kl_buf errors = KL_BUF_INIT, missing = KL_BUF_INIT, groups = KL_BUF_INIT;
    kl_rbac_source source = kl__access_source(c->w);
    const kl_value *held = kl_rbac_rules(&source, c->user, c->ns, &errors);
    kl_status st = KL_OK;
    if (!kl_rbac_covers(held, rules, &missing)) {
        put_groups(c->user, &groups);
        st = kl__fail_forbidden(err, c->kind, name,
            "user \"%s\" (groups=[%s]) is attempting to grant RBAC permissions not currently held:\n%s%s%s%s",
            kl_value_str_at(c->user, "username", NULL), kl_buf_str(&groups), kl_buf_str(&missing),
            errors.len ? "; resolution errors: [" : "", kl_buf_str(&errors), errors.len ? "]" : "");
    }
    kl_value_unref(held);
    kl_buf_fini(&errors);
    kl_buf_fini(&missing);
    kl_buf_fini(&groups);
    return st;
}

static kl_status check_binding(const kl__call *c, const kl_value *o, const char *name, kl_err *err)
{
    const char *role = kl_value_str_at(o, "roleRef", "name", NULL),
               *kind = kl_value_str_at(o, "roleRef", "kind", NULL);
    if (!role || !kind)
        return KL_OK; /* the validation reports the fault later */
    bool cluster = !strcmp(kind, "ClusterRole");
    if (may(c, "bind", cluster ? "clusterroles" : "roles", role))
        return KL_OK;
    kl_rbac_source source = kl__access_source(c->w);
    const kl_value *it = source.role(source.arg, cluster ? NULL : c->ns, role);
    if (!it)
        return kl__fail_not_found(err, c->kind, role); /* as kube-apiserver does, under the binding's kind */
    return check_rules(c, name, kl_value_get(it, "rules"), err);
}

kl_status kl__access_grant(const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err)
{
    const char *name = kl_object_name(o);
    if (!c->user || !c->w->rbac || strcmp(c->kind->group, KL_RBAC_GROUP)
        || kl_rbac_in_group(c->user, KL_RBAC_MASTERS))
        return KL_OK;
    name = name ? name : "";
    if (strstr(c->kind->plural, "bindings")) {
        bool same = old && kl_value_equal(kl_value_get(old, "roleRef"), kl_value_get(o, "roleRef"))
            && kl_value_equal(kl_value_get(old, "subjects"), kl_value_get(o, "subjects"));
        return same ? KL_OK : check_binding(c, o, name, err);
    }
    const kl_value *rules = kl_value_get(o, "rules"), *gathers = kl_value_get(o, "aggregationRule");
    bool same = old && kl_value_equal(kl_value_get(old, "rules"), rules)
        && kl_value_equal(kl_value_get(old, "aggregationRule"), gathers);
    if (same || may(c, "escalate", c->kind->plural, name))
        return KL_OK;
    static const char all[] = "[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]},"
                              "{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]";
    if (!gathers)
        return check_rules(c, name, rules, err);
    const kl_value *everything = NULL;
    kl_status st = kl_value_decode(all, sizeof all - 1, &everything, err);
    if (!st && check_rules(c, name, everything, NULL))
        st = kl__fail_forbidden(
            err, c->kind, name, "must have cluster-admin privileges to use an aggregationRule");
    kl_value_unref(everything);
    return st ? st : check_rules(c, name, rules, err);
}

/* ------------------------------------------------------------------ parameters of policies */

static bool may_read(
    void *arg, const char *verb, const char *group, const char *resource, const char *ns, const char *name)
{
    const kl__call *c = arg;
    kl_rbac_request r = {.verb = verb, .group = group, .resource = resource, .ns = ns, .name = name};
    return kl__access_allows(c->w, c->user, &r, NULL);
}

void kl__access_check_params(const kl__call *c, const kl__write *w)
{
    kl_policy_asker a = {may_read, (void *)(uintptr_t)c, c->user, c->w->kinds, c->w->store};
    if (c->user && c->w->rbac && !c->sub && !kl_rbac_in_group(c->user, KL_RBAC_MASTERS))
        kl_policy_check_rights(&a, w);
}
