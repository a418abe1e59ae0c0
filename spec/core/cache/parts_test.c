/* parts_test.c - an informer of some namespaces: a list and watch for each, one store for all. */
#include "support/fake_source.h"

#include "base/buf.h"
#include "cache/informer.h"
#include "model/object.h"

/* "a-b" sorts before "a/": between the keys of a and b stands nothing of ours */
enum { A, B, AB, PARTS };

static const char *const spaces[PARTS] = {"a", "b", "a-b"};

typedef struct world {
    fake_source f[PARTS];
    kl_informer *i;
    kl_subscription *sub;
    kl_buf said;
    int troubles, synced;
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
    w->synced++;
    kl_buf_printf(&w->said, "%s.", w->said.len ? " " : "");
}

static void trouble(void *arg) { ((world *)arg)->troubles++; }

#define assert_heard(w, text)                                                                                \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(w)->said), text);                                                   \
        kl_buf_clear(&(w)->said);                                                                            \
    } while (0)

static void pump(world *w)
{
    for (int n = 0; n < 4; n++)
        for (int k = 0; k < PARTS; k++)
            fake_pump(&w->f[k]);
}

static void setup(world *w)
{
    kl_informer_part parts[PARTS];
    *w = (world){0};
    for (int k = 0; k < PARTS; k++) {
        fake_init(&w->f[k]);
        if (k) { /* one clock for all */
            kl_clock_fake_free(w->f[k].clock);
            w->f[k].clock = w->f[0].clock;
        }
        parts[k] = (kl_informer_part){fake_source_of(&w->f[k]), spaces[k]};
    }
    kl_informer_options o = {.parts = parts,
        .n_parts = PARTS,
        .clock = w->f[0].clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .seed = 7,
        .on_trouble = trouble,
        .trouble_arg = w};
    w->i = kl_informer_new(&o);
    w->sub = kl_informer_subscribe(w->i, &(kl_handler){hear, hear_synced, w, NULL});
    kl_informer_start(w->i);
    pump(w);
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
    for (int k = 0; k < PARTS; k++) {
        assert_int_equal(w->f[k].open, FAKE_NOTHING);
        assert_int_equal(w->f[k].timer_id, 0);
        assert_true(w->f[k].freed);
        assert_null(w->f[k].first);
        kl_mutex_fini(&w->f[k].mu);
    }
    kl_clock_fake_free(w->f[0].clock);
    kl_buf_fini(&w->said);
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

static void listed(world *w, int part, const char *rv)
{
    fake_listed(&w->f[part], rv, NULL);
    fake_opens(&w->f[part]);
}

/* a/x, a-b/x, b/x and b/y. */
static void setup_synced(world *w)
{
    setup(w);
    fake_item(&w->f[A], pod("a", "x", 1));
    listed(w, A, "10");
    fake_item(&w->f[AB], pod("a-b", "x", 4));
    listed(w, AB, "11");
    fake_item(&w->f[B], pod("b", "x", 2));
    fake_item(&w->f[B], pod("b", "y", 3));
    listed(w, B, "12");
    kl_buf_clear(&w->said);
}

static void assert_keys(world *w, const kl_query *q, const char *want)
{
    kl_objects all;
    kl_err err = KL_ERR_INIT;
    kl_buf b = KL_BUF_INIT;
    assert_ok(kl_informer_list(w->i, q, &all, &err), &err);
    for (size_t k = 0; k < all.len; k++) {
        char *key = kl_object_key(all.v[k]);
        kl_buf_printf(&b, "%s%s", k ? " " : "", key);
        kl_free(key);
    }
    assert_string_equal(kl_buf_str(&b), want);
    kl_objects_fini(&all);
    kl_buf_fini(&b);
}

static void assert_rv(world *w, const char *want)
{
    kl_informer_stats s;
    kl_informer_stats_get(w->i, &s);
    assert_string_equal(s.rv, want);
    kl_informer_stats_fini(&s);
}

static void it_is_synced_when_each_namespace_was_listed(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_item(&w.f[A], pod("a", "x", 1));
    listed(&w, A, "10");
    assert_heard(&w, "+a/xi");
    assert_false(kl_informer_synced(w.i));
    listed(&w, AB, "11");
    assert_int_equal(w.synced, 0);
    fake_item(&w.f[B], pod("b", "x", 2));
    listed(&w, B, "12");
    assert_heard(&w, "+b/xi .");
    assert_true(kl_informer_synced(w.i));
    teardown(&w);
}

static void it_reads_as_one_store_in_key_order(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    assert_keys(&w, NULL, "a-b/x a/x b/x b/y");
    assert_keys(&w, &(kl_query){.ns = "a"}, "a/x");
    fake_event(&w.f[A], "ADDED", pod("a", "z", 20));
    fake_event(&w.f[B], "DELETED", pod("b", "y", 21));
    assert_heard(&w, "+a/z -b/y");
    assert_keys(&w, NULL, "a-b/x a/x a/z b/x");
    teardown(&w);
}

static void a_relist_of_one_takes_nothing_from_the_others(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_error_event(&w.f[A], 410, "Expired");
    assert_int_equal(w.f[A].open, FAKE_LIST);
    fake_item(&w.f[A], pod("a", "new", 30));
    listed(&w, A, "31");
    assert_heard(&w, "-a/xr +a/newr");
    assert_keys(&w, NULL, "a-b/x a/new b/x b/y");
    fake_error_event(&w.f[AB], 410, "Expired");
    listed(&w, AB, "32");
    assert_heard(&w, "-a-b/xr");
    assert_keys(&w, NULL, "a/new b/x b/y");
    teardown(&w);
}

static void the_store_is_where_the_slowest_part_is(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    assert_rv(&w, "10");
    fake_event(&w.f[A], "MODIFIED", pod("a", "x", 100));
    assert_rv(&w, "11");
    fake_bookmark(&w.f[AB], "99");
    assert_rv(&w, "12");
    fake_bookmark(&w.f[B], "9000");
    assert_rv(&w, "99");
    teardown(&w);
}

static void its_trouble_names_the_namespace_and_heals_there(void **state)
{
    (void)state;
    world w;
    kl_informer_stats s;
    setup(&w);
    listed(&w, A, "10");
    listed(&w, AB, "10");
    int before = w.troubles;
    fake_fails(&w.f[B], KL_EFORBIDDEN, 403);
    assert_true(w.troubles > before);
    kl_informer_stats_get(w.i, &s);
    assert_true(s.parked);
    assert_int_equal(s.failure, KL_EFORBIDDEN);
    assert_string_equal(s.state, "parked");
    assert_string_equal(s.namespace_, "b");
    assert_int_equal(s.lists, 3);
    kl_informer_stats_fini(&s);
    kl_informer_kick(w.i);
    pump(&w);
    assert_int_equal(w.f[B].open, FAKE_LIST);
    assert_int_equal(w.f[A].open, FAKE_WATCH);
    listed(&w, B, "12");
    assert_heard(&w, ".");
    kl_informer_stats_get(w.i, &s);
    assert_false(s.parked);
    assert_null(s.message);
    kl_informer_stats_fini(&s);
    teardown(&w);
}

/* Whoever asks elsewhere whether the kind is still there may need a second look. */
static void each_failure_is_reported_even_if_repeated(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_fails(&w.f[A], KL_ENOTFOUND, 404);
    for (int n = 0; n < 3; n++) {
        kl_informer_kick(w.i);
        pump(&w);
        assert_int_equal(w.f[A].open, FAKE_LIST);
        int before = w.troubles;
        fake_fails(&w.f[A], KL_ENOTFOUND, 404);
        assert_int_equal(w.troubles, before + 1);
    }
    teardown(&w);
}

static void of_a_kind_that_is_gone_all_objects_go(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    kl_informer_clear(w.i);
    pump(&w);
    assert_heard(&w, ""); /* no server said so */
    fake_fails(&w.f[A], KL_ENOTFOUND, 404);
    fake_fails(&w.f[B], KL_ENOTFOUND, 404);
    assert_keys(&w, NULL, "a-b/x a/x b/x b/y");
    kl_informer_clear(w.i);
    pump(&w);
    assert_heard(&w, "-a/xr -b/xr -b/yr");
    assert_keys(&w, NULL, "a-b/x");
    kl_informer_kick(w.i); /* and it comes back */
    pump(&w);
    fake_item(&w.f[A], pod("a", "x", 40));
    listed(&w, A, "41");
    assert_heard(&w, "+a/xr");
    kl_informer_clear(w.i); /* who says so now is late */
    pump(&w);
    assert_heard(&w, "");
    assert_keys(&w, NULL, "a-b/x a/x");
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(it_is_synced_when_each_namespace_was_listed),
    cmocka_unit_test(it_reads_as_one_store_in_key_order),
    cmocka_unit_test(a_relist_of_one_takes_nothing_from_the_others),
    cmocka_unit_test(the_store_is_where_the_slowest_part_is),
    cmocka_unit_test(its_trouble_names_the_namespace_and_heals_there),
    cmocka_unit_test(each_failure_is_reported_even_if_repeated),
    cmocka_unit_test(of_a_kind_that_is_gone_all_objects_go))

/* not in tsan: it starts no thread */
