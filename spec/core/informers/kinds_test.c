/* kinds_test.c - a waiter for a kind is woken by news about kinds, and only without such news by the clock.
 */
#include "support/test.h"

#include "base/log.h"
#include "base/mem.h"
#include "informers/caches.h"
#include "support/fake_source.h"

enum { APP, CRDS, SERVICES, KINDS };

typedef struct world {
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_resource resource[KINDS];
    fake_source f[KINDS];
    bool there[KINDS];
    int asked[KINDS], sources[KINDS], forgotten;
    kl_buf log;
} world;

static const char *const names[KINDS] = {"example.com/v1/App",
    "apiextensions.k8s.io/v1/CustomResourceDefinition", "apiregistration.k8s.io/v1/APIService"};

static void on_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    world *w = arg;
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(kind, names[i]))
            continue;
        w->asked[i]++;
        if (w->there[i]) {
            done(done_arg, KL_OK, &w->resource[i], NULL);
            return;
        }
    }
    kl_err err = KL_ERR_INIT;
    done(done_arg, kl_fail(&err, KL_ENOTFOUND, "the server has no kind %s", kind), NULL, &err);
    kl_err_fini(&err);
}

static void on_forget(void *arg) { ((world *)arg)->forgotten++; }

static void on_source(void *arg, const kl_resource *r, const kl_cache_source *want, kl_source *out)
{
    world *w = arg;
    int i = (int)(r - w->resource);
    static const char *const spec[] = {"spec"};
    if (i != APP)
        /* of CRDs hardly anything is kept */
        assert_false(kl_projection_keeps(want->keep, spec, 1));
    w->sources[i]++;
    *out = fake_source_of(&w->f[i]);
}

static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    (void)fields;
    if (level >= KL_LOG_INFO)
        kl_buf_printf(&((world *)arg)->log, "%s\n", message);
}

