/* x509_request_test.c - keys and certificate requests; spec/e2e/certificate_spec.lua verifies their contents
 * with openssl. */
#include "support/test.h"

#include <string.h>
#include <openssl/ui.h>
#include "base/mem.h"
#include "base/x509.h"
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

static int prompts;

static int prompted(UI *ui)
{
    (void)ui;
    prompts++;
    return 0;
}

static void nobody_is_asked_for_a_passphrase(void **state)
{
    (void)state;
    static const char encrypted[] = "-----BEGIN %s-----\nProc-Type: 4,ENCRYPTED\n"
                                    "DEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\n"
                                    "AAAAAAAAAAAAAAAAAAAAAA==\n-----END %s-----\n";
    char *cert = kl_sprintf(encrypted, "CERTIFICATE", "CERTIFICATE"),
         *key = kl_sprintf(encrypted, "EC PRIVATE KEY", "EC PRIVATE KEY");
    UI_METHOD *method = UI_create_method("counts");
    UI_method_set_opener(method, prompted);
    UI_set_default_method(method);
    kl_err err = KL_ERR_INIT;
    kl_x509_facts f;
    assert_int_equal(kl_x509_check(cert, &err), KL_ESYNTAX);
    kl_err_fini(&err);
    assert_int_equal(kl_x509_check_pair(cert, key, &err), KL_ESYNTAX);
    kl_err_fini(&err);
    assert_int_not_equal(kl_x509_facts_read(cert, &f, &err), KL_OK);
    kl_err_fini(&err);
    char *made = NULL, *made_key = NULL;
    assert_int_not_equal(kl_x509_make_server(&(kl_x509_wish){.cn = "a"},
                             &(kl_x509_issue){.ca_cert = cert, .ca_key = key, .until = KL_MINUTES(60)}, &made,
                             &made_key, &err),
        KL_OK);
    kl_err_fini(&err);
    assert_int_equal(prompts, 0);
    UI_set_default_method(UI_OpenSSL());
    UI_destroy_method(method);
    kl_free(cert);
    kl_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_made_with_a_key_of_its_own),
        cmocka_unit_test(values_unfit_for_a_certificate_are_named),
        cmocka_unit_test(a_certificate_has_the_requested_fields),
        cmocka_unit_test(nobody_is_asked_for_a_passphrase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
