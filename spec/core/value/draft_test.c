/* draft_test.c - drafts: edits are read back, the base stays unchanged, and the merge patch leads from the
 * base to the draft. */
#include "support/test.h"

#include <time.h>

#include "base/mem.h"
#include "value/draft.h"
#include "value/patch.h"
#include "support/random_value.h"

static const kl_value *decode(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

/* Takes over v. */
static void assert_json(const kl_value *v, const char *want)
{
    char *got = kl_value_to_json(v);
    assert_string_equal(got, want);
    kl_free(got);
    kl_value_unref(v);
}

static kl_draft *draft_of(const char *text)
{
    const kl_value *v = decode(text);
    kl_draft *d = kl_draft_new(v);
    kl_value_unref(v);
    return d;
}

static void set(kl_draft_node *n, const char *key, const char *json)
{
    const kl_value *v = json ? decode(json) : NULL;
    kl_draft_set(n, key, strlen(key), v);
    kl_value_unref(v);
}

static kl_draft_node *get(kl_draft_node *n, const char *key)
{
    const kl_value *scalar;
    return kl_draft_get(n, key, strlen(key), &scalar);
}

static void an_untouched_draft_has_an_empty_patch(void **state)
{
    (void)state;
    kl_draft *d = draft_of("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"l\":[{\"x\":1}]}}");
    const kl_value *scalar;
    kl_draft_node *metadata = get(kl_draft_root(d), "metadata"),
                  *list = get(get(kl_draft_root(d), "spec"), "l");
    assert_null(kl_draft_get(metadata, "name", 4, &scalar));
    assert_string_equal(kl_value_str(scalar), "a");
    assert_int_equal(kl_draft_type(list), KL_ARRAY);
    assert_int_equal(kl_draft_len(list), 1);
    assert_non_null(kl_draft_item(list, 0, &scalar));
    assert_null(kl_draft_item(list, 1, &scalar));
    assert_null(scalar);
    assert_ptr_equal(get(kl_draft_root(d), "metadata"), metadata); /* a stable address */
    assert_null(get(list, "x"));
    assert_null(kl_draft_key(list, 0, &(size_t){0}));
    assert_false(kl_draft_changed(d));
    assert_false(kl_draft_list_changed(d));
    assert_json(kl_draft_patch(d), "{}");
    kl_draft_free(d);
    kl_draft_free(NULL);
}

static void edits_become_a_merge_patch(void **state)
{
    (void)state;
    const kl_value *base = decode("{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}},\"spec\":{\"n\":1}}"),
                   *scalar;
    kl_draft *d = kl_draft_new(base);
    kl_draft_node *root = kl_draft_root(d), *labels = get(get(root, "metadata"), "labels");
    size_t n;
    set(labels, "a", NULL);
    set(labels, "b", "\"2\"");
    set(labels, "c", "\"3\"");
    set(kl_draft_make(kl_draft_make(root, "status", 6), "deep", 4), "x", "true");
    assert_null(kl_draft_get(labels, "c", 1, &scalar));
    assert_string_equal(kl_value_str(scalar), "3");
    assert_int_equal(kl_draft_len(labels), 2);
    assert_string_equal(kl_draft_key(labels, 1, &n), "c");
    assert_null(kl_draft_key(labels, 2, &n));
    assert_true(kl_draft_changed(d));
    assert_false(kl_draft_list_changed(d));
    assert_json(kl_draft_patch(d),
        "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"3\"}},\"status\":{\"deep\":{\"x\":true}}}");
    assert_json(kl_draft_value(root),
        "{\"metadata\":{\"labels\":{\"b\":\"2\",\"c\":\"3\"}},\"spec\":{\"n\":1},\"status\":{\"deep\":{\"x\":"
        "true}}}");
    assert_json(
        kl_value_ref(base), "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}},\"spec\":{\"n\":1}}");
    kl_draft_free(d);
    kl_value_unref(base);
}

static void an_edit_that_is_taken_back_is_none(void **state)
{
    (void)state;
    kl_draft *d = draft_of("{\"a\":{\"x\":1},\"l\":[1,2]}");
    kl_draft_node *root = kl_draft_root(d), *a = get(root, "a"), *l = get(root, "l");
    set(a, "x", "2");
    set(a, "x", "1.0");
    set(root, "new", "{}");
    set(root, "new", NULL);
    const kl_value *v = decode("3");
    kl_draft_insert_item(l, 9, v);
    assert_true(kl_draft_list_changed(d));
    assert_int_equal(kl_draft_set_item(l, 2, NULL, NULL), KL_OK);
    kl_value_unref(v);
    assert_false(kl_draft_changed(d));
    assert_json(kl_draft_patch(d), "{}");
    kl_draft_free(d);
}

static void lists_are_edited_by_place_and_replaced_whole(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_draft *d = draft_of("{\"spec\":{\"c\":[{\"n\":\"a\"},{\"n\":\"b\"},7]}}");
    kl_draft_node *list = get(get(kl_draft_root(d), "spec"), "c");
    const kl_value *v = decode("\"new\""), *scalar;
    set(kl_draft_item(list, 1, &scalar), "n", "\"B\"");
    assert_null(kl_draft_item(list, 2, &scalar));
    assert_int_equal(kl_value_int_at(scalar, 0, NULL), 7);
    assert_ok(kl_draft_set_item(list, 2, v, &err), &err);
    assert_ok(kl_draft_set_item(list, 3, v, &err), &err);
    kl_draft_insert_item(list, 0, v);
    assert_ok(kl_draft_set_item(list, 1, NULL, &err), &err);
    assert_fails(kl_draft_set_item(list, 9, v, &err), KL_EINVAL, &err, "item 10 is outside of a list of 4");
    assert_fails(kl_draft_set_item(list, 4, NULL, &err), KL_EINVAL, &err, "item 5 is outside");
    assert_fails(kl_draft_set_item(kl_draft_root(d), 0, v, &err), KL_EINVAL, &err, "use a string key");
    set(list, "key", "1"); /* not for lists: nothing happens */
    assert_null(kl_draft_make(list, "key", 3));
    assert_true(kl_draft_list_changed(d));
    assert_json(kl_draft_patch(d), "{\"spec\":{\"c\":[\"new\",{\"n\":\"B\"},\"new\",\"new\"]}}");
    kl_value_unref(v);
    kl_draft_free(d);
}

static void a_list_that_begins_or_ends_needs_the_lock_too(void **state)
{
    (void)state;
    kl_draft *d = draft_of("{\"a\":1,\"l\":[1]}");
    set(kl_draft_root(d), "a", "2");
    assert_false(kl_draft_list_changed(d));
    set(kl_draft_root(d), "status", "{\"conditions\":[{}]}");
    assert_true(kl_draft_list_changed(d));
    kl_draft_free(d);
    d = draft_of("{\"a\":1,\"o\":{\"l\":[1]}}");
    set(kl_draft_root(d), "o", NULL);
    assert_true(kl_draft_list_changed(d));
    kl_draft_free(d);
}

static void a_node_that_was_replaced_lives_on_apart(void **state)
{
    (void)state;
    kl_draft *d = draft_of("{\"a\":{\"x\":1}}");
    kl_draft_node *a = get(kl_draft_root(d), "a");
    set(kl_draft_root(d), "a", "{\"y\":2}");
    set(a, "x", "5");
    assert_json(kl_draft_value(a), "{\"x\":5}");
    assert_json(kl_draft_patch(d), "{\"a\":{\"x\":null,\"y\":2}}");
    set(get(kl_draft_root(d), "a"), "z", "3");
    assert_json(kl_draft_value(kl_draft_root(d)), "{\"a\":{\"y\":2,\"z\":3}}");
    assert_ptr_equal(kl_draft_make(kl_draft_root(d), "a", 1), get(kl_draft_root(d), "a"));
    set(kl_draft_root(d), "s", "\"scalar\"");
    set(kl_draft_make(kl_draft_root(d), "s", 1), "now", "\"object\"");
    assert_json(kl_draft_value(get(kl_draft_root(d), "s")), "{\"now\":\"object\"}");
    kl_draft_free(d);
}

static void a_draft_of_nothing_starts_with_an_object(void **state)
{
    (void)state;
    kl_draft *d = kl_draft_new(NULL);
    assert_false(kl_draft_changed(d));
    set(kl_draft_root(d), "a", "1");
    assert_true(kl_draft_changed(d));
    assert_json(kl_draft_patch(d), "{\"a\":1}");
    kl_draft_free(d);
}

/* One random edit at or below n. */
static void edit(rng *r, kl_draft_node *n)
{
    const kl_value *scalar, *v;
    char key[8];
    snprintf(key, sizeof key, "k%u", rng_below(r, 8));
    for (int down = (int)rng_below(r, 4); down; down--) {
        kl_draft_node *child = kl_draft_type(n) == KL_ARRAY ? kl_draft_item(n, rng_below(r, 4), &scalar)
                                                            : kl_draft_get(n, key, strlen(key), &scalar);
        if (child)
            n = child;
        snprintf(key, sizeof key, "k%u", rng_below(r, 8));
    }
    v = rng_below(r, 3) ? random_value(r, 2, false) : NULL;
    if (kl_draft_type(n) == KL_OBJECT && v && !rng_below(r, 4))
        kl_draft_make(n, key, strlen(key));
    else if (kl_draft_type(n) == KL_OBJECT)
        kl_draft_set(n, key, strlen(key), v);
    else if (rng_below(r, 2))
        kl_draft_insert_item(n, rng_below(r, 4), v);
    else
        (void)!kl_draft_set_item(n, rng_below(r, 4), v, NULL);
    kl_value_unref(v);
}

static void the_patch_leads_from_base_to_now(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        rng r = rng_of(seed);
        const kl_value *base = random_object(&r, false);
        kl_draft *d = kl_draft_new(base);
        for (unsigned i = rng_below(&r, 12); i; i--)
            edit(&r, kl_draft_root(d));
        const kl_value *now = kl_draft_value(kl_draft_root(d)), *patch = kl_draft_patch(d),
                       *got = kl_merge_patch_apply(base, patch);
        if (!kl_value_equal(got, now))
            fail_msg("seed %d", (int)seed);
        assert_int_equal(kl_draft_changed(d), kl_value_len(patch) > 0);
        /* What comes out of the edits alone is what comparing the whole gives. */
        const kl_value *whole = kl_merge_patch_create(base, now);
        if (!kl_value_equal(whole, patch))
            fail_msg("seed %d: %s is not %s", (int)seed, kl_value_to_json(patch), kl_value_to_json(whole));
        kl_value_unref(whole);
        kl_value_unref(base);
        kl_value_unref(now);
        kl_value_unref(patch);
        kl_value_unref(got);
        kl_draft_free(d);
    }
}

