/* own_writes_test.c - the writes that caches owe a key, and how they show them: informers over sources that
 * the test controls, a queue, and a stopped clock. */
#include "support/fake_source.h"

#include "base/buf.h"
#include "base/log.h"
#include "model/object.h"
#include "run/own_writes.h"

#define NS_MAX 2

typedef struct world {
    fake_source f[NS_MAX]; /* one for each part */
    int n;
    kl_clock *clock;
    kl_informer *i;
    kl_resource resource, other;
    kl_workqueue *q;
    kl_metrics *metrics;
    kl_own_writes *o;
    kl_buf log;
} world;

static void note_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    if (level >= KL_LOG_WARN)
        kl_buf_printf(&((world *)arg)->log, "%s: %s\n", message, fields);
}

static void wire(world *w, const char *labels, const char *fields)
{
    w->resource = (kl_resource){.group = (char *)"",
        .version = (char *)"v1",
        .kind = (char *)"ConfigMap",
        .plural = (char *)"configmaps",
        .namespaced = true};
    w->other = (kl_resource){.group = (char *)"",
        .version = (char *)"v1",
        .kind = (char *)"Secret",
        .plural = (char *)"secrets",
        .namespaced = true};
    w->q = kl_workqueue_new(NULL);
    w->metrics = kl_metrics_new();
    w->o = kl_own_writes_new("ctl", w->q, w->clock, kl_metrics_controller(w->metrics, "ctl", 1));
    kl_log_set_level(KL_LOG_WARN);
    kl_log_set_sink(note_log, w);
    kl_informer_start(w->i);
    fake_pump(&w->f[0]);
    kl_own_writes_watch(w->o, w->i, &w->resource, labels, fields);
}

/* One cache of config maps: of all namespaces, or of those named. It has come to version 10 and shows
 * ns/old@5 with uid u-old. */
static void setup_with(world *w, const char *a, const char *b, const char *labels, const char *fields)
{
    *w = (world){.n = b ? 2 : 1};
    kl_informer_part parts[NS_MAX];
    for (int k = 0; k < w->n; k++) {
        fake_init(&w->f[k]);
        parts[k] = (kl_informer_part){fake_source_of(&w->f[k]), k ? b : a};
    }
    w->clock = w->f[0].clock;
    w->i = kl_informer_new(&(kl_informer_options){.parts = parts,
        .n_parts = (size_t)w->n,
        .clock = w->clock,
        .resource = "configmaps",
        .api_version = "v1",
        .kind = "ConfigMap"});
    wire(w, labels, fields);
    for (int k = 0; k < w->n; k++) {
        fake_pump(&w->f[0]);
        if (!k)
            fake_item(&w->f[k],
                "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"old\",\"uid\":\"u-old\",\"resourceVersion\":"
                "\"5\",\"labels\":{\"app\":\"x\"}}}");
        fake_listed(&w->f[k], "10", NULL);
        fake_opens(&w->f[k]);
    }
    fake_pump(&w->f[0]);
    assert_true(kl_informer_synced(w->i));
}

/* A cache whose namespaces come and go: it has ns (part 1, at 10, with ns/old@5). */
static void setup_changing(world *w)
{
    *w = (world){.n = NS_MAX};
    for (int k = 0; k < w->n; k++)
        fake_init(&w->f[k]);
    w->clock = w->f[0].clock;
    w->i = kl_informer_new(&(kl_informer_options){.changing = true,
        .source = fake_source_of(&w->f[0]),
        .clock = w->clock,
        .resource = "configmaps",
        .api_version = "v1",
        .kind = "ConfigMap"});
    wire(w, NULL, NULL);
    kl_informer_add_part(w->i, &(kl_informer_part){fake_source_of(&w->f[1]), "ns"});
    fake_pump(&w->f[0]);
    fake_item(&w->f[1],
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"old\",\"uid\":\"u-old\",\"resourceVersion\":\"5\"}}");
    fake_listed(&w->f[1], "10", NULL);
    fake_opens(&w->f[1]);
    fake_pump(&w->f[0]);
}

static void setup(world *w) { setup_with(w, NULL, NULL, NULL, NULL); }

static void nothing(void *arg) { (void)arg; }

