/* worker_test.c - rounds of a worker, step by step: no thread, no socket, no sleep. */
#include "core/run/worker_rig.h"

static void a_key_runs_once_and_is_done(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "D");
    rig_add(&r, "cluster-wide", "D");
    assert_int_equal(rig_round(&r), -1);
    assert_said(&r, "open1 g1+ns/a#1 g1+cluster-wide#1");
    assert_string_equal(rig_state(&r, "ns/a"), "absent");
    assert_true(kl_worker_idle(r.w));
    assert_int_equal(rig_round(&r), -1);
    assert_said(&r, "");
    assert_int_equal(kl_metrics_runs(kl_metrics_controller(r.metrics, "ctl", 1)), 2);
    rig_fini(&r);
}

static void a_state_rests_between_keys_and_longer_when_no_key_is_ready(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "D");
    rig_add(&r, "ns/b", "cD");
    rig_round(&r);
    assert_int_equal(r.rests, 2); /* one that waits is no reason not to */
    assert_int_equal(r.idle_rests, 1);
    /* there is something to do: each round does a part, and looks around */
    r.rest_left = 3;
    kl_time now = kl_clock_now(r.clock);
    for (int i = 0; i < 3; i++)
        assert_int_equal(kl_worker_step(r.w), now);
    assert_true(kl_worker_step(r.w) > now);
    assert_int_equal(r.idle_rests, 5);
    assert_int_equal(r.rests, 2);
    rig_fini(&r);
}

static void other_keys_run_while_one_waits_for_its_answer(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "cgD");
    rig_add(&r, "ns/b", "D");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1");
    assert_int_equal(kl_worker_inflight(r.w), 1);
    assert_string_equal(rig_state(&r, "ns/a"), "running");
    rig_answer(&r, 1, KL_OK, "{\"name\":\"made\"}");
    rig_round(&r);
    rig_answer(&r, 2, KL_ENOTFOUND, NULL);
    rig_round(&r);
    assert_said(&r, "ok:made err:not_found");
    assert_string_equal(rig_state(&r, "ns/a"), "absent");
    rig_fini(&r);
}

/* An object that changes whenever it is looked at: whoever waits on the same worker is answered all the same.
 */
static void a_key_that_returns_at_once_delays_no_answer(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "cD");
    rig_add(&r, "ns/b", "o");
    assert_int_equal(rig_round(&r), 0);
    rig_answer(&r, 1, KL_OK, "{\"name\":\"made\"}");
    assert_int_equal(rig_round(&r), 0);
    assert_string_equal(rig_state(&r, "ns/a"), "absent");
    kl_worker_drain(r.w);
    rig_fini(&r);
}

static void a_request_carries_the_controller_and_the_namespace_of_the_key(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "cD");
    rig_add(&r, "node", "gD");
    rig_round(&r);
    assert_string_equal(r.sent[0].text, "create v1/ConfigMap ns by ctl");
    assert_string_equal(r.sent[1].text, "get v1/Secret - by ctl");
    rig_fini(&r);
}

static void an_answer_that_comes_at_once_is_taken_in_the_next_round(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    r.at_once = true;
    rig_add(&r, "ns/a", "cD");
    assert_int_equal(rig_round(&r), 0); /* there is more to do: come back at once */
    assert_int_equal(rig_round(&r), -1);
    assert_said(&r, "open1 g1+ns/a#1 ok");
    rig_fini(&r);
}

/* As in a dry run that writes in a loop. */
static void a_run_whose_calls_are_answered_at_once_holds_up_neither_others_nor_its_timeout(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, KL_SECONDS(2), 0);
    r.at_once = true;
    rig_add(&r, "ns/a", "ggggggggggD");
    assert_int_equal(rig_round(&r), 0);
    assert_int_equal(rig_round(&r), 0);
    assert_said(&r, "open1 g1+ns/a#1 ok");
    rig_add(&r, "ns/b", "D");
    assert_int_equal(rig_round(&r), 0);
    assert_said(&r, "ok g1+ns/b#1");
    rig_advance(&r, KL_SECONDS(2));
    rig_round(&r);
    assert_said(&r, "ok xns/a");
    rig_fini(&r);
}

