/* finder_test.c - items of lists found by their members. */
#include "support/test.h"

#include "value/edited.h"
#include "value/finder.h"

static const kl_value *list_of(const char *text)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void finds_the_first_item_with_the_same_member(void **state)
{
    (void)state;
    const kl_value *v = list_of(
        "[{\"n\":\"a\",\"x\":1},{\"n\":\"b\"},{\"n\":\"a\",\"x\":2},{\"n\":1},{\"n\":1.0},{}]");
    kl_finder f = {.key = "n"};
    assert_true(kl_finder_find(&f, kl_value_item(v, 0)) == -1);
    kl_finder_add_all(&f, v);
    assert_true(kl_finder_find(&f, kl_value_item(v, 2)) == 0);
    assert_true(kl_finder_find(&f, kl_value_item(v, 1)) == 1);
    assert_true(kl_finder_find(&f, kl_value_item(v, 4)) == 3); /* numbers are equal by value */
    assert_true(kl_finder_find(&f, kl_value_item(v, 5)) == 5); /* absent */
    assert_true(kl_finder_find_text(&f, "b") == 1);
    assert_true(kl_finder_find_text(&f, "c") == -1);
    assert_true(kl_finder_find_text(&f, "") == -1);
    kl_finder_fini(&f);
    kl_value_unref(v);
}

static void tells_repetitions_by_all_members(void **state)
{
    (void)state;
    static const char *const more[] = {"p", NULL};
    const kl_value *v = list_of(
        "[{\"n\":1,\"p\":\"TCP\"},{\"n\":1,\"p\":\"UDP\"},{\"n\":1,\"p\":\"TCP\"},{\"n\":1},"
        "{\"n\":1,\"p\":\"\"},{\"n\":1,\"p\":null}]");
    static const bool exact[] = {false, false, true, false, false, true},
                      loose[] = {0, 0, true, 0, true, true};
    kl_finder f = {.key = "n", .more = more}, g = {.key = "n", .more = more, .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(v); i++) {
        assert_true(kl_finder_repeats(&f, kl_value_item(v, i)) == exact[i]);
        assert_true(kl_finder_repeats(&g, kl_value_item(v, i)) == loose[i]);
    }
    kl_finder_fini(&f);
    kl_finder_fini(&g);
    kl_value_unref(v);
}

static void compares_whole_items_and_empty_texts(void **state)
{
    (void)state;
    const kl_value *v = list_of("[\"a\",\"\",null,{\"k\":[1,{\"b\":2}]},{\"k\":[1,{\"b\":2.0}]},[],{}]");
    kl_finder f = {.empty_is_absent = true};
    static const bool again[] = {false, false, true, false, true, false, false};
    for (size_t i = 0; i < kl_value_len(v); i++)
        assert_true(kl_finder_repeats(&f, kl_value_item(v, i)) == again[i]);
    assert_true(kl_finder_find_text(&f, "") == 1);
    assert_true(kl_finder_find_text(&f, "a") == 0);
    kl_finder_fini(&f);
    kl_value_unref(v);
}

static void finds_among_many(void **state)
{
    (void)state;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (int i = 0; i < 100000; i++)
        kl_build_int(b, i);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_finder f = {0};
    for (size_t i = 0; i < kl_value_len(v); i++)
        assert_true(!kl_finder_repeats(&f, kl_value_item(v, i)));
    for (size_t i = 0; i < kl_value_len(v); i++)
        assert_true(kl_finder_find(&f, kl_value_item(v, i)) == (long)i);
    kl_finder_fini(&f);
    kl_value_unref(v);
}

static void many_members_change_at_once(void **state)
{
    (void)state;
    const kl_value *a = list_of("{\"x\":1,\"y\":2}"), *b = list_of("{\"y\":3,\"z\":4}"),
                   *x = kl_value_of_int(9);
    kl_edited e = {.base = a};
    const kl_value *kept = kl_edited_done(&e);
    assert_true(kept == a);
    kl_edited_put_all(&e, b);
    const kl_value *alone = kl_edited_done(&e), *empty = kl_edited_done(&e);
    assert_true(kl_value_equal(alone, b));
    assert_true(kl_value_type(empty) == KL_OBJECT && !kl_value_len(empty));
    e.base = a;
    kl_edited_put_all(&e, b);
    const kl_value *both = kl_edited_done(&e), *wanted = list_of("{\"x\":1,\"y\":3,\"z\":4}");
    assert_true(kl_value_equal(both, wanted));
    e.base = a;
    kl_edited_fill(&e, b);
    const kl_value *filled = kl_edited_done(&e), *full = list_of("{\"x\":1,\"y\":2,\"z\":4}");
    assert_true(kl_value_equal(filled, full));
    e.base = a;
    kl_edited_put(&e, "y", x);
    kl_edited_put(&e, "new", x);
    kl_edited_put(&e, "gone", x);
    kl_edited_put(&e, "gone", NULL);
    kl_edited_put(&e, "x", NULL);
    assert_true(kl_edited_get(&e, "new") == x && !kl_edited_get(&e, "x") && !kl_edited_get(&e, "gone"));
    const kl_value *now = kl_edited_done(&e), *expected = list_of("{\"y\":9,\"new\":9}");
    assert_true(kl_value_equal(now, expected));
    const kl_value *all[] = {a, b, x, kept, alone, empty, both, wanted, filled, full, now, expected};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kl_value_unref(all[i]);
}

KL_TESTS(cmocka_unit_test(finds_the_first_item_with_the_same_member),
    cmocka_unit_test(tells_repetitions_by_all_members),
    cmocka_unit_test(compares_whole_items_and_empty_texts), cmocka_unit_test(finds_among_many),
    cmocka_unit_test(many_members_change_at_once))

/* not in tsan: it starts no thread */
