/* openapi_test.c - writes are checked with the server's schemas: fetched once, cached by hash, and fetched
 * again before an error is reported. */
#include "support/test.h"
#include "core/http/peer.h"

#include "client/client.h"

#define DOC(items) "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[" items "]}"
#define WIDGETS                                                                                              \
    DOC("{\"metadata\":{\"name\":\"example.com\"},\"versions\":[{\"version\":\"v1\",\"freshness\":"          \
        "\"Current\",\"resources\":["                                                                        \
        "{\"resource\":\"widgets\",\"responseKind\":{\"kind\":\"Widget\"},\"scope\":\"Cluster\","            \
        "\"subresources\":[{\"subresource\":\"scale\"}]}]}]}")
#define SCHEMA(fields)                                                                                       \
    "{\"openapi\":\"3.0.0\",\"paths\":{},\"components\":{\"schemas\":{\"W\":{\"type\":\"object\","           \
    "\"properties\":{\"apiVersion\":{\"type\":\"string\"},"                                                  \
    "\"kind\":{\"type\":\"string\"},\"metadata\":{\"type\":\"object\"}," fields                              \
    "},\"x-kubernetes-group-version-kind\":[{\"group\":\"example.com\",\"version\":\"v1\",\"kind\":"         \
    "\"Widget\"}]}}}}"

/* `generation` 1 knows a list, 2 a field "added" too. `code`: what /openapi/v3 answers, 0 nothing;
 * `document_code`: what the document. */
typedef struct site {
    _Atomic int generation, code, document_code, indexes, unchanged, documents, posts;
    kl_mutex mu;
    char *posted;
} site;

static bool answer_index(site *s, int fd, const request *r)
{
    int generation = atomic_load(&s->generation);
    char etag[16], headers[32], body[256];
    const char *known = peer_header(r, "if-none-match");
    if (!atomic_load(&s->code))
        return true; /* silence */
    if (atomic_load(&s->code) != 200)
        return peer_reply(fd, atomic_load(&s->code), "", "{}");
    snprintf(etag, sizeof etag, "\"%d\"", generation);
    snprintf(headers, sizeof headers, "ETag: %s\r\n", etag);
    if (known && !strcmp(known, etag)) {
        atomic_fetch_add(&s->unchanged, 1);
        return peer_send(fd, "HTTP/1.1 304 Not Modified\r\n%s\r\n", headers);
    }
    atomic_fetch_add(&s->indexes, 1);
    snprintf(body, sizeof body,
        "{\"paths\":{\"version\":{},\"apis/example.com/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/"
        "example.com/v1?hash=%d\"}}}",
        generation);
    return peer_reply(fd, 200, headers, body);
}

static bool serve(peer *p, int fd, const request *r)
{
    site *s = p->arg;
    if (!strcmp(r->path, "/api"))
        return peer_reply(fd, 404, "", "{}");
    if (!strcmp(r->path, "/apis"))
        return peer_reply(fd, 200, "", WIDGETS);
    if (!strcmp(r->path, "/openapi/v3"))
        return answer_index(s, fd, r);
    if (!strncmp(r->path, "/openapi/v3/apis/example.com/v1?hash=", 37)) {
        atomic_fetch_add(&s->documents, 1);
        if (atomic_load(&s->document_code) != 200)
            return peer_reply(fd, atomic_load(&s->document_code), "", "{}");
        return peer_reply(fd, 200, "",
            r->path[37] == '1' ? SCHEMA("\"list\":{\"type\":\"array\"},\"n\":{\"type\":\"integer\"}")
                               : SCHEMA("\"list\":{\"type\":\"array\"},\"n\":{\"type\":\"integer\"},"
                                        "\"added\":{\"type\":\"string\"}"));
    }
    kl_lock(&s->mu);
    kl_free(s->posted);
    s->posted = kl_strndup(r->body, r->body_len);
    kl_unlock(&s->mu);
    atomic_fetch_add(&s->posts, 1);
    return peer_reply(fd, 201, "", "{\"kind\":\"Widget\"}");
}