static void a_sleeper_wakes_at_its_time_and_not_before(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "zzD");
    assert_int_equal(rig_round(&r), 5);
    assert_said(&r, "open1 g1+ns/a#1");
    rig_advance(&r, KL_SECONDS(5) - 1);
    rig_round(&r);
    assert_said(&r, "");
    rig_advance(&r, 1);
    assert_int_equal(rig_round(&r), 5);
    assert_said(&r, "ok");
    rig_advance(&r, KL_SECONDS(5));
    assert_int_equal(rig_round(&r), -1);
    assert_said(&r, "ok");
    rig_fini(&r);
}

static void a_kind_is_resolved_and_known_afterwards(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "kkE");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 ?example.com/v1/Thing");
    r.resolving(r.resolving_arg, KL_OK, &r.resource, NULL);
    rig_round(&r);
    assert_said(&r, "ok ?example.com/v1/Thing");
    kl_err err = KL_ERR_INIT;
    r.resolving(r.resolving_arg, kl_fail(&err, KL_ENOTFOUND, "the server has no such kind"), NULL, &err);
    kl_err_fini(&err);
    rig_round(&r);
    assert_said(&r, "err:not_found");
    rig_fini(&r);
}

/* What becomes of the key after each kind of result. */
static void the_queue_follows_the_result(void **state)
{
    (void)state;
    static const struct {
        const char *word, *then;
        int attempt;
    } cases[] = {
        {"D", "absent", 1},
        {"A", "waiting 30 s", 1},
        {"R", "waiting 7 s", 1},
        {"C", "waiting 1 s", 2},
        {"E", "waiting 1 s", 2},
        {"F", "absent", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r;
        rig_init(&r, 0, 0);
        rig_add(&r, "ns/a", cases[i].word);
        rig_round(&r);
        assert_string_equal(rig_state(&r, "ns/a"), cases[i].then);
        assert_int_equal(kl_workqueue_requeues(r.queue, "ns/a") + 1, cases[i].attempt);
        rig_fini(&r);
    }
}

/* Else a script could have a core for itself. */
static void a_key_that_wants_to_come_back_at_once_waits_all_the_same(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "0");
    rig_round(&r);
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_advance(&r, KL_SECONDS(1));
    rig_round(&r);
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 2 s");
    rig_add(&r, "ns/b", "a");
    rig_round(&r);
    kl_time due = 0;
    assert_string_equal(kl_workqueue_state(r.queue, "ns/b", &due), "waiting");
    assert_int_equal(due - kl_clock_now(r.clock), KL_MILLISECONDS(5));
    rig_fini(&r);
}

static void failures_back_off_and_success_forgets_them(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "E");
    rig_round(&r);
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_advance(&r, KL_SECONDS(1));
    assert_int_equal(rig_round(&r), 2);
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 2 s");
    kl_map_set(r.behaviour, "ns/a", "A");
    rig_advance(&r, KL_SECONDS(2));
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/a#2 g1+ns/a#3");
    kl_map_set(r.behaviour, "ns/a", "E");
    rig_advance(&r, KL_SECONDS(30));
    rig_round(&r);
    assert_said(&r, "g1+ns/a#1");
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_fini(&r);
}

static void an_expected_wait_leaves_the_backoff_as_it_is(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "E");
    rig_round(&r);
    kl_map_set(r.behaviour, "ns/a", "R");
    rig_advance(&r, KL_SECONDS(1));
    rig_round(&r);
    assert_int_equal(kl_workqueue_requeues(r.queue, "ns/a"), 1);
    assert_int_equal(kl_metrics_errors(kl_metrics_controller(r.metrics, "ctl", 1)), 1);
    rig_fini(&r);
}

static void an_error_is_logged_with_key_and_traceback_and_a_conflict_is_quiet(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "C");
    rig_round(&r);
    assert_string_equal(kl_buf_str(&r.log), "");
    assert_int_equal(kl_metrics_errors(kl_metrics_controller(r.metrics, "ctl", 1)), 0);
    rig_add(&r, "ns/b", "E");
    rig_round(&r);
    const char *log = kl_buf_str(&r.log);
    assert_non_null(strstr(log, "reconcile failed"));
    assert_non_null(strstr(log, "key=ns/b attempt=1 retry_in=1s"));
    assert_non_null(strstr(log, "boom"));
    assert_non_null(strstr(log, "x.lua:7"));
    assert_int_equal(kl_metrics_errors(kl_metrics_controller(r.metrics, "ctl", 1)), 1);
    rig_fini(&r);
}

