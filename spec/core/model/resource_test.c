/* resource_test.c - kinds as users write them, paths of requests, and valid names. */
#include "support/test.h"

#include "base/mem.h"
#include "model/names.h"
#include "model/resource.h"

static void assert_gvk(const char *text, const char *group, const char *version, const char *kind)
{
    kl_err err = KL_ERR_INIT;
    kl_gvk g;

    assert_ok(kl_gvk_parse(text, &g, &err), &err);
    assert_string_equal(g.group, group);
    assert_string_equal(g.version, version);
    assert_string_equal(g.kind, kind);
    kl_gvk_fini(&g);
}

static void a_kind_is_read_with_or_without_group_and_version(void **state)
{
    (void)state;
    assert_gvk("Pod", "", "", "Pod");
    assert_gvk("v1/Pod", "", "v1", "Pod");
    assert_gvk("apps/Deployment", "apps", "", "Deployment");
    assert_gvk("slo.koordinator.sh/v1alpha1/NodeMetric", "slo.koordinator.sh", "v1alpha1", "NodeMetric");
}

static void an_invalid_kind_is_rejected_with_the_expected_form(void **state)
{
    static const char *const bad[] = {"", "pods", "v1/", "/Pod", "v1/pods", "apps//Deployment", "a/b/c/D",
        "/v1/Pod", "apps/v1/Deployment.x"};
    kl_err err = KL_ERR_INIT;
    kl_gvk g;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(kl_gvk_parse(bad[i], &g, &err), KL_EINVAL, &err, "write \"v1/Pod\"");
}

static void api_versions_are_split_and_joined(void **state)
{
    char *group, *version, *text;

    (void)state;
    kl_api_version_split("apps/v1", &group, &version);
    text = kl_gvk_text(group, version, "Deployment");
    assert_string_equal(text, "apps/v1/Deployment");
    kl_free(group), kl_free(version), kl_free(text);
    kl_api_version_split("v1", &group, &version);
    text = kl_gvk_text(group, version, "Pod");
    assert_string_equal(group, "");
    assert_string_equal(text, "v1/Pod");
    kl_free(group), kl_free(version), kl_free(text);
}

static char *verbs[] = {"get", "list", NULL}, *subresources[] = {"status", NULL};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .verbs = verbs,
    .subresources = subresources,
    .namespaced = true};
static const kl_resource quotas = {.group = "scheduling.sigs.k8s.io",
    .version = "v1alpha1",
    .kind = "ElasticQuota",
    .plural = "elasticquotas"};

static void assert_path(
    const kl_resource *r, const char *ns, const char *name, const char *sub, const char *want)
{
    kl_err err = KL_ERR_INIT;
    kl_buf path = KL_BUF_INIT;

    assert_ok(kl_resource_path(r, ns, name, sub, &path, &err), &err);
    assert_string_equal(kl_buf_str(&path), want);
    kl_buf_fini(&path);
}

static void paths_of_core_and_named_groups(void **state)
{
    (void)state;
    assert_path(&pods, NULL, NULL, NULL, "/api/v1/pods");
    assert_path(&pods, "", NULL, NULL, "/api/v1/pods");
    assert_path(&pods, "default", "a", "status", "/api/v1/namespaces/default/pods/a/status");
    assert_path(&quotas, NULL, "n 1?", NULL, "/apis/scheduling.sigs.k8s.io/v1alpha1/elasticquotas/n%201%3F");
    assert_path(&pods, "a", "b", "proxy/x", "/api/v1/namespaces/a/pods/b/proxy/x");
}

static void names_that_would_change_the_path_never_leave_the_process(void **state)
{
    static const char *const bad[] = {".", "..", "a/b", "a%2fb", "/"};
    kl_err err = KL_ERR_INIT;
    kl_buf path = KL_BUF_INIT;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(kl_resource_path(&pods, "ns", bad[i], NULL, &path, &err), KL_EINVAL, &err, "name");
        assert_fails(kl_resource_path(&pods, bad[i], "a", NULL, &path, &err), KL_EINVAL, &err, "namespace");
    }
    assert_fails(kl_resource_path(&pods, "ns", "a", "..", &path, &err), KL_EINVAL, &err, "subresource");
    assert_fails(
        kl_resource_path(&pods, "ns", "", NULL, &path, &err), KL_EINVAL, &err, "the name of a Pod is empty");
    kl_buf_fini(&path);
}

static void a_copy_lives_on_its_own(void **state)
{
    kl_resource copy;
    char *name;

    (void)state;
    kl_resource_copy(&copy, &pods);
    assert_true(kl_resource_has_verb(&copy, "list"));
    assert_false(kl_resource_has_verb(&copy, "watch"));
    assert_true(kl_resource_has_subresource(&copy, "status"));
    name = kl_resource_display(&copy);
    assert_string_equal(name, "pods");
    kl_free(name);
    kl_resource_fini(&copy);
    kl_resource_fini(&copy);
    name = kl_resource_display(&quotas);
    assert_string_equal(name, "elasticquotas.scheduling.sigs.k8s.io");
    kl_free(name);
}

static void escapes_are_undone_or_refused(void **state)
{
    static const char all[] = "a b+c/d?e=%&\xc3\xa9~";
    kl_err err = KL_ERR_INIT;
    kl_buf escaped = KL_BUF_INIT, back = KL_BUF_INIT;

    (void)state;
    kl_url_escape(all, &escaped);
    assert_string_equal(kl_buf_str(&escaped), "a+b%2Bc%2Fd%3Fe%3D%25%26%C3%A9~");
    assert_ok(kl_url_unescape(kl_buf_str(&escaped), escaped.len, true, &back, &err), &err);
    assert_string_equal(kl_buf_str(&back), all);
    assert_fails(kl_url_unescape("%4", 2, false, &back, &err), KL_ESYNTAX, &err, "hexadecimal");
    assert_fails(kl_url_unescape("%zz", 3, false, &back, &err), KL_ESYNTAX, &err, "hexadecimal");
    kl_buf_fini(&escaped);
    kl_buf_fini(&back);
}

