/* value_free_test.c - one value has one handle, whatever way it was made, and it goes when its last owner
 * goes: however big, however deep, in any order.
 * not in check: values of a million levels take their time */
#include "support/test.h"
#include "support/sizes.h"

#include "base/mem.h"
#include "value/arena.h"
#include "wire/stream.h"
#include "support/random_value.h"

#define DEEP 1000000
/* What a sanitizer watches costs several times as much, and shows the same with less. */
#ifdef KL_DEBUG
#define MANY 1000000
#else
#define MANY test_size(2000000, 10000000)
#endif

static const kl_value *decode(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static size_t live_nodes(void)
{
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    return nodes;
}

/* --- one handle --------------------------------------------------------------------------- */

static kl_status keep(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    *(const kl_value **)arg = v;
    return KL_OK;
}

static const kl_value *out_of_a_list(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    kl_stream_handler h = {.item = keep, .arg = &v};
    kl_stream *s = kl_stream_list_new(&h);
    assert_ok(kl_stream_feed(s, "{\"items\":[", 10, &err), &err);
    for (const char *c = text; *c; c++)
        assert_ok(kl_stream_feed(s, c, 1, &err), &err);
    assert_ok(kl_stream_feed(s, "]}", 2, &err), &err);
    assert_ok(kl_stream_finish(s, NULL, &err), &err);
    kl_stream_free(s);
    return v;
}

static const kl_value *built(void)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Pod");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name",
        "w\xc3\xa9"
        "b");
    kl_build_kint(b, "generation", 4611686018427387904);
    kl_build_end(b);
    kl_build_key(b, "list");
    kl_build_array(b);
    kl_build_int(b, -1);
    kl_build_double(b, 0.5);
    kl_build_uint(b, UINT64_MAX);
    kl_build_uint(b, 7);
    kl_build_null(b);
    kl_build_bool(b, true);
    kl_build_strn(b, "a\0b", 3);
    kl_build_object(b);
    kl_build_end(b);
    kl_build_array(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void equal_values_are_one_handle_whatever_way_they_were_made(void **state)
{
    (void)state;
    const char *text =
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\\u00e9b\",\"generation\":4611686018427387904},\"list\":"
        "[-1,0.5,18446744073709551615,7,null,true,\"a\\u0000b\",{},[]]}";
    const char *spaced = "\n{ \"kind\" : \"P\\u006fd\",\"metadata\":\t{\"name\":\"w\xc3\xa9"
                         "b\",\"generation\":4611686018427387904 } , "
                         "\"list\":[-1,5e-1,18446744073709551615,7,null,true,\"a\\u0000b\",{ },[ ]] }";
    const kl_value *a = decode(text), *b = decode(spaced), *c = built(), *d = out_of_a_list(text), *e = NULL;
    size_t nodes = live_nodes();
    assert_ptr_equal(a, b);
    assert_ptr_equal(a, c);
    assert_ptr_equal(a, d);
    static const char repeated[] =
        "{\"kind\":1,\"metadata\":{\"name\":0,\"generation\":4611686018427387904,\"name\":\"w\xc3\xa9"
        "b\"},\"list\":[-1,0.50,18446744073709551615,7,null,true,\"a\\u0000b\",{},[]],\"kind\":\"Pod\"}";
    assert_int_equal(kl_value_decode_last(repeated, sizeof repeated - 1, &e, NULL), KL_OK);
    assert_ptr_equal(a, e);

    /* Away from it and back again. */
    const kl_value *one = kl_value_of_int(1),
                   *name = kl_value_of_str("w\xc3\xa9"
                                           "b"),
                   *pod = kl_value_of_str("Pod");
    const kl_value *other = kl_value_with_at(a, one, "metadata", "name", NULL),
                   *more = kl_value_with(a, "spec", one), *wrong = kl_value_with(a, "kind", one);
    assert_ptr_not_equal(a, other);
    const kl_value *back1 = kl_value_with_at(other, name, "metadata", "name", NULL),
                   *back2 = kl_value_with(more, "spec", NULL), *back3 = kl_value_with(wrong, "kind", pod);
    assert_ptr_equal(a, back1);
    assert_ptr_equal(a, back2);
    assert_ptr_equal(a, back3);
    assert_true(live_nodes() > nodes);

    /* Every scalar, every inner part. */
    const kl_value *uint = kl_value_of_uint(UINT64_MAX), *seven = kl_value_of_uint(7),
                   *half = kl_value_of_double(0.5), *list = kl_value_get(a, "list"),
                   *minus = kl_value_of_int(-1), *yes = kl_value_of_bool(true), *nul = kl_value_null(),
                   *nulstr = kl_value_of_strn("a\0b", 3), *wide = kl_value_of_int(4611686018427387904),
                   *metadata = decode("{\"name\":\"w\xc3\xa9"
                                      "b\",\"generation\":4611686018427387904}");
    const kl_value *const same[] = {minus, half, uint, seven, nul, yes, nulstr};
    for (size_t i = 0; i < 7; i++)
        assert_ptr_equal(kl_value_item(list, i), same[i]);
    assert_ptr_equal(kl_value_at(a, "metadata", "generation", NULL), wide);
    assert_ptr_equal(kl_value_get(a, "metadata"), metadata);
    assert_ptr_equal(kl_value_at(a, "metadata", "name", NULL), name);

    const kl_value *const all[] = {a, b, c, d, e, one, name, pod, other, more, wrong, back1, back2, back3,
        uint, seven, half, minus, yes, nul, nulstr, wide, metadata};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kl_value_unref(all[i]);
}

static void values_that_differ_a_little_are_told_apart(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\":1,\"b\":2}",
        "{\"b\":2,\"a\":1}",
        "{\"a\":1.0,\"b\":2}",
        "{\"a\":1,\"b\":3}",
        "{\"a\":1}",
        "{\"a\":1,\"c\":2}",
        "[1,2]",
        "[2,1]",
        "[1,2,null]",
        "[[1,2]]",
        "{\"a\":[1,2]}",
        "[\"1\",2]",
        "{}",
        "[]",
        "\"\"",
        "null",
        "false",
        "true",
        "0",
        "0.0",
        "-0.0",
        "\"0\"",
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775808.0",
        "-9223372036854775808",
        "18446744073709551615",
        "\"a\"",
        "\"a\\u0000\"",
        "{\"\":0}",
        "[{}]",
        "[[]]",
        "[\"\"]",
        "[null]",
        "{\"a\":{}}",
        "{\"a\":[]}",
        "{\"a\":null}",
        "\"a,b\"",
        "[\"a\",\"b\"]",
        "{\"a\":\"b\"}",
        "1e-7",
        "1e-8",
        "5e-324",
        "4294967296",
        "4294967295",
        "2147483648",
        "-2147483649",
        "1073741824",
        "-1073741825",
    };
    enum { N = sizeof texts / sizeof *texts };
    const kl_value *v[N];
    for (size_t i = 0; i < N; i++)
        v[i] = decode(texts[i]);
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            if ((v[i] == v[k]) != (i == k))
                fail_msg("%s and %s", texts[i], texts[k]);
    for (size_t i = 0; i < N; i++)
        kl_value_unref(v[i]);
}