static void a_failure_for_good_waits_for_the_object_to_change(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "F");
    assert_int_equal(rig_round(&r), -1);
    assert_non_null(strstr(kl_buf_str(&r.log), "waiting for the object to change"));
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/a#1");
    rig_fini(&r);
}

static void a_program_that_ends_without_a_result_has_failed(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", ".");
    rig_round(&r);
    assert_non_null(strstr(kl_buf_str(&r.log), "without a result"));
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_fini(&r);
}

static void a_key_that_changes_while_it_runs_runs_again(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    rig_add(&r, "ns/a", "D");
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1"); /* one key is never in two runs */
    assert_string_equal(rig_state(&r, "ns/a"), "running, queued again");
    rig_answer(&r, 1, KL_OK, NULL);
    rig_round(&r);
    assert_said(&r, "ok g1+ns/a#1");
    rig_fini(&r);
}

static void an_object_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "E");
    rig_round(&r);
    rig_object_free(kl_map_take(r.objects, "ns/a"));
    rig_advance(&r, KL_SECONDS(1));
    assert_int_equal(rig_round(&r), -1);
    assert_said(&r, "open1 g1+ns/a#1");
    assert_int_equal(kl_workqueue_requeues(r.queue, "ns/a"), 0);
    assert_string_equal(rig_state(&r, "ns/a"), "absent");
    rig_fini(&r);
}

static void only_so_many_keys_are_in_flight(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 2);
    rig_add(&r, "ns/a", "gD");
    rig_add(&r, "ns/b", "gD");
    rig_add(&r, "ns/c", "gD");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1");
    assert_string_equal(rig_state(&r, "ns/c"), "queued");
    rig_answer(&r, 2, KL_OK, NULL);
    rig_round(&r);
    assert_said(&r, "ok g1+ns/c#1");
    rig_fini(&r);
}

/* --- time runs out ------------------------------------------------------------------------ */

static void a_run_that_takes_too_long_is_abandoned_and_tried_again(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, KL_SECONDS(2), 0);
    rig_add(&r, "ns/a", "cD");
    assert_int_equal(rig_round(&r), 2);
    rig_advance(&r, KL_SECONDS(2));
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 xns/a");
    assert_true(r.sent[0].cancelled);
    assert_non_null(
        strstr(kl_buf_str(&r.log), "timed out after 2s while waiting for create: raise `timeout`"));
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_answer(&r, 1, KL_OK, "{\"name\":\"late\"}"); /* nobody is there to hear it */
    rig_round(&r);
    assert_said(&r, "");
    rig_advance(&r, KL_SECONDS(1));
    rig_round(&r);
    assert_said(&r, "g1+ns/a#2");
    rig_fini(&r);
}

static void a_late_answer_does_not_reach_the_next_run_of_the_key(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, KL_SECONDS(2), 0);
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    rig_advance(&r, KL_SECONDS(2));
    rig_round(&r);
    rig_advance(&r, KL_SECONDS(1));
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 xns/a g1+ns/a#2");
    rig_answer(&r, 1, KL_OK, "{\"name\":\"of the first run\"}");
    rig_round(&r);
    assert_said(&r, "");
    rig_answer(&r, 2, KL_OK, "{\"name\":\"second\"}");
    rig_round(&r);
    assert_said(&r, "ok:second");
    rig_fini(&r);
}

static void a_timeout_ends_a_sleep_too_but_not_a_run_that_is_over(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, KL_SECONDS(2), 0);
    rig_add(&r, "ns/a", "zD");
    rig_add(&r, "ns/b", "D");
    assert_int_equal(rig_round(&r), 2);
    rig_advance(&r, KL_SECONDS(10)); /* both are due; the deadline was first */
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1 xns/a");
    assert_non_null(strstr(kl_buf_str(&r.log), "waiting for sleep"));
    assert_null(strstr(kl_buf_str(&r.log), "ns/b"));
    rig_fini(&r);
}

/* --- generations -------------------------------------------------------------------------- */

