/* http_test.c - the HTTP client against a correct peer, and against a faulty one. */
#include "support/test.h"
#include <fcntl.h>
#include <sys/resource.h>
#include "core/http/peer.h"

#include "base/gzip.h"
#include "http/http.h"

/* What came of one request; waits have a bound. */
typedef struct outcome {
    kl_mutex mu;
    kl_cond ended;
    bool done;
    int heads, dones, code;
    bool sent;
    kl_status st;
    kl_buf body;
    kl_err err;
    char header[256];
    const char *want_header;
    kl_status refuse; /* on_data answers this */
    kl_http *http;
    uint64_t cancel_in_data;
    int permits;
    bool wants_lull;
    int lulls, data_since_lull; /* http thread, until done */
} outcome;

static void outcome_init(outcome *o)
{
    memset(o, 0, sizeof *o);
    kl_mutex_init(&o->mu);
    kl_cond_init(&o->ended);
}

static void outcome_fini(outcome *o)
{
    kl_err_fini(&o->err);
    kl_buf_fini(&o->body);
    kl_mutex_fini(&o->mu);
    kl_cond_fini(&o->ended);
}

static void on_head(void *arg, const kl_http_head *head)
{
    outcome *o = arg;
    o->heads++;
    const char *v = o->want_header ? head->header(head, o->want_header) : NULL;
    snprintf(o->header, sizeof o->header, "%s", v ? v : "(none)");
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    outcome *o = arg;
    kl_buf_add(&o->body, data, n);
    o->data_since_lull++;
    if (o->cancel_in_data)
        kl_http_cancel(o->http, o->cancel_in_data);
    return o->refuse ? kl_fail(err, o->refuse, "the test refuses") : KL_OK;
}

static void on_lull(void *arg)
{
    outcome *o = arg;
    kl_lock(&o->mu);
    o->lulls++;
    o->data_since_lull = 0;
    kl_cond_broadcast(&o->ended);
    kl_unlock(&o->mu);
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    outcome *o = arg;
    kl_lock(&o->mu);
    o->st = st;
    o->code = code;
    o->sent = sent;
    kl_err_move(&o->err, err);
    o->dones++;
    o->done = true;
    kl_cond_broadcast(&o->ended);
    kl_unlock(&o->mu);
}

static void outcome_wait(outcome *o)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    bool in_time = true;
    kl_lock(&o->mu);
    while (!o->done && in_time)
        in_time = kl_cond_wait_until(&o->ended, &o->mu, deadline);
    kl_unlock(&o->mu);
    assert_true(o->done);
}

static bool outcome_there(outcome *o)
{
    kl_lock(&o->mu);
    bool done = o->done;
    kl_unlock(&o->mu);
    return done;
}

static kl_http *http_new(void)
{
    kl_http *h;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_http_new(&(kl_http_options){.name = "test", .user_agent = "spec/1"}, &h, &err), &err);
    return h;
}

static uint64_t start(kl_http *h, kl_http_request r, outcome *o)
{
    r.on_head = on_head;
    r.on_data = on_data;
    r.on_done = on_done;
    r.on_lull = o->wants_lull ? on_lull : NULL;
    r.arg = o;
    if (!r.proxy)
        r.proxy = "";
    o->http = h;
    return kl_http_submit(h, &r);
}

static void fetch(kl_http *h, kl_http_request r, outcome *o)
{
    outcome_init(o);
    start(h, r, o);
    outcome_wait(o);
}

static char *url_of(const peer *p, const char *path)
{
    static char url[256];
    snprintf(url, sizeof url, "%s%s", p->url, path);
    return url;
}

/* --- peers -------------------------------------------------------------------------------- */

static bool echo(peer *p, int fd, const request *r)
{
    (void)p;
    return peer_send(fd, "HTTP/1.1 200 OK\r\nX-Method: %s\r\nX-Agent: %s\r\nContent-Length: %zu\r\n\r\n%s",
        r->method, peer_header(r, "user-agent"), r->body_len, r->body);
}

static bool hints_first(peer *p, int fd, const request *r)
{
    return peer_send(fd, "HTTP/1.1 103 Early Hints\r\nX-Method: early\r\nX-Hint: early\r\n\r\n")
        && echo(p, fd, r);
}

