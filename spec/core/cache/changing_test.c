/* changing_test.c - an informer whose namespaces come and go while it runs. */
#include "support/fake_source.h"

#include "base/buf.h"
#include "cache/informer.h"
#include "model/object.h"

#define SOURCES 4

enum { HOME, A, B, AGAIN }; /* AGAIN: of a, when it comes back */

typedef struct later {
    struct later *next;
    void (*fn)(void *);
    void *arg;
} later;

typedef struct world {
    fake_source f[SOURCES];
    kl_informer *i;
    kl_subscription *sub;
    kl_buf said;
    int parts, troubles, progress;
    bool waits; /* the executor: what is applied waits for `run` */
    later *first, **last;
} world;

static void hear(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    world *w = arg;
    char *key = kl_object_key(now ? now : old);
    kl_buf_printf(&w->said, "%s%c%s%s%s", w->said.len ? " " : "",
        type == KL_ADDED         ? '+'
            : type == KL_DELETED ? '-'
                                 : '~',
        key, flags & KL_INITIAL ? "i" : "", flags & KL_RELIST ? "r" : "");
    kl_free(key);
}

static void hear_synced(void *arg)
{
    world *w = arg;
    kl_buf_printf(&w->said, "%s.", w->said.len ? " " : "");
}

static void hear_progress(void *arg) { ((world *)arg)->progress++; }

static void part_listed(void *arg)
{
    world *w = arg;
    w->parts++;
    kl_buf_printf(&w->said, "%s!", w->said.len ? " " : "");
}

static void trouble(void *arg) { ((world *)arg)->troubles++; }

static void execute(void *arg, void (*fn)(void *), void *fnarg)
{
    world *w = arg;
    if (!w->waits) {
        fn(fnarg);
        return;
    }
    later *l = kl_new(later);
    l->fn = fn;
    l->arg = fnarg;
    *w->last = l;
    w->last = &l->next;
}

static void run(world *w)
{
    for (later *l; (l = w->first);) {
        w->first = l->next;
        if (!w->first)
            w->last = &w->first;
        l->fn(l->arg);
        kl_free(l);
    }
    w->waits = false;
}

#define assert_heard(w, text)                                                                                \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(w)->said), text);                                                   \
        kl_buf_clear(&(w)->said);                                                                            \
    } while (0)

static void pump(world *w) { fake_pump(&w->f[HOME]); }

static void setup(world *w)
{
    *w = (world){0};
    w->last = &w->first;
    for (int k = 0; k < SOURCES; k++) {
        fake_init(&w->f[k]);
        if (k) {
            kl_clock_fake_free(w->f[k].clock);
            w->f[k].clock = w->f[HOME].clock;
            w->f[k].freed = true; /* until it is a part */
        }
    }
    kl_informer_options o = {.changing = true,
        .source = fake_source_of(&w->f[HOME]),
        .clock = w->f[HOME].clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .seed = 7,
        .execute = execute,
        .execute_arg = w,
        .on_trouble = trouble,
        .trouble_arg = w,
        .on_part = part_listed,
        .part_arg = w};
    w->i = kl_informer_new(&o);
    w->sub = kl_informer_subscribe(w->i,
        &(kl_handler){.on_event = hear, .on_synced = hear_synced, .on_progress = hear_progress, .arg = w});
}

static void start(world *w)
{
    kl_informer_start(w->i);
    pump(w);
    assert_heard(w, ".");
}

static void noted(void *arg) { ++*(int *)arg; }

static void teardown(world *w)
{
    int stopped = 0;
    kl_informer_stop(w->i, noted, &stopped);
    pump(w);
    assert_int_equal(stopped, 1);
    kl_informer_unsubscribe(w->sub);
    kl_informer_unref(w->i);
    pump(w);
    for (int k = 0; k < SOURCES; k++) {
        assert_int_equal(w->f[k].open, FAKE_NOTHING);
        assert_int_equal(w->f[k].timer_id, 0);
        assert_true(w->f[k].freed);
        assert_null(w->f[k].first);
        kl_mutex_fini(&w->f[k].mu);
    }
    kl_clock_fake_free(w->f[HOME].clock);
    kl_buf_fini(&w->said);
}

static void add(world *w, int source, const char *ns)
{
    w->f[source].freed = false;
    kl_informer_add_part(w->i, &(kl_informer_part){fake_source_of(&w->f[source]), ns});
}