typedef struct world {
    peer p;
    site s;
    kl_client *c;
    kl_clock *clock;
    kl_err err;
    char dir[64];
} world;

static void connect_client(world *w)
{
    kl_client_options o = {.clock = w->clock, .cache_dir = w->dir};
    kl_config_for_server(w->p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &w->c, &w->err), &w->err);
}

static void world_start(world *w)
{
    memset(w, 0, sizeof *w);
    kl_mutex_init(&w->s.mu);
    atomic_store(&w->s.generation, 1);
    atomic_store(&w->s.code, 200);
    atomic_store(&w->s.document_code, 200);
    snprintf(w->dir, sizeof w->dir, "/tmp/kl-openapi-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    peer_start(&w->p, serve, &w->s);
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    connect_client(w);
}

static void world_stop(world *w)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    kl_client_free(w->c);
    peer_stop(&w->p);
    kl_clock_fake_free(w->clock);
    kl_err_fini(&w->err);
    kl_free(w->s.posted);
    kl_mutex_fini(&w->s.mu);
    assert_int_equal(system(command), 0);
}

static kl_status create(world *w, const char *body, const char *validation)
{
    kl_op op;
    kl_op_init(&op, KL_CREATE, "Widget");
    assert_int_equal(kl_value_decode(body, strlen(body), &op.body, NULL), KL_OK);
    op.check = true;
    op.field_validation = validation;
    kl_err_fini(&w->err);
    kl_status st = kl_client_wait(w->c, &op, NULL, &w->err);
    kl_value_unref(op.body);
    return st;
}

static void posted(world *w, const char *want)
{
    kl_lock(&w->s.mu);
    assert_string_equal(w->s.posted, want);
    kl_unlock(&w->s.mu);
}

#define assert_fetched(w, n_indexes, n_unchanged, n_documents)                                               \
    do {                                                                                                     \
        assert_int_equal(atomic_load(&(w)->s.indexes), n_indexes);                                           \
        assert_int_equal(atomic_load(&(w)->s.unchanged), n_unchanged);                                       \
        assert_int_equal(atomic_load(&(w)->s.documents), n_documents);                                       \
    } while (0)

#define W(rest) "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\"" rest "}"

static void a_schema_is_fetched_by_the_first_write_and_kept(void **state)
{
    (void)state;
    world w;
    world_start(&w);
    assert_ok(create(&w, W(",\"list\":{}"), NULL), &w.err);
    posted(&w, W(",\"list\":[]"));
    assert_ok(create(&w, W(",\"n\":1,\"list\":{}"), NULL), &w.err);
    posted(&w, W(",\"n\":1,\"list\":[]"));
    assert_fetched(&w, 1, 0, 1);
    world_stop(&w);
}

static void an_invalid_write_is_not_sent_and_names_its_field(void **state)
{
    (void)state;
    world w;
    world_start(&w);
    assert_int_equal(create(&w, W(",\"metadata\":{\"name\":\"a\"},\"lst\":{}"), NULL), KL_EINVAL);
    assert_string_equal(w.err.reason, KL_REASON_SCHEMA);
    assert_string_equal(kl_err_message(&w.err),
        "create example.com/v1/Widget a: there is no field \"lst\"; did you mean \"list\"?");
    assert_int_equal(create(&w, W(",\"lst\":{}"), "Strict"), KL_EINVAL);
    assert_int_equal(atomic_load(&w.s.posts), 0);
    /* then the server says it */
    assert_ok(create(&w, W(",\"lst\":{},\"list\":{}"), "Warn"), &w.err);
    posted(&w, W(",\"lst\":{},\"list\":[]"));
    world_stop(&w);
}

