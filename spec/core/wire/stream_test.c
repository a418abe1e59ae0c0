/* stream_test.c - objects from bytes that the network cuts anywhere. */
#include "support/test.h"

#include "base/mem.h"
#include "wire/stream.h"
#include "support/random_value.h"

typedef struct heard {
    kl_buf text; /* every object as JSON, one per line; events with their type before */
    size_t n;
    size_t stop_at; /* fail at this object; 0 never */
} heard;

static kl_status on_item(void *arg, const kl_value *v, kl_err *err)
{
    heard *h = arg;
    kl_value_encode(v, &h->text);
    kl_buf_putc(&h->text, '\n');
    kl_value_unref(v);
    return ++h->n == h->stop_at ? kl_fail(err, KL_ECANCELLED, "enough") : KL_OK;
}

static kl_status on_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    heard *h = arg;
    kl_buf_printf(&h->text, "%s ", type);
    return on_item(arg, v, err);
}

static kl_stream *open_stream(heard *h, bool list, size_t max, bool drop)
{
    *h = (heard){0};
    kl_stream_handler sh = {
        .item = on_item, .event = on_event, .arg = h, .max_object = max, .drop_managed_fields = drop};
    return list ? kl_stream_list_new(&sh) : kl_stream_watch_new(&sh);
}

/* Feeds text cut at `a` and `b` from allocations of their own, so that a read beyond a piece is caught. */
static kl_status feed_cut(kl_stream *s, const char *text, size_t n, size_t a, size_t b, kl_err *err)
{
    size_t cuts[] = {0, a, b, n};
    kl_status st = KL_OK;
    for (int i = 0; i < 3 && !st; i++) {
        size_t len = cuts[i + 1] - cuts[i];
        char *piece = kl_alloc(len);
        memcpy(piece, text + cuts[i], len);
        st = kl_stream_feed(s, piece, len, err);
        kl_free(piece);
    }
    return st;
}

static void assert_value(const kl_value *v, const char *want)
{
    char *got = kl_value_to_json(v);
    assert_string_equal(got, want);
    kl_free(got);
}

static const char LIST[] =
    " {\"kind\":\"PodList\", "
    "\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\",\"items\":[1]},\"items\" : [ "
    "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"x\":\"]}\\\"\"}],\"labels\":{\"q\":\"br}ace\\\\\"}}}"
    " ,\n{} , {\"s\":\"\\\"{[\\\\\"} ],\"x\":[\"items\",{\"items\":[]}]}\n";
static const char LIST_ITEMS[] = "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"x\":\"]}\\\"\"}],"
                                 "\"labels\":{\"q\":\"br}ace\\\\\"}}}\n{}\n{\"s\":\"\\\"{[\\\\\"}\n";
static const char LIST_ENVELOPE[] =
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\",\"items\":[1]},"
    "\"x\":[\"items\",{\"items\":[]}]}";

static void gives_the_same_items_wherever_a_list_is_cut(void **state)
{
    (void)state;
    size_t n = sizeof LIST - 1;
    for (size_t a = 0; a <= n; a++) {
        for (size_t b = a; b <= n; b += 1 + (a % 7) * 3) {
            heard h;
            kl_err err = KL_ERR_INIT;
            const kl_value *envelope = NULL;
            kl_stream *s = open_stream(&h, true, 0, false);
            assert_ok(feed_cut(s, LIST, n, a, b, &err), &err);
            assert_ok(kl_stream_finish(s, &envelope, &err), &err);
            if (strcmp(kl_buf_str(&h.text), LIST_ITEMS))
                fail_msg("cut at %zu and %zu: %s", a, b, kl_buf_str(&h.text));
            assert_value(envelope, LIST_ENVELOPE);
            kl_value_unref(envelope);
            kl_stream_free(s);
            kl_buf_fini(&h.text);
        }
    }
}

