/* admission_test.c - reading and answering reviews, and the certificates of webhooks with a stopped clock. */
#include "support/test.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/x509.h"
#include "model/object.h"
#include "webhook/admission.h"
#include "webhook/conversion.h"
#include "webhook/webhook_certs.h"

#define DAY (KL_MINUTES(60 * 24))
#define NOW (DAY * 365 * 50)

static const kl_value *read(const char *text)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void refused(const char *text, const char *part)
{
    const kl_value *request;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_admission_parse(text, strlen(text), &request, &err);
    assert_true(st == KL_EINVAL || st == KL_ESYNTAX);
    if (!strstr(kl_err_message(&err), part))
        fail_msg("\"%s\" lacks \"%s\"", kl_err_message(&err), part);
    kl_err_fini(&err);
}

static void an_invalid_review_is_rejected_with_a_message(void **state)
{
    (void)state;
    refused("{", "is not JSON");
    refused("[]", "expected an AdmissionReview");
    refused("{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", "got kind \"Pod\" of \"v1\"");
    refused("{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\"}",
        "admissionReviewVersions");
    refused("{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}", "no request");
    refused(
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"\"}}",
        "no uid");
    refused("{\"apiVersion\":\"admission.k8s.io/"
            "v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"1\",\"operation\":\"create\"}}",
        "got \"create\"");
#define REVIEW                                                                                               \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"1\","
    refused(REVIEW "\"operation\":\"CREATE\"}}",
        "the request's object must be an object (the operation is CREATE), got absent");
    refused(REVIEW "\"operation\":\"UPDATE\",\"object\":null}}", "(the operation is UPDATE), got null");
    refused(REVIEW "\"operation\":\"DELETE\",\"oldObject\":[]}}",
        "the request's oldObject must be an object (the operation is DELETE), got array");
}

static void answers(const char *decision, const char *want)
{
    const kl_value *request = read("{\"uid\":\"u\"}"), *d = read(decision);
    kl_buf out = KL_BUF_INIT;
    kl_admission_reply(request, d, &out);
    const kl_value *review = read(kl_buf_str(&out));
    char *text = kl_value_to_json(kl_value_get(review, "response"));
    assert_string_equal(text, want);
    kl_free(text);
    kl_value_unref(review);
    kl_value_unref(request);
    kl_value_unref(d);
    kl_buf_fini(&out);
}

static void an_answer_has_the_decision_and_no_more(void **state)
{
    (void)state;
    answers("{\"allowed\":true}", "{\"uid\":\"u\",\"allowed\":true}");
    answers("{\"allowed\":true,\"patch\":[]}", "{\"uid\":\"u\",\"allowed\":true}");
    answers("{\"allowed\":true,\"patch\":[1]}",
        "{\"uid\":\"u\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"WzFd\"}");
    answers("{\"allowed\":false,\"patch\":[1],\"message\":\"no\"}",
        "{\"uid\":\"u\",\"allowed\":false,\"status\":{\"code\":403,\"reason\":\"Forbidden\",\"message\":"
        "\"no\"}}");
    answers("{\"allowed\":false,\"code\":422,\"message\":\"no\",\"warnings\":[\"w\"]}",
        "{\"uid\":\"u\",\"allowed\":false,\"status\":{\"code\":422,\"message\":\"no\"},\"warnings\":[\"w\"]"
        "}");
}

static void a_long_denial_is_cut_and_says_so(void **state)
{
    (void)state;
    kl_buf text = KL_BUF_INIT, out = KL_BUF_INIT;
    const kl_value *decision;
    kl_buf_puts(&text, "{\"allowed\":false,\"message\":\"");
    for (int i = 0; i < 100000; i++)
        kl_buf_puts(&text, "word ");
    kl_buf_puts(&text, "\"}");
    assert_false(kl_value_decode(text.data, text.len, &decision, NULL));
    kl_admission_reply(NULL, decision, &out);
    assert_true(out.len < 9000);
    assert_non_null(strstr(kl_buf_str(&out), "... (500000 bytes)"));
    kl_buf_clear(&out);
    kl_conversion_reply(NULL, decision, &out);
    assert_true(out.len < 9000);
    kl_value_unref(decision);
    kl_buf_fini(&text);
    kl_buf_fini(&out);
}

