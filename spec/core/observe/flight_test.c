/* flight_test.c - the flight recorder's memory of runs, within its bytes. */
#include "core/run/worker_rig.h"

#include "observe/flight.h"

static void watch(rig *r, kl_flight *f)
{
    kl_witness w = kl_flight_witness(f);
    kl_witnesses_add(&r->witnesses, &w);
}

static const kl_value *told(kl_flight *f, const char *key)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    (void)kl_flight_runs(f, "ctl", key, b);
    (void)kl_flight_drop(f, "ctl", NULL, key, b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static size_t runs_of(kl_flight *f, const char *key)
{
    const kl_value *v = told(f, key);
    size_t n = kl_value_len(kl_value_get(v, "runs"));
    kl_value_unref(v);
    return n;
}

/* A member of the newest run, as JSON. */
static void assert_last(kl_flight *f, const char *key, const char *member, const char *json)
{
    const kl_value *v = told(f, key), *run = kl_value_item(kl_value_get(v, "runs"), 0);
    char *text = kl_value_to_json(kl_value_get(run, member));
    assert_string_equal(text, json);
    kl_free(text);
    kl_value_unref(v);
}

static const kl_value *decoded(const char *text)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void a_run_has_its_trigger_and_its_steps(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_flight *f = kl_flight_new(KL_FLIGHT_BYTES, r.clock);
    watch(&r, f);
    rig_add(&r, "ns/a", "gkzE");
    const kl_value *secret = decoded("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"namespace\":"
                                     "\"ns\",\"name\":\"s\",\"resourceVersion\":\"812\"}}");
    kl_workqueue_add_with(
        r.queue, "ns/a", &(kl_add){.cause = kl_cause_of(KL_WHY_CHANGED, secret)}, kl_clock_now(r.clock));
    kl_value_unref(secret);
    rig_round(&r);
    rig_advance(&r, KL_MILLISECONDS(3));
    rig_answer(&r, 1, KL_ENOTFOUND, NULL);
    rig_round(&r);
    r.resolving(r.resolving_arg, KL_OK, &r.resource, NULL);
    rig_round(&r);
    assert_int_equal(runs_of(f, "ns/a"), 0);
    rig_advance(&r, KL_SECONDS(5));
    rig_round(&r);
    assert_int_equal(runs_of(f, "ns/a"), 1);
    assert_last(f, "ns/a", "trigger",
        "{\"reason\":\"changed\",\"events\":2,\"kind\":\"v1/Secret\",\"key\":\"ns/"
        "s\",\"resourceVersion\":\"812\"}");
    assert_last(f, "ns/a", "steps",
        "[{\"call\":\"get\",\"kind\":\"v1/Secret\",\"key\":\"ns/s\",\"error\":\"as the spec "
        "says\",\"code\":500,\"took\":0.003},"
        "{\"discovery\":\"example.com/v1/"
        "Thing\",\"code\":0,\"took\":0},{\"sleep\":5,\"code\":0,\"took\":5}]");
    assert_last(f, "ns/a", "took", "5.003");
    rig_advance(&r, KL_SECONDS(2));
    assert_last(f, "ns/a", "ago", "7.003");
    assert_last(f, "ns/a", "attempt", "1");
    assert_last(f, "ns/a", "result", "\"error\"");
    assert_last(f, "ns/a", "message", "\"boom\"");
    rig_fini(&r);
    kl_flight_free(f);
}

static void the_last_runs_are_kept(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_flight *f = kl_flight_new(KL_FLIGHT_BYTES, r.clock);
    watch(&r, f);
    for (int i = 0; i < KL_FLIGHT_RUNS + 3; i++) {
        rig_add(&r, "ns/a", "D");
        rig_round(&r);
    }
    kl_flight_stats s;
    kl_flight_stats_get(f, &s);
    assert_int_equal(runs_of(f, "ns/a"), KL_FLIGHT_RUNS);
    assert_int_equal(s.runs, KL_FLIGHT_RUNS);
    assert_int_equal(s.keys, 1);
    rig_fini(&r);
    kl_flight_free(f);
}

static void keys_that_were_quiet_for_longest_make_room(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_flight *f = kl_flight_new(KL_FLIGHT_BYTES_MIN, r.clock);
    watch(&r, f);
    char key[32];
    kl_flight_stats s;
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "ns/%d", i);
        rig_add(&r, key, "D");
        rig_add(&r, "ns/busy", "D");
        rig_round(&r);
        kl_flight_stats_get(f, &s);
        assert_true(s.bytes <= KL_FLIGHT_BYTES_MIN);
    }
    assert_true(s.keys > 20 && s.evicted + s.keys == 1001);
    assert_int_equal(runs_of(f, "ns/busy"), KL_FLIGHT_RUNS);
    assert_int_equal(runs_of(f, "ns/999"), 1);
    assert_int_equal(runs_of(f, "ns/0"), 0);
    rig_fini(&r);
    kl_flight_free(f);
}

static void a_dropped_event_is_kept_beside(void **state)
{
    (void)state;
    kl_flight *f = kl_flight_new(KL_FLIGHT_BYTES, kl_clock_real());
    const kl_value *o = decoded(
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"resourceVersion\":\"7\"}}");
    kl_flight_dropped(f, "ctl", NULL, o, "before");
    kl_flight_dropped(f, "ctl", NULL, o, "the reason");
    kl_flight_dropped(f, "ctl", "v1/Secret", o, "another");
    kl_value_unref(o);
    const kl_value *v = told(f, "ns/a");
    assert_string_equal(kl_value_str_at(v, "dropped", "by", NULL), "the reason");
    assert_string_equal(kl_value_str_at(v, "dropped", "resourceVersion", NULL), "7");
    assert_null(kl_value_get(v, "runs"));
    kl_value_unref(v);
    kl_flight_free(f);
}

static void a_run_of_many_steps_is_cut(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, 0, 0);
    kl_flight *f = kl_flight_new(KL_FLIGHT_BYTES, r.clock);
    watch(&r, f);
    char word[102];
    memset(word, 'z', 100);
    strcpy(word + 100, "D");
    rig_add(&r, "ns/a", word);
    rig_round(&r);
    for (int i = 0; i < 100; i++) {
        rig_advance(&r, KL_SECONDS(5));
        rig_round(&r);
    }
    assert_last(f, "ns/a", "moreSteps", "36");
    assert_last(f, "ns/a", "took", "500");
    rig_fini(&r);
    kl_flight_free(f);
}

KL_TESTS(cmocka_unit_test(a_run_has_its_trigger_and_its_steps), cmocka_unit_test(the_last_runs_are_kept),
    cmocka_unit_test(keys_that_were_quiet_for_longest_make_room),
    cmocka_unit_test(a_dropped_event_is_kept_beside), cmocka_unit_test(a_run_of_many_steps_is_cut))

/* not in tsan: it starts no thread */