static void a_new_generation_takes_new_keys_and_the_old_one_finishes_its_own(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "ggD");
    rig_round(&r);
    r.current = &r.gens[1];
    rig_add(&r, "ns/b", "D");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 open2 g2+ns/b#1");
    rig_answer(&r, 1, KL_OK, "{\"name\":\"one\"}");
    rig_round(&r);
    assert_said(&r, "ok:one");
    rig_answer(&r, 2, KL_OK, "{\"name\":\"two\"}");
    rig_round(&r);
    assert_said(&r, "ok:two close1");
    assert_int_equal(r.gens[0].refs, 0);
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    assert_said(&r, "g2+ns/a#1");
    rig_fini(&r);
}

static void a_state_is_there_for_keys_only(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_round(&r);
    assert_said(&r, ""); /* nobody asked for it */
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1");
    rig_round(&r);
    assert_said(&r, ""); /* it stays for the next one */
    r.current = &r.gens[1];
    rig_round(&r);
    assert_said(&r, "close1"); /* of no use any more; the new one can wait */
    assert_int_equal(r.gens[0].refs, 0);
    rig_add(&r, "ns/b", "gD");
    rig_round(&r);
    r.current = &r.gens[2];
    rig_round(&r);
    assert_said(&r, "open2 g2+ns/b#1"); /* a run is under way on it */
    rig_answer(&r, 1, KL_OK, "{\"name\":\"one\"}");
    rig_round(&r);
    assert_said(&r, "ok:one close2");
    rig_fini(&r);
}

static void a_key_that_a_generation_enqueued_runs_on_it_even_in_the_middle_of_a_round(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/z", "D");
    rig_round(&r);
    rig_add(&r, "ns/a", "P");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/z#1 g1+ns/a#1 open2 close1 g2+ns/z#1");
    r.gens[2].broken = true;
    rig_add(&r, "ns/a", "P");
    rig_round(&r); /* the third cannot be opened: its key is put back */
    assert_said(&r, "g2+ns/a#1 broken3");
    r.gens[2].broken = false;
    rig_advance(&r, KL_SECONDS(1));
    rig_round(&r);
    assert_said(&r, "open3 close2 g3+ns/z#1");
    rig_fini(&r);
}

static void three_generations_can_be_under_way(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    for (int i = 0; i < 3; i++) {
        char key[8];
        snprintf(key, sizeof key, "ns/%d", i);
        r.current = &r.gens[i];
        rig_add(&r, key, "gD");
        rig_round(&r);
    }
    assert_said(&r, "open1 g1+ns/0#1 open2 g2+ns/1#1 open3 g3+ns/2#1");
    rig_answer(&r, 2, KL_OK, NULL);
    rig_round(&r);
    assert_said(&r, "ok close2");
    rig_answer(&r, 3, KL_OK, NULL);
    rig_round(&r);
    rig_answer(&r, 1, KL_OK, NULL);
    rig_round(&r);
    assert_said(&r, "ok ok close1");
    rig_fini(&r);
}

static void a_generation_that_cannot_be_opened_is_tried_again_and_loses_no_key(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    r.current = &r.gens[1];
    r.gens[1].broken = true;
    rig_add(&r, "ns/b", "D");
    assert_int_equal(rig_round(&r), 1);
    assert_non_null(strstr(kl_buf_str(&r.log), "cannot open the script on this worker"));
    rig_answer(&r, 1, KL_OK, NULL); /* what runs on the old one goes on */
    assert_int_equal(rig_round(&r), 1);
    assert_said(&r, "open1 g1+ns/a#1 broken2 ok");
    r.gens[1].broken = false;
    rig_advance(&r, KL_SECONDS(1));
    rig_round(&r);
    assert_said(&r, "open2 close1 g2+ns/b#1");
    rig_fini(&r);
}

/* --- the end ------------------------------------------------------------------------------ */

static void draining_finishes_runs_and_takes_no_new_keys(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "gD");
    rig_round(&r);
    kl_worker_drain(r.w);
    rig_add(&r, "ns/b", "D");
    assert_int_equal(rig_round(&r), -1);
    assert_string_equal(rig_state(&r, "ns/b"), "queued");
    rig_answer(&r, 1, KL_OK, NULL);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 ok");
    assert_true(kl_worker_idle(r.w));
    rig_fini(&r);
}

