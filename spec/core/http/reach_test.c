/* reach_test.c - strict parsing of URLs, rules, and addresses that no name may resolve to. */
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include "base/mem.h"
#include "http/reach.h"

static void urls_are_read_in_one_way_or_not_at_all(void **state)
{
    (void)state;
    static const char *const good[] = {"http://a", "https://A.example.com:8443/x?y=/../z", "http://10.0.0.1/",
        "http://[fd00::1]:8080/a%20b", "http://a_b-c.d", "http://a/...", "https://a?x=1", NULL},
                             *const bad[] = {"", "a", "ftp://a", "http://", "http:///x", "http://u@a",
                                 "http://u:p@a/", "http://a b", "http://a\\b", "http://a#b", "http://a/#b",
                                 "http://a/../b", "http://a/.", "http://a/%2e%2E/b", "http://a/.%2e",
                                 "http://a/%2fb", "http://a/%5cb", "http://a:b", "http://a:", "http://a:0",
                                 "http://a:65536", "http://a:99999999", "http://1", "http://0x7f000001",
                                 "http://127.1", "http://a.1", "http://[a]", "http://[::1", "http://[::1]x",
                                 "http://[fe80::1%25eth0]", "http://a..b", "http://.a", "http://a.",
                                 "http://\xc3\xa9", "http://a/\x01", "http://*.a", "http://a%2eb", NULL};
    kl_reach r;
    kl_err err = KL_ERR_INIT;
    for (const char *const *u = good; *u; u++)
        if (kl_reach_parse(*u, &r, &err))
            fail_msg("%s: %s", *u, kl_err_message(&err));
    for (const char *const *u = bad; *u; u++)
        if (kl_reach_parse(*u, &r, &err) != KL_EINVAL)
            fail_msg("%s was taken: %s %u %s", *u, r.host, r.port, r.target);
    kl_err_fini(&err);
    assert_int_equal(kl_reach_parse("HTTPS://A.Example.com/x", &r, NULL), KL_OK);
    assert_string_equal(r.host, "a.example.com");
    assert_int_equal(r.port, 443);
    assert_string_equal(r.target, "/x");
    assert_false(r.is_address);
}

static bool lets(const char *rule, const char *url)
{
    char *rules[] = {(char *)rule, NULL};
    kl_reach r;
    return !kl_reach_parse(url, &r, NULL) && kl_reach_rule(rules, &r) != NULL;
}

static void a_rule_is_one_server_or_a_path_prefix(void **state)
{
    (void)state;
    assert_true(lets("https://a.b", "https://a.b"));
    assert_true(lets("https://a.b/", "https://A.B:443/x?y"));
    assert_true(lets("https://a.b:443 POST", "https://a.b/"));
    assert_false(lets("https://a.b", "http://a.b"));
    assert_false(lets("https://a.b", "https://a.b:444"));
    assert_false(lets("https://a.b", "https://a.b.c"));
    assert_false(lets("https://a.b", "https://x.a.b"));
    assert_true(lets("https://*.a.b", "https://x.a.b"));
    assert_true(lets("https://*.a.b", "https://y.x.a.b/z"));
    assert_false(lets("https://*.a.b", "https://a.b"));
    assert_false(lets("https://*.a.b", "https://xa.b"));
    assert_true(lets("http://h/v1", "http://h/v1"));
    assert_true(lets("http://h/v1/", "http://h/v1?x"));
    assert_true(lets("http://h/v1", "http://h/v1/y"));
    assert_false(lets("http://h/v1", "http://h/v12"));
    assert_false(lets("http://h/v1", "http://h/"));
    assert_false(lets("http://h/v1", "http://h/v1/../x"));
    assert_true(lets("http://[::1]:80", "http://[::1]/"));
    assert_null(kl_reach_rule(NULL, &(kl_reach){0}));
}

static void rules_are_checked(void **state)
{
    (void)state;
    assert_int_equal(kl_reach_rule_check("https://*.a.b:8443/x", NULL), KL_OK);
    static const char *const bad[] = {"a", "https://", "https://*", "https://*.1", "https://*.10.0.0.1",
        "https://a*.b", "https://*.*.b", "https://a?b", "https://u@a", NULL};
    for (const char *const *u = bad; *u; u++)
        if (kl_reach_rule_check(*u, NULL) != KL_EINVAL)
            fail_msg("%s was taken", *u);
}

