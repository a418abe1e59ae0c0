/* gate_test.c - which runs may begin, and when the last unwanted one has ended. */
#include "support/test.h"

#include "run/gate.h"

static kl_claims *claims_of(const char *const *members, size_t n, const char *me)
{
    kl_ring *r = kl_ring_new(members, n);
    const kl_value *key = kl_value_of_str("key"), *controllers = kl_value_with(NULL, "c", key);
    kl_publication p = {r, kl_ring_find(r, me), controllers};
    kl_claims *c = kl_claims_new(&p, 1, NULL, 0);
    kl_ring_unref(r);
    kl_value_unref(key);
    kl_value_unref(controllers);
    return c;
}

static void count(void *arg) { ++*(int *)arg; }

static void nothing_comes_in_before_there_are_claims(void **state)
{
    (void)state;
    int told = 0;
    kl_gate *g = kl_gate_new("c", count, &told);
    assert_null(kl_gate_claims(g));
    assert_false(kl_gate_owns(g, "ns/a"));
    assert_false(kl_gate_enter(g, "ns/a"));
    kl_claims *none = kl_claims_new(NULL, 0, NULL, 0);
    assert_true(kl_gate_set(g, none));
    assert_false(kl_gate_enter(g, "ns/a"));
    kl_claims_unref(none);
    kl_gate_free(g);
    assert_int_equal(told, 0);
}

static void who_loses_keys_is_told_once_when_the_last_run_on_them_has_ended(void **state)
{
    (void)state;
    int told = 0, entered = 0, lost = 0;
    char keys[100][16];
    kl_gate *g = kl_gate_new("c", count, &told);
    kl_claims *all = claims_of((const char *[]){"a"}, 1, "a"), *half = claims_of((const char *[]){"a", "b"}, 2, "a");
    assert_true(kl_gate_set(g, all));
    for (int i = 0; i < 100; i++) {
        snprintf(keys[i], sizeof keys[i], "ns/o-%d", i);
        entered += kl_gate_enter(g, keys[i]);
        lost += !kl_claims_want(half, "c", keys[i]);
    }
    assert_int_equal(entered, 100);
    assert_in_range(lost, 20, 80);
    assert_true(kl_gate_drained(g));
    assert_false(kl_gate_set(g, half));
    assert_false(kl_gate_drained(g));
    for (int i = 0; i < 100; i++) {
        bool stays = kl_claims_want(half, "c", keys[i]);
        assert_true(kl_gate_owns(g, keys[i]) == stays);
        if (!stays) {
            assert_int_equal(told, 0);
            kl_gate_leave(g, keys[i]);
            assert_false(kl_gate_enter(g, keys[i]));
            lost--;
        }
    }
    assert_int_equal(lost, 0);
    assert_int_equal(told, 1);
    assert_true(kl_gate_drained(g));
    for (int i = 0; i < 100; i++)
        if (kl_gate_owns(g, keys[i]))
            kl_gate_leave(g, keys[i]);
    assert_int_equal(told, 1);
    kl_claims_unref(all);
    kl_claims_unref(half);
    kl_gate_free(g);
}

static void claims_that_come_back_in_time_need_no_draining(void **state)
{
    (void)state;
    int told = 0;
    kl_gate *g = kl_gate_new("c", count, &told);
    kl_claims *all = claims_of((const char *[]){"a"}, 1, "a"), *none = claims_of((const char *[]){"b"}, 1, "a");
    assert_true(kl_gate_set(g, all));
    assert_true(kl_gate_enter(g, "ns/x"));
    assert_false(kl_gate_set(g, none));
    assert_true(kl_gate_set(g, all));
    kl_gate_leave(g, "ns/x");
    assert_int_equal(told, 0);
    kl_claims_unref(all);
    kl_claims_unref(none);
    kl_gate_free(g);
}

KL_TESTS(
    cmocka_unit_test(nothing_comes_in_before_there_are_claims),
    cmocka_unit_test(who_loses_keys_is_told_once_when_the_last_run_on_them_has_ended),
    cmocka_unit_test(claims_that_come_back_in_time_need_no_draining))
