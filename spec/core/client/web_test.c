/* web_test.c - requests of scripts to other servers: under a lease that is over no write leaves, whatever
 * lies between the question and the wire. */
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
    return peer_reply(fd, w->code, w->location, "{}");
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

static uint64_t ask(world *w, const char *method, const kl_value *order)
{
    kl_op op;
    kl_op_init(&op, KL_HTTP, "http");
    op.name = w->p.url;
    op.subresource = method;
    op.http = w->rules;
    op.body = order;
    op.mandate = kl_tenure_mandate(&w->tenure);
    kl_err_fini(&w->err);
    w->done = false;
    return kl_web_do(w->web, &op, on_reply, w);
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

static void what_is_under_way_can_be_cancelled(void **state)
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

KL_TESTS(cmocka_unit_test(a_write_leaves_while_its_lease_lasts_and_not_after),
    cmocka_unit_test(a_redirected_write_is_not_sent_on_when_its_lease_is_gone),
    cmocka_unit_test(what_is_under_way_can_be_cancelled))
