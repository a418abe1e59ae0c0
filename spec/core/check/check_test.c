/* check_test.c - errors about objects: their paths, their messages, and the checks of one member. */
#include "support/json.h"

#include "base/buf.h"
#include "check/check.h"
#include "check/forms.h"

static kl__causes causes;

/* The complaints since the last call, one a line: "place: message". */
static void assert_said(const char *want)
{
    kl_buf out = KL_BUF_INIT;
    for (size_t i = 0; i < causes.len; i++)
        kl_buf_printf(&out, "%s%s: %s", i ? "\n" : "", causes.v[i].field, causes.v[i].message);
    assert_string_equal(out.len ? kl_buf_str(&out) : "", want);
    kl_buf_fini(&out);
    kl__causes_fini(&causes);
    causes = (kl__causes){0};
}

static void a_path_starts_at_the_object(void **state)
{
    (void)state;
    const kl__place *spec = KL_IN(NULL, "spec"), *one = KL_ITEM(KL_IN(spec, "containers"), 2);
    kl__say_required(&causes, KL_IN(one, "name"), "");
    kl__say_required(&causes, KL_KEYED(KL_IN(spec, "limits"), "cpu.more", 3), "why");
    kl__say_forbidden(&causes, spec, "not %d", 7);
    assert_said("spec.containers[2].name: Required value\n"
                "spec.limits[cpu]: Required value: why\n"
                "spec: Forbidden: not 7");
}

static void a_bad_value_is_shown_as_go_prints_it(void **state)
{
    (void)state;
    const kl_value *map = json("{'b':'2','a':'1'}"), *mixed = json("{'b':'2','a':1}"),
                   *list = json("[{'z':'','y':''}]"), *made = kl__as_go(map, "B Name Other?");
    const kl__place *at = KL_IN(NULL, "x");
    kl__say_invalid(&causes, at, map, "why");
    kl__say_invalid(&causes, at, mixed, "%s", "");
    kl__say_invalid(&causes, at, list, "%s", "");
    kl__say_invalid(&causes, at, made, "%s", "");
    kl__say_invalid(&causes, at, NULL, "%s", "");
    kl__say_invalid_text(&causes, at, "a", "why");
    kl__say_invalid_int(&causes, at, -3, "why");
    kl__say_invalid_bare(&causes, at, "why");
    assert_said("x: Invalid value: {\"a\":\"1\",\"b\":\"2\"}: why\n"
                "x: Invalid value: {\"b\":\"2\",\"a\":1}\n"
                "x: Invalid value: [{\"y\":\"\",\"z\":\"\"}]\n"
                "x: Invalid value: {\"B\":\"2\",\"Name\":\"\",\"Other\":null}\n"
                "x: Invalid value: null\n"
                "x: Invalid value: \"a\": why\n"
                "x: Invalid value: -3: why\n"
                "x: Invalid value: why");
    kl_value_unref(map);
    kl_value_unref(mixed);
    kl_value_unref(list);
    kl_value_unref(made);
}

static void other_complaints_have_their_words(void **state)
{
    (void)state;
    const kl_value *bad = json("'c'");
    const kl__place *at = KL_IN(NULL, "x");
    kl__say_unsupported(&causes, at, bad, "a b");
    kl__say_unsupported(&causes, at, NULL, "a");
    kl__say_duplicate(&causes, at, bad);
    kl__say_duplicate_because(&causes, at, bad, "why");
    kl__say_not_found(&causes, at, "v");
    kl__say_too_long(&causes, at, 63);
    kl__say_too_many(&causes, at, 9, 8);
    assert_string_equal(causes.v[0].reason, "FieldValueNotSupported");
    assert_string_equal(causes.v[2].reason, "FieldValueDuplicate");
    assert_said("x: Unsupported value: \"c\": supported values: \"a\", \"b\"\n"
                "x: Unsupported value: \"\": supported values: \"a\"\n"
                "x: Duplicate value: \"c\"\n"
                "x: Duplicate value: \"c\": why\n"
                "x: Not found: \"v\"\n"
                "x: Too long: may not be more than 63 bytes\n"
                "x: Too many: 9: must have at most 8 items");
    kl_value_unref(bad);
}

