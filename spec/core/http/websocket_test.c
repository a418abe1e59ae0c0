/* websocket_test.c - frames in and out, and the timeout of a silent peer; the test controls the clock. */
#include "support/test.h"

#include "base/mem.h"
#include "session/channel.h"
#include "http/websocket.h"

typedef struct heard {
    kl_buf text;
    int n;
    kl_status refuse;
} heard;

static kl_status on_message(void *arg, const char *data, size_t n, kl_err *err)
{
    heard *h = arg;
    h->n++;
    kl_buf_add(&h->text, data, n);
    kl_buf_putc(&h->text, '|');
    return h->refuse ? kl_fail(err, h->refuse, "not this one") : KL_OK;
}

/* A frame as servers send them: not masked. */
static void frame(kl_buf *b, int first, const char *data, size_t n)
{
    kl_buf_putc(b, (char)first);
    if (n < 126)
        kl_buf_putc(b, (char)n);
    else {
        char len[9] = {127};
        for (int i = 0; i < 8; i++)
            len[1 + i] = (char)((uint64_t)n >> (56 - 8 * i));
        kl_buf_add(b, len, 9);
    }
    kl_buf_add(b, data, n);
}

/* The next of our frames in what is to be written: its first byte, and its text unmasked. */
static int sent(kl_websocket *w, kl_buf *text, kl_time now)
{
    const kl_buf *out = kl_websocket_out(w);
    if (!out->len)
        return -1;
    const unsigned char *p = (const unsigned char *)out->data;
    size_t n = p[1] & 127, at = 2;
    assert_true(p[1] & 128);
    if (n == 126) {
        n = (size_t)p[2] << 8 | p[3];
        at = 4;
    }
    const unsigned char *mask = p + at;
    kl_buf_clear(text);
    for (size_t i = 0; i < n; i++)
        kl_buf_putc(text, (char)(p[at + 4 + i] ^ mask[i % 4]));
    int first = p[0];
    kl_websocket_wrote(w, at + 4 + n, now);
    return first;
}

static void messages_come_whole_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t step = 1; step < 60; step += 7) {
        heard h = {0};
        kl_buf in = KL_BUF_INIT;
        kl_err err = KL_ERR_INIT;
        kl_websocket *w = kl_websocket_new(on_message, &h, 0);
        frame(&in, 0x82, "one", 3);
        frame(&in, 0x02, "tw", 2); /* a fragment, a ping between, the rest */
        frame(&in, 0x89, "?", 1);
        frame(&in, 0x80, "o", 1);
        frame(&in, 0x82, "", 0);
        for (size_t at = 0; at < in.len; at += step)
            assert_ok(
                kl_websocket_feed(w, in.data + at, in.len - at < step ? in.len - at : step, 0, &err), &err);
        assert_string_equal(kl_buf_str(&h.text), "one|two||");
        kl_buf text = KL_BUF_INIT;
        assert_int_equal(sent(w, &text, 0), 0x8a);
        assert_string_equal(kl_buf_str(&text), "?");
        kl_buf_fini(&text);
        kl_buf_fini(&in);
        kl_buf_fini(&h.text);
        kl_websocket_free(w);
    }
}

static void sent_messages_are_masked_and_in_order(void **state)
{
    (void)state;
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    kl_websocket *w = kl_websocket_new(on_message, &h, 0);
    assert_ok(kl_websocket_send(w, "\0", 1, "abc", 3, &err), &err);
    assert_ok(kl_websocket_send(w, "\xff", 1, "", 1, &err), &err);
    kl_websocket_close(w, 1000);
    assert_int_equal(sent(w, &text, 0), 0x82);
    assert_memory_equal(text.data, "\0abc", 4);
    assert_int_equal(sent(w, &text, 0), 0x82);
    assert_memory_equal(text.data, "\xff\0", 2);
    assert_int_equal(sent(w, &text, 0), 0x88);
    assert_memory_equal(text.data, "\x03\xe8", 2);
    assert_int_equal(sent(w, &text, 0), -1);
    assert_fails(kl_websocket_send(w, "\0", 1, "x", 1, &err), KL_ECLOSED, &err, "after the close frame");
    kl_buf_fini(&text);
    kl_websocket_free(w);
}