static void long_warnings_are_cut_between_characters(void **state)
{
    (void)state;
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "{\"allowed\":true,\"warnings\":[");
    for (int i = 0; i < 30; i++) {
        kl_buf_puts(&text, i ? ",\"" : "\"");
        for (int k = 0; k < 100; k++)
            kl_buf_puts(&text, "\xe2\x82\xac");
        kl_buf_putc(&text, '"');
    }
    kl_buf_puts(&text, "]}");
    const kl_value *request = read("{\"uid\":\"u\"}"), *d = read(kl_buf_str(&text));
    kl_buf out = KL_BUF_INIT;
    kl_admission_reply(request, d, &out);
    const kl_value *review = read(kl_buf_str(&out)),
                   *warnings = kl_value_at(review, "response", "warnings", NULL);
    assert_int_equal(kl_value_len(warnings), 16); /* of 255 bytes, below 4096 together */
    assert_int_equal(kl_value_len(kl_value_item(warnings, 0)), 255);
    kl_value_unref(review);
    kl_value_unref(request);
    kl_value_unref(d);
    kl_buf_fini(&out);
    kl_buf_fini(&text);
}

static void the_time_for_an_answer_leaves_a_way_back(void **state)
{
    (void)state;
    assert_int_equal(kl_admission_time("1s", KL_SECONDS(10)), KL_MILLISECONDS(900));
    assert_int_equal(kl_admission_time("10s", KL_SECONDS(1)), KL_MILLISECONDS(9500));
    assert_int_equal(kl_admission_time(NULL, KL_SECONDS(2)), KL_MILLISECONDS(1800));
    assert_int_equal(kl_admission_time("soon", KL_SECONDS(2)), KL_MILLISECONDS(1800));
    assert_int_equal(kl_admission_time("500ms", KL_SECONDS(2)), KL_MILLISECONDS(450));
    assert_int_equal(kl_admission_time("99999999999s", KL_SECONDS(10)), KL_MILLISECONDS(9500));
    assert_int_equal(kl_admission_time("3600s", KL_SECONDS(10)), KL_MILLISECONDS(29500));
}

/* --- certificates ------------------------------------------------------------------------- */

static const kl_webhook_options SERVICE = {.service = "system/hooks:8443"};

static void a_certificate_is_renewed_before_its_last_third_and_the_ca_stays(void **state)
{
    (void)state;
    kl_webhook_names n;
    kl_webhook_certs c = {0};
    kl_err err = KL_ERR_INIT;
    kl_webhook_names_of(&SERVICE, NULL, &n);
    assert_string_equal(n.dns[0], "hooks.system.svc");
    assert_false(kl_webhook_certs_good(&c, &n, 90 * DAY, NOW));
    assert_ok(kl_webhook_certs_renew(&c, &n, 90 * DAY, NOW, &err), &err);
    assert_true(kl_webhook_certs_good(&c, &n, 90 * DAY, NOW));
    assert_true(kl_webhook_certs_good(&c, &n, 90 * DAY, NOW + 59 * DAY));
    assert_false(kl_webhook_certs_good(&c, &n, 90 * DAY, NOW + 61 * DAY));
    char *ca = kl_strdup(c.ca), *cert = kl_strdup(c.cert);
    assert_ok(kl_webhook_certs_renew(&c, &n, 90 * DAY, NOW + 61 * DAY, &err), &err);
    assert_true(kl_webhook_certs_good(&c, &n, 90 * DAY, NOW + 61 * DAY));
    assert_string_equal(c.ca, ca);
    assert_string_not_equal(c.cert, cert);
    kl_free(ca);
    kl_free(cert);
    kl_webhook_certs_fini(&c);
    kl_webhook_names_fini(&n);
}

