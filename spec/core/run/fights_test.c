/* fights_test.c - keys in endless loops, alone or with another controller, and keys that only look like it.
 */
#include "support/test.h"

#include "base/mem.h"
#include "run/fights.h"

typedef struct ring {
    kl_fights *f;
    kl_time now;
    int rv;
    kl_fight said;
    bool told;
} ring;

static void ring_init(ring *r)
{
    *r = (ring){.f = kl_fights_new("us", false), .now = KL_SECONDS(1000), .rv = 100};
}

static void ring_fini(ring *r)
{
    kl_fight_fini(&r->said);
    kl_fights_free(r->f);
}

static const kl_value *object(const char *uid, int rv, int replicas, int count, const char *managers)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    char *text = kl_sprintf("{\"apiVersion\":\"apps/"
                            "v1\",\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\","
                            "\"uid\":\"%s\",\"resourceVersion\":\"%d\","
                            "\"annotations\":{\"count\":\"%d\"}%s%s},\"spec\":{\"replicas\":%d}}",
        uid, rv, count, managers ? ",\"managedFields\":" : "", managers ? managers : "", replicas);
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    kl_free(text);
    return v;
}

/* A run that `woke` brought, and which wrote `answer`; both are taken over, NULL: nothing did, it wrote
 * nothing. */
static void run(ring *r, const kl_value *woke, const kl_value *answer)
{
    kl_fight_fini(&r->said);
    kl_fights_began(r->f, "ns/a", woke, r->now);
    if (answer)
        kl_fights_wrote(r->f, "ns/a", answer, r->now);
    r->told = kl_fights_ended(r->f, "ns/a", r->now, &r->said);
    kl_value_unref(woke);
    kl_value_unref(answer);
}

/* Woken by its last write, a run counts on. */
static void count_on(ring *r, int n)
{
    run(r, object("u", r->rv, 1, n - 1, NULL), object("u", r->rv + 1, 1, n, NULL));
    r->rv++;
}

static void a_counter_is_a_loop(void **state)
{
    (void)state;
    ring r;
    kl_time until;
    ring_init(&r);
    run(&r, NULL, object("u", r.rv, 1, 0, NULL));
    for (int i = 1; i < KL_FIGHTS_LOOP_RUNS; i++) {
        r.now += KL_MILLISECONDS(10);
        count_on(&r, i);
        assert_false(r.told);
        assert_false(kl_fights_holds(r.f, "ns/a", r.now, &until));
    }
    count_on(&r, KL_FIGHTS_LOOP_RUNS);
    assert_true(r.told);
    assert_int_equal(r.said.kind, KL_FIGHT_LOOP);
    assert_int_equal(r.said.rounds, KL_FIGHTS_LOOP_RUNS);
    assert_string_equal(r.said.object, "apps/v1/Deployment ns/a");
    assert_string_equal(r.said.path, "metadata.annotations.count");
    assert_true(kl_fights_holds(r.f, "ns/a", r.now, &until));
    assert_true(until == r.now + KL_FIGHTS_DELAY_MIN);
    assert_false(kl_fights_holds(r.f, "ns/b", r.now, &until));
    assert_int_equal(kl_fights_held(r.f), 1);
    for (kl_time d = 2 * KL_FIGHTS_DELAY_MIN, i = 0; i < 10; i++, d *= 2) {
        kl_fights_holds(r.f, "ns/a", r.now, &until);
        r.now = until;
        count_on(&r, KL_FIGHTS_LOOP_RUNS + 1 + (int)i);
        assert_false(r.told); /* once is enough */
        assert_true(kl_fights_holds(r.f, "ns/a", r.now, &until));
        assert_true(until == r.now + (d < KL_FIGHTS_DELAY_MAX ? d : KL_FIGHTS_DELAY_MAX));
    }
    r.now = until;
    run(&r, object("u", r.rv, 1, 99, NULL), NULL); /* it has nothing to write any more */
    assert_true(r.told && r.said.over);
    assert_false(kl_fights_holds(r.f, "ns/a", r.now, &until));
    assert_int_equal(kl_fights_held(r.f), 0);
    ring_fini(&r);
}

