/* informer_threads_test.c - readers, late handlers and index users on many threads while the watch thread
 * writes.
 *
 * Meant for ThreadSanitizer. No sleeping: the writer calls turns; in each, every other thread does its
 * thing once, while the writer goes on, and the next turn is called when all have come round. */
#include "support/fake_source.h"

#include "base/random.h"
#include "cache/informer.h"
#include "model/object.h"

#define OBJECTS 60
#define EVENTS 4000
#define EVENTS_PER_TURN 20
#define THREADS 4

typedef struct crowd {
    fake_source f;
    kl_informer *i;
    kl_mutex mu;
    kl_cond cond;
    int turn, came; /* came: threads that are through with this turn */
    bool done;
} crowd;

/* Waits for the next turn; false when there is none. */
static bool next_turn(crowd *c, int *mine)
{
    kl_lock(&c->mu);
    if (*mine) {
        c->came++;
        kl_cond_broadcast(&c->cond);
    }
    while (!c->done && *mine == c->turn)
        kl_cond_wait(&c->cond, &c->mu);
    bool more = !c->done;
    *mine = c->turn;
    kl_unlock(&c->mu);
    return more;
}

static void call_turn(crowd *c, bool last)
{
    kl_lock(&c->mu);
    while (c->turn && c->came < THREADS)
        kl_cond_wait(&c->cond, &c->mu);
    c->came = 0;
    c->turn++;
    c->done = last;
    kl_cond_broadcast(&c->cond);
    kl_unlock(&c->mu);
}

static const char *pod(char out[200], int n, int rv)
{
    snprintf(out, 200,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"ns%d\",\"name\":\"p%d\","
        "\"uid\":\"u%d\",\"resourceVersion\":\"%d\"},\"spec\":{\"nodeName\":\"n%d\"}}",
        n % 4, n, n, rv, rv % 5);
    return out;
}

static void feed(crowd *c)
{
    char text[200], rv_text[16];
    bool exists[OBJECTS];
    kl_random r = {11};
    int rv = 0;
    for (int n = 0; n < OBJECTS; n++) {
        fake_item(&c->f, pod(text, n, ++rv));
        exists[n] = true;
    }
    fake_listed(&c->f, "100", NULL);
    rv = 100;
    fake_opens(&c->f);
    for (int k = 0; k < EVENTS; k++) {
        int n = (int)(kl_random_next(&r) % OBJECTS);
        bool remove = exists[n] && !(kl_random_next(&r) % 3);
        fake_event(&c->f, remove ? "DELETED" : exists[n] ? "MODIFIED" : "ADDED", pod(text, n, ++rv));
        exists[n] = !remove;
        if (k % EVENTS_PER_TURN == 0) {
            call_turn(c, false);
            fake_pump(&c->f);
        }
        if (k % 1000 == 999) { /* now and then everything is listed again */
            fake_fails(&c->f, KL_EGONE, 410);
            if (c->f.open != FAKE_LIST)
                fake_advance(&c->f, KL_SECONDS(61));
            for (int m = 0; m < OBJECTS; m++) {
                fake_item(&c->f, pod(text, m, ++rv));
                exists[m] = true;
            }
            snprintf(rv_text, sizeof rv_text, "%d", rv);
            fake_listed(&c->f, rv_text, NULL);
            fake_opens(&c->f);
        }
    }
}

static void read_all(void *arg)
{
    crowd *c = arg;
    kl_random r = {kl_thread_self()};
    for (int turn = 0; next_turn(c, &turn);) {
        char key[32], value[16];
        kl_objects some;
        int n = (int)(kl_random_next(&r) % OBJECTS);
        snprintf(key, sizeof key, "ns%d/p%d", n % 4, n);
        const kl_value *o = kl_informer_lookup(c->i, key);
        if (o)
            assert_int_equal(atoi(kl_object_name(o) + 1), n);
        kl_value_unref(o);
        snprintf(value, sizeof value, "n%d", n % 5);
        /* What an index says about an object and what the object says are one. */
        if (!kl_informer_list(c->i, &(kl_query){.index = "node", .value = value}, &some, NULL)) {
            for (size_t k = 0; k < some.len; k++)
                assert_string_equal(kl_value_str_at(some.v[k], "spec", "nodeName", NULL), value);
            kl_objects_fini(&some);
        }
        snprintf(value, sizeof value, "ns%d", n % 4);
        if (!kl_informer_list(c->i, &(kl_query){.ns = value}, &some, NULL)) {
            assert_true(some.len <= OBJECTS / 4);
            kl_objects_fini(&some);
        }
        kl_informer_stats st;
        kl_informer_stats_get(c->i, &st);
        kl_informer_stats_fini(&st);
    }
}

/* One handler, as only its callbacks touch it. After unsubscribe nothing may touch it any more: it is on a
 * stack. */
typedef struct balance {
    int objects;
    bool synced;
} balance;

static void weigh(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    balance *b = arg;
    (void)flags;
    b->objects += type == KL_ADDED ? 1 : type == KL_DELETED ? -1 : 0;
    assert_true(b->objects >= 0 && b->objects <= OBJECTS);
    assert_true(old || now);
}

