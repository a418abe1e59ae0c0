/* selector_test.c - label and field selectors. The table of apimachinery's answers is the bulk
 * (spec/oracle); here are the ideas, the errors and the inputs that JSON can hold and Go types cannot. */
#include "support/test.h"

#include "base/mem.h"
#include "model/selector.h"

static const kl_value *json(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;

    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static kl_selector *selector(const char *text)
{
    kl_err err = KL_ERR_INIT;
    kl_selector *s = NULL;

    assert_ok(kl_selector_parse(text, &s, &err), &err);
    return s;
}

static bool matches(const char *text, const char *labels)
{
    const kl_value *v = json(labels);
    kl_selector *s = selector(text);
    bool m = kl_selector_matches(s, v);

    kl_selector_free(s);
    kl_value_unref(v);
    return m;
}

static void requirements_are_printed_sorted(void **state)
{
    kl_selector *s = selector(" tier notin (web , api),!gone, a==b,n>3, env in()");
    char *text = kl_selector_text(s);

    (void)state;
    assert_string_equal(text, "a==b,env in (),!gone,n>3,tier notin (api,web)");
    assert_int_equal(kl_selector_len(s), 5);
    kl_free(text);
    kl_selector_free(s);
}

static void all_requirements_must_hold(void **state)
{
    (void)state;
    assert_true(matches("", "{}"));
    assert_true(matches("a=1,b", "{\"a\": \"1\", \"b\": \"\"}"));
    assert_false(matches("a=1,b", "{\"a\": \"1\"}"));
    assert_true(matches("a!=1", "{}"));
    assert_true(matches("a notin (1,2)", "{\"a\": \"3\"}"));
    assert_false(matches("a in (1,2)", "{}"));
    assert_true(matches("a>5,a<7", "{\"a\": \"6\"}"));
    assert_false(matches("a>5", "{\"a\": \"six\"}"));
    assert_false(matches("a>5", "{}"));
}

static void labels_that_are_not_an_object_are_ignored(void **state)
{
    kl_selector *s = selector("a");

    (void)state;
    assert_false(kl_selector_matches(s, NULL));
    kl_selector_free(s);
    assert_false(matches("a", "[\"a\"]"));
    assert_false(matches("a", "{\"a\": 1}"));
}

static void null_selects_nothing_and_an_empty_object_everything(void **state)
{
    const kl_value *empty = json("{}"), *struct_of;
    kl_err err = KL_ERR_INIT;
    kl_selector *s;

    (void)state;
    assert_ok(kl_selector_from_struct(NULL, &s, &err), &err);
    assert_false(kl_selector_matches(s, empty));
    assert_false(kl_selector_selectable(s));
    assert_false(kl_selector_empty(s));
    assert_fails(kl_selector_to_struct(s, &struct_of, &err), KL_EINVAL, &err, "nothing");
    kl_selector_free(s);
    assert_ok(kl_selector_from_struct(empty, &s, &err), &err);
    assert_true(kl_selector_matches(s, NULL));
    assert_true(kl_selector_empty(s));
    kl_selector_free(s);
    kl_value_unref(empty);
}

static void an_invalid_label_selector_is_rejected_with_its_place(void **state)
{
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"[]", "must be an object, got array"},
        {"{\"matchLabels\": []}", "matchLabels must be an object of strings"},
        {"{\"matchLabels\": {\"a\": 1}}", "a must be a string, got integer"},
        {"{\"matchLabels\": {\"a b\": \"c\"}}", "key \"a b\" must have a name part"},
        {"{\"matchExpressions\": {}}", "matchExpressions must be an array"},
        {"{\"matchExpressions\": [3]}", "must be an object, got integer"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"Equals\"}]}",
            "\"Equals\" is not an operator; use In"},
        {"{\"matchExpressions\": [{\"key\": 7, \"operator\": \"In\"}]}", "key must be a string"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": \"b\"}]}",
            "values must be an array"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": [{}]}]}",
            "element of values must be a string"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\"}]}",
            "takes at least one value, got 0"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"Exists\", \"values\": [\"b\"]}]}",
            "takes no values, got 1"},
        {"{\"matchLabels\": {\"a\\u0000b\": \"c\"}}",
            "the key \"a\" of matchLabels contains a NUL character"},
        {"{\"matchLabels\": {\"a\": \"c\\u0000\"}}", "a contains a NUL character"},
        {"{\"matchExpressions\": [{\"key\": \"a\\u0000\", \"operator\": \"Exists\"}]}",
            "key contains a NUL character"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": [\"b\\u0000c\"]}]}",
            "element of values contains a NUL character"},
    };
    kl_err err = KL_ERR_INIT;
    kl_selector *s;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *v = json(cases[i].json);

        assert_fails(kl_selector_from_struct(v, &s, &err), KL_EINVAL, &err, cases[i].part);
        kl_value_unref(v);
    }
}

