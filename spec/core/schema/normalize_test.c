/* normalize_test.c - custom resources in normal form: what stays, what is pruned, what is filled in. */
#include "support/test.h"

#include "base/mem.h"
#include "schema/normalize.h"

static const char SCHEMA[] =
    "{\"type\":\"object\",\"properties\":{\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"properties\":{\"name\":{\"type\":\"string\"},\"port\":{\"type\":\"integer\",\"default\":80},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"default\":\"t\"}},"
    "\"more\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},"
    "\"b\":{\"type\":\"string\",\"default\":\"B\"}}},"
    "\"map\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\",\"additionalProperties\":{"
    "\"type\":\"string\"}}},"
    "\"free\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}}}}";

static const kl_value *value(const char *text)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void assert_normal(const char *items, const char *want)
{
    kl_err err = KL_ERR_INIT;
    kl__types *builtin = kl__types_builtin(), *types;
    const kl_value *schema = value(SCHEMA), *out;
    assert_ok(kl__types_of_crd(schema, builtin, &types, &err), &err);
    char *text = kl_sprintf("{\"items\":%s}", items), *wanted = kl_sprintf("{\"items\":%s}", want);
    const kl_value *in = value(text);
    out = kl__normalize_custom(kl__types_root(types), in);
    char *got = kl_value_to_json(out);
    assert_string_equal(got, wanted);
    if (!strcmp(text, wanted))
        assert_ptr_equal(out, in);
    kl_free(got);
    kl_free(text);
    kl_free(wanted);
    kl_value_unref(in);
    kl_value_unref(out);
    kl_value_unref(schema);
    kl__types_free(types);
    kl__types_free(builtin);
}

static void items_with_the_same_keys_are_each_looked_at(void **state)
{
    (void)state;
    assert_normal("[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":2}]",
        "[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":2}]");
    /* a null is replaced by the default, or removed */
    assert_normal("[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":null}]",
        "[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":80}]");
    assert_normal("[{\"name\":\"a\",\"port\":1},{\"name\":null,\"port\":2}]",
        "[{\"name\":\"a\",\"port\":1},{\"port\":2}]");
    /* what is below differs although the keys are the same */
    assert_normal(
        "[{\"more\":{\"a\":\"1\",\"b\":\"2\"},\"port\":1},{\"more\":{\"a\":\"1\",\"c\":\"2\"},\"port\":1}]",
        "[{\"more\":{\"a\":\"1\",\"b\":\"2\"},\"port\":1},{\"more\":{\"a\":\"1\",\"b\":\"B\"},\"port\":1}]");
    assert_normal("[{\"more\":{\"a\":\"1\",\"b\":\"2\"},\"port\":1},{\"more\":{},\"port\":1}]",
        "[{\"more\":{\"a\":\"1\",\"b\":\"2\"},\"port\":1},{\"more\":{\"b\":\"B\"},\"port\":1}]");
    /* an object where a text or a list belongs keeps nothing; validation refuses it */
    assert_normal("[{\"name\":\"a\",\"port\":1},{\"name\":{\"x\":1},\"port\":2}]",
        "[{\"name\":\"a\",\"port\":1},{\"name\":{},\"port\":2}]");
    assert_normal(
        "[{\"tags\":[\"x\"],\"port\":1},{\"tags\":{\"x\":1},\"port\":2},{\"tags\":[null],\"port\":3}]",
        "[{\"tags\":[\"x\"],\"port\":1},{\"tags\":{},\"port\":2},{\"tags\":[\"t\"],\"port\":3}]");
}

static void keys_that_are_missing_or_unknown_are_seen_in_any_item(void **state)
{
    (void)state;
    assert_normal("[{\"name\":\"a\",\"port\":1},{\"name\":\"b\"},{\"name\":\"c\"}]",
        "[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":80},{\"name\":\"c\",\"port\":80}]");
    assert_normal("[{\"name\":\"a\",\"port\":1,\"x\":1},{\"name\":\"b\",\"port\":2,\"x\":2}]",
        "[{\"name\":\"a\",\"port\":1},{\"name\":\"b\",\"port\":2}]");
    assert_normal("[{\"free\":{\"x\":{\"y\":null}},\"port\":1},{\"free\":{\"x\":{\"y\":[1]}},\"port\":1},{}]",
        "[{\"free\":{\"x\":{\"y\":null}},\"port\":1},{\"free\":{\"x\":{\"y\":[1]}},\"port\":1},{\"port\":80}"
        "]");
}

/* Sets of keys below sets of keys: more of them than a walk keeps. */
static void items_of_many_kinds_stay(void **state)
{
    (void)state;
    kl_buf items = KL_BUF_INIT;
    for (int i = 0; i < 60; i++)
        kl_buf_printf(&items, "%s{\"map\":{\"a%d\":{\"x%d\":\"1\"},\"b%d\":{\"y%d\":\"2\"}},\"port\":%d}",
            i ? "," : "[", i % 20, i % 7, i % 20, i, i);
    kl_buf_puts(&items, "]");
    assert_normal(kl_buf_str(&items), kl_buf_str(&items));
    kl_buf_fini(&items);
}

