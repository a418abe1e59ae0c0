/* httpd_test.c - the HTTP server over real sockets on loopback: whole answers, late answers, streams, and
 * their ends. */
#include "support/test.h"

#include <errno.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/locks.h"
#include "httpd/httpd.h"
#include "httpd/listen.h"
#include "base/mem.h"
#include "base/sync.h"

#define BOUND KL_SECONDS(20)         /* every wait ends here at the latest */
#define HUGE_SIZE ((size_t)32000000) /* more than the kernel keeps of an answer */

typedef struct server {
    kl_httpd *h;
    kl_mutex mu;
    kl_cond changed;
    kl_httpd_stream *streams[512];
    size_t n;
    kl_httpd_request *late;
    bool begun;
    kl_thread *writer;
} server;

static void write_ticks(void *arg)
{
    kl_httpd_stream *s = arg;
    char text[32];
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(text, sizeof text, "tick %d\n", i);
        if (!kl_httpd_stream_write(s, text, (size_t)n))
            break;
    }
    kl_httpd_stream_close(s);
}

static void serve(void *arg, kl_httpd_request *r)
{
    server *t = arg;
    const char *path = kl_httpd_path(r);
    if (!strcmp(path, "/echo")) {
        size_t n;
        const char *body = kl_httpd_body(r, &n), *q = kl_httpd_query(r, "q"),
                   *x = kl_httpd_header(r, "X-Test"), *flag = kl_httpd_query(r, "flag");
        char *text = kl_sprintf("%s %s q=%s x=%s flag=%s none=%s body=%.*s", kl_httpd_method(r), path,
            q ? q : "-", x ? x : "-", flag ? flag : "-", kl_httpd_query(r, "none") ? "?" : "-", (int)n, body);
        kl_httpd_reply(r, 201, "text/plain", "X-One: 1\r\nX-Two: two words\r\n", text, strlen(text));
        kl_free(text);
    } else if (!strcmp(path, "/big")) {
        kl_buf b = KL_BUF_INIT;
        memset(kl_buf_reserve(&b, 3000000), 'z', 3000000);
        b.len = 3000000;
        kl_httpd_reply_take(r, 200, "text/plain", NULL, &b);
    } else if (!strcmp(path, "/huge")) {
        kl_buf b = KL_BUF_INIT;
        memset(kl_buf_reserve(&b, HUGE_SIZE), 'z', HUGE_SIZE);
        b.len = HUGE_SIZE;
        kl_httpd_reply_take(r, 200, "text/plain", NULL, &b);
    } else if (!strcmp(path, "/watch")) {
        kl_httpd_stream *s = kl_httpd_reply_stream(r, 200, "application/json", NULL);
        kl_lock(&t->mu);
        t->streams[t->n++] = s;
        kl_cond_broadcast(&t->changed);
        kl_unlock(&t->mu);
    } else if (!strcmp(path, "/ticks")) {
        t->writer = kl_thread_start("ticks", write_ticks, kl_httpd_reply_stream(r, 200, "text/plain", NULL));
    } else if (!strcmp(path, "/stopping")) {
        kl_httpd_stream *s = kl_httpd_reply_stream(r, 200, "text/plain", NULL);
        kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
        kl_lock(&t->mu);
        t->begun = true;
        kl_cond_broadcast(&t->changed);
        while (!kl_httpd_stream_gone(s) && kl_clock_now(kl_clock_real()) < deadline)
            kl_cond_wait_until(&t->changed, &t->mu, kl_clock_now(kl_clock_real()) + KL_MICROSECONDS(100));
        kl_unlock(&t->mu);
        kl_httpd_stream_close(s);
    } else if (!strcmp(path, "/late")) {
        kl_lock(&t->mu);
        t->late = r;
        kl_cond_broadcast(&t->changed);
        kl_unlock(&t->mu);
    } else {
        kl_httpd_reply(r, 404, NULL, NULL, NULL, 0);
    }
}