static bool silent(peer *p, int fd, const request *r)
{
    (void)fd;
    (void)r;
    while (!atomic_load(&p->stop)) {
        struct pollfd pf = {.fd = fd, .events = POLLIN};
        if (poll(&pf, 1, 50) > 0)
            return false; /* the client hung up */
    }
    return false;
}

static bool cut_in_body(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    return false;
}

static bool cut_in_chunks(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    return false;
}

static bool drips(peer *p, int fd, const request *r)
{
    (void)r;
    peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (!atomic_load(&p->stop) && peer_send(fd, "5\r\nhello\r\n")) {
        struct pollfd pf = {.fd = fd, .events = POLLIN};
        if (poll(&pf, 1, 5) > 0)
            return false;
    }
    return false;
}

/* A hundred megabytes of spaces, which gzip makes two hundred times smaller and more, to those who ask for
 * it. */
static bool inflates(peer *p, int fd, const request *r)
{
    (void)p;
    const size_t n = 100 << 20;
    if (!strstr(r->head, "gzip"))
        return peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
    char *spaces = kl_alloc(n);
    kl_buf packed = KL_BUF_INIT;
    memset(spaces, ' ', n);
    assert_int_equal(kl_gzip(spaces, n, &packed), KL_OK);
    kl_free(spaces);
    bool sent = peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                    packed.len)
        && peer_send_bytes(fd, packed.data, packed.len);
    kl_buf_fini(&packed);
    return sent;
}

static bool garbage(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    peer_send(fd, "SSH-2.0-OpenSSH_9.2\r\n");
    return false;
}

static bool once_then_cut(peer *p, int fd, const request *r) { return r->nth == 1 && echo(p, fd, r); }

static bool endless_headers(peer *p, int fd, const request *r)
{
    (void)r;
    peer_send(fd, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 5000 && !atomic_load(&p->stop); i++)
        if (!peer_send(
                fd, "X-%d: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n", i))
            return false;
    return false;
}

/* --- specs -------------------------------------------------------------------------------- */

static void brings_head_data_and_end(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, echo, NULL);
    kl_http *h = http_new();
    outcome_init(&o);
    o.want_header = "x-method";
    start(h,
        (kl_http_request){.method = "PATCH", .url = url_of(&p, "/a?b=c"), .body = "some body", .body_len = 9},
        &o);
    outcome_wait(&o);
    assert_int_equal(o.st, KL_OK);
    assert_int_equal(o.code, 200);
    assert_int_equal(o.heads, 1);
    assert_true(o.sent);
    assert_string_equal(o.header, "PATCH");
    assert_string_equal(kl_buf_str(&o.body), "some body");
    outcome_fini(&o);
    /* a write without a body */
    fetch(h, (kl_http_request){.method = "POST", .url = url_of(&p, "/")}, &o);
    assert_int_equal(o.st, KL_OK);
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

