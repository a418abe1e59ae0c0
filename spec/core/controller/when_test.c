/* when_test.c - which changes of watched kinds count, selectors, and how urgent a key is. */
#include "core/controller/wiring_rig.h"

#define TIER(value) "\"labels\":{\"tier\":\"" value "\"}"

static void a_selector_passes_objects_that_match_or_matched(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    assert_int_equal(kl_selector_parse("tier=front", &r.spec.when.selector, NULL), KL_OK);
    rig_start(&r);
    fake_source *f = &r.kinds[APP].f;
    fake_event(f, "ADDED", thing("a", 101, TIER("front"), ""));
    fake_event(f, "ADDED", thing("b", 102, TIER("back"), ""));
    assert_taken(&r, "ns/a");
    fake_event(f, "MODIFIED", thing("b", 103, TIER("back"), "\"x\":1"));
    assert_taken(&r, "");
    fake_event(f, "MODIFIED", thing("a", 104, TIER("back"), ""));
    fake_event(f, "MODIFIED", thing("b", 105, TIER("front"), ""));
    assert_taken(&r, "ns/a ns/b");
    fake_event(f, "DELETED", thing("a", 106, TIER("back"), ""));
    fake_event(f, "DELETED", thing("b", 107, TIER("front"), ""));
    assert_taken(&r, "ns/b");
    kl_selector_free(r.spec.when.selector);
    rig_fini(&r);
}

static void a_selector_transition_passes_whatever_the_words_and_the_function_say(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    assert_int_equal(kl_selector_parse("tier=front", &r.spec.when.selector, NULL), KL_OK);
    r.spec.when.words = (char *[]){"spec.x", NULL};
    r.spec.when.fn = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[APP].f;
    fake_event(f, "ADDED", thing("a", 101, TIER("front"), "\"spec\":{\"from\":\"k\",\"x\":1}"));
    taken(&r);
    fake_event(f, "MODIFIED", thing("a", 102, TIER("back"), "\"spec\":{\"from\":\"k\",\"x\":1}"));
    assert_taken(&r, "ns/a");
    fake_event(f, "MODIFIED", thing("a", 103, TIER("front"), "\"spec\":{\"from\":\"k\",\"x\":1}"));
    assert_taken(&r, "ns/a");
    assert_int_equal(r.asked, 0);
    /* the words say no: nobody is asked */
    fake_event(f, "MODIFIED", thing("a", 104, TIER("front"), "\"spec\":{\"from\":\"l\",\"x\":1}"));
    assert_taken(&r, "");
    assert_int_equal(r.asked, 0);
    fake_event(f, "MODIFIED", thing("a", 105, TIER("front"), "\"spec\":{\"from\":\"m\",\"x\":2}"));
    assert_taken(&r, "ns/a");
    assert_int_equal(r.asked, 1);
    kl_selector_free(r.spec.when.selector);
    rig_fini(&r);
}

static void a_watch_has_its_own_when(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = &(kl_watch_spec){
        .kind = "v1/Secret", .how = KL_MAP_SAME_NAME, .when.words = (char *[]){"data", NULL}};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("a", 101, "", "\"data\":{\"k\":\"1\"}"));
    assert_taken(&r, "ns/a");
    fake_event(f, "MODIFIED", thing("a", 102, TIER("x"), "\"data\":{\"k\":\"1\"}"));
    assert_taken(&r, "");
    fake_event(f, "MODIFIED", thing("a", 103, TIER("x"), "\"data\":{\"k\":\"2\"}"));
    assert_taken(&r, "ns/a");
    fake_event(f, "DELETED", thing("a", 104, "", "\"data\":{\"k\":\"2\"}"));
    assert_taken(&r, "ns/a");
    rig_fini(&r);
}

