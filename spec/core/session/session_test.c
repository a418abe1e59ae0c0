/* session_test.c - sessions with servers that reject, send nonsense, stop in the middle or never stop. */
#include "support/test.h"
#include "core/http/peer.h"

#include <errno.h>
#include <sys/stat.h>
#include "base/base64.h"
#include "base/sha1.h"
#include "session/session.h"

/* --- a scripted WebSocket server ---------------------------------------------------------- */

typedef struct script {
    const char *protocol; /* NULL: v5.channel.k8s.io */
    const char *frames;   /* sent after the handshake */
    size_t n;
    bool cut;               /* then the line is cut; otherwise it reads until the client goes */
    const char *token_file; /* see the test of 401 */
    kl_buf got;             /* what the client's frames said, "channel:text|" */
    kl_mutex mu;
    _Atomic int closed; /* the client has ended its input */
} script;

static bool send_all(int fd, const char *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t w = send(fd, data + at, n - at, MSG_NOSIGNAL);
        if (w <= 0)
            return false;
        at += (size_t)w;
    }
    return true;
}

static bool switch_protocols(int fd, const request *r, const char *protocol)
{
    unsigned char digest[20];
    const char *key = peer_header(r, "Sec-WebSocket-Key");
    char *text = kl_sprintf("%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key ? key : "");
    kl_sha1(text, strlen(text), digest);
    char *proof = kl_base64_encode(digest, sizeof digest);
    bool sent = peer_send(fd,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
        "Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
        proof, protocol);
    kl_free(proof);
    kl_free(text);
    return sent;
}

/* Takes whole frames off `in`; false at a close frame. */
static bool take_frames(script *s, kl_buf *in)
{
    for (;;) {
        const unsigned char *p = (const unsigned char *)in->data;
        if (in->len < 6)
            return true;
        size_t n = p[1] & 127, at = 2;
        if (n == 126) {
            if (in->len < 8)
                return true;
            n = (size_t)p[2] << 8 | p[3];
            at = 4;
        }
        if (in->len < at + 4 + n)
            return true;
        if (p[0] == 0x88)
            return false;
        char *text = kl_alloc(n + 1);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(p[at + 4 + i] ^ p[at + i % 4]);
        text[n] = '\0';
        kl_lock(&s->mu);
        if (p[0] == 0x82 && (unsigned char)*text == 255) {
            kl_buf_printf(&s->got, "close %d|", text[1]);
            atomic_store(&s->closed, 1);
        } else if (p[0] == 0x82)
            kl_buf_printf(&s->got, "%d:%s|", *text, text + 1);
        kl_unlock(&s->mu);
        kl_free(text);
        kl_buf_consume(in, at + 4 + n);
    }
}

static bool websocket(peer *p, int fd, const request *r)
{
    script *s = p->arg;
    kl_buf in = KL_BUF_INIT;
    bool there = switch_protocols(fd, r, s->protocol ? s->protocol : "v5.channel.k8s.io")
        && send_all(fd, s->frames, s->n);
    while (there && !s->cut && peer_fill(p, fd, &in)) {
        there = take_frames(s, &in);
        kl_lock(&p->mu);
        kl_cond_broadcast(&p->changed);
        kl_unlock(&p->mu);
    }
    kl_buf_fini(&in);
    return false;
}

/* --- the client's side -------------------------------------------------------------------- */

typedef struct bench {
    peer p;
    kl_client *c;
    kl_session *s;
    kl_buf out, err_out;
    kl_err err;
} bench;

static void bench_start(bench *b, peer_answer *answer, void *arg)
{
    kl_client_options o = {0};
    kl_err err = KL_ERR_INIT;
    *b = (bench){0};
    peer_start(&b->p, answer, arg);
    kl_config_for_server(b->p.url, &o.config);
    assert_ok(kl_client_new(&o, &b->c, &err), &err);
}

static void bench_stop(bench *b)
{
    kl_session_free(b->s);
    kl_client_free(b->c);
    peer_stop(&b->p);
    kl_buf_fini(&b->out);
    kl_buf_fini(&b->err_out);
    kl_err_fini(&b->err);
}

static void begin(bench *b, const kl_session_request *r)
{
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_session_start(b->c, r, &b->s, &err), &err);
}