static int start(void **state)
{
    server *t = kl_new(server);
    kl_err err = KL_ERR_INIT;
    kl_mutex_init_as(&t->mu, KL_LOCK_SERVER); /* httpd is called under it, as the embedded server does */
    kl_cond_init(&t->changed);
    kl_httpd_options o = {
        .listen = "127.0.0.1:0", .max_body = 1000, .max_queued = 4000000, .handler = serve, .arg = t};
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    *state = t;
    return 0;
}

static int stop(void **state)
{
    server *t = *state;
    kl_httpd_stop(t->h);
    kl_thread_join(t->writer);
    for (size_t i = 0; i < t->n; i++)
        kl_httpd_stream_close(t->streams[i]);
    kl_cond_fini(&t->changed);
    kl_mutex_fini(&t->mu);
    kl_free(t);
    return 0;
}

static int dial(server *t)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
        .sin_port = htons(kl_httpd_port(t->h)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval bound = {.tv_sec = BOUND / KL_SECONDS(1)};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads until `part` has come. False at the end of the connection. */
static bool hear(int fd, kl_buf *got, const char *part)
{
    char text[65536];
    while (!strstr(kl_buf_str(got), part)) {
        ssize_t n = recv(fd, text, sizeof text, 0);
        if (n <= 0)
            return false;
        kl_buf_add(got, text, (size_t)n);
    }
    return true;
}

static void hear_all(int fd, kl_buf *got) { assert_false(hear(fd, got, "\x01 never \x01")); }

static kl_httpd_stream *wait_stream(server *t, size_t i)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    kl_lock(&t->mu);
    while (t->n <= i)
        if (!kl_cond_wait_until(&t->changed, &t->mu, deadline))
            break;
    kl_httpd_stream *s = t->n > i ? t->streams[i] : NULL;
    kl_unlock(&t->mu);
    assert_non_null(s);
    return s;
}

static void answers_with_what_was_asked(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd,
        "POST /ec%68o?q=a+b%26c&flag&q=second HTTP/1.1\r\nHost: x\r\nX-Test: yes\r\nContent-Length: "
        "5\r\nConnection: close\r\n\r\nhello");
    hear_all(fd, &got);
    assert_non_null(strstr(kl_buf_str(&got), "HTTP/1.1 201"));
    assert_non_null(strstr(kl_buf_str(&got), "X-One: 1\r\n"));
    assert_non_null(strstr(kl_buf_str(&got), "X-Two: two words\r\n"));
    assert_non_null(strstr(kl_buf_str(&got), "Content-Type: text/plain\r\n"));
    assert_non_null(strstr(kl_buf_str(&got), "\r\n\r\nPOST /echo q=a b&c x=yes flag= none=- body=hello"));
    close(fd);
    kl_buf_fini(&got);
}

static void keeps_a_connection_for_the_next_request(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "GET /echo?q=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(hear(fd, &got, "body="));
    kl_buf_clear(&got);
    say(fd, "GET /echo?q=2 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(hear(fd, &got, "q=2"));
    close(fd);
    kl_buf_fini(&got);
}

static void sends_a_large_body_that_it_took(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    hear_all(fd, &got);
    assert_int_equal(strlen(strstr(kl_buf_str(&got), "\r\n\r\n") + 4), 3000000);
    close(fd);
    kl_buf_fini(&got);
}

static void refuses_a_body_above_the_ceiling_announced_or_not(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
    assert_true(hear(fd, &got, "HTTP/1.1 413"));
    assert_true(hear(fd, &got, "larger than 1000 bytes"));
    close(fd);
    kl_buf_clear(&got);
    fd = dial(t);
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 11; i++)
        say(fd,
            "64\r\n012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
            "0123456789\r\n");
    say(fd, "0\r\n\r\n");
    assert_true(hear(fd, &got, "HTTP/1.1 413"));
    close(fd);
    kl_buf_fini(&got);
}

/* The end of the connection comes in one piece with data: the body, and the descriptor, are given back at
 * once. */