static void owned_kinds_have_their_own_when(void **state)
{
    static const char owned[] = "\"ownerReferences\":[{\"apiVersion\":\"example.com/"
                                "v1\",\"kind\":\"App\",\"name\":\"a\",\"uid\":\"x\",\"controller\":true}]";
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.owns = &(kl_owned_spec){.kind = "v1/Secret", .when.words = (char *[]){"data", NULL}};
    r.spec.n_owns = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("s", 101, owned, "\"data\":1"));
    assert_taken(&r, "ns/a");
    fake_event(f, "MODIFIED", thing("s", 102, owned, "\"data\":1,\"type\":\"x\""));
    assert_taken(&r, "");
    fake_event(f, "MODIFIED", thing("s", 103, owned, "\"data\":2"));
    assert_taken(&r, "ns/a");
    rig_fini(&r);
}

static void a_function_may_filter_watched_objects_before_another_maps_them(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_FN, .fn = 1, .when.fn = 1};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("s", 101, "", "\"app\":\"ns/a\",\"spec\":{\"from\":\"x\"}"));
    assert_taken(&r, "ns/a");
    assert_int_equal(r.asked, 0);
    fake_event(f, "MODIFIED", thing("s", 102, "", "\"app\":\"ns/a\",\"spec\":{\"from\":\"x\"},\"n\":1"));
    assert_taken(&r, "");
    assert_int_equal(r.asked, 1);
    assert_int_equal(r.mapped, 1);
    fake_event(f, "MODIFIED", thing("s", 103, "", "\"app\":\"ns/b\",\"spec\":{\"from\":\"y\"}"));
    assert_taken(&r, "ns/a ns/b");
    rig_fini(&r);
}

static void a_path_says_how_urgent_a_key_is(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    assert_int_equal(kl_path_parse("spec.priority", &r.spec.priority_of.path, NULL), KL_OK);
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_SAME_NAME};
    r.spec.n_watches = 1;
    r.w = wire(&r, 1);
    fake_item(&r.kinds[APP].f, thing("a", 1, "", ""));
    fake_item(&r.kinds[APP].f, thing("b", 2, "", "\"spec\":{\"priority\":10}"));
    fake_item(&r.kinds[APP].f, thing("c", 3, "", "\"spec\":{\"priority\":\"1000\"}"));
    fake_item(&r.kinds[APP].f, thing("d", 4, "", "\"spec\":{\"priority\":-7.9}"));
    sync_all(&r);
    assert_true(kl_wiring_advance(r.w));
    kl_wiring_activate(r.w);
    assert_int_equal(kl_workqueue_priority(r.queue, "ns/a"), KL_PRIORITY_LOW);
    assert_int_equal(kl_workqueue_priority(r.queue, "ns/b"), KL_PRIORITY_LOW + 10);
    assert_int_equal(kl_workqueue_priority(r.queue, "ns/c"), KL_PRIORITY_LOW + KL_PRIORITY_MOST);
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("d", 105, "", "\"spec\":{\"priority\":-7.9},\"x\":1"));
    assert_int_equal(kl_workqueue_priority(r.queue, "ns/d"), -7);
    assert_taken(&r, "ns/d ns/c ns/b ns/a");
    /* of a key that another object wakes, too */
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("b", 106, "", ""));
    assert_int_equal(kl_workqueue_priority(r.queue, "ns/b"), 10);
    kl_path_free(r.spec.priority_of.path);
    r.spec.priority_of.path = NULL;
    taken(&r);
    rig_fini(&r);
}

KL_TESTS(cmocka_unit_test(a_selector_passes_objects_that_match_or_matched),
    cmocka_unit_test(a_selector_transition_passes_whatever_the_words_and_the_function_say),
    cmocka_unit_test(a_watch_has_its_own_when), cmocka_unit_test(owned_kinds_have_their_own_when),
    cmocka_unit_test(a_function_may_filter_watched_objects_before_another_maps_them),
    cmocka_unit_test(a_path_says_how_urgent_a_key_is))

/* not in tsan: it starts no thread */
