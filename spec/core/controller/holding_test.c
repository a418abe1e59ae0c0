/* holding_test.c - caches of a replica's own namespaces: the caches follow the claims, and the runs follow
 * the caches. */
#include "support/fake_source.h"

#include "base/buf.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/texts.h"
#include "model/object.h"
#include "controller/holding.h"

#define SOURCES 40

enum { APP, SECRET, NODE, SPACE, KINDS };

/* One list and watch that was asked for. */
typedef struct asked {
    int kind;
    char ns[16];
    fake_source f;
} asked;

typedef struct world {
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_workqueue *queue;
    kl_program program;
    kl_controller_spec spec;
    kl_resource resource[KINDS];
    asked of[SOURCES];
    int n;
    kl_gate *gate;
    int drained;
    kl_wiring *w;
    kl_buf log;
} world;

static const char *const kinds[KINDS] = {"example.com/v1/App", "v1/Secret", "v1/Node", "v1/Namespace"};

/* Namespaces of which a has the first and b the second, once they are two. */
static char mine[16], theirs[16];

/* --- a program that does little, and a cluster by hand ------------------------------------ */

static void *on_open(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    (void)controller, (void)err, (void)stop;
    return KL_CONTAINER(p, world, program);
}

static void on_close(void *state) { (void)state; }
static void on_free(kl_program *p) { (void)p; }

static kl_status on_map(void *state, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit_key, void *arg, kl_err *err)
{
    (void)state, (void)fn, (void)reader, (void)err;
    const char *app = kl_value_str_at(object, "app", NULL);
    if (app)
        emit_key(arg, app);
    return KL_OK;
}

static const kl_program_ops ops = {.open = on_open, .close = on_close, .map = on_map, .free = on_free};

static void on_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    world *w = arg;
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kind, kinds[i])) {
            done(done_arg, KL_OK, &w->resource[i], NULL);
            return;
        }
    fail_msg("who wants %s?", kind);
}

static void on_forget(void *arg) { (void)arg; }

static void on_source(void *arg, const kl_resource *r, const kl_cache_source *want, kl_source *out)
{
    world *w = arg;
    assert_true(w->n < SOURCES);
    asked *a = &w->of[w->n++];
    a->kind = (int)(r - w->resource);
    snprintf(a->ns, sizeof a->ns, "%s", want->ns ? want->ns : "");
    fake_init(&a->f);
    kl_clock_fake_free(a->f.clock);
    a->f.clock = w->clock;
    *out = fake_source_of(&a->f);
}

static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    if (level >= KL_LOG_WARN)
        kl_buf_printf(&((world *)arg)->log, "%s: %s\n", message, fields);
}

static void pump(world *w)
{
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < w->n; i++)
            fake_pump(&w->of[i].f);
        kl_loop_step(w->loop);
        kl_loop_step(w->mapper);
    }
}

static void count(void *arg) { ++*(int *)arg; }

static bool is_ours(void *arg, const char *key) { return kl_gate_owns(((world *)arg)->gate, key); }

static kl_wiring *wire(world *w, int generation)
{
    kl_wiring *x = kl_wiring_new(&(kl_wiring_options){.caches = w->caches,
        .loop = w->loop,
        .mapper = w->mapper,
        .clock = w->clock,
        .queue = w->queue,
        .program = &w->program,
        .generation = generation,
        .divided = true,
        .ours = is_ours,
        .ours_arg = w});
    pump(w);
    (void)kl_wiring_advance(x);
    pump(w);
    return x;
}

