/* shadow_judge_test.c - whether a candidate had the same result as the live run. */
#include "support/json.h"

#include "lab/shadow_judge.h"

static char *subresources[] = {"status", NULL};
static const kl_resource maps = {
    .group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .namespaced = true};
static const kl_resource widgets = {.group = "example.com",
    .version = "v1",
    .kind = "Widget",
    .plural = "widgets",
    .subresources = subresources,
    .namespaced = true};

#define MAP(rv, x)                                                                                           \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','namespace':'ns','resourceVersion':'" rv   \
    "'},'data':{'x':'" x "'}}"

typedef struct trial {
    kl_shadow_run s;
    kl_ending own;
} trial;

static void init(trial *t)
{
    *t = (trial){.s = {.key = "ns/w", .wall = KL_SECONDS(1700000000), .ended_wall = KL_SECONDS(1700000001)}};
    t->s.object = json(
        "{'apiVersion':'example.com/"
        "v1','kind':'Widget','metadata':{'name':'w','namespace':'ns','resourceVersion':'3'},'spec':{'n':1}}");
}

static void fini(trial *t)
{
    for (size_t i = 0; i < t->s.live.n; i++)
        kl_shadow_call_free(t->s.live.v[i]);
    for (size_t i = 0; i < t->s.own.n; i++)
        kl_shadow_call_free(t->s.own.v[i]);
    for (size_t i = 0; i < t->s.n_sights; i++) {
        kl_free(t->s.sights[i].ns);
        kl_free(t->s.sights[i].name);
        kl_objects_fini(&t->s.sights[i].found);
    }
    kl_free(t->s.sights);
    kl_free(t->s.live.v);
    kl_free(t->s.own.v);
    kl_value_unref(t->s.object);
}

/* The live run saw the map so (NULL: absent). */
static void saw(trial *t, const char *text)
{
    t->s.sights = kl_new(kl_sight);
    t->s.n_sights = 1;
    t->s.sights[0] = (kl_sight){
        .what = KL_SIGHT_GET, .resource = &maps, .ns = kl_strdup("ns"), .name = kl_strdup("a")};
    t->s.sights[0].found = (kl_objects){text != NULL, kl_zalloc_array(sizeof *t->s.sights[0].found.v, 1)};
    if (text)
        t->s.sights[0].found.v[0] = json(text);
}

static void call(kl_shadow_calls *l, const kl_resource *r, kl_verb verb, const char *sub, const char *name,
    const char *body)
{
    kl_op op;
    kl_op_init(&op, verb, NULL);
    op.resource = r;
    op.ns = "ns";
    op.name = name;
    op.subresource = sub;
    op.body = json(body);
    op.field_manager = "me";
    kl_shadow_call *c = kl_shadow_call_new(&op, r);
    c->answered = true;
    c->code = 200;
    l->v = kl_realloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = c;
    kl_value_unref(op.body);
}

static void judged(trial *t, kl_verdict verdict, const char *diff)
{
    kl_judgement j = kl_shadow_judge(&t->s, &widgets, &t->own);
    if (diff && j.diff)
        assert_string_equal(j.diff, diff);
    assert_int_equal(j.verdict, verdict);
    assert_int_equal(j.diff != NULL, diff != NULL);
    kl_free(j.diff);
    kl_free(j.kind);
    fini(t);
}

static void equivalent_writes_are_equal(void **state)
{
    (void)state;
    trial t;
    init(&t);
    saw(&t, MAP("5", "1"));
    call(&t.s.live, &maps, KL_PATCH, NULL, "a", "{'data':{'x':'2'}}");
    call(&t.s.own, &maps, KL_UPDATE, NULL, "a", MAP("5", "2"));
    judged(&t, KL_SAME, NULL);
}

static void a_no_op_write_may_be_absent(void **state)
{
    (void)state;
    trial t;
    init(&t);
    saw(&t, MAP("5", "1"));
    call(&t.s.live, &maps, KL_PATCH, NULL, "a", "{'data':{'x':'1'}}");
    judged(&t, KL_SAME, NULL);
}

static void another_outcome_differs(void **state)
{
    (void)state;
    trial t;
    init(&t);
    saw(&t, MAP("5", "1"));
    call(&t.s.live, &maps, KL_PATCH, NULL, "a", "{'data':{'x':'2'}}");
    call(&t.s.own, &maps, KL_PATCH, NULL, "a", "{'data':{'x':'3'}}");
    judged(&t, KL_DIFFERS, "v1/ConfigMap ns/a: data.x: \"2\" -> \"3\"");
}