static const char *pod(const char *ns, const char *name, int rv)
{
    static char text[4][256];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, 256,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"u-%s-%s\",\"resourceVersion\":\"%d\"}"
        "}",
        ns, name, ns, name, rv);
    return out;
}

static void listed(world *w, int source, const char *rv)
{
    fake_listed(&w->f[source], rv, NULL);
    fake_opens(&w->f[source]);
}

/* a/x@1 and b/x@2, both at 10. */
static void setup_two(world *w)
{
    setup(w);
    start(w);
    add(w, A, "a");
    add(w, B, "b");
    pump(w);
    fake_item(&w->f[A], pod("a", "x", 1));
    listed(w, A, "10");
    fake_item(&w->f[B], pod("b", "x", 2));
    listed(w, B, "10");
    assert_heard(w, "+a/xi ! +b/xi !");
}

static void it_is_synced_without_any_namespace(void **state)
{
    (void)state;
    world w;
    kl_informer_stats s;
    setup(&w);
    assert_false(kl_informer_synced(w.i));
    start(&w);
    assert_true(kl_informer_synced(w.i));
    assert_false(kl_informer_covers(w.i, "a"));
    kl_informer_kick(w.i);
    kl_informer_clear(w.i);
    pump(&w);
    kl_informer_stats_get(w.i, &s);
    assert_string_equal(s.state, "idle");
    assert_false(s.parked);
    kl_informer_stats_fini(&s);
    assert_int_equal(w.f[HOME].lists, 0);
    teardown(&w);
}

static void a_namespace_that_comes_is_covered_when_it_was_listed(void **state)
{
    (void)state;
    world w;
    setup(&w);
    start(&w);
    add(&w, A, "a");
    assert_false(kl_informer_covers(w.i, "a"));
    pump(&w);
    assert_int_equal(w.f[A].open, FAKE_LIST);
    fake_item(&w.f[A], pod("a", "x", 1));
    assert_false(kl_informer_covers(w.i, "a"));
    listed(&w, A, "10");
    assert_heard(&w, "+a/xi !");
    assert_true(kl_informer_covers(w.i, "a"));
    assert_false(kl_informer_covers(w.i, "b"));
    assert_int_equal(kl_informer_seen_in(w.i, "a"), 10);
    fake_event(&w.f[A], "ADDED", pod("a", "y", 12));
    fake_bookmark(&w.f[A], "15");
    assert_int_equal(kl_informer_seen_in(w.i, "a"), 15);
    assert_heard(&w, "+a/y");
    fake_error_event(&w.f[A], 410, "Expired");
    fake_item(&w.f[A], pod("a", "y", 12));
    listed(&w, A, "20");
    assert_heard(&w, "-a/xr"); /* and not once more that it came */
    assert_int_equal(w.parts, 1);
    teardown(&w);
}

