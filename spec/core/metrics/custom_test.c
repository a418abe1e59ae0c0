/* custom_test.c - metrics of scripts: families, series and their bounds. */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "metrics/custom.h"
#include "value/json.h"

static const kl_value *json(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(KL_OK, kl_value_decode(text, strlen(text), &v, &err));
    return v;
}

static kl_status declare(kl_custom_metrics *m, const char *script, const char *text, kl_err *err)
{
    const kl_value *v = text ? json(text) : NULL;
    kl_status st = kl_custom_metrics_declare(m, script, v, err);
    kl_value_unref(v);
    return st;
}

static void declared(kl_custom_metrics *m, const char *script, const char *text)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = declare(m, script, text, &err);
    assert_int_equal(KL_OK, st);
}

static void record(kl_custom_metrics *m, const char *name, kl_figure_act act, const char *labels, double by)
{
    const kl_value *v = labels ? json(labels) : NULL;
    kl_custom_metrics_record(m, &(kl_figure){.name = name, .act = act, .labels = v, .by = by});
    kl_value_unref(v);
}

static void assert_text(kl_custom_metrics *m, const char *text)
{
    kl_buf b = KL_BUF_INIT;
    kl_custom_metrics_write(m, &b);
    kl_buf_putc(&b, 0);
    char *tail = strstr(b.data, "# HELP kubelua_custom_metric_dropped_total");
    if (tail)
        *tail = 0;
    assert_string_equal(text, b.data);
    kl_buf_fini(&b);
}

#define COUNTER "{\"made_total\":{\"type\":\"counter\",\"help\":\"Made.\",\"labels\":[\"zone\"]}}"
#define GAUGE "{\"size\":{\"type\":\"gauge\",\"help\":\"A \\\\ size.\",\"labels\":[]}}"

static void a_counter_has_a_series_for_each_label(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(m, "a.lua", COUNTER);
    assert_text(m, "# HELP made_total Made.\n# TYPE made_total counter\n");
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 2);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"u\\\"s\\n\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 1.5);
    assert_text(m,
        "# HELP made_total Made.\n# TYPE made_total counter\nmade_total{zone=\"eu\"} 3.5\n"
        "made_total{zone=\"u\\\"s\\n\"} 1\n");
    kl_custom_metrics_free(m);
}

static void a_metric_without_labels_is_there_at_zero(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(m, "a.lua", GAUGE);
    assert_text(m, "# HELP size A \\\\ size.\n# TYPE size gauge\nsize 0\n");
    record(m, "size", KL_FIGURE_SET, NULL, 7);
    record(m, "size", KL_FIGURE_ADD, NULL, -9);
    assert_text(m, "# HELP size A \\\\ size.\n# TYPE size gauge\nsize -2\n");
    record(m, "size", KL_FIGURE_FORGET, NULL, 0);
    assert_text(m, "# HELP size A \\\\ size.\n# TYPE size gauge\n");
    kl_custom_metrics_free(m);
}

static void a_histogram_counts_below_its_bounds(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(m, "a.lua",
        "{\"took\":{\"type\":\"histogram\",\"help\":\"Took.\",\"labels\":[\"x\"],\"buckets\":[0.5,1]}}");
    record(m, "took", KL_FIGURE_OBSERVE, "{\"x\":\"1\"}", 0.5);
    record(m, "took", KL_FIGURE_OBSERVE, "{\"x\":\"1\"}", 0.75);
    record(m, "took", KL_FIGURE_OBSERVE, "{\"x\":\"1\"}", 3);
    assert_text(m,
        "# HELP took Took.\n# TYPE took histogram\ntook_bucket{x=\"1\",le=\"0.5\"} 1\n"
        "took_bucket{x=\"1\",le=\"1\"} 2\ntook_bucket{x=\"1\",le=\"+Inf\"} 3\ntook_sum{x=\"1\"} 4.25\n"
        "took_count{x=\"1\"} 3\n");
    double sum;
    uint64_t n;
    const kl_value *labels = json("{\"x\":\"1\"}");
    assert_true(kl_custom_metrics_get(m, &(kl_figure){.name = "took", .labels = labels}, &sum, &n));
    assert_true(sum > 4.2 && sum < 4.3 && n == 3);
    assert_false(kl_custom_metrics_get(m, &(kl_figure){.name = "took"}, &sum, &n));
    assert_false(kl_custom_metrics_get(m, &(kl_figure){.name = "other", .labels = labels}, &sum, &n));
    kl_value_unref(labels);
    kl_custom_metrics_free(m);
}

