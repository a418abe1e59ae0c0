/* content_test.c - the requested media types, and the handling of the answers: protobuf, JSON, a rejection,
 * a newer server. */
#include "support/test.h"
#include "core/http/peer.h"

#include "model/object.h"
#include "client/client.h"
#include "support/proto.h"

#define BOTH "application/vnd.kubernetes.protobuf,application/json"
#define PROTO "application/vnd.kubernetes.protobuf"

static const char *const verbs[] = {"get", "list", "watch", "create", NULL};
static const char *const subs[] = {"status", "scale", "log", NULL};
static const kl_resource maps = {.group = "",
    .version = "v1",
    .kind = "ConfigMap",
    .plural = "configmaps",
    .singular = "configmap",
    .verbs = (char **)verbs,
    .subresources = (char **)subs,
    .namespaced = true};
static const kl_resource secrets = {.group = "",
    .version = "v1",
    .kind = "Secret",
    .plural = "secrets",
    .singular = "secret",
    .verbs = (char **)verbs,
    .namespaced = true};
static const kl_resource widgets = {.group = "example.com",
    .version = "v1",
    .kind = "Widget",
    .plural = "widgets",
    .singular = "widget",
    .verbs = (char **)verbs,
    .namespaced = true};

typedef struct answer {
    int code;
    const char *type;
    kl_buf body;
} answer;

typedef struct world {
    peer p;
    kl_client *c;
    kl_err err;
    kl_mutex mu;
    kl_cond changed;
    answer answers[8]; /* by request, from 0; the last one set answers all that follow */
    int n_answers;
    char accepts[8][256]; /* of each request */
    kl_buf log;           /* what a stream brought */
    int dones;
    kl_status st;
    kl_op op;
} world;

static bool answer_next(peer *p, int fd, const request *r)
{
    world *w = p->arg;
    const answer *a = &w->answers[r->nth <= w->n_answers ? r->nth - 1 : w->n_answers - 1];
    kl_lock(&w->mu);
    if (r->nth <= 8)
        snprintf(w->accepts[r->nth - 1], sizeof w->accepts[0], "%s", peer_header(r, "accept"));
    kl_unlock(&w->mu);
    peer_send(fd, "HTTP/1.1 %d Status\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", a->code, a->type,
        a->body.len);
    return send(fd, a->body.data ? a->body.data : "", a->body.len, MSG_NOSIGNAL) == (ssize_t)a->body.len;
}

static void start(world *w, bool no_protobuf)
{
    memset(w, 0, sizeof *w);
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->changed);
    peer_start(&w->p, answer_next, w);
    kl_client_options o = {.no_protobuf = no_protobuf};
    kl_config_for_server(w->p.url, &o.config);
    kl_free(o.config.proxy_url);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &w->c, &w->err), &w->err);
}

static void stop(world *w)
{
    kl_client_free(w->c);
    peer_stop(&w->p);
    for (int i = 0; i < w->n_answers; i++)
        kl_buf_fini(&w->answers[i].body);
    kl_buf_fini(&w->log);
    kl_err_fini(&w->err);
    kl_cond_fini(&w->changed);
    kl_mutex_fini(&w->mu);
}

static void in_json(world *w, int code, const char *text)
{
    answer *a = &w->answers[w->n_answers++];
    *a = (answer){.code = code, .type = "application/json"};
    kl_buf_puts(&a->body, text);
}

/* A ConfigMap's message; `new_field`: with one that the tables do not have. */
static kl_buf map_named(const char *name, bool new_field)
{
    kl_buf meta = KL_BUF_INIT, raw = KL_BUF_INIT;
    put_text(&meta, 1, name);
    put_bytes(&raw, 1, meta.data, meta.len);
    if (new_field)
        put_text(&raw, 77, "new");
    kl_buf_fini(&meta);
    return raw;
}

static kl_buf *in_proto(world *w, int code)
{
    answer *a = &w->answers[w->n_answers++];
    *a = (answer){.code = code, .type = PROTO};
    return &a->body;
}

static void map_in_proto(world *w, const char *name, bool new_field)
{
    kl_buf raw = map_named(name, new_field);
    put_unknown(in_proto(w, 200), "v1", "ConfigMap", raw.data, raw.len);
    kl_buf_fini(&raw);
}

