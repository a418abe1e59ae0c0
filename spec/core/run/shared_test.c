/* shared_test.c - shared values of scripts: by name, changed atomically, within bounds. */
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "run/shared.h"
#include "support/test.h"

static void set(kl_shared *s, const char *name, const char *text)
{
    const kl_value *v = kl_value_of_str(text);
    assert_int_equal(kl_shared_set(s, name, v, NULL), KL_OK);
    kl_value_unref(v);
}

static void assert_holds(kl_shared *s, const char *name, const char *text)
{
    const kl_value *v = kl_shared_get(s, name);
    if (text)
        assert_string_equal(kl_value_str(v), text);
    else
        assert_null(v);
    kl_value_unref(v);
}

static void a_name_has_the_value_that_was_set_last(void **state)
{
    kl_shared *s = kl_shared_new("store", 10000);

    (void)state;
    assert_holds(s, "a", NULL);
    set(s, "a", "one");
    set(s, "a", "two");
    set(s, "b", "three");
    assert_holds(s, "a", "two");
    assert_int_equal(kl_shared_set(s, "a", NULL, NULL), KL_OK);
    assert_int_equal(kl_shared_set(s, "a", NULL, NULL), KL_OK);
    assert_holds(s, "a", NULL);
    assert_holds(s, "b", "three");
    kl_shared_forget(s, "b");
    assert_holds(s, "b", NULL);
    kl_shared_free(s);
}

static void beyond_its_bound_writes_fail_and_values_stay(void **state)
{
    kl_shared *s = kl_shared_new("store", 4000);
    char long_text[3001];
    const kl_value *v;
    kl_err err = KL_ERR_INIT;

    (void)state;
    memset(long_text, 'x', 3000);
    long_text[3000] = 0;
    set(s, "a", long_text);
    v = kl_value_of_str(long_text);
    assert_int_equal(kl_shared_set(s, "b", v, &err), KL_ETOOBIG);
    assert_non_null(
        strstr(kl_err_message(&err), "store may hold 3 KiB and holds 3; the 4 KiB of \"b\" do not fit"));
    kl_err_fini(&err);
    assert_holds(s, "b", NULL);
    assert_int_equal(kl_shared_set(s, "a", v, NULL), KL_OK); /* in its own place it fits */
    for (int i = 0; i < 1000; i++) {                         /* and nothing is counted twice */
        set(s, "a", "short");
        set(s, "a", long_text);
        kl_shared_forget(s, "a");
    }
    set(s, "b", long_text);
    kl_value_unref(v);
    kl_shared_free(s);
}

static kl_status add(kl_shared *s, const char *name, const kl_value *by, const kl_value **out, kl_err *err)
{
    kl_status st = kl_shared_add(s, name, by, out, err);
    kl_value_unref(by);
    return st;
}

static void assert_adds(kl_shared *s, const kl_value *by, const char *json)
{
    const kl_value *sum = NULL;
    assert_int_equal(add(s, "n", by, &sum, NULL), KL_OK);
    char *text = kl_value_to_json(sum);
    assert_string_equal(text, json);
    kl_free(text);
    kl_value_unref(sum);
}

static void numbers_are_added_to_the_value_or_to_0(void **state)
{
    kl_shared *s = kl_shared_new("store", 10000);
    const kl_value *sum = NULL;
    kl_err err = KL_ERR_INIT;

    (void)state;
    assert_adds(s, kl_value_of_int(2), "2");
    assert_adds(s, kl_value_of_int(-5), "-3");
    assert_adds(s, kl_value_of_double(0.5), "-2.5");
    set(s, "text", "not a number");
    assert_int_equal(add(s, "text", kl_value_of_int(1), &sum, &err), KL_EINVAL);
    assert_string_equal(kl_err_message(&err), "\"text\" of store is not a number but string");
    kl_err_fini(&err);
    assert_int_equal(add(s, "big", kl_value_of_int(INT64_MAX), &sum, NULL), KL_OK);
    kl_value_unref(sum);
    assert_int_equal(add(s, "big", kl_value_of_int(1), &sum, &err), KL_EINVAL);
    assert_string_equal(kl_err_message(&err), "\"big\" of store would be more than a number holds");
    kl_err_fini(&err);
    assert_int_equal(add(s, "real", kl_value_of_double(1e308), &sum, NULL), KL_OK);
    kl_value_unref(sum);
    assert_int_equal(add(s, "real", kl_value_of_double(1e308), &sum, &err), KL_EINVAL);
    assert_string_equal(kl_err_message(&err), "\"real\" of store would be more than a number holds");
    kl_err_fini(&err);
    kl_shared_free(s);
}

