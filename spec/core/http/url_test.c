/* url_test.c - base, path and query. client-go's answers are in the oracle's table; here are the edges. */
#include "support/test.h"

#include "http/url.h"

static void assert_url(const kl_url_request *r, const char *want)
{
    kl_err err = KL_ERR_INIT;
    kl_buf url = KL_BUF_INIT;

    assert_ok(kl_url_build(r, &url, &err), &err);
    assert_string_equal(kl_buf_str(&url), want);
    kl_buf_fini(&url);
}

static void the_base_may_have_a_path_and_odd_characters(void **state)
{
    kl_url_request r = {.base = "https://h:6443/a%20b//c/./",
        .group = "apps",
        .version = "v1",
        .resource = "Deployments",
        .ns = "x"};

    (void)state;
    assert_url(&r, "https://h:6443/a%20b/c/apis/apps/v1/namespaces/x/deployments");
    r.base = "https://[::1]:6443";
    r.ns = NULL;
    assert_url(&r, "https://[::1]:6443/apis/apps/v1/deployments");
    r.base = "https://h/?q=1#f";
    assert_url(&r, "https://h/apis/apps/v1/deployments");
}

static void parameters_are_sorted_by_key_and_keep_the_order_of_values(void **state)
{
    static const kl_url_param params[] = {
        {"watch", "true"}, {"limit", "2"}, {"limit", "1"}, {"a b", "\xc3\xa9&"}};
    kl_url_request r = {
        .base = "http://h", .group = "", .version = "v1", .resource = "pods", .params = params, .nparams = 4};

    (void)state;
    assert_url(&r, "http://h/api/v1/pods?a+b=%C3%A9%26&limit=2&limit=1&watch=true");
}

static void a_suffix_cannot_climb_out_of_the_server(void **state)
{
    static const char *const proxy[] = {"proxy", NULL}, *const up[] = {"../../../../../../../../etc", NULL};
    kl_url_request r = {.base = "http://h",
        .group = "",
        .version = "v1",
        .resource = "services",
        .ns = "a",
        .name = "x",
        .subresource = proxy,
        .suffix = up};

    (void)state;
    assert_url(&r, "http://h/etc");
}

static void a_base_that_is_no_url_is_refused(void **state)
{
    kl_url_request r = {.base = "h:6443", .group = "", .version = "v1", .resource = "pods"};
    kl_err err = KL_ERR_INIT;
    kl_buf url = KL_BUF_INIT;

    (void)state;
    assert_fails(kl_url_build(&r, &url, &err), KL_EINVAL, &err,
        "\"h:6443\" is not a URL; write it as https://host:6443");
    r.base = "https://";
    assert_fails(kl_url_build(&r, &url, &err), KL_EINVAL, &err, "not a URL");
    r.base = "https://h/%";
    assert_fails(kl_url_build(&r, &url, &err), KL_ESYNTAX, &err, "hexadecimal");
    kl_buf_fini(&url);
}

static void assert_uri(const char *uri, const char *want)
{
    kl_err err = KL_ERR_INIT;
    kl_buf url = KL_BUF_INIT;

    assert_ok(kl_url_request_uri("https://h/p", uri, &url, &err), &err);
    assert_string_equal(kl_buf_str(&url), want);
    kl_buf_fini(&url);
}

static void a_typed_path_stays_on_the_server(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_buf url = KL_BUF_INIT;

    (void)state;
    assert_uri("/version", "https://h/p/version");
    assert_uri("https://evil.example/apis?b=2&a=1#x", "https://h/p/apis?a=1&b=2");
    assert_uri("//evil.example/apis", "https://h/p/apis");
    assert_uri("/logs/", "https://h/p/logs/");
    assert_uri("/a?x=%zz&y=1", "https://h/p/a?y=1");
    assert_uri("", "https://h/p");
    assert_fails(kl_url_request_uri("https://h", "/a\nb", &url, &err), KL_ESYNTAX, &err, "control character");
    assert_fails(
        kl_url_request_uri("https://h", "1:2", &url, &err), KL_ESYNTAX, &err, "':' before its first '/'");
    kl_buf_fini(&url);
}

static void the_target_follows_the_host(void **state)
{
    (void)state;
    assert_string_equal(kl_url_target("https://u:p@h:1/a/b?c"), "/a/b?c");
    assert_string_equal(kl_url_target("https://h"), "/");
}

KL_TESTS(cmocka_unit_test(the_base_may_have_a_path_and_odd_characters),
    cmocka_unit_test(parameters_are_sorted_by_key_and_keep_the_order_of_values),
    cmocka_unit_test(a_suffix_cannot_climb_out_of_the_server),
    cmocka_unit_test(a_base_that_is_no_url_is_refused), cmocka_unit_test(a_typed_path_stays_on_the_server),
    cmocka_unit_test(the_target_follows_the_host))

/* not in tsan: it starts no thread */
