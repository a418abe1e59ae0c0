/* outlived_test.c - runs that continue after newer logic took over, and their time limit. */
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
        "a run on the old logic was ended; its key runs again on the new logic: controller=ctl key=ns/b"));
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

/* A run that can only block: what it waits for never comes. Then it waits for being abandoned. */
static kl_run_state block_for_good(void *state, kl_run *run)
{
    rig *r = ((rig_gen *)state)->rig;
    kl_err err = KL_ERR_INIT;
    kl_op op;
    const kl_value *body = NULL;
    kl_op_init(&op, KL_CREATE, "v1/ConfigMap");
    rig_say(r, "g%d+%s", kl_run_generation(run), kl_run_key(run));
    kl_clock_advance(r->clock, KL_SECONDS(10));
    const char *why = "the run was ended while it waited for ";
    assert_fails(kl_run_call_wait(run, &op, &body, &err), KL_ECANCELLED, &err, why);
    assert_int_equal(kl_run_over(run), KL_OVER_STOP);
    assert_true(r->sent[0].cancelled);
    assert_fails(kl_run_resolve_wait(run, "example.com/v1/Thing", &err), KL_ECANCELLED, &err, why);
    assert_fails(kl_run_sleep_wait(run, KL_NEVER, &err), KL_ECANCELLED, &err, why);
    kl_err_fini(&err);
    return KL_RUN_WAITING;
}

static void forget_user(void *state, kl_run *run)
{
    rig_say(((rig_gen *)state)->rig, "x%s", kl_run_key(run));
}

static kl_run_state publish_and_block(void *state, kl_run *run)
{
    rig *r = ((rig_gen *)state)->rig;
    r->current = &r->gens[1];
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_run_sleep_wait(run, 1, &err), &err); /* its time begins when the new one is seen */
    return block_for_good(state, run);
}

static kl_run_state abort_and_block(void *state, kl_run *run)
{
    rig *r = ((rig_gen *)state)->rig;
    kl_worker_drain(r->w);
    kl_worker_abort(r->w);
    return block_for_good(state, run);
}

static void a_run_that_blocks_its_worker_is_ended_likewise(void **state)
{
    (void)state;
    rig r;
    rig_with(&r, 0, KL_SECONDS(10));
    kl_program_ops ops = rig_ops;
    ops.start = publish_and_block;
    ops.abandon = forget_user;
    r.gens[0].program.ops = &ops;
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a ?example.com/v1/Thing xns/a open2 close1 g2+ns/a#1");
    rig_answer(&r, 1, KL_OK, NULL); /* too late, and no harm */
    r.resolving(r.resolving_arg, KL_OK, NULL, NULL);
    rig_round(&r);
    assert_said(&r, "");
    rig_fini(&r);
}

static void so_it_is_when_its_worker_ends(void **state)
{
    (void)state;
    rig r;
    rig_with(&r, 0, -1);
    kl_program_ops ops = rig_ops;
    ops.start = abort_and_block;
    ops.abandon = forget_user;
    r.gens[0].program.ops = &ops;
    rig_add(&r, "ns/a", "");
    rig_round(&r);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a ?example.com/v1/Thing xns/a");
    assert_string_equal(rig_state(&r, "ns/a"), "queued");
    r.resolving(r.resolving_arg, KL_OK, NULL, NULL);
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
    cmocka_unit_test(a_worker_that_is_let_go_ends_them_too),
    cmocka_unit_test(a_run_that_blocks_its_worker_is_ended_likewise),
    cmocka_unit_test(so_it_is_when_its_worker_ends))

/* not in tsan: it starts no thread */
