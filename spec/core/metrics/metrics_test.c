/* metrics_test.c - the text that Prometheus reads: names, labels and buckets of controller-runtime and
 * client-go. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "metrics/metrics.h"
#include "observe/telemetry.h"
#include "webhook/webhook_metrics.h"

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

static bool has_series(kl_metrics *m, const char *controller)
{
    kl_histogram h;
    return kl_metrics_latency(m, controller, false, &h);
}

/* A script may choose another name at each reload. */
static void only_the_last_controllers_that_ended_keep_their_series(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    char name[32];
    kl_controller_metrics *stays = kl_metrics_enter(m, "stays", 1), *again = kl_metrics_enter(m, "again", 1);
    kl_metrics_reconcile(again, KL_OUTCOME_SUCCESS, 1);
    kl_metrics_leave(m, again);
    assert_ptr_equal(kl_metrics_enter(m, "again", 1), again);
    assert_ptr_equal(kl_metrics_enter(m, "again", 1), again); /* the next one begins before the last has ended
                                                               */
    kl_metrics_leave(m, again);
    for (int i = 0; i < 3 * KL_METRICS_ENDED; i++) {
        snprintf(name, sizeof name, "c%d", i);
        kl_metrics_leave(m, kl_metrics_enter(m, name, 1));
    }
    for (int i = 0; i < 3 * KL_METRICS_ENDED; i++) {
        snprintf(name, sizeof name, "c%d", i);
        assert_int_equal(has_series(m, name), i >= 2 * KL_METRICS_ENDED);
    }
    assert_true(has_series(m, "stays"));
    assert_int_equal(kl_metrics_runs(again), 1);
    kl_metrics_leave(m, stays);
    kl_metrics_free(m);
}