static void forgets_a_body_whose_sender_has_gone(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    kl_httpd_options o = {
        .listen = "127.0.0.1:0", .max_body = 1000000, .max_bodies = 1000000, .handler = serve, .arg = t};
    kl_err err = KL_ERR_INIT;
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    char *half = kl_sprintf("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n%0400000d", 1);
    /* each fits beside none of the others: 8 MB where 0.5 MB have room */
    for (int i = 0; i < 20; i++) {
        int fd = dial(t);
        say(fd, half);
        close(fd);
    }
    char *whole = kl_sprintf(
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 400000\r\n\r\n%0400000d", 1);
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    bool taken = false;
    while (!taken && kl_clock_now(kl_clock_real()) < deadline) {
        int fd = dial(t);
        kl_buf_clear(&got);
        say(fd, whole);
        hear_all(fd, &got);
        taken = strstr(kl_buf_str(&got), "HTTP/1.1 201") != NULL;
        assert_true(taken || strstr(kl_buf_str(&got), "HTTP/1.1 503"));
        close(fd);
    }
    assert_true(taken);
    kl_free(whole);
    kl_free(half);
    kl_buf_fini(&got);
}

/* Each connection takes a descriptor, and the process has not that many. */
static void hangs_up_on_a_request_that_does_not_come_on(void **state)
{
    server *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_buf got = KL_BUF_INIT;
    kl_httpd_options o = {.listen = "127.0.0.1:0", .read_seconds = 1, .handler = serve, .arg = t};
    static const char *const halves[] = {"", "GET /ec", "GET /echo HTTP/1.1\r\nHost: x\r\nX-Test: ",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234"};
    int fds[4];
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    for (int i = 0; i < 4; i++) {
        fds[i] = dial(t);
        say(fds[i], halves[i]);
    }
    for (int i = 0; i < 4; i++) {
        char text[1000];
        ssize_t n = 1;
        while (n > 0) /* some word of refusal, perhaps */
            n = recv(fds[i], text, sizeof text, 0);
        assert_true(n == 0 || errno == ECONNRESET);
        close(fds[i]);
    }
    int fd = dial(t);
    say(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(hear(fd, &got, "HTTP/1.1 201"));
    close(fd);
    kl_buf_fini(&got);
}

/* Whether the server hangs up, while fd sends a byte before it can stand still for a second. */
static bool hangs_up_on(int fd, const char *begin, const char *drop)
{
    char text[1000];
    struct timeval pause = {.tv_usec = 250000};
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause);
    say(fd, begin);
    while (kl_clock_now(kl_clock_real()) < deadline) {
        ssize_t n = recv(fd, text, sizeof text, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return true;
        if (n < 0 && send(fd, drop, strlen(drop), MSG_NOSIGNAL) < 0)
            return true;
    }
    return false;
}

/* No pause is long enough for the timeout of a connection that stands still. */
static void hangs_up_on_a_request_that_comes_in_drops(void **state)
{
    server *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_httpd_options o = {.listen = "127.0.0.1:0", .read_seconds = 1, .handler = serve, .arg = t};
    static const struct {
        const char *begin, *drop;
    } drips[] = {{"", "G"}, {"GET /", "e"}, {"GET /echo HTTP/1.1\r\nHost: x\r\n", "X-Drop: x\r\n"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", "b"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nb\r\n"}};
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    int watcher = dial(t);
    say(watcher, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    kl_httpd_stream *s = wait_stream(t, 0);
    for (size_t i = 0; i < sizeof drips / sizeof *drips; i++) {
        int fd = dial(t);
        assert_true(hangs_up_on(fd, drips[i].begin, drips[i].drop));
        close(fd);
    }
    /* who has sent a whole request is not late, however long its answer goes on */
    kl_buf got = KL_BUF_INIT;
    assert_true(kl_httpd_stream_write(s, "still there", 11));
    assert_true(hear(watcher, &got, "still there"));
    kl_buf_fini(&got);
    close(watcher);
}

/* Reads a huge answer to the end of its connection. */
static size_t rest_of(int fd)
{
    char text[65536];
    size_t sum = 0;
    ssize_t n;
    while (sum < HUGE_SIZE && (n = recv(fd, text, sizeof text, 0)) > 0)
        sum += (size_t)n;
    return sum;
}

/* Each keeps its answer in memory. */
static void hangs_up_on_who_does_not_read_its_answer(void **state)
{
    server *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_httpd_options o = {.listen = "127.0.0.1:0", .read_seconds = 1, .handler = serve, .arg = t};
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    for (int reads = 1; reads >= 0; reads--) {
        kl_buf got = KL_BUF_INIT;
        char first;
        int fd = dial(t);
        say(fd, "GET /echo?q=first HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_true(hear(fd, &got, "q=first")); /* from then on it may rest between two requests */
        kl_buf_fini(&got);
        say(fd, "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_int_equal(recv(fd, &first, 1, 0), 1); /* it is under way */
        if (!reads)
            kl_httpd_drain(t->h, kl_clock_now(kl_clock_real()) + BOUND);
        assert_int_equal(rest_of(fd) >= HUGE_SIZE, reads);
        close(fd);
    }
}

/* It never stands still, and would keep the answer for days. */
static void hangs_up_on_who_reads_its_answer_in_drops(void **state)
{
    server *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_httpd_options o = {
        .listen = "127.0.0.1:0", .read_seconds = 1, .send_rate = HUGE_SIZE, .handler = serve, .arg = t};
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    assert_int_equal(kl_httpd_send_seconds(t->h, HUGE_SIZE), 3);
    int fd = dial(t);
    say(fd, "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
    char text[65536];
    size_t sum = 0;
    ssize_t n;
    while ((n = recv(fd, text, sizeof text, 0)) > 0 && sum < HUGE_SIZE) {
        sum += (size_t)n;
        usleep(100000);
    }
    assert_true(sum < HUGE_SIZE);
    close(fd);
}

static void gives_an_answer_time_by_its_length(void **state)
{
    server *t = *state;
    assert_int_equal(kl_httpd_send_seconds(t->h, 0), 64);
    assert_int_equal(kl_httpd_send_seconds(t->h, (size_t)256 << 20), 64 + (256 << 20) / (32 << 10));
}

static void takes_no_more_of_bodies_than_it_has_room_for(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    kl_httpd_options o = {
        .listen = "127.0.0.1:0", .max_body = 1000000, .max_bodies = 1000000, .handler = serve, .arg = t};
    kl_err err = KL_ERR_INIT;
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    int fd = dial(t);
    char *much = kl_sprintf("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n%0600000d", 1);
    say(fd, much);
    assert_true(hear(fd, &got, "HTTP/1.1 503"));
    assert_true(hear(fd, &got, "too much memory"));
    kl_buf_clear(&got);
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok");
    assert_true(hear(fd, &got, "body=ok"));
    close(fd);
    kl_free(much);
    kl_buf_fini(&got);
}

static void takes_no_body_where_none_is_wanted(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    kl_httpd_options o = {.listen = "127.0.0.1:0", .no_bodies = true, .handler = serve, .arg = t};
    kl_err err = KL_ERR_INIT;
    kl_httpd_stop(t->h);
    assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    int fd = dial(t);
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n");
    assert_true(hear(fd, &got, "HTTP/1.1 413"));
    close(fd);
    kl_buf_clear(&got);
    fd = dial(t);
    say(fd, "GET /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert_true(hear(fd, &got, "HTTP/1.1 201"));
    close(fd);
    kl_buf_fini(&got);
}

static void refuses_a_path_that_would_be_cut(void **state)
{
    server *t = *state;
    static const char *const paths[] = {"/echo%00x", "/echo?q=a%00b", "/%00"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        kl_buf got = KL_BUF_INIT;
        int fd = dial(t);
        char *text = kl_sprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", paths[i]);
        say(fd, text);
        assert_true(hear(fd, &got, "HTTP/1.1 400"));
        close(fd);
        kl_free(text);
        kl_buf_fini(&got);
    }
}

/* Each time the server ends right after its answer was given. */
static void an_answer_that_was_given_leaves_before_the_end(void **state)
{
    server *t = *state;
    for (int i = 0; i < 20; i++) {
        kl_buf got = KL_BUF_INIT;
        kl_err err = KL_ERR_INIT;
        int fd = dial(t);
        say(fd, "GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
        kl_lock(&t->mu);
        while (!t->late)
            kl_cond_wait(&t->changed, &t->mu);
        kl_httpd_request *r = t->late;
        t->late = NULL;
        kl_unlock(&t->mu);
        kl_httpd_reply(r, 200, "text/plain", NULL, "the last word", 13);
        kl_httpd_drain(t->h, kl_clock_now(kl_clock_real()) + BOUND);
        kl_httpd_stop(t->h);
        assert_true(hear(fd, &got, "the last word"));
        close(fd);
        kl_buf_fini(&got);
        kl_httpd_options o = {.listen = "127.0.0.1:0", .handler = serve, .arg = t};
        assert_ok(kl_httpd_start(&o, &t->h, &err), &err);
    }
}

static void streams_what_any_thread_writes(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "GET /ticks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    hear_all(fd, &got);
    assert_non_null(strstr(kl_buf_str(&got), "tick 0\n"));
    assert_non_null(strstr(kl_buf_str(&got), "tick 999\n"));
    assert_non_null(strstr(kl_buf_str(&got), "\r\n0\r\n"));
    close(fd);
    kl_buf_fini(&got);
}

static void wakes_a_waiting_stream_for_each_write_and_ends_it_on_close(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    kl_httpd_stream *s = wait_stream(t, 0);
    assert_true(hear(fd, &got, "\r\n\r\n"));
    for (int i = 0; i < 50; i++) {
        char line[32];
        int n = snprintf(line, sizeof line, "event-%d;", i);
        assert_true(kl_httpd_stream_write(s, line, (size_t)n));
        assert_true(hear(fd, &got, line)); /* so it was suspended before the next one */
    }
    assert_false(kl_httpd_stream_gone(s));
    t->n = 0;
    kl_httpd_stream_close(s);
    assert_true(hear(fd, &got, "\r\n0\r\n\r\n"));
    kl_buf_clear(&got);
    say(fd, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n"); /* the same connection carries another stream */
    s = wait_stream(t, 0);
    assert_true(kl_httpd_stream_write(s, "again", 5));
    assert_true(hear(fd, &got, "again"));
    close(fd);
    kl_buf_fini(&got);
}

static void notices_a_peer_that_hangs_up_while_nothing_is_sent(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    kl_httpd_stream *s = wait_stream(t, 0);
    assert_true(hear(fd, &got, "\r\n\r\n"));
    assert_true(kl_httpd_stream_write(s, "x", 1));
    assert_true(hear(fd, &got, "x\r\n"));
    close(fd);
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    kl_lock(&t->mu);
    while (!kl_httpd_stream_gone(s) && kl_clock_now(kl_clock_real()) < deadline)
        kl_cond_wait_until(&t->changed, &t->mu, kl_clock_now(kl_clock_real()) + KL_MILLISECONDS(5));
    kl_unlock(&t->mu);
    assert_true(kl_httpd_stream_gone(s));
    assert_false(kl_httpd_stream_write(s, "y", 1));
    kl_buf_fini(&got);
}

static void gives_up_a_peer_that_never_reads(void **state)
{
    server *t = *state;
    int fd = dial(t);
    say(fd, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    kl_httpd_stream *s = wait_stream(t, 0);
    char block[10000];
    memset(block, 'b', sizeof block);
    size_t written = 0;
    while (kl_httpd_stream_write(s, block, sizeof block)) {
        written += sizeof block;
        assert_true(kl_httpd_stream_queued(s) <= 4000000);
        assert_true(written < 1000000000);
    }
    assert_true(kl_httpd_stream_gone(s));
    assert_int_equal(kl_httpd_stream_queued(s), 0); /* nothing is kept for it */
    kl_buf got = KL_BUF_INIT;
    hear_all(fd, &got); /* and its connection has ended */
    kl_buf_fini(&got);
    close(fd);
}

static void answers_a_parked_request_from_another_thread(void **state)
{
    server *t = *state;
    kl_buf got = KL_BUF_INIT;
    int fd = dial(t);
    say(fd, "GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    kl_lock(&t->mu);
    while (!t->late && kl_cond_wait_until(&t->changed, &t->mu, deadline))
        ;
    kl_httpd_request *r = t->late;
    kl_unlock(&t->mu);
    assert_non_null(r);
    kl_httpd_reply(r, 200, "text/plain", NULL, "better late", 11);
    assert_true(hear(fd, &got, "better late"));
    close(fd);
    kl_buf_fini(&got);
}

static void stops_with_waiting_streams_busy_writers_and_owed_replies(void **state)
{
    server *t = *state;
    int fds[64];
    for (int i = 0; i < 64; i++) {
        fds[i] = dial(t);
        say(fds[i],
            i == 63       ? "GET /late HTTP/1.1\r\nHost: x\r\n\r\n"
                : i == 62 ? "GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"
                          : "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    wait_stream(t, 61);
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    kl_lock(&t->mu);
    while (!t->late && kl_cond_wait_until(&t->changed, &t->mu, deadline))
        ;
    kl_unlock(&t->mu);
    assert_non_null(t->late);
    kl_httpd_stop(t->h);
    t->h = NULL;
    for (size_t i = 0; i < t->n; i++) {
        assert_true(kl_httpd_stream_gone(t->streams[i]));
        assert_false(kl_httpd_stream_write(t->streams[i], "x", 1));
    }
    kl_httpd_reply(t->late, 200, NULL, NULL, "too late", 8); /* harmless: frees what the request held */
    for (int i = 0; i < 64; i++)
        close(fds[i]);
}

typedef struct storm {
    server *t;
    _Atomic bool stop;
    _Atomic size_t written;
} storm;

/* The daemon takes no answer any more when this one is given, and who gave it has let go of it. */
static void stops_during_an_answer_without_a_holder(void **state)
{
    for (int i = 0; i < 30; i++) {
        assert_int_equal(start(state), 0);
        server *t = *state;
        int fd = dial(t);
        say(fd, "GET /stopping HTTP/1.1\r\nHost: x\r\n\r\n");
        kl_lock(&t->mu);
        while (!t->begun)
            assert_true(kl_cond_wait_until(&t->changed, &t->mu, kl_clock_now(kl_clock_real()) + BOUND));
        kl_unlock(&t->mu);
        assert_int_equal(stop(state), 0);
        close(fd);
    }
}

static void write_to_all(void *arg)
{
    storm *w = arg;
    while (!atomic_load(&w->stop)) {
        kl_lock(&w->t->mu);
        size_t n = w->t->n;
        kl_unlock(&w->t->mu);
        for (size_t i = 0; i < n; i++)
            if (kl_httpd_stream_write(w->t->streams[i], "0123456789abcdef", 16))
                atomic_fetch_add(&w->written, 1);
    }
}

static void survives_peers_that_come_and_go_under_fire(void **state)
{
    server *t = *state;
    storm w = {.t = t};
    kl_thread *writers[2] = {
        kl_thread_start("fire-1", write_to_all, &w), kl_thread_start("fire-2", write_to_all, &w)};
    for (int round = 0; round < 30; round++) {
        int fds[8];
        kl_buf got = KL_BUF_INIT;
        for (int i = 0; i < 8; i++) {
            fds[i] = dial(t);
            say(fds[i], "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
        }
        wait_stream(t, (size_t)round * 8 + 7);
        assert_true(hear(fds[round % 8], &got, "0123456789abcdef"));
        for (int i = 0; i < 8; i++)
            close(fds[i]);
        kl_buf_fini(&got);
    }
    atomic_store(&w.stop, true);
    kl_thread_join(writers[0]);
    kl_thread_join(writers[1]);
    assert_true(atomic_load(&w.written) > 0);
}

static void says_why_it_cannot_listen(void **state)
{
    server *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_httpd *h = NULL;
    kl_httpd_options o = {.listen = "8080", .handler = serve, .arg = t};
    assert_fails(kl_httpd_start(&o, &h, &err), KL_EINVAL, &err, "cannot listen on \"8080\": write host:port");
    o.listen = "127.0.0.1:70000";
    assert_fails(kl_httpd_start(&o, &h, &err), KL_EINVAL, &err, "127.0.0.1:70000");
    o.listen = kl_httpd_address(t->h);
    assert_fails(kl_httpd_start(&o, &h, &err), KL_EIO, &err, "choose another port");
    o.listen = ":0";
    assert_ok(kl_httpd_start(&o, &h, &err), &err);
    assert_true(kl_httpd_port(h) > 0);
    assert_non_null(strstr(kl_httpd_address(h), "127.0.0.1:"));
    kl_httpd_stop(h);
    kl_httpd_stop(NULL);
}

static void the_names_of_this_machine_are_few(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool ours;
    } cases[] = {{"localhost", true}, {"localhost:80", true}, {"127.0.0.1", true}, {"127.9.8.7:80", true},
        {"[::1]", true}, {"[::1]:80", true}, {"", false}, {NULL, false}, {"localhosts", false},
        {"localhos:80", false}, {"elsewhere", false}, {"elsewhere:80", false}, {"127.", false},
        {"127.0.0.1.nip.io", false}, {"127x", false}, {"10.9.8.7", false}, {"[::2]", false}, {"[::1", false},
        {"[::1]x", false}, {"::1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kl_listen_loopback_name(cases[i].host) != cases[i].ours)
            fail_msg("%s", cases[i].host);
    assert_true(kl_listen_loopback("127.0.0.1:80") && kl_listen_loopback("unix:/run/x.sock"));
    assert_false(kl_listen_loopback(NULL) || kl_listen_loopback("0.0.0.0:80"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)
static void knows_hosts_that_no_page_of_a_stranger_has(void **state)
{
    (void)state;
    static const char *const own[] = {"localhost", "localhost:80", "127.0.0.1:8080", "10.0.0.7:8443", "[::1]",
        "[fd00::7]:80", "web.default.svc", "web.default.svc:8443", "web.default.SVC.cluster.local:80"},
                             *const strange[] = {"", ":80", "evil.example", "evil.example:8080",
                                 "10.0.0.7.evil.example", "127.evil.example", "localhost.evil.example",
                                 "web.default.svc.evil.example:80", "svc", ".svc.", "websvc"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!kl_listen_own_name(own[i]))
            fail_msg("%s is refused", own[i]);
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        if (kl_listen_own_name(strange[i]))
            fail_msg("\"%s\" is taken", strange[i]);
}

KL_TESTS(cmocka_unit_test(knows_hosts_that_no_page_of_a_stranger_has),
    CASE(the_names_of_this_machine_are_few), CASE(answers_with_what_was_asked),
    CASE(keeps_a_connection_for_the_next_request), CASE(sends_a_large_body_that_it_took),
    CASE(refuses_a_body_above_the_ceiling_announced_or_not), CASE(forgets_a_body_whose_sender_has_gone),
    CASE(hangs_up_on_a_request_that_does_not_come_on), CASE(hangs_up_on_a_request_that_comes_in_drops),
    CASE(hangs_up_on_who_does_not_read_its_answer), CASE(hangs_up_on_who_reads_its_answer_in_drops),
    CASE(gives_an_answer_time_by_its_length), CASE(takes_no_more_of_bodies_than_it_has_room_for),
    CASE(takes_no_body_where_none_is_wanted), CASE(refuses_a_path_that_would_be_cut),
    CASE(an_answer_that_was_given_leaves_before_the_end), CASE(streams_what_any_thread_writes),
    CASE(wakes_a_waiting_stream_for_each_write_and_ends_it_on_close),
    CASE(notices_a_peer_that_hangs_up_while_nothing_is_sent), CASE(gives_up_a_peer_that_never_reads),
    CASE(answers_a_parked_request_from_another_thread),
    CASE(stops_with_waiting_streams_busy_writers_and_owed_replies),
    CASE(survives_peers_that_come_and_go_under_fire),
    cmocka_unit_test(stops_during_an_answer_without_a_holder), CASE(says_why_it_cannot_listen))
