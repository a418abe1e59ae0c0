/* diff_test.c - the differences between two states of an object. */
#include "support/json.h"

#include "model/diff.h"

static void differ(const char *was, const char *is, const char *want)
{
    const kl_value *a = was ? json(was) : NULL, *b = is ? json(is) : NULL;
    kl_buf out = KL_BUF_INIT;
    kl_diff_text(a, b, &out);
    assert_string_equal(kl_buf_str(&out), want);
    kl_buf_fini(&out);
    kl_value_unref(a);
    kl_value_unref(b);
}

static void paths_and_values_in_order(void **state)
{
    (void)state;
    differ("{'spec':{'replicas':1,'a':true}}", "{'spec':{'replicas':2,'b':'x'}}",
        "spec.a: true -> none, spec.b: none -> \"x\", spec.replicas: 1 -> 2");
    differ("{'metadata':{'labels':{'app.kubernetes.io/name':'x'}}}",
        "{'metadata':{'labels':{'app.kubernetes.io/name':'y'}}}",
        "metadata.labels[app.kubernetes.io/name]: \"x\" -> \"y\"");
    differ("{'a':1}", "{'a':1.0}", "");
}

static void elements_are_distinguished_by_name(void **state)
{
    (void)state;
    differ("{'c':[{'name':'x','i':1},{'name':'y','i':1}]}", "{'c':[{'name':'z','i':1},{'name':'x','i':2}]}",
        "c[x].i: 1 -> 2, c[y]: {\"name\":\"y\",\"i\":1} -> none, c[z]: none -> {\"name\":\"z\",\"i\":1}");
    differ("{'c':[1,2]}", "{'c':[1,3,4]}", "c[2]: 2 -> 3, c[3]: none -> 4");
    differ("{'c':[]}", "{'c':[1]}", "c: [] -> [1]");
}

static void server_managed_fields_are_omitted(void **state)
{
    (void)state;
    differ("{'metadata':{'name':'a','resourceVersion':'1','generation':1,'managedFields':[]}}",
        "{'metadata':{'name':'a','resourceVersion':'2','generation':2}}", "");
}

static void a_new_object_is_shown_by_its_contents(void **state)
{
    (void)state;
    differ(NULL,
        "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a','uid':'u','labels':{'l':'1'}},'data':{'"
        "x':'1'}}",
        "data: none -> {\"x\":\"1\"}, metadata.labels: none -> {\"l\":\"1\"}");
    differ(
        "{'kind':'ConfigMap','metadata':{'name':'a'},'data':{'x':'1'}}", NULL, "data: {\"x\":\"1\"} -> none");
    differ(NULL, NULL, "");
}

static void values_of_a_secret_are_not_shown(void **state)
{
    (void)state;
    differ("{'kind':'Secret','data':{'p':'aGVsbG8='}}",
        "{'kind':'Secret','data':{'p':'d29ybGQ='},'type':'Opaque'}",
        "data.p: (changed), type: none -> \"Opaque\"");
    differ(NULL, "{'kind':'Secret','data':{'p':'aGVsbG8='}}", "data: (added)");
}

static void long_values_are_cut(void **state)
{
    (void)state;
    differ("{'a':''}",
        "{'a':'"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3"
        "\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "012345678901234567890123456789012345'}",
        "a: \"\" -> "
        "\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3"
        "\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "012345678901234567890123456789...");
}

KL_TESTS(cmocka_unit_test(paths_and_values_in_order), cmocka_unit_test(elements_are_distinguished_by_name),
    cmocka_unit_test(server_managed_fields_are_omitted),
    cmocka_unit_test(a_new_object_is_shown_by_its_contents),
    cmocka_unit_test(values_of_a_secret_are_not_shown), cmocka_unit_test(long_values_are_cut))

/* not in tsan: it starts no thread */