static void runs_are_counted_by_outcome_and_timed(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    kl_controller_metrics *c = kl_metrics_controller(m, "ctl", 1);
    assert_ptr_equal(c, kl_metrics_controller(m, "ctl", 2));
    kl_metrics_reconcile(c, KL_OUTCOME_SUCCESS, KL_MILLISECONDS(5)); /* on the edge: le is inclusive */
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
    assert_line(t,
        "workqueue_queue_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"9.999999999999999e-"
        "06\"} 0");
    assert_line(t, "workqueue_queue_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"1e-06\"} 0");
    assert_line(t,
        "workqueue_queue_duration_seconds_bucket{name=\"ctl\",controller=\"ctl\",le=\"9.999999999999999e-"
        "05\"} 1");
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
    assert_line(
        t, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"GET\",le=\"0.025\"} 1");
    assert_line(
        t, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"GET\",le=\"4\"} 3");
    assert_line(
        t, "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"PATCH\",le=\"60\"} 0");
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

/* --- beside controller-runtime ------------------------------------------------------------ */

#define FIELDS 5 /* name, type, labels, bounds of buckets, help */

/* The sorted names of the labels of the first sample of `series`, and the bounds of all its buckets, with
 * commas between. */
static void labels_of(const char *text, const char *series, char *labels, size_t size)
{
    char names[8][32];
    size_t n = 0, len = strlen(series);
    const char *at = text;
    *labels = '\0';
    while (
        (at = strstr(at, series)) && !((at == text || at[-1] == '\n') && (at[len] == '{' || at[len] == ' ')))
        at++;
    if (!at)
        fail_msg("no series %s in\n%s", series, text);
    for (const char *p = at + len; *p == '{' || *p == ',';) {
        size_t k = strcspn(++p, "=");
        snprintf(names[n], sizeof names[n], "%.*s", (int)k, p);
        if (strcmp(names[n], "le"))
            n++;
        p += k + 2;
        p += strcspn(p, "\"") + 1;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (strcmp(names[k], names[i]) < 0) {
                char t[32];
                memcpy(t, names[i], sizeof t);
                memcpy(names[i], names[k], sizeof t);
                memcpy(names[k], t, sizeof t);
            }
    for (size_t i = 0; i < n; i++)
        snprintf(labels + strlen(labels), size - strlen(labels), "%s%s", i ? "," : "", names[i]);
}

static void bounds_of(const char *text, const char *name, char *bounds, size_t size)
{
    char *series = kl_sprintf("\n%s_bucket{", name);
    *bounds = '\0';
    for (const char *at = text; (at = strstr(at, series)); at++) {
        const char *le = strstr(at, "le=\"") + 4;
        size_t n = strcspn(le, "\"");
        if (!strncmp(le, "+Inf", 4))
            break; /* those of the first series */
        snprintf(bounds + strlen(bounds), size - strlen(bounds), "%s%.*s", *bounds ? "," : "", (int)n, le);
    }
    kl_free(series);
}

/* Nobody converts here. */
static bool is_elsewhere(const char *name)
{
    return !strcmp(name, "controller_runtime_conversion_webhook_panics_total");
}

static void every_family_is_as_controller_runtime_and_client_go_have_it(void **state)
{
    (void)state;
    kl_metrics *m = kl_metrics_new();
    kl_controller_metrics *c = kl_metrics_controller(m, "ctl", 1);
    kl_metrics_reconcile(c, KL_OUTCOME_SUCCESS, KL_SECONDS(1));
    kl_metrics_request(m, "GET", "h", 200, KL_SECONDS(1));
    kl_metrics_retry(m, "GET", "h", 429);
    kl_metrics_delay(m, "GET", "h", KL_SECONDS(1));
    kl_metrics_sizes(m, "GET", "h", 0, 100);
    kl_metrics_lookup(m, "h", KL_SECONDS(1));
    kl_metrics_leader_slow(m, "lease");
    kl_buf b = KL_BUF_INIT;
    kl_metrics_write(m, &b);
    kl_workqueue *q = kl_workqueue_new(NULL);
    kl_telemetry_queues(&b, &(kl_queue_of){"ctl", q}, 1, 0);
    kl_telemetry_process(&b);
    kl_webhook_metrics *hooks = kl_webhook_metrics_new(m);
    kl_webhook_metrics_begin(hooks, "/hook");
    kl_webhook_metrics_end(hooks, "/hook", 200, KL_SECONDS(1));
    kl_webhook_metrics_certificate(hooks, true);
    kl_webhook_metrics_write(hooks, &b);
    FILE *f = fopen("spec/fixtures/metrics/controller_runtime.txt", "r");
    assert_non_null(f);
    char *line = NULL, seen[1024], *field[FIELDS];
    size_t room = 0, families = 0;
    while (getline(&line, &room, f) > 0) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < FIELDS; i++)
            field[i] = *line == '#' ? "" : strsep(&rest, "\t");
        if (*line == '#' || is_elsewhere(field[0]))
            continue;
        char *head = kl_sprintf("# HELP %s %s\n# TYPE %s %s\n", field[0], field[4], field[0], field[1]);
        if (!strstr(kl_buf_str(&b), head))
            fail_msg("no\n%s in\n%s", head, kl_buf_str(&b));
        char *series = kl_sprintf("%s%s", field[0], *field[3] ? "_count" : "");
        labels_of(kl_buf_str(&b), series, seen, sizeof seen);
        assert_string_equal(seen, field[2]);
        bounds_of(kl_buf_str(&b), field[0], seen, sizeof seen);
        assert_string_equal(seen, field[3]);
        kl_free(series);
        kl_free(head);
        families++;
    }
    assert_true(families == 39);
    free(line);
    fclose(f);
    kl_workqueue_free(q);
    kl_webhook_metrics_free(hooks);
    kl_buf_fini(&b);
    kl_metrics_free(m);
}

KL_TESTS(cmocka_unit_test(every_family_is_as_controller_runtime_and_client_go_have_it),
    cmocka_unit_test(a_controller_is_there_at_zero_before_its_first_run),
    cmocka_unit_test(only_the_last_controllers_that_ended_keep_their_series),
    cmocka_unit_test(runs_are_counted_by_outcome_and_timed),
    cmocka_unit_test(requests_are_counted_by_code_method_and_host),
    cmocka_unit_test(a_lease_is_shown_when_there_is_one),
    cmocka_unit_test(labels_are_quoted_and_numbers_keep_their_value))

/* not in tsan: it starts no thread */