static void a_value_that_went_comes_back_new(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"name\":\"n%d\",\"list\":[\"n%d\",%d.5]}", i % 7, i % 3, i % 2);
        const kl_value *v = decode(text);
        char *again = kl_value_to_json(v);
        assert_string_equal(again, text);
        kl_free(again);
        kl_value_unref(v);
    }
}

/* --- deep --------------------------------------------------------------------------------- */

static const kl_value *chain(size_t depth, const kl_value *bottom)
{
    kl_builder *b = kl_builder_new();
    for (size_t i = 0; i < depth; i++) {
        if (i % 2) {
            kl_build_array(b);
        } else {
            kl_build_object(b);
            kl_build_key(b, "next");
        }
    }
    kl_build_value(b, bottom);
    for (size_t i = 0; i < depth; i++)
        kl_build_end(b);
    return kl_builder_done(b);
}

static void a_chain_of_a_million_links_is_built_compared_written_and_freed(void **state)
{
    (void)state;
    const kl_value *one = kl_value_of_int(1), *float_one = kl_value_of_double(1.0), *two = kl_value_of_int(2);
    size_t nodes = live_nodes();
    const kl_value *a = chain(DEEP, one), *b = chain(DEEP, one), *c = chain(DEEP, float_one),
                   *d = chain(DEEP, two);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_true(live_nodes() >= nodes + 3 * (size_t)DEEP);
    assert_true(kl_value_equal(a, c));
    assert_false(kl_value_equal(a, d));
    assert_false(kl_value_equal(c, d));
    assert_true(kl_value_bytes(a) > DEEP);

    kl_buf text = KL_BUF_INIT;
    assert_int_equal(kl_value_encode(a, &text), KL_OK);
    assert_int_equal(text.len, (size_t)DEEP / 2 * 11 + 1);
    kl_buf_fini(&text);

    const kl_value *inner = a; /* from the middle on it outlives its root */
    for (int i = 0; i < DEEP / 2; i++)
        inner = i % 2 ? kl_value_item(inner, 0) : kl_value_get(inner, "next");
    kl_value_ref(inner);
    kl_value_unref(a);
    kl_value_unref(b);
    kl_value_unref(c);
    kl_value_unref(d);
    assert_true(live_nodes() >= nodes + DEEP / 2);
    const kl_value *end = inner;
    for (int i = DEEP / 2; i < DEEP; i++)
        end = i % 2 ? kl_value_item(end, 0) : kl_value_get(end, "next");
    assert_ptr_equal(end, one);
    kl_value_unref(inner);
    kl_value_unref(one);
    kl_value_unref(two);
    kl_value_unref(float_one);
    assert_true(live_nodes() <= nodes);
}