static void teardown(world *w)
{
    kl_own_writes_unwatch(w->o, w->i);
    kl_informer_stop(w->i, nothing, NULL);
    fake_pump(&w->f[0]);
    kl_informer_unref(w->i);
    fake_pump(&w->f[0]);
    kl_own_writes_free(w->o);
    kl_workqueue_free(w->q);
    kl_metrics_free(w->metrics);
    kl_log_set_sink(NULL, NULL);
    kl_buf_fini(&w->log);
    for (int k = 0; k < w->n; k++)
        fake_fini(&w->f[k]);
}

static kl_time now_of(const world *w) { return kl_clock_now(w->clock); }

/* "ns/name@version#uid" as the server answers it, with more of the metadata. */
static char *answer(const char *ns, const char *name, const char *rv, const char *uid, const char *more)
{
    return kl_sprintf("{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\","
                      "\"resourceVersion\":\"%s\",\"uid\":\"%s\"%s}}",
        ns, name, rv, uid, more);
}

static void note(world *w, kl_verb verb, const kl_resource *r, const char *ns, const char *name,
    const char *subresource, const char *json)
{
    const kl_value *v = fake_json(json);
    kl_own_writes_note(
        w->o, "ns/key", &(kl_written){verb, r, ns, name, subresource, v}, now_of(w) + KL_SECONDS(5));
    kl_value_unref(v);
}

static void wrote(world *w, kl_verb verb, const char *ns, const char *name, const char *rv, const char *uid,
    const char *more)
{
    char *json = answer(ns, name, rv, uid, more);
    note(w, verb, &w->resource, NULL, NULL, NULL, json);
    kl_free(json);
}

static void deleted(world *w, const char *ns, const char *name, const char *uid)
{
    char *json = kl_sprintf("{\"kind\":\"Status\",\"status\":\"Success\",\"details\":{\"name\":\"%s\","
                            "\"kind\":\"configmaps\",\"uid\":\"%s\"}}",
        name, uid);
    note(w, KL_DELETE, &w->resource, ns, name, NULL, json);
    kl_free(json);
}

static void comes(
    world *w, int part, const char *type, const char *ns, const char *name, const char *rv, const char *uid)
{
    char *json = answer(ns, name, rv, uid, "");
    fake_event(&w->f[part], type, json);
    fake_pump(&w->f[0]);
    kl_free(json);
}

static bool owed(world *w)
{
    kl_time until;
    return kl_own_writes_owed(w->o, "ns/key", "ns/key", now_of(w), &until);
}

/* The key was handed out, is owed something and held. */
static void holds(world *w)
{
    kl_queue_item it;
    kl_time until = 0;
    kl_workqueue_add(w->q, "ns/key", now_of(w));
    assert_true(kl_workqueue_try_get(w->q, now_of(w), &it));
    assert_true(kl_own_writes_owed(w->o, "ns/key", it.key, now_of(w), &until));
    assert_int_equal(until, now_of(w) + KL_SECONDS(5));
    kl_workqueue_hold(w->q, &it, until, now_of(w));
    assert_string_equal(kl_workqueue_state(w->q, "ns/key", NULL), "held");
}

static void assert_released(world *w)
{
    assert_string_equal(kl_workqueue_state(w->q, "ns/key", NULL), "queued");
}
static void assert_held(world *w) { assert_string_equal(kl_workqueue_state(w->q, "ns/key", NULL), "held"); }

static void the_event_of_the_write_releases_the_key(void **state)
{
    (void)state;
    world w;
    setup(&w);
    assert_false(owed(&w));
    wrote(&w, KL_CREATE, "ns", "new", "12", "u1", "");
    char *why = kl_own_writes_why(w.o, "ns/key");
    assert_string_equal(why, "v1/ConfigMap ns/new");
    kl_free(why);
    assert_null(kl_own_writes_first(w.o));
    holds(&w);
    why = kl_own_writes_first(w.o);
    assert_string_equal(why, "ns/key: v1/ConfigMap ns/new");
    kl_free(why);
    comes(&w, 0, "MODIFIED", "ns", "old", "11", "u-old");
    assert_held(&w);
    comes(&w, 0, "ADDED", "ns", "new", "12", "u1");
    assert_released(&w);
    assert_false(owed(&w));
    teardown(&w);
}