static void a_member_is_checked_where_it_is_there(void **state)
{
    (void)state;
    const kl_value *o = json("{'zero':0,'less':-1,'low':1,'high':9,'word':'b','empty':''}"),
                   *was = json("{'zero':0,'low':2}");
    kl__check_naturals(&causes, o, NULL, "zero less absent");
    assert_said("less: Invalid value: -1: must be greater than or equal to 0");
    kl__check_range(&causes, o, NULL, "low", 1, 9);
    kl__check_range(&causes, o, NULL, "high", 1, 9);
    kl__check_range(&causes, o, NULL, "absent", 1, 9);
    kl__check_range(&causes, o, NULL, "zero", 1, 9);
    kl__check_range(&causes, o, NULL, "high", 1, 8);
    assert_said("zero: Invalid value: 0: must be between 1 and 9, inclusive\n"
                "high: Invalid value: 9: must be between 1 and 8, inclusive");
    kl__check_present(&causes, o, NULL, "word");
    kl__check_present(&causes, o, NULL, "empty");
    kl__check_word(&causes, o, NULL, "word", true, "a b");
    kl__check_word(&causes, o, NULL, "word", false, "a bb");
    kl__check_word(&causes, o, NULL, "empty", false, "a b");
    kl__check_word(&causes, o, NULL, "empty", true, "a b");
    assert_said("empty: Required value\n"
                "word: Unsupported value: \"b\": supported values: \"a\", \"bb\"\n"
                "empty: Required value");
    kl__check_same(&causes, was, o, NULL, "zero");
    kl__check_same(&causes, was, o, NULL, "low");
    kl__check_same(&causes, was, o, NULL, "high");
    assert_said("low: Invalid value: 1: field is immutable\n"
                "high: Invalid value: 9: field is immutable");
    kl_value_unref(o);
    kl_value_unref(was);
}

static void words_and_members_are_found_whole(void **state)
{
    (void)state;
    const kl_value *o = json("{'b':'x','a':true,'c':1}");
    assert_true(kl__one_of("b", "a b c"));
    assert_false(kl__one_of("", "a b"));
    assert_false(kl__one_of("a", "ab ba"));
    assert_string_equal(kl__text(o, "b"), "x");
    assert_string_equal(kl__text(o, "c"), "");
    assert_true(kl__is(o, "b", "x"));
    assert_true(kl__is(o, "absent", ""));
    assert_true(kl__true(o, "a"));
    assert_false(kl__true(o, "b"));
    kl__sorted members = kl__members(o);
    assert_int_equal(members.len, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(members.v[i].key, ((const char *const[]){"a", "b", "c"})[i]);
        assert_ptr_equal(members.v[i].v, kl_value_get(o, members.v[i].key));
    }
    kl_free(members.v);
    kl_value_unref(o);
}

static void a_difference_shows_the_fields_of_one_side(void **state)
{
    (void)state;
    const kl_value *old = json("{'same':1,'less':2,'other':3}"), *now = json("{'same':1,'other':4,'more':5}");
    kl_buf out = KL_BUF_INIT;
    kl__show_difference(old, now, &out);
    assert_string_equal(kl_buf_str(&out), "- less: 2\n- other: 3\n+ other: 4\n+ more: 5\n");
    kl_buf_fini(&out);
    kl_value_unref(old);
    kl_value_unref(now);
}

static void a_quantity_is_read_where_there_is_one(void **state)
{
    (void)state;
    kl_quantity *q = kl__quantity_of("100m");
    assert_non_null(q);
    kl_quantity_free(q);
    assert_null(kl__quantity_of("100x"));
    assert_null(kl__quantity_of(""));
    assert_null(kl__quantity_of(NULL));
}

static void ports_and_paths_have_bounds(void **state)
{
    (void)state;
    static const char *const ports[] = {"1", "65535", "'http'", "0", "65536", "'a_b'"};
    const kl__place *at = KL_IN(NULL, "p");
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        const kl_value *port = json(ports[i]);
        kl__check_port(&causes, port, at);
        assert_int_equal(causes.len > 0, i >= 3);
        kl__causes_fini(&causes);
        causes = (kl__causes){0};
        kl_value_unref(port);
    }
    kl__check_no_way_up(&causes, at, "/a/..b/c..");
    kl__check_relative_path(&causes, at, "a/b");
    assert_int_equal(causes.len, 0);
    kl__check_no_way_up(&causes, at, "/a/..");
    kl__check_relative_path(&causes, at, "/a");
    assert_int_equal(causes.len, 2);
    kl__causes_fini(&causes);
    causes = (kl__causes){0};
}