static void undeclared_samples_are_dropped(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(m, "a.lua", COUNTER);
    record(m, "none", KL_FIGURE_ADD, NULL, 1);
    record(m, "made_total", KL_FIGURE_SET, "{\"zone\":\"eu\"}", 1);
    record(m, "made_total", KL_FIGURE_OBSERVE, "{\"zone\":\"eu\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"sort\":\"eu\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\",\"x\":\"1\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":1}", 1);
    record(m, "made_total", KL_FIGURE_ADD, NULL, 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 1.0 / 0.0);
    assert_text(m, "# HELP made_total Made.\n# TYPE made_total counter\n");
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", -1); /* a counter only grows */
    assert_text(m, "# HELP made_total Made.\n# TYPE made_total counter\nmade_total{zone=\"eu\"} 1\n");
    kl_custom_metrics_free(m);
}

static void series_are_bounded_and_dropped_samples_counted(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(m, "a.lua",
        "{\"made_total\":{\"type\":\"counter\",\"help\":\"Made.\",\"labels\":[\"zone\"],\"series\":2}}");
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"a\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"b\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"c\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"d\"}", 1);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"a\"}", 1);
    char *mib = kl_alloc(1 << 20), *labels;
    memset(mib, 'x', (1 << 20) - 1);
    mib[(1 << 20) - 1] = 0;
    labels = kl_sprintf("{\"zone\":\"%s\"}", mib);
    record(m, "made_total", KL_FIGURE_ADD, labels, 1);
    kl_free(mib);
    kl_free(labels);
    kl_buf b = KL_BUF_INIT;
    kl_custom_metrics_write(m, &b);
    kl_buf_putc(&b, 0);
    assert_non_null(strstr(b.data, "made_total{zone=\"a\"} 2\nmade_total{zone=\"b\"} 1\n# HELP"));
    assert_non_null(strstr(b.data, "kubelua_custom_metric_dropped_total{metric=\"made_total\"} 3\n"));
    kl_buf_fini(&b);
    kl_custom_metrics_free(m);
}

static void a_reload_keeps_unchanged_declarations(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(m, "a.lua", COUNTER);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 3);
    declared(m, "a.lua", "{\"made_total\":{\"type\":\"counter\",\"help\":\"Now.\",\"labels\":[\"zone\"]}}");
    assert_text(m, "# HELP made_total Now.\n# TYPE made_total counter\nmade_total{zone=\"eu\"} 3\n");
    declared(m, "a.lua", "{\"made_total\":{\"type\":\"gauge\",\"help\":\"Now.\",\"labels\":[]}}");
    assert_text(m, "# HELP made_total Now.\n# TYPE made_total gauge\nmade_total 0\n");
    declared(m, "a.lua", NULL);
    assert_text(m, "");
    kl_custom_metrics_free(m);
}

static void two_scripts_share_a_metric_of_one_form(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    kl_err err = KL_ERR_INIT;
    declared(m, "a.lua", COUNTER);
    declared(m, "b.lua", COUNTER);
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 3);
    declared(m, "a.lua", NULL);
    assert_text(m, "# HELP made_total Made.\n# TYPE made_total counter\nmade_total{zone=\"eu\"} 3\n");
    assert_int_equal(KL_EEXISTS,
        declare(m, "a.lua",
            "{\"made_total\":{\"type\":\"gauge\",\"help\":\"Made.\",\"labels\":[\"zone\"]},"
            "\"size\":{\"type\":\"gauge\",\"help\":\"x\",\"labels\":[]}}",
            &err));
    assert_string_equal(
        "a.lua: b.lua declares the metric made_total as a counter in another form: rename this one",
        kl_err_message(&err));
    kl_err_fini(&err);
    assert_text(m, "# HELP made_total Made.\n# TYPE made_total counter\nmade_total{zone=\"eu\"} 3\n");
    kl_custom_metrics_free(m);
}

