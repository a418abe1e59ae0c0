/* ttl_test.c - objects that expire. */
#include "support/test.h"

#include <string.h>
#include "cache/ttl.h"
#include "model/object.h"

#define TTL KL_SECONDS(10)

static void put(kl_ttl *t, const char *key, int64_t n, kl_time now)
{
    const kl_value *v = kl_value_of_int(n);
    kl_ttl_put(t, key, v, now);
    kl_value_unref(v);
}

/* The number under a key, or -1. */
static int64_t at(kl_ttl *t, const char *key, kl_time now)
{
    const kl_value *v = kl_ttl_lookup(t, key, now);
    int64_t n = -1;
    if (v)
        assert_true(kl_value_int(v, &n));
    kl_value_unref(v);
    return n;
}

static void a_key_is_there_for_its_time_and_not_longer(void **state)
{
    (void)state;
    kl_ttl *t = kl_ttl_new(TTL);
    put(t, "a", 1, 100);
    assert_int_equal(at(t, "a", 100), 1);
    assert_int_equal(at(t, "a", 100 + TTL - 1), 1);
    assert_int_equal(at(t, "a", 100 + TTL), -1);
    assert_int_equal(at(t, "a", 100), -1); /* gone is gone, whatever the clock says later */
    assert_int_equal(kl_ttl_count(t, 100 + TTL), 0);
    kl_ttl_free(t);
}

static void a_put_restarts_the_time_and_a_delete_ends_it(void **state)
{
    (void)state;
    kl_ttl *t = kl_ttl_new(TTL);
    put(t, "a", 1, 0);
    put(t, "b", 2, KL_SECONDS(1));
    put(t, "a", 3, KL_SECONDS(9));
    assert_int_equal(at(t, "b", KL_SECONDS(11)), -1);
    assert_int_equal(at(t, "a", KL_SECONDS(11)), 3);
    assert_true(kl_ttl_delete(t, "a", KL_SECONDS(12)));
    assert_false(kl_ttl_delete(t, "a", KL_SECONDS(12)));
    put(t, "c", 4, KL_SECONDS(12));
    assert_false(kl_ttl_delete(t, "c", KL_SECONDS(22))); /* expired: it was not there */
    kl_ttl_free(t);
}

static void a_list_has_live_objects_in_the_order_of_expiry(void **state)
{
    (void)state;
    kl_ttl *t = kl_ttl_new(TTL);
    put(t, "a", 1, 1);
    put(t, "b", 2, 2);
    put(t, "c", 3, 3);
    put(t, "b", 4, 4);
    kl_objects o;
    kl_ttl_list(t, 1 + TTL, &o);
    assert_int_equal(o.len, 2);
    int64_t first, second;
    assert_true(kl_value_int(o.v[0], &first) && kl_value_int(o.v[1], &second));
    assert_int_equal(first, 3);
    assert_int_equal(second, 4);
    kl_objects_fini(&o);
    kl_ttl_list(t, KL_NEVER, &o);
    assert_int_equal(o.len, 0);
    kl_objects_fini(&o);
    kl_ttl_free(t);
    t = kl_ttl_new(KL_NEVER);
    put(t, "ever", 1, KL_SECONDS(1));
    assert_int_equal(at(t, "ever", KL_NEVER - 1), 1);
    kl_ttl_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_there_for_its_time_and_not_longer),
        cmocka_unit_test(a_put_restarts_the_time_and_a_delete_ends_it),
        cmocka_unit_test(a_list_has_live_objects_in_the_order_of_expiry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