/* It is one call, which no budget ends: a square of the members would take a minute. */
static void an_object_of_many_members_is_patched_in_a_moment(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    const kl_value *base, *x = kl_value_of_str("x");
    for (int i = 0; i < 400000; i++)
        kl_buf_printf(&text, "%c\"k%d\":%d", i ? ',' : '{', i, i);
    kl_buf_putc(&text, '}');
    assert_ok(kl_value_decode(text.data, text.len, &base, &err), &err);
    kl_draft *d = kl_draft_new(base);
    kl_draft_node *root = kl_draft_root(d);
    kl_draft_set(root, "k7", 2, x);
    kl_draft_set(root, "k399998", 7, NULL);
    kl_draft_set(root, "k399999", 7, NULL);
    clock_t began = clock();
    const kl_value *patch = kl_draft_patch(d);
    assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
    char *json = kl_value_to_json(patch);
    assert_string_equal(json, "{\"k399998\":null,\"k399999\":null,\"k7\":\"x\"}");
    kl_free(json);
    kl_value_unref(patch);
    kl_value_unref(base);
    kl_value_unref(x);
    kl_draft_free(d);
    kl_buf_fini(&text);
}

static void a_null_that_is_assigned_stays_in_the_patch(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    const kl_value *base, *null = kl_value_null();
    assert_int_equal(kl_value_decode("{\"a\":{\"b\":1}}", 13, &base, &err), KL_OK);
    kl_draft *d = kl_draft_new(base);
    kl_draft_set(kl_draft_root(d), "new", 3, null);
    const kl_value *scalar;
    kl_draft_set(kl_draft_get(kl_draft_root(d), "a", 1, &scalar), "b", 1, null);
    const kl_value *patch = kl_draft_patch(d);
    char *text = kl_value_to_json(patch);
    assert_string_equal(text, "{\"a\":{\"b\":null},\"new\":null}");
    kl_free(text);
    kl_value_unref(patch);
    kl_value_unref(base);
    kl_draft_free(d);
}

