/* tally_test.c - the statistics of keys. */
#include "core/run/worker_rig.h"

#include "observe/tally.h"

static void begin(rig *r, kl_tally **t)
{
    rig_init(r, 0, 0);
    *t = kl_tally_new();
    kl_witness w = kl_tally_witness(*t);
    kl_witnesses_add(&r->witnesses, &w);
}

static void end(rig *r, kl_tally *t)
{
    rig_fini(r);
    kl_tally_free(t);
}

typedef size_t fill_fn(kl_tally *t, rig *r, kl_builder *b);

static size_t generations(kl_tally *t, rig *r, kl_builder *b)
{
    (void)r;
    kl_tally_generations(t, "ctl", b);
    return 0;
}

static size_t failing(kl_tally *t, rig *r, kl_builder *b)
{
    return kl_tally_failing(t, NULL, 10, kl_clock_now(r->clock), b);
}

static void assert_filled(rig *r, kl_tally *t, fill_fn *fill, size_t n, const char *want)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    assert_int_equal(fill(t, r, b), n);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_buf text = KL_BUF_INIT;
    kl_value_encode(v, &text);
    assert_string_equal(kl_buf_str(&text), want);
    kl_buf_fini(&text);
    kl_value_unref(v);
}

static void runs_failures_and_writes_count_for_their_generation(void **state)
{
    (void)state;
    rig r;
    kl_tally *t;
    begin(&r, &t);
    assert_filled(&r, t, generations, 0, "[]");
    rig_add(&r, "ns/a", "cD");
    rig_add(&r, "ns/b", "gE");
    rig_round(&r);
    rig_answer(&r, 1, KL_OK, "{}");
    rig_answer(&r, 2, KL_OK, "{}");
    rig_round(&r);
    assert_filled(&r, t, generations, 0, "[{\"generation\":1,\"runs\":2,\"errors\":1,\"writes\":1}]");
    r.current = &r.gens[1];
    rig_add(&r, "ns/c", "F");
    rig_round(&r);
    assert_filled(&r, t, generations, 0,
        "[{\"generation\":2,\"runs\":1,\"errors\":1,\"writes\":0},{\"generation\":1,\"runs\":2,\"errors\":1,"
        "\"writes\":1}]");
    end(&r, t);
}

static void a_key_fails_until_it_succeeds_or_is_gone(void **state)
{
    (void)state;
    rig r;
    kl_tally *t;
    begin(&r, &t);
    rig_add(&r, "ns/a", "E");
    rig_add(&r, "ns/b", "F");
    rig_add(&r, "ns/c", "R");
    rig_add(&r, "ns/d", "D");
    rig_round(&r);
    assert_filled(&r, t, failing, 3,
        "[{\"controller\":\"ctl\",\"key\":\"ns/"
        "a\",\"result\":\"error\",\"attempt\":1,\"message\":\"boom\",\"in\":1},"
        "{\"controller\":\"ctl\",\"key\":\"ns/c\",\"result\":\"waits\",\"attempt\":1,\"message\":\"the disk "
        "is not there yet\",\"in\":7},"
        "{\"controller\":\"ctl\",\"key\":\"ns/b\",\"result\":\"failed for "
        "good\",\"attempt\":1,\"message\":\"the spec makes no sense\"}]");
    rig_add(&r, "ns/a", "D");
    rig_add(&r, "ns/c", "D");
    kl_value_unref(kl_map_take(r.objects, "ns/b"));
    kl_workqueue_add(r.queue, "ns/b", kl_clock_now(r.clock));
    rig_round(&r);
    assert_filled(&r, t, failing, 0, "[]");
    end(&r, t);
}

KL_TESTS(cmocka_unit_test(runs_failures_and_writes_count_for_their_generation),
    cmocka_unit_test(a_key_fails_until_it_succeeds_or_is_gone))

/* not in tsan: it starts no thread */
