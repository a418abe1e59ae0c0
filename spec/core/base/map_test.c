/* map_test.c - maps from strings to pointers, compared with a plain array. */
#include "support/test.h"

#include "base/map.h"
#include "base/mem.h"

static void sets_gets_replaces_and_takes(void **state)
{
    (void)state;
    int a, b;
    kl_map *m = kl_map_new();
    assert_null(kl_map_get(m, "x"));
    assert_false(kl_map_has(m, "x"));
    assert_null(kl_map_take(m, "x"));
    char key[] = "x";
    assert_null(kl_map_set(m, key, &a));
    key[0] = 'y'; /* the map has its own copy */
    assert_ptr_equal(kl_map_get(m, "x"), &a);
    assert_ptr_equal(kl_map_getn(m, "xyz", 1), &a);
    assert_null(kl_map_getn(m, "xyz", 2));
    assert_ptr_equal(kl_map_set(m, "x", &b), &a);
    assert_int_equal(kl_map_len(m), 1);
    assert_null(kl_map_set(m, "", NULL));
    assert_true(kl_map_has(m, ""));
    assert_ptr_equal(kl_map_take(m, "x"), &b);
    assert_int_equal(kl_map_len(m), 1);
    kl_map_free(m, NULL);
    kl_map_free(NULL, NULL);
    assert_int_equal(kl_map_len(NULL), 0);
}

static void agrees_with_an_array_through_many_changes(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    static int values[KEYS];
    int *there[KEYS] = {0};
    uint32_t r = 1;
    kl_map *m = kl_map_new();
    for (int i = 0; i < 60000; i++) {
        char key[16];
        r = r * 1664525 + 1013904223;
        int k = (int)(r >> 8) % KEYS;
        snprintf(key, sizeof key, "key-%d", k);
        if (r >> 31) {
            assert_ptr_equal(kl_map_set(m, key, &values[k]), there[k]);
            there[k] = &values[k];
        } else {
            assert_ptr_equal(kl_map_take(m, key), there[k]);
            there[k] = NULL;
        }
    }
    size_t n = 0;
    for (int k = 0; k < KEYS; k++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", k);
        assert_ptr_equal(kl_map_get(m, key), there[k]);
        n += there[k] != NULL;
    }
    assert_int_equal(kl_map_len(m), n);
    char **keys = kl_map_sorted_keys(m);
    for (size_t i = 0; i < n; i++) {
        assert_true(kl_map_has(m, keys[i]));
        if (i)
            assert_true(strcmp(keys[i - 1], keys[i]) < 0);
    }
    assert_null(keys[n]);
    kl_free(keys);
    kl_map_free(m, NULL);
}

static void allows_removing_the_present_key_while_iterating(void **state)
{
    (void)state;
    kl_map *m = kl_map_new();
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%d", i);
        kl_map_set(m, key, kl_strdup(key));
    }
    size_t it = 0, seen = 0;
    const char *k;
    void *v;
    while (kl_map_next(m, &it, &k, &v)) {
        assert_string_equal(k, v);
        if (seen++ % 2)
            kl_free(kl_map_take(m, k));
    }
    assert_int_equal(seen, 100);
    assert_int_equal(kl_map_len(m), 50);
    kl_map_free(m, kl_free);
}

static void hashes_alike_within_a_process(void **state)
{
    (void)state;
    assert_true(kl_hash("abc", 3) == kl_hash("abcd", 3));
    assert_true(kl_hash("abc", 3) != kl_hash("abd", 3));
    assert_true(kl_hash("", 0) != kl_hash("\0", 1));
    assert_true(kl_hash("12345678", 8) != kl_hash("123456789", 9));
}

KL_TESTS(cmocka_unit_test(sets_gets_replaces_and_takes),
    cmocka_unit_test(agrees_with_an_array_through_many_changes),
    cmocka_unit_test(allows_removing_the_present_key_while_iterating),
    cmocka_unit_test(hashes_alike_within_a_process))

/* not in tsan: it starts no thread */