static kl_op op_of(kl_verb v, const kl_resource *r)
{
    kl_op op;
    kl_op_init(&op, v, NULL);
    op.resource = r;
    op.ns = "default";
    op.name = v == KL_GET ? "a" : NULL;
    return op;
}

/* The name of what a get brings. */
static void assert_gets(world *w, const kl_op *op, const char *name)
{
    const kl_value *got = NULL;
    assert_ok(kl_client_wait(w->c, op, &got, &w->err), &w->err);
    assert_string_equal(kl_object_name(got), name);
    kl_value_unref(got);
}

static void built_in_kinds_are_asked_for_in_protobuf(void **state)
{
    (void)state;
    static const struct {
        kl_verb verb;
        const kl_resource *r;
        const char *sub;
        bool off;
        kl_form form;
        const char *accept;
    } asked[] = {
        {KL_GET, &maps, NULL, false, 0, BOTH},
        {KL_GET, &maps, NULL, true, 0, "application/json"},
        {KL_GET, &maps, "status", false, 0, BOTH},
        {KL_GET, &maps, "log", false, 0, "application/json"},
        {KL_LIST, &maps, NULL, false, 0, BOTH},
        {KL_LIST, &widgets, NULL, false, 0, "application/json"},
        {KL_LIST, &maps, NULL, false, KL_AS_TABLE, "application/json;as=Table;v=v1;g=meta.k8s.io"},
        {KL_GET, &widgets, NULL, false, KL_AS_METADATA,
            PROTO ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/"
                  "json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
        {KL_LIST, &widgets, NULL, true, KL_AS_METADATA,
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        world w;
        start(&w, asked[i].off);
        in_json(&w, 200,
            asked[i].verb == KL_LIST ? "{\"kind\":\"List\",\"metadata\":{},\"items\":[],\"rows\":[]}"
                                     : "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}");
        kl_op op = op_of(asked[i].verb, asked[i].r);
        op.subresource = asked[i].sub;
        op.form = asked[i].form;
        const kl_value *got = NULL;
        assert_ok(kl_client_wait(w.c, &op, &got, &w.err), &w.err);
        assert_string_equal(w.accepts[0], asked[i].accept);
        kl_value_unref(got);
        stop(&w);
    }
}

static void an_answer_is_read_by_its_content_type(void **state)
{
    (void)state;
    world w;
    kl_op op = op_of(KL_GET, &maps);
    start(&w, false);
    map_in_proto(&w, "p", false);
    in_json(&w, 200, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"j\"}}");
    map_in_proto(&w, "q", false);
    assert_gets(&w, &op, "p");
    assert_gets(&w, &op, "j");
    assert_gets(&w, &op, "q");
    assert_string_equal(w.accepts[2], BOTH); /* JSON was not a refusal */
    stop(&w);
}

static void errors_come_in_protobuf_too(void **state)
{
    (void)state;
    world w;
    kl_op op = op_of(KL_GET, &maps);
    kl_buf status = KL_BUF_INIT;
    const kl_value *got;
    start(&w, false);
    put_text(&status, 2, "Failure");
    put_text(&status, 3, "configmaps \"a\" not found");
    put_text(&status, 4, "NotFound");
    put_number(&status, 6, 404);
    put_unknown(in_proto(&w, 404), "v1", "Status", status.data, status.len);
    put_unknown(in_proto(&w, 200), "v1", "Status", status.data, status.len);
    kl_buf_add(in_proto(&w, 500), "k8s\0\xff\xff", 6);
    kl_buf_add(in_proto(&w, 200), "k8s\0\xff\xff", 6);
    assert_fails(kl_client_wait(w.c, &op, &got, &w.err), KL_ENOTFOUND, &w.err,
        "get configmaps default/a: configmaps \"a\" not found");
    assert_fails(kl_client_wait(w.c, &op, &got, &w.err), KL_ENOTFOUND, &w.err,
        "get configmaps default/a: configmaps \"a\" not found");
    assert_fails(kl_client_wait(w.c, &op, &got, &w.err), KL_ESERVER, &w.err, "an error on the server");
    assert_fails(kl_client_wait(w.c, &op, &got, &w.err), KL_ESERVER, &w.err,
        "is not the protobuf it should be: the protobuf's envelope is malformed or truncated at byte 4");
    kl_buf_fini(&status);
    stop(&w);
}

static void a_refusal_means_json_from_then_on_for_that_resource(void **state)
{
    (void)state;
    static const int refusals[] = {406, 415};
    for (size_t i = 0; i < 2; i++) {
        world w;
        kl_op op = op_of(KL_GET, &maps), other = op_of(KL_GET, &secrets);
        start(&w, false);
        in_json(&w, refusals[i], "{\"kind\":\"Status\",\"code\":406,\"reason\":\"NotAcceptable\"}");
        in_json(&w, 200, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"j\"}}");
        assert_gets(&w, &op, "j");
        assert_gets(&w, &op, "j");
        assert_gets(&w, &other, "j");
        assert_string_equal(w.accepts[0], BOTH);
        assert_string_equal(w.accepts[1], "application/json");
        assert_string_equal(w.accepts[2], "application/json");
        assert_string_equal(w.accepts[3], BOTH);
        assert_int_equal(w.p.requests, 4);
        stop(&w);
    }
}

static void a_refusal_of_json_is_an_error(void **state)
{
    (void)state;
    world w;
    kl_op op = op_of(KL_GET, &maps);
    const kl_value *got;
    start(&w, false);
    in_json(&w, 406, "");
    assert_fails(kl_client_wait(w.c, &op, &got, &w.err), KL_EREJECTED, &w.err, "accepted media type");
    assert_int_equal(w.p.requests, 2);
    stop(&w);
}

static void kinds_without_tables_are_read_in_json(void **state)
{
    (void)state;
    world w;
    kl_op op = op_of(KL_GET, &maps);
    start(&w, false);
    map_in_proto(&w, "p", true);
    in_json(&w, 200, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"j\"},\"new\":1}");
    assert_gets(&w, &op, "j");
    assert_gets(&w, &op, "j");
    assert_string_equal(w.accepts[1], "application/json");
    assert_string_equal(w.accepts[2], "application/json");
    stop(&w);
}

/* --- streams ------------------------------------------------------------------------------ */

static kl_status on_item(void *arg, const kl_value *o, kl_err *err)
{
    world *w = arg;
    (void)err;
    kl_lock(&w->mu);
    kl_buf_printf(&w->log, "%s ", kl_object_name(o));
    kl_unlock(&w->mu);
    kl_value_unref(o);
    return KL_OK;
}

static kl_status on_event(void *arg, const char *type, const kl_value *o, kl_err *err)
{
    (void)type;
    return on_item(arg, o, err);
}

static void on_opened(void *arg)
{
    world *w = arg;
    kl_lock(&w->mu);
    kl_buf_puts(&w->log, "open ");
    kl_unlock(&w->mu);
}

static void on_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    world *w = arg;
    (void)code, (void)envelope;
    kl_lock(&w->mu);
    w->st = st;
    kl_err_move(&w->err, err);
    w->dones++;
    kl_cond_broadcast(&w->changed);
    kl_unlock(&w->mu);
}

static void begin(void *arg)
{
    world *w = arg;
    kl_client_stream(w->c, &w->op,
        &(kl_stream_call){
            .item = on_item, .event = on_event, .opened = on_opened, .done = on_done, .arg = w});
}

/* Runs one to its end; what it brought. */
static const char *stream(world *w, kl_verb verb)
{
    kl_buf_clear(&w->log);
    w->op = op_of(verb, &maps);
    int before = w->dones;
    kl_http_post(kl_client_watch_http(w->c), begin, w);
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&w->mu);
    while (w->dones == before && kl_cond_wait_until(&w->changed, &w->mu, deadline))
        continue;
    kl_unlock(&w->mu);
    assert_int_equal(w->dones, before + 1);
    return kl_buf_str(&w->log);
}

