/* ring_test.c - the owner of a key: the same in every replica; and few keys move when a member joins or
 * leaves. */
#include "support/test.h"

#include "sharding/ring.h"

#define KEYS 20000

static uint64_t point_of(int i)
{
    char key[32];
    return kl_ring_point(key, (size_t)snprintf(key, sizeof key, "ns-%d/object-%d", i % 37, i));
}

static const char *owner_of(const kl_ring *r, int i)
{
    size_t o = kl_ring_owner(r, point_of(i));
    return o == KL_RING_NOBODY ? "" : kl_ring_member(r, o);
}

static void points_are_the_same_in_every_process_and_release(void **state)
{
    (void)state;
    assert_true(kl_ring_point("", 0) == 0xefd01f60ba992926u);
    assert_true(kl_ring_point("default/web", 11) == 0x43ebfb5ca037b82u);
    kl_ring *r = kl_ring_new((const char *[]){"a", "b", "c"}, 3);
    char first[25] = "";
    for (int i = 0; i < 24; i++)
        first[i] = *owner_of(r, i);
    assert_string_equal(first, "caabbbaaabaabcbacaababba");
    kl_ring_unref(r);
}

static void order_and_repetition_of_names_do_not_matter(void **state)
{
    (void)state;
    kl_ring *a = kl_ring_new((const char *[]){"c", "a", "b", "a"}, 4),
            *b = kl_ring_new((const char *[]){"a", "b", "c"}, 3);
    assert_int_equal(kl_ring_members(a), 3);
    assert_int_equal(kl_ring_find(a, "b"), 1);
    assert_true(kl_ring_find(a, "d") == KL_RING_NOBODY);
    for (int i = 0; i < 1000; i++)
        assert_string_equal(owner_of(a, i), owner_of(b, i));
    kl_ring_unref(a);
    kl_ring_unref(b);
}

static void an_empty_ring_has_no_owner_and_one_member_owns_all(void **state)
{
    (void)state;
    kl_ring *none = kl_ring_new(NULL, 0), *one = kl_ring_new((const char *[]){"a"}, 1);
    assert_true(kl_ring_owner(none, 7) == KL_RING_NOBODY);
    assert_true(kl_ring_share(none, KL_RING_NOBODY) == 0);
    for (int i = 0; i < 100; i++)
        assert_string_equal(owner_of(one, i), "a");
    assert_true(kl_ring_share(one, 0) > 0.999 && kl_ring_share(one, 0) < 1.001);
    kl_ring_unref(none);
    kl_ring_unref(one);
}

static void members_have_about_equal_shares_and_their_sum_is_all(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 20; n++) {
        char names[20][16];
        const char *p[20];
        int had[20] = {0};
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "replica-%zu", i);
            p[i] = names[i];
        }
        kl_ring *r = kl_ring_new(p, n);
        for (int i = 0; i < KEYS; i++)
            had[kl_ring_owner(r, point_of(i))]++;
        for (size_t i = 0; i < n; i++) {
            double share = kl_ring_share(r, i), fair = 1.0 / (double)n;
            assert_true(share > fair * 0.65 && share < fair * 1.35);
            assert_true(had[i] / (double)KEYS > share * 0.8 && had[i] / (double)KEYS < share * 1.2);
            sum += share;
        }
        assert_true(sum > 0.999 && sum < 1.001);
        kl_ring_unref(r);
    }
}

static void only_keys_of_a_joining_or_leaving_member_move(void **state)
{
    (void)state;
    kl_ring *three = kl_ring_new((const char *[]){"a", "b", "c"}, 3),
            *four = kl_ring_new((const char *[]){"a", "b", "c", "d"}, 4);
    int moved = 0;
    for (int i = 0; i < KEYS; i++) {
        const char *before = owner_of(three, i), *after = owner_of(four, i);
        if (strcmp(before, after)) {
            assert_string_equal(after, "d");
            moved++;
        }
    }
    assert_in_range(moved, KEYS / 6, KEYS / 3);
    kl_ring_unref(three);
    kl_ring_unref(four);
}

KL_TESTS(cmocka_unit_test(points_are_the_same_in_every_process_and_release),
    cmocka_unit_test(order_and_repetition_of_names_do_not_matter),
    cmocka_unit_test(an_empty_ring_has_no_owner_and_one_member_owns_all),
    cmocka_unit_test(members_have_about_equal_shares_and_their_sum_is_all),
    cmocka_unit_test(only_keys_of_a_joining_or_leaving_member_move))

/* not in tsan: it starts no thread */
