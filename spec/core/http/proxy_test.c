/* proxy_test.c - the proxy of a URL, as Go's golang.org/x/net/http/httpproxy decides it. */
#include "support/test.h"

#include <stdlib.h>
#include "base/mem.h"
#include "http/proxy.h"

static void assert_choice(const char *configured, const kl__proxy_env *env, const char *url, const char *want)
{
    char *got = kl__proxy_choose(configured, env, url);
    if (strcmp(got, want))
        fail_msg("%s with NO_PROXY=%s: %s, wanted %s", url, env->no ? env->no : "", got, want);
    kl_free(got);
}

static void the_scheme_chooses_the_variable(void **state)
{
    (void)state;
    kl__proxy_env env = {"http://plain:1", "tls:2", NULL, false};
    assert_choice(NULL, &env, "http://h/x", "http://plain:1");
    assert_choice(NULL, &env, "https://h", "http://tls:2");
    env.cgi = true; /* a request's header could have set HTTP_PROXY */
    assert_choice(NULL, &env, "http://h/x", "");
    assert_choice(NULL, &env, "https://h", "http://tls:2");
    assert_choice(NULL, &(kl__proxy_env){0}, "https://h", "");
    env.https = "socks5://s:1080";
    assert_choice(NULL, &env, "https://h", "socks5h://s:1080");
}

static void a_configured_proxy_counts_alone(void **state)
{
    (void)state;
    kl__proxy_env env = {"http://plain:1", "http://tls:2", "*", false};
    assert_choice("https://mine:3", &env, "https://localhost", "https://mine:3");
    assert_choice("SOCKS5://u:p@mine:3", &env, "https://h", "socks5h://u:p@mine:3");
    assert_choice("", &env, "https://h", "");
}

static void no_proxy_lists_names_addresses_and_networks(void **state)
{
    (void)state;
    static const struct {
        const char *no, *url;
        bool through;
    } cases[] = {
        {"", "https://localhost:1", false},
        {"", "https://127.1.2.3", false},
        {"", "https://[::1]:6443", false},
        {"", "https://10.0.0.1", true},
        {"*", "https://h", false},
        {"x, * ", "https://h", false},
        {"example.com", "https://example.com", false},
        {"example.com", "https://a.example.com", false},
        {"example.com", "https://anexample.com", true},
        {"EXAMPLE.com", "https://Example.COM", false},
        {".example.com", "https://example.com", true},
        {".example.com", "https://a.example.com", false},
        {"*.example.com", "https://example.com", true},
        {"*.example.com", "https://a.b.example.com", false},
        {"example.com:443", "https://example.com", false},
        {"example.com:6443", "https://example.com", true},
        {"example.com:6443", "https://example.com:6443/api", false},
        {"10.0.0.1", "https://10.0.0.1:6443", false},
        {"10.0.0.1:1", "https://10.0.0.1:6443", true},
        {"10.0.0.1", "https://10.0.0.11", true},
        {"10.0.0.0/8", "https://10.1.2.3", false},
        {"10.0.0.0/8", "https://11.1.2.3", true},
        {"0.0.0.0/0", "https://11.1.2.3", false},
        {"10.0.0.0/33", "https://10.0.0.1", true},
        {"10.0.0.0/", "https://10.0.0.0", true},
        {"10.1.2.3/31", "https://10.1.2.2", false},
        {"10.0.0.0/8", "https://10.example", true},
        {"fd00::/8", "https://[fd12::1]:6443", false},
        {"fd00::/8", "https://[fe80::1]", true},
        {"fd00::1", "https://[fd00:0::1]", false},
        {"[fd00::1]:6443", "https://[fd00::1]:6443", false},
        {"::ffff:10.0.0.1", "https://10.0.0.1", false},
        {"0.0.1", "https://10.0.0.1", true},
        {"a,, ,b:", "https://b", false},
        {":443", "https://b", true},
        {"a b", "https://b", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl__proxy_env env = {NULL, "http://p:1", cases[i].no, false};
        assert_choice(NULL, &env, cases[i].url, cases[i].through ? "http://p:1" : "");
    }
}

static void the_environment_is_read_lower_case_first(void **state)
{
    (void)state;
    setenv("HTTPS_PROXY", "http://upper:1", 1);
    setenv("NO_PROXY", "upper", 1);
    unsetenv("https_proxy");
    unsetenv("no_proxy");
    assert_string_equal(kl__proxy_environment().https, "http://upper:1");
    assert_string_equal(kl__proxy_environment().no, "upper");
    setenv("https_proxy", "http://lower:1", 1);
    assert_string_equal(kl__proxy_environment().https, "http://lower:1");
    setenv("https_proxy", "", 1);
    assert_string_equal(kl__proxy_environment().https, "http://upper:1");
}

static void a_password_is_not_for_messages(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://user:p@ss@proxy:3128", "http://proxy:3128"},
        {"socks5h://proxy:1080", "socks5h://proxy:1080"},
        {"u:p@proxy", "proxy"},
        {"https://p/x", "https://p"},
        {"http://u:p/w@proxy:1", "http://proxy:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *words = kl__proxy_words(cases[i][0]);
        assert_string_equal(words, cases[i][1]);
        kl_free(words);
    }
    assert_null(kl__proxy_words(""));
}

KL_TESTS(cmocka_unit_test(the_scheme_chooses_the_variable), cmocka_unit_test(a_configured_proxy_counts_alone),
    cmocka_unit_test(no_proxy_lists_names_addresses_and_networks),
    cmocka_unit_test(the_environment_is_read_lower_case_first),
    cmocka_unit_test(a_password_is_not_for_messages))

/* not in tsan: it starts no thread */