/* A script may write a.a.a... as long as it likes: it comes to an end before any stack does. */
static void nodes_nest_as_deep_as_text_and_not_without_end(void **state)
{
    (void)state;
    kl_draft *d = kl_draft_new(NULL);
    kl_draft_node *n = kl_draft_root(d), *below = n;
    size_t depth = 0;
    for (; below && depth < 100000; depth++) {
        n = below;
        below = kl_draft_make(n, "a", 1);
    }
    assert_true(depth > KL_VALUE_DEPTH_MAX && depth < 5 * KL_VALUE_DEPTH_MAX);
    set(n, "b", "1");
    kl_value_unref(kl_draft_value(kl_draft_root(d)));
    const kl_value *patch = kl_draft_patch(d), *v = patch;
    for (size_t i = 1; i < depth; i++)
        v = kl_value_get(v, "a");
    assert_int_equal(kl_value_int_at(v, 0, "b", NULL), 1);
    kl_value_unref(patch);
    kl_draft_free(d);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(an_untouched_draft_has_an_empty_patch), CASE(edits_become_a_merge_patch),
    CASE(an_edit_that_is_taken_back_is_none), CASE(lists_are_edited_by_place_and_replaced_whole),
    CASE(a_list_that_begins_or_ends_needs_the_lock_too), CASE(a_node_that_was_replaced_lives_on_apart),
    CASE(a_draft_of_nothing_starts_with_an_object), CASE(a_null_that_is_assigned_stays_in_the_patch),
    CASE(an_object_of_many_members_is_patched_in_a_moment), CASE(the_patch_leads_from_base_to_now),
    CASE(nodes_nest_as_deep_as_text_and_not_without_end))

/* not in tsan: it starts no thread */