static void a_fault_is_never_reported_from_memory_alone(void **state)
{
    (void)state;
    world w;
    world_start(&w);
    assert_ok(create(&w, W(""), NULL), &w.err);
    kl_clock_advance(w.clock, KL_SECONDS(3));
    atomic_store(&w.s.generation, 2); /* the CRD has a new field */
    assert_ok(create(&w, W(",\"added\":\"x\""), NULL), &w.err);
    assert_fetched(&w, 2, 0, 2);
    kl_clock_advance(w.clock, KL_SECONDS(3));
    assert_int_equal(create(&w, W(",\"aded\":\"x\""), NULL), KL_EINVAL);
    assert_fetched(&w, 2, 1, 2);
    assert_int_equal(create(&w, W(",\"aded\":\"x\""), NULL), KL_EINVAL); /* just asked */
    assert_fetched(&w, 2, 1, 2);
    world_stop(&w);
}

static void another_client_finds_it_on_disk(void **state)
{
    (void)state;
    world w;
    world_start(&w);
    assert_ok(create(&w, W(""), NULL), &w.err);
    kl_client_free(w.c);
    connect_client(&w);
    assert_ok(create(&w, W(",\"list\":{}"), NULL), &w.err);
    posted(&w, W(",\"list\":[]"));
    assert_fetched(&w, 1, 1, 1);
    char command[256];
    snprintf(
        command, sizeof command, "f=$(find %s -name '*.schema') && [ -f \"$f\" ] && printf x >> $f", w.dir);
    assert_int_equal(system(command), 0);
    kl_client_free(w.c);
    connect_client(&w);
    assert_ok(create(&w, W(",\"list\":{}"), NULL), &w.err);
    assert_fetched(&w, 1, 2, 2);
    world_stop(&w);
}

static void a_server_without_openapi_gets_unchecked_writes(void **state)
{
    (void)state;
    static const int codes[] = {404, 403, 500};
    for (size_t i = 0; i < 3; i++) {
        world w;
        world_start(&w);
        atomic_store(&w.s.code, codes[i]);
        int before = atomic_load(&w.p.requests);
        assert_ok(create(&w, W(",\"lst\":{}"), NULL), &w.err);
        assert_int_equal(atomic_load(&w.p.requests) - before, 4); /* discovery, the index, the write */
        assert_ok(create(&w, W(",\"lst\":{}"), NULL), &w.err);
        assert_int_equal(atomic_load(&w.p.requests) - before, 5);
        atomic_store(&w.s.code, 200);
        kl_clock_advance(w.clock, KL_MINUTES(5));
        assert_int_equal(create(&w, W(",\"lst\":{}"), NULL), KL_EINVAL);
        world_stop(&w);
    }
}

static void an_unavailable_document_lets_writes_pass(void **state)
{
    (void)state;
    world w;
    world_start(&w);
    atomic_store(&w.s.document_code, 404);
    assert_ok(create(&w, W(",\"lst\":{}"), NULL), &w.err);
    assert_ok(create(&w, W(",\"lst\":{}"), NULL), &w.err);
    assert_fetched(&w, 1, 0, 1);
    atomic_store(&w.s.document_code, 500); /* that may pass: it is asked for again */
    atomic_store(&w.s.generation, 2);
    kl_clock_advance(w.clock, KL_MINUTES(11));
    assert_ok(create(&w, W(",\"lst\":{}"), NULL), &w.err);
    atomic_store(&w.s.document_code, 200);
    assert_int_equal(create(&w, W(",\"lst\":{}"), NULL), KL_EINVAL);
    world_stop(&w);
}