static void a_peer_is_asked_every_5_s_and_dead_after_61_s(void **state)
{
    (void)state;
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    kl_time next = 0;
    kl_websocket *w = kl_websocket_new(on_message, &h, 0);
    assert_ok(kl_websocket_tick(w, KL_SECONDS(4), &next, &err), &err);
    assert_int_equal(sent(w, &text, 0), -1);
    assert_int_equal(next, KL_SECONDS(5));
    for (int s = 5; s <= 60; s += 5) {
        assert_ok(kl_websocket_tick(w, KL_SECONDS(s), &next, &err), &err);
        assert_int_equal(sent(w, &text, KL_SECONDS(s)), 0x89);
        assert_int_equal(next, KL_SECONDS(s + 5));
    }
    assert_fails(kl_websocket_tick(w, KL_SECONDS(61), &next, &err), KL_ETIMEOUT, &err, "silent for 61 s");
    assert_ok(kl_websocket_feed(w, "\x8a\0", 2, KL_SECONDS(61), &err), &err); /* a pong, just in time */
    assert_ok(kl_websocket_tick(w, KL_SECONDS(121), &next, &err), &err);
    assert_fails(kl_websocket_tick(w, KL_SECONDS(122), &next, &err), KL_ETIMEOUT, &err, "silent for 61 s");
    kl_buf_fini(&text);
    kl_websocket_free(w);
}

static void silence_counts_only_while_we_listen(void **state)
{
    (void)state;
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    kl_time next;
    kl_websocket *w = kl_websocket_new(on_message, &h, 0);
    kl_websocket_rest(w, true, KL_SECONDS(10));
    for (int s = 10; s < 1000; s += 10) {
        assert_ok(kl_websocket_tick(w, KL_SECONDS(s), &next, &err), &err);
        while (sent(w, &text, KL_SECONDS(s)) >= 0)
            ;
    }
    kl_websocket_rest(w, false, KL_SECONDS(1000));
    assert_ok(kl_websocket_tick(w, KL_SECONDS(1060), &next, &err), &err);
    while (sent(w, &text, KL_SECONDS(1060)) >= 0)
        ;
    assert_fails(kl_websocket_tick(w, KL_SECONDS(1061), &next, &err), KL_ETIMEOUT, &err, "silent");
    kl_buf_fini(&text);
    kl_websocket_free(w);
}

static void a_peer_that_takes_nothing_for_60_s_is_dead(void **state)
{
    (void)state;
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    kl_time next;
    kl_websocket *w = kl_websocket_new(on_message, &h, 0);
    assert_ok(kl_websocket_send(w, "\0", 1, "abc", 3, &err), &err);
    kl_websocket_wrote(w, 0, KL_SECONDS(1));
    for (int s = 5; s < 61; s += 5) {
        assert_ok(kl_websocket_feed(w, "\x8a\0", 2, KL_SECONDS(s), &err), &err); /* it does talk */
        assert_ok(kl_websocket_tick(w, KL_SECONDS(s), &next, &err), &err);
    }
    size_t waiting = kl_websocket_out(w)->len;
    assert_int_equal(waiting, 2 + 4 + 4); /* pings do not pile up behind it */
    assert_fails(
        kl_websocket_tick(w, KL_SECONDS(61), &next, &err), KL_ETIMEOUT, &err, "read nothing for 60 s");
    kl_websocket_wrote(w, 3, KL_SECONDS(61));
    assert_ok(kl_websocket_tick(w, KL_SECONDS(62), &next, &err), &err);
    kl_websocket_free(w);
}

static void a_protocol_violation_ends_it(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *story;
    } cases[] = {
        {"\x83\x01x", 3, "broke the WebSocket protocol"},        /* an opcode that does not exist */
        {"\xc2\x01x", 3, "broke the WebSocket protocol"},        /* a reserved bit */
        {"\x80\x01x", 3, "broke the WebSocket protocol"},        /* a continuation of nothing */
        {"\x89\x7e\x01\x00", 4, "broke the WebSocket protocol"}, /* a ping of 256 bytes */
        {"\x82\x7f\x00\x00\x01\x00\x00\x00\x00\x00x", 11, "more than 1 MiB"},
        {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, "broke the WebSocket protocol"},
        {"\x81\x02\xff\xfe", 4, "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h = {0};
        kl_err err = KL_ERR_INIT;
        kl_websocket *w = kl_websocket_new(on_message, &h, 0);
        assert_fails(
            kl_websocket_feed(w, cases[i].bytes, cases[i].n, 0, &err), KL_ESERVER, &err, cases[i].story);
        assert_int_equal(h.n, 0);
        kl_buf_fini(&h.text);
        kl_websocket_free(w);
    }
}

static void a_close_frame_has_a_code(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int code;
    } cases[] = {{"\x88\x02\x03\xe8", 4, 1000}, {"\x88\x00", 2, 1005},
        {"\x88\x05\x03\xf3"
         "bye",
            7, 1011}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h = {0};
        kl_err err = KL_ERR_INIT;
        kl_websocket *w = kl_websocket_new(on_message, &h, 0);
        assert_int_equal(kl_websocket_code(w), 0);
        assert_int_equal(kl_websocket_feed(w, cases[i].bytes, cases[i].n, 0, &err), KL_ECLOSED);
        assert_int_equal(kl_websocket_code(w), cases[i].code);
        kl_websocket_free(w);
    }
}

