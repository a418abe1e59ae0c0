/* web_test.c - requests of scripts to other servers: without a valid lease no write leaves, at whatever
 * point the lease ends; libcurl's options lead to no other server; the cost of an answer depends only on its
 * size. */
#include "support/test.h"
#include "core/http/peer.h"

#include "client/web.h"

typedef struct world {
    peer p;
    kl_clock *clock;
    kl_web *web;
    kl_tenure tenure, *ends; /* with the first request; or NULL */
    int code;
    char location[80];
    const char *more, *body; /* headers and body of the answer, or NULL */
    char *rules[2];
    kl_mutex mu;
    kl_cond cond;
    bool done;
    kl_status st;
    kl_err err;
} world;

static bool answer(peer *p, int fd, const request *r)
{
    world *w = p->arg;
    (void)r;
    if (w->ends)
        kl_tenure_end(w->ends);
    if (!w->code) { /* never */
        char byte;
        return recv(fd, &byte, 1, 0) > 0;
    }
    return peer_reply(fd, w->code, w->more ? w->more : w->location, w->body ? w->body : "{}");
}

static void setup(world *w)
{
    *w = (world){.clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000)), .code = 200};
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->cond);
    peer_start(&w->p, answer, w);
    w->web = kl_web_new(&(kl_web_options){.clock = w->clock});
    w->rules[0] = w->p.url;
    kl_tenure_begin(&w->tenure, 3, kl_clock_boot(w->clock) + KL_SECONDS(10));
}

static void teardown(world *w)
{
    kl_web_free(w->web);
    peer_stop(&w->p);
    kl_clock_fake_free(w->clock);
    kl_err_fini(&w->err);
    kl_mutex_fini(&w->mu);
    kl_cond_fini(&w->cond);
}

static void on_reply(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    world *w = arg;
    (void)code, (void)body;
    kl_lock(&w->mu);
    w->st = st;
    if (st)
        kl_err_move(&w->err, err);
    w->done = true;
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

static uint64_t ask_within(world *w, const char *method, const kl_value *order, kl_time timeout)
{
    kl_op op;
    kl_op_init(&op, KL_HTTP, "http");
    op.name = w->p.url;
    op.subresource = method;
    op.http = w->rules;
    op.body = order;
    op.mandate = kl_tenure_mandate(&w->tenure);
    op.timeout = timeout;
    kl_err_fini(&w->err);
    w->done = false;
    return kl_web_do(w->web, &op, on_reply, w);
}

static uint64_t ask(world *w, const char *method, const kl_value *order)
{
    return ask_within(w, method, order, 0);
}

static kl_status wait_for(world *w)
{
    kl_time until = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&w->mu);
    while (!w->done && kl_cond_wait_until(&w->cond, &w->mu, until))
        continue;
    bool done = w->done;
    kl_unlock(&w->mu);
    assert_true(done);
    return w->st;
}

#define NOT_SENT "it was not sent: this process does not hold the lease"

static void a_write_leaves_while_its_lease_lasts_and_not_after(void **state)
{
    (void)state;
    world w;
    setup(&w);
    ask(&w, "POST", NULL);
    assert_ok(wait_for(&w), &w.err);
    kl_clock_advance(w.clock, KL_SECONDS(10));
    ask(&w, "POST", NULL);
    assert_fails(wait_for(&w), KL_ENOTLEADER, &w.err, NOT_SENT);
    ask(&w, "GET", NULL); /* reads change nothing */
    assert_ok(wait_for(&w), &w.err);
    assert_int_equal(atomic_load(&w.p.requests), 2);
    teardown(&w);
}

static void a_redirected_write_is_not_sent_on_when_its_lease_is_gone(void **state)
{
    (void)state;
    world w;
    setup(&w);
    const kl_value *three = kl_value_of_int(3), *order = kl_value_with(NULL, "redirects", three);
    w.code = 307;
    w.ends = &w.tenure;
    snprintf(w.location, sizeof w.location, "Location: %s/next\r\n", w.p.url);
    ask(&w, "POST", order);
    assert_fails(wait_for(&w), KL_ENOTLEADER, &w.err, NOT_SENT);
    assert_int_equal(atomic_load(&w.p.requests), 1);
    kl_value_unref(order);
    kl_value_unref(three);
    teardown(&w);
}

static void active_requests_can_be_cancelled(void **state)
{
    (void)state;
    world w;
    setup(&w);
    w.code = 0;
    uint64_t id = ask(&w, "POST", NULL);
    assert_true(peer_wait_requests(&w.p, 1));
    kl_web_cancel(w.web, id);
    assert_int_equal(wait_for(&w), KL_ECANCELLED);
    teardown(&w);
}