static kl_session_request exec_request(bool input)
{
    static const char *const words[] = {"true", NULL};
    kl_session_request r;
    kl_session_request_init(&r, KL_SESSION_EXEC);
    r.ns = "ns";
    r.pod = "web";
    r.command = words;
    r.input = input;
    return r;
}

/* Reads to the end; how it ended. */
static kl_status drain(bench *b)
{
    char data[4096];
    int channel;
    size_t n;
    kl_time until = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    for (;;) {
        kl_status st = kl_session_read(b->s, until, &channel, data, sizeof data, &n, &b->err);
        if (st || !n)
            return st;
        kl_buf_add(channel == KL_STDERR ? &b->err_out : &b->out, data, n);
    }
}

static kl_status talk(bench *b, script *s)
{
    kl_session_request r = exec_request(false);
    bench_start(b, websocket, s);
    begin(b, &r);
    return drain(b);
}

#define SUCCESS "\x82\x15\x03{\"status\":\"Success\"}"
#define CLOSE "\x88\x02\x03\xe8"
#define BYTES(text) .frames = text, .n = sizeof text - 1

/* --- tests -------------------------------------------------------------------------------- */

static void a_command_that_ends_well(void **state)
{
    (void)state;
    script s = {BYTES("\x82\x01\x01"
                      "\x82\x04\x01out"
                      "\x82\x04\x02"
                      "err"
                      "\x82\x00"
                      "\x82\x02\xff\x01" SUCCESS CLOSE)};
    bench b;
    kl_mutex_init(&s.mu);
    assert_ok(talk(&b, &s), &b.err);
    assert_string_equal(kl_buf_str(&b.out), "out");
    assert_string_equal(kl_buf_str(&b.err_out), "err");
    assert_int_equal(kl_session_exit(b.s), 0);
    assert_string_equal(kl_session_protocol(b.s), "v5.channel.k8s.io");
    assert_ok(drain(&b), &b.err); /* the end stays the end */
    bench_stop(&b);
}

