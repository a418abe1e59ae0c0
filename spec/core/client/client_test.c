/* client_test.c - one call: URL, headers, retries, Status errors; against a scripted peer. */
#include "support/test.h"
#include "core/http/peer.h"

#include "base/log.h"
#include "model/object.h"
#include "client/client.h"

static const char *const pod_verbs[] = {
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};
static const char *const pod_subs[] = {"status", NULL};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .verbs = (char **)pod_verbs,
    .subresources = (char **)pod_subs,
    .namespaced = true};
static const kl_resource nodes = {.group = "",
    .version = "v1",
    .kind = "Node",
    .plural = "nodes",
    .singular = "node",
    .verbs = (char **)pod_verbs};
static const kl_resource deployments = {.group = "apps",
    .version = "v1",
    .kind = "Deployment",
    .plural = "deployments",
    .singular = "deployment",
    .verbs = (char **)pod_verbs,
    .subresources = (char **)pod_subs,
    .namespaced = true};

/* What the last request looked like, and what to answer. */
typedef struct script {
    kl_mutex mu;
    char method[16], path[2048], type[128], accept[512], encoding[64], authorization[512], impersonate[256],
        body[4096], traceparent[80], sizes[80];
    int codes[16]; /* by request, from 0; 0: cut the line */
    const char *headers[16], *bodies[16];
    int forever; /* the last entry answers all that follow */
    _Atomic int counted, counted_code, retried, retried_code, delayed;
    _Atomic kl_time delay;
    kl_tenure *ends; /* with the first request; or NULL */
} script;

static void copy_header(char *to, size_t size, const request *r, const char *name)
{
    const char *v = peer_header(r, name);
    snprintf(to, size, "%s", v ? v : "");
}

static bool follow_script(peer *p, int fd, const request *r)
{
    script *s = p->arg;
    int i = r->nth - 1 < s->forever ? r->nth - 1 : s->forever;
    kl_lock(&s->mu);
    snprintf(s->method, sizeof s->method, "%s", r->method);
    snprintf(s->path, sizeof s->path, "%s", r->path);
    snprintf(s->body, sizeof s->body, "%s", r->body);
    copy_header(s->type, sizeof s->type, r, "content-type");
    copy_header(s->accept, sizeof s->accept, r, "accept");
    copy_header(s->encoding, sizeof s->encoding, r, "accept-encoding");
    copy_header(s->authorization, sizeof s->authorization, r, "authorization");
    copy_header(s->impersonate, sizeof s->impersonate, r, "impersonate-extra-scopes%2fa");
    copy_header(s->traceparent, sizeof s->traceparent, r, "traceparent");
    kl_unlock(&s->mu);
    if (s->ends)
        kl_tenure_end(s->ends);
    if (!s->codes[i]) {
        struct linger abort_it = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it); /* a reset, not an end */
        return false;
    }
    return peer_reply(fd, s->codes[i], s->headers[i] ? s->headers[i] : "",
        s->bodies[i] ? s->bodies[i] : "{\"kind\":\"ThingList\",\"items\":[]}");
}

static void count(void *arg, const char *method, const char *host, int code, kl_time took)
{
    script *s = arg;
    (void)method;
    (void)took;
    if (!strncmp(host, "127.0.0.1:", 10))
        atomic_fetch_add(&s->counted, 1);
    atomic_store(&s->counted_code, code);
}

static void count_retry(void *arg, const char *method, const char *host, int code)
{
    script *s = arg;
    (void)method;
    (void)host;
    atomic_fetch_add(&s->retried, 1);
    atomic_store(&s->retried_code, code);
}

static void count_delay(void *arg, const char *method, const char *host, kl_time waited)
{
    script *s = arg;
    (void)method;
    (void)host;
    atomic_fetch_add(&s->delayed, 1);
    atomic_fetch_add(&s->delay, waited);
}

static double limit_qps; /* of the next world's client; 0: none */
static int limit_burst;

typedef struct world {
    peer p;
    script s;
    kl_client *c;
    kl_err err;
    const kl_value *got;
    kl_clock *clock;
} world;

static void world_start(world *w, void (*adjust)(kl_config *config))
{
    memset(w, 0, sizeof *w);
    kl_mutex_init(&w->s.mu);
    for (int i = 0; i < 16; i++)
        w->s.codes[i] = 200;
    w->s.forever = 15;
    peer_start(&w->p, follow_script, &w->s);
    kl_client_options o = {
        .hooks = {.on_request = count, .on_retry = count_retry, .on_delayed = count_delay, .arg = &w->s},
        .qps = limit_qps,
        .burst = limit_burst};
    kl_config_for_server(w->p.url, &o.config);
    kl_free(o.config.proxy_url);
    o.config.proxy_url = kl_strdup("");
    /* Sun, 06 Nov 1994 08:49:37 GMT */
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(784111777));
    o.clock = w->clock;
    if (adjust)
        adjust(&o.config);
    assert_ok(kl_client_new(&o, &w->c, &w->err), &w->err);
}

static void world_stop(world *w)
{
    kl_client_free(w->c);
    peer_stop(&w->p);
    kl_value_unref(w->got);
    kl_err_fini(&w->err);
    kl_mutex_fini(&w->s.mu);
    kl_clock_fake_free(w->clock);
}

static kl_status call(world *w, const kl_op *op)
{
    kl_value_unref(w->got);
    w->got = NULL;
    kl_err_fini(&w->err);
    return kl_client_wait(w->c, op, &w->got, &w->err);
}

static kl_op op_of(kl_verb v, const kl_resource *r)
{
    kl_op op;
    kl_op_init(&op, v, NULL);
    op.resource = r;
    return op;
}

static const kl_value *json(const char *text)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

/* --- requests ----------------------------------------------------------------------------- */