static void objects_from_the_server_are_not_checked(void **state)
{
    (void)state;
    world w;
    world_start(&w);
    kl_op op;
    kl_op_init(&op, KL_CREATE, "Widget");
    assert_int_equal(kl_value_decode(W(",\"lst\":1"), strlen(W(",\"lst\":1")), &op.body, NULL), KL_OK);
    assert_ok(kl_client_wait(w.c, &op, NULL, &w.err), &w.err);
    op.check = true;
    op.verb = KL_PATCH;
    op.patch_type = KL_PATCH_MERGE;
    op.name = "a";
    op.subresource = "scale";
    assert_ok(kl_client_wait(w.c, &op, NULL, &w.err), &w.err);
    kl_value_unref(op.body);
    op.patch_type = KL_PATCH_JSON;
    op.subresource = NULL;
    assert_int_equal(kl_value_decode("[]", 2, &op.body, NULL), KL_OK);
    assert_ok(kl_client_wait(w.c, &op, NULL, &w.err), &w.err);
    assert_fetched(&w, 0, 0, 0);
    kl_value_unref(op.body);
    world_stop(&w);
}

typedef struct many {
    kl_mutex mu;
    kl_cond changed;
    int good, n;
} many;

static void on_created(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    many *m = arg;
    (void)code;
    (void)body;
    (void)err;
    kl_lock(&m->mu);
    m->good += !st;
    m->n++;
    kl_cond_broadcast(&m->changed);
    kl_unlock(&m->mu);
}

static void many_writes_share_one_fetch(void **state)
{
    (void)state;
    world w;
    many m = {0};
    kl_mutex_init(&m.mu);
    kl_cond_init(&m.changed);
    world_start(&w);
    kl_op op;
    kl_op_init(&op, KL_CREATE, "Widget");
    assert_int_equal(kl_value_decode(W(",\"list\":{}"), strlen(W(",\"list\":{}")), &op.body, NULL), KL_OK);
    op.check = true;
    for (int i = 0; i < 30; i++)
        kl_client_do(w.c, &op, on_created, &m);
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&m.mu);
    for (bool in_time = true; m.n < 30 && in_time;)
        in_time = kl_cond_wait_until(&m.changed, &m.mu, deadline);
    kl_unlock(&m.mu);
    assert_int_equal(m.good, 30);
    assert_fetched(&w, 1, 0, 1);
    kl_value_unref(op.body);
    world_stop(&w);
    kl_cond_fini(&m.changed);
    kl_mutex_fini(&m.mu);
}

static void on_ended(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    (void)body;
    (void)err;
    atomic_store((_Atomic int *)arg, (int)st);
}

static void calls_waiting_for_a_schema_end_with_the_client(void **state)
{
    (void)state;
    world w;
    _Atomic int ended[2] = {-1, -1};
    world_start(&w);
    atomic_store(&w.s.code, 0);
    kl_op op;
    kl_op_init(&op, KL_CREATE, "Widget");
    assert_int_equal(kl_value_decode(W(""), strlen(W("")), &op.body, NULL), KL_OK);
    op.check = true;
    uint64_t first = kl_client_do(w.c, &op, on_ended, &ended[0]);
    kl_client_do(w.c, &op, on_ended, &ended[1]);
    /* /api, /apis, and the index that never comes */
    assert_true(peer_wait(&w.p, &w.p.requests, 3));
    kl_client_cancel(w.c, first);
    kl_client_free(w.c);
    assert_int_equal(atomic_load(&ended[0]), KL_ECANCELLED);
    assert_int_equal(atomic_load(&ended[1]), KL_ECANCELLED);
    assert_int_equal(atomic_load(&w.s.posts), 0);
    kl_value_unref(op.body);
    connect_client(&w);
    world_stop(&w);
}

KL_TESTS(cmocka_unit_test(calls_waiting_for_a_schema_end_with_the_client),
    cmocka_unit_test(a_schema_is_fetched_by_the_first_write_and_kept),
    cmocka_unit_test(an_invalid_write_is_not_sent_and_names_its_field),
    cmocka_unit_test(a_fault_is_never_reported_from_memory_alone),
    cmocka_unit_test(another_client_finds_it_on_disk),
    cmocka_unit_test(a_server_without_openapi_gets_unchecked_writes),
    cmocka_unit_test(an_unavailable_document_lets_writes_pass),
    cmocka_unit_test(objects_from_the_server_are_not_checked), cmocka_unit_test(many_writes_share_one_fetch))