/* The names of the unknown fields of an object; the caller frees them. */
static char *unknown_in(const kl__schema *s, const char *text)
{
    kl_err err = KL_ERR_INIT;
    kl__unknown unknown = {0};
    const kl_value *in = value(text), *out = NULL;
    assert_ok(kl__normalize(s, in, true, &unknown, &out, &err), &err);
    char *names = kl__unknown_text(&unknown);
    kl__unknown_fini(&unknown);
    kl_value_unref(in);
    kl_value_unref(out);
    return names;
}

static void unknown_fields_of_a_custom_resource_are_sorted_below_its_metadata(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl__types *builtin = kl__types_builtin(), *types;
    const kl_value *schema = value(SCHEMA);
    assert_ok(kl__types_of_crd(schema, builtin, &types, &err), &err);
    char *names = unknown_in(
        kl__types_root(types), "{\"z\":1,\"items\":[{\"b\":1}],\"a\":1,\"metadata\":{\"c\":1}}");
    assert_string_equal(names,
        "unknown field \"metadata.c\", unknown field \"a\", unknown field "
        "\"items[0].b\", unknown field \"z\"");
    kl_free(names);
    kl_value_unref(schema);
    kl__types_free(types);
    kl__types_free(builtin);
}

static void of_a_built_in_kind_a_hundred_unknown_fields_are_named_and_not_too_long_ones(void **state)
{
    (void)state;
    kl__types *builtin = kl__types_builtin();
    kl_buf text = KL_BUF_INIT;
    kl_buf_putc(&text, '{');
    for (int i = 0; i < 120; i++)
        kl_buf_printf(&text, "%s\"x%d\":1", i ? "," : "", i);
    kl_buf_putc(&text, '}');
    char *names = unknown_in(kl__types_get(builtin, "core.v1.PodSpec"), kl_buf_str(&text));
    assert_non_null(strstr(names, "\"x99\""));
    assert_null(strstr(names, "\"x100\""));
    kl_free(names);
    kl_buf_clear(&text);
    for (int i = 0; i < 90; i++)
        kl_buf_printf(&text, "%s\"%0*d\":1", i ? "," : "{", 10000, i);
    kl_buf_putc(&text, '}');
    names = unknown_in(kl__types_get(builtin, "core.v1.PodSpec"), kl_buf_str(&text));
    assert_in_range(strlen(names), 64 << 10, 128 << 10);
    kl_free(names);
    kl_buf_fini(&text);
    kl__types_free(builtin);
}

/* Lists in lists, each of which ends in one whose last item changes: as many looks as levels would take
 * minutes. */
static void nested_lists_are_looked_at_a_few_times_each(void **state)
{
    (void)state;
    enum { DEPTH = 60, ITEMS = 20000 };
    kl_err err = KL_ERR_INIT;
    kl__types *builtin = kl__types_builtin(), *types;
    kl_buf schema = KL_BUF_INIT, text = KL_BUF_INIT;
    kl_buf_puts(&schema, "{\"type\":\"object\",\"properties\":{\"l\":");
    kl_buf_puts(&text, "{\"l\":");
    for (int i = 0; i < DEPTH; i++) {
        kl_buf_puts(&schema, "{\"type\":\"array\",\"items\":");
        kl_buf_puts(&text, "[");
    }
    kl_buf_puts(&schema, "{\"type\":\"string\",\"default\":\"d\"}");
    for (int i = 0; i < ITEMS; i++)
        kl_buf_puts(&text, "\"s\",");
    kl_buf_puts(&text, "null");
    for (int i = 0; i < DEPTH; i++) {
        kl_buf_puts(&schema, "}");
        kl_buf_puts(&text, "]");
    }
    kl_buf_puts(&schema, "}}");
    kl_buf_puts(&text, "}");
    const kl_value *json = value(kl_buf_str(&schema)), *in = value(kl_buf_str(&text)), *out;
    assert_ok(kl__types_of_crd(json, builtin, &types, &err), &err);
    out = kl__normalize_custom(kl__types_root(types), in);
    const kl_value *inner = kl_value_get(out, "l");
    for (int i = 1; i < DEPTH; i++)
        inner = kl_value_item(inner, 0);
    assert_string_equal(kl_value_str(kl_value_item(inner, ITEMS)), "d");
    kl_value_unref(json);
    kl_value_unref(in);
    kl_value_unref(out);
    kl_buf_fini(&schema);
    kl_buf_fini(&text);
    kl__types_free(types);
    kl__types_free(builtin);
}

KL_TESTS(cmocka_unit_test(items_with_the_same_keys_are_each_looked_at),
    cmocka_unit_test(keys_that_are_missing_or_unknown_are_seen_in_any_item),
    cmocka_unit_test(items_of_many_kinds_stay),
    cmocka_unit_test(unknown_fields_of_a_custom_resource_are_sorted_below_its_metadata),
    cmocka_unit_test(of_a_built_in_kind_a_hundred_unknown_fields_are_named_and_not_too_long_ones),
    cmocka_unit_test(nested_lists_are_looked_at_a_few_times_each))
