/* election_test.c - the requests, timers and callbacks of the election around the state machine that
 * leader_test tests.
 *
 * The server is one Lease in a variable; it answers when the spec says so. */
#include "support/test.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "election/election.h"

#define OPEN_MAX 8

typedef struct asked {
    kl_reply_fn *done;
    void *arg;
    kl_verb verb;
    const kl_value *body;
} asked;

typedef struct world {
    kl_clock *clock;
    kl_loop *loop;
    kl_metrics *metrics;
    kl_election *e;
    const kl_value *lease; /* what the server holds, or NULL */
    asked open[OPEN_MAX];  /* requests without an answer, oldest first */
    size_t n;
    int rv, requests, cancels;
    bool at_once; /* answers inside send */
    bool busy;    /* who works takes his time */
    kl_mutex mu;  /* of `said`, where the loop has a thread */
    kl_cond cond;
    kl_buf said; /* "+" we lead, "-" we do not */
} world;

static void answer_with(world *w, kl_status st)
{
    asked a = w->open[0];
    const kl_value *now = NULL;
    kl_err err = KL_ERR_INIT;
    assert_true(w->n > 0);
    memmove(w->open, w->open + 1, --w->n * sizeof *w->open);
    if (!st && a.verb == KL_GET && !w->lease)
        st = KL_ENOTFOUND;
    if (st) {
        st = kl_fail(&err, st, "as the spec says");
    } else if (a.verb != KL_GET) {
        char rv[16];
        snprintf(rv, sizeof rv, "%d", ++w->rv);
        const kl_value *v = kl_value_of_str(rv),
                       *meta = kl_value_with(kl_value_get(a.body, "metadata"), "resourceVersion", v);
        kl_value_unref(w->lease);
        w->lease = kl_value_with(a.body, "metadata", meta);
        kl_value_unref(meta);
        kl_value_unref(v);
    }
    now = st ? NULL : w->lease;
    a.done(a.arg, st, st ? 500 : 200, now, &err);
    kl_value_unref(a.body);
    kl_err_fini(&err);
}

static uint64_t send_op(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    world *w = arg;
    assert_true(w->n < OPEN_MAX);
    assert_string_equal(op->kind, "coordination.k8s.io/v1/Lease");
    assert_string_equal(op->ns, "ns");
    assert_true(op->timeout > 0);
    w->open[w->n++] = (asked){done, done_arg, op->verb, kl_value_ref(op->body)};
    w->requests++;
    if (w->at_once)
        answer_with(w, KL_OK);
    return (uint64_t)w->requests;
}

static void cancel_op(void *arg, uint64_t id)
{
    ((world *)arg)->cancels++;
    (void)id;
}

static void say(world *w, const char *text)
{
    kl_lock(&w->mu);
    kl_buf_puts(&w->said, text);
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

static void started(void *arg) { say(arg, "+"); }

/* "-", and those who work end at once unless the spec says that they take their time. */
static void stopped(void *arg)
{
    world *w = arg;
    say(w, "-");
    if (!w->busy)
        kl_election_joined(w->e);
}

static void ended(void *arg) { say(arg, "."); }

#define assert_said(w, text)                                                                                 \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(w)->said), text);                                                   \
        kl_buf_clear(&(w)->said);                                                                            \
    } while (0)

static void setup(world *w, kl_clock *clock)
{
    *w = (world){.clock = clock ? clock : kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000)),
        .metrics = kl_metrics_new()};
    w->loop = kl_loop_new("spec", w->clock);
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->cond);
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_election_new(&(kl_election_env){.loop = w->loop,
                                  .send = send_op,
                                  .cancel = cancel_op,
                                  .send_arg = w,
                                  .clock = w->clock,
                                  .metrics = w->metrics,
                                  .options = {.enabled = true, .name = "lease", .ns = "ns", .identity = "me"},
                                  .started = started,
                                  .stopped = stopped,
                                  .ended = ended,
                                  .arg = w},
                  &w->e, &err),
        &err);
}

