/* jsonpatch_test.c - computed JSON patches: their text for small changes, and that they lead from any value
 * to any other. */
#include "support/test.h"

#include "base/mem.h"
#include "value/patch.h"
#include "support/random_value.h"

static const kl_value *read(const char *text)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void says(const char *from, const char *to, const char *want)
{
    const kl_value *a = read(from), *b = read(to), *p = kl_json_patch_create(a, b), *got;
    kl_err err = KL_ERR_INIT;
    char *text = kl_value_to_json(p);
    assert_string_equal(text, want);
    assert_ok(kl_json_patch_apply(a, p, &got, &err), &err);
    assert_true(kl_value_equal(got, b));
    kl_free(text);
    kl_value_unref(got);
    kl_value_unref(p);
    kl_value_unref(a);
    kl_value_unref(b);
}

static void a_patch_contains_only_changes(void **state)
{
    (void)state;
    says("{\"a\":1}", "{\"a\":1}", "[]");
    says("{\"a\":1}", "{\"a\":2}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]");
    says("{\"a\":1,\"b\":{\"c\":2}}", "{\"b\":{}}",
        "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"remove\",\"path\":\"/b/c\"}]");
    says("{}", "{\"a\":{\"b\":null}}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"b\":null}}]");
    says("{\"a\":{}}", "{\"a\":[]}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":[]}]");
}

static void keys_are_escaped(void **state)
{
    (void)state;
    says("{\"m\":{}}", "{\"m\":{\"a.b/c~d\":\"x\"}}",
        "[{\"op\":\"add\",\"path\":\"/m/a.b~1c~0d\",\"value\":\"x\"}]");
}

static void items_that_stayed_are_left_alone(void **state)
{
    (void)state;
    says("{\"l\":[1,2,3]}", "{\"l\":[1,3]}", "[{\"op\":\"remove\",\"path\":\"/l/1\"}]");
    says("{\"l\":[1,3]}", "{\"l\":[1,2,3]}", "[{\"op\":\"add\",\"path\":\"/l/1\",\"value\":2}]");
    says("{\"l\":[1,2]}", "{\"l\":[1,2,3,4]}",
        "[{\"op\":\"add\",\"path\":\"/l/2\",\"value\":3},{\"op\":\"add\",\"path\":\"/l/3\",\"value\":4}]");
    says("{\"l\":[{\"n\":1},{\"n\":2}]}", "{\"l\":[{\"n\":1},{\"n\":3}]}",
        "[{\"op\":\"replace\",\"path\":\"/l/1/n\",\"value\":3}]");
    says("{\"l\":[1,2,3,4]}", "{\"l\":[9]}",
        "[{\"op\":\"replace\",\"path\":\"/l/0\",\"value\":9},{\"op\":\"remove\",\"path\":\"/l/"
        "3\"},{\"op\":\"remove\",\"path\":\"/l/2\"},{\"op\":\"remove\",\"path\":\"/l/1\"}]");
}

static void any_two_objects_have_a_patch_between_them(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        rng r = rng_of(seed);
        const kl_value *a = random_object(&r, false), *b = random_object(&r, false),
                       *p = kl_json_patch_create(a, b), *got;
        kl_err err = KL_ERR_INIT;
        assert_ok(kl_json_patch_apply(a, p, &got, &err), &err);
        if (!kl_value_equal(got, b))
            fail_msg("seed %llu", (unsigned long long)seed);
        kl_value_unref(got);
        kl_value_unref(p);
        kl_value_unref(a);
        kl_value_unref(b);
    }
}

KL_TESTS(cmocka_unit_test(a_patch_contains_only_changes), cmocka_unit_test(keys_are_escaped),
    cmocka_unit_test(items_that_stayed_are_left_alone),
    cmocka_unit_test(any_two_objects_have_a_patch_between_them))

/* not in tsan: it starts no thread */