static void reads_go_where_they_should(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &pods);
    op.ns = "kube-system";
    op.name = "a";
    w.s.bodies[0] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.method, "GET");
    assert_string_equal(w.s.path, "/api/v1/namespaces/kube-system/pods/a");
    assert_string_equal(w.s.accept, "application/vnd.kubernetes.protobuf,application/json");
    assert_string_equal(kl_object_name(w.got), "a");

    op = op_of(KL_LIST, &deployments);
    op.labels = "app in (a,b)";
    op.fields = "metadata.name=x";
    op.limit = 500;
    op.continue_token = "tok/en=";
    op.rv = "12";
    op.rv_match = "Exact";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.path,
        "/apis/apps/v1/"
        "deployments?continue=tok%2Fen%3D&fieldSelector=metadata.name%3Dx&labelSelector=app+in+%28a%2Cb%29&"
        "limit=500&resourceVersion=12&resourceVersionMatch=Exact");
    op = op_of(KL_LIST, &deployments); /* one of many by its name */
    op.name = "n";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.path, "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dn");
    op.fields = "spec.x=y";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.path, "/apis/apps/v1/deployments?fieldSelector=spec.x%3Dy%2Cmetadata.name%3Dn");
    assert_int_equal(atomic_load(&w.s.counted), 4);
    assert_int_equal(atomic_load(&w.s.counted_code), 200);
    assert_int_equal(atomic_load(&w.p.connections), 1);
    world_stop(&w);
}

static void writes_carry_manager_type_and_body(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    const kl_value *pod = json(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}");
    const kl_value *list = json("[{\"op\":\"remove\",\"path\":\"/spec\"}]");

    kl_op op = op_of(KL_CREATE, &pods);
    op.body = pod;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.method, "POST");
    assert_string_equal(w.s.path, "/api/v1/namespaces/ns/pods?fieldManager=kubelua");
    assert_string_equal(w.s.type, "application/json");
    assert_string_equal(w.s.body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}");

    op = op_of(KL_APPLY, &pods);
    op.body = pod;
    op.force = op.dry_run = true;
    op.field_manager = "me";
    op.field_validation = "Strict";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.method, "PATCH");
    assert_string_equal(w.s.path,
        "/api/v1/namespaces/ns/pods/a?dryRun=All&fieldManager=me&fieldValidation=Strict&force=true");
    assert_string_equal(w.s.type, "application/apply-patch+yaml");

    op = op_of(KL_PATCH, &pods);
    op.default_ns = "ns";
    op.name = "a";
    op.body = list;
    op.patch_type = KL_PATCH_JSON;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.type, "application/json-patch+json");
    op.patch_type = KL_PATCH_MERGE;
    op.subresource = "status";
    op.body = pod;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.type, "application/merge-patch+json");
    assert_string_equal(w.s.path, "/api/v1/namespaces/ns/pods/a/status?fieldManager=kubelua");
    op.patch_type = KL_PATCH_STRATEGIC;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.type, "application/strategic-merge-patch+json");

    op = op_of(KL_UPDATE, &pods);
    op.body = pod;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.method, "PUT");
    assert_string_equal(w.s.path, "/api/v1/namespaces/ns/pods/a?fieldManager=kubelua");
    kl_value_unref(pod);
    kl_value_unref(list);
    world_stop(&w);
}

static void deletes_carry_preconditions(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_DELETE, &nodes);
    op.name = "n1";
    op.ns = "ignored-for-cluster-scope";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.method, "DELETE");
    assert_string_equal(w.s.path, "/api/v1/nodes/n1");
    assert_string_equal(w.s.body, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}");
    op.uid = "u";
    op.precondition_rv = "7";
    op.propagation = "Foreground";
    op.grace_seconds = 0;
    op.dry_run = true;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.path, "/api/v1/nodes/n1");
    assert_string_equal(w.s.body,
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,\"preconditions\":{"
        "\"uid\":\"u\",\"resourceVersion\":\"7\"},\"propagationPolicy\":\"Foreground\",\"dryRun\":[\"All\"]"
        "}");
    op = op_of(KL_DELETE_COLLECTION, &pods);
    op.ns = "ns";
    op.labels = "a=b";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.path, "/api/v1/namespaces/ns/pods?labelSelector=a%3Db");
    world_stop(&w);
}

static void mistakes_are_reported_before_a_request(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &pods);
    op.ns = "ns";
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "get pods ns: a name is needed");
    op.name = "a";
    op.ns = NULL;
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "pods are namespaced: name the namespace");
    op.ns = "ns";
    op.name = "a/b";
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "a/b");
    op = op_of(KL_CREATE, &nodes);
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "the body must be an object, got absent");
    op = op_of(KL_PATCH, &nodes);
    op.name = "n";
    op.patch_type = KL_PATCH_JSON;
    op.body = json("{}");
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "an array of JSON patch operations");
    kl_value_unref(op.body);
    op = op_of(KL_APPLY, &nodes);
    op.body = json("{\"metadata\":{\"name\":\"n\",\"managedFields\":[]}}");
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "metadata.managedFields");
    kl_value_unref(op.body);
    op = op_of(KL_WATCH, &nodes);
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "kl_client_stream");
    op = op_of(KL_GET, NULL);
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "name the kind");
    assert_fails(kl_client_raw(w.c, "BREW", "/pot", NULL, NULL, 0, NULL, &w.err), KL_EINVAL, &w.err, "BREW");
    assert_int_equal(atomic_load(&w.p.requests), 0);
    world_stop(&w);
}

static void raw_takes_any_path(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    w.s.bodies[0] = "{\"major\":\"1\"}";
    assert_ok(kl_client_raw(w.c, "GET", "/version?x=1", NULL, NULL, 0, &w.got, &w.err), &w.err);
    assert_string_equal(kl_value_str_at(w.got, "major", NULL), "1");
    assert_string_equal(w.s.path, "/version?x=1");
    assert_ok(kl_client_raw(w.c, "POST", "/x", "application/vnd.test+json", "[1]", 3, NULL, &w.err), &w.err);
    assert_string_equal(w.s.type, "application/vnd.test+json");
    assert_string_equal(w.s.body, "[1]");
    world_stop(&w);
}

