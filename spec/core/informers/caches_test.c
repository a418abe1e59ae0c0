/* caches_test.c - shared caches, the parameters of their lists, and kinds that may not be read or are gone.
 */
#include "support/fake_source.h"

#include "base/log.h"
#include "model/object.h"
#include "informers/caches.h"

#define SOURCES 8

enum { SECRET, NODE, KINDS };

static const char *const names[KINDS] = {"v1/Secret", "v1/Node"};

/* A source that some informer took, and what it is of. */
typedef struct taken {
    int kind;
    char ns[32], labels[32], fields[32];
    bool metadata;
    fake_source f;
} taken;

typedef struct world {
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_resource resource[KINDS];
    const kl_resource *other[KINDS]; /* what it is by now; NULL: what it was */
    bool missing[KINDS];
    int asked[KINDS], changed;
    taken of[SOURCES];
    int n;
    kl_buf log;
} world;

static void on_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    world *w = arg;
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(kind, names[i]))
            continue;
        w->asked[i]++;
        if (!w->missing[i]) {
            done(done_arg, KL_OK, w->other[i] ? w->other[i] : &w->resource[i], NULL);
            return;
        }
    }
    kl_err err = KL_ERR_INIT;
    done(done_arg, kl_fail(&err, KL_ENOTFOUND, "the server has no kind %s", kind), NULL, &err);
    kl_err_fini(&err);
}

static void on_forget(void *arg) { (void)arg; }

static void on_source(void *arg, const kl_resource *r, const kl_cache_source *want, kl_source *out)
{
    world *w = arg;
    assert_true(w->n < SOURCES);
    taken *t = &w->of[w->n++];
    t->kind = strcmp(r->kind, "Node") ? SECRET : NODE;
    snprintf(t->ns, sizeof t->ns, "%s", want->ns ? want->ns : "");
    snprintf(t->labels, sizeof t->labels, "%s", want->labels ? want->labels : "");
    snprintf(t->fields, sizeof t->fields, "%s", want->fields ? want->fields : "");
    t->metadata = want->metadata;
    fake_init(&t->f);
    kl_clock_fake_free(t->f.clock);
    t->f.clock = w->clock;
    *out = fake_source_of(&t->f);
}

static void on_changed(void *arg) { ((world *)arg)->changed++; }

static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    if (level >= KL_LOG_INFO)
        kl_buf_printf(&((world *)arg)->log, "%s: %s\n", message, fields);
}