static void names_follow_their_grammar(void **state)
{
    static const struct {
        const char *(*check)(const char *);
        const char *good, *bad;
    } cases[] = {
        {kl_name_dns1123_label, "my-name-1", "my.name"},
        {kl_name_dns1123_label, "1", "-a"},
        {kl_name_dns1123_label, "a", ""},
        {kl_name_dns1123_subdomain, "a.b-c.d", "a..b"},
        {kl_name_dns1123_subdomain, "a", "A"},
        {kl_name_dns1123_subdomain, "1.2", "a."},
        {kl_name_dns1035_label, "a-1", "1-a"},
        {kl_name_qualified, "example.com/My_Name.1", "a/b/c"},
        {kl_name_qualified, "x", "/x"},
        {kl_name_qualified, "a/b", "a/"},
        {kl_name_label_value, "", "-"},
        {kl_name_label_value, "A_1.b", "a b"},
        {kl_name_port, "http-alt", "80"},
        {kl_name_port, "a", "a--b"},
        {kl_name_config_map_key, "_a.json", "..a"},
        {kl_name_env_var, "A_B", "1A"},
        {kl_name_percent, "25%", "%"},
        {kl_name_path_segment, "a b", "a/b"},
        {kl_name_annotation_key, "Example.COM/My_Name.1", "a/b/c"},
        {kl_name_ip, "10.9.8.7", "10.9.8"},
        {kl_name_ip, "0.0.0.0", "10.9.8.07"},
        {kl_name_ip, "2001:db8::ffff", "::ffff:10.9.8.7"},
        {kl_name_ip, "::10.9.8.7", "fe80::1%eth0"},
        {kl_name_cidr, "10.9.8.0/24", "10.9.8.0"},
        {kl_name_cidr, "10.128.0.0/9", "10.128.0.0/8"},
        {kl_name_cidr, "10.9.8.7/32", "10.9.8.7/33"},
        {kl_name_cidr, "0.0.0.0/0", "0.0.0.0/00"},
        {kl_name_cidr, "10.0.0.0/8", "10.0.0.0/08"},
        {kl_name_cidr, "2001:db8::/64", "2001:db8::/"},
        {kl_name_cidr, "2001:db8::1/128", "2001:db8::1/129"},
        {kl_name_cidr, "::/100", "::/1000"},
        {kl_name_cidr, "::10.9.8.0/120", "::ffff:10.9.8.0/120"},
        {kl_name_cidr, "1111:2222:3333:4444:5555:6666:10.9.8.7/128",
            "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa/128"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(cases[i].check(cases[i].good));
        assert_non_null(cases[i].check(cases[i].bad));
    }
}

static void grammars_have_names(void **state)
{
    (void)state;
    assert_ptr_equal(kl_name_rule("dns1123_label"), kl_name_dns1123_label);
    assert_ptr_equal(kl_name_rule("cidr"), kl_name_cidr);
    assert_null(kl_name_rule("dns"));
}

static void lengths_count(void **state)
{
    char text[300];

    (void)state;
    memset(text, 'a', sizeof text);
    text[63] = '\0';
    assert_null(kl_name_dns1123_label(text));
    assert_null(kl_name_qualified(text));
    text[63] = 'a', text[64] = '\0';
    assert_string_equal(kl_name_dns1123_label(text), "must be no more than 63 characters");
    assert_non_null(kl_name_label_value(text));
    text[64] = 'a', text[253] = '\0';
    assert_null(kl_name_dns1123_subdomain(text));
    text[253] = 'a', text[254] = '\0';
    assert_non_null(kl_name_dns1123_subdomain(text));
}

static unsigned always_last(void *arg, unsigned below)
{
    (void)arg;
    return below - 1;
}

static void generated_names_fit_into_a_label(void **state)
{
    char base[200], out[KL_NAME_GENERATED_MAX];

    (void)state;
    assert_string_equal(kl_name_generate("web-", always_last, NULL, out), "web-99999");
    memset(base, 'a', sizeof base);
    base[199] = '\0';
    assert_int_equal(strlen(kl_name_generate(base, always_last, NULL, out)), KL_NAME_LABEL_MAX);
    assert_null(kl_name_prefix("web-", kl_name_dns1123_label));
    assert_non_null(kl_name_prefix("web.", kl_name_dns1123_label));
    assert_non_null(kl_name_prefix("-", kl_name_dns1123_label));
    assert_non_null(kl_name_prefix("", kl_name_dns1123_label));
}

KL_TESTS(cmocka_unit_test(a_kind_is_read_with_or_without_group_and_version),
    cmocka_unit_test(an_invalid_kind_is_rejected_with_the_expected_form),
    cmocka_unit_test(api_versions_are_split_and_joined), cmocka_unit_test(paths_of_core_and_named_groups),
    cmocka_unit_test(names_that_would_change_the_path_never_leave_the_process),
    cmocka_unit_test(a_copy_lives_on_its_own), cmocka_unit_test(escapes_are_undone_or_refused),
    cmocka_unit_test(names_follow_their_grammar), cmocka_unit_test(grammars_have_names),
    cmocka_unit_test(lengths_count), cmocka_unit_test(generated_names_fit_into_a_label))

/* not in tsan: it starts no thread */