/* --- answers ------------------------------------------------------------------------------ */

static void a_status_is_reported_completely(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &pods);
    op.ns = "ns";
    op.name = "a";
    w.s.codes[0] = 404;
    w.s.bodies[0] =
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"pods \\\"a\\\" not "
        "found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"a\",\"kind\":\"pods\"},\"code\":404}";
    assert_int_equal(call(&w, &op), KL_ENOTFOUND);
    assert_string_equal(kl_err_message(&w.err), "get pods ns/a: pods \"a\" not found");
    assert_string_equal(w.err.reason, "NotFound");
    assert_int_equal(w.err.http_code, 404);
    assert_string_equal(w.err.details, "{\"name\":\"a\",\"kind\":\"pods\"}");
    assert_null(w.got);
    world_stop(&w);
}

static void reasons_decide_and_codes_are_the_fallback(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *body;
        kl_status st;
        const char *reason;
    } cases[] = {
        {409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}", KL_EEXISTS, "AlreadyExists"},
        {409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409}", KL_ECONFLICT, "Conflict"},
        {410, "{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}", KL_EGONE, "Expired"},
        {422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"code\":422}", KL_EREJECTED, "Invalid"},
        {500, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":500}", KL_ENOTFOUND, "NotFound"},
        {403, "<html>proxy says no</html>", KL_EFORBIDDEN, "Forbidden"},
        {409, "", KL_ECONFLICT, "Conflict"},
        {404, "404 page not found\n", KL_ENOTFOUND, "NotFound"},
        {404, "<html>no such page</html>", KL_ESERVER, NULL},
        {404, "", KL_ESERVER, NULL},
        {404, "{\"error\":\"no route\"}", KL_ESERVER, NULL},
        {418, "teapot", KL_EREJECTED, NULL},
        {502, "<h1>bad gateway</h1>", KL_ESERVER, "InternalError"},
        {504, "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504}", KL_ESERVER, "Timeout"},
        {429,
            "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"code\":429,\"details\":{"
            "\"retryAfterSeconds\":7}}",
            KL_ETHROTTLED, "TooManyRequests"},
        {301, "", KL_ESERVER, NULL},
        {200,
            "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"message\":\"no\","
            "\"code\":403}",
            KL_EFORBIDDEN, "Forbidden"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_start(&w, NULL);
        kl_op op = op_of(KL_GET, &nodes);
        op.name = "n";
        w.s.codes[0] = cases[i].code;
        w.s.bodies[0] = cases[i].body;
        assert_int_equal(call(&w, &op), cases[i].st);
        if (cases[i].reason)
            assert_string_equal(w.err.reason, cases[i].reason);
        else
            assert_null(w.err.reason);
        assert_int_equal(w.err.retry_after_ns, cases[i].code == 429 ? KL_SECONDS(7) : 0);
        assert_int_equal(atomic_load(&w.p.requests), 1);
        world_stop(&w);
    }
}

static void a_long_body_is_cut(void **state)
{
    (void)state;
    world w;
    static char body[10001];
    memset(body, 'x', sizeof body - 1);
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.codes[0] = 500;
    w.s.bodies[0] = body;
    assert_int_equal(call(&w, &op), KL_ESERVER);
    assert_in_range(strlen(kl_err_message(&w.err)), 2048, 2300);
    world_stop(&w);
}

static void a_403_names_the_rule_that_is_missing(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_PATCH, &deployments);
    const kl_value *body = json("{}");
    op.ns = "shop";
    op.name = "web";
    op.subresource = "status";
    op.body = body;
    w.s.codes[0] = 403;
    w.s.bodies[0] = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"deployments."
                    "apps \\\"web\\\" is forbidden: User \\\"bob\\\" cannot patch resource "
                    "\\\"deployments/status\\\" in API group \\\"apps\\\" in the namespace \\\"shop\\\"\"}";
    w.s.codes[1] = 403;
    w.s.bodies[1] = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"pods \\\"a\\\" "
                    "is forbidden: exceeded quota: q\"}";
    w.s.codes[2] = 403;
    assert_int_equal(call(&w, &op), KL_EFORBIDDEN);
    assert_non_null(strstr(kl_err_message(&w.err),
        "the missing RBAC rule: verb \"patch\" on resource \"deployments/status\" in API group \"apps\" in "
        "namespace \"shop\" (a Role)"));
    assert_int_equal(call(&w, &op), KL_EFORBIDDEN); /* a quota is not a rule */
    assert_null(strstr(kl_err_message(&w.err), "RBAC"));
    op = op_of(KL_LIST, &nodes);
    w.s.bodies[2] = "";
    assert_int_equal(call(&w, &op), KL_EFORBIDDEN);
    assert_non_null(strstr(kl_err_message(&w.err),
        "verb \"list\" on resource \"nodes\" in API group \"\" cluster-wide (a ClusterRole)"));
    kl_value_unref(body);
    world_stop(&w);
}

static void garbage_names_url_and_place(void **state)
{
    (void)state;
    world w;
    char want[256];
    world_start(&w, NULL);
    kl_op op = op_of(KL_LIST, &nodes);
    w.s.bodies[0] = "{\"items\":[1,}";
    w.s.bodies[1] = "{\"items\":[";
    assert_int_equal(call(&w, &op), KL_ESERVER);
    snprintf(want, sizeof want, "list nodes: the answer to GET %s/api/v1/nodes is not the JSON it should be",
        w.p.url);
    assert_non_null(strstr(kl_err_message(&w.err), want));
    assert_non_null(strstr(kl_err_message(&w.err), "byte 12 (line 1, column 13)"));
    assert_non_null(strstr(kl_err_message(&w.err), "it begins \"{\"items\":[1,}\""));
    assert_int_equal(call(&w, &op), KL_ESERVER);
    world_stop(&w);
}

/* --- retries ------------------------------------------------------------------------------ */

