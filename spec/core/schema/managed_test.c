/* managed_test.c - the owners of fields, on a built-in type and on a schema of a custom resource. */
#include "core/server/value_help.h"

#include <time.h>

#include "schema/fieldset.h"
#include "schema/managed.h"
#include "schema/typed.h"
#include "schema/validate.h"

static kl__types *types, *custom;

static const char schema[] =
    "{'type':'object','properties':{'spec':{'type':'object','properties':{"
    "'a':{'type':'string'},'b':{'type':'string'},"
    "'set':{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}},"
    "'whole':{'type':'array','items':{'type':'string'}},"
    "'map':{'type':'object','additionalProperties':{'type':'string'}},"
    "'one':{'type':'object','x-kubernetes-map-type':'atomic','properties':{'x':{'type':'string'},'y':{'type':"
    "'string'}}},"
    "'parts':{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['name'],"
    "'items':{'type':'object','properties':{'name':{'type':'string'},'n':{'type':'integer'},'m':{'type':'"
    "integer'}}}}}}}}";

static int setup(void **state)
{
    (void)state;
    const kl_value *json = v(schema);
    types = kl__types_builtin();
    kl_status st = kl__types_of_crd(json, types, &custom, NULL);
    kl_value_unref(json);
    return (int)st;
}

static int teardown(void **state)
{
    (void)state;
    kl__types_free(custom);
    kl__types_free(types);
    return 0;
}

static kl__writer writer(const char *manager)
{
    return (kl__writer){.manager = manager, .api_version = "g/v1", .now = "2026-01-01T00:00:00Z"};
}

/* `live` (taken, may be NULL) with `config` applied. */
static const kl_value *apply(const kl_value *live, const char *manager, const char *config)
{
    const kl_value *c = v(config), *out = NULL;
    kl__writer w = writer(manager);
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__managed_apply(kl__types_root(custom), &w, false, live, c, &out, &err), &err);
    kl_value_unref(c);
    kl_value_unref(live);
    return out;
}

static void refused(const kl_value *live, const char *manager, const char *config, const char *message)
{
    const kl_value *c = v(config), *out = NULL;
    kl__writer w = writer(manager);
    kl_err err = KL_ERR_INIT;
    assert_int_equal(kl__managed_apply(kl__types_root(custom), &w, false, live, c, &out, &err), KL_ECONFLICT);
    assert_string_equal(kl_err_message(&err), message);
    kl_err_fini(&err);
    kl_value_unref(c);
}

static const kl_value *update(const kl_value *live, const char *manager, const char *now)
{
    const kl_value *o = v(now);
    kl__writer w = writer(manager);
    kl__managed_update(kl__types_root(custom), &w, live, &o);
    kl_value_unref(live);
    return o;
}

static const kl_value *owned(const kl_value *o, const char *manager)
{
    const kl_value *list = kl_value_at(o, "metadata", "managedFields", NULL);
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (!strcmp(kl_value_str_at(kl_value_item(list, i), "manager", NULL), manager))
            return kl_value_get(kl_value_item(list, i), "fieldsV1");
    return NULL;
}

static void fields_survive_being_written(void **state)
{
    (void)state;
    const char text[] = "{'f:metadata':{'f:labels':{'.':{},'f:a.b/c':{}}},'f:spec':{'f:x':{}}}";
    const kl_value *in = v(text);
    kl__fieldset *s = kl__fieldset_decode(in);
    kl_builder *b = kl_builder_new();
    kl__fieldset_encode(s, b);
    const kl_value *out = kl_builder_done(b);
    assert_value(out, text);
    kl_value_unref(in);
    kl_value_unref(out);
    kl__fieldset_free(s);
}