static void all_the_ways_in_which_the_server_can_break_off(void **state)
{
    (void)state;
    static const struct {
        script s;
        kl_status st;
        const char *story;
    } cases[] = {
        {{BYTES("\x82\x04\x01out" CLOSE)}, KL_ECLOSED, "without saying how the command ended"},
        {{BYTES("\x88\x00")}, KL_ECLOSED, "without saying how the command ended"},
        {{BYTES("\x88\x02\x03\xf3")}, KL_ECLOSED, "WebSocket code 1011"},
        {{BYTES("\x82\x04\x01out"), .cut = true}, KL_ECLOSED, "the connection ended early"},
        {{BYTES("\x82\x7e\x01"), .cut = true}, KL_ECLOSED, "the connection ended early"},
        {{BYTES("\x83\x00")}, KL_ESERVER, "broke the WebSocket protocol"},
        {{BYTES("\x82\x02\x09x")}, KL_ESERVER, "a message for channel 9"},
        {{BYTES("\x82\x04\x03huh" CLOSE)}, KL_ESERVER, "is not a Status"},
        {{BYTES("\x82\x7f\x00\x00\x00\x00\x7f\xff\xff\xffx")}, KL_ESERVER, "more than 1 MiB"},
        {{BYTES(CLOSE), .protocol = "v3.channel.k8s.io"}, KL_ESERVER, "which was not offered"},
        {{BYTES("HTTP/1.1 200 OK\r\n\r\n")}, KL_ESERVER, "broke the WebSocket protocol"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        script s = cases[i].s;
        bench b;
        kl_mutex_init(&s.mu);
        assert_fails(talk(&b, &s), cases[i].st, &b.err, cases[i].story);
        bench_stop(&b);
    }
}

static void a_status_counts_although_the_line_is_cut_after_it(void **state)
{
    (void)state;
    script s = {BYTES("\x82\x04\x01out" SUCCESS), .cut = true};
    bench b;
    kl_mutex_init(&s.mu);
    assert_ok(talk(&b, &s), &b.err);
    assert_string_equal(kl_buf_str(&b.out), "out");
    bench_stop(&b);
}

static bool forbidden(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    return peer_reply(fd, 403, "",
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"message\":\"User \\\"x\\\" "
        "cannot get resource\",\"code\":403}");
}

static bool html(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    return peer_reply(fd, 200, "", "<html>welcome</html>");
}

static bool chunked(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    return peer_send(
        fd, "HTTP/1.1 502 x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<h1>b\r\n6\r\nad</h1\r\n0\r\n\r\n");
}

static bool ssh(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    return peer_send(fd, "SSH-2.0-x\r\n");
}

static bool hang_up(peer *p, int fd, const request *r)
{
    (void)p;
    (void)fd;
    (void)r;
    return false;
}

static bool endless_head(peer *p, int fd, const request *r)
{
    (void)r;
    bool there = peer_send(fd, "HTTP/1.1 101 x\r\n");
    while (there && !atomic_load(&p->stop))
        there = peer_send(fd, "X-More: %0100d\r\n", 1);
    return false;
}

static bool groups_counted(peer *p, int fd, const request *r)
{
    (void)p;
    int n = 0;
    for (const char *at = r->head; (at = strstr(at, "\r\nImpersonate-Group: ")); at++)
        n++;
    char *body = kl_sprintf("{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"BadRequest\","
                            "\"message\":\"%d groups\",\"code\":400}",
        n);
    bool sent = peer_reply(fd, 400, "", body);
    kl_free(body);
    return sent;
}

static void any_number_of_groups_is_impersonated(void **state)
{
    (void)state;
    bench b = {0};
    kl_err err = KL_ERR_INIT;
    kl_client_options o = {0};
    kl_session_request r = exec_request(false);
    peer_start(&b.p, groups_counted, NULL);
    kl_config_for_server(b.p.url, &o.config);
    o.config.impersonate = kl_strdup("alice");
    o.config.impersonate_groups = kl_new_array(char *, 101);
    for (int i = 0; i < 100; i++)
        o.config.impersonate_groups[i] = kl_sprintf("group-%d", i);
    assert_ok(kl_client_new(&o, &b.c, &err), &err);
    begin(&b, &r);
    assert_fails(drain(&b), KL_EREJECTED, &b.err, "100 groups");
    bench_stop(&b);
}

static void a_refused_upgrade_says_why(void **state)
{
    (void)state;
    static const struct {
        peer_answer *answer;
        kl_status st;
        const char *story;
    } cases[] = {
        {forbidden, KL_EFORBIDDEN,
            "the missing RBAC rule: verbs \"get\" and \"create\" on resource \"pods/exec\""},
        {html, KL_ESERVER, "HTTP 200 instead of switching to WebSocket"},
        {chunked, KL_ESERVER, "<h1>bad</h1"},
        {ssh, KL_ESERVER, "does not answer in HTTP"},
        {hang_up, KL_ECLOSED, "closed the connection before it answered"},
        {endless_head, KL_ETOOBIG, "bytes of headers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b;
        kl_session_request r = exec_request(false);
        bench_start(&b, cases[i].answer, NULL);
        begin(&b, &r);
        assert_fails(drain(&b), cases[i].st, &b.err, cases[i].story);
        assert_false(kl_session_opened(b.s, 0));
        bench_stop(&b);
    }
}

static void an_unreachable_server_fails(void **state)
{
    (void)state;
    bench b;
    kl_client_options o = {0};
    char url[64];
    b = (bench){0};
    snprintf(url, sizeof url, "http://127.0.0.1:%u", peer_dead_port());
    kl_config_for_server(url, &o.config);
    assert_ok(kl_client_new(&o, &b.c, &b.err), &b.err);
    kl_session_request r = exec_request(false);
    begin(&b, &r);
    assert_fails(drain(&b), KL_ECONNECT, &b.err, "exec ns/web: connection refused");
    kl_session_free(b.s);
    kl_client_free(b.c);
}

static bool busy_then_good(peer *p, int fd, const request *r)
{
    return r->nth < 3 ? peer_reply(fd, 503, "Retry-After: 0\r\n", "busy") : websocket(p, fd, r);
}

static void an_answer_that_asks_for_another_attempt_gets_it(void **state)
{
    (void)state;
    script s = {BYTES(SUCCESS CLOSE)};
    bench b;
    kl_session_request r = exec_request(false);
    kl_mutex_init(&s.mu);
    bench_start(&b, busy_then_good, &s);
    begin(&b, &r);
    assert_ok(drain(&b), &b.err);
    assert_int_equal(atomic_load(&b.p.requests), 3);
    bench_stop(&b);
}

static bool only_the_new_token(peer *p, int fd, const request *r)
{
    script *s = p->arg;
    const char *who = peer_header(r, "Authorization");
    if (who && !strcmp(who, "Bearer new"))
        return websocket(p, fd, r);
    FILE *f = fopen(s->token_file, "w");
    fputs("new", f);
    fclose(f);
    return peer_reply(fd, 401, "", "no");
}

static void a_401_reads_the_token_file_again_once(void **state)
{
    (void)state;
    char path[] = "/tmp/kl-session-test-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "old", 3), 3);
    close(fd);
    script s = {BYTES(SUCCESS CLOSE), .token_file = path};
    bench b = {0};
    kl_client_options o = {0};
    kl_mutex_init(&s.mu);
    peer_start(&b.p, only_the_new_token, &s);
    kl_config_for_server(b.p.url, &o.config);
    o.config.token_file = kl_strdup(path);
    assert_ok(kl_client_new(&o, &b.c, &b.err), &b.err);
    kl_session_request r = exec_request(false);
    begin(&b, &r);
    assert_ok(drain(&b), &b.err);
    assert_int_equal(atomic_load(&b.p.requests), 2);
    bench_stop(&b);
    unlink(path);
}

static void written_bytes_arrive_in_order_then_the_end(void **state)
{
    (void)state;
    script s = {.frames = ""};
    bench b;
    kl_session_request r = exec_request(true);
    size_t taken;
    r.tty = true;
    kl_mutex_init(&s.mu);
    bench_start(&b, websocket, &s);
    begin(&b, &r);
    kl_session_resize(b.s, 80, 25);
    assert_true(kl_session_opened(b.s, kl_clock_now(kl_clock_real()) + PEER_WAIT));
    kl_session_write(b.s, 0, "one", 3, &taken);
    assert_int_equal(taken, 3);
    kl_session_write(b.s, 0, "two", 3, &taken);
    kl_session_close_input(b.s);
    assert_true(peer_wait(&b.p, &s.closed, 1));
    kl_lock(&s.mu);
    assert_string_equal(kl_buf_str(&s.got), "4:{\"Width\":80,\"Height\":25}|0:one|0:two|close 0|");
    kl_unlock(&s.mu);
    bench_stop(&b);
    kl_buf_fini(&s.got);
}

static void v4_cannot_end_input_and_says_so(void **state)
{
    (void)state;
    script s = {.frames = "", .protocol = "v4.channel.k8s.io"};
    bench b;
    kl_session_request r = exec_request(true);
    kl_mutex_init(&s.mu);
    bench_start(&b, websocket, &s);
    begin(&b, &r);
    kl_session_close_input(b.s);
    assert_fails(
        drain(&b), KL_EREJECTED, &b.err, "v4.channel.k8s.io cannot signal the end of standard input");
    bench_stop(&b);
    kl_buf_fini(&s.got);
}

static void a_port_says_its_number_first(void **state)
{
    (void)state;
    static const struct {
        script s;
        kl_status st;
        const char *out, *story;
    } cases[] = {
        {{BYTES("\x82\x03\x00\x50\x00"
                "\x82\x03\x01\x50\x00"
                "\x82\x04\x00"
                "abc" CLOSE),
             .protocol = "v4.channel.k8s.io"},
            KL_OK, "abc", ""},
        {{BYTES("\x82\x03\x01\x50\x00"
                "\x82\x06\x00\x50\x00"
                "abc"
                "\x82\x05\x01"
                "nope" CLOSE),
             .protocol = "v4.channel.k8s.io"},
            KL_ECONNECT, "abc", "port_forward ns/web 80: nope"},
        {{BYTES("\x82\x03\x00\x51\x00" CLOSE), .protocol = "v4.channel.k8s.io"}, KL_ESERVER, "",
            "did not start channel 0 with the port 80"},
        {{BYTES("\x82\x02\x00\x50" CLOSE), .protocol = "v4.channel.k8s.io"}, KL_ESERVER, "",
            "did not start channel 0 with the port 80"},
        {{BYTES("\x82\x04\x02"
                "abc" CLOSE),
             .protocol = "v4.channel.k8s.io"},
            KL_ESERVER, "", "a message for channel 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        script s = cases[i].s;
        bench b;
        kl_session_request r;
        kl_session_request_init(&r, KL_SESSION_PORT);
        r.ns = "ns";
        r.pod = "web";
        r.port = 80;
        kl_mutex_init(&s.mu);
        bench_start(&b, websocket, &s);
        begin(&b, &r);
        if (cases[i].st)
            assert_fails(drain(&b), cases[i].st, &b.err, cases[i].story);
        else
            assert_ok(drain(&b), &b.err);
        assert_string_equal(kl_buf_str(&b.out), cases[i].out);
        bench_stop(&b);
        kl_buf_fini(&s.got);
    }
}

static bool silent(peer *p, int fd, const request *r)
{
    kl_buf in = KL_BUF_INIT;
    (void)r;
    while (peer_fill(p, fd, &in))
        ;
    kl_buf_fini(&in);
    return false;
}

static void freeing_ends_it_at_any_moment(void **state)
{
    (void)state;
    script s = {.frames = ""};
    bench b;
    kl_session_request r = exec_request(true);
    kl_mutex_init(&s.mu);
    bench_start(&b, websocket, &s);
    begin(&b, &r); /* before anything has happened */
    kl_session_free(b.s);
    begin(&b, &r); /* open */
    assert_true(kl_session_opened(b.s, kl_clock_now(kl_clock_real()) + PEER_WAIT));
    kl_session_free(b.s);
    begin(&b, &r); /* with the client */
    assert_true(kl_session_opened(b.s, kl_clock_now(kl_clock_real()) + PEER_WAIT));
    kl_client_free(b.c);
    b.c = NULL;
    assert_fails(drain(&b), KL_ECANCELLED, &b.err, "cancelled");
    bench_stop(&b);
    kl_buf_fini(&s.got);
    bench_start(&b, silent, NULL); /* during the handshake */
    begin(&b, &r);
    assert_true(peer_wait_connections(&b.p, 1));
    bench_stop(&b);
}

/* A plugin that is slow to answer: what was let go of meanwhile sends nothing. */
static void freeing_withdraws_the_request_for_credentials(void **state)
{
    (void)state;
    char dir[] = "/tmp/kl-session-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *fifo = kl_sprintf("%s/credential", dir),
         *exec = kl_sprintf("{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"interactiveMode\":"
                            "\"Never\",\"args\":[\"%s\"]}",
             fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    script s = {BYTES(SUCCESS CLOSE)};
    bench b = {0};
    kl_client_options o = {0};
    kl_mutex_init(&s.mu);
    peer_start(&b.p, websocket, &s);
    kl_config_for_server(b.p.url, &o.config);
    o.config.exec_command = kl_strdup("cat");
    assert_ok(kl_value_decode(exec, strlen(exec), &o.config.exec, &b.err), &b.err);
    assert_ok(kl_client_new(&o, &b.c, &b.err), &b.err);
    kl_session_request r = exec_request(false);
    begin(&b, &r);
    kl_session *first = b.s;
    begin(&b, &r);
    FILE *answer = fopen(fifo, "w"); /* the plugin runs */
    assert_non_null(answer);
    kl_session_free(first);
    fputs("{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
          "\"status\":{\"token\":\"t\"}}",
        answer);
    fclose(answer);
    assert_ok(drain(&b), &b.err);
    assert_int_equal(atomic_load(&b.p.requests), 1);
    bench_stop(&b);
    unlink(fifo);
    rmdir(dir);
    kl_free(exec);
    kl_free(fifo);
}

/* A server that sends as much as is taken, and notes when nothing was for a while. */
typedef struct gusher {
    _Atomic size_t sent;
    _Atomic int stuck;
} gusher;

#define LOOKS 6 /* of 50 ms without room: the other side reads no more */

static bool gush(peer *p, int fd, const request *r)
{
    gusher *g = p->arg;
    char frame[4 + 16384] = {(char)0x82, 126, 0x40, 0x00, 1};
    int looks = 0;
    if (!switch_protocols(fd, r, "v5.channel.k8s.io"))
        return false;
    for (size_t at = 0; !atomic_load(&p->stop);) {
        struct pollfd pf = {.fd = fd, .events = POLLOUT};
        if (poll(&pf, 1, 50) <= 0) {
            if (++looks < LOOKS)
                continue;
            kl_lock(&p->mu);
            atomic_store(&g->stuck, 1);
            kl_cond_broadcast(&p->changed);
            kl_unlock(&p->mu);
            continue;
        }
        ssize_t n = send(fd, frame + at, sizeof frame - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0) {
            looks = 0;
            atomic_fetch_add(&g->sent, (size_t)n);
            at = (at + (size_t)n) % sizeof frame;
        }
    }
    return false;
}

static void a_reader_that_rests_holds_the_sender_back(void **state)
{
    (void)state;
    gusher g = {0};
    bench b;
    kl_session_request r = exec_request(false);
    bench_start(&b, gush, &g);
    begin(&b, &r);
    assert_true(peer_wait(&b.p, &g.stuck, 1));
    size_t held = atomic_load(&g.sent);
    char *data = kl_alloc(1 << 20);
    size_t n, total = 0;
    int channel;
    kl_time until = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    while (
        total < held + ((size_t)4 << 20) && !kl_session_read(b.s, until, &channel, data, 1 << 20, &n, NULL))
        total += n;
    assert_true(total >= held + ((size_t)4 << 20)); /* and it goes on when somebody reads again */
    kl_free(data);
    bench_stop(&b);
}

static void mistakes_are_reported_before_a_request(void **state)
{
    (void)state;
    static const char *const words[] = {"true", NULL};
    bench b;
    kl_err err = KL_ERR_INIT;
    kl_session *s;
    bench_start(&b, silent, NULL);
    kl_session_request r = exec_request(false);
    r.pod = "";
    assert_fails(kl_session_start(b.c, &r, &s, &err), KL_EINVAL, &err, "name the pod");
    r.pod = "a/b";
    assert_fails(kl_session_start(b.c, &r, &s, &err), KL_EINVAL, &err, "exec ns/a/b");
    r = exec_request(false);
    r.command = words + 1;
    assert_fails(kl_session_start(b.c, &r, &s, &err), KL_EINVAL, &err, "name the command");
    r = exec_request(false);
    r.protocol = "v1";
    assert_fails(kl_session_start(b.c, &r, &s, &err), KL_EINVAL, &err, "got \"v1\"");
    kl_session_request_init(&r, KL_SESSION_PORT);
    r.ns = r.pod = "x";
    r.port = 65536;
    assert_fails(kl_session_start(b.c, &r, &s, &err), KL_EINVAL, &err, "a port is 1 to 65535");
    assert_int_equal(atomic_load(&b.p.connections), 0);
    bench_stop(&b);
}

KL_TESTS(cmocka_unit_test(a_command_that_ends_well),
    cmocka_unit_test(all_the_ways_in_which_the_server_can_break_off),
    cmocka_unit_test(a_status_counts_although_the_line_is_cut_after_it),
    cmocka_unit_test(any_number_of_groups_is_impersonated), cmocka_unit_test(a_refused_upgrade_says_why),
    cmocka_unit_test(an_unreachable_server_fails),
    cmocka_unit_test(an_answer_that_asks_for_another_attempt_gets_it),
    cmocka_unit_test(a_401_reads_the_token_file_again_once),
    cmocka_unit_test(written_bytes_arrive_in_order_then_the_end),
    cmocka_unit_test(v4_cannot_end_input_and_says_so), cmocka_unit_test(a_port_says_its_number_first),
    cmocka_unit_test(freeing_ends_it_at_any_moment),
    cmocka_unit_test(freeing_withdraws_the_request_for_credentials),
    cmocka_unit_test(a_reader_that_rests_holds_the_sender_back),
    cmocka_unit_test(mistakes_are_reported_before_a_request))