static void answers_with_retry_after_are_tried_again(void **state)
{
    (void)state;
    static const int codes[] = {429, 503, 500};
    static const kl_verb verbs[] = {KL_GET, KL_CREATE};
    for (int i = 0; i < 6; i++) {
        world w;
        world_start(&w, NULL);
        const kl_value *body = json("{\"metadata\":{\"name\":\"n\"}}");
        kl_op op = op_of(verbs[i % 2], &nodes);
        op.name = "n";
        op.body = body;
        w.s.codes[0] = w.s.codes[1] = codes[i / 2];
        w.s.headers[0] = w.s.headers[1] = "Retry-After: 0\r\n";
        w.s.forever = 2;
        assert_ok(call(&w, &op), &w.err);
        assert_int_equal(atomic_load(&w.p.requests), 3);
        assert_int_equal(atomic_load(&w.s.counted), 3);
        assert_string_equal(w.s.body, i % 2 ? "{\"metadata\":{\"name\":\"n\"}}" : "");
        kl_value_unref(body);
        world_stop(&w);
    }
}

static void without_retry_after_they_are_not(void **state)
{
    (void)state;
    static const int codes[] = {429, 500, 503, 504, 400, 409};
    for (int i = 0; i < 6; i++) {
        world w;
        world_start(&w, NULL);
        kl_op op = op_of(KL_GET, &nodes);
        op.name = "n";
        w.s.codes[0] = codes[i];
        w.s.headers[0] = codes[i] < 429 ? "Retry-After: 0\r\n" : "Retry-After: soon\r\n";
        assert_int_not_equal(call(&w, &op), KL_OK);
        assert_int_equal(w.err.http_code, codes[i]);
        assert_int_equal(atomic_load(&w.p.requests), 1);
        world_stop(&w);
    }
}

static void ten_retries_are_the_most(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.codes[0] = 429;
    w.s.headers[0] = "Retry-After: 0\r\n";
    w.s.forever = 0;
    assert_int_equal(call(&w, &op), KL_ETHROTTLED);
    assert_int_equal(atomic_load(&w.p.requests), 11);
    world_stop(&w);
}

static void retry_after_may_be_a_date(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.codes[0] = 503;
    w.s.headers[0] = "Retry-After: Sun, 06 Nov 1994 08:49:30 GMT\r\n"; /* past: at once */
    w.s.codes[1] = 503;
    /* ten minutes: beyond the call's time */
    w.s.headers[1] = "Retry-After: Sun, 06 Nov 1994 08:59:37 GMT\r\n";
    w.s.forever = 1;
    assert_int_equal(call(&w, &op), KL_ESERVER);
    assert_int_equal(atomic_load(&w.p.requests), 2);
    assert_int_equal(w.err.retry_after_ns, KL_SECONDS(600));
    world_stop(&w);
}

static void a_get_survives_a_reset_and_a_write_does_not_repeat(void **state)
{
    (void)state;
    static const struct {
        kl_verb verb;
        kl_status st;
        int requests;
    } cases[] = {
        {KL_GET, KL_OK, 2},
        {KL_LIST, KL_OK, 2},
        {KL_CREATE, KL_ECLOSED, 1},
        {KL_UPDATE, KL_ECLOSED, 1},
        {KL_APPLY, KL_ECLOSED, 1},
        {KL_DELETE, KL_ECLOSED, 1},
    };
    const kl_value *body = json("{\"metadata\":{\"name\":\"n\"}}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_start(&w, NULL);
        kl_op op = op_of(cases[i].verb, &nodes);
        op.name = "n";
        op.body = body;
        w.s.codes[0] = 0;
        w.s.forever = 1;
        assert_int_equal(call(&w, &op), cases[i].st);
        assert_int_equal(atomic_load(&w.p.requests), cases[i].requests);
        if (cases[i].st)
            assert_int_equal(w.err.http_code, 0);
        world_stop(&w);
    }
    kl_value_unref(body);
}

static void a_write_is_not_sent_again_when_its_lease_is_gone(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_tenure tenure = {0};
    kl_tenure_begin(&tenure, 3, kl_clock_boot(w.clock) + KL_SECONDS(10));
    w.s.ends = &tenure;
    w.s.codes[0] = 429;
    w.s.headers[0] = "Retry-After: 0\r\n";
    kl_op op;
    kl_op_init(&op, KL_DELETE, NULL);
    op.resource = &pods;
    op.ns = "a";
    op.name = "b";
    op.mandate = kl_tenure_mandate(&tenure);
    assert_fails(
        call(&w, &op), KL_ENOTLEADER, &w.err, "it was not sent: this process does not hold the lease");
    assert_int_equal(atomic_load(&w.p.requests), 1);
    world_stop(&w);
}

static void the_call_ends_at_its_timeout(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    op.timeout = KL_MILLISECONDS(900);
    w.s.codes[0] = 503;
    w.s.headers[0] = "Retry-After: 1\r\n";
    /* no time for another: the answer that there is */
    assert_int_equal(call(&w, &op), KL_ESERVER);
    assert_int_equal(w.err.retry_after_ns, KL_SECONDS(1));
    assert_int_equal(atomic_load(&w.p.requests), 1);
    world_stop(&w);
}

static void an_unreachable_timeout_is_no_timeout(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    op.timeout = INT64_MAX;
    w.s.codes[0] = 200;
    assert_ok(call(&w, &op), &w.err);
    world_stop(&w);
}

/* --- credentials -------------------------------------------------------------------------- */

static char token_path[64];

