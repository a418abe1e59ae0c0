/* stream_laws_test.c - random lists and watches, whole and damaged, cut at every place: the same objects,
 * the same story, and what the whole document would have given. The same laws as in
 * spec/fuzz/stream_fuzz.c, with fixed seeds and a bound.
 * not in check: stream_test.c has an example of everything */
#include "support/test.h"
#include "support/sizes.h"

#include "support/random_json.h"
#include "support/stream_laws.h"

/* What a sanitizer watches costs several times as much. */
#ifdef KL_DEBUG
#define STREAMS 60
#else
#define STREAMS (uint64_t) test_size(50, 150)
#endif
#define DAMAGES 2

static void check(const char *text, size_t n, bool list, uint64_t seed)
{
    const char *broken = laws_of_a_stream(text, n, list, seed);
    if (broken)
        fail_msg("seed %d: %s does not hold for the %s %.*s", (int)seed, broken, list ? "list" : "watch",
            (int)n, text);
}

/* --- what servers send -------------------------------------------------------------------- */

static void random_members(rng *r, kl_buf *out, bool repeats)
{
    for (unsigned i = rng_below(r, 3); i; i--) {
        kl_buf_putc(out, ',');
        random_space(r, out);
        kl_buf_printf(out, "\"m%u\":", i);
        random_json(r, out, rng_below(r, 3), repeats);
    }
}

/* An object with a name and, mostly, managedFields, some of them where they are nothing special. */
static void random_item(rng *r, kl_buf *out)
{
    static const char *const fields[] = {"[]",
        "[{\"manager\":\"k\",\"fieldsV1\":{\"f:a\\\"]}\":{\".\":{}}}}]", "{\"x\":[[{}]]}", "\"]}\\\\\"",
        "null", "-1.5e3", "true", "[\"\xe2\x82\xac\",{}]"};
    kl_buf_putc(out, '{');
    random_space(r, out);
    kl_buf_printf(out, "\"metadata\":%s{\"name\":\"n%u\"", rng_below(r, 9) ? "" : " \n", rng_below(r, 100));
    if (rng_below(r, 2))
        kl_buf_puts(out, ",\"namespace\":\"ns\"");
    if (rng_below(r, 4))
        kl_buf_printf(out, ",\"%s\":%s%s", rng_below(r, 9) ? "managedFields" : "managed\\u0046ields",
            rng_below(r, 5) ? "" : " ", fields[rng_below(r, 8)]);
    random_members(r, out, false);
    kl_buf_putc(out, '}');
    if (!rng_below(r, 4))
        kl_buf_puts(out, ",\"kind\":\"Pod\"");
    if (!rng_below(r, 6))
        kl_buf_puts(out, ",\"apiVersion\":\"v1\"");
    if (!rng_below(r, 4)) {
        kl_buf_puts(out, ",\"spec\":{\"metadata\":{\"managedFields\":[1]}},\"managedFields\":7");
    } else { /* what an item before may have had, too */
        kl_buf_puts(out, ",\"spec\":{\"a\":");
        random_alike(r, out, 3, false);
        kl_buf_printf(out,
            ",\"containers\":[{\"image\":\"i%u\",\"name\":\"c\"},{\"name\":\"d\"},[{\"image\":1,\"x\":2}],3]}"
            ",\"status\":",
            rng_below(r, 2));
        random_alike(r, out, 3, false);
    }
    random_members(r, out, false);
    random_space(r, out);
    kl_buf_putc(out, '}');
}

static void random_list(rng *r, kl_buf *out)
{
    random_space(r, out);
    kl_buf_puts(out, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\",\"items\":[]}");
    random_members(r, out, false);
    if (rng_below(r, 8)) {
        kl_buf_printf(out, ",\"%s\"", rng_below(r, 20) ? "items" : "it\\u0065ms");
        random_space(r, out);
        kl_buf_putc(out, ':');
        random_space(r, out);
        kl_buf_putc(out, '[');
        random_space(r, out);
        for (unsigned i = 0, n = rng_below(r, 6); i < n; i++) {
            kl_buf_puts(out, i ? "," : "");
            random_space(r, out);
            random_item(r, out);
            random_space(r, out);
        }
        kl_buf_putc(out, ']');
    }
    kl_buf_puts(out, rng_below(r, 2) ? "}" : ",\"apiVersion\":\"v1\"}\n");
}