static void a_new_ca_comes_with_the_one_before(void **state)
{
    (void)state;
    kl_webhook_names n;
    kl_webhook_certs c = {0};
    kl_err err = KL_ERR_INIT;
    kl_webhook_names_of(&(kl_webhook_options){.url = "x"}, "https://10.0.0.1:9443", &n);
    assert_string_equal(n.ips[0], "10.0.0.1");
    assert_ok(kl_webhook_certs_renew(&c, &n, DAY, NOW, &err), &err);
    char *old = kl_strdup(c.ca);
    kl_time late = NOW + 39 * DAY;
    assert_false(kl_webhook_certs_good(&c, &n, DAY, late));
    assert_ok(kl_webhook_certs_renew(&c, &n, DAY, late, &err), &err);
    assert_true(kl_webhook_certs_good(&c, &n, DAY, late));
    assert_true(strstr(c.ca, old) > c.ca); /* behind its successor */
    assert_ok(kl_webhook_certs_renew(&c, &n, DAY, late + 39 * DAY, &err), &err);
    assert_null(strstr(c.ca, old)); /* and of three, two are kept */
    kl_free(old);
    kl_webhook_certs_fini(&c);
    kl_webhook_names_fini(&n);
}

static void a_certificate_for_other_names_is_not_good(void **state)
{
    (void)state;
    kl_webhook_names n, other;
    kl_webhook_certs c = {0};
    kl_err err = KL_ERR_INIT;
    kl_webhook_names_of(&SERVICE, NULL, &n);
    kl_webhook_names_of(&(kl_webhook_options){.service = "system/others"}, NULL, &other);
    assert_ok(kl_webhook_certs_renew(&c, &n, DAY, NOW, &err), &err);
    assert_false(kl_webhook_certs_good(&c, &other, DAY, NOW));
    kl_webhook_certs_fini(&c);
    kl_webhook_names_fini(&n);
    kl_webhook_names_fini(&other);
}

static void a_secret_round_trips(void **state)
{
    (void)state;
    kl_webhook_names n;
    kl_webhook_certs c = {0}, back;
    kl_err err = KL_ERR_INIT;
    kl_webhook_names_of(&SERVICE, NULL, &n);
    assert_ok(kl_webhook_certs_renew(&c, &n, DAY, NOW, &err), &err);
    const kl_value *secret = kl_webhook_certs_secret(&c, "system", "hooks-webhook-tls", "7");
    assert_string_equal(kl_object_name(secret), "hooks-webhook-tls");
    assert_string_equal(kl_object_rv(secret), "7");
    kl_webhook_certs_read(secret, &back);
    assert_true(kl_webhook_certs_good(&back, &n, DAY, NOW));
    assert_string_equal(back.key, c.key);
    kl_webhook_certs_fini(&back);
    kl_webhook_certs_read(NULL, &back); /* and an empty one nothing */
    assert_false(kl_webhook_certs_good(&back, &n, DAY, NOW));
    kl_webhook_certs_fini(&back);
    kl_webhook_certs_fini(&c);
    kl_value_unref(secret);
    kl_webhook_names_fini(&n);
}