static void a_rule_may_declare_reads(void **state)
{
    (void)state;
    assert_true(kl_reach_reads("https://a", "GET"));
    assert_true(kl_reach_reads(NULL, "HEAD"));
    assert_false(kl_reach_reads("https://a", "POST"));
    assert_true(kl_reach_reads("https://a POST QUERY", "POST"));
    assert_true(kl_reach_reads("https://a POST QUERY", "QUERY"));
    assert_false(kl_reach_reads("https://a POSTS", "POST"));
}

static bool may(const char *address, const char *host)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return kl_reach_address((const struct sockaddr *)(const void *)&v4, host);
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    return kl_reach_address((const struct sockaddr *)(const void *)&v6, host);
}

static void names_may_not_resolve_to_special_addresses(void **state)
{
    (void)state;
    static const char *const special[] = {"169.254.169.254", "169.254.0.1", "127.0.0.1", "127.8.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "fe80::1", "febf::1", "::1", "::", "ff02::1", "fd00:ec2::254", "::ffff:169.254.169.254",
        "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "2002:7f00:1::", NULL},
                             *const plain[] = {"10.0.0.1", "192.168.1.1", "100.100.100.201", "8.8.8.8",
                                 "fd00::1", "2001:db8::1", "fec0::1", "::ffff:10.0.0.1",
                                 "2002:0a00:1::", NULL};
    for (const char *const *a = special; *a; a++) {
        if (may(*a, "name.example.com") || may(*a, "10.0.0.1"))
            fail_msg("%s is reached by a name", *a);
        if (!may(*a, *a))
            fail_msg("%s is not reached by itself", *a);
    }
    for (const char *const *a = plain; *a; a++)
        if (!may(*a, "name.example.com"))
            fail_msg("%s is not reached", *a);
    assert_true(may("127.0.0.1", "localhost"));
    assert_true(may("::1", "a.localhost"));
    assert_false(may("127.0.0.1", "notlocalhost"));
    assert_false(may("169.254.169.254", "localhost"));
}

static void assert_shown(const char *url, const char *want)
{
    char *got = kl_reach_shown(url);
    assert_string_equal(got, want);
    kl_free(got);
}

static void a_possible_key_is_not_shown(void **state)
{
    (void)state;
    assert_shown("https://a", "https://a");
    assert_shown("https://a/b/c", "https://a/b/c");
    assert_shown("https://a/b?token=x", "https://a/b?...");
    assert_shown("https://u:p@a/b", "https://a/b");
    assert_shown("https://hooks/T0/B0/abcdefghij0123456789/x", "https://hooks/T0/B0/***/x");
    assert_shown("https://a/abcdefghijabcdefghijabcdefghij", "https://a/abcdefghijabcdefghijabcdefghij");
    assert_shown("", "");
}

static void assert_leads(const char *url, const char *location, const char *want)
{
    char *got = kl_reach_resolve(url, location);
    assert_string_equal(got, want);
    kl_free(got);
}

static void redirects_lead_where_they_say(void **state)
{
    (void)state;
    assert_leads("https://a/b/c?d", "/x", "https://a/x");
    assert_leads("https://a/b/c?d", "x", "https://a/b/x");
    assert_leads("https://a/b/c?d", "?x", "https://a/b/c?x");
    assert_leads("https://a/b/c?d", "//x/y", "https://x/y");
    assert_leads("https://a/b/c?d", "http://x#y", "http://x");
    assert_leads("https://a", "x", "https://a/x");
    assert_leads("https://a", "/x#y", "https://a/x");
    assert_leads("https://a/b", "file:///etc/passwd", "file:///etc/passwd");
    assert_leads("https://a/b", "", "https://a/b");
}

KL_TESTS(cmocka_unit_test(urls_are_read_in_one_way_or_not_at_all),
    cmocka_unit_test(a_rule_is_one_server_or_a_path_prefix), cmocka_unit_test(rules_are_checked),
    cmocka_unit_test(a_rule_may_declare_reads), cmocka_unit_test(names_may_not_resolve_to_special_addresses),
    cmocka_unit_test(a_possible_key_is_not_shown), cmocka_unit_test(redirects_lead_where_they_say))

/* not in tsan: it starts no thread */