static void aborting_abandons_runs_and_requeues_their_keys(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "cD");
    rig_add(&r, "ns/b", "zD");
    rig_round(&r);
    kl_worker_drain(r.w);
    kl_worker_abort(r.w);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1 xns/a xns/b");
    assert_true(r.sent[0].cancelled);
    assert_string_equal(rig_state(&r, "ns/a"), "queued");
    assert_string_equal(rig_state(&r, "ns/b"), "queued");
    assert_int_equal(kl_worker_inflight(r.w), 0);
    rig_fini(&r);
}

/* --- the door ----------------------------------------------------------------------------- */

static void writes_after_the_deadline_are_rejected_and_reads_pass(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_tenure_extend(&r.tenure, kl_clock_boot(r.clock) + KL_SECONDS(5));
    rig_add(&r, "ns/a", "cD");
    rig_add(&r, "ns/b", "zcgE");
    rig_round(&r);
    assert_int_equal(r.n_sent, 1);
    rig_advance(&r, KL_SECONDS(5));
    rig_round(&r);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1 ok err:not_leader");
    assert_int_equal(r.n_sent, 2);
    assert_string_equal(r.sent[1].text, "get v1/Secret ns by ctl");
    assert_int_equal(kl_door_writes(r.door), 1);
    assert_int_equal(kl_door_refused(r.door), 1);
    rig_fini(&r);
}

static void requests_to_other_servers_are_checked_as_well(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_tenure_extend(&r.tenure, kl_clock_boot(r.clock) + KL_SECONDS(5));
    rig_add(&r, "ns/a", "zhD");
    rig_add(&r, "ns/b", "zHD");
    rig_round(&r);
    rig_advance(&r, KL_SECONDS(5));
    rig_round(&r);
    rig_round(&r);
    assert_int_equal(r.n_sent, 1); /* the GET */
    assert_int_equal(kl_door_refused(r.door), 1);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/b#1 ok ok err:not_leader");
    assert_string_equal(rig_state(&r, "ns/a"), "queued");
    rig_fini(&r);
}

/* What the workers of a lost lease do: their owner drains and aborts them. */
static void a_request_to_another_server_is_cancelled_with_its_run(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "hD");
    rig_round(&r);
    assert_int_equal(r.n_sent, 1);
    kl_tenure_end(&r.tenure);
    kl_worker_drain(r.w);
    kl_worker_abort(r.w);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 xns/a");
    assert_true(r.sent[0].cancelled);
    assert_string_equal(rig_state(&r, "ns/a"), "queued");
    rig_fini(&r);
}

static void a_stream_ends_with_the_run_that_opened_it(void **state)
{
    (void)state;
    static const char *const words[] = {"sD", "sE", "szD"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rig r;
        rig_init(&r, KL_SECONDS(2), 0);
        rig_add(&r, "ns/a", words[i]);
        rig_round(&r);
        rig_answer(&r, 1, KL_OK, "{\"stream\":\"1\"}");
        assert_false(r.sent[0].cancelled);
        rig_round(&r);
        rig_advance(&r, KL_SECONDS(2)); /* the third is over time, and waits for something else */
        rig_round(&r);
        assert_true(r.sent[0].cancelled);
        rig_fini(&r);
    }
}

/* Whatever it ends with: nothing that was refused may be taken for done, nor for the script's fault. */
static void a_run_that_outlived_its_term_leaves_its_key_in_the_queue_and_counts_for_nothing(void **state)
{
    (void)state;
    static const char *const words[] = {"zcD", "zcE", "zcF", "zcC", "zcA"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rig r;
        rig_init(&r, 0, 0);
        kl_controller_metrics *m = kl_metrics_controller(r.metrics, "ctl", 1);
        kl_tenure_extend(&r.tenure, kl_clock_boot(r.clock) + KL_SECONDS(5));
        rig_add(&r, "ns/a", words[i]);
        rig_round(&r);
        rig_advance(&r, KL_SECONDS(5));
        rig_round(&r);
        rig_round(&r);
        assert_said(&r, "open1 g1+ns/a#1 ok err:not_leader");
        assert_string_equal(rig_state(&r, "ns/a"), "queued");
        assert_int_equal(kl_metrics_runs(m), 0);
        assert_int_equal(kl_metrics_errors(m), 0);
        assert_string_equal(kl_buf_str(&r.log), "");
        kl_map_set(r.behaviour, "ns/a", (void *)"D");
        rig_advance(&r, KL_SECONDS(10));
        rig_round(&r);
        assert_said(&r, "");                   /* nothing is begun without a lease */
        kl_tenure_extend(&r.tenure, KL_NEVER); /* the renewal came late, and nobody had taken it */
        rig_round(&r);
        assert_said(&r, "g1+ns/a#1");
        rig_fini(&r);
    }
}

