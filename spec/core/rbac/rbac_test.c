/* rbac_test.c - permissions by roles and bindings, and whether rules cover others. */
#include "support/json.h"

#include "base/buf.h"
#include "base/mem.h"
#include "rbac/rbac.h"

/* Roles by "namespace/name" ("/name": a ClusterRole), bindings by namespace ("": the cluster's). */
static const kl_value *cluster;

static const kl_value *find_role(void *arg, const char *ns, const char *name)
{
    (void)arg;
    char *key = kl_sprintf("%s/%s", ns ? ns : "", name);
    const kl_value *role = kl_value_at(cluster, "roles", key, NULL);
    kl_free(key);
    return role;
}

static void each_binding(
    void *arg, const char *ns, void (*fn)(void *fn_arg, const kl_value *binding), void *fn_arg)
{
    (void)arg;
    const kl_value *list = kl_value_at(cluster, "bindings", ns ? ns : "", NULL);
    for (size_t i = 0; i < kl_value_len(list); i++)
        fn(fn_arg, kl_value_item(list, i));
}

static const kl_rbac_source source = {.role = find_role, .bindings = each_binding};

static int setup(void **state)
{
    (void)state;
    cluster = json(
        "{'roles':{"
        " '/admin':{'rules':[{'verbs':['*'],'apiGroups':['*'],'resources':['*']},"
        "  {'verbs':['*'],'nonResourceURLs':['*']}]},"
        " '/health':{'rules':[{'verbs':['get'],'nonResourceURLs':['/healthz','/readyz/*']}]},"
        " '/scaler':{'rules':[{'verbs':['update'],'apiGroups':['apps'],'resources':['*/scale']}]},"
        " 'a/reader':{'rules':[{'verbs':['get','list'],'apiGroups':[''],'resources':['pods','pods/log']},"
        "  {'verbs':['get'],'apiGroups':[''],'resources':['secrets'],'resourceNames':['one']}]}},"
        "'bindings':{"
        " '':[{'metadata':{'name':'admins'},'roleRef':{'kind':'ClusterRole','name':'admin'},"
        "   'subjects':[{'kind':'Group','name':'admins'}]},"
        "  {'metadata':{'name':'probes'},'roleRef':{'kind':'ClusterRole','name':'health'},"
        "   'subjects':[{'kind':'User','name':'probe'}]},"
        "  {'metadata':{'name':'nowhere'},'roleRef':{'kind':'ClusterRole','name':'lost'},"
        "   'subjects':[{'kind':'User','name':'eve'}]}],"
        " 'a':[{'metadata':{'name':'readers'},'roleRef':{'kind':'Role','name':'reader'},"
        "   'subjects':[{'kind':'User','name':'bob'},{'kind':'ServiceAccount','name':'runner'},"
        "    {'kind':'ServiceAccount','name':'runner','namespace':'b'}]},"
        "  {'metadata':{'name':'scalers'},'roleRef':{'kind':'ClusterRole','name':'scaler'},"
        "   'subjects':[{'kind':'User','name':'bob'}]}]}}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl_value_unref(cluster);
    cluster = NULL;
    return 0;
}

static bool may(const char *user, const kl_rbac_request *r, const char *why)
{
    char *text = kl_sprintf("{'username':'%s','groups':['system:authenticated']}", user);
    const kl_value *u = json(text);
    kl_buf said = KL_BUF_INIT;
    bool allowed = kl_rbac_allows(&source, u, r, &said);
    if (why)
        assert_string_equal(kl_buf_str(&said), why);
    kl_buf_fini(&said);
    kl_value_unref(u);
    kl_free(text);
    return allowed;
}

static void a_rule_allows_its_verbs_groups_resources_and_names(void **state)
{
    (void)state;
    static const struct {
        kl_rbac_request r;
        bool may;
    } cases[] = {
        {{.verb = "get", .resource = "pods", .ns = "a", .name = "x"}, true},
        {{.verb = "list", .resource = "pods", .ns = "a"}, true},
        {{.verb = "delete", .resource = "pods", .ns = "a", .name = "x"}, false},
        {{.verb = "get", .resource = "pods", .ns = "b", .name = "x"}, false},
        {{.verb = "get", .resource = "pods", .name = "x"}, false},
        {{.verb = "get", .group = "apps", .resource = "pods", .ns = "a"}, false},
        {{.verb = "get", .resource = "pods", .sub = "log", .ns = "a", .name = "x"}, true},
        {{.verb = "get", .resource = "pods", .sub = "exec", .ns = "a", .name = "x"}, false},
        {{.verb = "get", .resource = "podsx", .ns = "a"}, false},
        {{.verb = "get", .resource = "pod", .ns = "a"}, false},
        {{.verb = "get", .resource = "secrets", .ns = "a", .name = "one"}, true},
        {{.verb = "get", .resource = "secrets", .ns = "a", .name = "two"}, false},
        {{.verb = "get", .resource = "secrets", .ns = "a"}, false},
        {{.verb = "update", .group = "apps", .resource = "deployments", .sub = "scale", .ns = "a"}, true},
        {{.verb = "update", .group = "apps", .resource = "deployments", .ns = "a"}, false},
        {{.verb = "get", .path = "/healthz"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(may("bob", &cases[i].r, NULL), cases[i].may);
}

static void the_allowing_rule_is_named(void **state)
{
    (void)state;
    assert_true(may("bob", &(kl_rbac_request){.verb = "get", .resource = "pods", .ns = "a"},
        "RBAC: allowed by RoleBinding \"readers/a\" of Role \"reader\" to User \"bob\""));
    assert_true(may("probe", &(kl_rbac_request){.verb = "get", .path = "/healthz"},
        "RBAC: allowed by ClusterRoleBinding \"probes\" of ClusterRole \"health\" to User \"probe\""));
    assert_false(may("eve", &(kl_rbac_request){.verb = "get", .resource = "pods", .ns = "a"},
        "RBAC: clusterrole.rbac.authorization.k8s.io \"lost\" not found"));
    assert_false(may("nobody", &(kl_rbac_request){.verb = "get", .resource = "pods", .ns = "a"}, ""));
}

static void a_service_account_is_of_its_binding_s_namespace_unless_it_says_another(void **state)
{
    (void)state;
    kl_rbac_request r = {.verb = "get", .resource = "pods", .ns = "a"};
    assert_true(may("system:serviceaccount:a:runner", &r,
        "RBAC: allowed by RoleBinding \"readers/a\" of Role \"reader\" to ServiceAccount \"runner/a\""));
    assert_true(may("system:serviceaccount:b:runner", &r, NULL));
    assert_false(may("system:serviceaccount:c:runner", &r, NULL));
}

static void paths_end_with_a_star(void **state)
{
    (void)state;
    assert_true(may("probe", &(kl_rbac_request){.verb = "get", .path = "/readyz/etcd"}, NULL));
    assert_false(may("probe", &(kl_rbac_request){.verb = "get", .path = "/readyz"}, NULL));
    assert_false(may("probe", &(kl_rbac_request){.verb = "get", .path = "/healthz/etcd"}, NULL));
    assert_false(may("probe", &(kl_rbac_request){.verb = "post", .path = "/healthz"}, NULL));
}

static void masters_are_allowed_everything_and_groups_are_subjects(void **state)
{
    (void)state;
    const kl_value *master = json("{'username':'x','groups':['system:masters']}"),
                   *admin = json("{'username':'y','groups':['admins']}");
    kl_rbac_request r = {.verb = "delete", .group = "g", .resource = "things", .ns = "z"};
    assert_true(kl_rbac_allows(&source, master, &r, NULL));
    assert_true(kl_rbac_allows(&source, admin, &r, NULL));
    assert_true(kl_rbac_allows(&source, admin, &(kl_rbac_request){.verb = "get", .path = "/x"}, NULL));
    kl_value_unref(master);
    kl_value_unref(admin);
}

static void the_rules_of_a_user_are_those_of_all_bindings(void **state)
{
    (void)state;
    const kl_value *bob = json("{'username':'bob'}"), *eve = json("{'username':'eve'}");
    kl_buf errors = KL_BUF_INIT;
    const kl_value *here = kl_rbac_rules(&source, bob, "a", &errors),
                   *cluster_wide = kl_rbac_rules(&source, bob, NULL, &errors);
    assert_int_equal(kl_value_len(here), 3);
    assert_int_equal(kl_value_len(cluster_wide), 0);
    assert_int_equal(errors.len, 0);
    const kl_value *lost = kl_rbac_rules(&source, eve, "a", &errors);
    assert_string_equal(kl_buf_str(&errors), "clusterrole.rbac.authorization.k8s.io \"lost\" not found");
    kl_buf_fini(&errors);
    kl_value_unref(lost);
    kl_value_unref(here);
    kl_value_unref(cluster_wide);
    kl_value_unref(bob);
    kl_value_unref(eve);
}

static void assert_covers(const char *held, const char *rules, const char *missing)
{
    const kl_value *h = json(held), *r = json(rules);
    kl_buf out = KL_BUF_INIT;
    assert_int_equal(kl_rbac_covers(h, r, &out), !*missing);
    assert_string_equal(out.len ? kl_buf_str(&out) : "", missing);
    kl_buf_fini(&out);
    kl_value_unref(h);
    kl_value_unref(r);
}

#define PODS "'apiGroups':[''],'resources':['pods']"

static void rules_cover_their_own_grants(void **state)
{
    (void)state;
    assert_covers("[{'verbs':['get','list']," PODS "}]", "[{'verbs':['list']," PODS "}]", "");
    assert_covers("[{'verbs':['*'],'apiGroups':['*'],'resources':['*']}]",
        "[{'verbs':['get'],'apiGroups':['apps'],'resources':['a','b/c']}]", "");
    assert_covers("[{'verbs':['get'],'apiGroups':[''],'resources':['*/log']}]",
        "[{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}]", "");
    /* two rules together */
    assert_covers("[{'verbs':['get']," PODS "},{'verbs':['list']," PODS "}]",
        "[{'verbs':['get','list']," PODS "}]", "");
    assert_covers("[{'verbs':['get'],'nonResourceURLs':['/x','/logs/*']}]",
        "[{'verbs':['get'],'nonResourceURLs':['/x','/logs/','/logs/a/b','/logs/*']}]", "");
    assert_covers("[{'verbs':['get'],'nonResourceURLs':['*']}]",
        "[{'verbs':['get'],'nonResourceURLs':['/x','*']}]", "");
    assert_covers("[]", "[]", "");
}

static void uncovered_rights_are_listed_as_rules(void **state)
{
    (void)state;
    assert_covers("[{'verbs':['get']," PODS "}]",
        "[{'verbs':['get','list','watch'],'apiGroups':[''],'resources':['pods','secrets']}]",
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n"
        "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\" \"watch\"]}");
    /* some names are not all of them */
    assert_covers("[{'verbs':['get'],'resourceNames':['a']," PODS "}]", "[{'verbs':['get']," PODS "}]",
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}");
    assert_covers("[{'verbs':['get'],'resourceNames':['a']," PODS "}]",
        "[{'verbs':['get'],'resourceNames':['a','b']," PODS "}]",
        "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}");
    assert_covers(
        "[]", "[{'verbs':['get'],'nonResourceURLs':['/x']}]", "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}");
    assert_covers("[{'verbs':['get'],'nonResourceURLs':['/x','/logs/*']}]",
        "[{'verbs':['get'],'nonResourceURLs':['/xy','/logs']}]",
        "{NonResourceURLs:[\"/logs\"], Verbs:[\"get\"]}\n{NonResourceURLs:[\"/xy\"], Verbs:[\"get\"]}");
}

static void a_refusal_names_user_verb_resource_and_place(void **state)
{
    (void)state;
    const kl_value *bob = json("{'username':'bob'}");
    static const struct {
        kl_rbac_request r;
        const char *text;
    } cases[] = {
        {{.verb = "list", .resource = "pods", .ns = "d"},
            "User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"d\""},
        {{.verb = "get", .group = "apps", .resource = "deployments", .sub = "scale"},
            "User \"bob\" cannot get resource \"deployments/scale\" in API group \"apps\" at the cluster "
            "scope"},
        {{.verb = "get", .path = "/metrics"}, "User \"bob\" cannot get path \"/metrics\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_buf out = KL_BUF_INIT;
        kl_rbac_say(bob, &cases[i].r, &out);
        assert_string_equal(kl_buf_str(&out), cases[i].text);
        kl_buf_fini(&out);
    }
    kl_value_unref(bob);
}

static void the_default_roles_are_json_with_their_bindings(void **state)
{
    (void)state;
    const kl_value *list = NULL;
    kl_err err = KL_ERR_INIT;
    size_t roles = 0, bindings = 0;
    assert_ok(kl_value_decode(kl_rbac_defaults, strlen(kl_rbac_defaults), &list, &err), &err);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *kind = kl_value_str_at(kl_value_item(list, i), "kind", NULL);
        assert_non_null(kind);
        roles += !strcmp(kind, "ClusterRole");
        bindings += !strcmp(kind, "ClusterRoleBinding");
    }
    assert_true(roles >= 4);
    assert_true(bindings >= 1);
    kl_value_unref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_allows_its_verbs_groups_resources_and_names),
        cmocka_unit_test(the_allowing_rule_is_named),
        cmocka_unit_test(a_service_account_is_of_its_binding_s_namespace_unless_it_says_another),
        cmocka_unit_test(paths_end_with_a_star),
        cmocka_unit_test(masters_are_allowed_everything_and_groups_are_subjects),
        cmocka_unit_test(the_rules_of_a_user_are_those_of_all_bindings),
        cmocka_unit_test(rules_cover_their_own_grants),
        cmocka_unit_test(uncovered_rights_are_listed_as_rules),
        cmocka_unit_test(a_refusal_names_user_verb_resource_and_place),
        cmocka_unit_test(the_default_roles_are_json_with_their_bindings),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* not in tsan: it starts no thread */
