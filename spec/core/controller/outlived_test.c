/* outlived_test.c - runs that go on when newer logic is there, and for how long they may. */
#include "core/run/worker_rig.h"
#include "run/run_impl.h"

static void rig_with(rig *r, kl_time timeout, kl_time deadline)
{
    rig_init(r, timeout, 0);
    r->w->o.reload_deadline = deadline;
}

static void runs_on_old_logic_are_ended_after_the_deadline_and_their_keys_run_on_the_new(void **state)
{
    (void)state;
    rig r;
    rig_with(&r, 0, KL_SECONDS(10));
    rig_add(&r, "ns/a", "gD");
    rig_add(&r, "ns/b", "gD");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1");
    kl_clock_advance(r.clock, KL_SECONDS(100)); /* as long as it is the newest */
    rig_round(&r);
    assert_said(&r, "");
    r.current = &r.gens[1];
    kl_time published = kl_clock_now(r.clock);
    assert_true(kl_worker_step(r.w) == published + KL_SECONDS(10));
    kl_clock_advance(r.clock, KL_SECONDS(4));
    rig_answer(&r, 1, KL_OK, "{\"name\":\"one\"}");
    rig_round(&r);
    assert_said(&r, "ok:one"); /* it came to its end in time */
    kl_clock_advance(r.clock, KL_SECONDS(6));
    rig_round(&r);
    assert_said(&r, "xns/b open2 close1 g2+ns/b#1");
    assert_true(r.sent[1].cancelled);
    assert_int_equal(r.gens[0].refs, 0);
    assert_non_null(strstr(kl_buf_str(&r.log),
        "a run on the old logic was ended; its key runs on the new one: controller=ctl key=ns/b"));
    assert_non_null(strstr(kl_buf_str(&r.log), "after=10s"));
    kl_buf text = KL_BUF_INIT;
    kl_metrics_write(r.metrics, &text);
    assert_non_null(strstr(kl_buf_str(&text), "kubelua_reload_ended_runs_total{controller=\"ctl\"} 1\n"));
    kl_buf_fini(&text);
    rig_fini(&r);
}

static void the_deadline_is_half_a_minute_or_the_timeout_where_that_is_longer(void **state)
{
    (void)state;
    static const struct {
        kl_time timeout, deadline, want;
    } cases[] = {
        {0, 0, KL_SECONDS(30)},
        {KL_SECONDS(5), 0, KL_SECONDS(5)}, /* the timeout comes first */
        {KL_SECONDS(600), 0, KL_SECONDS(600)},
        {KL_SECONDS(600), KL_SECONDS(3), KL_SECONDS(3)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r;
        rig_with(&r, cases[i].timeout, cases[i].deadline);
        rig_add(&r, "ns/a", "gD");
        rig_round(&r);
        r.current = &r.gens[1];
        assert_true(kl_worker_step(r.w) == kl_clock_now(r.clock) + cases[i].want);
        rig_fini(&r);
    }
}

static void without_a_deadline_runs_take_as_long_as_they_take(void **state)
{
    (void)state;
    rig r;
    rig_with(&r, 0, -1);
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    r.current = &r.gens[1];
    rig_round(&r);
    kl_clock_advance(r.clock, KL_SECONDS(100000));
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1");
    rig_fini(&r);
}

static void each_generation_has_its_own_deadline(void **state)
{
    (void)state;
    rig r;
    rig_with(&r, 0, KL_SECONDS(10));
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    r.current = &r.gens[1];
    rig_add(&r, "ns/b", "gD");
    rig_round(&r);
    kl_clock_advance(r.clock, KL_SECONDS(6));
    r.current = &r.gens[2];
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 open2 g2+ns/b#1");
    kl_clock_advance(r.clock, KL_SECONDS(4));
    rig_round(&r);
    assert_said(&r, "xns/a open3 close1 g3+ns/a#1");
    kl_clock_advance(r.clock, KL_SECONDS(6));
    rig_round(&r);
    assert_said(&r, "xns/b g3+ns/b#1 close2");
    rig_fini(&r);
}

static void a_worker_that_is_let_go_ends_them_too(void **state)
{
    (void)state;
    rig r;
    rig_with(&r, 0, KL_SECONDS(10));
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    r.current = &r.gens[1];
    kl_worker_drain(r.w);
    assert_true(kl_worker_step(r.w) == kl_clock_now(r.clock) + KL_SECONDS(10));
    kl_clock_advance(r.clock, KL_SECONDS(10));
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 xns/a");
    assert_true(kl_worker_idle(r.w));
    assert_string_equal(rig_state(&r, "ns/a"), "queued"); /* for others */
    rig_fini(&r);
}

KL_TESTS(cmocka_unit_test(runs_on_old_logic_are_ended_after_the_deadline_and_their_keys_run_on_the_new),
    cmocka_unit_test(the_deadline_is_half_a_minute_or_the_timeout_where_that_is_longer),
    cmocka_unit_test(without_a_deadline_runs_take_as_long_as_they_take),
    cmocka_unit_test(each_generation_has_its_own_deadline),
    cmocka_unit_test(a_worker_that_is_let_go_ends_them_too))

/* not in tsan: it starts no thread */