static unsigned random_watch(rng *r, kl_buf *out)
{
    static const char *const types[] = {
        "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "", "ADD\\u0045D"};
    unsigned n = rng_below(r, 6);
    for (unsigned i = 0; i < n; i++) {
        bool type_first = rng_below(r, 2);
        kl_buf_putc(out, '{');
        if (type_first)
            kl_buf_printf(out, "\"type\":\"%s\",", types[rng_below(r, 7)]);
        kl_buf_puts(out, "\"object\":");
        random_item(r, out);
        if (!type_first)
            kl_buf_printf(out, ",\"type\" : \"%s\"", types[rng_below(r, 7)]);
        random_members(r, out, false);
        kl_buf_puts(out, rng_below(r, 4) ? "}\n" : "}");
        random_space(r, out);
    }
    return n;
}

static void random_lists_give_what_the_document_holds_wherever_they_are_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        rng r = rng_of(seed);
        kl_buf text = KL_BUF_INIT;
        random_list(&r, &text);
        heard h = feed(text.data, text.len, (cutting){.list = true});
        if (h.status)
            fail_msg("seed %d: %s for %s", (int)seed, kl_err_message(&h.err), kl_buf_str(&text));
        forget(&h);
        check(text.data, text.len, true, seed);
        for (int i = 0; i < DAMAGES; i++) {
            random_damage(&r, &text);
            check(kl_buf_str(&text), text.len, true, seed);
        }
        kl_buf_fini(&text);
    }
}

static void random_watches_give_every_frame_wherever_they_are_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        rng r = rng_of(seed);
        kl_buf text = KL_BUF_INIT;
        unsigned n = random_watch(&r, &text);
        heard h = feed(kl_buf_str(&text), text.len, (cutting){0});
        if (h.status)
            fail_msg("seed %d: %s for %s", (int)seed, kl_err_message(&h.err), kl_buf_str(&text));
        assert_int_equal(h.n, n);
        forget(&h);
        check(kl_buf_str(&text), text.len, false, seed);
        for (int i = 0; i < DAMAGES; i++) {
            random_damage(&r, &text);
            check(kl_buf_str(&text), text.len, false, seed);
        }
        kl_buf_fini(&text);
    }
}

static void any_json_at_all_is_a_list_or_a_watch_or_refused(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        rng r = rng_of(seed);
        kl_buf text = KL_BUF_INIT;
        random_json(&r, &text, 4, true);
        check(text.data, text.len, seed % 2, seed);
        kl_buf_fini(&text);
    }
}

/* What is put in front of an item does not depend on the item before. */
static void items_with_a_type_of_their_own_may_follow_each_other(void **state)
{
    (void)state;
    static const char *const items[] = {
        "{\"m\":1,\"kind\":\"A\"}",
        "{\"kind\":\"A\",\"m\":1}",
        "{\"m\":1,\"apiVersion\":\"B\",\"kind\":\"A\"}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"m\":1}",
        "{\"m\":1}",
        "{}",
        "{\"kind\":\"Pod\"}",
        "{\"k\\u0069nd\":\"A\",\"m\":1}",
    };
    enum { N = sizeof items / sizeof *items };
    for (size_t i = 0; i < N * N * N; i++) {
        kl_buf text = KL_BUF_INIT;
        kl_buf_printf(&text, "{\"items\":[%s,%s,%s]}", items[i % N], items[i / N % N], items[i / N / N]);
        check(text.data, text.len, true, i);
        kl_buf_fini(&text);
    }
}

/* --- what each place of a cut may break --------------------------------------------------- */

static const char LIST[] = "{\"kind\":\"L\",\"a\":[\"items\",{\"items\":[{}]}],\"items\":[{\"metadata\":{"
                           "\"name\":\"a\\\\\\\"\\ud83d\\ude00\xf0\x9f\x98\x80\",\"managedFields\":[\"]}"
                           "\\\"\\\\\",-1.5e-10,true]},\"n\":123456},"
                           "{\"metadata\":{},\"x\":null}],\"metadata\":{\"continue\":\"\xe2\x82\xac\"}}";
static const char WATCH[] =
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\\\\\\\"\\ud83d\\ude00\xf0\x9f\x98\x80\","
    "\"managedFields\":[\"]}\\\"\\\\\",-1.5e-10,true]},\"n\":123456}}\n"
    "{\"object\":{\"metadata\":{}},\"type\":\"BOOKMARK\"}";

