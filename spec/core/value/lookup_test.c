/* lookup_test.c - a cached position is right for every next object, even if objects change meanwhile. */
#include "support/test.h"

#include "base/mem.h"
#include "base/sync.h"
#include "support/random_value.h"

static const kl_value *decode(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void finds_what_get_finds_in_any_order_of_objects(void **state)
{
    (void)state;
    static const char *const keys[] = {"k0", "k1", "k5", "k39", "kind", "metadata", "", "nope"};
    enum { KEYS = sizeof keys / sizeof *keys };
    kl_lookup l[KEYS];
    for (size_t i = 0; i < KEYS; i++)
        kl_lookup_init(&l[i], keys[i], strlen(keys[i]));
    for (uint64_t seed = 1; seed <= 400; seed++) {
        rng r = rng_of(seed);
        const kl_value *v = random_value(&r, 3, true), *o = random_object(&r, true);
        for (size_t i = 0; i < KEYS; i++) {
            const kl_value *parts[] = {
                v, o, kl_value_get(o, "spec"), kl_value_item(v, 0), kl_value_member(v, 0, NULL, NULL), NULL};
            for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
                assert_ptr_equal(kl_value_find(parts[k], &l[i]), kl_value_get(parts[k], keys[i]));
        }
        kl_value_unref(v);
        kl_value_unref(o);
    }
    for (size_t i = 0; i < KEYS; i++)
        kl_lookup_fini(&l[i]);
}

static void objects_with_the_same_keys_share_the_place_and_others_do_not(void **state)
{
    (void)state;
    kl_lookup b, odd;
    kl_lookup_init(&b, "b", 1);
    kl_lookup_init(&odd, "a\0b", 3);
    const kl_value *const v[] = {decode("{\"a\":1,\"b\":2}"), decode("{\"a\":3,\"b\":4}"),
        decode("{\"b\":5,\"a\":1}"), decode("{\"a\":1}"), decode("{\"b\":6}"), decode("{}"), decode("[]"),
        decode("{\"a\\u0000b\":7,\"a\":8}")};
    static const int64_t want[] = {2, 4, 5, -1, 6, -1, -1, -1};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < 8; i++) {
            size_t at = round == 2 ? 7 - i : i;
            int64_t x = -1;
            assert_int_equal(kl_value_int(kl_value_find(v[at], &b), &x), want[at] >= 0);
            assert_int_equal(x, want[at]);
        }
    assert_int_equal(kl_value_int_at(v[7], 0, "a", NULL), 8);
    assert_non_null(kl_value_find(v[7], &odd));
    assert_null(kl_value_find(v[0], &odd));
    for (size_t i = 0; i < 8; i++)
        kl_value_unref(v[i]);
    kl_lookup_fini(&b);
    kl_lookup_fini(&odd);
}

/* The keys that a lookup remembers are gone from everywhere else: what gets their memory is not taken for
 * them. */
static void a_lookup_outlives_the_objects_it_read(void **state)
{
    (void)state;
    kl_lookup l;
    kl_lookup_init(&l, "x", 1);
    for (int i = 0; i < 300; i++) {
        char text[160];
        if (i % 2)
            snprintf(text, sizeof text, "{\"only%d\":1,\"x\":%d}", i, i);
        else
            snprintf(text, sizeof text, "{\"x\":%d,\"other%d\":{\"x\":0}}", i, i);
        const kl_value *v = decode(text);
        assert_int_equal(kl_value_int_at(v, -1, "x", NULL), i);
        int64_t x;
        assert_true(kl_value_int(kl_value_find(v, &l), &x) && x == i);
        kl_value_unref(v);
    }
    kl_lookup_fini(&l);
}

static void ids_are_equal_where_values_are_one(void **state)
{
    (void)state;
    const kl_value *a = decode("{\"a\":[1,\"two\"]}"), *b = decode("{ \"a\" : [1, \"tw\\u006f\"] }"),
                   *c = decode("{\"a\":[1,\"three\"]}"), *one = kl_value_of_int(1);
    assert_int_equal(kl_value_id(NULL), 0);
    assert_int_equal(kl_value_id(a), kl_value_id(b));
    assert_int_not_equal(kl_value_id(a), kl_value_id(c));
    assert_int_not_equal(kl_value_id(a), 0);
    assert_int_equal(kl_value_id(one), kl_value_id(kl_value_item(kl_value_get(c, "a"), 0)));
    kl_value_unref(a);
    kl_value_unref(b);
    kl_value_unref(c);
    kl_value_unref(one);
}

/* --- threads ------------------------------------------------------------------------------ */

#define THREADS 8
#ifdef KL_DEBUG
#define STEPS 4000
#else
#define STEPS 30000
#endif

typedef struct place {
    kl_mutex mu;
    const kl_value *now;
} place;

/* Every thread replaces the shared object by one with other keys and reads it through a lookup of its own. */
static void replace_and_find(void *arg)
{
    place *p = arg;
    static _Atomic unsigned seeds;
    rng r = rng_of(++seeds);
    kl_lookup l;
    kl_lookup_init(&l, "x", 1);
    for (int i = 0; i < STEPS; i++) {
        const kl_value *v = NULL;
        if (!rng_below(&r, 3)) {
            char text[100];
            unsigned x = rng_below(&r, 1000), k = rng_below(&r, 20);
            int n = k % 2 ? snprintf(text, sizeof text, "{\"k%u\":0,\"x\":%u,\"again\":%u}", k, x, x)
                          : snprintf(text, sizeof text, "{\"x\":%u,\"k%u\":[],\"again\":%u}", x, k, x);
            if (kl_value_decode(text, (size_t)n, &v, NULL))
                abort();
        }
        kl_lock(&p->mu);
        const kl_value *old = p->now, *mine = kl_value_ref(v ? v : old);
        if (v)
            p->now = v;
        kl_unlock(&p->mu);
        if (v)
            kl_value_unref(old);
        int64_t x = -1, again = -2;
        if (mine
            && (!kl_value_int(kl_value_find(mine, &l), &x)
                || !kl_value_int(kl_value_get(mine, "again"), &again) || x != again))
            abort();
        kl_value_unref(mine);
    }
    kl_lookup_fini(&l);
}

static void each_thread_finds_in_objects_that_others_replace(void **state)
{
    (void)state;
    place p = {0};
    kl_thread *t[THREADS];
    kl_mutex_init(&p.mu);
    for (size_t i = 0; i < THREADS; i++)
        t[i] = kl_thread_start("lookups", replace_and_find, &p);
    for (size_t i = 0; i < THREADS; i++)
        kl_thread_join(t[i]);
    kl_value_unref(p.now);
    kl_mutex_fini(&p.mu);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(finds_what_get_finds_in_any_order_of_objects),
    CASE(objects_with_the_same_keys_share_the_place_and_others_do_not),
    CASE(a_lookup_outlives_the_objects_it_read), CASE(ids_are_equal_where_values_are_one),
    CASE(each_thread_finds_in_objects_that_others_replace))