static void strings_have_formats(void **state)
{
    (void)state;
    static const struct {
        kl__form form;
        const char *text, *fault; /* NULL: it has none */
    } cases[] = {
        {KL_DNS_LABEL, "a-1", NULL},
        {KL_DNS_LABEL, "a.b", "must not contain dots"},
        {KL_DNS_LABEL, "a.b-", "a lowercase RFC 1123 label must consist"},
        {KL_DNS_LABEL, "a..b", "a lowercase RFC 1123 label must consist"},
        {KL_DNS_LABEL, "A", "a lowercase RFC 1123 label must consist"},
        {KL_DNS_LABEL, "a-", "a lowercase RFC 1123 label must consist"},
        {KL_DNS_SUBDOMAIN, "a.b-c.1", NULL},
        {KL_DNS_SUBDOMAIN, "a.-b", "a lowercase RFC 1123 subdomain must consist"},
        {KL_DNS_SUBDOMAIN, "a..b", "a lowercase RFC 1123 subdomain must consist"},
        {KL_DNS_SUBDOMAIN, "a.b_c", "a lowercase RFC 1123 subdomain must consist"},
        {KL_DNS_1035, "a-1", NULL},
        {KL_DNS_1035, "1a", "a DNS-1035 label must consist"},
        {KL_DNS_1035, "a.b", "a DNS-1035 label must consist"},
        {KL_DNS_WILDCARD, "*.a.b", NULL},
        {KL_DNS_WILDCARD, "a.b", "a wildcard DNS-1123 subdomain must start with '*.'"},
        {KL_DNS_WILDCARD, "*.a.b-", "a wildcard DNS-1123 subdomain must start with '*.'"},
        {KL_DNS_WILDCARD, "*.", "a wildcard DNS-1123 subdomain must start with '*.'"},
        {KL_CONFIG_KEY, "a.b_c-D", NULL},
        {KL_CONFIG_KEY, "a/b", "a valid config key must consist"},
        {KL_CONFIG_KEY, "..a", "must not start with '..'"},
        {KL_PERCENT, "25%", NULL},
        {KL_PERCENT, "25", "a valid percent string"},
        {KL_HEADER_NAME, "X-A1", NULL},
        {KL_HEADER_NAME, "X_A", "a valid HTTP header"},
        {KL_HEADER_NAME, "", "a valid HTTP header"},
        {KL_HTTP_PATH, "/a%20b", NULL},
        {KL_HTTP_PATH, "/a b", "Invalid path"},
        {KL_IP, "10.9.8.7", NULL},
        {KL_IP, "10.9.8", "must be a valid IP address"},
        {KL_CIDR, "10.9.8.0/24", NULL},
        {KL_CIDR, "10.9.8.0", "must be a valid CIDR value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why[KL_FAULTS_MAX] = {NULL}, *want = cases[i].fault;
        size_t n = kl__faults(cases[i].text, cases[i].form, why);
        if (n != (want != NULL) || (want && strncmp(why[0], want, strlen(want))))
            fail_msg("%s: %zu faults, %s", cases[i].text, n, n ? why[0] : "");
    }
}

/* Each rule of a name counts, and its length is told first. */
static void a_long_text_has_two_faults(void **state)
{
    (void)state;
    const char *why[KL_FAULTS_MAX];
    char text[300];
    memset(text, 'a', 254);
    text[254] = '\0';
    assert_int_equal(kl__faults(text, KL_DNS_SUBDOMAIN, why), 1);
    assert_non_null(strstr(why[0], "253"));
    assert_int_equal(kl__faults(text + 191, KL_DNS_LABEL, why), 0);
    assert_int_equal(kl__faults(text + 190, KL_DNS_LABEL, why), 1);
    assert_non_null(strstr(why[0], "63"));
    text[250] = '_';
    assert_int_equal(kl__faults(text, KL_DNS_SUBDOMAIN, why), 2);
}

KL_TESTS(cmocka_unit_test(a_path_starts_at_the_object),
    cmocka_unit_test(a_bad_value_is_shown_as_go_prints_it),
    cmocka_unit_test(other_complaints_have_their_words),
    cmocka_unit_test(a_member_is_checked_where_it_is_there),
    cmocka_unit_test(words_and_members_are_found_whole),
    cmocka_unit_test(a_difference_shows_the_fields_of_one_side),
    cmocka_unit_test(a_quantity_is_read_where_there_is_one), cmocka_unit_test(ports_and_paths_have_bounds),
    cmocka_unit_test(strings_have_formats), cmocka_unit_test(a_long_text_has_two_faults))

/* not in tsan: it starts no thread */