static void a_run_of_one_term_writes_nothing_in_the_next(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    rig_add(&r, "ns/a", "zcD");
    rig_round(&r);
    kl_tenure_end(&r.tenure);
    kl_tenure_begin(&r.tenure, 9, KL_NEVER);
    rig_advance(&r, KL_SECONDS(5));
    rig_round(&r);
    rig_add(&r, "ns/b", "D"); /* the worker is of that term, too */
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 ok err:not_leader");
    assert_int_equal(r.n_sent, 0);
    rig_fini(&r);
}

/* --- where a program cannot wait ---------------------------------------------------------- */

static kl_run_state blocking_start(void *state, kl_run *run)
{
    rig_gen *g = state;
    kl_op op;
    kl_err err = KL_ERR_INIT;
    const kl_value *body = NULL;
    kl_op_init(&op, KL_CREATE, "v1/ConfigMap");
    g->rig->at_once = true;
    assert_ok(kl_run_call_wait(run, &op, &body, &err), &err);
    kl_value_unref(body);
    g->rig->at_once_status = KL_ECONFLICT;
    assert_fails(kl_run_call_wait(run, &op, &body, &err), KL_ECONFLICT, &err, "as the spec says");
    kl_tenure_end(&g->rig->tenure);
    assert_fails(kl_run_call_wait(run, &op, &body, &err), KL_ENOTLEADER, &err, "does not hold the lease");
    kl_run_event(run, NULL, "Normal", "Seen", "it");
    kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
    return KL_RUN_DONE;
}

static void a_program_may_block_its_worker(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_program_ops ops = rig_ops;
    ops.start = blocking_start;
    r.gens[0].program.ops = &ops;
    rig_add(&r, "ns/a", "");
    rig_round(&r);
    assert_string_equal(rig_state(&r, "ns/a"), "queued");
    assert_string_equal(kl_buf_str(&r.events), "Normal Seen it;");
    assert_int_equal(r.n_sent, 2);
    rig_fini(&r);
}

/* --- keys that exclude each other, keys that are given up --------------------------------- */

static void set_serial(rig *r, const char *path)
{
    kl_err err = KL_ERR_INIT;
    if (path)
        assert_ok(kl_path_parse(path, &r->gens[0].spec.serial.path, &err), &err);
    else
        r->gens[0].spec.serial.fn = 7;
}

static void runs_of_one_text_do_not_overlap_and_take_no_room_while_they_wait(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        rig r;
        rig_init(&r, 0, 2);
        set_serial(&r, way ? NULL : "spec.group");
        rig_object_set(&r, "ns/a", "{\"spec\":{\"group\":\"n1\"}}");
        rig_object_set(&r, "ns/b", "{\"spec\":{\"group\":\"n1\"}}");
        rig_object_set(&r, "ns/c", "{\"spec\":{\"group\":\"n2\"}}");
        rig_object_set(&r, "ns/d", "{\"spec\":{}}");
        rig_add(&r, "ns/a", "gD");
        rig_add(&r, "ns/b", "D");
        rig_add(&r, "ns/c", "gD");
        rig_add(&r, "ns/d", "D");
        rig_round(&r);
        assert_said(&r, "open1 g1+ns/a#1 g1+ns/c#1");
        assert_string_equal(rig_state(&r, "ns/b"), "waiting for its group");
        /* there is no room for it, b has taken none */
        assert_string_equal(rig_state(&r, "ns/d"), "queued");
        rig_answer(&r, 2, KL_OK, NULL);
        rig_round(&r);
        assert_said(&r, "ok g1+ns/d#1");
        rig_answer(&r, 1, KL_OK, NULL);
        rig_round(&r);
        assert_said(&r, "ok g1+ns/b#1");
        assert_string_equal(rig_state(&r, "ns/b"), "absent");
        kl_path_free(r.gens[0].spec.serial.path);
        rig_fini(&r);
    }
}

