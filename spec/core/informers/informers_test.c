/* informers_test.c - shared informers of a client, against the embedded API server over real sockets. */
#include "support/test.h"

#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"
#include "informers/informers.h"
#include "informers/kinds.h"
#include "server/server.h"

/* A bound for hangs, generous for sanitizers. */
#define PATIENCE KL_SECONDS(60)

typedef struct world {
    kl_server *server;
    kl_client *client;
    kl_informers *f;
    kl_clock *clock; /* stands still, where there is one: no wait ends by itself */
    kl_mutex mu;
    kl_cond cond;
    int troubles; /* under mu */
    kl_informer *troubled;
} world;

static void on_trouble(void *arg, kl_informer *i)
{
    world *w = arg;
    kl_lock(&w->mu);
    w->troubles++;
    w->troubled = i;
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

static int start_with(void **state, kl_clock *clock)
{
    world *w = kl_new(world);
    w->clock = clock;
    *state = w;
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->cond);
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0"}, &w->server, &err), &err);
    kl_client_options o = {0};
    kl_config_for_server(kl_server_url(w->server), &o.config);
    assert_ok(kl_client_new(&o, &w->client, &err), &err);
    w->f = kl_informers_new(
        &(kl_informers_options){.client = w->client, .on_trouble = on_trouble, .arg = w, .clock = clock});
    return 0;
}

static int start(void **state) { return start_with(state, NULL); }
static int start_without_time(void **state)
{
    return start_with(state, kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000)));
}

static int stop(void **state)
{
    world *w = *state;
    kl_informers_free(w->f);
    kl_client_free(w->client);
    kl_server_stop(w->server);
    kl_cond_fini(&w->cond);
    kl_mutex_fini(&w->mu);
    if (w->clock)
        kl_clock_fake_free(w->clock);
    kl_free(w);
    return 0;
}

static void load(world *w, const char *json)
{
    const kl_value *o;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(json, strlen(json), &o, &err), &err);
    assert_ok(kl_server_load(w->server, o, &err), &err);
    kl_value_unref(o);
}

#define MAP(name, label)                                                                                     \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name                           \
    "\",\"namespace\":\"default\",\"labels\":{\"l\":\"" label "\"}},\"data\":{\"a\":\"1\",\"b\":\"2\"}}"

static kl_informer *acquire(world *w, const kl_informer_want *want)
{
    kl_informer *i;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_informers_acquire(w->f, want, &i, &err), &err);
    return i;
}

static bool synced(world *w) { return kl_informers_wait(w->f, kl_clock_now(kl_clock_real()) + PATIENCE); }

static void equal_wants_share_one_and_the_last_user_stops_it(void **state)
{
    world *w = *state;
    load(w, MAP("a", "x"));
    load(w, MAP("b", "y"));
    const char *const paths[] = {"data.a"};
    kl_projection *keep;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_projection_new(paths, 1, &keep, &err), &err);
    const kl_informer_want all = {.kind = "v1/ConfigMap"},
                           some = {.kind = "v1/ConfigMap", .ns = "default", .labels = "l=x", .keep = keep};
    kl_informer *i = acquire(w, &all), *j = acquire(w, &some);
    assert_ptr_equal(acquire(w, &all), i);
    assert_ptr_not_equal(i, j);
    kl_informers_start(w->f);
    assert_true(synced(w));
    assert_int_equal(kl_informer_count(i), 2);
    assert_int_equal(kl_informer_count(j), 1);
    const kl_value *o = kl_informer_lookup(j, "default/a");
    assert_string_equal(kl_value_str_at(o, "data", "a", NULL), "1");
    assert_null(kl_value_str_at(o, "data", "b", NULL));
    kl_value_unref(o);

    kl_informer_ref(i);
    kl_informers_release(w->f, i);
    load(w, MAP("c", "z"));
    kl_informer *later = acquire(w, &some); /* one that waits for the event with us */
    assert_ptr_equal(later, j);
    kl_informers_release(w->f, i);
    kl_informer *fresh = acquire(w, &all);
    assert_ptr_not_equal(fresh, i);
    kl_informers_start(w->f);
    assert_true(synced(w));
    assert_int_equal(kl_informer_count(fresh), 3);
    kl_informer_unref(i);
    kl_projection_unref(keep);
}

#define THINGS                                                                                               \
    "{\"apiVersion\":\"apiextensions.k8s.io/"                                                                \
    "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"things.example.com\"},"             \
    "\"spec\":{\"group\":\"example.com\",\"scope\":\"Cluster\",\"names\":{\"plural\":\"things\","            \
    "\"singular\":\"thing\",\"kind\":\"Thing\",\"listKind\":\"ThingList\"},"                                 \
    "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"      \
    "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}]}}"

/* What a handler heard of. */
typedef struct ears {
    world *w;
    int added, deleted;
} ears; /* under w->mu */

static void hear(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    ears *e = arg;
    (void)old;
    (void)now;
    (void)flags;
    kl_lock(&e->w->mu);
    e->added += type == KL_ADDED;
    e->deleted += type == KL_DELETED;
    kl_cond_broadcast(&e->w->cond);
    kl_unlock(&e->w->mu);
}

static void await_heard(ears *e, int added, int deleted)
{
    kl_lock(&e->w->mu);
    while (e->added != added || e->deleted != deleted)
        assert_true(kl_cond_wait_until(&e->w->cond, &e->w->mu, kl_clock_now(kl_clock_real()) + PATIENCE));
    kl_unlock(&e->w->mu);
}