static void a_removed_namespace_drops_its_objects_silently(void **state)
{
    (void)state;
    world w;
    setup_two(&w);
    int before = w.progress;
    kl_informer_drop_part(w.i, "a");
    assert_false(kl_informer_covers(w.i, "a"));
    assert_int_equal(kl_informer_seen_in(w.i, "a"), 0);
    pump(&w);
    assert_int_equal(w.f[A].open, FAKE_NOTHING);
    assert_true(w.f[A].freed);
    assert_heard(&w, "");
    assert_int_equal(kl_informer_count(w.i), 1);
    assert_int_equal(w.progress, before + 1); /* who waits for its events looks again */
    assert_true(kl_informer_covers(w.i, "b"));
    fake_event(&w.f[B], "MODIFIED", pod("b", "x", 30));
    assert_heard(&w, "~b/x");
    kl_informer_drop_part(w.i, "never");
    kl_informer_stats s;
    kl_informer_stats_get(w.i, &s);
    assert_true(s.last_event > 0);
    kl_informer_stats_fini(&s);
    kl_informer_drop_part(w.i, "b");
    pump(&w);
    assert_int_equal(kl_informer_count(w.i), 0);
    assert_true(kl_informer_synced(w.i));
    kl_informer_stats_get(w.i, &s);
    assert_int_equal(s.last_event, 0); /* a lag of nothing would only grow */
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void a_namespace_that_returns_at_once_is_listed_again(void **state)
{
    (void)state;
    world w;
    setup_two(&w);
    kl_informer_drop_part(w.i, "a");
    add(&w, AGAIN, "a");
    assert_false(kl_informer_covers(w.i, "a"));
    pump(&w);
    assert_true(w.f[A].freed);
    assert_int_equal(w.f[AGAIN].open, FAKE_LIST);
    assert_false(kl_informer_covers(w.i, "a"));
    assert_null(kl_informer_lookup(w.i, "a/x"));
    fake_item(&w.f[AGAIN], pod("a", "new", 20));
    listed(&w, AGAIN, "21");
    assert_heard(&w, "+a/newi !");
    assert_true(kl_informer_covers(w.i, "a"));
    teardown(&w);
}

/* Function indexes: what is applied runs on another thread, later. */
static void events_in_flight_at_a_removal_are_dropped(void **state)
{
    (void)state;
    world w;
    setup_two(&w);
    w.waits = true;
    fake_event(&w.f[A], "ADDED", pod("a", "late", 30));
    kl_informer_drop_part(w.i, "a");
    add(&w, AGAIN, "a");
    pump(&w);
    fake_item(&w.f[AGAIN], pod("a", "new", 31));
    listed(&w, AGAIN, "32");
    assert_false(kl_informer_covers(w.i, "a"));
    assert_false(w.f[A].freed); /* the event still is of it */
    run(&w);
    assert_true(w.f[A].freed);
    assert_true(kl_informer_covers(w.i, "a"));
    assert_int_equal(kl_informer_count(w.i), 2);
    assert_null(kl_informer_lookup(w.i, "a/late"));
    assert_heard(&w, "+a/late +a/newi !");
    teardown(&w);
}

static void one_that_went_before_it_was_listed_leaves_nothing(void **state)
{
    (void)state;
    world w;
    setup(&w);
    add(&w, A, "a"); /* before the start, too */
    kl_informer_drop_part(w.i, "a");
    add(&w, B, "b");
    start(&w);
    assert_true(w.f[A].freed);
    fake_item(&w.f[B], pod("b", "x", 1));
    kl_informer_drop_part(w.i, "b");
    pump(&w);
    assert_true(w.f[B].freed);
    assert_int_equal(w.f[B].cancels, 1);
    assert_int_equal(kl_informer_count(w.i), 0);
    assert_heard(&w, "");
    teardown(&w);
}

static void trouble_goes_with_its_namespace_and_counters_stay(void **state)
{
    (void)state;
    world w;
    kl_informer_stats s;
    setup_two(&w);
    add(&w, AGAIN, "c");
    pump(&w);
    fake_fails(&w.f[AGAIN], KL_EFORBIDDEN, 403);
    kl_informer_stats_get(w.i, &s);
    assert_true(s.parked);
    assert_string_equal(s.namespace_, "c");
    assert_int_equal(s.lists, 3);
    assert_int_equal(s.errors, 1);
    kl_informer_stats_fini(&s);
    int before = w.troubles;
    kl_informer_drop_part(w.i, "c");
    pump(&w);
    assert_true(w.troubles > before);
    kl_informer_stats_get(w.i, &s);
    assert_false(s.parked);
    assert_null(s.message);
    assert_string_equal(s.state, "watching");
    assert_int_equal(s.lists, 3);
    assert_int_equal(s.errors, 1);
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void the_version_is_that_of_the_slowest_remaining_namespace(void **state)
{
    (void)state;
    world w;
    kl_informer_stats s;
    setup_two(&w);
    fake_bookmark(&w.f[B], "90");
    kl_informer_stats_get(w.i, &s);
    assert_string_equal(s.rv, "10");
    kl_informer_stats_fini(&s);
    kl_informer_drop_part(w.i, "a");
    pump(&w);
    fake_bookmark(&w.f[B], "95");
    kl_informer_stats_get(w.i, &s);
    assert_string_equal(s.rv, "95");
    kl_informer_stats_fini(&s);
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(it_is_synced_without_any_namespace),
    cmocka_unit_test(a_namespace_that_comes_is_covered_when_it_was_listed),
    cmocka_unit_test(a_removed_namespace_drops_its_objects_silently),
    cmocka_unit_test(a_namespace_that_returns_at_once_is_listed_again),
    cmocka_unit_test(events_in_flight_at_a_removal_are_dropped),
    cmocka_unit_test(one_that_went_before_it_was_listed_leaves_nothing),
    cmocka_unit_test(trouble_goes_with_its_namespace_and_counters_stay),
    cmocka_unit_test(the_version_is_that_of_the_slowest_remaining_namespace))

/* not in tsan: it starts no thread */