static void fini(world *w)
{
    do { /* an attempt that failed may ask once more */
        while (w->n)
            answer_with(w, KL_ECANCELLED);
        kl_loop_step(w->loop);
    } while (w->n);
    kl_election_free(w->e);
    kl_loop_free(w->loop);
    kl_value_unref(w->lease);
    kl_metrics_free(w->metrics);
    kl_cond_fini(&w->cond);
    kl_mutex_fini(&w->mu);
    kl_buf_fini(&w->said);
}

static void teardown(world *w)
{
    fini(w);
    kl_clock_fake_free(w->clock);
}

/* Time passes second by second; the server answers everything unless it is silent. */
static void pass(world *w, int seconds, bool silent)
{
    for (int i = 0; i <= seconds; i++) {
        for (int k = 0; k < 8; k++) {
            kl_loop_step(w->loop);
            while (w->n && !silent)
                answer_with(w, KL_OK);
        }
        kl_loop_step(w->loop);
        if (i < seconds)
            kl_clock_advance(w->clock, KL_SECONDS(1));
    }
}

static kl_time deadline(world *w) { return atomic_load(&kl_election_tenure(w->e)->until); }
static const char *holder(world *w) { return kl_value_str_at(w->lease, "spec", "holderIdentity", NULL); }

static const char *metrics_text(world *w, kl_buf *b)
{
    kl_buf_clear(b);
    kl_metrics_write(w->metrics, b);
    return kl_buf_str(b);
}

static void a_missing_lease_is_created_and_kept(void **state)
{
    (void)state;
    world w;
    kl_buf text = KL_BUF_INIT;
    setup(&w, NULL);
    assert_non_null(strstr(metrics_text(&w, &text), "leader_election_master_status{name=\"lease\"} 0"));
    assert_int_equal(deadline(&w), 0);
    kl_election_start(w.e);
    pass(&w, 0, false);
    assert_said(&w, "+");
    assert_string_equal(holder(&w), "me");
    assert_true(kl_election_leading(w.e));
    assert_non_null(strstr(metrics_text(&w, &text), "leader_election_master_status{name=\"lease\"} 1"));
    kl_time first = deadline(&w);
    assert_true(first > kl_clock_boot(w.clock) && first <= kl_clock_boot(w.clock) + KL_SECONDS(15));
    pass(&w, 60, false);
    assert_said(&w, "");
    assert_true(deadline(&w) >= first + KL_SECONDS(50));
    kl_buf_fini(&text);
    teardown(&w);
}

static void a_leader_that_cannot_renew_stops_before_its_successor_and_campaigns_again(void **state)
{
    (void)state;
    world w;
    setup(&w, NULL);
    kl_election_start(w.e);
    pass(&w, 5, false);
    assert_said(&w, "+");
    kl_time until = deadline(&w);
    pass(&w, 16, true); /* the server is silent */
    assert_said(&w, "-");
    assert_true(kl_clock_boot(w.clock) >= until);
    assert_int_equal(deadline(&w), 0);
    assert_false(kl_election_leading(w.e));
    assert_true(w.cancels > 0);
    /* late answers change nothing by themselves; a new campaign does */
    pass(&w, 5, false);
    assert_said(&w, "+");
    teardown(&w);
}

static void a_foreign_lease_is_respected_until_it_has_been_silent_for_its_duration(void **state)
{
    (void)state;
    world w;
    setup(&w, NULL);
    kl_err err = KL_ERR_INIT;
    const char *text =
        "{\"apiVersion\":\"coordination.k8s.io/"
        "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"lease\",\"namespace\":\"ns\",\"resourceVersion\":"
        "\"5\"},"
        "\"spec\":{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":20,\"acquireTime\":\"2023-11-14T22:"
        "13:20.000000Z\",\"renewTime\":\"2023-11-14T22:13:20.000000Z\",\"leaseTransitions\":3}}";
    assert_ok(kl_value_decode(text, strlen(text), &w.lease, &err), &err);
    kl_election_start(w.e);
    pass(&w, 19, false);
    assert_said(&w, "");
    assert_string_equal(holder(&w), "other");
    pass(&w, 8, false);
    assert_said(&w, "+");
    assert_string_equal(holder(&w), "me");
    assert_int_equal(kl_value_int_at(w.lease, 0, "spec", "leaseTransitions", NULL), 4);
    teardown(&w);
}