static void an_apply_owns_its_fields(void **state)
{
    (void)state;
    const kl_value *o = apply(NULL, "m",
        "{'metadata':{'name':'n'},'spec':{'a':'1','set':['p'],'whole':['x'],'parts':[{'name':'i','n':1}],'"
        "map':{'k':'v'},'one':{'x':'1'}}}");
    assert_value(owned(o, "m"),
        "{'f:spec':{'f:a':{},'f:map':{'f:k':{}},'f:one':{},'f:parts':{'k:{\\\"name\\\":\\\"i\\\"}':{'.':{},'"
        "f:n':{},'f:name':{}}},"
        "'f:set':{'v:\\\"p\\\"':{}},'f:whole':{}}}");
    kl_value_unref(o);
}

static void fields_no_longer_named_are_removed_unless_shared(void **state)
{
    (void)state;
    const kl_value *o = apply(NULL, "m",
        "{'spec':{'a':'1','b':'2','set':['p','q'],'parts':[{'name':'i','n':1},{'name':'j','n':2}]}}");
    o = apply(o, "other", "{'spec':{'b':'2','parts':[{'name':'j','m':3}]}}");
    o = apply(o, "m", "{'spec':{'set':['q']}}");
    assert_value(kl_value_get(o, "spec"), "{'b':'2','set':['q'],'parts':[{'name':'j','m':3}]}");
    kl_value_unref(o);
}

static void a_changed_field_of_another_is_a_conflict(void **state)
{
    (void)state;
    const kl_value *o = apply(NULL, "m", "{'spec':{'a':'1','parts':[{'name':'i','n':1}]}}");
    refused(o, "other", "{'spec':{'a':'2'}}", "Apply failed with 1 conflict: conflict with \"m\": .spec.a");
    refused(o, "other", "{'spec':{'a':'2','parts':[{'name':'i','n':2}]}}",
        "Apply failed with 2 conflicts: conflicts with \"m\":\n- .spec.a\n- .spec.parts[name=\"i\"].n");
    const kl_value *c = v("{'spec':{'a':'2'}}"), *out = NULL;
    kl__writer w = writer("other");
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__managed_apply(kl__types_root(custom), &w, true, o, c, &out, &err), &err);
    assert_value(kl_value_get(out, "spec"), "{'a':'2','parts':[{'name':'i','n':1}]}");
    assert_null(kl_value_at(owned(out, "m"), "f:spec", "f:a", NULL));
    kl_value_unref(c);
    kl_value_unref(out);
    kl_value_unref(o);
}

static void an_update_owns_the_fields_it_changes(void **state)
{
    (void)state;
    const kl_value *o = apply(NULL, "m", "{'spec':{'a':'1','b':'2'}}");
    o = update(o, "hand", "{'spec':{'a':'9','b':'2'}}");
    assert_value(owned(o, "m"), "{'f:spec':{'f:b':{}}}");
    assert_value(owned(o, "hand"), "{'f:spec':{'f:a':{}}}");
    o = apply(o, "m", "{'spec':{}}");
    assert_value(kl_value_get(o, "spec"), "{'a':'9'}");
    kl_value_unref(o);
}

static void an_update_takes_a_field_that_it_removes_from_its_owner(void **state)
{
    (void)state;
    const kl_value *o = update(NULL, "one", "{'spec':{'a':'1','b':'2'}}");
    o = update(o, "two", "{'spec':{'b':'2'}}");
    assert_value(owned(o, "one"), "{'f:spec':{'.':{},'f:b':{}}}");
    kl_value_unref(o);
}

static void an_update_by_the_same_values_owns_nothing_new(void **state)
{
    (void)state;
    const kl_value *o = update(NULL, "one", "{'spec':{'a':'1'}}"), *before = kl_value_ref(o);
    o = update(o, "two", "{'spec':{'a':'1'}}");
    assert_null(owned(o, "two"));
    assert_true(kl__managed_same(before, o));
    kl_value_unref(before);
    kl_value_unref(o);
}

