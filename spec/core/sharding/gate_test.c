/* gate_test.c - the runs that may begin, and the time when the last unwanted run has ended. */
#include "support/test.h"

#include "sharding/gate.h"

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

static void the_loss_of_keys_is_reported_once_after_their_last_run(void **state)
{
    (void)state;
    int told = 0, entered = 0, lost = 0;
    char keys[100][16];
    kl_gate *g = kl_gate_new("c", count, &told);
    kl_claims *all = claims_of((const char *[]){"a"}, 1, "a"),
              *half = claims_of((const char *[]){"a", "b"}, 2, "a");
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
    kl_claims *all = claims_of((const char *[]){"a"}, 1, "a"),
              *none = claims_of((const char *[]){"b"}, 1, "a");
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

static void only_keys_of_covered_namespaces_run(void **state)
{
    (void)state;
    int told = 0;
    kl_gate *g = kl_gate_new("c", count, &told);
    kl_claims *all = claims_of((const char *[]){"a"}, 1, "a"),
              *none = claims_of((const char *[]){"b"}, 1, "a");
    assert_true(kl_gate_set(g, all));
    assert_int_equal(kl_gate_covered(g), -1);
    assert_true(kl_gate_owns(g, "other/x"));
    kl_gate_cover(g, (char *[]){"ns-b", "ns", "a", NULL});
    assert_int_equal(kl_gate_covered(g), 3);
    assert_true(kl_gate_covers(g, "ns"));
    assert_false(kl_gate_covers(g, "n"));
    assert_false(kl_gate_covers(g, "ns-"));
    assert_true(kl_gate_covers_key(g, "ns-b/x"));
    assert_true(kl_gate_owns(g, "ns/x"));
    assert_true(kl_gate_owns(g, "without-a-namespace"));
    assert_false(kl_gate_owns(g, "other/x"));
    assert_false(kl_gate_enter(g, "other/x"));
    assert_true(kl_gate_enter(g, "ns/x"));
    assert_false(kl_gate_set(g, none));
    kl_gate_cover(g, (char *[]){NULL}); /* who is inside leaves as usual */
    assert_int_equal(kl_gate_covered(g), 0);
    assert_false(kl_gate_covers(g, "ns"));
    kl_gate_leave(g, "ns/x");
    assert_int_equal(told, 1);
    assert_true(kl_gate_set(g, all));
    assert_false(kl_gate_enter(g, "ns/x"));
    kl_gate_cover(g, NULL);
    assert_true(kl_gate_enter(g, "ns/x"));
    kl_gate_leave(g, "ns/x");
    kl_claims_unref(all);
    kl_claims_unref(none);
    kl_gate_free(g);
}

static void a_namespace_is_wanted_as_its_keys_are(void **state)
{
    (void)state;
    bool known;
    const kl_value *whole = kl_value_of_str("namespace"), *controllers = kl_value_with(NULL, "c", whole);
    kl_ring *r = kl_ring_new((const char *[]){"a", "b", "c"}, 3);
    kl_publication p = {r, kl_ring_find(r, "a"), controllers}, out = {r, KL_RING_NOBODY, controllers};
    kl_claims *c = kl_claims_new(&p, 1, NULL, 0), *guest = kl_claims_new(&out, 1, NULL, 0),
              *nobody = kl_claims_new(NULL, 0, NULL, 0);
    int mine = 0;
    for (int i = 0; i < 300; i++) {
        char ns[16], key[32];
        snprintf(ns, sizeof ns, "ns-%d", i);
        snprintf(key, sizeof key, "ns-%d/x", i);
        bool wanted = kl_claims_want_namespace(c, ns, &known);
        assert_true(known);
        assert_true(wanted == kl_claims_want(c, "c", key));
        mine += wanted;
        assert_false(kl_claims_want_namespace(guest, ns, &known));
        assert_true(known);
    }
    assert_in_range(mine, 50, 150);
    assert_false(kl_claims_want_namespace(nobody, "ns", &known));
    assert_false(known);
    assert_false(kl_claims_want_namespace(NULL, "ns", &known));
    assert_false(known);
    kl_claims_unref(c);
    kl_claims_unref(guest);
    kl_claims_unref(nobody);
    kl_ring_unref(r);
    kl_value_unref(whole);
    kl_value_unref(controllers);
}

KL_TESTS(cmocka_unit_test(only_keys_of_covered_namespaces_run),
    cmocka_unit_test(a_namespace_is_wanted_as_its_keys_are),
    cmocka_unit_test(nothing_comes_in_before_there_are_claims),
    cmocka_unit_test(the_loss_of_keys_is_reported_once_after_their_last_run),
    cmocka_unit_test(claims_that_come_back_in_time_need_no_draining))

/* not in tsan: it starts no thread */