static void a_flood_of_pings_with_unread_answers_ends_it(void **state)
{
    (void)state;
    heard h = {0};
    kl_err err = KL_ERR_INIT;
    kl_buf in = KL_BUF_INIT;
    char payload[125] = "x";
    kl_websocket *w = kl_websocket_new(on_message, &h, 0);
    for (int i = 0; i < 100; i++)
        frame(&in, 0x89, payload, sizeof payload);
    kl_status st = KL_OK;
    for (int i = 0; i < 2000 && !st; i++)
        st = kl_websocket_feed(w, in.data, in.len, 0, &err);
    assert_fails(st, KL_ETOOBIG, &err, "does not read the answers");
    assert_true(kl_websocket_out(w)->len <= (size_t)4 << 20);
    kl_buf_fini(&in);
    kl_websocket_free(w);
}

static void a_refused_message_stops_the_reading(void **state)
{
    (void)state;
    heard h = {.refuse = KL_ETOOBIG};
    kl_err err = KL_ERR_INIT;
    kl_buf in = KL_BUF_INIT;
    kl_websocket *w = kl_websocket_new(on_message, &h, 0);
    frame(&in, 0x82, "a", 1);
    frame(&in, 0x82, "b", 1);
    assert_fails(kl_websocket_feed(w, in.data, in.len, 0, &err), KL_ETOOBIG, &err, "not this one");
    assert_int_equal(h.n, 1);
    kl_buf_fini(&in);
    kl_buf_fini(&h.text);
    kl_websocket_free(w);
}

static void a_command_ends_as_its_status_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        kl_status st;
        int code;
        const char *story;
    } cases[] = {
        {"{\"metadata\":{},\"status\":\"Success\"}", KL_OK, 0, ""},
        {"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"
         "\"Other\"},{\"reason\":\"ExitCode\",\"message\":\"3\"}]}}",
            KL_OK, 3, ""},
        {"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"
         "\"ExitCode\",\"message\":\"-1\"}]}}",
            KL_OK, -1, ""},
        {"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"
         "\"ExitCode\",\"message\":\"3x\"}]}}",
            KL_ESERVER, 0, "exec a/b: NonZeroExitCode"},
        {"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"message\":\"odd\"}", KL_ESERVER, 0,
            "exec a/b: odd"},
        {"{\"status\":\"Failure\",\"reason\":\"InternalError\",\"message\":\"no such program\",\"code\":500}",
            KL_ESERVER, 0, "exec a/b: no such program"},
        {"{\"status\":\"Failure\",\"reason\":\"NotFound\",\"message\":\"gone\",\"code\":404}", KL_ENOTFOUND,
            0, "exec a/b: gone"},
        {"{\"status\":5}", KL_ESERVER, 0, "neither Success nor Failure"},
        {"[]", KL_ESERVER, 0, "neither Success nor Failure"},
        {"it broke", KL_ESERVER, 0, "not a Status"},
        {"", KL_ESERVER, 0, "not a Status"},
    };
    kl__request q = {.method = "GET", .what = (char *)"exec a/b"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_err err = KL_ERR_INIT;
        int code = 0;
        kl_status st = kl__channel_exit(&q, cases[i].text, strlen(cases[i].text), &code, &err);
        assert_int_equal(st, cases[i].st);
        if (!st)
            assert_int_equal(code, cases[i].code);
        else if (!strstr(kl_err_message(&err), cases[i].story))
            fail_msg("\"%s\" lacks \"%s\"", kl_err_message(&err), cases[i].story);
        kl_err_fini(&err);
    }
}

KL_TESTS(cmocka_unit_test(messages_come_whole_however_they_are_cut),
    cmocka_unit_test(sent_messages_are_masked_and_in_order),
    cmocka_unit_test(a_peer_is_asked_every_5_s_and_dead_after_61_s),
    cmocka_unit_test(silence_counts_only_while_we_listen),
    cmocka_unit_test(a_peer_that_takes_nothing_for_60_s_is_dead),
    cmocka_unit_test(a_protocol_violation_ends_it), cmocka_unit_test(a_close_frame_has_a_code),
    cmocka_unit_test(a_flood_of_pings_with_unread_answers_ends_it),
    cmocka_unit_test(a_refused_message_stops_the_reading),
    cmocka_unit_test(a_command_ends_as_its_status_says))

/* not in tsan: it starts no thread */
