/* decode_laws_test.c - random JSON and random damage to it: our decoder, a second opinion and cJSON read
 * the same or refuse alike. The same laws as in spec/fuzz/json.c, with fixed seeds and a bound. */
#include "support/test.h"
#include "support/sizes.h"

#include "support/json_laws.h"
#include "support/random_json.h"

/* What a sanitizer watches costs several times as much. */
#ifdef KL_DEBUG
#define DOCUMENTS 800
#else
#define DOCUMENTS (uint64_t) test_size(800, 2500)
#endif
#define DAMAGES 4

static void check(uint64_t seed, const kl_buf *text)
{
    const char *broken = laws_of_decoding(kl_buf_str(text), text->len);
    if (broken)
        fail_msg("seed %d: %s does not hold for %.*s", (int)seed, broken, (int)text->len, kl_buf_str(text));
}

static void run(uint64_t from, bool repeats)
{
    for (uint64_t seed = from; seed < from + DOCUMENTS; seed++) {
        rng r = rng_of(seed);
        kl_buf text = KL_BUF_INIT;
        random_space(&r, &text);
        random_json(&r, &text, 1 + rng_below(&r, 5), repeats);
        random_space(&r, &text);
        if (!repeats && !strict_accepts(kl_buf_str(&text), text.len, KL_VALUE_DEPTH_MAX, false))
            fail_msg("seed %d: the second opinion refuses %s", (int)seed, kl_buf_str(&text));
        check(seed, &text);
        for (int i = 0; i < DAMAGES; i++) {
            random_damage(&r, &text);
            check(seed, &text);
        }
        kl_buf_fini(&text);
    }
}

static void random_documents_are_read_as_everybody_reads_them(void **state)
{
    (void)state;
    run(1, false);
}

static void repeated_keys_are_refused_or_the_last_one_wins(void **state)
{
    (void)state;
    run(1000001, true);
}

/* A list of look-alikes: what a reader takes over from the item before is what the text says. */
static void items_that_resemble_each_other_are_read_as_they_are(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < DOCUMENTS; seed++) {
        rng r = rng_of(seed);
        kl_buf text = KL_BUF_INIT;
        kl_buf_putc(&text, '[');
        for (unsigned i = 0, n = 2 + rng_below(&r, 6); i < n; i++) {
            kl_buf_puts(&text, i ? "," : "");
            random_alike(&r, &text, 1 + rng_below(&r, 3), seed % 2);
        }
        kl_buf_putc(&text, ']');
        check(seed, &text);
        random_damage(&r, &text);
        check(seed, &text);
        kl_buf_fini(&text);
    }
}

static void a_key_that_comes_again_with_the_value_of_the_item_before_leaves_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[{\"a\":1},{\"a\":2,\"a\":1}]",
        "[{\"a\":\"a string of some length\"},{\"a\":2,\"a\":\"a string of some length\"}]",
        "[{\"a\":[1]},{\"a\":[2],\"a\":[1]},{\"a\":[1],\"a\":[1]}]",
        "[{\"a\":{\"b\":[]}},{\"a\":{\"b\":1,\"b\":[]},\"a\":{\"b\":[]}}]",
        "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1,\"b\":3,\"b\":2}]",
        "[{},{\"a\":0,\"a\":0}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *broken = laws_of_decoding(texts[i], strlen(texts[i]));
        if (broken)
            fail_msg("%s does not hold for %s", broken, texts[i]);
    }
}

/* The second opinion itself: a witness that accepts everything would prove nothing. */
static void the_second_opinion_knows_right_from_wrong(void **state)
{
    (void)state;
    static const char *const good[] = {"0", " [ ] ", "{\"a\":{},\"A\":\"\\ud83d\\ude00\xf4\x8f\xbf\xbf\"}",
        "-0.0e-0", "\"\\u0000\"", "18446744073709551616"};
    static const char *const bad[] = {"", "01", "1.", "+1", "[1,]", "{\"a\":1,}", "{\"a\":1,\"\\u0061\":2}",
        "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", "\"\\ud800\"", "\"\\udc00\"", "\"\n\"",
        "1e309", "nul", "[] []", "\"", "\"\\", "{\"a\"}", "\"\xe2\x82\"", "[1 2]", "\f1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!strict_accepts(good[i], strlen(good[i]), 512, false))
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strict_accepts(bad[i], strlen(bad[i]), 512, false))
            fail_msg("%s was accepted", bad[i]);
    assert_true(strict_accepts("{\"a\":1,\"\\u0061\":2}", 18, 1, true));
    assert_false(strict_accepts("[[]]", 4, 1, false));

    static const struct {
        const char *text, *other;
    } pairs[] = {
        {"{\"a\":1}", "{\"a\":1.0}"},
        {"[1]", "[1,2]"},
        {"[]", "{}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"},
        {"9223372036854775807", "9223372036854775806"},
        {"18446744073709551615", "18446744073709551614"},
        {"0.1", "0.10000000000000002"},
        {"\"a\"", "\"a\\u0000\""},
        {"null", "false"},
        {"true", "false"},
        {"0.0", "-0.0"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const kl_value *v = NULL;
        assert_int_equal(kl_value_decode(pairs[i].other, strlen(pairs[i].other), &v, NULL), KL_OK);
        if (strict_reads_as(pairs[i].text, strlen(pairs[i].text), false, v))
            fail_msg("%s passed for %s", pairs[i].other, pairs[i].text);
        assert_true(strict_reads_as(pairs[i].other, strlen(pairs[i].other), false, v));
        kl_value_unref(v);
    }
    const kl_value *v = NULL;
    assert_int_equal(kl_value_decode_last("{\"a\":1,\"b\":0,\"a\":2}", 19, &v, NULL), KL_OK);
    assert_true(strict_reads_as("{\"a\":1,\"b\":0,\"a\":2}", 19, true, v));
    assert_false(strict_reads_as("{\"a\":2,\"b\":0,\"a\":1}", 19, true, v));
    assert_false(strict_reads_as("{\"b\":0,\"a\":2}", 13, true, v));
    kl_value_unref(v);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(the_second_opinion_knows_right_from_wrong),
    CASE(random_documents_are_read_as_everybody_reads_them),
    CASE(repeated_keys_are_refused_or_the_last_one_wins),
    CASE(items_that_resemble_each_other_are_read_as_they_are),
    CASE(a_key_that_comes_again_with_the_value_of_the_item_before_leaves_nothing))

/* not in tsan: it starts no thread */
