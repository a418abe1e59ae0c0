/* store_test.c - objects in memory: versions, the history for watches, and its limit. */
#include "core/server/value_help.h"

#include "model/object.h"
#include "store/store.h"

struct seen {
    size_t count;
    kl_event_type last;
    uint64_t rv;
};

static void listen(void *arg, kl__bucket *b, const kl__change *c)
{
    (void)b;
    struct seen *s = arg;
    s->count++;
    s->last = c->type;
    s->rv = c->rv;
}

static void put(kl__store *s, kl__bucket *b, const char *key, int n)
{
    char *text = kl_sprintf("{'metadata':{'name':'%s'},'n':%d}", key, n);
    kl__store_put(s, b, key, v(text));
    kl_free(text);
}

/* The keys and numbers of a picture, and how many follow: "a=1 b=2 and 3". */
static char *cut(const kl__bucket *b, const char *prefix, const char *from, uint64_t rv, size_t most)
{
    kl__picture p;
    if (kl__bucket_picture(b, prefix, from, rv, most, &p))
        return kl_strdup("gone");
    kl_buf out = KL_BUF_INIT;
    for (size_t i = 0; i < p.len; i++)
        kl_buf_printf(
            &out, "%s%s=%d", i ? " " : "", p.keys[i], (int)kl_value_int_at(p.objects[i], -1, "n", NULL));
    if (p.rest)
        kl_buf_printf(&out, " and %zu", p.rest);
    kl__picture_fini(&p);
    return out.data ? kl_buf_take(&out) : kl_strdup("");
}

static char *shown(const kl__bucket *b, const char *prefix, const char *from, uint64_t rv)
{
    return cut(b, prefix, from, rv, SIZE_MAX);
}

#define assert_shown(want, ...) assert_text(want, shown(__VA_ARGS__))
#define assert_cut(want, ...) assert_text(want, cut(__VA_ARGS__))
#define assert_text(want, text)                                                                              \
    do {                                                                                                     \
        char *got_ = text;                                                                                   \
        assert_string_equal(got_, want);                                                                     \
        kl_free(got_);                                                                                       \
    } while (0)

static void every_change_has_its_own_version_and_is_delivered(void **state)
{
    (void)state;
    struct seen seen = {0};
    kl__store *s = kl__store_new(10, listen, &seen);
    kl__bucket *b = kl__store_bucket(s, "", "things");
    put(s, b, "a", 1);
    assert_int_equal(seen.last, KL_ADDED);
    put(s, b, "a", 2);
    assert_int_equal(seen.last, KL_MODIFIED);
    uint64_t before = seen.rv;
    const kl_value *gone = kl__store_remove(s, b, "a", NULL);
    assert_int_equal(seen.last, KL_DELETED);
    assert_true(seen.rv > before);
    assert_int_equal(strtoull(kl_object_rv(gone), NULL, 10), seen.rv);
    assert_null(kl__store_remove(s, b, "a", NULL));
    assert_int_equal(seen.count, 3);
    kl_value_unref(gone);
    kl__store_free(s);
}

static void objects_are_sorted_by_key_and_found_by_prefix(void **state)
{
    (void)state;
    struct seen seen = {0};
    kl__store *s = kl__store_new(10, listen, &seen);
    kl__bucket *b = kl__store_bucket(s, "", "things");
    put(s, b, "b/x", 1);
    put(s, b, "a/y", 2);
    put(s, b, "a/x", 3);
    put(s, b, "a-b/x", 4);
    assert_shown("a-b/x=4 a/x=3 a/y=2 b/x=1", b, "", "", 0);
    assert_shown("a/x=3 a/y=2", b, "a/", "a/", 0);
    assert_shown("a/y=2", b, "a/", "a/x\x01", 0);
    assert_cut("a-b/x=4 a/x=3 and 2", b, "", "", 0, 2);
    assert_cut("a/x=3 and 1", b, "a/", "a/", 0, 1);
    assert_cut("a/y=2", b, "a/", "a/x\x01", 0, 1);
    assert_cut("", b, "c/", "c/", 0, 1);
    assert_true(kl__bucket_has(b, "b/"));
    assert_false(kl__bucket_has(b, "c/"));
    kl__store_free(s);
}

static void the_past_can_be_seen_as_long_as_the_history_reaches(void **state)
{
    (void)state;
    struct seen seen = {0};
    kl__store *s = kl__store_new(4, listen, &seen);
    kl__bucket *b = kl__store_bucket(s, "", "things");
    put(s, b, "a", 1);
    put(s, b, "b", 1);
    put(s, b, "d", 1);
    uint64_t then = kl__store_rv(s);
    put(s, b, "a", 2);
    kl_value_unref(kl__store_remove(s, b, "b", NULL));
    put(s, b, "c", 1);
    put(s, b, "a", 3);
    assert_shown("a=3 c=1 d=1", b, "", "", 0);
    assert_shown("a=1 b=1 d=1", b, "", "", then);
    assert_shown("b=1 d=1", b, "", "a\x01", then);
    assert_shown("a=2 b=1 d=1", b, "", "", then + 1);
    assert_cut("a=1 and 2", b, "", "", then, 1);
    assert_cut("b=1 and 1", b, "", "a\x01", then, 1);
    put(s, b, "e", 1);
    assert_shown("gone", b, "", "", then);
    assert_shown("a=2 b=1 d=1", b, "", "", then + 1);
    assert_int_equal(b->count, 4);
    kl__store_free(s);
}

static void resources_share_one_counter(void **state)
{
    (void)state;
    struct seen seen = {0};
    kl__store *s = kl__store_new(4, listen, &seen);
    kl__bucket *a = kl__store_bucket(s, "", "things"), *b = kl__store_bucket(s, "g", "things");
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(a, kl__store_bucket(s, "", "things"));
    put(s, a, "x", 1);
    put(s, b, "x", 1);
    assert_true(kl__bucket_get(b, "x")->rv > kl__bucket_get(a, "x")->rv);
    kl__store_free(s);
}

KL_TESTS(cmocka_unit_test(every_change_has_its_own_version_and_is_delivered),
    cmocka_unit_test(objects_are_sorted_by_key_and_found_by_prefix),
    cmocka_unit_test(the_past_can_be_seen_as_long_as_the_history_reaches),
    cmocka_unit_test(resources_share_one_counter))

/* not in tsan: it starts no thread */
