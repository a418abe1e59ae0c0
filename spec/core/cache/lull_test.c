/* lull_test.c - handlers hear when a run of events has ended. */
#include "support/fake_source.h"

#include "base/buf.h"
#include "cache/informer.h"
#include "model/object.h"

typedef struct ears {
    kl_buf said;
} ears;

static void hear(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    ears *e = arg;
    (void)flags;
    kl_buf_printf(&e->said, "%c%s ",
        type == KL_ADDED         ? '+'
            : type == KL_DELETED ? '-'
                                 : '~',
        kl_object_name(now ? now : old));
}

static void hear_lull(void *arg) { kl_buf_puts(&((ears *)arg)->said, "| "); }

#define assert_heard(e, text)                                                                                \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(e)->said), text);                                                   \
        kl_buf_clear(&(e)->said);                                                                            \
    } while (0)

typedef struct world {
    fake_source f;
    kl_informer *i;
    ears e;
    kl_subscription *sub;
    void (*fn[8])(void *); /* what the executor holds back */
    void *arg[8];
    int n;
    bool at_once; /* the executor holds nothing back */
} world;

static void later(void *arg, void (*fn)(void *), void *fnarg)
{
    world *w = arg;
    if (w->at_once) {
        fn(fnarg);
        return;
    }
    assert_in_range(w->n, 0, 7);
    w->fn[w->n] = fn;
    w->arg[w->n++] = fnarg;
}

static void run_later(world *w)
{
    for (int i = 0; i < w->n; i++)
        w->fn[i](w->arg[i]);
    w->n = 0;
}

static const char *pod(const char *name, int rv)
{
    static char text[4][128];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, 128, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"%d\"}}", name, rv);
    return out;
}

static void setup(world *w, bool lulls, bool executor)
{
    *w = (world){0};
    fake_init(&w->f);
    kl_informer_options o = {.source = fake_source_of(&w->f),
        .clock = w->f.clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .seed = 7};
    o.source.lulls = lulls;
    if (executor) {
        o.execute = later;
        o.execute_arg = w;
    }
    w->i = kl_informer_new(&o);
    w->sub = kl_informer_subscribe(w->i, &(kl_handler){.on_event = hear, .on_lull = hear_lull, .arg = &w->e});
    kl_informer_start(w->i);
    fake_pump(&w->f);
    run_later(w);
    fake_item(&w->f, pod("a", 1));
    fake_item(&w->f, pod("b", 2));
    fake_listed(&w->f, "10", NULL);
    run_later(w);
    assert_heard(&w->e, "+a +b | "); /* a list is one run */
    fake_opens(&w->f);
}

static void teardown(world *w)
{
    kl_informer_stop(w->i, NULL, NULL);
    fake_pump(&w->f);
    run_later(w);
    fake_pump(&w->f);
    kl_informer_unsubscribe(w->sub);
    kl_informer_unref(w->i);
    fake_pump(&w->f);
    run_later(w);
    fake_pump(&w->f);
    kl_buf_fini(&w->e.said);
    fake_fini(&w->f);
}

static void lull(world *w) { w->f.sink.lull(w->f.sink.arg); }

static void events_until_the_source_lulls_are_one_run(void **state)
{
    (void)state;
    world w;
    setup(&w, true, false);
    fake_event(&w.f, "ADDED", pod("c", 11));
    fake_event(&w.f, "MODIFIED", pod("a", 12));
    assert_heard(&w.e, "+c ~a ");
    lull(&w);
    assert_heard(&w.e, "| ");
    fake_event(&w.f, "BOOKMARK", pod("", 13));
    lull(&w);
    assert_heard(&w.e, ""); /* nothing was told since */
    teardown(&w);
}

static void a_source_that_never_lulls_makes_each_event_a_run(void **state)
{
    (void)state;
    world w;
    setup(&w, false, false);
    fake_event(&w.f, "ADDED", pod("c", 11));
    fake_event(&w.f, "MODIFIED", pod("a", 12));
    assert_heard(&w.e, "+c | ~a | ");
    teardown(&w);
}

static void events_applied_elsewhere_are_a_batch_each(void **state)
{
    (void)state;
    world w;
    setup(&w, true, true);
    fake_event(&w.f, "ADDED", pod("c", 11));
    fake_event(&w.f, "MODIFIED", pod("a", 12));
    lull(&w);
    assert_heard(&w.e, "");
    run_later(&w);
    assert_heard(&w.e, "+c | ~a | ");
    teardown(&w);
}

static void an_executor_may_change_its_mind(void **state)
{
    (void)state;
    world w;
    setup(&w, true, true);
    w.at_once = true;
    fake_event(&w.f, "ADDED", pod("c", 11));
    fake_event(&w.f, "MODIFIED", pod("a", 12));
    assert_heard(&w.e, "+c ~a ");
    w.at_once = false;
    fake_event(&w.f, "MODIFIED", pod("a", 13));
    lull(&w);
    assert_heard(&w.e, "");
    run_later(&w);
    assert_heard(&w.e, "~a | ");
    teardown(&w);
}

static void a_watch_that_ends_or_is_given_up_is_a_lull(void **state)
{
    (void)state;
    world w;
    setup(&w, true, false);
    fake_event(&w.f, "ADDED", pod("c", 11));
    fake_done(&w.f, KL_OK, 200, NULL, NULL);
    assert_heard(&w.e, "+c | ");
    teardown(&w);
    setup(&w, true, false);
    fake_event(&w.f, "ADDED", pod("c", 11));
    kl_informer_stop(w.i, NULL, NULL);
    fake_pump(&w.f);
    assert_heard(&w.e, "+c | ");
    kl_informer_unsubscribe(w.sub);
    kl_informer_unref(w.i);
    kl_buf_fini(&w.e.said);
    fake_fini(&w.f);
}

KL_TESTS(cmocka_unit_test(events_until_the_source_lulls_are_one_run),
    cmocka_unit_test(a_source_that_never_lulls_makes_each_event_a_run),
    cmocka_unit_test(events_applied_elsewhere_are_a_batch_each),
    cmocka_unit_test(an_executor_may_change_its_mind),
    cmocka_unit_test(a_watch_that_ends_or_is_given_up_is_a_lull))