static void two_pieces_and_three_with_one_byte_between_tell_the_same_as_one(void **state)
{
    (void)state;
    for (int list = 0; list < 2; list++)
        for (int drop = 0; drop < 2; drop++) {
            const char *text = list ? LIST : WATCH;
            size_t n = (list ? sizeof LIST : sizeof WATCH) - 1;
            heard whole = feed(text, n, (cutting){.list = list, .drop = drop});
            assert_int_equal(whole.status, KL_OK);
            assert_int_equal(whole.n, 2);
            for (size_t cut = 1; cut < n; cut++)
                for (size_t step = 1; step <= n; step += step == 1 ? n - 1 : n) {
                    heard h = feed(
                        text, n, (cutting){.list = list, .drop = drop, .first = cut, .step = step});
                    const char *broken = law_of_cuts(&whole, &h);
                    if (broken)
                        fail_msg("cut at %zu, then every %zu: %s", cut, step, broken);
                    forget(&h);
                }
            forget(&whole);
        }
}

/* Who steps over text in blocks must know at each border whether it is inside a string, and whether after
 * a backslash. */
static void strings_full_of_brackets_end_where_they_end_at_every_offset(void **state)
{
    (void)state;
    static const char *const tricky[] = {
        "\\\"",
        "\\\\",
        "\\\\\\\"",
        "\\\\\\\\",
        "}\\\"]}",
        "]}\\\\",
        "{[{[",
        "\\\"\\\"\\\"\\\"\\\"",
        "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"}",
        "\\u005c\\u0022}",
        ";|\x7f",
    };
    kl_buf b = KL_BUF_INIT, pad = KL_BUF_INIT;
    for (size_t lead = 0; lead < 132; lead++) {
        for (size_t i = 0; i < sizeof tricky / sizeof *tricky; i++)
            for (int list = 0; list < 2; list++) {
                kl_buf_clear(&b);
                kl_buf_puts(&b, list ? "{\"items\":[" : "");
                for (int item = 0; item < 2; item++)
                    kl_buf_printf(&b,
                        "%s{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"managedFields\":[[{\"%s%s\":[\"%s%"
                        "s\",{}]}],\"%s\"],\"name\":\"n\"},\"%s%s\":{\"%s\":[]}}}%s",
                        list && item ? "," : "", kl_buf_str(&pad), tricky[i], kl_buf_str(&pad), tricky[i],
                        tricky[i], kl_buf_str(&pad), tricky[i], tricky[i], list ? "" : "\n");
                kl_buf_puts(&b, list ? "]}" : "");
                heard whole = feed(b.data, b.len, (cutting){.list = list});
                assert_int_equal(whole.status, KL_OK);
                assert_int_equal(whole.n, 2);
                for (int drop = 0; drop < 2; drop++) {
                    heard dropped = feed(b.data, b.len, (cutting){.list = list, .drop = drop}),
                          cut = feed(
                              b.data, b.len, (cutting){.list = list, .drop = drop, .step = 1 + lead % 67});
                    const char *broken = law_of_cuts(&dropped, &cut);
                    if (!broken && drop && !list)
                        broken = law_of_dropping(&whole, &dropped);
                    if (broken)
                        fail_msg("%s after %zu bytes, %s, %s: %s", tricky[i], lead, list ? "list" : "watch",
                            drop ? "dropping" : "keeping", broken);
                    forget(&dropped);
                    forget(&cut);
                }
                forget(&whole);
            }
        kl_buf_putc(&pad, 'p');
    }
    kl_buf_fini(&b);
    kl_buf_fini(&pad);
}

static void every_prefix_of_a_stream_is_truncated_wherever_it_was_cut(void **state)
{
    (void)state;
    for (int list = 0; list < 2; list++)
        for (size_t n = 0; n < (list ? sizeof LIST : sizeof WATCH) - 1; n++) {
            heard h = feed(list ? LIST : WATCH, n, (cutting){.list = list, .drop = n % 2, .step = 1 + n % 5});
            /* a watch may end between its frames */
            bool between = !list && (n == 0 || h.n == 1) && h.status == KL_OK;
            if (!between) {
                assert_int_equal(h.status, KL_ESYNTAX);
                assert_non_null(strstr(kl_err_message(&h.err), "truncated at byte "));
                assert_null(h.envelope);
            }
            forget(&h);
        }
}

/* --- sizes -------------------------------------------------------------------------------- */

