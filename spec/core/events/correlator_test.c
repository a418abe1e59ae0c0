/* correlator_test.c - equal, similar and too many Events. The clock is a number. */
#include "support/test.h"

#include "base/mem.h"
#include "events/correlator.h"

typedef struct world {
    kl_correlator *c;
    const kl_value *pod, *other;
    kl_time now;
} world;

static const kl_value *json(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static world setup(void)
{
    return (world){kl_correlator_new(),
        json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\","
             "\"uid\":\"u1\"}}"),
        json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"b\","
             "\"uid\":\"u2\"}}"),
        KL_SECONDS(1000)};
}

static void teardown(world *w)
{
    kl_correlator_free(w->c);
    kl_value_unref(w->pod);
    kl_value_unref(w->other);
}

static kl_news news(world *w)
{
    return (kl_news){.component = "ctl", .about = w->pod, .type = "Normal", .reason = "Seen", .note = "it"};
}

static char *see(world *w, kl_news n, bool *combined)
{
    return kl_correlator_see(w->c, &n, w->now, combined);
}

static void assert_same(world *w, kl_news a, kl_news b, bool same)
{
    bool ca, cb;
    char *x = see(w, a, &ca), *y = see(w, b, &cb);
    assert_int_equal(!strcmp(x, y), same);
    kl_free(x);
    kl_free(y);
}

static void events_are_equal_if_all_but_the_version_agrees(void **state)
{
    (void)state;
    world w = setup();
    kl_news a = news(&w), b = a;
    const kl_value *newer = json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\","
                                 "\"name\":\"a\",\"uid\":\"u1\",\"resourceVersion\":\"8\"}}");
    b.about = newer;
    assert_same(&w, a, b, true);
    b = a, b.about = w.other;
    assert_same(&w, a, b, false);
    b = a, b.related = w.other;
    assert_same(&w, a, b, false);
    b = a, b.type = "Warning";
    assert_same(&w, a, b, false);
    b = a, b.reason = "Lost";
    assert_same(&w, a, b, false);
    b = a, b.action = "Look";
    assert_same(&w, a, b, false);
    b = a, b.component = "other";
    assert_same(&w, a, b, false);
    b = a, b.note = "them";
    assert_same(&w, a, b, false);
    kl_value_unref(newer);
    teardown(&w);
}

/* Whether the i-th different note is combined. */
static bool note(world *w, int i, char **key)
{
    char text[16];
    bool combined;
    snprintf(text, sizeof text, "note %d", i);
    kl_news n = news(w);
    n.note = text;
    char *k = see(w, n, &combined);
    if (key)
        *key = k;
    else
        kl_free(k);
    return combined;
}

static void the_tenth_note_within_ten_minutes_is_combined_with_those_after_it(void **state)
{
    (void)state;
    world w = setup();
    char *first, *second;
    for (int i = 1; i <= 9; i++)
        assert_false(note(&w, i, NULL));
    assert_true(note(&w, 10, &first));
    assert_true(note(&w, 11, &second));
    assert_string_equal(first, second);
    assert_false(note(&w, 11, NULL)); /* known now: it repeats for itself */
    kl_free(first);
    kl_free(second);
    kl_news n = news(&w);
    n.reason = "Other";
    bool combined;
    kl_free(see(&w, n, &combined));
    assert_false(combined); /* another reason has its own ten */
    teardown(&w);
}

static void notes_that_repeat_are_not_combined(void **state)
{
    (void)state;
    world w = setup();
    for (int round = 0; round < 20; round++)
        for (int i = 1; i <= 9; i++)
            assert_false(note(&w, i, NULL));
    teardown(&w);
}

static void ten_quiet_minutes_restart_the_count(void **state)
{
    (void)state;
    world w = setup();
    for (int i = 1; i <= 9; i++)
        assert_false(note(&w, i, NULL));
    w.now += KL_SECONDS(600);
    assert_true(note(&w, 10, NULL)); /* just within */
    w.now += KL_SECONDS(600) + 1;
    assert_false(note(&w, 11, NULL));
    teardown(&w);
}

static bool allow(world *w, kl_news n, bool *first) { return kl_correlator_allow(w->c, &n, w->now, first); }

static void an_object_has_25_events_at_once_and_one_more_every_five_minutes(void **state)
{
    (void)state;
    world w = setup();
    bool first;
    for (int i = 0; i < 25; i++)
        assert_true(allow(&w, news(&w), &first));
    assert_false(allow(&w, news(&w), &first));
    assert_true(first);
    assert_false(allow(&w, news(&w), &first));
    assert_false(first); /* said once */
    kl_news warning = news(&w), other = news(&w), source = news(&w);
    warning.type = "Warning";
    other.about = w.other;
    source.component = "other";
    assert_true(allow(&w, warning, &first));
    assert_true(allow(&w, other, &first));
    assert_true(allow(&w, source, &first));
    w.now += KL_SECONDS(299);
    assert_false(allow(&w, news(&w), &first));
    w.now += KL_SECONDS(2);
    assert_true(allow(&w, news(&w), &first));
    assert_false(allow(&w, news(&w), &first));
    assert_true(first); /* said again, after one that passed */
    w.now += KL_SECONDS(300) * 1000;
    for (int i = 0; i < 25; i++)
        assert_true(allow(&w, news(&w), &first));
    assert_false(allow(&w, news(&w), &first)); /* never more than the burst */
    teardown(&w);
}

static void the_least_recently_used_entry_is_forgotten(void **state)
{
    (void)state;
    world w = setup();
    bool first;
    for (int i = 0; i < 25; i++)
        assert_true(allow(&w, news(&w), &first));
    assert_false(allow(&w, news(&w), &first));
    for (int i = 0; i < 4096; i++) {
        char component[16];
        snprintf(component, sizeof component, "c%d", i);
        kl_news n = news(&w);
        n.component = component;
        assert_true(allow(&w, n, &first));
    }
    assert_true(allow(&w, news(&w), &first));
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(events_are_equal_if_all_but_the_version_agrees),
    cmocka_unit_test(the_tenth_note_within_ten_minutes_is_combined_with_those_after_it),
    cmocka_unit_test(notes_that_repeat_are_not_combined),
    cmocka_unit_test(ten_quiet_minutes_restart_the_count),
    cmocka_unit_test(an_object_has_25_events_at_once_and_one_more_every_five_minutes),
    cmocka_unit_test(the_least_recently_used_entry_is_forgotten))

/* not in tsan: it starts no thread */