static void a_failed_waiting_run_releases_the_next_of_its_group(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, KL_SECONDS(2), 0);
    set_serial(&r, "spec.group");
    rig_object_set(&r, "ns/a", "{\"spec\":{\"group\":5}}");
    rig_object_set(&r, "ns/b", "{\"spec\":{\"group\":5}}");
    rig_add(&r, "ns/a", "gD");
    rig_add(&r, "ns/b", "E");
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1");
    rig_advance(&r, KL_SECONDS(2)); /* its time is over */
    rig_round(&r);
    assert_said(&r, "xns/a g1+ns/b#1");
    kl_map_set(r.behaviour, "ns/b", "gD");
    rig_add(&r, "ns/c", "D"); /* in no group */
    rig_round(&r);
    assert_said(&r, "g1+ns/c#1");
    kl_path_free(r.gens[0].spec.serial.path);
    rig_fini(&r);
}

static void a_serial_function_that_fails_fails_the_run(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    set_serial(&r, NULL);
    rig_object_set(&r, "ns/a", "{\"spec\":{\"group\":\"bad\"}}");
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    assert_said(&r, "open1");
    assert_non_null(strstr(kl_buf_str(&r.log), "the `serial` function: x.lua:3: no group in it"));
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_object_set(&r, "ns/a", "{\"spec\":{\"group\":\"good\"}}");
    rig_add(&r, "ns/a", "D");
    rig_round(&r);
    assert_said(&r, "g1+ns/a#2");
    rig_fini(&r);
}

static void a_worker_that_is_aborted_leaves_no_group_busy(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    set_serial(&r, "spec.group");
    rig_object_set(&r, "ns/a", "{\"spec\":{\"group\":\"n1\"}}");
    rig_object_set(&r, "ns/b", "{\"spec\":{\"group\":\"n1\"}}");
    rig_add(&r, "ns/a", "gD");
    rig_add(&r, "ns/b", "gD");
    rig_round(&r);
    kl_worker_drain(r.w);
    kl_worker_abort(r.w);
    rig_round(&r);
    assert_said(&r, "open1 g1+ns/a#1 xns/a");
    assert_string_equal(rig_state(&r, "ns/a"), "queued");
    assert_string_equal(rig_state(&r, "ns/b"), "queued");
    kl_path_free(r.gens[0].spec.serial.path);
    rig_fini(&r);
}

static void after_so_many_failures_in_a_row_a_key_rests_until_it_changes(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    r.gens[0].spec.give_up = 3;
    rig_add(&r, "ns/a", "E");
    for (int i = 0; i < 2; i++) {
        rig_round(&r);
        rig_advance(&r, KL_SECONDS(4));
    }
    assert_string_equal(kl_buf_str(&r.events), "");
    assert_int_equal(rig_round(&r), -1);
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/a#2 g1+ns/a#3");
    assert_string_equal(rig_state(&r, "ns/a"), "given up");
    assert_string_equal(kl_buf_str(&r.events),
        "Warning GaveUp gave up after 3 failures in a row, waiting for the object to change: boom;");
    assert_non_null(
        strstr(kl_buf_str(&r.log), "reconcile failed too often, waiting for the object to change"));
    kl_buf text = KL_BUF_INIT;
    kl_metrics_write(r.metrics, &text);
    assert_non_null(strstr(
        kl_buf_str(&text), "controller_runtime_terminal_reconcile_errors_total{controller=\"ctl\"} 1\n"));
    kl_buf_fini(&text);
    kl_workqueue_add_with(r.queue, "ns/a", &(kl_add){.routine = true}, kl_clock_now(r.clock));
    rig_round(&r);
    assert_said(&r, "");
    rig_add(&r, "ns/a", "E"); /* it has changed: as good as new */
    rig_round(&r);
    assert_said(&r, "g1+ns/a#1");
    assert_string_equal(rig_state(&r, "ns/a"), "waiting 1 s");
    rig_fini(&r);
}

static void conflicts_do_not_count_towards_giving_up(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    r.gens[0].spec.give_up = 2;
    rig_add(&r, "ns/a", "C");
    for (int i = 0; i < 3; i++) {
        rig_round(&r);
        rig_advance(&r, KL_SECONDS(10));
    }
    rig_add(&r, "ns/a", "E");
    rig_round(&r);
    rig_advance(&r, KL_SECONDS(20));
    assert_string_equal(kl_buf_str(&r.events), "");
    rig_round(&r);
    /* they wait like failures */
    assert_said(&r, "open1 g1+ns/a#1 g1+ns/a#2 g1+ns/a#3 g1+ns/a#4 g1+ns/a#5");
    assert_string_equal(rig_state(&r, "ns/a"), "given up");
    assert_string_equal(kl_buf_str(&r.events),
        "Warning GaveUp gave up after 2 failures in a row, waiting for the object to change: boom;");
    rig_fini(&r);
}