static void write_token(const char *text)
{
    FILE *f = fopen(token_path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void with_token_file(kl_config *c)
{
    strcpy(token_path, "/tmp/kubelua-token-XXXXXX");
    close(mkstemp(token_path));
    write_token("first\n");
    c->token_file = kl_strdup(token_path);
    c->token = kl_strdup("inline");
}

static void a_token_file_is_read_again_in_time_and_on_401(void **state)
{
    (void)state;
    world w;
    world_start(&w, with_token_file);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.codes[3] = 401;
    w.s.codes[5] = 401;
    w.s.forever = 6;
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.authorization, "Bearer first");
    write_token("second");
    kl_clock_advance(w.clock, KL_SECONDS(49));
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.authorization, "Bearer first");
    kl_clock_advance(w.clock, KL_SECONDS(2));
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.authorization, "Bearer second");
    write_token("third");
    /* 401, then once more with the new token */
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.authorization, "Bearer third");
    assert_int_equal(atomic_load(&w.p.requests), 5);
    assert_int_equal(call(&w, &op), KL_EAUTH); /* the same token again would be no use */
    assert_int_equal(atomic_load(&w.p.requests), 6);
    assert_non_null(strstr(kl_err_message(&w.err), token_path));
    assert_null(strstr(kl_err_message(&w.err), "third"));
    remove(token_path);
    kl_clock_advance(w.clock, KL_SECONDS(100));
    assert_ok(call(&w, &op), &w.err); /* the last good one stays */
    assert_string_equal(w.s.authorization, "Bearer third");
    world_stop(&w);
}

static void with_lost_token(kl_config *c) { c->token_file = kl_strdup("/nonexistent/token"); }

static void a_lost_token_file_is_an_error_that_names_it(void **state)
{
    (void)state;
    world w;
    world_start(&w, with_lost_token);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    assert_fails(
        call(&w, &op), KL_EAUTH, &w.err, "get nodes n: token file /nonexistent/token cannot be read");
    world_stop(&w);
}

static void with_basic(kl_config *c)
{
    c->username = kl_strdup("bob");
    c->password = kl_strdup("p:w");
    c->impersonate = kl_strdup("alice");
    c->impersonate_extra = kl_new_array(char *, 3);
    c->impersonate_extra[0] = kl_strdup("Scopes/a");
    c->impersonate_extra[1] = kl_strdup("dev");
}

static void basic_and_impersonation(void **state)
{
    (void)state;
    world w;
    world_start(&w, with_basic);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.authorization, "Basic Ym9iOnA6dw==");
    assert_string_equal(w.s.impersonate, "dev");
    world_stop(&w);
}

static void with_many_groups(kl_config *c)
{
    with_basic(c);
    c->impersonate_groups = kl_new_array(char *, 101);
    for (int i = 0; i < 100; i++)
        c->impersonate_groups[i] = kl_sprintf("group-%d", i);
}

/* The extra comes after the groups. */
static void any_number_of_groups_is_impersonated(void **state)
{
    (void)state;
    world w;
    world_start(&w, with_many_groups);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.impersonate, "dev");
    world_stop(&w);
}

static void impossible_requests_are_rejected_with_advice(void **state)
{
    (void)state;
    static const struct {
        const char *exec, *provider, *settings, *says;
    } cases[] = {
        {"{\"command\":\"aws\",\"apiVersion\":\"client.authentication.k8s.io/v1alpha1\"}", NULL, NULL,
            "the credential plugin \"aws\" is configured with the apiVersion"},
        {NULL, "gcp", NULL, "gke-gcloud-auth-plugin"},
        {NULL, "azure", NULL, "kubelogin"},
        {NULL, "ldap", NULL, "there is no auth-provider \"ldap\""},
        {NULL, "oidc", "{\"client-id\":\"c\"}", "needs idp-issuer-url"},
        {NULL, "oidc", "{\"idp-issuer-url\":\"https://i\"}", "needs client-id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_client *c;
        kl_err err = KL_ERR_INIT;
        kl_client_options o = {0};
        kl_config_for_server("https://h:1", &o.config);
        o.config.exec = cases[i].exec ? json(cases[i].exec) : NULL;
        o.config.exec_command = cases[i].exec ? kl_strdup("aws") : NULL;
        o.config.auth_provider = kl_strdup(cases[i].provider);
        o.config.auth_provider_config = cases[i].settings ? json(cases[i].settings) : NULL;
        assert_fails(kl_client_new(&o, &c, &err), KL_EAUTH, &err, cases[i].says);
    }
}

/* --- warnings, cancelling, ending --------------------------------------------------------- */

typedef struct sink {
    kl_mutex mu;
    int n;
    char last[1024];
} sink;

static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    sink *s = arg;
    if (level == KL_LOG_WARN && strstr(message, "warns")) {
        s->n++;
        snprintf(s->last, sizeof s->last, "%s", fields);
    }
}

static void warnings_are_logged_once(void **state)
{
    (void)state;
    world w;
    sink s = {0};
    kl_log_set_sink(on_log, &s);
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.forever = 0;
    w.s.headers[0] =
        "Warning: 299 - \"old \\\"API\\\"\"\r\nWarning: 299 - \"second\"\r\nWarning: 110 - \"stale\"\r\n";
    assert_ok(call(&w, &op), &w.err);
    assert_ok(call(&w, &op), &w.err);
    world_stop(&w);
    kl_log_set_sink(NULL, NULL);
    assert_int_equal(s.n, 2);
    assert_non_null(strstr(s.last, "warning=second call=\"get nodes n\""));
}

typedef struct answer_box {
    kl_mutex mu;
    kl_cond changed;
    int n;
    kl_status st;
} answer_box;

static void on_answer(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    answer_box *a = arg;
    (void)code;
    (void)body;
    (void)err;
    kl_lock(&a->mu);
    a->n++;
    a->st = st;
    kl_cond_broadcast(&a->changed);
    kl_unlock(&a->mu);
}

static void box_wait(answer_box *a)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    bool in_time = true;
    kl_lock(&a->mu);
    while (!a->n && in_time)
        in_time = kl_cond_wait_until(&a->changed, &a->mu, deadline);
    kl_unlock(&a->mu);
}

