/* overlay_test.c - own writes, laid over reads from another source. */
#include "support/json.h"

#include "model/object.h"
#include "run/overlay.h"

static const kl_resource maps = {
    .group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .namespaced = true};
static const kl_resource secrets = {
    .group = "", .version = "v1", .kind = "Secret", .plural = "secrets", .namespaced = true};

static const kl_value *map(const char *name, const char *rv, const char *x)
{
    char text[256];
    snprintf(text, sizeof text,
        "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s','namespace':'ns','resourceVersion':'%"
        "s'},'data':{'x':'%s'}}",
        name, rv, x);
    return json(text);
}

static void patch(kl_overlay *o, const kl_value *base, const char *name, const char *body)
{
    kl_err err = KL_ERR_INIT;
    kl_simulated s;
    kl_op op;
    kl_op_init(&op, KL_PATCH, "v1/ConfigMap");
    op.name = name;
    op.body = json(body);
    kl_simulation write = {.op = &op, .resource = &maps, .ns = "ns", .base = base};
    assert_ok(kl_overlay_write(o, &write, &s, NULL, &err), &err);
    kl_simulated_fini(&s);
    kl_value_unref(op.body);
}

static void own_writes_are_read(void **state)
{
    (void)state;
    kl_overlay *o = kl_overlay_new();
    const kl_value *base = map("a", "5", "1"), *v;
    assert_false(kl_overlay_get(o, &maps, "ns", "a", &v));
    patch(o, base, "a", "{'data':{'x':'2'}}");
    patch(o, base, "a", "{'data':{'y':'3'}}");
    assert_true(kl_overlay_get(o, &maps, "ns", "a", &v));
    assert_json(kl_value_get(v, "data"), "{'x':'2','y':'3'}");
    assert_string_equal(kl_object_rv(v), "7");
    kl_value_unref(v);
    assert_false(kl_overlay_get(o, &secrets, "ns", "a", &v));
    assert_true(kl_overlay_wrote(o, &maps, "ns", "a"));
    kl_value_unref(base);
    kl_overlay_unref(o);
}

static void shown_objects_yield_to_deletions_and_writes(void **state)
{
    (void)state;
    kl_overlay *o = kl_overlay_new();
    const kl_value *one = map("a", "5", "1"), *two = map("a", "6", "2"), *v;
    assert_true(kl_overlay_show(o, &maps, "ns", "a", one));
    assert_false(kl_overlay_show(o, &maps, "ns", "a", two));
    assert_false(kl_overlay_wrote(o, &maps, "ns", "a"));
    assert_true(kl_overlay_get(o, &maps, "ns", "a", &v));
    assert_true(kl_value_equal(v, one));
    kl_value_unref(v);
    kl_overlay_set(o, &maps, "ns", "a", NULL);
    assert_true(kl_overlay_get(o, &maps, "ns", "a", &v));
    assert_null(v);
    kl_value_unref(one);
    kl_value_unref(two);
    kl_overlay_unref(o);
}

static bool has_x(void *arg, const kl_value *v, bool listed)
{
    (void)listed;
    const char *x = kl_value_str_at(v, "data", "x", NULL);
    return x && !strcmp(x, arg);
}

static void lists_show_them_too(void **state)
{
    (void)state;
    kl_overlay *o = kl_overlay_new();
    const kl_value *a = map("a", "5", "1"), *b = map("b", "5", "1"), *c = map("c", "5", "1"),
                   *d = map("a0", "1", "1");
    patch(o, a, "a", "{'data':{'z':'9'}}");  /* still matches */
    patch(o, b, "b", "{'data':{'x':'2'}}");  /* does not any more */
    kl_overlay_set(o, &maps, "ns", "a0", d); /* is new */
    kl_objects list = {3, kl_zalloc_array(sizeof *list.v, 3)};
    list.v[0] = kl_value_ref(a), list.v[1] = kl_value_ref(b), list.v[2] = kl_value_ref(c);
    kl_overlay_list(o, &maps, has_x, "1", &list);
    assert_int_equal(list.len, 3);
    assert_string_equal(kl_object_name(list.v[0]), "a");
    assert_string_equal(kl_value_str_at(list.v[0], "data", "z", NULL), "9");
    assert_string_equal(kl_object_name(list.v[1]), "a0");
    assert_string_equal(kl_object_name(list.v[2]), "c");
    assert_false(kl_overlay_has(o, &secrets));
    assert_true(kl_overlay_has(o, &maps));
    kl_objects_fini(&list);
    kl_value_unref(a), kl_value_unref(b), kl_value_unref(c), kl_value_unref(d);
    kl_overlay_unref(o);
}

KL_TESTS(cmocka_unit_test(own_writes_are_read), cmocka_unit_test(shown_objects_yield_to_deletions_and_writes),
    cmocka_unit_test(lists_show_them_too))

/* not in tsan: it starts no thread */