static void each_waiting_key_is_reported(void **state)
{
    (void)state;
    world w;
    setup(&w);
    for (int i = 0; i < 64; i++) { /* a place of the table each, in all likelihood */
        char *key = kl_sprintf("ns/k%d", i), *rv = kl_sprintf("%d", 20 + i),
             *json = answer("ns", "new", rv, "u1", ""), *want = kl_sprintf("%s: v1/ConfigMap ns/new", key);
        const kl_value *v = fake_json(json);
        kl_time until;
        kl_own_writes_note(
            w.o, key, &(kl_written){KL_CREATE, &w.resource, NULL, NULL, NULL, v}, now_of(&w) + KL_SECONDS(5));
        assert_true(kl_own_writes_owed(w.o, key, key, now_of(&w), &until));
        char *why = kl_own_writes_first(w.o);
        assert_non_null(why);
        assert_string_equal(why, want);
        comes(&w, 0, "ADDED", "ns", "new", rv, "u1");
        assert_null(kl_own_writes_first(w.o));
        kl_value_unref(v);
        kl_free(why);
        kl_free(want);
        kl_free(json);
        kl_free(rv);
        kl_free(key);
    }
    teardown(&w);
}

static void an_event_that_came_before_the_answer_leaves_nothing_to_wait_for(void **state)
{
    (void)state;
    world w;
    setup(&w);
    comes(&w, 0, "ADDED", "ns", "new", "12", "u1");
    wrote(&w, KL_CREATE, "ns", "new", "12", "u1", "");
    assert_false(owed(&w));
    wrote(&w, KL_PATCH, "ns", "new", "12", "u1", ""); /* a write that changed nothing */
    assert_false(owed(&w));
    teardown(&w);
}

static void whatever_is_newer_in_the_same_cache_shows_the_write(void **state)
{
    (void)state;
    world w;
    for (int way = 0; way < 3; way++) {
        setup(&w);
        wrote(&w, KL_UPDATE, "ns", "old", "12", "u-old", "");
        wrote(&w, KL_UPDATE, "ns", "two", "14", "u2", "");
        wrote(&w, KL_UPDATE, "ns", "two", "13", "u2", ""); /* answers may overtake each other */
        holds(&w);
        fake_event(&w.f[0], "BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"13\"}}");
        fake_pump(&w.f[0]);
        assert_held(&w);
        if (way == 0) {
            fake_event(&w.f[0], "BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"14\"}}");
        } else if (way == 1) {
            comes(&w, 0, "ADDED", "other", "o", "20", "u3");
        } else { /* a list, after the history was lost */
            fake_done(&w.f[0], KL_EGONE, 410, NULL, "too old");
            fake_advance(&w.f[0], KL_SECONDS(60));
            fake_listed(&w.f[0], "30", NULL);
            fake_opens(&w.f[0]);
        }
        fake_pump(&w.f[0]);
        assert_released(&w);
        teardown(&w);
    }
}

static void writes_outside_the_cache_are_not_awaited(void **state)
{
    (void)state;
    world w;
    setup_with(&w, "ns", NULL, "app=x", "metadata.name!=never");
    note(&w, KL_CREATE, &w.other, NULL, NULL, NULL,
        "{\"kind\":\"Secret\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"s\",\"resourceVersion\":\"99\"}"
        "}");
    wrote(&w, KL_CREATE, "elsewhere", "new", "99", "u1", ",\"labels\":{\"app\":\"x\"}");
    wrote(&w, KL_CREATE, "ns", "new", "99", "u1", ",\"labels\":{\"app\":\"y\"}");
    wrote(&w, KL_CREATE, "ns", "never", "99", "u1", ",\"labels\":{\"app\":\"x\"}");
    note(&w, KL_UPDATE, &w.resource, "ns", "unseen", "scale",
        "{\"kind\":\"Scale\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"unseen\",\"resourceVersion\":"
        "\"99\"}}");
    assert_false(owed(&w));
    note(&w, KL_UPDATE, &w.resource, "ns", "old", "scale",
        "{\"kind\":\"Scale\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"old\",\"resourceVersion\":\"11\"}"
        "}");
    holds(&w);
    comes(&w, 0, "MODIFIED", "ns", "old", "11", "u-old");
    assert_released(&w);
    /* which takes it out of the selection */
    wrote(&w, KL_PATCH, "ns", "old", "12", "u-old", ",\"labels\":{\"app\":\"y\"}");
    assert_true(owed(&w));
    comes(&w, 0, "DELETED", "ns", "old", "12", "u-old");
    assert_false(owed(&w));
    teardown(&w);
}