static void an_answer_ahead_of_the_answer_is_forgotten(void **state)
{
    (void)state;
    static const char *const headers[][2] = {{"x-method", "GET"}, {"x-hint", "(none)"}};
    peer p;
    peer_start(&p, hints_first, NULL);
    kl_http *h = http_new();
    for (size_t i = 0; i < 2; i++) {
        outcome o;
        outcome_init(&o);
        o.want_header = headers[i][0];
        start(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
        outcome_wait(&o);
        assert_int_equal(o.st, KL_OK);
        assert_int_equal(o.code, 200);
        assert_int_equal(o.heads, 1);
        assert_string_equal(o.header, headers[i][1]);
        outcome_fini(&o);
    }
    kl_http_free(h);
    peer_stop(&p);
}

static void keeps_its_connection(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, echo, NULL);
    kl_http *h = http_new();
    for (int i = 0; i < 20; i++) {
        fetch(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
        assert_int_equal(o.st, KL_OK);
        outcome_fini(&o);
    }
    assert_int_equal(atomic_load(&p.connections), 1);
    kl_http_free(h);
    peer_stop(&p);
}

static void names_the_server_that_refused_the_connection(void **state)
{
    (void)state;
    outcome o;
    char url[64], want[128];
    uint16_t port = peer_dead_port();
    snprintf(url, sizeof url, "http://127.0.0.1:%u/x", port);
    snprintf(want, sizeof want, "connection refused by 127.0.0.1:%u: is the API server up?", port);
    kl_http *h = http_new();
    fetch(h, (kl_http_request){.method = "GET", .url = url}, &o);
    assert_int_equal(o.st, KL_ECONNECT);
    assert_false(o.sent);
    assert_string_equal(kl_err_message(&o.err), want);
    outcome_fini(&o);
    kl_http_free(h);
}

static void reports_exhausted_descriptors(void **state)
{
    (void)state;
    enum { MOST = 256 };
    outcome o;
    int taken[MOST], n = 0;
    struct rlimit before, few = {MOST, MOST};
    kl_http *h = http_new();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < MOST && (taken[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    fetch(h, (kl_http_request){.method = "GET", .url = "http://127.0.0.1:1/x"}, &o);
    while (n)
        close(taken[--n]);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(o.st, KL_ECONNECT);
    assert_false(o.sent);
    assert_string_equal(kl_err_message(&o.err),
        "no connection to 127.0.0.1:1: this process has no file descriptors left, its limit is 256; raise it "
        "(ulimit -n, LimitNOFILE=)");
    outcome_fini(&o);
    kl_http_free(h);
}

static void names_the_host_that_does_not_resolve(void **state)
{
    (void)state;
    outcome o;
    kl_http *h = http_new();
    fetch(h, (kl_http_request){.method = "GET", .url = "http://no-such-host.invalid:6443/"}, &o);
    assert_int_equal(o.st, KL_ECONNECT);
    assert_false(o.sent);
    assert_non_null(strstr(kl_err_message(&o.err), "no-such-host.invalid:6443 does not resolve"));
    outcome_fini(&o);
    kl_http_free(h);
}

static void an_invalid_url_is_the_callers_mistake(void **state)
{
    (void)state;
    outcome o;
    kl_http *h = http_new();
    fetch(h, (kl_http_request){.method = "GET", .url = "ftp://h/x"}, &o);
    assert_int_equal(o.st, KL_EINVAL);
    outcome_fini(&o);
    fetch(h, (kl_http_request){.method = "GET", .url = "http://[::1"}, &o);
    assert_int_equal(o.st, KL_EINVAL);
    outcome_fini(&o);
    kl_http_free(h);
}

static void ends_at_the_total_timeout(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, silent, NULL);
    kl_http *h = http_new();
    fetch(h,
        (kl_http_request){.method = "GET", .url = url_of(&p, "/"), .total_timeout = KL_MILLISECONDS(600)},
        &o);
    assert_int_equal(o.st, KL_ETIMEOUT);
    assert_true(o.sent);
    assert_non_null(strstr(kl_err_message(&o.err), "within 0.6s"));
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

static void a_body_cut_short_is_an_early_end(void **state)
{
    (void)state;
    peer_answer *cuts[] = {cut_in_body, cut_in_chunks};
    for (int i = 0; i < 2; i++) {
        peer p;
        outcome o;
        peer_start(&p, cuts[i], NULL);
        kl_http *h = http_new();
        fetch(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
        assert_int_equal(o.st, KL_ECLOSED);
        assert_int_equal(o.code, 200);
        assert_int_equal(o.heads, 1);
        assert_true(o.body.len > 0);
        outcome_fini(&o);
        kl_http_free(h);
        peer_stop(&p);
    }
}

static void a_non_http_answer_is_an_error(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, garbage, NULL);
    kl_http *h = http_new();
    fetch(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    assert_int_equal(o.st, KL_ESERVER);
    assert_int_equal(o.heads, 0);
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

static void endless_headers_are_an_error(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, endless_headers, NULL);
    kl_http *h = http_new();
    fetch(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    assert_int_not_equal(o.st, KL_OK);
    assert_int_equal(o.heads, 0);
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

/* libcurl by itself sends again when a reused connection dies without an answer. A read may; a write may
 * not. */
static void a_write_is_never_sent_twice(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, once_then_cut, NULL);
    kl_http *h = http_new();
    fetch(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    assert_int_equal(o.st, KL_OK);
    outcome_fini(&o);
    fetch(h, (kl_http_request){.method = "POST", .url = url_of(&p, "/"), .body = "{}", .body_len = 2}, &o);
    assert_int_equal(o.st, KL_ECLOSED);
    assert_true(o.sent);
    assert_int_equal(atomic_load(&p.requests), 2);
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

/* Two pieces in one go, then silence: both are there before the lull, and the lull waits for nothing more. */
static bool two_pieces_then_silence(peer *p, int fd, const request *r)
{
    peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nthere\r\n");
    return silent(p, fd, r);
}

static void a_lull_comes_after_the_data_at_hand(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, two_pieces_then_silence, NULL);
    kl_http *h = http_new();
    outcome_init(&o);
    o.wants_lull = true;
    uint64_t id = start(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&o.mu);
    while (!o.lulls && kl_cond_wait_until(&o.ended, &o.mu, deadline))
        ;
    assert_int_equal(o.lulls, 1);
    assert_string_equal(kl_buf_str(&o.body), "hellothere");
    kl_unlock(&o.mu);
    kl_http_cancel(h, id);
    outcome_wait(&o);
    assert_int_equal(o.lulls, 1);
    outcome_fini(&o);
    peer_stop(&p);

    peer_start(&p, cut_in_chunks, NULL);
    outcome_init(&o);
    o.wants_lull = true;
    start(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    outcome_wait(&o);
    assert_int_equal(o.st, KL_ECLOSED);
    assert_int_equal(o.data_since_lull, 0); /* an end does not swallow it */
    assert_in_range(o.lulls, 1, 2);
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

static void on_data_may_end_the_transfer_with_its_own_error(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, drips, NULL);
    kl_http *h = http_new();
    outcome_init(&o);
    o.refuse = KL_ETOOBIG;
    start(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    outcome_wait(&o);
    assert_int_equal(o.st, KL_ETOOBIG);
    assert_string_equal(kl_err_message(&o.err), "the test refuses");
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

static kl_status no_permit(void *arg, kl_err *err)
{
    (void)arg;
    return kl_fail(err, KL_ENOTLEADER, "the test permits nothing");
}

static kl_status one_permit(void *arg, kl_err *err)
{
    outcome *o = arg;
    return o->permits++ ? no_permit(arg, err) : KL_OK;
}

static void a_request_without_permission_is_not_sent(void **state)
{
    (void)state;
    const kl_http_request requests[] = {
        {.method = "DELETE", .permit = no_permit},
        {.method = "POST", .body = "{}", .body_len = 2, .permit = no_permit},
        /* refused between the connection and its body */
        {.method = "POST", .body = "{}", .body_len = 2, .permit = one_permit},
    };
    peer p;
    outcome o;
    peer_start(&p, once_then_cut, NULL);
    kl_http *h = http_new();
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        kl_http_request r = requests[i];
        r.url = url_of(&p, "/");
        fetch(h, r, &o);
        assert_int_equal(o.st, KL_ENOTLEADER);
        assert_string_equal(kl_err_message(&o.err), "the test permits nothing");
        outcome_fini(&o);
    }
    assert_int_equal(atomic_load(&p.requests), 0);
    kl_http_free(h);
    peer_stop(&p);
}

static void a_cancelled_request_is_done_once(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, silent, NULL);
    kl_http *h = http_new();
    outcome_init(&o);
    uint64_t id = start(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o);
    assert_true(peer_wait_requests(&p, 1));
    kl_http_cancel(h, id);
    kl_http_cancel(h, id);
    kl_http_cancel(h, 12345);
    outcome_wait(&o);
    kl_http_cancel(h, id);
    kl_http_free(h);
    assert_int_equal(o.st, KL_ECANCELLED);
    assert_int_equal(o.dones, 1);
    outcome_fini(&o);
    peer_stop(&p);
}

typedef struct cancel_plan {
    kl_http *h;
    const char *url;
    outcome *o;
} cancel_plan;

static void start_and_cancel_at_data(void *arg)
{
    cancel_plan *c = arg;
    c->o->cancel_in_data = start(c->h, (kl_http_request){.method = "GET", .url = c->url}, c->o);
}

static void a_cancel_from_its_own_data_is_the_last_data(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, drips, NULL);
    kl_http *h = http_new();
    outcome_init(&o);
    kl_http_post(h, start_and_cancel_at_data, &(cancel_plan){h, url_of(&p, "/"), &o});
    outcome_wait(&o);
    assert_int_equal(o.st, KL_ECANCELLED);
    assert_string_equal(kl_buf_str(&o.body), "hello");
    outcome_fini(&o);
    kl_http_free(h);
    peer_stop(&p);
}

static void free_cancels_active_requests(void **state)
{
    (void)state;
    peer p;
    outcome o[5];
    peer_start(&p, silent, NULL);
    kl_http *h = http_new();
    for (int i = 0; i < 5; i++) {
        outcome_init(&o[i]);
        start(h, (kl_http_request){.method = "GET", .url = url_of(&p, "/")}, &o[i]);
    }
    assert_true(peer_wait_requests(&p, 3));
    kl_http_free(h);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(o[i].st, KL_ECANCELLED);
        assert_int_equal(o[i].dones, 1);
        outcome_fini(&o[i]);
    }
    peer_stop(&p);
}

typedef struct trace {
    kl_mutex mu;
    kl_cond changed;
    char text[64];
    kl_http *h;
} trace;
typedef struct mark {
    trace *t;
    char c;
} mark;

static void leave_mark(void *arg)
{
    mark *m = arg;
    kl_lock(&m->t->mu);
    size_t n = strlen(m->t->text);
    m->t->text[n] = m->c;
    m->t->text[n + 1] = '\0';
    kl_cond_broadcast(&m->t->changed);
    kl_unlock(&m->t->mu);
}

/* All at once, on the thread: none is due before the last is there. */
static void set_timers(void *arg)
{
    mark *m = arg; /* x, y, z */
    kl_http *h = m->t->h;
    assert_true(kl_http_on_thread(h));
    uint64_t victim = kl_http_timer(h, KL_MILLISECONDS(30), leave_mark, &m[0]);
    kl_http_timer(h, KL_MILLISECONDS(40), leave_mark, &m[2]);
    kl_http_timer(h, KL_MILLISECONDS(20), leave_mark, &m[1]);
    kl_http_timer_cancel(h, victim);
}

static void trace_wait(trace *t, size_t n)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    bool in_time = true;
    kl_lock(&t->mu);
    while (strlen(t->text) < n && in_time)
        in_time = kl_cond_wait_until(&t->changed, &t->mu, deadline);
    kl_unlock(&t->mu);
    assert_int_equal(strlen(t->text), n);
}

static void posts_run_in_order_and_timers_by_time(void **state)
{
    (void)state;
    kl_http *h = http_new();
    trace t = {.h = h};
    kl_mutex_init(&t.mu);
    kl_cond_init(&t.changed);
    assert_false(kl_http_on_thread(h));
    mark a = {&t, 'a'}, b = {&t, 'b'}, c = {&t, 'c'}, d = {&t, 'd'},
         xyz[] = {{&t, 'x'}, {&t, 'y'}, {&t, 'z'}};
    kl_http_post(h, leave_mark, &a);
    kl_http_post(h, leave_mark, &b);
    kl_http_post(h, leave_mark, &c);
    trace_wait(&t, 3);
    assert_string_equal(t.text, "abc");
    kl_http_timer(h, KL_MILLISECONDS(20), leave_mark, &d);
    trace_wait(&t, 4);
    kl_http_post(h, set_timers, xyz);
    trace_wait(&t, 6);
    assert_string_equal(t.text, "abcdyz");
    kl_http_timer(h, KL_NEVER, leave_mark, xyz); /* dropped by free */
    kl_http_free(h);
    assert_string_equal(t.text, "abcdyz");
    kl_cond_fini(&t.changed);
    kl_mutex_fini(&t.mu);
}

static void many_at_once(void **state)
{
    (void)state;
    enum { N = 40 };
    peer p;
    static outcome o[N];
    peer_start(&p, echo, NULL);
    kl_http *h = http_new();
    for (int i = 0; i < N; i++) {
        outcome_init(&o[i]);
        start(h,
            (kl_http_request){.method = "POST", .url = url_of(&p, "/"), .body = "0123456789", .body_len = 10},
            &o[i]);
    }
    for (int i = 0; i < N; i++) {
        outcome_wait(&o[i]);
        assert_int_equal(o[i].st, KL_OK);
        assert_string_equal(kl_buf_str(&o[i].body), "0123456789");
        outcome_fini(&o[i]);
    }
    kl_http_free(h);
    peer_stop(&p);
}

/* Whoever waits for another's connection is not lost when it does not come. The peer takes the line and
 * says no word of TLS. */
static void one_connects_and_the_others_wait(void **state)
{
    (void)state;
    enum { FIRST, NEXT, IMPATIENT, CANCELLED, LAST, N };
    peer p;
    outcome o[N];
    uint64_t id[N];
    char url[64];
    peer_start(&p, silent, NULL);
    snprintf(url, sizeof url, "https://127.0.0.1:%u/", p.port);
    kl_http *h = http_new();
    for (int i = 0; i < N; i++) {
        outcome_init(&o[i]);
        id[i] = start(h,
            (kl_http_request){
                .method = "GET", .url = url, .total_timeout = i == IMPATIENT ? KL_MILLISECONDS(100) : 0},
            &o[i]);
    }
    outcome_wait(&o[IMPATIENT]);
    assert_int_equal(o[IMPATIENT].st, KL_ETIMEOUT);
    assert_false(o[IMPATIENT].sent);
    kl_http_cancel(h, id[CANCELLED]);
    outcome_wait(&o[CANCELLED]);
    assert_int_equal(o[CANCELLED].st, KL_ECANCELLED);
    assert_true(peer_wait_connections(&p, 1));

    kl_http_cancel(h, id[FIRST]);
    outcome_wait(&o[FIRST]);
    assert_int_equal(o[FIRST].st, KL_ECANCELLED);
    assert_true(peer_wait_connections(&p, 2));
    assert_false(outcome_there(&o[NEXT]) || outcome_there(&o[LAST]));

    peer_stop(&p);
    outcome_wait(&o[NEXT]);
    outcome_wait(&o[LAST]);
    assert_int_equal(o[NEXT].st, KL_ECONNECT);
    assert_int_equal(o[LAST].st, KL_ECONNECT);
    assert_string_equal(kl_err_message(&o[LAST].err), kl_err_message(&o[NEXT].err));
    assert_int_equal(atomic_load(&p.connections), 2);
    for (int i = 0; i < N; i++) {
        assert_int_equal(o[i].dones, 1);
        outcome_fini(&o[i]);
    }
    kl_http_free(h);
}

static void gzip_that_inflates_without_measure_is_not_asked_for_again(void **state)
{
    (void)state;
    peer p;
    outcome o;
    peer_start(&p, inflates, NULL);
    kl_http *h = http_new();
    for (int round = 0; round < 2; round++) {
        fetch(h, (kl_http_request){.url = url_of(&p, "/"), .accept_gzip = true}, &o);
        if (!round) {
            assert_int_equal(o.st, KL_ECLOSED);
            assert_non_null(
                strstr(kl_err_message(&o.err), "sent gzip that inflates to more than 200 times its size"));
            assert_true(o.body.len <= 65 << 20);
        } else {
            assert_ok(o.st, &o.err);
            assert_string_equal(kl_buf_str(&o.body), "plain");
        }
        outcome_fini(&o);
    }
    kl_http_free(h);
    peer_stop(&p);
}

KL_TESTS(cmocka_unit_test(brings_head_data_and_end),
    cmocka_unit_test(gzip_that_inflates_without_measure_is_not_asked_for_again),
    cmocka_unit_test(an_answer_ahead_of_the_answer_is_forgotten), cmocka_unit_test(keeps_its_connection),
    cmocka_unit_test(names_the_server_that_refused_the_connection),
    cmocka_unit_test(reports_exhausted_descriptors), cmocka_unit_test(names_the_host_that_does_not_resolve),
    cmocka_unit_test(an_invalid_url_is_the_callers_mistake), cmocka_unit_test(ends_at_the_total_timeout),
    cmocka_unit_test(a_body_cut_short_is_an_early_end), cmocka_unit_test(a_non_http_answer_is_an_error),
    cmocka_unit_test(endless_headers_are_an_error), cmocka_unit_test(a_write_is_never_sent_twice),
    cmocka_unit_test(a_lull_comes_after_the_data_at_hand),
    cmocka_unit_test(on_data_may_end_the_transfer_with_its_own_error),
    cmocka_unit_test(a_request_without_permission_is_not_sent),
    cmocka_unit_test(a_cancelled_request_is_done_once),
    cmocka_unit_test(a_cancel_from_its_own_data_is_the_last_data),
    cmocka_unit_test(free_cancels_active_requests), cmocka_unit_test(posts_run_in_order_and_timers_by_time),
    cmocka_unit_test(many_at_once), cmocka_unit_test(one_connects_and_the_others_wait))