static void managed_fields_can_be_cleared(void **state)
{
    (void)state;
    const kl_value *o = update(NULL, "one", "{'spec':{'a':'1'}}");
    o = update(o, "two", "{'metadata':{'managedFields':[{}]},'spec':{'a':'1'}}");
    assert_null(kl_value_at(o, "metadata", "managedFields", NULL));
    kl_value_unref(o);
}

static void entries_of_one_second_are_ordered_by_version(void **state)
{
    (void)state;
    kl__writer w = writer("m");
    const char *const versions[] = {"g/v2", "g/v1"};
    const kl_value *o = NULL;
    for (int i = 0; i < 2; i++) {
        const kl_value *old = o;
        o = v(i ? "{'spec':{'a':'1','b':'1'}}" : "{'spec':{'a':'1'}}");
        w.api_version = versions[i];
        kl__managed_update(kl__types_root(custom), &w, old, &o);
        kl_value_unref(old);
    }
    const kl_value *list = kl_value_at(o, "metadata", "managedFields", NULL);
    assert_int_equal(kl_value_len(list), 2);
    assert_string_equal(kl_value_str_at(kl_value_item(list, 0), "apiVersion", NULL), "g/v1");
    assert_string_equal(kl_value_str_at(kl_value_item(list, 1), "apiVersion", NULL), "g/v2");
    kl_value_unref(o);
}

static void a_repeated_item_is_owned_as_a_whole(void **state)
{
    (void)state;
    static const char twice[] = "{'spec':{'parts':[{'name':'i','n':1},{'name':'i','n':2}]}}",
                      other[] = "{'spec':{'parts':[{'name':'i','n':1},{'name':'i','n':3}]}}",
                      once[] = "{'spec':{'parts':[{'name':'i','n':1}]}}",
                      whole[] = "{'f:spec':{'f:parts':{'k:{\\\"name\\\":\\\"i\\\"}':{}}}}";
    const kl_value *o = update(NULL, "one", twice);
    assert_value(
        kl_value_at(owned(o, "one"), "f:spec", "f:parts", NULL), "{'.':{},'k:{\\\"name\\\":\\\"i\\\"}':{}}");
    o = update(o, "two", twice);
    assert_null(owned(o, "two"));
    o = update(o, "two", other);
    assert_value(owned(o, "two"), whole);
    o = update(o, "one", once);
    assert_null(owned(o, "two"));
    kl_value_unref(o);
}

static void items_keep_the_order_of_the_applier(void **state)
{
    (void)state;
    const kl_value *live = v("{'spec':{'parts':[{'name':'a'},{'name':'x'},{'name':'b'}]}}"),
                   *config = v("{'spec':{'parts':[{'name':'b'},{'name':'a'},{'name':'c'}]}}");
    const kl_value *out = kl__typed_merge(kl__types_root(custom), live, config);
    assert_value(
        kl_value_get(out, "spec"), "{'parts':[{'name':'x'},{'name':'b'},{'name':'a'},{'name':'c'}]}");
    kl_value_unref(live);
    kl_value_unref(config);
    kl_value_unref(out);
}

static void the_structs_of_built_in_kinds_are_there_before_anyone_sets_them(void **state)
{
    (void)state;
    const kl_value *o = v("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','labels':{'a':'b'}},'spec':"
                          "{'containers':[{'name':'c','image':'i','resources':{}}]}}");
    kl__writer w = writer("m");
    kl__managed_update(kl__types_get(types, "core.v1.Pod"), &w, NULL, &o);
    assert_value(owned(o, "m"),
        "{'f:metadata':{'f:labels':{'.':{},'f:a':{}}},'f:spec':{'f:containers':{'k:{\\\"name\\\":\\\"c\\\"}':"
        "{'.':{},'f:image':{},'f:name':{},'f:resources':{}}}}}");
    kl_value_unref(o);
}