static void a_deletion_is_shown_when_that_incarnation_is_gone(void **state)
{
    (void)state;
    world w;
    setup(&w);
    deleted(&w, "ns", "old", "u-old");
    char *why = kl_own_writes_why(w.o, "ns/key");
    assert_string_equal(why, "the deletion of v1/ConfigMap ns/old");
    kl_free(why);
    holds(&w);
    comes(&w, 0, "MODIFIED", "ns", "old", "11", "u-old");
    assert_held(&w);
    comes(&w, 0, "DELETED", "ns", "old", "12", "u-old");
    assert_released(&w);
    comes(&w, 0, "ADDED", "ns", "old", "13", "u-new");
    deleted(&w, "ns", "old", "u-old"); /* another one has its name */
    assert_false(owed(&w));
    teardown(&w);
}

static void a_created_and_deleted_object_must_appear_before_it_is_gone(void **state)
{
    (void)state;
    world w;
    setup(&w);
    wrote(&w, KL_CREATE, "ns", "new", "12", "u1", "");
    deleted(&w, "ns", "new", "u1");
    holds(&w);
    comes(&w, 0, "ADDED", "ns", "new", "12", "u1");
    assert_held(&w);
    comes(&w, 0, "DELETED", "ns", "new", "13", "u1");
    assert_released(&w);
    teardown(&w);
}

static void a_deletion_that_waits_for_others_is_shown_by_its_timestamp(void **state)
{
    (void)state;
    world w;
    setup(&w);
    wrote(&w, KL_DELETE, "ns", "old", "12", "u-old",
        ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"a/b\"]");
    holds(&w);
    comes(&w, 0, "MODIFIED", "ns", "old", "12", "u-old");
    assert_released(&w);
    wrote(&w, KL_DELETE, "ns", "old", "12", "u-old",
        ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":0");
    assert_true(owed(&w)); /* that one goes at once */
    comes(&w, 0, "DELETED", "ns", "old", "13", "u-old");
    assert_false(owed(&w));
    note(&w, KL_DELETE_COLLECTION, &w.resource, "ns", NULL, NULL,
        "{\"kind\":\"ConfigMapList\",\"items\":[{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":"
        "\"up\",\"resourceVersion\":\"14\"}}]}");
    assert_false(owed(&w));
    comes(&w, 0, "ADDED", "ns", "p", "15", "up");
    note(&w, KL_DELETE_COLLECTION, &w.resource, "ns", NULL, NULL,
        "{\"kind\":\"ConfigMapList\",\"items\":[{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":"
        "\"up\",\"resourceVersion\":\"15\"}}]}");
    assert_true(owed(&w));
    comes(&w, 0, "DELETED", "ns", "p", "16", "up");
    assert_false(owed(&w));
    teardown(&w);
}

static const char done[] = "{\"kind\":\"Status\",\"status\":\"Success\"}";

static void comes_with(world *w, const char *rv, const char *uid, const char *metadata, const char *more)
{
    char *json = kl_sprintf("{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"old\","
                            "\"resourceVersion\":\"%s\",\"uid\":\"%s\"%s}%s}",
        rv, uid, metadata, more);
    fake_event(&w->f[0], "MODIFIED", json);
    fake_pump(&w->f[0]);
    kl_free(json);
}