static const kl_value *decode(const char *json)
{
    const kl_value *v = NULL;
    assert_int_equal(kl_value_decode(json, strlen(json), &v, NULL), KL_OK);
    return v;
}

static void a_name_for_the_certificate_leads_to_no_other_server(void **state)
{
    (void)state;
    world w;
    peer other;
    setup(&w);
    peer_start(&other, answer, &w);
    static const char *const forms[] = {"127.0.0.1:%u/?", "127.0.0.1:%u/#", "u@127.0.0.1:%u/?",
        "127.0.0.1:%u", "127.0.0.1:%u\\\\", "[::ffff:7f00:1]:%u/", "%%31%u", "a b%u", NULL};
    for (const char *const *f = forms; *f; f++) {
        char name[64], json[128];
        snprintf(name, sizeof name, *f, other.port); /* NOLINT(clang-diagnostic-format-nonliteral) */
        snprintf(json, sizeof json, "{\"tls\":{\"server_name\":\"%s\"}}", name);
        const kl_value *order = decode(json);
        ask(&w, "GET", order);
        assert_fails(wait_for(&w), KL_EINVAL, &w.err, "tls.server_name is the name of a server");
        kl_value_unref(order);
    }
    const kl_value *order = decode("{\"tls\":{\"server_name\":\"Dns.example.com\"}}");
    ask(&w, "GET", order);
    assert_ok(wait_for(&w), &w.err);
    kl_value_unref(order);
    assert_int_equal(atomic_load(&w.p.requests), 1);
    assert_int_equal(atomic_load(&other.connections), 0);
    teardown(&w);
    peer_stop(&other);
}

/* Quadratic, this took 31 s, and every controller's requests waited for it. */
static void many_headers_cost_what_their_number_says(void **state)
{
    (void)state;
    world w;
    kl_buf lines = KL_BUF_INIT;
    setup(&w);
    for (int i = 0; i < 30000; i++)
        kl_buf_puts(&lines, "a:1\r\n");
    w.more = kl_buf_str(&lines);
    ask(&w, "GET", NULL);
    assert_ok(wait_for(&w), &w.err);
    teardown(&w);
    kl_buf_fini(&lines);
}

static void an_echoed_header_is_hidden_even_in_a_cut_message(void **state)
{
    (void)state;
    world w;
    char body[400];
    setup(&w);
    const kl_value *order = decode("{\"headers\":{\"X-Key\":[\"first-1234\",\"Bearer sesame-4242-end\"]}}");
    w.code = 401;
    w.body = body;
    for (int at = 280; at < 305; at++) {
        memset(body, 'x', sizeof body);
        snprintf(body + at, sizeof body - (size_t)at, "sesame-4242-end");
        ask(&w, "GET", order);
        assert_fails(wait_for(&w), KL_EAUTH, &w.err, "the answer is 401: xxx");
        assert_null(strstr(kl_err_message(&w.err), "xs"));
    }
    kl_value_unref(order);
    teardown(&w);
}

static void an_unreachable_timeout_is_no_timeout(void **state)
{
    (void)state;
    world w;
    setup(&w);
    ask_within(&w, "GET", NULL, INT64_MAX);
    assert_ok(wait_for(&w), &w.err);
    teardown(&w);
}

/* An isolated process says the whole order. */
static void an_order_whose_headers_are_a_list_is_refused(void **state)
{
    (void)state;
    world w;
    setup(&w);
    const kl_value *order = decode("{\"headers\":[\"X-Key\"]}");
    ask(&w, "GET", order);
    assert_fails(wait_for(&w), KL_EINVAL, &w.err, "a header needs a name");
    assert_int_equal(atomic_load(&w.p.requests), 0);
    kl_value_unref(order);
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(a_write_leaves_while_its_lease_lasts_and_not_after),
    cmocka_unit_test(a_redirected_write_is_not_sent_on_when_its_lease_is_gone),
    cmocka_unit_test(active_requests_can_be_cancelled),
    cmocka_unit_test(a_name_for_the_certificate_leads_to_no_other_server),
    cmocka_unit_test(an_order_whose_headers_are_a_list_is_refused),
    cmocka_unit_test(an_unreachable_timeout_is_no_timeout),
    cmocka_unit_test(many_headers_cost_what_their_number_says),
    cmocka_unit_test(an_echoed_header_is_hidden_even_in_a_cut_message))