/* A counter h_sum beside a histogram h: /metrics would have two samples of one name. */
static void samples_of_two_metrics_have_two_names(void **state)
{
    (void)state;
#define LONE(name, type) "{\"" name "\":{\"type\":\"" type "\",\"help\":\"x\",\"labels\":[]}}"
    static const char *const counters[] = {
        LONE("h_bucket", "counter"), LONE("h_sum", "gauge"), LONE("h_count", "histogram")};
    static const char histogram[] =
        "{\"h\":{\"type\":\"histogram\",\"help\":\"x\",\"labels\":[],\"buckets\":[1]}}";
    for (size_t i = 0; i < 6; i++) {
        const char *first = i < 3 ? histogram : counters[i - 3], *then = i < 3 ? counters[i] : histogram;
        kl_custom_metrics *m = kl_custom_metrics_new();
        kl_err err = KL_ERR_INIT;
        declared(m, "a.lua", first);
        assert_int_equal(KL_EEXISTS, declare(m, "b.lua", then, &err));
        assert_non_null(strstr(kl_err_message(&err), "of a.lua would have samples of the same name"));
        kl_err_fini(&err);
        declared(m, "b.lua", LONE("h_buckets", "counter"));
        declared(m, "a.lua", then); /* its own one goes */
        kl_custom_metrics_free(m);
    }
#undef LONE
}

/* What a script may put into /metrics, whatever the numbers of its metrics and their buckets are. */
static void the_series_of_a_script_fill_so_much_text_at_most(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    kl_buf form = KL_BUF_INIT, text = KL_BUF_INIT;
    for (int i = 0; i < 20; i++)
        kl_buf_printf(&form,
            "%c\"h%d\":{\"type\":\"histogram\",\"help\":\"H.\",\"labels\":[\"z\"],\"series\":10000,"
            "\"buckets\":[1,2,3,4,5,6,7,8,9,10]}",
            i ? ',' : '{', i);
    kl_buf_putc(&form, '}');
    declared(m, "wide.lua", kl_buf_str(&form));
    declared(m, "a.lua", COUNTER);
    for (int i = 0; i < 20 * 300; i++) {
        char name[8], labels[1024];
        snprintf(name, sizeof name, "h%d", i % 20);
        snprintf(labels, sizeof labels, "{\"z\":\"%0900d\"}", i);
        record(m, name, KL_FIGURE_OBSERVE, labels, 1);
    }
    record(m, "made_total", KL_FIGURE_ADD, "{\"zone\":\"eu\"}", 1);
    kl_custom_metrics_write(m, &text);
    assert_in_range(text.len, KL_SERIES_TEXT_MAX / 2, KL_SERIES_TEXT_MAX);
    assert_non_null(strstr(kl_buf_str(&text), "made_total{zone=\"eu\"} 1\n")); /* each has its own room */
    assert_null(strstr(kl_buf_str(&text), "kubelua_custom_metric_dropped_total{metric=\"h1\"} 0\n"));
    kl_buf_fini(&form);
    kl_buf_fini(&text);
    kl_custom_metrics_free(m);
}

static void series_that_are_forgotten_make_room(void **state)
{
    (void)state;
    kl_custom_metrics *m = kl_custom_metrics_new();
    declared(
        m, "a.lua", "{\"size\":{\"type\":\"gauge\",\"help\":\"Size.\",\"labels\":[\"z\"],\"series\":10}}");
    for (int i = 0; i < 50000; i++) {
        char labels[1024];
        snprintf(labels, sizeof labels, "{\"z\":\"%0900d\"}", i);
        record(m, "size", KL_FIGURE_SET, labels, 1);
        record(m, "size", KL_FIGURE_FORGET, labels, 0);
    }
    record(m, "size", KL_FIGURE_SET, "{\"z\":\"a\"}", 1);
    assert_text(m, "# HELP size Size.\n# TYPE size gauge\nsize{z=\"a\"} 1\n");
    kl_custom_metrics_free(m);
}

KL_TESTS(cmocka_unit_test(a_counter_has_a_series_for_each_label),
    cmocka_unit_test(a_metric_without_labels_is_there_at_zero),
    cmocka_unit_test(a_histogram_counts_below_its_bounds), cmocka_unit_test(undeclared_samples_are_dropped),
    cmocka_unit_test(series_are_bounded_and_dropped_samples_counted),
    cmocka_unit_test(a_reload_keeps_unchanged_declarations),
    cmocka_unit_test(two_scripts_share_a_metric_of_one_form),
    cmocka_unit_test(samples_of_two_metrics_have_two_names),
    cmocka_unit_test(the_series_of_a_script_fill_so_much_text_at_most),
    cmocka_unit_test(series_that_are_forgotten_make_room))

/* not in tsan: it starts no thread */
