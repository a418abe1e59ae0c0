/* object_test.c - the fields that we read from an object, its key, and the types of watch events. */
#include "support/test.h"

#include <inttypes.h>

#include "base/mem.h"
#include "model/event.h"
#include "model/object.h"
#include "support/random_value.h"

static const kl_value *decode(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void reads_metadata(void **state)
{
    (void)state;
    const kl_value *o = decode(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\",\"uid\":"
        "\"u\",\"resourceVersion\":\"5\",\"generation\":3,"
        "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"a\":\"1\"},\"annotations\":{\"b\":"
        "\"2\"},\"finalizers\":[\"x\",\"y/z\"],"
        "\"ownerReferences\":[{\"name\":\"o1\"},{\"name\":\"o2\",\"controller\":true}]}}");
    assert_string_equal(kl_object_api_version(o), "v1");
    assert_string_equal(kl_object_kind(o), "Pod");
    assert_string_equal(kl_object_name(o), "web");
    assert_string_equal(kl_object_namespace(o), "ns");
    assert_string_equal(kl_object_uid(o), "u");
    assert_string_equal(kl_object_rv(o), "5");
    assert_int_equal(kl_object_generation(o), 3);
    assert_true(kl_object_deleting(o));
    assert_string_equal(kl_value_str(kl_object_label(o, "a")), "1");
    assert_string_equal(kl_value_str(kl_object_annotation(o, "b")), "2");
    assert_null(kl_object_label(o, "b"));
    assert_true(kl_object_has_finalizer(o, "y/z"));
    assert_false(kl_object_has_finalizer(o, "y"));
    assert_string_equal(kl_value_str_at(kl_object_controller(o), "name", NULL), "o2");
    char *key = kl_object_key(o);
    assert_string_equal(key, "ns/web");
    kl_free(key);
    kl_value_unref(o);
}

static void reads_absence_from_odd_objects(void **state)
{
    (void)state;
    static const char *const odd[] = {"{}", "[]", "{\"metadata\":null}", "{\"metadata\":\"x\"}",
        "{\"apiVersion\":1,\"kind\":{},\"metadata\":{\"name\":\"\",\"namespace\":\"\",\"labels\":[],"
        "\"finalizers\":{},\"ownerReferences\":[1],\"generation\":\"x\",\"deletionTimestamp\":null}}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const kl_value *o = decode(odd[i]);
        assert_null(kl_object_api_version(o));
        assert_null(kl_object_kind(o));
        assert_null(kl_object_name(o));
        assert_null(kl_object_namespace(o));
        assert_null(kl_object_rv(o));
        assert_int_equal(kl_object_generation(o), 0);
        assert_false(kl_object_deleting(o));
        assert_null(kl_object_label(o, "a"));
        assert_false(kl_object_has_finalizer(o, "x"));
        assert_null(kl_object_controller(o));
        assert_null(kl_object_key(o));
        kl_value_unref(o);
    }
    assert_null(kl_object_name(NULL));
}

static void keys_join_and_split(void **state)
{
    (void)state;
    size_t n;
    const char *name;
    char *key = kl_key_join("ns", "a");
    kl_key_split(key, &n, &name);
    assert_int_equal(n, 2);
    assert_string_equal(name, "a");
    kl_free(key);
    key = kl_key_join("", "a");
    assert_string_equal(key, "a");
    kl_key_split(key, &n, &name);
    assert_int_equal(n, 0);
    assert_string_equal(name, "a");
    kl_free(key);
}

static void resource_versions_compare_as_numbers(void **state)
{
    (void)state;
    bool ok;
    assert_true(kl_rv_compare("9", "10", &ok) < 0 && ok);
    assert_true(kl_rv_compare("10", "9", &ok) > 0 && ok);
    assert_true(kl_rv_compare("007", "7", &ok) == 0 && ok);
    assert_true(
        kl_rv_compare("123456789012345678901234567890", "123456789012345678901234567891", &ok) < 0 && ok);
    assert_true(kl_rv_compare("0", "00", NULL) == 0);
    static const char *const bad[] = {"", "x", "1x", "-1", " 1"};
    for (size_t i = 0; i < 5; i++) {
        kl_rv_compare(bad[i], "1", &ok);
        assert_false(ok);
        kl_rv_compare("1", bad[i], &ok);
        assert_false(ok);
    }
    kl_rv_compare(NULL, "1", &ok);
    assert_false(ok);
}

static void resource_versions_are_numbers_of_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t number;
    } cases[] = {{"1", 1}, {"0042", 42}, {"1844674407370955161", 1844674407370955161},
        {"18446744073709551615", UINT64_MAX}, {"18446744073709551616", 0}, {"99999999999999999999", 0},
        {"0", 0}, {"", 0}, {NULL, 0}, {"x", 0}, {"1x", 0}, {"-1", 0}, {" 1", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kl_rv_number(cases[i].text) != cases[i].number)
            fail_msg("%s: %" PRIu64, cases[i].text, kl_rv_number(cases[i].text));
}

static void list_items_get_their_type(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"metadata\":{\"name\":\"a\"}}",
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}"},
        {"{\"kind\":\"Own\",\"x\":1}", "{\"apiVersion\":\"v1\",\"kind\":\"Own\",\"x\":1}"},
        {"{\"x\":1,\"apiVersion\":\"\",\"kind\":\"\"}", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"x\":1}"},
        {"{\"x\":1,\"apiVersion\":\"a\",\"kind\":\"b\"}", "{\"x\":1,\"apiVersion\":\"a\",\"kind\":\"b\"}"},
        {"[]", "[]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *o = decode(cases[i][0]), *typed = kl_object_with_type(o, "v1", "Pod");
        char *text = kl_value_to_json(typed);
        assert_string_equal(text, cases[i][1]);
        kl_free(text);
        kl_value_unref(o);
        kl_value_unref(typed);
    }
}

static void events_have_five_words(void **state)
{
    (void)state;
    kl_event_type t;
    for (int i = KL_ADDED; i <= KL_ERROR; i++) {
        assert_true(kl_event_parse(kl_event_name((kl_event_type)i), &t));
        assert_int_equal(t, i);
    }
    assert_string_equal(kl_event_name(KL_BOOKMARK), "BOOKMARK");
    assert_false(kl_event_parse("added", &t));
    assert_false(kl_event_parse(NULL, &t));
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(reads_metadata), CASE(reads_absence_from_odd_objects), CASE(keys_join_and_split),
    CASE(resource_versions_compare_as_numbers), CASE(resource_versions_are_numbers_of_64_bits),
    CASE(list_items_get_their_type), CASE(events_have_five_words))

/* not in tsan: it starts no thread */