static void an_object_at_its_ceiling_passes_and_one_byte_above_does_not(void **state)
{
    (void)state;
    for (int list = 0; list < 2; list++)
        for (size_t fill = 0; fill < 200; fill += 1 + fill / 3)
            for (size_t step = 0; step < 80; step += 1 + step) {
                kl_buf b = KL_BUF_INIT;
                kl_buf_puts(&b, list ? "{\"items\":[{\"a\":1} , " : " {\"type\":\"A\",\"object\":{}} ");
                size_t from = b.len;
                kl_buf_puts(&b,
                    list ? "{\"metadata\":{\"name\":\"web\"},\"s\":\""
                         : "{\"type\":\"A\",\"object\":{\"metadata\":{\"name\":\"web\"},\"s\":\"");
                for (size_t i = 0; i < fill; i++)
                    kl_buf_putc(&b, 'x');
                kl_buf_puts(&b, list ? "\"}" : "\"}}");
                size_t size = b.len - from;
                kl_buf_puts(&b, list ? " ]}" : "\n");
                heard fits = feed(b.data, b.len, (cutting){.list = list, .max = size, .step = step});
                assert_int_equal(fits.status, KL_OK);
                assert_int_equal(fits.n, 2);
                heard big = feed(b.data, b.len, (cutting){.list = list, .max = size - 1, .step = step});
                assert_int_equal(big.status, KL_ETOOBIG);
                assert_int_equal(big.n, 1);
                assert_non_null(strstr(kl_err_message(&big.err),
                    list ? "list item 2 (web) is larger than" : "watch event 2 (web) is larger than"));
                forget(&fits);
                forget(&big);
                kl_buf_fini(&b);
            }
}

/* The ceiling is for what is held: an object that never ends is refused as soon as it is above, and not at
 * the end. */
static void an_object_without_end_is_refused_at_the_ceiling(void **state)
{
    (void)state;
    static const char *const begins[] = {
        "{\"items\":[{\"s\":\"", "{\"items\":[{\"a\":[", "{\"items\":[{\"metadata\":{\"managedFields\":[\""};
    for (size_t i = 0; i < 3; i++)
        for (int drop = 0; drop < 2; drop++) {
            heard h = {0};
            kl_err err = KL_ERR_INIT;
            kl_stream_handler handler = {
                .item = hear_item, .arg = &h, .max_object = 100000, .drop_managed_fields = drop};
            kl_stream *s = kl_stream_list_new(&handler);
            kl_status st = kl_stream_feed(s, begins[i], strlen(begins[i]), &err);
            char piece[1000];
            memset(piece, i == 1 ? '1' : 'x', sizeof piece);
            size_t fed = 0;
            while (!st && fed < 1000000) {
                st = kl_stream_feed(s, piece, sizeof piece, &err);
                fed += sizeof piece;
            }
            assert_int_equal(st, KL_ETOOBIG);
            assert_true(fed <= 102000);
            kl_err_fini(&err);
            kl_stream_free(s);
            forget(&h);
        }
}

/* A LIST is never held whole: what it holds does not grow with what was delivered. */
static void a_list_without_end_holds_one_item_at_a_time(void **state)
{
    (void)state;
    size_t nodes, later, bytes;
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    kl_stream_handler handler = {.item = hear_item, .arg = &h, .max_object = 4096};
    kl_stream *s = kl_stream_list_new(&handler);
    assert_ok(kl_stream_feed(s, "{\"items\":[", 10, &err), &err);
    kl_value_memory(&nodes, &bytes);
    for (int i = 0; i < 20000; i++) {
        char item[200];
        int n = snprintf(item, sizeof item, "%s{\"metadata\":{\"name\":\"n%d\",\"uid\":\"%d-%d\"}}",
            i ? "," : "", i, i, i * 7);
        assert_ok(kl_stream_feed(s, item, (size_t)n, &err), &err);
        assert_int_equal(h.n, 1);
        forget(&h);
    }
    kl_value_memory(&later, &bytes);
    assert_true(later <= nodes + 100);
    assert_ok(kl_stream_feed(s, "]}", 2, &err), &err);
    assert_ok(kl_stream_finish(s, NULL, &err), &err);
    kl_stream_free(s);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(random_lists_give_what_the_document_holds_wherever_they_are_cut),
    CASE(random_watches_give_every_frame_wherever_they_are_cut),
    CASE(any_json_at_all_is_a_list_or_a_watch_or_refused),
    CASE(items_with_a_type_of_their_own_may_follow_each_other),
    CASE(two_pieces_and_three_with_one_byte_between_tell_the_same_as_one),
    CASE(strings_full_of_brackets_end_where_they_end_at_every_offset),
    CASE(every_prefix_of_a_stream_is_truncated_wherever_it_was_cut),
    CASE(an_object_at_its_ceiling_passes_and_one_byte_above_does_not),
    CASE(an_object_without_end_is_refused_at_the_ceiling), CASE(a_list_without_end_holds_one_item_at_a_time))

/* not in tsan: it starts no thread */