static void a_kind_that_comes_later_heals_what_waits_for_it(void **state)
{
    world *w = *state;
    kl_informer *i = acquire(w, &(kl_informer_want){.kind = "example.com/v1/Thing"});
    kl_informers_start(w->f);
    kl_lock(&w->mu);
    while (!w->troubles)
        assert_true(kl_cond_wait_until(&w->cond, &w->mu, kl_clock_now(kl_clock_real()) + PATIENCE));
    assert_ptr_equal(w->troubled, i);
    kl_unlock(&w->mu);
    kl_informer_stats st;
    kl_informer_stats_get(i, &st);
    assert_true(st.parked);
    assert_int_equal(st.failure, KL_ENOTFOUND);
    assert_non_null(strstr(st.message, "example.com"));
    kl_informer_stats_fini(&st);
    assert_false(kl_informers_wait(w->f, 0));
    load(w, THINGS);
    load(w, "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"}}");
    assert_true(synced(w));
    const kl_value *o = kl_informer_lookup(i, "t");
    assert_string_equal(kl_value_str(kl_value_get(o, "kind")), "Thing");
    kl_value_unref(o);
    kl_informer_stats_get(i, &st);
    assert_int_equal(st.failure, KL_OK);
    kl_informer_stats_fini(&st);
}

static void a_kind_that_goes_takes_its_objects_along_and_comes_back(void **state)
{
    world *w = *state;
    ears e = {.w = w};
    kl_err err = KL_ERR_INIT;
    load(w, THINGS);
    load(w, "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"}}");
    kl_informer *i = acquire(w, &(kl_informer_want){.kind = "example.com/v1/Thing"}),
                *other = acquire(w, &(kl_informer_want){.kind = "nobody.example.com/v1/Nothing"});
    kl_subscription *sub = kl_informer_subscribe(i, &(kl_handler){.on_event = hear, .arg = &e});
    /* somebody else misses a kind, so that news are watched already */
    kl_informers_start(w->f);
    await_heard(&e, 1, 0);
    kl_op op;
    const kl_value *gone = NULL;
    kl_op_init(&op, KL_DELETE, kl__news_kinds[0]);
    op.name = "things.example.com";
    assert_ok(kl_client_wait(w->client, &op, &gone, &err), &err);
    kl_value_unref(gone);
    await_heard(&e, 1, 1);
    load(w, THINGS);
    load(w, "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"u\"}}");
    await_heard(&e, 2, 1);
    kl_informer_unsubscribe(sub);
    kl_informers_release(w->f, other);
    kl_informers_release(w->f, i);
}

/* Whatever is under way: a lookup, a list, a watch. */
static void everything_can_be_stopped_at_any_moment(void **state)
{
    world *w = *state;
    load(w, MAP("a", "x"));
    for (int n = 0; n < 60; n++) {
        kl_client_options o = {0};
        kl_config_for_server(kl_server_url(w->server), &o.config);
        kl_client *c;
        kl_err err = KL_ERR_INIT;
        assert_ok(kl_client_new(&o, &c, &err), &err);
        kl_informers *f = kl_informers_new(&(kl_informers_options){.client = c});
        kl_informer *i, *j;
        assert_ok(kl_informers_acquire(f, &(kl_informer_want){.kind = "v1/ConfigMap"}, &i, &err), &err);
        assert_ok(
            kl_informers_acquire(f, &(kl_informer_want){.kind = "nobody.example.com/v1/Nothing"}, &j, &err),
            &err);
        kl_informers_start(f);
        if (n % 3 == 1)
            kl_informers_release(f, j);
        (void)kl_informers_wait(f, kl_clock_now(kl_clock_real()) + KL_MICROSECONDS(200 * n));
        if (n % 2)
            kl_informers_stop(f);
        kl_informers_free(f);
        kl_client_free(c);
    }
}

static void invalid_options_are_reported(void **state)
{
    world *w = *state;
    kl_informer *i;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(kl_informers_acquire(w->f, &(kl_informer_want){.kind = "Pod"}, &i, &err), KL_EINVAL);
    assert_non_null(strstr(kl_err_message(&err), "version"));
    kl_err_fini(&err);
    assert_int_not_equal(kl_informers_acquire(w->f, &(kl_informer_want){.kind = ""}, &i, &err), KL_OK);
    kl_err_fini(&err);
    assert_true(kl_informers_wait(w->f, 0)); /* nothing was started */
    kl_informers_stop(w->f);
    assert_false(kl_informers_wait(w->f, 0));
    assert_int_equal(kl_informers_acquire(w->f, &(kl_informer_want){.kind = "v1/Pod"}, &i, &err), KL_EINVAL);
    assert_non_null(strstr(kl_err_message(&err), "shut down"));
    kl_err_fini(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_wants_share_one_and_the_last_user_stops_it, start, stop),
        cmocka_unit_test_setup_teardown(
            a_kind_that_comes_later_heals_what_waits_for_it, start_without_time, stop),
        cmocka_unit_test_setup_teardown(
            a_kind_that_goes_takes_its_objects_along_and_comes_back, start_without_time, stop),
        cmocka_unit_test_setup_teardown(everything_can_be_stopped_at_any_moment, start, stop),
        cmocka_unit_test_setup_teardown(invalid_options_are_reported, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