static void setup(world *w)
{
    *w = (world){0};
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    w->loop = kl_loop_new("control", w->clock);
    w->mapper = kl_loop_new("mapper", w->clock);
    w->queue = kl_workqueue_new(
        &(kl_workqueue_options){.backoff = {KL_SECONDS(1), KL_SECONDS(100), 0}, .forget = kl_cause_forget});
    w->resource[APP] = (kl_resource){
        .group = "example.com", .version = "v1", .kind = "App", .plural = "apps", .namespaced = true};
    w->resource[SECRET] = (kl_resource){
        .group = "", .version = "v1", .kind = "Secret", .plural = "secrets", .namespaced = true};
    w->resource[NODE] = (kl_resource){.group = "", .version = "v1", .kind = "Node", .plural = "nodes"};
    w->resource[SPACE] = (kl_resource){
        .group = "", .version = "v1", .kind = "Namespace", .plural = "namespaces"};
    w->caches = kl_caches_new(
        &(kl_caches_options){.origin = &(kl_caches_origin){on_resolve, on_forget, on_source, w},
            .clock = w->clock,
            .loop = w->loop,
            .mapper = w->mapper});
    w->program = (kl_program){.ops = &ops, .name = "spec", .specs = &w->spec, .n_specs = 1};
    static char *reads[] = {"v1/Secret", NULL};
    static char *spaces[3] = {mine, theirs, NULL};
    w->spec = (kl_controller_spec){.name = "ctl",
        .resource = "example.com/v1/App",
        .namespaces = spaces,
        .reads = reads,
        .shard = KL_SHARD_NAMESPACE,
        .shard_own = true};
    w->gate = kl_gate_new("ctl", count, &w->drained);
    kl_log_set_level(KL_LOG_WARN);
    kl_log_set_sink(on_log, w);
}

static void teardown(world *w)
{
    if (w->w)
        kl_wiring_retire(w->w);
    pump(w);
    kl_caches_free(w->caches);
    pump(w);
    kl_loop_free(w->loop);
    kl_loop_free(w->mapper);
    kl_gate_free(w->gate);
    for (int i = 0; i < w->n; i++) {
        assert_true(w->of[i].f.freed);
        assert_null(w->of[i].f.first);
        assert_int_equal(w->of[i].f.open, FAKE_NOTHING);
        kl_mutex_fini(&w->of[i].f.mu);
    }
    kl_log_set_sink(NULL, NULL);
    kl_workqueue_free(w->queue);
    kl_clock_fake_free(w->clock);
    kl_buf_fini(&w->log);
}

/* --- claims, lists, keys ------------------------------------------------------------------ */

static kl_claims *claims_of(const char *const *members, size_t n)
{
    kl_ring *r = kl_ring_new(members, n);
    const kl_value *whole = kl_value_of_str("namespace"), *controllers = kl_value_with(NULL, "ctl", whole);
    kl_publication p = {r, kl_ring_find(r, "a"), controllers};
    kl_claims *c = kl_claims_new(&p, n ? 1 : 0, NULL, 0);
    kl_ring_unref(r);
    kl_value_unref(whole);
    kl_value_unref(controllers);
    return c;
}

static const char *const alone[] = {"a"}, *const both[] = {"a", "b"}, *const gone[] = {"b"};

static void fit(world *w)
{
    kl_holding_fit(w->w, NULL, w->gate);
    pump(w);
}

static void claim(world *w, const char *const *members, size_t n)
{
    kl_claims *c = claims_of(members, n);
    (void)kl_gate_set(w->gate, c);
    kl_claims_unref(c);
    fit(w);
}

/* The last that was asked for, which nobody has let go. */
static fake_source *source(world *w, int kind, const char *ns)
{
    for (int i = w->n; i-- > 0;)
        if (w->of[i].kind == kind && !strcmp(w->of[i].ns, ns) && !w->of[i].f.freed)
            return &w->of[i].f;
    return NULL;
}

static void list(world *w, int kind, const char *ns, const char *name)
{
    char text[200];
    fake_source *f = source(w, kind, ns);
    assert_non_null(f);
    snprintf(text, sizeof text,
        "{\"metadata\":{%s%s%s\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"5\"}}",
        *ns ? "\"namespace\":\"" : "", ns, *ns ? "\"," : "", name);
    if (*name)
        fake_item(f, text);
    fake_listed(f, "10", NULL);
    fake_opens(f);
    pump(w);
    fit(w);
}

static const char *taken(world *w)
{
    static char text[200];
    kl_queue_item item;
    text[0] = 0;
    pump(w);
    while (kl_workqueue_try_get(w->queue, kl_clock_now(w->clock), &item)) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "", item.key);
        kl_workqueue_finish(w->queue, &item, kl_clock_now(w->clock));
    }
    return text;
}

static char *key(const char *ns, const char *name)
{
    static char text[4][64];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, sizeof text[0], "%s/%s", ns, name);
    return out;
}