static int told(const world *w, const char *what)
{
    int n = 0;
    for (const char *p = kl_buf_str(&w->log); (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void world_init(world *w)
{
    static const char *const plurals[KINDS] = {"apps", "customresourcedefinitions", "apiservices"};
    *w = (world){0};
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    w->loop = kl_loop_new("control", w->clock);
    w->mapper = kl_loop_new("mapper", w->clock);
    for (int i = 0; i < KINDS; i++) {
        w->resource[i] = (kl_resource){
            .group = (char *)"g", .version = (char *)"v1", .kind = (char *)"K", .plural = (char *)plurals[i]};
        fake_init(&w->f[i]);
        kl_clock_fake_free(w->f[i].clock);
        w->f[i].clock = w->clock;
        w->f[i].freed = true;
    }
    w->there[CRDS] = w->there[SERVICES] = true;
    w->caches = kl_caches_new(
        &(kl_caches_options){.origin = &(kl_caches_origin){on_resolve, on_forget, on_source, w},
            .clock = w->clock,
            .loop = w->loop,
            .mapper = w->mapper,
            .watch_kinds = true});
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(on_log, w);
}

static void pump(world *w)
{
    for (int n = 0; n < 8; n++) {
        for (int i = 0; i < KINDS; i++)
            fake_pump(&w->f[i]);
        kl_loop_step(w->loop);
    }
}

/* In small steps, so that what a timer brings about can set another. */
static void advance(world *w, kl_time by)
{
    for (kl_time step = KL_MILLISECONDS(50); by > 0; by -= step) {
        kl_clock_advance(w->clock, step);
        pump(w);
    }
}

static void world_fini(world *w)
{
    pump(w);
    kl_caches_free(w->caches);
    kl_loop_free(w->loop);
    kl_loop_free(w->mapper);
    for (int i = 0; i < KINDS; i++) {
        assert_true(w->f[i].freed);
        kl_mutex_fini(&w->f[i].mu);
    }
    kl_log_set_sink(NULL, NULL);
    kl_clock_fake_free(w->clock);
    kl_buf_fini(&w->log);
}

static void news_open(world *w)
{
    for (int i = CRDS; i < KINDS; i++) {
        fake_item(&w->f[i], "{\"metadata\":{\"name\":\"old\",\"uid\":\"1\",\"resourceVersion\":\"5\"}}");
        fake_listed(&w->f[i], "10", NULL);
        fake_opens(&w->f[i]);
    }
    pump(w);
}

#define CRD_ADDED "{\"metadata\":{\"name\":\"apps.example.com\",\"uid\":\"2\",\"resourceVersion\":\"11\"}}"

static void kinds_are_not_watched_while_none_is_missing(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    w.there[APP] = true;
    kl_cache *c = kl_caches_acquire(w.caches, names[APP], NULL);
    pump(&w);
    assert_non_null(kl_cache_informer(c));
    assert_int_equal(w.asked[CRDS] + w.asked[SERVICES], 0);
    kl_cache_release(c);
    world_fini(&w);
}

static void a_kind_that_appears_wakes_its_waiters(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    kl_cache *c = kl_caches_acquire(w.caches, names[APP], NULL);
    pump(&w);
    assert_int_equal(w.sources[CRDS], 1);
    assert_int_equal(w.sources[SERVICES], 1);
    advance(&w, KL_SECONDS(20)); /* it asks ever more seldom */
    int before = w.asked[APP], forgotten = w.forgotten;
    news_open(&w);
    /* what came before the watch began may be it */
    assert_int_equal(w.asked[APP], before + 1);
    advance(&w, KL_SECONDS(10));
    before = w.asked[APP];
    w.there[APP] = true;
    fake_event(&w.f[CRDS], "ADDED", CRD_ADDED);
    pump(&w);
    assert_non_null(kl_cache_informer(c));
    assert_int_equal(w.asked[APP], before + 1);
    assert_true(w.forgotten > forgotten);
    assert_int_equal(told(&w, "the kind exists now"), 1);
    kl_cache_release(c);
    world_fini(&w);
}

static void discovery_that_comes_a_little_later_is_asked_a_few_times_more(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    kl_cache *c = kl_caches_acquire(w.caches, names[APP], NULL);
    pump(&w);
    news_open(&w);
    advance(&w, KL_SECONDS(60));
    fake_event(&w.f[CRDS], "ADDED", CRD_ADDED);
    pump(&w);
    assert_null(kl_cache_informer(c));
    w.there[APP] = true;
    advance(&w, KL_MILLISECONDS(200));
    assert_non_null(kl_cache_informer(c));
    kl_cache_release(c);
    world_fini(&w);
}

static void an_informer_whose_kind_went_is_kicked_when_it_comes_back(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    w.there[APP] = true;
    kl_cache *c = kl_caches_acquire(w.caches, names[APP], NULL);
    pump(&w);
    fake_fails(&w.f[APP], KL_ENOTFOUND, 404);
    pump(&w);
    char *problem = kl_cache_problem(c);
    assert_non_null(problem);
    kl_free(problem);
    assert_int_equal(w.sources[CRDS], 1);
    news_open(&w);
    for (int i = 0; i < 12; i++) { /* its waits have grown long */
        advance(&w, KL_SECONDS(31));
        if (w.f[APP].open == FAKE_LIST)
            fake_fails(&w.f[APP], KL_ENOTFOUND, 404);
        pump(&w);
    }
    advance(&w, KL_SECONDS(1));
    assert_int_equal(w.f[APP].open, FAKE_NOTHING);
    fake_event(&w.f[CRDS], "ADDED", CRD_ADDED);
    pump(&w);
    assert_int_equal(w.f[APP].open, FAKE_LIST);
    kl_cache_release(c);
    world_fini(&w);
}

static void without_the_right_to_watch_kinds_it_polls_and_logs_once(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    kl_cache *c = kl_caches_acquire(w.caches, names[APP], NULL);
    pump(&w);
    fake_fails(&w.f[CRDS], KL_EFORBIDDEN, 403);
    pump(&w);
    assert_int_equal(told(&w, "cannot be watched"), 1);
    assert_true(w.f[CRDS].freed && w.f[SERVICES].freed);
    int before = w.asked[APP];
    advance(&w, KL_SECONDS(31));
    assert_true(w.asked[APP] > before);
    assert_int_equal(w.sources[CRDS], 1);
    advance(&w, KL_MINUTES(11)); /* it may be allowed by now */
    assert_int_equal(w.sources[CRDS], 2);
    fake_fails(&w.f[CRDS], KL_EFORBIDDEN, 403);
    pump(&w);
    assert_int_equal(told(&w, "cannot be watched"), 1);
    w.there[APP] = true;
    advance(&w, KL_SECONDS(31));
    assert_non_null(kl_cache_informer(c));
    kl_cache_release(c);
    world_fini(&w);
}

static void a_server_without_such_kinds_is_only_asked(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    w.there[CRDS] = w.there[SERVICES] = false;
    kl_cache *c = kl_caches_acquire(w.caches, names[APP], NULL);
    pump(&w);
    assert_int_equal(told(&w, "cannot be watched"), 1);
    advance(&w, KL_SECONDS(5));
    assert_true(w.asked[APP] >= 3);
    assert_int_equal(w.asked[CRDS], 1);
    kl_cache_release(c);
    world_fini(&w);
}

KL_TESTS(cmocka_unit_test(kinds_are_not_watched_while_none_is_missing),
    cmocka_unit_test(a_kind_that_appears_wakes_its_waiters),
    cmocka_unit_test(discovery_that_comes_a_little_later_is_asked_a_few_times_more),
    cmocka_unit_test(an_informer_whose_kind_went_is_kicked_when_it_comes_back),
    cmocka_unit_test(without_the_right_to_watch_kinds_it_polls_and_logs_once),
    cmocka_unit_test(a_server_without_such_kinds_is_only_asked))

/* not in tsan: it starts no thread */