static void options_say_what_is_missing(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    assert_fails(
        kl_webhook_options_check(&(kl_webhook_options){0}, &err), KL_EINVAL, &err, "--webhook-service");
    assert_fails(kl_webhook_options_check(&(kl_webhook_options){.url = "http://x"}, &err), KL_EINVAL, &err,
        "https://");
    assert_fails(kl_webhook_options_check(&(kl_webhook_options){.url = "https://x", .service = "a/b"}, &err),
        KL_EINVAL, &err, "leave one out");
    assert_fails(kl_webhook_options_check(&(kl_webhook_options){.service = "b"}, &err), KL_EINVAL, &err,
        "NAMESPACE/NAME");
    assert_fails(kl_webhook_options_check(&(kl_webhook_options){.service = "a/b:x"}, &err), KL_EINVAL, &err,
        "NAMESPACE/NAME:PORT");
    assert_fails(kl_webhook_options_check(&(kl_webhook_options){.url = "auto", .secret = "b"}, &err),
        KL_EINVAL, &err, "--webhook-secret");
    assert_ok(
        kl_webhook_options_check(&(kl_webhook_options){.service = "a/b:8443", .secret = "a/c"}, &err), &err);
}

static kl_status resolve(void *arg, const char *kind, const kl_resource **out, kl_err *err)
{
    if (strcmp(kind, "apps/v1/Deployment"))
        return kl_fail(err, KL_ENOTFOUND, "no %s", kind);
    *out = arg;
    return KL_OK;
}

static void a_configuration_says_rules_in_resources(void **state)
{
    (void)state;
    kl_resource deployments = {.group = (char *)"apps",
        .version = (char *)"v1",
        .kind = (char *)"Deployment",
        .plural = (char *)"deployments"};
    char *kinds[] = {(char *)"apps/v1/Deployment", (char *)"apps/v1/Deployment/scale", (char *)"*", NULL},
         *wrong[] = {(char *)"apps/v1/Deploiment", NULL};
    kl_webhook_spec s = {.as = {.name = (char *)"caps"},
        .mutating = true,
        .kinds = kinds,
        .scope = "*",
        .operations = read("[\"CREATE\"]"),
        .entry = read("{\"name\":\"a.b.c\"}")};
    const kl_value *where = read("{\"url\":\"https://x/caps\"}"), *out;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_webhook_config(&s, where, "PEM", resolve, &deployments, &out, &err), &err);
    char *text = kl_value_to_json(kl_value_get(out, "webhooks"));
    assert_string_equal(text,
        "[{\"name\":\"a.b.c\",\"rules\":["
        "{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"],\"operations\":["
        "\"CREATE\"],\"scope\":\"*\"},"
        "{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments/"
        "scale\"],\"operations\":[\"CREATE\"],\"scope\":\"*\"},"
        "{\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],\"resources\":[\"*\"],\"operations\":[\"CREATE\"],"
        "\"scope\":\"*\"}],"
        "\"clientConfig\":{\"url\":\"https://x/caps\",\"caBundle\":\"UEVN\"}}]");
    assert_string_equal(kl_value_str_at(out, "kind", NULL), "MutatingWebhookConfiguration");
    kl_free(text);
    kl_value_unref(out);
    s.kinds = wrong;
    assert_fails(kl_webhook_config(&s, where, NULL, resolve, &deployments, &out, &err), KL_ENOTFOUND, &err,
        "no apps/v1/Deploiment");
    kl_value_unref(where);
    kl_value_unref(s.operations);
    kl_value_unref(s.entry);
}

KL_TESTS(cmocka_unit_test(an_invalid_review_is_rejected_with_a_message),
    cmocka_unit_test(an_answer_has_the_decision_and_no_more),
    cmocka_unit_test(long_warnings_are_cut_between_characters),
    cmocka_unit_test(a_long_denial_is_cut_and_says_so),
    cmocka_unit_test(the_time_for_an_answer_leaves_a_way_back),
    cmocka_unit_test(a_certificate_is_renewed_before_its_last_third_and_the_ca_stays),
    cmocka_unit_test(a_new_ca_comes_with_the_one_before),
    cmocka_unit_test(a_certificate_for_other_names_is_not_good), cmocka_unit_test(a_secret_round_trips),
    cmocka_unit_test(options_say_what_is_missing), cmocka_unit_test(a_configuration_says_rules_in_resources))

/* not in tsan: it starts no thread */