static void a_chain_as_deep_as_text_may_be_is_freed_from_any_link(void **state)
{
    (void)state;
    static const char end[] = "\"the end, too long to lie in a handle\"";
    char text[2 * KL_VALUE_DEPTH_MAX + sizeof end];
    memset(text, '[', KL_VALUE_DEPTH_MAX);
    memcpy(text + KL_VALUE_DEPTH_MAX, end, sizeof end - 1);
    memset(text + KL_VALUE_DEPTH_MAX + sizeof end - 1, ']', KL_VALUE_DEPTH_MAX);
    text[sizeof text - 1] = '\0';
    for (size_t keep_from = 0; keep_from <= KL_VALUE_DEPTH_MAX; keep_from += 64) {
        size_t nodes = live_nodes();
        const kl_value *v = decode(text), *link = v;
        for (size_t i = 0; i < keep_from; i++)
            link = kl_value_item(link, 0);
        kl_value_ref(link);
        kl_value_unref(v);
        assert_int_equal(live_nodes(), nodes + KL_VALUE_DEPTH_MAX - keep_from + 1);
        kl_value_unref(link);
        assert_int_equal(live_nodes(), nodes);
    }
}

/* --- big ---------------------------------------------------------------------------------- */

static void a_value_of_millions_of_nodes_goes_whole_and_in_parts(void **state)
{
    (void)state;
    enum { ROWS = 1000 };
    const size_t many = MANY;
    size_t nodes = live_nodes(), bytes, later;
    kl_value_memory(&nodes, &bytes);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (int64_t row = 0; row < ROWS; row++) {
        kl_build_array(b);
        for (int64_t i = 0; i < (int64_t)(many / ROWS); i++) {
            kl_build_array(b);
            kl_build_int(b, row * (int64_t)(many / ROWS) + i);
            kl_build_end(b);
        }
        kl_build_end(b);
    }
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b),
                   *kept[3] = {kl_value_ref(kl_value_item(v, 0)), kl_value_ref(kl_value_item(v, 500)),
                       kl_value_ref(kl_value_item(v, ROWS - 1))};
    assert_true(live_nodes() >= nodes + many);
    kl_value_unref(v);
    size_t left = live_nodes() - nodes; /* the numbers may be nodes, too */
    assert_true(left >= 3 * (many / ROWS + 1) && left <= 3 * (2 * many / ROWS + 1));
    int64_t x;
    assert_true(kl_value_int(kl_value_item(kl_value_item(kept[1], 5), 0), &x)
        && x == 500 * (int64_t)(many / ROWS) + 5);
    for (int i = 0; i < 3; i++)
        kl_value_unref(kept[i]);
    assert_int_equal(live_nodes(), nodes);
    kl_value_memory(&nodes, &later);
    /* what remains is at most the table that found them */
    assert_true(later <= bytes + many * 32);
}

static void one_part_in_a_million_places_is_counted_and_freed(void **state)
{
    (void)state;
    size_t nodes = live_nodes();
    const kl_value *part = decode("{\"a\":[1,2,3],\"b\":\"text\"}");
    size_t with_part = live_nodes();
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (int i = 0; i < 1000000; i++)
        kl_build_value(b, part);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    assert_int_equal(live_nodes(), with_part + 1);
    kl_value_unref(part);
    assert_int_equal(live_nodes(), with_part + 1);
    part = kl_value_ref(kl_value_item(v, 999999));
    kl_value_unref(v);
    assert_int_equal(live_nodes(), with_part);
    assert_int_equal(kl_value_len(kl_value_get(part, "a")), 3);
    kl_value_unref(part);
    assert_int_equal(live_nodes(), nodes);
}

static size_t slots_now(void)
{
    size_t slots, bytes;
    kl__arena_usage(&slots, &bytes);
    return slots;
}

/* kl_value_memory would let go of what waits, so the arena is asked. */
static void a_giant_goes_little_by_little(void **state)
{
    (void)state;
    size_t before = live_nodes();
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (int i = 0; i < 200000; i++)
        kl_build_double(b, i + 0.5);
    kl_build_end(b);
    kl_value_unref(kl_builder_done(b));
    size_t left = slots_now() - before;
    assert_in_range(left, 150000, 199999); /* one drop lets go of a part */
    for (size_t earlier = left + 1; left && left < earlier;) {
        earlier = left;
        kl_value_unref(decode("[0.25]")); /* any later one takes a part of the rest along */
        left = slots_now() - before;
    }
    assert_int_equal(left, 0);
    assert_int_equal(live_nodes(), before);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(equal_values_are_one_handle_whatever_way_they_were_made),
    CASE(values_that_differ_a_little_are_told_apart), CASE(a_value_that_went_comes_back_new),
    CASE(a_chain_of_a_million_links_is_built_compared_written_and_freed),
    CASE(a_chain_as_deep_as_text_may_be_is_freed_from_any_link),
    CASE(a_value_of_millions_of_nodes_goes_whole_and_in_parts),
    CASE(one_part_in_a_million_places_is_counted_and_freed), CASE(a_giant_goes_little_by_little))

/* not in tsan: it starts no thread */
