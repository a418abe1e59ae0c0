/* upgrade_test.c - the WebSocket handshake: our request, and every invalid answer. Each answer is fed whole
 * and byte by byte. */
#include "support/test.h"

#include "base/mem.h"
#include "http/upgrade.h"

/* RFC 6455 1.3: "the sample nonce" gives this key, and this is its proof. */
#define NONCE ((const unsigned char *)"the sample nonce")
#define PROOF "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static const char *const protocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io", NULL};

static void we_ask_as_the_standard_wants(void **state)
{
    (void)state;
    static const char *const headers[] = {"Authorization: Bearer x", NULL};
    kl__upgrade u;
    kl_buf out = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    kl__upgrade_init(&u, NONCE, protocols);
    assert_ok(kl__upgrade_request(&u, "https://h:6443/p/api?x=1", headers, &out, &err), &err);
    assert_string_equal(kl_buf_str(&out),
        "GET /p/api?x=1 HTTP/1.1\r\nHost: h:6443\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\nAuthorization: Bearer x\r\n\r\n");
    static const char *const bad[] = {"X: a\r\nHost: other", NULL};
    assert_fails(kl__upgrade_request(&u, "https://h/", bad, &out, &err), KL_EINVAL, &err,
        "the header X holds a line break");
    kl_buf_fini(&out);
    kl__upgrade_fini(&u);
}

/* The verdict on an answer; what it left over is appended to `rest`. */
static kl_status judge(kl__upgrade *u, const char *answer, size_t step, kl_buf *rest, kl_err *err)
{
    size_t n = strlen(answer), used;
    kl__upgrade_init(u, NONCE, protocols);
    for (size_t at = 0; at < n; at += step) {
        size_t some = n - at < step ? n - at : step;
        kl_status st = kl__upgrade_feed(u, answer + at, some, &used, err);
        if (st == KL_EAGAIN)
            continue;
        if (!st)
            kl_buf_puts(rest, answer + at + used);
        return st;
    }
    return kl__upgrade_end(u, err);
}

#define SWITCH "HTTP/1.1 101 Switching Protocols\r\n"
#define GOOD                                                                                                 \
    SWITCH "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: " PROOF           \
           "\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n"

static void the_right_answer_names_its_protocol_and_keeps_later_bytes(void **state)
{
    (void)state;
    for (size_t step = 1; step < 400; step += 13) {
        static const char *const answers[] = {
            GOOD "\r\nframes", "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" GOOD "\r\nframes"};
        for (int i = 0; i < 2; i++) {
            kl__upgrade u;
            kl_buf rest = KL_BUF_INIT;
            kl_err err = KL_ERR_INIT;
            assert_ok(judge(&u, answers[i], step, &rest, &err), &err);
            assert_string_equal(kl_buf_str(&rest), "frames");
            assert_ptr_equal(u.protocol, protocols[1]);
            kl_buf_fini(&rest);
            kl__upgrade_fini(&u);
        }
    }
}

static void another_answer_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        kl_status st;
        const char *story;
    } cases[] = {
        {SWITCH "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                "AAAA\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n",
            KL_ESERVER, "does not match our key"},
        {SWITCH
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n",
            KL_ESERVER, "does not match our key"},
        {SWITCH "Upgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n", KL_ESERVER,
            "a protocol other than WebSocket"},
        {SWITCH "Upgrade: websocket\r\nConnection: close\r\nSec-WebSocket-Accept: " PROOF "\r\n\r\n",
            KL_ESERVER, "a protocol other than WebSocket"},
        {SWITCH "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " PROOF "\r\n\r\n",
            KL_ESERVER, "chose no subprotocol"},
        {SWITCH "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " PROOF
                "\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
            KL_ESERVER, "\"chat\", which was not offered"},
        {GOOD "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", KL_ESERVER, "permessage-deflate"},
        {"SSH-2.0-OpenSSH\r\n", KL_ESERVER, "does not answer in HTTP"},
        {"HTTP/2 101 x\r\n\r\n", KL_ESERVER, "does not answer in HTTP/1.1"},
        {"HTTP/1.1 xyz\r\n\r\n", KL_ESERVER, "does not answer in HTTP/1.1"},
        {"", KL_ECLOSED, "before it answered"},
        {GOOD, KL_ECLOSED, "before it answered"},
        {"HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nbodyMORE", KL_EREJECTED, "body"},
        {"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", KL_EREJECTED, ""},
        {"HTTP/1.1 502 No\r\n\r\nuntil the end", KL_EREJECTED, "until the end"},
        {"HTTP/1.1 502 No\r\nContent-Length: 100\r\n\r\ncut", KL_EREJECTED, "cut"},
        {"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nchun\r\nA;x=y\r\nked and so\r\n0\r\n\r\n",
            KL_EREJECTED, "chunked and so"},
        {"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", KL_EREJECTED, ""},
        {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", KL_EREJECTED, "ok"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step < 500; step += 160) {
            kl__upgrade u;
            kl_err err = KL_ERR_INIT;
            kl_buf rest = KL_BUF_INIT;
            kl_status st = judge(&u, cases[i].answer, step, &rest, &err);
            assert_int_equal(st, cases[i].st);
            const char *story = st == KL_EREJECTED ? kl_buf_str(&u.body) : kl_err_message(&err);
            if (st == KL_EREJECTED)
                assert_string_equal(story, cases[i].story);
            else if (!strstr(story, cases[i].story))
                fail_msg("\"%s\" lacks \"%s\"", story, cases[i].story);
            kl_err_fini(&err);
            kl_buf_fini(&rest);
            kl__upgrade_fini(&u);
        }
}

static void neither_head_nor_body_grow_without_end(void **state)
{
    (void)state;
    kl__upgrade u;
    kl_err err = KL_ERR_INIT;
    size_t used;
    char line[1024];
    memset(line, 'x', sizeof line);
    kl__upgrade_init(&u, NONCE, protocols);
    kl_status st = kl__upgrade_feed(&u, "HTTP/1.1 101 x\r\nA: ", 19, &used, &err);
    for (int i = 0; i < 100 && st == KL_EAGAIN; i++)
        st = kl__upgrade_feed(&u, line, sizeof line, &used, &err);
    assert_fails(st, KL_ETOOBIG, &err, "bytes of headers");
    kl__upgrade_fini(&u);
    kl__upgrade_init(&u, NONCE, protocols);
    st = kl__upgrade_feed(&u, "HTTP/1.1 500 x\r\n\r\n", 18, &used, &err);
    for (int i = 0; i < 100 && st == KL_EAGAIN; i++)
        st = kl__upgrade_feed(&u, line, sizeof line, &used, &err);
    assert_int_equal(st, KL_EREJECTED);
    assert_int_equal(u.body.len, 64 << 10);
    kl__upgrade_fini(&u);
}

KL_TESTS(cmocka_unit_test(we_ask_as_the_standard_wants),
    cmocka_unit_test(the_right_answer_names_its_protocol_and_keeps_later_bytes),
    cmocka_unit_test(another_answer_is_explained), cmocka_unit_test(neither_head_nor_body_grow_without_end))

/* not in tsan: it starts no thread */
