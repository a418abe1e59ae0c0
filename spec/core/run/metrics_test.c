/* metrics_test.c - the text that Prometheus reads: names, labels and buckets of controller-runtime and client-go. */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "run/metrics.h"

static char *written(kl_metrics *m)
{
    kl_buf b = KL_BUF_INIT;
    kl_metrics_write(m, &b);
    return kl_buf_take(&b);
}

/* `line` is a whole line of the text. */
static void assert_line(const char *text, const char *line)
{
    size_t n = strlen(line);
    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && at[n] == '\n')
            return;
    fail_msg("no line \"%s\" in\n%s", line, text);
}

static size_t lines(const char *text, const char *with)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, with)); at++)
        n++;
    return n;
}

static void a_controller_is_there_at_zero_before_its_first_run(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    kl_metrics_controller(m, "ctl", 4);
    char *t = written(m);
    assert_line(t, "# TYPE controller_runtime_reconcile_total counter");
    assert_line(t, "controller_runtime_reconcile_total{controller=\"ctl\",result=\"success\"} 0");
    assert_line(t, "controller_runtime_reconcile_total{controller=\"ctl\",result=\"error\"} 0");
    assert_line(t, "controller_runtime_reconcile_total{controller=\"ctl\",result=\"requeue\"} 0");
    assert_line(t, "controller_runtime_reconcile_total{controller=\"ctl\",result=\"requeue_after\"} 0");
    assert_line(t, "controller_runtime_reconcile_errors_total{controller=\"ctl\"} 0");
    assert_line(t, "controller_runtime_terminal_reconcile_errors_total{controller=\"ctl\"} 0");
    assert_line(t, "controller_runtime_reconcile_panics_total{controller=\"ctl\"} 0");
    assert_line(t, "controller_runtime_max_concurrent_reconciles{controller=\"ctl\"} 4");
    assert_line(t, "controller_runtime_active_workers{controller=\"ctl\"} 0");
    assert_line(t, "controller_runtime_reconcile_time_seconds_count{controller=\"ctl\"} 0");
    kl_free(t);
    kl_metrics_free(m);
}

static void runs_are_counted_by_outcome_and_timed(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    kl_controller_metrics *c = kl_metrics_controller(m, "ctl", 1);
    assert_ptr_equal(c, kl_metrics_controller(m, "ctl", 2));
    kl_metrics_reconcile(c, KL_OUTCOME_SUCCESS, KL_MILLISECONDS(5));       /* on the edge: le is inclusive */
    kl_metrics_reconcile(c, KL_OUTCOME_ERROR, KL_MILLISECONDS(6));
    kl_metrics_reconcile(c, KL_OUTCOME_REQUEUE_AFTER, KL_SECONDS(100));
    kl_metrics_terminal(c);
    kl_metrics_timeout(c);
    kl_metrics_active(c, 2);
    kl_metrics_active(c, -1);
    kl_metrics_queue_latency(c, KL_MICROSECONDS(10));
    kl_metrics_work_duration(c, KL_SECONDS(2));
    assert_int_equal(kl_metrics_runs(c), 3);
    assert_int_equal(kl_metrics_errors(c), 1);
    char *t = written(m);
    assert_line(t, "controller_runtime_reconcile_total{controller=\"ctl\",result=\"success\"} 1");
    assert_line(t, "controller_runtime_reconcile_total{controller=\"ctl\",result=\"requeue_after\"} 1");
    assert_line(t, "controller_runtime_reconcile_errors_total{controller=\"ctl\"} 1");
    assert_line(t, "controller_runtime_terminal_reconcile_errors_total{controller=\"ctl\"} 1");
    assert_line(t, "controller_runtime_reconcile_timeouts_total{controller=\"ctl\"} 1");
    assert_line(t, "controller_runtime_active_workers{controller=\"ctl\"} 1");
    assert_line(t, "controller_runtime_max_concurrent_reconciles{controller=\"ctl\"} 2");
    assert_line(t, "controller_runtime_reconcile_time_seconds_bucket{controller=\"ctl\",le=\"0.005\"} 1");
    assert_line(t, "controller_runtime_reconcile_time_seconds_bucket{controller=\"ctl\",le=\"0.01\"} 2");
    assert_line(t, "controller_runtime_reconcile_time_seconds_bucket{controller=\"ctl\",le=\"60\"} 2");
    assert_line(t, "controller_runtime_reconcile_time_seconds_bucket{controller=\"ctl\",le=\"+Inf\"} 3");
    assert_line(t, "controller_runtime_reconcile_time_seconds_sum{controller=\"ctl\"} 100.011");
    assert_line(t, "controller_runtime_reconcile_time_seconds_count{controller=\"ctl\"} 3");
    assert_line(t, "workqueue_queue_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"1e-05\"} 1");
    assert_line(t, "workqueue_queue_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"1e-06\"} 0");
    assert_line(t, "workqueue_work_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"1\"} 0");
    assert_line(t, "workqueue_work_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"10\"} 1");
    assert_int_equal(lines(t, "\ncontroller_runtime_reconcile_time_seconds_bucket"), 41);
    assert_int_equal(lines(t, "\nworkqueue_work_duration_seconds_bucket"), 13);
    kl_free(t);
    kl_metrics_free(m);
}