/* Published, with nothing held; then alone with both namespaces, an App in each. */
static void start(world *w)
{
    w->w = wire(w, 1);
    assert_true(kl_wiring_advance(w->w));
    fit(w);
    kl_wiring_activate(w->w);
}

static void start_alone(world *w)
{
    start(w);
    claim(w, alone, 1);
    for (int k = APP; k <= SECRET; k++) {
        list(w, k, mine, "x");
        list(w, k, theirs, "x");
    }
    (void)taken(w);
}

static int choose(void **state)
{
    (void)state;
    kl_claims *c = claims_of(both, 2);
    for (int i = 0; !*mine || !*theirs; i++) {
        char name[16];
        bool known;
        snprintf(name, sizeof name, "n%d", i);
        snprintf(kl_claims_want_namespace(c, name, &known) ? mine : theirs, sizeof mine, "%s", name);
    }
    kl_claims_unref(c);
    return 0;
}

/* --- the specs ---------------------------------------------------------------------------- */

static void keys_run_when_every_kind_of_their_namespace_was_listed(void **state)
{
    (void)state;
    world w;
    setup(&w);
    start(&w);
    assert_int_equal(kl_gate_covered(w.gate), 0);
    claim(&w, both, 2);
    assert_null(source(&w, APP, theirs));
    assert_null(source(&w, SECRET, theirs));
    list(&w, APP, mine, "x");
    assert_string_equal(taken(&w), "");
    assert_false(kl_gate_enter(w.gate, key(mine, "x")));
    bool parked;
    char *why = kl_wiring_why(w.w, &parked), *want = kl_sprintf("waiting for v1/Secret of %s", mine);
    assert_string_equal(why, want);
    assert_false(parked);
    list(&w, SECRET, mine, "s");
    assert_string_equal(taken(&w), key(mine, "x"));
    char *k = key(mine, "x");
    assert_true(kl_gate_enter(w.gate, k));
    kl_gate_leave(w.gate, k);
    assert_int_equal(kl_gate_moves(w.gate), 1);
    kl_free(why);
    kl_free(want);
    fake_event(source(&w, APP, mine), "ADDED",
        "{\"metadata\":{\"namespace\":\"n\",\"name\":\"alien\",\"uid\":\"u\",\"resourceVersion\":\"11\"}}");
    assert_string_equal(taken(&w), "");
    teardown(&w);
}

static void unwanted_namespaces_are_dropped_after_their_last_run(void **state)
{
    (void)state;
    world w;
    setup(&w);
    start_alone(&w);
    char *k = key(theirs, "x");
    assert_true(kl_gate_enter(w.gate, k));
    claim(&w, both, 2);
    assert_non_null(source(&w, APP, theirs));
    assert_int_equal(kl_gate_covered(w.gate), 2);
    kl_gate_leave(w.gate, k);
    assert_int_equal(w.drained, 1);
    fit(&w);
    assert_null(source(&w, APP, theirs));
    assert_null(source(&w, SECRET, theirs));
    assert_int_equal(kl_gate_covered(w.gate), 1);
    assert_string_equal(taken(&w), "");
    assert_non_null(source(&w, APP, mine));
    claim(&w, alone, 1); /* and it comes back, listed anew */
    assert_int_equal(kl_gate_covered(w.gate), 1);
    assert_false(kl_gate_owns(w.gate, k));
    list(&w, APP, theirs, "y");
    list(&w, SECRET, theirs, "");
    assert_string_equal(taken(&w), key(theirs, "y"));
    teardown(&w);
}

static void a_replica_that_is_no_member_for_a_while_keeps_its_namespaces(void **state)
{
    (void)state;
    world w;
    setup(&w);
    start_alone(&w);
    claim(&w, NULL, 0);
    assert_int_equal(kl_gate_covered(w.gate), 2);
    assert_false(kl_gate_owns(w.gate, key(mine, "x")));
    int before = w.n;
    claim(&w, alone, 1);
    assert_int_equal(w.n, before);
    assert_true(kl_gate_owns(w.gate, key(mine, "x")));
    claim(&w, gone, 1); /* there are enough others */
    assert_int_equal(kl_gate_covered(w.gate), 0);
    assert_null(source(&w, APP, mine));
    teardown(&w);
}

