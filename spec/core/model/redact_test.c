/* redact_test.c - secret values become unreadable, and equal values stay equal. */
#include "support/json.h"

#include "model/redact.h"

static kl_redaction key;

static const kl_value *shown(const char *kind, const char *text)
{
    const kl_value *v = json(text), *out = kl_redact(&key, kind, v);
    kl_value_unref(v);
    return out;
}

static bool hides(const kl_value *v, const char *what)
{
    char *text = kl_value_to_json(v);
    bool hidden = !strstr(text, what);
    kl_free(text);
    return hidden;
}

static void a_secret_keeps_its_keys_and_equal_texts_stay_equal(void **state)
{
    (void)state;
    const kl_value *v = shown(NULL,
        "{'apiVersion':'v1','kind':'Secret','metadata':{'name':'a','annotations':{'x':'y',"
        "'kubectl.kubernetes.io/"
        "last-applied-configuration':'pass'}},'data':{'a':'cGFzcw==','b':'cGFzcw==','c':'b3RoZXI=','d':''},'"
        "type':'Opaque'}");
    assert_true(hides(v, "cGFzcw"));
    assert_true(hides(v, "\"pass\""));
    assert_string_equal(kl_value_str_at(v, "data", "a", NULL), kl_value_str_at(v, "data", "b", NULL));
    assert_string_not_equal(kl_value_str_at(v, "data", "a", NULL), kl_value_str_at(v, "data", "c", NULL));
    assert_true(kl_redacted(kl_value_str_at(v, "data", "a", NULL)));
    assert_true(kl_redacted(kl_value_str_at(v, "data", "d", NULL)));
    assert_false(kl_redacted("redacted-"));
    assert_string_equal(kl_value_str_at(v, "metadata", "annotations", "x", NULL), "y");
    assert_string_equal(kl_value_str_at(v, "type", NULL), "Opaque");
    kl_value_unref(v);
}

static void plain_text_and_its_base64_are_the_same_secret(void **state)
{
    (void)state;
    const kl_value *a = shown("v1/Secret", "{'stringData':{'a':'pass'}}"),
                   *b = shown("v1/Secret", "{'data':{'a':'cGFzcw=='}}");
    const char *plain = kl_value_str_at(a, "stringData", "a", NULL),
               *coded = kl_value_str_at(b, "data", "a", NULL);
    assert_true(kl_redacted(plain));
    assert_true(kl_redacted(coded));
    /* base64 of "redacted-..." begins so. */
    assert_int_equal(strncmp(coded, "cmVkYWN0ZWQt", 12), 0);
    kl_value_unref(a);
    kl_value_unref(b);
}

static void another_key_gives_other_texts(void **state)
{
    (void)state;
    kl_redaction other;
    kl_redaction_init(&other);
    const kl_value *v = json("{'stringData':{'a':'pass'}}"), *a = kl_redact(&key, "v1/Secret", v),
                   *b = kl_redact(&other, "v1/Secret", v);
    assert_false(kl_value_equal(a, b));
    kl_value_unref(v);
    kl_value_unref(a);
    kl_value_unref(b);
}

static void lists_patches_and_tokens_are_looked_through(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *text;
    } cases[] = {
        {NULL,
            "{'apiVersion':'v1','kind':'SecretList','items':[{'metadata':{'name':'a'},'data':{'a':'cGFzcw=='}"
            "}]}"},
        {NULL,
            "{'apiVersion':'v1','kind':'List','items':[{'apiVersion':'v1','kind':'Secret','data':{'a':'"
            "cGFzcw=='}}]}"},
        {"v1/Secret", "[{'op':'add','path':'/data/a','value':'cGFzcw=='}]"},
        {"v1/Secret", "[{'op':'add','path':'/data','value':{'a':'cGFzcw=='}}]"},
        {"Secret", "[{'op':'replace','path':'','value':{'data':{'a':'cGFzcw=='}}}]"},
        {"secrets",
            "[{'op':'add','path':'/metadata/annotations/"
            "kubectl.kubernetes.io~1last-applied-configuration','value':'cGFzcw=='}]"},
        {"v1/Secret", "{'data':{'a':'cGFzcw=='}}"},
        {"v1/secrets", "{'data':{'a':'cGFzcw=='}}"},
        {"v1/Secret",
            "[{'op':'add','path':'/metadata','value':{'annotations':{'kubectl.kubernetes.io/"
            "last-applied-configuration':'cGFzcw=='}}}]"},
        {"v1/Secret",
            "[{'op':'add','path':'/metadata/annotations','value':{'kubectl.kubernetes.io/"
            "last-applied-configuration':'cGFzcw=='}}]"},
        /* what no server takes is recorded all the same */
        {"v1/Secret", "{'data':{'a':{'b':['cGFzcw==']}}}"},
        {"v1/Secret", "{'stringData':['cGFzcw==']}"},
        {"v1/Secret", "{'dta':{'a':'cGFzcw=='}}"},
        {"v1/Secret", "[{'op':'add','path':'/dta','value':'cGFzcw=='}]"},
        {"v1/ServiceAccount",
            "{'apiVersion':'authentication.k8s.io/v1','kind':'TokenRequest','status':{'token':'cGFzcw=='}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *v = shown(cases[i].kind, cases[i].text);
        if (!hides(v, "cGFzcw"))
            fail_msg("it can be read: %s", cases[i].text);
        kl_value_unref(v);
    }
}

static void a_number_in_a_secret_is_one_too(void **state)
{
    (void)state;
    const kl_value *v = shown("v1/Secret", "{'stringData':{'pin':4711,'on':true,'gone':null}}");
    assert_true(kl_redacted(kl_value_str_at(v, "stringData", "pin", NULL)));
    assert_true(kl_redacted(kl_value_str_at(v, "stringData", "on", NULL)));
    assert_int_equal(kl_value_type(kl_value_at(v, "stringData", "gone", NULL)), KL_NULL);
    kl_value_unref(v);
}

static void other_values_stay(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *text;
    } cases[] = {
        {NULL, "{'apiVersion':'v1','kind':'ConfigMap','data':{'a':'cGFzcw=='}}"},
        {"v1/ConfigMap", "[{'op':'add','path':'/data/a','value':'x'}]"},
        {NULL, "{'apiVersion':'example.com/v1','kind':'Secret','data':{'a':'cGFzcw=='}}"},
        {"v1/Secret", "{'data':{'a':null},'metadata':{'labels':{'a':'b'}}}"},
        {"v1/Secret", "{'$patch':'replace','immutable':true,'type':'Opaque'}"},
        {"v1/Secret", "[{'op':'add','path':'/metadata/labels/a','value':'x'}]"},
        {NULL, "'text'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *v = shown(cases[i].kind, cases[i].text);
        assert_json(v, cases[i].text);
        kl_value_unref(v);
    }
    assert_null(kl_redact(&key, NULL, NULL));
}

int main(void)
{
    kl_redaction_init(&key);
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_secret_keeps_its_keys_and_equal_texts_stay_equal),
        cmocka_unit_test(plain_text_and_its_base64_are_the_same_secret),
        cmocka_unit_test(another_key_gives_other_texts),
        cmocka_unit_test(lists_patches_and_tokens_are_looked_through),
        cmocka_unit_test(a_number_in_a_secret_is_one_too), cmocka_unit_test(other_values_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