/* {'spec':{FIELD:[...]}} with so many items, and the second again at the end. */
static const kl_value *long_list(const char *field, int n, const char *fmt)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_printf(&b, "{\"spec\":{\"%s\":[", field);
    for (int i = 0; i <= n; i++)
        kl_buf_printf(&b, fmt, i ? "," : "", i == n ? 1 : i); /* NOLINT(clang-diagnostic-format-nonliteral) */
    kl_buf_puts(&b, "]}}");
    const kl_value *o = NULL;
    assert_int_equal(kl_value_decode(b.data, b.len, &o, NULL), KL_OK);
    kl_buf_fini(&b);
    return o;
}

/* What quadratic work takes 20 s of the processor for, and everybody waits. */
static void long_lists_are_checked_and_merged_in_one_pass(void **state)
{
    (void)state;
    static const char *const fields[] = {"set", "parts"},
                             *const items[] = {"%s\"%d\"", "%s{\"name\":\"%d\"}"};
    for (int i = 0; i < 2; i++) {
        clock_t began = clock();
        const kl_value *o = long_list(fields[i], 100000, items[i]), *merged;
        kl__causes causes = {0};
        kl__validate_custom(kl__types_root(custom), o, false, &causes);
        assert_int_equal(causes.len, 1);
        assert_non_null(strstr(causes.v[0].field, "[100000]"));
        kl__causes_fini(&causes);
        merged = kl__typed_merge(kl__types_root(custom), o, o);
        kl__changes c;
        kl__typed_compare(kl__types_root(custom), merged, o, &c);
        kl__changes_fini(&c);
        kl_value_unref(merged);
        kl_value_unref(o);
        assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
    }
}

/* A client may send as many entries as a body holds. Each compared with each, they took a minute. */
static void many_managers_are_looked_at_once(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, "{\"metadata\":{\"managedFields\":[");
    for (int i = 0; i < MANY; i++)
        kl_buf_printf(&b,
            "%s{\"manager\":\"m%d\",\"operation\":\"%s\",\"apiVersion\":\"g/"
            "v%d\",\"fieldsV1\":{\"f:%d\":{}}}",
            i ? "," : "", i / 4, i % 2 ? "Apply" : "Update", i / 2, i % 3);
    kl_buf_puts(&b, "]},\"spec\":{\"a\":\"1\"}}");
    const kl_value *o = NULL, *sent;
    assert_int_equal(kl_value_decode(b.data, b.len, &o, NULL), KL_OK);
    kl_buf_fini(&b);
    clock_t began = clock();
    kl__writer w = writer("m1");
    sent = kl_value_ref(o);
    kl__managed_update(kl__types_root(custom), &w, o, &sent);
    assert_true(kl__managed_same(sent, sent));
    assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
    /* of an applier's two entries one is left; those of updates differ in their versions */
    assert_int_equal(kl_value_len(kl_value_at(sent, "metadata", "managedFields", NULL)), MANY * 3 / 4);
    kl_value_unref(sent);
    kl_value_unref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_survive_being_written),
        cmocka_unit_test(an_apply_owns_its_fields),
        cmocka_unit_test(fields_no_longer_named_are_removed_unless_shared),
        cmocka_unit_test(a_changed_field_of_another_is_a_conflict),
        cmocka_unit_test(an_update_owns_the_fields_it_changes),
        cmocka_unit_test(an_update_takes_a_field_that_it_removes_from_its_owner),
        cmocka_unit_test(an_update_by_the_same_values_owns_nothing_new),
        cmocka_unit_test(managed_fields_can_be_cleared),
        cmocka_unit_test(entries_of_one_second_are_ordered_by_version),
        cmocka_unit_test(a_repeated_item_is_owned_as_a_whole),
        cmocka_unit_test(items_keep_the_order_of_the_applier),
        cmocka_unit_test(the_structs_of_built_in_kinds_are_there_before_anyone_sets_them),
        cmocka_unit_test(many_managers_are_looked_at_once),
        cmocka_unit_test(long_lists_are_checked_and_merged_in_one_pass)};
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* not in tsan: it starts no thread */
