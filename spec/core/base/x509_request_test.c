/* x509_request_test.c - keys and certificate requests; spec/e2e/certificate_spec.lua verifies their contents
 * with openssl. */
#include "support/test.h"

#include <string.h>
#include "base/mem.h"
#include "base/x509_sign.h"

static void a_request_is_made_with_a_key_of_its_own(void **state)
{
    (void)state;
    const char *const orgs[] = {"system:nodes", "team", NULL},
                      *const dns[] = {"a.example", "*.b.example", NULL},
                      *const ips[] = {"10.0.0.1", "fd00::1", NULL};
    kl_x509_wish w = {.cn = "system:node:a", .orgs = orgs, .dns = dns, .ips = ips};
    char *key, *request, *other_key, *other_request;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_x509_request(&w, &key, &request, &err), &err);
    assert_ptr_equal(strstr(key, "-----BEGIN EC PRIVATE KEY-----"), key);
    assert_ptr_equal(strstr(request, "-----BEGIN CERTIFICATE REQUEST-----"), request);
    assert_ok(kl_x509_request(&(kl_x509_wish){0}, &other_key, &other_request, &err), &err);
    assert_string_not_equal(key, other_key);
    kl_x509_wipe(key);
    kl_x509_wipe(other_key);
    kl_free(request);
    kl_free(other_request);
}

static void values_unfit_for_a_certificate_are_named(void **state)
{
    (void)state;
    const char *const bad_ip[] = {"10.0.0.300", NULL}, *const bad_dns[] = {"a b", NULL},
                      *const no_dns[] = {"", NULL};
    char long_cn[80];
    memset(long_cn, 'x', sizeof long_cn - 1);
    long_cn[sizeof long_cn - 1] = '\0';
    const struct {
        kl_x509_wish wish;
        const char *named;
    } cases[] = {
        {{.ips = bad_ip}, "10.0.0.300"},
        {{.dns = bad_dns}, "a b"},
        {{.dns = no_dns}, "DNS name"},
        {{.cn = long_cn}, "the subject's CN"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *key = NULL, *request = NULL;
        kl_err err = KL_ERR_INIT;
        assert_int_equal(kl_x509_request(&cases[i].wish, &key, &request, &err), KL_EINVAL);
        assert_non_null(strstr(kl_err_message(&err), cases[i].named));
        assert_null(key);
        kl_err_fini(&err);
    }
    kl_x509_facts f;
    kl_err err = KL_ERR_INIT;
    assert_int_not_equal(
        kl_x509_facts_read("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &f, &err),
        KL_OK);
    kl_err_fini(&err);
    assert_int_not_equal(kl_x509_facts_read("", &f, &err), KL_OK);
    kl_err_fini(&err);
}

static void assert_list(char *const *got, const char *const *want)
{
    size_t i = 0;
    for (; want[i]; i++) {
        assert_non_null(got[i]);
        assert_string_equal(got[i], want[i]);
    }
    assert_null(got[i]);
}

static void a_certificate_has_the_requested_fields(void **state)
{
    (void)state;
    const char *const orgs[] = {"system:nodes", "team", NULL},
                      *const dns[] = {"a.example", "*.b.example", "c", NULL},
                      *const ips[] = {"10.0.0.1", "fd00::1", NULL};
    kl_x509_wish w = {.cn = "system:node:a", .orgs = orgs, .dns = dns, .ips = ips};
    char *ca, *ca_key, *cert, *key;
    kl_x509_facts f;
    kl_err err = KL_ERR_INIT;
    kl_time from = KL_SECONDS(1700000000), until = KL_SECONDS(1800000000);
    assert_ok(kl_x509_make_ca("the authority", from, until, &ca, &ca_key, &err), &err);
    assert_ok(kl_x509_make_server(&w, &(kl_x509_issue){ca, ca_key, from, until}, &cert, &key, &err), &err);
    assert_ok(kl_x509_facts_read(cert, &f, &err), &err);
    assert_string_equal(f.cn, "system:node:a");
    assert_list(f.orgs, orgs);
    assert_list(f.dns, dns);
    assert_list(f.ips, ips);
    assert_int_equal(f.not_before, from);
    assert_int_equal(f.not_after, until);
    kl_x509_facts_fini(&f);
    assert_ok(kl_x509_facts_read(ca, &f, &err), &err);
    assert_string_equal(f.cn, "the authority");
    assert_true(!f.orgs && !f.dns && !f.ips);
    kl_x509_facts_fini(&f);
    kl_x509_wipe(key);
    kl_x509_wipe(ca_key);
    kl_free(cert);
    kl_free(ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_made_with_a_key_of_its_own),
        cmocka_unit_test(values_unfit_for_a_certificate_are_named),
        cmocka_unit_test(a_certificate_has_the_requested_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