static void a_cancelled_call_is_done_once_also_while_it_waits_to_retry(void **state)
{
    (void)state;
    world w;
    answer_box a = {0};
    kl_mutex_init(&a.mu);
    kl_cond_init(&a.changed);
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.codes[0] = 503;
    w.s.headers[0] = "Retry-After: 30\r\n";
    w.s.forever = 0;
    uint64_t id = kl_client_do(w.c, &op, on_answer, &a);
    assert_true(peer_wait_requests(&w.p, 1));
    kl_client_cancel(w.c, id);
    kl_client_cancel(w.c, id);
    kl_client_cancel(w.c, 77);
    box_wait(&a);
    assert_int_equal(a.st, KL_ECANCELLED);
    kl_client_cancel(w.c, id);
    world_stop(&w);
    assert_int_equal(a.n, 1);
    kl_mutex_fini(&a.mu);
    kl_cond_fini(&a.changed);
}

static void freeing_the_client_ends_every_call(void **state)
{
    (void)state;
    world w;
    answer_box a[3] = {0};
    world_start(&w, NULL);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "n";
    w.s.codes[0] = 503;
    w.s.headers[0] = "Retry-After: 30\r\n";
    w.s.forever = 0;
    for (int i = 0; i < 3; i++) {
        kl_mutex_init(&a[i].mu);
        kl_cond_init(&a[i].changed);
        kl_client_do(w.c, &op, on_answer, &a[i]);
    }
    assert_true(peer_wait_requests(&w.p, 1));
    world_stop(&w);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i].n, 1);
        /* the latter: its answer was in when the end came */
        assert_true(a[i].st == KL_ECANCELLED || a[i].st == KL_ESERVER);
        kl_mutex_fini(&a[i].mu);
        kl_cond_fini(&a[i].changed);
    }
}

static void an_unreachable_server_is_reported_as_such(void **state)
{
    (void)state;
    char url[64];
    kl_client *c;
    kl_err err = KL_ERR_INIT;
    kl_client_options o = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%u", peer_dead_port());
    kl_config_for_server(url, &o.config);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &c, &err), &err);
    kl_op op = op_of(KL_LIST, &nodes);
    assert_fails(kl_client_wait(c, &op, NULL, &err), KL_ECONNECT, &err,
        "list nodes: connection refused by 127.0.0.1:");
    kl_client_free(c);
}

/* --- who waits, and what is counted ------------------------------------------------------- */

static void attempts_but_the_first_are_counted_as_retries(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    w.s.codes[0] = 429;
    w.s.codes[1] = 503;
    w.s.headers[0] = w.s.headers[1] = "Retry-After: 0\r\n";
    kl_op op = op_of(KL_CREATE, &nodes);
    op.body = json("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}");
    assert_ok(call(&w, &op), &w.err);
    assert_int_equal(atomic_load(&w.s.counted), 3);
    assert_int_equal(atomic_load(&w.s.retried), 2);
    assert_int_equal(atomic_load(&w.s.retried_code), 200);
    assert_non_null(strstr(w.s.body, "\"name\":\"a\"")); /* the body was kept */
    kl_value_unref(op.body);
    world_stop(&w);
}

static void a_limit_of_our_own_delays_calls_but_not_urgent_ones(void **state)
{
    (void)state;
    world w;
    limit_qps = 1; /* less than a busy machine answers, or nothing would wait */
    limit_burst = 2;
    world_start(&w, NULL);
    limit_qps = 0;
    limit_burst = 0;
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "a";
    for (int i = 0; i < 4; i++)
        assert_ok(call(&w, &op), &w.err);
    assert_int_equal(atomic_load(&w.s.delayed), 4);
    kl_time delay = atomic_load(&w.s.delay);
    assert_true(delay > 0);
    /* What the limiter takes is not the call's time. */
    op.timeout = KL_MILLISECONDS(10000);
    assert_ok(call(&w, &op), &w.err);
    op.urgent = true;
    assert_ok(call(&w, &op), &w.err);
    assert_int_equal(atomic_load(&w.s.delayed), 5);
    world_stop(&w);
}

/* Refuses every request that comes while more than `most` are unanswered. */
typedef struct busy {
    kl_mutex mu;
    kl_cond changed;
    int now, most, seen, refused;
    bool hold;
} busy;

static bool refuse_a_crowd(peer *p, int fd, const request *r)
{
    busy *b = p->arg;
    (void)r;
    kl_lock(&b->mu);
    bool refused = ++b->now > b->most;
    b->refused += refused;
    b->seen = b->now > b->seen ? b->now : b->seen;
    kl_unlock(&b->mu);
    bool keep = refused ? peer_reply(fd, 429, "Retry-After: 1\r\n", "{}")
                        : peer_reply(fd, 200, "", "{\"kind\":\"Node\"}");
    kl_lock(&b->mu);
    b->now--;
    kl_unlock(&b->mu);
    return keep;
}

typedef struct crowd {
    kl_mutex mu;
    kl_cond changed;
    int done, failed;
} crowd;

static void one_done(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    crowd *c = arg;
    (void)code;
    (void)body;
    (void)err;
    kl_lock(&c->mu);
    c->done++;
    c->failed += st != KL_OK;
    kl_cond_broadcast(&c->changed);
    kl_unlock(&c->mu);
}