static void in_virtual_time_a_loop_is_reported_late_and_again_without_delays(void **state)
{
    (void)state;
    ring r = {.f = kl_fights_new("us", true), .now = KL_SECONDS(1000), .rv = 100};
    kl_time until;
    run(&r, NULL, object("u", r.rv, 1, 0, NULL));
    for (int i = 1; i <= 2 * KL_FIGHTS_STILL_RUNS; i++) {
        count_on(&r, i);
        assert_int_equal(r.told, i % KL_FIGHTS_STILL_RUNS == 0);
        assert_false(kl_fights_holds(r.f, "ns/a", r.now, &until));
    }
    assert_int_equal(r.said.kind, KL_FIGHT_LOOP);
    assert_int_equal(r.said.rounds, KL_FIGHTS_STILL_RUNS);
    for (int i = 0; i < 3 * KL_FIGHTS_ROUNDS; i++) { /* a test that plays the other manager is no fight */
        r.rv++;
        run(&r, object("u", r.rv, 5, 0, NULL), object("u", r.rv + 1, 3, 0, NULL));
        r.rv++;
        assert_false(r.told);
    }
    ring_fini(&r);
}

static void converging_slow_or_external_changes_are_no_loop(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        ring r;
        ring_init(&r);
        run(&r, NULL, object("u", r.rv, 1, 0, NULL));
        for (int i = 1; i < 100; i++) {
            if (kind == 0 && i % 10 == 0) {
                run(&r, object("u", r.rv, 1, i, NULL), NULL); /* ten steps, then it is done */
            } else if (kind == 1) {
                r.now += KL_FIGHTS_LOOP_PACE + 1; /* a heartbeat */
                count_on(&r, i);
            } else if (kind == 2) {
                run(&r, object("other", 5000 + i, 1, 0, NULL), object("u", ++r.rv, 1, i, NULL));
            } else {
                count_on(&r, i);
            }
            assert_false(r.told);
        }
        ring_fini(&r);
    }
}

#define THEIRS                                                                                               \
    "[{\"manager\":\"us\",\"time\":\"2026-01-01T00:00:09Z\",\"fieldsV1\":{\"f:metadata\":{\"f:"              \
    "annotations\":{\"f:count\":{}}}}},"                                                                     \
    "{\"manager\":\"autoscaler\",\"time\":\"2026-01-01T00:00:01Z\",\"fieldsV1\":{\"f:spec\":{\"f:"           \
    "replicas\":{}}}}]"

/* They make 5 of it, we make 3 of it. */
static void a_round(ring *r, const char *managers, bool ours)
{
    r->rv++;
    const kl_value *woke = object("u", r->rv, 5, 0, managers);
    run(r, woke, ours ? object("u", ++r->rv, 3, 0, managers) : NULL);
}

static void a_field_that_goes_back_and_forth_is_a_fight(void **state)
{
    (void)state;
    ring r;
    kl_time until;
    ring_init(&r);
    run(&r, NULL, object("u", r.rv, 3, 0, NULL));
    for (int i = 1; i < KL_FIGHTS_ROUNDS; i++) {
        r.now += KL_SECONDS(1);
        a_round(&r, THEIRS, true);
        run(&r, object("u", r.rv, 3, 0, NULL), NULL); /* our own event, between the rounds */
        assert_false(r.told);
    }
    a_round(&r, THEIRS, true);
    assert_true(r.told);
    assert_int_equal(r.said.kind, KL_FIGHT_FIELD);
    assert_int_equal(r.said.rounds, KL_FIGHTS_ROUNDS);
    assert_string_equal(r.said.path, "spec.replicas");
    assert_string_equal(r.said.other, "autoscaler");
    assert_true(kl_fights_holds(r.f, "ns/a", r.now, &until));
    run(&r, object("u", r.rv, 3, 0, NULL), NULL);
    assert_false(r.told); /* that is not a peace yet */
    a_round(&r, THEIRS, true);
    assert_false(r.told);
    a_round(&r, THEIRS, false);
    assert_true(r.told && r.said.over); /* we let it be */
    assert_false(kl_fights_holds(r.f, "ns/a", r.now, &until));
    ring_fini(&r);
}