static void errors_name_the_found_and_the_expected_token(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_selector *s;

    (void)state;
    assert_fails(
        kl_selector_parse("a in b", &s, &err), KL_ESYNTAX, &err, "found \"b\" where '(' is expected");
    assert_fails(kl_selector_parse("a,", &s, &err), KL_ESYNTAX, &err, "ends where a label key");
    assert_fails(kl_selector_parse("a in (b", &s, &err), KL_ESYNTAX, &err, "ends where ',' or ')'");
    assert_fails(kl_selector_parse("a ~ b", &s, &err), KL_ESYNTAX, &err, "one of in, notin");
    assert_fails(kl_selector_parse("a>b", &s, &err), KL_EINVAL, &err, "not a whole number");
    assert_fails(kl_selector_parse("a=-b", &s, &err), KL_EINVAL, &err, "value \"-b\" of \"a\"");
    assert_fails(kl_selector_parse("UPPER.io/a", &s, &err), KL_EINVAL, &err, "DNS subdomain");
}

static char *joined(const char *before, const char *each, size_t n, const char *after)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, before);
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&b, each, i);
    kl_buf_puts(&b, after);
    return kl_buf_take(&b);
}

/* Compared with all before it, each value would take minutes. */
static void many_values_are_read_in_one_go_and_count_once(void **state)
{
    (void)state;
    char *text = joined("k in (", "v%zu,", 100000, "v7,v7)");
    kl_selector *s = selector(text);
    const char *const *values;
    size_t n = 0;
    assert_string_equal(kl_selector_requirement(s, 0, NULL, &values), "k");
    while (values[n])
        n++;
    assert_int_equal(n, 100000);
    kl_selector_free(s);
    kl_free(text);
    assert_true(matches("k in (b,a,b)", "{\"k\":\"b\"}"));
}

static void a_text_longer_than_any_url_is_refused(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_selector *s;
    kl_field_selector *f;
    kl_selector_fault fault = {0};
    char *labels = joined("", "a=b,", 300000, "c"), *fields = joined("", "a=b,", 300000, "c=d");
    assert_fails(kl_selector_parse(labels, &s, &err), KL_EINVAL, &err, "at most 1048576 are allowed");
    assert_int_equal(kl_selector_parse_or(labels, &s, &fault, NULL), KL_EINVAL);
    kl_selector_fault_fini(&fault);
    assert_fails(kl_field_selector_parse(fields, &f, &err), KL_EINVAL, &err, "at most 1048576 are allowed");
    kl_free(labels);
    kl_free(fields);
}

static void equalities_become_a_map(void **state)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v;

    (void)state;
    assert_ok(kl_selector_text_to_map(" a = b ,c/d=", &v, &err), &err);
    assert_string_equal(kl_value_str_at(v, "a", NULL), "b");
    assert_string_equal(kl_value_str_at(v, "c/d", NULL), "");
    kl_value_unref(v);
    assert_fails(kl_selector_text_to_map("a=b,c", &v, &err), KL_ESYNTAX, &err, "\"c\" is not key=value");
    assert_fails(kl_selector_text_to_map("a==b", &v, &err), KL_ESYNTAX, &err, "not key=value");
}

static const char *one_field(void *arg, const char *field)
{
    return strcmp(field, "status.phase") ? "" : arg;
}

static void field_terms_are_sorted_unescaped_and_all_required(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_field_selector *s;
    char *text;

    (void)state;
    assert_ok(kl_field_selector_parse("status.phase!=Failed,,metadata.name==a\\,b", &s, &err), &err);
    text = kl_field_selector_text(s);
    assert_string_equal(text, "metadata.name=a\\,b,status.phase!=Failed");
    kl_free(text);
    assert_string_equal(kl_field_selector_exact(s, "metadata.name"), "a,b");
    assert_null(kl_field_selector_exact(s, "status.phase"));
    assert_false(kl_field_selector_matches(s, one_field, "Running"));
    kl_field_selector_free(s);
    assert_ok(kl_field_selector_parse("status.phase!=Failed", &s, &err), &err);
    assert_true(kl_field_selector_matches(s, one_field, "Running"));
    assert_false(kl_field_selector_matches(s, one_field, "Failed"));
    kl_field_selector_free(s);
}

static void broken_field_selectors_say_where(void **state)
{
    kl_err err = KL_ERR_INIT;
    kl_field_selector *s;
    char *value;

    (void)state;
    assert_fails(kl_field_selector_parse("a=b,c", &s, &err), KL_ESYNTAX, &err, "\"c\" is not field=value");
    assert_fails(kl_field_selector_parse("a=b=c", &s, &err), KL_ESYNTAX, &err, "needs a backslash");
    assert_fails(kl_field_value_unescape("a\\n", &value, &err), KL_ESYNTAX, &err, "backslash");
    assert_fails(kl_field_value_unescape("a\\", &value, &err), KL_ESYNTAX, &err, "backslash");
}

KL_TESTS(cmocka_unit_test(requirements_are_printed_sorted), cmocka_unit_test(all_requirements_must_hold),
    cmocka_unit_test(labels_that_are_not_an_object_are_ignored),
    cmocka_unit_test(null_selects_nothing_and_an_empty_object_everything),
    cmocka_unit_test(an_invalid_label_selector_is_rejected_with_its_place),
    cmocka_unit_test(errors_name_the_found_and_the_expected_token),
    cmocka_unit_test(many_values_are_read_in_one_go_and_count_once),
    cmocka_unit_test(a_text_longer_than_any_url_is_refused), cmocka_unit_test(equalities_become_a_map),
    cmocka_unit_test(field_terms_are_sorted_unescaped_and_all_required),
    cmocka_unit_test(broken_field_selectors_say_where))

/* not in tsan: it starts no thread */