static void a_new_generation_takes_over_when_it_holds_as_much(void **state)
{
    (void)state;
    world w;
    setup(&w);
    start_alone(&w);
    static char *reads[] = {"v1/Secret", "v1/Node", NULL};
    w.spec.reads = reads; /* another kind, and another cache of apps */
    w.spec.select_labels = "a=b";
    kl_wiring *next = wire(&w, 2);
    kl_holding_fit(w.w, next, w.gate);
    pump(&w);
    assert_false(kl_wiring_advance(next));
    list(&w, NODE, "", "n1");
    list(&w, APP, mine, "new");
    assert_false(kl_wiring_advance(next));
    kl_holding_handover(next, w.gate); /* were it published now: keys would wait */
    assert_int_equal(kl_gate_covered(w.gate), 1);
    fit(&w);
    assert_int_equal(kl_gate_covered(w.gate), 2);
    list(&w, APP, theirs, "new");
    assert_true(kl_wiring_advance(next));
    (void)taken(&w);
    kl_holding_handover(next, w.gate);
    assert_int_equal(kl_gate_covered(w.gate), 2);
    kl_wiring_retire(w.w);
    w.w = next;
    fit(&w);
    kl_wiring_activate(next);
    char both_keys[64];
    bool first = strcmp(mine, theirs) < 0;
    snprintf(both_keys, sizeof both_keys, "%s %s", key(first ? mine : theirs, "new"),
        key(first ? theirs : mine, "new"));
    assert_string_equal(taken(&w), both_keys);
    assert_non_null(source(&w, SECRET, mine)); /* which both hold */
    teardown(&w);
}

static void a_namespace_that_may_not_be_read_holds_up_no_new_generation(void **state)
{
    (void)state;
    world w;
    setup(&w);
    start(&w);
    claim(&w, alone, 1);
    for (int k = APP; k <= SECRET; k++)
        list(&w, k, mine, "x");
    fake_fails(source(&w, APP, theirs), KL_EFORBIDDEN, 403);
    fake_fails(source(&w, SECRET, theirs), KL_EFORBIDDEN, 403);
    fit(&w);
    assert_string_equal(taken(&w), key(mine, "x"));
    kl_wiring *next = wire(&w, 2);
    kl_holding_fit(w.w, next, w.gate);
    pump(&w);
    assert_true(kl_wiring_advance(next));
    kl_wiring_retire(next);
    /* a place among the replicas that it had before, and left */
    kl_holding_begin(w.w, w.gate);
    assert_int_equal(kl_gate_covered(w.gate), 0);
    fit(&w);
    assert_int_equal(kl_gate_covered(w.gate), 1);
    assert_string_equal(taken(&w), key(mine, "x"));
    teardown(&w);
}

static void reads_of_other_replicas_namespaces_fail(void **state)
{
    (void)state;
    world w;
    setup(&w);
    static char *reads[] = {"v1/Secret", "v1/Node", NULL};
    w.spec.reads = reads;
    w.w = wire(&w, 1);
    list(&w, NODE, "", "n1");
    assert_true(kl_wiring_advance(w.w));
    claim(&w, both, 2);
    list(&w, APP, mine, "x");
    list(&w, SECRET, mine, "s");
    kl_reader *rd = kl_wiring_logic(w.w)->reader;
    const kl_value *v = NULL;
    kl_objects all = {0};
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_reader_get(rd, "v1/Secret", mine, "s", &v, &err), &err);
    assert_non_null(v);
    kl_value_unref(v);
    assert_ok(kl_reader_get(rd, "v1/Node", NULL, "n1", &v, &err), &err);
    assert_non_null(v);
    kl_value_unref(v);
    assert_fails(
        kl_reader_get(rd, "v1/Secret", theirs, "s", &v, &err), KL_EINVAL, &err, "and n1 is not among them");
    assert_fails(kl_reader_list(rd, "v1/Secret", &(kl_read_query){.ns = theirs}, &all, &err), KL_EINVAL, &err,
        "ctx.live");
    assert_fails(kl_reader_list(rd, "v1/Secret", &(kl_read_query){0}, &all, &err), KL_EINVAL, &err,
        "name a namespace");
    assert_ok(kl_reader_list(rd, "v1/Secret", &(kl_read_query){.ns = mine}, &all, &err), &err);
    assert_int_equal(all.len, 1);
    kl_objects_fini(&all);
    assert_ok(kl_reader_list(rd, "v1/Node", &(kl_read_query){0}, &all, &err), &err);
    kl_objects_fini(&all);
    teardown(&w);
}