static void requests_are_counted_by_code_method_and_host(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    kl_metrics_request(m, "GET", "10.0.0.1:6443", 200, KL_MILLISECONDS(30));
    kl_metrics_request(m, "GET", "10.0.0.1:6443", 200, KL_SECONDS(3));
    kl_metrics_request(m, "GET", "10.0.0.1:6443", 404, KL_MILLISECONDS(1));
    kl_metrics_request(m, "PATCH", "10.0.0.1:6443", 0, KL_SECONDS(90));
    char *t = written(m);
    assert_line(t, "rest_client_requests_total{code=\"200\",host=\"10.0.0.1:6443\",method=\"GET\"} 2");
    assert_line(t, "rest_client_requests_total{code=\"404\",host=\"10.0.0.1:6443\",method=\"GET\"} 1");
    assert_line(t, "rest_client_requests_total{code=\"<error>\",host=\"10.0.0.1:6443\",method=\"PATCH\"} 1");
    assert_line(t, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"GET\",le=\"0.025\"} 1");
    assert_line(t, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"GET\",le=\"4\"} 3");
    assert_line(t, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"PATCH\",le=\"60\"} 0");
    assert_line(t, "rest_client_request_duration_seconds_count{host=\"10.0.0.1:6443\",verb=\"GET\"} 3");
    assert_int_equal(lines(t, "# TYPE rest_client_requests_total"), 1);
    kl_free(t);
    kl_metrics_free(m);
}

static void a_lease_is_shown_when_there_is_one(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    char *t = written(m);
    assert_null(strstr(t, "leader_election"));
    kl_free(t);
    kl_metrics_leader(m, "lease", false);
    t = written(m);
    assert_line(t, "leader_election_master_status{name=\"lease\"} 0");
    kl_free(t);
    kl_metrics_leader(m, "lease", true);
    t = written(m);
    assert_line(t, "leader_election_master_status{name=\"lease\"} 1");
    kl_free(t);
    kl_metrics_free(m);
}

static void labels_are_quoted_and_numbers_keep_their_value(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    kl_metrics_sample(&b, "m", 1.5, "a", "x\"y\\z\nw", NULL);
    kl_metrics_sample(&b, "m", 123456789012345.0, NULL);
    kl_metrics_sample(&b, "m", 0.1, NULL);
    assert_string_equal(kl_buf_str(&b), "m{a=\"x\\\"y\\\\z\\nw\"} 1.5\nm 123456789012345\nm 0.1\n");
    kl_buf_fini(&b);
}

KL_TESTS(cmocka_unit_test(a_controller_is_there_at_zero_before_its_first_run),
    cmocka_unit_test(runs_are_counted_by_outcome_and_timed),
    cmocka_unit_test(requests_are_counted_by_code_method_and_host),
    cmocka_unit_test(a_lease_is_shown_when_there_is_one),
    cmocka_unit_test(labels_are_quoted_and_numbers_keep_their_value))
