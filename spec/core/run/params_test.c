/* params_test.c - valid params of a controller, and the messages for invalid ones. */
#include "support/test.h"

#include "base/mem.h"
#include "run/params.h"

static const kl_value *json(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

#define DECLARED                                                                                             \
    "{\"region\":\"eu\",\"replicas\":2,\"ratio\":0.5,\"on\":false,\"every\":\"30s\",\"zones\":[],"           \
    "\"limits\":{\"cpu\":1,\"memory\":2},\"plain\":7}"
#define RULES                                                                                                \
    "{\"region\":{\"type\":\"string\",\"enum\":[\"eu\",\"us\"]},\"replicas\":{\"type\":\"integer\",\"min\":" \
    "1,\"max\":9},"                                                                                          \
    "\"ratio\":{\"type\":\"number\",\"min\":0},\"on\":{\"type\":\"boolean\"},\"every\":{\"type\":"           \
    "\"duration\"},"                                                                                         \
    "\"zones\":{\"type\":\"list\"},\"limits\":{\"type\":\"object\"},"                                        \
    "\"token\":{\"type\":\"secret\",\"required\":true,\"doc\":\"of the DNS "                                 \
    "server\"},\"key\":{\"type\":\"secret\"}}"

typedef struct one {
    kl_program program;
    kl_controller_spec spec;
    kl_err err;
} one;

static void one_init(one *o)
{
    *o = (one){.err = KL_ERR_INIT};
    o->spec.name = kl_strdup("dns");
    o->spec.params = json(DECLARED);
    o->spec.param_rules = json(RULES);
    o->program = (kl_program){.name = "dns.lua", .specs = &o->spec, .n_specs = 1};
}

static void one_fini(one *o)
{
    kl_controller_spec_fini(&o->spec);
    kl_err_fini(&o->err);
}

/* What is said of a wish; "" when it is taken. */
static const char *said(one *o, const char *given, bool texts)
{
    const kl_value *v = json(given);
    kl_err_fini(&o->err);
    kl_status st = kl_program_set_params(&o->program, v, texts, &o->err);
    kl_value_unref(v);
    assert_true(st == KL_OK || st == o->err.status);
    return kl_err_message(&o->err);
}

static void has(const one *o, const char *name, const char *expected)
{
    char *text = kl_value_to_json(kl_value_get(kl_params_of(&o->spec), name));
    assert_string_equal(text, expected);
    kl_free(text);
}

static void strings_are_parsed_by_type(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    assert_string_equal(
        said(&o,
            "{\"region\":\"us\",\"replicas\":\"3\",\"ratio\":\"1e1\",\"on\":\"true\",\"every\":\"2m\","
            "\"zones\":\"[a, b]\",\"limits\":\"cpu: 4\",\"dns.plain\":\"8.5\",\"nobody\":\"x\"}",
            true),
        "");
    has(&o, "region", "\"us\"");
    has(&o, "replicas", "3");
    has(&o, "ratio", "10");
    has(&o, "on", "true");
    has(&o, "every", "\"2m\"");
    has(&o, "zones", "[\"a\",\"b\"]");
    has(&o, "limits", "{\"cpu\":4,\"memory\":2}");
    has(&o, "plain", "8.5");
    has(&o, "nobody", "null");
    assert_ptr_not_equal(o.spec.params, kl_params_of(&o.spec));
    one_fini(&o);
}

static void invalid_values_are_rejected_with_the_rules(void **state)
{
    (void)state;
    static const struct {
        const char *given, *said;
        bool texts;
    } cases[] = {
        {"{\"region\":\"xx\"}", "param region of dns must be \"eu\" or \"us\", got \"xx\"", true},
        {"{\"replicas\":\"0\"}", "param replicas of dns must be at least 1, got 0", true},
        {"{\"replicas\":10}", "param replicas of dns must be at most 9, got 10", false},
        {"{\"replicas\":\"two\"}", "param replicas of dns must be a whole number, got \"two\"", true},
        {"{\"replicas\":1.5}", "param replicas of dns must be a whole number, got 1.5", false},
        {"{\"replicas\":18446744073709551615}",
            "param replicas of dns must be a whole number, got 18446744073709551615", false},
        {"{\"replicas\":\"3\"}", "param replicas of dns must be a whole number, got \"3\"", false},
        {"{\"ratio\":\"-1\"}", "param ratio of dns must be at least 0, got -1", true},
        {"{\"on\":\"yes\"}", "param on of dns must be true or false, got \"yes\"", true},
        {"{\"every\":\"soon\"}", "param every of dns must be a duration such as \"30s\", got \"soon\"", true},
        {"{\"zones\":{\"a\":1}}", "param zones of dns must be a list, got {\"a\":1}", false},
        {"{\"limits\":[1]}", "param limits of dns must be a table of names, got [1]", false},
        {"{\"limits\":null}", "param limits of dns must be a table of names, got null", false},
        {"{\"plain\":\"x\"}", "param plain of dns must be a number, got \"x\"", true},
        {"{\"token\":7}", "param token of dns must be a string, got a number", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        one o;
        one_init(&o);
        assert_string_equal(said(&o, cases[i].given, cases[i].texts), cases[i].said);
        assert_ptr_equal(o.spec.params, kl_params_of(&o.spec));
        one_fini(&o);
    }
}

static void an_empty_table_is_a_list_or_an_object_as_the_type_asks(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    assert_string_equal(said(&o, "{\"zones\":[\"a\"]}", false), "");
    has(&o, "zones", "[\"a\"]");
    assert_string_equal(said(&o, "{\"zones\":{}}", false), "");
    has(&o, "zones", "[]");
    one_fini(&o);
}

static void a_huge_value_is_cut_in_the_message(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    char *long_text = kl_alloc(100001), *given;
    memset(long_text, 'x', 100000);
    long_text[100000] = 0;
    given = kl_sprintf("{\"region\":\"%s\"}", long_text);
    const char *message = said(&o, given, false);
    assert_true(strlen(message) < 9000);
    assert_non_null(strstr(message, "... (100002 bytes)"));
    kl_free(given);
    kl_free(long_text);
    one_fini(&o);
}

static void yaml_that_does_not_parse_names_the_param(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    assert_non_null(strstr(said(&o, "{\"zones\":\"[a, \"}", true), "zones"));
    one_fini(&o);
}

static void secrets_are_needed_and_not_shown(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    uint64_t before = kl_program_params_version(&o.program);
    assert_int_equal(kl_program_params_there(&o.program, &o.err), KL_EINVAL);
    assert_string_equal(kl_err_message(&o.err),
        "dns needs the param token (secret: of the DNS server): give --param-env token=VARIABLE or --params "
        "FILE");
    assert_null(kl_params_given(&o.spec, kl_params_of(&o.spec)));
    assert_string_equal(said(&o, "{\"token\":\"s3cret\",\"region\":\"us\"}", true), "");
    assert_ok(kl_program_params_there(&o.program, &o.err), &o.err);
    has(&o, "token", "\"s3cret\"");
    assert_true(before != kl_program_params_version(&o.program));
    const kl_value *given = kl_params_given(&o.spec, kl_params_of(&o.spec)),
                   *all = kl_params_shown(&o.spec, kl_params_of(&o.spec));
    char *text = kl_value_to_json(given);
    assert_string_equal(text, "{\"region\":\"us\",\"token\":\"***\"}");
    assert_string_equal(kl_value_str_at(all, "token", NULL), "***");
    assert_int_equal(kl_value_len(all), kl_value_len(kl_params_of(&o.spec)));
    kl_free(text);
    kl_value_unref(given);
    kl_value_unref(all);
    one_fini(&o);
}

static void a_running_generation_takes_declared_params_and_no_secrets(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    const kl_value *wish = json("{\"region\":\"us\",\"limits\":{\"cpu\":8}}"), *out = NULL;
    assert_ok(kl_params_over(&o.spec, o.spec.params, wish, &out, &o.err), &o.err);
    assert_string_equal(kl_value_str_at(out, "region", NULL), "us");
    assert_int_equal(kl_value_int_at(out, 0, "limits", "memory", NULL), 2);
    kl_value_unref(out);
    kl_value_unref(wish);
    static const char *const refused[][2] = {
        {"{\"regoin\":\"us\"}", "dns has no param regoin (did you mean region?)"},
        {"{\"token\":\"x\"}", "param token of dns is a secret; it is set at deployment"},
        {"{\"region\\u0000s\":\"us\"}", "the name of a param of dns contains a NUL character"},
    };
    for (size_t i = 0; i < 3; i++) {
        wish = json(refused[i][0]);
        assert_int_equal(kl_params_over(&o.spec, o.spec.params, wish, &out, &o.err), KL_EINVAL);
        assert_string_equal(kl_err_message(&o.err), refused[i][1]);
        kl_err_fini(&o.err);
        kl_value_unref(wish);
    }
    char *text = kl_sprintf("{\"%0*d\":1}", 100000, 0); /* a name without end is not repeated whole */
    wish = json(text);
    assert_int_equal(kl_params_over(&o.spec, o.spec.params, wish, &out, &o.err), KL_EINVAL);
    assert_in_range(strlen(kl_err_message(&o.err)), 200, 300);
    kl_err_fini(&o.err);
    kl_value_unref(wish);
    kl_free(text);
    one_fini(&o);
}

static void names_are_known_by_controller_too(void **state)
{
    (void)state;
    one o;
    one_init(&o);
    kl_program *p = &o.program;
    static const char *const names[][2] = {
        {"region", NULL},
        {"dns.region", NULL},
        {"token", NULL},
        {"other.region", ""},
        {"dns.", ""},
        {"tokn", " (did you mean token?)"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = kl_sprintf("{\"region\":1,\"%s\":2}", names[i][0]), *near = NULL;
        const kl_value *given = NULL;
        assert_ok(kl_value_decode_last(text, strlen(text), &given, &o.err), &o.err);
        const char *unknown = kl_programs_unknown_param(&p, 1, given, &near);
        if (names[i][1]) {
            assert_string_equal(unknown, names[i][0]);
            assert_string_equal(near, names[i][1]);
        } else {
            assert_null(unknown);
            assert_null(near);
        }
        kl_free(near);
        kl_free(text);
        kl_value_unref(given);
    }
    one_fini(&o);
}

/* As a program in C says them: no rules, and nobody has given any. */
static void plain_params_of_a_program_are_its_own(void **state)
{
    (void)state;
    kl_controller_spec s = {.name = kl_strdup("c"), .params = json("{\"size\":1}")};
    const kl_value *wish = json("{\"size\":2}"), *out = NULL;
    kl_err err = KL_ERR_INIT;
    assert_null(kl_params_given(&s, kl_params_of(&s)));
    const kl_value *shown = kl_params_shown(&s, kl_params_of(&s));
    assert_ptr_equal(shown, s.params);
    assert_ok(kl_params_over(&s, s.params, wish, &out, &err), &err);
    assert_int_equal(kl_value_int_at(out, 0, "size", NULL), 2);
    kl_value_unref(shown);
    kl_value_unref(out);
    kl_value_unref(wish);
    kl_controller_spec_fini(&s);
}

KL_TESTS(cmocka_unit_test(strings_are_parsed_by_type),
    cmocka_unit_test(invalid_values_are_rejected_with_the_rules),
    cmocka_unit_test(an_empty_table_is_a_list_or_an_object_as_the_type_asks),
    cmocka_unit_test(a_huge_value_is_cut_in_the_message),
    cmocka_unit_test(yaml_that_does_not_parse_names_the_param),
    cmocka_unit_test(secrets_are_needed_and_not_shown),
    cmocka_unit_test(a_running_generation_takes_declared_params_and_no_secrets),
    cmocka_unit_test(names_are_known_by_controller_too),
    cmocka_unit_test(plain_params_of_a_program_are_its_own))

/* not in tsan: it starts no thread */