static void keep_elected(void *arg, kl_log_level level, const char *message, const char *fields)
{
    (void)level;
    if (!strcmp(message, "leader elected"))
        kl_buf_printf(arg, "%s\n", fields);
}

/* A holder is a text of another program: it may not look like more fields of the log, or more lines. */
static void the_log_quotes_the_holder(void **state)
{
    (void)state;
    world w;
    kl_buf said = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    const char *text = "{\"metadata\":{\"name\":\"lease\",\"namespace\":\"ns\",\"resourceVersion\":\"5\"},"
                       "\"spec\":{\"holderIdentity\":\"a b=c\\n\\\"d\",\"leaseDurationSeconds\":20,"
                       "\"renewTime\":\"2023-11-14T22:13:20.000000Z\"}}";
    kl_log_set_sink(keep_elected, &said);
    setup(&w, NULL);
    assert_ok(kl_value_decode(text, strlen(text), &w.lease, &err), &err);
    kl_election_start(w.e);
    pass(&w, 5, false);
    kl_log_set_sink(NULL, NULL);
    assert_string_equal(kl_buf_str(&said), "lease=ns/lease holder=\"a b=c\\n\\\"d\"\n");
    kl_buf_fini(&said);
    teardown(&w);
}

static void a_deposed_leader_campaigns_again_after_its_workers_ended(void **state)
{
    (void)state;
    world w;
    setup(&w, NULL);
    w.busy = true;
    kl_election_start(w.e);
    pass(&w, 5, false);
    assert_said(&w, "+");
    assert_int_equal(atomic_load(&kl_election_tenure(w.e)->term), 1);
    pass(&w, 16, true);
    assert_said(&w, "-");
    int requests = w.requests;
    assert_true(kl_election_healthy(w.e, KL_SECONDS(20)));
    /* something runs and runs: whoever looks at our health may end us */
    pass(&w, 25, false);
    assert_int_equal(w.requests, requests);
    assert_said(&w, "");
    assert_false(kl_election_healthy(w.e, KL_SECONDS(20)));
    kl_election_joined(w.e);
    pass(&w, 0, false); /* released first, in case that nobody has it */
    assert_said(&w, "+");
    assert_int_equal(atomic_load(&kl_election_tenure(w.e)->term), 2);
    assert_true(kl_election_healthy(w.e, 0));
    teardown(&w);
}

/* The lease of somebody else, as a watch would bring it. */
static void foreign(world *w, const char *who, int seconds, int transitions)
{
    char text[512];
    kl_err err = KL_ERR_INIT;
    snprintf(text, sizeof text,
        "{\"apiVersion\":\"coordination.k8s.io/"
        "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"lease\",\"namespace\":\"ns\",\"resourceVersion\":"
        "\"%d\"},"
        "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%d,\"acquireTime\":\"2023-11-14T22:13:"
        "20.000000Z\",\"renewTime\":\"2023-11-14T22:13:20.000000Z\",\"leaseTransitions\":%d}}",
        ++w->rv, who, seconds, transitions);
    kl_value_unref(w->lease);
    assert_ok(kl_value_decode(text, strlen(text), &w->lease, &err), &err);
}

