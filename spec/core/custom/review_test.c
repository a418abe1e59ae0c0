/* review_test.c - the request to a conversion webhook, and the answers that it must not give. */
#include "support/json.h"

#include "base/buf.h"
#include "custom/convert.h"
#include "custom/review.h"

#define WIDGET "'apiVersion':'example.com/v1','kind':'Widget'"
#define GADGET "'apiVersion':'example.com/v2','kind':'Widget'"
#define META "'metadata':{'name':'a','namespace':'n','uid':'u','generation':3}"

static const kl_value *objects[2];
static const kl_value *versions;
static kl_review review;

static int setup(void **state)
{
    (void)state;
    versions = json("['v9','v1']");
    objects[0] = json("{" WIDGET "," META "}");
    objects[1] = json("{" WIDGET ",'metadata':{'name':'b'}}");
    review = (kl_review){versions, "id", "example.com/v2", objects, 1};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl_value_unref(versions);
    kl_value_unref(objects[0]);
    kl_value_unref(objects[1]);
    return 0;
}

/* The mistake that an answer with this body has; NULL: none, and out has the objects. */
static char *read_with(int code, const char *text, const char *failure, const kl_value **out)
{
    char *t = kl_strdup(text);
    for (char *c = t; *c; c++)
        if (*c == '\'')
            *c = '"';
    char *said = kl_review_read(&review, code, t, strlen(t), failure, "https://x/", out);
    kl_free(t);
    return said;
}

#define assert_mistake(part, code, text, failure)                                                            \
    do {                                                                                                     \
        const kl_value *out_[2] = {NULL, NULL};                                                              \
        char *said_ = read_with(code, text, failure, out_);                                                  \
        assert_non_null(said_);                                                                              \
        if (!strstr(said_, part))                                                                            \
            fail_msg("\"%s\" lacks \"%s\"", said_, part);                                                    \
        kl_free(said_);                                                                                      \
    } while (0)

#define ANSWER(uid, status, list)                                                                            \
    "{'apiVersion':'apiextensions.k8s.io/v1','kind':'ConversionReview','response':{'uid':'" uid              \
    "','result':{'status':'" status "'},'convertedObjects':" list "}}"

static void a_question_has_the_first_version_that_is_known(void **state)
{
    (void)state;
    kl_buf out = KL_BUF_INIT;
    const kl_value *asked = NULL;
    kl_err err = KL_ERR_INIT;
    kl_review_write(&review, &out);
    assert_ok(kl_value_decode(out.data, out.len, &asked, &err), &err);
    assert_json(asked,
        "{'kind':'ConversionReview','apiVersion':'apiextensions.k8s.io/v1','request':{'uid':'id',"
        "'desiredAPIVersion':'example.com/v2','objects':[{" WIDGET "," META "}]}}");
    kl_value_unref(asked);
    kl_buf_fini(&out);
    kl_review beta = review;
    beta.versions = json("['v1beta1','v1']");
    kl_review_write(&beta, &out);
    assert_non_null(strstr(kl_buf_str(&out), "apiextensions.k8s.io/v1beta1"));
    kl_value_unref(beta.versions);
    kl_buf_fini(&out);
}

static void an_answer_keeps_the_metadata_of_the_original(void **state)
{
    (void)state;
    const kl_value *out[2] = {NULL, NULL};
    assert_null(read_with(200,
        ANSWER("id", "Success",
            "[{" GADGET ",'size':1,'metadata':{'name':'a','namespace':'n','uid':'u','generation':9,"
            "'labels':{'l':'1'}}}]"),
        NULL, out));
    assert_json(out[0],
        "{" GADGET ",'size':1,'metadata':{'name':'a','namespace':'n','uid':'u','generation':3,"
        "'labels':{'l':'1'}}}");
    kl_value_unref(out[0]);
}

static void an_answer_may_not_change_the_identity_of_an_object(void **state)
{
    (void)state;
    assert_mistake("invalid groupVersion (expected example.com/v2, received example.com/v1)", 200,
        ANSWER("id", "Success", "[{" WIDGET "," META "}]"), NULL);
    assert_mistake("invalid kind (expected Widget, received Other)", 200,
        ANSWER("id", "Success", "[{'apiVersion':'example.com/v2','kind':'Other'}]"), NULL);
    assert_mistake("Object 'Kind' is missing", 200, ANSWER("id", "Success", "[{}]"), NULL);
    assert_mistake("must have the same name: a != z", 200,
        ANSWER("id", "Success", "[{" GADGET ",'metadata':{'name':'z','namespace':'n','uid':'u'}}]"), NULL);
    assert_mistake("must have the same UID: u != ", 200,
        ANSWER("id", "Success", "[{" GADGET ",'metadata':{'name':'a','namespace':'n'}}]"), NULL);
    assert_mistake("metadata.labels[l] must be a string", 200,
        ANSWER("id", "Success",
            "[{" GADGET ",'metadata':{'name':'a','namespace':'n','uid':'u','labels':{'l':1}}}]"),
        NULL);
    assert_mistake("invalid kind (expected Widget", 200,
        ANSWER("id", "Success", "[{'apiVersion':'example.com/v2','kind':'Widget\\u0000s'," META "}]"), NULL);
    assert_mistake("invalid groupVersion (expected example.com/v2", 200,
        ANSWER("id", "Success", "[{'apiVersion':'example.com/v2\\u0000','kind':'Widget'," META "}]"), NULL);
    assert_mistake("returned 0 objects, expected 1", 200, ANSWER("id", "Success", "[]"), NULL);
    review.n = 2;
    assert_mistake("at index 1: Object 'Kind' is missing", 200,
        ANSWER("id", "Success", "[{" GADGET "," META "},{}]"), NULL);
    review.n = 1;
}