static void a_binding_is_shown_by_the_node_and_an_eviction_by_the_deletion(void **state)
{
    (void)state;
    static const struct {
        const char *subresource, *metadata, *more;
    } shows[] = {{"binding", "", ",\"spec\":{\"nodeName\":\"n1\"}"},
        {"eviction", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", ""}};
    for (size_t i = 0; i < 2; i++) {
        world w;
        setup(&w);
        note(&w, KL_CREATE, &w.resource, "ns", "old", shows[i].subresource, done);
        holds(&w);
        comes_with(&w, "11", "u-old", "", ",\"spec\":{}");
        assert_held(&w);
        comes_with(&w, "12", "u-old", shows[i].metadata, shows[i].more);
        assert_released(&w);
        note(&w, KL_CREATE, &w.resource, "ns", "old", shows[i].subresource, done); /* after its event */
        assert_false(owed(&w));
        teardown(&w);
    }
}

static void a_bound_object_that_is_deleted_or_recreated_is_not_awaited(void **state)
{
    (void)state;
    for (int anew = 0; anew < 2; anew++) {
        world w;
        setup(&w);
        note(&w, KL_CREATE, &w.resource, "ns", "unknown", "binding", done);
        note(&w, KL_CREATE, &w.resource, "ns", "old", "log", done);
        assert_false(owed(&w));
        note(&w, KL_CREATE, &w.resource, "ns", "old", "binding", done);
        holds(&w);
        comes(&w, 0, anew ? "MODIFIED" : "DELETED", "ns", "old", "11", anew ? "u-new" : "u-old");
        assert_released(&w);
        assert_false(owed(&w));
        teardown(&w);
    }
}

static void versions_that_are_no_numbers_are_compared_as_they_are(void **state)
{
    (void)state;
    world w;
    setup(&w);
    comes(&w, 0, "MODIFIED", "ns", "old", "b7", "u-old");
    wrote(&w, KL_UPDATE, "ns", "old", "b7", "u-old", "");
    assert_false(owed(&w));
    wrote(&w, KL_UPDATE, "ns", "old", "a9", "u-old", "");
    holds(&w);
    comes(&w, 0, "ADDED", "ns", "x", "zz", "u2");
    assert_held(&w);
    comes(&w, 0, "MODIFIED", "ns", "old", "a9", "u-old");
    assert_released(&w);
    wrote(&w, KL_CREATE, "ns", "new", "c1", "u3", "");
    assert_true(owed(&w));
    comes(&w, 0, "ADDED", "ns", "new", "c2", "u3"); /* changed by somebody else meanwhile */
    assert_false(owed(&w));
    teardown(&w);
}

static void each_namespace_counts_for_itself_where_there_is_a_watch_for_each(void **state)
{
    (void)state;
    world w;
    setup_with(&w, "ns", "two", NULL, NULL);
    wrote(&w, KL_CREATE, "three", "new", "99", "u1", "");
    assert_false(owed(&w));
    wrote(&w, KL_CREATE, "two", "new", "12", "u1", "");
    holds(&w);
    comes(&w, 0, "ADDED", "ns", "x", "20", "u2");
    assert_held(&w);
    comes(&w, 1, "ADDED", "two", "new", "12", "u1");
    assert_released(&w);
    teardown(&w);
}

static void writes_into_two_parts_of_a_cache_are_two(void **state)
{
    (void)state;
    world w;
    setup_with(&w, "ns", "two", NULL, NULL);
    wrote(&w, KL_CREATE, "ns", "new", "13", "u1", "");
    wrote(&w, KL_CREATE, "two", "new", "12", "u2", "");
    holds(&w);
    comes(&w, 0, "ADDED", "ns", "new", "13", "u1");
    assert_held(&w);
    comes(&w, 1, "ADDED", "two", "new", "12", "u2");
    assert_released(&w);
    teardown(&w);
}

static void a_wait_ends_in_time_and_is_logged_and_counted(void **state)
{
    (void)state;
    world w;
    setup(&w);
    wrote(&w, KL_CREATE, "ns", "new", "12", "u1", "");
    wrote(&w, KL_CREATE, "ns", "b7", "b7", "u2", "");
    deleted(&w, "ns", "old", "u-old");
    holds(&w);
    kl_clock_advance(w.clock, KL_SECONDS(5) - 1);
    assert_true(owed(&w)); /* asked again: counted once */
    kl_queue_item it;
    assert_false(kl_workqueue_try_get(w.q, now_of(&w), &it));
    kl_clock_advance(w.clock, 1);
    assert_true(kl_workqueue_try_get(w.q, now_of(&w), &it));
    assert_false(owed(&w));
    assert_non_null(strstr(kl_buf_str(&w.log),
        "the cache does not show earlier writes yet; running anyway: controller=ctl key=ns/key "
        "waits_for=\"v1/ConfigMap ns/"));
    kl_buf text = KL_BUF_INIT;
    kl_metrics_write(w.metrics, &text);
    assert_non_null(strstr(kl_buf_str(&text), "kubelua_own_writes_waits_total{controller=\"ctl\"} 1\n"));
    assert_non_null(strstr(kl_buf_str(&text), "kubelua_own_writes_timeouts_total{controller=\"ctl\"} 1\n"));
    kl_buf_fini(&text);
    assert_null(kl_own_writes_why(w.o, "ns/key"));
    teardown(&w);
}

static void an_unwatched_cache_is_not_awaited(void **state)
{
    (void)state;
    world w;
    setup(&w);
    wrote(&w, KL_CREATE, "ns", "new", "12", "u1", "");
    deleted(&w, "ns", "old", "u-old");
    holds(&w);
    /* the next generation, which reads the same one */
    kl_own_writes_watch(w.o, w.i, &w.resource, NULL, NULL);
    kl_own_writes_unwatch(w.o, w.i);
    assert_held(&w);
    kl_own_writes_unwatch(w.o, w.i);
    assert_released(&w);
    kl_own_writes_watch(w.o, w.i, &w.resource, NULL, NULL);
    assert_false(owed(&w));
    teardown(&w);
}

static void where_namespaces_come_and_go_each_counts_for_itself(void **state)
{
    (void)state;
    world w;
    setup_changing(&w);
    wrote(&w, KL_CREATE, "elsewhere", "x", "30", "u-x", "");
    assert_false(owed(&w));
    wrote(&w, KL_CREATE, "ns", "x", "20", "u-x", "");
    wrote(&w, KL_PATCH, "ns", "y", "25", "u-y", "");
    holds(&w);
    comes(&w, 1, "ADDED", "ns", "x", "20", "u-x");
    assert_held(&w);
    comes(&w, 1, "MODIFIED", "ns", "old", "26", "u-old");
    assert_released(&w);
    assert_false(owed(&w));
    teardown(&w);
}

static void where_namespaces_come_and_go_a_deletion_waits_for_numbers(void **state)
{
    (void)state;
    world w;
    setup_changing(&w);
    deleted(&w, "ns", "x", "u-x");
    wrote(&w, KL_CREATE, "ns", "x", "20", "u-x", "");
    deleted(&w, "ns", "x", "u-x");
    holds(&w);
    comes(&w, 1, "ADDED", "ns", "x", "20", "u-x");
    assert_held(&w);
    comes(&w, 1, "DELETED", "ns", "x", "21", "u-x");
    assert_released(&w);
    teardown(&w);
}

static void a_removed_namespace_is_not_awaited(void **state)
{
    (void)state;
    world w;
    setup_changing(&w);
    wrote(&w, KL_CREATE, "ns", "x", "20", "u-x", "");
    deleted(&w, "ns", "old", "u-old");
    holds(&w);
    kl_informer_drop_part(w.i, "ns");
    fake_pump(&w.f[0]);
    assert_released(&w);
    assert_false(owed(&w));
    assert_int_equal(w.log.len, 0);
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(where_namespaces_come_and_go_each_counts_for_itself),
    cmocka_unit_test(where_namespaces_come_and_go_a_deletion_waits_for_numbers),
    cmocka_unit_test(a_removed_namespace_is_not_awaited),
    cmocka_unit_test(writes_into_two_parts_of_a_cache_are_two),
    cmocka_unit_test(the_event_of_the_write_releases_the_key), cmocka_unit_test(each_waiting_key_is_reported),
    cmocka_unit_test(an_event_that_came_before_the_answer_leaves_nothing_to_wait_for),
    cmocka_unit_test(whatever_is_newer_in_the_same_cache_shows_the_write),
    cmocka_unit_test(writes_outside_the_cache_are_not_awaited),
    cmocka_unit_test(a_deletion_is_shown_when_that_incarnation_is_gone),
    cmocka_unit_test(a_created_and_deleted_object_must_appear_before_it_is_gone),
    cmocka_unit_test(a_deletion_that_waits_for_others_is_shown_by_its_timestamp),
    cmocka_unit_test(a_binding_is_shown_by_the_node_and_an_eviction_by_the_deletion),
    cmocka_unit_test(a_bound_object_that_is_deleted_or_recreated_is_not_awaited),
    cmocka_unit_test(versions_that_are_no_numbers_are_compared_as_they_are),
    cmocka_unit_test(each_namespace_counts_for_itself_where_there_is_a_watch_for_each),
    cmocka_unit_test(a_wait_ends_in_time_and_is_logged_and_counted),
    cmocka_unit_test(an_unwatched_cache_is_not_awaited))

/* not in tsan: it starts no thread */
