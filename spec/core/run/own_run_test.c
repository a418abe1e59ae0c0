/* own_run_test.c - a worker with a late cache: the runs that wait for earlier writes, and those that do not.
 */
#include "support/fake_source.h"

#include "core/run/worker_rig.h"

typedef struct world {
    rig r;
    fake_source f;
    kl_informer *i;
} world;

static void nothing(void *arg) { (void)arg; }

/* The controller's config maps are cached; the cache has come to version 10. */
static void setup(world *w, kl_time own_writes, const char *serial)
{
    kl_err err = KL_ERR_INIT;
    rig_init(&w->r, 0, 0);
    fake_init(&w->f);
    w->r.gens[0].spec.own_writes = own_writes;
    if (serial)
        assert_ok(kl_path_parse(serial, &w->r.gens[0].spec.serial.path, &err), &err);
    w->r.resource = (kl_resource){.group = (char *)"",
        .version = (char *)"v1",
        .kind = (char *)"ConfigMap",
        .plural = (char *)"configmaps",
        .namespaced = true};
    w->r.resource_known = true;
    w->i = kl_informer_new(&(kl_informer_options){.source = fake_source_of(&w->f),
        .clock = w->f.clock,
        .resource = "configmaps",
        .api_version = "v1",
        .kind = "ConfigMap"});
    kl_informer_start(w->i);
    kl_own_writes_watch(w->r.own_writes, w->i, &w->r.resource, NULL, NULL);
    fake_pump(&w->f);
    fake_listed(&w->f, "10", NULL);
    fake_opens(&w->f);
}

static void teardown(world *w)
{
    kl_path_free(w->r.gens[0].spec.serial.path);
    kl_own_writes_unwatch(w->r.own_writes, w->i);
    kl_informer_stop(w->i, nothing, NULL);
    fake_pump(&w->f);
    kl_informer_unref(w->i);
    fake_pump(&w->f);
    rig_fini(&w->r);
    fake_fini(&w->f);
}

#define WRITTEN                                                                                              \
    "{\"kind\":\"ConfigMap\",\"name\":\"m\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"m\",\"uid\":"      \
    "\"u\",\"resourceVersion\":\"12\"}}"

/* ns/a writes, and is changed meanwhile. */
static void write_and_change(world *w)
{
    rig_add(&w->r, "ns/a", "cD");
    rig_round(&w->r);
    rig_add(&w->r, "ns/a", "D");
    rig_answer(&w->r, 1, KL_OK, WRITTEN);
    rig_round(&w->r);
}

static void a_run_starts_when_the_cache_shows_the_previous_writes(void **state)
{
    (void)state;
    world w;
    setup(&w, 0, NULL);
    write_and_change(&w);
    assert_said(&w.r, "open1 g1+ns/a#1 ok:m");
    assert_string_equal(rig_state(&w.r, "ns/a"), "held");
    rig_add(&w.r, "ns/b", "D");
    rig_add(&w.r, "ns/a", "D"); /* whatever else happens to it */
    assert_int_equal(rig_round(&w.r), 5);
    assert_said(&w.r, "g1+ns/b#1");
    assert_string_equal(rig_state(&w.r, "ns/a"), "held");
    assert_int_equal(kl_worker_inflight(w.r.w), 0);
    fake_event(&w.f, "ADDED", WRITTEN);
    fake_pump(&w.f);
    rig_round(&w.r);
    assert_said(&w.r, "g1+ns/a#1");
    assert_string_equal(rig_state(&w.r, "ns/a"), "absent");
    teardown(&w);
}

static void it_waits_as_long_as_the_spec_says_and_no_longer(void **state)
{
    (void)state;
    world w;
    setup(&w, KL_SECONDS(2), NULL);
    write_and_change(&w);
    assert_said(&w.r, "open1 g1+ns/a#1 ok:m");
    assert_int_equal(rig_round(&w.r), 2);
    rig_advance(&w.r, KL_SECONDS(2));
    rig_round(&w.r);
    assert_said(&w.r, "g1+ns/a#1");
    assert_non_null(strstr(
        kl_buf_str(&w.r.log), "running anyway: controller=ctl key=ns/a waits_for=\"v1/ConfigMap ns/m\""));
    teardown(&w);
}

static void without_own_writes_a_run_may_see_older_state(void **state)
{
    (void)state;
    world w;
    setup(&w, -1, NULL);
    write_and_change(&w);
    assert_said(&w.r, "open1 g1+ns/a#1 ok:m g1+ns/a#1");
    assert_null(kl_informer_lookup(w.i, "ns/m"));
    teardown(&w);
}

static void a_write_that_failed_is_not_waited_for(void **state)
{
    (void)state;
    world w;
    setup(&w, 0, NULL);
    rig_add(&w.r, "ns/a", "cD");
    rig_round(&w.r);
    rig_add(&w.r, "ns/a", "gD");
    rig_answer(&w.r, 1, KL_EEXISTS, NULL);
    rig_round(&w.r);
    assert_said(&w.r, "open1 g1+ns/a#1 err:already_exists g1+ns/a#1");
    rig_add(&w.r, "ns/a", "D");
    rig_answer(&w.r, 2, KL_OK, WRITTEN); /* nor is what was read */
    rig_round(&w.r);
    assert_said(&w.r, "ok:m g1+ns/a#1");
    teardown(&w);
}

static void the_next_of_a_group_sees_the_writes_of_the_last(void **state)
{
    (void)state;
    world w;
    setup(&w, 0, "spec.group");
    rig_object_set(&w.r, "ns/a", "{\"spec\":{\"group\":\"g\"}}");
    rig_object_set(&w.r, "ns/b", "{\"spec\":{\"group\":\"g\"}}");
    rig_object_set(&w.r, "ns/c", "{\"spec\":{\"group\":\"g\"}}");
    rig_object_set(&w.r, "ns/d", "{\"spec\":{\"group\":\"h\"}}");
    rig_add(&w.r, "ns/a", "cD");
    rig_add(&w.r, "ns/b", "D");
    rig_add(&w.r, "ns/c", "D");
    rig_add(&w.r, "ns/d", "D");
    rig_round(&w.r);
    rig_answer(&w.r, 1, KL_OK, WRITTEN);
    rig_round(&w.r);
    assert_said(&w.r, "open1 g1+ns/a#1 g1+ns/d#1 ok:m");
    assert_string_equal(rig_state(&w.r, "ns/b"), "held");
    assert_string_equal(rig_state(&w.r, "ns/c"), "waiting for its group");
    fake_event(&w.f, "ADDED", WRITTEN);
    fake_pump(&w.f);
    rig_round(&w.r);
    assert_said(&w.r, "g1+ns/b#1 g1+ns/c#1");
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(a_run_starts_when_the_cache_shows_the_previous_writes),
    cmocka_unit_test(it_waits_as_long_as_the_spec_says_and_no_longer),
    cmocka_unit_test(without_own_writes_a_run_may_see_older_state),
    cmocka_unit_test(a_write_that_failed_is_not_waited_for),
    cmocka_unit_test(the_next_of_a_group_sees_the_writes_of_the_last))

/* not in tsan: it starts no thread */