static void an_observed_release_is_taken_at_once(void **state)
{
    (void)state;
    world w;
    setup(&w, NULL);
    foreign(&w, "other", 20, 3);
    kl_election_start(w.e);
    pass(&w, 0, false);
    assert_said(&w, "");
    int requests = w.requests;
    kl_election_changed(w.e, w.lease);
    pass(&w, 0, false);
    assert_int_equal(w.requests, requests); /* nothing new */
    foreign(&w, "", 1, 3);
    kl_election_changed(w.e, w.lease);
    pass(&w, 0, false);
    assert_said(&w, "+");
    assert_int_equal(atomic_load(&kl_election_tenure(w.e)->epoch), 4);
    teardown(&w);
}

/* Asking every 2 to 4.4 s would find it up to 4.4 s late. */
static void a_lease_that_runs_out_is_taken_in_the_moment_when_it_does(void **state)
{
    (void)state;
    world w;
    setup(&w, NULL);
    foreign(&w, "other", 20, 3);
    kl_election_start(w.e);
    pass(&w, 0, false);
    foreign(&w, "other", 20, 4); /* it renewed */
    kl_clock_advance(w.clock, KL_MILLISECONDS(500));
    kl_election_changed(w.e, w.lease);
    pass(&w, 19, false);
    kl_clock_advance(w.clock, KL_MILLISECONDS(999));
    pass(&w, 0, false);
    assert_said(&w, "");
    kl_clock_advance(w.clock, KL_MILLISECONDS(1));
    pass(&w, 0, false);
    assert_said(&w, "+");
    teardown(&w);
}

static void options_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    kl_clock *clock = kl_clock_fake_new(0, 0);
    kl_loop *loop = kl_loop_new("spec", clock);
    kl_election *e = NULL;
    kl_err err = KL_ERR_INIT;
    assert_fails(kl_election_new(&(kl_election_env){.loop = loop,
                                     .send = send_op,
                                     .cancel = cancel_op,
                                     .clock = clock,
                                     .metrics = m,
                                     .options = {.enabled = true,
                                         .name = "lease",
                                         .ns = "ns",
                                         .identity = "me",
                                         .lease = KL_SECONDS(5),
                                         .renew = KL_SECONDS(10)}},
                     &e, &err),
        KL_EINVAL, &err, "renew");
    assert_null(e);
    kl_loop_free(loop);
    kl_clock_fake_free(clock);
    kl_metrics_free(m);
}

static void campaign(void *e) { kl_election_start(e); }
static void give_up(void *e) { kl_election_cancel(e); }

/* Giving the lease back waits for the answer, so here the loop has its thread, and the clock is the real
 * one. */
static void a_released_lease_has_no_holder_and_no_leader(void **state)
{
    (void)state;
    world w;
    setup(&w, kl_clock_real());
    w.at_once = true;
    kl_loop_start(w.loop);
    kl_loop_call(w.loop, campaign, w.e);
    kl_lock(&w.mu);
    while (!w.said.len)
        assert_true(kl_cond_wait_until(&w.cond, &w.mu, kl_clock_now(kl_clock_real()) + KL_SECONDS(20)));
    kl_unlock(&w.mu);
    kl_loop_call(w.loop, give_up, w.e);
    assert_true(kl_election_wait(w.e));
    assert_string_equal(holder(&w) ? holder(&w) : "", "");
    assert_int_equal(deadline(&w), 0);
    assert_said(&w, "+-.");
    fini(&w);
}

KL_TESTS(cmocka_unit_test(a_missing_lease_is_created_and_kept), cmocka_unit_test(the_log_quotes_the_holder),
    cmocka_unit_test(a_leader_that_cannot_renew_stops_before_its_successor_and_campaigns_again),
    cmocka_unit_test(a_foreign_lease_is_respected_until_it_has_been_silent_for_its_duration),
    cmocka_unit_test(a_deposed_leader_campaigns_again_after_its_workers_ended),
    cmocka_unit_test(an_observed_release_is_taken_at_once),
    cmocka_unit_test(a_lease_that_runs_out_is_taken_in_the_moment_when_it_does),
    cmocka_unit_test(options_that_contradict_each_other_are_refused),
    cmocka_unit_test(a_released_lease_has_no_holder_and_no_leader))