static void a_busy_server_gets_as_many_calls_as_it_accepts(void **state)
{
    (void)state;
    enum { CALLS = 40 };
    busy b = {.most = 0};
    crowd all = {0};
    script s = {0};
    peer p;
    kl_client *c;
    kl_err err = KL_ERR_INIT;
    kl_mutex_init(&b.mu);
    kl_mutex_init(&all.mu);
    kl_cond_init(&all.changed);
    peer_start(&p, refuse_a_crowd, &b);
    kl_client_options o = {.hooks = {.on_delayed = count_delay, .arg = &s}};
    kl_config_for_server(p.url, &o.config);
    kl_free(o.config.proxy_url);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &c, &err), &err);
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "a";
    /* refused, and too late for another try: the pace is one at a time, after a second */
    op.timeout = KL_MILLISECONDS(500);
    assert_int_equal(kl_client_wait(c, &op, NULL, &err), KL_ETHROTTLED);
    kl_err_fini(&err);
    op.timeout = PEER_WAIT;
    kl_lock(&b.mu);
    b.most = 1;
    kl_unlock(&b.mu);
    for (int i = 0; i < CALLS; i++)
        kl_client_do(c, &op, one_done, &all);
    op.urgent = true; /* a lease does not wait */
    assert_ok(kl_client_wait(c, &op, NULL, &err), &err);
    kl_time until = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&all.mu);
    while (all.done < CALLS && kl_cond_wait_until(&all.changed, &all.mu, until))
        continue;
    assert_int_equal(all.done, CALLS);
    assert_int_equal(all.failed, 0);
    kl_unlock(&all.mu);
    assert_true(atomic_load(&s.delayed) > 0);
    kl_client_free(c);
    peer_stop(&p);
    kl_cond_fini(&all.changed);
    kl_mutex_fini(&all.mu);
    kl_mutex_fini(&b.mu);
}

static void held_calls_end_at_their_timeout_or_when_cancelled(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    w.s.codes[0] = 429;
    w.s.headers[0] = "Retry-After: 20\r\n";
    w.s.bodies[0] = "{}";
    kl_op op = op_of(KL_GET, &nodes);
    op.name = "a";
    op.timeout = KL_SECONDS(2);
    /* its 20 s are more than it has */
    assert_fails(call(&w, &op), KL_ETHROTTLED, &w.err, "get nodes a: ");
    assert_fails(call(&w, &op), KL_ETIMEOUT, &w.err, "the server is busy (429)");
    assert_int_equal(atomic_load(&w.p.requests), 1);
    crowd all = {0};
    kl_mutex_init(&all.mu);
    kl_cond_init(&all.changed);
    op.timeout = PEER_WAIT;
    uint64_t id = kl_client_do(w.c, &op, one_done, &all);
    kl_client_do(w.c, &op, one_done, &all);
    kl_client_cancel(w.c, id);
    kl_lock(&all.mu);
    while (!all.done)
        kl_cond_wait(&all.changed, &all.mu);
    kl_unlock(&all.mu);
    kl_client_free(w.c); /* ends the other */
    w.c = NULL;
    assert_int_equal(all.done, 2);
    assert_int_equal(all.failed, 2);
    kl_cond_fini(&all.changed);
    kl_mutex_fini(&all.mu);
    world_stop(&w);
}

/* The 429 of a disruption budget says nothing about the server. */
static void a_delayed_eviction_delays_no_other_call(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    w.s.codes[0] = 429;
    kl_op op = op_of(KL_CREATE, &pods), get = op_of(KL_GET, &nodes);
    op.ns = "ns";
    op.name = "a";
    op.subresource = "eviction";
    op.body = json("{\"kind\":\"Eviction\",\"metadata\":{\"name\":\"a\"}}");
    kl_resource with_eviction = pods;
    static const char *const subs[] = {"eviction", NULL};
    with_eviction.subresources = (char **)subs;
    op.resource = &with_eviction;
    assert_fails(call(&w, &op), KL_ETHROTTLED, &w.err, "create pods/eviction ns/a");
    get.name = "a";
    get.timeout = KL_MILLISECONDS(900); /* less than a pace would make it rest */
    assert_ok(call(&w, &get), &w.err);
    assert_int_equal(atomic_load(&w.s.delayed), 0);
    kl_value_unref(op.body);
    world_stop(&w);
}

/* --- before anything is sent -------------------------------------------------------------- */

static void the_message_of_the_body_is_the_message_of_the_call(void **state)
{
    (void)state;
    static const struct {
        kl_verb verb;
        const char *sub, *ns, *name, *body, *says;
    } wrong[] = {
        {KL_UPDATE, NULL, "ns", "a", "{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}",
            "update pods ns/a: the body is a v1/Secret, but the call is for v1/Pod"},
        {KL_APPLY, NULL, "ns", "a", "{\"kind\":\"Pod\",\"apiVersion\":\"v2\"}", "the body is a v2/Pod"},
        {KL_UPDATE, "status", "ns", "a", "{\"kind\":\"Node\",\"apiVersion\":\"v1\"}",
            "the body is a v1/Node"},
        {KL_UPDATE, NULL, "ns", "a", "{\"metadata\":{\"name\":\"b\"}}",
            "update pods ns/a: the body's metadata.name is \"b\""},
        {KL_CREATE, NULL, "ns", NULL, "{\"metadata\":{\"name\":\"b\",\"namespace\":\"other\"}}",
            "create pods ns/b: the body's metadata.namespace is \"other\""},
        {KL_CREATE, NULL, "", NULL, "{\"metadata\":{\"name\":\"b\"}}",
            "pods are namespaced: name the namespace"},
        {KL_UPDATE, NULL, "ns", "", "{}", "a name is needed"},
        {KL_GET, NULL, "ns", "..", NULL, "get pods ns/..: name \"..\" may not be '..'"},
        {KL_GET, NULL, "ns", "a/b", NULL, "may not contain '/'"},
        {KL_DELETE, NULL, "n%s", "a", NULL, "may not contain '%'"},
        {KL_GET, "logs", "ns", "a", NULL, "pods have no subresource \"logs\"; they have: status"},
        {KL_DELETE_COLLECTION, NULL, NULL, NULL, NULL, "pods are namespaced: name the namespace"},
    };
    world w;
    world_start(&w, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kl_op op = op_of(wrong[i].verb, &pods);
        op.subresource = wrong[i].sub;
        op.ns = wrong[i].ns;
        op.name = wrong[i].name;
        op.body = wrong[i].body ? json(wrong[i].body) : NULL;
        assert_fails(call(&w, &op), KL_EINVAL, &w.err, wrong[i].says);
        kl_value_unref(op.body);
    }
    kl_op op = op_of(KL_LIST, &pods);
    op.rv_match = "Exact";
    assert_fails(call(&w, &op), KL_EINVAL, &w.err, "resourceVersionMatch needs a resourceVersion");
    assert_int_equal(atomic_load(&w.p.requests), 0);
    world_stop(&w);
}