static void the_last_other_writer_is_named_when_nobody_owns_the_field_and_nobody_when_that_is_not_known(
    void **state)
{
    (void)state;
    static const struct {
        const char *managers, *want;
    } cases[] = {
        {"[{\"manager\":\"old\",\"time\":\"2026-01-01T00:00:01Z\"},{\"manager\":\"new\",\"time\":\"2026-01-"
         "01T00:00:02Z\"},{\"manager\":\"us\",\"time\":\"2026-01-01T00:00:03Z\"}]",
            "new"},
        {"[{\"manager\":\"us\",\"time\":\"2026-01-01T00:00:03Z\"}]", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ring r;
        ring_init(&r);
        run(&r, NULL, object("u", r.rv, 3, 0, NULL));
        for (int k = 0; k < KL_FIGHTS_ROUNDS; k++)
            a_round(&r, cases[i].managers, true);
        assert_true(r.told);
        assert_true(
            !r.said.other == !cases[i].want && (!cases[i].want || !strcmp(cases[i].want, r.said.other)));
        ring_fini(&r);
    }
}

static void manual_edits_are_not_a_fight(void **state)
{
    (void)state;
    ring r;
    ring_init(&r);
    run(&r, NULL, object("u", r.rv, 3, 0, NULL));
    for (int i = 0; i < 3 * KL_FIGHTS_ROUNDS; i++) {
        a_round(&r, THEIRS, i % 4 != 3); /* every fourth time we leave it */
        assert_false(r.told);
    }
    a_round(&r, THEIRS, false);
    for (int i = 0; i < 3 * KL_FIGHTS_ROUNDS; i++) {
        r.now += KL_MINUTES(2);
        a_round(&r, THEIRS, true);
        assert_false(r.told);
    }
    ring_fini(&r);
}

static void old_writes_and_those_of_other_generations_are_forgotten(void **state)
{
    (void)state;
    for (int clear = 0; clear < 2; clear++) {
        ring r;
        kl_time until;
        ring_init(&r);
        run(&r, NULL, object("u", r.rv, 1, 0, NULL));
        for (int i = 1; i <= KL_FIGHTS_LOOP_RUNS; i++)
            count_on(&r, i);
        assert_true(r.told);
        if (clear)
            kl_fights_clear(r.f);
        else
            r.now += KL_MINUTES(10);
        count_on(&r, 50);
        assert_false(r.told);
        assert_false(kl_fights_holds(r.f, "ns/a", r.now, &until));
        assert_int_equal(kl_fights_held(r.f), 0);
        ring_fini(&r);
    }
}

static void keys_that_wrote_long_ago_make_room(void **state)
{
    (void)state;
    ring r;
    ring_init(&r);
    for (int i = 0; i < 3 * KL_FIGHTS_KEYS; i++) {
        char key[32];
        snprintf(key, sizeof key, "ns/%d", i);
        const kl_value *o = object("u", 100 + i, 1, 0, NULL);
        kl_fights_wrote(r.f, key, o, r.now);
        kl_value_unref(o);
    }
    r.now += KL_MINUTES(10);
    run(&r, NULL, object("u", r.rv, 1, 0, NULL));
    for (int i = 1; i <= KL_FIGHTS_LOOP_RUNS; i++)
        count_on(&r, i);
    assert_true(r.told);
    ring_fini(&r);
}

KL_TESTS(cmocka_unit_test(a_counter_is_a_loop),
    cmocka_unit_test(in_virtual_time_a_loop_is_reported_late_and_again_without_delays),
    cmocka_unit_test(converging_slow_or_external_changes_are_no_loop),
    cmocka_unit_test(a_field_that_goes_back_and_forth_is_a_fight),
    cmocka_unit_test(
        the_last_other_writer_is_named_when_nobody_owns_the_field_and_nobody_when_that_is_not_known),
    cmocka_unit_test(manual_edits_are_not_a_fight),
    cmocka_unit_test(old_writes_and_those_of_other_generations_are_forgotten),
    cmocka_unit_test(keys_that_wrote_long_ago_make_room))

/* not in tsan: it starts no thread */