static void list_in_proto(world *w, bool first_new, bool second_new)
{
    kl_buf list = KL_BUF_INIT;
    for (int i = 0; i < 2; i++) {
        kl_buf raw = map_named(i ? "b" : "a", i ? second_new : first_new);
        put_bytes(&list, 2, raw.data, raw.len);
        kl_buf_fini(&raw);
    }
    put_unknown(in_proto(w, 200), "v1", "ConfigMapList", list.data, list.len);
    kl_buf_fini(&list);
}

static void watch_in_proto(world *w, bool second_new)
{
    kl_buf *body = in_proto(w, 200);
    w->answers[w->n_answers - 1].type = PROTO ";stream=watch";
    for (int i = 0; i < 2; i++) {
        kl_buf raw = map_named(i ? "b" : "a", i && second_new), object = KL_BUF_INIT;
        put_unknown(&object, "v1", "ConfigMap", raw.data, raw.len);
        put_frame(body, "ADDED", object.data, object.len);
        kl_buf_fini(&raw);
        kl_buf_fini(&object);
    }
}

#define LIST_JSON                                                                                            \
    "{\"kind\":\"ConfigMapList\",\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"ja\"}},{\"metadata\":" \
    "{\"name\":\"jb\"}}]}"

static void streams_come_in_protobuf(void **state)
{
    (void)state;
    world w;
    start(&w, false);
    list_in_proto(&w, false, false);
    watch_in_proto(&w, false);
    assert_string_equal(stream(&w, KL_LIST), "open a b ");
    assert_int_equal(w.st, KL_OK);
    assert_string_equal(stream(&w, KL_WATCH), "open a b ");
    assert_int_equal(w.st, KL_OK);
    assert_string_equal(w.accepts[0], BOTH);
    assert_string_equal(w.accepts[1], BOTH);
    stop(&w);
}

