/* cjson_test.c - values as cJSON trees and back. */
#include "support/test.h"

#include <math.h>

#include <cjson/cJSON.h>

#include "value/json.h"

static const kl_value *decoded(const char *text)
{
    const kl_value *v = NULL;
    assert_int_equal(kl_value_decode(text, strlen(text), &v, NULL), KL_OK);
    return v;
}

/* The value's own text, by way of a tree. */
static void goes_and_comes(const char *text)
{
    const kl_value *v = decoded(text), *back = NULL;
    cJSON *tree = NULL;
    assert_int_equal(kl_value_to_cjson(v, &tree, NULL), KL_OK);
    assert_int_equal(kl_value_from_cjson(tree, &back, NULL), KL_OK);
    assert_true(kl_value_equal(v, back));
    cJSON_Delete(tree);
    kl_value_unref(v);
    kl_value_unref(back);
}

static void json_values_round_trip_through_a_tree(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1.5",
        "\"\"",
        "\"gr\\u00fcn\"",
        "[]",
        "{}",
        "{\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"name\":\"a\",\"ports\":[80,443]},{\"name\":\"b\"}],"
        "\"x\":null}}",
        "9007199254740992",
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        goes_and_comes(texts[i]);
}

static void numbers_print_as_they_are(void **state)
{
    (void)state;
    const kl_value *v = decoded("[2147483647,-7,0.25,18446744073709551615]");
    cJSON *tree = NULL;
    assert_int_equal(kl_value_to_cjson(v, &tree, NULL), KL_OK);
    char *printed = cJSON_PrintUnformatted(tree);
    assert_string_equal(printed, "[2147483647,-7,0.25,18446744073709551615]");
    cJSON_free(printed);
    cJSON_Delete(tree);
    kl_value_unref(v);
}

static void refused(cJSON *tree, const char *words)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(kl_value_from_cjson(tree, &v, &err), KL_EINVAL);
    assert_string_equal(kl_err_message(&err), words);
    assert_null(v);
    kl_err_fini(&err);
    cJSON_Delete(tree);
}

static cJSON *with(const char *key, cJSON *item)
{
    cJSON *tree = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(tree, key);
    cJSON_AddItemToArray(list, cJSON_CreateNull());
    cJSON_AddItemToArray(list, item);
    return tree;
}

static void a_tree_that_is_not_json_is_rejected_with_its_place(void **state)
{
    (void)state;
    refused(with("a", cJSON_CreateNumber(NAN)), "a[2]: JSON has no NaN and no infinity");
    refused(with("a", cJSON_CreateRaw("{")), "a[2]: a cJSON_Raw item is not JSON");
    cJSON *twice = cJSON_CreateObject();
    cJSON_AddNumberToObject(twice, "k", 1);
    cJSON_AddNumberToObject(twice, "k", 2);
    refused(with("a", twice), "a[2].k: the key appears twice");
    cJSON *item = cJSON_CreateNull();
    item->type = cJSON_Invalid;
    refused(with("a", item), "a[2]: the item is not valid");
}

static void a_tree_is_as_deep_as_cjson_reads_and_not_deeper(void **state)
{
    (void)state;
    cJSON *tree = cJSON_CreateArray();
    for (int i = 0; i < KL_CJSON_DEPTH_MAX; i++) {
        cJSON *outer = cJSON_CreateArray();
        cJSON_AddItemToArray(outer, tree);
        tree = outer;
    }
    const kl_value *v = NULL, *deeper = NULL;
    assert_int_equal(kl_value_from_cjson(tree, &v, NULL), KL_OK);
    cJSON *outer = cJSON_CreateArray(), *out = NULL;
    cJSON_AddItemToArray(outer, tree);
    assert_int_equal(kl_value_from_cjson(outer, &deeper, NULL), KL_EINVAL);
    assert_int_equal(kl_value_to_cjson(v, &out, NULL), KL_OK);
    cJSON_Delete(out);
    cJSON_Delete(outer);
    kl_value_unref(v);
}

static void a_nul_inside_a_string_or_a_key_cannot_be_held(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"a\":[\"x\\u0000y\"]}", "{\"a\":[{\"x\\u0000y\":1}]}"};
    for (size_t i = 0; i < 2; i++) {
        const kl_value *v = decoded(texts[i]);
        kl_err err = KL_ERR_INIT;
        cJSON *tree = NULL;
        assert_int_equal(kl_value_to_cjson(v, &tree, &err), KL_EINVAL);
        assert_non_null(strstr(kl_err_message(&err), "a[1]"));
        assert_null(tree);
        kl_err_fini(&err);
        kl_value_unref(v);
    }
}

static void an_absent_value_is_null(void **state)
{
    (void)state;
    cJSON *tree = NULL;
    assert_int_equal(kl_value_to_cjson(NULL, &tree, NULL), KL_OK);
    assert_true(cJSON_IsNull(tree));
    cJSON_Delete(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_values_round_trip_through_a_tree),
        cmocka_unit_test(numbers_print_as_they_are),
        cmocka_unit_test(a_tree_that_is_not_json_is_rejected_with_its_place),
        cmocka_unit_test(a_tree_is_as_deep_as_cjson_reads_and_not_deeper),
        cmocka_unit_test(a_nul_inside_a_string_or_a_key_cannot_be_held),
        cmocka_unit_test(an_absent_value_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