static int told(const world *w, const char *what)
{
    int n = 0;
    for (const char *p = kl_buf_str(&w->log); (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void world_init(world *w, const char *ns)
{
    *w = (world){0};
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    w->loop = kl_loop_new("control", w->clock);
    w->mapper = kl_loop_new("mapper", w->clock);
    w->resource[SECRET] = (kl_resource){.group = (char *)"",
        .version = (char *)"v1",
        .kind = (char *)"Secret",
        .plural = (char *)"secrets",
        .namespaced = true};
    w->resource[NODE] = (kl_resource){
        .group = (char *)"", .version = (char *)"v1", .kind = (char *)"Node", .plural = (char *)"nodes"};
    w->caches = kl_caches_new(
        &(kl_caches_options){.origin = &(kl_caches_origin){on_resolve, on_forget, on_source, w},
            .clock = w->clock,
            .loop = w->loop,
            .mapper = w->mapper,
            .ns = ns,
            .changed = on_changed,
            .changed_arg = w});
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(on_log, w);
}

static void pump(world *w)
{
    for (int n = 0; n < 8; n++) {
        for (int i = 0; i < w->n; i++)
            fake_pump(&w->of[i].f);
        kl_loop_step(w->loop);
        kl_loop_step(w->mapper);
    }
}

static void advance(world *w, kl_time by)
{
    for (kl_time step = KL_MILLISECONDS(250); by > 0; by -= step) {
        kl_clock_advance(w->clock, step);
        for (int i = 0; i < w->n; i++)
            if (w->of[i].f.timer_id)
                fake_advance(&w->of[i].f, 0);
        pump(w);
    }
}

/* After every cache was released: nothing is left of any. */
static void world_fini(world *w)
{
    pump(w);
    kl_caches_free(w->caches);
    kl_loop_free(w->loop);
    kl_loop_free(w->mapper);
    for (int i = 0; i < w->n; i++) {
        assert_true(w->of[i].f.freed);
        assert_null(w->of[i].f.first);
        kl_mutex_fini(&w->of[i].f.mu);
    }
    kl_log_set_sink(NULL, NULL);
    kl_clock_fake_free(w->clock);
    kl_buf_fini(&w->log);
}

static kl_cache *acquire(world *w, int kind, const kl_want *want)
{
    kl_cache *c = kl_caches_acquire(w->caches, names[kind], want);
    pump(w);
    return c;
}

static void listed(taken *t, const char *rv)
{
    fake_listed(&t->f, rv, NULL);
    fake_opens(&t->f);
}

static void add_label(void *arg, const char *kind, kl_informer *i)
{
    (void)i;
    kl_buf *b = arg;
    kl_buf_printf(b, "%s%s", b->len ? " | " : "", kind);
}

static void assert_labels(world *w, const char *want)
{
    kl_buf b = KL_BUF_INIT;
    kl_caches_each(w->caches, add_label, &b);
    assert_string_equal(kl_buf_str(&b), want);
    kl_buf_fini(&b);
}

static void assert_problem(kl_cache *c, const char *want)
{
    char *why = kl_cache_problem(c);
    if (want)
        assert_string_equal(why ? why : "none", want);
    else
        assert_null(why);
    kl_free(why);
}

static char *b_a_b[] = {"b", "a", "b", NULL}, *a_b[] = {"a", "b", NULL}, *only_a[] = {"a", NULL};

#define OBJECT(ns, name, rv)                                                                                 \
    "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"uid\":\"u-" ns name                     \
    "\",\"resourceVersion\":\"" rv "\"}}"

static void each_namespace_is_asked_for_and_all_are_one_store(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *c = acquire(&w, SECRET, &(kl_want){.namespaces = b_a_b});
    assert_int_equal(w.n, 2);
    assert_string_equal(w.of[0].ns, "a");
    assert_string_equal(w.of[1].ns, "b");
    fake_item(&w.of[0].f, OBJECT("a", "x", "1"));
    listed(&w.of[0], "5");
    assert_false(kl_informer_synced(kl_cache_informer(c)));
    fake_item(&w.of[1].f, OBJECT("b", "y", "2"));
    listed(&w.of[1], "6");
    assert_true(kl_informer_synced(kl_cache_informer(c)));
    assert_int_equal(kl_informer_count(kl_cache_informer(c)), 2);
    kl_cache *same = acquire(&w, SECRET, &(kl_want){.namespaces = a_b});
    assert_ptr_equal(same, c);
    kl_cache *all = acquire(&w, SECRET, NULL), *one = acquire(&w, SECRET, &(kl_want){.namespaces = only_a});
    assert_int_equal(w.n, 4);
    assert_labels(&w, "v1/Secret | v1/Secret (namespace a) | v1/Secret (namespaces a, b)");
    kl_cache_release(one);
    kl_cache_release(all);
    kl_cache_release(same);
    pump(&w);
    assert_false(w.of[0].f.freed);
    kl_cache_release(c);
    world_fini(&w);
}

static int asked_for(const world *w, const char *ns)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        n += !strcmp(w->of[i].ns, ns) && !w->of[i].f.freed;
    return n;
}

static void a_divided_cache_has_a_namespace_while_a_user_holds_it(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    int me, you;
    kl_cache *mine = kl_caches_acquire(w.caches, names[SECRET], &(kl_want){.divided = true}),
             *yours = acquire(&w, SECRET, &(kl_want){.divided = true}), *all = acquire(&w, SECRET, NULL);
    assert_ptr_equal(mine, yours);
    assert_ptr_not_equal(mine, all); /* who wants everything has it */
    assert_labels(&w, "v1/Secret | v1/Secret (this replica's namespaces)");
    assert_true(kl_informer_synced(kl_cache_informer(mine)));
    assert_int_equal(asked_for(&w, "a"), 0);
    kl_cache_hold(mine, &me, a_b);
    kl_cache_hold(yours, &you, only_a);
    pump(&w);
    assert_int_equal(asked_for(&w, "a"), 1);
    assert_int_equal(asked_for(&w, "b"), 1);
    assert_false(kl_cache_covers(mine, "a"));
    int changed = w.changed;
    for (int i = 0; i < w.n; i++)
        if (*w.of[i].ns)
            listed(&w.of[i], "5");
    pump(&w);
    assert_true(w.changed > changed);
    assert_true(kl_cache_covers(mine, "a") && kl_cache_covers(mine, "b"));
    kl_cache_hold(mine, &me, (char *[]){NULL});
    assert_false(kl_cache_covers(yours, "b"));
    pump(&w);
    assert_int_equal(asked_for(&w, "a"), 1);
    assert_int_equal(asked_for(&w, "b"), 0);
    kl_cache_hold(yours, &you, NULL);
    kl_cache_hold(mine, &me, NULL);
    kl_cache_hold(all, &me, a_b); /* which has no use for it */
    pump(&w);
    assert_int_equal(asked_for(&w, "a"), 0);
    kl_cache_release(all);
    kl_cache_release(mine);
    kl_cache_release(yours);
    world_fini(&w);
}

static void a_kind_without_namespaces_is_not_divided(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *part = acquire(&w, NODE, &(kl_want){.divided = true}), *all = acquire(&w, NODE, NULL);
    kl_cache_hold(part, &w, a_b);
    assert_int_equal(w.n, 1);
    assert_false(kl_cache_covers(part, "a"));
    listed(&w.of[0], "5");
    assert_true(kl_cache_covers(part, "a") && kl_cache_covers(part, "c"));
    kl_cache_hold(part, &w, NULL);
    kl_cache_release(all);
    kl_cache_release(part);
    world_fini(&w);
}

/* The caches of a divided kind may be wished for before the kind is there. */
static void held_namespaces_of_a_missing_kind_come_with_it(void **state)
{
    (void)state;
    world w;
    world_init(&w, "only");
    w.missing[SECRET] = true;
    kl_cache *c = acquire(&w, SECRET, &(kl_want){.divided = true});
    kl_cache_hold(c, &w, (char *[]){"only", NULL});
    assert_false(kl_cache_covers(c, "only"));
    assert_string_equal(kl_caches_namespace(w.caches), "only");
    w.missing[SECRET] = false;
    advance(&w, KL_SECONDS(2));
    assert_int_equal(asked_for(&w, "only"), 1);
    kl_cache_hold(c, &w, NULL);
    kl_cache_release(c);
    world_fini(&w);
}

static void kinds_without_namespaces_are_one_for_all(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *some = acquire(&w, NODE, &(kl_want){.namespaces = a_b}), *all = acquire(&w, NODE, NULL),
             *others = acquire(&w, NODE, &(kl_want){.namespaces = only_a});
    assert_int_equal(w.n, 1);
    assert_string_equal(w.of[0].ns, "");
    assert_ptr_equal(kl_cache_informer(some), kl_cache_informer(all));
    assert_ptr_equal(kl_cache_informer(others), kl_cache_informer(all));
    assert_non_null(kl_cache_resource(some));
    assert_labels(&w, "v1/Node");
    fake_done(&w.of[0].f, KL_EFORBIDDEN, 403, NULL, "nope");
    pump(&w);
    assert_problem(some, "nope");
    kl_cache_release(all);
    kl_cache_release(others);
    pump(&w);
    assert_false(w.of[0].f.freed);
    kl_cache_release(some);
    world_fini(&w);
}

static void the_process_own_namespace_makes_no_difference(void **state)
{
    (void)state;
    world w;
    world_init(&w, "a");
    kl_cache *all = acquire(&w, SECRET, NULL), *one = acquire(&w, SECRET, &(kl_want){.namespaces = only_a});
    assert_ptr_equal(one, all);
    assert_string_equal(w.of[0].ns, "a");
    kl_cache_release(one);
    kl_cache_release(all);
    world_fini(&w);
}

static void a_selection_is_asked_of_the_server_and_stands_by_itself(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *all = acquire(&w, SECRET, NULL),
             *some = acquire(&w, SECRET, &(kl_want){.labels = "app=x", .fields = "type=Opaque"}),
             *again = acquire(&w, SECRET, &(kl_want){.labels = "app=x", .fields = "type=Opaque"}),
             *empty = acquire(&w, SECRET, &(kl_want){.labels = ""});
    assert_int_equal(w.n, 2);
    assert_ptr_equal(again, some);
    assert_ptr_equal(empty, all);
    assert_string_equal(w.of[0].labels, "");
    assert_string_equal(w.of[1].labels, "app=x");
    assert_string_equal(w.of[1].fields, "type=Opaque");
    assert_labels(&w, "v1/Secret | v1/Secret (labels app=x; fields type=Opaque)");
    kl_cache_release(all);
    kl_cache_release(some);
    kl_cache_release(again);
    kl_cache_release(empty);
    world_fini(&w);
}

static void metadata_alone_is_fetched_unless_a_larger_cache_exists(void **state)
{
    (void)state;
    static const char *const paths[] = {"metadata"};
    kl_projection *keep;
    world w;
    world_init(&w, NULL);
    assert_int_equal(kl_projection_new(paths, 1, &keep, NULL), KL_OK);
    const kl_want light = {.cut = true, .keep = keep, .metadata = true};
    kl_cache *first = acquire(&w, SECRET, &light), *whole = acquire(&w, SECRET, NULL);
    assert_int_equal(w.n, 2);
    assert_true(w.of[0].metadata);
    assert_false(w.of[1].metadata);
    assert_labels(&w, "v1/Secret | v1/Secret (metadata)");
    kl_cache_release(first);
    pump(&w);
    assert_int_equal(w.of[0].f.open, FAKE_NOTHING);
    assert_true(w.of[0].f.freed);
    kl_cache *second = acquire(&w, SECRET, &light);
    assert_ptr_equal(second, whole);
    kl_cache_release(second);
    kl_cache_release(whole);
    kl_projection_unref(keep);
    world_fini(&w);
}

static void a_rejection_names_the_rule_and_the_user(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *some = acquire(&w, SECRET, &(kl_want){.namespaces = a_b}), *all = acquire(&w, SECRET, NULL),
             *nodes = acquire(&w, NODE, NULL);
    listed(&w.of[0], "5");
    fake_done(&w.of[1].f, KL_EFORBIDDEN, 403, NULL,
        "list secrets b: secrets is forbidden: User \"jane\" cannot list resource \"secrets\" in API group "
        "\"\" in the namespace \"b\"");
    pump(&w);
    assert_problem(some,
        "may not list secrets in namespace b: add rule {apiGroups: [\"\"], resources: [\"secrets\"], verbs: "
        "[\"list\", \"watch\"]} to the Role of jane");
    assert_int_equal(told(&w, "controllers that need it are parked until it may be read: kind=v1/Secret"), 1);
    fake_done(&w.of[2].f, KL_EFORBIDDEN, 403, NULL,
        "secrets is forbidden: User \"system:serviceaccount:prod:sync\" cannot list resource \"secrets\" in "
        "API group \"\" at the cluster scope");
    pump(&w);
    assert_problem(all,
        "may not list secrets in all namespaces: add rule {apiGroups: [\"\"], resources: [\"secrets\"], "
        "verbs: [\"list\", \"watch\"]} to the ClusterRole of service account prod/sync, or list namespaces "
        "in `namespaces`");
    listed(&w.of[3], "7");
    fake_done(&w.of[3].f, KL_EFORBIDDEN, 403, NULL,
        "nodes is forbidden: User \"jane\" cannot watch resource \"nodes\" in API group \"\" at the cluster "
        "scope");
    pump(&w);
    assert_problem(nodes,
        "may not watch nodes: add rule {apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"list\", "
        "\"watch\"]} to the ClusterRole of jane");
    advance(&w, KL_SECONDS(2)); /* it heals by itself */
    listed(&w.of[1], "9");
    pump(&w);
    assert_problem(some, NULL);
    assert_true(kl_informer_synced(kl_cache_informer(some)));
    kl_cache_release(some);
    kl_cache_release(all);
    kl_cache_release(nodes);
    world_fini(&w);
}

static void another_rejection_passes_its_message_on(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *c = acquire(&w, SECRET, NULL);
    fake_done(&w.of[0].f, KL_EFORBIDDEN, 403, NULL, "list secrets: the proxy says no");
    pump(&w);
    assert_problem(c, "list secrets: the proxy says no");
    kl_cache_release(c);
    world_fini(&w);
}

typedef struct ears {
    int added, deleted;
} ears;

static void hear(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    ears *e = arg;
    (void)old;
    (void)now;
    (void)flags;
    e->added += type == KL_ADDED;
    e->deleted += type == KL_DELETED;
}

static void of_a_kind_that_is_gone_the_objects_are_deleted_and_it_comes_back(void **state)
{
    (void)state;
    world w;
    ears e = {0};
    world_init(&w, NULL);
    kl_cache *c = acquire(&w, SECRET, NULL);
    kl_informer *i = kl_cache_informer(c);
    kl_subscription *sub = kl_informer_subscribe(i, &(kl_handler){.on_event = hear, .arg = &e});
    fake_item(&w.of[0].f, OBJECT("a", "x", "1"));
    fake_item(&w.of[0].f, OBJECT("a", "y", "2"));
    listed(&w.of[0], "5");
    pump(&w);
    w.missing[SECRET] = true;
    fake_fails(&w.of[0].f, KL_ENOTFOUND, 404);
    pump(&w);
    assert_int_equal(e.deleted, 2);
    assert_int_equal(kl_informer_count(i), 0);
    assert_problem(c, "the server has no kind v1/Secret");
    assert_int_equal(told(&w, "a kind is gone"), 1);
    for (int n = 0; n < 100; n++) { /* it is asked for now and then */
        advance(&w, KL_SECONDS(1));
        if (w.of[0].f.open == FAKE_LIST)
            fake_fails(&w.of[0].f, KL_ENOTFOUND, 404);
    }
    assert_int_equal(told(&w, "a kind is gone"), 1);
    assert_in_range(w.asked[SECRET], 5, 20);
    w.missing[SECRET] = false;
    for (int n = 0; n < 62 && w.of[0].f.open != FAKE_LIST; n++)
        advance(&w, KL_SECONDS(1));
    fake_item(&w.of[0].f, OBJECT("a", "z", "9"));
    listed(&w.of[0], "10");
    pump(&w);
    assert_int_equal(e.added, 3);
    assert_problem(c, NULL);
    assert_int_equal(told(&w, "the kind exists again"), 1);
    int asked = w.asked[SECRET];
    advance(&w, KL_SECONDS(100)); /* and that is that */
    assert_in_range(w.asked[SECRET], asked, asked + 1);
    assert_false(kl_cache_outdated(c));
    kl_informer_unsubscribe(sub);
    kl_cache_release(c);
    world_fini(&w);
}

static void users_of_a_recreated_kind_start_over(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_resource without = w.resource[SECRET];
    without.namespaced = false;
    kl_cache *old = acquire(&w, SECRET, &(kl_want){.namespaces = only_a});
    listed(&w.of[0], "5");
    w.missing[SECRET] = true;
    fake_fails(&w.of[0].f, KL_ENOTFOUND, 404);
    pump(&w);
    assert_false(kl_cache_outdated(old));
    w.missing[SECRET] = false;
    w.other[SECRET] = &without;
    int changed = w.changed;
    /* it is asked for again, and discovery has something else */
    advance(&w, KL_SECONDS(2));
    assert_true(kl_cache_outdated(old));
    assert_true(w.changed > changed);
    kl_cache *fresh = acquire(&w, SECRET, &(kl_want){.namespaces = only_a});
    assert_ptr_not_equal(fresh, old);
    assert_ptr_equal(kl_cache_resource(fresh), &without);
    assert_string_equal(w.of[1].ns, "");
    kl_cache_release(old);
    listed(&w.of[1], "9");
    pump(&w);
    assert_true(kl_informer_synced(kl_cache_informer(fresh)));
    assert_ptr_equal(acquire(&w, SECRET, &(kl_want){.namespaces = only_a}), fresh);
    /* and back: what none may be told apart from is one with namespaces again */
    w.missing[SECRET] = true;
    fake_fails(&w.of[1].f, KL_ENOTFOUND, 404);
    pump(&w);
    w.missing[SECRET] = false;
    w.other[SECRET] = NULL;
    advance(&w, KL_SECONDS(2));
    assert_true(kl_cache_outdated(fresh));
    kl_cache *third = acquire(&w, SECRET, &(kl_want){.namespaces = only_a});
    assert_string_equal(w.of[w.n - 1].ns, "a");
    kl_cache_release(fresh);
    kl_cache_release(fresh);
    kl_cache_release(third);
    world_fini(&w);
}

/* Discovery hears of it after the list, which looks the same. */
static void a_kind_that_is_listed_again_is_looked_up_until_discovery_has_it(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_resource without = w.resource[SECRET];
    without.namespaced = false;
    kl_cache *c = acquire(&w, SECRET, NULL);
    listed(&w.of[0], "5");
    w.missing[SECRET] = true;
    fake_fails(&w.of[0].f, KL_ENOTFOUND, 404);
    pump(&w);
    kl_informer_kick(kl_cache_informer(c));
    pump(&w);
    listed(&w.of[0], "9");
    advance(&w, KL_SECONDS(5));
    assert_int_equal(told(&w, "the kind exists again"), 1);
    assert_problem(c, NULL);
    assert_false(kl_cache_outdated(c));
    w.missing[SECRET] = false;
    w.other[SECRET] = &without;
    advance(&w, KL_SECONDS(31));
    assert_true(kl_cache_outdated(c));
    kl_cache_release(c);
    world_fini(&w);
}

/* A server that is only starting has no kinds yet; what it knew is still true. */
static void of_a_kind_that_discovery_still_has_they_stay(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    kl_cache *c = acquire(&w, SECRET, NULL);
    fake_item(&w.of[0].f, OBJECT("a", "x", "1"));
    listed(&w.of[0], "5");
    fake_fails(&w.of[0].f, KL_ENOTFOUND, 404);
    pump(&w);
    assert_int_equal(w.asked[SECRET], 2);
    assert_int_equal(kl_informer_count(kl_cache_informer(c)), 1);
    assert_int_equal(told(&w, "a kind is gone"), 0);
    assert_int_equal(w.of[0].f.open, FAKE_LIST); /* since it should be there, it is asked for at once */
    fake_fails(&w.of[0].f, KL_ENOTFOUND, 404);
    w.missing[SECRET] = true; /* discovery hears of it a little later */
    advance(&w, KL_SECONDS(2));
    assert_int_equal(kl_informer_count(kl_cache_informer(c)), 0);
    assert_int_equal(told(&w, "a kind is gone"), 1);
    kl_cache_release(c);
    world_fini(&w);
}

static void a_failing_kind_affects_no_other(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    w.missing[SECRET] = true;
    kl_cache *bad = acquire(&w, SECRET, NULL), *good = acquire(&w, NODE, NULL);
    listed(&w.of[0], "5");
    pump(&w);
    assert_problem(bad, "the server has no kind v1/Secret");
    assert_problem(good, NULL);
    assert_true(kl_informer_synced(kl_cache_informer(good)));
    kl_cache_release(bad);
    kl_cache_release(good);
    world_fini(&w);
}

KL_TESTS(cmocka_unit_test(a_divided_cache_has_a_namespace_while_a_user_holds_it),
    cmocka_unit_test(a_kind_without_namespaces_is_not_divided),
    cmocka_unit_test(held_namespaces_of_a_missing_kind_come_with_it),
    cmocka_unit_test(each_namespace_is_asked_for_and_all_are_one_store),
    cmocka_unit_test(kinds_without_namespaces_are_one_for_all),
    cmocka_unit_test(the_process_own_namespace_makes_no_difference),
    cmocka_unit_test(a_selection_is_asked_of_the_server_and_stands_by_itself),
    cmocka_unit_test(metadata_alone_is_fetched_unless_a_larger_cache_exists),
    cmocka_unit_test(a_rejection_names_the_rule_and_the_user),
    cmocka_unit_test(another_rejection_passes_its_message_on),
    cmocka_unit_test(of_a_kind_that_is_gone_the_objects_are_deleted_and_it_comes_back),
    cmocka_unit_test(of_a_kind_that_discovery_still_has_they_stay),
    cmocka_unit_test(a_kind_that_is_listed_again_is_looked_up_until_discovery_has_it),
    cmocka_unit_test(users_of_a_recreated_kind_start_over), cmocka_unit_test(a_failing_kind_affects_no_other))

/* not in tsan: it starts no thread */