static void a_rejected_stream_continues_in_json(void **state)
{
    (void)state;
    world w;
    start(&w, false);
    in_json(&w, 406, "");
    in_json(&w, 200, LIST_JSON);
    assert_string_equal(stream(&w, KL_LIST), "open ja jb ");
    assert_int_equal(w.st, KL_OK);
    assert_string_equal(w.accepts[1], "application/json");
    stop(&w);
}

/* Before anything was handed over nobody notices; after that the stream ends, and the next one is in JSON. */
static void a_newer_servers_stream_continues_in_json(void **state)
{
    (void)state;
    world w;
    start(&w, false);
    list_in_proto(&w, true, false);
    in_json(&w, 200, LIST_JSON);
    assert_string_equal(stream(&w, KL_LIST), "open ja jb ");
    assert_int_equal(w.st, KL_OK);
    stop(&w);

    start(&w, false);
    list_in_proto(&w, false, true);
    in_json(&w, 200, LIST_JSON);
    assert_string_equal(stream(&w, KL_LIST), "open a ");
    assert_int_equal(w.st, KL_ESERVER);
    assert_non_null(strstr(w.err.message, "fields in protobuf that this version of kubelua does not know"));
    kl_err_fini(&w.err);
    assert_string_equal(stream(&w, KL_LIST), "open ja jb ");
    assert_int_equal(w.st, KL_OK);
    stop(&w);

    start(&w, false);
    watch_in_proto(&w, true);
    in_json(&w, 200, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"j\"}}}\n");
    assert_string_equal(stream(&w, KL_WATCH), "open a ");
    kl_err_fini(&w.err);
    assert_string_equal(stream(&w, KL_WATCH), "open j ");
    assert_string_equal(w.accepts[1], "application/json");
    stop(&w);
}

static void garbage_in_a_stream_is_reported_as_garbage(void **state)
{
    (void)state;
    world w;
    start(&w, false);
    kl_buf_puts(in_proto(&w, 200), "<html>");
    assert_string_equal(stream(&w, KL_LIST), "open ");
    assert_int_equal(w.st, KL_ESERVER);
    assert_non_null(
        strstr(w.err.message, "is not the protobuf it should be: the protobuf list is malformed at byte 0"));
    stop(&w);
}

KL_TESTS(cmocka_unit_test(built_in_kinds_are_asked_for_in_protobuf),
    cmocka_unit_test(an_answer_is_read_by_its_content_type), cmocka_unit_test(errors_come_in_protobuf_too),
    cmocka_unit_test(a_refusal_means_json_from_then_on_for_that_resource),
    cmocka_unit_test(a_refusal_of_json_is_an_error), cmocka_unit_test(kinds_without_tables_are_read_in_json),
    cmocka_unit_test(streams_come_in_protobuf), cmocka_unit_test(a_rejected_stream_continues_in_json),
    cmocka_unit_test(a_newer_servers_stream_continues_in_json),
    cmocka_unit_test(garbage_in_a_stream_is_reported_as_garbage))