static void weighed(void *arg) { ((balance *)arg)->synced = true; }

static void come_and_go(void *arg)
{
    crowd *c = arg;
    for (int turn = 0; next_turn(c, &turn);) {
        balance b = {0};
        kl_subscription *s = kl_informer_subscribe(c->i, &(kl_handler){weigh, weighed, &b});
        kl_informer_resync(c->i, s);
        (void)!kl_informer_synced(c->i);
        kl_informer_unsubscribe(s);
        b.objects = -1;
    }
}

static void by_path(void *arg)
{
    crowd *c = arg;
    for (int turn = 0; next_turn(c, &turn);) {
        kl_err err = KL_ERR_INIT;
        kl_objects some;
        assert_ok(kl_informer_add_index_path(c->i, "mine", "metadata.uid", &err), &err);
        if (!kl_informer_list(c->i, &(kl_query){.index = "mine", .value = "u7"}, &some, &err)) {
            assert_true(some.len <= 1);
            kl_objects_fini(&some);
        }
        kl_err_fini(&err);
        kl_informer_drop_index(c->i, "mine");
    }
}

static void many_threads_read_while_one_writes(void **state)
{
    (void)state;
    crowd c = {0};
    kl_err err = KL_ERR_INIT;
    fake_init(&c.f);
    kl_informer_options o = {.source = fake_source_of(&c.f),
        .clock = c.f.clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod"};
    c.i = kl_informer_new(&o);
    assert_ok(kl_informer_add_index_path(c.i, "node", "spec.nodeName", &err), &err);
    balance all = {0};
    kl_subscription *s = kl_informer_subscribe(c.i, &(kl_handler){weigh, weighed, &all});
    kl_informer_start(c.i);
    fake_pump(&c.f);
    kl_mutex_init(&c.mu);
    kl_cond_init(&c.cond);
    kl_thread *t[THREADS] = {
        kl_thread_start("reader", read_all, &c),
        kl_thread_start("reader", read_all, &c),
        kl_thread_start("handlers", come_and_go, &c),
        kl_thread_start("indexes", by_path, &c),
    };
    feed(&c);
    call_turn(&c, true);
    for (int k = 0; k < THREADS; k++)
        kl_thread_join(t[k]);
    kl_cond_fini(&c.cond);
    kl_mutex_fini(&c.mu);
    fake_pump(&c.f);
    assert_true(all.synced);
    assert_int_equal(all.objects, kl_informer_count(c.i));
    kl_informer_unsubscribe(s);
    kl_informer_stop(c.i, NULL, NULL);
    fake_pump(&c.f);
    kl_informer_unref(c.i);
    fake_pump(&c.f);
    fake_fini(&c.f);
}

/* The owner of a handler may free it as soon as unsubscribe has returned, also while a callback was
 * running. */
typedef struct gate {
    kl_mutex mu;
    kl_cond cond;
    bool inside, open, left;
} gate;

static void at_the_gate(
    void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    gate *g = arg;
    (void)type, (void)old, (void)now, (void)flags;
    kl_lock(&g->mu);
    g->inside = true;
    kl_cond_broadcast(&g->cond);
    while (!g->open)
        kl_cond_wait(&g->cond, &g->mu);
    g->left = true;
    kl_unlock(&g->mu);
}

typedef struct leaver {
    gate *g;
    kl_subscription *s;
    bool left_first;
} leaver;

static void leave(void *arg)
{
    leaver *l = arg;
    kl_lock(&l->g->mu);
    while (!l->g->inside)
        kl_cond_wait(&l->g->cond, &l->g->mu);
    l->g->open = true;
    kl_cond_broadcast(&l->g->cond);
    kl_unlock(&l->g->mu);
    kl_informer_unsubscribe(l->s);
    kl_lock(&l->g->mu);
    l->left_first = l->g->left;
    kl_unlock(&l->g->mu);
}

static void unsubscribe_waits_for_the_callback_that_runs(void **state)
{
    (void)state;
    fake_source f;
    char text[200];
    fake_init(&f);
    kl_informer_options o = {.source = fake_source_of(&f), .clock = f.clock, .resource = "pods"};
    kl_informer *i = kl_informer_new(&o);
    gate g = {0};
    kl_mutex_init(&g.mu);
    kl_cond_init(&g.cond);
    leaver l = {.g = &g, .s = kl_informer_subscribe(i, &(kl_handler){at_the_gate, NULL, &g})};
    kl_informer_start(i);
    fake_pump(&f);
    fake_item(&f, pod(text, 1, 1));
    kl_thread *t = kl_thread_start("leaver", leave, &l);
    fake_listed(&f, "1", NULL);
    kl_thread_join(t);
    assert_true(l.left_first);
    kl_cond_fini(&g.cond);
    kl_mutex_fini(&g.mu);
    kl_informer_stop(i, NULL, NULL);
    fake_pump(&f);
    kl_informer_unref(i);
    fake_fini(&f);
}

KL_TESTS(cmocka_unit_test(many_threads_read_while_one_writes),
    cmocka_unit_test(unsubscribe_waits_for_the_callback_that_runs))