static void lists_may_come_compressed_and_single_objects_do_not(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_LIST, &pods);
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.encoding, "gzip");
    op = op_of(KL_GET, &nodes);
    op.name = "a";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.encoding, "");
    world_stop(&w);
}

static void answers_come_in_the_form_that_was_asked_for(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_op op = op_of(KL_LIST, &pods);
    op.form = KL_AS_METADATA;
    w.s.bodies[0] = "{\"kind\":\"PartialObjectMetadataList\",\"items\":[]}";
    assert_ok(call(&w, &op), &w.err);
    assert_non_null(strstr(w.s.accept, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"));
    op.form = KL_AS_TABLE;
    op.include = "None";
    w.s.bodies[1] = "{\"kind\":\"Table\",\"rows\":[]}";
    assert_ok(call(&w, &op), &w.err);
    assert_string_equal(w.s.accept, "application/json;as=Table;v=v1;g=meta.k8s.io");
    assert_non_null(strstr(w.s.path, "includeObject=None"));
    assert_fails(call(&w, &op), KL_ESERVER, &w.err, "is not a list: a ThingList without rows");
    op = op_of(KL_LIST, &pods);
    w.s.bodies[3] = "{\"kind\":\"PodList\",\"items\":[{},null]}";
    assert_fails(call(&w, &op), KL_ESERVER, &w.err, "is not a list of objects: number 2 of 2 is not one");
    w.s.bodies[4] = "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"namespace\":[]}}]}";
    assert_fails(call(&w, &op), KL_ESERVER, &w.err, "is not a list of objects: number 1 of 1 is not one");
    op = op_of(KL_GET, &pods);
    op.form = KL_AS_METADATA;
    op.ns = "ns";
    op.name = "a";
    assert_ok(call(&w, &op), &w.err);
    assert_non_null(strstr(w.s.accept, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
    world_stop(&w);
}

static void count_sizes(void *arg, const char *method, const char *host, size_t sent, size_t received)
{
    script *s = arg;
    assert_int_equal(strncmp(host, "127.0.0.1:", 10), 0);
    snprintf(s->sizes, sizeof s->sizes, "%s %zu %zu", method, sent, received);
}

static void traces_are_sent_and_sizes_reported(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL);
    kl_client_set_hooks(w.c, &(kl_client_hooks){.arg = &w.s, .on_sizes = count_sizes});
    kl_op op = op_of(KL_CREATE, &pods);
    op.ns = "ns";
    op.body = json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}");
    op.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_ok(call(&w, &op), &w.err);
    char expected[64];
    kl_client_set_hooks(w.c, NULL);
    snprintf(expected, sizeof expected, "POST %zu %zu", strlen(w.s.body),
        strlen("{\"kind\":\"ThingList\",\"items\":[]}"));
    assert_string_equal(w.s.sizes, expected);
    assert_string_equal(w.s.traceparent, op.traceparent);
    kl_value_unref(op.body);
    kl_op next = op_of(KL_LIST, &pods);
    assert_ok(call(&w, &next), &w.err);
    assert_string_equal(w.s.traceparent, "");
    world_stop(&w);
}

KL_TESTS(cmocka_unit_test(traces_are_sent_and_sizes_reported), cmocka_unit_test(reads_go_where_they_should),
    cmocka_unit_test(writes_carry_manager_type_and_body), cmocka_unit_test(deletes_carry_preconditions),
    cmocka_unit_test(mistakes_are_reported_before_a_request), cmocka_unit_test(raw_takes_any_path),
    cmocka_unit_test(a_status_is_reported_completely),
    cmocka_unit_test(reasons_decide_and_codes_are_the_fallback), cmocka_unit_test(a_long_body_is_cut),
    cmocka_unit_test(a_403_names_the_rule_that_is_missing), cmocka_unit_test(garbage_names_url_and_place),
    cmocka_unit_test(answers_with_retry_after_are_tried_again),
    cmocka_unit_test(without_retry_after_they_are_not), cmocka_unit_test(ten_retries_are_the_most),
    cmocka_unit_test(retry_after_may_be_a_date),
    cmocka_unit_test(a_get_survives_a_reset_and_a_write_does_not_repeat),
    cmocka_unit_test(a_write_is_not_sent_again_when_its_lease_is_gone),
    cmocka_unit_test(the_call_ends_at_its_timeout), cmocka_unit_test(an_unreachable_timeout_is_no_timeout),
    cmocka_unit_test(a_token_file_is_read_again_in_time_and_on_401),
    cmocka_unit_test(a_lost_token_file_is_an_error_that_names_it), cmocka_unit_test(basic_and_impersonation),
    cmocka_unit_test(any_number_of_groups_is_impersonated),
    cmocka_unit_test(impossible_requests_are_rejected_with_advice),
    cmocka_unit_test(warnings_are_logged_once),
    cmocka_unit_test(a_cancelled_call_is_done_once_also_while_it_waits_to_retry),
    cmocka_unit_test(freeing_the_client_ends_every_call),
    cmocka_unit_test(an_unreachable_server_is_reported_as_such),
    cmocka_unit_test(attempts_but_the_first_are_counted_as_retries),
    cmocka_unit_test(a_limit_of_our_own_delays_calls_but_not_urgent_ones),
    cmocka_unit_test(a_busy_server_gets_as_many_calls_as_it_accepts),
    cmocka_unit_test(held_calls_end_at_their_timeout_or_when_cancelled),
    cmocka_unit_test(a_delayed_eviction_delays_no_other_call),
    cmocka_unit_test(the_message_of_the_body_is_the_message_of_the_call),
    cmocka_unit_test(answers_come_in_the_form_that_was_asked_for),
    cmocka_unit_test(lists_may_come_compressed_and_single_objects_do_not))