static void without_names_all_existing_namespaces_count(void **state)
{
    (void)state;
    world w;
    setup(&w);
    w.spec.namespaces = NULL;
    w.w = wire(&w, 1);
    assert_false(kl_wiring_advance(w.w));
    list(&w, SPACE, "", mine);
    assert_true(kl_wiring_advance(w.w));
    fit(&w);
    kl_wiring_activate(w.w);
    claim(&w, alone, 1);
    list(&w, APP, mine, "x");
    list(&w, SECRET, mine, "");
    assert_string_equal(taken(&w), key(mine, "x"));
    assert_null(source(&w, APP, theirs));
    char text[160];
    snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u2\",\"resourceVersion\":\"11\"}}",
        theirs);
    fake_event(source(&w, SPACE, ""), "ADDED", text);
    fit(&w);
    list(&w, APP, theirs, "y");
    list(&w, SECRET, theirs, "");
    assert_string_equal(taken(&w), key(theirs, "y"));
    snprintf(
        text, sizeof text, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"12\"}}", mine);
    fake_event(source(&w, SPACE, ""), "DELETED", text);
    fit(&w);
    assert_non_null(source(&w, APP, mine)); /* its object is still to be deleted, as far as we know */
    snprintf(text, sizeof text,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"x\",\"uid\":\"u\",\"resourceVersion\":\"11\"}}",
        mine);
    fake_event(source(&w, APP, mine), "DELETED", text);
    assert_string_equal(taken(&w), key(mine, "x"));
    fit(&w);
    assert_null(source(&w, APP, mine));
    assert_non_null(source(&w, APP, theirs));
    teardown(&w);
}

static void a_resource_without_namespaces_cannot_be_divided(void **state)
{
    (void)state;
    world w;
    setup(&w);
    w.spec.resource = "v1/Node";
    w.w = wire(&w, 1);
    assert_false(kl_wiring_advance(w.w));
    bool parked;
    char *why = kl_wiring_why(w.w, &parked);
    assert_true(parked);
    assert_non_null(strstr(why, "nodes are not namespaced"));
    kl_free(why);
    teardown(&w);
}

static void a_function_that_maps_elsewhere_is_reported_once(void **state)
{
    (void)state;
    world w;
    setup(&w);
    static kl_watch_spec watch[] = {{.kind = "v1/Secret", .how = KL_MAP_FN, .fn = 1}};
    w.spec.watches = watch;
    w.spec.n_watches = 1;
    start_alone(&w);
    char text[200];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text,
            "{\"kind\":\"Secret\",\"app\":\"%s/"
            "x\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"s%d\",\"uid\":\"u%d\",\"resourceVersion\":\"%"
            "d\"}}",
            i ? theirs : mine, mine, i, i, 20 + i);
        fake_event(source(&w, SECRET, mine), "ADDED", text);
        assert_string_equal(taken(&w), key(i ? theirs : mine, "x"));
        assert_int_equal(strstr(kl_buf_str(&w.log), "maps to a key in another namespace") != NULL, i > 0);
    }
    assert_null(strstr(strstr(kl_buf_str(&w.log), "maps to a key") + 1, "maps to a key"));
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_run_when_every_kind_of_their_namespace_was_listed),
        cmocka_unit_test(unwanted_namespaces_are_dropped_after_their_last_run),
        cmocka_unit_test(a_replica_that_is_no_member_for_a_while_keeps_its_namespaces),
        cmocka_unit_test(a_new_generation_takes_over_when_it_holds_as_much),
        cmocka_unit_test(a_namespace_that_may_not_be_read_holds_up_no_new_generation),
        cmocka_unit_test(reads_of_other_replicas_namespaces_fail),
        cmocka_unit_test(without_names_all_existing_namespaces_count),
        cmocka_unit_test(a_resource_without_namespaces_cannot_be_divided),
        cmocka_unit_test(a_function_that_maps_elsewhere_is_reported_once),
    };
    return cmocka_run_group_tests(tests, choose, NULL);
}

/* not in tsan: it starts no thread */