KL_TESTS(cmocka_unit_test(a_key_runs_once_and_is_done),
    cmocka_unit_test(other_keys_run_while_one_waits_for_its_answer),
    cmocka_unit_test(a_key_that_returns_at_once_delays_no_answer),
    cmocka_unit_test(a_request_carries_the_controller_and_the_namespace_of_the_key),
    cmocka_unit_test(an_answer_that_comes_at_once_is_taken_in_the_next_round),
    cmocka_unit_test(a_run_whose_calls_are_answered_at_once_holds_up_neither_others_nor_its_timeout),
    cmocka_unit_test(a_sleeper_wakes_at_its_time_and_not_before),
    cmocka_unit_test(a_kind_is_resolved_and_known_afterwards), cmocka_unit_test(the_queue_follows_the_result),
    cmocka_unit_test(a_key_that_wants_to_come_back_at_once_waits_all_the_same),
    cmocka_unit_test(failures_back_off_and_success_forgets_them),
    cmocka_unit_test(an_expected_wait_leaves_the_backoff_as_it_is),
    cmocka_unit_test(an_error_is_logged_with_key_and_traceback_and_a_conflict_is_quiet),
    cmocka_unit_test(a_failure_for_good_waits_for_the_object_to_change),
    cmocka_unit_test(a_program_that_ends_without_a_result_has_failed),
    cmocka_unit_test(a_state_rests_between_keys_and_longer_when_no_key_is_ready),
    cmocka_unit_test(a_key_that_changes_while_it_runs_runs_again),
    cmocka_unit_test(an_object_that_is_gone_is_forgotten), cmocka_unit_test(only_so_many_keys_are_in_flight),
    cmocka_unit_test(a_run_that_takes_too_long_is_abandoned_and_tried_again),
    cmocka_unit_test(a_late_answer_does_not_reach_the_next_run_of_the_key),
    cmocka_unit_test(a_timeout_ends_a_sleep_too_but_not_a_run_that_is_over),
    cmocka_unit_test(a_new_generation_takes_new_keys_and_the_old_one_finishes_its_own),
    cmocka_unit_test(a_state_is_there_for_keys_only),
    cmocka_unit_test(a_key_that_a_generation_enqueued_runs_on_it_even_in_the_middle_of_a_round),
    cmocka_unit_test(three_generations_can_be_under_way),
    cmocka_unit_test(a_generation_that_cannot_be_opened_is_tried_again_and_loses_no_key),
    cmocka_unit_test(draining_finishes_runs_and_takes_no_new_keys),
    cmocka_unit_test(aborting_abandons_runs_and_requeues_their_keys),
    cmocka_unit_test(writes_after_the_deadline_are_rejected_and_reads_pass),
    cmocka_unit_test(requests_to_other_servers_are_checked_as_well),
    cmocka_unit_test(a_request_to_another_server_is_cancelled_with_its_run),
    cmocka_unit_test(a_stream_ends_with_the_run_that_opened_it),
    cmocka_unit_test(a_run_that_outlived_its_term_leaves_its_key_in_the_queue_and_counts_for_nothing),
    cmocka_unit_test(a_run_of_one_term_writes_nothing_in_the_next),
    cmocka_unit_test(a_program_may_block_its_worker),
    cmocka_unit_test(runs_of_one_text_do_not_overlap_and_take_no_room_while_they_wait),
    cmocka_unit_test(a_failed_waiting_run_releases_the_next_of_its_group),
    cmocka_unit_test(a_serial_function_that_fails_fails_the_run),
    cmocka_unit_test(a_worker_that_is_aborted_leaves_no_group_busy),
    cmocka_unit_test(conflicts_do_not_count_towards_giving_up),
    cmocka_unit_test(after_so_many_failures_in_a_row_a_key_rests_until_it_changes))

/* not in tsan: it starts no thread */
