/* discovery_test.c - kinds become resources: aggregated, legacy and partial discovery, and the messages for
 * missing kinds. */
#include "support/test.h"
#include "core/http/peer.h"

#include "base/buf.h"
#include "base/log.h"
#include "client/client.h"

/* A server made of paths; "!" in front of a body answers 503. */
typedef struct route {
    const char *path, *body;
} route;
typedef struct site {
    const route *_Atomic routes;
    _Atomic int api, apis;
} site;

static bool serve(peer *p, int fd, const request *r)
{
    site *s = p->arg;
    const char *body = NULL;
    if (!strcmp(r->path, "/api"))
        atomic_fetch_add(&s->api, 1);
    if (!strcmp(r->path, "/apis"))
        atomic_fetch_add(&s->apis, 1);
    for (const route *at = atomic_load(&s->routes); at->path; at++)
        if (!strcmp(at->path, r->path))
            body = at->body;
    if (!body)
        return peer_reply(fd, 404, "", "404 page not found");
    if (*body == '!')
        return peer_reply(fd, 503, "", "down");
    if (!strncmp(body, "{\"kind\":\"APIGroupDiscoveryList\"", 31)) {
        const char *accept = peer_header(r, "accept");
        if (!accept
            || strncmp(accept, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,", 69))
            return peer_reply(fd, 406, "", "{}");
    }
    return peer_reply(fd, 200, "", body);
}

#define AGG(items)                                                                                           \
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\",\"items\":[" items "]}"
#define GROUP(name, versions) "{\"metadata\":{\"name\":\"" name "\"},\"versions\":[" versions "]}"
#define VERSION(v, fresh, resources)                                                                         \
    "{\"version\":\"" v "\",\"freshness\":\"" fresh "\",\"resources\":[" resources "]}"
#define RESOURCE(plural, kind, scope, subs)                                                                  \
    "{\"resource\":\"" plural "\",\"responseKind\":{\"group\":\"\",\"version\":\"\",\"kind\":\"" kind        \
    "\"},\"scope\":\"" scope "\","                                                                           \
    "\"singularResource\":\"\",\"verbs\":[\"get\",\"list\"],\"shortNames\":[\"sh\"],\"subresources\":[" subs \
    "]}"
#define STATUS_SUB "{\"subresource\":\"status\",\"verbs\":[\"get\"]}"

#define CORE                                                                                                 \
    AGG("{\"versions\":[" VERSION("v1", "Current",                                                           \
        RESOURCE("pods", "Pod", "Namespaced", STATUS_SUB) "," RESOURCE(                                      \
            "nodes", "Node", "Cluster", "") "," RESOURCE("events", "Event", "Namespaced", "")) "]}")

static const route aggregated[] = {
    {"/api", CORE},
    {"/apis",
        AGG(GROUP("events.k8s.io",
            VERSION("v1", "Current", RESOURCE("events", "Event", "Namespaced", ""))) "," GROUP("apps",
            VERSION("v1", "Current",
                RESOURCE("deployments", "Deployment", "Namespaced", STATUS_SUB)) "," VERSION("v1beta1",
                "Current",
                RESOURCE("deployments", "Deployment", "Namespaced", "") "," RESOURCE("olds", "Old",
                    "Namespaced", ""))) "," GROUP("metrics.k8s.io", VERSION("v1beta1", "Stale", "")))},
    {NULL, NULL},
};

static const route with_crd[] = {
    {"/api", CORE},
    {"/apis",
        AGG(GROUP("apps",
            VERSION("v1", "Current",
                RESOURCE("deployments", "Deployment", "Namespaced", STATUS_SUB))) "," GROUP("example.com",
            VERSION("v1", "Current", RESOURCE("widgets", "Widget", "Namespaced", ""))))},
    {NULL, NULL},
};

static const route apps_stale[] = {
    {"/api", CORE},
    {"/apis", AGG(GROUP("apps", VERSION("v1", "Stale", "")))},
    {NULL, NULL},
};

static const route legacy[] = {
    {"/api", "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}"},
    {"/api/v1",
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":\"pods\","
        "\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"get\"]},"
        "{\"name\":\"pods/"
        "status\",\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"get\"]},{\"name\":\"pods/"
        "eviction\",\"namespaced\":true,\"kind\":\"Eviction\",\"verbs\":[\"create\"]}]}"},
    {"/apis",
        "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\",\"versions\":[{\"groupVersion\":\"apps/"
        "v1beta1\",\"version\":\"v1beta1\"},{\"groupVersion\":\"apps/"
        "v1\",\"version\":\"v1\"}],\"preferredVersion\":{\"version\":\"v1\"}},"
        "{\"name\":\"broken.io\",\"versions\":[{\"groupVersion\":\"broken.io/"
        "v1\",\"version\":\"v1\"}],\"preferredVersion\":{\"version\":\"v1\"}}]}"},
    {"/apis/apps/v1",
        "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"deployments\",\"namespaced\":true,\"kind\":"
        "\"Deployment\",\"verbs\":[\"get\"]}]}"},
    {"/apis/apps/v1beta1",
        "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"deployments\",\"namespaced\":true,\"kind\":"
        "\"Deployment\",\"verbs\":[\"get\"]}]}"},
    {"/apis/broken.io/v1", "!"},
    {NULL, NULL},
};

static const route no_core[] = {
    {"/apis",
        AGG(GROUP("example.com", VERSION("v1", "Current", RESOURCE("widgets", "Widget", "Namespaced", ""))))},
    {NULL, NULL}};
#define PAGE "<html><body>no backend</body></html>"
static const route pages[] = {{"/api", PAGE}, {"/apis", PAGE}, {NULL, NULL}};
static const route empty_answers[] = {{"/api", ""}, {"/apis", ""}, {NULL, NULL}};
static const route no_paths[] = {{NULL, NULL}}; /* 404 to all */
static const route other_json[] = {
    {"/api", "{}"}, {"/apis", "{\"kind\":\"Status\",\"status\":\"Success\"}"}, {NULL, NULL}};
static const route groups_alone[] = {
    {"/apis",
        AGG(GROUP("apps",
            VERSION("v1", "Current", RESOURCE("deployments", "Deployment", "Namespaced", STATUS_SUB))))},
    {NULL, NULL}};
static const route down[] = {{"/api", "!"}, {"/apis", "!"}, {NULL, NULL}};

typedef struct world {
    peer p;
    site s;
    kl_client *c;
    kl_clock *clock;
    kl_err err;
} world;

static void world_start(world *w, const route *routes)
{
    memset(w, 0, sizeof *w);
    atomic_store(&w->s.routes, routes);
    peer_start(&w->p, serve, &w->s);
    kl_client_options o = {0};
    kl_config_for_server(w->p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    o.clock = w->clock = kl_clock_fake_new(KL_SECONDS(10), KL_SECONDS(10));
    assert_ok(kl_client_new(&o, &w->c, &w->err), &w->err);
}

static void world_stop(world *w)
{
    kl_client_free(w->c);
    peer_stop(&w->p);
    kl_clock_fake_free(w->clock);
    kl_err_fini(&w->err);
}

static const kl_resource *find(world *w, const char *kind)
{
    const kl_resource *r = NULL;
    assert_ok(kl_client_resolve_wait(w->c, kind, &r, &w->err), &w->err);
    return r;
}

static kl_status miss(world *w, const char *kind)
{
    const kl_resource *r = NULL;
    kl_status st = kl_client_resolve_wait(w->c, kind, &r, &w->err);
    assert_null(r);
    return st;
}

static void two_requests_discover_everything(void **state)
{
    (void)state;
    world w;
    world_start(&w, aggregated);
    assert_null(kl_client_resolve_cached(w.c, "v1/Pod"));
    const kl_resource *pod = find(&w, "v1/Pod");
    assert_string_equal(pod->plural, "pods");
    assert_true(pod->namespaced);
    assert_true(kl_resource_has_subresource(pod, "status"));
    assert_true(kl_resource_has_verb(pod, "list"));
    assert_false(find(&w, "v1/Node")->namespaced);
    assert_ptr_equal(kl_client_resolve_cached(w.c, "Pod"), pod);
    assert_ptr_equal(find(&w, "Pod"), pod);
    assert_string_equal(find(&w, "apps/Deployment")->version, "v1");
    assert_ptr_equal(find(&w, "Deployment"), find(&w, "apps/v1/Deployment"));
    assert_string_equal(find(&w, "apps/v1beta1/Deployment")->version, "v1beta1");
    /* the preferred version does not have it */
    assert_string_equal(find(&w, "apps/Old")->version, "v1beta1");
    assert_string_equal(find(&w, "Event")->group, ""); /* core before others */
    assert_string_equal(find(&w, "events.k8s.io/Event")->group, "events.k8s.io");
    assert_int_equal(atomic_load(&w.p.requests), 2);
    world_stop(&w);
}

static void an_older_server_is_asked_group_by_group(void **state)
{
    (void)state;
    world w;
    world_start(&w, legacy);
    const kl_resource *pod = find(&w, "v1/Pod");
    assert_true(kl_resource_has_subresource(pod, "status") && kl_resource_has_subresource(pod, "eviction"));
    assert_string_equal(pod->singular, "pod");
    assert_string_equal(find(&w, "apps/Deployment")->version, "v1");
    assert_string_equal(find(&w, "apps/v1beta1/Deployment")->version, "v1beta1");
    assert_fails(miss(&w, "broken.io/v1/Thing"), KL_ESERVER, &w.err, "discovery of its API group failed");
    world_stop(&w);
}

static void a_stale_group_fails_alone_and_keeps_its_known_kinds(void **state)
{
    (void)state;
    world w;
    world_start(&w, aggregated);
    const kl_resource *deployment = find(&w, "apps/v1/Deployment");
    assert_fails(miss(&w, "metrics.k8s.io/v1beta1/PodMetrics"), KL_ESERVER, &w.err, "stale");
    atomic_store(&w.s.routes, apps_stale);
    kl_client_discovery_forget(w.c);
    assert_ptr_equal(find(&w, "apps/v1/Deployment"), deployment);
    assert_string_equal(find(&w, "v1/Pod")->plural, "pods");
    world_stop(&w);
}

static void a_server_without_a_core_group_is_fine(void **state)
{
    (void)state;
    world w;
    world_start(&w, no_core);
    assert_string_equal(find(&w, "example.com/v1/Widget")->plural, "widgets");
    assert_fails(miss(&w, "v1/Pod"), KL_ENOTFOUND, &w.err, "the server has no \"v1/Pod\"");
    world_stop(&w);
}

static void an_unknown_kind_is_reported_with_similar_ones(void **state)
{
    (void)state;
    world w;
    world_start(&w, aggregated);
    assert_fails(miss(&w, "apps/v1/Deploymnet"), KL_ENOTFOUND, &w.err, "did you mean \"apps/v1/Deployment\"");
    assert_fails(miss(&w, "apps/v2/Deployment"), KL_ENOTFOUND, &w.err,
        "did you mean \"apps/v1/Deployment\" or \"apps/v1beta1/Deployment\"?");
    assert_fails(miss(&w, "Pods"), KL_ENOTFOUND, &w.err, "did you mean \"v1/Pod\"");
    assert_fails(miss(&w, "nothing.io/v1/Xyzzy"), KL_ENOTFOUND, &w.err,
        "it has no API group \"nothing.io\": is the CRD installed?");
    assert_fails(miss(&w, "a/b/c/d"), KL_EINVAL, &w.err, "a/b/c/d");
    world_stop(&w);
}

static void a_miss_is_remembered_for_a_moment_and_forgotten_on_request(void **state)
{
    (void)state;
    world w;
    world_start(&w, aggregated);
    const kl_resource *pod = find(&w, "v1/Pod");
    assert_int_equal(miss(&w, "example.com/v1/Widget"), KL_ENOTFOUND);
    kl_err_fini(&w.err);
    /* the fetch that found Pod is fresh enough to say so */
    assert_int_equal(atomic_load(&w.s.apis), 1);
    kl_clock_advance(w.clock, KL_SECONDS(2));
    assert_int_equal(miss(&w, "example.com/v1/Widget"), KL_ENOTFOUND);
    kl_err_fini(&w.err);
    assert_int_equal(atomic_load(&w.s.apis), 2);
    atomic_store(&w.s.routes, with_crd);
    assert_int_equal(miss(&w, "example.com/v1/Widget"), KL_ENOTFOUND);
    kl_err_fini(&w.err);
    kl_client_discovery_forget(w.c);
    assert_null(kl_client_resolve_cached(w.c, "v1/Pod"));
    assert_string_equal(find(&w, "example.com/v1/Widget")->plural, "widgets");
    assert_int_equal(atomic_load(&w.s.apis), 3);
    assert_ptr_equal(find(&w, "v1/Pod"), pod); /* said the same: the same resource */
    world_stop(&w);
}

/* A load balancer's answers in the place of an API server's: nobody may take from them that a kind is
 * gone. */
static void an_answer_that_is_no_discovery_document_is_no_verdict_about_kinds(void **state)
{
    (void)state;
    static const route *const strange[] = {pages, empty_answers, no_paths, other_json};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        world w;
        world_start(&w, aggregated);
        find(&w, "v1/Pod");
        atomic_store(&w.s.routes, strange[i]);
        for (int k = 0; k < 3; k++) {
            kl_clock_advance(w.clock, KL_SECONDS(3));
            kl_client_discovery_forget(w.c);
            assert_int_equal(miss(&w, "v1/Pod"), KL_ESERVER);
            kl_err_fini(&w.err);
            assert_int_equal(miss(&w, "nothing.io/v1/Xyzzy"), KL_ESERVER);
            kl_err_fini(&w.err);
        }
        atomic_store(&w.s.routes, aggregated);
        find(&w, "v1/Pod");
        world_stop(&w);
    }
}

static void a_core_group_that_was_there_is_not_gone_for_a_404(void **state)
{
    (void)state;
    world w;
    world_start(&w, aggregated);
    const kl_resource *pod = find(&w, "v1/Pod");
    atomic_store(&w.s.routes, groups_alone);
    for (int k = 0; k < 3; k++) {
        kl_clock_advance(w.clock, KL_SECONDS(3));
        kl_client_discovery_forget(w.c);
        assert_ptr_equal(find(&w, "v1/Pod"), pod);
    }
    world_stop(&w);
}

static void a_kind_is_gone_when_two_looks_do_not_find_it(void **state)
{
    (void)state;
    world w;
    world_start(&w, with_crd);
    find(&w, "example.com/v1/Widget");
    atomic_store(&w.s.routes, aggregated);
    for (int k = 0; k < 2; k++) { /* in the same moment */
        kl_client_discovery_forget(w.c);
        find(&w, "example.com/v1/Widget");
    }
    kl_clock_advance(w.clock, KL_SECONDS(1));
    kl_client_discovery_forget(w.c);
    assert_int_equal(miss(&w, "example.com/v1/Widget"), KL_ENOTFOUND);
    world_stop(&w);
}

static void a_server_that_is_down_is_no_verdict_about_kinds(void **state)
{
    (void)state;
    world w;
    world_start(&w, down);
    assert_fails(miss(&w, "v1/Pod"), KL_ESERVER, &w.err, "looking up \"v1/Pod\": GET /apis");
    atomic_store(&w.s.routes, aggregated);
    assert_string_equal(find(&w, "v1/Pod")->plural, "pods");
    world_stop(&w);
}

typedef struct many {
    kl_mutex mu;
    kl_cond changed;
    int good;
    int n;
} many;

static void on_resolved(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    many *m = arg;
    (void)err;
    kl_lock(&m->mu);
    m->good += !st && r;
    m->n++;
    kl_cond_broadcast(&m->changed);
    kl_unlock(&m->mu);
}

static void concurrent_calls_share_one_fetch(void **state)
{
    (void)state;
    world w;
    many m = {0};
    kl_mutex_init(&m.mu);
    kl_cond_init(&m.changed);
    world_start(&w, aggregated);
    for (int i = 0; i < 50; i++)
        kl_client_resolve(w.c, i % 2 ? "v1/Pod" : "apps/Deployment", on_resolved, &m);
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&m.mu);
    for (bool in_time = true; m.n < 50 && in_time;)
        in_time = kl_cond_wait_until(&m.changed, &m.mu, deadline);
    kl_unlock(&m.mu);
    assert_int_equal(m.good, 50);
    assert_int_equal(atomic_load(&w.p.requests), 2);
    world_stop(&w);
    kl_cond_fini(&m.changed);
    kl_mutex_fini(&m.mu);
}

static void an_op_by_kind_resolves_first(void **state)
{
    (void)state;
    static const route routes[] = {{"/api", CORE}, {"/apis", AGG("")},
        {"/api/v1/namespaces/ns/pods/a", "{\"kind\":\"Pod\"}"}, {NULL, NULL}};
    world w;
    world_start(&w, routes);
    kl_op op;
    kl_op_init(&op, KL_GET, "v1/Pod");
    op.default_ns = "ns";
    op.name = "a";
    assert_ok(kl_client_wait(w.c, &op, NULL, &w.err), &w.err);
    op.kind = "v1/Podd";
    assert_fails(kl_client_wait(w.c, &op, NULL, &w.err), KL_ENOTFOUND, &w.err, "did you mean \"v1/Pod\"");
    world_stop(&w);
}

#define LONG_16 "KKKKKKKKKKKKKKKK"
#define LONG_256                                                                                             \
    LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16  \
        LONG_16 LONG_16 LONG_16

static void impossible_names_are_skipped(void **state)
{
    (void)state;
    static const route routes[] = {{"/api", CORE},
        {"/apis",
            AGG(GROUP("../..", VERSION("v1", "Current", RESOURCE("as", "A", "Namespaced", ""))) "," GROUP(
                "example.com",
                VERSION("v1/../..", "Current", RESOURCE("bs", "B", "Namespaced", "")) "," VERSION("v1",
                    "Current",
                    RESOURCE("../secrets", "C", "Namespaced", "") "," RESOURCE(
                        "ds", LONG_256, "Namespaced", "") "," RESOURCE("es\\u0000x", "E", "Namespaced",
                        "") "," RESOURCE("fs", "F\\u001b[31m", "Namespaced", "") "," RESOURCE("widgets",
                        "Widget", "Namespaced", STATUS_SUB ",{\"subresource\":\"../x\"}"))))},
        {NULL, NULL}};
    world w;
    world_start(&w, routes);
    const kl_resource *widget = find(&w, "example.com/v1/Widget");
    assert_true(kl_resource_has_subresource(widget, "status"));
    assert_false(kl_resource_has_subresource(widget, "../x"));
    static const char *const words[] = {"as", "bs", "C", "ds", "es", "fs"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(miss(&w, words[i]), KL_ENOTFOUND);
        kl_err_fini(&w.err);
    }
    world_stop(&w);
}

#define MANY 40000

static void an_older_server_with_too_much_gets_a_bounded_number_of_requests(void **state)
{
    (void)state;
    kl_buf groups = KL_BUF_INIT, list = KL_BUF_INIT;
    kl_buf_puts(&groups, "{\"kind\":\"APIGroupList\",\"groups\":[");
    kl_buf_puts(&list, "{\"kind\":\"APIResourceList\",\"resources\":[");
    for (int i = 0; i < MANY; i++) {
        kl_buf_printf(
            &groups, "%s{\"name\":\"g%d.io\",\"versions\":[{\"version\":\"v1\"}]}", i ? "," : "", i);
        kl_buf_printf(&list,
            "%s{\"name\":\"r%d\",\"kind\":\"R%d\",\"verbs\":[\"get\"]},{\"name\":\"r%d/s%d\",\"kind\":\"S\"}",
            i ? "," : "", i, i, i, i);
    }
    kl_buf_puts(&groups, "]}");
    kl_buf_puts(&list, "]}");
    const route routes[] = {{"/api", "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}"},
        {"/api/v1", kl_buf_str(&list)}, {"/apis", kl_buf_str(&groups)}, {NULL, NULL}};
    world w;
    kl_log_set_level(KL_LOG_OFF); /* each group that is not there is told */
    world_start(&w, routes);
    assert_true(kl_resource_has_subresource(find(&w, "v1/R39999"), "s39999"));
    assert_false(kl_resource_has_subresource(find(&w, "v1/R39999"), "s39998"));
    assert_in_range(atomic_load(&w.p.requests), 3, 1002);
    world_stop(&w);
    kl_log_set_level(KL_LOG_WARN);
    kl_buf_fini(&groups);
    kl_buf_fini(&list);
}

KL_TESTS(cmocka_unit_test(two_requests_discover_everything),
    cmocka_unit_test(an_older_server_is_asked_group_by_group),
    cmocka_unit_test(a_stale_group_fails_alone_and_keeps_its_known_kinds),
    cmocka_unit_test(a_server_without_a_core_group_is_fine),
    cmocka_unit_test(an_unknown_kind_is_reported_with_similar_ones),
    cmocka_unit_test(a_miss_is_remembered_for_a_moment_and_forgotten_on_request),
    cmocka_unit_test(an_answer_that_is_no_discovery_document_is_no_verdict_about_kinds),
    cmocka_unit_test(a_core_group_that_was_there_is_not_gone_for_a_404),
    cmocka_unit_test(a_kind_is_gone_when_two_looks_do_not_find_it),
    cmocka_unit_test(a_server_that_is_down_is_no_verdict_about_kinds),
    cmocka_unit_test(concurrent_calls_share_one_fetch), cmocka_unit_test(an_op_by_kind_resolves_first),
    cmocka_unit_test(impossible_names_are_skipped),
    cmocka_unit_test(an_older_server_with_too_much_gets_a_bounded_number_of_requests))