static const char WATCH[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n "
                            "\n{\"object\":{\"s\":\"}\\\"\"},\"type\":\"MODIFIED\"}{\"type\":\"BOOKMARK\","
                            "\"object\":{\"metadata\":{\"resourceVersion\":\"9\",\"managedFields\":[]}}}\n";
static const char WATCH_EVENTS[] = "ADDED {\"metadata\":{\"name\":\"a\"}}\nMODIFIED "
                                   "{\"s\":\"}\\\"\"}\nBOOKMARK {\"metadata\":{\"resourceVersion\":\"9\"}}\n";

static void gives_the_same_events_wherever_a_watch_is_cut(void **state)
{
    (void)state;
    size_t n = sizeof WATCH - 1;
    for (size_t a = 0; a <= n; a++)
        for (size_t b = a; b <= n; b += 5) {
            heard h;
            kl_err err = KL_ERR_INIT;
            kl_stream *s = open_stream(&h, false, 0, true);
            assert_ok(feed_cut(s, WATCH, n, a, b, &err), &err);
            assert_ok(kl_stream_finish(s, NULL, &err), &err);
            assert_string_equal(kl_buf_str(&h.text), WATCH_EVENTS);
            kl_stream_free(s);
            kl_buf_fini(&h.text);
        }
}

/* Feeds all at once and finishes; for a list that fails, says the message and how many items came before. */
static void assert_refused(
    bool list, const char *text, size_t max, kl_status want, const char *part, size_t items)
{
    heard h;
    kl_err err = KL_ERR_INIT;
    kl_stream *s = open_stream(&h, list, max, false);
    const kl_value *envelope = NULL;
    kl_status st = kl_stream_feed(s, text, strlen(text), &err);
    if (!st)
        st = kl_stream_finish(s, &envelope, &err);
    assert_null(envelope);
    assert_fails(st, want, &err, part);
    assert_int_equal(h.n, items);
    /* it stays failed, and says so again */
    assert_fails(kl_stream_feed(s, "{}", 2, &err), want, &err, part);
    assert_fails(kl_stream_finish(s, &envelope, &err), want, &err, part);
    kl_stream_free(s);
    kl_buf_fini(&h.text);
}

static void a_list_may_have_its_items_first_none_or_null(void **state)
{
    (void)state;
    static const struct {
        const char *text, *items, *envelope;
    } cases[] = {
        {"{\"items\":[{\"a\":1}],\"metadata\":{\"continue\":\"x\"}}", "{\"a\":1}\n",
            "{\"metadata\":{\"continue\":\"x\"}}"},
        {"{\"items\":[],\"kind\":\"L\"}", "", "{\"kind\":\"L\"}"},
        {"{\"kind\":\"L\",\"items\":null}", "", "{\"kind\":\"L\"}"},
        {"{\"kind\":\"Status\",\"code\":404,\"details\":{\"causes\":[{\"items\":[{}]}]}}", "",
            "{\"kind\":\"Status\",\"code\":404,\"details\":{\"causes\":[{\"items\":[{}]}]}}"},
        {"{\"a\":\"items\",\"b\":[{\"c\":1}]}", "", "{\"a\":\"items\",\"b\":[{\"c\":1}]}"},
        {"{}", "", "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h;
        kl_err err = KL_ERR_INIT;
        const kl_value *envelope = NULL;
        kl_stream *s = open_stream(&h, true, 0, false);
        assert_ok(kl_stream_feed(s, cases[i].text, strlen(cases[i].text), &err), &err);
        assert_ok(kl_stream_finish(s, &envelope, &err), &err);
        assert_string_equal(kl_buf_str(&h.text), cases[i].items);
        assert_value(envelope, cases[i].envelope);
        kl_value_unref(envelope);
        kl_stream_free(s);
        kl_buf_fini(&h.text);
    }
}

static void refuses_garbage_and_says_where(void **state)
{
    (void)state;
    assert_refused(true, "<html>Bad Gateway</html>", 0, KL_ESYNTAX,
        "byte 0: `<html>Bad Gateway</html>` where a JSON object", 0);
    assert_refused(true, "{\"items\":{}}", 0, KL_ESYNTAX, "`items` is of type object, not an array", 0);
    assert_refused(true, "{\"items\":[{}{}]}", 0, KL_ESYNTAX, "',' or ']' after a list item", 1);
    assert_refused(true, "{\"items\":[{},]}", 0, KL_ESYNTAX, "a list item", 1);
    assert_refused(true, "{\"items\":[,{}]}", 0, KL_ESYNTAX, "a list item", 0);
    assert_refused(true, "{\"items\":[7]}", 0, KL_ESYNTAX, "byte 10: `7]}` where a list item", 0);
    assert_refused(true, "{\"items\":[]} {}", 0, KL_ESYNTAX, "nothing more", 0);
    assert_refused(true, "{\"items\":[{\"metadata\":{\"namespace\":\"ns\",\"name\":\"web\"},\"a\":tru}]}", 0,
        KL_ESYNTAX, "list item 1 (ns/web), which starts at byte 10: JSON is malformed", 0);
    assert_refused(true, "{\"items\":[{\"a\":1,\"a\":2}]}", 0, KL_ESYNTAX, "duplicate key", 0);
    assert_refused(true, "{\"items\":[],\"kind\"}", 0, KL_ESYNTAX, "envelope", 0);
    assert_refused(true, "{\"items\":[{]}", 0, KL_ESYNTAX, "']' where a key", 0);
    assert_refused(false, "hello", 0, KL_ESYNTAX, "the watch stream is malformed at byte 0: `hello`", 0);
    assert_refused(false, "{\"type\":\"ADDED\",\"object\":{}}\n{\"kind\":\"Status\"}", 0, KL_ESYNTAX,
        "watch event 2 at byte 29 is invalid", 1);
    assert_refused(false, "{\"type\":\"ADDED\",\"object\":[]}", 0, KL_ESYNTAX, "is invalid", 0);
}

static void refuses_what_ends_early(void **state)
{
    (void)state;
    heard h;
    assert_refused(true, "", 0, KL_ESYNTAX, "truncated at byte 0, after 0 items", 0);
    assert_refused(true, "{\"items\":[{\"metadata\":{\"name\":\"a\"}},", 0, KL_ESYNTAX,
        "truncated at byte 36, after 1 items", 1);
    assert_refused(
        true, "{\"items\":[{\"metadata\":{\"name\":\"a\"},", 0, KL_ESYNTAX, "inside list item 1 (a)", 0);
    assert_refused(false, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"",
        0, KL_ESYNTAX, "inside watch event 1 (n/a)", 0);
    for (size_t n = 0; n < sizeof LIST - 2; n++) { /* no part of a list passes for a list */
        kl_stream *s = open_stream(&h, true, 0, false);
        const kl_value *envelope = NULL;
        assert_int_equal(kl_stream_feed(s, LIST, n, NULL), KL_OK);
        assert_int_equal(kl_stream_finish(s, &envelope, NULL), KL_ESYNTAX);
        kl_stream_free(s);
        kl_buf_fini(&h.text);
    }
}

static char *big_list(size_t bytes, bool name_first)
{
    kl_buf b = KL_BUF_INIT;
    const char *meta = "\"metadata\":{\"labels\":{\"name\":\"no\"},\"name\":\"huge\",\"namespace\":"
                       "\"default\",\"ownerReferences\":[{\"name\":\"not-me\"}]}";
    kl_buf_printf(&b, "{\"items\":[{\"metadata\":{\"name\":\"small\"}},{%s%s\"data\":\"",
        name_first ? meta : "", name_first ? "," : "");
    for (size_t i = 0; i < bytes; i++)
        kl_buf_putc(&b, 'x');
    kl_buf_printf(&b, "\"%s%s}]}", name_first ? "" : ",", name_first ? "" : meta);
    return kl_buf_take(&b);
}

static void names_the_object_that_is_too_big_and_the_flag(void **state)
{
    (void)state;
    char *text = big_list(5000, true);
    assert_refused(true, text, 1000, KL_ETOOBIG,
        "list item 2 (default/huge) is larger than 1000 bytes; raise --max-object-bytes", 1);
    for (size_t cut = 1; cut < 400; cut += 7) {
        heard h;
        kl_err err = KL_ERR_INIT;
        kl_stream *s = open_stream(&h, true, 1000, false);
        assert_fails(feed_cut(s, text, strlen(text), cut, cut + 300, &err), KL_ETOOBIG, &err,
            "(default/huge) is larger than 1000 bytes");
        kl_stream_free(s);
        kl_buf_fini(&h.text);
    }
    kl_free(text);
    text = big_list(5000, false); /* its name comes after the ceiling when it comes in pieces */
    heard h;
    kl_err err = KL_ERR_INIT;
    kl_stream *s = open_stream(&h, true, 1000, false);
    assert_fails(feed_cut(s, text, strlen(text), 100, 2000, &err), KL_ETOOBIG, &err,
        "list item 2 is larger than 1000 bytes");
    kl_stream_free(s);
    kl_buf_fini(&h.text);
    kl_free(text);
    assert_refused(false,
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"n\"},\"a\":\"0123456789\"}}", 50,
        KL_ETOOBIG, "watch event 1 (n) is larger than 50 bytes", 0);
    assert_refused(true, "{\"metadata\":{\"a\":\"0123456789012345678901234567890123456789\"}}", 40,
        KL_ETOOBIG, "envelope", 0);
}

static kl_status on_skipped(void *arg, const kl_stream_skipped *x, kl_err *err)
{
    heard *h = arg;
    assert_non_null(strstr(x->message, "raise --max-object-bytes"));
    kl_buf_printf(
        &h->text, "skipped %s %.*s/%.*s\n", x->type, (int)x->nslen, x->ns, (int)x->namelen, x->name);
    return ++h->n == h->stop_at ? kl_fail(err, KL_ECANCELLED, "enough") : KL_OK;
}

static kl_stream *open_skipping(heard *h, bool list, size_t max)
{
    *h = (heard){0};
    kl_stream_handler sh = {
        .item = on_item, .event = on_event, .skipped = on_skipped, .arg = h, .max_object = max};
    return list ? kl_stream_list_new(&sh) : kl_stream_watch_new(&sh);
}

static void an_object_too_big_is_left_out_alone_wherever_it_is_cut(void **state)
{
    (void)state;
    const char *list = "{\"items\":[{\"a\":1},{\"metadata\":{\"name\":\"huge\",\"namespace\":\"ns\"},"
                       "\"data\":{\"x\":\"}]0123456789012345678901234567890123456789\"}},{\"b\":2}]}",
               *watch = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n"
                        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"huge\","
                        "\"namespace\":\"ns\"},\"data\":\"0123456789012345678901234567890123456789\"}}\n"
                        "{\"type\":\"ADDED\",\"object\":{\"b\":2}}\n";
    for (int of_list = 0; of_list < 2; of_list++) {
        const char *text = of_list ? list : watch;
        size_t n = strlen(text);
        for (size_t cut = 0; cut <= n; cut++) {
            heard h;
            kl_err err = KL_ERR_INIT;
            kl_stream *s = open_skipping(&h, of_list, 90);
            assert_ok(feed_cut(s, text, n, cut, cut + (n - cut) / 2, &err), &err);
            assert_ok(kl_stream_finish(s, NULL, &err), &err);
            assert_string_equal(kl_buf_str(&h.text),
                of_list ? "{\"a\":1}\nskipped  ns/huge\n{\"b\":2}\n"
                        : "ADDED {\"a\":1}\nskipped MODIFIED ns/huge\nADDED {\"b\":2}\n");
            kl_stream_free(s);
            kl_buf_fini(&h.text);
        }
    }
}

static void an_error_too_big_stops_the_watch_and_so_does_the_handler(void **state)
{
    (void)state;
    const char *error = "{\"type\":\"ERROR\",\"object\":{\"message\":\"0123456789012345678901234567890\"}}",
               *big = "{\"type\":\"ADDED\",\"object\":{\"message\":\"0123456789012345678901234567890\"}}";
    heard h;
    kl_err err = KL_ERR_INIT;
    kl_stream *s = open_skipping(&h, false, 60);
    assert_fails(kl_stream_feed(s, error, strlen(error), &err), KL_ETOOBIG, &err, "larger than 60 bytes");
    assert_int_equal(h.n, 0);
    kl_stream_free(s);
    kl_buf_fini(&h.text);
    s = open_skipping(&h, false, 60);
    h.stop_at = 1;
    assert_fails(kl_stream_feed(s, big, strlen(big), &err), KL_ECANCELLED, &err, "enough");
    kl_stream_free(s);
    kl_buf_fini(&h.text);
}

static void an_object_of_exactly_the_ceiling_passes(void **state)
{
    (void)state;
    const char *text = "{\"items\":[{\"a\":\"0123456789\"}]}";
    for (size_t cut = 0; cut < strlen(text); cut++) {
        heard h;
        kl_stream *s = open_stream(&h, true, 18, false);
        assert_int_equal(feed_cut(s, text, strlen(text), cut, strlen(text), NULL), KL_OK);
        assert_int_equal(h.n, 1);
        kl_stream_free(s);
        kl_buf_fini(&h.text);
        s = open_stream(&h, true, 17, false);
        assert_int_equal(feed_cut(s, text, strlen(text), cut, strlen(text), NULL), KL_ETOOBIG);
        kl_stream_free(s);
        kl_buf_fini(&h.text);
    }
}

static void leaves_out_managed_fields_of_the_object_alone(void **state)
{
    (void)state;
    heard h;
    kl_err err = KL_ERR_INIT;
    const char *text =
        "{\"items\":[{\"metadata\":{\"managedFields\":[{\"a\":[\"]\\\"\",{}]}],\"name\":\"a\"},\"spec\":{"
        "\"managedFields\":1,\"metadata\":{\"managedFields\":2}},\"managedFields\":3},"
        "{\"metadata\":{\"managedFields\":null}},{\"metadata\":{\"name\":\"b\",\"managedFields\":\"x\"}},{"
        "\"metadata\":[{\"managedFields\":4}]}]}";
    kl_stream *s = open_stream(&h, true, 0, true);
    assert_ok(kl_stream_feed(s, text, strlen(text), &err), &err);
    assert_ok(kl_stream_finish(s, NULL, &err), &err);
    assert_string_equal(kl_buf_str(&h.text),
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"managedFields\":1,\"metadata\":{\"managedFields\":2}},"
        "\"managedFields\":3}\n"
        "{\"metadata\":{}}\n{\"metadata\":{\"name\":\"b\"}}\n{\"metadata\":[{\"managedFields\":4}]}\n");
    kl_stream_free(s);
    kl_buf_fini(&h.text);
    assert_refused(true, "{\"items\":[{\"metadata\":{\"managedFields\":}}]}", 0, KL_ESYNTAX, "malformed", 0);
}

static void stops_when_its_handler_says_so(void **state)
{
    (void)state;
    heard h;
    kl_err err = KL_ERR_INIT;
    kl_stream *s = open_stream(&h, true, 0, false);
    h.stop_at = 2;
    assert_fails(kl_stream_feed(s, LIST, sizeof LIST - 1, &err), KL_ECANCELLED, &err, "enough");
    assert_int_equal(h.n, 2);
    kl_stream_free(s);
    kl_buf_fini(&h.text);
    kl_stream_free(NULL);
}

static void random_lists_survive_random_cuts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rng r = rng_of(seed);
        kl_buf text = KL_BUF_INIT, want = KL_BUF_INIT;
        kl_buf_puts(&text, "{\"items\":[");
        for (unsigned i = 0, n = rng_below(&r, 6); i < n; i++) {
            const kl_value *v = random_object(&r, true);
            if (i)
                kl_buf_putc(&text, ',');
            (rng_below(&r, 2) ? kl_value_encode : kl_value_encode_pretty)(v, &text);
            kl_value_encode(v, &want);
            kl_buf_putc(&want, '\n');
            kl_value_unref(v);
        }
        kl_buf_puts(&text, "]}");
        heard h;
        kl_err err = KL_ERR_INIT;
        kl_stream *s = open_stream(&h, true, 0, false);
        for (size_t at = 0, n; at < text.len; at += n) {
            n = 1 + rng_below(&r, rng_below(&r, 3) ? 20 : 2000);
            n = n < text.len - at ? n : text.len - at;
            assert_ok(kl_stream_feed(s, text.data + at, n, &err), &err);
        }
        assert_ok(kl_stream_finish(s, NULL, &err), &err);
        assert_string_equal(kl_buf_str(&h.text), kl_buf_str(&want));
        kl_stream_free(s);
        kl_buf_fini(&h.text);
        kl_buf_fini(&text);
        kl_buf_fini(&want);
    }
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(gives_the_same_items_wherever_a_list_is_cut),
    CASE(gives_the_same_events_wherever_a_watch_is_cut), CASE(a_list_may_have_its_items_first_none_or_null),
    CASE(refuses_garbage_and_says_where), CASE(refuses_what_ends_early),
    CASE(names_the_object_that_is_too_big_and_the_flag), CASE(an_object_of_exactly_the_ceiling_passes),
    CASE(an_object_too_big_is_left_out_alone_wherever_it_is_cut),
    CASE(an_error_too_big_stops_the_watch_and_so_does_the_handler),
    CASE(leaves_out_managed_fields_of_the_object_alone), CASE(stops_when_its_handler_says_so),
    CASE(random_lists_survive_random_cuts))

/* not in tsan: it starts no thread */
