/* audit_policy_test.c - the rule of an audit policy that applies to a request. */
#include "support/json.h"

#include "audit/policy.h"

static const kl_value *bob;

static int setup(void **state)
{
    (void)state;
    bob = json("{'username':'bob','groups':['dev','system:authenticated']}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl_value_unref(bob);
    return 0;
}

/* Whether a policy of this one rule logs the request. */
static bool meets(const char *rule, const kl_rbac_request *q, const kl_value *user)
{
    char *text = kl_sprintf("{'rules':[%s]}", rule);
    const kl_value *policy = json(text);
    bool logged = kl_audit_policy_judge(policy, user, q).level == KL_AUDIT_REQUEST;
    kl_value_unref(policy);
    kl_free(text);
    return logged;
}

#define RULE(more) "{'level':'Request'" more "}"
#define PODS(list) RULE(",'resources':[{'resources':" list "}]")

static void a_rule_matches_users_groups_verbs_and_resources(void **state)
{
    (void)state;
    static const kl_rbac_request get = {.verb = "get", .resource = "pods", .ns = "a", .name = "x"},
                                 log = {.verb = "get",
                                     .resource = "pods",
                                     .sub = "log",
                                     .ns = "a",
                                     .name = "x"},
                                 apps = {.verb = "get", .group = "apps", .resource = "pods"};
    static const struct {
        const char *rule;
        const kl_rbac_request *q;
        bool met;
    } cases[] = {
        {RULE(""), &get, true},
        {RULE(",'users':['bob']"), &get, true},
        {RULE(",'users':['eve']"), &get, false},
        {RULE(",'userGroups':['ops','dev']"), &get, true},
        {RULE(",'userGroups':['ops']"), &get, false},
        {RULE(",'verbs':['list','get']"), &get, true},
        {RULE(",'verbs':['list']"), &get, false},
        {RULE(",'namespaces':['a']"), &get, true},
        {RULE(",'namespaces':['b']"), &get, false},
        {PODS("['pods']"), &get, true},
        {PODS("['pods']"), &log, false},
        {PODS("['pod']"), &get, false},
        {PODS("['podsx']"), &get, false},
        {PODS("['pods/log']"), &log, true},
        {PODS("['pods/status']"), &log, false},
        {PODS("['pods/*']"), &log, true},
        {PODS("['*/log']"), &log, true},
        {PODS("['*/status']"), &log, false},
        {PODS("['*']"), &log, true},
        {PODS("['pods']"), &apps, false},
        {RULE(",'resources':[{'group':'apps'}]"), &apps, true},
        {RULE(",'resources':[{'group':'apps'}]"), &get, false},
        {RULE(",'resources':[{'resources':['pods'],'resourceNames':['x']}]"), &get, true},
        {RULE(",'resources':[{'resources':['pods'],'resourceNames':['y']}]"), &get, false},
        {RULE(",'nonResourceURLs':['*']"), &get, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (meets(cases[i].rule, cases[i].q, bob) != cases[i].met)
            fail_msg("%s: wanted %s", cases[i].rule, cases[i].met ? "met" : "not met");
    assert_false(meets(RULE(",'users':['bob']"), &get, NULL));
    assert_false(meets(RULE(",'userGroups':['dev']"), &get, NULL));
}

static void paths_end_with_a_star(void **state)
{
    (void)state;
    static const kl_rbac_request healthz = {.verb = "get", .path = "/healthz/etcd"};
    assert_true(meets(RULE(",'nonResourceURLs':['/healthz*']"), &healthz, bob));
    assert_true(meets(RULE(",'nonResourceURLs':['/a','/healthz/etcd']"), &healthz, bob));
    assert_true(meets(RULE(",'nonResourceURLs':['*']"), &healthz, bob));
    assert_false(meets(RULE(",'nonResourceURLs':['/healthz']"), &healthz, bob));
    assert_false(meets(PODS("['*']"), &healthz, bob));
}

static void the_first_matching_rule_decides(void **state)
{
    (void)state;
    static const kl_rbac_request get = {.verb = "get", .resource = "pods"};
    const kl_value *policy = json(
                       "{'omitStages':['RequestReceived'],'omitManagedFields':true,'rules':["
                       "{'level':'None','verbs':['list']},"
                       "{'level':'RequestResponse','omitStages':['Panic'],'omitManagedFields':false},"
                       "{'level':'Metadata'}]}"),
                   *none = json("{'rules':[{'level':'Request','verbs':['list']}]}");
    kl_audit_verdict v = kl_audit_policy_judge(policy, bob, &get);
    assert_int_equal(v.level, KL_AUDIT_REQUEST_RESPONSE);
    assert_true(v.omit[KL_AUDIT_RECEIVED]);
    assert_false(v.omit[KL_AUDIT_STARTED]);
    assert_false(v.omit[KL_AUDIT_COMPLETE]);
    assert_true(v.omit[KL_AUDIT_PANIC]);
    assert_false(v.omit_managed_fields);
    assert_int_equal(kl_audit_policy_judge(none, bob, &get).level, KL_AUDIT_NONE);
    assert_int_equal(kl_audit_policy_judge(NULL, bob, &get).level, KL_AUDIT_METADATA);
    kl_value_unref(policy);
    kl_value_unref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_matches_users_groups_verbs_and_resources),
        cmocka_unit_test(paths_end_with_a_star),
        cmocka_unit_test(the_first_matching_rule_decides),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* not in tsan: it starts no thread */