static void a_forgotten_object_is_noted_again(void **state)
{
    (void)state;
    const kl_value *webhook = json("{'clientConfig':{'url':'https://x/'},'conversionReviewVersions':['v1']}");
    kl__kind kind = {.group = "example.com", .version = "v2", .kind = "Widget", .conversion = webhook};
    kl_conversions *c = kl_conversions_new();
    for (int i = 0; i < 2; i++) {
        const kl_value *out = NULL;
        kl_err err = KL_ERR_INIT;
        kl_conversion_call call;
        assert_fails(kl_conversions_get(c, &kind, objects[0], &out, &err), KL_EAGAIN, &err, "called first");
        assert_true(kl_conversions_wait(c));
        kl_conversions_call(c, &call);
        kl_conversion_call_fini(&call);
        kl_conversions_answer(c, 0, "", 0, "refused");
        assert_fails(kl_conversions_get(c, &kind, objects[0], &out, &err), KL_ESERVER, &err, "refused");
        kl_conversions_forget(c);
    }
    kl_conversions_free(c);
    kl_value_unref(webhook);
}

static void an_answer_that_is_not_a_review_fails(void **state)
{
    (void)state;
    assert_mistake("failed: Post \"https://x/\": refused", 0, "", "refused");
    assert_mistake("could not find the requested resource", 404, "", NULL);
    assert_mistake("an error on the server (\"down\")", 500, "down", NULL);
    assert_mistake("an error on the server (\"unknown\")", 500, "{}", NULL);
    assert_mistake("status code 302", 302, "", NULL);
    assert_mistake("json parse error", 200, "{", NULL);
    assert_mistake("expected webhook response of apiextensions.k8s.io/v1", 200, "{}", NULL);
    assert_mistake("no response provided", 200,
        "{'apiVersion':'apiextensions.k8s.io/v1','kind':'ConversionReview'}", NULL);
    assert_mistake(
        "expected response.uid=\"id\", got \"other\"", 206, ANSWER("other", "Success", "[]"), NULL);
    assert_mistake(
        "response.result.status was 'Failure', not 'Success'", 200, ANSWER("id", "Failure", "[]"), NULL);
}

#define assert_url(want, client, seconds)                                                                    \
    do {                                                                                                     \
        const kl_value *client_ = json(client);                                                              \
        char *url_ = kl_webhook_url(client_, seconds);                                                       \
        assert_string_equal(url_, want);                                                                     \
        kl_free(url_);                                                                                       \
        kl_value_unref(client_);                                                                             \
    } while (0)

static void a_client_config_leads_to_a_url(void **state)
{
    (void)state;
    assert_url("https://h/p?timeout=30s", "{'url':'https://h/p'}", 30);
    assert_url("https://h/p?a=b&timeout=5s", "{'url':'https://h/p?a=b'}", 5);
    assert_url("https://h:1/?timeout=30s", "{'url':'https://h:1'}", 30);
    assert_url("https://h:1/?timeout=30s", "{'url':'https://h:1//'}", 30);
    assert_url("https://h:1/p/q?timeout=30s", "{'url':'https://h:1//p//q/'}", 30);
    assert_url("https://h/?a=b&timeout=30s", "{'url':'https://h?a=b'}", 30);
    assert_url(
        "https://s.n.svc:443/p?timeout=10s", "{'service':{'name':'s','namespace':'n','path':'//p/'}}", 10);
    assert_url("https://s.n.svc:443/?timeout=10s", "{'service':{'name':'s','namespace':'n'}}", 10);
    assert_url("https://s.n.svc:8443/c?timeout=10s",
        "{'service':{'name':'s','namespace':'n','port':8443,'path':'/c'}}", 10);
}

static void an_authority_is_decoded_and_uids_differ(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"{'caBundle':'UEVN'}", "PEM"}, {"{'caBundle':''}", NULL},
        {"{'caBundle':'*'}", NULL}, {"{'caBundle':'UEVN*'}", NULL}, {"{}", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kl_value *client = json(rows[i][0]);
        char *pem = kl_webhook_ca(client);
        if (rows[i][1])
            assert_string_equal(pem, rows[i][1]);
        else
            assert_null(pem);
        kl_free(pem);
        kl_value_unref(client);
    }
    char *one = kl_webhook_uid(), *two = kl_webhook_uid();
    assert_string_not_equal(one, two);
    kl_free(one);
    kl_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_has_the_first_version_that_is_known),
        cmocka_unit_test(an_answer_keeps_the_metadata_of_the_original),
        cmocka_unit_test(an_answer_may_not_change_the_identity_of_an_object),
        cmocka_unit_test(a_forgotten_object_is_noted_again),
        cmocka_unit_test(an_answer_that_is_not_a_review_fails),
        cmocka_unit_test(a_client_config_leads_to_a_url),
        cmocka_unit_test(an_authority_is_decoded_and_uids_differ),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* not in tsan: it starts no thread */