static void assert_swaps(kl_shared *s, const char *was, const char *v, bool expected, const char *there)
{
    const kl_value *old = was ? kl_value_of_str(was) : NULL, *new = v ? kl_value_of_str(v) : NULL, *is = NULL;
    bool done = !expected;
    assert_int_equal(kl_shared_swap(s, "a", old, new, &done, &is, NULL), KL_OK);
    assert_int_equal(done, expected);
    if (there)
        assert_string_equal(kl_value_str(is), there);
    else
        assert_null(is);
    kl_value_unref(old);
    kl_value_unref(new);
    kl_value_unref(is);
}

static void a_value_is_swapped_if_it_is_the_expected_one(void **state)
{
    kl_shared *s = kl_shared_new("store", 10000);

    (void)state;
    assert_swaps(s, "x", "y", false, NULL);
    assert_swaps(s, NULL, "x", true, "x");
    assert_swaps(s, NULL, "y", false, "x");
    assert_swaps(s, "y", "z", false, "x");
    assert_swaps(s, "x", "z", true, "z");
    assert_swaps(s, "z", NULL, true, NULL);
    assert_swaps(s, NULL, NULL, true, NULL);
    kl_shared_free(s);
}

static void names_are_listed_by_their_beginning(void **state)
{
    kl_shared *s = kl_shared_new("store", 10000);

    (void)state;
    set(s, "pod/b", "1");
    set(s, "pod/a", "1");
    set(s, "node/a", "1");
    char **names = kl_shared_names(s, "pod/");
    assert_string_equal(names[0], "pod/a");
    assert_string_equal(names[1], "pod/b");
    assert_null(names[2]);
    kl_free(names[0]);
    kl_free(names[1]);
    kl_free(names);
    kl_shared_free(s);
}

static void scripts_have_their_own(void **state)
{
    kl_commons *c = kl_commons_new();

    (void)state;
    set(kl_commons_of(c, "a.lua"), "x", "1");
    assert_holds(kl_commons_of(c, "b.lua"), "x", NULL);
    assert_holds(kl_commons_of(c, "a.lua"), "x", "1");
    assert_ptr_equal(kl_commons_of(c, "a.lua"), kl_commons_of(c, "a.lua"));
    kl_commons_free(c);
}

#define THREADS 4
#define ADDS 5000

static void add_often(void *arg)
{
    const kl_value *one = kl_value_of_int(1), *sum;
    for (int i = 0; i < ADDS; i++) {
        assert_int_equal(kl_shared_add(arg, "n", one, &sum, NULL), KL_OK);
        kl_value_unref(sum);
    }
    kl_value_unref(one);
}

static void no_addition_is_lost_among_threads(void **state)
{
    kl_shared *s = kl_shared_new("store", 10000);
    kl_thread *t[THREADS];
    int64_t n = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        t[i] = kl_thread_start("add", add_often, s);
    for (int i = 0; i < THREADS; i++)
        kl_thread_join(t[i]);
    const kl_value *v = kl_shared_get(s, "n");
    assert_true(kl_value_int(v, &n));
    assert_int_equal(n, THREADS * ADDS);
    kl_value_unref(v);
    kl_shared_free(s);
}

KL_TESTS(cmocka_unit_test(a_name_has_the_value_that_was_set_last),
    cmocka_unit_test(beyond_its_bound_writes_fail_and_values_stay),
    cmocka_unit_test(numbers_are_added_to_the_value_or_to_0),
    cmocka_unit_test(a_value_is_swapped_if_it_is_the_expected_one),
    cmocka_unit_test(names_are_listed_by_their_beginning), cmocka_unit_test(scripts_have_their_own),
    cmocka_unit_test(no_addition_is_lost_among_threads))