static void a_write_of_only_one_side_differs(void **state)
{
    (void)state;
    trial t;
    init(&t);
    saw(&t, NULL);
    call(&t.s.live, &maps, KL_CREATE, NULL, NULL, "{'metadata':{'name':'a'},'data':{'x':'1'}}");
    judged(&t, KL_DIFFERS, "v1/ConfigMap ns/a: there -> gone data: {\"x\":\"1\"} -> none");
    init(&t);
    call(&t.s.own, &widgets, KL_PATCH, "status", "w", "{'status':{'n':1}}");
    judged(&t, KL_DIFFERS, "example.com/v1/Widget ns/w: status: none -> {\"n\":1}");
}

static void a_write_that_was_refused_did_nothing(void **state)
{
    (void)state;
    trial t;
    for (int code = 409; code <= 422; code += 13) {
        init(&t);
        saw(&t, MAP("5", "1"));
        call(&t.s.live, &maps, KL_PATCH, NULL, "a", "{'data':{'x':'2'}}");
        t.s.live.v[0]->status = code == 409 ? KL_ECONFLICT : KL_EREJECTED;
        t.s.live.v[0]->code = code;
        judged(&t, KL_SAME, NULL);
    }
}

static void moments_of_the_run_are_alike(void **state)
{
    (void)state;
    trial t;
    init(&t);
    call(&t.s.live, &widgets, KL_PATCH, "status", "w", "{'status':{'at':'2023-11-14T22:13:20Z'}}");
    call(&t.s.own, &widgets, KL_PATCH, "status", "w", "{'status':{'at':'2023-11-14T22:13:21Z'}}");
    judged(&t, KL_SAME, NULL);
    init(&t);
    call(&t.s.live, &widgets, KL_PATCH, "status", "w", "{'status':{'at':'2023-11-14T22:13:20Z'}}");
    call(&t.s.own, &widgets, KL_PATCH, "status", "w", "{'status':{'at':'2023-11-15T22:13:20Z'}}");
    judged(&t, KL_DIFFERS,
        "example.com/v1/Widget ns/w: status.at: \"2023-11-14T22:13:20Z\" -> \"2023-11-15T22:13:20Z\"");
}

static void field_ownership_counts(void **state)
{
    (void)state;
    trial t;
    init(&t);
    saw(&t, MAP("5", "1"));
    call(&t.s.live, &maps, KL_APPLY, NULL, "a", "{'metadata':{'name':'a'},'data':{'y':'2'}}");
    call(&t.s.own, &maps, KL_APPLY, NULL, "a", "{'metadata':{'name':'a'},'data':{'x':'1','y':'2'}}");
    judged(&t, KL_DIFFERS, "v1/ConfigMap ns/a: data.x: none -> \"1\"");
}

static void names_that_the_server_makes_do_not_count(void **state)
{
    (void)state;
    trial t;
    init(&t);
    call(&t.s.live, &maps, KL_CREATE, NULL, NULL, "{'metadata':{'generateName':'x-'},'data':{'x':'1'}}");
    call(&t.s.own, &maps, KL_CREATE, NULL, NULL, "{'data':{'x':'1'},'metadata':{'generateName':'x-'}}");
    judged(&t, KL_SAME, NULL);
}

static void results_are_compared(void **state)
{
    (void)state;
    trial t;
    init(&t);
    t.own = (kl_ending){KL_RESULT_ERROR, 0, "boom"};
    judged(&t, KL_FAILS, "result: done -> error (boom)");
    init(&t);
    t.s.live_end = (kl_ending){KL_RESULT_ERROR, 0, "one"};
    t.own = (kl_ending){KL_RESULT_ERROR, 0, "two"};
    judged(&t, KL_SAME, NULL);
    init(&t);
    t.s.live_end = (kl_ending){KL_RESULT_AFTER, KL_SECONDS(30), NULL};
    t.own = (kl_ending){KL_RESULT_AFTER, KL_SECONDS(31), NULL};
    judged(&t, KL_SAME, NULL);
    init(&t);
    t.s.live_end = (kl_ending){KL_RESULT_AFTER, KL_SECONDS(30), NULL};
    t.own = (kl_ending){KL_RESULT_AFTER, KL_SECONDS(300), NULL};
    judged(&t, KL_DIFFERS, "result: after 30s -> after 5m0s");
}

KL_TESTS(cmocka_unit_test(equivalent_writes_are_equal), cmocka_unit_test(a_no_op_write_may_be_absent),
    cmocka_unit_test(another_outcome_differs), cmocka_unit_test(a_write_of_only_one_side_differs),
    cmocka_unit_test(moments_of_the_run_are_alike), cmocka_unit_test(field_ownership_counts),
    cmocka_unit_test(names_that_the_server_makes_do_not_count), cmocka_unit_test(results_are_compared),
    cmocka_unit_test(a_write_that_was_refused_did_nothing))

/* not in tsan: it starts no thread */
